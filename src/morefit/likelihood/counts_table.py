"""The table of a HistFactory model that compiled code reads: its arrays in the order of ``kernel/counts_layout.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.kernel import counts_layout as at
from morefit.kernel.counts_layout import CountsTable
from morefit.likelihood.auxiliary import Auxiliary
from morefit.likelihood.expected_counts import ExpectedCounts


def counts_table(model: ExpectedCounts, auxiliary: Auxiliary, measured: int) -> CountsTable:
    """Return the table of a model with its constraints of single parameters, which have ``measured`` values."""
    bins, samples = model.nominal.shape
    cells, pairs = len(model.channels) * samples, pair_lists(model)
    own = np.unique(model.group_parameters)
    terms = auxiliary.single_terms
    sizes = {
        at.PARAMETERS: auxiliary.parameters, at.MEASURED: measured, at.BINS: bins, at.SAMPLES: samples,
        at.CELLS: cells, at.FACTORS: len(model.factors), at.NORMS: len(model.norms),
        at.SHAPES: len(model.shapes), at.SHARED: len(model.shared), at.ROWS: len(model.rows[0]),
        at.GROUPS: len(model.group_bins), at.OWN: len(own), at.PAIRS: len(pairs[0]) - 1,
        at.TERMS: len(terms.parameters), at.SMOOTH_NORMS: int(model.smooth_norms),
        at.SMOOTH_SHAPES: int(model.smooth_shapes),
    }  # fmt: skip
    indices = index_arrays(model, auxiliary.parameters) | {
        at.OWN_PARAMETERS: own, at.OWN_GROUPS: np.searchsorted(model.group_parameters, [*own, auxiliary.parameters]),
        at.PAIR_GROUPS: pairs[0], at.PAIR_MEMBERS: pairs[1],
        at.TERM_PARAMETERS: terms.parameters, at.TERM_PARTS: terms.starts, at.TERM_KINDS: terms.kinds,
        at.TERM_PLACES: terms.places,
    }  # fmt: skip
    numbers = model_arrays(model) | {at.TERM_NUMBERS: terms.numbers}
    return CountsTable.empty().extended(sizes, indices, numbers, work_sizes(sizes))


def index_arrays(model: ExpectedCounts, parameters: int) -> dict[int, Integers]:
    """Return which parameter, bin, cell and group is where."""
    bins, samples = model.nominal.shape
    order = np.argsort(model.group_bins, kind="stable")
    scalars, shapes = model.places
    widths = [[c.start, c.stop] for c in model.channels]
    return {
        at.FLOATING_PLACES: np.full(parameters, -1),
        at.FACTOR_PARAMETERS: model.factors,
        at.NORM_PARAMETERS: model.norms,
        at.SHAPE_PARAMETERS: model.shapes,
        at.SHARED_PARAMETERS: model.shared,
        at.SHARED_SCALARS: inverse(scalars, len(model.shared)),
        at.SHARED_SHAPES: inverse(shapes, len(model.shared)),
        at.BIN_CELLS: samples * model.channel_of_bins,
        at.CELL_BINS: np.repeat(widths, samples, axis=0),
        at.BIN_GROUPS: np.searchsorted(model.group_bins[order], np.arange(bins + 1)),
        at.GROUPS_OF_BINS: order,
        at.GROUP_PARAMETERS: model.group_parameters,
        at.GROUP_BINS: model.group_bins,
        at.GROUP_ROWS: model.rows[2],
        at.ROW_BINS: model.rows[0],
    }


def model_arrays(model: ExpectedCounts) -> dict[int, Array]:
    """Return what a model expects, in the order in which sums go through it."""
    cells = model.factor_samples.shape[1]
    return {
        at.NOMINAL: model.nominal,
        at.USED: model.factor_samples.T.astype(np.float64),
        at.LOGS: model.norm_logs.transpose(2, 0, 1),
        at.COEFFICIENTS: model.norm_coefficients.transpose(2, 1, 0).reshape(cells, -1),
        at.SHIFTS: model.shape_shifts.transpose(2, 1, 0, 3),
        at.SAMPLE_SHIFTS: model.shape_shifts.transpose(2, 3, 0, 1),
        at.ROW_SAMPLES: model.rows[1],
        at.GROUP_SAMPLES: model.group_samples.astype(np.float64),
    }


def work_sizes(sizes: dict[int, int]) -> dict[int, int]:
    """Return how many numbers each step leaves for those after it."""
    bins, samples, cells, rows = (sizes[word] for word in (at.BINS, at.SAMPLES, at.CELLS, at.ROWS))
    shapes, shared, terms = (sizes[word] for word in (at.SHAPES, at.SHARED, at.TERMS))
    scalars, each = sizes[at.FACTORS] + sizes[at.NORMS], bins * samples
    return {
        at.BENDS: 3 * shapes, at.PRODUCTS: cells, at.NORM_VALUES: cells * sizes[at.NORMS],
        at.SLOPES: cells * scalars, at.CURVES: cells * scalars, at.CONTENT: each, at.MULTIPLIERS: each,
        at.PARTS: each, at.EXPECTED: bins, at.TERM_VALUES: terms, at.TERM_BAD: terms, at.BIN_TERMS: bins,
        at.BIN_BAD: bins, at.BIN_SLOPES: bins, at.BIN_BENDS: bins, at.BIN_CURVES: bins,
        at.ROW_SCALARS: rows * scalars, at.ROW_STEADY: rows * shapes, at.ROW_BENT: rows * shapes,
        at.JACOBIAN: rows * shared, at.GROUP_SLOPES: sizes[at.GROUPS], at.HESSIAN: shared * shared,
        at.CELL_WEIGHTS: cells, at.CELL_SHIFTS: cells * shapes, at.MIXED: scalars * scalars,
        at.CROSSED: shapes * scalars,
    }  # fmt: skip


def inverse(places: Integers, count: int) -> Integers:
    """Return which of some has each place, -1 if none has."""
    known = np.full(count, -1)
    known[places] = np.arange(len(places))
    return known


def pair_lists(model: ExpectedCounts) -> tuple[Integers, Integers]:
    """Return where the members of each pair of parameters begin, and these: two groups, and whether they overlap."""
    one, other, overlap = model.pairs
    lower = model.group_parameters[one] >= model.group_parameters[other]
    one, other, overlap = one[lower], other[lower], overlap[lower]
    places = model.group_parameters[one] * model.parameters + model.group_parameters[other]
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    members = np.stack([one, other, overlap.astype(np.int64)], axis=1)[order]
    return np.append(starts, len(order)), members


def at_order(table: CountsTable, order: int, floating: Sequence[int]) -> CountsTable:
    """Return a table for sums with derivatives of an order, by some of the parameters."""
    count = len(floating)
    outputs = 2 + (count if order > 0 else 0) + (count * (count + 1) // 2 if order > 1 else 0)
    sizes = {at.ORDER: order, at.FLOATING: count, at.OUTPUTS: outputs, at.RESULTS: outputs}
    return table.changing(sizes, places_of(table, floating))


def places_of(table: CountsTable, floating: Sequence[int]) -> Integers:
    """Return where each parameter is among some of them, -1 if it is not."""
    places = np.full(int(table.words[at.PARAMETERS]), -1)
    places[list(floating)] = np.arange(len(floating))
    return places


def profile_table(
    table: CountsTable, outer: Integers, blocks: Blocks, limits: Array, starts: Array
) -> CountsTable:
    """Return a table for the profile in ``outer`` parameters, minimised over those of groups in blocks."""
    inner = len(blocks.groups)
    rest, count, parameters = len(outer), len(outer) + inner, blocks.parameters
    reduced, outputs = 2 + rest + rest * (rest + 1) // 2, 2 + count + count * (count + 1) // 2
    plain = at_order(table, 2, [*outer.tolist(), *parameters.tolist()])
    first = int(plain.words[at.TERM_PARAMETERS])
    terms = plain.words[first : first + int(plain.words[at.TERMS])]
    widest = int(np.diff(blocks.first).max())
    sizes = {
        at.RESULTS: reduced + inner, at.INNER: inner, at.OUTER: rest, at.BLOCKS: len(blocks.bins),
        at.WIDEST: widest, at.OVERLAPS: int(blocks.overlap), at.OUT_FIRST: plain.work_size,
    }  # fmt: skip
    indices = {
        at.INNER_GROUPS: blocks.groups, at.INNER_TERMS: np.searchsorted(terms, parameters),
        at.BLOCK_FIRST: blocks.first, at.BLOCK_BINS: blocks.bins,
    }  # fmt: skip
    each = (
        at.INNER_SLOPES, at.INNER_PINNED, at.INNER_GRADIENT, at.INNER_ERRORS, at.INNER_STEPS, at.INNER_OLD,
    )  # fmt: skip
    work = {
        at.SUMS: outputs, **dict.fromkeys(each, inner), at.INNER_ROWS: inner * rest,
        **dict.fromkeys((at.BLOCK_VALUES, at.BLOCK_SHARES, at.BLOCK_ACTIVE), len(blocks.bins)),
        at.BLOCK_MATRICES: inner * widest, at.BLOCK_EXACT: inner * widest, at.CHOLESKY: rest * (rest + 1),
        at.STRAIGHT: reduced,
    }  # fmt: skip
    return plain.extended(sizes, indices, {at.INNER_STARTS: starts, at.INNER_LIMITS: limits}, work)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Groups whose parameters are eliminated, sorted by their bins: Q of them, in K blocks."""

    groups: Integers  # (Q,)
    parameters: Integers  # (Q,)
    first: Integers  # (K + 1,) where each block begins
    bins: Integers  # (K,)
    overlap: bool  # whether two groups of a block have samples in common
