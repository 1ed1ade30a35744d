"""Where an expression that no formula solves changes its sign, as expressions: a section of the range is halved, then chords meet zero."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.expr import Expr, Op, const, evaluate, leaves, substitute, toposort, where

SECTIONS = (1, 2, 4)  # of a range, in each of which there is to be one crossing at most
MAX_NODES = 80  # of an expression, of which an edge has a score of copies
CELLS = 256  # at whose ends signs are compared
RARE = 0.01  # of all points, at which a section may have more crossings: derivatives there are compared with differences
HALVINGS = 12  # of a section; they have no slope, so that derivatives come from the chords alone
CHORDS = 3  # the second derivative has the error of the halvings squared
STEP = 1e-5  # of a section, for the slope of the chords


@np.errstate(all="ignore")
def find_crossings(
    zero: Expr, x: Expr, ends: tuple[float, float], points: Mapping[str, Any]
) -> tuple[Expr, ...]:
    """Return where an expression of a column and of parameters changes its sign between two ends, at most once in a section.

    Where it does not, the start of the section is returned: an empty panel ends there.
    """
    if any(leaf is not x for leaf in leaves(Op.COLUMN, zero)) or len(toposort(zero)) > MAX_NODES:
        return ()
    changes = sign_changes(zero, x, ends, points)
    counts = [changes.reshape(n, CELLS // n, -1).sum(axis=1) for n in SECTIONS]
    several = [int(np.sum(count > 1)) for count in counts]
    few = max(RARE * changes.shape[1], min(several))
    best = next(k for k, number in enumerate(several) if number <= few)
    lines = np.linspace(*ends, SECTIONS[best] + 1)
    crossed = counts[best].any(axis=1)
    sections = [pair for pair, any_there in zip(pairwise(lines.tolist()), crossed, strict=True) if any_there]
    return tuple(crossing(zero, x, low, high) for low, high in sections)


def sign_changes(
    zero: Expr, x: Expr, ends: tuple[float, float], points: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Return whether an expression changes its sign in each cell of a range, at each of some points: (cells, points)."""
    lines = np.linspace(*ends, CELLS + 1)[:, None]
    signs = np.sign(evaluate(zero, {**points, x.name: lines}))
    signs = np.broadcast_to(signs, np.broadcast_shapes(np.shape(signs), lines.shape))
    return np.asarray(signs[:-1] * signs[1:] < 0)


def crossing(zero: Expr, x: Expr, low: float, high: float) -> Expr:
    """Return where an expression changes its sign between two ends; the low end if it has one sign at both."""

    def at(place: Expr) -> Expr:
        return substitute(zero, {x: place})

    width = high - low
    first, last = at(const(low)), at(const(high))
    place = const(low)
    for k in range(1, HALVINGS + 1):
        middle = place + width * 0.5**k
        here = at(middle)
        place = where(where(first < 0, here, -here) < 0, middle, place)
    place = place + width * 0.5 ** (HALVINGS + 1)
    slope = (at(place + STEP * width) - at(place - STEP * width)) / (2 * STEP * width)
    root = place
    for _ in range(CHORDS):
        root = root - at(root) / slope
    inside = (low < root) & (root < high)
    return where((first * last < 0) & inside, root, const(low))
