"""Intervals for parameters: Feldman-Cousins belts, profiles, contours and the bootstrap, minimised in batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import erf, inf, isfinite, log, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.backend import Array, Events
from morefit.errors import DataError, FitError
from morefit.fit import FitResult, fit
from morefit.fit.newton import Flags, Minima, Sets, minimise
from morefit.fit.result import Column, suggest, text_table
from morefit.fit.rounding import round_pdg
from morefit.likelihood import AnyLikelihood, Evaluation, JointLikelihood, Likelihood, unpack
from morefit.pipeline import Bound, compile_sums

GOAL = 1e-6  # distance to the minimum: small against the 0.5 that makes one standard deviation
LOWER = 10 * GOAL  # than the best fit: a point so much lower is the better minimum
TOLERANCE = GOAL / 0.001  # the same for Minuit
LARGEST_LAUNCH = (
    2e8  # events times sets at once, about a second: Ctrl-C is heard and the bar moves in between
)
BLOCK_BYTES = 64 << 20  # of weights at once
WIDTH = 3.0  # standard deviations that a profile spans to each side unless told
MARGIN = 1.25  # how far a contour's grid goes beyond the outermost level of a parabola
APART = 1e-3  # of the spacing: closer points say nothing new, and spoil an interpolation
HALVINGS = 60
SECONDS_UNSHOWN = 1.0  # a bar for less would only flicker

LENGTHEN = 2.0  # of background, in which an upper end is looked for that is higher than the own one
BACKGROUND_STEP = 0.005
ZOOMS, ZOOM = 3, 64


# ------------------------------------------------------------------------------------ Feldman and Cousins


def feldman_cousins_poisson(
    n: int, background: float, level: float = 0.9, *, non_increasing: bool = True
) -> tuple[float, float]:
    """Return the interval of Feldman and Cousins for a Poisson signal over a known background.

    physics/9711021: n is accepted for a signal if the counts that come before it, ordered by their likelihood
    ratio to the best signal that is not negative, have a probability below ``level``. The interval goes from the
    lowest such signal to the highest. As counts are whole, that highest one jumps up here and there as the
    background grows; with ``non_increasing`` the interval is lengthened to what a larger background would give,
    as in the published tables.
    """
    check_level("feldman_cousins_poisson", level)
    if n != int(n) or n < 0:
        raise DataError(f"feldman_cousins_poisson: n must be a whole number from 0, got {n}")
    if not (background >= 0 and isfinite(background)):
        raise DataError(f"feldman_cousins_poisson: background must be at least 0, got {background}")
    low = lower_end(int(n), float(background), level)
    find = longest_upper_end if non_increasing else single_upper_end
    return low, find(int(n), float(background), level)


def feldman_cousins_gaussian(x: float, level: float = 0.9, low: float = 0.0) -> tuple[float, float]:
    """Return the interval of Feldman and Cousins for a mean that is at least ``low``; ``x`` has unit error.

    The likelihood ratio is to the best mean from ``low``. The values of x that come before the one observed
    lie between it and the point of equal ratio on the other side of the mean.
    """
    check_level("feldman_cousins_gaussian", level)
    if not (isfinite(x) and isfinite(low)):
        raise DataError(f"feldman_cousins_gaussian: x and low must be finite, got {x} and {low}")
    y = x - low
    z = two_sided(level)
    bottom = 0.0
    if y > 0 and normal_cdf(y) > level:
        bottom = bisect(lambda mu: between_below(y, mu) > level, 0.0, y)
    top = y + z if y >= 0 else bisect(lambda mu: between_above(y, mu) < level, 0.0, z + 1)
    return low + bottom, low + top


def between_below(x: float, mu: float) -> float:
    """Return the probability between x > mu and the point of equal ratio below mu."""
    other = 2 * mu - x if 2 * mu >= x else (x - x * x / (2 * mu) if mu > 0 else -inf)
    return normal_cdf(x - mu) - normal_cdf(other - mu)


def between_above(x: float, mu: float) -> float:
    """Return the probability between x < 0 and the point of equal ratio above mu."""
    return normal_cdf(sqrt(mu * mu - 2 * x * mu)) - normal_cdf(x - mu)


def normal_cdf(x: float) -> float:
    return 0.5 * (1 + erf(x / sqrt(2)))


def bisect(left: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition that holds at ``low`` ceases to hold."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) else (low, middle)
    return 0.5 * (low + high)


def offsets(counts: Array, background: Array) -> Array:
    """Return c of the log ratio c + k ln(total) - total of each count k, for a total of signal and background."""
    from scipy.special import xlogy  # type: ignore[import-untyped]  # slow, and only these intervals need it

    best = np.maximum(counts, background)
    return np.asarray(best - xlogy(counts, best), np.float64)


def probability(first: Array, last: Array, total: Array) -> Array:
    """Return the probability of the counts from ``first`` to ``last``; 0 if there are none."""
    from scipy.special import gammaincc

    below = np.where(first > 0, gammaincc(np.maximum(first, 1.0), total), 0.0)
    return np.where(last >= first, gammaincc(last + 1.0, total) - below, 0.0)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Ranges of the total in which the counts that come before n are the same: from ``first`` to ``last``."""

    low: Array
    high: Array
    first: Array
    last: Array

    def at(self, total: Array) -> Array:
        return probability(self.first, self.last, total)

    def accepting(self, level: float) -> Flags:
        """Say which pieces accept n somewhere: in a piece the probability has one maximum, so at an end."""
        some = (self.at(self.low) < level) | (self.at(self.high) < level)
        return some & (self.high > self.low)

    def pick(self, where: tuple[NDArray[np.int64], ...]) -> Pieces:
        full = np.broadcast_arrays(self.low, self.high, self.first, self.last)
        return Pieces(*(array[where] for array in full))

    def boundary(self, level: float, *, upper: bool) -> Array:
        """Return the highest (or lowest) total of each piece that accepts n."""
        inner, outer = (self.low, self.high) if upper else (self.high, self.low)
        at_end = self.at(outer) < level
        end = outer
        for _ in range(HALVINGS):
            middle = 0.5 * (inner + outer)
            accepts = self.at(middle) < level
            inner, outer = np.where(accepts, middle, inner), np.where(accepts, outer, middle)
        return np.where(at_end, end, 0.5 * (inner + outer))


