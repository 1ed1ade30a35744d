"""Integrals that users write for their densities are compared with numerical ones, once for each model."""

import math

import numpy as np
import pytest

import morefit as mf
from morefit.model import own_integral
from morefit.model.parts import check_model

X, Y = mf.Observable("x", 0.0, 5.0), mf.Observable("y", 0.0, 2.0)
TAU, MU = mf.Parameter("tau", 2.0, 1.0, 4.0), mf.Parameter("mu", 1.0)
FALL = np.exp(-X / TAU)
AREA = TAU * (1 - np.exp(-5.0 / TAU))
AT_START = 2.0 * (1 - math.exp(-2.5))


class Fall(mf.Pdf):
    """A density of a user, with the area of a range from ``low`` to ``high``."""

    def __init__(self, x, tau, factor=1.0):
        self.x, self.tau, self.factor = x, tau, factor

    def density(self):
        return np.exp(-self.x / self.tau)

    def integral_between(self, low, high):
        return self.factor * self.tau * (np.exp(-low / self.tau) - np.exp(-high / self.tau))


class Steeper(mf.Exponential):
    """A class with a density of its own and the integral of another."""

    def density(self):
        return np.exp(2 * self.slope * self.x)


WRONG = {
    "one": mf.Density(FALL, X, integral=1.0),
    "right at the start alone": mf.Density(FALL, X, integral=AT_START),
    "not a number": mf.Density(FALL, X, integral=np.log(-TAU)),
    "two observables": mf.Density(FALL * (1 + Y), [X, Y], integral=AREA),
    "between": Fall(X, TAU, 1.1),
    "inherited": Steeper(X, mf.Parameter("slope", -1.0, -2.0, -0.5)),
    "part of a sum": mf.Sum([mf.Uniform(X), mf.Density(FALL, X, integral=1.0)], fractions=[0.5]),
}
RIGHT = {
    "formula": mf.Density(FALL, X, integral=AREA),
    "two observables": mf.Density(FALL * (1 + Y), [X, Y], integral=4 * AREA),
    "between": Fall(X, TAU),
    "narrow": mf.Density(np.exp(-0.5 * ((X - 2.0) / 1e-4) ** 2), X, integral=math.sqrt(2 * math.pi) * 1e-4),
    "labels": mf.Density(mf.where(X == 1, 0.3, 0.7), X, integral=1.0),
    "not compared": mf.Density(FALL, X, integral=1.0, check=False),
    "infinite": mf.Density(np.exp(1e3 * X * TAU), X, integral=1.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_integral_that_is_wrong_is_refused(name):
    # fits of such a density used to be wrong in silence
    with pytest.raises(mf.ModelError, match=r"its integral must be that over 'x'.*, got .*; change it"):
        check_model(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_an_integral_that_is_right_or_cannot_be_compared_is_accepted(name):
    check_model(RIGHT[name])


def test_both_numbers_and_the_way_out_are_in_the_message():
    with pytest.raises(
        mf.ModelError,
        match=r"density 'Density': its integral must be that over 'x', 1.97333 at tau = 2.2, got 1; change it or leave it"
        " out, or set check=False where events are labels",
    ):
        mf.Likelihood(mf.Density(FALL, X, integral=1.0), {"x": [1.0]})
    with pytest.raises(mf.ModelError, match="or set integral_checked = False in its class"):
        mf.generate(Fall(X, TAU, 2.0), 10)


def test_parts_of_the_range_and_quantiles_are_compared_too():
    class Whole(Fall):
        def integral_between(self, low, high):
            return self.tau * (1 - np.exp(-5.0 / self.tau))

    class Drawn(Fall):
        def quantile(self, probability):
            return -self.tau * np.log(1 - probability)

    with pytest.raises(
        mf.ModelError, match=r"integral_between must return that over 'x' from 0 to 1.5, 1.08.*, got 1.97"
    ):
        check_model(Whole(X, TAU))
    with pytest.raises(
        mf.ModelError, match=r"quantile\(0.3\) must be where 0.3 of .* got 'x' = 0.78.*, below which 0.33"
    ):
        check_model(Drawn(X, TAU))


def test_an_integral_is_compared_once_for_each_model(monkeypatch):
    calls, own = [], own_integral.compare
    monkeypatch.setattr(own_integral, "compare", lambda *args: calls.append(args) or own(*args))
    model = mf.Density(FALL, X, integral=AREA)
    for _ in range(3):
        check_model(model)
    check_model(mf.Gaussian(X, MU, 1.0))
    assert len(calls) == 1


def test_a_copy_with_other_parameters_is_not_compared_either():
    model = mf.Density(FALL, X, integral=1.0, check=False)
    check_model(model.replace({TAU: mf.Parameter("other", 1.0, 0.5, 2.0)}))
