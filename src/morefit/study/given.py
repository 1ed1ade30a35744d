"""Fit one model to many datasets that are given, together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from morefit.backend import Backend, choose_backend
from morefit.data import Dataset
from morefit.errors import DataError, FitError
from morefit.fit.ensemble import Ensemble, GivenToys
from morefit.generate import all_values
from morefit.model import Pdf
from morefit.toys import ToyResults


def fit_many(
    model: Pdf,
    datasets: Sequence[Any],
    *,
    start: Mapping[str, float] | None = None,
    backend: str | Backend = "auto",
) -> ToyResults:
    """Fit a model to each of many datasets in compiled code, as toys are fitted; weights are not taken."""
    begin = time.perf_counter()
    if not len(datasets):
        raise DataError("fit_many: needs at least one dataset, got none")
    checked = [Dataset(d, model.observables) for d in datasets]
    if any(d.weights is not None for d in checked):
        raise FitError("fit_many: weighted datasets must be fitted one by one, with fit")
    if any(not len(d) for d in checked):
        raise DataError("fit_many: a dataset has no events; there is nothing to fit")
    values = all_values(model, start)
    ensemble = Ensemble(model, model, values, values, 0, choose_backend(backend, sum(map(len, checked))))
    toys = GivenToys.of(ensemble, checked)
    found = toys.fit()
    names = tuple(p.name for p in ensemble.floating)
    return ToyResults(
        names, {}, found.values, found.errors, found.nll, found.edm, found.valid, found.how, toys.sizes, 0,
        seconds={"fit": time.perf_counter() - begin}, backend=ensemble.backend.label,
    )  # fmt: skip
