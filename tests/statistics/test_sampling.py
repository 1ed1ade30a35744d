"""Large samples of every shape, by every method, follow the numerically integrated density.

Seeds are fixed, so a test that passes always passes. Had they been chosen anew, a correct library would fail one
or more of all these tests with a probability of at most FALSE_ALARMS: each may fail with FALSE_ALARMS / TESTS
(Bonferroni), and there are no more than TESTS of them, all backends together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import stats
from sizes import Sizes

import morefit as mf
import zoo
from backend_rows import on_one_backend
from morefit.expr import evaluate
from morefit.sampling.generate import Sampler, all_values, expected_events, poisson_sizes
from morefit.targets.base import Backend

FALSE_ALARMS = 1e-3
TESTS = 400
LEAST = FALSE_ALARMS / TESTS
NODES = 6  # between neighbouring events, or in a bin
STEPS = 2000  # towards the first and the last event, where there is no other to tell how fine steps must be
AREA = 1e-5  # relative, of the integrals from event to event: a jump between two of them is not followed
FEWEST = 10  # expected events in a bin
STRONG = (0.5, 0.136, 0.191, -0.371, -0.159, 0.209, 0.079, -0.119)  # angular coefficients, hardly positive
HOSTED = ("xoshiro256++", "MT19937", "PCG64DXSM", "SFC64")
pytestmark = pytest.mark.slow


def parameter(name: str, start: float) -> mf.Parameter:
    return mf.Parameter(name, start)


def gaussian(mu: float, sigma: float) -> mf.Pdf:
    return mf.Gaussian(mf.Observable("x", 0.0, 1.0), parameter("mu", mu), parameter("sigma", sigma))


def exponential(slope: float) -> mf.Pdf:
    return mf.Exponential(mf.Observable("x", 0.0, 1.0), parameter("slope", slope))


def polynomial(*coefficients: float) -> mf.Pdf:
    x = mf.Observable("x", -1.0, 1.0)
    return mf.Polynomial(x, [parameter(f"c{k}", c) for k, c in enumerate(coefficients)])


def crystal_ball(alpha: float, n: float, low: float = 5.0, high: float = 7.0) -> mf.Pdf:
    starts = {"mu": 5.8, "sigma": 0.1, "alpha": alpha, "n": n}
    x = mf.Observable("x", low, high)
    return mf.CrystalBall(x, *(parameter(name, value) for name, value in starts.items()))


def custom(formula: Callable[[mf.Observable], object], low: float = 0.0, high: float = 1.0) -> mf.Pdf:
    x = mf.Observable("x", low, high)
    return mf.Density(formula(x), [x])


def mixture() -> mf.Pdf:
    """Components drawn by inversion, by good envelopes and inside another sum."""
    x = mf.Observable("x", 0.0, 1.0)
    wave = mf.Density(1 + np.sin(20 * x) ** 2, [x])
    steep = mf.Density(np.exp(-9 * x), [x])
    peak = mf.Gaussian(x, parameter("mu", 0.4), parameter("sigma", 0.02))
    inner = mf.Sum([steep, peak], fractions=[parameter("g", 0.7)])
    return mf.Sum([wave, inner, mf.Uniform(x)], fractions=[parameter("f", 0.5), parameter("h", 0.4)])


SHAPES: dict[str, Callable[[], mf.Pdf]] = {
    "Gaussian inside": lambda: gaussian(0.4, 0.05),
    "Gaussian, wide": lambda: gaussian(0.4, 5.0),
    "Gaussian at the lower edge": lambda: gaussian(0.0, 0.1),
    "Gaussian at the upper edge": lambda: gaussian(1.0, 0.1),
    "Gaussian 8 sigma below": lambda: gaussian(-0.8, 0.1),
    "Gaussian 8 sigma above": lambda: gaussian(1.8, 0.1),
    "Gaussian, very narrow": lambda: gaussian(0.7, 1e-6),
    "Exponential falling": lambda: exponential(-2.0),
    "Exponential rising": lambda: exponential(2.0),
    "Exponential flat": lambda: exponential(0.0),
    "Exponential almost flat": lambda: exponential(1e-8),
    "Exponential steep, falling": lambda: exponential(-400.0),
    "Exponential steep, rising": lambda: exponential(400.0),
    "Uniform": lambda: mf.Uniform(mf.Observable("x", -3.0, 8.0)),
    "line": lambda: polynomial(0.8),
    "line, zero at an edge": lambda: polynomial(-1.0),
    "parabola": lambda: polynomial(0.3, 0.5),
    "cubic": lambda: polynomial(-0.2, 0.5, 0.6),
    "CrystalBall": lambda: crystal_ball(1.3, 2.5),
    "CrystalBall, tail on the right": lambda: crystal_ball(-1.3, 2.5),
    "CrystalBall, n of one": lambda: crystal_ball(0.7, 1.0),
    "CrystalBall, n of one on the right": lambda: crystal_ball(-0.7, 1.0),
    "CrystalBall, tail only": lambda: crystal_ball(1.3, 2.5, high=5.5),
    "CrystalBall, core only": lambda: crystal_ball(1.3, 2.5, low=5.75),
}
CONSTANTS = ("Uniform", "Exponential flat", "Exponential almost flat")  # they need no envelope
ENVELOPES: dict[str, Callable[[], mf.Pdf]] = {
    "wave": lambda: custom(lambda x: 1.01 + np.sin(30 * x)),
    "step": lambda: custom(lambda x: mf.where(x < 1 / 3, 2.0, 1.0)),
    "half empty": lambda: custom(lambda x: mf.where(x < 0.5, 0.0, x**2)),
    "root": lambda: custom(lambda x: np.sqrt(x)),
    "corner": lambda: custom(lambda x: np.exp(25 * x)),
    "narrow on a background": lambda: custom(lambda x: 1e-5 + 1e-5 / ((x - parameter("a", 0.6)) ** 2 + 1e-9)),
}
SUMS: dict[str, Callable[[], mf.Pdf]] = {
    "mass": lambda: zoo.mass()[0],
    "CrystalBall on an exponential": lambda: zoo.crystal_ball()[0],
    "numerical": lambda: zoo.numerical()[0],
    "mixture": mixture,
    "many": lambda: zoo.many()[0],
}


@dataclass(frozen=True)
class Draw:
    """Draws samples of one size on one backend."""

    backend: Backend
    events: int

    def __call__(self, model: mf.Pdf, seed: int, **options: Any) -> mf.Dataset:
        return mf.generate(model, self.events, seed=seed, backend=self.backend, **options)

    def column(self, model: mf.Pdf, seed: int, **options: Any) -> np.ndarray:
        (x,) = model.observables
        return self(model, seed, **options)[x.name]


@pytest.fixture
def draw(backend: Backend, sizes: Sizes) -> Draw:
    return Draw(backend, sizes.sample)


@pytest.fixture
def draw_several(backend: Backend, sizes: Sizes) -> Draw:
    return Draw(backend, sizes.planes)


def distribution(model: mf.Pdf, points: np.ndarray) -> np.ndarray:
    """Integrate the density numerically from event to event; ``points`` are in order."""
    values = all_values(model, None)
    (x,) = model.observables
    nodes, weights = leggauss(NODES)
    closer = np.geomspace(1, 1e-12, STEPS)
    before = points[0] - (points[0] - x.low) * closer
    after = points[-1] + (x.high - points[-1]) * closer[::-1]
    edges = np.concatenate([before, points, after])
    half = np.diff(edges)[:, None] / 2
    heights = evaluate(model.density(), {**values, x.name: edges[:-1, None] + half * (1 + nodes)})
    steps = (np.broadcast_to(heights, half.shape[:1] + nodes.shape) * weights * half).sum(axis=1)
    area = np.concatenate([[0.0], np.cumsum(steps)])
    assert area[-1] == pytest.approx(float(evaluate(model.integral(), values)), rel=AREA)
    return area[STEPS : STEPS + len(points)] / area[-1]


def probability(model: mf.Pdf, events: np.ndarray) -> float:
    """Return how likely a larger distance of Kolmogorov is."""
    found = distribution(model, np.sort(events))
    steps = np.arange(len(found) + 1) / len(found)
    distance = max(np.max(found - steps[:-1]), np.max(steps[1:] - found))
    return float(stats.kstwobign.sf(distance * np.sqrt(len(found))))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_drawn_as_they_are(name, draw):
    model = SHAPES[name]()
    assert probability(model, draw.column(model, 101)) > LEAST


# an envelope is found from heights: those of each shape, where it is inside, at an edge, narrow or steep
UNDER_ENVELOPES = [
    "Gaussian inside", "Gaussian at the upper edge", "Gaussian 8 sigma below", "Gaussian, very narrow",
    "Exponential falling", "Exponential steep, rising", "line, zero at an edge", "cubic", "CrystalBall",
    "CrystalBall, n of one on the right", "CrystalBall, tail only",
]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.exhaustive] * (n not in UNDER_ENVELOPES))
        for n in SHAPES
        if n not in CONSTANTS
    ],
)
def test_shapes_are_drawn_the_same_under_an_envelope(name, draw):
    shape = SHAPES[name]()
    model = mf.Density(shape.density(), shape.observables, integral=shape.integral())
    assert probability(model, draw.column(model, 102)) > LEAST


@pytest.mark.parametrize("name", ENVELOPES | SUMS)
def test_densities_and_sums_are_drawn_as_they_are(name, draw):
    model = (ENVELOPES | SUMS)[name]()
    assert probability(model, draw.column(model, 103)) > LEAST


@on_one_backend  # the numbers of other backends are these: tests/targets/test_streams.py
@pytest.mark.parametrize("generator", ["xoshiro128++", *HOSTED])
def test_every_generator_draws_what_it_should(generator, draw):
    model = mixture()  # takes more numbers for an event than other models do
    assert probability(model, draw.column(model, 104, generator=generator)) > LEAST


@pytest.mark.parametrize("name", ["numerical", "mixture"])
def test_a_raised_envelope_draws_what_it_should(name, draw):
    model = SUMS[name]()
    low = Sampler(model, all_values(model, None), draw.backend, margin=-0.4)
    (events,) = low.draw(np.array([draw.events]), 105).columns
    assert low.margin > 0
    assert probability(model, events.values) > LEAST


@on_one_backend  # the numbers of other backends are these: tests/targets/test_streams.py
def test_a_component_of_one_in_a_million_is_drawn_as_often(backend, sizes):
    x = mf.Observable("x", 0.0, 1.0)
    rare = mf.Density(mf.where(x < 0.5, 0.0, np.exp(5 * x)), [x])
    common = mf.Density(mf.where(x < 0.5, 1.0 + x, 0.0), [x])
    model = mf.Sum([rare, common], fractions=[parameter("f", 1e-6)])
    count = int(np.sum(mf.generate(model, sizes.rare, seed=106, backend=backend)["x"] > 0.5))
    assert stats.binomtest(count, sizes.rare, 1e-6).pvalue > LEAST


def test_poisson_numbers_of_events_are_poisson():
    model = zoo.extended()[0]
    known = all_values(model, {"signal": 3.0, "background": 4.0})
    sizes = poisson_sizes(expected_events(model, known), 20_000, 107)
    edges = np.arange(2, 15)
    expected = 20_000 * np.diff(stats.poisson(7).cdf([-1, *edges, 1000]))
    found = np.histogram(sizes, [-0.5, *(edges + 0.5), 1000.5])[0]
    assert stats.chisquare(found, expected).pvalue > LEAST


def poisson_cdf(numbers: np.ndarray, mean: float) -> np.ndarray:
    """Add up probabilities: scipy's own sum is off by 1e-6 at a mean of 1e9, and its gamma function by as much."""
    mode = int(mean)
    low, high = max(mode - int(10 * np.sqrt(mean)) - 40, 0), mode + int(10 * np.sqrt(mean)) + 40
    steps = np.arange(low + 1.0, high + 1)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(mean / steps))])
    weights = np.exp(logarithms - logarithms.max())
    return (np.cumsum(weights) / weights.sum())[np.clip(numbers, low, high) - low]


