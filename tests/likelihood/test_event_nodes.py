"""Sums over nodes in the place of many events, against sums over the events themselves."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import there
from morefit.likelihood.event_nodes import Cells, FollowedNodes

PROMISE = 1e-8  # of the density
M, D, T = mf.Observable("m", 4.5, 6.5), mf.Observable("d", -1.0, 1.0), mf.Observable("t", 0.0, 5.0)
MU, WIDTH = mf.Parameter("mu", 5.3, 5.0, 6.0), mf.Parameter("s", 0.1, 0.01, 0.3)
EVENTS = 5000


def smeared(sigma=WIDTH):
    """Return a density without a formula."""
    return mf.Convolution(mf.Gaussian(M, MU, sigma), mf.shapes.Moyal(D, 0.0, 0.05))


def events(seed=1):
    return np.clip(np.random.default_rng(seed).normal(5.35, 0.13, EVENTS), 4.5, 6.5)


def by_events(nll, full, order=2):
    """Return what the same sums are over events."""
    return nll.bind_sums(nll.sums(order), None, nll.boxes)(full)


@pytest.mark.parametrize(
    ("backend", "weighted"),
    # nodes are events with weights to a device, which takes seconds to build the kernel
    [(mf.Cpu(), False), (mf.Cpu(), True), pytest.param(mf.OpenCL(), True, marks=pytest.mark.exhaustive)],
    ids=["plain", "weighted", "opencl"],
)
def test_sums_over_nodes_are_those_over_events(backend, weighted):
    weights = np.random.default_rng(2).uniform(-0.5, 2.0, EVENTS) if weighted else None
    nll = mf.Likelihood(smeared(), events(), weights=weights, backend=there(backend))
    full = np.array([[5.3, 0.1], [5.35, 0.12]])
    nodes = nll.on_nodes.at(full)
    assert len(nodes.points) < EVENTS / 2
    exact, ours = by_events(nll, full), nll.program(2, full=full)(full)
    sizes = EVENTS * np.array([1, 10, 10, 100, 100, 100, 1])  # of sums, by the widths of peaks
    assert np.all(np.abs(ours - exact) <= PROMISE * sizes)


def test_nodes_are_made_anew_where_a_peak_becomes_narrow():
    nll = mf.Likelihood(smeared(), np.tile(events(), 4))
    before = nll.on_nodes.at(None)
    narrow = np.array([[5.35, 0.01]])
    after = nll.on_nodes.at(narrow)
    assert len(after.points) > len(before.points)
    np.testing.assert_allclose(nll.program(0, full=narrow)(narrow), by_events(nll, narrow, 0), rtol=PROMISE)


def test_rows_far_apart_hold_together():
    nll = mf.Likelihood(smeared(), np.tile(events(), 4))
    rows = np.array([[5.3, 0.3], [5.3, 0.02], [5.6, 0.1]])
    np.testing.assert_allclose(nll.value(rows), -by_events(nll, rows, 0)[:, 0], rtol=PROMISE)


def test_a_narrow_peak_of_few_events_is_not_missed():
    line = mf.Gaussian(M, mf.Parameter("line", 6.1234, 6.0, 6.3), 0.002)
    model = mf.Sum([line, smeared()], fractions=[mf.Parameter("f", 0.001, 0.0, 1.0)])
    peak = np.random.default_rng(3).normal(6.1234, 0.002, 20)
    nll = mf.Likelihood(model, np.concatenate([np.tile(events(), 8), peak]))
    full = np.array([[p.start for p in nll.all_parameters]])
    np.testing.assert_allclose(nll.value(full), -by_events(nll, full, 0)[:, 0], rtol=PROMISE)


def test_events_without_density_are_named_as_ever():
    model = mf.Convolution(mf.Uniform(M), mf.Uniform(D), truth=(5.0, 5.2))
    nll = mf.Likelihood(model, np.append(np.random.default_rng(1).uniform(4.5, 6.0, EVENTS), 6.4))
    assert nll.on_nodes is None
    assert nll.value([]) == np.inf
    assert len(nll.bad_events([])) == 1


def test_few_events_and_several_observables_are_summed_one_by_one():
    assert mf.Likelihood(smeared(), events()[:100]).on_nodes is None
    assert mf.Likelihood(smeared(), np.full(EVENTS, 5.3)).on_nodes is None
    both = mf.Density(np.exp(-M * T / 50), [M, T])
    data = {"m": events(), "t": np.random.default_rng(1).uniform(0, 5, EVENTS)}
    assert mf.Likelihood(both, data).apart == ()
    assert mf.Likelihood(mf.Gaussian(M, MU, WIDTH), events()).on_nodes is None
    assert mf.Likelihood(smeared(), events(), precision="single").on_nodes is None


Y = mf.Observable("y", 0.01, 0.2)


def conditional(weights=None):
    """Return the likelihood of a density whose normalisation is an integral for each value of another observable."""
    rng = np.random.default_rng(4)
    scale, tau = mf.Parameter("scale", 1.2, 0.5, 2.0), mf.Parameter("tau", 1.5, 0.5, 4.0)
    peak = mf.Density(np.exp(-T / tau - (T * scale * Y) ** 2), [T], given=[Y])
    model = mf.Efficiency(peak, 1 - np.exp(-T))
    data = {"t": rng.exponential(1.2, EVENTS) % 5.0, "y": rng.uniform(0.01, 0.2, EVENTS)}
    return mf.Likelihood(model, mf.Dataset(data, weights=weights), constraints=[mf.constraint(tau, 1.4, 0.1)])


@pytest.mark.parametrize("weighted", [False, True])
def test_integrals_of_one_observable_of_several_are_summed_over_its_nodes(weighted):
    nll = conditional(np.random.default_rng(2).uniform(0.5, 2.0, EVENTS) if weighted else None)
    full = np.array([[p.start for p in nll.all_parameters], [1.0, 2.0]])
    (_, follow), *others = nll.apart
    assert not others and nll.on_nodes is None and follow.name == "y"
    exact = by_events(nll, nll.with_measured(full))
    ours = nll.program(2, full=full)(nll.with_measured(full))
    np.testing.assert_allclose(ours, exact, rtol=PROMISE, atol=PROMISE * EVENTS)
    many = nll.evaluate_many(nll.own_data(), np.arange(2), full)
    np.testing.assert_allclose(many.hessian, nll.evaluate_full(full, 2).hessian, rtol=PROMISE)
    np.testing.assert_allclose(nll.evaluate_again(full).value, -exact[:, 0], rtol=PROMISE)


def test_a_fit_and_its_minos_errors_are_those_of_events(monkeypatch):
    ours = mf.fit(smeared(), events(), minos=True)
    monkeypatch.setattr(FollowedNodes, "of", lambda *_: None)
    exact = mf.fit(smeared(), events(), minos=True)
    assert ours.valid and ours.nll == pytest.approx(exact.nll, rel=PROMISE)
    for name, error in exact.errors.items():
        assert ours.values[name] == pytest.approx(exact.values[name], abs=1e-4 * error)
        assert ours.errors[name] == pytest.approx(error, rel=1e-5)
        np.testing.assert_allclose(ours.minos[name], exact.minos[name], rtol=1e-3)


def test_weighted_fits_have_the_errors_of_events():
    weights = np.random.default_rng(2).uniform(0.2, 2.0, EVENTS)
    data = mf.Dataset({"m": events()}, M, weights=weights)
    result = mf.fit(smeared(), data)
    nll = mf.Likelihood(smeared(), data)
    score = nll.fisher([result.values["mu"], result.values["s"]])
    inverse = np.linalg.inv(nll.hessian([result.values["mu"], result.values["s"]]))
    np.testing.assert_allclose(result.covariance, inverse @ score @ inverse, rtol=1e-4)


@pytest.mark.parametrize("width", [0.3, 0.5, 1.0])
def test_interpolated_log_densities_are_farthest_where_they_are_compared(width: float) -> None:
    # toys are judged by four points of each cell, not by all over it
    cells, full = Cells.over(np.linspace(0.0, 8.0, 9)), np.zeros((1, 1))

    def logs(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.log(1 + np.exp(-0.5 * ((points - 3.7) / width) ** 2))[None] * np.ones((len(rows), 1))

    everywhere = cells.errors(np.linspace(0.0, 8.0, 3001), logs, full)[0]
    assert cells.errors(cells.farthest, logs, full)[0] > 0.5 * everywhere > 0
