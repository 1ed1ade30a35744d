"""The record of an upper limit, and how it follows from formulas for many events or from toys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, isnan, nan, sqrt
from typing import Literal, NamedTuple

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import FitError
from morefit.intervals.asimov import asimov
from morefit.intervals.data_fits import DataFits, fit_data
from morefit.intervals.free_fits import TIE
from morefit.intervals.interval import bisect, crossing
from morefit.intervals.profile import local_cubic
from morefit.intervals.scan import Hypotheses, RatioToys
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.text.arguments import methods_in_sentences
from morefit.text.rounding import round_pdg

Statistic = Literal["q_tilde", "q"]
SIGMAS = (-2, -1, 0, 1, 2)  # of the background, for which limits are expected


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class UpperLimit(Frozen):
    """The upper limit of a parameter: its largest value with a p-value of at least 1 - level.

    ``p_signal`` (CLs+b) is the probability of data that fit the tested value as badly, if it is true; ``p_background``
    (CLb) is that if the parameter is 0. ``p_values`` is their ratio (CLs), or the first if ``cls`` is False. ``notes`` are
    reasons why the formulas are not exact here. Limits are
    nan if the largest tested value is not excluded, and the smallest tested value if all are. ``expected`` limits are
    those of background that fluctuates by -2 to 2 standard deviations; -1 to 1 and -2 to 2 are the bands.
    """

    name: str
    observed: float
    expected: tuple[float, ...]  # (5,)
    values: Array  # (K,), tested
    q: Array  # (K,), of the data
    p_signal: Array  # (K,)
    p_background: Array  # (K,)
    p_values: Array  # (K,), CLs, or CLs+b
    expected_p_values: Array  # (5, K)
    level: float
    cls: bool
    statistic: str
    best: float
    # of the observed limit and the expected ones, by the number of toys
    errors: tuple[float, ...] = (0.0,) * 6
    toys: int = 0  # at each value for each hypothesis
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = "CLs" if self.cls else "CLs+b"
        how = f"{self.toys} toys for each hypothesis" if self.toys else "asymptotic"
        lines = [f"upper limit of {self.name} at {100 * self.level:g} % by {what} of {self.statistic}, {how}"]
        labels = ["observed", *(f"expected, {n:+d} sigma" if n else "expected" for n in SIGMAS)]
        for label, limit, error in zip(labels, (self.observed, *self.expected), self.errors, strict=True):
            shown = " +- ".join(round_pdg(limit, error)) if error else f"{limit:.6g}"
            if isnan(error):
                shown = f"AT MOST {limit:.6g}, the smallest value that was tested"
            lines.append(f"  {label:<18} {'NOT REACHED' if isnan(limit) else shown}")
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, f"  best fit {self.best:.6g}", *notes])


class Options(NamedTuple):
    """What the p-values of a limit are made of."""

    level: float
    statistic: Statistic
    cls: bool


def ratio_of(signal: Array, background: Array, cls: bool) -> Array:
    """Return CLs, or CLs+b; a ratio to a probability of zero excludes nothing."""
    if not cls:
        return signal
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(background > 0, signal / background, 1.0)


class Curve(NamedTuple):
    """Twice the rise of the nll of data at values, from where they fit best; q is 0 below that."""

    values: Array
    t: Array
    centre: float

    @classmethod
    def of(cls, fits: DataFits, values: Array, statistic: Statistic) -> Curve:
        """Return that of fits at values, the first of which is 0; for q_tilde the centre is not below 0."""
        if statistic == "q_tilde" and fits.best < 0:
            return cls(values, fits.t - fits.t[0], 0.0)
        return cls(values, fits.t, fits.best)

    @property
    def q(self) -> Array:
        """The statistic at each value."""
        return np.where(self.values > self.centre, self.t, 0.0)

    def between(self, low: float, high: float) -> Callable[[float], float]:
        """Return the statistic between two neighbouring values, on a cubic through the points around them."""
        cubic = local_cubic(self.values, self.t, low, high)
        return lambda value: max(cubic(value), 0.0) if value > self.centre else 0.0


NAME = "upper_limit"
POINTS = 12  # of the first scan, and tested with toys
ROUNDS = 12  # of scans, each with points where limits were before
BEYOND = 1.25  # of the largest limit: how far toys test
EXACT = 1e-7  # of the range: limits that change by less are final
MEDIAN = 1 + SIGMAS.index(0)  # of the limits, the first of which is observed
# how much the Asimov likelihood rises up to the median limit, in units of the rise up to half of it: 4 for a parabola, 3.3 with
# 8 events of background, 2 with none
PARABOLA = 3.3
WIDTH = 4.0  # errors above the best fit that the first scan spans


class Asymptotic:
    """Limits by the formulas of Cowan, Cranmer, Gross and Vitells, with points where they are needed."""

    def __init__(self, likelihood: Term, best: FitResult, name: str, options: Options) -> None:
        self.likelihood, self.best, self.name, self.options = likelihood, best, name, options
        self.highest = best.limits[name][1]
        self.data_fits = fit_data(NAME, likelihood, best, name, np.zeros(1), progress=False)
        values, self.centre = self.data_fits.truths[0], self.data_fits.best
        self.expected = asimov(likelihood, values)
        lowest = replace(best, values=values, nll=float(self.expected.value(values)))
        self.expected_fits = fit_data(NAME, self.expected, lowest, name, np.zeros(1), progress=False)

    def run(self, points: Array | None) -> UpperLimit:
        """Scan the points, or as many as limits need."""
        data, expected = self.scan(self.first_points() if points is None else points)
        limits = self.limits(data, expected)
        tested = data, expected
        for _ in range(ROUNDS):
            new = self.more_points(data.values, limits, outward=points is None)
            if not len(new):
                break
            data, expected = self.scan(np.union1d(data.values, new))
            before, limits = limits, self.limits(data, expected)
            if np.all(np.abs(limits - before) <= EXACT * data.values[-1]):
                break
        if points is not None:
            data, expected = tested
        signal, background, p_values = self.tails(data.q, expected.q)
        return UpperLimit(
            name=self.name, observed=float(limits[0]), expected=tuple(limits[1:].tolist()), values=data.values, q=data.q,
            p_signal=signal, p_background=background, p_values=p_values, level=self.options.level, cls=self.options.cls,
            expected_p_values=np.array([self.band(n, expected.q) for n in SIGMAS]),
            statistic=self.options.statistic, best=self.centre, notes=tuple(self.notes(expected, float(limits[MEDIAN]))),
        )  # fmt: skip

    def notes(self, expected: Curve, median: float) -> Iterator[str]:
        """Yield reasons why the formulas do not hold."""
        fits = self.data_fits
        at_zero = fits.idle[[truth[self.name] for truth in fits.truths].index(0.0)]
        if idle := [n for n in at_zero if n in self.best.floating]:
            yield (
                f"the formulas do not hold, above all for expected limits, as without a signal there is no effect of {', '.join(idle)}:"
                " fix or constrain what has none, or use method='toys'"
            )
        at, half = (float(np.interp(x, expected.values, expected.t)) for x in (median, median / 2))
        if half > 0 and at / half < PARABOLA:
            yield "few events: the formulas are for many, and may be 10 % off or more; use method='toys'"

    def around(self) -> Array:
        """Return values up to somewhat above the limits, which toys test."""
        limits = self.run(None)
        ends = [x for x in (limits.observed, *limits.expected) if not isnan(x)]
        high = min(BEYOND * max(ends), self.highest) if ends else self.highest
        return np.linspace(0.0, high, POINTS + 1)

    def first_points(self) -> Array:
        error = self.best.errors[self.name]
        width = error if 0 < error < inf else 0.1 * self.highest
        high = min(max(self.best.values[self.name], 0.0) + WIDTH * width, self.highest)
        return np.linspace(0.0, high, POINTS)

    def more_points(self, values: Array, limits: Array, outward: bool) -> Array:
        """Return points further out if a limit was not reached there, or else the limits that are no points yet."""
        last = float(values[-1])
        if outward and np.isnan(limits).any() and last < self.highest:
            return np.linspace(last, min(2 * last, self.highest), POINTS)[1:]
        known = limits[~np.isnan(limits)]
        away = np.abs(known[:, None] - values).min(axis=1)
        return np.unique(known[away > EXACT * last])

    def scan(self, values: Array) -> tuple[Curve, Curve]:
        """Minimise the data and the Asimov data at all values, the first of which is 0."""
        fits, expected = (
            fit_data(NAME, term, self.best, self.name, values, progress=False, known=known)
            for term, known in ((self.likelihood, self.data_fits), (self.expected, self.expected_fits))
        )
        self.data_fits, self.expected_fits = fits, expected
        return Curve.of(fits, values, self.options.statistic), Curve(values, expected.t, 0.0)

    def tails(self, q: Array, q_expected: Array) -> tuple[Array, Array, Array]:
        """Return CLs+b, CLb, and CLs or CLs+b."""
        from scipy.special import erfcx, log_ndtr, ndtr  # type: ignore[import-untyped]  # slow

        root, spread = np.sqrt(q), np.sqrt(q_expected)
        far = (self.options.statistic == "q_tilde") & (root > spread)
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = q / (2 * spread)
            root = np.where(far & (spread > 0), middle + spread / 2, root)
            # both probabilities may be less than the smallest number, but their ratio is at most exp(-q / 2)
            scaled = erfcx(root / sqrt(2)) / erfcx((root - spread) / sqrt(2))
            ratio = np.exp(np.where(far, -q / 2, log_ndtr(-root) - log_ndtr(spread - root)))
            ratio = np.where(far & (0 < scaled) & (scaled <= 1), ratio * scaled, ratio)
        return ndtr(-root), ndtr(spread - root), ratio if self.options.cls else ndtr(-root)

    def band(self, sigmas: int, q_expected: Array) -> Array:
        """Return the p-values where the background fluctuates by this many standard deviations."""
        from scipy.special import ndtr

        spread = np.sqrt(q_expected)
        root = spread - sigmas  # below 0 where the best fit would be above the value
        return ratio_of(ndtr(-root), ndtr(spread - root), self.options.cls)

    def limits(self, data: Curve, expected: Curve) -> Array:
        """Return the observed limit and the expected ones: nan if not reached, the first value if all are excluded."""
        return np.array([self.limit(data, expected, sigmas) for sigmas in (None, *SIGMAS)])

    def limit(self, data: Curve, expected: Curve, sigmas: int | None) -> float:
        alpha, x = 1 - self.options.level, data.values

        def p_value(q: Array, q_expected: Array) -> Array:
            if sigmas is not None:
                return self.band(sigmas, q_expected)
            return self.tails(q, q_expected)[2]

        accepted = np.flatnonzero(p_value(data.q, expected.q) >= alpha)
        if not len(accepted):
            return float(x[0])
        if (inner := int(accepted[-1])) == len(x) - 1:
            return nan
        ends = float(x[inner]), float(x[inner + 1])
        q, q_expected = data.between(*ends), expected.between(*ends)
        return bisect(lambda v: bool(p_value(np.array(q(v)), np.array(q_expected(v))) >= alpha), *ends)


# ------------------------------------------------------------------------------------ toys


def both_hypotheses(fits: DataFits, name: str, values: Array, bound: float | None) -> Hypotheses:
    """Return toys with a signal at each value, then those without one, the same for all values; fits begin at 0."""
    count = len(values)
    return Hypotheses(
        name=name, values=np.tile(values, 2), truths=fits.truths[1:] + fits.truths[:1] * count,
        starts=fits.starts[1:] + fits.starts[:1] * count, idle=fits.idle[1:] * 2, bound=bound,
        shared_from=count, side="below",
    )  # fmt: skip


def from_toys(toys: RatioToys, fits: DataFits, values: Array, name: str, options: Options) -> UpperLimit:
    """Return the limit of toys: the first half of the hypotheses have the tested values, the others no signal."""
    if len(toys) < 2 * len(values):
        raise FitError(
            f"{NAME}: interrupted with {len(toys)} of {2 * len(values)} hypotheses, which give no limit; with save= the same"
            " call goes on"
        )
    q = Curve.of(fits, np.append(0.0, values), options.statistic).q[1:]
    # unknown t count as large with a signal and as small without, which makes limits high rather than low
    signal = np.sort(np.nan_to_num(toys.below[: len(values)], nan=inf), axis=1)
    background = np.sort(np.nan_to_num(toys.below[len(values) :], nan=-inf), axis=1)
    rows = list(expected_ratios(background))
    p_signal, p_background = (tail_fractions(t, [q, *rows]) for t in (signal, background))
    p = ratio_of(p_signal, p_background, options.cls)
    count = signal.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = ((1 - f) / (f * count) for f in (p_signal, p_background))
        errors = np.where(p_signal > 0, p * np.sqrt(one + (other if options.cls else 0.0)), 1 / count)
    ends = [toy_limit(values, row, error, 1 - options.level) for row, error in zip(p, errors, strict=True)]
    return UpperLimit(
        name=name, observed=ends[0][0], expected=tuple(x for x, _ in ends[1:]), values=values, q=q,
        p_signal=p_signal[0], p_background=p_background[0], p_values=p[0], expected_p_values=p[1:], level=options.level,
        cls=options.cls, statistic=options.statistic, best=fits.best, errors=tuple(e for _, e in ends), toys=count,
    )  # fmt: skip


def expected_ratios(background: Array) -> Iterator[Array]:
    """Yield the t that background has at each value where it fluctuates by -2 to 2 standard deviations."""
    from scipy.special import ndtr

    for sigmas in SIGMAS:
        index = int(
            np.clip(np.ceil(float(ndtr(-sigmas)) * background.shape[1]) - 1, 0, background.shape[1] - 1)
        )
        yield background[:, index]


def tail_fractions(ordered: Array, rows: list[Array]) -> Array:
    """Return the fraction of toys of each value with at least the t of each row, (rows, K)."""
    count = ordered.shape[1]
    return np.array(
        [[1 - np.searchsorted(t, x - TIE) / count for t, x in zip(ordered, row, strict=True)] for row in rows]
    )


def toy_limit(values: Array, p: Array, errors: Array, alpha: float) -> tuple[float, float]:
    """Return where the p-value crosses alpha, on a line in its logarithm, and the error of that."""
    accepted = np.flatnonzero(p >= alpha)
    if not len(accepted):
        return float(values[0]), nan
    if (inner := int(accepted[-1])) == len(values) - 1:
        return nan, nan
    floor = np.maximum(p, errors)  # no toy may be so far out
    heights, spread = np.log(alpha / floor), errors / floor
    ends = [(float(values[k]), float(heights[k]), float(spread[k])) for k in (inner, inner + 1)]
    where = crossing(ends[0], ends[1])
    return where.value, where.error
