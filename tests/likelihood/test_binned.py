"""Binned likelihoods: bin integrals against quadrature, values against scipy and iminuit, and every tool that takes them."""

import pickle
from itertools import pairwise

import hist
import numpy as np
import pytest
from iminuit import Minuit, cost
from scipy.integrate import nquad
from scipy.stats import multinomial, norm, poisson

import morefit as mf
from areas import area
from morefit.likelihood.table import COUNT

M = mf.Observable("m", 0, 10)
Y = mf.Observable("y", -1, 1)
Z = mf.Observable("z", 0, 2)
IRREGULAR = np.array([0.0, 0.5, 2.0, 4.0, 4.5, 5.0, 5.5, 7.0, 10.0])


def mass_model():
    mu, sigma = mf.Parameter("mu", 5, 4, 6), mf.Parameter("sigma", 0.5, 0.1, 2)
    slope = mf.Parameter("slope", -0.5, -3, 0)
    yields = [mf.Parameter("signal", 300, 0, 1e5), mf.Parameter("background", 1000, 0, 1e5)]
    return mf.Sum([mf.Gaussian(M, mu, sigma), mf.Exponential(M, slope)], yields=yields)


MODEL = mass_model()
DATA = mf.generate(MODEL, seed=3)
COUNTS, EDGES = np.histogram(DATA["m"], bins=50, range=(0, 10))
START = [p.start for p in MODEL.parameters]
BACKENDS = ["cpu", "opencl", "reference"]


def expected_mass(edges, values):
    """Return the expected counts of the mass model by error functions."""

    def gauss(x):
        return norm.cdf(x, values["mu"], values["sigma"])

    def decay(x):
        return np.expm1(values["slope"] * x) / np.expm1(values["slope"] * 10)

    signal = (gauss(edges) - gauss(0)) / (gauss(10) - gauss(0))
    return np.diff(values["signal"] * signal + values["background"] * decay(edges))


def starts(term):
    return {p.name: p.start for p in term.all_parameters}


# ------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_value_is_the_ratio_of_poisson_probabilities_to_those_of_the_counts(backend):
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES), backend=backend)
    mu = expected_mass(EDGES, starts(nll))
    judge = poisson.logpmf(COUNTS, COUNTS).sum() - poisson.logpmf(COUNTS, mu).sum()
    assert nll.value(START) == pytest.approx(judge, rel=1e-11)
    np.testing.assert_allclose(nll.expected(START), mu, rtol=1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_yields_the_likelihood_is_multinomial(backend):
    model = mf.Exponential(M, mf.Parameter("slope", -0.4, -3, 0))
    counts, edges = np.histogram(DATA["m"], IRREGULAR)
    nll = mf.BinnedLikelihood(model, (counts, edges), backend=backend)
    p = np.diff(np.expm1(-0.4 * edges)) / np.expm1(-4)
    n = counts.sum()
    judge = multinomial.logpmf(counts, n, counts / n) - multinomial.logpmf(counts, n, p)
    assert nll.value([-0.4]) == pytest.approx(judge, rel=1e-10)


@pytest.mark.parametrize("statistic", ["likelihood", "neyman", "pearson", "combined"])
@pytest.mark.parametrize(("extended", "weighted"), [(True, False), (False, True)])
def test_derivatives_are_those_of_differences(statistic, extended, weighted):
    parts = [mf.Exponential(M, mf.Parameter("slope", -0.5, -3, 0)), mf.Uniform(M)]
    one, other = mf.Parameter("one", 1000, 0, 1e5), mf.Parameter("other", 300, 0, 1e5)
    model = mf.Sum(parts, yields=[one, other]) if extended else mf.Sum(parts, fractions=[one / (one + 500)])
    variances = 1.7 * COUNTS + 0.1 if weighted else None
    nll = mf.BinnedLikelihood(
        model, (1.3 * COUNTS if weighted else COUNTS, EDGES), variances=variances, statistic=statistic
    )
    x = np.array([p.start for p in nll.parameters])
    steps = np.diag(1e-5 * np.abs(x))
    slopes = [(nll.value(x + s) - nll.value(x - s)) / (2 * s.max()) for s in steps]
    np.testing.assert_allclose(nll.gradient(x), slopes, rtol=1e-5, atol=1e-5)
    bends = [(nll.gradient(x + s) - nll.gradient(x - s)) / (2 * s.max()) for s in steps]
    np.testing.assert_allclose(nll.hessian(x), bends, rtol=1e-5, atol=1e-5)


def chi_squares(n, mu, variance, scale):
    filled = n > 0
    combined = np.where(
        filled, (n - mu) ** 2 * (1 / np.where(filled, variance, 1) + 2 * scale / mu) / 3, 2 * scale * mu
    )
    return {
        "neyman": np.sum(((n - mu) ** 2 / variance)[filled]),
        "pearson": np.sum(scale * (n - mu) ** 2 / mu),
        "combined": np.sum(combined),
    }


@pytest.mark.parametrize("statistic", ["neyman", "pearson", "combined"])
def test_a_chi_square_is_twice_the_value(statistic):
    assert 0 in COUNTS
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES), statistic=statistic)
    mu = expected_mass(EDGES, starts(nll))
    with np.errstate(divide="ignore"):
        judge = chi_squares(COUNTS, mu, COUNTS, 1.0)[statistic]
    assert 2 * nll.value(START) == pytest.approx(judge, rel=1e-10)


