"""Fit one model to many datasets that are given, together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.backend import Backend, choose_backend
from morefit.data import Dataset
from morefit.errors import DataError
from morefit.fit.ensemble import Ensemble, GivenToys
from morefit.fit.problem import check_weights
from morefit.fit.weighted import WeightedFits
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
    """Fit a model to each of many datasets in compiled code, as toys are fitted.

    Errors are those of ``fit``: from the sandwich for datasets with weights, else from the inverse Hessian.
    """
    begin = time.perf_counter()
    if not len(datasets):
        raise DataError("fit_many: needs at least one dataset, got none")
    checked = [Dataset(d, model.observables) for d in datasets]
    if any(not len(d) for d in checked):
        raise DataError("fit_many: a dataset has no events; there is nothing to fit")
    for d in checked:
        check_weights(d)
    values, place = all_values(model, start), choose_backend(backend, sum(map(len, checked)))
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
