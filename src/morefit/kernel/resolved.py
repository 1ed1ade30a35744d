"""Whether boxes still resolve the integrand of a numerical integral, in the language of drivers."""

from __future__ import annotations

from math import isfinite

from morefit.kernel.program import Vector


def is_unresolved(out: Vector, limits: Vector, edges: Vector, peaks: int, axes: int, boxes: int) -> bool:
    """Return whether the highest coefficients of an integrand have grown, or a box is wider than its peak allows.

    ``out`` is the integral of the integrand, its contrast, and for each peak its height, its second derivative along
    each axis, and its place; ``limits`` are bounds of the contrast, and of the coarseness at each peak.
    """
    unresolved = bool(abs(out[1]) > limits[0] * abs(out[0]))
    for peak in range(peaks):
        first = 2 + peak * (1 + 2 * axes)
        unresolved = unresolved or is_coarse(out, first, limits[1 + peak], edges, axes, boxes)
    return unresolved


def is_coarse(out: Vector, first: int, limit: float, edges: Vector, axes: int, boxes: int) -> bool:
    """Return whether the box around a peak is wider than the limit, in units of the width of the peak."""
    outside = True
    coarse = False
    box = 0
    while outside and box < boxes:
        outside = False
        for k in range(axes):
            place = out[first + 1 + axes + k]
            edge = 2 * (box * axes + k)
            outside = outside or not (edges[edge] <= place <= edges[edge + 1])
        if not outside:
            for k in range(axes):
                edge = 2 * (box * axes + k)
                width = edges[edge + 1] - edges[edge]
                narrow = -out[first + 1 + k] / out[first] * width * width
                # neither what is not a number is a peak, nor a valley that is a little below zero
                coarse = coarse or (out[first] > 0.0 and isfinite(narrow) and narrow > limit * limit)
        box += 1
    return coarse