def test_the_chi_square_of_weights_has_their_variances_and_takes_negative_counts():
    n, v = COUNTS * 0.5 + 1.0, COUNTS * 0.4 + 2.0
    mu = expected_mass(EDGES, dict(zip([p.name for p in MODEL.parameters], START, strict=True)))
    judge = chi_squares(n, mu, v, n / v)
    for statistic in ("neyman", "pearson", "combined"):
        nll = mf.BinnedLikelihood(MODEL, (n, EDGES), variances=v, statistic=statistic)
        assert 2 * nll.value(START) == pytest.approx(judge[statistic], rel=1e-10)
    n[3] = -2.0
    nll = mf.BinnedLikelihood(MODEL, (n, EDGES), variances=v, statistic="neyman")
    assert 2 * nll.value(START) == pytest.approx(np.sum((n - mu) ** 2 / v), rel=1e-10)


# ------------------------------------------------------------------------------------ bin integrals


def densities():
    p, q, k = mf.Parameter("p", 0.3, -1, 1), mf.Parameter("q", 1.2, 0.2, 3), mf.Parameter("k", 5.03, 4, 6)
    return {
        "formula": (mf.Gaussian(M, k, q),),
        "terms": (mf.Density(1 + p * np.cos(M) + 0.2 * p**2 * M, M),),
        "root at the edge": (mf.Density(np.sqrt(M) * (1 + p * M), M),),
        "rule": (mf.Density(1 / (1 + ((M - k) / q) ** 4), M),),
        "kink": (mf.Density(np.exp(-abs(M - k) / q), M), 5.03),
        "two kinks": (mf.Density(np.exp(-abs(M - k) / q) + 0.2 * np.exp(-abs(M - p - 2)), M), 2.3, 5.03),
    }


@pytest.mark.parametrize("kind", list(densities()))
def test_expected_counts_are_integrals_over_bins(kind):
    model, *kinks = densities()[kind]
    counts = np.arange(1, len(IRREGULAR))
    nll = mf.BinnedLikelihood(model, (counts, IRREGULAR))
    values = starts(nll)
    inside = [
        area(lambda x: model.pdf(x, values), low, *(k for k in kinks if low < k < high), high)
        for low, high in pairwise(IRREGULAR)
    ]
    np.testing.assert_allclose(
        nll.expected(list(values.values())), counts.sum() * np.array(inside), rtol=2e-9
    )


@pytest.mark.parametrize("kind", ["terms", "rule"])
def test_bins_of_a_plane_are_integrated_over_both_observables(kind):
    p = mf.Parameter("p", 0.4, -1, 1)
    formulas = {
        "terms": lambda x, y: 1 + 0.4 * np.sin(x) * y + 0.16 * y**2,
        "rule": lambda x, y: np.exp(-0.7 * x * (y + 2)),
    }
    model = {
        "terms": mf.Density(1 + p * np.sin(M) * Y + p**2 * Y**2, [M, Y]),
        "rule": mf.Density(np.exp(-mf.Parameter("q", 0.7, 0.1, 3) * M * (Y + 2)), [M, Y]),
    }[kind]
    edges = [np.array([1.0, 2.0, 2.5]), np.array([-1.0, 0.2, 0.9])]
    nll = mf.BinnedLikelihood(model, (np.array([[3, 4], [5, 6]]), edges))
    values = starts(nll)
    judge = np.array(
        [
            [
                nquad(
                    lambda y, x: formulas[kind](x, y),
                    [edges[1][j : j + 2], edges[0][i : i + 2]],
                    opts={"epsrel": 1e-10},
                )[0]
                for j in range(2)
            ]
            for i in range(2)
        ]
    )
    expected = nll.expected(list(values.values())).reshape(2, 2)
    np.testing.assert_allclose(expected, 18 * judge / judge.sum(), rtol=1e-7)


def test_three_dimensions_factorise_and_are_taken_term_by_term():
    p, slope = mf.Parameter("p", 0.4, -1, 1), mf.Parameter("slope", -0.3, -2, 0)
    model = mf.Product([mf.Exponential(M, slope), mf.Density(1 + p * Y * Z, [Y, Z])])
    data = mf.generate(model, 4000, seed=1)
    sample = np.column_stack([data["m"], data["y"], data["z"]])
    counts, edges = np.histogramdd(sample, bins=(6, 4, 3), range=[(0, 10), (-1, 1), (0, 2)])
    nll = mf.BinnedLikelihood(model, (counts, edges))
    box = {"m": tuple(edges[0][2:4]), "y": tuple(edges[1][1:3]), "z": tuple(edges[2][:2])}
    expected = nll.expected([-0.3, 0.4]).reshape(nll.shape)
    assert expected[2, 1, 0] == pytest.approx(
        4000 * model.integrate({**box, "y": tuple(edges[1][1:3])}), rel=1e-9
    )
    result = mf.fit(nll)
    pulls = [(result.values[n] - t) / result.errors[n] for n, t in (("p", 0.4), ("slope", -0.3))]
    assert result.valid and np.abs(pulls).max() < 4


