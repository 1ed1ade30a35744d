"""Steps of the quadratic model by factorisations, judged by those by eigenvalues."""

import numpy as np
import pytest

from driven_fits import GOAL, new_fit
from morefit.minimise.quadratic_model import (
    FIRST_RADIUS,
    NULL,
    SUSPECT,
    UNKNOWN,
    choose_step,
    minimise_model,
    newton_step,
    step_as_long,
)

SAME = 1e-9  # of a step: rounding

EIGENVALUES = {
    "indefinite": lambda rng, n: np.append(rng.normal(size=n - 1), -rng.uniform(0.1, 2.0)),
    "one negative": lambda rng, n: np.append(rng.uniform(0.1, 2.0, n - 1), -0.5),
    "hardly negative": lambda rng, n: np.append(rng.uniform(0.1, 2.0, n - 1), -1e-3),
    "positive": lambda rng, n: rng.uniform(0.01, 2.0, n),
    "flat": lambda rng, n: np.append(rng.uniform(0.1, 2.0, n - 1), 0.0),
    "negative": lambda rng, n: -rng.uniform(0.1, 2.0, n),
}


def model(matrix, slopes):
    """A fit with a quadratic model."""
    fit = new_fit(np.zeros(len(slopes)))
    fit.matrix[:], fit.slopes[:] = np.ravel(matrix), slopes
    return fit


def random_model(kind, size, seed, steepness=1.0):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return (vectors * EIGENVALUES[kind](rng, size)) @ vectors.T, steepness * rng.normal(size=size)


@pytest.mark.parametrize("kind", EIGENVALUES)
@pytest.mark.parametrize("size", [1, 2, 7, 20])
@pytest.mark.parametrize("radius", [0.01, 0.7, 3.0, UNKNOWN])
def test_steps_are_those_by_eigenvalues(kind, size, radius):
    for seed in range(10):
        matrix, slopes = random_model(kind, size, seed, 10.0 ** (seed % 3 - 1))
        quick, exact = model(matrix, slopes), model(matrix, slopes)
        choose_step(quick, size, radius)
        minimise_model(exact, size, radius)
        assert (quick.bounded, quick.flats) == (exact.bounded, exact.flats)
        assert quick.model_radius == exact.model_radius
        # the same shifts are tried
        np.testing.assert_allclose(quick.part, exact.part, atol=SAME * np.linalg.norm(exact.part), rtol=0)
        if quick.bounded:
            assert quick.model_edm == pytest.approx(exact.model_edm)


@pytest.mark.parametrize("kind", ["indefinite", "one negative", "negative"])
def test_no_eigenvalues_are_needed_where_the_model_falls_without_end(kind):
    sure = 0
    for seed in range(100):
        fit = model(*random_model(kind, 7, seed))
        assert not newton_step(fit, 7, 1.0)
        if step_as_long(fit, 7, 1.0):
            sure += 1
            assert fit.bounded == 0.0
        assert np.all(fit.values == 0.0)
    assert sure >= 95


def test_no_eigenvalues_are_needed_where_the_minimum_is_outside():
    for seed in range(100):
        matrix, slopes = random_model("positive", 7, seed)
        fit = model(matrix, slopes)
        assert not newton_step(fit, 7, 0.1)
        assert step_as_long(fit, 7, 0.1)
        assert fit.bounded == 1.0
        assert fit.model_edm == pytest.approx(0.5 * slopes @ np.linalg.solve(matrix, slopes))


def test_steps_may_have_no_factorisations_but_newtons():
    matrix, slopes = random_model("one negative", 7, 1)
    fit, exact = model(matrix, slopes), model(matrix, slopes)
    fit.max_shifts = 0.0
    choose_step(fit, 7, 1.0)
    minimise_model(exact, 7, 1.0)
    np.testing.assert_array_equal(fit.part, exact.part)


@pytest.mark.parametrize("negative", [0.1 * NULL, 0.1 * SUSPECT * np.sqrt(2 * GOAL)])
def test_close_to_a_minimum_eigenvalues_tell_whether_a_curvature_is_there(negative):
    """The distance to the minimum may have made it."""
    slopes = [1e-3 * np.sqrt(GOAL), 0.5 * np.sqrt(GOAL)]
    fit = model(np.diag([-negative, 1.0]), slopes)
    assert not newton_step(fit, 2, 0.1)
    assert not step_as_long(fit, 2, 0.1)
    choose_step(fit, 2, 0.1)
    assert fit.bounded == 1.0


@pytest.mark.parametrize("radius", [0.1, 10.0, UNKNOWN])
def test_a_saddle_without_slope_is_left_by_its_eigenvector(radius):
    fit = model(np.diag([1.0, -0.3, 2.0]), [0.0, 0.0, 0.0])
    choose_step(fit, 3, radius)
    assert abs(fit.part[1]) == (FIRST_RADIUS if radius == UNKNOWN else radius)


@np.errstate(all="ignore")
@pytest.mark.parametrize("matrix", [np.full((3, 3), np.nan), np.diag([1.0, np.inf, -1.0])])
def test_what_is_no_number_comes_back(matrix):
    choose_step(model(matrix, [1.0, 1.0, 1.0]), 3, 1.0)