@pytest.mark.parametrize("mean", [1e-3, 0.3, 1.0, 7.5, 1000.0, 123456.7, 1e9])
def test_sizes_of_many_toys_are_poisson(mean):
    count, bins = 300_000, 50
    sizes = poisson_sizes(mean, count, 108)
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, bins + 1))[:-1].astype(np.int64))
    cumulative = np.concatenate([[0.0], poisson_cdf(edges, mean), [1.0]])
    found = np.diff(np.searchsorted(np.sort(sizes), edges, "right"), prepend=0, append=count)
    expected = count * np.diff(cumulative)
    if expected[-1] < FEWEST:  # few are above the last edge
        found, expected = (np.append(a[:-2], a[-2:].sum()) for a in (found, expected))
    assert stats.chisquare(found, expected).pvalue > LEAST
    assert abs(sizes.mean() - mean) < 5 * np.sqrt(mean / count)
    assert abs(sizes.var() / mean - 1) < 5 * np.sqrt((2 + 1 / mean) / count)


def in_cells(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count pairs of numbers below one in 64 x 64 cells; np.histogram2d takes ten times as long."""
    return np.bincount(64 * (64 * first).astype(int) + (64 * second).astype(int), minlength=64 * 64)


@on_one_backend  # the numbers of other backends are these: tests/targets/test_streams.py
@pytest.mark.parametrize("generator", ["philox", "xoshiro128++"])
@pytest.mark.parametrize("apart", [1, 63, 64, 4096], ids=lambda n: f"{n} events apart")
def test_events_know_nothing_of_each_other(generator, apart, backend, sizes):
    """Also not if they are drawn from one stream, or from neighbouring ones."""
    x = mf.Observable("x", 0.0, 1.0)
    numbers = mf.generate(mf.Uniform(x), sizes.pairs, seed=109, backend=backend, generator=generator)["x"]
    pairs = numbers[: len(numbers) // (2 * apart) * 2 * apart].reshape(-1, 2, apart)  # none is in two of them
    for scale in (1, 2**20):  # the first bits, and later ones
        first, second = (scale * pairs[:, k].ravel() % 1 for k in range(2))
        assert stats.chisquare(in_cells(first, second)).pvalue > LEAST


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++"])
def test_toys_know_nothing_of_each_other(generator, backend, sizes):
    x = mf.Observable("x", 0.0, 1.0)
    events = [500] * sizes.neighbours
    drawn = mf.generate(mf.Uniform(x), events, seed=110, backend=backend, generator=generator)
    toys = np.array([d["x"] for d in drawn])
    assert stats.chisquare(in_cells(toys[::2].ravel(), toys[1::2].ravel())).pvalue > LEAST
    assert stats.kstest((toys.sum(axis=1) - 250) / np.sqrt(500 / 12), "norm").pvalue > LEAST


# -------------------------------------------------------------------------------- several observables


def bin_contents(model: mf.Pdf, values: dict[str, float], bins: int) -> np.ndarray:
    """Integrate a density over equal bins in all its observables, as parts of the whole."""
    nodes, weights = leggauss(NODES)
    axes = []
    for o in model.observables:
        edges = np.linspace(o.low, o.high, bins + 1)
        axes.append((edges[:-1, None] + np.diff(edges)[:, None] / 2 * (1 + nodes)).ravel())
    grids = np.meshgrid(*axes, indexing="ij", sparse=True)
    named = {o.name: g for o, g in zip(model.observables, grids, strict=True)}
    heights = np.broadcast_to(evaluate(model.density(), values | named), [len(a) for a in axes])
    for k in range(len(axes)):
        split = np.moveaxis(heights, k, -1)
        heights = np.moveaxis(split.reshape(*split.shape[:-1], bins, NODES) @ weights, -1, k)
    return heights / heights.sum()


def chi_square(data: mf.Dataset, axes: tuple[mf.Observable, ...], expected: np.ndarray) -> float:
    """Return how likely a larger chi-square is, for what falls into the bins of some observables."""
    edges = [np.linspace(o.low, o.high, n + 1) for o, n in zip(axes, expected.shape, strict=True)]
    found = np.histogramdd(np.array([data[o.name] for o in axes]).T, edges)[0].ravel()
    wanted = expected.ravel() * len(data)
    rare = wanted < FEWEST
    if rare.any():
        found, wanted = (np.append(a[~rare], a[rare].sum()) for a in (found, wanted))
    keep = wanted > 0
    return float(stats.chisquare(found[keep], wanted[keep] * found.sum() / wanted.sum()).pvalue)


def planes(data: mf.Dataset, model: mf.Pdf, values: dict[str, float]) -> dict[str, float]:
    """Compare a sample with its density in all planes of two observables, and in all observables together."""
    expected = bin_contents(model, all_values(model, values), 16)
    dimensions = range(len(model.observables))
    found = {}
    for pair in {*combinations(dimensions, 2), tuple(dimensions)}:
        axes = tuple(model.observables[k] for k in pair)
        content = expected.sum(axis=tuple(k for k in dimensions if k not in pair))
        found["-".join(o.name for o in axes)] = chi_square(data, axes, content)
    return found


def two_dimensions() -> mf.Pdf:
    x, y = mf.Observable("x", 0.0, 1.0), mf.Observable("y", -1.0, 1.0)
    return mf.Density(np.exp(-8 * (x - 0.4 - 0.5 * y) ** 2) * (1 + x * y**2), [x, y])


def three_dimensions() -> mf.Pdf:
    x, y, z = (mf.Observable(name, 0.0, 1.0) for name in "xyz")
    return mf.Density(np.exp(4 * x * y - 3 * z) + np.sin(9 * x + 5 * z) ** 2, [x, y, z])


def flat_direction() -> mf.Pdf:
    x, y = mf.Observable("x", 0.0, 1.0), mf.Observable("y", -1.0, 1.0)
    return mf.Density(1 + x**2 + 0 * y, [x, y])


def correlated_sum() -> mf.Pdf:
    """One component correlated, one a product: each is rejected at its own rate."""
    first = two_dimensions()
    x, y = first.observables
    second = mf.Product(
        [mf.Density(np.exp(-6 * x), [x]), mf.Gaussian(y, parameter("mu", 0.3), parameter("sigma", 0.2))]
    )
    return mf.Sum([first, second], fractions=[parameter("f", 0.4)])


SEVERAL: dict[str, Callable[[], tuple[mf.Pdf, dict[str, float]]]] = {
    "two dimensions": lambda: (two_dimensions(), {}),
    "three dimensions": lambda: (three_dimensions(), {}),
    "a flat direction": lambda: (flat_direction(), {}),
    "product": lambda: (zoo.product()[0], {}),
    "correlated sum": lambda: (correlated_sum(), {}),
    "kstarmumu": lambda: (zoo.kstarmumu()[0], {}),
    "kstarmumu, FL only": lambda: (
        zoo.kstarmumu()[0],
        dict.fromkeys(("S3", "S4", "S5", "AFB", "S7", "S8", "S9"), 0.0),
    ),
    "kstarmumu, strong": lambda: (
        zoo.kstarmumu()[0],
        dict(zip(("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9"), STRONG, strict=True)),
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_correlated_observables_are_drawn_as_they_are(name, draw_several):
    model, values = SEVERAL[name]()
    found = planes(draw_several(model, 201, truth=values), model, values)
    assert min(found.values()) > LEAST, found


@on_one_backend  # the numbers of other backends are these: tests/targets/test_streams.py
@pytest.mark.parametrize("generator", ["xoshiro128++", "xoshiro256++", "PCG64DXSM"])
def test_every_generator_draws_correlated_observables(generator, draw_several):
    model, values = SEVERAL["kstarmumu, strong"]()
    found = planes(draw_several(model, 202, truth=values, generator=generator), model, values)
    assert min(found.values()) > LEAST, found


def test_a_wrong_slope_would_be_seen(draw):
    assert probability(exponential(-2.1), draw.column(exponential(-2.0), 301)) < LEAST


def test_a_wrong_correlation_would_be_seen(draw_several):
    """S5 is not seen in any observable alone, nor in the plane of ctl and ctk."""
    model, values = SEVERAL["kstarmumu, strong"]()
    data = draw_several(model, 302, truth=values)
    wrong = bin_contents(model, all_values(model, values | {"S5": values["S5"] + 0.03}), 16)
    assert chi_square(data, model.observables[1:], wrong.sum(axis=0)) < LEAST
    assert chi_square(data, model.observables[:2], wrong.sum(axis=2)) > LEAST
