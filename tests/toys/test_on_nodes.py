"""Toys of log densities with an integral for each event: fitted at nodes, with the results of fits at events."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood.event_nodes import Cells, halved
from morefit.likelihood.slow_terms import SlowTerms
from morefit.toys.ensemble import Ensemble
from morefit.toys.on_nodes import have_fewer_nodes

x, d = mf.Observable("x", 0.0, 20.0), mf.Observable("d", -5.0, 5.0)
mu, width, sigma = (
    mf.Parameter("mu", 8.0, 6.0, 10.0),
    mf.Parameter("w", 1.0, 0.3, 3.0),
    mf.Parameter("s", 0.8, 0.3, 2.0),
)
smeared = mf.Convolution(mf.shapes.Moyal(x, mu, width), mf.Gaussian(d, 0.0, sigma))
EVENTS = 4000


def finer_than(cells: Cells) -> Cells:
    """Return cells of half the widths."""
    return Cells.over(halved(cells.edges))


def study(toys: int = 4, events: Any = EVENTS, **options: Any) -> mf.ToyResults:
    return mf.toy_study(smeared, toys=toys, events=events, seed=5, progress=False, **options)


@pytest.fixture
def at_events(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes fits use events."""

    def switch() -> None:
        monkeypatch.setattr(Ensemble, "grids", property(lambda self: (None,) * len(self.fitted.parts)))

    return switch


@pytest.fixture(scope="module")
def fitted() -> mf.ToyResults:
    return study()


def test_nodes_are_fewer_than_events():
    data = mf.Likelihood(smeared, mf.Dataset({"x": np.empty(0)}))
    start = {p.name: p.start for p in smeared.parameters}
    ensemble = Ensemble(drawn=data, fitted=data, truth=start, start=start, seed=1, backend=mf.Cpu(threads=1))
    assert have_fewer_nodes(np.array([EVENTS]), ensemble.grids)
    assert not have_fewer_nodes(np.array([10]), ensemble.grids)
    assert not have_fewer_nodes(np.array([EVENTS]), [None])


def test_fits_are_those_of_events(fitted, at_events):
    at_events()
    same = study()
    assert fitted.valid.all()
    assert np.max(np.abs(fitted.values - same.values) / same.errors) < 1e-5
    assert fitted.errors == pytest.approx(same.errors, rel=1e-6)
    assert fitted.nll == pytest.approx(same.nll, abs=1e-5)
    assert not np.array_equal(fitted.values, same.values)  # they were computed elsewhere


def test_a_toy_does_not_depend_on_others(fitted):
    assert np.array_equal(study(toys=2).values, fitted.values[:2])
    assert np.array_equal(study(block=1).values, fitted.values)
    mixed = study(events=[EVENTS, 60, EVENTS, 60])
    assert np.array_equal(mixed.values[[0, 2]], fitted.values[[0, 2]])


def test_toys_with_few_events_have_their_events(at_events):
    few = study(events=100)
    at_events()
    assert np.array_equal(few.values, study(events=100).values)


@pytest.mark.parametrize("nodes", ["few", "many"])
def test_cells_that_are_too_wide_are_not_used(nodes, monkeypatch, fitted, at_events):
    """Fits that end where cells do not resolve the density have cells of their own; without such, they are those of events."""
    shared = fitted_cells()
    monkeypatch.setattr(
        SlowTerms,
        "cells_hold",
        lambda self, cells, full: (np.arange(len(full)) != 1) | (len(cells.edges) != len(shared.edges)),
    )
    monkeypatch.setattr(
        SlowTerms,
        "finer_cells",
        lambda self, cells, row, events: finer_than(cells) if nodes == "few" else None,
    )
    some = study(toys=3)
    assert np.array_equal(some.values[[0, 2]], fitted.values[[0, 2]])
    assert some.values[1] == pytest.approx(fitted.values[1], rel=1e-5)
    assert not np.array_equal(some.values[1], fitted.values[1])
    at_events()
    assert np.array_equal(some.values[1], study(toys=3).values[1]) == (nodes == "many")


def fitted_cells() -> Any:
    likelihood = mf.Likelihood(smeared, mf.Dataset({"x": np.empty(0)}))
    return likelihood.slow.cells(np.array([[p.start for p in likelihood.all_parameters]]))


