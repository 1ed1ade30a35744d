"""The Hypatia function: a generalised hyperbolic core with a power-law tail on each side."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, Operand, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import share_of
from morefit.model.integrate import integral_over
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import clipped, mirrored


@dataclass(frozen=True, eq=False)
class Hypatia(Pdf):
    r"""$(1+d^2/\delta^2)^{\lambda/2-1/4}e^{\beta d}K_{\lambda-1/2}(q)$ for $-a_{left}\sigma<d=x-\mu<a_{right}\sigma$, power laws outside.

    Here $q=\zeta\sqrt{1+d^2/\delta^2}$ and $\delta^2=\sigma^2\zeta K_\lambda(\zeta)/K_{\lambda+1}(\zeta)$, so that $\sigma$ is
    the width for $\beta=0$. The tails $(1+s|u|/n)^{-n}$, with $u$ the distance from where they begin, continue value and
    slope. It describes a mass whose resolution differs from event to event.
    (D. Martinez Santos and F. Dupertuis, Nucl. Instrum. Meth. A 764 (2014) 150, arXiv:1312.5000; RooHypatia2 of RooFit)

    Example: ``Hypatia(m, mu=5.8, sigma=0.1, order=-2.0, zeta=0.8, beta=0.1, a_left=2.0, n_left=3.0, a_right=2.5, n_right=4.0)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    order: Number
    zeta: Positive
    beta: Number
    a_left: Positive
    n_left: Positive
    a_right: Positive
    n_right: Positive

    def density(self) -> Expr:
        d, sigma = self.x - self.mu, to_expr(self.sigma)
        low, high = -to_expr(self.a_left) * sigma, to_expr(self.a_right) * sigma
        inside, _ = clipped(d, d, low, high)
        logarithm = self.log_core(inside)
        left, right = self.tail(low - d, low, 1, self.n_left), self.tail(d - high, high, -1, self.n_right)
        return Op.EXP(logarithm + left + right)

    def integral(self) -> Expr:
        """Integrate the tails in closed form, and the core by one rule from cut to cut."""
        start, end = (const(end) - self.mu for end in (self.x.low, self.x.high))
        cuts = -to_expr(self.a_left) * self.sigma, to_expr(self.a_right) * self.sigma
        low, high = clipped(start, end, cuts[0], cuts[1])
        share = share_of(self.x)
        core = (high - low) * Op.EXP(self.log_core(low + (high - low) * share))
        total = integral_over(core, [share], self.parameters, self.given)
        for cut, side, n in ((cuts[0], 1, to_expr(self.n_left)), (cuts[1], -1, to_expr(self.n_right))):
            part = clipped(start, end, None, cut) if side > 0 else clipped(start, end, cut, None)
            near, far = mirrored(part) if side > 0 else part
            growth = side * self.log_slope(cut) / n
            ratio = 1 + growth * (side * cut + near)
            height = Op.EXP(self.log_core(cut) - n * Op.LOG(ratio))
            # a width that is the difference of clipped ends is exactly zero where there is no tail
            total = total + height * Op.POWER_AREA(far - near, growth / ratio, n)
        return total

    def tail(self, beyond: Expr, cut: Expr, side: int, n: Operand) -> Expr:
        """Return the logarithm of how much a tail falls from its cut on; zero on the other side of the cut."""
        ratio = 1 + side * self.log_slope(cut) / to_expr(n) * where(beyond > 0, beyond, 0)
        return -to_expr(n) * Op.LOG(ratio)

    def scale(self) -> Expr:
        """Return the length by which distances are measured."""
        order, zeta = to_expr(self.order), to_expr(self.zeta)
        return to_expr(self.sigma) * Op.SQRT(zeta / Op.KV_RATIO(order, zeta))

    def log_core(self, d: Expr) -> Expr:
        """Return the logarithm of the core, up to a constant."""
        nu, zeta = to_expr(self.order) - 0.5, to_expr(self.zeta)
        root = Op.SQRT(1 + (d / self.scale()) ** 2)
        bessel = Op.LOG_KVE(nu, zeta * root) - Op.LOG_KVE(nu, zeta) - zeta * (root - 1)
        return nu * Op.LOG(root) + to_expr(self.beta) * d + bessel

    def log_slope(self, d: Expr) -> Expr:
        """Return the derivative of ``log_core``."""
        nu, zeta, scale = to_expr(self.order) - 0.5, to_expr(self.zeta), self.scale()
        root = Op.SQRT(1 + (d / scale) ** 2)
        return to_expr(self.beta) - zeta * d / (scale**2 * root * Op.KV_RATIO(nu - 1, zeta * root))
