"""Derivatives of densities in pieces are right where a cut lies exactly at the end of the range, as round numbers do."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from derivatives import value_and_derivatives
from tolerances import DIFFERENCES

S = mf.shapes
EVENTS = {"x": np.array([5.75, 6.25])}
STEP = 1e-8
CASES = {
    "Gaussian with exponential tails": (S.GaussianExponentialTails, (6.0, 0.5, 2.0, 2.0)),
    "double Crystal Ball": (S.DoubleCrystalBall, (6.0, 0.5, 2.0, 2.0, 2.0, 3.0)),
    "generalised Crystal Ball": (S.GeneralisedCrystalBall, (6.0, 0.5, 0.25, 2.0, 2.0, 4.0, 3.0)),
    "Crystal Ball": (S.CrystalBall, (5.5, 0.5, 1.0, 2.0)),
    "Laplace": (S.Laplace, (7.0, 0.5)),
    "triangle": (S.Triangle, (5.0, 1.0, 3.0)),
    "Hypatia": (S.Hypatia, (6.0, 0.5, -2.0, 0.8, 0.1, 2.0, 3.0, 2.0, 2.0)),
    "Fermi": (S.Fermi, (7.0, 0.1)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_that_of_the_neighbours(name):
    # this used to have the slope of a cut twice or not at all: each part compared other numbers
    make, values = CASES[name]
    x = mf.Observable("x", 5.0, 7.0)
    likelihood = mf.Likelihood(make(x, *(mf.Parameter(f"p{k}", v) for k, v in enumerate(values))), EVENTS)
    at = np.array([*values, *(np.array(values) + STEP), *(np.array(values) - STEP)]).reshape(3, -1)
    here, above, below = (value_and_derivatives(likelihood, point, 1)[1] for point in at)
    assert here == pytest.approx((above + below) / 2, abs=DIFFERENCES)