def test_three_angles_are_taken_term_by_term_with_all_their_constants():
    angles = [mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1), mf.Observable("phi", -np.pi, np.pi)]
    names = ["S3", "S4", "S5", "AFB", "S7", "S8", "S9"]
    shares = [mf.Parameter("FL", 0.6, 0, 1), *(mf.Parameter(name, 0.05, -1, 1) for name in names)]
    model = mf.physics.KstarMuMu(*angles, *shares)
    edges = [np.linspace(o.low, o.high, 4) for o in model.observables]
    nll = mf.BinnedLikelihood(model, (np.full((3, 3, 3), 10), edges))
    box = {o.name: tuple(line[1:3]) for o, line in zip(model.observables, edges, strict=True)}
    inside = nll.expected([p.start for p in nll.parameters]).reshape(nll.shape)[1, 1, 1]
    assert not nll.model.rules and inside == pytest.approx(270 * model.integrate(box), rel=1e-10)


def test_a_kink_that_is_nowhere_cuts_no_bin():
    # below c = 0 the condition holds nowhere, and its solution is no number
    c = mf.Parameter("c", -0.5, -2, 3)
    model = mf.Density(mf.where((M - 5) ** 2 < c, np.exp(c - (M - 5) ** 2), 1), M)
    nll = mf.BinnedLikelihood(model, (np.arange(1, 11), np.linspace(0, 10, 11)))
    assert nll.model.rules
    for value in (-0.5, 1.5):
        judge = 55 * np.diff(model.cdf(np.linspace(0, 10, 11), {"c": value}))
        np.testing.assert_allclose(nll.expected([value]), judge, rtol=1e-4)


def test_a_peak_that_a_rule_would_miss_is_refused():
    narrow = mf.Density(1 / (1 + ((M - 5.1) / mf.Parameter("w", 1e-3, 1e-4, 1)) ** 4), M)
    with pytest.raises(
        mf.ModelError, match=r"could not be integrated over bins at the start values; use narrower"
    ):
        mf.BinnedLikelihood(narrow, (np.ones(5), np.linspace(0, 10, 6)))


def test_a_rule_that_is_too_coarse_where_the_fit_ends_makes_it_invalid():
    w = mf.Parameter("w", 0.8, 1e-3, 5)
    model = mf.Density(1 / (1 + ((M - 5.1) / w) ** 4), M)
    events = 5.1 + 0.01 * np.random.default_rng(1).normal(size=20000)
    result = mf.fit(mf.BinnedLikelihood(model, np.histogram(events, 10, (0, 10))), start={"w": 0.8})
    assert not result.valid


def test_a_steep_slope_is_unbiased_where_bin_centres_are_seven_errors_off():
    slope = mf.Parameter("slope", -2.5, -10, 0)
    model = mf.Exponential(M, slope)
    counts, edges = np.histogram(mf.generate(model, 10_000, truth={"slope": -3.0}, seed=1)["m"], 10, (0, 10))
    result = mf.fit(model, (counts, edges))
    assert abs(result.values["slope"] + 3) < 3 * result.errors["slope"]
    h = hist.Hist(hist.axis.Variable(edges))
    h[...] = counts
    centres = mf.fit(model, mf.Dataset.from_hist(h, M, at_centres=True))
    assert abs(centres.values["slope"] + 3) > 7 * result.errors["slope"]


def test_narrow_bins_give_the_unbinned_fit():
    binned, unbinned = mf.fit(MODEL, np.histogram(DATA["m"], 4000, (0, 10))), mf.fit(MODEL, DATA)
    for name in unbinned.names:
        assert binned.values[name] == pytest.approx(unbinned.values[name], abs=0.01 * unbinned.errors[name])
        assert binned.errors[name] == pytest.approx(unbinned.errors[name], rel=2e-3)


# ------------------------------------------------------------------------------------ iminuit


def judged(own, theirs):
    """Compare a fit with that of a cost function of iminuit."""
    result, minuit = mf.fit(own, tolerance=1e-5), Minuit(theirs, **starts(own))
    for p in own.parameters:
        minuit.limits[p.name] = (p.low, p.high)
    minuit.tol = 1e-4
    minuit.migrad()
    minuit.hesse()
    assert result.valid and minuit.valid
    for name in result.floating:
        assert result.values[name] == pytest.approx(minuit.values[name], abs=1e-2 * minuit.errors[name])
        assert result.errors[name] == pytest.approx(minuit.errors[name], rel=5e-3)
    ours = [result.values[name] for name in minuit.parameters]
    assert 2 * result.nll == pytest.approx(theirs(*ours), abs=1e-8)
    assert 2 * result.nll <= minuit.fval + 1e-6


def mass_cdf(x, mu, sigma, slope, signal, background):
    values = locals() | {}
    edges = np.concatenate([[0.0], x])
    return np.cumsum(expected_mass(edges, values))


def test_an_extended_fit_agrees_with_iminuit():
    judged(mf.BinnedLikelihood(MODEL, (COUNTS, EDGES)), cost.ExtendedBinnedNLL(COUNTS, EDGES, mass_cdf))


def test_a_multinomial_fit_agrees_with_iminuit():
    model = mf.Exponential(M, mf.Parameter("slope", -0.4, -3, 0))
    counts, edges = np.histogram(DATA["m"], IRREGULAR)
    theirs = cost.BinnedNLL(counts, edges, lambda x, slope: np.expm1(slope * x) / np.expm1(slope * 10))
    judged(mf.BinnedLikelihood(model, (counts, edges)), theirs)


