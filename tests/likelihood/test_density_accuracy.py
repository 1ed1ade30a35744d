"""Numerical integrals are compared with others that know where the events are."""

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood import accuracy

X, Y = mf.Observable("x", -5.0, 5.0), mf.Observable("y", 0.0, 2.0)
A, S = mf.Parameter("a", 0.3, -4.0, 4.0), mf.Parameter("s", 0.5, 1e-4, 3.0)
PEAK = 1 / (1 + ((X - A) / S) ** 4)
STILL = {
    "peak": mf.Density(PEAK, X),
    "peak on two axes": mf.Density(PEAK * (1 + 0.1 * Y * (X - A) ** 2 / (1 + Y)), (X, Y)),
    "edge that stays": mf.Density(PEAK * mf.where(X > 1.0, 2.0, 1.0) + 0.01, X),
}
MOVING = {
    "edge that moves": mf.Density((1 + S * np.exp(-(X**2))) * mf.where(X > A, 2.0, 1.0), X),
    "pole": mf.Density((X + 5.0) ** (-0.5) * np.exp(-S * (X - A) ** 2 / (1 + X**2)), X),
}
EVENTS = {"x": np.linspace(-4.9, 4.9, 99), "y": np.linspace(0.0, 2.0, 99)}
POINTS = [{"a": 0.3, "s": 0.5}, {"a": -2.7, "s": 0.002}, {"a": 3.5, "s": 2.0}]


@pytest.mark.parametrize("name", STILL | MOVING)
def test_the_comparison_is_prepared_where_no_parameter_moves_an_edge(name):
    assert (accuracy.prepared_check((STILL | MOVING)[name]) is None) == (name in MOVING)


@pytest.mark.parametrize("values", POINTS)
@pytest.mark.parametrize("name", STILL | MOVING)
def test_an_integral_that_is_wrong_is_noticed_and_no_other(name, values, monkeypatch):
    pdf = (STILL | MOVING)[name]
    assert accuracy.density_error(pdf, values, EVENTS) < 1e-8
    right = accuracy.normalised_integral(pdf)
    monkeypatch.setattr(accuracy, "normalised_integral", lambda _: right * 1.001)
    assert accuracy.density_error(pdf, values, EVENTS) == pytest.approx(1e-3, rel=0.01)
