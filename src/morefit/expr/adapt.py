"""Boxes for the quadrature of an integrand: cut until they resolve it, at singular ends and around peaks that may hide."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.expr.quadrature import MAX_BOXES, TOLERANCE, Adapted, Boxes, Domain, Measure, refine

# a point in each box (boxes, axes) where there may be a ridge, nan where none may be
Search = Callable[[Boxes], Array]

MAX_GROWTH = 4  # times the boxes to begin with: an axis may have many edges
MANY_BOXES = {1: 24, 2: 96, 3: 96}  # more than a smooth integrand takes: other powers are tried
# of the map that takes an integrable singularity away from the low end of an axis
POWERS = (2, 4, 8, 16, 32)
UNRESOLVED = 1e-13  # of an axis: closer to an end than this, rounding may show
SINGULAR_END = 1e-6  # of an axis
# A box that holds that much more than its share of one twice as wide may hide a peak. The smaller both are, the less smooth integrands differ in
# them; what is left then is a peak on a high background.
SHARE = {1: 1.5, 2: 2.0, 3: 2.0}
LEAST_SHARE, SMOOTH = 1.001, 2.0
DIGITS = 12  # of a place in the unit cube: places that differ by less are one
DEPTH = 20  # halvings around a place where a narrow peak may hide
# of the height of a ridge in the mean height of a box that resolves it, at most
RIDGE_SHARE = {
    2: 16.0,
    3: 48.0,
}
LEAST_RIDGE = 1e-7  # of the integral: a box that is lower in all its volume need not be looked at
POINT = 1e-6  # of a box, that counts as a point
MAX_PLACES = {1: 400, 2: 24, 3: 12}  # at which peaks are looked for


@np.errstate(all="ignore")
def adapt(
    domain: Domain,
    measure: Measure,
    places: Array,
    tolerance: float = TOLERANCE,
    points: int = 0,
    *,
    search: Search,
) -> Adapted:
    """Find boxes for an integrand; ``places`` (points, axes) are where a narrow peak may hide, on the axes' ranges.

    The fewest boxes win among powers of the map at the low end. ``search`` finds points of boxes where there may be a ridge.
    """
    singular = any(axis.singular for axis in domain.axes)
    tried: list[Adapted] = []
    for power in POWERS if singular else (1,):
        first = Boxes.first(domain, power, points=points)
        max_boxes = max(MAX_BOXES[len(domain.axes)], MAX_GROWTH * len(first))
        tried.append(refine(measure, first, tolerance, max_boxes))
        if tried[-1].error <= 10 * tolerance and len(tried[-1].boxes) <= MANY_BOXES[len(domain.axes)]:
            break
    best = min(tried, key=lambda adapted: adapted.rank(tolerance))
    if singular:
        best = check_ends(measure, best, tolerance, max_boxes)
    inside = to_cube(domain, with_edges(domain, places), best.boxes.power)
    if len(inside):
        inside = inside[hiding(measure, best, inside, tolerance)]
    for place in inside[are_missed(measure, best, inside, tolerance)] if len(inside) else ():
        best = look_closer(measure, best, place, tolerance)
    return best if len(domain.axes) == 1 else cut_at_ridges(measure, best, search, tolerance, max_boxes)


def check_ends(measure: Measure, adapted: Adapted, tolerance: float, max_boxes: int) -> Adapted:
    """Add to the error what another power finds, if much of the integral lies within rounding of a singular end.

    There x - x.low may have lost its digits, so that the integrand is wrong, but no box shows it.
    """
    domain = adapted.boxes.domain
    corner = near_end(adapted.boxes, 0.0, UNRESOLVED)
    sizes = np.maximum(np.abs(adapted.totals), np.finfo(float).tiny)
    if np.all(np.abs(measure(corner)[0]) <= tolerance * sizes):
        return adapted
    outer, inner = (np.abs(measure(near_end(adapted.boxes, 10.0**-k, 10.0 ** (1 - k)))[0]) for k in (9, 10))
    if np.any((inner > tolerance * sizes) & (inner > 0.99 * outer)):  # every decade adds as much: a pole
        return Adapted(adapted.boxes, np.inf, adapted.totals)
    other = refine(
        measure,
        Boxes.first(domain, 2 * adapted.boxes.power, points=adapted.boxes.points),
        tolerance,
        max_boxes,
    )
    if not other.error < np.inf:  # its points are too close to the end
        return adapted
    difference = float(np.max(np.abs(other.totals - adapted.totals) / sizes))
    return Adapted(adapted.boxes, max(adapted.error, difference), adapted.totals)


def near_end(boxes: Boxes, low: float, high: float) -> Boxes:
    """Return a box that is so close to the low ends of singular axes, and spans the others."""
    ends = ((low, high) if axis.singular else (0.0, 1.0) for axis in boxes.domain.axes)
    unit = np.array([[e ** (1 / boxes.power) for e in pair] for pair in ends])
    return boxes.replaced(unit[None, :, 0], unit[None, :, 1])


def look_closer(measure: Measure, adapted: Adapted, place: Array, tolerance: float) -> Adapted:
    """Cut the boxes around a place ever closer, and keep that if it finds something that they missed."""
    boxes, max_boxes = adapted.boxes, MAX_BOXES[len(adapted.boxes.domain.axes)]
    around = contain(boxes, place[None])[0]
    near = boxes.replaced(boxes.low[around], boxes.high[around])
    sizes = np.abs(adapted.totals)
    cut, _ = cut_around(near, np.tile(place, (len(near), 1)))
    closer = refine(measure, cut, tolerance, max_boxes, sizes)
    missed = closer.totals - measure(near).sum(axis=0)
    if not closer.error < np.inf or np.all(
        np.abs(missed) <= max(10 * tolerance, adapted.error) * (sizes + np.abs(missed))
    ):
        return adapted
    low, high = (
        np.concatenate([getattr(boxes, end)[~around], getattr(closer.boxes, end)]) for end in ("low", "high")
    )
    return Adapted(boxes.replaced(low, high), max(adapted.error, closer.error), adapted.totals + missed)


def are_missed(measure: Measure, adapted: Adapted, places: Array, tolerance: float) -> NDArray[np.bool_]:
    """Return around which places ever smaller boxes integrate to something else than the boxes there.

    Most places that hold more than their share are on the slopes of what is known; to look at all of them takes one call.
    """
    boxes, sizes = adapted.boxes, np.abs(adapted.totals)
    place, box = np.nonzero(contain(boxes, places))
    cut, own = cut_around(boxes.replaced(boxes.low[box], boxes.high[box]), places[place])
    missed = np.zeros((len(places), len(sizes)))
    np.add.at(missed, place[own], measure(cut))
    np.add.at(missed, place, -measure(boxes)[box])
    missed = np.abs(missed)
    return np.asarray(np.any(~(missed <= tolerance * (sizes + missed)), axis=1))


def hiding(measure: Measure, adapted: Adapted, places: Array, tolerance: float) -> NDArray[np.bool_]:
    """Return around which places (points, axes) ever smaller boxes hold more than their share of the next larger one."""
    boxes, axes = adapted.boxes, places.shape[1]
    around = contain(boxes, places)
    low = np.where(around[..., None], boxes.low, np.inf).min(axis=1)
    high = np.where(around[..., None], boxes.high, -np.inf).max(axis=1)
    parts = 0.5 ** np.arange(1, DEPTH + 1)[:, None]
    ends = [places[:, None] + parts * (end - places)[:, None] for end in (low, high)]
    nested = measure(boxes.replaced(*(end.reshape(-1, axes) for end in ends)))
    nested = nested.reshape(len(places), DEPTH, -1)
    shares = np.abs(np.concatenate([(around @ measure(boxes))[:, None], nested], axis=1))
    share = np.minimum(SHARE[axes], np.maximum(LEAST_SHARE, 1 + SMOOTH * parts))
    fair, smaller = 0.5**axes * shares[:, :-1], shares[:, 1:]
    more = (smaller > share * fair) & (smaller > tolerance * np.abs(adapted.totals))
    if axes == 1:  # a step next to an edge leaves a box less than its share
        more |= (smaller * share < fair) & (fair > tolerance * np.abs(adapted.totals))
    return np.asarray(more.any(axis=(1, 2)) | ~np.isfinite(shares).all(axis=(1, 2)))


def cut_at_ridges(
    measure: Measure, adapted: Adapted, search: Search, tolerance: float, max_boxes: int
) -> Adapted:
    """Cut boxes of several dimensions that a ridge crosses between their nodes, until none is left."""
    boxes, error = adapted.boxes, adapted.error
    totals = adapted.totals
    sizes = np.maximum(np.abs(totals), np.finfo(float).tiny)  # there may be no events at all
    done: list[Boxes] = []
    for _ in range(DEPTH):
        missed, missing = between_nodes(measure, boxes, search(boxes), sizes)
        done.append(boxes.replaced(boxes.low[~missed], boxes.high[~missed]))
        boxes = boxes.replaced(boxes.low[missed], boxes.high[missed])
        if not missed.any() or sum(map(len, done)) + len(boxes) > max_boxes:
            break
        totals = totals - measure(boxes).sum(axis=0)
        for axis in range(len(boxes.domain.axes)):
            boxes = boxes.halved(np.full(len(boxes), axis))
        finer = refine(measure, boxes, tolerance, max_boxes, sizes)
        boxes, totals, error = finer.boxes, totals + finer.totals, max(error, finer.error)
        sizes = np.maximum(sizes, np.abs(totals))
    low, high = (np.concatenate([getattr(b, end) for b in (*done, boxes)]) for end in ("low", "high"))
    return Adapted(boxes.replaced(low, high), max(error, missing), totals)


def between_nodes(
    measure: Measure, boxes: Boxes, places: Array, sizes: Array
) -> tuple[NDArray[np.bool_], float]:
    """Return which boxes have a density at a place, of each one, that is far above what their integral says.

    Also return how much may be missing in them, relative to the sizes of the integrals.
    """
    rows, axes = np.flatnonzero(np.isfinite(places).all(axis=1)), places.shape[1]
    missed = np.zeros(len(boxes), bool)
    if not len(rows):
        return missed, 0.0
    low, high = boxes.low[rows], boxes.high[rows]
    side = POINT * (high - low)
    inside = np.clip(places[rows], low + side, high - side)  # beyond an edge there may be another density
    at_place = Boxes(boxes.domain, inside - side, inside + side, boxes.power, points=1)
    heights = np.abs(measure(at_place)) * (2 * POINT) ** -axes  # times the volumes of the boxes
    areas = np.abs(measure(boxes.replaced(low, high)))
    above = (heights > RIDGE_SHARE[axes] * areas) & (heights > LEAST_RIDGE * sizes)
    missed[rows] = above.any(axis=1)
    return missed, float(np.max(np.sum(above * heights, axis=0) / (RIDGE_SHARE[axes] * sizes)))


def contain(boxes: Boxes, places: Array) -> NDArray[np.bool_]:
    """Return which boxes (places, boxes) have a place inside or at an edge, which is not the rounded place itself."""
    place, rounding = places[:, None], 10.0**-DIGITS
    return np.asarray(np.all((boxes.low - rounding <= place) & (place <= boxes.high + rounding), axis=2))


def with_edges(domain: Domain, places: Array) -> Array:
    """Return places and, along one axis, its edges: next to one may be the tail of a peak on its other side.

    Of many edges, those between which most room is.
    """
    if len(domain.axes) > 1:
        return places
    edges = np.array(domain.axes[0].edges)
    widest = np.sort(np.argsort(-np.diff(edges), kind="stable")[: MAX_PLACES[1] // 2])
    ends = np.unique(edges[np.concatenate([widest, widest + 1])])
    return np.concatenate([places.reshape(-1, 1), ends[:, None]])


def to_cube(domain: Domain, places: Array, power: int) -> Array:
    """Return the places inside the ranges, as points of the unit cube."""
    if not len(places):
        return places
    low, high = (np.array([getattr(a, end) for a in domain.axes]) for end in ("low", "high"))
    powers = np.array([1 / power if a.singular else 1.0 for a in domain.axes])
    unit = (places - low) / (high - low)
    ends = np.array([SINGULAR_END if axis.singular else 0.0 for axis in domain.axes])  # powers look there
    inside = np.all((unit >= ends) & (unit <= 1), axis=1)
    cube = np.round(unit[inside] ** powers, DIGITS)
    _, first = np.unique(cube, axis=0, return_index=True)
    return np.asarray(cube[np.sort(first)])  # the likeliest first


def cut_around(boxes: Boxes, places: Array) -> tuple[Boxes, NDArray[np.int64]]:
    """Cut each box around its place (boxes, axes) again and again, in all directions; return also which box each was cut from."""
    own, rounding = np.arange(len(boxes)), 10.0**-DIGITS
    done: list[tuple[Array, Array, NDArray[np.int64]]] = []
    while len(boxes):
        for axis in range(len(boxes.domain.axes)):
            boxes, own = boxes.halved(np.full(len(boxes), axis)), np.tile(own, 2)
        around = np.all(
            (boxes.low - rounding <= places[own]) & (places[own] <= boxes.high + rounding), axis=1
        )
        around &= (boxes.high - boxes.low).max(axis=1) > 2.0**-DEPTH
        done.append((boxes.low[~around], boxes.high[~around], own[~around]))
        boxes, own = boxes.replaced(boxes.low[around], boxes.high[around]), own[around]
    low, high, own = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return boxes.replaced(low, high), own


def combine_places(domain: Domain, on_axis: Callable[[int, dict[str, Array], int], Array]) -> Array:
    """Return points made of one place on each axis; those of an axis may depend on the axes before it.

    ``on_axis`` returns the places on an axis, (places, points), at so many points of the axes before it. An axis without a
    place inside its range contributes its middle.
    """

    def extend(points: list[tuple[int, dict[str, float]]], k: int) -> list[tuple[int, dict[str, float]]]:
        axis, longer = domain.axes[k], []
        before = {name: np.array([point[name] for _, point in points]) for name in domain.names[:k]}
        numbers = on_axis(k, before, len(points)).T.tolist()
        for (i, point), places in zip(points, numbers, strict=True):
            own = [(j, p) for j, p in enumerate(places) if axis.low <= p <= axis.high]
            for j, p in own or [(i, (axis.low + axis.high) / 2)]:
                rank = (k > 0 and i != j, i + j)
                longer.append((rank, (i if k else j, {**point, axis.name: p})))
        # places of one number on all axes may belong together; after these come the first ones of all axes
        longer.sort(key=lambda pair: pair[0])
        return [point for _, point in longer[:limit]]

    limit = MAX_PLACES[len(domain.axes)]
    nowhere: list[tuple[int, dict[str, float]]] = [(0, {})]
    points = reduce(extend, range(len(domain.axes)), nowhere)
    return np.array([[point[name] for name in domain.names] for _, point in points])