def swaps(n: int, counts: Array, background: Array) -> Array:
    """Return the totals at which n and other counts have the same ratio: from there on the larger one leads."""
    mine = offsets(np.array(float(n)), background)
    return np.exp((mine - offsets(counts, background)) / (counts - n))


def upper_ends(n: int, backgrounds: Array, level: float) -> Array:
    """Return the highest signal that accepts n, for many backgrounds.

    The counts before n < total are n + 1, n + 2, ... up to one that changes at swaps only.
    """
    least = backgrounds[:, None]
    reach = two_sided(level) + 4  # standard deviations: beyond, n is not accepted
    top = max(float(n), float(least.max()))
    for _ in range(2):  # to the last total of interest, and to the last count of interest for it
        top += reach * sqrt(top) + reach**2
    counts = np.arange(n + 1.0, top + 2)[None, :]
    ends = swaps(n, counts, least)
    low = np.maximum(np.concatenate([np.zeros_like(least), ends[:, :-1]], axis=1), least)
    pieces = Pieces(low, np.maximum(ends, low), np.array(n + 1.0), counts - 1)
    accepting = pieces.accepting(level)
    last = accepting.shape[1] - 1 - np.argmax(accepting[:, ::-1], axis=1)
    chosen = pieces.pick((np.arange(len(last)), last))
    ends = chosen.boundary(level, upper=True) - backgrounds
    return np.where(accepting.any(axis=1), ends, 0.0)  # no signal at all accepts every count below


def single_upper_end(n: int, background: float, level: float) -> float:
    return float(upper_ends(n, np.array([background]), level)[0])


