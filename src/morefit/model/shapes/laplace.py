"""The Laplace density: an exponential on each side of its peak."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.segments import Mirrored, Rising, Segment, SegmentedPeak, clipped, mirrored


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