def test_cells_are_halved_where_a_fit_needs_it():
    likelihood, cells = mf.Likelihood(smeared, mf.Dataset({"x": np.empty(0)})), fitted_cells()
    narrow = np.array([{"mu": 8.0, "w": 0.8, "s": 0.5}[p.name] for p in likelihood.all_parameters])
    finer = likelihood.slow.finer_cells(cells, narrow, EVENTS)
    assert likelihood.slow.cells_hold(finer, narrow[None]).all()
    assert len(cells.nodes) < len(finer.nodes) < len(finer_than(finer_than(cells)).nodes)
    assert likelihood.slow.finer_cells(cells, narrow, len(cells.nodes)) is None


def test_cells_hold_where_they_were_made_and_not_far_away():
    likelihood = mf.Likelihood(smeared, mf.Dataset({"x": np.empty(0)}))
    start, cells = np.array([[p.start for p in likelihood.all_parameters]]), fitted_cells()
    narrow = np.array([[{"mu": 8.0, "w": 0.3, "s": 0.3}[p.name] for p in likelihood.all_parameters]])
    assert likelihood.slow.cells_hold(cells, np.concatenate([start, narrow])).tolist() == [True, False]


def test_other_ways_to_fit_them(at_events):
    data = mf.generate(smeared, [EVENTS] * 2, seed=9)
    n = mf.Parameter("n", 500, 0, 2000)
    beside = mf.Sum([mf.Exponential(x, mf.Parameter("a", -0.2, -1, 1))], yields=[n])
    joint = mf.Likelihood(smeared, data[0]) + mf.Likelihood(beside, mf.generate(beside, seed=3))
    own = mf.fit_many(smeared, data), mf.toy_study(joint, toys=2, seed=2, progress=False)
    at_events()
    for one, other in zip(
        own, (mf.fit_many(smeared, data), mf.toy_study(joint, toys=2, seed=2, progress=False)), strict=True
    ):
        assert np.max(np.abs(one.values - other.values) / other.errors) < 1e-5
        assert one.errors == pytest.approx(other.errors, rel=1e-6)


def test_a_density_seen_with_a_resolution_is_not_negative(monkeypatch):
    """What is an integral of densities that are never negative needs no look between events."""
    from morefit.likelihood import signs

    monkeypatch.setattr(signs.Grid, "heights_of", cached_property(lambda self: pytest.fail("looked at")))
    assert not signs.negative_rows(smeared, {p.name: np.array([p.start]) for p in smeared.parameters}).any()


def test_a_true_density_that_may_be_negative_outside_is_looked_at():
    k = mf.Parameter("k", 0.1, 0.0, 0.5)
    odd = mf.Convolution(mf.Density(1 + k * x, x), mf.Gaussian(d, 0.0, sigma))
    from morefit.likelihood.signs import is_positive

    assert not is_positive(odd)


def test_a_place_that_moves_into_the_range_is_no_narrow_peak():
    """Fits in compiled code took boxes for too wide around places that were outside of the range at the start."""
    y, e = mf.Observable("y", 0.0, 40.0), mf.Observable("e", -10.0, 10.0)
    peak = mf.shapes.RelativisticBreitWigner(
        y, mf.Parameter("m", 10.0, 5.0, 15.0), mf.Parameter("g", 1.2, 0.3, 4.0)
    )
    model = mf.Convolution(peak, mf.Gaussian(e, 0.0, mf.Parameter("r", 1.0, 0.3, 3.0)))
    toys = mf.toy_study(model, toys=10, events=600, seed=3, progress=False)
    assert (toys.values[:, 0] < 9.95).any()
    assert (toys.how == 0).all()  # by Newton's method, without a rescue


def test_toys_of_more_observables_than_are_fitted_have_their_events(at_events):
    """The column of the fitted observable need not be the first one that is drawn."""
    y = mf.Observable("y", -1.0, 1.0)
    both = mf.Product([mf.Uniform(y), smeared])
    own = mf.toy_study(both, fit_model=smeared, toys=2, events=EVENTS, seed=4, progress=False)
    at_events()
    same = mf.toy_study(both, fit_model=smeared, toys=2, events=EVENTS, seed=4, progress=False)
    assert own.valid.all()
    assert np.array_equal(own.values, same.values)
