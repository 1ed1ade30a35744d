"""Fits in ranges: against likelihoods written by hand with scipy, on every backend, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from morefit.expr import evaluate
from morefit.jobs.digest import fingerprint
from tolerances import (
    DIFFERENCES,
    EXACT_FIT_ERRORS,
    FEW_ROUNDINGS,
    INTEGRAL_PROMISE,
    NUMERICAL,
    NUMPY_SUM,
    SAME_MINIMUM,
)

M = mf.Observable("m", 5.0, 7.0)
T = mf.Observable("t", 0.0, 5.0)
MU, SIGMA = mf.Parameter("mu", 5.35, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
ALPHA, FRACTION = mf.Parameter("alpha", -1.0, -10.0, 10.0), mf.Parameter("fraction", 0.3, 0.0, 1.0)
SIGNAL, BACKGROUND = mf.Parameter("signal", 1500, 0, 1e6), mf.Parameter("background", 3500, 0, 1e6)
TAU, SLOPE = mf.Parameter("tau", 1.2, 0.2, 5.0), mf.Parameter("slope", -0.2, -3.0, 3.0)
PEAK, TAIL = mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)
RANGES, TIMES = ((5.0, 5.4), (5.6, 6.5)), ((0.5, 1.0), (2.0, 4.5))
VALUES = {"mu": 5.34, "sigma": 0.055, "alpha": -1.1, "fraction": 0.35, "signal": 1400.0, "background": 3600.0,
          "tau": 1.1, "slope": -0.3}  # fmt: skip


def peak_on_slope(extended):
    weights = {"yields": [SIGNAL, BACKGROUND]} if extended else {"fractions": [FRACTION]}
    return mf.Sum([PEAK, TAIL], labels=["peak", "tail"], **weights)


def with_times(extended):
    pdfs = [mf.Product([PEAK, mf.Exponential(T, -1 / TAU)]), mf.Product([TAIL, mf.Exponential(T, SLOPE)])]
    weights = {"yields": [SIGNAL, BACKGROUND]} if extended else {"fractions": [FRACTION]}
    return mf.Sum(pdfs, **weights)


def gauss(low, high):
    return stats.norm.cdf(high, 5.34, 0.055) - stats.norm.cdf(low, 5.34, 0.055)


def falling(slope, low, high):
    return (np.exp(slope * high) - np.exp(slope * low)) / slope


BACKENDS = ["cpu", "opencl", "reference"]


def values_of(model):
    return {p.name: VALUES[p.name] for p in model.parameters}


def nodes(ranges):
    """Return points and weights of a quadrature over ranges."""
    x, w = np.polynomial.legendre.leggauss(30)
    points = [(low + high) / 2 + (high - low) / 2 * x for low, high in ranges]
    return np.concatenate(points), np.concatenate([(high - low) / 2 * w for low, high in ranges])


def by_hand(data, extended, yields_in, times):
    """Return minus the logarithm of the likelihood in ranges of m, and of t, as one would write it with scipy."""
    m = data["m"]
    densities = [
        stats.norm.pdf(m, 5.34, 0.055) / gauss(5, 7),
        np.exp(-1.1 * m) / falling(-1.1, 5, 7),
    ]
    inside = [
        sum(gauss(*r) for r in RANGES) / gauss(5, 7),
        sum(falling(-1.1, *r) for r in RANGES) / falling(-1.1, 5, 7),
    ]
    if times:
        for k, slope in enumerate((-1 / 1.1, -0.3)):
            densities[k] = densities[k] * np.exp(slope * data["t"]) / falling(slope, 0, 5)
            inside[k] *= sum(falling(slope, *r) for r in TIMES) / falling(slope, 0, 5)
    weights = np.array([1400.0, 3600.0] if extended else [0.35, 0.65])
    if yields_in == "range":
        weights = weights / inside
    expected = weights @ np.array(inside)
    logs = np.log(weights @ np.array(densities))
    return expected - logs.sum() if extended else -(logs - np.log(expected)).sum()


@pytest.fixture(scope="module")
def events():
    return mf.generate(with_times(extended=False), 5000, seed=1)


@pytest.mark.parametrize("times", [False, True], ids=["m", "m and t"])
@pytest.mark.parametrize("yields_in", ["full", "range"])
@pytest.mark.parametrize("extended", [False, True], ids=["fractions", "yields"])
def test_likelihood_in_ranges_is_that_of_scipy(events, extended, yields_in, times):
    model = (with_times if times else peak_on_slope)(extended)
    ranges = {"m": RANGES, T: TIMES} if times else {M: list(RANGES)}
    nll = mf.Likelihood(model, events, ranges=ranges, yields_in=yields_in)
    inside = np.any([(events["m"] >= low) & (events["m"] <= high) for low, high in RANGES], axis=0)
    if times:
        inside &= np.any([(events["t"] >= low) & (events["t"] <= high) for low, high in TIMES], axis=0)
    assert nll.events == inside.sum() == nll.data.report.kept
    values = {p.name: VALUES[p.name] for p in nll.parameters}
    expected = by_hand(events[inside], extended, yields_in, times)
    np.testing.assert_allclose(nll.value(values), expected, rtol=NUMPY_SUM)
    x = np.array(list(values.values()))
    steps = 1e-5 * np.diag(x)
    slopes = [(nll.value(x + step) - nll.value(x - step)) / (2 * step.sum()) for step in steps]
    scale = np.abs(slopes).max()
    np.testing.assert_allclose(nll.gradient(x), slopes, atol=DIFFERENCES * scale)


# where yields count is a matter of formulas, the same on all backends
@pytest.mark.parametrize("yields_in", ["full", pytest.param("range", marks=pytest.mark.exhaustive)])
def test_fits_in_ranges_agree_on_all_backends(events, yields_in):
    model = peak_on_slope(extended=True)
    fits = [mf.fit(model, events, ranges={"m": RANGES}, yields_in=yields_in, backend=b) for b in BACKENDS]
    assert all(fit.valid for fit in fits)
    for name, error in fits[0].errors.items():
        assert all(abs(fit.values[name] - fits[0].values[name]) < SAME_MINIMUM * error for fit in fits)
        assert all(np.isclose(fit.errors[name], error, rtol=EXACT_FIT_ERRORS) for fit in fits)


def test_meanings_of_yields_differ_by_the_probabilities_of_the_ranges(events):
    model = peak_on_slope(extended=True)
    full, inside = (mf.fit(model, events, ranges={"m": RANGES}, yields_in=how) for how in ("full", "range"))
    assert full.nll == pytest.approx(inside.nll, abs=1e-3)
    for pdf, count in ((PEAK, "signal"), (TAIL, "background")):
        expected = full.values[count] * pdf.integrate({"m": RANGES}, full)
        assert abs(inside.values[count] - expected) < SAME_MINIMUM * inside.errors[count]
    assert inside.values["signal"] + inside.values["background"] == pytest.approx(inside.events, rel=1e-4)


def test_kernels_of_a_fit_in_ranges_have_no_condition_on_the_event(events):
    nll = mf.Likelihood(peak_on_slope(extended=True), events, ranges={"m": RANGES})
    assert nll.model.summed is peak_on_slope(extended=True).log_intensity()


# ------------------------------------------------------------------------- numerical integrals


def written():
    """Return densities that are integrated numerically, in one observable and in two."""
    bent = mf.Density(np.exp(-0.5 * ((M - MU) / 0.4) ** 2) * (1 + 0.3 * np.tanh(ALPHA * (M - 6))), M)
    joined = mf.Density(np.exp(-0.5 * ((M - MU) / 0.5) ** 2 - T / TAU * (1 + 0.2 * ALPHA * (M - 6))), [M, T])
    return bent, joined


def test_numerical_integrals_of_ranges_are_those_of_scipy():
    bent, joined = written()
    values = {p: v for p, v in VALUES.items() if p in ("mu", "alpha", "tau")}
    one, two = mf.Restricted(bent, {"m": RANGES}), mf.Restricted(joined, {"m": RANGES, "t": TIMES})
    own = {n: v for n, v in values.items() if n != "tau"}

    def at(m, t=1.0):
        shape = np.exp(-0.5 * ((m - 5.34) / 0.4) ** 2) * (1 + 0.3 * np.tanh(-1.1 * (m - 6)))
        return shape, np.exp(-0.5 * ((m - 5.34) / 0.5) ** 2 - t / 1.1 * (1 - 0.22 * (m - 6)))

    area = sum(integrate.quad(lambda m: at(m)[0], *r, epsabs=0)[0] for r in RANGES)
    np.testing.assert_allclose(
        one.pdf([5.2, 5.5, 6.0], own), np.array([at(5.2)[0], 0, at(6.0)[0]]) / area, rtol=NUMERICAL
    )
    area = sum(
        integrate.dblquad(lambda t, m: at(m, t)[1], *r, *s, epsabs=0)[0] for r in RANGES for s in TIMES
    )
    points = {"m": np.array([5.2, 6.0, 5.2]), "t": np.array([0.7, 3.0, 1.5])}
    np.testing.assert_allclose(
        two.pdf(points, values), np.array([at(5.2, 0.7)[1], at(6.0, 3.0)[1], 0]) / area, rtol=NUMERICAL
    )  # fmt: skip


def test_numerical_models_are_fitted_in_ranges_and_by_whole_fits():
    _, joined = written()
    model = mf.Sum(
        [joined, mf.Product([mf.Uniform(M), mf.Exponential(T, SLOPE)])], yields=[SIGNAL, BACKGROUND]
    )
    nll = mf.Likelihood(model, mf.generate(model, seed=3), ranges={"m": RANGES, "t": TIMES})
    result = mf.fit(nll)
    assert result.valid
    assert result.integral_errors["errors"] < EXACT_FIT_ERRORS
    toys = mf.toy_study(nll, toys=20, truth=result, seed=4, progress=False)
    assert toys.valid.all()
    assert toys.fraction_by("newton") == 1


# ------------------------------------------------------------------------- the restricted model


@pytest.mark.parametrize("yields_in", ["full", "range"])
def test_restricted_model_is_normalised_and_zero_outside(yields_in):
    model = mf.Restricted(with_times(extended=False), {"m": RANGES, "t": TIMES}, yields_in=yields_in)
    (m, v), (t, w) = nodes([(5.0, 5.2), (5.2, 5.4)]), nodes(TIMES)
    grid = {"m": np.repeat(m, len(t)), "t": np.tile(t, len(m))}
    total = model.pdf(grid) @ np.outer(v, w).ravel()
    assert total == pytest.approx(model.integrate({"m": (5.0, 5.4)}), rel=INTEGRAL_PROMISE)
    assert model.integrate({"m": RANGES, "t": TIMES}) == pytest.approx(1, rel=INTEGRAL_PROMISE)
    assert model.integrate({"m": (5.4, 5.6)}) == 0
    assert model.pdf({"m": [5.5, 5.2], "t": [0.7, 1.5]}).tolist() == [0, 0]


def test_distribution_of_a_restricted_model_is_flat_in_gaps():
    whole, model = peak_on_slope(False), mf.Restricted(peak_on_slope(False), {"m": RANGES})
    area = whole.integrate({"m": RANGES})
    first = whole.integrate({"m": (5.0, 5.4)}) / area
    assert np.allclose(
        model.cdf([5.0, 5.4, 5.5, 5.6, 6.5, 7.0]), [0, first, first, first, 1, 1], rtol=INTEGRAL_PROMISE
    )


@pytest.mark.parametrize("extended", [False, True])
def test_draws_lie_in_the_ranges_and_follow_the_density(extended):
    whole = with_times(extended)
    model = mf.Restricted(whole, {"m": RANGES, "t": TIMES})
    data = mf.generate(model, 20_000, seed=5)
    for name, ranges in (("m", RANGES), ("t", TIMES)):
        assert np.any([(data[name] >= low) & (data[name] <= high) for low, high in ranges], axis=0).all()
        marginal = model.marginal(name)
        assert stats.kstest(data[name], lambda x, p=marginal: p.cdf(x)).pvalue > 1e-4
    assert len(mf.generate(whole, 50, ranges={"m": (5.2, 5.3)}, seed=1)) == 50


def test_number_of_drawn_events_is_that_expected_in_the_ranges():
    whole = peak_on_slope(extended=True)
    expected = whole.expected_in({"m": RANGES})
    model = mf.Restricted(whole, {"m": RANGES})
    start = {p.name: p.start for p in whole.parameters}
    count = float(evaluate(expected, start))
    assert count == pytest.approx(float(evaluate(model.expected_events(), start)), rel=FEW_ROUNDINGS)
    assert count == pytest.approx(5000 * whole.integrate({"m": RANGES}), rel=INTEGRAL_PROMISE)
    assert abs(len(mf.generate(model, seed=1)) - count) < 5 * count**0.5


def test_restricting_twice_is_restricting_to_what_both_have(events):
    model = peak_on_slope(False)
    twice = mf.Restricted(mf.Restricted(model, {"m": (5.0, 6.0)}), {"m": [(5.2, 5.4), (5.5, 6.5)]})
    once = mf.Restricted(model, {"m": [(5.2, 5.4), (5.5, 6.0)]})
    assert twice.region() == once.region()
    one, other = mf.Likelihood(twice, events), mf.Likelihood(once, events)
    assert one.events == other.events
    assert one.value(values_of(model)) == pytest.approx(other.value(values_of(model)), rel=NUMPY_SUM)


def test_fisher_information_in_ranges_is_that_of_the_hessian(events):
    model = peak_on_slope(extended=True)
    nll = mf.Likelihood(model, events, ranges={"m": RANGES})
    result = mf.fit(nll)
    information = mf.fisher_information(nll, truth=result)
    for name, error in result.errors.items():
        assert information.errors[name] == pytest.approx(error, rel=0.1)
    assert information.accuracy < 1e-6


def test_ranges_are_seen_in_print_fingerprints_pickles_and_results(events):
    model = peak_on_slope(False)
    one, other = (mf.Restricted(model, {"m": (5.0, high)}) for high in (6.0, np.nextafter(6.0, 7.0)))
    assert fingerprint(one)["digest"] != fingerprint(other)["digest"]
    counted = mf.Restricted(model, {"m": (5.0, 6.0)}, yields_in="range")
    assert fingerprint(one)["digest"] != fingerprint(counted)["digest"]
    two = mf.Restricted(model, {"m": RANGES})
    assert "m in [5, 5.4] or [5.6, 6.5]: Sum in m" in str(two)
    assert r"m \in [5, 5.4] \cup [5.6, 6.5]" in two._repr_latex_()
    assert "ranges={'m': ((5.0, 5.4), (5.6, 6.5))}" in repr(two)
    nll = mf.Likelihood(model, events, ranges={"m": RANGES}, yields_in="range")
    copy = pickle.loads(pickle.dumps(nll))
    assert copy.value(values_of(model)) == nll.value(values_of(model))
    result = mf.FitResult.from_json(mf.fit(nll).to_json())
    assert [dict(part) for part in result.ranges] == [{"m": RANGES}]
    assert result.yields_in == ("range",)
    assert "fitted m in [5, 5.4] or [5.6, 6.5]; yields and fractions are those of the fitted ranges" in str(
        result
    )
    assert "fitted m" not in str(mf.fit(model, events))
    assert mf.fit(model, events, ranges={"m": (5.0, 7.0)}).values == mf.fit(model, events).values


def test_report_says_how_many_events_were_left_out(events):
    nll = mf.Likelihood(peak_on_slope(False), events, ranges={"m": (5.0, 6.0)})
    left_out = int((events["m"] > 6.0).sum())
    assert (
        str(nll.data.report) == f"kept {5000 - left_out} of 5000 events: {left_out} outside the range of 'm'"
    )


def test_weights_are_cut_with_their_events(events):
    weights = np.linspace(0.5, 1.5, len(events))
    inside = (events["m"] >= 5.0) & (events["m"] <= 6.0)
    one = mf.fit(peak_on_slope(False), events, weights=weights, ranges={"m": (5.0, 6.0)})
    other = mf.fit(
        mf.Restricted(peak_on_slope(False), {"m": (5.0, 6.0)}), events[inside], weights=weights[inside]
    )
    assert one.values == other.values
    assert one.errors_from == "sandwich"


# ------------------------------------------------------------------------- toys, many datasets, joint fits


def test_parts_of_a_joint_fit_have_ranges_of_their_own(events):
    model = peak_on_slope(False)
    left, right = (
        mf.Likelihood(model, events, ranges={"m": r}) for r in ((5.0, 5.6), [(5.6, 6.0), (6.5, 7.0)])
    )
    result = mf.fit(left + right)
    assert result.valid
    assert [dict(part) for part in result.ranges] == [{"m": ((5.0, 5.6),)}, {"m": ((5.6, 6.0), (6.5, 7.0))}]
    values = values_of(model)
    assert (left + right).value(values) == pytest.approx(left.value(values) + right.value(values))
    toys = mf.toy_study(left + right, toys=10, truth=result, seed=1, progress=False)
    assert toys.valid.all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_datasets_are_fitted_in_ranges(events, backend):
    model, some = peak_on_slope(False), [events[:2500], events[2500:]]
    fits = mf.fit_many(model, some, ranges={"m": RANGES}, yields_in="range", backend=backend)
    for row, data in zip(fits.values, some, strict=True):
        alone = mf.fit(model, data, ranges={"m": RANGES}, yields_in="range")
        offsets = [row[k] - alone.values[n] for k, n in enumerate(fits.names)]
        assert np.all(np.abs(offsets) < SAME_MINIMUM * np.array([alone.errors[n] for n in fits.names]))
        assert fits.events.sum() == mf.Likelihood(model, events, ranges={"m": RANGES}).events


def test_toys_in_ranges_are_drawn_in_them_and_fitted_by_whole_fits():
    seen = []

    def collect(data, values):
        seen.append(data["m"])
        return len(data)

    model = peak_on_slope(extended=True)
    toys = mf.toy_study(model, toys=20, ranges={"m": RANGES}, seed=3, statistic=collect, progress=False)
    assert toys.valid.all()
    assert toys.fraction_by("newton") == 1
    drawn = np.concatenate(seen)
    assert np.any([(drawn >= low) & (drawn <= high) for low, high in RANGES], axis=0).all()
    plain = mf.toy_study(model, toys=20, ranges={"m": RANGES}, seed=3, progress=False)
    assert np.array_equal(plain.values, toys.values)


# ------------------------------------------------------------------------- extrapolation and marginals


def test_expected_events_in_another_range_have_a_propagated_error(events):
    model = peak_on_slope(extended=True)
    result = mf.fit(model, events, ranges={"m": RANGES})
    window = {"m": (5.4, 5.6)}
    derived = result.derived(model.expected_in(window), BACKGROUND * TAIL.probability_in(window))
    counts = []
    for shift in np.diag(1e-5 * np.array([result.values[n] for n in result.floating])):
        ends = [
            {n: result.values[n] + sign * d for n, d in zip(result.floating, shift, strict=True)}
            for sign in (1, -1)
        ]
        high, low = ((v["signal"] + v["background"]) * model.integrate(window, v) for v in ends)
        counts.append((high - low) / (2 * shift.sum()))
    error = np.sqrt(np.array(counts) @ result.covariance @ np.array(counts))
    assert derived.errors[0] == pytest.approx(error, rel=EXACT_FIT_ERRORS)
    total = result.values["signal"] + result.values["background"]
    assert derived.values[0] == pytest.approx(total * model.integrate(window, result), rel=INTEGRAL_PROMISE)
    tail = result.values["background"] * TAIL.integrate(window, result)
    assert derived.values[1] == pytest.approx(tail, rel=INTEGRAL_PROMISE)


def test_model_with_yields_in_the_ranges_extrapolates_from_the_likelihood(events):
    window = {"m": (5.4, 5.6)}
    counts = []
    for how in ("full", "range"):
        nll = mf.Likelihood(peak_on_slope(extended=True), events, ranges={"m": RANGES}, yields_in=how)
        counts.append(mf.fit(nll).derived(nll.model.whole.expected_in(window)))
    assert counts[0].value == pytest.approx(counts[1].value, rel=1e-3)
    assert counts[0].error == pytest.approx(counts[1].error, rel=1e-2)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("yields_in", ["full", "range"])
def test_marginal_of_a_restricted_sum_is_its_integral(extended, yields_in):
    model = mf.Restricted(with_times(extended), {"m": RANGES, "t": TIMES}, yields_in=yields_in)
    marginal = model.marginal(["m"])
    assert [o.name for o in marginal.observables] == ["m"]
    t, w = nodes(TIMES)
    for m in (5.2, 5.5, 6.0):
        area = model.pdf({"m": np.full_like(t, m), "t": t}) @ w
        assert marginal.pdf(m) == pytest.approx(area, rel=NUMERICAL)
    if extended:
        start = {p.name: p.start for p in model.parameters}
        assert float(evaluate(marginal.expected_events(), start)) == pytest.approx(
            float(evaluate(model.expected_events(), start)), rel=NUMERICAL
        )


def test_marginals_drop_factors_and_keep_weights():
    model = with_times(extended=False)
    marginal = model.marginal(M)
    assert repr(marginal) == "Sum([Gaussian(m, mu, sigma), Exponential(m, alpha)], fractions=[fraction])"
    assert model.marginal([M, "t"]) is model
    assert {p.name for p in marginal.parameters} == {"mu", "sigma", "alpha", "fraction"}
    data = mf.generate(model, 2000, seed=2)
    assert mf.fit(marginal, {"m": data["m"]}).valid


def test_marginal_of_a_sum_of_separate_terms_is_a_formula():
    x, y = mf.Observable("x", -1, 1), mf.Observable("y", -1, 1)
    share = mf.Parameter("share", 0.6, 0, 1)
    angles = mf.Density((1 - share) / 2 * (1 - y**2) * (1 + x**2) + 2 * share * y**2 * (1 - x**2), [x, y])
    for ranges in (None, {"y": (0.5, 1.0)}):
        model = angles if ranges is None else mf.Restricted(angles, ranges)
        v, w = nodes([(-1.0, 0.5), (0.5, 1.0)])
        for point in (-0.3, 0.8):
            area = model.pdf({"x": np.full_like(v, point), "y": v}) @ w
            assert model.marginal("x").pdf(point) == pytest.approx(area, rel=NUMERICAL)


# ------------------------------------------------------------------------- what is refused

REFUSED = {
    "no mapping": (("m", 5.0, 6.0), mf.DataError, r"ranges: must be \(low, high\) by name"),
    "a number": ({"m": 5.0}, mf.DataError, r"observable 'm': a sub-range must be \(low, high\), got 5.0; several are"),
    "empty list": ({"m": []}, mf.DataError, r"a sub-range must be \(low, high\), got \[\]; several are a list"),
    "three ends": ({"m": (5.0, 5.5, 6.0)}, mf.DataError, r"must be \(low, high\), got \(5.0, 5.5, 6.0\)"),
    "a set": ({"m": {5.0, 6.0}}, mf.DataError, r"must be \(low, high\), got \{"),
    "texts": ({"m": ("5", "6")}, mf.DataError, r"must be \(low, high\), got \('5', '6'\)"),
    "inverted": ({"m": (6.0, 5.0)}, mf.DataError, r"must not be empty, got \(6.0, 5.0\); low comes first"),
    "empty": ({"m": (5.5, 5.5)}, mf.DataError, r"must not be empty, got \(5.5, 5.5\)"),
    "nan": ({"m": (np.nan, 5.5)}, mf.DataError, "must not be empty, got"),
    "outside": ({"m": (5.0, 8.0)}, mf.DataError, r"must lie in \[5.0, 7.0\], got \(5.0, 8.0\); the model is not defined"),
    "infinite": ({"m": (5.0, np.inf)}, mf.DataError, r"must lie in \[5.0, 7.0\], got \(5.0, inf\)"),
    "overlapping": ({"m": [(5.0, 5.5), (5.4, 6.0)]}, mf.DataError, r"must not overlap, got \(5.0, 5.5\) and \(5.4, 6.0\); join"),
    "twice": ({"m": (5.0, 5.5), M: (6.0, 7.0)}, mf.DataError, "observable 'm': ranges are given twice; give all of them"),
    "unknown": ({"mm": (5.0, 5.5)}, mf.ModelError, "observable 'mm': not in the model; did you mean 'm'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_ranges_are_explained(case, events):
    ranges, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        mf.fit(peak_on_slope(False), events, ranges=ranges)


def test_ranges_that_touch_are_one_range():
    touching = mf.Restricted(peak_on_slope(False), {"m": [(5.5, 6.0), (5.2, 5.5)]})
    assert touching.ranges == {"m": ((5.2, 6.0),)}


def test_wrong_uses_of_ranges_are_explained(events):
    model = peak_on_slope(False)
    nll = mf.Likelihood(model, events, ranges={"m": (5.0, 6.0)})
    with pytest.raises(mf.FitError, match="fit: a likelihood has its own ranges; give them to"):
        mf.fit(nll, ranges={"m": (5.0, 5.5)})
    with pytest.raises(mf.FitError, match="toy study: a likelihood has its own ranges"):
        mf.toy_study(nll, toys=2, ranges={"m": (5.0, 5.5)})
    with pytest.raises(
        mf.ModelError, match="generate: a likelihood has its ranges already; leave ranges out"
    ):
        mf.generate(nll, ranges={"m": (5.0, 5.5)})
    with pytest.raises(mf.OptionError, match="yields_in: must be 'full' or 'range', got 'all'"):
        mf.fit(model, events, ranges={"m": (5.0, 5.5)}, yields_in="all")
    with pytest.raises(mf.ModelError, match="restricted: takes a density, got 3; wrap a formula"):
        mf.Restricted(3, {"m": (5.0, 5.5)})
    with pytest.raises(mf.ModelError, match="restricted: needs ranges of at least one observable, got none"):
        mf.Restricted(model, {})
    with pytest.raises(mf.ModelError, match="model: expects no number of events, as it has no yields"):
        model.expected_in({"m": (5.0, 5.5)})
    with pytest.raises(mf.FitError, match=r"must span what is drawn, got m in \[5, 6\]"):
        mf.toy_study(model, toys=2, events=10, fit_model=nll)


def test_density_without_events_in_the_ranges_cannot_be_counted_there(events):
    model = mf.Sum([mf.Gaussian(M, MU, 0.01), TAIL], fractions=[FRACTION])
    with pytest.raises(
        mf.ModelError, match=r"sum: densities must have events in m in \[6.5, 7\].*none of pdfs\[0\]"
    ):
        mf.fit(model, events, ranges={"m": (6.5, 7.0)}, yields_in="range")
    assert mf.fit(model, events, ranges={"m": (5.5, 7.0)}, fixed={"fraction": 0.0, "mu": 5.35}).valid


def test_restricted_densities_stand_in_sums_and_products(events):
    ends = mf.Restricted(TAIL, {"m": (5.0, 5.8)})
    model = mf.Sum([PEAK, ends], fractions=[FRACTION])
    data = mf.generate(model, 3000, seed=2)
    assert data["m"].max() <= 5.8
    assert mf.fit(model, data).valid
    product = mf.Product([ends, mf.Exponential(T, SLOPE)])
    nll = mf.Likelihood(product, events)
    assert nll.events == np.sum(events["m"] <= 5.8)
    other = mf.Likelihood(mf.Product([TAIL, mf.Exponential(T, SLOPE)]), events, ranges={"m": (5.0, 5.8)})
    values = {"alpha": -1.1, "slope": -0.3}
    assert nll.value(values) == pytest.approx(other.value(values), rel=NUMPY_SUM)


def test_wrong_marginals_are_explained():
    _, joined = written()
    with pytest.raises(mf.ModelError, match="marginal: needs at least one observable, got none"):
        joined.marginal([])
    with pytest.raises(mf.ModelError, match="observable 'q': not in the model"):
        joined.marginal(["m", "q"])
    with pytest.raises(mf.ModelError, match="marginal: observables must be a list, got None"):
        joined.marginal(None)


def test_a_marginal_without_a_formula_is_integrated_for_each_event():
    _, joined = written()
    marginal = joined.marginal("m")
    for ends in ((5.0, 5.3), (5.5, 6.2)):
        assert marginal.integrate({"m": ends}) == pytest.approx(joined.integrate({"m": ends}), rel=1e-8)


@pytest.mark.parametrize(
    "absent",
    [lambda x: mf.shapes.Triangle(x, 0.5, 0.5, 1.0), lambda x: mf.Density(np.maximum(1.5 - x, 0.0), [x])],
)
def test_issue_a_part_without_events_in_the_ranges_leaves_the_others_their_probabilities(absent):
    # zero times its own distribution, which does not exist, used to be not a number
    x = mf.Observable("x", 0.0, 4.0)
    model = mf.Sum([absent(x), mf.Uniform(x)], fractions=[0.4])
    assert mf.Restricted(model, {"x": (2.0, 4.0)}).cdf(2.5) == pytest.approx(0.25, rel=1e-12)
    assert mf.Efficiency(model, 1.0 * (x > 2.0)).cdf(2.5) == pytest.approx(0.25, rel=1e-12)


def test_a_fit_in_ranges_where_the_model_is_zero_is_refused():
    x = mf.Observable("x", 0.0, 10.0)
    upper = mf.Restricted(mf.Exponential(x, mf.Parameter("k", -0.4, -2, 0)), {"x": (6.0, 9.0)})
    with pytest.raises(mf.DataError, match="observable 'x': the model is zero in all of these ranges"):
        mf.fit(upper, {"x": [7.0, 8.0]}, ranges={"x": (0.0, 3.0)})
