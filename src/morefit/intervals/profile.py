"""The nll as a function of one parameter, minimised over the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.errors import FitError, OptionError
from morefit.intervals.interval import End, Interval, bisect, two_sided
from morefit.likelihood import Simultaneous, Term
from morefit.likelihood.simultaneous import undecided
from morefit.minimise import FitResult, fit
from morefit.minimise.conditional import (
    Conditional,
    best_fit,
    check_floating,
    check_points,
    spaced,
    span,
    warn_of_weights,
)
from morefit.minimise.problem import as_likelihood
from morefit.model import Parameter, Pdf
from morefit.model.compose.choice import Decision
from morefit.records.named_arrays import FrozenByName
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.progress import Bar
from morefit.validate import check_level, name_of, number_list

WIDTH = 3.0  # standard deviations that a profile spans to each side by default
APART = 1e-3  # of the spacing: closer points add no information, and spoil an interpolation


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Profile(FrozenByName):
    """The nll as a function of one parameter, minimised over the others at each of its values.

    Where ``valid`` is False there is no valid minimum: ``nll`` is the lowest value seen, or nan, and intervals do not
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
    choices: tuple[str, ...] = ()  # (B,), what each point has the lowest nll with, where a model has choices

    named = {"others": ("names", 1)}

    @property
    def delta(self) -> Array:
        """How far the nll is above its minimum: 0.5 at one standard deviation, 2 at two."""
        return self.nll - self.minimum

    def interval(self, level: float = 0.6827) -> Interval:
        """Return where the nll has risen by half the squared quantile of ``level`` to each side of the minimum.

        A side on which it does not rise so far ends at the limit of the parameter, if the profile goes up to it,
        and is open if not: then scan further.
        """
        check_level("profile", level)
        x, delta = self.curve()
        above = delta - 0.5 * two_sided(level) ** 2
        centre = int(np.flatnonzero(x == self.best)[0])
        low, low_end = first_crossing(x[centre::-1], above[centre::-1], x, above, self.limits[0])
        high, high_end = first_crossing(x[centre:], above[centre:], x, above, self.limits[1])
        return Interval(low, high, level, low_end=low_end, high_end=high_end)

    def curve(self) -> tuple[Array, Array]:
        """Return the valid points and the minimum, in order; points next to the minimum are left out."""
        near = APART * np.ptp(self.values) / max(len(self.values) - 1, 1)
        used = self.valid & (np.abs(self.values - self.best) > near)
        x = np.append(self.values[used], self.best)
        delta = np.append(self.delta[used], 0.0)
        order = np.argsort(x)
        return x[order], delta[order]

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        lines = [f"profile of {self.name}: {len(self.values)} points, {verdict}, minimum at {self.best:.8g}"]
        lines += [f"  {100 * level:g} %: {self.interval(level)}" for level in (0.6827, 0.9545)]
        return "\n".join(lines)


def first_crossing(walk: Array, rise: Array, x: Array, above: Array, limit: float) -> tuple[float, End]:
    """Return where a walk from the minimum first comes above zero: nan if never, unless it ends at a limit."""
    beyond = np.flatnonzero(rise > 0)
    if not len(beyond):
        return (limit, "limit") if walk[-1] == limit else (nan, "open")
    inner, outer = float(walk[beyond[0] - 1]), float(walk[beyond[0]])
    cubic = local_cubic(x, above, inner, outer)
    return bisect(lambda v: cubic(v) <= 0, inner, outer), "crossing"


def local_cubic(x: Array, y: Array, one: float, other: float) -> Callable[[float], float]:
    """Return the polynomial through the four points around two neighbours, fewer if there are fewer."""
    left = int(np.searchsorted(x, min(one, other)))
    start = max(min(left - 1, len(x) - 4), 0)
    nodes, heights = x[start : start + 4], y[start : start + 4]
    width = abs(other - one)
    scaled = (nodes - one) / width
    coefficients = np.linalg.solve(np.vander(scaled), heights)
    return lambda v: float(np.polyval(coefficients, (v - one) / width))


