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


def test_no_fit_with_a_moving_step_is_valid_wherever_it_ends():
    # 9 of 20 toys used to be valid, at a limit; the others went to Minuit one by one
    model = mf.Density(mf.where(x < 5 + a, 1.0, 1.5 + c), x)
    study = mf.toy_study(model, toys=10, events=300, seed=3, progress=False)
    assert not study.valid.any() and study.fraction_by("failed") == 1
    data = [mf.generate(model, 300, seed=k) for k in range(4)]
    assert not mf.fit_many(model, data).valid.any()
    for minimiser in ("auto", "minuit"):
        result = mf.fit(model, data[0], minimiser=minimiser)
        assert any("the density has a step that moves with a:" in reason for reason in result.reasons)


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        (np.exp(c * np.floor(x + a)), {"a"}),
        (mf.where(x < 5 + a, 1.0, 2.0 + c), {"a"}),
        (mf.where(x < 5 + a, 1.0, 0.0), set()),  # no event lies beyond
        (mf.where(x < 10 + a, 1.0, 2.0 + c), set()),  # never inside of the range
        (
            mf.where(x < mf.Parameter("a", 10.0, 5.0, 10.0), 1.0, 2.0 + c),
            {"a"},
        ),  # inside, but not at the start
        (np.exp(-abs(x - 5 - a)), set()),
        (np.exp(-1e3 * (x - 5 - a) ** 2) + mf.where(x < 5, 1.0, 2.0), set()),
    ],
)
def test_steps_are_told_from_kinks_and_ends(formula, names):
    assert moved_steps(mf.Density(formula, x), ("a", "c")) == names


@pytest.mark.parametrize(("power", "names"), [(0.0, {"a"}), (0.25, set()), (1.0, set())])
def test_a_component_that_is_cut_off_is_a_step_of_a_mixture(power, names):
    end = mf.where(x < 5 + a, (5 + a - x) ** power, 0.0)
    mixture = mf.Sum([mf.Density(end, x), mf.Uniform(x)], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])
    assert moved_steps(mixture, ("a", "f")) == names


@pytest.mark.parametrize("tail", [(0.1, -1.5, 1.5), (-0.3, -1.5, -0.01), (0.3, -0.5, 3.0)])
@pytest.mark.parametrize("alone", [True, False])
def test_a_density_that_falls_to_nothing_before_its_end_has_no_step(tail, alone):
    # fits of Novosibirsk's function used not to be valid: what is left of it at its end, 1e-25, was taken for a step
    mu, sigma = mf.Parameter("mu", 5.0, 2.0, 8.0), mf.Parameter("sigma", 0.5, 0.1, 2.0)
    peak = mf.shapes.Novosibirsk(x, mu, sigma, mf.Parameter("tail", *tail))
    mixture = mf.Sum([peak, mf.Uniform(x)], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])
    model = peak if alone else mixture
    assert not moved_steps(model, tuple(p.name for p in model.parameters))
    assert mf.fit(model, mf.generate(model, 500, seed=1)).valid