def longest_upper_end(n: int, background: float, level: float) -> float:
    """Return the largest upper end for this background or any larger one.

    It jumps up about once in each unit of background, by less and less, so that two units are enough. Between
    jumps it falls: the largest is looked for on a grid, then on finer and finer ones around it.
    """
    low, high = background, background + LENGTHEN
    grid = np.linspace(low, high, round(LENGTHEN / BACKGROUND_STEP) + 1)
    longest = 0.0
    for _ in range(ZOOMS + 1):
        ends = upper_ends(n, grid, level)
        best = int(np.argmax(ends))
        longest = max(longest, float(ends[best]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        grid = np.linspace(low, high, ZOOM)
    return longest


def lower_end(n: int, background: float, level: float) -> float:
    """Return the lowest signal that accepts n. The counts before n > total are m, ..., n - 1."""
    if n <= background:
        return 0.0  # at no signal, no count comes before n
    least = np.array([background])
    counts = np.arange(float(n))
    ends = swaps(n, counts, least)
    low = np.maximum(np.concatenate([[0.0], ends[:-1]]), least)
    pieces = Pieces(low, np.maximum(ends, low), counts, np.array(n - 1.0))
    accepting = np.flatnonzero(pieces.accepting(level))
    if not len(accepting):  # only from the last swap on, where no count comes before n
        return max(float(ends[-1]) - background, 0.0)
    return float(pieces.pick((accepting[:1],)).boundary(level, upper=False)[0]) - background


def check_level(what: str, level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"{what}: level must lie between 0 and 1, got {level}")


def two_sided(level: float) -> float:
    """Return the standard deviations within which a Gaussian has this probability."""
    return NormalDist().inv_cdf(0.5 * (1 + level))


# ------------------------------------------------------------------------------------ progress


class Bar:
    """A progress bar on a terminal's standard error: it appears after a second and vanishes at the end."""

    def __init__(self, what: str, total: int, shown: bool) -> None:
        self.what, self.total, self.shown = what, total, shown and sys.stderr.isatty()
        self.begin = time.monotonic()
        self.progress: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.stop()

    def done(self, count: int) -> None:
        """Say how many of all are done."""
        if not self.shown or time.monotonic() - self.begin < SECONDS_UNSHOWN:
            return
        if self.progress is None:
            self.start()
        self.progress.update(0, completed=count)

    def start(self) -> None:
        from rich.console import Console  # slow imports, for long jobs only
        from rich.progress import Progress

        self.progress = Progress(console=Console(stderr=True), transient=True)
        self.progress.add_task(self.what, total=self.total)
        self.progress.start()


# ------------------------------------------------------------------------------------ minimising the rest


def best_fit(what: str, likelihood: AnyLikelihood, best: FitResult | None) -> FitResult:
    """Return the fit to start from: that given, or one made now, which must be valid."""
    if best is None:
        best = fit(likelihood)
        if not best.valid:
            raise FitError(
                f"{what}: the fit to start from is not valid ({'; '.join(best.reasons)}); pass a better one as best"
            )
    names = {p.name for p in likelihood.all_parameters}
    if set(best.names) != names or not set(best.floating) <= {p.name for p in likelihood.parameters}:
        raise FitError(f"{what}: best must be a fit of this likelihood, got one of {', '.join(best.names)}")
    return refined(likelihood, best)


def refined(likelihood: AnyLikelihood, best: FitResult) -> FitResult:
    """Take the last steps to the minimum: a fit may stop where the nll is still 1e-4 too high."""
    held = Held(likelihood, best, (), np.empty((1, 0)), Bar("", 1, False))
    held.attempt(np.array([0]), held.others)
    if not held.valid[0] or held.nll[0] > best.nll:
        return best
    values = {**best.values, **dict(zip(held.rest, held.others[0].tolist(), strict=True))}
    return replace(best, values=values, nll=float(held.nll[0]))


def check_floating(what: str, best: FitResult, *names: str) -> None:
    wrong = [n for n in names if n not in best.floating]
    if wrong:
        listed = ", ".join(f"'{n}': {suggest(n, best.floating)}" for n in wrong)
        raise FitError(f"{what}: needs floating parameters, got {listed}")
    if len(set(names)) < len(names):
        raise FitError(f"{what}: needs two different parameters, got '{names[0]}' twice")


def check_points(what: str, best: FitResult, name: str, points: Array) -> None:
    low, high = best.limits[name]
    if points.ndim != 1 or not len(points) or not np.all((points >= low) & (points <= high)):
        got = f"{points.min():.6g} to {points.max():.6g}" if points.size else "none"
        raise FitError(f"{what}: values of '{name}' must be a list of numbers in [{low}, {high}], got {got}")


def span(what: str, best: FitResult, name: str, width: float, size: int) -> Array:
    """Return values around the best one, so many errors to each side, inside the limits."""
    if size < 2:
        raise FitError(f"{what}: size must be at least 2, got {size}")
    value, error = best.values[name], best.errors[name]
    if not (isfinite(error) and error > 0):
        raise FitError(
            f"{what}: parameter '{name}' has no error to scale the range by; pass values or bounds"
        )
    low, high = best.limits[name]
    return np.linspace(max(value - width * error, low), min(value + width * error, high), size)


class Held:
    """A likelihood with some parameters held at B points, to be minimised over the floating rest."""

    def __init__(
        self, likelihood: AnyLikelihood, best: FitResult, names: Sequence[str], points: Array, bar: Bar
    ) -> None:
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        rows = {p.name: k for k, p in enumerate(likelihood.parameters)}
        self.likelihood, self.best, self.names, self.points, self.bar = likelihood, best, names, points, bar
        self.rest = tuple(n for n in best.floating if n not in names)
        self.columns = [places[n] for n in self.rest]
        self.rows = [rows[n] for n in self.rest]
        self.limits = np.array([best.limits[n] for n in self.rest]).reshape(-1, 2)
        self.full = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(points), 1))
        self.full[:, [places[n] for n in names]] = points
        self.nll = np.full(len(points), nan)
        self.others = np.tile([best.values[n] for n in self.rest], (len(points), 1))
        self.valid = np.zeros(len(points), bool)

    def minimise(self) -> None:
        """Minimise all points together; then what failed from elsewhere, and at last by Minuit."""
        everyone = np.arange(len(self.points))
        if not self.rest:
            self.evaluate_only(everyone)
            return
        self.attempt(everyone, self.predicted())
        self.attempt(self.failed, self.others[self.failed])
        while len(self.failed) and self.valid.any():
            before = len(self.failed)
            self.attempt(self.failed, self.others[self.nearest(self.failed)])
            if len(self.failed) == before:
                break
        for k in self.failed:
            self.by_minuit(int(k))

    @property
    def failed(self) -> Sets:
        return np.flatnonzero(~self.valid)

    def lowest(self) -> tuple[Array, float]:
        """Return where the nll is lowest and how low: at the best fit, or at a point that is clearly lower."""
        nll = np.where(self.valid, self.nll, inf)
        k = int(np.argmin(nll))
        if nll[k] < self.best.nll - LOWER:
            return self.points[k], float(nll[k])
        return np.array([self.best.values[n] for n in self.names]), self.best.nll

    def predicted(self) -> Array:
        """Return where a parabola with the covariance of the best fit has the minima."""
        start = self.others.copy()
        both = self.best.covariance_of(*self.names, *self.rest)
        if np.isfinite(both).all():
            count = len(self.names)
            away = self.points - [self.best.values[n] for n in self.names]
            start += away @ np.linalg.solve(both[:count, :count], both[:count, count:])
        return np.asarray(np.clip(start, self.limits[:, 0], self.limits[:, 1]), np.float64)

    def nearest(self, sets: Sets) -> Sets:
        """Return the valid point nearest to each of some points."""
        scale = np.ptp(self.points, axis=0)
        scaled = self.points / np.where(scale > 0, scale, 1.0)
        good = np.flatnonzero(self.valid)
        away = np.sum((scaled[sets, None, :] - scaled[None, good, :]) ** 2, axis=2)
        return np.asarray(good[np.argmin(away, axis=1)], np.int64)

    def attempt(self, sets: Sets, start: Array) -> None:
        """Minimise some points from where they are told to start, and keep what is valid."""
        if not len(sets):
            return
        found = minimise(lambda which, x: self.evaluate(sets[which], x), start, self.limits, GOAL)
        good = sets[found.valid]
        self.nll[good], self.others[good] = found.nll[found.valid], found.x[found.valid]
        self.valid[good] = True

    def evaluate(self, sets: Sets, x: Array) -> Evaluation:
        """Evaluate with the derivatives of the rest, a part of the sets after another if there are many."""
        self.bar.done(len(self.points) - len(sets))
        full = self.full[sets]
        full[:, self.columns] = x
        return cut(evaluate_in_parts(self.likelihood, full), self.rows)

    def evaluate_only(self, sets: Sets) -> None:
        found = evaluate_in_parts(self.likelihood, self.full[sets], order=0)
        self.nll[sets], self.valid[sets] = found.value, (found.bad == 0) & np.isfinite(found.value)

    def by_minuit(self, k: int) -> None:
        """Minimise one point with Minuit; keep what it found also if it is not valid."""
        start = self.others[self.nearest(np.array([k]))[0]] if self.valid.any() else self.others[k]
        names = [p.name for p in self.likelihood.all_parameters]
        fixed = {n: self.full[k, i] for i, n in enumerate(names) if n not in self.rest}
        found = try_minuit(self.likelihood, dict(zip(self.rest, start, strict=True)), fixed, self.best)
        if found is not None:
            self.nll[k], self.valid[k] = found.nll, found.valid
            self.others[k] = [found.values[n] for n in self.rest]


