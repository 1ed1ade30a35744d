"""Sums of several alike densities, with many parameters: compiled derivatives are those that numpy computes."""

import numpy as np
import pytest

import morefit as mf
from shape_rows import all_rows
from tolerances import NUMPY_SUM

FEW, MANY = 2, 12  # parameters: second derivatives are summed one by one, and in tiles
OFTEN = {"CrystalBall", "Gaussian"}  # all others are run by hand
ROWS = {name: row for name, row in all_rows().items() if row.points[0].second and not row.whole}


def sum_of(row, parameters):
    """Return a sum of as many copies of a density as have some number of parameters, each with its own values."""
    point, copies = row.points[0], []
    x = mf.Observable("x", point.low, point.high)
    while len(copies) < 2 or len(copies) * (len(point.values) + 1) < parameters:
        k = len(copies)
        values = [mf.Parameter(f"{name}{k}", v * (1 + 0.01 * k)) for name, v in point.values.items()]
        copies.append(row.make(x, *values))
    yields = [mf.Parameter(f"yield{k}", 100.0 * (k + 1), 0.0, 1e4) for k in range(len(copies))]
    return mf.Sum(copies, yields=yields)


# a weight multiplies a term, whether it is summed alone or in a tile; tests/targets has both
@pytest.mark.parametrize(
    ("parameters", "weighted"),
    [
        pytest.param(n, w, id=f"{n}-{kind}", marks=[pytest.mark.exhaustive] * (w != (n == MANY)))
        for n in (FEW, MANY)
        for w, kind in ((False, "plain"), (True, "weighted"))
    ],
)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in OFTEN else [pytest.mark.exhaustive]) for n in ROWS]
)
def test_second_derivatives_are_those_of_numpy(name, parameters, weighted):
    row = ROWS[name]
    model, point = sum_of(row, parameters), row.points[0]
    # more than a piece of a block, and close to where the density is judged
    events = np.clip(
        point.at + 0.1 * (point.high - point.low) * np.linspace(-1, 1, 1100), point.low, point.high
    )
    weights = np.linspace(0.5, 1.5, len(events)) if weighted else None
    at = [p.start for p in model.parameters]
    fast, slow = (
        mf.Likelihood(model, {"x": events}, weights=weights, backend=b) for b in ("cpu", "reference")
    )
    expected = slow.hessian(at)
    scale = np.sqrt(np.abs(np.diag(expected)))
    unit = np.where(scale > 0, scale, 1.0)
    np.testing.assert_allclose(
        fast.hessian(at) / np.outer(unit, unit), expected / np.outer(unit, unit), atol=NUMPY_SUM
    )
