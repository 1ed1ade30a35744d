"""Toys of a log density that takes long for each event, fitted at the nodes of cells in the place of their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood.event_nodes import FEWER, Cells
from morefit.minimise.batch import Fits
from morefit.resources import concatenate

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble
    from morefit.toys.stored import StoredToys

TRIALS = 2  # with the cells of all toys, and with its own
Grids = Sequence[Cells | None]  # of each part: None where it has its events


def fit_on_nodes(toys: Toys, ensemble: Ensemble) -> tuple[Fits, Integers]:
    """Fit toys at nodes, in compiled code; where cells are too wide, again with halves of those, each toy for itself.

    Return also the toys that are left: with few events, or where cells are still too wide.
    """
    start = ensemble.start_values[ensemble.fitted.floating_columns]
    fits, left = Fits.none(np.tile(start, (len(toys), 1))), np.arange(len(toys))
    own_grids: dict[int, Grids] = dict.fromkeys(range(len(toys)), ensemble.grids)
    for _ in range(TRIALS):
        enough = [have_fewer_nodes(toys.sizes[toy], own_grids[toy]) for toy in left.tolist()]
        for place, piece in toys.in_memory(left[np.array(enough, np.bool_)]):
            grids = [own_grids[toy] for toy in place.tolist()]
            own = put_on_nodes(piece, ensemble.at_nodes, grids).fit_whole(ensemble.at_nodes)
            if own is None:
                return fits, np.arange(len(toys))
            fits.take_all(place, own)
            # what is not valid is fitted again in any case
            wide = own.valid & are_wide(own, ensemble, grids)
            left = np.setdiff1d(left, place[~wide])
            for k in np.flatnonzero(wide).tolist():
                own_grids[int(place[k])] = finer_grids(own.values[k], ensemble, grids[k], piece.sizes[k])
    return fits, left


def have_fewer_nodes(sizes: Integers, grids: Grids) -> bool:
    """Return whether a toy has many more events than nodes; its size alone decides."""
    counts = [FEWER * len(cells.nodes) if cells is not None else 0 for cells in grids]
    return any(counts) and all(size >= count for size, count in zip(sizes.tolist(), counts, strict=True))


def part_values(values: Array, ensemble: Ensemble) -> Iterator[Array]:
    """Return rows of all parameters of each part, where fits ended."""
    full = np.tile(ensemble.start_values, (len(values), 1))
    full[:, ensemble.fitted.floating_columns] = values
    places = {p.name: k for k, p in enumerate(ensemble.fitted.all_parameters)}
    for part in ensemble.fitted.parts:
        yield full[:, [places[p.name] for p in part.all_parameters]]


def are_wide(fits: Fits, ensemble: Ensemble, grids: Sequence[Grids]) -> Flags:
    """Return which fits end where the cells of each do not resolve the log density."""
    wide = np.zeros(len(fits.values), np.bool_)
    for k, (part, full) in enumerate(
        zip(ensemble.fitted.parts, part_values(fits.values, ensemble), strict=True)
    ):
        if (slow := part.slow) is None:
            continue
        alike: dict[Cells, list[int]] = {}
        for toy, own in enumerate(grids):
            if (cells := own[k]) is not None:
                alike.setdefault(cells, []).append(toy)
        for cells, some in alike.items():
            wide[some] |= ~slow.cells_hold(cells, full[some])
    return wide


def finer_grids(values: Array, ensemble: Ensemble, grids: Grids, sizes: Integers) -> Grids:
    """Return cells that resolve the log density where a fit ended; none at all if their nodes are not much fewer than events."""
    rows = part_values(values[None], ensemble)
    each = zip(ensemble.fitted.parts, grids, rows, sizes.tolist(), strict=True)
    finer = [
        None if g is None or part.slow is None else part.slow.finer_cells(g, row[0], size)
        for part, g, row, size in each
    ]
    lost = any(new is None and old is not None for new, old in zip(finer, grids, strict=True))
    return [None] * len(grids) if lost else finer


def put_on_nodes(toys: Toys, ensemble: Ensemble, grids: Sequence[Grids]) -> StoredToys:
    """Return toys whose events are nodes with weights, in the parts that have cells; other events count once."""
    from morefit.toys.stored import StoredToys

    upload, sizes, buffers = ensemble.backend.upload, toys.sizes.copy(), []
    for k in range(sizes.shape[1]):
        columns, weights = list(toys.drawn[k].columns), np.ones(int(sizes[:, k].sum()))
        own = [each[k] for each in grids]
        if cells := [one for one in own if one is not None]:
            weights = weights_of_toys(cells, columns[0].values, sizes[:, k])
            sizes[:, k] = [len(one.nodes) for one in cells]
            columns = [upload(concatenate([one.nodes for one in cells]))]
        buffers.append((*columns, upload(concatenate([weights]))))
    return StoredToys(ensemble, toys.first, sizes, tuple(buffers), toys.numbers)


def weights_of_toys(cells: Sequence[Cells], x: Array, sizes: Integers) -> Array:
    """Return the weights of the nodes of toys, one after the other; those that follow one another with the same cells together."""
    first = [0, *(k for k in range(1, len(cells)) if cells[k] is not cells[k - 1]), len(cells)]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    parts = [cells[a].weights_of_sets(x[ends[a] : ends[b]], sizes[a:b]).ravel() for a, b in pairwise(first)]
    return np.concatenate(parts)
