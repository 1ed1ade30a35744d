"""Kendall's tau is what counting pairs gives, with a p-value that finds dependence and not independence."""

import numpy as np
import pytest

import morefit as mf


def columns(count, dependence, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    return {"x": x, "y": dependence * x + rng.normal(size=count)}


def test_tau_is_the_excess_of_pairs_in_the_same_order():
    data = columns(80, 0.5)
    x, y = np.subtract.outer(data["x"], data["x"]), np.subtract.outer(data["y"], data["y"])
    expected = np.sign(x * y).sum() / (80 * 79)
    assert mf.kendall_tau(data, "x", "y").tau == pytest.approx(expected, abs=1e-12)


def test_dependence_is_seen():
    assert mf.kendall_tau(mf.Dataset(columns(500, 0.3)), "x", "y").p_value < 1e-4


def test_p_values_of_independent_columns_are_uniform():
    values = [mf.kendall_tau(columns(60, 0.0, seed), "x", "y").p_value for seed in range(200)]
    assert np.mean(values) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 200))


def test_observables_stand_for_their_names_and_the_test_prints_itself():
    x = mf.Observable("x", -10, 10)
    test = mf.kendall_tau(columns(500, 0.0), x, "y")
    assert str(test) == f"Kendall's tau {test.tau:.3f}, p-value {test.p_value:.2g}"


def test_what_cannot_be_tested_is_refused():
    data = mf.Dataset(columns(10, 0.0))
    with pytest.raises(mf.DataError, match="kendall_tau: events must have no weights"):
        mf.kendall_tau(data.with_weights(np.ones(10)), "x", "y")
    with pytest.raises(mf.DataError, match="dataset: no column 'z'"):
        mf.kendall_tau(data, "x", "z")
    with pytest.raises(mf.DataError, match="kendall_tau: takes two names of columns, got 1 and 'y'"):
        mf.kendall_tau(data, 1, "y")
    for values in ([], [1.0, 1.0]):
        with pytest.raises(
            mf.DataError, match="kendall_tau: column 'x' must have at least 2 different values"
        ):
            mf.kendall_tau({"x": values, "y": values}, "x", "y")
