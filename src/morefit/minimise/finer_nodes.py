"""Sets of a batch whose integrals have too few nodes where their fits ended: each minimised again with nodes for there."""

from __future__ import annotations

import numpy as np

from morefit.arrays import Flags
from morefit.likelihood.wider import is_wrong, resolved, unresolved_points
from morefit.minimise.batch import FAILED, UNDETERMINED, Batch, Fits

ROUNDS = 3  # of nodes for where the last fit ended


def minimise_with_finer_nodes(batch: Batch, fits: Fits, known: Flags) -> None:
    """Minimise sets again whose integrals are wrong where they ended, of those whose end is known; what stays wrong failed.

    All sets of the batch have the same events; their weights may differ.
    """
    sets = np.flatnonzero(known)
    if not len(sets):
        return
    for k in sets[unresolved_points(batch.likelihood, batch.full(fits)[sets])].tolist():
        if is_wrong(batch.likelihood, batch.values_at(fits, k)) and not fit_one(batch, fits, k):
            fits.valid[k], fits.method[k], fits.edm[k] = False, FAILED, np.nan


def fit_one(batch: Batch, fits: Fits, k: int) -> bool:
    """Minimise one set with nodes for where its fit ended, and for where it ends then; return whether they are enough."""
    term, undetermined = batch.alone(k), fits.method[k] == UNDETERMINED
    for _ in range(ROUNDS):
        finer = resolved(term, batch.values_at(fits, k))
        if finer is term:
            return False
        again = batch.of_one(k, finer).fit()
        if not (again.valid[0] or (undetermined and again.method[0] == UNDETERMINED)):
            return False
        fits.take_all(np.array([k]), again)
        fits.valid[k] = True
        if not is_wrong(finer, batch.values_at(fits, k)):
            return True
        term = finer
    return False
