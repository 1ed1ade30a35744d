"""Integrals of densities over the ranges of their observables: term by term where that works, else by quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from morefit.errors import ModelError
from morefit.expr import Expr, Op, leaves
from morefit.model.integrate.cube import integral_over_bins, integral_over_box, plain_integral, singular_ends
from morefit.model.integrate.edges import find_breaks
from morefit.model.integrate.per_event import integral_per_event, rule_error
from morefit.model.integrate.terms import by_terms
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

__all__ = [
    "by_terms",
    "find_breaks",
    "integral_over",
    "integral_over_bins",
    "integral_over_box",
    "plain_integral",
    "rule_error",
    "singular_ends",
]


def integral_over(
    density: Expr,
    observables: Sequence[Observable],
    parameters: Sequence[Parameter],
    given: Sequence[Observable] = (),
) -> Expr:
    """Return the integral of a density over the ranges of its observables, for each event if others are ``given``."""
    return cached_integral(density, tuple(observables), tuple(parameters), tuple(given))


@lru_cache(maxsize=256)
def cached_integral(
    density: Expr,
    observables: tuple[Observable, ...],
    parameters: tuple[Parameter, ...],
    given: tuple[Observable, ...],
) -> Expr:
    others = {o.name: o for o in given}
    if depends := [others[leaf.name] for leaf in leaves(Op.COLUMN, density) if leaf.name in others]:
        if len(observables) != 1:
            raise ModelError(
                f"density '{density!r}': integrals for each event are done in 1 dimension, got {len(observables)};"
                " give an integral"
            )
        return integral_per_event(density, observables[0], parameters, depends)
    if not 1 <= len(observables) <= 3:
        raise ModelError(
            f"density '{density!r}': integrals are done numerically in 1 to 3 dimensions, got {len(observables)};"
            " give an integral, or write it as a product of densities"
        )
    names = {o.name for o in observables}
    if free := [leaf.name for leaf in leaves(Op.COLUMN, density) if leaf.name not in names]:
        raise ModelError(
            f"density '{density!r}': depends on {', '.join(map(repr, free))}, over which it is not integrated;"
            f" integrate over {', '.join(map(repr, [*names, *free]))}"
        )
    total = by_terms(density, observables)
    return integral_over_box(density, observables, parameters) if total is None else total
