"""Densities whose edges, peaks or poles are hard to know: a fit of one is right, or it says that it is not."""

import re

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import morefit as mf
from tolerances import TRAP_ERRORS, TRAP_NLL
from written.events import Dense
from written.row import Row, around

EVENTS = 2000
UNLIKELY = 1e-4  # of a p-value
TRUTH = 1.03
STEP = 1e-4  # of differences of dense sums
RANGE = (0.0, 1.0)
START = (1.0, 0.8, 1.2)


def roots(function):
    """Return where a function of x and p is zero, as a function of the parameters."""

    def places(p):
        grid = np.linspace(*RANGE, 20_001)
        signs = np.sign(function(grid, p.p))
        changes = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        return [brentq(function, grid[k], grid[k + 1], (p.p,), xtol=1e-15) for k in changes]

    return places


def waves_above_a_line(x, p=START):
    return mf.where(np.sin(50 * x * p) > x, 2.0, 1.0)


def kinks_of_a_cosine(x, p=START):
    return 0.1 + abs(np.cos(7 * p * x))


def stairs(x, p=START):
    return 1 + np.floor(5 * p * x)


def larger_of_two_exponentials(x, p=START):
    return np.maximum(np.exp(-3 * p * x), 0.3 * np.exp(-0.5 * x))


def edge_at_the_root_of_a_cubic(x, p=START):
    return mf.where(x**3 + p * x < 0.4, 2 - x, 0.5)


def edge_at_the_root_of_an_exponential(x, p=START):
    return mf.where(np.exp(-x) > p * x, 3.0, 1 + x)


def root_pole_inside(x, p=START):
    return 1 / np.sqrt(abs(x - 0.4 * p))


def logarithm_inside(x, p=START):
    return 3 - np.log(abs(x - 0.4 * p))


def narrow_box(x, p=START):
    return 1 + mf.where(abs(x - 0.51 * p) < 1e-5, 2e4, 0.0)


def needle_at_a_square(x, p=START):
    return 1 + 400 * np.exp(-0.5 * ((x - 0.6 * p**2) / 0.001) ** 2)


def two_needles(x, p=START):
    first, second = ((x - 0.3) / 0.001) ** 2, ((x - 0.7 * p) / 0.0005) ** 2
    return 1 + 200 * np.exp(-0.5 * first) + 100 * p**2 * np.exp(-0.5 * second)


def needle_in_a_branch(x, p=START):
    needle = np.exp(-0.5 * ((x - 0.77 * p) / 0.0008) ** 2)
    return mf.where(x < 0.5, 1.0, 1 + 300 * p * needle)


def kink_inside_a_root(x, p=START):
    return np.sqrt(0.01 + abs(x - 0.45 * p))


def hidden_kink(x, p=START):
    return np.exp(-3 * np.maximum(0, np.sin(3 * x) - 0.5 * p))


def comb(x, p=START):
    return 1 + 5 * np.exp(-200 * np.sin(20 * p * x) ** 2)


def cut_peak(x, p=START):
    return mf.where(x > 0.5 * p, np.exp(-(x - 0.5 * p) / 0.001), 0.0) + 0.002


EDGES = {
    waves_above_a_line: roots(lambda x, p: np.sin(50 * x * p) - x),
    kinks_of_a_cosine: roots(lambda x, p: np.cos(7 * p * x)),
    stairs: lambda p: [k / (5 * p.p) for k in range(1, 8)],
    larger_of_two_exponentials: roots(lambda x, p: np.exp(-3 * p * x) - 0.3 * np.exp(-0.5 * x)),
    edge_at_the_root_of_a_cubic: roots(lambda x, p: x**3 + p * x - 0.4),
    edge_at_the_root_of_an_exponential: roots(lambda x, p: np.exp(-x) - p * x),
    root_pole_inside: lambda p: [0.4 * p.p],
    logarithm_inside: lambda p: [0.4 * p.p],
    narrow_box: lambda p: [0.51 * p.p - 1e-5, 0.51 * p.p + 1e-5],
    needle_at_a_square: lambda p: around(0.6 * p.p**2, 0.001),
    two_needles: lambda p: around(0.3, 0.001) + around(0.7 * p.p, 0.0005),
    needle_in_a_branch: lambda p: [0.5, *around(0.77 * p.p, 0.0008)],
    kink_inside_a_root: lambda p: [0.45 * p.p],
    hidden_kink: roots(lambda x, p: np.sin(3 * x) - 0.5 * p),
    comb: lambda p: [k * np.pi / (40 * p.p) for k in range(1, 20)],
    cut_peak: lambda p: around(0.5 * p.p, 0.001),
}
TRAPS = {
    f.__name__: Row(f, {"x": RANGE}, {"x": RANGE}, {}, {"p": TRUTH}, edges) for f, edges in EDGES.items()
}


