"""What is explained of a model is what a fit of it uses."""

import numpy as np
import pytest

import morefit as mf
from morefit.targets import Cpu

X = mf.Observable("x", -5.0, 5.0)


def extended():
    yields = [mf.Parameter("ns", 30.0, 0.0, 1e3), mf.Parameter("nb", 50.0, 0.0, 1e3)]
    return mf.Sum([mf.Gaussian(X, mf.Parameter("mu", 0.0, -1.0, 1.0), 1.0), mf.Uniform(X)], yields=yields)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_issue_the_kernel_explained_is_the_one_that_is_used(order, weighted):
    # this used to leave out the expected events of an extended model, and weights
    x = np.random.default_rng(1).uniform(-5, 5, 100)
    data = mf.Dataset({"x": x}, weights=np.full(100, 0.5) if weighted else None)
    found = mf.explain(extended(), data, backend=Cpu(threads=1))
    likelihood = mf.Likelihood(extended(), data, backend=Cpu(threads=1))
    assert found.source(order) == likelihood.compile(order).program.source
    assert found.kernel(order) in str(found)
    assert found.run_seconds[order] > 0


def test_issue_without_data_the_kernel_is_that_of_events_without_weights():
    found = mf.explain(extended(), backend=Cpu(threads=1))
    likelihood = mf.Likelihood(extended(), {"x": [0.0]}, backend=Cpu(threads=1))
    ours, theirs = (c.program.kernel.sums.per_set for c in (found.compiled[2], likelihood.compile(2)))
    assert ours == theirs != ()
