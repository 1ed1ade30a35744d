"""Derivatives where exponentials and powers overflow: those of mpmath, not infinity times zero."""

import mpmath
import numpy as np
import pytest

import morefit as mf
from derivatives import hessian
from morefit.expr import column, evaluate, scalar, to_expr
from morefit.rewrite.derive import gradient as slopes
from morefit.rewrite.simplify import normalise
from mp_evaluate import mp_evaluate

X, EDGE, WIDTH = column("x"), scalar("e"), scalar("w")
Z = (X - EDGE) / WIDTH
FORMULAS = {
    "turn-on": 1 / (1 + np.exp(-Z)),
    "Bose": 1 / (np.exp((X + EDGE) / WIDTH) - 1),
    "expm1": 1 / np.expm1((X + EDGE) / WIDTH),
    "hyperbolic": 1 / np.cosh(Z) ** 2 + 1 / np.sinh((X + EDGE) / WIDTH),
    "numerator": EDGE * X**2 / (WIDTH + np.exp(-Z)),
    "high power": 1 / (1 + (X / EDGE) ** 200),
    "higher power": 1 / (1 + (X / EDGE) ** (20 / WIDTH)),
    "root": 1 / np.sqrt(1 + np.exp(-Z)) + (1 + np.exp(-Z)) ** -1.5,
    "power with parameter": (1 + np.exp(-Z)) ** (-1 / (WIDTH + 0.5)),
    "power of two": 1 / (1 + 2 ** (-Z)),
    "two edges": 1 / (1 + np.exp(-Z) + np.exp(Z - 40)),
    "product of edges": X**2 / ((1 + np.exp(-Z)) * (1 + np.exp(Z / 2 - 20))),
    "logarithm": np.exp(-3 * np.log(1 + np.exp(-Z))) + np.exp(-3 * np.log1p(np.exp(-Z))),
    "Gumbel": np.exp(-(Z + np.exp(-Z))),
    "flat top": np.exp(-(Z**200)) + np.exp(-np.cosh(Z)),
    "levels off": np.tanh(np.sinh(Z)) + np.arctan(np.sinh(Z)) + mf.erf(np.exp(Z)),
}
PLACES = (4.9, 7.0, 11.0, 14.99, 15.1)  # up to 777 widths from the edge, and at it
AT = {"e": 15.0, "w": 0.013}
POINT = (mpmath.mpf(15.0), mpmath.mpf(0.013))
DOUBLE = (
    "Gumbel",
    "flat top",
)  # exponentials of exponentials, which mpmath takes long for: they have fallen to zero
TINY = 1e-9  # what is added to densities that have such terms


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives_where_something_overflows(name):
    """These used to be infinity times zero: beyond 709 widths, and second derivatives beyond 355."""
    (root,) = normalise(to_expr(FORMULAS[name]))
    ((by_e,), (by_both, by_w)) = hessian(root, [EDGE, WIDTH])
    first = slopes(root, [EDGE, WIDTH])
    orders = {first[0]: (1, 0), first[1]: (0, 1), by_e: (2, 0), by_both: (1, 1), by_w: (0, 2)}
    with mpmath.workdps(40):
        for place in PLACES:

            def exact(e, w, place=place):
                return mp_evaluate(FORMULAS[name], {"x": place, "e": e, "w": w})

            for derivative, order in orders.items():
                fallen = name in DOUBLE and place < 14
                truth = 0 if fallen else mpmath.diff(exact, POINT, order, h=mpmath.mpf(10) ** -15)
                value = evaluate(derivative, {"x": place, **AT})
                assert value == pytest.approx(float(truth), rel=1e-9, abs=TINY), (place, order)


def test_powers_of_factors_do_not_overflow_where_those_of_their_product_do_not():
    """(x / w)**200 used to be x**200 / w**200: infinity over infinity at 49 / 50."""
    assert evaluate(normalise((X / WIDTH) ** 200)[0], {"x": 49.0, "w": 50.0}) == pytest.approx(0.98**200)


def test_slopes_just_before_an_overflow():
    """A slope is larger than what it belongs to, and used to overflow before it does, in second derivatives of integrals."""
    (root,) = normalise(1 / (1 + np.exp(-Z)))
    raw = to_expr(1 / np.cosh(Z) ** 2)  # not in normal form, as in integrals
    x = 15.0 - np.linspace(340, 720, 3_001) * AT["w"]
    for expr in (root, raw):
        for row in hessian(expr, [EDGE, WIDTH]):
            for derivative in row:
                np.testing.assert_allclose(evaluate(derivative, {"x": x, **AT}), 0, atol=TINY)


def test_a_power_of_exponentials_that_underflow_has_no_slope():
    (root,) = normalise((np.exp(-X / WIDTH) + np.exp(-X / EDGE)) ** (1 + EDGE))
    assert [evaluate(s, {"x": 1e4, "e": 1.0, "w": 2.0}) for s in slopes(root, [EDGE, WIDTH])] == [0, 0]


@pytest.mark.parametrize("shift", [360.0, -600.0])
@pytest.mark.parametrize("alone", [True, False])
def test_a_hessian_does_not_depend_on_the_size_of_an_integral(shift, alone):
    """It used to be NaN where an integral is below 1e-150 or above 1e150: its square was computed."""
    m = mf.Observable("m", 0.0, 1.0)
    fall, turns, fraction = (
        mf.Parameter("fall", 1.0, 0.1, 5.0),
        mf.Parameter("turns", 0.4),
        mf.Parameter("f", 0.5),
    )

    def hessian_of(scale):
        waves = 1 + np.sin(turns * m**3) ** 2  # no formula integrates it
        density = mf.Density(np.exp(-fall * m**2 - scale) * waves, observables=[m])
        model = density if alone else mf.Sum([density, mf.Exponential(m, -1.0)], fractions=[fraction])
        values = [p.start for p in model.parameters]
        return mf.Likelihood(model, {"m": np.linspace(0.01, 0.99, 20)}).hessian(values)

    np.testing.assert_allclose(hessian_of(shift), hessian_of(0.0), rtol=1e-9)


def test_a_hessian_next_to_the_overflow_of_a_density():
    """The second derivative of the logarithm of the integral of erfcx(-26) used to be NaN."""
    m = mf.Observable("m", 0.9, 1.0)
    steep = mf.Parameter("steep", -26.0, -27.0, 5.0)
    likelihood = mf.Likelihood(
        mf.Density(mf.erfcx(steep * m), observables=[m]), {"m": np.array([0.93, 0.99])}
    )
    # erfcx(u) is 2 exp(u^2) there: the Hessian is made of the mean and variance of x^2
    x = np.linspace(0.9, 1.0, 200_001)
    weights = np.exp(26.0**2 * (x**2 - 1))
    mean, square = (np.trapezoid(weights * x**k, x) / np.trapezoid(weights, x) for k in (2, 4))
    truth = 2 * (2 * mean + 4 * 26.0**2 * (square - mean**2)) - 2 * (0.93**2 + 0.99**2)
    assert likelihood.hessian([-26.0])[0, 0] == pytest.approx(truth, rel=1e-6)
