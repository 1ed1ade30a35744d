"""Drawing events: the same events however they are asked for, hard densities, the public face."""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import stats

import morefit as mf
import zoo
from morefit.expr import Op, column, evaluate, leaves
from morefit.random.host import Xoshiro256PlusPlus, source_for
from morefit.sampling.envelope import MARGIN, Numbers, alias_table
from morefit.sampling.generate import (
    CELLS,
    Sampler,
    all_values,
    draw_on_host,
    poisson_distribution,
    poisson_sizes,
)
from morefit.sampling.inversion import PROBABILITY, evaluate_plainly, normal_quantile
from morefit.sampling.recipe import bind_values, recipe
from morefit.targets.cpu import workspace
from morefit.targets.cpu.columns import CpuColumn
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference

GENERATE = importlib.import_module("morefit.sampling.generate")  # the function hides its module
SEED = 0x1234_5678_9ABC_DEF0
ROUNDING = 1e-12  # of a range: the same random number through the same formula on two backends
SIGMAS = 5.0  # of the few statistical statements here; the thorough ones are in statistics/
QUANTILE = 1e-12  # in probability, of a closed form against numerical integration
ACCEPTANCE = 0.8  # promised of every envelope
STRONG = (0.5, 0.136, 0.191, -0.371, -0.159, 0.209, 0.079, -0.119)  # angular coefficients of K*mumu
NORMAL = 1e-14  # relative, of the normal distribution in two libraries
LAST_BITS = 2.0**-51  # in probability: random numbers have 53 bits
WIDTHS = (1, 2, 4, 8)
MODELS = ("mass", "kstarmumu", "gaussian", "crystal ball", "extended", "product", "numerical")


@pytest.fixture(autouse=True)
def _threads_for_every_launch(monkeypatch):
    """Wake the threads also for the little work that tests have."""
    monkeypatch.setattr(workspace, "WORTH_THREADS", 0.0)


@cache
def model_of(name):
    """Return the same model each time, so that what is prepared for its draws is used again."""
    return zoo.ZOO[name]()[0]


def sampler(model, backend=None, **options):
    return Sampler(model, all_values(model, None), backend or Cpu(threads=1), **options)


def drawn(model, sizes, seed=SEED, first_toy=0, backend=None, **options):
    """Draw toys; an array (observables, events)."""
    found = sampler(model, backend, **options).draw(np.array(sizes), seed, first_toy)
    return np.array([c.values for c in found.columns])


def x_on(low=0.0, high=1.0):
    return mf.Observable("x", low, high)


def once_of_each(names, generators):
    """Return all pairs, exhaustive but for one of each model: generators and models know nothing of each other."""
    return [
        pytest.param(name, generator, marks=[pytest.mark.exhaustive] * (j != k % len(generators)))
        for k, name in enumerate(names)
        for j, generator in enumerate(generators)
    ]


# ----------------------------------------------------------------- the same events however asked for


