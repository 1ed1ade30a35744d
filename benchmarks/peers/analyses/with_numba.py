"""iminuit and the truncated densities of numba-stats, derivatives by differences, as their documents have it.

What numba-stats has not is a loop by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import asinh, erf, erfc, exp, log, pi, sqrt
from typing import Any

import numba
import numpy as np
from numba_stats import crystalball, crystalball_ex, norm, truncexpon, truncnorm, voigt

from peers.analyses.worker import WEIGHT, Floating, Found, Part
from peers.by_hand import angular_terms, minuit_fit

Values = Mapping[str, float]
Fit = Callable[[Sequence[Part]], Found]
Array = np.ndarray[Any, Any]
Nll = Callable[[Sequence[Part], Values], float]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


def fit_with(nll: Nll) -> Callable[[Sequence[Floating], int], Fit]:
    """Return what makes fits of a function of datasets and values by name."""

    def make(floating: Sequence[Floating], strategy: int) -> Fit:
        names = [p.name for p in floating]

        def fit(parts: Sequence[Part]) -> Found:
            minuit = minuit_fit(
                lambda x: nll(parts, dict(zip(names, x, strict=True))),
                [p.start for p in floating],
                [(p.low, p.high) for p in floating],
                steps=[p.step for p in floating],
                strategy=strategy,
            )
            return Found(dict(zip(names, minuit.values, strict=True)), bool(minuit.valid))

        return fit

    return make


def exponential(x: Array, low: float, high: float, slope: float) -> Array:
    return np.asarray(truncexpon.pdf(x, low, high, 0.0, -1 / slope if slope else 1e12))


def crystal_ball(x: Array, low: float, high: float, shape: tuple[float, float, float, float]) -> Array:
    """A Crystal Ball (mu, sigma, alpha, n) in a range; with a negative alpha its tail is on the right."""
    mu, sigma, alpha, power = shape
    if alpha < 0:
        return crystal_ball(-x, -high, -low, (-mu, sigma, -alpha, power))
    inside = np.diff(crystalball.cdf(np.array([low, high]), alpha, power, mu, sigma))[0]
    return np.asarray(crystalball.pdf(x, alpha, power, mu, sigma) / inside)


def minus_log(density: Array, expected: float = 0.0) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return expected - float(np.sum(np.log(density)))


def mass_density(m: Array, v: Values) -> Array:
    signal, background = truncnorm.pdf(m, 5.0, 7.0, v["mu"], v["sigma"]), exponential(m, 5.0, 7.0, v["alpha"])
    return np.asarray(v["fsig"] * signal + (1 - v["fsig"]) * background)


def mass(parts: Sequence[Part], v: Values) -> float:
    return minus_log(mass_density(parts[0]["m"], v))


def weighted_mass(parts: Sequence[Part], v: Values) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return -float(np.sum(parts[0][WEIGHT] * np.log(mass_density(parts[0]["m"], v))))


def two_crystal_balls(parts: Sequence[Part], v: Values) -> float:
    x = parts[0]["x"]
    left = crystal_ball(x, 5.0, 5.6, (v["mu"], v["s1"], 1.5, 3.0))
    right = crystal_ball(x, 5.0, 5.6, (v["mu"], v["s2"], -1.8, 4.0))
    signal = v["f"] * left + (1 - v["f"]) * right
    return minus_log(v["Ns"] * signal + v["Nb"] * exponential(x, 5.0, 5.6, v["c"]), v["Ns"] + v["Nb"])


@numba.njit(fastmath=True, error_model="numpy")
def johnson_and_threshold_sum(
    x: Array, peak: tuple[float, float, float, float], a: float, b: float, share: float
) -> float:
    """Johnson's density has an integral, of the threshold there is one by quadrature, in the square root of x."""
    xi, scale, gamma, delta = peak
    ends = [gamma + delta * asinh((end - xi) / scale) for end in (0.0, 20.0)]
    inside = 0.5 * (erf(ends[1] / sqrt(2.0)) - erf(ends[0] / sqrt(2.0)))
    height = share * delta / (scale * sqrt(2.0 * pi) * inside)
    area, half = 0.0, 0.5 * sqrt(20.0)
    for node, weight in zip(NODES, WEIGHTS):
        u = half * (1.0 + node)
        area += weight * half * 2.0 * u * (u * u + 1e-3) ** a * exp(-b * u * u)
    total, rest = 0.0, (1.0 - share) / area
    for t in x:
        z = (t - xi) / scale
        r = gamma + delta * asinh(z)
        total -= log(height * exp(-0.5 * r * r) / sqrt(1.0 + z * z) + rest * (t + 1e-3) ** a * exp(-b * t))
    return total


