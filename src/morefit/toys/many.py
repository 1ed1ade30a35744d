"""``mf.fit_many``: fit one likelihood to many datasets together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset
from morefit.data.plain import as_table
from morefit.data.sources import is_histogram
from morefit.errors import DataError, errors_of
from morefit.expr import Quantity
from morefit.likelihood import Simultaneous, Term
from morefit.likelihood.sums import check_constrained
from morefit.likelihood.unbinned import likelihood_of
from morefit.minimise.batch import Fits
from morefit.minimise.check import invert
from morefit.minimise.covariance import simulation_covariance
from morefit.model import Pdf
from morefit.model.observable import Ranges
from morefit.model.parts import is_simulated
from morefit.model.region import YieldsIn
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences
from morefit.toys.arguments import starts, template_of
from morefit.toys.ensemble import Ensemble
from morefit.toys.negative import how_obtained
from morefit.toys.reading import ManyDatasets, read_many, read_table
from morefit.toys.results import ToyResults
from morefit.toys.stored import StoredPart, StoredToys, stored_parts


@in_sentences
def fit_many(
    model: Pdf | Simultaneous | Term,
    datasets: Iterable[Any],
    *,
    sizes: int | Sequence[int] | Integers | None = None,
    weights: Any = None,
    constraints: Sequence[Any] | Any = (),
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    start: Any = None,
    backend: str | Backend = "auto",
) -> ToyResults:
    """Fit a model, or a likelihood, to each of many datasets in compiled code, as toys are fitted.

    Each is what ``fit`` takes; arrays of doubles are read where they are. All of them together are an array of shape (datasets, events) or
    (datasets, events, observables), lists of awkward, what ``groupby`` of a DataFrame returns, or one table, one dataset after the other,
    with ``sizes``: the numbers of events of each, or that of all. ``weights`` are the name of a column, a formula of observables, or an
    array for each dataset, for the whole of a table; without, those of each ``mf.Dataset``.

    For a sum of likelihoods each dataset is a list, one for each part; for ``mf.Simultaneous`` as in ``fit``. Counts of bins are histograms
    or arrays, those of a HistFactory model also arrays by channel; points are arrays of y. Constraints keep what they measured. Errors are
    those of ``fit``, and so are ``ranges`` and ``yields_in``: from the sandwich for datasets with weights, else from the inverse Hessian. ``start`` are values by name.

    Example: ``mf.fit_many(model, mf.generate(model, [500] * 10, seed=2))``
    """
    begin = time.perf_counter()
    if sizes is None and isinstance(model, Pdf) and (table := as_table(datasets, weights)) is not None:
        datasets, sizes, weights = table
    each: Any = listed(datasets) if sizes is None else [datasets]
    by_label = isinstance(model, Simultaneous) and isinstance(each[0], Mapping)
    some = list(each[0].values()) if by_label else each[:1]
    if not isinstance(model, Term) and any(map(is_histogram, some)):
        model = likelihood_of(
            model, each[0], constraints=constraints, ranges=ranges, yields_in=yields_in, backend="cpu"
        )
        constraints, ranges, yields_in = (), None, "full"
    if isinstance(model, Term) and model.weighted:  # its own events play no role
        model = model.with_parts([part.without_events() for part in model.parts])
    formula, numbers = (weights, None) if isinstance(weights, Quantity) else (None, weights)
    template = template_of(
        "fit_many", model, constraints, ranges=ranges, yields_in=yields_in, weights=formula, weighted=True
    )
    check_constrained(template.parts)
    if isinstance(model, Simultaneous) and sizes is None:
        each = [split(model, data, k) for k, data in enumerate(each)]
    if sizes is None:
        many = read_many(template, each, numbers)
    else:
        many = read_table(template, datasets, sizes, numbers)
    place = choose_backend(backend, int(many.sizes.sum()))
    ensemble, fits = fit_datasets(template, many, start, place)
    return ToyResults(
        names=ensemble.floating, truth={}, values=fits.values, errors=fits.errors, nll=fits.nll, edm=fits.edm,
        valid=fits.valid, how=how_obtained(ensemble, fits), events=many.sizes, seed=0, seconds={"fit": time.perf_counter() - begin},
        backend=place.label, unit=template.unit,
    )  # fmt: skip


def fit_datasets(template: Term, many: ManyDatasets, start: Any, backend: Backend) -> tuple[Ensemble, Fits]:
    """Fit datasets that are checked; return also the ensemble that they are."""
    # weights are columns of these
    template = template.with_parts([part.without_formula() for part in template.parts])
    values = starts(template, {}, start, keep_fixed=True)
    ensemble = Ensemble(
        drawn=template, fitted=template, truth=values, start=values, seed=0, backend=backend, fluctuate=False,
        expected=len(many.sizes), weighted=bool(many.weighted.any()), mean_weight=many.mean_weight,
        has_rows=False,
    )  # fmt: skip
    fits = fit_parts(ensemble, many.parts)
    if any(is_simulated(part.model) for part in template.parts):
        fits.errors[:] = simulated_errors(template, many, fits, ensemble.floating)
    return ensemble, fits


def listed(datasets: Any) -> Sequence[Any] | Array:
    """Return datasets as a list, or as the array that has them all."""
    if isinstance(datasets, str | Mapping | Dataset) or not isinstance(datasets, Iterable):
        raise DataError(
            f"fit_many: needs a list of datasets, got one of type {type(datasets).__name__}; to fit parts of one, give"
            " their numbers of events as sizes"
        )
    each: Any = datasets if isinstance(datasets, np.ndarray) and datasets.ndim > 1 else list(datasets)
    if not len(each):
        raise DataError("fit_many: needs at least one dataset, got none")
    return each  # type: ignore[no-any-return]


def split(model: Simultaneous, data: Any, number: int) -> list[Any]:
    """Return one of many datasets in parts, by label."""
    with errors_of(f"fit_many: datasets[{number}]"):
        return [own for own, _ in model.split(data).values()]


def simulated_errors(template: Term, many: ManyDatasets, fits: Fits, names: Sequence[str]) -> Array:
    """Return the errors of all fits with what simulated samples add to them."""
    errors = fits.errors.copy()
    for k in np.flatnonzero(fits.valid).tolist():
        term = with_data(template, many.datasets(k))
        point = dict(zip(names, fits.values[k], strict=True))
        rows = [p.name for p in term.parameters]
        inverse = invert(term.hessian(point))
        own = simulation_covariance(term, term.points(point)[0], inverse, range(len(rows)))
        errors[k] = np.sqrt(errors[k] ** 2 + np.diag(own)[[rows.index(name) for name in names]])
    return errors


def with_data(template: Term, data: Sequence[Dataset]) -> Term:
    return template.with_parts([p.replaced(data=d) for p, d in zip(template.parts, data, strict=True)])


def fit_stored(ensemble: Ensemble, datasets: Sequence[Sequence[Dataset]]) -> Fits:
    """Fit datasets, part by part, that are checked."""
    return fit_parts(ensemble, stored_parts(ensemble, datasets))


def fit_parts(ensemble: Ensemble, parts: Sequence[StoredPart]) -> Fits:
    """Fit datasets: those with weights with errors from the sandwich, others apart from them."""
    weighted = np.any([part.weighted for part in parts], axis=0)
    if not ensemble.weighted or weighted.all():
        return fit_while_sending(ensemble, parts)
    each = []
    for flag in (True, False):
        some = np.flatnonzero(weighted == flag)
        if len(some):
            own = [part.some(some) for part in parts]
            each.append(fit_while_sending(replace(ensemble, weighted=flag), own))
    order = np.argsort(np.argsort(~weighted, kind="stable"), kind="stable")
    return Fits.joined(each).rows(order)


def fit_while_sending(ensemble: Ensemble, parts: Sequence[StoredPart]) -> Fits:
    """Fit datasets that all have weights, or none; a device fits some of them while the next are sent to it."""
    cuts = cuts_to_send(ensemble, parts)
    if len(cuts) == 1:
        return StoredToys.of_parts(ensemble, parts).fit()
    send = partial(sent_toys, ensemble, parts)
    each = []
    with ThreadPoolExecutor(1) as sender:
        sent = sender.submit(send, cuts[0])
        for cut in cuts[1:]:
            toys, sent = sent.result(), sender.submit(send, cut)
            each.append(toys.fit())
            del toys  # lets go of its memory
        each.append(sent.result().fit())
    return Fits.joined(each)


def cuts_to_send(ensemble: Ensemble, parts: Sequence[StoredPart]) -> list[slice]:
    """Cut datasets into those that are sent to a backend together."""
    limit, count = ensemble.backend.sent_together, len(parts[0])
    each = 8 * np.sum([part.sizes * (len(part.columns) + ensemble.weighted) for part in parts], axis=0)
    size = int(each.sum())
    if limit is None or size <= limit:
        return [slice(0, count)]
    pieces = -(-size // limit)
    stops = 1 + np.searchsorted(np.cumsum(each), np.arange(1, pieces) * (size / pieces))
    edges = np.unique([0, *stops.tolist(), count]).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def sent_toys(ensemble: Ensemble, parts: Sequence[StoredPart], cut: slice) -> StoredToys:
    """Send some datasets to the backend."""
    return StoredToys.of_parts(
        ensemble, [part.between(cut) for part in parts], np.arange(cut.start, cut.stop)
    )
