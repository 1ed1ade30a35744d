"""Tables are read inside of their ends, whatever numbers come: what a guard throws away has been read before."""

from __future__ import annotations

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Op, evaluate, leaves, toposort

X = mf.Observable("x", 0.0, 30.0)
D = mf.Observable("d", -6.0, 6.0)
MU, WIDTH = mf.Parameter("mu", 8.0, 0.0, 30.0), mf.Parameter("width", 1.5, 0.1, 5.0)
SMEAR = mf.Parameter("smear", 1.0, 0.1, 5.0)
STEPS = mf.Histogram(X, (np.array([1.0, 4.0, 2.0]), np.array([0.0, 5.0, 20.0, 30.0])), "linear")
EDGE = mf.where(X < MU, 1.0, 0.3)
MODELS = {
    "landau": mf.shapes.Landau(X, MU, WIDTH),
    "landau with a resolution": mf.Convolution(mf.shapes.Landau(X, MU, WIDTH), mf.Gaussian(D, 0.0, SMEAR)),
    "landau cut at a parameter": mf.Density(mf.shapes.Landau(X, 9.0, WIDTH).density() * EDGE, [X]),
    "template cut at a parameter": mf.Density(STEPS.density() * EDGE, [X]),
}
HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e9, -1e9, -0.0, 0.0, 1.0, 7.3]


@pytest.mark.parametrize("name", MODELS)
def test_every_lookup_lies_inside_of_its_table(name):
    # that of a Landau with a resolution did not, in panels of no width: with OpenCL the process ended
    lookups = [node for node in toposort(MODELS[name].normalised()) if node.op is Op.LOOKUP]
    assert lookups
    rng = np.random.default_rng(1)
    for node in lookups:
        names = sorted(leaf.name for op in (Op.COLUMN, Op.SCALAR) for leaf in leaves(op, node))
        values = {n: rng.choice(HOSTILE + list(rng.normal(0, 20, 11)), 5000) for n in names}
        with np.errstate(all="ignore"):
            place = np.asarray(evaluate(node.args[1], values))
        size = len(node.args[0].value.array)
        assert np.all((place > -1) & (place < size)), (place[~((place > -1) & (place < size))][:3], size)
