"""Densities written for panels: as sums of parts that have their kinks in common, and inside a panel without choices, with a guard that checks it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from morefit.expr import (
    COMPARISONS,
    ONE,
    ZERO,
    Expr,
    Op,
    add_all,
    apply,
    const,
    evaluate,
    leaves,
    multiply_all,
    rebuild,
    remake,
    substitute,
    toposort,
    where,
)
from morefit.model.integrate.edges import zeros_of_kinks
from morefit.model.integrate.panels import Edges, Panel
from morefit.model.integrate.solve import nodes_with

NOT_A_NUMBER = apply(Op.LOG, const(-1))
FOLDED = COMPARISONS | {Op.ADD, Op.MUL, Op.MIN, Op.MAX}


def decide(body: Expr, edges: Edges, panel: Panel) -> tuple[Expr, list[Expr]]:
    """Return a density without the choices that are the same in a panel at all points, and conditions for that to hold."""
    x, middle, points = edges.x.expr, (panel.start + panel.end) / 2, edges.points
    middles, widths = (np.asarray(evaluate(e, points), np.float64) for e in (middle, panel.width))
    signs: dict[Expr, int] = {}
    guards: dict[Expr, None] = {}
    within = nodes_with(body, {x}) - nodes_of_places(body)
    for node in toposort(body, enter_integrals=False, enter_sums=False):
        # a floor stays: nodes crowd so closely to the ends of panels that rounding takes some to the other side
        for zero in zeros_of_kinks(node) if node in within and not is_floor(node) else ():
            if zero in edges.undecided:
                continue
            values = np.asarray(evaluate(zero, {**points, x.name: middles}), np.float64)
            there = np.broadcast_to(values, np.broadcast_shapes(values.shape, widths.shape))[widths > 0]
            if not there.size or not (np.all(there > 0) or np.all(there < 0)):
                continue
            signs[node] = 1 if there.flat[0] > 0 else -1
            if leaves(Op.SCALAR, zero):
                here = substitute(zero, {x: middle})
                guards[here > 0 if signs[node] > 0 else here < 0] = None
    if not signs:
        return body, []
    (decided,) = rebuild((body,), lambda node, args: choose(node, args, signs))
    return decided, list(guards)


def nodes_of_places(body: Expr) -> set[Expr]:
    """Return what decides where tables are read: it stays, for nothing may be read outside of them where guards do not hold."""
    nodes = toposort(body, enter_integrals=False, enter_sums=False)
    places = [node.args[1] for node in nodes if node.op is Op.LOOKUP]
    return set(toposort(*places, enter_integrals=False, enter_sums=False)) if places else set()


def is_floor(node: Expr) -> bool:
    """Return whether a node keeps a number from being zero."""
    return node.op is Op.MAX and any(arg.op is Op.CONST and 0 < arg.number < 1e-30 for arg in node.args)


def choose(node: Expr, args: tuple[Expr, ...], signs: Mapping[Expr, int]) -> Expr:
    """Return what a node is where the expression that decides it has a sign."""
    sign = signs.get(node, 0)
    if node.op in (Op.LESS, Op.LESS_EQUAL) and sign:
        return ONE if sign < 0 else ZERO
    if node.op in (Op.MIN, Op.MAX) and sign:
        return args[0] if (sign > 0) is (node.op is Op.MAX) else args[1]
    if node.op is Op.ABS and sign:
        return args[0] if sign > 0 else -args[0]
    if node.op is Op.SIGN and sign:
        return const(sign)
    if node.op is Op.WHERE and (sign or args[0].op is Op.CONST):
        return args[1] if sign or args[0].number else args[2]
    if node.op in FOLDED and args and all(a.op is Op.CONST for a in args):
        return const(float(evaluate(remake(node, args), {})))
    return remake(node, args)


def guarded(integral: Expr, guards: list[Expr]) -> Expr:
    """Return an integral that is not a number where a guard does not hold."""
    if not guards:
        return integral
    every = guards[0]
    for guard in guards[1:]:
        every = every * guard
    return integral + where(every, ZERO, NOT_A_NUMBER)


MAX_PARTS = 256  # of a density with kinks of their own


def split_by_kinks(density: Expr) -> list[Expr]:
    """Write a density as a sum of parts that have their kinks in common, so that each has few edges."""
    groups: dict[frozenset[Expr], list[Expr]] = {}
    stack: list[tuple[Expr, ...]] = [(density,)]
    while stack:
        factors = stack.pop()
        k = next((k for k, factor in enumerate(factors) if is_mixed(factor)), None)
        if k is None:
            product = factors[0] if len(factors) == 1 else multiply_all(*factors)
            groups.setdefault(kinks_of(product), []).append(product)
        elif factors[k].op is Op.MUL:
            stack.append((*factors[:k], *factors[k].args, *factors[k + 1 :]))
        else:
            stack += [(*factors[:k], term, *factors[k + 1 :]) for term in reversed(factors[k].args)]
        if len(stack) + len(groups) > MAX_PARTS:
            return [density]
    return [terms[0] if len(terms) == 1 else add_all(*terms) for terms in groups.values()]


def is_mixed(factor: Expr) -> bool:
    """Return whether a factor is a sum of terms with different kinks, or a product with such a factor."""
    if factor.op is Op.ADD:
        return len({kinks_of(term) for term in factor.args}) > 1
    return factor.op is Op.MUL and any(is_mixed(part) for part in factor.args)


@lru_cache(maxsize=4096)
def kinks_of(expr: Expr) -> frozenset[Expr]:
    """Return the expressions of observables at whose zeros an expression has kinks."""
    nodes = toposort(expr, enter_integrals=False, enter_sums=False)
    zeros = (zero for node in nodes for zero in zeros_of_kinks(node))
    return frozenset(zero for zero in zeros if leaves(Op.COLUMN, zero))
