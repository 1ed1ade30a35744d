"""Bins follow several peaks of a formula that become much narrower than at the start."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf

X = mf.Observable("x", 0.0, 10.0)
MU, W, F = (
    mf.Parameter("mu", 4.0, 0.0, 10.0),
    mf.Parameter("w", 1.0, 0.0005, 3.0),
    mf.Parameter("f", 0.5, 0.0, 1.0),
)
LINES = F / W / (1 + ((X - MU) / W) ** 2) + (1 - F) / W / (1 + ((X - MU - 3) / W) ** 2) + 0.01
MODEL = mf.Density(LINES, [X])
EDGES = np.linspace(0.0, 10.0, 21)


def counts_at(width):
    return np.histogram(mf.generate(MODEL, 2000, truth={"w": width, "mu": 4.2}, seed=1)["x"], EDGES)


def expected(width):
    """Return the probabilities of bins, by the formula of the integral."""
    area = 0.5 * np.arctan((EDGES - 4.2) / width) + 0.5 * np.arctan((EDGES - 7.2) / width) + 0.01 * EDGES
    return np.diff(area) / np.diff(area).sum()


@pytest.mark.parametrize("width", [1.0, 0.03, 0.003])
def test_the_nll_is_right_wherever_it_is_asked_for(width):
    # points for the start values were 66 too high, and 3000 at the narrowest
    counts = counts_at(width)[0]
    mean = expected(width) * counts.sum()
    with np.errstate(all="ignore"):
        nll = np.sum(mean - counts + np.where(counts > 0, counts * np.log(counts / mean), 0.0))
    found = mf.BinnedLikelihood(MODEL, (counts, EDGES), backend="cpu").value(
        {"w": width, "mu": 4.2, "f": 0.5}
    )
    assert abs(found - nll) < 0.01


@pytest.mark.slow
def test_fits_alone_and_together_end_at_two_narrow_peaks():
    # points that miss peaks make them narrower still: both ended at the limit of the width, and were not valid
    histogram = counts_at(0.03)
    nll = mf.BinnedLikelihood(MODEL, histogram, backend="cpu")
    one, many = mf.fit(nll), mf.fit_many(nll, [histogram, histogram], backend="cpu")
    assert one.valid
    assert abs(one.values["w"] - 0.03) < 5 * one.errors["w"]
    assert many.valid.all()
    np.testing.assert_allclose(many.nll, one.nll, atol=0.02, rtol=0)