def try_minuit(
    likelihood: AnyLikelihood, start: dict[str, float], fixed: dict[str, float], best: FitResult
) -> FitResult | None:
    """Return what Minuit finds, or None where it cannot even start."""
    limits = {n: best.limits[n] for n in start}
    try:
        return fit(likelihood, start=start, fixed=fixed, limits=limits, tolerance=TOLERANCE)
    except FitError:
        return None


def evaluate_in_parts(likelihood: AnyLikelihood, full: Array, order: int = 2) -> Evaluation:
    """Evaluate many sets, no more at once than take about a second."""
    most = max(1, int(LARGEST_LAUNCH / max(likelihood.events, 1)))
    found = [likelihood.evaluate_full(full[i : i + most], order) for i in range(0, len(full), most)]
    return found[0] if len(found) == 1 else joined(found)


def joined(parts: Sequence[Evaluation]) -> Evaluation:
    return Evaluation(
        np.concatenate([p.value for p in parts]),
        np.concatenate([p.gradient for p in parts]),
        np.concatenate([p.hessian for p in parts]),
        np.concatenate([p.bad for p in parts]),
    )


def cut(found: Evaluation, rows: list[int]) -> Evaluation:
    """Keep the derivatives by some of the parameters."""
    return Evaluation(found.value, found.gradient[:, rows], found.hessian[:, rows][:, :, rows], found.bad)


def freeze(record: Any) -> None:
    """Make every array of a record a read-only copy."""
    for one in fields(record):
        content = getattr(record, one.name)
        if isinstance(content, np.ndarray):
            copy = content.copy()
            copy.flags.writeable = False
            object.__setattr__(record, one.name, copy)


def rebuilt(record: Any) -> tuple[Any, ...]:
    """Say how to pickle a record, so that its arrays are read-only afterwards as well."""
    return type(record), tuple(getattr(record, one.name) for one in fields(record))


# ------------------------------------------------------------------------------------ profile


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """The nll as a function of one parameter, minimised over the others at each of its values.

    Where ``valid`` is False no minimum was found: ``nll`` is the lowest value seen, or nan, and intervals do not
    use the point. ``minimum`` is the lowest nll, of the best fit or of a valid point if one is lower.
    """

    name: str
    values: Array  # (B,), ascending
    nll: Array  # (B,)
    names: tuple[str, ...]  # the other floating parameters
    others: Array  # (B, R), where they have their minimum
    valid: Flags  # (B,)
    best: float
    minimum: float
    limits: tuple[float, float]

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def delta(self) -> Array:
        """How far the nll is above its minimum: 0.5 at one standard deviation, 2 at two."""
        return self.nll - self.minimum

    def interval(self, level: float = 0.6827) -> tuple[float, float]:
        """Return where the nll has risen by half the squared quantile of ``level`` to each side of the minimum.

        A side on which it does not rise so far ends at the limit of the parameter, if the profile goes up to it,
        and is nan if not: then scan further.
        """
        check_level("profile", level)
        x, delta = self.curve()
        above = delta - 0.5 * two_sided(level) ** 2
        centre = int(np.flatnonzero(x == self.best)[0])
        low = first_crossing(x[centre::-1], above[centre::-1], x, above, self.limits[0])
        high = first_crossing(x[centre:], above[centre:], x, above, self.limits[1])
        return low, high

    def curve(self) -> tuple[Array, Array]:
        """Return the valid points and the minimum, in order; points as good as at the minimum give way to it."""
        near = APART * np.ptp(self.values) / max(len(self.values) - 1, 1)
        kept = self.valid & (np.abs(self.values - self.best) > near)
        x = np.append(self.values[kept], self.best)
        delta = np.append(self.delta[kept], 0.0)
        order = np.argsort(x)
        return x[order], delta[order]

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        lines = [f"profile of {self.name}: {len(self.values)} points, {verdict}, minimum at {self.best:.8g}"]
        for level in (0.6827, 0.9545):
            low, high = self.interval(level)
            lines.append(f"  {100 * level:g} %: [{self.side(low)}, {self.side(high)}]")
        return "\n".join(lines)

    def side(self, end: float) -> str:
        """Write one end of an interval."""
        if np.isnan(end):
            return "NOT REACHED"
        return f"{end:.8g}" + (" (limit)" if end in self.limits else "")

    __repr__ = __str__


