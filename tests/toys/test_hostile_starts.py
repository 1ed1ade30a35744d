"""Toys of models that start at limits, at saddle points, far away, or in units far apart are fitted where their truth is."""

import numpy as np
import pytest

import morefit as mf
from morefit.targets.cpu.run import Cpu

P = mf.Parameter
FAR = 6.0  # errors of a mean of 40


def peak_on_slope(mu, sigma, slope, fraction):
    """A model whose parameters start there."""
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, P("mu", mu, 0.0, 10.0), P("s", sigma, 0.05, 5.0))
    return mf.Sum([peak, mf.Exponential(x, P("c", slope, -5.0, 5.0))], fractions=[P("f", fraction, 0.0, 1.0)])


def no_events_expected():
    x = mf.Observable("x", 0.0, 10.0)
    parts = [
        mf.Gaussian(x, P("mu", 5.0, 0.0, 10.0), P("s", 1.0, 0.05, 5.0)),
        mf.Exponential(x, P("c", 0.0, -5.0, 5.0)),
    ]
    return mf.Sum(parts, yields=[P("a", 0.0, 0.0, 1e6), P("b", 1e-3, 0.0, 1e6)])


def three_as_one():
    """A saddle point in many directions."""
    x = mf.Observable("x", -5.0, 5.0)
    peaks = [mf.Gaussian(x, P(f"m{i}", 0.0, -4.0, 4.0), P(f"s{i}", 1.0, 0.1, 3.0)) for i in range(3)]
    return mf.Sum(peaks, fractions=[P("f0", 1 / 3, 0.0, 1.0), P("f1", 1 / 3, 0.0, 1.0)])


def tiny_units():
    x = mf.Observable("x", 0.0, 1e-9)
    peak = mf.Gaussian(x, P("mu", 5e-10, 0.0, 1e-9), P("s", 1e-10, 1e-12, 1e-9))
    return mf.Sum(
        [peak, mf.Exponential(x, P("c", 0.0, -1e11, 1e11))],
        yields=[P("a", 1e3, 0, 1e12), P("b", 1e3, 0, 1e12)],
    )


SHAPE = {"mu": 4.0, "s": 0.5, "c": -0.2}
CASES = {
    "all at low limits": (peak_on_slope(0.0, 0.05, -5.0, 0.0), SHAPE | {"f": 0.3}),
    "all at high limits": (peak_on_slope(10.0, 5.0, 5.0, 1.0), SHAPE | {"f": 0.3}),
    "no events expected": (no_events_expected(), SHAPE | {"a": 300.0, "b": 700.0}),
    "a saddle": (three_as_one(), {"m0": -2.0, "m1": 0.0, "m2": 2.0, "s0": 0.4, "s1": 0.3, "s2": 0.5}),
    "tiny units": (tiny_units(), {"mu": 3e-10, "s": 5e-11, "c": -1e9, "a": 400.0, "b": 600.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_fits_from_hostile_starts_end_where_the_truth_is(name):
    model, truth = CASES[name]
    events = None if "a" in truth else 1500
    study = mf.toy_study(model, toys=40, events=events, truth=truth, seed=3, backend=Cpu(threads=1))
    assert study.valid.all()
    columns = [list(study.names).index(n) for n in truth]
    off = np.median((study.values[:, columns] - list(truth.values())) / study.errors[:, columns], axis=0)
    assert np.all(np.abs(off) < FAR / np.sqrt(40)), dict(zip(truth, off, strict=True))
