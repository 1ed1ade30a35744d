"""The data of a test: their best fit, fits with a parameter fixed at each tested value, and which parameters have no effect there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

import numpy as np

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.errors import DataError, FitError
from morefit.likelihood import Simultaneous, Term
from morefit.likelihood.wider import remade
from morefit.minimise import FitResult, fit
from morefit.minimise.conditional import LOWER, Conditional, batch_of, best_fit, unseen
from morefit.minimise.problem import as_likelihood
from morefit.model import Observable, Pdf
from morefit.text.progress import Bar

TRIED = 256  # events, to see which parameters matter


def start_test(
    what: str,
    model: Term | Pdf | Simultaneous,
    data: Any,
    best: FitResult | None,
    signal: str | None = None,
    *,
    least: float | None = None,
) -> tuple[Term, FitResult]:
    """Return the likelihood and its best fit, if its ratios have the distributions that tests assume.

    What is fixed in the best fit is fixed in the likelihood, and so in toys, but for parameters that data without events do
    not determine. ``signal`` is the parameter that is 0 where there is none, and ``least`` the value that best fits below
    count as.
    """
    likelihood = as_likelihood(what, model, data)
    if likelihood.weighted:
        raise DataError(
            f"{what}: events with weights have ratios of likelihoods of another distribution, so the data must not have any;"
            " take the value and the error of mf.fit, or the spread of mf.intervals.bootstrap"
        )
    if any(p.name == signal and p.blind and p.blind_by != "scale" for p in likelihood.all_parameters):
        raise DataError(
            f"{what}: parameter '{signal}': is blinded, so that it is not known where it is 0; unblind it"
        )
    if best is None and least is not None and signal is not None:
        likelihood, best = fit_from(likelihood, signal, least)
    best = best_fit(what, likelihood, best)
    free = {*best.floating, *unseen(likelihood)}
    fixed = [p.name for p in likelihood.parameters if p.name not in free]
    return (likelihood.fixing(fixed) if fixed else likelihood), best


def fit_from(likelihood: Term, name: str, least: float) -> tuple[Term, FitResult | None]:
    """Return a likelihood and its fit, with a parameter not below a value if the fit is not valid without this; None if neither is.

    Without events, or in a place without any, the likelihood grows until the density is negative.
    """
    best = fit(likelihood, fixed=unseen(likelihood))
    own = [p for p in likelihood.parameters if p.name == name and p.low < least < p.high]
    if best.valid or not own:
        return likelihood, best if best.valid else None
    (p,) = own
    narrow = p.with_start(max(p.start, least)).with_limits(least, p.high)
    bounded = remade(likelihood, ((p, narrow),), lambda *_: True)
    best = fit(bounded, fixed=unseen(bounded), start={name: narrow.start}, limits={name: (least, p.high)})
    return (bounded, best) if best.valid else (likelihood, None)


class DataFits(NamedTuple):
    """The fits of the data with the parameter fixed at each tested value."""

    truths: tuple[dict[str, float], ...]
    starts: tuple[dict[str, float], ...]  # for free fits of toys
    idle: tuple[tuple[str, ...], ...]  # parameters without effect
    t: Array
    best: float
    nll: Array
    free: FitResult  # the best fit, or a lower one elsewhere


def fit_data(
    what: str,
    likelihood: Term,
    best: FitResult,
    name: str,
    points: Array,
    *,
    progress: bool,
    known: DataFits | None = None,
) -> DataFits:
    """Minimise the data over the other parameters at all points together; those that have no effect stay.

    ``known`` are fits at some of the points, which are not repeated.
    """
    before = {} if known is None else {truth[name]: k for k, truth in enumerate(known.truths)}
    rows = [before.get(x) for x in points.tolist()]
    new = np.array([k is None for k in rows])
    looked = iter(without_effect(likelihood, best, name, points[new]))
    idle = tuple(next(looked) if known is None or k is None else known.idle[k] for k in rows)
    if known is not None:
        best = known.free
    elif any(n in best.floating for still in idle for n in still):
        best = lowest_anywhere(likelihood, best)
    names = [p.name for p in likelihood.all_parameters]
    full, nll = np.full((len(points), len(names)), nan), np.full(len(points), nan)
    for k, row in enumerate(rows):
        if known is not None and row is not None:
            full[k], nll[k] = list(known.truths[row].values()), known.nll[row]
    with Bar(f"profile of {name}", len(points), progress) as bar:
        for still in dict.fromkeys(idle):
            these = np.array([k for k, names_there in enumerate(idle) if names_there == still])
            fixed = [n for n in still if n in best.floating]
            where = np.column_stack([points[these], *(np.full(len(these), best.values[n]) for n in fixed)])
            full[these], nll[these] = minimised(
                what, likelihood, best, (name, *fixed), where, bar=bar, known=(full[these], nll[these])
            )
    lowest = int(np.argmin(nll))
    better = nll[lowest] < best.nll - LOWER
    centre, minimum = (points[lowest], nll[lowest]) if better else (best.values[name], best.nll)
    truths = tuple(dict(zip(names, row, strict=True)) for row in full.tolist())
    # where some parameters have no effect, a free fit would not be determined
    starts = tuple(dict(best.values) if some else truth for some, truth in zip(idle, truths, strict=True))
    return DataFits(truths, starts, idle, np.maximum(2 * (nll - minimum), 0.0), float(centre), nll, best)


def lowest_anywhere(likelihood: Term, best: FitResult) -> FitResult:
    """Return the best fit with the values of a lower minimum, if many starts find one: a signal may be anywhere."""
    base = np.array([[best.values[p.name] for p in likelihood.all_parameters]])
    fits = replace(batch_of(likelihood, best, best.floating, base), thorough=True).fit()
    if not (fits.valid[0] and fits.nll[0] < best.nll - LOWER):
        return best
    lower = dict(zip(best.floating, fits.values[0].tolist(), strict=True))
    return replace(best, values={**best.values, **lower}, nll=float(fits.nll[0]))


def without_effect(
    likelihood: Term, best: FitResult, name: str, points: Array
) -> tuple[tuple[str, ...], ...]:
    """Return the parameters that the likelihood does not depend on, at each value of the one tested.

    Such are those of a signal that is not there: they cannot be fitted then. All their derivatives are zero. Where
    the data have no events, events all over the ranges take their place, for toys will have some.
    """
    likelihood = likelihood.with_parts(
        [
            part if part.events else part.replaced(data=Dataset(anywhere(part.model.observables)))
            for part in likelihood.parts
        ]
    )
    full = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(points), 1))
    full[:, [p.name for p in likelihood.all_parameters].index(name)] = points
    rows = [k for k, p in enumerate(likelihood.parameters) if p.name != name]
    slopes = likelihood.evaluate_full(full, 2).cut(rows)
    still = (slopes.gradient == 0) & np.all(slopes.hessian == 0, axis=2)
    names = np.array([likelihood.parameters[k].name for k in rows], object)
    return tuple(tuple(names[row]) for row in still)


def anywhere(observables: Sequence[Observable]) -> dict[str, Array]:
    """Return events spread evenly over the ranges of observables."""
    rng = np.random.default_rng(0)
    return {o.name: rng.uniform(o.low, o.high, TRIED) for o in observables}


def minimised(
    what: str,
    likelihood: Term,
    best: FitResult,
    names: tuple[str, ...],
    points: Array,
    *,
    bar: Bar | None = None,
    known: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """Return all parameters and the nll with some fixed at each point; every fit must be valid.

    ``known`` are both where they are known, nan elsewhere.
    """
    scan = Conditional(likelihood, best, names, points, bar or Bar("", len(points), False), known)
    scan.minimise()
    if len(failed := scan.fits.failed):
        listed = ", ".join(f"{x:.6g}" for x in points[failed, 0])
        if likelihood.evaluate_full(scan.full[failed], 0).bad.all():
            raise FitError(
                f"{what}: the data have no probability with '{names[0]}' at {listed}; leave these values out, or add to"
                " the model what else may cause such events"
            )
        raise FitError(
            f"{what}: the data could not be fitted with '{names[0]}' at {listed};"
            " leave these values out, or narrow the limits of the other parameters"
        )
    return scan.full, scan.fits.nll
