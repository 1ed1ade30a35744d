"""Errors of weighted events in whole fits, as Python runs them and as compiled code does."""

import numpy as np
import pytest

from driven_fits import evaluate, new_fit, quadratic
from morefit.kernel.fit_layout import FitLayout
from morefit.minimise.newton_program import draw, sums
from morefit.minimise.sandwich import correct_errors, fit_toy, scores
from running_drivers import compile_driver
from tolerances import REORDERED

LIMITS = [(0.0, 9.0)] * 3


@pytest.fixture
def matrices():
    rng = np.random.default_rng(4)
    hessian, middle = (m @ m.T + np.eye(3) for m in rng.normal(size=(2, 3, 3)))
    return hessian, middle


def fit_with(hessian, inverse, middle, x=(1.0, 2.0, 3.0)):
    """Return a fit that has ended, and what its events give."""
    fit = new_fit(x, LIMITS)
    fit.x[:], fit.hessian[:], fit.covariance[:] = x, np.ravel(hessian), np.ravel(inverse)
    fit.error[:] = np.sqrt(np.diag(inverse))
    fit.new_hessian[:] = np.tril(middle).ravel()
    return fit


def test_errors_are_those_of_the_sandwich(matrices):
    hessian, middle = matrices
    inverse = np.linalg.inv(hessian)
    fit = fit_with(hessian, inverse, middle)
    correct_errors(fit)
    expected = inverse @ middle @ inverse
    np.testing.assert_allclose(fit.covariance.reshape(3, 3), expected, rtol=REORDERED)
    np.testing.assert_allclose(fit.error, np.sqrt(np.diag(expected)), rtol=REORDERED)


def test_a_variance_at_a_limit_stays_and_takes_no_part(matrices):
    hessian, middle = matrices
    inverse = np.zeros((3, 3))
    inverse[1:, 1:] = np.linalg.inv(hessian[1:, 1:])
    inverse[0, 0] = 0.09
    fit = fit_with(hessian, inverse, middle, x=(0.0, 2.0, 3.0))
    correct_errors(fit)
    expected = inverse[1:, 1:] @ middle[1:, 1:] @ inverse[1:, 1:]
    np.testing.assert_allclose(fit.covariance.reshape(3, 3)[1:, 1:], expected, rtol=REORDERED)
    assert fit.error[0] == 0.3 and fit.covariance[:3].tolist() == [0.09, 0.0, 0.0]


def test_a_parameter_without_an_error_has_none(matrices):
    hessian, middle = matrices
    fit = fit_with(hessian, np.linalg.inv(hessian), middle)
    fit.error[1] = fit.covariance[4] = -1.0
    correct_errors(fit)
    assert fit.error[1] == fit.covariance[4] == -1.0 and fit.error[0] > 0 < fit.error[2]


def test_a_variance_that_is_not_positive_is_no_error(matrices):
    hessian, middle = matrices
    fit = fit_with(hessian, np.linalg.inv(hessian), -middle)
    correct_errors(fit)
    assert fit.error.tolist() == [-1.0] * 3


def test_compiled_errors_have_the_bits_of_python(matrices):
    hessian, middle = matrices
    fits = [fit_with(hessian, np.linalg.inv(hessian), middle) for _ in range(2)]
    correct_errors(fits[0])
    compile_driver(correct_errors, {"Fit": FitLayout(3).record})(fits[1].numbers)
    assert fits[0].numbers.tobytes() == fits[1].numbers.tobytes()


@np.errstate(all="ignore")
def test_scores_are_summed_once_where_the_fit_ended(monkeypatch):
    points = []

    def squared(job, fit):
        points.append(fit.trial.copy())
        fit.new_hessian[:] = [4.0, 0.0, 0.0, 9.0]

    monkeypatch.setattr(draw, "run", lambda job, fit: None)
    monkeypatch.setattr(sums, "run", lambda job, fit: evaluate(fit, quadratic(np.eye(2), [1.0, 2.0])))
    monkeypatch.setattr(scores, "run", squared)
    fit = new_fit([0.0, 0.0])
    fit_toy(np.zeros(0, np.int64), fit)
    np.testing.assert_allclose(points, [[1.0, 2.0]])
    assert fit.error.tolist() == [2.0, 3.0]
