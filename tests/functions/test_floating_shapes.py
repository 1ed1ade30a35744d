"""Densities of functions whose shapes and orders float: their derivatives against mpmath, and fits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import morefit as mf
import mp_functions as precise
from backend_rows import there
from morefit.targets.opencl.run import OpenCL
from tolerances import NUMERICAL

BACKENDS = {"cpu": "cpu", "opencl": OpenCL()}


def turn_on():
    """Return a density that rises as a beta distribution function does, and parameters whose range is wide."""
    x = mf.Observable("x", 0.0, 1.0)
    a, b = mf.Parameter("a", 2.3, 0.05, 50.0), mf.Parameter("b", 1.7, 0.05, 50.0)
    return mf.Density(mf.betainc(a, b, x), observables=[x])


def student_turn_on():
    """Return a density that rises as the distribution function of Student's t does."""
    t = mf.Observable("t", 0.1, 4.0)
    nu = mf.Parameter("nu", 3.0, 0.2, 80.0)
    return mf.Density(1 - mf.betainc(0.5 * nu, 0.5, nu / (nu + t**2)), observables=[t])


def rice():
    """Return the density of a noncentral chi distribution, whose number of degrees of freedom is an order of I."""
    r = mf.Observable("r", 0.0, 8.0)
    order, centre = mf.Parameter("order", 1.3, 0.0, 20.0), mf.Parameter("centre", 2.0, 0.1, 5.0)
    height = np.exp(-0.5 * (r - centre) ** 2) * mf.ive(order, r * centre)
    return mf.Density(r ** (order + 1) * centre**-order * height, observables=[r])


def exact_nll(a, b, places):
    """Return minus the log likelihood of a turn-on; the integral of a distribution function over [0, 1] is one less its mean."""
    logs = mp.fsum(mp.log(precise.betainc(a, b, mp.mpf(float(x)))) for x in places)
    return len(places) * mp.log(b / (a + b)) - logs


@pytest.mark.parametrize(("backend", "shapes"), [("cpu", (2.3, 1.7)), ("opencl", (0.3, 12.0))])
def test_likelihood_of_floating_shapes_has_exact_derivatives(backend, shapes):
    places = np.array([0.03, 0.2, 0.45, 0.8, 0.97])
    likelihood = mf.Likelihood(turn_on(), {"x": places}, backend=there(BACKENDS[backend]))
    with mp.workdps(40):
        at, step = [mp.mpf(s) for s in shapes], mp.mpf(10) ** -12

        def nll(i, j):
            return exact_nll(at[0] + i * step, at[1] + j * step, places)

        slopes = [(nll(1, 0) - nll(-1, 0)) / (2 * step), (nll(0, 1) - nll(0, -1)) / (2 * step)]
        middle = nll(0, 0)
        own = [(nll(1, 0) - 2 * middle + nll(-1, 0)), (nll(0, 1) - 2 * middle + nll(0, -1))]
        mixed = (nll(1, 1) - nll(1, -1) - nll(-1, 1) + nll(-1, -1)) / 4
        bends = [[float(v / step**2) for v in row] for row in ((own[0], mixed), (mixed, own[1]))]
    np.testing.assert_allclose(likelihood.value(shapes), float(middle), rtol=NUMERICAL)
    np.testing.assert_allclose(likelihood.gradient(shapes), [float(s) for s in slopes], rtol=NUMERICAL)
    np.testing.assert_allclose(likelihood.hessian(shapes), bends, rtol=NUMERICAL)


@pytest.mark.parametrize(
    ("make", "backend"), [(turn_on, "cpu"), (turn_on, "opencl"), (student_turn_on, "cpu"), (rice, "cpu")]
)
def test_shapes_and_orders_are_fitted(make, backend):
    model = make()
    truth = {p.name: p.start for p in model.parameters}
    result = mf.fit(model, mf.generate(model, 2_000, seed=5), backend=there(BACKENDS[backend]))
    assert result.valid
    for name, value in truth.items():
        assert abs(result.values[name] - value) < 5 * result.errors[name]
