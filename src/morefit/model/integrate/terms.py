"""Sums of (parameters) x (event): every event factor is integrated once and for all."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from morefit.expr import ZERO, Expr, Op, add_all, const, domain_of, evaluate, leaves, multiply_all, where
from morefit.expr.evaluate import adapted_to
from morefit.model.integrate.cells import integrate_cells
from morefit.model.integrate.cube import integral_over_box
from morefit.model.observable import Observable

TOLERANCE = 1e-14  # of an integral that is done once and for all
WORST = 1e-12  # that it may be off
MAX_TERMS = 400
POINTS = 64  # at which the size of an integral is looked at
Ranges = tuple[Observable, ...]
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
        mixed = [f for f in factors if of_events(f) and of_parameters(f)]
        if not mixed:
            event = tuple(f for f in factors if of_events(f))
            done.append((tuple(f for f in factors if not of_events(f)), event))
        elif mixed[0].op is Op.MUL:
            stack.append((*mixed[0].args, *without(factors, mixed[0])))
        elif mixed[0].op is Op.ADD:
            stack += [(term, *without(factors, mixed[0])) for term in mixed[0].args]
        elif mixed[0].op is Op.WHERE and not of_parameters(mixed[0].args[0]):
            branches = choices(*mixed[0].args)
            if branches is None:
                return None
            stack += [(*branch, *without(factors, mixed[0])) for branch in branches]
        else:
            return None
        if len(done) + len(stack) > MAX_TERMS:
            return None
    return done


@lru_cache(maxsize=1 << 14)
def of_events(expr: Expr) -> bool:
    return bool(leaves(Op.COLUMN, expr))


@lru_cache(maxsize=1 << 14)
def of_parameters(expr: Expr) -> bool:
    return bool(leaves(Op.SCALAR, expr))


def choices(condition: Expr, yes: Expr, no: Expr) -> list[tuple[Expr, ...]] | None:
    """Write a choice by an event-only condition as a sum of products, if both branches are such sums.

    An event factor stays inside its branch, as it need not be a number outside of it.
    """
    chosen, others = ([] if branch is ZERO else separate(branch) for branch in (yes, no))
    if chosen is None or others is None:
        return None
    return [
        *((*weight, where(condition, multiply_all(*event), ZERO)) for weight, event in chosen),
        *((*weight, where(condition, ZERO, multiply_all(*event))) for weight, event in others),
    ]


def without(factors: tuple[Expr, ...], one: Expr) -> tuple[Expr, ...]:
    """Drop one occurrence of a factor."""
    k = next(k for k, factor in enumerate(factors) if factor is one)
    return factors[:k] + factors[k + 1 :]


def term_by_term(terms: list[Term], observables: Ranges) -> Expr | None:
    """Integrate every event factor once; what cancels to nothing is dropped."""
    numbers = []
    for _, event in terms:
        integrated = integrate_factors(event, observables)
        if integrated is None:
            return None
        numbers.append(integrated)
    parts = []
    for (weight, _), (number, size) in zip(terms, numbers, strict=True):
        if abs(number) > 4e-15 * size:
            parts.append(multiply_all(const(number), *weight))
    return add_all(*parts) if len(parts) > 1 else (parts[0] if parts else None)


def integrate_factors(factors: tuple[Expr, ...], observables: Ranges) -> tuple[float, float] | None:
    """Integrate a product over a box, factors in different observables apart; also the integral of its size."""
    groups = grouped(factors)
    number = size = 1.0
    for names, parts in groups:
        box = tuple(o for o in observables if o.name in names)
        factor_integral = (
            integrate_cells(parts, box, integrate_box)
            or integrate_sums(parts, box)
            or integrate_box(multiply_all(*parts), box)
            if names
            else (float(evaluate(multiply_all(*parts), {})),) * 2
        )
        if factor_integral is None:
            return None
        number, size = number * factor_integral[0], size * abs(factor_integral[1])
    free = set().union(*(g[0] for g in groups))
    for o in observables:
        if o.name not in free:
            number, size = number * (o.high - o.low), size * (o.high - o.low)
    return number, size


def integrate_sums(parts: list[Expr], box: Ranges) -> tuple[float, float] | None:
    """Integrate a product of factors that are sums of products of functions of one observable each, if it is one.

    An adaptive integral in three observables takes seconds; those in one are the same for many terms.
    """
    number = size = 0.0
    stack, count = [tuple(parts)] if len(box) > 1 else [], 0
    while stack:
        groups = grouped(stack.pop())
        factors = tuple(factor for _, own in groups for factor in own)
        joint = [factor for names, own in groups if len(names) > 1 for factor in own]
        opened = next((f for f in joint if f.op is Op.ADD and len(set(leaves(Op.COLUMN, f))) > 1), None)
        if opened is not None:
            stack += [(term, *without(factors, opened)) for term in opened.args]
        elif joint or (one := integrate_factors(factors, box)) is None:
            return None
        else:
            number, size, count = number + one[0], size + one[1], count + 1
        if len(stack) + count > MAX_TERMS:
            return None
    return (number, size) if count else None


def grouped(factors: tuple[Expr, ...]) -> list[tuple[set[str], list[Expr]]]:
    """Put together factors that share observables, with the names of these."""
    groups: list[tuple[set[str], list[Expr]]] = []
    for factor in open_products(factors):
        names = {leaf.name for leaf in leaves(Op.COLUMN, factor)}
        joined = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        groups.append((names.union(*(g[0] for g in joined)), [factor, *(f for g in joined for f in g[1])]))
    return groups


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


@lru_cache(maxsize=4096)
def integrate_box(expr: Expr, box: Ranges) -> tuple[float, float] | None:
    """Integrate an event-only expression and its size to full precision, or give up."""
    integral = integral_over_box(expr, box, ())
    adapted = adapted_to(integral.args[1:], domain_of(integral), (), TOLERANCE)
    if not adapted.error <= WORST:
        size = size_on_axis(expr, box[0]) if len(box) == 1 else 0.0
        return (0.0, size) if abs(float(adapted.totals[0])) <= WORST * size < np.inf else None
    nodes = adapted.boxes.nodes()
    terms = nodes.weights * evaluate(integral.args[0], nodes.columns)
    return float(np.sum(terms)), float(np.sum(np.abs(terms)))


def size_on_axis(expr: Expr, x: Observable) -> float:
    """Return the integral of the size of an event-only expression along its axis, roughly.

    An integral that vanishes, such as that of an odd function, is never known to a part of itself, but to one of this.
    """
    from numpy.polynomial.legendre import leggauss

    u, w = leggauss(POINTS)
    values = evaluate(expr, {x.name: x.low + (x.high - x.low) * (u + 1) / 2})
    return float((x.high - x.low) / 2 * np.sum(w * np.abs(values)))
