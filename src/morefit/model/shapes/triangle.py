"""The triangle."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.segments import Mirrored, Segment, SegmentedPeak, clipped, mirrored


@dataclass(frozen=True, eq=False)
class Triangle(SegmentedPeak):
    r"""$1-(\mu-x)/w_{left}$ for $x<\mu$, else $1-(x-\mu)/w_{right}$; zero where this is negative.

    The widths reach from the peak to the ends. Events beyond an end have no density, so keep ends outside the data.
    (scipy.stats.triang)

    Example: ``Triangle(m, mu=5.8, width_left=1.5, width_right=2.5)``
    """

    x: Observable
    mu: Number
    width_left: Positive
    width_right: Positive

    def density(self) -> Expr:
        distance = self.x - self.mu
        width = where(distance < 0, self.width_left, self.width_right)
        return Op.MAX(1 - abs(distance) / width, const(0))

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        left, right = to_expr(self.width_left), to_expr(self.width_right)
        return (
            Ramp(left, *clipped(low, high, -left, 0)),
            Mirrored(Ramp(right, *mirrored(clipped(low, high, 0, right)))),
        )


@dataclass(frozen=True, eq=False)
class Ramp:
    """A line that rises from zero, a width below the peak, to one at the peak."""

    width: Expr
    low: Expr
    high: Expr

    @property
    def area(self) -> Expr:
        return (self.high - self.low) * (1 + (self.low + self.high) / (2 * self.width))

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""
        first = 1 + self.low / self.width
        return self.width * (Op.SQRT(Op.MAX(first**2 + 2 * target / self.width, const(0))) - 1)