def first_crossing(walk: Array, rise: Array, x: Array, above: Array, limit: float) -> float:
    """Return where a walk from the minimum first comes above zero: nan if never, unless it ends at a limit."""
    beyond = np.flatnonzero(rise > 0)
    if not len(beyond):
        return limit if walk[-1] == limit else nan
    inner, outer = float(walk[beyond[0] - 1]), float(walk[beyond[0]])
    cubic = local_cubic(x, above, inner, outer)
    return bisect(lambda v: cubic(v) <= 0, inner, outer)


def local_cubic(x: Array, y: Array, one: float, other: float) -> Callable[[float], float]:
    """Return the polynomial through the four points around two neighbours, fewer if there are not so many."""
    left = int(np.searchsorted(x, min(one, other)))
    start = max(min(left - 1, len(x) - 4), 0)
    nodes, heights = x[start : start + 4], y[start : start + 4]
    width = abs(other - one)
    scaled = (nodes - one) / width
    coefficients = np.linalg.solve(np.vander(scaled), heights)
    return lambda v: float(np.polyval(coefficients, (v - one) / width))


def profile(
    likelihood: AnyLikelihood,
    name: str,
    values: ArrayLike | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    size: int = 31,
    best: FitResult | None = None,
    progress: bool = True,
) -> Profile:
    """Minimise a likelihood over all other floating parameters at values of one, all together.

    The values are those given, or ``size`` from ``bounds[0]`` to ``bounds[1]``, or as many within three errors of
    the best fit. ``best`` is that fit, if it is known already; parameters that were fixed in it stay fixed.
    """
    best = best_fit("profile", likelihood, best)
    check_floating("profile", best, name)
    points = chosen_values(best, name, values, bounds, size)
    check_points("profile", best, name, points)
    with Bar(f"profile of {name}", len(points), progress) as bar:
        held = Held(likelihood, best, (name,), points[:, None], bar)
        held.minimise()
    (centre,), minimum = held.lowest()
    limits = best.limits[name]
    return Profile(name, points, held.nll, held.rest, held.others, held.valid, float(centre), minimum, limits)


def chosen_values(
    best: FitResult, name: str, values: ArrayLike | None, bounds: tuple[float, float] | None, size: int
) -> Array:
    """Return the values to scan, in order and each once."""
    if values is not None:
        if bounds is not None:
            raise FitError("profile: takes values or bounds, not both")
        return np.unique(np.asarray(values, np.float64))
    if bounds is None:
        return np.unique(span("profile", best, name, WIDTH, size))
    if size < 2 or not bounds[0] < bounds[1]:
        raise FitError(f"profile: needs bounds (low, high) and a size of at least 2, got {bounds} and {size}")
    return np.linspace(*bounds, size)


# ------------------------------------------------------------------------------------ contours

# A crossing of the level lies on an edge of the grid: from a node, one step in x or in y.
Edge = tuple[int, int, bool]  # (i, j, whether it goes in x)

# Corners above the level, counted 1, 2, 4, 8 around a cell -> pairs of its edges to connect. Edges are counted
# around it as well, each after its corner.
SEGMENTS: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 0),), 2: ((0, 1),), 3: ((3, 1),), 4: ((1, 2),), 6: ((0, 2),), 7: ((3, 2),),
    8: ((2, 3),), 9: ((0, 2),), 11: ((1, 2),), 12: ((1, 3),), 13: ((0, 1),), 14: ((3, 0),),
}  # fmt: skip
# Two opposite corners are above: the middle of the cell decides whether they belong together.
ROUND_EVEN, ROUND_ODD = ((3, 0), (1, 2)), ((0, 1), (2, 3))


