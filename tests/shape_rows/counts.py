"""Points at which densities of whole numbers are tested: steps of width one around each."""

import mpmath as mp
import numpy as np
from scipy import stats

import morefit as mf
from shape_rows import Point, Row

TRIALS = 12


def judge_steps(chance):
    """Return a reference that adds up probabilities of whole numbers, those at the ends of the range in part."""

    def judge(x, low, high, *values):
        numbers = range(int(mp.floor(low + 0.5)), int(mp.floor(high + 0.5)) + 1)
        widths = [min(n + mp.mpf(0.5), high) - max(n - mp.mpf(0.5), low) for n in numbers]
        area = mp.fsum(w * chance(n, *values) for n, w in zip(numbers, widths, strict=True) if w > 0)
        return mp.log(chance(int(mp.floor(x + 0.5)), *values) / area)

    return judge


def mp_poisson(n, mean):
    return mp.mpf(mean) ** n * mp.exp(-mean) / mp.factorial(n)


def mp_binomial(n, p):
    return mp.binomial(TRIALS, n) * mp.mpf(p) ** n * (1 - mp.mpf(p)) ** (TRIALS - n)


def on_range(distribution):
    """Return the probabilities of one of scipy's distributions of whole numbers, as steps on a range."""

    def density(x, low, high, *values):
        frozen = distribution(*values)
        inside = frozen.pmf(np.arange(low + 0.5, high + 0.5)).sum()
        steps = frozen.pmf(np.floor(x + 0.5)) / inside
        return np.where(x < high, steps, 0.0) if inside > 1e-3 else None

    return density


def point(label, name, value, at, low, high, scale=10.0):
    return Point(label, low, high, {name: value}, at, (value,), scale)


ROWS = {
    "Poisson": Row(
        mf.shapes.Poisson,
        judge_steps(mp_poisson),
        [
            point("from zero", "mean", 3.5, 4.0, -0.5, 20.5),
            point("a part", "mean", 3.5, 4.0, 1.5, 7.5),
            point("a tail", "mean", 3.5, 31.0, 29.5, 60.5, 100.0),
            point("a large mean", "mean", 400.0, 390.0, 299.5, 520.5, 1e3),
            point("the left tail", "mean", 60.0, 11.0, -0.5, 12.5, 1e3),
        ],
        scipy=on_range(stats.poisson),
        integrated=True,
        whole=True,
    ),
    "Binomial": Row(
        lambda x, p: mf.shapes.Binomial(x, TRIALS, p),
        judge_steps(mp_binomial),
        [
            point("all", "p", 0.3, 4.0, -0.5, 12.5),
            point("a part", "p", 0.3, 4.0, 1.5, 7.5),
            point("rare", "p", 0.001, 1.0, -0.5, 12.5, 1e3),
            point("often", "p", 0.97, 11.0, 5.5, 12.5, 1e3),
        ],
        scipy=on_range(lambda p: stats.binom(TRIALS, p)),
        integrated=True,
        whole=True,
    ),
}
