"""Samples of templates follow their distributions, and toys of template fits have pulls of one."""

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import on_one_backend

pytestmark = pytest.mark.slow
SAMPLE = 100_000
LEAST = 1e-4  # p-values below are a failure; seeds are fixed
X, Y = mf.Observable("x", 0.3, 3.7), mf.Observable("y", -0.9, 0.8)
EDGES = np.array([0.0, 0.5, 0.7, 1.6, 2.0, 3.1, 4.0])
COUNTS = np.array([3.0, 0.0, 7.0, 1.0, 4.0, 2.0])
FINE = np.linspace(0, 4, 41)
rng = np.random.default_rng(7)
MODELS = {
    "steps": mf.Histogram(X, (COUNTS, EDGES)),
    "linear": mf.Histogram(X, (COUNTS, EDGES), "linear"),
    "cubic": mf.Histogram(X, (COUNTS, EDGES), "cubic"),
    "spline": mf.Spline(X, [0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 0.5, 2.0, 1.0]),
    "exponential spline": mf.Spline(X, [0.0, 1.0, 2.0, 4.0], [0.0, 2.0, -1.0, 1.0], exponential=True),
    "kernels": mf.KernelDensity(X, rng.uniform(0.3, 3.7, 30)),
    "morph": mf.Morph(mf.Parameter("t", 0.3, 0.0, 1.0), {0: mf.Gaussian(X, 1, 0.3), 1: mf.Histogram(X, (COUNTS, EDGES))}),
    "moment morph": mf.MomentMorph(mf.Parameter("t", 0.3, 0.0, 1.0), {
        k: mf.Histogram(X, (np.diff(stats.norm.cdf(FINE, 1.2 + k, 0.3)), FINE), "linear") for k in (0, 1)
    }),
}  # fmt: skip


@on_one_backend
@pytest.mark.parametrize("name", MODELS)
def test_samples_follow_the_distribution(name, backend):
    model = MODELS[name]
    column = mf.generate(model, SAMPLE, seed=21, backend=backend)["x"]
    assert column.min() >= X.low
    assert column.max() <= X.high
    assert stats.kstest(column, model.cdf).pvalue > LEAST


@on_one_backend
@pytest.mark.parametrize("kind", ["steps", "linear"])
def test_samples_in_a_plane_follow_the_density(kind, backend):
    contents = rng.uniform(0, 5, (6, 4)) * (rng.uniform(0, 1, (6, 4)) > 0.2)
    model = mf.Histogram([X, Y], (contents, EDGES, np.array([-1.0, -0.2, 0.1, 0.5, 1.0])), kind)
    data = mf.generate(model, SAMPLE, seed=22, backend=backend)
    cuts = [np.linspace(o.low, o.high, 9) for o in (X, Y)]
    counts = np.histogram2d(data["x"], data["y"], cuts)[0]
    expected = SAMPLE * np.array([
        [model.integrate({"x": (a, b), "y": (c, d)}) for c, d in zip(cuts[1], cuts[1][1:], strict=False)]
        for a, b in zip(cuts[0], cuts[0][1:], strict=False)
    ])  # fmt: skip
    assert expected.sum() == pytest.approx(SAMPLE, rel=1e-9)
    enough = expected > 5
    chi2 = np.sum((counts - expected)[enough] ** 2 / expected[enough])
    assert stats.chi2(enough.sum() - 1).sf(chi2) > LEAST


@on_one_backend
def test_pulls_of_template_fits_are_standard_normal(backend):
    names = [mf.Parameter("n_signal", 200.0, 0.0, 1000.0), mf.Parameter("n_background", 600.0, 0.0, 2000.0)]
    parts = [
        mf.Histogram(X, (np.diff(stats.norm.cdf(FINE, 1.8, 0.4)), FINE), "linear"),
        mf.KernelDensity(X, rng.uniform(0.3, 3.7, 3000)),
    ]
    study = mf.toy_study(mf.Sum(parts, yields=names), toys=1000, seed=23, backend=backend)
    assert study.valid.mean() > 0.99
    for parameter in names:
        pulls = study.pulls(parameter.name)
        assert abs(pulls.mean()) < 4 / np.sqrt(len(pulls))
        assert abs(pulls.std() - 1) < 4 / np.sqrt(2 * len(pulls))


@on_one_backend
def test_pulls_of_an_efficiency_and_of_a_moment_morph_are_standard_normal(backend):
    slope, t = mf.Parameter("slope", -0.5, -2.0, 1.0), mf.Parameter("t", 0.5, 0.0, 1.0)
    efficiency = mf.histogram_function(X, (np.array([0.2, 0.5, 0.7, 0.9, 1.0, 0.8]), EDGES))
    templates = {
        k: mf.Histogram(X, (np.diff(stats.norm.cdf(FINE, 1.2 + k, 0.3)) + 0.01, FINE), "linear")
        for k in (0, 1)
    }
    for model, name in (
        (mf.Density(np.exp(slope * X) * efficiency, X), "slope"),
        (mf.MomentMorph(t, templates), "t"),
    ):
        study = mf.toy_study(model, toys=500, events=500, seed=24, backend=backend)
        pulls = study.pulls(name)
        assert len(pulls) > 490
        assert abs(pulls.mean()) < 4 / np.sqrt(len(pulls))
        assert abs(pulls.std() - 1) < 4 / np.sqrt(2 * len(pulls))


POSITION, SHARE = mf.Parameter("t", 0.5, 0.0, 1.0), mf.Parameter("share", 0.4, 0.0, 1.0)
KERNELS = mf.KernelDensity(X, np.random.default_rng(8).normal(1.8, 0.3, 500))
FITTED = {
    "morph": mf.Morph(POSITION, {0: mf.Gaussian(X, 1, 0.5), 1: mf.Histogram(X, (COUNTS, EDGES))}),
    "moment morph": mf.MomentMorph(POSITION, {
        k: mf.Histogram(X, (np.diff(stats.norm.cdf(FINE, 1.2 + k, 0.3)) + 0.01, FINE), "linear") for k in (0, 1)
    }),
    "kernels": mf.Sum([KERNELS, mf.Exponential(X, mf.Parameter("slope", -0.5, -2.0, 1.0))], fractions=[SHARE]),
}  # fmt: skip


@on_one_backend
@pytest.mark.parametrize("name", FITTED)
def test_fits_of_morphs_and_kernel_densities_cover(name, backend):
    study = mf.toy_study(FITTED[name], toys=600, events=2000, seed=25, backend=backend, progress=False)
    assert study.valid.mean() > 0.99
    for parameter in study.names:
        pulls = study.pulls(parameter)
        covered = int(np.sum(np.abs(pulls) < 1))
        assert stats.binomtest(covered, len(pulls), 0.6827).pvalue > LEAST
        assert stats.kstest(pulls, "norm").pvalue > LEAST
