"""Convolutions: formulas against the integral for each event, scipy, differences and samples."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate as quadrature
from scipy import stats

import morefit as mf
from backend_rows import COMPILED, there
from morefit.errors import ModelError
from morefit.expr import const, evaluate, scalar
from morefit.jobs.digest import fingerprint
from morefit.model.compose.convolved import Convolved

M, T = mf.Observable("m", 4.5, 6.5), mf.Observable("t", -1.0, 8.0)
D = mf.Observable("d", -1.0, 1.0)
WIDTH, BIAS = mf.Parameter("s", 0.1, 0.02, 0.3), mf.Parameter("b", 0.02, -0.5, 0.5)
MU = mf.Parameter("mu", 5.3, 5.0, 6.0)
PROMISE = 1e-8  # of the density

PAIRS = {
    "Gaussian": (mf.Gaussian(M, MU, 0.2), mf.Gaussian),
    "Breit-Wigner": (mf.shapes.BreitWigner(M, MU, 0.2), mf.shapes.Voigt),
    "Voigt": (mf.shapes.Voigt(M, MU, 0.1, 0.2), mf.shapes.Voigt),
    "exponential": (mf.Exponential(M, mf.Parameter("a", -1.0, -3.0, 1.0)), mf.Exponential),
    "polynomial": (mf.Polynomial(M, [mf.Parameter("c", -0.1, -1.0, 1.0), 0.02, 0.001]), mf.Density),
    "uniform": (mf.Uniform(M), mf.Uniform),
    "modified Gaussian": (
        mf.shapes.ExponentiallyModifiedGaussian(M, MU, 0.1, 0.3),
        mf.shapes.ExponentiallyModifiedGaussian,
    ),
    "decay": (mf.shapes.Decay(T, mf.Parameter("tau", 1.5, 0.5, 3.0)), mf.shapes.Decay),
    "smeared decay": (mf.shapes.Decay(T, 1.5, sigma=[0.05, 0.2], fractions=[0.6]), mf.shapes.Decay),
    "oscillation": (mf.shapes.BDecay(T, 1.5, delta_m=0.5, cos=0.4, sin=0.3), mf.shapes.BDecay),
}


def gaussian(sigma=WIDTH, mean=BIAS):
    return mf.Gaussian(D, mean, sigma)


def start(model):
    return {p.name: p.start for p in model.parameters}


@pytest.mark.filterwarnings("ignore:convolution. .* has no effect")
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_by_formula_is_what_the_integral_for_each_event_is(name):
    pdf, kind = PAIRS[name]
    exact = mf.Convolution(pdf, gaussian())
    assert type(exact) is kind
    (x,) = pdf.observables
    numeric = Convolved(x, D, pdf, gaussian(), None)
    points = np.linspace(max(x.low, -0.4), x.high, 11)
    np.testing.assert_allclose(numeric.pdf(points), exact.pdf(points), rtol=PROMISE)
    values = {**start(numeric), x.name: points}
    factor, _ = pdf.smeared(BIAS.expr, WIDTH.expr)
    scaled = evaluate(factor * exact.density() * (WIDTH * math.sqrt(2 * math.pi)), values)
    np.testing.assert_allclose(scaled, evaluate(numeric.density(), values), rtol=PROMISE)


# each point takes an integral of integrals: decays, whose source has a step, take ten times as long as a Gaussian
@pytest.mark.parametrize("name", ["Gaussian", pytest.param("decay", marks=pytest.mark.exhaustive)])
def test_a_distribution_by_formula_is_the_integral_of_integrals(name):
    pdf, _ = PAIRS[name]
    (x,) = pdf.observables
    exact, numeric = mf.Convolution(pdf, gaussian()), Convolved(x, D, pdf, gaussian(), None)
    inside = np.linspace(max(x.low, -0.4), x.high, 11)[2::4]
    np.testing.assert_allclose(numeric.cdf(inside), exact.cdf(inside), rtol=PROMISE, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "backend"), [("Breit-Wigner", "cpu"), ("decay", "cpu"), ("Gaussian", "opencl")]
)
def test_likelihoods_of_both_ways_agree_to_the_second_derivative(name, backend):
    pdf, _ = PAIRS[name]
    (x,) = pdf.observables
    exact, numeric = mf.Convolution(pdf, gaussian()), Convolved(x, D, pdf, gaussian(), None)
    data = {x.name: np.linspace(max(x.low, -0.3), x.high - 0.1, 40)}
    order = [p.name for p in mf.Likelihood(exact, data).parameters]
    found = {}
    for model in (exact, numeric):
        likelihood = mf.Likelihood(model, data, backend=there(COMPILED[backend]))
        names = [p.name for p in likelihood.parameters]
        part = likelihood.evaluate_full(np.array([[start(model)[n] for n in names]]), 2)
        places = [names.index(n) for n in order]
        found[model] = part.value[0], part.gradient[0][places], part.hessian[0][np.ix_(places, places)]
    for one, other in zip(found[numeric], found[exact], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-6)


def crystal_ball():
    return mf.CrystalBall(D, 0.0, WIDTH, 1.5, 3.0)


def test_any_resolution_is_integrated_as_scipy_does():
    pdf = mf.shapes.BreitWigner(M, MU, 0.2)
    model = mf.Convolution(pdf, crystal_ball())

    def core(d):
        t = d / 0.1
        tail = math.exp(-1.125) * (1 - 0.5 * (1.5 + t)) ** -3.0 if t < -1.5 else 0.0
        return math.exp(-0.5 * t**2) if t >= -1.5 else tail

    def smeared(x):
        return quadrature.quad(
            lambda d: core(d) / (1 + ((x - d - 5.3) / 0.1) ** 2), -1, 1, points=[-0.15, 0.0], epsrel=1e-12
        )[0]

    total = quadrature.quad(smeared, M.low, M.high, epsrel=1e-10)[0]
    points = [4.6, 5.25, 5.9]
    np.testing.assert_allclose(model.pdf(points), [smeared(x) / total for x in points], rtol=PROMISE)
    part = quadrature.quad(smeared, 5.2, 5.7, epsrel=1e-10)[0] / total
    assert model.integrate({"m": (5.2, 5.7)}) == pytest.approx(part, rel=PROMISE)


WIDTHS = mf.Observable("width", 0.1, 0.5)
WITHOUT_EFFECT = {
    "one Gaussian": gaussian(),
    "two Gaussians": mf.Sum([gaussian(0.1), gaussian(0.3)], fractions=[mf.Parameter("core", 0.5, 0.0, 1.0)]),
    "one for each event": mf.Gaussian(D, 0.0, WIDTHS, given=[WIDTHS]),
}


@pytest.mark.parametrize("resolution", WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_a_resolution_without_effect_warns_and_leaves_the_density_as_it_was(resolution):
    # with a given width the density of the user used to become conditional, and to lose its observable
    fall = mf.Exponential(M, -1.0)
    with pytest.warns(UserWarning, match=r"the resolution has no effect; .* pass truth=\(low, high\)"):
        model = mf.Convolution(fall, resolution)
    assert not model.parameters
    assert fall.given == ()
    assert fall.observables == (M,)


def test_true_values_between_ends_make_a_box_with_soft_edges():
    model = mf.Convolution(mf.Uniform(M), gaussian(mean=0.0), truth=(5.0, 6.0))
    points = np.linspace(4.6, 6.4, 11)
    box = stats.norm.cdf((points - 5) / 0.1) - stats.norm.cdf((points - 6) / 0.1)
    np.testing.assert_allclose(model.pdf(points) / model.pdf(5.5), box / box[5], rtol=1e-7)
    half = mf.Convolution(mf.Exponential(M, -2.0), gaussian(mean=0.0), truth=(5.0, math.inf))
    expected = mf.shapes.ExponentiallyModifiedGaussian(M, 5.0, WIDTH, 0.5)
    np.testing.assert_allclose(half.pdf(points[1:]), expected.pdf(points[1:]), rtol=PROMISE)


def test_the_range_is_that_of_measured_values():
    wide, narrow = mf.Observable("m", 4.0, 7.0), mf.Observable("m", 5.2, 5.5)
    ratio = []
    for x in (wide, narrow):
        model = mf.Convolution(mf.shapes.BreitWigner(x, 5.3, 0.2), mf.shapes.StudentT(D, 0.0, 0.1, 3.0))
        ratio.append(model.pdf(5.3) / model.pdf(5.45))
    assert ratio[0] == pytest.approx(ratio[1], rel=PROMISE)


def test_distributions_and_bins_of_a_smeared_histogram_are_those_of_its_density():
    # this used to be off by as much as one: kinks were ordered for ends in the two halves of the range
    x, d = mf.Observable("x", 0, 10), mf.Observable("d", -3, 3)
    contents, edges = np.array([1.0, 3, 6, 5, 2]), np.linspace(0, 10, 6)
    smeared = mf.Convolution(mf.Histogram(x, (contents, edges)), mf.Gaussian(d, 0, 0.6))
    points = np.array([0.5, 2.0, 4.9, 6.0, 8.8, 10.0])

    def exact(u):  # true values lie in the range of the histogram: nothing is known beyond
        return contents @ np.diff(stats.norm.cdf((edges[:, None] - u) / 0.6), axis=0)

    areas = np.array([quadrature.quad(lambda u: exact(np.array([u]))[0], 0, end)[0] for end in points])
    assert np.allclose(smeared.cdf(points), areas / areas[-1], atol=1e-6)  # differences end at 5 sigma
    assert np.allclose(smeared.pdf(points), exact(points) / areas[-1], rtol=1e-6)
    assert smeared.integrate({"x": (8.8, 10)}) == pytest.approx(1 - areas[-2] / areas[-1], abs=1e-6)


def test_a_sum_is_convolved_part_by_part():
    parts = [mf.Gaussian(M, MU, 0.05), mf.Exponential(M, -1.0)]
    yields = [mf.Parameter("ns", 500.0, 0.0), mf.Parameter("nb", 300.0, 0.0)]
    model = mf.Convolution(mf.Sum(parts, yields=yields, labels=["signal", "rest"]), gaussian())
    assert isinstance(model, mf.Sum)
    assert [type(part) for part in model.pdfs] == [mf.Gaussian, mf.Exponential]
    assert model.labels == ("signal", "rest")
    assert evaluate(model.expected_events(), start(model)) == 800


def test_two_gaussians_of_a_resolution_have_their_shares_of_all_events():
    fraction = mf.Parameter("f", 0.7, 0.0, 1.0)
    double = mf.Sum([gaussian(0.05, 0.0), gaussian(0.3, 0.1)], fractions=[fraction])
    near = mf.Observable("m", 5.1, 5.6)
    exact = mf.Convolution(mf.Gaussian(near, MU, 0.1), double)
    assert isinstance(exact, mf.Sum)
    wide = mf.Observable("d", -4.0, 4.0)
    parts = [mf.Gaussian(wide, 0.0, 0.05), mf.Gaussian(wide, 0.1, 0.3)]
    numeric = Convolved(near, wide, mf.Gaussian(near, MU, 0.1), mf.Sum(parts, fractions=[fraction]), None)
    points = np.linspace(5.1, 5.6, 7)
    np.testing.assert_allclose(exact.pdf(points), numeric.pdf(points), rtol=PROMISE)


def test_a_resolution_in_the_measured_observable_reaches_over_its_range():
    own = mf.Convolution(mf.shapes.BreitWigner(M, MU, 0.2), mf.shapes.StudentT(M, 0.0, 0.1, 3.0))
    wide = mf.Observable("d", -2.0, 2.0)
    other = mf.Convolution(mf.shapes.BreitWigner(M, MU, 0.2), mf.shapes.StudentT(wide, 0.0, 0.1, 3.0))
    np.testing.assert_allclose(own.pdf([4.7, 5.3]), other.pdf([4.7, 5.3]), rtol=PROMISE)
    assert own.observables == (M,)
    assert other.observables == (M,)


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_samples_follow_the_convolved_density(backend):
    backend = there(COMPILED[backend]) if backend in COMPILED else backend
    model = mf.Convolution(mf.Gaussian(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, WIDTH))
    sample = mf.generate(model, 1500, seed=5, backend=backend)["m"]
    assert stats.kstest(sample, lambda x: model.cdf(x)).pvalue > 1e-3


def test_a_mixture_with_a_convolution_is_drawn_with_its_fraction():
    part = mf.Convolution(mf.Gaussian(M, 4.6, 0.05), mf.shapes.Laplace(D, 0.0, 0.05))
    model = mf.Sum([part, mf.Uniform(M)], fractions=[0.4])
    sample = mf.generate(model, 4000, seed=1)["m"]
    assert stats.kstest(sample, lambda x: model.cdf(x)).pvalue > 1e-3


def test_a_fit_gives_back_what_was_drawn():
    model = mf.Convolution(mf.Gaussian(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, WIDTH))
    result = mf.fit(model, mf.generate(model, 2000, seed=2))
    assert result.valid
    for name, true in (("mu", 5.3), ("s", 0.1)):
        assert abs(result.values[name] - true) < 4 * result.errors[name]


def test_toys_are_fitted_in_compiled_code():
    model = mf.Convolution(mf.shapes.BreitWigner(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, 0.1))
    toys = mf.toy_study(model, toys=20, events=300, seed=1)
    assert toys.valid.all()
    assert abs(np.mean(toys.pulls("mu"))) < 1.0


def test_every_number_is_in_the_fingerprint():
    def digest(sigma, truth):
        model = mf.Convolution(
            mf.shapes.BreitWigner(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, sigma), truth=truth
        )
        return fingerprint(model)["digest"]

    assert len({digest(0.1, None), digest(0.11, None), digest(0.1, (4.0, 6.0))}) == 3


def test_a_convolution_prints_its_parts():
    model = mf.Convolution(mf.Gaussian(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, 0.1))
    assert str(model).startswith("Convolved in m from 4.5 to 6.5; source = Gaussian")
    assert "for node 0 in" in str(mf.explain(model, {"m": np.linspace(5, 6, 9)}))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((mf.Uniform(M), 0.1), {}, "convolution: the resolution must be a density, got 0.1; wrap a formula"),
        ((M, gaussian()), {}, "convolution: the density must be a density, got observable 'm'"),
        (
            (mf.Product([mf.Uniform(M), mf.Uniform(T)]), gaussian()),
            {},
            "the density must have one observable, got 'm', 't'; convolve the factors of a product",
        ),
        (
            (mf.Gaussian(M, 5.0, T, given=[T]), gaussian()),
            {},
            "the density must not be conditional, got one with 't' given; write a width for each event into a shape",
        ),
        (
            (mf.shapes.Poisson(mf.Observable("n", -0.5, 9.5), 3.0), gaussian()),
            {},
            "the density must not be one of whole numbers, got 'n', whose steps would be smeared",
        ),
        ((mf.Uniform(M), gaussian()), {"truth": 3.0}, r"truth must be \(low, high\), got 3.0"),
        ((mf.Uniform(M), gaussian()), {"truth": (6, 5)}, r"low below high, got \(6, 5\)"),
        ((mf.Uniform(M), gaussian()), {"truth": ("a", 5)}, "low must be a number, got 'a'"),
        ((mf.Uniform(M), mf.Uniform(mf.Observable("m", -1, 1))), {}, "'m' names the difference"),
        (
            (
                mf.Uniform(M),
                mf.Sum([gaussian(), mf.Uniform(D)], yields=[mf.Parameter("a", 1.0), mf.Parameter("n", 1.0)]),
            ),
            {},
            "the resolution cannot be an extended sum; use fractions",
        ),
    ],
)
def test_what_is_no_convolution_is_refused(arguments, options, message):
    with pytest.raises(ModelError, match=message):
        mf.Convolution(*arguments, **options)


@pytest.mark.slow
def test_pulls_of_a_numeric_convolution_are_normal():
    model = mf.Convolution(mf.Gaussian(M, MU, 0.1), mf.shapes.Laplace(D, 0.0, WIDTH))
    toys = mf.toy_study(model, toys=200, events=400, seed=3)
    for name in ("mu", "s"):
        pulls = toys.pulls(name)
        assert abs(np.mean(pulls)) < 5 / math.sqrt(200)
        assert abs(np.std(pulls) - 1) < 5 / math.sqrt(400)


def test_a_gaussian_may_have_a_width_for_each_event():
    t, width = mf.Observable("t", -1.0, 10.0), mf.Observable("width", 0.05, 0.5)
    tau = mf.Parameter("tau", 1.5, 0.5, 5.0)
    convolved = mf.Convolution(mf.shapes.Decay(t, tau), mf.Gaussian(t, 0.0, width, given=[width]))
    written = mf.shapes.Decay(t, tau, sigma=width, given=[width])
    data = {"t": np.array([-0.2, 0.1, 2.0, 7.0]), "width": np.array([0.1, 0.3, 0.2, 0.5])}
    np.testing.assert_allclose(convolved.pdf(data), written.pdf(data), rtol=1e-12)
    peak = mf.Convolution(mf.Gaussian(t, 3.0, 0.2), mf.Gaussian(t, 0.1, 2 * width, given=[width]))
    sigma = np.hypot(0.2, 2 * data["width"])
    inside = stats.norm.cdf(10, 3.1, sigma) - stats.norm.cdf(-1, 3.1, sigma)
    np.testing.assert_allclose(peak.pdf(data), stats.norm.pdf(data["t"], 3.1, sigma) / inside, rtol=1e-12)


def test_a_width_for_each_event_needs_a_formula():
    t, width = mf.Observable("t", -1.0, 10.0), mf.Observable("width", 0.05, 0.5)
    smear = mf.Gaussian(t, 0.0, width, given=[width])
    with pytest.raises(mf.ModelError, match="convolution: a resolution with 'width' given needs a formula"):
        mf.Convolution(mf.shapes.StudentT(t, 3.0, 0.2, 3.0), smear)
    both = mf.Sum([smear, mf.Gaussian(t, 0.0, 2 * width, given=[width])], fractions=[0.5])
    with pytest.raises(mf.ModelError, match="convolution: of a sum of Gaussians none may depend on 'width'"):
        mf.Convolution(mf.shapes.Decay(t, 1.5), both)


@pytest.mark.parametrize("name", ["cpu", "width-1", "opencl"])
def test_issue_a_landau_of_no_number_reads_nothing_outside_its_tables(name):
    # this used to end the process: the place of nan in a table is that of no number in it
    x, sigma = mf.Observable("x", 0.0, 10.0), mf.Parameter("sigma", 0.5, -1.0, 3.0)
    nll = mf.Likelihood(mf.shapes.Landau(x, 3.0, sigma), {"x": [3.0, 4.0]}, backend=there(COMPILED[name]))
    assert not np.isfinite(nll.value([0.0]))


@pytest.mark.exhaustive  # rf208 among the tutorials fits the same pair, and compares it with scipy
def test_a_landau_seen_with_a_gaussian_resolution_is_fitted():
    x, d = mf.Observable("x", 0.0, 10.0), mf.Observable("d", -2.0, 2.0)
    mu, sigma = mf.Parameter("mu", 3.0, 1.0, 9.0), mf.Parameter("sigma", 0.3, 0.1, 1.0)
    model = mf.Convolution(mf.shapes.Landau(x, mu, sigma), mf.Gaussian(d, 0.0, 0.3))
    result = mf.fit(model, mf.generate(model, 1000, seed=1))
    assert result.valid
    assert all(abs(result.values[p] - p.start) < 4 * result.errors[p] for p in (mu, sigma))


@pytest.mark.parametrize("kind", ["steps", "linear", "cubic"])
def test_a_template_with_gaussians_is_summed_cell_by_cell(kind):
    heights, edges = np.array([1.0, 3.0, 0.0, 5.0, 2.0, 2.5]), np.linspace(4.5, 6.5, 7)
    template = mf.Histogram(M, (heights, edges), kind)
    near = mf.Observable("d", -0.3, 0.3)  # cuts the tails of the wider Gaussian
    wide = mf.Gaussian(near, 0.0, 0.2)
    resolution = mf.Sum([mf.Gaussian(near, BIAS, WIDTH), wide], fractions=[0.7])
    model = mf.Convolution(template, resolution)
    values = start(model)
    u, w = np.polynomial.legendre.leggauss(24)
    centres = (edges[1:] + edges[:-1]) / 2
    for x in (4.5, 4.9, 5.5, 6.0, 6.49):
        ends = np.unique([*edges, *centres, *np.clip([x - 0.3, x + 0.3], 4.5, 6.5)])
        half = np.diff(ends)[:, None] / 2
        t = ends[:-1, None] + half * (1 + u)
        seen = evaluate(resolution.density(), {**values, "d": x - t}) * (abs(x - t) <= 0.3)
        area = np.sum(half * w * seen * evaluate(template.density(), {"m": t}))
        assert evaluate(model.density(), {**values, "m": x}) == pytest.approx(area, rel=PROMISE)
    points = np.linspace(4.5, 6.5, 2001)
    total = quadrature.simpson(model.pdf(points), x=points)
    assert total == pytest.approx(1.0, rel=1e-6)


def test_a_histogram_of_many_bins_is_one_loop_and_its_fit_finds_the_resolution():
    edges = np.linspace(4.5, 6.5, 101)
    heights = 1.0 + 20.0 * (abs(edges[:-1] - 5.5) < 0.2)
    model = mf.Convolution(mf.Histogram(M, (heights, edges)), gaussian())
    data = mf.generate(model, 20_000, seed=2)
    result = mf.fit(model, data)
    assert result.valid
    for name, true in (("b", 0.02), ("s", 0.1)):
        assert abs(result.values[name] - true) < 4 * result.errors[name]
    kernel = mf.Likelihood(model, data).sums(2).program.kernel
    assert len(list(kernel.per_event.flat)) < 500
    ours = mf.Likelihood(model, data[:100]).gradient(result)
    other = mf.Likelihood(model, data[:100], backend="opencl").gradient(result)
    np.testing.assert_allclose(other, ours, rtol=1e-9)
    step = 1e-5
    nll = mf.Likelihood(model, data[:100])
    at = np.array([result.values[p.name] for p in nll.parameters])
    slopes = [(nll.value(at + step * e) - nll.value(at - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(nll.gradient(at), slopes, rtol=1e-5)


def test_yields_of_a_numerical_convolution_in_ranges_are_fitted():
    """This used to be an assertion inside of the compiler: its integral was one for each event."""
    peak = mf.Convolution(mf.Gaussian(M, MU, 0.1), mf.shapes.Moyal(D, 0.0, 0.05))
    yields = [mf.Parameter("ns", 200.0, 0.0, 1e4), mf.Parameter("nb", 200.0, 0.0, 1e4)]
    model = mf.Sum([peak, mf.Uniform(M)], yields=yields)
    result = mf.fit(model, mf.generate(model, seed=1), ranges={"m": [(4.6, 5.2), (5.3, 6.4)]})
    assert result.valid
    assert abs(result.values["ns"] - 200.0) < 4 * result.errors["ns"]


def test_issue_bins_from_the_low_end_of_a_range_have_probabilities():
    """The first bin of a source with a kink used to be not a number, so that cdf and binned fits were nan and inf."""
    x, place = mf.Observable("x", -2.0, 6.0), mf.Parameter("m", 1.0, -1.0, 5.0)
    laplace = mf.Density(np.exp(-abs(x - place) / 0.5), [x])
    model = mf.Convolution(laplace, mf.Gaussian(x, 0.0, mf.Parameter("s", 0.3, 0.05, 1.0)))
    points = np.linspace(-2.0, 6.0, 801)
    height = model.pdf(points)
    summed = np.concatenate([[0.0], np.cumsum((height[1:] + height[:-1]) * 0.005)])
    np.testing.assert_allclose(model.cdf(points[::200]), summed[::200], atol=1e-5)
    binned = mf.BinnedLikelihood(model, (np.array([1.0, 30.0, 60.0, 9.0]), np.linspace(-2.0, 6.0, 5)))
    assert np.isfinite(binned.value([1.0, 0.3]))


def test_issue_bins_of_a_formula_with_a_histogram_as_resolution_have_probabilities():
    """This used to take minutes and all memory: each kink of the resolution moved with both ends of a bin."""
    x, d = mf.Observable("x", 0.0, 2.0), mf.Observable("d", -0.5, 0.5)
    contents, edges = np.array([1.0, 3.0, 8.0, 9.0, 4.0, 2.0]), np.linspace(-0.5, 0.5, 7)
    model = mf.Convolution(mf.Density(np.exp(-3 * x) / (1 + x**2), [x]), mf.Histogram(d, (contents, edges)))

    def smeared(seen):
        def true(e):
            return np.exp(-3 * (seen - e)) / (1 + (seen - e) ** 2)

        cells = zip(contents, edges[:-1], edges[1:], strict=True)
        return sum(c * quadrature.fixed_quad(true, low, high, n=12)[0] for c, low, high in cells)

    ends = [0.0, 0.3, 1.1, 2.0]
    areas = [quadrature.quad(smeared, low, high)[0] for low, high in pairwise(ends)]
    np.testing.assert_allclose(np.diff(model.cdf(ends)), areas / np.sum(areas), rtol=1e-11)


def test_issue_a_template_of_many_steps_with_another_as_resolution_is_a_loop():
    """This used to take hours: each pair of steps had a copy of the density in the program."""
    x, d = mf.Observable("x", 0.0, 2.0), mf.Observable("d", -0.5, 0.5)
    rng = np.random.default_rng(1)
    steps, errors = (rng.random(30), np.linspace(0.0, 2.0, 31)), (rng.random(20), np.linspace(-0.5, 0.5, 21))
    model = mf.Convolution(mf.Histogram(x, steps), mf.Histogram(d, errors))

    def integral(value, times):
        """Return the density of the sum of two steps, integrated so many times up to a value, for all pairs."""
        ramps = np.maximum(value - np.add.outer(steps[1], errors[1]), 0.0) ** (1 + times)
        return np.sum(np.outer(steps[0], errors[0]) * np.diff(np.diff(ramps, axis=0), axis=1)) / (1 + times)

    points, whole = [0.01, 0.4, 1.1, 1.97], integral(2.0, 1) - integral(0.0, 1)
    np.testing.assert_allclose(model.pdf(points), [integral(p, 0) / whole for p in points], rtol=1e-10)
    expected = [(integral(p, 1) - integral(0.0, 1)) / whole for p in points]
    np.testing.assert_allclose(model.cdf(points), expected, rtol=1e-9)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_a_template_between_points_with_steps_as_resolution_is_what_scipy_integrates(interpolation):
    # each pair of kinks used to have a copy of the density in the program, which was not ready after a minute
    x, d = mf.Observable("x", 0.0, 2.0), mf.Observable("d", -0.5, 0.5)
    rng = np.random.default_rng(1)
    errors = rng.random(20), np.linspace(-0.5, 0.5, 21)
    source = mf.Histogram(x, (rng.random(30) + 0.2, np.linspace(0.0, 2.0, 31)), interpolation=interpolation)
    model = mf.Convolution(source, mf.Histogram(d, errors))

    grid = np.linspace(0.0, 2.0, 2001)
    below = source.cdf(np.clip(np.subtract.outer(grid, errors[1]), 0.0, 2.0).ravel()).reshape(len(grid), -1)
    seen = (below[:, :-1] - below[:, 1:]) @ errors[0]
    shares = np.concatenate([[0.0], np.cumsum((seen[1:] + seen[:-1]) / 2)])
    some = [10, 400, 1100, 1970]
    np.testing.assert_allclose(model.pdf(grid[some]), seen[some] / (shares[-1] * grid[1]), rtol=1e-5)
    np.testing.assert_allclose(model.cdf(grid[some]), shares[some] / shares[-1], rtol=1e-4)


def test_issue_an_argus_background_with_a_resolution_has_its_end_point_fitted():
    # this used to be refused: panels that are empty counted zero times what is not a number
    m, d = mf.Observable("m", 5000.0, 5600.0), mf.Observable("d", -150.0, 150.0)
    end, c = mf.Parameter("end", 5130.0, 5100.0, 5170.0), mf.Parameter("c", -15.0, -60.0, 0.0)
    sigma = mf.Parameter("sigma", 15.0, 5.0, 40.0)
    pdf = mf.Convolution(mf.shapes.Argus(m, end, c), mf.Gaussian(d, 0.0, sigma))
    masses = np.array([5050.0, 5120.0, 5140.0, 5279.9])  # the last reaches the end point by 0.1 of 150

    def by_hand(end_point):
        t = end_point - np.linspace(0, np.sqrt(end_point - 4850), 4001)[1:] ** 2  # the root ends there
        u = 1 - (t / end_point) ** 2
        true = t * np.sqrt(u) * np.exp(-15 * u) * np.sqrt(end_point - t)
        at = np.concatenate([np.linspace(5000, 5600, 601), masses])
        away = at[:, None] - t
        seen = (np.exp(-0.5 * (away / 15) ** 2) * (abs(away) < 150)) @ true
        return seen[-4:] / quadrature.simpson(seen[:-4], x=at[:-4])

    np.testing.assert_allclose(pdf.pdf(masses)[:3], by_hand(5130.0)[:3], rtol=1e-5)
    slopes = (by_hand(5131.0) - by_hand(5129.0)) / 2
    np.testing.assert_allclose(pdf.derivative(masses, "end")[:3], slopes[:3], rtol=1e-3)
    assert np.isfinite(pdf.derivative(masses, "end", 2)).all()
    assert mf.fit(pdf, mf.generate(pdf, 1_000, seed=1), fixed=["sigma"]).valid


@pytest.mark.parametrize(
    ("kind", "sigma"), [("steps", 0.05), ("linear", 0.3), ("cubic", 0.3), ("cubic", 50.0)]
)
def test_probabilities_of_a_template_with_gaussians_are_summed_cell_by_cell(kind, sigma):
    # these took minutes, with a panel for each bin; cells much narrower than the resolution had wrong ones
    heights, edges = np.array([1.0, 3.0, 0.0, 5.0, 2.0, 2.5]), np.linspace(4.5, 6.5, 7)
    near = mf.Observable("d", -0.3, 0.4)
    width = mf.Parameter("s", sigma, 0.01, 100.0)
    resolution = mf.Sum([mf.Gaussian(near, 0.05, width), mf.Gaussian(near, 0.0, 2 * width)], fractions=[0.7])
    model = mf.Convolution(mf.Histogram(M, (heights, edges), kind), resolution)
    points = np.linspace(4.5, 6.5, 4001)
    density = evaluate(model.density(), {"s": sigma, "m": points})
    total = quadrature.cumulative_simpson(density, x=points, initial=0)
    ends = {"s": sigma, "low": points[1200], "high": points[3000]}
    area = evaluate(model.integral_between(scalar("low"), scalar("high")), ends)
    assert area == pytest.approx(total[3000] - total[1200], rel=1e-6)
    assert evaluate(model.integral(), ends) == pytest.approx(total[-1], rel=1e-6)


def test_a_template_with_a_width_for_each_event_is_normalised_for_each():
    # this used to be refused
    heights, edges = np.array([1.0, 3.0, 0.5, 5.0]), np.linspace(4.5, 6.5, 5)
    error, scale = mf.Observable("e", 0.01, 0.5), mf.Parameter("k", 1.2, 0.5, 2.0)
    resolution = mf.Gaussian(mf.Observable("d", -9.0, 9.0), 0.0, scale * error, given=[error])
    model = mf.Convolution(mf.Histogram(M, (heights, edges)), resolution)
    data = {"m": np.array([4.6, 5.5, 6.4, 5.1]), "e": np.array([0.02, 0.1, 0.4, 0.3])}

    def seen(m, e):
        return np.sum(heights * np.diff(stats.norm.cdf(edges, m, 1.2 * e)))

    rows = list(zip(data["m"], data["e"], strict=True))
    expected = [seen(*row) / quadrature.quad(seen, 4.5, 6.5, row[1], epsabs=1e-10)[0] for row in rows]
    assert [o.name for o in model.given] == ["e"]
    assert model.pdf(data) == pytest.approx(expected, rel=1e-8)
    drawn = mf.generate(model, 3000, given={"e": np.linspace(0.02, 0.45, 50)}, seed=1)
    assert stats.kstest(model.cdf(drawn["m"], given=drawn), "uniform").pvalue > 1e-3
    assert mf.fit(model, drawn).valid


@pytest.mark.parametrize("kind", ["steps", "kernels"])
def test_templates_take_a_resolution_with_a_kink(kind):
    # a histogram took half a minute, and kernel estimates were refused
    x, d = mf.Observable("x", 0.0, 1.0), mf.Observable("d", -0.4, 0.4)
    sigma = mf.Parameter("sigma", 0.03, 0.01, 0.1)
    events = np.random.default_rng(1).beta(3, 4, 2_000)
    counts = np.histogram(events, 12, (0, 1))
    template = (
        mf.KernelDensity(x, {"x": events}, bandwidth=0.08)
        if kind == "kernels"
        else mf.Histogram(x, counts, kind)
    )
    resolution = mf.shapes.CrystalBall(d, 0.0, sigma, 1.2, 3.0)
    model = mf.Convolution(template, resolution)
    points = np.array([0.013, 0.31, 0.502, 0.97])
    kinks = points - -1.2 * 0.03
    cuts = np.unique(
        np.concatenate([template.pieces()[0], kinks, points - 0.4, points + 0.4, np.linspace(0, 1, 201)])
    )
    cuts = cuts[(cuts >= 0) & (cuts <= 1)]
    nodes, weights = np.polynomial.legendre.leggauss(10)
    t = (cuts[:-1, None] + np.diff(cuts)[:, None] * (1 + nodes) / 2).ravel()
    heights = (np.diff(cuts)[:, None] * weights / 2).ravel() * evaluate(template.density(), {"x": t})
    apart = points[:, None] - t
    seen = evaluate(resolution.density(), {"sigma": 0.03, "d": apart}) * (abs(apart) <= 0.4)
    found = evaluate(model.density(), {"sigma": 0.03, "x": points})
    assert found == pytest.approx(seen @ heights, rel=1e-8)
    if kind == "kernels":
        return
    area = evaluate(model.integral_between(const(0.2), const(0.7)), {"sigma": 0.03})
    x = (np.linspace(0.2, 0.7, 65)[:-1, None] + 0.5 / 64 * (1 + nodes) / 2).ravel()
    density = evaluate(model.density(), {"sigma": 0.03, "x": x})
    assert area == pytest.approx(0.5 / 64 / 2 * np.sum(np.tile(weights, 64) * density), rel=1e-8)


@pytest.mark.parametrize(
    ("shape", "reference"),
    [
        (lambda x: mf.shapes.Gamma(x, 3.0, 2.0), stats.gamma(3.0, scale=2.0)),
        (lambda x: mf.shapes.Weibull(x, 2.0, 8.0), stats.weibull_min(2.0, scale=8.0)),
    ],
)
def test_true_values_begin_where_a_density_is_defined(shape, reference):
    x, d = mf.Observable("x", 0.0, 40.0), mf.Observable("d", -10.0, 10.0)
    places = [0.5, 3.0, 10.0]
    seen = mf.Convolution(shape(x), mf.Gaussian(d, 0.0, 1.0)).pdf(places, {})
    ends = [(max(0.0, at - 10.0), at + 10.0) for at in places]
    smeared = [
        quadrature.quad(lambda t, at=at: reference.pdf(t) * stats.norm.pdf(at - t), *pair, epsabs=1e-13)[0]
        for at, pair in zip(places, ends, strict=True)
    ]
    assert seen / seen[1] == pytest.approx(np.array(smeared) / smeared[1], rel=1e-8)


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_a_resolution_written_in_the_observable_itself(sigma):
    """Its range is as wide as that of the observable, and far differences are left out of the integral."""
    x, width = mf.Observable("x", 0.0, 40.0), mf.Parameter("sigma", 1.0, 0.3, 3.0)
    source = mf.shapes.JohnsonSU(x, 18.0, 1.2, 0.3, 1.2)
    seen = mf.Convolution(source, mf.Gaussian(x, 0.0, width)).pdf([3.0, 17.5, 22.0, 39.0], {"sigma": sigma})
    wide = mf.Convolution(source, mf.Gaussian(mf.Observable("far", -40.0, 40.0), 0.0, sigma))
    johnson = stats.johnsonsu(0.3, 1.2, loc=18.0, scale=1.2)

    def smeared(at):
        ends = at - 12 * sigma, at + 12 * sigma
        peak = [max(min(18.0, ends[1]), ends[0]), at]
        return quadrature.quad(
            lambda t: johnson.pdf(t) * stats.norm.pdf(at - t, scale=sigma),
            *ends,
            points=peak,
            epsabs=0.0,
            epsrel=1e-12,
            limit=300,
        )[0]

    places = [3.0, 17.5, 22.0, 39.0]
    ratios = np.array([smeared(at) for at in places]) / smeared(17.5)
    assert seen / seen[1] == pytest.approx(ratios, rel=1e-7)
    assert seen == pytest.approx(wide.pdf(places, {}), rel=1e-7)


def test_true_values_where_a_density_is_not_defined_are_refused():
    x, d = mf.Observable("x", 0.0, 40.0), mf.Observable("d", -10.0, 10.0)
    with pytest.raises(ModelError, match=r"truth must reach into \[0, inf\], where Gamma is defined"):
        mf.Convolution(mf.shapes.Gamma(x, 3.0, 2.0), mf.Gaussian(d, 0.0, 1.0), truth=(-5.0, -1.0))


def test_second_derivatives_of_a_log_normal_with_a_resolution_exist():
    # the square of the inverse of the smallest number was infinite: no fit was valid
    x = mf.Observable("x", 0.0, 40.0)
    mu, s, res = (
        mf.Parameter(n, *v) for n, v in (("mu", (2.3, 1, 3.5)), ("s", (0.3, 0.1, 1)), ("res", (1, 0.3, 3)))
    )
    model = mf.Convolution(mf.shapes.LogNormal(x, mu, s), mf.Gaussian(mf.Observable("d", -10, 10), 0.0, res))
    nll = mf.Likelihood(model, {"x": np.array([8.46, 3.0])})
    at, step = np.array([2.3, 0.3, 1.0]), 1e-5
    slopes = [
        (nll.gradient(at + step * row) - nll.gradient(at - step * row)) / (2 * step) for row in np.eye(3)
    ]
    np.testing.assert_allclose(nll.hessian(at), slopes, rtol=1e-5, atol=1e-5)


# --------------------------------------------------------------------- ends where derivatives are infinite

ROOTS = {
    "gamma": lambda x: mf.shapes.Gamma(x, mf.Parameter("k", 1.6, 1.02, 3.0), mf.Parameter("theta", 1.0, 0.3, 3.0)),
    "beta": lambda x: mf.shapes.Beta(x, mf.Parameter("a", 1.5, 1.05, 4.0), mf.Parameter("b", 2.5, 1.1, 5.0)),
    "root in the middle": lambda x: mf.Density(
        0.1 + np.sqrt(np.maximum(x - 0.2, 0)) * np.exp(-mf.Parameter("slope", 2.0, 0.5, 9.0) * x), [x]
    ),
    "cusp": lambda x: mf.shapes.GeneralisedNormal(
        x, mf.Parameter("m", 0.4, 0.2, 0.7), mf.Parameter("w", 0.2, 0.1, 0.4), mf.Parameter("power", 1.5, 1.05, 3.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_derivatives_are_numbers_wherever_nodes_are_rounded_to_an_end(name):
    """They were not: a node at the end of a root is zero times infinity, at a few events; Minuit took minutes."""
    x = mf.Observable("x", 0.0, 1.0)
    blur = mf.Parameter("blur", 0.02, 0.004, 0.08)
    nll = mf.Likelihood(
        mf.Convolution(ROOTS[name](x), mf.Gaussian(x, 0, blur)), {"x": np.linspace(0.001, 0.999, 400)}
    )
    rng = np.random.default_rng(3)
    low, high = np.array([(p.low, p.high) for p in nll.parameters]).T
    for _ in range(8):
        point = low + (high - low) * rng.uniform(0.05, 0.95, len(low))
        assert np.isfinite(nll.value(point))
        gradient, steps = nll.gradient(point), 1e-5 * (high - low) * np.eye(len(low))
        differences = [(nll.value(point + s) - nll.value(point - s)) / (2 * s.sum()) for s in steps]
        np.testing.assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3 * np.abs(gradient).max())
        assert np.isfinite(nll.hessian(point)).all()


def test_a_gamma_density_with_a_resolution_is_fitted_by_newton():
    x = mf.Observable("x", 0.0, 10.0)
    shape, scale, blur = (
        mf.Parameter("k", 2.0, 1.2, 6.0),
        mf.Parameter("theta", 0.8, 0.2, 3.0),
        mf.Parameter("blur", 0.3, 0.05, 1.0),
    )
    model = mf.Convolution(mf.shapes.Gamma(x, shape, scale), mf.Gaussian(x, 0, blur))
    result = mf.fit(model, mf.generate(model, 1500, seed=1))
    assert (result.valid, result.minimiser) == (True, "newton")