def johnson_and_threshold(parts: Sequence[Part], v: Values) -> float:
    peak = v["xi"], v["lam"], v["gamma"], v["delta"]
    return float(johnson_and_threshold_sum(parts[0]["x"], peak, v["a"], v["b"], v["f"]))


def fourteen_parameters(parts: Sequence[Part], v: Values) -> float:
    x = parts[0]["x"]
    density = v["Nb"] * exponential(x, 5.0, 6.0, v["c"])
    for k in range(3):
        density += v[f"N{k}"] * crystal_ball(x, 5.0, 6.0, (v[f"m{k}"], v[f"s{k}"], v[f"a{k}"], 3.0))
    return minus_log(density, v["Nb"] + sum(v[f"N{k}"] for k in range(3)))


def thirty_fractions(floating: Sequence[Floating], strategy: int) -> Fit:
    """The densities have no parameters, so they are computed once for each toy."""

    def fit(parts: Sequence[Part]) -> Found:
        densities = np.stack([truncnorm.pdf(parts[0]["x"], 0.0, 31.0, 1.0 + k, 0.6) for k in range(30)])

        def nll(_: Sequence[Part], v: Values) -> float:
            fractions = np.array([v[f"f{k}"] for k in range(29)])
            return minus_log(np.append(fractions, 1 - fractions.sum()) @ densities)

        return fit_with(nll)(floating, strategy)(parts)

    return fit


def mass_and_lifetime(parts: Sequence[Part], v: Values) -> float:
    m, t = parts[0]["m"], parts[0]["t"]
    signal = truncnorm.pdf(m, 5.0, 5.6, v["mu"], v["sigma"]) * exponential(t, 0.3, 12.0, v["gamma"])
    times = v["f"] * exponential(t, 0.3, 12.0, v["short"]) + (1 - v["f"]) * exponential(
        t, 0.3, 12.0, v["long"]
    )
    background = exponential(m, 5.0, 5.6, v["c"]) * times
    return minus_log(v["Ns"] * signal + v["Nb"] * background, v["Ns"] + v["Nb"])


def angles_and_mass(floating: Sequence[Floating], strategy: int) -> Fit:
    """Terms of the angles that do not change are precomputed for each toy."""
    names = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")

    def fit(parts: Sequence[Part]) -> Found:
        (rest, terms), m = angular_terms(parts[0]), parts[0]["m"]

        def nll(_: Sequence[Part], v: Values) -> float:
            angles = rest + np.array([v[n] for n in names]) @ terms
            signal = angles * crystal_ball(m, 5.17, 5.7, (v["mu"], v["sigma"], 1.6, 3.0))
            background = exponential(m, 5.17, 5.7, v["c"]) / (8 * np.pi)
            return minus_log(v["fsig"] * signal + (1 - v["fsig"]) * background)

        return fit_with(nll)(floating, strategy)(parts)

    return fit


def four_categories(parts: Sequence[Part], v: Values) -> float:
    total = 0.0
    for k, part in enumerate(parts):
        x, share = part["x"], v[f"eff{k}"]
        signal = truncnorm.pdf(x, 5.0, 5.6, v["mu"], v["sigma"])
        yields = v["N"] * share, v[f"Nb{k}"]
        density = yields[0] * signal + yields[1] * exponential(x, 5.0, 5.6, v[f"c{k}"])
        total += minus_log(density, sum(yields)) + 0.5 * ((share - 0.2 - 0.05 * k) / 0.01) ** 2
    return total


