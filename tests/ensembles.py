"""Ensembles of toys of plain models, for tests of what is below a study."""

import numpy as np

from morefit.toys.arguments import template_of
from morefit.toys.ensemble import Ensemble
from morefit.toys.task import Task
from morefit.toys.whole_fits import whole_batch


def ensemble_of(model, truth=None, start=None, seed=1, backend=None, thorough=False):
    """Return toys of a model, drawn at its start values and fitted from there unless other values are given."""
    known = {p.name: p.start for p in model.parameters}
    term = template_of("test", model)
    return Ensemble(
        drawn=term,
        fitted=term,
        truth={**known, **(truth or {})},
        start={**known, **(start or {})},
        seed=seed,
        backend=backend,
        thorough=thorough,
    )


def task_of(model, truth, seed, backend, statistic=None):
    """Return the task of a study of a model."""
    term = template_of("test", model)
    return Task(
        drawn=term, fitted=term, truth=truth, start=truth, seed=seed, backend=backend, statistic=statistic
    )


def fit_rows(ensemble, sizes, first=0):
    """Return what whole fits of some toys leave: the records as they are, with the covariance."""
    job = ensemble.whole_fit()
    toys = whole_batch(ensemble.draw(first, np.asarray(sizes)), ensemble)
    return ensemble.backend.fit_whole(job, toys, job.layout.derivatives_width)
