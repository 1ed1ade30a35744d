"""Which parameters move something along an observable, so that the likelihood has several minima: places, steps, and frequencies."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import NamedTuple

import numpy as np

from morefit.expr import Expr, Op, evaluate, leaves, toposort
from morefit.likelihood.angles import factor_in
from morefit.model import Pdf

GRID = 257  # points of a range
SHIFT = 0.01  # of the way between limits, to both sides
# of what a density changes where a place moves, all of it that it gains or loses: a step does so, a peak gains as much as it loses
ONE_SIDED = 0.8


class MovedPlaces(NamedTuple):
    """The parameters of a model that move something along an observable."""

    places: frozenset[str] = frozenset()  # peaks
    steps: frozenset[str] = frozenset()  # what is higher on one side than on the other
    frequencies: frozenset[str] = frozenset()


@lru_cache(maxsize=256)  # every fit asks
def moved_places(model: Pdf) -> MovedPlaces:
    """Return the parameters of a model that are subtracted from an observable, and those that multiply one in a sine or a cosine."""
    places: set[str] = set()
    steps: set[str] = set()
    frequencies: set[str] = set()
    for pdf in model.components():
        own: set[str] = set()
        for node in toposort(pdf.density(), enter_integrals=False, enter_sums=False):
            if not any(leaves(Op.COLUMN, arg) for arg in node.args):
                continue
            if node.op in (Op.SIN, Op.COS):
                angle = node.args[0]
                for leaf in leaves(Op.SCALAR, angle):
                    (own if isfinite(factor_in(angle, leaf)) else frequencies).add(leaf.name)
            elif node.op is Op.ADD and any(is_observed(arg) for arg in node.args):
                own |= names_in([arg for arg in node.args if not leaves(Op.COLUMN, arg)])
        places |= own
        steps |= {name for name in own if is_step(pdf, name)}
    return MovedPlaces(
        frozenset(places - steps - frequencies), frozenset(steps - frequencies), frozenset(frequencies)
    )


@np.errstate(all="ignore")
def is_step(pdf: Pdf, name: str) -> bool:
    """Return whether a density of one observable grows or falls all over where a parameter moves, at the start values."""
    if len(pdf.observables) != 1 or pdf.given:
        return False
    (x,), known = pdf.observables, {p.name: p.start for p in pdf.parameters}
    p = next((p for p in pdf.parameters if p.name == name), None)
    if p is None or not isfinite(p.high - p.low):
        return False
    grid = np.linspace(x.low, x.high, GRID)
    below, above = (
        np.broadcast_to(evaluate(pdf.density(), {**known, x.name: grid, name: p.start + shift}), GRID)
        for shift in (-SHIFT * (p.high - p.low), SHIFT * (p.high - p.low))
    )
    change = above - below
    return bool(abs(change.sum()) > ONE_SIDED * np.abs(change).sum())


def names_in(terms: list[Expr]) -> set[str]:
    """Return the parameters that terms depend on, but for those of conditions alone: these choose, and move nothing."""
    names: set[str] = set()
    left, seen = list(terms), set[Expr]()
    while left:
        node = left.pop()
        if node.op is Op.SCALAR:
            names.add(node.name)
        elif node not in seen:
            left += node.args[1:] if node.op is Op.WHERE else node.args
        seen.add(node)
    return names


def is_observed(term: Expr) -> bool:
    """Return whether a term depends on observables alone."""
    return bool(leaves(Op.COLUMN, term)) and not leaves(Op.SCALAR, term)
