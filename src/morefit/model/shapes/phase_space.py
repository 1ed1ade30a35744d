"""Phase space: the mass of some of the particles of a decay."""

from __future__ import annotations

from typing import Annotated

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ZERO, Expr, Op, Operand, const, to_expr, where
from morefit.model.arguments import Allowed, Positive
from morefit.model.formulas import TINY
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

Bodies = Annotated[Operand, Allowed("a whole number from 2 on", lambda v: v >= 2 and v == int(v))]


@dataclass(frozen=True, eq=False)
class PhaseSpace(Pdf):
    r"""$(x-x_1)^{(3l-5)/2}(x_2-x)^{(3(n-l)-2)/2}$ between $x_1$ and $x_2$: the mass of $l$ of the $n$ particles of a decay.

    ``lower`` is the sum of the masses of the $l$ particles and ``upper`` the mass of the mother less the masses of the
    others; both may be parameters. Right next to both ends, and a good approximation between them.
    (E. Byckling and K. Kajantie, Particle Kinematics, 1973)

    Example: ``PhaseSpace(m, lower=4.5, upper=7.5, particles=2, total=4)``
    """

    x: Observable
    lower: Positive
    upper: Positive
    particles: Bodies
    total: Bodies

    def __post_init__(self) -> None:
        super().__post_init__()
        some, all_of_them = to_expr(self.particles), to_expr(self.total)
        if not (some.op is all_of_them.op is Op.CONST and some.number < all_of_them.number):
            raise ModelError(
                f"density 'PhaseSpace': particles must be numbers, fewer than in total, got {some!r} of {all_of_them!r};"
                " use a resonance for a mass that is fixed"
            )

    def density(self) -> Expr:
        low, high, x = to_expr(self.lower), to_expr(self.upper), self.x.expr
        some = to_expr(self.particles).number
        others = to_expr(self.total).number - to_expr(self.particles).number
        inside, width = (x > low) & (x < high), high - low
        left, right = (Op.LOG(Op.MAX(d / width, const(TINY))) for d in (x - low, high - x))
        return where(inside, Op.EXP((1.5 * some - 2.5) * left + (1.5 * others - 1) * right), ZERO)
