"""The Cruijff function: a Gaussian whose width grows with the distance from its peak."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, where
from morefit.model.arguments import NotNegative, Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Cruijff(Pdf):
    r"""$e^{-d^2/(2\sigma^2+\alpha d^2)}$ with $d=x-\mu$; $\sigma$ and $\alpha$ are those of the side.

    (BaBar, arXiv:1005.4087)

    Example: ``Cruijff(m, mu=5.8, sigma_left=0.1, sigma_right=0.15, alpha_left=0.15, alpha_right=0.1)``
    """

    x: Observable
    mu: Number
    sigma_left: Positive
    sigma_right: Positive
    alpha_left: NotNegative
    alpha_right: NotNegative

    def density(self) -> Expr:
        left = self.x < self.mu
        sigma = where(left, self.sigma_left, self.sigma_right)
        alpha = where(left, self.alpha_left, self.alpha_right)
        square = ((self.x - self.mu) / sigma) ** 2
        return Op.EXP(-square / (2 + alpha * square))
