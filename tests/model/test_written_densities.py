"""Densities written as plain formulas: integrals, their derivatives, samples and fits, near the start values and far away."""

import json
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from derivatives import value_and_derivatives
from tolerances import WRITTEN_GRADIENT, WRITTEN_HESSIAN, WRITTEN_VALUE
from written import ROWS

FILE = Path(__file__).parents[1] / "reference" / "written_densities.json"
REFERENCE = json.loads(FILE.read_text())
PLACES = ["start", "far"]
# seconds each: one tail, a peak of several pieces, and a narrow ridge in a plane others have as well
DEAR = {"double_crystal_ball", "bukin", "correlated_gaussian"}


def reference(name, which, place):
    """Return events, and value, gradient and Hessian of the sum of ln f and of ln of the integral."""
    entry = REFERENCE[f"{name}/{which}/{place}"]
    events = {n: np.array(c) for n, c in entry["events"].items()}
    return events, *([np.array(part) for part in entry[key]] for key in ("sum", "integral"))


def in_order(row, parameters):
    """Return where the parameters of a likelihood stand in a row."""
    return [row.floating.index(p.name) for p in parameters]


def scales(row, sums, integral, count):
    """Return how far each parameter must go to matter: from derivatives before they cancel, a tenth of its limits at most."""
    if len(sums) > 2:
        sizes = np.sqrt(np.maximum(np.abs(np.diag(sums[2])), np.abs(count * np.diag(integral[2]))))
    else:
        sizes = np.maximum(np.abs(sums[1]), np.abs(count * integral[1]))
    limits = np.array([row.parameters[n][1:] for n in row.floating])
    return 1 / np.maximum(sizes, 10 / (limits[:, 1] - limits[:, 0]))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("which", ["full", pytest.param("part", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in DEAR)) for n in ROWS]
)
def test_likelihood_and_derivatives_are_those_of_the_reference(name, which, place):
    row = ROWS[name]
    events, sums, integral = reference(name, which, place)
    count = len(events["x"])
    nll = mf.Likelihood(row.model(which), events)
    order = in_order(row, nll.parameters)
    values = row.point(place)
    point = np.array([values[p.name] for p in nll.parameters])
    expected = [count * i - s for s, i in zip(sums, integral, strict=True)]
    found = value_and_derivatives(nll, point, row.order)
    assert abs(found[0] - expected[0][0]) <= (WRITTEN_VALUE + row.blur) * count
    step = scales(row, sums, integral, count)[order]
    slopes = np.abs(step * count * integral[1][order])
    off = np.abs(found[1] - expected[1][order]) * step
    assert np.all(off <= (WRITTEN_GRADIENT + row.blur) * np.maximum(1, slopes)), off
    if row.order > 1:
        off = np.abs(found[2] - expected[2][np.ix_(order, order)]) * np.outer(step, step)
        assert np.all(off <= WRITTEN_HESSIAN), off
