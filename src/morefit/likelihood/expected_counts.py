"""The arrays of a model whose bins expect sums of samples with modifiers, what they expect, and the table that compiled code reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.kernel import counts_layout as at
from morefit.kernel.counts_layout import NOTHING, TINY, CountsTable
from morefit.likelihood.auxiliary import Auxiliary

MAX_NUMBERS = 1 << 23  # that one piece of the sets needs at once
POWERS = np.arange(1, 7)
# coefficients of the polynomial of degree 6 through 1, with the values and two derivatives of an exponential at -1 and 1
ENDS = np.linalg.inv(
    [[end**k * (1, end * k, k * (k - 1))[order] for k in POWERS] for order in range(3) for end in (1.0, -1.0)]
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpectedCounts:
    """The arrays of a model with C channels, B bins, S samples (the most that a channel has) and P parameters.

    Parameters are known by their places among all. ``factors`` multiply samples of channels, ``norms`` do so by an
    interpolation between two numbers, ``shapes`` add an interpolation between two histograms, and a ``group`` is one
    parameter that multiplies some samples of one bin.
    """

    parameters: int
    channels: tuple[slice, ...]  # the bins of each
    nominal: Array  # (B, S)
    factors: Integers  # (F,) parameters
    factor_samples: Flags  # (F, C * S)
    norms: Integers  # (G,) parameters
    norm_logs: Array  # (2, G, C * S) logarithms of what multiplies at 1 and at -1
    shapes: Integers  # (K,) parameters
    # (2, K, B, S) half the sum and a sixteenth of the difference of the shifts at 1 and at -1
    shape_shifts: Array
    group_parameters: Integers  # (Q,) in ascending order
    group_bins: Integers  # (Q,)
    group_samples: Flags  # (Q, S)
    smooth_norms: bool  # a polynomial between -1 and 1 (code 4), or exponentials with a kink at 0 (code 1)
    smooth_shapes: bool  # a polynomial between -1 and 1 (code 4p), or lines with a kink at 0 (code 0)

    # --------------------------------------------------------------------- what follows from the arrays

    @cached_property
    def scalars(self) -> Integers:
        """The parameters that multiply samples of channels."""
        return np.concatenate([self.factors, self.norms])

    @cached_property
    def shared(self) -> Integers:
        """The parameters that act on more than a group, in ascending order."""
        return np.union1d(self.scalars, self.shapes).astype(np.int64)

    @cached_property
    def places(self) -> tuple[Integers, Integers]:
        """Where the scalars and the shapes are among the shared parameters."""
        return np.searchsorted(self.shared, self.scalars), np.searchsorted(self.shared, self.shapes)

    @cached_property
    def channel_of_bins(self) -> Integers:
        widths = [c.stop - c.start for c in self.channels]
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def norm_coefficients(self) -> Array:
        """The coefficients of the polynomials, (G, 6, C * S)."""
        high, low = self.norm_logs
        up, down = np.exp(high), np.exp(low)
        ends = [up - 1, down - 1, high * up, -low * down, high**2 * up, low**2 * down]
        return np.asarray(np.einsum("ki,igc->gkc", ENDS, np.array(ends)), np.float64)

    @cached_property
    def rows(self) -> tuple[Integers, Array, Integers]:
        """The sums over samples that derivatives need: their bins, samples (rows, S), and which one each group has.

        The first B are all samples of each bin; groups of the same samples share one.
        """
        count, samples = self.nominal.shape
        known = {(b, np.ones(samples, np.bool_).tobytes()): b for b in range(count)}
        bins, masks, places = list(range(count)), [np.ones(samples, np.bool_)] * count, []
        for b, mask in zip(self.group_bins.tolist(), self.group_samples, strict=True):
            full = mask | (self.empty_samples[b])
            key = (b, full.tobytes())
            if key not in known:
                known[key] = len(bins)
                bins.append(b)
                masks.append(full)
            places.append(known[key])
        return np.array(bins, np.int64), np.array(masks, np.float64), np.array(places, np.int64)

    @cached_property
    def empty_samples(self) -> Flags:
        """Which samples a bin never has, (B, S)."""
        return np.asarray((self.nominal == 0) & ~self.shape_shifts.any(axis=(0, 1)), np.bool_)

    @cached_property
    def layers(self) -> list[Integers]:
        """Groups no two of which have the same bin."""
        seen: dict[int, int] = {}
        layer = np.empty(len(self.group_bins), np.int64)
        for q, b in enumerate(self.group_bins.tolist()):
            layer[q] = seen[b] = seen.get(b, -1) + 1
        return [np.flatnonzero(layer == k) for k in range(layer.max(initial=-1) + 1)]

    @cached_property
    def pairs(self) -> tuple[Integers, Integers, Flags]:
        """Groups of the same bin, each with itself as well, and which pairs have samples in common."""
        both = np.flatnonzero(np.diff(np.append(-1, np.sort(self.group_bins))))  # where bins begin
        order = np.argsort(self.group_bins, kind="stable")
        blocks = np.split(order, both[1:]) if len(order) else []
        firsts = [np.repeat(block, len(block)) for block in blocks]
        seconds = [np.tile(block, len(block)) for block in blocks]
        one, other = (np.concatenate([*some, np.empty(0, np.int64)]) for some in (firsts, seconds))
        overlap = (one != other) & (self.group_samples[one] & self.group_samples[other]).any(axis=1)
        return one.astype(np.int64), other.astype(np.int64), overlap

    # --------------------------------------------------------------------- expected counts

    def expected(self, x: Array) -> Array:
        """Return what each bin expects at all parameters, (sets, B)."""
        size = max(1, MAX_NUMBERS // (6 * self.nominal.size + self.norm_logs.size))
        pieces = [self.samples(x[k : k + size]).sum(axis=2) for k in range(0, len(x), size)]
        total = np.concatenate([np.empty((0, len(self.nominal))), *pieces])
        return np.where(np.abs(total) < NOTHING, 0.0, total)

    def samples(self, x: Array) -> Array:
        """Return what each sample of each bin expects, (sets, B, S)."""
        alphas, (bins, samples) = x[:, self.shapes], self.nominal.shape
        shifts = self.shape_shifts.reshape(2, len(self.shapes), bins * samples)
        moved = alphas @ shifts[0] + bends(alphas, self.smooth_shapes) @ shifts[1]
        factor = self.products(x).reshape(len(x), -1, samples)[:, self.channel_of_bins]
        for layer in self.layers:
            own = not_zero(x)[:, self.group_parameters[layer], None]
            factor[:, self.group_bins[layer]] *= np.where(self.group_samples[layer], own, 1.0)
        return np.asarray((self.nominal + moved.reshape(-1, bins, samples)) * factor, np.float64)

    def products(self, x: Array) -> Array:
        """Return what samples of channels are multiplied by, (sets, C * S)."""
        alphas = x[:, self.norms].T
        values = 1 + (alphas[:, :, None] ** POWERS) @ self.norm_coefficients  # (G, sets, C * S)
        g, s = np.nonzero((np.abs(alphas) >= 1) | (not self.smooth_norms))
        own = alphas[g, s][:, None]
        rates = np.where(own >= 0, self.norm_logs[0, g], -self.norm_logs[1, g])
        values[g, s] = np.exp(own * rates)
        factors = not_zero(x)[:, self.factors].T[:, :, None]
        used = self.factor_samples[:, None, :]
        return np.asarray(np.where(used, factors, 1.0).prod(axis=0) * values.prod(axis=0), np.float64)


def not_zero(x: Array) -> Array:
    """Return factors that can be divided by."""
    return np.where(np.abs(x) < TINY, TINY, x)


def bends(alphas: Array, smooth: bool) -> Array:
    """Return what multiplies the difference of shifts, (sets, K).

    Outside -1 to 1 it is 8 |alpha|, which makes the interpolation linear; inside it is a polynomial, or the same.
    """
    square = alphas**2
    inside = square * (15 + square * (-10 + 3 * square))
    return np.where((np.abs(alphas) < 1) & smooth, inside, 8 * np.abs(alphas))


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
