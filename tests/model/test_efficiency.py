"""Densities times acceptances: normalised by formula, rule and sample, drawn, projected, and refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from backend_rows import JUDGE, STATISTICS, there
from morefit.expr import Op, evaluate, toposort
from morefit.jobs.digest import fingerprint
from morefit.sampling import recipe as recipes
from morefit.sampling.envelope import MARGIN
from tolerances import DIFFERENCES, EXACT_FIT_ERRORS, INTEGRAL_PROMISE, NUMPY_SUM, SAME_LINES, TERM_INTEGRAL

X, Y, Z = mf.Observable("x", 0.0, 5.0), mf.Observable("y", -1.0, 1.0), mf.Observable("z", 1.0, 6.0)
MU, SIGMA = mf.Parameter("mu", 2.0, 0.0, 5.0), mf.Parameter("sigma", 0.7, 0.1, 2.0)
SLOPE, SHARE = mf.Parameter("slope", -0.5, -2.0, 1.0), mf.Parameter("share", 0.4, 0.0, 1.0)
RISE = mf.Parameter("rise", 0.3, 0.0, 1.0)
PEAK, TAIL = mf.Gaussian(X, MU, SIGMA), mf.Exponential(X, SLOPE)
BOTH = mf.Sum([PEAK, TAIL], fractions=[SHARE], labels=["peak", "tail"])
SMOOTH = 0.2 + RISE * X**2 / 25
N_PEAK, N_TAIL = mf.Parameter("n_peak", 900.0, 0.0, 1e5), mf.Parameter("n_tail", 1600.0, 0.0, 1e5)
CTL, CTK, PHI = mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1), mf.Observable("phi", -np.pi, np.pi)
S_VALUES = {"S3": -0.05, "S4": -0.2, "S5": -0.1, "AFB": 0.05, "S7": 0.02, "S8": 0.01, "S9": 0.03}
ANGLES = mf.physics.KstarMuMu(
    CTL, CTK, PHI, mf.Parameter("FL", 0.6, 0, 1), *(mf.Parameter(n, v, -1, 1) for n, v in S_VALUES.items())
)


def seen(t: np.ndarray) -> np.ndarray:
    return 0.2 + 0.3 * t**2 / 25


def both(t: np.ndarray) -> np.ndarray:
    peak = stats.truncnorm((0 - 2) / 0.7, (5 - 2) / 0.7, 2, 0.7).pdf(t)
    return 0.4 * peak + 0.6 * np.exp(-0.5 * t) * 0.5 / (1 - np.exp(-2.5))


def coefficients(*orders: int) -> np.ndarray:
    """Return an expansion that is positive everywhere."""
    numbers = np.random.default_rng(5).normal(size=[n + 1 for n in orders])
    numbers *= 0.6 / np.abs(numbers).sum()
    numbers[(0,) * len(orders)] = 1.0
    return numbers


def flat_sample(
    acceptance: mf.Pdf, observables: tuple[mf.Observable, ...], events: int, seed: int = 1
) -> mf.Dataset:
    flat = mf.Density(1 + 0 * observables[0], observables)
    return mf.generate(mf.Efficiency(flat, acceptance), events, seed=seed)


def numeric_gradient(term: mf.Likelihood, x: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return np.array([(term.value(x + s) - term.value(x - s)) / (2 * s.sum()) for s in np.diag(steps)])


# ------------------------------------------------------------------------------------ by rule


@pytest.mark.parametrize("backend", [*STATISTICS, *JUDGE])
def test_a_density_times_an_acceptance_is_normalised(backend):
    place = there((STATISTICS | JUDGE)[backend])
    model = mf.Efficiency(TAIL, SMOOTH)
    total = integrate.quad(lambda t: np.exp(-0.5 * t) * seen(t), 0, 5, epsabs=0, epsrel=1e-13)[0]
    t = np.linspace(0, 5, 11)
    expected = np.exp(-0.5 * t) * seen(t) / total
    assert model.pdf(t, backend=place) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_gradient_and_hessian_of_an_acceptance_with_parameters_are_those_of_differences():
    term = mf.Likelihood(mf.Efficiency(BOTH, SMOOTH), mf.generate(mf.Efficiency(BOTH, SMOOTH), 500, seed=1))
    x = np.array([p.start for p in term.parameters]) * 1.02
    steps = 1e-4 * np.abs(x)
    gradient, hessian = term.gradient(x), term.hessian(x)
    assert gradient == pytest.approx(
        numeric_gradient(term, x, steps), abs=DIFFERENCES * np.abs(gradient).max()
    )
    slopes = [(term.gradient(x + s) - term.gradient(x - s)) / (2 * s.sum()) for s in np.diag(steps)]
    assert hessian == pytest.approx(np.array(slopes), abs=DIFFERENCES * np.abs(hessian).max())


def test_regions_without_acceptance_have_no_probability_and_no_events():
    model = mf.Efficiency(PEAK, mf.where(X < 1.5, 0, X))
    assert model.integrate({"x": (0.0, 1.5)}) == 0.0
    assert mf.generate(model, 2000, seed=1)["x"].min() > 1.5
    with pytest.raises(mf.FitError, match="1 of 2 events have no positive density"):
        mf.fit(model, {"x": [1.0, 2.0]})


def test_factors_that_an_acceptance_does_not_know_stay_apart():
    model = mf.Efficiency(mf.Product([BOTH, mf.Polynomial(Y, [0.3])]), SMOOTH)
    first, other = model.factors()
    assert (first.observables, other.observables) == ((X,), (Y,))
    assert model.integrate({"x": (1, 2), "y": (0, 1)}) == pytest.approx(
        mf.Efficiency(BOTH, SMOOTH).integrate({"x": (1, 2)}) * (1 + 0.15) / 2, rel=INTEGRAL_PROMISE
    )


@pytest.mark.parametrize(
    "acceptance",
    [(0.2 + RISE * X) * (1 + 0.5 * Y) + 0.1 * X * Y**2, np.exp(-RISE * X * Y)],
    ids=["sums", "joint"],
)
def test_an_acceptance_of_two_factors_is_normalised_and_projected(acceptance):
    model = mf.Efficiency(mf.Product([BOTH, mf.Polynomial(Y, [0.3])]), acceptance)

    nodes, weights = np.polynomial.legendre.leggauss(60)

    def area(low, high, bottom, top):
        t, u = (low + high + (high - low) * nodes) / 2, (bottom + top + (top - bottom) * nodes) / 2
        heights = evaluate(acceptance, {"x": t[:, None], "y": u, "rise": 0.3})
        density = both(t)[:, None] * (1 + 0.3 * u) * heights
        return (high - low) * (top - bottom) / 4 * weights @ density @ weights

    whole, part = area(0, 5, -1, 1), area(1, 2, -0.5, 1)
    assert model.integrate({"x": (1, 2), "y": (-0.5, 1)}) == pytest.approx(part / whole, rel=1e-9)
    assert model.integrate({"y": (-0.5, 1), "x": (1, 2)}) == pytest.approx(part / whole, rel=1e-9)


def test_acceptances_of_acceptances_multiply():
    twice = mf.Efficiency(mf.Efficiency(PEAK, 1 + X), SMOOTH)
    once = mf.Efficiency(PEAK, (1 + X) * SMOOTH)
    t = np.linspace(0, 5, 7)
    assert twice.pdf(t) == pytest.approx(once.pdf(t), rel=INTEGRAL_PROMISE)


# ------------------------------------------------------------------------------------ parts of sums


def test_fractions_are_shares_before_the_acceptance():
    model = mf.Efficiency(BOTH, SMOOTH)
    shares = [
        float(evaluate(share, {p.name: p.start for p in model.parameters})) for share, _ in model.shares()
    ]
    kept = [integrate.quad(lambda t, f=f: f(t) * seen(t), 0, 5)[0] for f in (both, PEAK.pdf)]
    assert shares == pytest.approx([0.4 * kept[1] / kept[0], 1 - 0.4 * kept[1] / kept[0]], rel=1e-8)
    assert model.share_names() == ("peak", "tail")


def test_yields_are_observed_events_of_each_density():
    inside = mf.Efficiency(mf.Sum([PEAK, TAIL], yields=[N_PEAK, N_TAIL]), SMOOTH)
    outside = mf.Sum([mf.Efficiency(p, SMOOTH) for p in (PEAK, TAIL)], yields=[N_PEAK, N_TAIL])
    data = mf.generate(inside, seed=3)
    assert len(data) == pytest.approx(2500, abs=5 * 50)
    one, other = (mf.Likelihood(model, data) for model in (inside, outside))
    x = [2.1, 0.6, -0.4, 800.0, 1500.0, 0.2]
    at = dict(zip([p.name for p in inside.parameters], x, strict=True))
    assert one.value(at) == pytest.approx(other.value(at), rel=NUMPY_SUM)
    projection = mf.plots.project(inside, data, X, bins=10)
    assert {k: v.sum() for k, v in projection.components.items()} == pytest.approx(
        {"Gaussian": 900.0, "Exponential": 1600.0}, rel=1e-9
    )
    assert np.abs(projection.pulls).max() < 4


def test_a_model_with_an_acceptance_prints_both():
    model = mf.Efficiency(BOTH, SMOOTH)
    assert (
        repr(mf.Efficiency(PEAK, SMOOTH))
        == "Efficiency(Gaussian(x, mu, sigma), acceptance=0.2 + rise*x**2/25)"
    )
    assert str(model).splitlines()[:2] == [
        "Efficiency in x from 0 to 5", "└─ acceptance, 0.2 + rise*x**2/25: Sum in x",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------ expansions


@pytest.mark.parametrize("kind", ["legendre", "chebyshev"])
def test_expansions_are_those_of_numpy(kind):
    numbers = coefficients(2, 3)
    grid = {"legendre": np.polynomial.legendre.leggrid2d, "chebyshev": np.polynomial.chebyshev.chebgrid2d}[
        kind
    ]
    t, u = np.linspace(0, 5, 6), np.linspace(-1, 1, 5)
    values = evaluate(mf.acceptance.Expansion([X, Y], numbers, kind).expr, {"x": t[:, None], "y": u})
    assert values == pytest.approx(grid((t - 2.5) / 2.5, u, numbers), rel=SAME_LINES)


def test_angles_with_an_expansion_are_normalised_by_formula():
    model = mf.Efficiency(ANGLES, mf.acceptance.Expansion([CTL, CTK, PHI], coefficients(3, 4, 2)))
    total = model.integral()
    assert not any(node.op is Op.INTEGRAL for node in toposort(total))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    theta, half = (nodes + 1) * np.pi / 2, np.pi / 2  # smooth in the angle itself
    grid = {"ctl": np.cos(theta)[:, None, None], "ctk": np.cos(theta)[:, None], "phi": np.pi * nodes}
    w = weights * half * np.sin(theta)
    start = {p.name: p.start for p in model.parameters}
    density = evaluate(model.density(), grid | start)
    expected = np.einsum("i,j,k,ijk", w, w, np.pi * weights, density)
    assert float(evaluate(total, start)) == pytest.approx(expected, rel=TERM_INTEGRAL * 10)


def test_an_acceptance_in_four_observables_is_integrated_factor_by_factor():
    tau = mf.Parameter("tau", 0.1, -1, 1)
    expansion = mf.acceptance.Expansion([CTL, Z, CTK, PHI], coefficients(1, 1, 1, 1))
    model = mf.Efficiency(mf.Product([ANGLES, mf.Exponential(Z, tau)]), expansion)
    data = mf.generate(model, 4000, seed=2)
    result = mf.fit(model, data)
    assert result.valid
    assert result.values["tau"] == pytest.approx(0.1, abs=4 * result.errors["tau"])
    for o in model.observables:
        projection = mf.plots.project(model, data, o, bins=8)
        assert projection.expected.sum() == pytest.approx(4000, rel=1e-9)
        assert np.abs(projection.pulls).max() < 4
    box = {"ctl": (-0.5, 0.3), "z": (2.0, 4.0), "phi": (0.0, 2.0)}
    inside = np.all([(data[n] >= low) & (data[n] <= high) for n, (low, high) in box.items()], axis=0).mean()
    assert model.integrate(box) == pytest.approx(inside, abs=4 * np.sqrt(inside / 4000))


def test_coefficients_may_be_parameters():
    free = [1.0, mf.Parameter("c1", 0.2, -0.4, 0.4), mf.Parameter("c2", 0.1, -0.4, 0.4)]
    model = mf.Efficiency(mf.Uniform(X), mf.acceptance.Expansion(X, free))
    assert {p.name for p in model.parameters} == {"c1", "c2"}
    assert model.pdf(2.5) == pytest.approx((1 - 0.05) / 5, rel=SAME_LINES)


# ------------------------------------------------------------------------------------ by sample


@pytest.fixture(scope="module")
def simulated():
    return mf.acceptance.simulation(flat_sample(0.2 + 0.3 * X**2 / 25, (X,), 3000), X)


@pytest.fixture(scope="module")
def observed():
    return mf.generate(mf.Efficiency(BOTH, SMOOTH), 4000, seed=4)


@pytest.mark.parametrize("backend", [*STATISTICS, *JUDGE])
def test_simulated_events_are_the_nodes_of_an_integral(backend, simulated, observed):
    term = mf.Likelihood(
        mf.Efficiency(BOTH, simulated), observed, backend=there((STATISTICS | JUDGE)[backend])
    )
    mean = (simulated.weights * both(simulated.column(X))).sum()
    assert term.value([2.0, 0.7, -0.5, 0.4]) == pytest.approx(
        -np.log(both(observed["x"]) / mean).sum(), rel=NUMPY_SUM
    )


def test_gradient_and_hessian_by_sample_are_those_of_differences(simulated, observed):
    term = mf.Likelihood(mf.Efficiency(BOTH, simulated), observed)
    x, steps = np.array([2.05, 0.72, -0.48, 0.42]), 1e-4 * np.ones(4)
    gradient, hessian = term.gradient(x), term.hessian(x)
    assert gradient == pytest.approx(
        numeric_gradient(term, x, steps), abs=DIFFERENCES * np.abs(gradient).max()
    )
    slopes = [(term.gradient(x + s) - term.gradient(x - s)) / (2 * s.sum()) for s in np.diag(steps)]
    assert hessian == pytest.approx(np.array(slopes), abs=DIFFERENCES * np.abs(hessian).max())


def test_errors_include_that_of_the_simulation_as_the_jackknife_has_it(simulated, observed):
    """Leave each of some groups of events out: the spread of the gradient, turned by the Hessian."""
    result = mf.fit(mf.Efficiency(BOTH, simulated), observed)
    term = mf.Likelihood(mf.Efficiency(BOTH, simulated), observed)
    x, groups = np.array([result.values[n] for n in result.floating]), np.arange(3000) % 60

    def log_means(point):
        """Return the logarithm of the integral without each group."""
        values = dict(zip(result.floating, point, strict=True))
        density = evaluate(BOTH.density(), values | {"x": simulated.column(X)})
        return np.log(density.sum() - np.bincount(groups, density))

    steps = 1e-4 * np.eye(4)
    slopes = [4000 * (log_means(x + s) - log_means(x - s)) / (2 * s.sum()) for s in steps]
    inverse = np.linalg.inv(term.hessian(x))
    spread = inverse @ (np.cov(slopes) * 59**2 / 60) @ inverse
    own = np.array([result.simulation_errors[n] for n in result.floating])
    assert own == pytest.approx(np.sqrt(np.diag(spread)), rel=0.3)
    assert np.diag(result.covariance) == pytest.approx(np.diag(inverse) + own**2, rel=1e-3)
    assert "errors include those of the simulated samples: mu " in str(result)
    assert mf.FitResult.from_json(result.to_json()).simulation_errors == result.simulation_errors


def test_parts_that_share_a_simulation_share_its_errors(simulated, observed):
    yields = [N_PEAK, N_TAIL]
    inside = mf.Efficiency(mf.Sum([PEAK, TAIL], yields=yields), simulated)
    outside = mf.Sum([mf.Efficiency(p, simulated) for p in (PEAK, TAIL)], yields=yields)
    halves = [observed[:2000], observed[2000:]]
    joint = sum(mf.Likelihood(mf.Efficiency(BOTH, simulated), half) for half in halves)
    alone, split = mf.fit(mf.Efficiency(BOTH, simulated), observed), mf.fit(joint)
    one, other = (mf.fit(model, observed) for model in (inside, outside))
    for name in ("mu", "sigma", "slope"):
        assert one.simulation_errors[name] == pytest.approx(other.simulation_errors[name], rel=1e-6)
        assert split.simulation_errors[name] == pytest.approx(alone.simulation_errors[name], rel=1e-3)


def test_many_fits_have_the_errors_of_one(simulated, observed):
    model = mf.Efficiency(TAIL, simulated)
    one, many = mf.fit(model, observed), mf.fit_many(model, [observed, observed[:1000]])
    assert one.simulation_errors["slope"] > 0.3 * one.errors["slope"]
    assert many.errors[0, 0] == pytest.approx(one.errors["slope"], rel=EXACT_FIT_ERRORS)


def test_angles_by_sample_are_sums_of_moments():
    sample = flat_sample(1 + 0.5 * CTK * CTL, (CTL, CTK, PHI), 2000)
    model = mf.Efficiency(ANGLES, mf.acceptance.simulation(sample, [CTL, CTK, PHI]))
    total = model.integral()
    assert not any(node.op is Op.INTEGRAL for node in toposort(total))
    start = {p.name: p.start for p in model.parameters}
    mean = np.mean(evaluate(ANGLES.density(), start | sample.columns)) * 8 * np.pi
    assert float(evaluate(total, start)) == pytest.approx(mean, rel=NUMPY_SUM)
    result = mf.fit(model, mf.generate(model, 1000, seed=1))
    assert result.valid
    assert 0 < result.simulation_errors["FL"] < result.errors["FL"]


def test_events_are_drawn_and_counted_from_the_simulation(simulated, observed):
    model = mf.Efficiency(BOTH, simulated)
    drawn = mf.generate(model, 5000, seed=1)
    assert np.isin(drawn["x"], simulated.column(X)).all()
    weights = simulated.weights * both(simulated.column(X))
    below = np.average(simulated.column(X) <= 2.0, weights=weights)
    assert model.cdf(2.0) == pytest.approx(below, rel=1e-12)
    assert (drawn["x"] <= 2.0).mean() == pytest.approx(below, abs=4 * 0.5 / np.sqrt(5000))
    projection = mf.plots.project(model, drawn, X, bins=[0, 1, 2, 3, 5], oversampling=1)
    assert list(projection.components) == ["peak", "tail"]
    assert np.abs(projection.pulls).max() < 4
    study = mf.toy_study(model, events=500, toys=20, seed=1)
    assert study.valid.all()


def test_weights_and_generated_densities_of_simulation_cancel():
    sample = mf.generate(mf.Efficiency(TAIL, SMOOTH), 4000, seed=8)
    uniform = mf.acceptance.simulation(sample, X, weights=1 / TAIL.pdf(sample["x"]))
    by_density = mf.acceptance.simulation(sample, X, generated=TAIL)
    ratio = uniform.weights / by_density.weights
    assert ratio == pytest.approx(ratio[0], rel=1e-12)


def test_models_that_only_a_simulation_knows_are_refused_where_a_density_is_needed(simulated, observed):
    model = mf.Efficiency(PEAK, simulated)
    with pytest.raises(
        mf.ModelError, match="a density needs the efficiency as a function, which is known by simulation"
    ):
        model.pdf(1.0)
    with pytest.raises(mf.ModelError, match="the Fisher information needs the efficiency as a function"):
        mf.fisher_information(model, events=100)
    with pytest.raises(mf.ModelError, match="only a simulation knows must be that of all its densities"):
        mf.Sum([model, TAIL], fractions=[SHARE])
    with pytest.raises(mf.ModelError, match="known by simulation only must be the outermost"):
        mf.Efficiency(model, SMOOTH)
    with pytest.raises(mf.ModelError, match="the simulation lacks 'y'; give it all observables"):
        mf.Efficiency(mf.Product([PEAK, mf.Uniform(Y)]), simulated)


# ------------------------------------------------------------------------------------ drawing


@pytest.mark.parametrize(
    "model",
    [
        mf.Efficiency(BOTH, SMOOTH),
        mf.Efficiency(mf.CrystalBall(X, MU, SIGMA, 1.0, 3.0), np.exp(-X)),  # under an envelope of its own
        mf.Efficiency(mf.Uniform(X), np.exp(-0.5 * ((X - 2.3456) / 1e-4) ** 2) + 1e-9),  # a peak between points of a grid
        mf.Sum([mf.Efficiency(PEAK, SMOOTH), TAIL], fractions=[SHARE]),
    ],
    ids=["sum", "envelope", "narrow", "part of a sum"],
)  # fmt: skip
def test_events_follow_the_density(model):
    drawn = mf.generate(model, 3000, seed=11)["x"]
    assert stats.kstest(drawn, model.cdf).pvalue > 1e-3


def test_an_acceptance_above_its_bound_is_noticed(monkeypatch):
    model, right = mf.Efficiency(TAIL, SMOOTH), recipes.upper_bound
    monkeypatch.setattr(recipes, "upper_bound", lambda *a: right(*a) if a[-1] > MARGIN else 0.3)
    assert stats.kstest(mf.generate(model, 3000, seed=12)["x"], model.cdf).pvalue > 1e-3
    monkeypatch.setattr(recipes, "upper_bound", lambda *a: 0.3)
    with pytest.raises(mf.ModelError, match="exceeds every envelope tried"):
        mf.generate(mf.Efficiency(TAIL, SMOOTH + 0), 3000, seed=12)
    monkeypatch.setattr(recipes, "upper_bound", lambda *a: 0.2)
    with pytest.raises(
        mf.ModelError, match="the mean of the acceptance is above its largest value on a grid"
    ):
        mf.generate(mf.Efficiency(TAIL, SMOOTH + 0.0), 3000, seed=12)


def test_acceptances_are_part_of_what_a_model_is():
    one, other = (fingerprint(mf.Efficiency(PEAK, 0.2 + c * X)) for c in (0.1, 0.1 + 1e-16))
    assert one["digest"] != other["digest"]
    model = pickle.loads(pickle.dumps(mf.Efficiency(PEAK, mf.acceptance.Expansion(X, [1, 0.2]))))
    assert fingerprint(model) == fingerprint(mf.Efficiency(PEAK, mf.acceptance.Expansion(X, [1, 0.2])))


def test_simulations_are_part_of_what_a_model_is():
    def digest(last):
        return fingerprint(mf.Efficiency(PEAK, mf.acceptance.simulation({"x": [1.0, 2.0, last]}, X)))[
            "digest"
        ]

    assert digest(3.0) == digest(3.0) != digest(3.0 + 1e-15)


# ------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("pdf", "acceptance", "message"),
    [
        (SMOOTH, PEAK, "efficiency: takes a density, got expression .*; the order is Efficiency"),
        (PEAK, "x", "acceptance must be an expression, an expansion or a simulation, got 'x'"),
        (PEAK, None, "acceptance must be an expression, an expansion or a simulation, got None"),
        (PEAK, TAIL, "acceptance must be an expression, an expansion or a simulation, got Exponential"),
        (PEAK, 0.5, "depends on no observable, so that it cancels; leave it out"),
        (PEAK, RISE, "depends on no observable, so that it cancels; leave it out"),
        (PEAK, 1 + 0.1 * Y, "depends on 'y', which the density in 'x' does not have; multiply it"),
        (PEAK, mf.Observable("x", 0, 6), "observable 'x': two different ones share this name"),
        (PEAK, 1 - X, "must be finite and not negative, got -4 at x = 5; clip it"),
        (PEAK, np.sqrt(X - 1), "must be finite and not negative, got nan at x = 0"),
        (PEAK, 1 / X, "must be finite and not negative, got inf at x = 0"),
        (PEAK, 0 * X, "the acceptance is zero everywhere"),
    ],
)
def test_arguments_that_make_no_acceptance_are_refused(pdf, acceptance, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.Efficiency(pdf, acceptance)


def test_more_than_four_observables_are_refused():
    five = [mf.Observable(f"x{k}", 0.0, 1.0) for k in range(5)]
    product = mf.Product([mf.Uniform(o) for o in five])
    with pytest.raises(mf.ModelError, match="may depend on 4 observables at most, got 5; use simulation"):
        mf.Efficiency(product, sum(five[1:], five[0]))
    with pytest.raises(mf.ModelError, match="integrals are done numerically in 1 to 3 dimensions, got 4"):
        mf.Efficiency(product, np.exp(five[0] * five[1] * five[2] * five[3])).integral()


@pytest.mark.parametrize(
    ("observables", "numbers", "kind", "message"),
    [
        ([X], [[1, 2]], "legendre", "one axis for each of 1 observables, got shape"),
        ([X], [], "legendre", "one axis for each of 1 observables, got shape"),
        ([MU], [1], "legendre", "observables must be observables, got parameter 'mu'"),
        ([X, X], [[1]], "legendre", "takes 1 to 4 different observables, got x, x"),
        ([X], [0, 0], "legendre", "all coefficients are zero"),
        (
            [X],
            [1, X],
            "legendre",
            "coefficients must not depend on observables, got observable 'x'|got expression 'x'",
        ),
        ([X], [1, 2], "spline", "kind must be one of 'legendre', 'chebyshev', got 'spline'"),
        ([X], [1, np.nan], "legendre", "constant: must be finite, got nan"),
    ],
)
def test_arguments_that_make_no_expansion_are_refused(observables, numbers, kind, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.acceptance.Expansion(observables, numbers, kind)


def test_issue_expansions_keep_their_range_where_a_fit_has_another():
    # this used to stretch the polynomials of an expansion over the range of the fit: a wrong nll in silence
    x, y = mf.Observable("x", 0.2, 9.7), mf.Observable("y", -1, 1)
    shape = mf.Parameter("shape", 0.6, 0.1, 2)
    expansion = mf.acceptance.Expansion([x, y], [[1.0, 0.3], [0.2, 0.0], [-0.1, 0.2]])
    model = mf.Efficiency(mf.Density(1 + shape * x * (1 + y**2), [x, y]), expansion)
    data = {"x": np.linspace(0.6, 3.0, 20), "y": np.linspace(-0.9, 0.9, 20)}
    ranges = {"x": (0.5, 3.1)}
    (u, weights_u), (v, weights_v) = np.polynomial.legendre.leggauss(8), np.polynomial.legendre.leggauss(8)
    grid = {"x": np.repeat(1.8 + 1.3 * u, 8), "y": np.tile(v, 8)}
    inside = 1.3 * np.sum(model.pdf(grid) * np.outer(weights_u, weights_v).ravel())
    nll = mf.Likelihood(model, data, ranges=ranges)
    assert nll.value([0.6]) == pytest.approx(-np.log(model.pdf(data) / inside).sum(), rel=1e-12)
    assert model.integrate(ranges) == pytest.approx(inside, rel=1e-12)


def test_a_numerical_convolution_has_an_acceptance():
    # sums over nodes of the convolution at fixed points used to be an AssertionError, and candidates outside of the
    # range, where the acceptance is negative, an envelope that the density exceeds
    x, difference = mf.Observable("x", 0.0, 10.0), mf.Observable("d", -3.0, 3.0)
    width = mf.Parameter("width", 0.5, 0.1, 2.0)
    smeared = mf.Convolution(mf.Exponential(x, -0.4), mf.Gaussian(difference, 0.0, width), truth=(0.0, 20.0))
    model = mf.Efficiency(smeared, 1 - np.exp(-x))
    points = (np.arange(2000) + 0.5) / 200
    heights = smeared.pdf(points) * (1 - np.exp(-points))
    np.testing.assert_allclose(
        model.pdf(points), heights / (heights.mean() * 10), rtol=1e-5
    )  # of the midpoints
    data = mf.generate(model, 300, seed=1)
    assert stats.kstest(model.cdf(data["x"]), "uniform").pvalue > 1e-3
    assert mf.fit(model, data).valid


WITHOUT_THE_FUNCTION = {
    "a convolution": lambda model: mf.Convolution(
        model, mf.Gaussian(mf.Observable("d", -1.0, 1.0), 0.0, 0.1)
    ),
    "a binned likelihood": lambda model: mf.fit(model, ([3, 2], [X.low, (X.low + X.high) / 2, X.high])),
    "a moment morph": lambda model: mf.MomentMorph(
        mf.Parameter("t", 0.5, 0.0, 1.0), {0.0: model, 1.0: model}
    ),
}


@pytest.mark.parametrize("what", WITHOUT_THE_FUNCTION)
def test_what_needs_an_efficiency_that_only_a_simulation_knows_is_refused(what):
    # these used to leave the efficiency out
    model = mf.Efficiency(TAIL, mf.acceptance.simulation({"x": np.linspace(X.low, X.high, 9)}, X))
    with pytest.raises(mf.ModelError, match=f"{what} needs the efficiency as a function, which is known by"):
        WITHOUT_THE_FUNCTION[what](model)


def test_a_marginal_density_needs_the_efficiency_unless_it_is_that_of_a_whole_factor():
    z, points = mf.Observable("z", 0.0, 1.0), np.linspace(X.low, X.high, 9)
    both = mf.acceptance.simulation({"x": points, "z": np.linspace(0, 1, 9)}, [X, z])
    with pytest.raises(mf.ModelError, match="a marginal density needs the efficiency as a function"):
        mf.Efficiency(mf.Product([TAIL, mf.Uniform(z)]), both).marginal("x")
    alone = mf.Efficiency(TAIL, mf.acceptance.simulation({"x": points}, X))
    assert mf.Product([alone, mf.Uniform(z)]).marginal("x") is alone
    with pytest.raises(
        mf.ModelError, match=r"must be that of all its densities; write mf.Efficiency\(mf.Morph"
    ):
        mf.Morph(mf.Parameter("t", 0.5, 0.0, 1.0), {0.0: alone, 1.0: TAIL})
