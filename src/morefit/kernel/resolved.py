"""Whether boxes still resolve the integrand of a numerical integral, in the language of drivers."""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.program import Vector

MAX_PROBES = 4  # places at which the height of a peak is looked at in every call; further ones have no height
# of the integral: what is less is no peak, such as the end of a root, where rounding leaves a height and any curvature
NEGLIGIBLE = 1e-13


def is_unresolved(out: Vector, limits: Vector, edges: Vector, peaks: int, axes: int, boxes: int) -> bool:
    """Return whether the highest coefficients of an integrand have grown, or a box is wider than its peak allows.

    ``out`` is the integral of the integrand, its contrast, and for each peak its height, its second derivative along
    each axis, and its place; ``limits`` are bounds of the contrast, and of the coarseness at each peak.
    """
    unresolved = bool(abs(out[1]) > limits[0] * abs(out[0]))
    for peak in range(peaks):
        first = 2 + peak * (1 + 2 * axes)
        least = NEGLIGIBLE * abs(out[0]) if peak < MAX_PROBES else 0.0
        unresolved = unresolved or is_coarse(out, first, limits[1 + peak], edges, axes, boxes, least)
    return unresolved


def is_coarse(
    out: Vector, first: int, limit: float, edges: Vector, axes: int, boxes: int, least: float
) -> bool:
    """Return whether the box around a peak is wider than the limit, in units of the width of the peak.

    A peak that adds less than ``least`` to the integral, as high as it is and as wide as the box along the other axes, is none.
    """
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
            content = out[first]
            for k in range(axes):
                edge = 2 * (box * axes + k)
                content = content * (edges[edge + 1] - edges[edge])
            for k in range(axes):
                edge = 2 * (box * axes + k)
                width = edges[edge + 1] - edges[edge]
                narrow = -out[first + 1 + k] / out[first] * width * width
                # neither what is not a number is a peak, nor a valley that is a little below zero
                peaked = out[first] > 0.0 and isfinite(narrow) and narrow > limit * limit
                coarse = coarse or (peaked and content >= least * sqrt(narrow))
        box += 1
    return coarse