def test_a_weighted_fit_agrees_with_iminuit_where_all_bins_are_filled():
    rng = np.random.default_rng(5)
    h = hist.Hist(hist.axis.Regular(30, 0, 10, name="m"), storage=hist.storage.Weight())
    h.fill(np.concatenate([DATA["m"], rng.uniform(0, 10, 300)]), weight=rng.uniform(0.2, 2, len(DATA) + 300))
    both = np.column_stack([h.values(), h.variances()])
    judged(mf.BinnedLikelihood(MODEL, h), cost.ExtendedBinnedNLL(both, np.array(h.axes[0].edges), mass_cdf))


def test_issue_a_higher_minimum_at_a_limit_is_not_taken():
    # this used to end at sigma = 2, 58 units higher: a minimum, while the lower end was not one to this tolerance
    rng = np.random.default_rng(5)
    h = hist.Hist(hist.axis.Regular(12, 0, 10, name="m"), storage=hist.storage.Weight())
    h.fill(np.concatenate([DATA["m"], rng.uniform(0, 10, 300)]), weight=rng.uniform(0.2, 2, len(DATA) + 300))
    nll = mf.BinnedLikelihood(MODEL, h)
    for tolerance in (0.1, 1e-5):
        result = mf.fit(nll, tolerance=tolerance)
        assert result.valid
        assert result.nll == pytest.approx(mf.fit(nll, minimiser="minuit").nll, abs=0.01)


def test_every_likelihood_is_a_cost_function_of_iminuit():
    binned = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    unbinned = mf.Likelihood(MODEL, DATA)
    assert binned.ndata == 50 and unbinned.ndata == np.inf and (binned + unbinned).ndata == np.inf
    assert binned(*START) == binned.value(START)
    np.testing.assert_array_equal(binned.grad(*START), binned.gradient(START))
    for term in (binned, unbinned, binned + unbinned):
        minuit, result = Minuit(term, *START), mf.fit(term)
        assert minuit.parameters == tuple(p.name for p in term.parameters)
        assert minuit.limits["mu"] == (4, 6) and minuit.errordef == 0.5
        minuit.migrad()
        assert minuit.valid and minuit.ngrad > 0
        for name in result.floating:
            assert minuit.values[name] == pytest.approx(result.values[name], abs=0.02 * result.errors[name])


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_likelihoods_add_with_cost_functions_of_iminuit(first):
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    theirs = cost.NormalConstraint("sigma", 0.45, 0.01)
    both = nll + theirs if first == "ours" else theirs + nll
    minuit = Minuit(both, **starts(nll))
    minuit.migrad()
    result = mf.fit(nll, constraints=[mf.constraint(MODEL.pdfs[0].sigma, 0.45, 0.01)])
    for name in result.floating:
        assert minuit.values[name] == pytest.approx(result.values[name], abs=0.03 * result.errors[name])
        assert minuit.errors[name] == pytest.approx(result.errors[name], rel=0.03)


# ------------------------------------------------------------------------------------ histograms


def filled(axis=None, **options):
    h = hist.Hist(axis or hist.axis.Regular(50, 0, 10, name="m"), **options)
    return h.fill(DATA["m"])


@pytest.mark.parametrize("source", ["hist", "boost", "numpy", "lists", "weights of one"])
def test_a_histogram_comes_from_many_places(source):
    import boost_histogram as bh

    histogram = {
        "hist": filled,
        "boost": lambda: bh.Histogram(filled()),
        "numpy": lambda: (COUNTS, EDGES),
        "lists": lambda: (COUNTS.tolist(), [EDGES.tolist()]),
        "weights of one": lambda: filled(storage=hist.storage.Weight()),
    }[source]()
    nll = mf.BinnedLikelihood(MODEL, histogram)
    judge = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    assert nll.value(START) == pytest.approx(judge.value(START), rel=1e-12)
    if source != "lists":
        assert mf.fit(MODEL, histogram).nll == mf.fit(nll).nll


@pytest.mark.parametrize("change", [lambda h: 2 * h, lambda h: h.fill([1.0, 1.0], weight=[1.0, -1.0])])
def test_whole_contents_of_unknown_variances_come_with_a_warning(change):
    """These used to be counts, and the errors of weights of -1 and 2 too small."""
    with pytest.warns(UserWarning, match="histogram: does not know its variances"):
        mf.BinnedLikelihood(MODEL, change(filled()))


def test_axes_are_taken_by_name_or_in_order():
    model = mf.Product([mf.Exponential(M, mf.Parameter("slope", -0.3, -2, 0)), mf.Uniform(Y)])
    data = mf.generate(model, 500, seed=2)
    m, y = hist.axis.Regular(5, 0, 10, name="m"), hist.axis.Regular(4, -1, 1, name="y")
    straight = hist.Hist(m, y).fill(data["m"], data["y"])
    turned = hist.Hist(y, m).fill(data["y"], data["m"])
    plain = np.histogram2d(data["m"], data["y"], bins=(5, 4), range=[(0, 10), (-1, 1)])
    values = [mf.BinnedLikelihood(model, h).value([-0.3]) for h in (straight, turned, plain)]
    assert values[0] == values[1] == values[2]
    other = hist.Hist(y, hist.axis.Regular(5, 0, 10, name="x"))
    with pytest.raises(
        mf.DataError, match=r"axes must be named as the observables \['m', 'y'\], or not at all"
    ):
        mf.BinnedLikelihood(model, other)


