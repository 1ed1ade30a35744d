"""Fits with acceptances cover: normalised by formula, by rule, and by sample with the error of the sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import on_one_backend

pytestmark = pytest.mark.slow

Y = mf.Observable("y", -1.0, 1.0)
SLOPE = mf.Parameter("slope", 0.3, -0.9, 0.9)
MU, SIGMA = mf.Parameter("mu", 0.2, -1.0, 1.0), mf.Parameter("sigma", 0.4, 0.1, 2.0)
ACCEPTANCE = mf.acceptance.Expansion(Y, [1.0, -0.4, 0.3, 0.1])
LINE, PEAK = mf.Polynomial(Y, [SLOPE]), mf.Gaussian(Y, MU, SIGMA)
STRONG = (0.5, 0.136, 0.191, -0.371, -0.159, 0.209, 0.079, -0.119)  # angular coefficients
TOYS = 1000
EXPERIMENTS = 120
EVENTS, SIMULATED = 1500, 1500


@on_one_backend
@pytest.mark.parametrize("pdf", [LINE, PEAK], ids=["formula", "rule"])
def test_fits_cover_with_an_acceptance_by_formula_and_by_rule(pdf, backend):
    study = mf.toy_study(mf.Efficiency(pdf, ACCEPTANCE), events=2000, toys=TOYS, seed=1, backend=backend)
    assert study.valid.mean() > 0.99
    for p in pdf.parameters:
        pulls = study.pulls(p)
        assert abs(np.mean(pulls)) < 4 / np.sqrt(TOYS)
        assert np.std(pulls) == pytest.approx(1.0, abs=4 / np.sqrt(2 * TOYS))


@on_one_backend
@pytest.mark.parametrize("pdf", [LINE, PEAK], ids=["line", "peak"])
def test_large_samples_follow_the_density(pdf, backend):
    model = mf.Efficiency(pdf, ACCEPTANCE)
    drawn = mf.generate(model, 200_000, seed=7, backend=backend)["y"]
    edges = np.linspace(-1, 1, 2001)
    below = np.searchsorted(np.sort(drawn), edges) / len(drawn)
    distance = np.abs(below - model.cdf(edges)).max()
    assert stats.kstwo(len(drawn)).sf(distance) > 1e-3


@on_one_backend
def test_angles_follow_a_density_with_an_acceptance_in_four_observables(backend):
    angles = [mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1), mf.Observable("phi", -np.pi, np.pi)]
    decay = mf.physics.KstarMuMu(*angles, *(mf.Parameter(f"p{k}", v) for k, v in enumerate(STRONG)))
    numbers = np.zeros((3, 3, 3, 3))
    numbers[0, 0, 0, 0], numbers[2, 0, 0, 1], numbers[0, 1, 2, 0], numbers[1, 1, 1, 1] = 1.0, -0.4, 0.2, 0.2
    model = mf.Efficiency(
        mf.Product([decay, mf.Exponential(Y, SLOPE)]), mf.acceptance.Expansion([*angles, Y], numbers)
    )
    data = mf.generate(model, 100_000, seed=3, backend=backend)
    boxes = [{}, {"ctk": (-1.0, 0.0), "phi": (0.0, 2.0)}]
    for o, box in [(o, box) for o in model.observables for box in boxes]:
        projection = mf.plots.project(model, data, o, bins=20, ranges=box, oversampling=1)
        assert (
            stats.chi2(20).sf(np.sum((projection.counts - projection.expected) ** 2 / projection.expected))
            > 1e-4
        )


def test_fits_by_sample_cover_only_with_the_error_of_the_sample():
    """As many simulated events as data: without their error, errors would be too small by about the root of two."""
    flat = mf.Efficiency(mf.Uniform(Y), ACCEPTANCE)
    data = mf.generate(mf.Efficiency(LINE, ACCEPTANCE), [EVENTS] * EXPERIMENTS, seed=2)
    samples = mf.generate(flat, [SIMULATED] * EXPERIMENTS, seed=3)
    pulls, naive = [], []
    for events, sample in zip(data, samples, strict=True):
        model = mf.Efficiency(LINE, mf.acceptance.simulation(sample, Y))
        result = mf.fit(model, events, backend="reference")
        error, simulated = result.errors["slope"], result.simulation_errors["slope"]
        pulls.append((result.values["slope"] - 0.3) / error)
        naive.append((result.values["slope"] - 0.3) / np.sqrt(error**2 - simulated**2))
    width = 4 / np.sqrt(2 * EXPERIMENTS)
    assert abs(np.mean(pulls)) < 4 / np.sqrt(EXPERIMENTS)
    assert np.std(pulls) == pytest.approx(1.0, abs=width)
    assert np.std(naive) > 1.0 + 0.8 * width
    assert np.mean(np.abs(pulls) < 1) == pytest.approx(0.683, abs=4 * np.sqrt(0.217 / EXPERIMENTS))
    assert np.mean(np.abs(naive) < 1) < 0.683 - 2 * np.sqrt(0.217 / EXPERIMENTS)
