"""Fit one model to many datasets that are given, together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from morefit.data import Dataset
from morefit.errors import DataError
from morefit.minimise.problem import check_not_empty, check_weights
from morefit.model import Pdf
from morefit.model.pdf import check_model
from morefit.targets import Backend, choose_backend
from morefit.toys.arguments import starts
from morefit.toys.ensemble import Ensemble, GivenToys
from morefit.toys.results import ToyResults
from morefit.toys.weighted import WeightedFits


def fit_many(
    model: Pdf,
    datasets: Iterable[Any],
    *,
    start: Mapping[str, float] | None = None,
    backend: str | Backend = "auto",
) -> ToyResults:
    """Fit a model to each of many datasets in compiled code, as toys are fitted.

    Errors are those of ``fit``: from the sandwich for datasets with weights, else from the inverse Hessian.
    """
    begin = time.perf_counter()
    check_model(model)
    if isinstance(datasets, str | Mapping | Dataset) or not isinstance(datasets, Iterable):
        raise DataError(f"fit_many: needs a list of datasets, got one of type {type(datasets).__name__}")
    checked = [Dataset(d, model.observables) for d in datasets]
    if not checked:
        raise DataError("fit_many: needs at least one dataset, got none")
    for d in checked:
        check_not_empty(len(d), model)
        check_weights(d)
    values, place = starts(model, {}, start, keep_fixed=True), choose_backend(backend, sum(map(len, checked)))
    if any(d.weights is not None for d in checked):
        found = WeightedFits(model, checked, values, place).fit()
    else:
        found = GivenToys.of(Ensemble(model, model, values, values, 0, place), checked).fit()
    names = tuple(p.name for p in model.parameters if not p.fixed)
    sizes = np.array([len(d) for d in checked], np.int64)
    return ToyResults(
        names, {}, found.values, found.errors, found.nll, found.edm, found.valid, found.how, sizes, 0,
        seconds={"fit": time.perf_counter() - begin}, backend=place.label,
    )  # fmt: skip
