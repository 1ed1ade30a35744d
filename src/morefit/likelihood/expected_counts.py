"""Expected counts of bins as sums of samples with modifiers, and the likelihood of counts with its exact derivatives.

Bin b of a channel expects the sum over samples s of (nominal + shifts) * factors. All is done by matrix products over
arrays of modifiers, many sets together: nothing is compiled, and hundreds of parameters cost what the products cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood.base import Evaluation

TINY = 1e-100  # in the place of a factor of zero: products of some are not zero, so that quotients are exact
NOTHING = 1e-80  # expected counts below this are zero
MAX_NUMBERS = 1 << 23  # that one piece of the sets needs at once
POWERS = np.arange(1, 7)
# coefficients of the polynomial of degree 6 through 1, with the values and two derivatives of an exponential at -1 and 1
ENDS = np.linalg.inv(
    [
        [end**k * (1, end * k, k * (k - 1))[order] for k in range(1, 7)]
        for order in range(3)
        for end in (1.0, -1.0)
    ]
)


@dataclass(frozen=True, eq=False)
class SumsOfPlaces:
    """Adds up terms (sets, places, ...) of equal places, which stand next to each other."""

    names: Integers  # of the places, each once
    starts: Integers | None  # where each begins; None if all differ

    @classmethod
    def of(cls, places: Integers) -> SumsOfPlaces:
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        return cls(places[starts], None if len(starts) == len(places) else starts)

    def __call__(self, terms: Array) -> Array:
        return terms if self.starts is None else np.add.reduceat(terms, self.starts, axis=1)


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
    shape_shifts: (
        Array  # (2, K, B, S) half the sum and a sixteenth of the difference of the shifts at 1 and at -1
    )
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
    def group_sums(self) -> SumsOfPlaces:
        """What adds the terms of groups of one parameter."""
        return SumsOfPlaces.of(self.group_parameters)

    @cached_property
    def pair_sums(self) -> tuple[Integers, SumsOfPlaces]:
        """The order of pairs in which those of the same two parameters are neighbours, and what adds their terms."""
        one, other, _ = self.pairs
        places = self.group_parameters[one] * self.parameters + self.group_parameters[other]
        order = np.argsort(places, kind="stable")
        return order, SumsOfPlaces.of(places[order])

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
    def rows_of_channels(self) -> list[Integers]:
        bins = self.rows[0]
        return [np.flatnonzero((bins >= c.start) & (bins < c.stop)) for c in self.channels]

    @cached_property
    def row_shifts(self) -> Array:
        """The shifts of the samples of each row, (2, rows, S, K)."""
        bins, masks, _ = self.rows
        return np.ascontiguousarray(self.shape_shifts[:, :, bins].transpose(0, 2, 3, 1) * masks[:, :, None])

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

    @cached_property
    def numbers(self) -> int:
        """How many numbers one set needs at once, about."""
        rows, cells = len(self.rows[0]), len(self.channels) * self.nominal.shape[1]
        scalars, shared = len(self.scalars), len(self.shared)
        pairs = len(self.pairs[0]) + self.nominal.shape[1] * int(self.pairs[2].sum())
        sizes = (self.nominal.size * 6, 5 * scalars * cells, 4 * rows * shared, pairs, 3 * self.parameters**2)
        return sum(sizes)

    # --------------------------------------------------------------------- expected counts

    def expected(self, x: Array) -> Array:
        """Return what each bin expects at all parameters, (sets, B)."""
        return np.concatenate([Point(self, x[some], 0).total for some in self.pieces(len(x))])

    def samples(self, x: Array) -> Array:
        """Return what each sample of each bin expects at one set of parameters, (B, S)."""
        return np.asarray(Point(self, x, 0).parts[0])

    def evaluate(self, x: Array, counts: Array, order: int, linear: bool = False) -> Evaluation:
        """Evaluate minus the logarithm of the Poisson likelihood of counts (sets, B), relative to expecting the counts.

        ``linear`` leaves the second derivatives of expected counts out of the Hessian, which then has no negative curvature.
        """
        total = Evaluation.zero(len(x), self.parameters, order)
        for some in self.pieces(len(x)):
            point = Point(self, x[some], order)
            n, mu = counts[some], point.total
            possible = (mu > 0) | ((mu == 0) & (n == 0))
            safe = np.where(mu > 0, mu, 1.0)
            terms = mu - n - n * np.log(safe / np.where(n > 0, n, 1.0))
            total.value[some] = np.where(possible, terms, 0.0).sum(axis=1)
            total.bad[some] = (~possible).sum(axis=1)
            if order > 0:
                slope = np.where(possible, 1 - n / safe, 0.0)
                total.gradient[some] = point.gradient(slope)
            if order > 1:
                slope = np.zeros_like(slope) if linear else slope
                total.hessian[some] = point.hessian(slope, np.where(possible, n / safe**2, 0.0))
        return total

    def pieces(self, sets: int) -> Iterator[slice]:
        """Cut sets into pieces that need not too much memory."""
        size = max(1, MAX_NUMBERS // self.numbers)
        for first in range(0, sets, size):
            yield slice(first, first + size)


class Point:
    """Expected counts at some sets of parameters, and what their derivatives are made of."""

    def __init__(self, model: ExpectedCounts, x: Array, order: int) -> None:
        self.model, self.sets = model, len(x)
        self.x = np.where(np.abs(x) < TINY, TINY, x)
        alphas = x[:, model.shapes]
        self.bends = bends(alphas, model.smooth_shapes)  # (3, sets, K)
        bins, samples = model.nominal.shape
        shifts = model.shape_shifts.reshape(2, len(model.shapes), bins * samples)
        content = model.nominal + (alphas @ shifts[0] + self.bends[0] @ shifts[1]).reshape(-1, bins, samples)
        self.slopes, self.curvatures, products = self.multipliers(x, order)
        self.content = content
        self.multiplier = products.reshape(self.sets, -1, samples)[:, model.channel_of_bins]
        self.multiply_groups(self.x)

    def multiply_groups(self, x: Array) -> None:
        """Multiply by the parameters of groups."""
        model, self.x = self.model, x
        self.factor = self.multiplier.copy()  # (sets, B, S)
        for layer in model.layers:
            own = self.x[:, model.group_parameters[layer], None]
            self.factor[:, model.group_bins[layer]] *= np.where(model.group_samples[layer], own, 1.0)
        self.parts = self.content * self.factor
        total = self.parts.sum(axis=2)
        self.total = np.where(np.abs(total) < NOTHING, 0.0, total)

    def multipliers(self, x: Array, order: int) -> tuple[Array, Array, Array]:
        """Return f' / f and f'' / f of what multiplies samples of channels, (scalars, sets, C * S), and the product of all f."""
        model, (_, norms, cells) = self.model, self.model.norm_logs.shape
        alphas = x[:, model.norms].T
        values = np.zeros((norms, 3, self.sets, cells))
        orders = 3 if order else 1
        if model.smooth_norms:
            powers = power_rows(alphas)[:, :orders].reshape(norms, orders * self.sets, 6)
            values[:, :orders] = (powers @ model.norm_coefficients).reshape(norms, orders, self.sets, cells)
            values[:, 0] += 1
        g, s = np.nonzero((np.abs(alphas) >= 1) | (not model.smooth_norms))
        own = alphas[g, s][:, None]
        rates = np.where(own >= 0, model.norm_logs[0, g], -model.norm_logs[1, g])
        power = np.exp(own * rates)
        values[g, 0, s], values[g, 1, s], values[g, 2, s] = power, rates * power, rates**2 * power
        factors = self.x[:, model.factors].T[:, :, None]
        used = model.factor_samples[:, None, :]
        product = np.where(used, factors, 1.0).prod(axis=0) * values[:, 0].prod(axis=0)
        if not order:
            return np.empty(0), np.empty(0), product
        slopes = np.concatenate([np.where(used, 1 / factors, 0.0), values[:, 1] / values[:, 0]])
        curvatures = np.concatenate([np.zeros((len(factors), self.sets, cells)), values[:, 2] / values[:, 0]])
        return slopes, curvatures, product

    @cached_property
    def row_parts(self) -> Array:
        """What the samples of each row expect, (sets, rows, S)."""
        bins, masks, _ = self.model.rows
        return np.asarray(self.parts[:, bins] * masks, np.float64)

    @cached_property
    def cell_slopes(self) -> Array:
        """f' / f by channel, (C, sets, S, scalars)."""
        slopes = self.slopes.reshape(len(self.slopes), self.sets, len(self.model.channels), -1)
        return np.ascontiguousarray(slopes.transpose(2, 1, 3, 0))

    @cached_property
    def row_bends(self) -> Array:
        """Derivatives of rows by the shifts' own functions of parameters, (2, sets, rows, K)."""
        model = self.model
        factor = self.factor[:, model.rows[0]].transpose(1, 0, 2)
        return (factor @ model.row_shifts).transpose(0, 2, 1, 3)

    @cached_property
    def jacobian(self) -> Array:
        """Derivatives of rows by the shared parameters, (sets, rows, shared)."""
        model = self.model
        total = np.zeros((self.sets, len(model.rows[0]), len(model.shared)))
        scalars, shapes = model.places
        for rows, slopes in zip(model.rows_of_channels, self.cell_slopes, strict=True):
            total[:, rows[:, None], scalars] = self.row_parts[:, rows] @ slopes
        steady, bent = self.row_bends
        total[:, :, shapes] += steady + self.bends[1][:, None] * bent
        return total

    @cached_property
    def group_slopes(self) -> Array:
        """Derivatives of the bin of each group by its parameter, (sets, Q)."""
        return self.slopes_of_groups(slice(None))

    def slopes_of_groups(self, groups: Integers | slice) -> Array:
        """Return derivatives of the bins of some groups by their parameters."""
        model = self.model
        samples = self.parts[:, model.group_bins[groups]] * model.group_samples[groups]
        return np.asarray(samples.sum(axis=2) / self.x[:, model.group_parameters[groups]], np.float64)

    def overlaps(self, one: Integers, other: Integers) -> Array:
        """Return second derivatives of bins by the parameters of pairs of groups that have samples in common."""
        model = self.model
        both = model.group_samples[one] & model.group_samples[other]
        common = (self.parts[:, model.group_bins[one]] * both).sum(axis=2)
        x, parameters = self.x, model.group_parameters
        return np.asarray(common / (x[:, parameters[one]] * x[:, parameters[other]]), np.float64)

    def gradient(self, slope: Array) -> Array:
        """Return first derivatives, where d(nll) / d(expected count) is ``slope`` (sets, B)."""
        model, count = self.model, slope.shape[1]
        total = np.zeros((self.sets, model.parameters))
        total[:, model.shared] = (slope[:, None] @ self.jacobian[:, :count])[:, 0]
        sums = model.group_sums
        total[:, sums.names] += sums(slope[:, model.group_bins] * self.group_slopes)
        return total

    def hessian(self, slope: Array, curvature: Array) -> Array:
        """Return second derivatives, where the first two d(nll) / d(expected count) are these, (sets, B)."""
        model, count = self.model, slope.shape[1]
        direct = self.jacobian[:, :count]
        total = np.zeros((self.sets, model.parameters, model.parameters))
        total[:, model.shared[:, None], model.shared] = direct.transpose(0, 2, 1) @ (
            curvature[:, :, None] * direct
        ) + self.mixed(slope)
        if not len(model.group_bins):
            return total
        bins, parameters = model.group_bins, model.group_parameters
        with_rows = (slope[:, bins] / self.x[:, parameters])[:, :, None] * self.jacobian[:, model.rows[2]]
        with_rows += (curvature[:, bins] * self.group_slopes)[:, :, None] * direct[:, bins]
        names, crossed = model.group_sums.names, model.group_sums(with_rows)
        total[:, names[:, None], model.shared] += crossed
        total[:, model.shared[:, None], names] += crossed.transpose(0, 2, 1)
        one, other, overlap = model.pairs
        both = curvature[:, bins[one]] * self.group_slopes[:, one] * self.group_slopes[:, other]
        a, b = one[overlap], other[overlap]
        both[:, overlap] += slope[:, bins[a]] * self.overlaps(a, b)
        order, sums = model.pair_sums
        total.reshape(self.sets, -1)[:, sums.names] += sums(both[:, order])
        return total

    def mixed(self, slope: Array) -> Array:
        """Return what second derivatives of expected counts by shared parameters add, (sets, shared, shared)."""
        model = self.model
        total = np.zeros((self.sets, len(model.shared), len(model.shared)))
        scalars, shapes = model.places
        weighted, moved = slope[:, :, None] * self.parts, slope[:, :, None] * self.factor
        sums = np.stack([weighted[:, c].sum(axis=1) for c in model.channels], axis=1)  # (sets, C, S)
        sums = sums.reshape(self.sets, -1, 1)
        slopes = self.cell_slopes.transpose(1, 0, 2, 3).reshape(self.sets, -1, len(scalars))
        products = slopes.transpose(0, 2, 1) @ (sums * slopes)
        diagonal = np.arange(len(scalars))
        products[:, diagonal, diagonal] = np.einsum("gsc,sc->sg", self.curvatures, sums[:, :, 0])
        total[:, scalars[:, None], scalars] += products
        if len(shapes):
            shifts = []
            for c in model.channels:  # over the bins of a channel, for each sample
                own = moved[:, c].transpose(2, 0, 1) @ model.shape_shifts[:, :, c].transpose(0, 3, 2, 1)
                shifts.append((own[0] + self.bends[1] * own[1]).transpose(1, 0, 2))
            crossed = np.concatenate(shifts, axis=1).transpose(0, 2, 1) @ slopes
            total[:, shapes[:, None], scalars] += crossed
            total[:, scalars[:, None], shapes] += crossed.transpose(0, 2, 1)
            bent = (slope[:, None] @ self.row_bends[1][:, : slope.shape[1]])[:, 0]
            total[:, shapes, shapes] += self.bends[2] * bent
        return total


