"""Densities in segments along one observable, each with an area and an inverse in closed form."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, Operand, add_all, const, to_expr, where
from morefit.model.arguments import Number
from morefit.model.formulas import TINY, exprel, log1prel, normal_area
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


class Segment(Protocol):
    """A density between two distances from the centre of a peak."""

    @property
    def area(self) -> Expr:
        """The integral from end to end."""

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""


class SegmentedPeak(Pdf):
    """A peak that is made of segments about ``mu``; a shape lists them from left to right."""

    x: Observable
    mu: Number

    @abstractmethod
    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        """Return the segments between two distances from ``mu``; those outside are empty."""

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return add_all(*(segment.area for segment in self.segments(low - self.mu, high - self.mu)))

    def quantile(self, probability: Expr) -> Expr:
        segments = self.segments(const(self.x.low) - self.mu, const(self.x.high) - self.mu)
        before = list(accumulate((s.area for s in segments), initial=ZERO))
        target = probability * before[-1]
        distance = segments[-1].point(target - before[-2])
        for segment, below, above in reversed(list(zip(segments[:-1], before, before[1:-1], strict=False))):
            distance = where(target < above, segment.point(target - below), distance)
        return to_expr(self.mu) + distance


def clipped(low: Operand, high: Operand, left: Operand | None, right: Operand | None) -> tuple[Expr, Expr]:
    """Return the part of a range that lies between two cuts; without a left or right cut it is open there.

    Where an end lies on a cut, one of the neighbours there has the slope of the end, and the other that of the cut: both ask
    whether the end is below.
    """

    def inside(end: Expr) -> Expr:
        below = end if right is None else where(end < right, end, right)
        return below if left is None else where(end < left, left, below)

    return inside(to_expr(low)), inside(to_expr(high))


def mirrored(ends: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Return the ends of a part on the other side of the centre, as distances of a segment that is ``Mirrored``.

    They are clipped before, so that neighbours compare the same numbers.
    """
    return -ends[1], -ends[0]


@dataclass(frozen=True, eq=False)
class Mirrored:
    """A segment on the other side of the centre."""

    segment: Segment

    @property
    def area(self) -> Expr:
        return self.segment.area

    def point(self, target: Expr) -> Expr:
        return -self.segment.point(self.area - target)


@dataclass(frozen=True, eq=False)
class Rising:
    """An exponential that rises to ``height`` at ``cut``, between two distances below it."""

    scale: Expr
    height: Expr
    cut: Expr
    low: Expr
    high: Expr

    @property
    def near(self) -> Expr:
        return self.height * Op.EXP((self.high - self.cut) / self.scale)

    @property
    def area(self) -> Expr:
        width = self.high - self.low
        return self.near * width * exprel(-width / self.scale)

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""
        share = target / Op.MAX(self.near * self.scale, const(TINY))
        return self.high + self.scale * Op.LOG(Op.EXP((self.low - self.high) / self.scale) + share)


def tail_ratio(t: Expr, a: Expr, n: Expr) -> Expr:
    """Return what the tail raises to the power -n: 1 where it meets the core, growing outwards."""
    return 1 - a / n * (a + t)


@dataclass(frozen=True, eq=False)
class Core:
    """A normal density between two distances from its mean."""

    sigma: Expr
    low: Expr
    high: Expr

    @property
    def area(self) -> Expr:
        return normal_area(self.low, self.high, self.sigma)

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""
        side = where(self.low + self.high > 0, -1, 1)  # from the end where a tail keeps its digits
        ends = (-side * end / (math.sqrt(2) * self.sigma) for end in (self.low, self.high))
        below, above = (0.5 * Op.ERFC(end) for end in ends)
        share = target / Op.MAX(self.area, const(TINY))
        return side * self.sigma * Op.NDTRI(below + share * (above - below))


@dataclass(frozen=True, eq=False)
class Tail:
    """A power law between two distances from the mean.

    It is counted from the end near the core, where it has the density ``near``: at a distance u from there it is
    ``near * (1 + growth * u)**-n``. No formula divides by alpha or by n - 1.
    """

    sigma: Expr
    a: Expr
    n: Expr
    low: Expr
    high: Expr

    @property
    def ratio(self) -> Expr:
        return tail_ratio(self.high / self.sigma, self.a, self.n)

    @property
    def near(self) -> Expr:
        return Op.EXP(-0.5 * self.a**2 - self.n * Op.LOG(self.ratio))

    @property
    def growth(self) -> Expr:
        return self.a / (self.n * self.sigma * self.ratio)

    @property
    def area(self) -> Expr:
        width = self.high - self.low
        return self.near * Op.POWER_AREA(width, self.growth, self.n)

    def point(self, target: Expr) -> Expr:
        """Return where the area from the far end on reaches a target."""
        # the distance if it did not fall
        plain = (self.area - target) / Op.MAX(self.near, const(TINY))
        grown = self.growth * plain
        bent = log1prel((1 - self.n) * grown)
        return self.high - plain * bent * exprel(grown * bent)
