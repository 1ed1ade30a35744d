"""Student's t density."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class StudentT(Pdf):
    r"""$(1+t^2/\nu)^{-(\nu+1)/2}$ with $t=(x-\mu)/\sigma$ and $\nu$ degrees of freedom.

    A Breit-Wigner for $\nu=1$, a Gaussian for large $\nu$. (Student, Biometrika 6 (1908) 1; scipy.stats.t)

    Example: ``StudentT(m, mu=5.8, sigma=0.1, nu=3.0)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    nu: Positive

    def density(self) -> Expr:
        nu = to_expr(self.nu)
        return Op.EXP(-0.5 * (nu + 1) * Op.LOG1P(((self.x - self.mu) / self.sigma) ** 2 / nu))
