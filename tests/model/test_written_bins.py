"""Probabilities of bins of densities written as plain formulas, as plots and cdf use them, against closed forms."""

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf

import morefit as mf
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.targets.choose import choose_backend
from tolerances import INTEGRAL_PROMISE
from written import ROWS
from written.exact import EXACT
from written.precise import record

CPU = choose_backend("cpu")
CUTS = [0.0, 0.13, 0.31, 0.37, 0.62, 0.9, 0.999, 1.0]  # of a range
MIDDLE = [0.0, 0.43, 0.55, 1.0]  # bins that closed forms in several dimensions know
# closed forms that know no range outside the support of the density
WHOLE = {
    "edge_at_three_tenths",
    "log_normal_with_a_threshold",
    "pareto",
    "d_star_threshold",
    "box",
    "novosibirsk",
}
KNOWN = {name: row for name, row in ROWS.items() if name in EXACT and name not in WHOLE}


def probabilities(model, edges, values):
    x = model.observables[0]
    return bin_probabilities([model], model.parameters, values, Bins(x, np.asarray(edges), {}), CPU)[0]


def exact(row, edges, values):
    """Return the probability of each bin of the first observable in closed form."""
    _, *others = (tuple(map(mpf, ends)) for ends in row.ranges.values())
    bins = list(itertools.pairwise(map(mpf, edges)))
    p = record({n: mpf(v) for n, v in values.items()})
    with mp.workdps(30):
        areas = [EXACT[row.name](p, *((ends, *others) if others else ends)) for ends in bins]
        return [float(area / sum(areas)) for area in areas]


# near the start and far away in turns: bins are those of the integrals that test_written_densities.py looks at in both
@pytest.mark.parametrize(("name", "which"), [
    pytest.param(name, which, marks=[pytest.mark.exhaustive] * ((k + j) % 2))
    for k, name in enumerate(KNOWN) for j, which in enumerate(("start", "far"))
])  # fmt: skip
def test_bins_agree_with_closed_forms(name, which):
    """Poles at an edge and regions with slanted or curved edges used to be refused in a plot, though not in a fit."""
    row, values = ROWS[name], ROWS[name].point(which)
    low, high = next(iter(row.ranges.values()))
    edges = [low + (high - low) * cut for cut in (CUTS if len(row.ranges) == 1 else MIDDLE)]
    np.testing.assert_allclose(
        probabilities(row.model(), edges, values), exact(row, edges, values), rtol=0, atol=INTEGRAL_PROMISE + row.blur
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("student_t", 5000), ("gamma_below_one", 5000), ("needle_on_a_plane", 5000), ("gaussian_in_three_dimensions", 1200),
        *((name, 50) for name in sorted(WHOLE)),
    ],
)  # fmt: skip
def test_many_bins_add_up_to_one(name, count):
    """Every bin counts against the number of boxes, so that many bins used to be refused."""
    model = ROWS[name].model()
    x = model.observables[0]
    found = probabilities(model, np.linspace(x.low, x.high, count + 1), ROWS[name].point("far"))
    assert found.sum() == pytest.approx(1, abs=INTEGRAL_PROMISE)


def test_a_disc_can_be_plotted():
    model = ROWS["disc"].model()
    drawn = mf.plots.project(model, mf.generate(model, 2000, seed=1), "x", bins=10)
    assert drawn.curve.sum() == pytest.approx(2000, rel=INTEGRAL_PROMISE)
    assert np.abs(drawn.pulls[np.isfinite(drawn.pulls)]).max() < 4
