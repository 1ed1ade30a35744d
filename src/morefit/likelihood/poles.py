"""Events next to poles of a density, where the last digit of an observable changes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from morefit.arrays import Array, Flags
from morefit.errors import ModelError
from morefit.expr import Expr, domain_of, evaluate
from morefit.likelihood.accuracy import integrals, numerical
from morefit.model import Observable, Pdf
from morefit.model.integrate import find_breaks, sample_points

# of a range, and last digits of an observable: events farther from a pole are not blurred
CLOSE, MANY_DIGITS = 1e-6, 1e3
BLURRED = 0.1  # relative difference of densities one digit above and below an event
MANY_BLURRED = 0.1  # of the square root of the number of events: fewer do not matter for what is fitted


def check_rounding(model: Pdf, values: Mapping[str, float], events: Mapping[str, Array]) -> None:
    """Refuse events that are so close to poles of a density that the last digit of an observable changes their density."""
    for pdf in numerical(model):
        if not any(axis.singular for node in integrals(pdf) for axis in domain_of(node).axes):
            continue
        columns = {o.name: events[o.name] for o in pdf.observables}
        for x in pdf.observables:
            near = near_poles(pdf, x, values, columns)
            some = {name: column[near] for name, column in columns.items()}
            if not near.any():
                continue
            closer, further = (
                evaluate(pdf.density(), {**values, **some, x.name: np.nextafter(some[x.name], end)})
                for end in (-np.inf, np.inf)
            )
            with np.errstate(all="ignore"):
                lost = int(np.sum(~(np.abs(closer - further) <= BLURRED * np.abs(closer + further))))
            if lost > MANY_BLURRED * len(near) ** 0.5:
                raise ModelError(
                    f"density '{pdf.density()!r}': {lost} events are so close to where it is infinite that rounding of"
                    f" '{x.name}' changes it; use the distance from there as observable"
                )


def near_poles(pdf: Pdf, x: Observable, values: Mapping[str, float], columns: Mapping[str, Array]) -> Flags:
    """Return which events are next to a point where a density may be infinite along an observable."""
    reach = max(CLOSE * (x.high - x.low), MANY_DIGITS * float(np.spacing(max(abs(x.low), abs(x.high)))))
    near = np.zeros(len(columns[x.name]), np.bool_)
    with np.errstate(all="ignore"):
        for place in poles_along(pdf, x):
            near |= np.abs(columns[x.name] - evaluate(place, {**values, **columns})) <= reach
    return near


@lru_cache(maxsize=256)  # every fit asks
def poles_along(pdf: Pdf, x: Observable) -> tuple[Expr, ...]:
    """Return the points along an observable where a density may be infinite, which parameters and other observables may move."""
    known = sample_points(pdf.observables, pdf.parameters)
    return find_breaks(pdf.density(), x.expr, (x.low, x.high), set(), known).singular
