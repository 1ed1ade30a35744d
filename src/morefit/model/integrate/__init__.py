"""Integrals of densities over the ranges of their observables: term by term where that works, else by quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from morefit.errors import ModelError
from morefit.expr import Expr, Op, OwnSymbol, add_all, leaves, scalar, substitute
from morefit.model.integrate.cube import (
    integral_over_bins,
    integral_over_box,
    integral_over_boxes,
    integral_to_check,
    moving_edges,
    plain_integral,
    sample_points,
    singular_ends,
    still_integral,
)
from morefit.model.integrate.edges import find_breaks, find_centres
from morefit.model.integrate.one_axis import on_one_axis
from morefit.model.integrate.per_event import (
    check_points,
    integral_per_event,
    missed,
    relative_error,
)
from morefit.model.integrate.separate import separate
from morefit.model.integrate.terms import by_terms, grouped, integrate_box
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.text.progress import Bar

__all__ = [
    "by_terms",
    "check_points",
    "find_breaks",
    "find_centres",
    "grouped",
    "integral_out",
    "integral_over",
    "integral_over_all",
    "integral_over_bins",
    "integral_over_box",
    "integral_to_check",
    "integrate_box",
    "missed",
    "moving_edges",
    "plain_integral",
    "relative_error",
    "sample_points",
    "separate",
    "singular_ends",
    "still_integral",
]


def integral_over(
    density: Expr,
    observables: Sequence[Observable],
    parameters: Sequence[Parameter],
    given: Sequence[Observable] = (),
) -> Expr:
    """Return the integral of a density over the ranges of its observables, for each event if others are ``given``."""
    return cached_integral(density, (tuple(observables),), tuple(parameters), tuple(given))


def integral_over_all(
    density: Expr, boxes: Sequence[Sequence[Observable]], parameters: Sequence[Parameter]
) -> Expr:
    """Return the integral of a density over boxes, each given by the ranges of its observables there."""
    return cached_integral(density, tuple(map(tuple, boxes)), tuple(parameters))


def integral_out(
    density: Expr, remaining: Sequence[Observable], dropped: Sequence[Observable]
) -> Expr | None:
    """Return the integral of a density over some of its observables, as a formula of the others, if there is one."""
    places = {o.expr: scalar(OwnSymbol(o.name)) for o in remaining}
    total = by_terms(substitute(density, places), tuple(dropped))
    return None if total is None else substitute(total, {place: x for x, place in places.items()})


@lru_cache(maxsize=256)
def cached_integral(
    density: Expr,
    boxes: tuple[tuple[Observable, ...], ...],
    parameters: tuple[Parameter, ...],
    given: tuple[Observable, ...] = (),
) -> Expr:
    observables = boxes[0]
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
    with Bar("integrating the density", None, shown=True):
        return made_integral(density, boxes, parameters)


def made_integral(
    density: Expr, boxes: tuple[tuple[Observable, ...], ...], parameters: tuple[Parameter, ...]
) -> Expr:
    """Return the integral of a density: term by term, along one axis, or by quadrature at run time."""
    points = sample_points((), parameters)
    totals = [total for box in boxes if (total := by_terms(density, box, points)) is not None]
    if len(totals) < len(boxes):
        reduced = on_one_axis(density, boxes[0], parameters) if len(boxes) == 1 else None
        if reduced is not None:
            return cached_integral(reduced[0], ((reduced[1],),), parameters)
        return integral_over_boxes(density, boxes, parameters)
    return totals[0] if len(totals) == 1 else add_all(*totals)