@dataclass(frozen=True, eq=False, repr=False)
class Contour:
    """The nll as a function of two parameters on a grid, minimised over the others at each node.

    Where ``valid`` is False no minimum was found, and lines leave out the cells around the node.
    """

    x_name: str
    y_name: str
    x: Array  # (I,), ascending
    y: Array  # (J,), ascending
    nll: Array  # (I, J)
    names: tuple[str, ...]  # the other floating parameters
    others: Array  # (I, J, R)
    valid: Flags  # (I, J)
    best: tuple[float, float]
    minimum: float
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def delta(self) -> Array:
        """How far the nll is above its minimum."""
        return self.nll - self.minimum

    def lines(self, level: float) -> list[Array]:
        """Return the lines, each (points, 2), on which a region of this probability in two dimensions ends.

        A closed line ends with its first point; an open one ends at the border of the grid or at invalid nodes.
        """
        check_level("contour", level)
        # The root of a parabola is straight, so it is what linear interpolation suits.
        height = np.sqrt(np.clip(np.where(self.valid, self.delta, nan), 0, None)) - sqrt(-log(1 - level))
        points = {}
        pairs: list[tuple[Edge, Edge]] = []
        for one, other in crossings(height):
            points[one], points[other] = self.place(height, one), self.place(height, other)
            pairs.append((one, other))
        return [np.array([points[edge] for edge in chain]) for chain in chains(pairs)]

    def place(self, height: Array, edge: Edge) -> tuple[float, float]:
        """Return where an edge is crossed."""
        i, j, along_x = edge
        k, m = (i + 1, j) if along_x else (i, j + 1)
        t = height[i, j] / (height[i, j] - height[k, m])
        return (
            float(self.x[i] + t * (self.x[k] - self.x[i])),
            float(self.y[j] + t * (self.y[m] - self.y[j])),
        )

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        grid = f"{len(self.x)} x {len(self.y)} points"
        lines = [f"contour of {self.x_name} and {self.y_name}: {grid}, {verdict}"]
        for level in self.levels:
            found = self.lines(level)
            ends = sum(not np.array_equal(line[0], line[-1]) for line in found)
            lines.append(
                f"  {100 * level:g} %: {len(found)} line{'s' * (len(found) != 1)}"
                + (f", {ends} OPEN" if ends else "")
            )
        return "\n".join(lines)

    __repr__ = __str__


def crossings(height: Array) -> Iterator[tuple[Edge, Edge]]:
    """Go through the pieces of line between edges of cells: marching squares."""
    corners = (height[:-1, :-1], height[1:, :-1], height[1:, 1:], height[:-1, 1:])
    kind = sum(((c > 0) << k for k, c in enumerate(corners)), np.zeros(corners[0].shape, np.int64))
    known = np.isfinite(sum(corners, np.zeros(corners[0].shape)))
    middle = sum(corners, np.zeros(corners[0].shape)) > 0
    for i, j in np.argwhere(known & (kind > 0) & (kind < 15)).tolist():
        edges: tuple[Edge, ...] = ((i, j, True), (i + 1, j, False), (i, j + 1, True), (i, j, False))
        for one, other in segments(int(kind[i, j]), bool(middle[i, j])):
            yield edges[one], edges[other]


def segments(kind: int, middle: bool) -> tuple[tuple[int, int], ...]:
    """Return which edges of a cell to connect."""
    if kind == 5:
        return ROUND_ODD if middle else ROUND_EVEN
    if kind == 10:
        return ROUND_EVEN if middle else ROUND_ODD
    return SEGMENTS[kind]


