"""Densities with a step that a parameter moves: fits end with a sentence about it."""

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood.accuracy import moved_steps

x = mf.Observable("x", 0.0, 10.0)
a, c = mf.Parameter("a", 0.3, 0.0, 1.0), mf.Parameter("c", -0.2, -1.0, 1.0)


def test_a_fit_with_a_moving_step_says_so_without_trying_minuit():
    # it used to take hundreds of gradients in Minuit, and to say that the Hessian is not positive definite
    model = mf.Density(np.exp(c * np.floor(x + a)), x)
    result = mf.fit(model, mf.generate(model, 200, seed=1))
    assert not result.valid and result.calls["gradient"] == 0
    assert any("the density has a step that moves with a:" in reason for reason in result.reasons)


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        (np.exp(c * np.floor(x + a)), {"a"}),
        (mf.where(x < 5 + a, 1.0, 2.0 + c), {"a"}),
        (mf.where(x < 5 + a, 1.0, 0.0), set()),  # no event lies beyond
        (np.exp(-abs(x - 5 - a)), set()),
        (np.exp(-1e3 * (x - 5 - a) ** 2) + mf.where(x < 5, 1.0, 2.0), set()),
    ],
)
def test_steps_are_told_from_kinks_and_ends(formula, names):
    assert moved_steps(mf.Density(formula, x), ("a", "c")) == names
