"""In single precision events are computed in floats, sums in doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from launching import model_of

import morefit as mf
from derivatives import value_and_derivatives
from morefit.targets.cpu.run import Cpu
from tolerances import SINGLE, SINGLE_MILLION, TOTAL
from zoo import mass

NAMES = ("mass", "kstarmumu", "gaussian", "extended", "product", "numerical", "crystal ball")


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", NAMES)
def test_single_precision_agrees_with_double(name, weighted, fast):
    model, data, x = model_of(name)
    for n in (5, 16, 17, 4097):
        some = {key: column[:n] for key, column in data.items()}
        weights = np.linspace(0.5, 1.5, n) if weighted else None
        single, double = (
            mf.Likelihood(model, some, weights=weights, backend=b, precision=p)
            for b, p in ((fast, "single"), (Cpu(), "double"))
        )
        (value, slopes), (exact, exact_slopes) = (
            value_and_derivatives(nll, x, 1) for nll in (single, double)
        )
        size = np.sqrt(n * np.diag(double.fisher(x)))
        assert value == pytest.approx(exact, rel=SINGLE, abs=SINGLE * n)
        np.testing.assert_array_less(np.abs(slopes - exact_slopes), SINGLE * size)


@pytest.mark.parametrize("name", ["mass", "kstarmumu", "gaussian"])
def test_second_derivatives_in_single_precision_agree_with_double(name, fast):
    model, data, x = model_of(name)
    single, double = (
        mf.Likelihood(model, data, backend=b, precision=p) for b, p in ((fast, "single"), (Cpu(), "double"))
    )
    size = np.sqrt(np.diag(double.fisher(x)))
    for found, exact in ((single.hessian(x), double.hessian(x)), (single.fisher(x), double.fisher(x))):
        np.testing.assert_array_less(np.abs(found - exact), SINGLE * np.outer(size, size))


def test_sums_of_a_million_single_precision_terms_lose_no_digits(fast):
    model, data, x = mass(10**6)
    nll = mf.Likelihood(model, data, backend=fast, precision="single")
    densities = nll.per_event(x)
    np.testing.assert_array_equal(densities, densities.astype(np.float32))
    exact = -math.fsum(np.log(densities.astype(np.longdouble)))
    assert nll.value(x) == pytest.approx(exact, rel=SINGLE_MILLION)


def test_sums_of_terms_that_single_precision_holds_are_exact(fast):
    x = mf.Observable("x", 0.0, 10.0)
    model = mf.Density(x + mf.Parameter("shift", 0.0), [x], integral=1, check=False)
    data = {"x": np.random.default_rng(1).uniform(1.0, 10.0, 10**6).astype(np.float32)}
    found = mf.Likelihood(model, data, backend=fast, precision="single").value([0.0])
    assert found == pytest.approx(-math.fsum(np.log(data["x"].astype(np.longdouble))), rel=TOTAL)


def test_columns_are_kept_in_single_precision():
    model, data, x = model_of("mass")
    nll = mf.Likelihood(model, data, backend=Cpu(), precision="single", weights=np.ones(len(data["m"])))
    nll.hessian(x)
    assert {buffer.numbers.dtype for buffer in nll.columns.buffers.values()} == {np.dtype(np.float32)}
    launched = nll.program(2).launch.columns
    assert {column.numbers.dtype for column in launched} == {np.dtype(np.float32)}


def test_bad_densities_are_seen_in_single_precision(fast):
    x = mf.Observable("x", -1e30, 1e30)
    k = mf.Parameter("k", 1.0)
    for event in (0.0, -1.0, 1e30, 1e-30):
        data = {"x": np.linspace(0.5, 2.0, 40)}
        data["x"][33] = event
        nll = mf.Likelihood(
            mf.Density(k * x**3, [x], integral=1, check=False), data, backend=fast, precision="single"
        )
        assert nll.value([1.0]) == np.inf
        assert list(nll.evaluate_full(np.array([[1.0]]), 2).bad) == [1]
