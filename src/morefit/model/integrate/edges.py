"""Where a density is not smooth along an observable, as expressions: conditions solved for the observable, by formula or by halving."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import (
    COMPARISONS,
    ONE,
    Expr,
    Op,
    Operation,
    Table,
    const,
    evaluate,
    leaves,
    substitute,
    toposort,
    where,
)
from morefit.model.integrate.solve import MAX_STEPS, Polynomials, Span, nodes_with, solve, solve_turns

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


HUGE = 1e300  # compares with a number to tell whether it is one
SPAN = 33  # points at which the span of an argument is looked at
MAX_EDGES = 256  # of a table that boxes are cut at
NOT_ZERO = 1e-6  # of the largest value of an expression
SCAN = 4097  # points at which the sign of a condition without parameters is looked at


# what is zero where an operation of its last argument ends, or has infinite derivatives
BASES: dict[Operation, Callable[[Expr], Expr]] = {
    **dict.fromkeys((Op.SQRT, Op.LOG, Op.LOG2, Op.LOG10, Op.LGAMMA), lambda x: x),
    **dict.fromkeys((Op.GAMMAINC, Op.GAMMAINCC, Op.KVE, Op.LOG_KVE), lambda x: x),
    **dict.fromkeys((Op.LOG1P, Op.LOG1PREL), lambda x: ONE + x),
    **dict.fromkeys((Op.ASIN, Op.ACOS, Op.ATANH), lambda x: ONE - x**2),
    **dict.fromkeys((Op.NDTRI, Op.BETAINC), lambda x: x * (ONE - x)),
    Op.ACOSH: lambda x: x - ONE,
}


@dataclass(frozen=True)
class Breaks:
    """Points along an observable: kinks and steps, ends of roots and powers, and conditions that cannot be solved."""

    kinks: tuple[Expr, ...]
    singular: tuple[Expr, ...]
    unsolved: tuple[Expr, ...]


def find_breaks(
    density: Expr, x: Expr, ends: tuple[float, float], inner: Set[Expr], points: Mapping[str, Any]
) -> Breaks:
    """Find where a density may not be smooth in a column between two ends.

    What depends on ``inner`` columns does not count: panels along those run between its kinks already. ``points`` are
    values of parameters and other columns that may occur.
    """
    low, high = ends
    span = span_of(x, ends, points)
    kinks: dict[Expr, None] = {}
    singular: dict[Expr, None] = {}
    unsolved: dict[Expr, None] = {}
    within = nodes_with(density, {x}) - nodes_with(density, inner)
    for node in toposort(density, enter_integrals=False, enter_sums=False):
        if node not in within:
            continue
        for zero in zeros_of_kinks(node):
            solutions = solve(zero, x)
            if solutions is None and (signs := scan(zero, x, low, high)) is not None:
                # two that are close show no change of sign
                solutions = (
                    *signs,
                    *(solve_turns(zero, x, span) or ()),
                )
            if solutions is None:
                unsolved[zero] = None  # also where turns are solved for: there may be more of them elsewhere
                solutions = solve_turns(zero, x, span) or find_crossings(zero, x, ends, points)
            kinks |= dict.fromkeys(solutions or ())
        if node.op is Op.FLOOR:
            steps = steps_of_floor(node.args[0], x, low, high)
            if steps is None:  # also where steps are solved for: there may be more of them elsewhere
                unsolved[node] = None
                steps = steps_that_move(node.args[0], x, span)
            kinks |= dict.fromkeys(steps or ())
        base = base_of_root(node)
        if base is not None and base in within:
            zeros = (e for e in solve(base, x) or () if is_zero_at(base, x, e, points))
            singular |= dict.fromkeys(zeros)
    return Breaks(tuple(kinks), tuple(singular), tuple(unsolved))


@np.errstate(all="ignore")
def is_zero_at(base: Expr, x: Expr, place: Expr, points: Mapping[str, Any]) -> bool:
    """Return whether an expression may be zero where it was solved for that: a maximum of it and a number is not."""
    size = np.abs(evaluate(base, points))
    there = np.abs(evaluate(base, {**points, x.name: evaluate(place, points)}))
    return not np.all(there > NOT_ZERO * np.nanmax(size, initial=0.0))


def span_of(x: Expr, ends: tuple[float, float], points: Mapping[str, Any]) -> Span:
    """Return a function that finds between which numbers an expression lies, for a column between two ends."""
    grid = np.linspace(*ends, SPAN)[:, None]

    def span(expr: Expr) -> tuple[float, float]:
        values = np.asarray(evaluate(expr, {**points, x.name: grid}))
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)

    return span


def zeros_of_kinks(node: Expr) -> list[Expr]:
    """Return expressions at whose zeros an operation has a kink or a step."""
    if node.op in (Op.LESS, Op.LESS_EQUAL):
        if any(a.op is Op.CONST and a.number == HUGE for a in node.args):
            return []
        return [node.args[0] - node.args[1]]
    if node.op in (Op.MIN, Op.MAX) and not is_condition(node):
        return [node.args[0] - node.args[1]]
    if node.op in (Op.ABS, Op.SIGN, Op.ATAN2):  # an angle steps by a turn where its first argument is zero
        return [node.args[0]]
    if node.op is Op.WHERE and not is_condition(node.args[0]):
        return [node.args[0]]
    if node.op is Op.CELL:
        return zeros_of_cells(node)
    return []


def zeros_of_cells(node: Expr) -> list[Expr]:
    """Return the distances of a value from the edges of a table; none of many that no parameter moves."""
    table, place = node.args
    assert isinstance(table.value, Table)
    inner = table.value.array[1:-1]
    moves = bool(leaves(Op.SCALAR, node))
    if len(inner) > (MAX_STEPS if moves else MAX_EDGES):
        return [node] if moves else []
    return [place - const(edge) for edge in inner]


def is_condition(node: Expr) -> bool:
    """Return whether a node is made of comparisons, whose own zeros are solved for."""
    stack = [node]
    while stack:
        one = stack.pop()
        if one.op in (Op.MUL, Op.MIN, Op.MAX, Op.ADD):
            stack += one.args
        elif one.op not in COMPARISONS and one.op is not Op.CONST:
            return False
    return True


def base_of_root(node: Expr) -> Expr | None:
    """Return what a root, logarithm or power is taken of, if its derivatives are infinite where that is zero."""
    if node.op in BASES:
        return BASES[node.op](node.args[-1])
    if node.op is Op.POW:
        exponent = node.args[1]
        whole = exponent.op is Op.CONST and exponent.number >= 0 and exponent.number == int(exponent.number)
        return None if whole else node.args[0]
    return None


def steps_of_floor(inside: Expr, x: Expr, low: float, high: float) -> list[Expr] | None:
    """Return where the floor of an expression without parameters steps, if that is not too often."""
    if not depends_on_only(inside, x):
        return None
    values = sample(inside, x, np.linspace(low, high, SCAN))
    if not np.all(np.isfinite(values)) or np.ptp(values) > MAX_STEPS:
        return None
    steps: list[Expr] = []
    for k in range(math.floor(values.min()), math.ceil(values.max()) + 1):
        zeros = solve(inside - k, x) or scan(inside - k, x, low, high)
        if zeros is None:
            return None
        steps += zeros
    return steps


def steps_that_move(inside: Expr, x: Expr, span: Span) -> list[Expr] | None:
    """Return where the floor of an expression steps, for all whole numbers that it may reach, if they are not too many."""
    low, high = span(inside)
    if high - low > MAX_STEPS:
        return None
    solutions = [solve(inside - k, x) for k in range(math.floor(low), math.ceil(high) + 1)]
    return None if any(own is None for own in solutions) else [e for own in solutions for e in own or ()]


def depends_on_only(expr: Expr, x: Expr) -> bool:
    """Return whether a leaf is the only one that an expression depends on."""
    return not leaves(Op.SCALAR, expr) and all(leaf is x for leaf in leaves(Op.COLUMN, expr))


def sample(expr: Expr, x: Expr, points: Array) -> Array:
    return np.array(np.broadcast_to(evaluate(expr, {x.name: points}), points.shape), np.float64)


def scan(zero: Expr, x: Expr, low: float, high: float) -> tuple[Expr, ...] | None:
    """Find the changes of sign of an expression without parameters, to the last bit."""
    if not depends_on_only(zero, x):
        return None
    points = np.linspace(low, high, SCAN)
    signs = np.sign(sample(zero, x, points))
    # inside a piece where it is zero, as by underflow
    zero_around = np.convolve(signs == 0, np.ones(3), "same") == 3
    zeros = points[(signs == 0) & ~zero_around].tolist()
    for k in np.flatnonzero(signs[:-1] * signs[1:] < 0):
        left, right = points[k], points[k + 1]
        while left < (middle := (left + right) / 2) < right:
            same = np.sign(evaluate(zero, {x.name: middle})) == signs[k]
            left, right = (middle, right) if same else (left, middle)
        zeros.append(right)
    return tuple(const(point) for point in zeros)


# ---------------------------------------------------------------------------------------- peaks


def find_centres(
    density: Expr, x: Expr, ends: tuple[float, float], inner: Set[Expr], points: Mapping[str, Any]
) -> tuple[list[Expr], bool]:
    """Return points along a column next to which a narrow peak may lie, and whether there may be others.

    There sums in a formula are zero, or turn; some cannot be solved for the column.
    """
    hidden = False
    centres: dict[Expr, None] = {}
    span = span_of(x, ends, points)
    known = Polynomials.within(density, x)
    within = known.nodes - nodes_with(density, inner)
    for node, coefficients in known.of.items():
        if node.op is not Op.ADD or node not in within:
            continue
        if coefficients is not None and len(coefficients) == 3:
            centres[-coefficients[1] / (2 * coefficients[2])] = None
        zeros = solve_turns(node, x, span, choices=False, known=known)  # edges lie there in any case
        hidden |= zeros is None
        centres |= dict.fromkeys(zeros or ())
    return list(centres), hidden