def test_flow_bins_reach_to_the_ends_of_the_range(tmp_path):
    inner = filled(hist.axis.Regular(10, 2, 7, name="m"))
    with_flow = mf.BinnedLikelihood(MODEL, inner, flow=True)
    edges = np.concatenate([[0.0], np.linspace(2, 7, 11), [10.0]])
    judge = mf.BinnedLikelihood(MODEL, np.histogram(DATA["m"], edges))
    assert with_flow.shape == (12,) and with_flow.entries == len(DATA)
    assert with_flow.value(START) == pytest.approx(judge.value(START), rel=1e-12)
    without = mf.BinnedLikelihood(MODEL, inner)
    assert without.shape == (10,) and without.entries == inner.sum()
    import uproot

    with uproot.recreate(tmp_path / "h.root") as file:
        file["h"] = inner
    with uproot.open(tmp_path / "h.root") as file:
        assert mf.BinnedLikelihood(MODEL, file["h"], flow=True).value(START) == with_flow.value(START)
    closed = filled(hist.axis.Regular(10, 2, 7, underflow=False, name="m"))
    assert mf.BinnedLikelihood(MODEL, closed, flow=True).shape == (11,)


def test_bins_in_a_part_of_the_range_measure_the_yields_of_all_of_it():
    part = (COUNTS[10:40], EDGES[10:41])
    result = mf.fit(MODEL, part)
    whole = mf.fit(MODEL, (COUNTS, EDGES))
    assert result.valid and result.values["background"] == pytest.approx(
        whole.values["background"], abs=3 * result.errors["background"]
    )
    assert result.values["background"] > 2 * COUNTS[10:40].sum() / 2
    fractions = mf.Sum(list(MODEL.pdfs), fractions=[mf.Parameter("f", 0.3, 0, 1)])
    nll = mf.BinnedLikelihood(fractions, part)
    assert nll.expected([p.start for p in nll.parameters]).sum() == pytest.approx(part[0].sum(), rel=1e-12)


REFUSED = {
    "a wider histogram": (
        (np.ones(3), [-1, 3, 5, 10]),
        r"edges of 'm' must lie in its range \[0.0, 10.0\], got \[-1",
    ),
    "falling edges": ((np.ones(2), [5, 3, 1]), r"edges of 'm' must be finite and rise"),
    "infinite edges": ((np.ones(2), [0, 5, np.inf]), r"edges of 'm' must be finite and rise"),
    "too few edges": ((np.ones(3), [0, 1, 2]), r"3 bins of 'm' need 4 edges, got shape \(3,\)"),
    "counts that are no number": (([1, np.nan], [0, 5, 10]), r"1 of 2 bins are not finite; leave them out"),
    "negative counts": (
        ([1, -1], [0, 5, 10]),
        r"contents are negative, such as -1, so variances are required; pass variances=",
    ),
    "fractional counts": (
        ([1.5, 1], [0, 5, 10]),
        r"not integer counts, so variances are required; pass variances=",
    ),
    "two axes": (
        (np.ones((2, 2)), [[0, 5, 10], [0, 5, 10]]),
        r"needs one observable per axis, here 2, got 1",
    ),
    "edges alone": (
        EDGES,
        r"must be one of hist, boost-histogram or uproot, or \(counts, edges\), got ndarray",
    ),
    "words": ((["a"], [0, 1]), r"counts must be an array of numbers, got \['a'\]"),
    "masked counts": (
        (np.ma.masked_array([1, 2], [0, 1]), [0, 5, 10]),
        r"counts must be an array of numbers, got masked",
    ),
    "no edges": ((np.ones(2), []), r"2 bins of 'm' need 3 edges|must be an array of numbers"),
    "means": (hist.Hist(hist.axis.Regular(3, 0, 10), storage=hist.storage.Mean()), r"its bins contain means"),
    "categories": (hist.Hist(hist.axis.StrCategory(["a"])), r"the axis of 'm' must have bins of numbers"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_no_histogram_of_the_observable_is_refused(case):
    histogram, says = REFUSED[case]
    with pytest.raises(mf.DataError, match=says):
        mf.BinnedLikelihood(MODEL, histogram)


def test_options_that_make_no_sense_are_refused():
    counts = (COUNTS, EDGES)
    with pytest.raises(mf.OptionError, match=r"statistic must be one of 'likelihood', .*, got 'chi2'"):
        mf.BinnedLikelihood(MODEL, counts, statistic="chi2")
    with pytest.raises(mf.DataError, match=r"counts and edges have no flow bins"):
        mf.BinnedLikelihood(MODEL, counts, flow=True)
    with pytest.raises(
        mf.DataError, match=r"variances must have the shape \(50,\) of the counts, got \(3,\)"
    ):
        mf.BinnedLikelihood(MODEL, counts, variances=np.ones(3))
    with pytest.raises(mf.DataError, match=r"has variances of its own"):
        mf.BinnedLikelihood(MODEL, filled(), variances=np.ones(50))
    with pytest.raises(mf.DataError, match=r"counts must not be negative, .*got -1; use statistic='neyman'"):
        mf.BinnedLikelihood(MODEL, ([1, -1], [0, 5, 10]), variances=[1, 1])
    with pytest.raises(
        mf.DataError, match=r"dataset: a histogram has its variances and its bins; give no weights"
    ):
        mf.fit(MODEL, counts, weights=np.ones(50))
    with pytest.raises(
        mf.DataError, match=r"entries lie outside the range \[0.0, 10.0\] of 'm', in flow bins"
    ):
        mf.BinnedLikelihood(MODEL, hist.Hist(hist.axis.Regular(5, 0, 10)).fill([-1, 2]), flow=True)
    four = mf.Product([mf.Uniform(mf.Observable(n, 0, 1)) for n in "abcd"])
    with pytest.raises(mf.DataError, match=r"takes up to 3 observables, got 4"):
        mf.BinnedLikelihood(four, (np.ones((1,) * 4), [[0, 1]] * 4))


def test_a_bin_with_counts_where_nothing_is_expected_is_named():
    end = mf.Parameter("end", 6, 5, 9)
    model = mf.Density(mf.where(M < end, (end - M) ** 2, 0), M)
    nll = mf.BinnedLikelihood(model, (np.array([5, 3, 1, 0]), [0, 2, 5, 8, 10]))
    assert np.isfinite(nll.value([6.0])) and np.isfinite(nll.hessian([6.0])).all()
    bad = mf.BinnedLikelihood(model, (np.array([5, 3, 1, 2]), [0, 2, 5, 8, 10]))
    assert bad.value([6.0]) == np.inf
    says = r"1 of 4 bins have no probability: the bin m in \[8, 10\] has 2 counts where 0 are expected"
    with pytest.raises(mf.FitError, match=says):
        mf.fit(bad)


def test_a_negative_expectation_has_no_probability_even_without_counts():
    model = mf.Density(1 - mf.Parameter("a", 0.15, 0, 1) * M, M)
    for statistic in ("likelihood", "neyman", "pearson", "combined"):
        nll = mf.BinnedLikelihood(model, (np.array([5, 3, 0]), [0, 2, 4, 10]), statistic=statistic)
        assert nll.value([0.3]) == np.inf


def test_an_empty_histogram_measures_yields_only():
    empty = (np.zeros(10), np.linspace(0, 10, 11))
    one, other = mf.Parameter("one", 5, 0, 100), mf.Parameter("other", 5, 0, 100)
    result = mf.fit(mf.Sum([mf.Uniform(M), mf.Exponential(M, -1.0)], yields=[one, other]), empty)
    assert result.valid and result.values["one"] == result.values["other"] == 0
    with pytest.raises(mf.DataError, match=r"has no events; there is nothing to fit"):
        mf.fit(mf.Exponential(M, mf.Parameter("slope", -0.3, -2, 0)), empty)


# ------------------------------------------------------------------------------------ everything that takes a likelihood


def test_bins_join_events_and_constraints():
    binned, unbinned = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES)), mf.Likelihood(MODEL, DATA)
    joint = binned + unbinned + mf.constraint(MODEL.pdfs[0].mu, 5.0, 0.1)
    penalty = 0.5 * ((START[0] - 5.0) / 0.1) ** 2
    assert joint.value(START) == pytest.approx(
        binned.value(START) + unbinned.value(START) + penalty, rel=1e-12
    )
    result = mf.fit(joint)
    assert result.valid and result.ndf == 0 and np.isnan(result.chi2)
    assert result.errors["mu"] < mf.fit(binned).errors["mu"]


