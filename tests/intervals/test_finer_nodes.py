"""Scans go where integrals for each event need other nodes than at the best fit: their nll is that of the likelihood there."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from morefit.intervals.free_fits import reached
from morefit.likelihood import bin_integrals
from morefit.minimise.batch import NEWTON
from morefit.toys.arguments import template_of
from morefit.toys.ensemble import Ensemble
from morefit.toys.nodes import fit_with_finer_nodes

ONE = mf.Cpu(threads=1)
X, WIDTH = mf.Observable("x", 0.0, 10.0), mf.Observable("width", 0.5, 1.0)
SCALE, MU = mf.Parameter("scale", 1.0, 0.001, 5.0), mf.Parameter("mu", 5.0, 4.0, 6.0)
PEAK = mf.Density(1 / (1 + ((X - MU) / (SCALE * WIDTH)) ** 2) + 0.001, [X, WIDTH], given=[WIDTH])
ROWS = {"width": np.random.default_rng(1).uniform(0.5, 1.0, 300)}
DATA = mf.generate(PEAK, given=ROWS, seed=1)
SCALES = np.array([0.003, 0.01, 0.03, 0.1, 1.0])
CLOSE = 1e-3  # of the nll, which integrals may change by ten times as much


@pytest.fixture(scope="module")
def nll():
    return mf.Likelihood(PEAK, DATA, backend=ONE)


def test_a_profile_has_the_nll_of_the_likelihood_at_its_points(nll):
    # with nodes for the best fit it was too low by 168, and valid
    found = mf.intervals.profile(nll, SCALE, SCALES, progress=False)
    there = [nll.value({"scale": s, "mu": m}) for s, m in zip(found.values, found.others[:, 0], strict=True)]
    assert found.valid.all()
    np.testing.assert_allclose(found.nll, there, atol=CLOSE, rtol=0)


def test_a_contour_without_other_parameters_has_it_as_well(nll):
    found = mf.intervals.contour(nll, SCALE, MU, bounds=((0.01, 1.0), (4.9, 5.1)), size=3, progress=False)
    there = [[nll.value({"scale": s, "mu": m}) for m in found.y] for s in found.x]
    assert found.valid.all()
    np.testing.assert_allclose(found.nll, there, atol=CLOSE, rtol=0)


def test_impacts_of_a_wide_constraint_are_minima_of_the_likelihood():
    known = mf.Likelihood(PEAK, DATA, constraints=[mf.constraint(SCALE, 1.0, 0.97)], backend=ONE)
    found = mf.intervals.impacts(known, MU)
    point = {"scale": found.values[0] - 0.97, "mu": found.value + found.before[0, 0]}
    at = [p.name for p in known.parameters].index("mu")
    slope, bend = known.gradient(point)[at], known.hessian(point)[at, at]
    assert abs(slope) < 1e-2 * np.sqrt(bend)


@pytest.mark.parametrize("followed", [0, 1])
def test_bins_are_right_in_a_profile_or_not_valid(followed, monkeypatch):
    # it was 122 too low at the first point, and valid
    monkeypatch.setattr(bin_integrals, "MAX_PEAKS", followed)
    width, edges = mf.Parameter("w", 1.0, 0.0005, 3.0), np.linspace(0, 10, 21)
    model = mf.Density(1 / (1 + ((X - MU) / width) ** 2) + 0.001, [X])
    counts = np.histogram(mf.generate(model, 500, seed=2)["x"], edges)[0]
    binned = mf.BinnedLikelihood(model, (counts, edges), backend=ONE)
    found = mf.intervals.profile(binned, width, [0.001, 0.1, 1.0], progress=False)
    assert found.valid.tolist() == [bool(followed), True, True]
    for w, mu, nll in zip(
        found.values[found.valid], found.others[found.valid, 0], found.nll[found.valid], strict=True
    ):
        mean = np.diff(w * np.arctan((edges - mu) / w) + 0.001 * edges)
        mean *= counts.sum() / mean.sum()
        logs = counts * np.log(np.maximum(counts, 1) / mean)
        assert abs(np.sum(mean - counts + logs) - nll) < 0.01


def test_toys_of_scans_are_checked_where_they_ended():
    # Feldman and Cousins' ratios, limits and belts took the nll of too few nodes for that of a minimum
    term, start = template_of("test", PEAK, given=ROWS), {"scale": 1.0, "mu": 5.0}
    ensemble = Ensemble(drawn=term, fitted=term, truth=start, start=start, seed=1, backend=ONE)
    toys = ensemble.draw(0, np.full((2, 1), 300)).stored()
    fits = toys.first_fit(ensemble)
    before = fits.nll.copy()
    fits.values[0] = [{"scale": 0.01, "mu": 5.0}[name] for name in ensemble.floating]
    fits.nll[0], fits.edm[0], fits.method[0] = before[0] - 100, 0.0, NEWTON
    fit_with_finer_nodes(toys, fits, ensemble, reached(fits))
    assert fits.nll[1] == before[1]
    assert not fits.valid[0] or abs(fits.nll[0] - before[0]) < CLOSE