@in_sentences
def profile(
    likelihood: Term | Pdf | Simultaneous,
    parameter: str | Parameter,
    points: ArrayLike | None = None,
    *,
    data: Any = None,
    bounds: tuple[float, float] | None = None,
    size: int = 31,
    best: FitResult | None = None,
    progress: bool = True,
) -> Profile:
    """Minimise a likelihood, or that of a model and data, over all other floating parameters at values of one.

    The points are ``points``, or ``size`` from ``bounds[0]`` to ``bounds[1]``, or as many within three errors of
    the best fit. ``best`` is that fit, if it is known already; parameters that were fixed in it stay fixed. For a model
    with choices it is the lowest of the profiles of all ways to decide them, each with its penalty.

    Example: ``mf.intervals.profile(nll, mu, progress=False).interval()``
    """
    if ways := undecided(likelihood):
        return envelope(
            likelihood, ways, name_of(parameter), points=points, data=data, bounds=bounds, size=size, best=best,
            progress=progress,
        )  # fmt: skip
    likelihood, name = as_likelihood("profile", likelihood, data), name_of(parameter)
    warn_of_weights("profile", likelihood)
    best = best_fit("profile", likelihood, best)
    check_floating("profile", best, name)
    points = chosen_points(best, name, points, bounds, size)
    check_points("profile", best, name, points)
    with Bar(f"profile of {name}", len(points), progress) as bar:
        scan = Conditional(likelihood, best, (name,), points[:, None], bar)
        scan.minimise()
    (centre,), minimum = scan.lowest()
    return Profile(
        name=name,
        values=points,
        nll=scan.fits.nll,
        names=scan.rest,
        others=scan.fits.values,
        valid=scan.fits.valid,
        best=float(centre),
        minimum=minimum,
        limits=best.limits[name],
    )


def envelope(
    model: Any, decisions: Sequence[Decision], name: str, *, points: ArrayLike | None, data: Any, bounds: tuple[float, float] | None, size: int,
    best: FitResult | None, progress: bool,
) -> Profile:  # fmt: skip
    """Return the lowest of the profiles of all ways to decide the choices of a model."""
    best = fit(model, data) if best is None else best
    points = chosen_points(best, name, points, bounds, size)
    fixed = {n: best.values[n] for n in best.names if n not in best.floating}
    ways, profiles = [], []
    for way in decisions:
        own = {p.name: fixed[p.name] for p in way.model.parameters if p.name in fixed}
        start = fit(way.model, data, fixed=own)
        if start.valid:
            ways.append(way)
            profiles.append(profile(way.model, name, points, data=data, best=start, progress=progress))
    if not ways:
        raise FitError("profile: no density of the choices has a valid fit; change start values or limits")
    penalties = [way.penalty((one.name, *one.names)) for way, one in zip(ways, profiles, strict=True)]
    nll = np.array([one.nll + p for one, p in zip(profiles, penalties, strict=True)])
    lowest = np.argmin(np.where([one.valid for one in profiles], nll, np.inf), axis=0)
    at, names = np.arange(len(lowest)), tuple(dict.fromkeys(n for one in profiles for n in one.names))
    others = np.full((len(ways), len(lowest), len(names)), nan)
    for k, one in enumerate(profiles):
        others[k][:, [names.index(n) for n in one.names]] = one.others
    centre = int(np.argmin([one.minimum + p for one, p in zip(profiles, penalties, strict=True)]))
    return Profile(
        name=name,
        values=profiles[0].values,
        nll=nll[lowest, at],
        names=names,
        others=others[lowest, at],
        valid=np.array([one.valid for one in profiles])[lowest, at],
        best=profiles[centre].best,
        minimum=profiles[centre].minimum + penalties[centre],
        limits=profiles[centre].limits,
        choices=tuple(ways[k].label for k in lowest),
    )


def chosen_points(
    best: FitResult, name: str, points: ArrayLike | None, bounds: tuple[float, float] | None, size: int
) -> Array:
    """Return the points to scan, in order and each once."""
    if points is not None:
        if bounds is not None:
            raise OptionError("profile: takes points or bounds, not both")
        if isinstance(points, int | float | np.number):
            raise OptionError(f"profile: points must be a list of values, got {points!r}; size= is how many")
        return number_list("profile: points", points)
    if bounds is None:
        return np.unique(span("profile", best, name, WIDTH, size))
    return spaced("profile", bounds, size)
