"""The Gaussian in several observables: against scipy, its draws, its fits, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from tolerances import DIFFERENCES, FUSED

XS = [mf.Observable(f"x{k}", -3.0, 3.0) for k in range(4)]
WIDE = [mf.Observable(f"w{k}", -10.0, 10.0) for k in range(4)]
M = mf.Parameter("m", 0.3, -2.0, 2.0)
S = mf.Parameter("s", 1.0, 0.2, 3.0)
R = mf.Parameter("r", 0.6, -0.95, 0.95)
W = mf.Parameter("w", 0.7, 0.2, 3.0)
PAIR = mf.shapes.MultivariateGaussian(XS[:2], [M, 0.0], [[S**2, R * S * W], [R * S * W, W**2]])
MATRIX = np.array([[1.0, 0.42], [0.42, 0.49]])
JUDGE_OF_PAIR = stats.multivariate_normal([0.3, 0.0], MATRIX)


def events(observables, count, seed=0):
    rng = np.random.default_rng(seed)
    return {o.name: rng.uniform(o.low / 2, o.high / 2, count) for o in observables}


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_a_pair_is_normalised_on_its_ranges(backend):
    data = events(XS[:2], 10)
    inside = JUDGE_OF_PAIR.cdf([3, 3], lower_limit=[-3, -3])
    expected = JUDGE_OF_PAIR.pdf(np.column_stack(list(data.values()))) / inside
    density = PAIR.pdf(data, backend=there((COMPILED | JUDGE)[backend]))
    np.testing.assert_allclose(density, expected, 1e-7)  # scipy integrates to 1e-8


@pytest.mark.parametrize(("s", "w", "rest"), [(0.2, 4e-3, 1e-5), (1e-3, 1.0, 3e-4), (1e-3, 0.02, 0.5)])
def test_narrow_and_highly_correlated_pairs_are_normalised(s, w, rest):
    # these used to be up to a million times too large in silence: quadrature did not see all of a narrow ridge
    r, root = 1 - rest, np.sqrt(rest * (2 - rest))
    matrix = [[mf.Parameter("a", s**2), mf.Parameter("c", r * s * w)], [0, mf.Parameter("b", w**2)]]
    matrix[1][0] = matrix[0][1]
    ridge = mf.shapes.MultivariateGaussian(XS[:2], [0.5, 0.0], matrix)
    inside = stats.norm.cdf(3, 0, w) - stats.norm.cdf(-3, 0, w)  # nothing lies outside of the other range
    expected = 1 / (2 * np.pi * s * w * root * inside)
    assert ridge.pdf({"x0": [0.5], "x1": [0.0]})[0] == pytest.approx(expected, rel=1e-9)
    assert ridge.integrate({"x1": (-3.0, 0.0)}) == pytest.approx(0.5, rel=1e-6)


def test_derivatives_are_those_of_finite_differences():
    nll = mf.Likelihood(PAIR, events(XS[:2], 20))
    at = np.array([0.3, 1.0, 0.6, 0.7])
    steps = np.eye(4) * 1e-5
    bends = np.array([(nll.gradient(at + h) - nll.gradient(at - h)) / 2e-5 for h in steps])
    np.testing.assert_allclose(nll.hessian(at), bends, atol=10 * DIFFERENCES * np.abs(bends).max())


def test_many_observables_are_integrated_over_all_of_space():
    root = np.random.default_rng(0).normal(size=(4, 4))
    matrix, means = root @ root.T / 8 + 0.5 * np.eye(4), np.arange(4) / 4
    pdf = mf.shapes.MultivariateGaussian(WIDE, means, matrix)
    drawn = mf.generate(pdf, 20_000, seed=1)
    points = np.column_stack(list(drawn.columns.values()))
    np.testing.assert_allclose(
        pdf.pdf(drawn), stats.multivariate_normal(means, matrix).pdf(points), 100 * FUSED
    )
    whitened = np.linalg.solve(np.linalg.cholesky(matrix), (points - means).T)
    assert all(stats.kstest(z, "norm").pvalue > 1e-3 for z in whitened)
    assert np.abs(np.corrcoef(whitened) - np.eye(4)).max() < 0.03


@pytest.mark.parametrize("backend", ["reference", "opencl"])
def test_draws_are_the_same_everywhere_and_inside_the_ranges(backend):
    drawn, other = (
        mf.generate(PAIR, 2000, seed=1, backend=b) for b in ("cpu", there((COMPILED | JUDGE)[backend]))
    )
    np.testing.assert_allclose(other["x1"], drawn["x1"], rtol=1e-9, atol=1e-12)
    conditional = stats.norm(0.42 * (drawn["x0"] - 0.3), np.sqrt(0.49 - 0.42**2))
    ends = [conditional.cdf(end) for end in (-3, 3)]
    part = (conditional.cdf(drawn["x1"]) - ends[0]) / (ends[1] - ends[0])
    assert stats.kstest(part, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_a_fit_of_a_peak_over_a_plane_finds_the_truth():
    plane = mf.Product([mf.Uniform(o) for o in XS[:2]])
    model = mf.Sum([PAIR, plane], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])
    result = mf.fit(model, mf.generate(model, 4000, seed=3))
    assert result.valid
    assert all(abs(result.values[p] - p.start) < 4 * result.errors[p] for p in model.parameters)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: mf.shapes.MultivariateGaussian(XS[:2], [M], np.eye(2)),
            r"observables, means, and rows and columns of the covariance must be equally many, got 2, 1, 2 and \[2, 2\]",
        ),
        (
            lambda: mf.shapes.MultivariateGaussian(XS[:2], [M, M], [[1, 0.2], [0, 1]]),
            r"covariance\[1\]\[0\] must be covariance\[0\]\[1\], got expression '0' and expression '0.2'",
        ),
        (
            lambda: mf.shapes.MultivariateGaussian(XS[:2], [M, M], [[1, 2], [2, 1]]),
            "the covariance must be positive definite at the start of its parameters",
        ),
        (
            lambda: mf.shapes.MultivariateGaussian(XS, [0] * 4, np.eye(4)),
            "the ranges of more than 3 observables must hold all but 1e-06 of the events, got 0.011 outside; widen",
        ),
        (lambda: mf.shapes.MultivariateGaussian([M], [M], [[1]]), "argument 'domain' must be observables, got parameter 'm'"),
        (lambda: mf.shapes.MultivariateGaussian([XS[0]], ["m"], [[1]]), r"argument 'means\[0\]' must be a number, .* got 'm'"),
        (
            lambda: mf.generate(
                mf.shapes.MultivariateGaussian(WIDE, [M, 0, 0, 0], np.eye(4)), 10, truth={"m": 9.0}
            ),
            "its probability inside the ranges must be between 0 and 1, got -1; draw at other values",
        ),
    ],
)  # fmt: skip
def test_what_is_no_gaussian_is_refused(make, message):
    with pytest.raises(mf.ModelError, match=f"'MultivariateGaussian': {message}"):
        make()
