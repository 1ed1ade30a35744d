"""Boxes of an integral: how well they resolve its integrand, where they were made, and those of one likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr.quadrature import WORST_ERROR, Adapted, Boxes, Nodes
from morefit.integrals.integral import Integral
from morefit.kernel.resolved import MAX_PROBES, NEGLIGIBLE

SMALL_BOX = 1 / 64  # part of an axis: a peak in a smaller one must not move into a larger one
REACH = 40.0  # widths of a peak outside of the range: nothing is left of it inside
COARSER = 1.5  # growth of the coarseness, after which boxes are made anew
MORE_POINTS = 5  # in each direction, of boxes that check others


@dataclass(frozen=True, eq=False)
class Reading:
    """What a launch returns for each row of parameters, besides the integrals."""

    value: Array  # (rows,) of the integrand
    contrast: Array  # (rows,) relative to it
    coarseness: Array  # (rows, places) widths of the boxes around them, in units of the width of a peak there
    tails: Array  # (rows, places) the same of boxes at an end of the range, next to which a peak lies outside
    ends: Array  # (rows, places) the same of boxes at the places, or at the end of the range next to those outside

    @classmethod
    def of(cls, out: Array, integral: Integral, boxes: Boxes) -> Reading:
        axes = len(integral.domain.axes)
        rest = out[:, out.shape[1] - 2 - len(integral.probes) :]
        value, probes = rest[:, 0], rest[:, 2:].reshape(len(out), -1, 1 + 2 * axes)
        with np.errstate(all="ignore"):
            contrast = np.abs(rest[:, 1] / value)
            heights = np.where(probes[:, :, :1] > 0, probes[:, :, :1], np.nan)
            narrowness = np.sqrt(-probes[:, :, 1 : 1 + axes] / heights)  # not a number in a valley
            places = probes[:, :, 1 + axes :].reshape(-1, axes)
            low, high = ([getattr(axis, end) for axis in integral.domain.axes] for end in ("low", "high"))
            ends = np.clip(places, low, high)
            widths, at_ends = boxes.widths_at(np.concatenate([places, ends])).reshape(2, *narrowness.shape)
            coarse = widths * narrowness
            content = heights[:, :, 0] * widths.prod(axis=2)
            content[:, MAX_PROBES:] = np.inf  # which have no height
            coarse = np.where(
                content[:, :, None] >= NEGLIGIBLE * np.abs(value)[:, None, None] * coarse, coarse, 0.0
            )
            beyond = at_ends * narrowness
            distance = np.abs(ends - places).reshape(narrowness.shape) * narrowness
        coarse = np.where(np.isfinite(coarse), coarse, 0.0)  # a value that is not a number is not a peak
        near = (0 < distance) & (distance < REACH) & np.isfinite(beyond) & (axes == 1)
        tails = np.where(near, beyond, 0.0)[:, :MAX_PROBES]
        return cls(
            value=value,
            contrast=contrast,
            coarseness=coarse.max(axis=2, initial=0.0),
            tails=tails.max(axis=2, initial=0.0),
            ends=np.nan_to_num(beyond).max(axis=2, initial=0.0),
        )


@dataclass(frozen=True, eq=False)
class Made:
    """Boxes, the rows of parameters they were made for, and the worst reading there."""

    rows: Array
    adapted: Adapted
    contrast: float
    coarseness: Array  # (places,)
    tails: Array  # (places,)
    ends: Array  # (places,) the least of them
    scanned: Array  # (zeros,) widths of the boxes around zeros of sums that no formula gives, if a narrow peak is there

    def with_more_points(self, more: int) -> Made:
        """Return the same boxes with more points in each direction."""
        boxes = self.adapted.boxes
        finer = replace(boxes, points=(boxes.points or boxes.domain.points) + more)
        return replace(self, adapted=replace(self.adapted, boxes=finer))

    def has_lost(self, widths: Array) -> bool:
        """Return whether a peak that no formula points at may have moved into larger boxes, whose widths there are these."""
        narrow = self.scanned <= SMALL_BOX
        return len(widths) != len(narrow) or bool(np.any((widths > COARSER * self.scanned) & narrow))


@dataclass(frozen=True, eq=False)
class FixedBoxes:
    """The nodes of some boxes, and what tells whether they still resolve the integrand."""

    nodes: Nodes
    limits: Array  # (1 + places,) bounds of the contrast, and of the coarseness at each place
    edges: Array  # (boxes, axes, 2)


@dataclass(eq=False)
class SharedBoxes:
    """The boxes of one likelihood, reused from call to call.

    ``worst`` is the relative error at which an integral is refused; ``more_points`` asks for more in each box than usual.
    """

    worst: float = WORST_ERROR
    more_points: int = 0
    made: dict[tuple[object, ...], Made] = field(default_factory=dict)
    bound: dict[tuple[object, ...], tuple[Made, Callable[[Array], Array]]] = field(default_factory=dict)
    # for integrands alone, which value and derivatives have in common: the last rows of parameters, and boxes
    alone: dict[Integral, tuple[bytes, Adapted]] = field(default_factory=dict)

    def with_more_points(self) -> SharedBoxes:
        """Return the same boxes with more points in each, which shows how accurate they are without any search."""
        made = {key: one.with_more_points(MORE_POINTS) for key, one in self.made.items()}
        return SharedBoxes(self.worst, self.more_points + MORE_POINTS, made)
