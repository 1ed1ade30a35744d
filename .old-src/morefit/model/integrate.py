"""Integrals of densities over the ranges of their observables: term by term where that works, else by quadrature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from morefit.errors import ModelError
from morefit.expr import Expr, Op, add_all, const, evaluate, leaves, make, multiply_all, toposort
from morefit.expr.quadrature import Array, Axis, axis_nodes, box_nodes, halve, rule_axes, rule_text
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

TERM_TOLERANCE = 1e-14  # of an integral that is done once and for all
RULE_TOLERANCE = 1e-11  # of a rule at the values it is made for; 1e-10 is promised
MOST_TERMS = 200
CLOSEST = 13  # quarterings: peaks are looked for down to 4**-12 of the range
MOST_PANELS = {1: 4096, 2: 128, 3: 16}  # in each direction
Ranges = tuple[Observable, ...]


def integral_over(density: Expr, observables: Ranges, parameters: Sequence[Parameter]) -> Expr:
    """Return the integral of a density over the ranges of its observables."""
    return cached_integral(density, tuple(observables), tuple(parameters))


@lru_cache(maxsize=256)
def cached_integral(density: Expr, observables: Ranges, parameters: tuple[Parameter, ...]) -> Expr:
    if not 1 <= len(observables) <= 3:
        raise ModelError(
            f"density '{density!r}': integrals are done numerically in 1 to 3 dimensions, got {len(observables)};"
            " give an integral, or write it as a product of densities"
        )
    total = by_terms(density, observables)
    if total is not None:
        return total
    return make(Op.INTEGRAL, (density,), make_rule(density, observables, parameters))


# --------------------------------------------------------------- sums of (parameters) x (event)

Term = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # factors that depend on parameters, on the event


def by_terms(density: Expr, observables: Ranges) -> Expr | None:
    """Return the integral of a density as a sum of parameter factors times numbers, if it can be had so."""
    terms = separate(density)
    return None if terms is None else term_by_term(terms, observables)


def separate(density: Expr) -> list[Term] | None:
    """Write a density as a sum of products of a parameter factor and an event factor, if it is one."""
    done: list[Term] = []
    stack: list[tuple[Expr, ...]] = [(density,)]
    while stack:
        factors = stack.pop()
        mixed = [f for f in factors if leaves(Op.COLUMN, f) and leaves(Op.SCALAR, f)]
        if not mixed:
            event = tuple(f for f in factors if leaves(Op.COLUMN, f))
            done.append((tuple(f for f in factors if not leaves(Op.COLUMN, f)), event))
        elif mixed[0].op is Op.MUL:
            stack.append((*mixed[0].args, *without(factors, mixed[0])))
        elif mixed[0].op is Op.ADD:
            stack += [(term, *without(factors, mixed[0])) for term in mixed[0].args]
        else:
            return None
        if len(done) + len(stack) > MOST_TERMS:
            return None
    return done


def without(factors: tuple[Expr, ...], one: Expr) -> tuple[Expr, ...]:
    """Drop one occurrence of a factor."""
    k = factors.index(one)
    return factors[:k] + factors[k + 1 :]


def term_by_term(terms: list[Term], observables: Ranges) -> Expr | None:
    """Integrate every event factor once; what cancels to nothing is dropped."""
    numbers = []
    for _, event in terms:
        found = integrate_factors(event, observables)
        if found is None:
            return None
        numbers.append(found)
    largest = max(size for _, size in numbers)
    parts = []
    for (weight, _), (number, size) in zip(terms, numbers, strict=True):
        if abs(number) > 4e-15 * size and abs(number) > 1e-17 * largest:
            parts.append(multiply_all(const(number), *weight))
    return add_all(*parts) if len(parts) > 1 else (parts[0] if parts else None)


def integrate_factors(factors: tuple[Expr, ...], observables: Ranges) -> tuple[float, float] | None:
    """Integrate a product over a box, factors in different observables apart; also the integral of its size."""
    groups: list[tuple[set[str], list[Expr]]] = []
    for factor in open_products(factors):
        names = {leaf.name for leaf in leaves(Op.COLUMN, factor)}
        joined = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        groups.append((names.union(*(g[0] for g in joined)), [factor, *(f for g in joined for f in g[1])]))
    number = size = 1.0
    for names, parts in groups:
        box = tuple(o for o in observables if o.name in names)
        found = (
            integrate_box(multiply_all(*parts), box)
            if names
            else (float(evaluate(multiply_all(*parts), {})),) * 2
        )
        if found is None:
            return None
        number, size = number * found[0], size * abs(found[1])
    free = set().union(*(g[0] for g in groups))
    for o in observables:
        if o.name not in free:
            number, size = number * (o.high - o.low), size * (o.high - o.low)
    return number, size


def open_products(factors: tuple[Expr, ...]) -> list[Expr]:
    """Replace products, and products inside them, by their factors."""
    opened: list[Expr] = []
    stack = list(reversed(factors))
    while stack:
        factor = stack.pop()
        if factor.op is Op.MUL:
            stack += reversed(factor.args)
        else:
            opened.append(factor)
    return opened


def integrate_box(expr: Expr, box: Ranges) -> tuple[float, float] | None:
    """Integrate an event-only expression and its size to full precision, or give up."""
    axes = converge(expr, {}, box, TERM_TOLERANCE)
    if axes is None:
        return None
    nodes, weights = box_nodes(axes)
    values = np.broadcast_to(evaluate(expr, nodes), weights.shape)
    return float(np.sum(weights * values)), float(np.sum(weights * np.abs(values)))


# --------------------------------------------------------------------------------- quadrature rules


def make_rule(density: Expr, observables: Ranges, parameters: Sequence[Parameter]) -> str:
    """Choose panels that integrate a density at its start values and at points around them."""
    edges: dict[str, set[float]] = {o.name: {o.low, o.high} for o in observables}
    for k, values in enumerate(trial_values(parameters)):
        axes = converge(density, values, observables, RULE_TOLERANCE)
        if axes is None and k == 0:
            raise ModelError(
                f"density '{density!r}': could not be integrated to {RULE_TOLERANCE:g} at the start values;"
                " give an integral, narrower ranges or better start values"
            )
        for name, found in axes or ():
            edges[name].update(found)
    return rule_text([(name, tuple(sorted(found))) for name, found in edges.items()])


@lru_cache(maxsize=128)
def integrals_in(expr: Expr) -> tuple[Expr, ...]:
    """Return the numerical integrals in an expression."""
    return tuple(node for node in toposort(expr) if node.op is Op.INTEGRAL)


def integral_error(expr: Expr, values: Mapping[str, float]) -> float:
    """Say by how much, relatively, numerical integrals in an expression change when their panels are cut in two."""
    worst = 0.0
    for node in integrals_in(expr):
        axes = rule_axes(str(node.value))
        now = float(evaluate(node, values))
        change = 0.0
        for name, _ in axes:  # one direction at a time, as the rule was found
            finer = [(n, tuple(halve(np.array(e))) if n == name else e) for n, e in axes]
            change += abs(float(evaluate(make(Op.INTEGRAL, node.args, rule_text(finer)), values)) - now)
        worst = max(worst, change / abs(now) if now else np.inf)
    return worst


def trial_values(parameters: Sequence[Parameter]) -> list[dict[str, float]]:
    """Return the start values, then each parameter moved a quarter of the way to each of its limits."""
    start = {p.name: p.start for p in parameters}
    trials = [start]
    for p in parameters:
        for limit in (p.low, p.high):
            if np.isfinite(limit) and not p.fixed:
                trials.append(start | {p.name: p.start + 0.25 * (limit - p.start)})
    return trials


def converge(expr: Expr, values: Mapping[str, float], box: Ranges, tolerance: float) -> list[Axis] | None:
    """Find panels that integrate an expression, or None."""
    if len(box) == 1:
        edges = adapt_line(expr, values, box[0], tolerance)
        return None if edges is None else [(box[0].name, tuple(edges))]
    return adapt_box(expr, values, box, tolerance)


def adapt_line(expr: Expr, values: Mapping[str, float], x: Observable, tolerance: float) -> Array | None:
    """Find panels for a line; look again next to parameters and written numbers, where a narrow peak may hide."""
    edges = refine_line(expr, values, x, tolerance, np.linspace(x.low, x.high, 9))
    written = {abs(c.number) for c in leaves(Op.CONST, expr)}
    inside = [v for v in {*values.values(), *written, *(-w for w in written)} if x.low < v < x.high]
    if edges is None or not inside:
        return edges
    steps = np.outer([-1, 1], (x.high - x.low) * 0.25 ** np.arange(1, CLOSEST)).ravel()
    near = np.add.outer(inside, [0, *steps]).ravel()
    closer = np.unique([x.low, x.high, *near[(near > x.low) & (near < x.high)]])
    found = refine_line(expr, values, x, tolerance, closer)
    if found is None:
        return edges
    total, size = (panels.sum() for panels in panel_sums(expr, values, x, found))
    known = panel_sums(expr, values, x, edges)[0].sum()
    return edges if abs(total - known) <= tolerance * size else found


def panel_sums(expr: Expr, values: Mapping[str, float], x: Observable, edges: Array) -> tuple[Array, Array]:
    """Integrate an expression and its size over each panel."""
    nodes, weights = axis_nodes(edges)
    terms = weights * np.broadcast_to(evaluate(expr, {**values, x.name: nodes}), nodes.shape)
    rows = terms.reshape(len(edges) - 1, -1)
    return rows.sum(axis=1), np.abs(rows).sum(axis=1)


def refine_line(
    expr: Expr, values: Mapping[str, float], x: Observable, tolerance: float, edges: Array
) -> Array | None:
    """Cut panels in two where that changes the integral, until it no longer does."""
    while len(edges) <= MOST_PANELS[1]:
        whole, _ = panel_sums(expr, values, x, edges)
        finer = halve(edges)
        halves, sizes = panel_sums(expr, values, x, finer)
        if not np.all(np.isfinite(halves)):
            return None
        change = np.abs(whole - halves.reshape(-1, 2).sum(axis=1))
        wrong = change > tolerance * sizes.sum() / 4
        if not wrong.any():
            return edges
        if np.min(np.diff(edges)[wrong]) < 1e-13 * (x.high - x.low):
            # a jump, or a root at an edge: what is left of it is too narrow to matter, unless it is a pole
            return edges if change.sum() <= RULE_TOLERANCE * sizes.sum() else None
        edges = np.sort(np.concatenate([edges, finer[1::2][wrong]]))
    return None


def adapt_box(expr: Expr, values: Mapping[str, float], box: Ranges, tolerance: float) -> list[Axis] | None:
    """Halve the panels of the direction that matters most until none does."""
    edges = {o.name: np.linspace(o.low, o.high, 2) for o in box}

    def integrate(trial: Mapping[str, Array]) -> tuple[float, float]:
        nodes, weights = box_nodes([(n, tuple(e)) for n, e in trial.items()])
        terms = weights * np.broadcast_to(evaluate(expr, {**values, **nodes}), weights.shape)
        return float(np.sum(terms)), float(np.sum(np.abs(terms)))

    now, _ = integrate(edges)
    while all(len(e) - 1 < MOST_PANELS[len(box)] for e in edges.values()):
        trials = {name: integrate({**edges, name: halve(e)}) for name, e in edges.items()}
        change = {name: abs(found - now) for name, (found, _) in trials.items()}
        size = max(s for _, s in trials.values())
        if not np.isfinite(size):
            return None
        if sum(change.values()) <= tolerance * size:
            return [(n, tuple(e)) for n, e in edges.items()]
        worst = max(change, key=lambda name: change[name])
        edges[worst], now = halve(edges[worst]), trials[worst][0]
    return None