def chains(pairs: Sequence[tuple[Edge, Edge]]) -> Iterator[list[Edge]]:
    """Join pairs that share an edge to lines: first the open ones, from an end, then the closed ones."""
    neighbours: dict[Edge, list[Edge]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    ends = [edge for edge, near in neighbours.items() if len(near) == 1]
    for start in (*ends, *neighbours):
        if neighbours[start]:
            yield walk_along(neighbours, start)


def walk_along(neighbours: dict[Edge, list[Edge]], start: Edge) -> list[Edge]:
    """Follow a line from an edge, taking away what was followed."""
    chain = [start]
    while neighbours[chain[-1]]:
        here = chain[-1]
        there = neighbours[here].pop()
        neighbours[there].remove(here)
        chain.append(there)
    return chain


def contour(
    likelihood: AnyLikelihood,
    x: str,
    y: str,
    *,
    levels: Sequence[float] = (0.6827, 0.9545),
    bounds: tuple[tuple[float, float], tuple[float, float]] | None = None,
    size: int = 31,
    best: FitResult | None = None,
    progress: bool = True,
) -> Contour:
    """Minimise a likelihood over all other floating parameters on a grid in two, all nodes together.

    ``levels`` are probabilities of regions in two dimensions; the grid holds the outermost one if the nll is
    about a parabola, unless ``bounds`` of x and of y are given. ``best`` is as for ``profile``.
    """
    if not levels:
        raise DataError("contour: needs at least one level, got none")
    for level in levels:
        check_level("contour", level)
    best = best_fit("contour", likelihood, best)
    check_floating("contour", best, x, y)
    axes = [axis(best, name, k, max(levels), bounds, size) for k, name in enumerate((x, y))]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    with Bar(f"contour of {x} and {y}", len(points), progress) as bar:
        held = Held(likelihood, best, (x, y), points, bar)
        held.minimise()
    centre, minimum = held.lowest()
    shape = (len(axes[0]), len(axes[1]))
    return Contour(
        x, y, axes[0], axes[1], held.nll.reshape(shape), held.rest, held.others.reshape(*shape, -1),
        held.valid.reshape(shape), (float(centre[0]), float(centre[1])), minimum, tuple(levels),
    )  # fmt: skip


def axis(
    best: FitResult, name: str, k: int, level: float,
    bounds: tuple[tuple[float, float], tuple[float, float]] | None, size: int,
) -> Array:  # fmt: skip
    """Return the values of one parameter on the grid."""
    if bounds is None:
        points = span("contour", best, name, MARGIN * sqrt(-2 * log(1 - level)), size)
    elif size < 2 or not bounds[k][0] < bounds[k][1]:
        raise FitError(
            f"contour: needs bounds ((low, high), (low, high)) and a size of at least 2, got {bounds}"
        )
    else:
        points = np.linspace(*bounds[k], size)
    check_points("contour", best, name, points)
    return points


# ------------------------------------------------------------------------------------ bootstrap

# Thresholds of the cumulative probabilities of a Poisson count of mean 1, for 64 random bits.
POISSON = np.array(
    [
        int(p * 2.0**64) if p < 1 else 2**64 - 1
        for p in np.exp(-1.0) * np.cumsum(1 / np.cumprod([1, *range(1, 18)]))
    ],
    np.uint64,
)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """The minima of B replicas of a dataset, each event of which counts a Poisson number of times (mean 1).

    ``errors`` and ``covariance`` are those of the valid replicas; nan if there are fewer than two. Weights of the
    dataset are kept, constraints stay where they are.
    """

    names: tuple[str, ...]
    best: Array  # (P,), of the data themselves
    values: Array  # (B, P)
    nll: Array  # (B,)
    valid: Flags  # (B,)
    seed: int

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def covariance(self) -> Array:
        """The covariance of the values, (P, P)."""
        good = self.values[self.valid]
        if len(good) < 2:
            return np.full((len(self.names), len(self.names)), nan)
        return np.cov(good, rowvar=False).reshape(len(self.names), len(self.names))

    @property
    def errors(self) -> Array:
        """The standard deviations of the values, (P,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), np.float64)

    @property
    def bias(self) -> Array:
        """How far the mean of the values is from the fit of the data, (P,)."""
        good = self.values[self.valid]
        return (
            np.asarray(good.mean(axis=0) - self.best, np.float64)
            if len(good)
            else np.full_like(self.best, nan)
        )

    def interval(self, name: str, level: float = 0.6827) -> tuple[float, float]:
        """Return the central interval that holds this fraction of the valid replicas."""
        check_level("bootstrap", level)
        if name not in self.names:
            raise FitError(f"bootstrap: parameter '{name}': was not fitted; {suggest(name, self.names)}")
        good = self.values[self.valid, self.names.index(name)]
        if not len(good):
            return nan, nan
        low, high = np.quantile(good, [0.5 * (1 - level), 0.5 * (1 + level)])
        return float(low), float(high)

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        means = self.errors / sqrt(max(len(self) - bad, 1))  # their errors
        rows = zip(self.best, self.errors, self.bias, means, strict=True)
        cells = [(*round_pdg(value, error), round_pdg(bias, mean)[0]) for value, error, bias, mean in rows]
        value, error, bias = zip(*cells, strict=True)
        columns = [Column("parameter", self.names, numeric=False), Column("value", value)]
        table = text_table([*columns, Column("error", error), Column("bias", bias)])
        return f"bootstrap: {len(self)} replicas, {verdict}, seed {self.seed}\n\n{table}"

    __repr__ = __str__


def bootstrap(
    likelihood: AnyLikelihood,
    *,
    replicas: int = 1000,
    seed: int = 0,
    best: FitResult | None = None,
    progress: bool = True,
) -> Bootstrap:
    """Fit replicas of the data, in which each event counts a Poisson number of times, many together.

    Replica r with a seed has the same weights on every machine, however many replicas there are. ``best`` is as
    for ``profile``; every replica starts from it.
    """
    if replicas < 1:
        raise DataError(f"bootstrap: replicas must be at least 1, got {replicas}")
    if not 0 <= seed < 2**64:
        raise DataError(f"bootstrap: seed must be a whole number in [0, 2**64), got {seed}")
    best = best_fit("bootstrap", likelihood, best)
    samples = Replicas(likelihood, best, seed)
    block = max(1, BLOCK_BYTES // (8 * max(likelihood.events, 1)))
    values, nll = np.empty((replicas, len(best.floating))), np.empty(replicas)
    valid = np.zeros(replicas, bool)
    with Bar("bootstrap", replicas, progress) as bar:
        for first in range(0, replicas, block):
            stop = min(first + block, replicas)
            found = samples.minimise(first, stop, bar)
            values[first:stop], nll[first:stop], valid[first:stop] = found
    centre = np.array([best.values[n] for n in best.floating])
    return Bootstrap(best.floating, centre, values, nll, valid, seed)


def poisson_weights(seed: int, replica: int, events: int) -> Array:
    """Return how often each event counts in a replica, from its own stretch of Philox numbers."""
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, replica]).random_raw(events)
    return np.searchsorted(POISSON, bits, side="right").astype(np.float64)


class Replicas:
    """A likelihood, or each part of a sum, whose events can be weighted anew for each set."""

    def __init__(self, likelihood: AnyLikelihood, best: FitResult, seed: int) -> None:
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        rows = {p.name: k for k, p in enumerate(likelihood.parameters)}
        self.parts = parts_of(likelihood)
        self.places = [[places[p.name] for p in part.all_parameters] for part in self.parts]
        self.part_rows = [[rows[p.name] for p in part.parameters] for part in self.parts]
        self.count = len(rows)
        self.columns = [places[n] for n in best.floating]
        self.rows = [rows[n] for n in best.floating]
        self.likelihood, self.best, self.seed = likelihood, best, seed
        self.base = np.array([best.values[p.name] for p in likelihood.all_parameters])
        self.limits = np.array([best.limits[n] for n in best.floating])

    def minimise(self, first: int, stop: int, bar: Bar) -> tuple[Array, Array, Flags]:
        """Minimise a block of replicas: from the best fit, what fails from the start values, then by Minuit."""
        weights = np.stack(
            [poisson_weights(self.seed, r, self.likelihood.events) for r in range(first, stop)]
        )
        found = self.newton(weights, self.base[self.columns], first, bar)
        x, nll, valid = found.x, found.nll, found.valid.copy()
        failed = np.flatnonzero(~valid)
        if len(failed):
            starts = np.array([p.start for p in self.likelihood.all_parameters])[self.columns]
            again = self.newton(weights[failed], starts, stop - len(failed), bar)
            good = failed[again.valid]
            x[good], nll[good], valid[good] = again.x[again.valid], again.nll[again.valid], True
        for k in np.flatnonzero(~valid):
            self.by_minuit(int(k), weights[k], x, nll, valid)
        return x, nll, valid

    def newton(self, weights: Array, start: Array, done: int, bar: Bar) -> Minima:
        """Minimise replicas together; those that are done are left out, and so are their weights."""
        now: list[tuple[Sets, list[Array]]] = [(np.arange(len(weights)), self.split(weights))]

        def evaluate(sets: Sets, x: Array) -> Evaluation:
            bar.done(done + len(weights) - len(sets))
            if len(sets) < len(now[0][0]):
                now[0] = (sets, self.split(weights[sets]))
            full = np.tile(self.base, (len(sets), 1))
            full[:, self.columns] = x
            return cut(self.evaluate(full, now[0][1]), self.rows)

        return minimise(evaluate, np.tile(start, (len(weights), 1)), self.limits, GOAL)

    def split(self, weights: Array) -> list[Array]:
        """Return the weights for each part, times those that its events have anyway."""
        stops = np.cumsum([part.events for part in self.parts])
        pieces = np.split(weights, stops[:-1], axis=1)
        own = [part.data.weights for part in self.parts]
        return [
            np.ascontiguousarray(piece if w is None else piece * w)
            for piece, w in zip(pieces, own, strict=True)
        ]

    def evaluate(self, full: Array, weights: Sequence[Array]) -> Evaluation:
        """Add up the parts, with the derivatives by all floating parameters."""
        sets, count = len(full), self.count
        total = Evaluation(
            np.zeros(sets), np.zeros((sets, count)), np.zeros((sets, count, count)), np.zeros(sets, np.int64)
        )
        for part, places, rows, own in zip(self.parts, self.places, self.part_rows, weights, strict=True):
            found = evaluate_weighted(part, np.ascontiguousarray(full[:, places]), own)
            total.value[:] += found.value
            total.bad[:] += found.bad
            total.gradient[:, rows] += found.gradient
            total.hessian[np.ix_(range(sets), rows, rows)] += found.hessian
        return total

    def by_minuit(self, k: int, weights: Array, x: Array, nll: Array, valid: Flags) -> None:
        """Minimise one replica with Minuit; keep what it found also if it is not valid."""
        parts = [
            reweighted(part, own[0])
            for part, own in zip(self.parts, self.split(weights[None, :]), strict=True)
        ]
        names = [p.name for p in self.likelihood.all_parameters]
        fixed = {n: self.base[i] for i, n in enumerate(names) if n not in self.best.floating}
        start = {n: self.best.values[n] for n in self.best.floating}
        found = try_minuit(parts[0] if len(parts) == 1 else JointLikelihood(parts), start, fixed, self.best)
        if found is not None:
            x[k] = [found.values[n] for n in self.best.floating]
            nll[k], valid[k] = found.nll, found.valid


def parts_of(likelihood: AnyLikelihood) -> tuple[Likelihood, ...]:
    """Return the likelihoods of single datasets that a likelihood is made of."""
    parts = likelihood.parts if isinstance(likelihood, JointLikelihood) else (likelihood,)
    assert all(isinstance(part, Likelihood) for part in parts)
    return parts  # type: ignore[return-value]


def reweighted(part: Likelihood, weights: Array) -> Likelihood:
    """Return the same likelihood of the same events with other weights."""
    return Likelihood(
        part.model, part.data.with_weights(weights), constraints=part.constraints, backend=part.backend,
        precision=part.settings.precision.name.lower(), precompute=part.settings.precompute,
    )  # fmt: skip


def evaluate_weighted(part: Likelihood, full: Array, weights: Array) -> Evaluation:
    """Evaluate each set with its own row of weights; sets with bad events again, leaving those out."""
    out = bind_weights(part, weights)(full)
    wrong = ~np.isfinite(out).all(axis=1) | (out[:, -1] > 0)
    if wrong.any():
        out[wrong] = bind_weights(part, weights[wrong], careful=True)(full[wrong])
    return unpack(out, len(part.parameters), 2)


def bind_weights(part: Likelihood, weights: Array, *, careful: bool = False) -> Bound:
    request = replace(part.request(2, careful=careful), weighted=True)
    compiled = compile_sums(request, tuple(p.expr for p in part.all_parameters), part.settings)
    return compiled.bind(part.columns, Events.all_sets(part.events), weights)
