"""Conditional densities: normalised event by event, drawn for rows of data, averaged over them in plots; never by accident."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.expr import Op, const, evaluate, rebuild, remake, scalar
from morefit.model.resolution import smeared_decay_area
from morefit.plots.projection import project
from morefit.rewrite.derive import gradient
from tolerances import DIFFERENCES, REORDERED, SCIPY_DENSITY, UNIT_INTEGRAL

X = mf.Observable("x", -5.0, 5.0)
Y = mf.Observable("y", 0.2, 1.5)
Z = mf.Observable("z", -5.0, 5.0)
T = mf.Observable("t", -1.0, 10.0)
S = mf.Observable("sigma_t", 0.01, 0.4)
Q = mf.Observable("q", -1.0, 1.0)
A = mf.Parameter("a", 0.3, -2.0, 2.0)
W = mf.Parameter("w", 1.1, 0.3, 3.0)
K = mf.Parameter("k", -1.0, -5.0, 5.0)
TAU = mf.Parameter("tau", 1.5, 0.5, 4.0)
SCALE = mf.Parameter("scale", 1.2, 0.5, 2.0)
F = mf.Parameter("f", 0.6, 0.0, 1.0)

PULLS = mf.Gaussian(X, A * Y, W * Y, given=[Y])
FALL = mf.Exponential(X, K * Y, given=[Y])
DECAY = mf.shapes.Decay(T, TAU, [SCALE * S], given=[S])
TWO = mf.shapes.Decay(T, TAU, [SCALE * S, 3 * S], [0.0], [F], given=[S])
MIXING = mf.shapes.BDecay(T, TAU, 0.5, 0.1, cos=0.7 * Q, sin=A * Q, sigma=[SCALE * S], given=[S, Q])
SUM = mf.Sum([PULLS, mf.Exponential(X, -0.1)], fractions=[F])
JOINT = mf.Product([PULLS, mf.Exponential(Y, K)])
MODELS = {
    "pulls": PULLS,
    "fall": FALL,
    "decay": DECAY,
    "two": TWO,
    "mixing": MIXING,
    "sum": SUM,
    "joint": JOINT,
}
BACKENDS = ["cpu", "reference", "opencl"]


def place(name):
    return there((COMPILED | JUDGE)[name])


def rows(model, count, seed=1):
    rng = np.random.default_rng(seed)
    return {o.name: rng.uniform(o.low, o.high, count) for o in model.observables}


def starts(model):
    return [p.start for p in model.parameters if not p.fixed]


# ------------------------------------------------------------------------- against scipy, event by event


def truncated(distribution, x, low, high):
    return distribution.pdf(x) / (distribution.cdf(high) - distribution.cdf(low))


def scipy_decay(t, sigma, tau=1.5):
    """An exponentially modified normal density on the range of t."""
    return truncated(stats.exponnorm(tau / sigma, 0.0, sigma), t, T.low, T.high)


EXPECTED = {
    "pulls": lambda d: truncated(stats.norm(0.3 * d["y"], 1.1 * d["y"]), d["x"], -5, 5),
    "fall": lambda d: truncated(stats.expon(-5, 1 / d["y"]), d["x"], -5, 5),
    "decay": lambda d: scipy_decay(d["t"], 1.2 * d["sigma_t"]),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", EXPECTED)
def test_every_event_has_the_normalised_density_of_its_own_row(name, backend):
    data = rows(MODELS[name], 50)
    np.testing.assert_allclose(
        MODELS[name].pdf(data, backend=place(backend)), EXPECTED[name](data), 100 * SCIPY_DENSITY
    )


@pytest.mark.parametrize("name", [name for name in MODELS if name != "joint"])
def test_a_row_is_normalised_over_what_is_drawn(name):
    model = MODELS[name]
    (x,) = model.drawn
    nodes, weights = np.polynomial.legendre.leggauss(64)
    edges = np.linspace(x.low, x.high, 101)
    points = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    for place in (0.1, 0.8):
        given = {o.name: np.full(len(points), o.low + place * (o.high - o.low)) for o in model.given}
        density = model.pdf({x.name: points, **given}).reshape(100, 64)
        total = np.sum(density * weights * np.diff(edges)[:, None] / 2)
        assert total == pytest.approx(1, rel=UNIT_INTEGRAL)


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *(pytest.param(name, backend) for name in ("pulls", "two") for backend in ("cpu", "reference")),
        pytest.param("pulls", "opencl", marks=pytest.mark.slow),
        *(pytest.param("mixing", backend, marks=pytest.mark.exhaustive) for backend in BACKENDS),
        pytest.param("two", "opencl", marks=pytest.mark.exhaustive),
    ],
)
def test_derivatives_are_those_of_finite_differences(name, backend):
    model = MODELS[name]
    nll = mf.Likelihood(model, rows(model, 20), backend=place(backend))
    at = np.array(starts(model))
    steps = np.eye(len(at)) * 1e-5
    slopes = np.array([(nll.value(at + h) - nll.value(at - h)) / 2e-5 for h in steps])
    bends = np.array([(nll.gradient(at + h) - nll.gradient(at - h)) / 2e-5 for h in steps])
    np.testing.assert_allclose(nll.gradient(at), slopes, atol=10 * DIFFERENCES * np.abs(slopes).max())
    np.testing.assert_allclose(nll.hessian(at), bends, atol=10 * DIFFERENCES * np.abs(bends).max())


def test_what_depends_on_given_columns_alone_is_computed_once():
    pdf = mf.Gaussian(X, 0.1, Y, given=[Y])
    nll = mf.Likelihood(mf.Sum([pdf, FALL], fractions=[F]), rows(PULLS, 10), backend="cpu")
    compiled = nll.sums(0)
    assert not any(line.op is Op.ERFC for line in compiled.program.kernel.per_event.lines)
    assert compiled.per_dataset


def test_a_joint_density_is_the_product_of_its_factors():
    data = rows(JOINT, 20)
    y = mf.Exponential(Y, K).pdf(data["y"])
    np.testing.assert_allclose(JOINT.pdf(data), PULLS.pdf(data) * y, REORDERED)
    x, y = ((o.low + (o.high - o.low) * (np.arange(1500) + 0.5) / 1500) for o in (X, Y))
    grid = {"x": np.repeat(x, 1500), "y": np.tile(y, 1500)}
    assert JOINT.pdf(grid).mean() * 10 * 1.3 == pytest.approx(1, abs=1e-5)
    assert JOINT.given == () and [o.name for o in JOINT.observables] == ["x", "y"]
    box = {"x": (-1.0, 0.5), "y": (0.4, 0.9)}
    at = lambda x, y: JOINT.pdf({"x": [x], "y": [y]})[0]  # noqa: E731
    expected = integrate.dblquad(at, 0.4, 0.9, -1, 0.5, epsabs=1e-7)[0]
    assert JOINT.integrate(box) == pytest.approx(expected, abs=1e-6)
    assert JOINT.integrate({"y": (0.4, 0.9)}) == pytest.approx(
        mf.Exponential(Y, K).integrate({"y": (0.4, 0.9)})
    )


def test_what_must_be_integrated_over_both_is_no_conditional_density():
    both = mf.Density(np.exp(-0.5 * ((X - A * Y) / (W * Y)) ** 2), [X, Y])
    area = integrate.dblquad(lambda x, y: np.exp(-0.5 * ((x - 0.3 * y) / (1.1 * y)) ** 2), 0.2, 1.5, -5, 5)[0]
    at = {"x": [0.5], "y": [0.6]}
    assert both.given == ()
    assert both.pdf(at)[0] == pytest.approx(np.exp(-0.5 * ((0.5 - 0.18) / 0.66) ** 2) / area)


def test_a_polynomial_is_integrated_term_by_term_at_every_row():
    pdf = mf.Density(1 + 0.1 * A * X**2 * Y, [X], given=[Y])
    data = rows(pdf, 10)
    area = 10 + 0.03 * data["y"] * 2 * 125 / 3
    np.testing.assert_allclose(pdf.pdf(data), (1 + 0.03 * data["x"] ** 2 * data["y"]) / area, 1e-12)


def test_several_conditional_densities_share_what_they_are_given():
    other = mf.Observable("z", -5.0, 5.0)
    pair = mf.Product([PULLS, mf.Gaussian(other, X * Y, W, given=[X, Y])])
    assert [o.name for o in pair.drawn] == ["x", "z"] and [o.name for o in pair.given] == ["y"]
    data = rows(pair, 10)
    z = truncated(stats.norm(data["x"] * data["y"], 1.1), data["z"], -5, 5)
    np.testing.assert_allclose(pair.pdf(data), EXPECTED["pulls"](data) * z, 1e-10)
    drawn = mf.generate(pair, given={"y": np.full(4000, 0.7)}, seed=3)
    centre = stats.norm(0.7 * drawn["x"], 1.1)
    part = (centre.cdf(drawn["z"]) - centre.cdf(-5)) / (centre.cdf(5) - centre.cdf(-5))
    assert stats.kstest(part, "uniform").pvalue > 1e-4


# ------------------------------------------------------------------------- classes of users


class Plain(mf.Pdf):
    """A density with an ``__init__`` of its own."""

    def __init__(self, x, width):
        self.x, self.width = x, width

    def density(self):
        return np.exp(-abs(self.x) / self.width)

    def integral_between(self, low, high):
        below, above = (
            mf.where(end < 0, np.exp(-abs(end) / self.width) - 1, 1 - np.exp(-abs(end) / self.width))
            for end in (low, high)
        )
        return self.width * (above - below)


@dataclass(frozen=True, eq=False)
class Record(mf.Pdf):
    """The same as a dataclass."""

    x: mf.Observable
    width: object
    density, integral_between = Plain.density, Plain.integral_between


@pytest.mark.parametrize("kind", [Plain, Record])
def test_own_densities_take_given(kind):
    data = rows(PULLS, 10)
    pdf = kind(X, W * Y, given=[Y])
    expected = truncated(stats.laplace(0, 1.1 * data["y"]), data["x"], -5, 5)
    np.testing.assert_allclose(pdf.pdf(data), expected, 1e-10)
    assert kind(X, W).given == ()
    assert [o.name for o in pickle.loads(pickle.dumps(pdf)).given] == ["y"]
    drawn = mf.generate(pdf, given={"y": np.full(3000, 0.6)}, seed=5)  # under an envelope
    assert stats.kstest(pdf.cdf(drawn["x"], given={"y": 0.6}), "uniform").pvalue > 1e-4


# ------------------------------------------------------------------------- draws

RNG = np.random.default_rng(7)
WIDTHS = np.clip(RNG.gamma(3.0, 0.03, 4001), 0.011, 0.39)
PROTO = {"y": RNG.uniform(0.3, 1.4, 4001), "sigma_t": WIDTHS, "q": RNG.choice([-1.0, 1.0], 4001)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["pulls", "two"])
def test_events_are_drawn_one_for_each_row(name, backend):
    model = MODELS[name]
    drawn = mf.generate(model, given=PROTO, seed=1, backend=place(backend))
    for o in model.given:
        np.testing.assert_array_equal(drawn[o.name], PROTO[o.name])
    (x,) = model.drawn
    assert stats.kstest(model.cdf(drawn[x.name], given=drawn), "uniform").pvalue > 1e-3
    cpu = mf.generate(model, given=PROTO, seed=1, backend="cpu")
    np.testing.assert_allclose(drawn[x.name], cpu[x.name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "generator"),
    [("fall", "philox"), ("fall", "xoshiro128++"), ("fall", "PCG64DXSM"), ("mixing", "philox")],
)
def test_rows_are_resampled_for_a_number_of_events(name, generator):
    model = MODELS[name]
    drawn = mf.generate(model, 6000, given=PROTO, seed=2, generator=generator)
    (x,) = model.drawn
    assert stats.kstest(model.cdf(drawn[x.name], given=drawn), "uniform").pvalue > 1e-3
    for o in model.given:
        assert set(drawn[o.name]) <= set(PROTO[o.name])
        assert stats.ks_2samp(drawn[o.name], PROTO[o.name]).pvalue > 1e-3


def test_rejection_keeps_the_distribution_of_rows():
    # a Laplace density without a quantile, of widths that differ by seven: under one envelope most of some are rejected
    pdf = Plain(X, W * Y, given=[Y])
    drawn = mf.generate(pdf, 20_000, given=PROTO, seed=3)
    assert stats.ks_2samp(drawn["y"], PROTO["y"]).pvalue > 1e-3
    assert stats.kstest(pdf.cdf(drawn["x"], given=drawn), "uniform").pvalue > 1e-3


def test_sums_are_drawn_component_by_component_for_the_same_rows():
    model = mf.Sum([Plain(X, W * Y, given=[Y]), mf.Exponential(X, -0.1)], fractions=[F])
    drawn = mf.generate(model, 20_000, given=PROTO, seed=4)
    assert stats.kstest(model.cdf(drawn["x"], given=drawn), "uniform").pvalue > 1e-3
    assert stats.ks_2samp(drawn["y"], PROTO["y"]).pvalue > 1e-3


def test_a_density_of_the_given_column_needs_no_data():
    drawn = mf.generate(mf.Product([Plain(X, W * Y, given=[Y]), mf.Exponential(Y, K)]), 20_000, seed=5)
    assert stats.kstest(mf.Exponential(Y, K).cdf(drawn["y"]), "uniform").pvalue > 1e-3
    part = Plain(X, W * Y, given=[Y]).cdf(drawn["x"], given=drawn)
    assert stats.kstest(part, "uniform").pvalue > 1e-3


def test_rows_of_data_do_not_fill_the_cache_of_kernels(tmp_path, monkeypatch):
    # a kernel that draws for many rows used to be stored with all of them
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    drawn = mf.generate(PULLS, given={"y": np.random.default_rng(3).uniform(0.3, 1.4, 300_000)}, seed=1)
    assert len(drawn) == 300_000
    assert sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()) < 1_000_000


def test_an_extended_model_draws_a_poisson_number_of_rows():
    model = mf.Sum([PULLS, mf.Exponential(X, -0.1)], yields=[300.0, mf.Parameter("n", 200.0, 0.0, 1e4)])
    sizes = {len(mf.generate(model, given=PROTO, seed=seed)) for seed in range(4)}
    assert len(sizes) > 1 and all(400 < size < 600 for size in sizes)
    nll = mf.Likelihood(model, mf.generate(model, 400, given=PROTO, seed=1))
    assert set(mf.generate(nll, seed=2).data["y"]) <= set(nll.data["y"])


# ------------------------------------------------------------------------- fits and toys


@pytest.mark.parametrize("backend", ["cpu", pytest.param("opencl", marks=pytest.mark.slow)])
def test_toys_draw_rows_and_are_fitted_in_compiled_code(backend, monkeypatch):
    from morefit.toys.batch import Toys

    whole = []
    fit_whole = Toys.fit_whole
    monkeypatch.setattr(Toys, "fit_whole", lambda *a: whole.append(fit_whole(*a)) or whole[-1])
    options = {"toys": 3, "given": {"y": PROTO["y"][:400]}, "seed": 1, "progress": False}
    toys = mf.toy_study(PULLS, backend=place(backend), **options)
    assert whole and whole[0] is not None
    expected = mf.toy_study(PULLS, backend="reference", **options)
    np.testing.assert_allclose(toys.values, expected.values, 1e-5)
    assert toys.events.tolist() == [400] * 3


def test_toys_of_a_likelihood_take_rows_of_its_data_or_all_of_them():
    data = mf.generate(DECAY, given={"sigma_t": WIDTHS[:300]}, seed=1)
    nll, seen = mf.Likelihood(DECAY, data), []
    mf.toy_study(nll, toys=2, seed=1, progress=False, statistic=lambda d, _: seen.append(d["sigma_t"]) or 0.0)
    assert all(set(s) <= set(data["sigma_t"]) and len(set(s)) < 300 for s in seen)
    assert not np.array_equal(seen[0], seen[1])
    mf.toy_study(
        nll,
        toys=2,
        seed=1,
        progress=False,
        resample=False,
        statistic=lambda d, _: seen.append(d["sigma_t"]) or 0.0,
    )
    assert all(np.array_equal(s, data["sigma_t"]) for s in seen[2:])


def test_a_saved_study_is_resumed_with_the_same_rows_only(tmp_path):
    options = {"toys": 2, "events": 50, "seed": 1, "progress": False, "save": tmp_path / "toys.npz"}
    mf.toy_study(PULLS, given={"y": PROTO["y"][:100]}, **options)
    mf.toy_study(PULLS, given={"y": PROTO["y"][:100]}, **options)
    with pytest.raises(mf.MorefitError, match="given"):
        mf.toy_study(PULLS, given={"y": PROTO["y"][:101]}, **options)


def test_intervals_take_rows_of_the_data():
    data = mf.generate(PULLS, given={"y": PROTO["y"][:200]}, seed=1)
    nll = mf.Likelihood(PULLS, data)
    scan = mf.intervals.feldman_cousins(
        nll, parameter="a", points=[0.2, 0.4], toys=20, seed=1, progress=False
    )
    assert np.isfinite(scan.t_data).all()
    assert mf.intervals.bootstrap(nll, replicas=10, seed=1, progress=False).values.shape == (10, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "given"), [(DECAY, "sigma_t"), (SUM, "y")], ids=["decay", "sum"])
def test_pulls_and_coverage_are_right(model, given):
    toys = mf.toy_study(model, toys=400, events=1000, given={given: PROTO[given]}, seed=3, progress=False)
    assert toys.valid.mean() > 0.98
    for p in model.parameters:
        pulls = toys.pull_summary(p.name)
        assert abs(pulls.mean) < 4 * pulls.mean_error and abs(pulls.width - 1) < 4 * pulls.width_error
        assert 0.6 < toys.coverage(p.name).fraction < 0.76


# ------------------------------------------------------------------------- plots, cdf, integrate


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_projection_is_the_mean_over_the_rows_of_the_data(backend):
    data = mf.generate(PULLS, given={"y": PROTO["y"][:500]}, seed=1)
    numbers = project(PULLS, data, "x", bins=8, oversampling=2, backend=place(backend))
    each = stats.norm(0.3 * data["y"], 1.1 * data["y"])
    cdf = np.array(
        [np.mean((each.cdf(e) - each.cdf(-5)) / (each.cdf(5) - each.cdf(-5))) for e in numbers.edges]
    )
    np.testing.assert_allclose(numbers.expected, 500 * np.diff(cdf), 1e-9)


def test_weights_and_ranges_of_given_columns_count_in_a_projection():
    data = mf.generate(PULLS, given={"y": PROTO["y"][:500]}, seed=1)
    cut = project(PULLS, data, "x", bins=8, ranges={"y": (0.5, 0.9)})
    assert cut.expected.sum() == pytest.approx(cut.counts.sum())  # all x are in the range
    weights = np.where(data["y"] < 0.6, 2.0, 0.0)
    few = data[data["y"] < 0.6]
    weighted = project(PULLS, data, "x", bins=8, weights=weights)
    np.testing.assert_allclose(weighted.expected, 2 * project(PULLS, few, "x", bins=8).expected, 1e-9)


def test_a_density_without_a_formula_for_parts_is_plotted_by_nodes():
    formula = mf.Density(
        np.exp(-0.5 * ((X - A * Y) / (W * Y)) ** 2), [X], given=[Y], integral=PULLS.integral()
    )
    data = mf.generate(PULLS, given={"y": PROTO["y"][:100]}, seed=1)
    one, other = (project(m, data, "x", bins=5).curve for m in (PULLS, formula))
    np.testing.assert_allclose(one, other, 1e-7)
    assert formula.cdf(0.3, given={"y": 0.5}) == pytest.approx(PULLS.cdf(0.3, given={"y": 0.5}), rel=1e-8)


def test_a_part_that_is_given_nothing_counts_the_rows_of_the_others():
    z = mf.Observable("z", 0.0, 1.0)
    other = mf.Density(np.exp(-(z**2) * (1 + z)), [z])  # without a formula for parts of its range
    model = mf.Product([PULLS, other])
    data = {**rows(PULLS, 200), "z": np.random.default_rng(2).uniform(0, 1, 200)}
    numbers = project(model, data, "z", bins=4, ranges={"x": (-1.0, 1.0), "y": (0.5, 1.0)})
    inside = (data["y"] >= 0.5) & (data["y"] <= 1.0)
    share = PULLS.integrate({"x": (-1.0, 1.0)}, given={"y": data["y"][inside]}) * inside.sum()
    expected = [share * other.integrate({"z": (low, low + 0.25)}) for low in (0.0, 0.25, 0.5, 0.75)]
    np.testing.assert_allclose(numbers.expected, expected, 1e-7)


def test_toys_of_a_joint_density_are_fitted_conditionally():
    toys = mf.toy_study(JOINT, toys=3, events=300, fit_model=PULLS, seed=1, progress=False)
    assert toys.valid.all() and toys.names == ("a", "w")


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_joint_density_is_projected_on_either_observable(name):
    data = mf.generate(JOINT, 2000, seed=2)
    numbers = project(JOINT, data, name, bins=10)
    assert numbers.expected.sum() == pytest.approx(2000)
    assert np.sum(numbers.pulls**2) < 30
    part = project(JOINT, data, "x", bins=10, ranges={"y": (0.5, 0.9)})
    assert part.expected.sum() == pytest.approx(2000 * JOINT.integrate({"y": (0.5, 0.9)}), rel=1e-6)


def test_a_distribution_takes_what_is_given_for_each_value():
    data = rows(PULLS, 20)
    each = stats.norm(0.3 * data["y"], 1.1 * data["y"])
    expected = (each.cdf(data["x"]) - each.cdf(-5)) / (each.cdf(5) - each.cdf(-5))
    np.testing.assert_allclose(PULLS.cdf(data["x"], given=data), expected, 1e-10)
    assert PULLS.cdf(data["x"][0], given={"y": data["y"][0]}) == pytest.approx(expected[0])
    assert PULLS.cdf(0.1, given=data).shape == (20,)
    inside = (each.cdf(1) - each.cdf(-1)) / (each.cdf(5) - each.cdf(-5))
    assert PULLS.integrate({"x": (-1, 1)}, given=data) == pytest.approx(inside.mean())
    assert PULLS.integrate({"x": (-1, 1)}, given={"y": data["y"][0]}) == pytest.approx(inside[0])


# ------------------------------------------------------------------------- in print


def test_what_is_given_is_printed():
    assert (
        repr(SUM) == "Sum([Gaussian(x, a*y, w*y, given=[y]), Exponential(x, -0.1)], fractions=[f], given=[y])"
    )
    assert str(SUM).splitlines()[0] == "Sum in x from -5 to 5 given y from 0.2 to 1.5"
    assert "Gaussian in x given y; mu = a*y" in str(SUM)
    assert repr(Plain(X, W * Y, given=[Y])) == "Plain(x, w*y, given=[y])"
    assert r"p\left(x \mid y\right)" in PULLS._repr_latex_()
    assert "erfc" in str(mf.explain(PULLS, rows(PULLS, 3)))


# ------------------------------------------------------------------------- what is refused

NARROW = mf.Observable("y", 0.3, 1.5)
REFUSED = {
    "undeclared": (
        lambda: mf.Gaussian(X, A * Y, W),
        r"'mu' must not depend on observables, got 'a\*y' with 'y'; write given=\[y\] if it is conditional on them, or"
        r" mf.Density\(formula, \[..., y\]\) if not",
    ),
    "another is given": (lambda: mf.Gaussian(X, A * Y, W, given=[S]), "'mu' must not depend on observables"),
    "no list": (
        lambda: mf.Gaussian(X, A, W, given="y"),
        "'Gaussian': given observables must be a list, got 'y'",
    ),
    "a parameter": (lambda: mf.Gaussian(X, A, W, given=[A]), "must be observables, got parameter 'a'"),
    "twice": (lambda: mf.Gaussian(X, A, W, given=[Y, Y]), "given observables 'y' given twice"),
    "nothing left": (
        lambda: mf.Gaussian(X, A, W, given=[X]).pdf([0.1]),
        r"model: an observable must be left to draw, got given=\[x\]",
    ),
    "negative in the middle": (
        lambda: mf.Gaussian(X, A, W * (Y - 2), given=[Y]),
        "'sigma' must be positive, got .*, which is -1.265 at the start of 'w' and the middle of 'y'",
    ),
    "two ranges": (
        lambda: mf.Product([PULLS, mf.Uniform(NARROW)]).observables,
        "observable 'y': two different ones share this name",
    ),
    "in a circle": (
        lambda: mf.Product([PULLS, mf.Gaussian(Y, A * X, W, given=[X])]),
        "product: 'x', 'y' are each given to the density of another; leave one out",
    ),
    "drawn and given": (
        lambda: mf.Product([PULLS, mf.Uniform(Y)], given=[Y]),
        r"product: observable 'y' must not be drawn by its densities if it is given; write given=\[y\] in each",
    ),
    "drawn in one part": (
        lambda: mf.Sum([PULLS, mf.Product([mf.Uniform(X), mf.Uniform(Y)])], fractions=[F]),
        r"sum: its densities must share their observables, got \['x'\] with \['y'\] given and \['x', 'y'\]",
    ),
    "a fraction": (
        lambda: mf.Sum([PULLS, FALL], fractions=[Y / 2], given=[Y]),
        r"fractions\[0\] must not depend",
    ),
    "two dimensions without a formula": (
        lambda: mf.Density(np.exp(-((X - Z) ** 2) * Y**4), [X, Z], given=[Y]).pdf(
            {"x": [1.0], "y": [1.0], "z": [1.0]}
        ),
        "integrals for each event are done in 1 dimension, got 2; give an integral",
    ),
    "an integral over both": (
        lambda: mf.Density(X * X * Y, [X], given=[Y], integral=3.0).pdf({"x": [1.0], "y": [1.0]}),
        "'Density': its integral must be that over 'x' with 'y' given, 54.5833 at y = 0.655, got 3; change the integral",
    ),
    "an integral of what is drawn": (
        lambda: mf.Density(X * X * Y, [X], given=[Y], integral=X),
        "density: the integral must not depend on observables",
    ),
    "no data": (lambda: mf.generate(PULLS, 10), "generate: 'y' must come from data, .*; pass given=data"),
    "no rows": (
        lambda: mf.generate(PULLS, given={"y": []}),
        "generate: 'y' must come from data, .* got no events",
    ),
    "no column": (lambda: mf.generate(PULLS, given={"z": [1.0]}), "observable 'y': missing; there are 'z'"),
    "out of range": (
        lambda: mf.generate(PULLS, given={"y": [9.0]}),
        "observable 'y': 1 of 1 events lie outside",
    ),
    "not a number": (lambda: mf.generate(PULLS, given={"y": [np.nan]}), "observable 'y': 1 of 1 events"),
    "weights": (
        lambda: mf.generate(PULLS, given=mf.Dataset({"y": [1.0]}, weights=[2.0])),
        "rows of given data count once each, so they must not have weights",
    ),
    "on the host": (
        lambda: mf.generate(PULLS, given=PROTO, generator="PCG64DXSM", seed=1),
        "one event for each row of given data needs a compiled generator, got 'PCG64DXSM'",
    ),
    "a row without an integral": (
        lambda: mf.generate(mf.Density(X**2 * (Y - 0.5), [X], given=[Y]), given={"y": [0.9, 0.3]}, seed=1),
        "'Density': its integral must be positive in every row of given data, got -.* in row 1 with y = 0.3; cut the data",
    ),
    "a row with a negative width": (
        lambda: mf.generate(mf.Gaussian(X, A, W * (Y - 0.5), given=[Y]), given={"y": [0.9, 0.3]}, seed=1),
        "'Gaussian': argument 'sigma' must be positive in every event, got -0.22 in event 1 with y = 0.3; cut the data",
    ),
    "an event with a negative width": (  # it used to be taken for a positive one
        lambda: mf.fit(
            mf.shapes.Decay(T, TAU, [S - 0.1], given=[S]), {"t": [1.0, 2.0], "sigma_t": [0.3, 0.05]}
        ),
        "'Decay': argument 'sigma' must be positive in every event, got -0.05 in event 1 with sigma_t = 0.05",
    ),
    "nothing is given": (
        lambda: mf.generate(JOINT, 10, given=PROTO),
        "generate: the model draws all its observables; leave given out",
    ),
    "toys that are given nothing": (
        lambda: mf.toy_study(JOINT, toys=1, events=10, given=PROTO),
        "toy study: the model draws all its observables; leave given out",
    ),
    "a likelihood has its own": (
        lambda: mf.generate(mf.Likelihood(PULLS, rows(PULLS, 3)), given=PROTO),
        "generate: a likelihood has its given columns already; leave given out",
    ),
    "toys of a likelihood": (
        lambda: mf.toy_study(mf.Likelihood(PULLS, rows(PULLS, 3)), toys=1, given=PROTO),
        "toy study: a likelihood has its given columns already; leave given out",
    ),
    "toys without data": (lambda: mf.toy_study(PULLS, toys=1, events=5), "toys: 'y' must come from data"),
    "another number of rows": (
        lambda: mf.toy_study(PULLS, toys=1, events=5, given=PROTO, resample=False),
        "toys that keep the 4001 rows they are given must have as many events, got 5; use resample=True",
    ),
    "no value for a cdf": (
        lambda: PULLS.cdf(0.1),
        "model: needs values of 'y'; pass given, numbers or columns",
    ),
    "no value for a box": (lambda: PULLS.integrate({"x": (0, 1)}), "model: needs values of 'y'; pass given"),
    "rows for none": (lambda: PULLS.cdf(0.1, given={"y": []}), "model: needs values of 'y', got none"),
    "other lengths": (
        lambda: PULLS.cdf([0.1, 0.2, 0.3], given={"y": [0.3, 0.4]}),
        "cdf: given columns must have one number, or one for each of 3 values of 'x', got 2",
    ),
    "a box in what is given": (
        lambda: PULLS.integrate({"y": (0.3, 1)}, given=PROTO),
        "observable 'y': the model must draw it, but is given it; choose 'x'",
    ),
    "a plot of what is given": (
        lambda: project(PULLS, rows(PULLS, 3), "y"),
        "observable 'y': the model must draw it, but is given it; choose 'x'",
    ),
    "information": (
        lambda: mf.fisher_information(PULLS, events=10),
        "fisher information: needs the density of 'y', which the model is given; multiply by it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_in_a_sentence(name):
    make, message = REFUSED[name]
    with pytest.raises(mf.MorefitError, match=message):
        make()


def test_an_angular_density_is_not_taken_for_conditional():
    angles = [
        mf.Observable(n, low, high)
        for n, low, high in (("ctl", -1, 1), ("ctk", -1, 1), ("phi", -np.pi, np.pi))
    ]
    names = ("fl", "s3", "s4", "s5", "afb", "s7", "s8", "s9")
    parameters = [mf.Parameter(n, 0.6 if n == "fl" else 0.1, -1, 1) for n in names]
    pdf = mf.physics.KstarMuMu(*angles, *parameters, given=[angles[2]])
    with pytest.raises(mf.ModelError, match="its integral must be that over 'ctl', 'ctk' with 'phi' given"):
        pdf.pdf({"ctl": [0.1], "ctk": [0.1], "phi": [0.1]})


def test_an_attribute_named_given_is_refused():
    class Own(mf.Pdf):
        def __init__(self):
            self.given = (X,)

        def density(self):
            return X.expr

    with pytest.raises(
        mf.ModelError, match="density: 'given' are the observables that it does not draw; pass given="
    ):
        Own()


def test_a_conditional_product_is_integrated_over_what_it_is_given():
    """This used to fail: each density was integrated by itself."""
    three = mf.Product([PULLS, mf.Exponential(Y, K), mf.Gaussian(Z, X, 1.0, given=[X])])
    x, z = 0.7, -0.4

    def joint(y):
        return three.pdf({"x": [x], "y": [y], "z": [z]})[0]

    both = three.marginal(["x", "z"])
    area = integrate.quad(joint, Y.low, Y.high)[0]
    assert both.pdf({"x": [x], "z": [z]})[0] == pytest.approx(area, rel=1e-8)
    alone = three.marginal("x")  # z depends on it, and integrates to one
    assert alone.pdf(x) == pytest.approx(JOINT.marginal("x").pdf(x), rel=1e-12)
    assert integrate.quad(alone.pdf, X.low, X.high)[0] == pytest.approx(1, abs=1e-8)
    assert three.marginal("y").pdf(0.5) == pytest.approx(mf.Exponential(Y, K).pdf(0.5), rel=1e-12)
    with pytest.raises(mf.ModelError, match="its integral over 'x', 'y' has no formula"):
        three.marginal("z")


# ------------------------------------------------------------------------- Asimov data


def test_asimov_data_of_a_conditional_density_give_back_their_values_and_errors():
    """These used to be refused."""
    spread, slope = mf.Parameter("spread", 1.0, 0.2, 3.0), mf.Parameter("slope", 1.0, -5.0, 5.0)
    x, y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.2, 2.0)
    peak = mf.Gaussian(x, 4 + slope * y, spread * y, given=[y])
    yields = [mf.Parameter("n", 600.0, 0, 1e4), mf.Parameter("b", 1400.0, 0, 1e4)]
    model = mf.Sum([peak, mf.Uniform(x)], yields=yields)
    rows = {"y": np.random.default_rng(1).uniform(0.3, 1.2, 2000)}
    nll = mf.Likelihood(model, mf.generate(model, given=rows, seed=1))
    result = mf.fit(nll)
    expected = mf.intervals.asimov(nll, result)
    assert not expected.weighted and expected.entries == pytest.approx(
        result.values["n"] + result.values["b"]
    )
    again = mf.fit(expected)
    assert again.valid
    for name in result.names:
        assert again.values[name] == pytest.approx(result.values[name], abs=0.02 * result.errors[name])
        assert again.errors[name] == pytest.approx(result.errors[name], rel=0.1)


def test_asimov_data_that_cannot_be_made_are_refused():
    x, y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.2, 2.0)
    narrow = mf.Gaussian(x, mf.Parameter("mu", 5.0, 4, 6), 1e-5 * y, given=[y])
    with pytest.raises(mf.ModelError, match="asimov: the density of a row is too narrow"):
        mf.intervals.asimov(mf.Likelihood(narrow, {"x": [5.0], "y": [1.0]}), {})
    both = mf.Product([narrow, mf.Gaussian(mf.Observable("z", 0, 1), 0.5, y, given=[y])])
    with pytest.raises(mf.ModelError, match="asimov: takes data of conditional densities in one observable"):
        mf.intervals.asimov(mf.Likelihood(both, {"x": [5.0], "y": [1.0], "z": [0.5]}), {})


def test_gaussians_that_end_ten_widths_from_a_decay_leave_its_integral_as_it_is():
    rate, sigma = scalar("rate"), scalar("sigma")
    values = {"rate": 0.66, "sigma": np.geomspace(0.005, 2.0, 200)}

    def whole(node, args):
        return Op.SMEARED_DECAY(*args) if node.op is Op.DECAY_AT_END else remake(node, args)

    cut = smeared_decay_area(const(-1.0), const(12.0), rate, const(0.0), sigma)
    (uncut,) = rebuild((cut,), whole)
    assert uncut is not cut
    pairs = zip((cut, *gradient(cut, [rate, sigma])), (uncut, *gradient(uncut, [rate, sigma])), strict=True)
    for one, other in pairs:  # sums of terms of the order of one, in another order
        np.testing.assert_allclose(evaluate(one, values), evaluate(other, values), rtol=1e-15, atol=4e-15)
