"""Least squares of points, against iminuit, scipy and differences."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
from iminuit import Minuit, cost
from scipy.optimize import curve_fit, minimize

import morefit as mf

A, B = mf.Parameter("a", 1, -10, 10), mf.Parameter("b", 0.5, -10, 10)
X = np.linspace(0.5, 5, 25)
RNG = np.random.default_rng(2)
Y = 0.7 * X**2 + 1 + RNG.normal(0, 0.4, len(X))


def curve(x):
    return A * x**2 + B


@pytest.mark.parametrize("backend", ["cpu", "opencl", "reference"])
def test_a_fit_agrees_with_iminuit(backend):
    errors = np.linspace(0.2, 0.6, len(X))
    nll = mf.LeastSquares(curve, X, Y, errors, backend=backend)
    theirs = cost.LeastSquares(X, Y, errors, lambda x, a, b: a * x**2 + b)
    assert 2 * nll.value([1.0, 0.5]) == pytest.approx(theirs(1.0, 0.5), rel=1e-12)
    result, minuit = mf.fit(nll), Minuit(theirs, a=1, b=0.5)
    minuit.migrad()
    for name in ("a", "b"):
        assert result.values[name] == pytest.approx(minuit.values[name], abs=1e-3 * minuit.errors[name])
        assert result.errors[name] == pytest.approx(minuit.errors[name], rel=1e-3)
    assert result.chi2 == pytest.approx(minuit.fval, abs=1e-4) and result.ndf == 23 and result.events == 25


def test_errors_of_x_enter_with_the_slope():
    nll = mf.LeastSquares(curve, X, Y, 0.4, 0.1)

    def chi2(p):
        return np.sum((Y - p[0] * X**2 - p[1]) ** 2 / (0.4**2 + (2 * p[0] * X * 0.1) ** 2))

    for p in ([1.0, 0.5], [0.7, 1.0]):
        assert 2 * nll.value(p) == pytest.approx(chi2(p), rel=1e-12)
    x = np.array([0.8, 0.9])
    for k, step in enumerate(np.eye(2) * 1e-6):
        slope = (nll.value(x + step) - nll.value(x - step)) / 2e-6
        assert nll.gradient(x)[k] == pytest.approx(slope, rel=1e-6)
        bend = (nll.gradient(x + step) - nll.gradient(x - step)) / 2e-6
        np.testing.assert_allclose(nll.hessian(x)[k], bend, rtol=1e-6)
    judge = minimize(chi2, [0.7, 1.0], tol=1e-12)
    result = mf.fit(nll)
    np.testing.assert_allclose([result.values["a"], result.values["b"]], judge.x, rtol=1e-4)


def test_a_formula_may_have_several_observables():
    u, v = mf.Observable("u", 0, 1), mf.Observable("v", 0, 1)
    points = {"u": np.array([0.1, 0.5, 3.0, 0.2]), "v": np.array([1.0, 2.0, 0.5, 0.3])}
    y = 2 * points["u"] + 3 * points["v"]
    result = mf.fit(mf.LeastSquares(A * u + B * v, points, y, 0.1))
    assert result.values["a"] == pytest.approx(2) and result.values["b"] == pytest.approx(3)
    with_errors = mf.LeastSquares(A * u + B * v, points, y, 0.1, {"v": 0.2})
    assert 2 * with_errors.value([1, 1]) == pytest.approx(
        np.sum((points["u"] + 2 * points["v"]) ** 2 / (0.01 + 0.04)), rel=1e-12
    )
    one = mf.LeastSquares(A * u + B, points["u"], y, 0.1)
    assert one.ndata == 4
    with pytest.raises(mf.DataError, match=r"x must be by name for the observables 'u', 'v', got an array"):
        mf.LeastSquares(A * u + B * v, points["u"], y, 0.1)
    with pytest.raises(mf.DataError, match=r"x must have the observables \['u', 'v'\], got \['u', 'w'\]"):
        mf.LeastSquares(A * u + B * v, {"u": y, "w": y}, y, 0.1)


def test_points_join_everything():
    nll = mf.LeastSquares(curve, X, Y, 0.4, 0.05)
    best = mf.fit(nll)
    joint = nll + mf.constraint(A, 0.7, 0.001)
    assert mf.fit(joint).errors["a"] < 0.001 and mf.fit(joint).ndf == 24
    study = mf.toy_study(nll, toys=20, seed=1, truth=best, progress=False)
    assert study.valid.all()
    toy = mf.generate(nll, truth=best, seed=4)
    assert not np.array_equal(toy.data["x of the point"], X)
    boot = mf.intervals.bootstrap(nll, replicas=100, seed=1, progress=False)
    np.testing.assert_allclose(np.std(boot.values, axis=0), [best.errors["a"], best.errors["b"]], rtol=0.5)
    information = mf.fisher_information(mf.LeastSquares(curve, X, Y, 0.4), truth=best)
    assert information.errors["a"] == pytest.approx(mf.fit(mf.LeastSquares(curve, X, Y, 0.4)).errors["a"])
    assert pickle.loads(pickle.dumps(nll)).value([1, 1]) == nll.value([1, 1])
    assert repr(nll) == "LeastSquares(25 points, parameters: a, b)"
    minuit = Minuit(nll, a=1, b=1)
    assert minuit.migrad().valid and minuit.ndof == 23
    drawn = mf.plot(nll, values=best)
    assert drawn.numbers.chi2.statistic == pytest.approx(best.chi2)
    plt.close(drawn.figure)


# ------------------------------------------------------------------------------------ correlated errors

COVARIANCE = np.diag(np.linspace(0.05, 0.2, len(X))) + 0.3**2 * np.exp(-np.abs(X[:, None] - X))


@pytest.mark.parametrize("backend", ["cpu", "opencl", "reference"])
def test_correlated_errors_agree_with_scipy(backend):
    nll = mf.LeastSquares(curve, X, Y, covariance=COVARIANCE, backend=backend)
    distance = Y - X**2 - 0.5
    chi2 = distance @ np.linalg.solve(COVARIANCE, distance)
    assert 2 * nll.value([1.0, 0.5]) == pytest.approx(chi2, rel=1e-12)
    result = mf.fit(nll)
    best, covariance = curve_fit(
        lambda x, a, b: a * x**2 + b, X, Y, [1.0, 0.5], sigma=COVARIANCE, absolute_sigma=True
    )
    np.testing.assert_allclose([result.values["a"], result.values["b"]], best, rtol=1e-6)
    np.testing.assert_allclose(result.covariance, covariance, rtol=1e-5)
    assert (result.ndf, result.events, nll.ndata) == (23, 25, 25)


def test_points_with_a_covariance_join_everything():
    nll = mf.LeastSquares(curve, X, Y, covariance=COVARIANCE)
    best = mf.fit(nll)
    toys = [mf.generate(nll, truth=best, seed=k) for k in range(300)]
    drawn = np.array([toy.points_in_order["y of the point"] for toy in toys]) - nll.expected(best)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=5 * 0.3 / np.sqrt(300))
    assert mf.fit(mf.intervals.asimov(nll, best)).chi2 == pytest.approx(0, abs=1e-4)
    shown = mf.plot(nll, values=best).numbers
    assert shown.chi2.statistic == pytest.approx(best.chi2) and len(shown.pulls) == 25
    np.testing.assert_allclose(shown.y_errors**2, np.diag(COVARIANCE))
    assert repr(nll) == "LeastSquares(25 points, parameters: a, b)"
    with pytest.raises(mf.DataError, match="bootstrap: points with correlated errors cannot be resampled"):
        mf.intervals.bootstrap(nll, replicas=10, progress=False)
    information = mf.fisher_information(nll, truth=best)
    assert information.errors["a"] == pytest.approx(best.errors["a"])


def test_a_covariance_without_correlations_is_that_of_errors():
    errors = np.linspace(0.2, 0.6, len(X))
    apart, together = (
        mf.LeastSquares(curve, X, Y, errors),
        mf.LeastSquares(curve, X, Y, covariance=np.diag(errors**2)),
    )
    assert together.events == 25
    assert together.value([1.0, 0.5]) == pytest.approx(apart.value([1.0, 0.5]), rel=1e-14)


REFUSED_COVARIANCES = {
    "a vector": (np.ones(25), r"must be a matrix of 25 x 25 finite numbers, got array"),
    "no variance": (COVARIANCE - np.diag(np.diag(COVARIANCE)), r"must have positive variances, got 0"),
    "not symmetric": (
        COVARIANCE + np.triu(COVARIANCE, 1),
        r"must be symmetric, got elements that differ by 0.\d+",
    ),
    "singular": (np.ones((25, 25)), r"must be positive definite, got .* leave out a point"),
}


@pytest.mark.parametrize("case", list(REFUSED_COVARIANCES))
def test_covariances_that_are_none_are_refused(case):
    matrix, says = REFUSED_COVARIANCES[case]
    with pytest.raises(mf.DataError, match=f"least squares: covariance {says}"):
        mf.LeastSquares(curve, X, Y, covariance=matrix)


def test_errors_and_a_covariance_are_not_combined():
    with pytest.raises(mf.DataError, match="takes y_errors, or their covariance, and not both"):
        mf.LeastSquares(curve, X, Y, 0.3, covariance=COVARIANCE)
    with pytest.raises(mf.DataError, match="x_errors cannot be combined with a covariance"):
        mf.LeastSquares(curve, X, Y, x_errors=0.1, covariance=COVARIANCE)
    with pytest.raises(mf.DataError, match="pass a matrix as covariance="):
        mf.LeastSquares(curve, X, Y, COVARIANCE)


REFUSED = {
    "a density": (
        (mf.Gaussian(mf.Observable("u", 0, 1), A, 1.0), X, Y, 1.0),
        r"takes a function, got a density",
    ),
    "a number": ((lambda x: 3.0, X, Y, 1.0), r"must give a formula of parameters, got 3.0"),
    "parameters as arguments": (
        (lambda x, a, b: a + b * x, X, Y, 1.0),
        r"must take x alone, got one of \(x, a, b\); write its parameters as mf.Parameter",
    ),
    "no parameters": ((lambda x: 2 * x, X, Y, 1.0), r"has no parameters; write it with mf.Parameter"),
    "a name twice": ((A * mf.Observable("a", 0, 1), X, Y, 1.0), r"'a' names an observable and a parameter"),
    "no error": ((curve, X, Y, 0.0), r"y_errors must be positive, got 0"),
    "a negative error of x": ((curve, X, Y, 1.0, -1.0), r"x_errors must not be negative"),
    "too few y": ((curve, X, Y[1:], 1.0), r"x must have a number for each of 24 points, got 25"),
    "too few errors": (
        (curve, X, Y, [1.0, 2.0]),
        r"y_errors must have a number for each of 25 points, got 2",
    ),
    "nan": ((curve, X, np.full(25, np.nan), 1.0), r"y must be finite, got nan"),
    "masked": ((curve, X, np.ma.array(Y, mask=X > X[22]), 1.0), r"y must not be masked, got masked_array"),
    "none": (
        (curve, [], [], 1.0),
        r"y must have a number for each of some points, got 0|must be a list of numbers",
    ),
    "words": ((curve, X, "much", 1.0), r"y must be a list of numbers, got 'much'"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_makes_no_sense_is_refused(case):
    arguments, says = REFUSED[case]
    with pytest.raises(mf.MorefitError, match=f"least squares: .*{says}"):
        mf.LeastSquares(*arguments)