def test_the_result_has_a_chi_square():
    result = mf.fit(MODEL, (COUNTS, EDGES))
    assert result.ndf == 45 and result.chi2 == 2 * result.nll and 1e-3 < result.p_value < 1
    assert result.events == len(DATA) and "chi2/ndf" in str(result)
    shape = mf.fit(mf.Exponential(M, mf.Parameter("slope", -0.4, -3, 0)), (COUNTS, EDGES))
    assert shape.ndf == 48
    narrow = mf.constraint(MODEL.pdfs[0].mu, 5.0, 0.1)
    assert mf.fit(mf.BinnedLikelihood(MODEL, (COUNTS, EDGES), constraints=narrow)).ndf == 46
    assert mf.FitResult.from_json(result.to_json()).ndf == 45
    assert np.isnan(mf.fit(MODEL, DATA).p_value)
    neyman = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES), statistic="neyman")
    assert mf.fit(neyman).ndf == np.sum(COUNTS > 0) - 5 < 45


def test_a_bootstrap_draws_weighted_bins_around_their_contents_with_their_variances():
    weighted = mf.BinnedLikelihood(MODEL, (0.5 * COUNTS, EDGES), variances=0.25 * COUNTS)
    rng = np.random.default_rng(7)
    drawn = np.array([weighted.resampled(rng)[COUNT.name] for _ in range(1000)]).sum(axis=1)
    assert drawn.mean() == pytest.approx(0.5 * COUNTS.sum(), rel=0.01)
    assert drawn.var() == pytest.approx(0.25 * COUNTS.sum(), rel=0.2)


