"""``mf.fit_many``: fit one likelihood to many datasets together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.data.sources import is_histogram
from morefit.errors import DataError
from morefit.likelihood import Simultaneous, Term
from morefit.likelihood.accuracy import is_simulated
from morefit.likelihood.evaluation import least_mean_weight
from morefit.likelihood.sums import check_constrained
from morefit.likelihood.unbinned import likelihood_of
from morefit.minimise.batch import Fits
from morefit.minimise.check import invert
from morefit.minimise.covariance import simulation_covariance
from morefit.minimise.problem import check_data
from morefit.model import Pdf
from morefit.model.observable import Ranges
from morefit.model.region import YieldsIn
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences
from morefit.toys.arguments import starts, template_of
from morefit.toys.batch import StoredToys
from morefit.toys.ensemble import Ensemble
from morefit.toys.negative import how_obtained
from morefit.toys.results import ToyResults


@in_sentences
def fit_many(
    model: Pdf | Simultaneous | Term,
    datasets: Iterable[Any],
    *,
    constraints: Sequence[Any] | Any = (),
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    start: Any = None,
    backend: str | Backend = "auto",
) -> ToyResults:
    """Fit a model, or a likelihood, to each of many datasets in compiled code, as toys are fitted.

    For a sum of likelihoods each dataset is a list, one for each part; for ``mf.Simultaneous`` as in ``fit``. Counts of bins are histograms
    or arrays, those of a HistFactory model also arrays by channel; points are arrays of y. Constraints keep what they measured. Errors are
    those of ``fit``, and so are ``ranges`` and ``yields_in``: from the sandwich for datasets with weights, else from the inverse Hessian. ``start`` are values by name.

    Example: ``mf.fit_many(model, mf.generate(model, [500] * 10, seed=2))``
    """
    begin = time.perf_counter()
    if isinstance(datasets, str | Mapping | Dataset) or not isinstance(datasets, Iterable):
        raise DataError(f"fit_many: needs a list of datasets, got one of type {type(datasets).__name__}")
    each = list(datasets)
    if not each:
        raise DataError("fit_many: needs at least one dataset, got none")
    by_label = isinstance(model, Simultaneous) and isinstance(each[0], Mapping)
    some = list(each[0].values()) if by_label else each[:1]
    if not isinstance(model, Term) and any(map(is_histogram, some)):
        model = likelihood_of(
            model, each[0], constraints=constraints, ranges=ranges, yields_in=yields_in, backend="cpu"
        )
        constraints, ranges, yields_in = (), None, "full"
    if isinstance(model, Term) and model.weighted:  # its own events play no role
        model = model.with_parts([part.without_events() for part in model.parts])
    template = template_of("fit_many", model, constraints, ranges=ranges, yields_in=yields_in, weighted=True)
    check_constrained(template.parts)
    if isinstance(model, Simultaneous):
        each = [[own for own, _ in model.split(data).values()] for data in each]
    checked = [datasets_of(template, data) for data in each]
    # weights are columns of these
    template = template.with_parts([part.without_formula() for part in template.parts])
    sizes = np.array([sum(map(len, data)) for data in checked], np.int64)
    place = choose_backend(backend, int(sizes.sum()))
    for data in checked:
        check_data(template, data)
    values = starts(template, {}, start, keep_fixed=True)
    ensemble = Ensemble(
        drawn=template, fitted=template, truth=values, start=values, seed=0, backend=place, fluctuate=False, expected=len(sizes),
        weighted=any(d.weights is not None for data in checked for d in data),
        mean_weight=least_mean_weight(
            (d for data in checked for d in data), alone=not any(part.constraints for part in template.parts)
        ),
    )  # fmt: skip
    fits = fit_stored(ensemble, checked)
    if any(is_simulated(part.model) for part in template.parts):
        fits.errors[:] = simulated_errors(template, checked, fits, ensemble.floating)
    return ToyResults(
        names=ensemble.floating, truth={}, values=fits.values, errors=fits.errors, nll=fits.nll, edm=fits.edm,
        valid=fits.valid, how=how_obtained(ensemble, fits), events=sizes, seed=0, seconds={"fit": time.perf_counter() - begin},
        backend=place.label, unit=template.unit,
    )  # fmt: skip


def simulated_errors(
    template: Term, datasets: Sequence[Sequence[Dataset]], fits: Fits, names: Sequence[str]
) -> Array:
    """Return the errors of all fits with what simulated samples add to them."""
    errors = fits.errors.copy()
    for k in np.flatnonzero(fits.valid).tolist():
        term = with_data(template, datasets[k])
        point = dict(zip(names, fits.values[k], strict=True))
        rows = [p.name for p in term.parameters]
        inverse = invert(term.hessian(point))
        own = simulation_covariance(term, term.points(point)[0], inverse, range(len(rows)))
        errors[k] = np.sqrt(errors[k] ** 2 + np.diag(own)[[rows.index(name) for name in names]])
    return errors


def datasets_of(template: Term, data: Any) -> tuple[Dataset, ...]:
    """Return what is fitted together, a dataset for each part."""
    parts = template.parts
    if len(parts) == 1:
        return (parts[0].read(data),)
    if isinstance(data, Mapping) and template.labels and set(data) == set(template.labels):
        data = [data[label] for label in template.labels]
    if isinstance(data, str | Mapping | Dataset) or not isinstance(data, Sequence) or len(data) != len(parts):
        raise DataError(
            f"fit_many: each dataset must be a list of {len(parts)}, one for each part, got {data!r:.60}"
        )
    return tuple(part.read(d) for d, part in zip(data, parts, strict=True))


def with_data(template: Term, data: Sequence[Dataset]) -> Term:
    return template.with_parts([p.replaced(data=d) for p, d in zip(template.parts, data, strict=True)])


def fit_stored(ensemble: Ensemble, datasets: Sequence[Sequence[Dataset]]) -> Fits:
    """Fit datasets: those with weights with errors from the sandwich, others apart from them."""
    weighted = np.array([any(d.weights is not None for d in data) for data in datasets])
    if not ensemble.weighted or weighted.all():
        return StoredToys.of_datasets(ensemble, datasets).fit()
    each = []
    for flag in (True, False):
        some = [data for data, own in zip(datasets, weighted.tolist(), strict=True) if own is flag]
        each.append(StoredToys.of_datasets(replace(ensemble, weighted=flag), some).fit())
    order = np.argsort(np.argsort(~weighted, kind="stable"), kind="stable")
    return Fits.joined(each).rows(order)