def power_rows(alphas: Array) -> Array:
    """Return the powers 1 to 6 and their first two derivatives, (G, 3, sets, 6)."""
    rows = np.zeros((len(alphas), 3, alphas.shape[1], 6))
    value, first, second = rows[:, 0], rows[:, 1], rows[:, 2]
    np.cumprod(np.broadcast_to(alphas[:, :, None], value.shape), axis=2, out=value)
    first[:, :, 0] = 1.0
    first[:, :, 1:] = POWERS[1:] * value[:, :, :-1]
    second[:, :, 1] = 2.0
    second[:, :, 2:] = POWERS[2:] * first[:, :, 1:-1]
    return rows


def bends(alphas: Array, smooth: bool) -> Array:
    """Return what multiplies the difference of shifts, and its first two derivatives, (3, sets, K).

    Outside -1 to 1 it is 8 |alpha|, which makes the interpolation linear; inside it is a polynomial, or the same.
    """
    square = alphas**2
    inside = np.array(
        [
            square * (15 + square * (-10 + 3 * square)),
            alphas * (30 + square * (-40 + 18 * square)),
            30 + square * (-120 + 90 * square),
        ]
    )
    outside = np.array([8 * np.abs(alphas), 8 * np.where(alphas < 0, -1.0, 1.0), np.zeros_like(alphas)])
    return np.where((np.abs(alphas) < 1) & smooth, inside, outside)
