"""Sums over millions of events are right to the last digits."""

from __future__ import annotations

import math
from functools import cache

import mpmath
import numpy as np
import pytest

import morefit as mf
from tolerances import TOTAL
from zoo import gaussian, mass

# ten millions are more blocks of the same; test_compensation.py has terms that a plain sum of blocks loses
millions = pytest.mark.parametrize("n", [10**6, pytest.param(10**7, marks=pytest.mark.exhaustive)])
Long = np.longdouble


def normal_area(mu, sigma, low, high):
    """Integrate a Gaussian of height one with many digits."""
    with mpmath.workdps(40):
        ends = [(mpmath.mpf(edge) - mu) / (mpmath.sqrt(2) * sigma) for edge in (low, high)]
        return Long(str(sigma * mpmath.sqrt(mpmath.pi / 2) * (mpmath.erf(ends[1]) - mpmath.erf(ends[0]))))


def exponential_area(slope, width):
    with mpmath.workdps(40):
        return Long(str(mpmath.expm1(mpmath.mpf(slope) * width) / slope))


@cache
def gaussian_with_logs(n):
    """Return the model, its events, a point, and the logarithm of the density of each event."""
    model, data, x = gaussian(n)
    mu, sigma = map(Long, x)
    pull = (data["x"].astype(Long) - mu) / sigma
    return model, data, x, -pull * pull / 2 - np.log(normal_area(*x, -5, 5))


@cache
def mass_with_logs(n):
    model, data, x = mass(n)
    mu, sigma, alpha, fsig = (Long(v) for v in x)
    m = data["m"].astype(Long)
    peak = np.exp(-(((m - mu) / sigma) ** 2) / 2) / normal_area(x[0], x[1], 5, 7)
    slope = np.exp(alpha * (m - 5)) / exponential_area(x[2], 2)
    return model, data, x, np.log(fsig * peak + (1 - fsig) * slope)


def relative_error(found, logs):
    exact = -math.fsum(logs)
    return abs(found - exact) / abs(exact)


@millions
def test_logarithm_of_products_is_exact(n, fast):
    model, data, x, logs = mass_with_logs(n)
    found = mf.Likelihood(model, data, backend=fast).value(x)
    assert relative_error(found, logs) <= TOTAL


@millions
def test_sum_without_logarithms_is_exact(n, fast):
    model, data, x, logs = gaussian_with_logs(n)
    found = mf.Likelihood(model, data, backend=fast).value(x)
    assert relative_error(found, logs) <= TOTAL


@millions
def test_weighted_sum_is_exact(n, fast):
    model, data, x, logs = mass_with_logs(n)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, n)
    found = mf.Likelihood(model, data, weights=weights, backend=fast).value(x)
    assert relative_error(found, weights.astype(Long) * logs) <= TOTAL


def line(low=0.0, high=1e305):
    """A density that is its observable, so that the data say what it is worth."""
    x = mf.Observable("x", low, high)
    return mf.Density(x + mf.Parameter("shift", 0.0), [x], integral=1, check=False)


@pytest.mark.parametrize("n", [1, 100, 4096, 20_000])
@pytest.mark.parametrize("powers", [(-300, 300), (-307, -290), (290, 304), (-300, 2)])
def test_densities_from_tiny_to_huge_are_summed_right(powers, n, backend):
    data = {"x": 10.0 ** np.random.default_rng(n).uniform(*powers, n)}
    found = mf.Likelihood(line(), data, backend=backend).value([0.0])
    logs = np.log(data["x"].astype(Long))
    assert abs(found + math.fsum(logs)) <= TOTAL * math.fsum(np.abs(logs))


def test_mantissas_close_to_two_do_not_overflow_their_product(backend):
    """A block of them multiplies up to a number near 2**512 in every lane."""
    data = {"x": np.full(50_000, np.nextafter(2.0, 0.0))}
    found = mf.Likelihood(line(), data, backend=backend).value([0.0])
    exact = 50_000 * math.log(np.nextafter(2.0, 0.0))
    assert abs(found + exact) <= TOTAL * exact