def test_fit_many_takes_histograms():
    rng = np.random.default_rng(3)
    many = [(rng.poisson(COUNTS), EDGES) for _ in range(5)]
    weighted = mf.BinnedLikelihood(
        MODEL, (0.5 * COUNTS, EDGES), variances=0.25 * COUNTS
    )  # its weights used to stay
    for model in (MODEL, mf.BinnedLikelihood(MODEL, many[0]), weighted):
        results = mf.fit_many(model, many)
        for k, one in enumerate(many):
            single = mf.fit(MODEL, one)
            np.testing.assert_allclose(
                results.values[k], [single.values[n] for n in results.names], rtol=1e-4
            )
            np.testing.assert_allclose(
                results.errors[k], [single.errors[n] for n in results.names], rtol=1e-3
            )
    with pytest.raises(
        mf.DataError, match=r"histograms must have the bins of the likelihood, got other edges"
    ):
        mf.fit_many(MODEL, [many[0], (COUNTS[:-1], EDGES[:-1])])
    with pytest.raises(mf.DataError, match=r"must be weighted as that of the likelihood is, got variances"):
        mf.fit_many(MODEL, [filled(), hist.Hist(filled(storage=hist.storage.Weight())) * 2.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_toys_are_counts_that_fit_the_truth_and_are_fitted_as_one_by_one(backend):
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    study = mf.toy_study(nll, toys=12, seed=7, backend=backend, progress=False)
    assert study.valid.all()
    toy = mf.generate(nll, seed=1)
    assert (
        toy.shape == nll.shape and toy.entries != nll.entries and np.all(toy.counts == np.round(toy.counts))
    )
    assert mf.generate(nll, seed=1).value(START) == toy.value(START) != mf.generate(nll, seed=2).value(START)
    again = mf.toy_study(nll, toys=12, seed=7, block=5, backend=backend, progress=False)
    np.testing.assert_array_equal(study.values, again.values)


def test_toys_without_yields_have_as_many_counts_as_the_data():
    nll = mf.BinnedLikelihood(mf.Exponential(M, mf.Parameter("slope", -0.4, -3, 0)), (COUNTS, EDGES))
    assert mf.generate(nll, seed=1).entries == len(DATA)
    totals = mf.toy_study(
        nll, toys=5, seed=1, statistic=lambda d, v: float(d["count of the bin"].sum()), progress=False
    )
    assert np.all(totals.statistics["statistic"] == len(DATA))
    with pytest.raises(
        mf.ModelError, match=r"a table has 50 rows in every toy, got \[7.*\]; leave events out"
    ):
        mf.toy_study(nll, toys=3, events=7, seed=1, progress=False)


def test_toys_of_bins_events_and_constraints_are_fitted_together():
    joint = (
        mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
        + mf.Likelihood(MODEL, DATA)
        + mf.constraint(MODEL.pdfs[0].mu, 5.0, 0.1)
    )
    study = mf.toy_study(joint, toys=10, seed=7, progress=False)
    assert study.valid.all() and set(study.how.tolist()) == {0}


def test_any_generator_of_numbers_decides_the_counts():
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    drawn = [mf.generate(nll, generator=np.random.PCG64(s)).value(START) for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_names_of_a_user_do_not_clash_with_those_of_the_table():
    model = mf.Exponential(M, mf.Parameter("count", -0.4, -3, 0))
    nll = mf.BinnedLikelihood(model, (COUNTS, EDGES))
    assert mf.fit(nll).valid and mf.toy_study(nll, toys=3, seed=1, progress=False).valid.all()


def test_rows_have_no_density():
    with pytest.raises(mf.ModelError, match=r"rows of a table have no density; use expected"):
        mf.BinnedLikelihood(MODEL, (COUNTS, EDGES)).per_event(START)


def test_fit_many_takes_weighted_histograms_and_lists_for_sums():
    rng = np.random.default_rng(3)
    many = []
    for _ in range(3):
        h = hist.Hist(hist.axis.Regular(30, 0, 10), storage=hist.storage.Weight())
        many.append(h.fill(DATA["m"], weight=rng.uniform(0.5, 1.5, len(DATA))))
    results = mf.fit_many(MODEL, many)
    judge = mf.fit(MODEL, many[1])
    np.testing.assert_allclose(results.values[1], [judge.values[n] for n in results.names], rtol=1e-3)
    np.testing.assert_allclose(results.errors[1], [judge.errors[n] for n in results.names], rtol=1e-2)
    joint = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES)) + mf.Likelihood(MODEL, DATA)
    both = mf.fit_many(joint, [[(COUNTS, EDGES), DATA]])
    assert both.nll[0] == pytest.approx(mf.fit(joint).nll, abs=1e-3)


def test_a_saved_study_knows_its_bins(tmp_path):
    file = tmp_path / "toys.npz"
    mf.toy_study(mf.BinnedLikelihood(MODEL, (COUNTS, EDGES)), toys=3, seed=1, save=file, progress=False)
    other = mf.BinnedLikelihood(MODEL, np.histogram(DATA["m"], 49, (0, 10)))
    with pytest.raises(mf.MorefitError, match="rows"):
        mf.toy_study(other, toys=4, seed=1, save=file, progress=False)


def test_a_likelihood_of_other_bins_does_not_fit_the_toys():
    one = mf.BinnedLikelihood(mf.Density(1 + mf.Parameter("p", 0.3, -1, 1) * np.cos(M), M), (COUNTS, EDGES))
    other = mf.BinnedLikelihood(mf.Density(1 + mf.Parameter("p", 0.3, -1, 1) * np.sin(M), M), (COUNTS, EDGES))
    with pytest.raises(
        mf.FitError, match=r"the fitted model needs \['integral of .*, which the generating model"
    ):
        mf.toy_study(one, toys=3, fit_model=other, seed=1, progress=False)


def test_intervals_take_bins():
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    best = mf.fit(nll)
    scan = mf.intervals.profile(nll, "mu", best=best)
    assert len(scan.values) > 3
    test = mf.intervals.feldman_cousins(nll, "signal", [250.0, 320.0], toys=40, seed=1, progress=False)
    assert test.t.shape == (2, 40) and not np.isnan(test.t).any()
    boot = mf.intervals.bootstrap(nll, replicas=200, seed=1, progress=False)
    for name in best.floating:
        assert np.std(boot.values[:, boot.names.index(name)]) == pytest.approx(best.errors[name], rel=0.25)
    assert mf.fit(nll, errors="bootstrap").errors["mu"] == pytest.approx(best.errors["mu"], rel=0.2)


def test_the_expected_information_is_that_of_expected_counts():
    nll = mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))
    information = mf.fisher_information(nll)
    steps = np.diag(1e-4 * np.abs(START))
    slopes = np.array([(nll.expected(START + s) - nll.expected(START - s)) / (2 * s.max()) for s in steps])
    np.testing.assert_allclose(
        information.matrix, slopes / nll.expected(START) @ slopes.T, rtol=1e-5, atol=1e-7
    )
    assert information.events == pytest.approx(1300)


