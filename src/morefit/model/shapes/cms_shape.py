"""The shape of dilepton backgrounds: an exponential behind an error function."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class CMSShape(Pdf):
    r"""$\operatorname{erfc}(\beta(\alpha-x))\,e^{-\gamma x}$: a threshold at $\alpha$ that rises at the rate $\beta$, and a fall at $\gamma$.

    Used for backgrounds under Z bosons; the position of the exponential is a factor, and needs no parameter.
    (RooCMSShape of CMS tools for tag and probe)

    Example: ``CMSShape(x, alpha=3.0, beta=0.8, gamma=0.3)``
    """

    x: Observable
    alpha: Number
    beta: Positive
    gamma: Number

    def density(self) -> Expr:
        gamma, middle = to_expr(self.gamma), 0.5 * (self.x.low + self.x.high)
        rise = Op.ERFC(to_expr(self.beta) * (to_expr(self.alpha) - self.x))
        return rise * Op.EXP(-gamma * (self.x - where(gamma < 0, const(self.x.high), const(middle))))
