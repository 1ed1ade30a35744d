"""A density that is not a positive number never goes unseen, and what lies past the data is never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Expr
from morefit.likelihood import Likelihood
from morefit.pipeline import Columns, Settings, compile_sums
from morefit.targets.base import Events
from tolerances import FUSED

EVENTS = 4096 + 13
PLACES = {
    "first": 0,
    "in a lane": 3,
    "end of a block": 4095,
    "second block": 4096,
    "tail": 4096 + 9,
    "last": 4096 + 12,
}
X = mf.Observable("x", -1e300, 1e300)
K = mf.Parameter("k", 1.0, 0.1, 10.0)


@dataclass(frozen=True)
class Case:
    """A formula and an event for which it is no density."""

    formula: Expr
    event: float


CASES = {
    "zero": Case(X.expr * K, 0.0),
    "minus zero": Case(X.expr * K, -0.0),
    "negative": Case(X + K, -2.5),
    "tiny and negative": Case(X * K, -1e-300),
    "infinite": Case(K / X, 0.0),
    "minus infinite": Case(K / X, -0.0),
    "too large": Case((X * K) ** 3, 1e200),
    "not a number": Case(np.sqrt(X) + K, -1.0),
    "one of two": Case((X + K) * (X**2 + 1), -2.5),
    "infinite under no logarithm": Case(np.exp(K / X), 0.0),
    "zero under no logarithm": Case(np.exp(-K / X), 0.0),
}
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def likelihood(case, x, backend, weights=None) -> Likelihood:
    model = mf.Density(CASES[case].formula, [X], integral=1, check=False)
    return mf.Likelihood(model, {"x": x}, weights=weights, backend=backend)


def good_events(n=EVENTS):
    return np.random.default_rng(n).uniform(0.5, 2.0, n)


# a weight multiplies the logarithm, after the density was looked at: with it one case of each kind is enough
cases_and_weights = pytest.mark.parametrize(("case", "weighted"), [
    *(pytest.param(case, False, id=f"{case}-plain") for case in CASES),
    *(pytest.param(case, True, id=f"{case}-weighted") for case in ("zero", "infinite", "not a number", "one of two")),
])  # fmt: skip
# A value looks at the bits of densities, derivatives at quotients by them: both are tried with all cases. Gradients, which
# do as Hessians do, are compiled for one and two logarithms and for none.
WITH_GRADIENTS = {"zero", "one of two", "zero under no logarithm"}


@cases_and_weights
def test_one_bad_event_is_seen_wherever_it_stands(case, weighted, backend):
    weights = np.random.default_rng(2).uniform(0.5, 1.5, EVENTS) if weighted else None
    for place in PLACES.values():
        x = good_events()
        x[place] = CASES[case].event
        nll = likelihood(case, x, backend, weights)
        assert nll.value([1.2]) == np.inf
        if case in WITH_GRADIENTS:
            assert np.isnan(nll.gradient([1.2])).all()
        assert np.isnan(nll.hessian([1.2])).all()
        assert list(nll.bad_events([1.2]).indices) == [place]


@pytest.mark.parametrize("event", [1e-310, 2e-308, 5e-324])
def test_a_denormal_density_is_bad_everywhere(event, backend):
    """Its logarithm is a number, but a loop that flushes it sees zero: what is bad must not depend on that."""
    x = good_events(20)
    x[7] = event
    nll = likelihood("zero", x, backend)
    assert nll.value([1.0]) == np.inf
    found = nll.evaluate_full(np.array([[1.0]]), 2)
    good = likelihood("zero", np.delete(x, 7), backend).evaluate_full(np.array([[1.0]]), 2)
    assert list(found.bad) == [1]
    for name in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(found, name), getattr(good, name), rtol=FUSED)
    assert list(nll.bad_events([1.0]).indices) == [7]


@cases_and_weights
def test_sums_over_the_good_events_are_kept(case, weighted, backend):
    places = [0, 5, 100, 4095, 4096, EVENTS - 1]
    x = good_events()
    x[places] = CASES[case].event
    weights = np.random.default_rng(2).uniform(0.5, 1.5, EVENTS) if weighted else None
    nll = likelihood(case, x, backend, weights)
    kept = None if weights is None else np.delete(weights, places)
    good = likelihood(case, np.delete(x, places), backend, kept)
    for order in (0, 1, 2) if case in WITH_GRADIENTS else (0, 2):
        found, expected = (one.evaluate_full(np.array([[1.2]]), order) for one in (nll, good))
        assert list(found.bad) == [len(places)]
        assert list(expected.bad) == [0]
        for name in ("value", "gradient", "hessian")[: order + 1]:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=FUSED)
    assert list(nll.bad_events([1.2]).indices) == places


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 17])
def test_all_events_may_be_bad(n, backend):
    nll = likelihood("negative", np.full(n, -5.0), backend)
    found = nll.evaluate_full(np.array([[1.0]]), 2)
    assert list(found.bad) == [n]
    assert found.value[0] == 0.0
    assert not found.gradient.any()
    assert not found.hessian.any()


def test_bad_sets_leave_the_others_of_a_batch_alone(backend):
    x = good_events()
    x[[7, 4100]] = -2.0, -3.0
    nll = likelihood("negative", x, backend)
    sets = np.array([[5.0], [2.5], [4.0], [1.0], [3.5]])
    found = nll.evaluate_full(sets, 2)
    assert list(found.bad) == [0, 1, 0, 2, 0]
    assert list(np.isinf(nll.value(sets))) == [False, True, False, True, False]
    for k in (0, 2, 4):
        alone = nll.evaluate_full(sets[k : k + 1], 2)
        assert found.value[k] == alone.value[0]
        assert found.gradient[k] == alone.gradient[0]
        assert found.hessian[k] == alone.hessian[0]


def test_denormal_densities_are_bad(backend):
    """Inside the loop they are zero, and zero has no logarithm."""
    x = good_events()
    x[[11, 4099]] = 1e-310, 5e-324
    nll = likelihood("zero", x, backend)
    assert nll.value([1.0]) == np.inf
    assert list(nll.evaluate_full(np.array([[1.0]]), 1).bad) == [2]
    assert list(nll.bad_events([1.0]).indices) == [11, 4099]


def test_the_smallest_normal_density_is_good(backend):
    x = good_events(9)
    x[4] = np.finfo(float).tiny
    nll = likelihood("zero", x, backend)
    assert nll.value([1.0]) == pytest.approx(-np.log(x).sum())
    assert not len(nll.bad_events([1.0]))


@pytest.mark.parametrize("n", range(1, 18))
def test_lanes_past_the_end_of_the_data_never_count(n, backend):
    nll = likelihood("zero", good_events(n), backend)
    assert list(nll.evaluate_full(np.array([[1.0]]), 2).bad) == [0]
    assert np.isfinite(nll.value([1.0]))


@weighted_or_not
def test_bad_events_of_the_next_set_never_count(weighted, backend):
    """The last vector of a set reaches into the events of the next one."""
    sizes = np.array([3, 5, 1, 4097, 2])
    x = good_events(int(sizes.sum()))
    x[3:8], x[9 : 9 + 4097] = -9.0, np.inf
    weights = np.ones(len(x)) if weighted else None
    request = likelihood(
        "negative", good_events(3), backend, None if weights is None else weights[:3]
    ).request(2)
    compiled = compile_sums(request, (K.expr,), Settings(backend))
    found = compiled.bind(Columns({"x": x}), Events.slices(sizes), weights)(np.ones((5, 1)))
    bad = ~np.isfinite(found).all(axis=1) | (found[:, -1] > 0)
    assert list(bad) == [False, True, False, True, False]


def test_the_list_of_bad_events_reads_well(backend):
    x = good_events(100)
    x[[3, 50]] = -2.5
    found = likelihood("negative", x, backend).bad_events([1.0])
    assert str(found) == "2 of 100 events have no positive density: event 3 (-1.5), 50 (-1.5)"
