"""Kendall's tau of two columns: a test of whether they are independent, as sWeights need them to be in each component."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from morefit.data.columns import is_ranged
from morefit.data.dataset import Dataset
from morefit.errors import DataError
from morefit.text.arguments import in_sentences


class KendallTau(NamedTuple):
    """The rank correlation of two columns, from -1 to 1, and the probability of a larger one if they are independent."""

    tau: float
    p_value: float

    def __str__(self) -> str:
        return f"Kendall's tau {self.tau:.3f}, p-value {self.p_value:.2g}"


@in_sentences
def kendall_tau(data: Any, x: Any, y: Any) -> KendallTau:
    """Return Kendall's tau of two columns, by name or observable, with the p-value of their independence.

    The data should be of one component only, such as simulated signal, or a sideband; events count once.

    Example: ``mf.kendall_tau({"m": [5.1, 5.8, 6.1], "t": [0.3, 0.1, 2.0]}, m, t)``
    """
    dataset = data if isinstance(data, Dataset) else Dataset(data)
    if dataset.weights is not None:
        raise DataError(
            "kendall_tau: events must have no weights, as ranks count events; use data of one component only"
        )
    names = [one.name if is_ranged(one) else one for one in (x, y)]
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"kendall_tau: takes two names of columns, got {x!r} and {y!r}")
    first, second = (dataset[name] for name in names)
    for name, column in zip(names, (first, second), strict=True):
        if len(np.unique(column)) < 2:
            raise DataError(f"kendall_tau: column '{name}' must have at least 2 different values")
    from scipy.stats import kendalltau  # type: ignore[import-untyped]  # slow, and only few ask for it

    test = kendalltau(first, second)
    return KendallTau(float(test.statistic), float(test.pvalue))