@pytest.mark.parametrize(
    ("name", "generator"), once_of_each(["mass", "kstarmumu", "product"], ["philox", "xoshiro128++"])
)
def test_events_do_not_depend_on_threads(name, generator):
    model = model_of(name)
    one, two, three = (
        drawn(model, [9000, 10, 5000], backend=Cpu(threads=t), generator=generator) for t in (1, 2, 3)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++", "xoshiro256++", "PCG64"])
def test_toys_do_not_depend_on_the_split_into_calls(generator):
    model = model_of("kstarmumu")
    together = drawn(model, [100, 0, 5000, 37], generator=generator)
    apart = [drawn(model, [n], first_toy=t, generator=generator) for t, n in enumerate([100, 0, 5000, 37])]
    np.testing.assert_array_equal(together, np.concatenate(apart, axis=1))


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++"])
def test_more_events_begin_with_the_same(generator):
    model = model_of("kstarmumu")
    long, short = (drawn(model, [n], generator=generator) for n in (5000, 1000))
    np.testing.assert_array_equal(long[:, :1000], short)


def test_a_draw_is_not_changed_by_later_ones_in_the_same_memory():
    model = model_of("kstarmumu")
    together = drawn(model, [300, 300, 20, 2000, 300])
    source = sampler(model)
    apart = [source.draw(np.array([n]), SEED, t).columns for t, n in enumerate([300, 300, 20, 2000, 300])]
    joined = [np.concatenate([c.values for c in column]) for column in zip(*apart, strict=True)]
    np.testing.assert_array_equal(together, joined)


def test_a_toy_does_not_depend_on_the_size_of_others():
    model = zoo.mass()[0]
    np.testing.assert_array_equal(drawn(model, [7, 500])[:, 7:], drawn(model, [4100, 500])[:, 4100:])


@pytest.mark.parametrize(
    ("name", "generator"), once_of_each(["kstarmumu", "mass"], ["philox", "xoshiro128++"])
)
def test_every_width_draws_the_same_events(name, generator):
    model = model_of(name)
    first, *others = (
        drawn(model, [3001], backend=Cpu(threads=1, width=w), generator=generator) for w in WIDTHS
    )
    for other in others:
        np.testing.assert_allclose(other, first, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++", "PCG64"])
@pytest.mark.parametrize("name", MODELS)
def test_the_reference_draws_the_same_events(name, generator):
    model = model_of(name)
    fast, plain = (
        drawn(model, [30_000, 500], backend=b, generator=generator) for b in (Cpu(threads=1), Reference())
    )
    # none may differ by more than rounding: a candidate on the edge of its envelope, one of a million, would
    np.testing.assert_allclose(fast, plain, rtol=ROUNDING, atol=ROUNDING)


def hill():
    """A density that is above any envelope through a few of its points."""
    x = x_on(-1.0, 1.0)
    return mf.Density(1 - mf.Parameter("a", 0.7, 0.0, 1.0) * (x - 0.17) ** 2, [x])


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++", "PCG64"])
def test_a_raised_envelope_changes_no_other_dataset(monkeypatch, generator):
    """This used to draw all datasets of a call again."""
    monkeypatch.setattr(Sampler.__init__, "__defaults__", (0.0, *Sampler.__init__.__defaults__[1:]))
    model, sizes = hill(), [21] * 30
    samplers = [sampler(model, generator=generator) for _ in sizes]
    alone = [
        s.draw(np.array([n]), 2, t).columns[0].values
        for t, (s, n) in enumerate(zip(samplers, sizes, strict=True))
    ]
    raised = [t for t, s in enumerate(samplers) if s.margin > 0]
    assert 0 < len(raised) < len(sizes)  # else this tests nothing
    options = {"seed": 2, "generator": generator, "backend": Cpu(threads=1)}
    for stop in (1, raised[0] + 1, 17, 30):
        for data, expected in zip(mf.generate(model, sizes[:stop], **options), alone, strict=False):
            np.testing.assert_array_equal(data["x"], expected)
    partners = [500 if t not in raised[:1] else 21 for t in range(30)]  # other sizes around it
    np.testing.assert_array_equal(mf.generate(model, partners, **options)[raised[0]]["x"], alone[raised[0]])


def test_a_component_that_is_rejected_more_often_is_not_drawn_less_often():
    """This used to: a rejected candidate chose its component again, by shares that took no account of it."""
    x = x_on()
    half = mf.Parameter("half", 0.5, 0.0, 1.0)
    model = mf.Sum([mf.Density(np.exp(-8 * x), [x]), mf.Uniform(x)], fractions=[half])
    found = np.mean(mf.generate(model, 1_000_000, seed=4)["x"] < 0.125)
    expected = 0.5 * np.expm1(-1) / np.expm1(-8) + 0.5 * 0.125
    assert abs(found - expected) < SIGMAS * 0.5 / 1000


def test_exact_efficiencies_agree_with_estimates():
    model = zoo.numerical()[0]
    values = all_values(model, None)
    rough, exact = (recipe(model, values, Numbers(exact=e)).efficiency for e in (False, True))
    assert exact == pytest.approx(rough, rel=1e-3)


# ------------------------------------------------------------------------------------- hard densities


def moments(values, mean, spread):
    """Say how far the mean and the spread of a sample are from what they should be, in sigmas."""
    count = len(values)
    kurtosis = np.mean((values - values.mean()) ** 4) / values.var() ** 2
    width = np.sqrt((kurtosis - 1) / (4 * count)) * spread
    return abs(values.mean() - mean) / (spread / np.sqrt(count)), abs(values.std() - spread) / width


def narrow(place, width=1e-5):
    x = x_on()
    return np.exp(-0.5 * ((x - place) / width) ** 2), x


def test_a_very_narrow_peak_is_found():
    formula, x = narrow(mf.Parameter("mu", 0.371, 0.0, 1.0))
    values = mf.generate(mf.Density(formula, [x]), 100_000, seed=1)["x"]
    assert max(moments(values, 0.371, 1e-5)) < SIGMAS


@pytest.mark.parametrize("place", [mf.Parameter("mu", 0.371, 0.0, 1.0), 0.371], ids=["parameter", "constant"])
def test_a_very_narrow_peak_on_a_background_is_found(place):
    formula, x = narrow(place)
    model = mf.Density(formula + 1e-5 * np.sqrt(2 * np.pi), [x])  # half of it
    values = mf.generate(model, 100_000, seed=1)["x"]
    peak = np.mean(np.abs(values - 0.371) < 1e-4)
    assert abs(peak - (1 + 2e-4) / 2) < SIGMAS * 0.5 / np.sqrt(100_000)


def test_a_narrow_peak_in_two_dimensions_is_found_or_refused():
    formula, x = narrow(mf.Parameter("mu", 0.371, 0.0, 1.0), 1e-3)
    y = mf.Observable("y", 0.0, 1.0)
    values = mf.generate(mf.Density(formula * np.exp(-0.5 * ((y - 0.2) / 1e-2) ** 2), [x, y]), 50_000, seed=1)
    assert max(moments(values["x"], 0.371, 1e-3) + moments(values["y"], 0.2, 1e-2)) < SIGMAS


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_maximum_in_a_corner_is_covered(dimensions, sign):
    observables = [mf.Observable(f"x{k}", 0.0, 1.0) for k in range(dimensions)]
    model = mf.Density(np.exp(sign * 12 * sum(o + 0 for o in observables)), observables)
    values = mf.generate(model, 50_000, seed=2)
    mean = 1 / -np.expm1(-12) - 1 / 12 if sign > 0 else 1 / 12 - 1 / np.expm1(12)
    spread = np.sqrt(1 / 144 - np.exp(12) / np.expm1(12) ** 2)
    for o in observables:
        assert max(moments(values[o.name], mean, spread)) < SIGMAS


def test_nothing_falls_where_the_density_is_zero():
    x = x_on()
    values = mf.generate(mf.Density(mf.where(x < 0.5, 0.0, x**2), [x]), 100_000, seed=1)["x"]
    assert values.min() >= 0.5
    assert max(moments(values, (15 / 64) / (7 / 24), np.sqrt(31 / 160 / (7 / 24) - (45 / 56) ** 2))) < SIGMAS


def test_an_edge_that_no_cell_follows_is_sampled_evenly():
    x, y = x_on(), mf.Observable("y", 0.0, 1.0)
    values = mf.generate(mf.Density(mf.where(x**2 + y**2 < 1, 1.0, 0.0), [x, y]), 200_000, seed=3)
    radius = values["x"] ** 2 + values["y"] ** 2
    angle = np.arctan2(values["y"], values["x"]) / (np.pi / 2)
    for uniform in (radius, angle):
        assert stats.kstest(uniform, "uniform").pvalue > 1e-5


def test_a_density_flat_up_to_rounding_is_no_reason_to_give_up():
    """This used to say that the density exceeds every envelope: by one rounding."""
    x = x_on()
    values = mf.generate(mf.Density(np.sin(x) ** 2 + np.cos(x) ** 2, [x]), 10_000, seed=1)["x"]
    assert max(moments(values, 0.5, np.sqrt(1 / 12))) < SIGMAS


def test_a_rare_component_is_drawn_as_often_as_it_should_be():
    x = x_on()
    rare = mf.Density(mf.where(x < 0.5, 0.0, x), [x])
    common = mf.Density(mf.where(x < 0.5, 1.0 + x, 0.0), [x])
    model = mf.Sum([rare, common], fractions=[mf.Parameter("f", 1e-6, 0.0, 1.0)])
    count = int(np.sum(mf.generate(model, 10_000_000, seed=6)["x"] > 0.5))
    assert stats.binomtest(count, 10_000_000, 1e-6).pvalue > 1e-4


@pytest.mark.parametrize("formula", [lambda x: np.cos(4 * x) + 0.9, lambda x: x - 0.001], ids=["dip", "edge"])
def test_a_negative_density_is_refused(formula):
    x = x_on()
    with pytest.raises(
        mf.ModelError, match=r"density: negative at x = .* draw at values where it is positive"
    ):
        mf.generate(mf.Density(formula(x), [x]), 10)


def test_a_negative_density_is_refused_also_where_there_is_a_quantile():
    with pytest.raises(mf.ModelError, match="density: negative at x = 1, got -1 where"):
        mf.generate(mf.Polynomial(x_on(), [mf.Parameter("c", -2.0)]), 10)


def test_a_density_negative_by_rounding_is_zero():
    x = x_on(-1.0, 1.0)
    model = mf.Density((x - 0.1) ** 2 - 1e-15, [x])
    values = mf.generate(model, 10_000, seed=1)["x"]
    assert values.min() >= -1.0
    assert values.max() <= 1.0


@pytest.mark.parametrize(
    "formula",
    [lambda x: 1 / x, lambda x: x**-1.2, lambda x: abs(x - 0.3) ** -1.5, lambda x: 1 / (x - 0.5) ** 2],
)
def test_a_density_without_an_integral_is_refused(formula):
    x = x_on()
    with pytest.raises(
        mf.ModelError,
        match=r"density: (infinite at x = .* change the ranges|cannot be drawn from, its integral)",
    ):
        mf.generate(mf.Density(formula(x), [x]), 10)


HARDLY_ACCEPTED = (
    "could not be drawn from; its density is zero or nearly so where it was tried, or has a pole"
)


def test_a_pole_between_the_points_that_are_tried_is_refused_before_anything_is_drawn(monkeypatch):
    """A million events of it used to take 128 s to refuse."""
    monkeypatch.setattr(Sampler, "launch", lambda *arguments: pytest.fail("drawn"))
    x, y = x_on(), mf.Observable("y", 0.0, 1.0)
    model = mf.Density(((x - 1 / 3) ** 2 + (y - 1 / 7) ** 2) ** -0.95, [x, y])
    with pytest.raises(mf.ModelError, match=HARDLY_ACCEPTED):
        mf.generate(model, 1_000_000, seed=1)


def test_events_that_were_given_up_are_no_sample():
    x = x_on()
    with pytest.raises(mf.ModelError, match=HARDLY_ACCEPTED):
        sampler(mf.Density(np.exp(-x), [x])).repair(above=0, abandoned=1)


def test_a_density_that_is_no_number_in_places_is_refused():
    x, y = x_on(-1.0, 1.0), mf.Observable("y", -1.0, 1.0)
    with pytest.raises(
        mf.ModelError, match=r"density: not a number from x = -1, y = -1 on; say with mf\.where"
    ):
        mf.generate(mf.Density(np.sqrt(1 - x**2 - y**2), [x, y]), 10)


def test_a_single_point_without_a_number_does_no_harm():
    x = x_on(-1.0, 1.0)
    values = mf.generate(mf.Density(np.sin(x) / x, [x]), 10_000, seed=1)["x"]
    assert abs(values.mean()) < SIGMAS * 0.6 / 100


@pytest.mark.parametrize(("mu", "sigma"), [(-50.0, 0.1), (0.5, 0.0)], ids=["500 sigma away", "no width"])
def test_values_at_which_nothing_is_left_are_refused(mu, sigma):
    """This used to put every event on an edge of the range."""
    model = mf.Gaussian(x_on(), mf.Parameter("mu", 0.5), mf.Parameter("sigma", 0.1))
    with pytest.raises(mf.ModelError, match="density: zero, negative or not a number wherever it was tried"):
        mf.generate(model, 10, truth={"mu": mu, "sigma": sigma})


@pytest.mark.parametrize("generator", ["philox", "PCG64"])
@pytest.mark.parametrize("name", ["kstarmumu", "numerical"])
def test_an_envelope_that_is_too_low_is_raised(name, generator):
    model = model_of(name)
    low = sampler(model, margin=-0.4, generator=generator)
    found = low.draw(np.array([20_000]), SEED)
    assert low.margin == 2 * MARGIN
    good = drawn(model, [20_000], margin=2 * MARGIN, generator=generator)
    np.testing.assert_array_equal([c.values for c in found.columns], good)


def test_a_density_that_hides_from_every_point_is_given_up(monkeypatch):
    monkeypatch.setattr(GENERATE, "REPAIRS", 0)
    with pytest.raises(mf.ModelError, match="exceeds every envelope tried"):
        drawn(zoo.mass()[0], [10])


def strong_angles():
    """K*mumu far from flat in all angles, yet positive everywhere."""
    model = model_of("kstarmumu")
    names = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")
    values = dict(zip(names, STRONG, strict=True))
    return model, values


@pytest.mark.parametrize(
    ("model", "values"),
    [
        pytest.param(zoo.mass()[0], {}, id="mass"),
        pytest.param(model_of("kstarmumu"), dict.fromkeys(("S3", "S4", "S5", "AFB", "S7", "S8", "S9"), 0.0), id="FL only"),
        pytest.param(model_of("kstarmumu"), {}, id="kstarmumu"),
        pytest.param(*strong_angles(), id="strong angles"),
        pytest.param(zoo.crystal_ball()[0], {}, id="crystal ball"),
        pytest.param(zoo.product()[0], {}, id="polynomial"),
    ],
)  # fmt: skip
def test_most_candidates_are_accepted(model, values):
    assert Sampler(model, all_values(model, values), Cpu(threads=1)).recipe.efficiency > ACCEPTANCE


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_candidate_under_an_envelope_needs_as_few_calls_of_the_generator_as_possible(dimensions):
    """A number for the cell, one for each observable, and to accept it one that costs nothing."""
    axes = [mf.Observable(f"x{k}", 0.0, 1.0) for k in range(dimensions)]
    sampler = Sampler(mf.Density(1.0 + sum(x**2 for x in axes), axes), {}, Reference())
    used = leaves(Op.COLUMN, *sampler.recipe.drawn.values(), sampler.recipe.accept)
    assert {leaf.name for leaf in used} == {f"uniform {k}" for k in range(2 * ((dimensions + 2) // 2))}


def test_what_is_left_of_the_choice_of_a_cell_is_even_and_knows_nothing_of_it():
    """Cells of very different weights; acceptance in each is what its height says, whoever sent candidates there."""
    x = mf.Observable("x", 0.0, 1.0)
    steep = mf.Density(np.exp(-20.0 * x), [x])
    recipe = Sampler(steep, {}, Reference()).recipe
    rng = np.random.default_rng(5)
    numbers = {f"uniform {k}": rng.uniform(size=1_000_000) for k in range(2)}
    drawn, accepted = evaluate(recipe.drawn["x"], numbers), evaluate(recipe.accept, numbers) != 0
    counts, edges = np.histogram(drawn[accepted], np.linspace(0.0, 1.0, 201))
    expected = np.diff(np.expm1(-20.0 * edges)) / np.expm1(-20.0) * accepted.sum()
    many = expected > 20
    assert stats.chi2.sf(np.sum((counts - expected)[many] ** 2 / expected[many]), many.sum() - 1) > 1e-4


@pytest.mark.parametrize(
    "weights", [[1.0], [1.0, 1.0], [1e-9, 1.0, 2.0], [0.0, 3.0, 0.0, 1.0], list(range(1, 50))]
)
def test_alias_tables_give_every_cell_its_weight(weights):
    weights = np.array(weights)
    share, alias = alias_table(weights)
    found = share + np.bincount(alias.astype(int), 1 - share, len(weights))
    np.testing.assert_allclose(found / len(weights), weights / weights.sum(), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("edge", [0.1, -1 / 3, 1e6])
def test_events_stay_inside_their_range_to_the_last_bit(edge):
    x = mf.Observable("x", edge, edge + 0.3)
    y = mf.Observable("y", edge / 7, edge / 7 + 1.1)
    model = mf.Density(2 + np.sin(x) + 0 * y, [x, y])
    found = recipe(model, {}, Numbers())
    names = [f"uniform {k}" for k in range(8)]
    for o in (x, y):
        for number in (0.0, 1 - 2.0**-53):
            assert o.low <= evaluate(found.drawn[o.name], dict.fromkeys(names, number)) <= o.high


# ---------------------------------------------------------------------------------------- quantiles

PROBABILITIES = np.array([0.0, 1e-12, 1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-6, 1 - 2.0**-53])
BALLS = [
    (5.0, 7.0, 1.3, 2.5), (5.0, 7.0, -1.3, 2.5), (5.0, 7.0, 1.3, 1.0), (5.0, 7.0, -1.3, 1.0),
    (5.0, 7.0, 1.3, 1 + 1e-9), (5.0, 7.0, 1.3, 1 - 1e-9), (5.0, 7.0, 1.3, 0.5), (5.0, 7.0, 1.3, 80.0),
    (5.0, 5.5, 1.3, 2.5), (6.1, 7.0, -1.3, 2.5), (5.75, 6.0, 1.3, 2.5), (6.3, 7.0, 1.3, 2.5), (5.0, 5.2, -1.3, 2.5),
]  # fmt: skip
LINES = [
    (-1, 1, 0.3), (-1, 1, 0.0), (-1, 1, 1.0), (-1, 1, -1.0), (0, 1, -1 + 1e-9), (0, 1, 1e-12), (5, 7, -0.1),
    (5, 7, -1 / 7), (5, 7, 1e6), (-7, -5, 1 / 7),
]  # fmt: skip


def crystal_ball(low, high, alpha, n):
    starts = {"mu": 5.8, "sigma": 0.1, "alpha": alpha, "n": n}
    return mf.CrystalBall(x_on(low, high), *(mf.Parameter(k, v) for k, v in starts.items()))


def distribution(pdf, points, kinks=()):
    """Integrate a density numerically from the lower edge to each point."""
    values = {p.name: p.start for p in pdf.parameters}
    (x,) = pdf.observables
    edges = np.unique([x.low, x.high, *points, *(k for k in kinks if x.low < k < x.high)])
    nodes, weights = leggauss(60)
    half = np.diff(edges)[:, None] / 2
    heights = evaluate(pdf.density(), values | {"x": edges[:-1, None] + half * (1 + nodes)})
    area = np.concatenate([[0.0], np.cumsum((heights * weights * half).sum(axis=1))])
    return area[np.searchsorted(edges, points)] / area[-1]


def quantiles(pdf):
    values = {p.name: p.start for p in pdf.parameters}
    (x,) = pdf.observables
    found = evaluate(pdf.quantile(column("p")), values | {"p": PROBABILITIES})
    assert np.all(np.isfinite(found))
    return np.clip(np.broadcast_to(found, PROBABILITIES.shape), x.low, x.high)


@pytest.mark.parametrize(("low", "high", "alpha", "n"), BALLS)
def test_crystal_ball_quantiles_invert_its_distribution(low, high, alpha, n):
    pdf = crystal_ball(low, high, alpha, n)
    points = quantiles(pdf)
    found = distribution(pdf, points, [5.8, 5.8 - 0.1 * alpha])
    np.testing.assert_allclose(found, PROBABILITIES, rtol=0, atol=QUANTILE)


@pytest.mark.parametrize(("low", "high", "slope"), LINES)
def test_quantiles_of_a_line_invert_its_distribution(low, high, slope):
    pdf = mf.Polynomial(x_on(low, high), [mf.Parameter("c", slope)])
    points = quantiles(pdf)
    np.testing.assert_allclose(distribution(pdf, points), PROBABILITIES, rtol=0, atol=QUANTILE)


NO_SCIPY = """
import sys
import morefit as mf
x = mf.Observable("x", -1.0, 1.0)
mu, sigma = mf.Parameter("mu", 0.0), mf.Parameter("sigma", 0.3)
signal = mf.Sum([mf.Gaussian(x, mu, sigma), mf.Exponential(x, mf.Parameter("slope", -1.0))], yields=[mf.Parameter("n", 50.0), mf.Parameter("b", 20.0)])
mf.generate(signal, seed=1)
print("scipy.special" in sys.modules)
"""


def test_the_first_gaussian_is_drawn_without_scipy():
    """Its import takes as long as all the rest."""
    ran = subprocess.run([sys.executable, "-c", NO_SCIPY], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False"]


@pytest.mark.parametrize(
    "pdf", [zoo.gaussian()[0], crystal_ball(*BALLS[0])], ids=["gaussian", "crystal ball"]
)
def test_quantiles_are_checked_with_the_normal_distribution_of_scipy(pdf):
    quantile = bind_values(pdf.quantile(PROBABILITY), pdf, all_values(pdf, None))
    values = {PROBABILITY.name: PROBABILITIES[1:]}
    np.testing.assert_allclose(evaluate_plainly(quantile, values), evaluate(quantile, values), rtol=NORMAL)


def test_the_ends_of_the_normal_distribution_are_infinite():
    found = [normal_quantile(p) for p in (0.0, 0.5, 1.0, -0.1, 1.1, np.nan)]
    np.testing.assert_array_equal(found, [-np.inf, 0.0, np.inf, np.nan, np.nan, np.nan])


def test_a_curve_has_no_quantile():
    pdf = mf.Polynomial(x_on(), [mf.Parameter("a", 0.1), mf.Parameter("b", 0.1)])
    assert pdf.quantile(column("p")) is None


# ----------------------------------------------------------------------------------- the public face


def test_a_number_of_events_gives_a_dataset():
    data = mf.generate(model_of("kstarmumu"), 123, seed=1)
    assert isinstance(data, mf.Dataset)
    assert len(data) == 123
    assert set(data.columns) == {"ctl", "ctk", "phi"}


def test_numbers_of_events_give_datasets_in_one_launch(monkeypatch):
    launches = []
    plain = Sampler.launch
    monkeypatch.setattr(Sampler, "launch", lambda *a: launches.append(1) or plain(*a))
    data = mf.generate(zoo.mass()[0], [5, 0, 7], seed=1)
    assert [len(d) for d in data] == [5, 0, 7]
    assert len(launches) == 1


def test_issue_what_was_drawn_is_read_once_for_all_datasets(monkeypatch):
    """This used to copy everything from the device for each dataset: 4000 toys took 12 s instead of 0.8."""
    reads, plain = [], CpuColumn.values.fget
    monkeypatch.setattr(CpuColumn, "values", property(lambda column: reads.append(1) or plain(column)))
    assert len(mf.generate(model_of("kstarmumu"), [5, 0, 7], seed=1, backend=Cpu())) == 3
    assert len(reads) == 3  # columns


@pytest.mark.parametrize(
    "events", [(3, 4), np.array([3, 4]), [np.int32(3), np.int64(4)]], ids=lambda e: type(e).__name__
)
def test_any_sequence_of_numbers_will_do(events):
    assert [len(d) for d in mf.generate(zoo.mass()[0], events, seed=1)] == [3, 4]


def test_no_events_are_an_empty_dataset():
    assert len(mf.generate(zoo.mass()[0], 0, seed=1)) == 0
    assert mf.generate(zoo.mass()[0], [], seed=1) == []


def test_an_extended_model_draws_a_poisson_number():
    model = zoo.extended()[0]
    sizes = [len(mf.generate(model, seed=s)) for s in range(40)]
    assert len(set(sizes)) > 20
    assert abs(np.mean(sizes) - 1000) < SIGMAS * np.sqrt(1000 / 40)
    assert len(mf.generate(model, 17, seed=1)) == 17


@pytest.mark.parametrize("mean", [0.3, 100.0, 1e9])
def test_poisson_sizes_depend_on_the_toy_only(mean):
    together, apart = poisson_sizes(mean, 5, SEED), [poisson_sizes(mean, 1, SEED, t)[0] for t in range(5)]
    assert together.tolist() == apart
    assert not np.array_equal(together, poisson_sizes(mean, 5, SEED + 1)) or mean < 1


def poisson_probabilities(numbers, mean):
    """The probabilities of numbers of events in many digits; scipy has only six at a mean of 1e9."""
    with mp.workdps(40):
        return np.array(
            [float(mp.mpf(mean) ** int(k) * mp.exp(-mp.mpf(mean) - mp.loggamma(int(k) + 1))) for k in numbers]
        )


@pytest.mark.parametrize("mean", [0.0, 1e-300, 1e-3, 0.999, 1.0, 3.7, 100.0, 12345.6, 1e6, 1e9])
def test_numbers_of_events_are_inverted_from_the_distribution_of_poisson(mean):
    first, cumulative = poisson_distribution(mean)
    places = np.unique(np.linspace(0, len(cumulative) - 1, 50).astype(int))
    found = np.diff(cumulative, prepend=0.0)
    np.testing.assert_allclose(
        found[places], poisson_probabilities(first + places, mean), rtol=0, atol=LAST_BITS
    )
    assert cumulative[-1] == 1.0
    # nothing beyond the ends could come up: a tail is at most so many times its first number
    ends = [first - 1] * (first > 0) + [first + len(cumulative)]
    assert np.all(10 * np.sqrt(mean + 1) * poisson_probabilities(ends, mean) < LAST_BITS / 4)


@pytest.mark.parametrize("mean", [0.3, 12.0, 1e3, 1e6])
def test_numbers_of_many_toys_are_those_of_few(mean):
    # many are looked for in cells of equal probability, few one by one
    many, rows = poisson_sizes(mean, 2 * CELLS, SEED), range(0, 2 * CELLS, 1000)
    few = [poisson_sizes(mean, 1000, SEED, first) for first in rows]
    np.testing.assert_array_equal(many, np.concatenate(few)[: 2 * CELLS])


def test_no_events_expected_are_none_drawn():
    assert poisson_sizes(0.0, 1000, SEED).tolist() == [0] * 1000
    assert len(mf.generate(zoo.extended()[0], truth={"signal": 1e-9, "background": 0.0}, seed=1)) == 0


def test_more_events_than_any_memory_holds_are_refused():
    with pytest.raises(
        mf.ModelError, match=r"number of events must be at most 1e\+11, got 1e\+12; check the"
    ):
        mf.generate(zoo.extended()[0], truth={"signal": 1e12, "background": 0.0})


def test_a_number_that_nothing_predicts_is_asked_for():
    with pytest.raises(mf.ModelError, match="generate: events is missing; the model predicts no number"):
        mf.generate(zoo.mass()[0])


def test_a_sum_of_negative_yields_is_refused():
    with pytest.raises(mf.ModelError, match="expected number of events must not be negative, got -1"):
        mf.generate(zoo.extended()[0], truth={"signal": -900.0, "background": -100.0})
    with pytest.raises(
        mf.ModelError, match=r"sum: cannot draw with the weights \[-800.0, 700.0\], as a part of"
    ):
        mf.generate(zoo.extended()[0], 10, truth={"signal": -800.0})


@pytest.mark.parametrize("shape", ["gaussian", "envelope"])
def test_a_negative_yield_is_drawn_where_the_density_is_positive(shape):
    # it was refused, so that fits with such a result had no toys
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, 5.0, 0.5) if shape == "gaussian" else mf.Density(1 / (1 + (2 * x - 10) ** 2), x)
    yields = [mf.Parameter("s", 10.0, -1e5, 1e5), mf.Parameter("b", 1e3, 0.0, 1e6)]
    model = mf.Sum([peak, mf.Exponential(x, -0.1)], yields=yields)
    truth, edges = {"s": -2_000.0, "b": 30_000.0}, np.linspace(0.0, 10.0, 21)
    drawn = mf.generate(model, 50_000, truth=truth, seed=1)["x"]
    expected = 50_000 * np.diff(model.cdf(edges, values=truth))
    chi2 = np.sum((np.histogram(drawn, edges)[0] - expected) ** 2 / expected)
    assert stats.chi2.sf(chi2, 19) > 1e-4
    with pytest.raises(
        mf.ModelError, match=r"density: negative at x = .*; draw at values where it is positive"
    ):
        mf.generate(model, 10, truth={"s": -8_000.0, "b": 30_000.0})


def test_values_replace_start_values():
    model = zoo.gaussian()[0]
    values = mf.generate(model, 10_000, truth={"mu": -0.5, "sigma": 0.2}, seed=1)["x"]
    assert max(moments(values, -0.5, 0.2)) < SIGMAS


def test_values_may_come_from_a_fit():
    model, data, _ = zoo.gaussian()
    result = mf.fit(model, data)
    values = mf.generate(model, 10_000, truth=result.values, seed=1)["x"]
    assert max(moments(values, result.values["mu"], result.values["sigma"])) < SIGMAS


def test_unknown_values_are_refused_with_a_suggestion():
    """This used to drop them."""
    with pytest.raises(mf.ModelError, match=r"model: has no parameter 'sigmas'; did you mean 'sigma'\?"):
        mf.generate(zoo.mass()[0], 10, truth={"mu": 5.3, "sigmas": 0.1})
    with pytest.raises(
        mf.ModelError, match="model: has no parameter 'q'; there are 'mu', 'sigma', 'alpha', 'fsig'"
    ):
        mf.generate(zoo.mass()[0], 10, truth={"q": 1.0})


def test_values_of_a_larger_model_are_refused():
    model, data, _ = zoo.mass(300)
    result = mf.fit(model, data)
    with pytest.raises(mf.ModelError, match="model: has no parameter 'alpha', 'fsig'"):
        mf.generate(model.pdfs[0], 10, truth=result.values)


@pytest.mark.parametrize("events", [-1, [3, -1]])
def test_a_negative_number_of_events_is_refused(events):
    with pytest.raises(mf.OptionError, match="number of events must not be negative, got -1"):
        mf.generate(zoo.mass()[0], events)


@pytest.mark.parametrize("events", [10.5, "10", [[1], [2]], [1.0]])
def test_events_are_counted_in_whole_numbers(events):
    """This used to cut off the fraction."""
    with pytest.raises(
        mf.OptionError, match="number of events must be a whole number or a list of them, got"
    ):
        mf.generate(zoo.mass()[0], events)


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.5, "one"])
def test_a_seed_that_does_not_fit_is_refused(seed):
    with pytest.raises(mf.OptionError, match=r"seed: must be a whole number from 0 to 2\*\*64 - 1, got"):
        mf.generate(zoo.mass()[0], 10, seed=seed)


@pytest.mark.parametrize("seed", [0, (1 << 63) + 1, (1 << 64) - 1, np.uint64(7)])
def test_every_seed_that_fits_gives_events_of_its_own(seed):
    model = zoo.mass()[0]
    first, again, other = (mf.generate(model, 5, seed=s)["m"] for s in (seed, seed, 12345))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


@pytest.mark.parametrize("generator", ["philox", "SFC64"])
def test_without_a_seed_every_call_differs(generator):
    model = zoo.mass()[0]
    first, second = (mf.generate(model, 5, generator=generator)["m"] for _ in range(2))
    assert not np.any(first == second)


# ------------------------------------------------------------------------------------ other generators

HOSTED = ("xoshiro256++", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


@pytest.mark.parametrize("generator", ["xoshiro128++", *HOSTED])
@pytest.mark.parametrize("name", ["gaussian", "kstarmumu"])
def test_every_generator_follows_the_same_recipe(generator, name):
    model = model_of(name)
    x = model.observables[0].name
    others = mf.generate(model, 10_000, seed=8, generator=generator)
    again = mf.generate(model, 10_000, seed=8, generator=generator)
    usual = mf.generate(model, 10_000, seed=8)
    np.testing.assert_array_equal(others[x], again[x])
    assert not np.any(others[x] == usual[x])
    assert stats.ks_2samp(others[x], usual[x]).pvalue > 1e-5


def test_numbers_from_the_host_are_used_in_order():
    source = source_for("MT19937", 5, 0)
    x = x_on(2.0, 4.0)
    found = mf.generate(mf.Uniform(x), 100, seed=5, generator="MT19937")["x"]
    np.testing.assert_allclose(found, 2 + 2 * source.random(100 + 21)[:100], rtol=1e-15)


@pytest.mark.parametrize("make", [np.random.PCG64, lambda seed: Xoshiro256PlusPlus.seeded(seed)])
def test_a_generator_object_goes_on_where_it_stands(make):
    model = zoo.extended()[0]
    one, same = make(3), make(3)
    first, second = (mf.generate(model, generator=one)["m"] for _ in range(2))
    np.testing.assert_array_equal(first, mf.generate(model, generator=same)["m"])
    assert not np.any(np.isin(first, second))


def test_a_host_draw_that_never_succeeds_says_so(monkeypatch):
    monkeypatch.setattr(GENERATE, "MAX_DRAWS", 10)
    model = model_of("kstarmumu")
    prepared = sampler(model, generator="PCG64")

    class Rejected:
        def random(self, size, /):
            return np.full(size, 1 - 2.0**-53)

    _, _, missing = draw_on_host(prepared.compiled, 3, Rejected(), prepared.recipe)
    assert missing == 3
    with pytest.raises(mf.ModelError, match="could not be drawn from"):
        prepared.repair(0, missing)


def test_a_generator_that_does_not_exist_is_refused():
    with pytest.raises(
        mf.OptionError, match=r"generator 'xoshiro265\+\+': not known; did you mean 'xoshiro256\+\+'\?"
    ):
        mf.generate(zoo.mass()[0], 10, generator="xoshiro265++")
    with pytest.raises(mf.OptionError, match="generator 'ZZ': not known; there are 'philox', 'xoshiro128"):
        mf.generate(zoo.mass()[0], 10, generator="ZZ")
    with pytest.raises(mf.OptionError, match=r"generator: must be a name, a numpy\.random\.BitGenerator or"):
        mf.generate(zoo.mass()[0], 10, generator=7)


def test_a_generator_object_takes_no_seed():
    with pytest.raises(mf.OptionError, match="a PCG64 object has a state of its own; drop the seed"):
        mf.generate(zoo.mass()[0], 10, generator=np.random.PCG64(1), seed=3)
