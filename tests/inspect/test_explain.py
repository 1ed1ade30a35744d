"""What is explained of a model is what a fit of it uses."""

import copy
import pickle

import numpy as np
import pytest

import morefit as mf
from morefit.targets.cpu.run import Cpu

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
    assert found.source(order) == likelihood.compile_request(likelihood.request(order)).program.source
    assert found.kernel(order) in str(found)
    assert found.run_seconds[order] > 0


def test_issue_without_data_the_kernel_is_that_of_events_without_weights():
    found = mf.explain(extended(), backend=Cpu(threads=1))
    likelihood = mf.Likelihood(extended(), {"x": [0.0]}, backend=Cpu(threads=1))
    assert (
        found.compiled[2].program.kernel.sums.per_set
        == likelihood.compile_request(likelihood.request(2)).program.kernel.sums.per_set
        != ()
    )


def test_explanations_are_pickled_and_copied_without_machine_code():
    # this used to be an error about an object of ctypes
    found = mf.explain(extended(), {"x": [0.0, 1.0]}, backend=Cpu(threads=1))
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), pickle.loads(pickle.dumps(copy.deepcopy(found)))):  # fmt: skip
        assert str(other) == str(found)
        assert [other.source(k) for k in range(3)] == [found.source(k) for k in range(3)]


def test_a_likelihood_is_explained_with_its_constraints_part_by_part():
    mu = mf.Parameter("mu", 0.0, -1.0, 1.0)
    first, second = (
        mf.Likelihood(
            mf.Gaussian(X, mu, width), {"x": [0.1, 0.2]}, constraints=[mf.constraint(mu, 0.1 * width, 0.2)]
        )
        for width in (1.0, 2.0)
    )
    alone = mf.explain(first)
    assert alone.source(2) == first.compile_request(first.request(2)).program.source
    assert "measured" in alone.kernel(2)
    both = mf.explain(first + second)
    assert [part.source(1) for part in both.parts] == [mf.explain(part).source(1) for part in (first, second)]
    # these used to be an AttributeError
    for text in (both.graphs(), both.cut(), both.kernel(2), both.times()):
        assert text.startswith("part 0") and "part 1" in text
    assert both.dot().count("digraph") == 2
    assert both.source(1) == "\n".join(part.source(1) for part in both.parts)
    assert "part 1" in str(both) and "part 1" in both._repr_html_() and "2 parts" in repr(both)
