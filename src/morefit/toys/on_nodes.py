"""Toys of a log density that takes long for each event, fitted at the nodes of cells in the place of their events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Flags, Integers
from morefit.likelihood.event_nodes import FEWER, Cells
from morefit.minimise.batch import Fits
from morefit.resources import concatenate

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble
    from morefit.toys.stored import StoredToys

Grids = Sequence[Cells | None]  # of each part: None where it has its events


def have_fewer_nodes(toys: Toys, grids: Grids) -> Flags:
    """Return which toys have many more events than nodes; the size of a toy alone decides."""
    counts = np.array([0 if cells is None else FEWER * len(cells.nodes) for cells in grids])
    return np.asarray((toys.sizes >= counts).all(axis=1))


def fit_on_nodes(toys: Toys, ensemble: Ensemble) -> tuple[Fits, Integers]:
    """Fit toys at nodes, in compiled code; return also those that are left: with few events, or where cells are too wide."""
    start, at_nodes = ensemble.start_values[ensemble.fitted.floating_columns], ensemble.at_nodes
    fits, left = Fits.none(np.tile(start, (len(toys), 1))), ~have_fewer_nodes(toys, ensemble.grids)
    for place, piece in toys.in_memory(np.flatnonzero(~left)):
        own = put_on_nodes(piece, at_nodes, ensemble.grids).fit_whole(at_nodes)
        if own is None:
            return fits, np.arange(len(toys))
        left[place] = are_wide(own, ensemble)
        fits.take_all(place, own)
    return fits, np.flatnonzero(left)


def are_wide(fits: Fits, ensemble: Ensemble) -> Flags:
    """Return which fits end where cells do not resolve the log density."""
    full = np.tile(ensemble.start_values, (len(fits.values), 1))
    full[:, ensemble.fitted.floating_columns] = fits.values
    places = {p.name: k for k, p in enumerate(ensemble.fitted.all_parameters)}
    wide = np.zeros(len(full), np.bool_)
    for part, cells in zip(ensemble.fitted.parts, ensemble.grids, strict=True):
        if cells is not None:
            wide |= ~part.cells_hold(cells, full[:, [places[p.name] for p in part.all_parameters]])
    return wide


def put_on_nodes(toys: Toys, ensemble: Ensemble, grids: Grids) -> StoredToys:
    """Return toys whose events are nodes with weights, in the parts that have cells; other events count once."""
    from morefit.toys.stored import StoredToys

    upload, sizes, buffers = ensemble.backend.upload, toys.sizes.copy(), []
    for k, cells in enumerate(grids):
        columns, weights = list(toys.drawn[k].columns), np.ones(int(sizes[:, k].sum()))
        if cells is not None:
            weights = cells.weights_of_sets(columns[0].values, sizes[:, k]).ravel()
            sizes[:, k] = len(cells.nodes)
            columns = [upload(concatenate([cells.nodes] * len(toys)))]
        buffers.append((*columns, upload(concatenate([weights]))))
    return StoredToys(ensemble, toys.first, sizes, tuple(buffers), toys.numbers)
