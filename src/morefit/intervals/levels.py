"""Confidence levels of a Gaussian, and the bisection that finds where a curve crosses one."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, sqrt
from statistics import NormalDist

HALVINGS = 60


def two_sided(level: float) -> float:
    """Return the standard deviations within which a Gaussian has this probability."""
    return NormalDist().inv_cdf(0.5 * (1 + level))


def bisect(condition: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition that is true at ``low`` ceases to be so."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if condition(middle) else (low, middle)
    return 0.5 * (low + high)


def tail_probability(deviations: float) -> float:
    """Return the probability of a Gaussian beyond a number of standard deviations; NormalDist has no digits from 8 on."""
    return 0.5 * erfc(deviations / sqrt(2))
