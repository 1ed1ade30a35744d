"""Intervals of weighted fits cover as often as they say, and expected information is what toys find."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import STATISTICS, on_one_backend
from tolerances import PULL_SIGMAS

EVENTS = 2000  # of the signal; weighted errors are those of many events
LEVEL = 0.6827
T = mf.Observable("t", 0.0, 6.0)
TRUTH = {"slope": -0.6, "centre": 3.0, "fraction": 0.7, "decays": 1400.0, "bumps": 600.0}
FAR = {"slope": -0.2, "background": 1600.0}  # of what is subtracted
RATIO = 2.0  # sideband events for each background event in the signal region


def signal(*, extended):
    slope, centre = mf.Parameter("slope", -0.6, -5, 5), mf.Parameter("centre", 3.0, 2, 4)
    parts = [mf.Exponential(T, slope), mf.Gaussian(T, centre, 0.3)]
    if extended:
        yields = [mf.Parameter("decays", 1400.0, -1e4, 1e4), mf.Parameter("bumps", 600.0, -1e4, 1e4)]
        return mf.Sum(parts, yields=yields)
    return mf.Sum(parts, fractions=[mf.Parameter("fraction", 0.7, -1, 2)])


def drawn(model, mean, seed, count, backend):
    """Draw toys with a Poisson number of events each."""
    sizes = np.random.default_rng(seed).poisson(mean, count)
    return mf.generate(model, sizes.tolist(), seed=seed, backend=backend)


def subtracted(count, backend):
    """Signal and background under it, and a sideband that is subtracted: weights of 1 and of -1/2."""
    far = mf.Exponential(T, mf.Parameter("slope", FAR["slope"]))
    seen = drawn(signal(extended=False), EVENTS, 11, count, backend)
    under = drawn(far, FAR["background"], 12, count, backend)
    beside = drawn(far, RATIO * FAR["background"], 13, count, backend)
    for parts in zip(seen, under, beside, strict=True):
        weights = np.repeat([1.0, 1.0, -1 / RATIO], [len(p) for p in parts])
        yield mf.Dataset({"t": np.concatenate([p["t"] for p in parts])}, [T], weights=weights)


def corrected(count, backend):
    """Events that are seen with an efficiency which falls with t, each weighted by one over it."""
    rng = np.random.default_rng(21)
    for toy in drawn(signal(extended=False), EVENTS, 22, count, backend):
        efficiency = 0.9 * np.exp(-0.4 * toy["t"]) + 0.05
        seen = rng.random(len(toy)) < efficiency
        yield mf.Dataset({"t": toy["t"][seen]}, [T], weights=1 / efficiency[seen])


WAYS = ["subtracted", "corrected"]


@pytest.fixture(scope="module", params=WAYS)
def toys(request, backend, sizes):
    draw = {"subtracted": subtracted, "corrected": corrected}[request.param]
    return list(draw(sizes.weighted, backend))


@pytest.mark.slow
@on_one_backend
@pytest.mark.parametrize("extended", [False, True], ids=["fractions", "yields"])
def test_intervals_of_toys_that_a_formula_weights_cover_as_often_as_they_say(extended, backend, sizes):
    model, weights = signal(extended=extended), 1 / (0.9 * np.exp(-0.4 * T) + 0.05)
    toys = mf.toy_study(
        model, weights=weights, toys=sizes.weighted, events=None if extended else EVENTS, seed=31, backend=backend,
        progress=False,
    )  # fmt: skip
    assert toys.valid.mean() > 0.995
    for name in toys.names:
        inside = np.mean(np.abs(toys.pulls(name)) <= 1)
        assert abs(inside - LEVEL) < PULL_SIGMAS * np.sqrt(LEVEL * (1 - LEVEL) / len(toys)), name


# fits of weighted events on other backends are compared in tests/targets/test_weights_everywhere.py
@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "toys", "extended"),
    [
        pytest.param(
            backend,
            way,
            extended,
            id=f"{way}-{backend}-{'yields' if extended else 'fractions'}",
            marks=[pytest.mark.exhaustive] * (backend != "cpu"),
        )
        for backend in STATISTICS
        for way in WAYS
        for extended in (False, True)
    ],
    indirect=["backend", "toys"],
    scope="module",
)
def test_intervals_of_weighted_fits_cover_as_often_as_they_say(toys, extended, backend):
    model = signal(extended=extended)
    found = mf.fit_many(model, toys, backend=backend)
    assert found.valid.mean() > 0.995
    for k, name in enumerate(found.names):
        pulls = (found.values[:, k] - TRUTH[name]) / found.errors[:, k]
        inside = np.mean(np.abs(pulls[found.valid]) <= 1)
        assert abs(inside - LEVEL) < PULL_SIGMAS * np.sqrt(LEVEL * (1 - LEVEL) / len(toys)), name


@pytest.mark.slow
@on_one_backend
@pytest.mark.parametrize("extended", [False, True], ids=["fractions", "yields"])
def test_naive_errors_of_these_fits_would_be_far_too_small(toys, extended, backend, sizes):
    model = signal(extended=extended)
    name = "bumps" if extended else "fraction"
    pulls = []
    for toy in toys[: sizes.naive]:
        found = mf.fit(model, toy, errors="naive", minimiser="newton", backend=backend)
        pulls.append((found.values[name] - TRUTH[name]) / found.errors[name])
    expected = PULL_SIGMAS * np.sqrt(LEVEL * (1 - LEVEL) / sizes.naive)
    assert np.mean(np.abs(pulls) <= 1) < LEVEL - expected


@pytest.mark.slow
@on_one_backend
def test_bootstrap_errors_are_those_of_the_sandwich(toys, backend):
    model = signal(extended=True)
    robust, spread = (mf.fit(model, toys[0], errors=e, backend=backend) for e in ("sandwich", "bootstrap"))
    for name in robust.floating:
        assert spread.errors[name] == pytest.approx(robust.errors[name], rel=0.2)


@pytest.mark.slow
@on_one_backend
def test_weights_of_one_and_two_give_the_errors_of_no_weights(backend):
    model = signal(extended=False)
    data = mf.generate(model, 200_000, seed=3, backend=backend)
    plain = mf.fit(model, data, backend=backend)
    for weight in (1.0, 2.0):
        found = mf.fit(model, data, weights=np.full(len(data), weight), backend=backend)
        for name in plain.floating:
            assert found.errors[name] == pytest.approx(plain.errors[name], rel=0.01)


@pytest.mark.slow
@on_one_backend
@pytest.mark.parametrize("extended", [False, True], ids=["fractions", "yields"])
def test_the_mean_hessian_of_toys_is_the_expected_information(extended, backend, sizes):
    model = signal(extended=extended)
    truth = [TRUTH[p.name] for p in model.parameters]
    count = sizes.hessians
    events = np.random.default_rng(4).poisson(EVENTS, count) if extended else np.full(count, EVENTS)
    toys = mf.generate(model, events.tolist(), seed=5, backend=backend)
    hessians = np.array([mf.Likelihood(model, toy, backend=backend).hessian(truth) for toy in toys])
    expected = mf.fisher_information(model, None if extended else EVENTS, backend=backend).matrix
    away = (hessians.mean(axis=0) - expected) / (hessians.std(axis=0, ddof=1) / np.sqrt(count) + 1e-12)
    assert np.abs(away).max() < PULL_SIGMAS


@pytest.mark.slow
@on_one_backend
def test_expected_errors_are_the_spread_of_toys(backend, sizes):
    model = signal(extended=False)
    expected = mf.fisher_information(model, 5000, backend=backend)
    toys = mf.toy_study(model, toys=sizes.spread, events=5000, seed=6, progress=False, backend=backend)
    for k, name in enumerate(toys.names):
        spread = toys.values[toys.valid, k].std(ddof=1)
        assert abs(spread / expected.errors[name] - 1) < PULL_SIGMAS / np.sqrt(2 * sizes.spread) + 0.01