def log_integral(row, p):
    return np.log(Dense(row, "full", {"p": p}).integral)


def attempt(action):
    """Return what an action gives, or the message of its refusal."""
    try:
        return action(), ""
    except mf.MorefitError as error:
        return None, str(error)


@pytest.mark.parametrize("name", TRAPS)
def test_fit_is_right_or_says_that_it_is_not(name):
    row = TRAPS[name]
    rng = np.random.default_rng(3)
    data = {"x": Dense(row, "full", {"p": TRUTH}).quantile(rng.random(EVENTS))}
    result, refusal = attempt(lambda: mf.fit(row.model(), data))
    if result is None:
        assert re.search("integra|finite|smooth", refusal)
        return
    if not result.valid:
        assert result.reasons
        return
    p, error = result.values["p"], result.errors["p"]
    whole, events = mf.Likelihood(row.model(), data), mf.Likelihood(row.known(), data)
    low, middle, high = (EVENTS * log_integral(row, p + s) for s in (-STEP, 0, STEP))
    assert whole.value([p]) - events.value([p]) == pytest.approx(middle, abs=TRAP_NLL)
    slope = (whole.gradient([p]) - events.gradient([p]))[0]
    assert slope * error == pytest.approx((high - low) / (2 * STEP) * error, abs=TRAP_NLL)
    bend = (whole.hessian([p]) - events.hessian([p]))[0, 0]
    assert bend * error**2 == pytest.approx((high - 2 * middle + low) / STEP**2 * error**2, abs=TRAP_ERRORS)


@pytest.mark.parametrize("name", TRAPS)
def test_events_follow_the_density_or_are_refused(name):
    row, values = TRAPS[name], {"p": 1.15}
    data, refusal = attempt(lambda: mf.generate(row.model(), 20_000, truth=values, seed=5))
    if data is None:
        assert re.search("integra|infinite|exceeds|bound", refusal)
    else:
        assert stats.kstest(data.columns["x"], Dense(row, "full", values).cdf).pvalue > UNLIKELY


NOT_INTEGRABLE = {
    "pole at an end": lambda x, p: p / x,
    "steep pole with a parameter": lambda x, p: x ** (-p - 0.5),
    "pole inside": lambda x, p: 1 / abs(x - 0.3 * p),
    "double pole inside": lambda x, p: 1 / (x - 0.4 * p) ** 2,
    "poles of a tangent": lambda x, p: abs(np.tan(3 * p * x)),
    "pole beyond a moving end": lambda x, p: mf.where(x > 0.2 * p, 1 / (x - 0.2 * p), 0.0),
    "hardly not integrable": lambda x, p: x ** (-p) * (1 + p * x),
}


@pytest.mark.parametrize("name", NOT_INTEGRABLE)
def test_what_has_no_integral_is_refused(name):
    x, p = mf.Observable("x", *RANGE), mf.Parameter("p", *START)
    data = {"x": np.linspace(0.011, 0.987, 100)}
    with pytest.raises(mf.MorefitError, match=r"integra|infinite"):
        mf.Likelihood(mf.Density(NOT_INTEGRABLE[name](x, p), [x]), data).value([1.0])
