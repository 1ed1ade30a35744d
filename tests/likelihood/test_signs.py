"""Densities that are negative where no event or bin shows it: such fits are not valid, others cost nothing."""

import re

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.likelihood import signs

X, Y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.0, 1.0)
C1, C2 = mf.Parameter("c1", 0.0, -2, 2), mf.Parameter("c2", 0.0, -2, 2)
PARABOLA = mf.Polynomial(X, [C1, C2])
GAP = np.concatenate(
    [np.linspace(0, 3, 300), np.linspace(7, 10, 300)]
)  # no events where the parabola is negative
SAYS = r"the density is negative at x = (4\.[89]|5\.[01])\d*,.* -0\.\d+ of its largest height; change limits or the model"

FITS = {
    "unbinned": lambda: mf.fit(PARABOLA, GAP),
    "extended": lambda: mf.fit(mf.Sum([PARABOLA], yields=[mf.Parameter("n", 600.0, 0, 1e4)]), GAP),
    "in ranges": lambda: mf.fit(PARABOLA, GAP, ranges={"x": [(0, 6), (6.5, 10)]}),
    "simultaneous": lambda: mf.fit(
        mf.Simultaneous({"a": PARABOLA, "b": mf.Exponential(X, mf.Parameter("slope", -0.1, -1, 1))}, "which"),
        {"a": GAP, "b": np.linspace(0, 9, 100)},
    ),
    "a product": lambda: mf.fit(
        mf.Product([PARABOLA, mf.Uniform(Y)]), {"x": GAP, "y": np.linspace(0, 1, len(GAP))}
    ),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_with_a_density_that_is_negative_between_events_is_not_valid(kind):
    """This used to be valid: the integral counted what is negative, so that the density was too large elsewhere."""
    result = FITS[kind]()
    assert not result.valid
    assert any(re.search(SAYS, reason) for reason in result.reasons)


def test_a_density_that_is_negative_inside_of_a_bin_is_not_valid():
    wave = mf.Density(1 + mf.Parameter("k", 0.0, -3, 3) * np.cos(2 * np.pi * X / 5), X)
    counts = [270, 16, 427, 16, 270]  # those of k = 1.5: they are positive although the wave is not
    result = mf.fit(mf.BinnedLikelihood(wave, (counts, np.linspace(0, 10, 6))))
    assert not result.valid
    assert any("the density is negative at x = " in reason for reason in result.reasons)


def test_a_sum_with_an_acceptance_whose_sign_is_not_known_is_fitted():
    # this used to be a KeyError
    yields = [mf.Parameter("a", 50.0, 0, 1e4), mf.Parameter("b", 50.0, 0, 1e4)]
    both = mf.Sum([mf.Gaussian(X, 5.0, 1.0), mf.Uniform(X)], yields=yields)
    model = mf.Efficiency(both, 1.1 - X / 10)
    assert mf.fit(model, mf.generate(model, seed=1)).valid


def test_a_density_outside_the_ranges_of_a_fit_may_be_anything():
    result = mf.fit(PARABOLA, GAP, ranges={"x": [(0, 3), (7, 10)]})
    assert result.valid


def test_a_negative_part_of_a_positive_sum_is_valid():
    model = mf.Sum(
        [mf.Uniform(X), mf.Gaussian(X, 5.0, 1.0)],
        yields=[mf.Parameter("flat", 1000.0, 0, 1e5), mf.Parameter("dip", 0.0, -1e3, 1e3)],
    )
    data = np.random.default_rng(1).uniform(0, 10, 1000)
    result = mf.fit(model, data[(np.abs(data - 5) > 0.3)])
    assert result.valid and result.values["dip"] < 0


DIP = mf.Sum(
    [mf.Uniform(X), mf.Gaussian(X, mf.Parameter("mu", 5.0, 2, 8), 1.0)],
    yields=[mf.Parameter("flat", 300.0, 0, 1e3), mf.Parameter("dip", 0.0, -200, 200)],
)


@pytest.mark.parametrize("model", [
    PARABOLA, DIP, mf.Sum([mf.Gaussian(X, 5.0, 1.0), PARABOLA], fractions=[mf.Parameter("f", 0.1, 0, 1)]),
    mf.Product([PARABOLA, mf.Density(1 + mf.Parameter("k", 0.0, -2, 2) * np.cos(6 * Y), Y)]),
    mf.Efficiency(DIP, 1.1 - X / 10), mf.Gaussian(X, C1, 1.0), mf.Uniform(X),
])  # fmt: skip
def test_many_values_at_once_are_judged_as_each_alone(model):
    rng = np.random.default_rng(1)
    values = {p.name: rng.uniform(p.low, p.high, 150) for p in model.parameters}
    below = np.broadcast_to(signs.negative_rows(model, values), 150)
    rows = [{name: column[k] for name, column in values.items()} for k in range(150)]
    assert below.tolist() == [bool(signs.negative_place(model, row)) for row in rows]
    assert below.any() == (model.parameters != () and not isinstance(model, mf.Gaussian))


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (mf.Gaussian(X, C1, 1.0), True),
        (mf.CrystalBall(X, 5.0, 1.0, mf.Parameter("alpha", 1, -5, 5), mf.Parameter("n", 2, 1.1, 9)), True),
        (mf.Sum([mf.Gaussian(X, 5.0, 1.0), mf.Uniform(X)], fractions=[mf.Parameter("f", 0.5, 0, 1)]), True),
        (mf.Sum([mf.Gaussian(X, 5.0, 1.0), mf.Uniform(X)], fractions=[mf.Parameter("h", 0.9, 0, 2)]), True),
        (mf.Product([mf.Exponential(X, C1), mf.Uniform(Y)]), True),
        (mf.Density(np.sqrt(X) * X**2 + np.exp(C1), X), True),
        (mf.Density(X * C1 + 1, X), False),
        (PARABOLA, False),
    ],
)
def test_common_densities_are_known_not_to_be_negative(model, known):
    assert signs.never_negative(model, {p.name: p.start for p in model.parameters}) is known


@pytest.mark.parametrize(
    ("density", "linear"),
    [
        (1 + 3 * C1 * X - C2 * (2 * X + 1), True),
        (C1 * C2 * X + 3, False),
        (C1**2 * X + 3, False),
        (np.exp(C1 * X) + C2, False),
        (X + 0.0 * C1, True),
    ],
)
def test_heights_of_linear_densities_are_those_of_their_formulas(density, linear):
    grid = signs.grid_of(mf.Density(density, X))
    values = {"c1": 0.7, "c2": -1.3}
    assert (grid.slopes is not None) is linear
    expected = evaluate(grid.density, {**values, **grid.columns})
    np.testing.assert_allclose(grid.heights(values), expected, rtol=1e-13)
