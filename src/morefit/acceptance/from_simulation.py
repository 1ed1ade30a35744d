"""Acceptances made from simulated events."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.acceptance.estimate import expansion_of, flat_weights, table_of
from morefit.acceptance.sampled import SampledExpansion, SampledTable
from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.errors import DataError, ModelError
from morefit.expr import Op, leaves
from morefit.expr.interpolate import checked_axis
from morefit.functions import MAX_DEGREE
from morefit.model import Observable, Pdf
from morefit.model.acceptance import (
    BASES,
    Expansion,
    Simulation,
    check_kind,
    check_observables,
    values_on_grid,
)
from morefit.model.templates.histogram import MAX_AXES, covering
from morefit.text.arguments import in_sentences
from morefit.validate import whole_number

TABLES = {"histogram": MAX_AXES, "spline": 1}  # kinds, and the observables that they may have
MIN_SPLINE_BINS = 3  # of a cubic spline without conditions at its ends


@in_sentences
def from_sample(
    sample: Any,
    observables: Sequence[Observable] | Observable,
    *,
    orders: int | Sequence[int] | None = None,
    bins: Any = None,
    generated: Any = None,
    kind: str = "legendre",
    weights: ArrayLike | str | None = None,
) -> SampledExpansion | SampledTable:
    """Return the acceptance of accepted simulated events: an expansion in polynomials, a histogram or a spline, with its errors.

    Parameters
    ----------
    sample : accepted events, anything a dataset can be made of.
    orders : of polynomials: the highest in each observable, or one for all.
    bins : of a histogram, or between the knots of a spline: their number or their edges, in each observable or one for all.
    generated : how events were distributed before they were accepted or not: None if uniformly, a density at the start
        values of its parameters, or a sample of all generated events, the accepted ones among them.
    kind : "legendre" or "chebyshev" polynomials, a "histogram" in up to three observables, or a cubic "spline" in one.
    weights : of the accepted events; those of the dataset by default.

    With a generated sample, coefficients and values are those of the least squares between acceptance and function, in bins
    the ratio of events, and the scale is that of the acceptance. Else they are moments, and the acceptance is one on
    average over the ranges.
    """
    known = check_observables(observables)
    if kind not in TABLES:
        check_kind(kind, [*BASES, *TABLES])
    wanted, other = ("bins", "orders") if kind in TABLES else ("orders", "bins")
    options = {"bins": bins, "orders": orders}
    if options[wanted] is None or options[other] is not None:
        raise ModelError(f"acceptance: kind '{kind}' needs {wanted}=, and no {other}=")
    accepted = Dataset(sample, known, weights=weights)
    source = generated if generated is None or isinstance(generated, Pdf) else Dataset(generated, known)
    made: SampledExpansion | SampledTable
    if kind in TABLES:
        made = table_of(accepted, source, known, edges=check_bins(bins, known, kind), kind=kind)
    else:
        made = expansion_of(accepted, source, known, orders=check_orders(orders, len(known)), kind=kind)
    warn_if_negative(made)
    return made


@in_sentences
def simulation(
    sample: Any,
    observables: Sequence[Observable] | Observable,
    *,
    generated: Pdf | None = None,
    weights: ArrayLike | str | None = None,
) -> Simulation:
    """Return accepted simulated events as the acceptance of ``mf.Efficiency``, which they normalise without a formula.

    ``generated`` is the density that the events had before they were accepted or not, at the start values of its parameters;
    None if it was uniform. The error that the size of the sample causes is part of the errors of a fit.
    """
    known = tuple(observables) if isinstance(observables, Sequence) else (observables,)
    accepted = Dataset(sample, known, weights=weights)
    if not len(accepted):
        raise DataError("acceptance: the simulation has no events")
    per_event = flat_weights(accepted, known, generated) / accepted.sum_of_weights
    return Simulation(known, {o.name: accepted[o.name] for o in known}, per_event)


# ------------------------------------------------------------------------------------ checks


def check_orders(orders: Any, count: int) -> tuple[int, ...]:
    """Return the highest order in each observable."""
    each = [orders] * count if np.ndim(orders) == 0 else list(orders)
    known = tuple(whole_number("acceptance: an order", n, error=ModelError) for n in each)
    if len(known) != count:
        raise ModelError(f"acceptance: needs one order for each of {count} observables, got {len(known)}")
    if max(known) > MAX_DEGREE or not any(known):
        raise ModelError(
            f"acceptance: orders must lie in [0, {MAX_DEGREE}], not all of them 0, got {list(known)}"
        )
    return known


def check_bins(bins: Any, observables: tuple[Observable, ...], kind: str) -> list[Array]:
    """Return the edges of bins in each observable, from end to end of its range."""
    if len(observables) > TABLES[kind]:
        raise ModelError(
            f"acceptance: a {kind} takes {TABLES[kind]} observables at most, got {len(observables)}"
        )
    alike = np.ndim(bins) == 0 or (len(observables) == 1 and np.ndim(bins[0]) == 0)
    each = [bins] * len(observables) if alike else list(bins)
    if len(each) != len(observables):
        raise ModelError(
            f"acceptance: needs bins for each of {len(observables)} observables, got {len(each)}"
        )
    edges = []
    for o, one in zip(observables, each, strict=True):
        if np.ndim(one) == 0:
            count = whole_number("acceptance: bins", one, minimum=1, error=ModelError)
            edges.append(np.linspace(o.low, o.high, count + 1))
        else:
            own = covering(o, checked_axis(f"acceptance: bins of '{o.name}'", one))
            edges.append(np.concatenate([[o.low], own[(own > o.low) & (own < o.high)], [o.high]]))
    if kind == "spline" and len(edges[0]) <= MIN_SPLINE_BINS:
        raise ModelError(
            f"acceptance: a spline needs {MIN_SPLINE_BINS} bins or more, got {len(edges[0]) - 1}"
        )
    return edges


def warn_if_negative(acceptance: Expansion | SampledTable) -> None:
    """Warn where an acceptance is negative, which ``mf.Efficiency`` refuses."""
    if not leaves(Op.COLUMN, acceptance.expr):
        return
    heights, points = values_on_grid(acceptance.expr, {})
    if heights.min() < 0:
        lowest = int(heights.argmin())
        place = ", ".join(f"{name} = {grid.ravel()[lowest]:.4g}" for name, grid in points.items())
        warnings.warn(
            f"acceptance: negative in {np.mean(heights < 0):.2%} of the ranges, down to {heights.min():.3g} at {place};"
            " change the orders or bins, or use more events",
            UserWarning,
            stacklevel=3,
        )
