"""Acceptances of conditional densities: normalised over what is drawn for each event, drawn and fitted, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.jobs.digest import fingerprint
from tolerances import INTEGRAL_PROMISE

T, S, Z = mf.Observable("t", 0.0, 8.0), mf.Observable("s", 0.05, 0.5), mf.Observable("z", 0.0, 1.0)
TAU = mf.Parameter("tau", 1.5, 0.3, 5.0)
DECAY = mf.shapes.Decay(T, TAU, sigma=[S], given=[S])
TURN_ON = 1 / (1 + np.exp(-(T - 1 - S) / (0.2 + S)))
MODEL = mf.Efficiency(DECAY, TURN_ON)
PLAIN = mf.Efficiency(mf.Exponential(T, -1 / TAU), TURN_ON, given=[S])  # given to the acceptance alone
ROWS = {"s": np.random.default_rng(1).uniform(0.06, 0.45, 1000)}


def by_quadrature(t, s, decay):
    """Return the density at a point, normalised by scipy."""

    def product(x):
        return decay(x, s) / (1 + np.exp(-(x - 1 - s) / (0.2 + s)))

    return product(t) / integrate.quad(product, 0, 8, epsabs=1e-12, epsrel=1e-12, limit=200)[0]


@pytest.mark.parametrize(
    ("model", "decay"),
    [
        (MODEL, lambda t, s: stats.exponnorm.pdf(t, 1.5 / s, 0, s)),
        (PLAIN, lambda t, s: np.exp(-t / 1.5)),
        (mf.Efficiency(PLAIN, 1 + T), lambda t, s: (1 + t) * np.exp(-t / 1.5)),
    ],
    ids=["conditional", "plain", "twice"],
)
def test_the_density_of_each_event_is_normalised_over_what_is_drawn(model, decay):
    t, s = np.array([0.1, 0.9, 2.0, 6.0]), np.array([0.05, 0.2, 0.5, 0.4])
    expected = [by_quadrature(*point, decay) for point in zip(t, s, strict=True)]
    assert model.pdf({"t": t, "s": s}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)
    assert [o.name for o in model.given] == ["s"]
    inside = integrate.quad(lambda x: by_quadrature(x, 0.2, decay), 0, 1)[0]
    assert model.integrate({"t": (0, 1)}, given={"s": 0.2}) == pytest.approx(inside, rel=INTEGRAL_PROMISE)


@pytest.mark.parametrize(
    "backend", [COMPILED["cpu"], COMPILED["opencl"], JUDGE["reference"]], ids=["cpu", "opencl", "reference"]
)
def test_fits_agree_on_all_backends(backend):
    few = mf.generate(PLAIN, given={"s": ROWS["s"][:200]}, seed=1)
    expected = mf.fit(PLAIN, few, backend="cpu", tolerance=1e-6)
    result = mf.fit(PLAIN, few, backend=there(backend), tolerance=1e-6)
    assert result.valid
    assert result.values["tau"] == pytest.approx(expected.values["tau"], rel=1e-6)


def test_draws_and_fits_of_toys_are_those_of_the_density():
    data = mf.generate(MODEL, given={"s": np.tile([0.1, 0.3], 2000)}, seed=2)
    for s in (0.1, 0.3):
        edges = np.linspace(0, 8, 21)
        t = data["t"][data["s"] == s]
        below = [0.0, *(MODEL.integrate({"t": (0, e)}, given={"s": s}) for e in edges[1:])]
        distance = np.abs(np.searchsorted(np.sort(t), edges) / len(t) - below).max()
        assert stats.kstwo(len(t)).sf(distance) > 1e-3
    study = mf.toy_study(PLAIN, toys=50, given=ROWS, seed=3, progress=False)
    assert study.valid.all()
    assert abs(study.pull_summary("tau").mean) < 4 / np.sqrt(50)
    assert study.pull_summary("tau").width == pytest.approx(1.0, abs=4 / np.sqrt(100))


def test_conditional_efficiencies_are_parts_of_products_and_sums():
    both = mf.Product([PLAIN, mf.Uniform(S)])
    assert both.given == ()
    assert both.integrate({"s": (0.05, 0.275)}) == pytest.approx(0.5, rel=INTEGRAL_PROMISE)
    mixed = mf.Sum([PLAIN, mf.Uniform(T)], fractions=[mf.Parameter("share", 0.7, 0, 1)])
    data = mf.generate(mixed, given=ROWS, seed=4)
    assert mf.fit(mixed, data).valid
    projection = mf.plots.project(mixed, data, T, bins=20)
    assert projection.expected.sum() == pytest.approx(len(data), rel=1e-6)


def test_ranges_replacements_and_prints():
    data = mf.generate(PLAIN, given=ROWS, seed=5)
    assert mf.fit(PLAIN, data, ranges={"t": [(0.5, 2), (3, 7)]}).valid
    other = PLAIN.replace({S: mf.Observable("u", 0.05, 0.5)})
    assert [o.name for o in other.given] == ["u"]
    assert str(PLAIN).startswith("Efficiency in t from 0 to 8 given s from 0.05 to 0.5\n")
    digests = {fingerprint(one)["digest"] for one in (PLAIN, other, MODEL)}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mf.Efficiency(DECAY, S), "depends on no observable that is drawn, so that it cancels; leave it out"),
        (
            lambda: mf.Efficiency(mf.Product([DECAY, mf.Uniform(Z)]), TURN_ON),
            "a conditional density must draw one observable, got 't', 'z'; multiply the efficiency",
        ),
        (
            lambda: mf.Efficiency(mf.Sum([DECAY, mf.Uniform(T)], fractions=[0.5]), TURN_ON),
            r"a conditional sum has no fractions before the acceptance.*; write mf.Sum\(\[mf.Efficiency",
        ),
        (
            lambda: mf.Efficiency(mf.Sum([DECAY], yields=[100.0]), TURN_ON),
            "a conditional sum has no fractions before the acceptance",
        ),
        (
            lambda: mf.Efficiency(DECAY, mf.acceptance.simulation({"t": [1.0], "s": [0.1]}, [T, S])),
            "a simulation cannot normalise the conditional density in 't' for each event; make an acceptance with",
        ),
        (
            lambda: mf.Efficiency(mf.Exponential(T, -1 / TAU), 1 + T, given=[T]),
            "efficiency: observable 't' must not be drawn by its densities if it is given",
        ),
        (
            lambda: mf.Efficiency(mf.Exponential(T, -1 / TAU), TURN_ON),
            r"depends on 's', which the density in 't' does not have; .* or write given=\[s\]",
        ),
    ],
)  # fmt: skip
def test_what_has_no_integral_for_each_event_is_refused(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make()


def test_the_distribution_is_that_of_each_row():
    # this used to be refused, as there is no formula
    points, rows = np.array([0.5, 2.0, 7.9]), np.array([0.1, 0.2, 0.4])
    expected = [
        integrate.quad(by_quadrature, 0, t, (s, lambda x, _: np.exp(-x / 1.5)))[0]
        for t, s in zip(points, rows, strict=True)
    ]
    assert PLAIN.cdf(points, given={"s": rows}) == pytest.approx(expected, rel=1e-8)


def test_fractions_of_a_conditional_sum_may_be_those_in_ranges():
    # this used to end with a KeyError
    fraction = mf.Parameter("f", 0.3, 0.0, 1.0)
    parts = [mf.Gaussian(T, 3.0, 2 * S, given=[S]), mf.Exponential(T, -1.0)]
    data = {"t": np.array([2.0, 2.5, 5.5]), "s": np.array([0.1, 0.3, 0.2])}
    ranges = {"t": [(1.0, 3.0), (5.0, 6.0)]}
    nll = mf.Likelihood(mf.Sum(parts, fractions=[fraction]), data, ranges=ranges, yields_in="range")
    norm, expon = stats.norm(3.0, 2 * data["s"]), stats.expon()
    inside = [sum(d.cdf(high) - d.cdf(low) for low, high in ranges["t"]) for d in (norm, expon)]
    expected = 0.3 * norm.pdf(data["t"]) / inside[0] + 0.7 * expon.pdf(data["t"]) / inside[1]
    assert nll.value([0.3]) == pytest.approx(-np.log(expected).sum(), rel=1e-9)
