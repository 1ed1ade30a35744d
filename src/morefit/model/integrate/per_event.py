"""Integrals over one observable for each event: a fixed rule between the kinks of a density, inside the loop over events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    NodeRule,
    Op,
    add_all,
    apply,
    column,
    const,
    evaluate,
    leaves,
    node_sum,
    rule_of,
    substitute,
    toposort,
    with_finer_rules,
)
from morefit.model.integrate.cube import on_ranges, plain_integral, sample_points
from morefit.model.integrate.panels import Edges, Panel
from morefit.model.integrate.pieces import decide, guarded
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

TOLERANCE = 1e-9  # of the integral of each event, at the start values
FLOOR = 1e-12  # of the largest integral: what is less need not be as exact
FEW_PANELS = 8  # of a rule without regard to peaks, which has fewer pieces
MAX_PANELS = 64
POWER = 4  # of the map that takes an integrable singularity away from the start of a panel
DIGITS = 8  # last ones of an axis: a node that is closer to an edge may be rounded to it
ADAPTIVE = 5  # of them, at which it is compared with adaptive integrals
CHECKS = 257  # values of the other observables at which the rule is checked


@np.errstate(all="ignore")
def integral_per_event(
    density: Expr, x: Observable, parameters: Sequence[Parameter], given: Sequence[Observable]
) -> Expr:
    """Return the integral of a density over one observable as a function of others.

    Panels run between the kinks of the density, and each has the same number of nodes: twice as many as start values
    of the parameters need, at values of the other observables all over their ranges. Where that takes many, nodes crowd
    around points next to which a narrow peak may lie.
    """
    observables = (x, *given)
    density = on_ranges(density, observables)
    points: dict[str, Array | float] = {p.name: p.start for p in parameters} | check_points(given)
    error = np.inf
    for peaks, first, last in (
        (False, 1, FEW_PANELS),
        (True, 1, MAX_PANELS),
        (False, 2 * FEW_PANELS, MAX_PANELS),
    ):
        edges = Edges(x, density, set(), sample_points(observables, parameters))
        if peaks:
            edges.cut_at_peaks(density)
        body, guards = on_panels(density, edges)
        count = first
        while count <= last:
            total = node_sum(*body(count))
            error = rule_error(total, points)
            if error <= TOLERANCE:
                error = missed(total, density, x, points)
            if error <= TOLERANCE:
                return guarded(with_finer_rules(total), guards)
            count *= 2
    how = f"uncertain by {error:.1g}" if np.isfinite(error) else "infinite or not a number"
    raise ModelError(
        f"density '{density!r}': its integral over '{x.name}' for each event is {how} at the start values; give an"
        f" integral, a narrower range of '{x.name}', or better start values"
    )


def on_panels(density: Expr, edges: Edges) -> tuple[Callable[[int], tuple[Expr, NodeRule]], list[Expr]]:
    """Return the body of a sum over nodes and its rule, by the number of panels of the rule, and guards of the sum."""
    x, pieces, guards = edges.x.expr, [], list[Expr]()
    for panel in edges.panels(guarded=False, cut=True):
        inside, own = decide(density, edges, panel)
        guards += [(panel.width == 0) | guard for guard in own]
        if not vanishes(inside):
            pieces.append((panel, inside))
    depth = 1 + max((rule_of(n).depth for n in toposort(density) if n.op is Op.NODE_SUM), default=-1)

    def body(count: int) -> tuple[Expr, NodeRule]:
        rule = NodeRule.of(count, depth)
        u = column(rule.symbol)
        place, slope = (u**POWER, POWER * u ** (POWER - 1)) if edges.any_singular else (u, ONE)
        parts = [
            panel.filled(substitute(inside, {x: panel.at(off_start(panel, place))}))
            for panel, inside in pieces
        ]
        total = add_all(*parts) if len(parts) > 1 else parts[0]
        return (total if slope is ONE else slope * total), rule

    def off_start(panel: Panel, place: Expr) -> Expr:
        """Return a place so far from the start of a panel that it is not rounded to it, where derivatives may be infinite."""
        moves = edges.any_singular and panel.start.op is not Op.CONST
        return apply(Op.MAX, place, nearest / panel.width) if moves else place

    nearest = DIGITS * float(np.spacing(max(abs(edges.x.low), abs(edges.x.high))))
    return body, guards


def vanishes(density: Expr) -> bool:
    """Return whether a density is a product with the factor zero."""
    return density is ZERO or (density.op is Op.MUL and any(map(vanishes, density.args)))


def missed(total: Expr, density: Expr, x: Observable, points: Mapping[str, Array | float]) -> float:
    """Return how far, relatively, a sum over nodes is from adaptive integrals, which look for narrow peaks."""
    own = [*leaves(Op.SCALAR, density), *leaves(Op.COLUMN, density)]
    symbols = [leaf for leaf in own if leaf.name in points]
    some = np.linspace(0, CHECKS - 1, ADAPTIVE).astype(int)
    here = {name: np.broadcast_to(values, CHECKS)[some] for name, values in points.items()}
    exact = []
    for k in range(ADAPTIVE):
        bound = substitute(density, {leaf: const(here[leaf.name][k]) for leaf in symbols})
        exact.append(evaluate(plain_integral(bound, (x,)), {}))
    return relative_error(evaluate(total, here), np.array(exact))


def check_points(given: Sequence[Observable]) -> dict[str, Array]:
    """Return values of observables all over their ranges: equally spaced, or at random if there are several."""
    if len(given) == 1:
        return {given[0].name: np.linspace(given[0].low, given[0].high, CHECKS)}
    rng = np.random.default_rng(0)
    return {o.name: rng.uniform(o.low, o.high, CHECKS) for o in given}


def rule_error(node: Expr, values: Mapping[str, Array | float]) -> float:
    """Return how far, relatively, a sum over nodes is from one with twice as many; infinite if it is not a number."""
    return relative_error(evaluate(node, values), evaluate(with_finer_rules(node), values))


def relative_error(integrals: Array, exact: Array) -> float:
    """Return the largest relative error of some integrals; infinite if one is not a number."""
    if not np.all(np.isfinite(exact)) or not np.all(np.isfinite(integrals)):
        return np.inf
    sizes = np.maximum(np.abs(exact), FLOOR * np.max(np.abs(exact), initial=0.0))
    with np.errstate(all="ignore"):
        return float(np.max(np.nan_to_num(np.abs(integrals - exact) / sizes), initial=0.0))
