"""Integrals of densities over the ranges of their observables: term by term where that works, else by quadrature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from morefit.errors import ModelError
from morefit.expr import Expr, Op, add_all, const, evaluate, leaves, make, multiply_all
from morefit.expr.quadrature import Array, Axis, axis_nodes, box_nodes, halve, rule_text
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

TERM_TOLERANCE = 1e-14  # of an integral that is done once and for all
RULE_TOLERANCE = 1e-11  # of a rule at the values it is made for; 1e-10 is promised
MOST_TERMS = 200
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
    terms = separate(density)
    if terms is not None:
        total = term_by_term(terms, observables)
        if total is not None:
            return total
    return make(Op.INTEGRAL, (density,), make_rule(density, observables, parameters))


# --------------------------------------------------------------- sums of (parameters) x (event)

Term = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # factors that depend on parameters, on the event


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
    for factor in (g for f in factors for g in (f.args if f.op is Op.MUL else (f,))):
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
    """Cut panels in two where that changes the integral, until it no longer does."""

    def panels(edges: Array) -> tuple[Array, Array]:
        nodes, weights = axis_nodes(edges)
        terms = weights * np.broadcast_to(evaluate(expr, {**values, x.name: nodes}), nodes.shape)
        rows = terms.reshape(len(edges) - 1, -1)
        return rows.sum(axis=1), np.abs(rows).sum(axis=1)

    edges = np.linspace(x.low, x.high, 9)
    while len(edges) <= MOST_PANELS[1]:
        whole, _ = panels(edges)
        finer = halve(edges)
        halves, sizes = panels(finer)
        if not np.all(np.isfinite(halves)):
            return None
        wrong = np.abs(whole - halves.reshape(-1, 2).sum(axis=1)) > tolerance * sizes.sum() / 4
        if not wrong.any():
            return edges
        if len(edges) > 2 and np.min(np.diff(edges)[wrong]) < 1e-13 * (x.high - x.low):
            return edges  # a jump or a root at an edge: what is left of it is too narrow to matter
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
