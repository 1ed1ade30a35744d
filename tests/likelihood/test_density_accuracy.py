"""Numerical integrals are compared with others that know where the events are."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import domain_of
from morefit.likelihood import accuracy, poles

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


POWER, FAR = mf.Parameter("power", 0.4, 0.01, 5.0), mf.Observable("x", 1e6, 1e6 + 1)
POLES = {
    "low end": (mf.Density((X + 5.0) ** (POWER - 1), X), -5.0),
    "far from zero": (mf.Density((FAR - 1e6) ** (POWER - 1), FAR), 1e6),
    "one that a parameter moves": (mf.Density(abs(X - A) ** (POWER - 1) + 0.1, X), 0.3),
    "logarithm": (mf.Density(1 + S - np.log((X - A) ** 2), X), 0.3),
    "root of an end point": (mf.Density(np.sqrt(np.maximum(4.0 + A - X, 0)) + 0.01, X), 4.3),
}


@pytest.mark.parametrize("name", POLES)
def test_only_events_next_to_a_pole_are_looked_at(name):
    pdf, pole = POLES[name]
    (x,) = pdf.observables
    digit = np.spacing(abs(pole))
    near, far = pole + digit * np.array([0, 1, 30, 900]), np.linspace(x.low + 0.01, x.high, 95)
    columns = {"x": np.concatenate([near, far])}
    values = {"a": 0.3, "s": 0.5, "power": 0.4}
    chosen = poles.near_poles(pdf, x, values, columns)
    assert chosen[:4].all()
    assert not chosen[4:].any() or abs(far[chosen[4:]] - pole).max() < 2e-6 * (x.high - x.low)


def test_events_next_to_a_line_where_a_density_of_two_observables_is_infinite_are_looked_at():
    pdf = mf.Density(abs(X - Y) ** (POWER - 1) + 0.1, (X, Y))
    columns = {"x": np.array([0.5, 1.0, 1.5, -3.0]), "y": np.array([0.5 + 1e-15, 1.1, 1.5, 0.2])}
    chosen = poles.near_poles(pdf, X, {"power": 0.4}, columns)
    np.testing.assert_array_equal(chosen, [True, False, True, False])


def test_a_fit_of_a_convolution_does_not_compute_it_at_all_events_to_check_it(monkeypatch):
    """200 000 events of a density with an end point and a resolution took 11 s, all but 0.1 of them for this check."""
    z = mf.Observable("z", 5.2, 5.3)
    end_point = mf.shapes.Argus(z, 5.29, mf.Parameter("c", -20.0, -60.0, -1.0))
    smeared = mf.Convolution(end_point, mf.Gaussian(z, 0, mf.Parameter("r", 0.003, 0.001, 0.01)))
    sizes, plain = [], poles.evaluate

    def evaluate(expr, values):
        if expr is smeared.density():
            sizes.append(np.size(values["z"]))
        return plain(expr, values)

    monkeypatch.setattr(poles, "evaluate", evaluate)
    data, values = mf.generate(smeared, 3000, seed=1), {"c": -20.0, "r": 0.003}
    assert any(axis.singular for node in accuracy.integrals(smeared) for axis in domain_of(node).axes)
    poles.check_rounding(smeared, values, data.columns)
    assert not sizes  # no event is where it could be infinite
