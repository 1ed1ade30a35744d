"""The generalised normal density, and that of Laplace, which is one."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Mirrored, Rising, Segment, SegmentedPeak, clipped, mirrored

CLOSE = 1e-16  # to the peak, in widths: the density is one there,
FLAT = 1e-18  # and where its exponent is less
FARTHEST = 50.0  # in the logarithm of a power: nothing is left of the density from there on


@dataclass(frozen=True, eq=False)
class GeneralisedNormal(Pdf):
    r"""$e^{-|x-\mu|^\beta/\alpha^\beta}$ with the width $\alpha$ and the power $\beta$.

    A Gaussian of width $\alpha/\sqrt2$ for $\beta=2$, a Laplace density for $\beta=1$, flatter at the top beyond.
    (M. T. Subbotin, Mat. Sb. 31 (1923) 296; scipy.stats.gennorm)

    Example: ``GeneralisedNormal(m, mu=5.8, alpha=0.3, beta=3.0)``
    """

    x: Observable
    mu: Number
    alpha: Positive
    beta: Positive

    def density(self) -> Expr:
        return Op.EXP(-Op.EXP(self.log_power((self.x - self.mu) / self.alpha)))

    def log_power(self, z: Expr) -> Expr:
        """Return the logarithm of the size of z to the power beta; derivatives at the peak itself are those next to it."""
        return to_expr(self.beta) * Op.LOG(Op.MAX(abs(z), CLOSE))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # beta of the integral of exp(-|z|**beta) is the incomplete gamma function of shape 1/beta at |z|**beta
        shape = 1 / to_expr(self.beta)
        ends = [(end - self.mu) / self.alpha for end in (low, high)]
        left, right = (Op.EXP(Op.MIN(self.log_power(z), const(FARTHEST))) for z in ends)
        apart = ends[0] * ends[1] < 0  # the peak lies between
        near = Op.MIN(left, right)
        sums = self.from_peak(ends[1], right) - self.from_peak(ends[0], left)
        tails = abs(Op.GAMMAINCC(shape, left) - Op.GAMMAINCC(shape, right))
        whole = Op.EXP(Op.LGAMMA(1 + shape))
        return to_expr(self.alpha) * whole * where(apart, sums, where(near > shape, tails, sums))

    def from_peak(self, z: Expr, power: Expr) -> Expr:
        """Return the part of a half that lies between the peak and z, negative on the left; a line where the density is one."""
        shape = 1 / to_expr(self.beta)
        flat = (abs(z) <= CLOSE) | (power < FLAT)
        below = Op.GAMMAINC(shape, where(flat, 1, power))
        return where(flat, z / Op.EXP(Op.LGAMMA(1 + shape)), where(z < 0, -below, below))


@dataclass(frozen=True, eq=False)
class Laplace(SegmentedPeak):
    r"""$e^{-|x-\mu|/b}$ with the scale $b$.

    Its slope jumps at the peak. (P.-S. Laplace, 1774; scipy.stats.laplace)

    Example: ``Laplace(m, mu=5.8, scale=0.2)``
    """

    x: Observable
    mu: Number
    scale: Positive

    def density(self) -> Expr:
        return Op.EXP(-abs(self.x - self.mu) / self.scale)

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        scale = to_expr(self.scale)
        left = Rising(scale, ONE, ZERO, *clipped(low, high, None, 0))
        return left, Mirrored(Rising(scale, ONE, ZERO, *mirrored(clipped(low, high, 0, None))))