def sixty_one_parameters(parts: Sequence[Part], v: Values) -> float:
    x = parts[0]["x"]
    density, expected = v["Nb"] * exponential(x, 0.0, 21.0, -0.05), v["Nb"]
    for k in range(20):
        inside = np.diff(norm.cdf(np.array([0.0, 21.0]), v[f"m{k}"], v[f"s{k}"]))[0]
        density += v[f"N{k}"] / inside * norm.pdf(x, v[f"m{k}"], v[f"s{k}"])
        expected += v[f"N{k}"]
    return minus_log(density, expected)


@numba.njit(fastmath=True, error_model="numpy")
def decay_sum(times: Array, errors: Array, tau: float, scale: float) -> float:
    """An exponential smeared by each event's resolution, over its integral from -1 to 12."""
    total = 0.0
    for t, error in zip(times, errors):
        s = scale * error
        r = s / tau
        area = 0.0
        for end, sign in ((-1.0, -1.0), (12.0, 1.0)):
            tail = 0.5 * exp(0.5 * r * r - end / tau) * erfc((r - end / s) / sqrt(2.0))
            area += sign * (0.5 * erfc(-end / s / sqrt(2.0)) - tail)
        total -= log(0.5 / tau * exp(0.5 * r * r - t / tau) * erfc((r - t / s) / sqrt(2.0)) / area)
    return total


def decay(parts: Sequence[Part], v: Values) -> float:
    return float(decay_sum(parts[0]["t"], parts[0]["sigma_t"], v["tau"], v["scale"]))


MODELS = {
    "the paper's mass model": fit_with(mass),
    "two Crystal Balls + exponential": fit_with(two_crystal_balls),
    "Johnson + threshold, by quadrature": fit_with(johnson_and_threshold),
    "14 parameters": fit_with(fourteen_parameters),
    "30 fractions": thirty_fractions,
    "mass x lifetime": fit_with(mass_and_lifetime),
    "angles x mass, with background": angles_and_mass,
    "four categories, constrained": fit_with(four_categories),
    "61 parameters": fit_with(sixty_one_parameters),
    "weighted mass fit": fit_with(weighted_mass),
    "weighted mass fit, datasets given": fit_with(weighted_mass),
    "decay, per-event resolution": fit_with(decay),
}


# shapes at a million events


def value_of(
    density: Callable[[Array, Values], Array], column: str
) -> Callable[[Sequence[Floating], Part], Any]:
    """Return what makes the nll of a dataset as a function of values by name."""

    def make(floating: Sequence[Floating], part: Part) -> Callable[[Values], float]:
        return lambda values: minus_log(density(part[column], values))

    return make


def double_crystal_ball(m: Array, v: Values) -> Array:
    tails = (v["alpha_left"], v["n_left"], v["sigma"], v["alpha_right"], v["n_right"], v["sigma"], v["mu"])
    inside = np.diff(crystalball_ex.cdf(np.array([5.0, 5.6]), *tails))[0]
    u = (m - 5.3) / 0.3
    background = (1 + v["c1"] * u + v["c2"] * (2 * u * u - 1)) / (0.6 * (1 - v["c2"] / 3))
    return np.asarray(v["f"] * crystalball_ex.pdf(m, *tails) / inside + (1 - v["f"]) * background)


def voigt_density(m: Array, v: Values) -> Array:
    shape = (0.5 * v["gamma"], v["mu"], v["sigma"])
    nodes, weights = np.polynomial.legendre.leggauss(400)  # numba-stats has no integral of it
    return np.asarray(voigt.pdf(m, *shape) / (0.5 * np.sum(weights * voigt.pdf(5.5 + 0.5 * nodes, *shape))))


LARGE = {
    "double Crystal Ball + Chebyshev": value_of(double_crystal_ball, "m"),
    "Voigt": value_of(voigt_density, "m"),
}