def test_a_plot_has_the_bins_of_the_histogram():
    pytest.importorskip("matplotlib")
    nll = mf.BinnedLikelihood(MODEL, np.histogram(DATA["m"], IRREGULAR))
    result = mf.fit(nll)
    drawn = mf.plot(nll, values=result).numbers
    np.testing.assert_array_equal(drawn.edges, IRREGULAR)
    np.testing.assert_array_equal(drawn.counts, nll.counts)
    np.testing.assert_allclose(drawn.expected, nll.expected([result.values[p.name] for p in nll.parameters]))
    assert set(drawn.components) == {"Gaussian", "Exponential"}
    np.testing.assert_array_equal(
        mf.plot(MODEL, np.histogram(DATA["m"], IRREGULAR)).numbers.counts, nll.counts
    )
    with pytest.raises(mf.OptionError, match=r"a binned likelihood has its bins already"):
        mf.plot(nll, bins=10)


def test_a_plot_of_a_plane_adds_up_the_other_bins():
    pytest.importorskip("matplotlib")
    model = mf.Product([mf.Exponential(M, mf.Parameter("slope", -0.3, -2, 0)), mf.Exponential(Y, 0.5)])
    data = mf.generate(model, 500, seed=2)
    nll = mf.BinnedLikelihood(model, np.histogram2d(data["m"], data["y"], (5, 4), [(1, 9), (-1, 0.5)]))
    drawn = mf.plot(nll, "m").numbers
    np.testing.assert_array_equal(drawn.counts, nll.counts.sum(axis=1))
    np.testing.assert_allclose(drawn.expected, nll.expected([-0.3]).reshape(nll.shape).sum(axis=1), rtol=1e-6)


def test_a_binned_likelihood_is_pickled_printed_and_explained():
    for model in (MODEL, *(d[0] for d in densities().values())):
        nll = mf.BinnedLikelihood(model, (COUNTS, EDGES))
        x = [p.start for p in nll.parameters]
        assert pickle.loads(pickle.dumps(nll)).value(x) == nll.value(x)
        assert repr(nll).startswith("BinnedLikelihood(50 bins, 1")
    assert "kernel" in str(mf.explain(mf.BinnedLikelihood(MODEL, (COUNTS, EDGES))))


def test_histograms_go_out_as_they_came_in():
    x, y = mf.Observable("x", 0.0, 4.0), mf.Observable("y", 0.0, 1.0)
    flat = mf.Product([mf.Uniform(x), mf.Uniform(y)])
    model = mf.Sum([flat], yields=[mf.Parameter("n", 10.0, 0.0, 100.0)])
    edges = {"x": np.array([0.0, 1.0, 4.0]), "y": np.array([0.0, 0.2, 0.5, 1.0])}
    data = mf.Dataset({"x": [0.5, 2.0, 3.9, 4.0], "y": [0.1, 0.3, 0.9, 0.95]})
    for dataset in (data, data.with_weights([1.0, 2.0, 0.5, 1.5])):
        histogram = dataset.to_hist([x, y], edges)
        out = mf.BinnedLikelihood(model, histogram).to_hist()
        assert [axis.name for axis in out.axes] == ["x", "y"]
        np.testing.assert_array_equal(out.values(), histogram.values())
        np.testing.assert_array_equal(out.variances(), histogram.variances())
        again = mf.BinnedLikelihood(model, out)
        assert again.value([10.0]) == mf.BinnedLikelihood(model, histogram).value([10.0])
    expected = mf.intervals.asimov(
        mf.BinnedLikelihood(model, data.to_hist([x, y], edges)), {"n": 12.0}
    ).to_hist()
    assert expected.sum() == pytest.approx(12.0)


def test_bins_of_a_formula_in_several_ranges_are_integrated():
    # four edges of ranges in few bins used to be refused
    x = mf.Observable("x", 0.0, 10.0)
    wave = mf.Density(1 + 0.5 * np.sin(mf.Parameter("w", 1.9, 0.0, 3.0) * x), x)
    model = mf.Restricted(wave, {"x": [(0.5, 5.5), (6.8, 9.5)]})
    edges = np.array([0.0, 4.0, 7.0, 10.0])
    nll = mf.BinnedLikelihood(model, ([10, 10, 10], edges))
    expected = [30 * model.integrate({"x": (low, high)}) for low, high in pairwise(edges)]
    np.testing.assert_allclose(nll.expected({"w": 1.9}), expected, rtol=1e-9)


def test_a_likelihood_without_parameters_has_a_value():
    x = mf.Observable("x", 0.0, 10.0)
    nll = mf.BinnedLikelihood(mf.Uniform(x), ([5, 5], [0.0, 5.0, 10.0]))
    assert nll.value({}) == pytest.approx(0.0)  # this used to be NumPy's ValueError
