"""The arrays of a model whose bins expect sums of samples with modifiers, and what they expect.

Bin b of a channel expects the sum over samples s of (nominal + shifts) * factors. The likelihood of counts and its derivatives
are computed from the same arrays by compiled code (``kernel/counts_program.py``), one program for all models.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.kernel.counts_layout import NOTHING, TINY

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
