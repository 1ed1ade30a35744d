"""Which likelihood data have: that of bins if they are a histogram, else that of events."""

from __future__ import annotations

from typing import Any

from morefit.data.dataset import Dataset
from morefit.data.sources import is_histogram
from morefit.errors import DataError
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Pdf
from morefit.targets.base import Backend


def likelihood_of(
    model: Any,
    data: Any,
    *,
    weights: Any = None,
    constraints: Any = (),
    ranges: Any = None,
    backend: str | Backend = "auto",
    **of_events: Any,
) -> Likelihood:
    """Return the likelihood of the bins of a histogram, or of events, which have more options; of categories, their sum."""
    if not isinstance(model, Pdf) or isinstance(data, Dataset) or not is_histogram(data):
        return Likelihood(
            model, data, weights=weights, constraints=constraints, ranges=ranges, backend=backend, **of_events
        )
    if weights is not None or ranges is not None:
        raise DataError(
            "dataset: a histogram has its variances and its bins; give no weights and no ranges, but the bins of a range, such as"
            " (counts[:20], edges[:21]), or one likelihood for each: mf.BinnedLikelihood(model, a) + mf.BinnedLikelihood(model, b)"
        )
    from morefit.likelihood.binned import BinnedLikelihood  # seldom needed

    return BinnedLikelihood(model, data, constraints=constraints, backend=backend)
