"""Where a value is finite and a derivative exists, no backend makes NaN of it: a branch not taken does no harm."""

from __future__ import annotations

import math

import numpy as np
import pytest

import morefit as mf
from derivatives import hessian, value_and_derivatives
from morefit.expr import evaluate
from morefit.targets.base import Backend
from tolerances import FEW_ULP, REORDERED

X = mf.Observable("x", -4.0, 4.0)
P, Q = mf.Parameter("p", 1.5, -5.0, 5.0), mf.Parameter("q", 0.5, -5.0, 5.0)
ONE_EACH = np.array([-2.0, 0.0, 0.25, 1.0, 2.0])

# a positive formula, what it is for one event at (p, q), and its first derivatives there, by hand
FORMULAS = {
    "power of zero": (
        2 + abs(X) ** P,
        lambda x, p, q: (abs(x) ** p * math.log(abs(x)) if x else 0.0, 0.0),
    ),
    "root of a product at zero": (
        2 + np.sqrt(P * abs(X)),
        lambda x, p, q: (0.5 * math.sqrt(abs(x) / p), 0.0),
    ),
    "root of a sum at zero": (
        2 + np.sqrt(P * abs(X) + Q * X**2),
        lambda x, p, q: tuple(0.5 * v / math.sqrt(p * abs(x) + q * x * x) if x else 0.0 for v in (abs(x), x * x)),
    ),
    "root beyond an edge": (
        2 + np.sqrt(np.maximum(P - X, 0)),
        lambda x, p, q: (0.5 / math.sqrt(p - x) if x < p else 0.0, 0.0),
    ),
    "power beyond an edge": (
        2 + np.maximum(P - X, 0) ** Q,
        lambda x, p, q: (
            (q * (p - x) ** (q - 1), (p - x) ** q * math.log(p - x)) if x < p else (0.0, 0.0)
        ),
    ),
    "logarithm in a branch": (
        mf.where(X > 0, 2 + P * np.log(1 + X) + Q * X, 3 + P**2 * Q),
        lambda x, p, q: (math.log(1 + x), x) if x > 0 else (2 * p * q, p * p),
    ),
    "pole in a branch": (
        mf.where(X == 0, 2 + P, 2 + abs(P / X) ** Q),
        lambda x, p, q: (
            (q * abs(p / x) ** q / p, abs(p / x) ** q * math.log(abs(p / x))) if x else (1.0, 0.0)
        ),
    ),
    "arcsine at its edge": (
        3 + np.arcsin(np.minimum(P + X, 1)),
        lambda x, p, q: (1 / math.sqrt(1 - (p + x) ** 2) if p + x < 1 else 0.0, 0.0),
    ),
    "larger of two, one of them infinite": (
        np.maximum(P, 2 - 1 / abs(X)) + 1,
        lambda x, p, q: (1.0 if x == 0 or p > 2 - 1 / abs(x) else 0.0, 0.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_are_finite_and_right_on_both_sides_of_a_branch(name: str, backend: Backend) -> None:
    # these used to be NaN where the density is finite: 0 * inf
    formula, slopes = FORMULAS[name]
    model = mf.Density(formula, [X], integral=1.0, check=False)
    for event in ONE_EACH if name != "arcsine at its edge" else ONE_EACH[[0, 3, 4]]:
        likelihood = mf.Likelihood(model, {"x": np.array([event])}, backend=backend)
        floating = [p.name for p in likelihood.parameters]
        point = {"p": 1.5, "q": 0.5}
        value, slope, curvature = value_and_derivatives(likelihood, [point[n] for n in floating])
        expected = dict(zip("pq", slopes(float(event), **point), strict=True))
        found = -slope * math.exp(-value)
        np.testing.assert_allclose(
            found, [expected[n] for n in floating], REORDERED, REORDERED, err_msg=f"x = {event}"
        )
        assert np.all(np.isfinite(curvature)), event


@pytest.mark.parametrize(("exponent", "curvature"), [(1.0, 2.0), (1.5, 0.0), (2.0, 0.0)])
def test_a_power_of_a_square_has_its_curvature_at_zero(exponent: float, curvature: float) -> None:
    row = hessian(((P - X) ** 2) ** Q, [P.expr])[0]
    assert evaluate(row[0], {"p": 2.0, "x": 2.0, "q": exponent}) == curvature


@pytest.mark.parametrize("base", [2, 10])
def test_logarithms_are_exact_at_powers(base: int, backend: Backend) -> None:
    # floor(log10(1000)) used to be 2
    exponents = np.arange(-1000, 1020) if base == 2 else np.arange(-300, 308)
    powers = np.array([float(f"1e{k}") for k in exponents]) if base == 10 else 2.0**exponents
    x = mf.Observable("x", 1e-305, 1.7e308)
    p = mf.Parameter("p", 1.0)
    formula = np.floor((np.log10 if base == 10 else np.log2)(x)) + p
    likelihood = mf.Likelihood(
        mf.Density(p + 0 * x, x, integral=1.0, check=False), {"x": powers}, backend=backend
    )
    found = likelihood.event_values(np.array([[0.0]]), formula)[0, 0]
    np.testing.assert_array_equal(found, exponents)


def test_logarithms_to_a_base_agree_with_numpy(backend: Backend) -> None:
    data = np.random.default_rng(1).uniform(0.01, 3.0, 300)
    x, p = mf.Observable("x", 0.0, 4.0), mf.Parameter("p", 1.0)
    likelihood = mf.Likelihood(
        mf.Density(p + 0 * x, x, integral=1.0, check=False), {"x": data}, backend=backend
    )
    found = likelihood.event_values(np.array([[0.0]]), np.log2(x) + p, np.log10(x) + p)[0]
    np.testing.assert_allclose(found, [np.log2(data), np.log10(data)], FEW_ULP)


def test_an_exponential_beyond_all_numbers_is_infinite_in_sums_as_well():
    """Fast exponentials of sums were not a number there: 1 / (1 + exp(-(x - edge) / width)) was refused in a wide range."""
    x, s = mf.Observable("x", 0, 1e6), mf.Parameter("s", 1.0, 0.5, 2)
    density = mf.Density(1e-3 + 1 / (1 + np.exp(x * s)), [x], integral=1.0 * s, check=False)
    for place in (700.0, 709.4, 709.5, 709.7, 709.79, 800.0, 1e5):
        nll = mf.Likelihood(density, {"x": np.array([place])})
        assert nll.value([1.0]) == pytest.approx(-np.log(1e-3), rel=1e-12)


def test_a_steep_turn_on_is_integrated():
    x, edge, width = (
        mf.Observable("x", 0, 20),
        mf.Parameter("e", 15.0, 0, 20),
        mf.Parameter("w", 0.2, 1e-3, 2),
    )
    density = mf.Density(1 / (1 + np.exp(-(x - edge) / width)), [x])
    assert density.pdf(np.array([16.0]), {"e": 15.0, "w": 0.01})[0] == pytest.approx(1 / 5, rel=1e-9)


def test_every_target_has_derivatives_where_something_overflows(backend: Backend) -> None:
    x, e, w = mf.Observable("x", 0, 20), mf.Parameter("e", 15, 0, 30), mf.Parameter("w", 0.013, 1e-4, 2)
    z = (x - e) / w
    turn_ons = 1 / (1 + np.exp(-z)) + 1 / np.cosh(z) ** 2 + 1 / (1 + (x / e) ** 200) + np.exp(-np.exp(-z))
    density = mf.Density(1e-3 + turn_ons, [x], integral=1 + 0 * e * w, check=False)
    nll = mf.Likelihood(density, {"x": np.array([0.5, 4.9, 7.0, 11.0])}, backend=backend)
    start = [p.start for p in nll.parameters]
    np.testing.assert_allclose(nll.gradient(start), 0, atol=1e-9)
    np.testing.assert_allclose(nll.hessian(start), 0, atol=1e-9)


def test_a_fit_with_events_far_below_a_turn_on():
    """This used to stop: the likelihood had a value and no derivative."""
    x, e, w = mf.Observable("x", 0, 20), mf.Parameter("e", 19.5, 15, 19.9), mf.Parameter("w", 0.02, 1e-3, 2)
    model = mf.Density(0.01 + 1 / (1 + np.exp(-(x - e) / w)), [x])
    events = mf.generate(model, 1_000, seed=1)
    assert events["x"].min() < 19.5 - 709 * 0.02

    def exact(e, w):
        heights = 0.01 + np.exp(-np.logaddexp(0, -(events["x"] - e) / w))
        return len(events) * np.log(0.2 + w * np.logaddexp(0, (20 - e) / w)) - np.log(heights).sum()

    result = mf.fit(model, events)
    assert result.valid
    assert result.nll == pytest.approx(exact(**result.values), rel=1e-12)
    aside = [exact(result.values["e"] + side * 1e-4, result.values["w"]) for side in (-1, 1)]
    assert sum(aside) / 2 - result.nll == pytest.approx(
        0.5e-8 * np.linalg.inv(result.covariance)[0, 0], rel=1e-3
    )
