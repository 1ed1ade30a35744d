"""Discoveries, upper limits and likelihood ratios against closed forms, sums of Poisson probabilities and SciPy."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

import morefit as mf
from morefit.errors import DataError, FitError, ModelError, OptionError
from morefit.intervals import asimov, discovery, likelihood_ratio, scan, upper_limit
from morefit.intervals.limit_methods import SIGMAS
from morefit.sampling.generate import Sampler
from morefit.toys.batch import Toys
from tolerances import LIMIT, LOST_IN_BINS, PULL_SIGMAS, RATIO, SAME_MINIMUM

X = mf.Observable("x", 0.1, 3.0)
MEAN, SIGMA = mf.Parameter("mean", 1.2, fixed=True), mf.Parameter("sigma", 0.1, fixed=True)
SIGNAL, BACKGROUND = mf.Parameter("s", 5.0, -20.0, 1000.0), mf.Parameter("b", 300.0, 0.0, 2000.0)
SLOPE = mf.Parameter("slope", -2.0, -4.0, -1.0)
MODEL = mf.Sum([mf.Gaussian(X, MEAN, SIGMA), mf.Exponential(X, SLOPE)], yields=[SIGNAL, BACKGROUND])

UNIT = mf.Observable("u", 0.0, 1.0)
COUNTED, KNOWN = mf.Parameter("s", 1.0, -2.9, 60.0), mf.Parameter("b", 3.0, fixed=True)
COUNTING = mf.Sum([mf.shapes.Uniform(UNIT), mf.shapes.Uniform(UNIT)], yields=[COUNTED, KNOWN])


def peak(signals):
    """Return the data of the tutorials of hepstats: a peak of some events over 300 of background."""
    rng = np.random.RandomState(0)
    events = np.concatenate([rng.exponential(0.5, 300), rng.normal(1.2, 0.1, signals)])
    return {"x": events[(events > 0.1) & (events < 3)]}


def counted(n, **options):
    return mf.BinnedLikelihood(COUNTING, ([n], [0.0, 1.0]), **options)


def on_off(n, m, scale=1.0):
    """Return a count in a signal region and one in a control region of so many times its background."""
    b = mf.Parameter("b", 50.0, 1.0, 1000.0)
    s = mf.Parameter("s", 5.0, -30.0, 500.0)
    model = mf.Sum([mf.shapes.Uniform(UNIT), mf.shapes.Uniform(UNIT)], yields=[s, b])
    control = mf.constraint(scale * b, m, kind="poisson")
    return mf.BinnedLikelihood(model, ([n], [0.0, 1.0]), constraints=control)


def profiled(x, s):
    """Return minus the log likelihood of the peak by SciPy, minimised over background and slope."""

    def nll(p):
        b, slope = p
        norm = (np.exp(slope * 3.0) - np.exp(slope * 0.1)) / slope
        gauss = stats.norm.pdf(x, 1.2, 0.1) / np.diff(stats.norm.cdf([0.1, 3.0], 1.2, 0.1))
        return s + b - np.sum(np.log(s * gauss + b * np.exp(slope * x) / norm))

    return optimize.minimize(
        nll, [250.0, -2.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}
    ).fun


@pytest.fixture(scope="module")
def weak():
    return mf.Likelihood(MODEL, peak(10))


# ------------------------------------------------------------------------------------ Asimov data


def test_asimov_data_of_events_have_the_expected_information(weak):
    truth = {"s": 20.0, "b": 280.0, "slope": -2.1}
    errors = mf.fit(asimov(weak, truth)).errors
    expected = mf.fisher_information(MODEL, truth=truth).errors
    for name in truth:
        assert errors[name] == pytest.approx(expected[name], rel=LOST_IN_BINS)


def test_asimov_data_of_a_model_need_its_data_alone(weak):
    # the message of a model without data named an argument that there was not
    (part,), values = weak.parts, {p.name: p.start for p in weak.parameters}
    own = asimov(part.model, values, data=part.data)
    assert own.value(values) == asimov(weak, values).value(values)
    with pytest.raises(mf.MorefitError, match=r"asimov: a model needs data; pass .* data="):
        asimov(part.model, values)


def test_a_fit_of_asimov_data_returns_the_values_they_are_made_of():
    truth = {"s": 7.0, "b": 40.0}
    result = mf.fit(asimov(on_off(50, 38), truth))
    for name, value in truth.items():
        assert abs(result.values[name] - value) < SAME_MINIMUM * result.errors[name]


def test_asimov_data_of_a_sum_and_of_a_model_without_yields(weak):
    alone = mf.Likelihood(mf.Exponential(X, SLOPE), peak(0))
    joint = asimov(weak + alone, {"slope": -1.7})
    assert [part.entries for part in joint.parts] == pytest.approx([305.0, alone.events])
    result = mf.fit(joint)
    assert abs(result.values["slope"] + 1.7) < SAME_MINIMUM * result.errors["slope"]


def test_asimov_data_in_two_dimensions():
    y = mf.Observable("y", -1.0, 1.0)
    mu = mf.Parameter("mu", 0.1, -1.0, 1.0)
    model = mf.Product([mf.Exponential(X, SLOPE), mf.Gaussian(y, mu, mf.Parameter("w", 0.3, fixed=True))])
    data = mf.generate(model, 200, seed=1)
    result = mf.fit(asimov(mf.Likelihood(model, data), {"mu": 0.2}))
    assert abs(result.values["mu"] - 0.2) < SAME_MINIMUM * result.errors["mu"]
    assert result.errors["mu"] == pytest.approx(
        mf.fisher_information(model, 200, truth={"mu": 0.2}).errors["mu"], rel=LOST_IN_BINS
    )


def test_asimov_data_in_ranges_are_those_of_the_ranges():
    # this used to be refused
    truth = {"s": 50.0, "b": 280.0, "slope": -2.1}
    nll = mf.Likelihood(MODEL, peak(10), ranges={"x": [(0.2, 1.15), (1.3, 2.77)]})
    expected = asimov(nll, truth)
    shares = [MODEL.integrate({"x": r}, truth) for r in ((0.2, 1.15), (1.3, 2.77))]
    assert expected.entries == pytest.approx(330 * sum(shares), rel=1e-6)
    result = mf.fit(expected)
    for name, value in truth.items():
        assert abs(result.values[name] - value) < SAME_MINIMUM * result.errors[name]


def test_asimov_data_in_ranges_of_two_dimensions():
    y = mf.Observable("y", -1.0, 1.0)
    mu = mf.Parameter("mu", 0.1, -1.0, 1.0)
    model = mf.Product([mf.Exponential(X, SLOPE), mf.Gaussian(y, mu, 0.3)])
    nll = mf.Likelihood(model, mf.generate(model, 200, seed=1), ranges={"y": (-0.55, 0.123)})
    result = mf.fit(asimov(nll, {"mu": 0.2}))
    assert abs(result.values["mu"] - 0.2) < SAME_MINIMUM * result.errors["mu"]


def test_asimov_data_that_cannot_be_binned_are_refused(weak):
    axes = [mf.Observable(name, 0.0, 1.0) for name in "abcd"]
    many = mf.Product([mf.Exponential(o, SLOPE) for o in axes])
    with pytest.raises(ModelError, match="asimov: takes events of up to 3 observables; make"):
        asimov(mf.Likelihood(many, {name: [0.5, 0.6] for name in "abcd"}), {})
    with pytest.raises(ModelError, match="parameter 't': not in the model"):
        asimov(weak, {"t": 0.0})


def test_a_count_as_an_event_has_the_limit_of_the_counting_experiment():
    # this used to be refused: whole numbers had no Asimov data, and toys begin with those as well
    n = mf.Observable("n", -0.5, 40.5)
    one = mf.Likelihood(mf.shapes.Poisson(n, COUNTED + 3.0), {"n": [5.0]})
    many = mf.Likelihood(COUNTING, {"u": np.linspace(0.1, 0.9, 5)})
    limits = [upper_limit(nll, "s") for nll in (one, many)]
    assert limits[0].observed == pytest.approx(limits[1].observed, rel=LIMIT)
    assert limits[0].expected == pytest.approx(limits[1].expected, rel=LIMIT)


# ------------------------------------------------------------------------------------ discovery


def test_discovery_agrees_with_the_number_that_hepstats_documents():
    found = discovery(mf.Likelihood(MODEL, peak(25)), SIGNAL)
    assert found.significance == pytest.approx(3.1719465, abs=1e-4)
    assert found.p_value == pytest.approx(0.00075710454, rel=1e-3)


def test_discovery_agrees_with_scipy():
    x = peak(25)["x"]
    found = discovery(mf.Likelihood(MODEL, {"x": x}), "s")
    free = optimize.minimize_scalar(lambda s: profiled(x, s), bounds=(5.0, 40.0), method="bounded")
    assert found.q == pytest.approx(2 * (profiled(x, 0.0) - free.fun), abs=RATIO)
    assert found.p_value == pytest.approx(stats.norm.sf(np.sqrt(found.q)))


@pytest.mark.parametrize("backend", ["cpu", "opencl", "reference"])
def test_discovery_in_a_counting_experiment_is_the_closed_form(backend):
    found = discovery(counted(9, backend=backend), "s")
    assert found.q == pytest.approx(2 * (9 * np.log(9 / 3) - 6), abs=RATIO)


def test_discovery_with_a_control_region_is_the_formula_of_li_and_ma():
    n, m, tau = 60, 80, 2.0
    found = discovery(on_off(n, m, tau), "s")
    together = n + m
    expected = 2 * (n * np.log((1 + tau) * n / together) + m * np.log((1 + tau) * m / (tau * together)))
    assert found.q == pytest.approx(expected, abs=RATIO)


def test_expected_significance_of_asimov_data_is_that_of_cowan_and_others():
    s, b = 10.0, 9.0  # equation 97 of arXiv:1007.1727
    signal, known = mf.Parameter("s", 1.0, -8.0, 100.0), mf.Parameter("b", b, fixed=True)
    model = mf.Sum([mf.shapes.Uniform(UNIT), mf.shapes.Uniform(UNIT)], yields=[signal, known])
    found = discovery(asimov(mf.BinnedLikelihood(model, ([9], [0.0, 1.0])), {"s": s}), "s")
    assert found.significance == pytest.approx(np.sqrt(2 * ((s + b) * np.log(1 + s / b) - s)), abs=1e-4)


def test_fewer_events_than_background_discover_nothing():
    found = discovery(counted(1), "s", toys=500, seed=1, progress=False)
    assert (found.q, found.significance, found.p_value, found.toy_p_value) == (0.0, 0.0, 0.5, 1.0)
    assert np.isnan(found.toy_significance)


def test_toys_of_a_counting_experiment_have_the_p_value_of_poisson():
    found = discovery(counted(7), "s", toys=6000, seed=3, progress=False)
    assert len(found.toys) == 6000
    assert abs(found.toy_p_value - stats.poisson.sf(6, 3.0)) < PULL_SIGMAS * found.toy_p_error
    again = discovery(counted(7), "s", toys=6000, seed=3, progress=False)
    np.testing.assert_array_equal(again.toys, found.toys)
    assert "6000 toys: p-value 0.03" in str(pickle.loads(pickle.dumps(found)))


def test_toys_of_a_signal_anywhere_have_a_larger_p_value():
    mean = mf.Parameter("mean", 1.2, 0.3, 2.8)
    signal = mf.Parameter("s", 20.0, 0.0, 1000.0)
    model = mf.Sum([mf.Gaussian(X, mean, SIGMA), mf.Exponential(X, SLOPE)], yields=[signal, BACKGROUND])
    found = discovery(mf.Likelihood(model, peak(25)), signal, toys=400, seed=1, progress=False)
    assert found.toy_p_value > 3 * found.p_value
    assert not np.isnan(found.toys).any()


def test_stopped_toys_of_a_discovery_are_resumed(tmp_path):
    whole = discovery(counted(7), "s", toys=300, seed=4, progress=False)
    for _ in range(2):
        saved = discovery(counted(7), "s", toys=300, seed=4, save=tmp_path / "toys.npz", progress=False)
        np.testing.assert_array_equal(saved.toys, whole.toys)


def test_tests_take_a_model_with_its_data(weak):
    data = weak.parts[0].data
    assert discovery(MODEL, SIGNAL, data=data).q == discovery(weak, "s").q
    assert upper_limit(MODEL, SIGNAL, data=data).observed == upper_limit(weak, "s").observed
    tested = {SIGNAL: 5.0}
    ratio = mf.intervals.likelihood_ratio
    assert ratio(MODEL, tested, data=data).t == ratio(weak, {"s": 5.0}).t


@pytest.mark.parametrize("function", [discovery, upper_limit])
def test_what_cannot_be_tested_is_refused(function, weak):
    name = function.__name__
    with pytest.raises(FitError, match=f"{name}: a model needs data; pass mf.Likelihood"):
        function(MODEL, "s")
    with pytest.raises(FitError, match=f"{name}: needs floating parameters, got 'signal'"):
        function(weak, "signal")
    with pytest.raises(DataError, match=f"{name}: events with weights have ratios of likelihoods of another"):
        function(mf.Likelihood(MODEL, peak(10), weights=np.full(len(peak(10)["x"]), 0.5)), "s")
    with pytest.raises(OptionError, match=f"{name}: toys must be at least 1, got 0"):
        function(weak, "s", toys=0, **({"method": "toys"} if function is upper_limit else {}))


def test_a_value_outside_the_limits_is_refused(weak):
    with pytest.raises(
        FitError, match=r"discovery: values of 's' must be a list of numbers in \[-20.0, 1000.0\]"
    ):
        discovery(weak, "s", -30.0)
    with pytest.raises(OptionError, match="discovery: value must be a finite number, got nan"):
        discovery(weak, "s", float("nan"))


# ------------------------------------------------------------------------------------ upper limits


def exact_limit(n, b, cls=True):
    """Return the limit of a counting experiment by sums of Poisson probabilities."""
    scale = stats.poisson.cdf(n, b) if cls else 1.0
    return optimize.brentq(lambda s: stats.poisson.cdf(n, s + b) / scale - 0.05, 0, 100)


def asymptotic_limit(n, b, sigmas=None):
    """Return the CLs limit of a counting experiment by the formulas of arXiv:1007.1727, evaluated directly."""

    def q(count, s):
        best = max(count, b)
        return 2 * (s + b - best - count * np.log((s + b) / best)) if count < s + b else 0.0

    def p(s):
        qa = q(b, s)
        if sigmas is not None:
            return stats.norm.sf(np.sqrt(qa) - sigmas) / stats.norm.cdf(sigmas)
        qn = q(n, s)
        if qn > qa:
            above, below = (qn + qa) / (2 * np.sqrt(qa)), (qn - qa) / (2 * np.sqrt(qa))
        else:
            above, below = np.sqrt(qn), np.sqrt(qn) - np.sqrt(qa)
        return stats.norm.sf(above) / stats.norm.sf(below)

    return optimize.brentq(lambda s: p(s) - 0.05, 1e-3, 100)


def test_the_observed_limit_agrees_with_what_hepstats_documents(weak):
    found = upper_limit(weak, SIGNAL, statistic="q")
    assert found.observed == pytest.approx(15.7258, abs=0.01)  # interpolated between few points there
    assert np.all(np.diff(found.expected) > 0)


@pytest.mark.parametrize("n", [0, 2, 3, 9])
def test_asymptotic_limits_of_a_counting_experiment_are_the_formulas(n):
    found = upper_limit(counted(n), "s")
    assert found.observed == pytest.approx(asymptotic_limit(n, 3.0), rel=LIMIT)
    for sigmas, limit in zip(SIGMAS, found.expected, strict=True):
        assert limit == pytest.approx(asymptotic_limit(n, 3.0, sigmas), rel=LIMIT)


def test_limits_of_a_bounded_parameter_are_those_of_q_tilde():
    signal = mf.Parameter("s", 1.0, 0.0, 60.0)
    model = mf.Sum([mf.shapes.Uniform(UNIT), mf.shapes.Uniform(UNIT)], yields=[signal, KNOWN])
    bounded = upper_limit(mf.BinnedLikelihood(model, ([1], [0.0, 1.0])), "s")
    free = upper_limit(counted(1), "s")
    assert bounded.observed == pytest.approx(free.observed, rel=LIMIT)
    assert upper_limit(counted(1), "s", statistic="q").observed != pytest.approx(free.observed, rel=1e-3)


def test_without_the_ratio_limits_are_lower_and_may_exclude_everything():
    sure, plain = upper_limit(counted(3), "s"), upper_limit(counted(3), "s", cls=False)
    assert plain.observed < sure.observed
    assert plain.expected[0] == 0.0
    np.testing.assert_allclose(plain.p_values, plain.p_signal)


@pytest.mark.parametrize(("n", "cls"), [(2, True), (9, False)])
def test_limits_with_toys_are_those_of_poisson_sums(n, cls):
    points = exact_limit(n, 3.0, cls) + np.array([-2.0, -1.0, 0.2, 1.0, 2.0])
    found = upper_limit(
        counted(n), "s", points[points > 0], method="toys", cls=cls, toys=1500, seed=1, progress=False
    )
    for k, s in enumerate(found.values):
        exact = stats.poisson.cdf(n, s + 3.0)
        assert abs(found.p_signal[k] - exact) < PULL_SIGMAS * np.sqrt(exact * (1 - exact) / 1500)
    exact = stats.poisson.cdf(n, 3.0)
    assert np.all(np.abs(found.p_background - exact) < PULL_SIGMAS * np.sqrt(exact * (1 - exact) / 1500))
    assert abs(found.observed - exact_limit(n, 3.0, cls)) < PULL_SIGMAS * found.errors[0] + 0.05


def test_limits_with_toys_choose_their_points_and_resume(tmp_path, weak):
    call = {"method": "toys", "toys": 100, "seed": 1, "progress": False}
    found = upper_limit(weak, "s", **call)
    saved = [upper_limit(weak, "s", save=tmp_path / "limit.npz", **call) for _ in range(2)]
    assert {one.observed for one in saved} == {found.observed}
    assert upper_limit(weak, "s", toys=100, seed=1, progress=False).observed == found.observed, (
        "toys mean toys"
    )
    asymptotic = upper_limit(weak, "s")
    assert found.values[-1] == pytest.approx(1.25 * asymptotic.expected[-1])
    assert abs(found.observed - asymptotic.observed) < PULL_SIGMAS * found.errors[0]
    assert "100 toys for each hypothesis" in str(found)


def test_issue_an_interrupted_limit_says_so(monkeypatch):
    # this used to end with a ValueError of zip
    plain = scan.compute_points

    def interrupted(tested, first, stop, report):
        if first:
            raise KeyboardInterrupt
        return plain(tested, first, stop, report)

    monkeypatch.setattr(scan, "compute_points", interrupted)
    with pytest.raises(FitError, match="interrupted with 1 of 4 hypotheses, which give no limit; with save="):
        upper_limit(counted(5), "s", [3.0, 9.0], toys=20, seed=1, progress=False)


def test_toys_without_a_signal_are_the_same_at_all_values_and_on_all_workers():
    call = {"points": [3.0, 5.0, 7.0, 9.0], "toys": 300, "seed": 1, "progress": False}
    alone = upper_limit(counted(5), "s", **call)
    with ThreadPoolExecutor(2) as executor:
        spread = upper_limit(counted(5), "s", executor=executor, **call)
    np.testing.assert_array_equal(spread.p_background, alone.p_background)
    np.testing.assert_array_equal(spread.expected_p_values, alone.expected_p_values)
    # data that fit less than all values have the same toys below them at each
    assert len(set(alone.p_background)) == 1


@pytest.mark.parametrize("option", [{"toys": 100}, {"seed": 1}, {"save": "limit.npz"}])
def test_options_of_toys_are_not_ignored_where_there_are_none(option):
    with pytest.raises(OptionError, match=f"upper_limit: {next(iter(option))} is an option of toys"):
        upper_limit(counted(9), "s", method="asymptotic", **option)


def test_a_limit_that_is_not_reached_is_not_a_number():
    found = upper_limit(counted(9), "s", [1.0, 2.0])
    assert np.isnan(found.observed)
    assert "observed           NOT REACHED" in str(found)


def test_a_limit_below_all_points_says_so():
    found = upper_limit(counted(9), "s", [40.0, 50.0], method="toys", toys=50, seed=1, progress=False)
    assert "observed           AT MOST 40, the smallest value that was tested" in str(found)


def test_a_limit_record_pickles(weak):
    found = upper_limit(weak, "s")
    assert pickle.loads(pickle.dumps(found)).observed == found.observed
    assert not found.values.flags.writeable


def test_wrong_options_of_limits_are_refused(weak):
    for options, message in (
        ({"statistic": "t"}, r"upper_limit: statistic must be 'q_tilde' or 'q', got 't'"),
        ({"method": "magic"}, r"upper_limit: method must be 'asymptotic' or 'toys', got 'magic'"),
        ({"level": 95}, r"upper_limit: level must lie between 0 and 1, got 95"),
        ({"points": [-1.0, 2.0]}, r"upper_limit: points must be positive values of 's', got \[-1.0"),
        ({"points": []}, r"upper_limit: points must be positive values of 's', got \[0.0\]"),
    ):
        with pytest.raises((OptionError, FitError), match=message):
            upper_limit(weak, "s", **options)
    with pytest.raises(
        FitError, match=r"parameter 'slope': limits must allow 0 and positive values, got \[-4"
    ):
        upper_limit(weak, "slope")
    positive = mf.Parameter("s", 1.0, 0.0, 60.0)
    model = mf.Sum([mf.shapes.Uniform(UNIT), mf.shapes.Uniform(UNIT)], yields=[positive, KNOWN])
    with pytest.raises(
        FitError, match=r"statistic 'q' needs a lower limit below 0, got 0; use statistic='q_tilde'"
    ):
        upper_limit(mf.BinnedLikelihood(model, ([3], [0.0, 1.0])), "s", statistic="q")


def test_limits_are_drawn_with_their_bands(weak):
    found = upper_limit(weak, "s")
    drawn = mf.plots.limit(found, labels={"s": "$N_s$"})
    np.testing.assert_array_equal(drawn.artists["observed"].get_ydata(), found.p_values)
    np.testing.assert_array_equal(drawn.artists["expected"].get_ydata(), found.expected_p_values[2])
    assert drawn.axes[0].get_xlabel() == "$N_s$"
    assert "limit" not in mf.plots.limit(replace(found, observed=float("nan"))).artists


def test_issue_what_the_best_fit_has_fixed_is_fixed_in_toys():
    # toys of upper_limit, discovery and likelihood_ratio used to float it, so that limits were 50 % too high in silence
    def sample(factor, counts):
        return {
            "name": factor,
            "data": counts,
            "modifiers": [{"name": factor, "type": "normfactor", "data": None}],
        }

    def likelihood(**options):
        config = {
            "poi": "mu",
            "parameters": [{"name": "b", "bounds": [[0.2, 3.0]], "inits": [1.2], **options}],
        }
        return mf.histfactory.read({
            "channels": [{"name": "c", "samples": [sample("mu", [2.0, 3.0]), sample("b", [5.0, 4.0])]}],
            "observations": [{"name": "c", "data": [6, 6]}], "version": "1.0.0",
            "measurements": [{"name": "m", "config": config}],
        })  # fmt: skip

    floats, fixed = likelihood(), likelihood(fixed=True)
    options = {"toys": 50, "seed": 1, "progress": False}
    pairs = [(floats, mf.fit(floats, fixed={"b": 1.2})), (fixed, None)]
    limits = [upper_limit(nll, "mu", [1.0, 2.0], best=best, **options) for nll, best in pairs]
    np.testing.assert_array_equal(limits[0].p_signal, limits[1].p_signal)
    tests = [discovery(nll, "mu", best=best, **options) for nll, best in pairs]
    np.testing.assert_array_equal(tests[0].toys, tests[1].toys)


def test_limits_are_drawn_against_a_mass_or_by_name(weak):
    found = upper_limit(weak, "s")
    missing = replace(found, observed=float("nan"))
    drawn = mf.plots.limits({130: found, 125.0: missing, 120: found}, scale=[3.0, 2.0, 1.0], xlabel="$m$")
    assert drawn.numbers.points == (120.0, 125.0, 130.0)
    np.testing.assert_array_equal(
        drawn.artists["observed"].get_ydata(), found.observed * np.array([1, np.nan, 3])
    )
    np.testing.assert_array_equal(
        drawn.artists["expected"].get_ydata(), found.expected[2] * np.array([1.0, 2, 3])
    )
    band = drawn.artists["1 sigma"].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(3 * found.expected[3])
    assert (drawn.axes[0].get_xlabel(), drawn.axes[0].get_ylabel()) == ("$m$", "95 % CL upper limit on s")
    named = mf.plots.limits({"ee": found, "mumu": replace(found, name="other")}, log=True)
    assert [tick.get_text() for tick in named.axes[0].get_xticklabels()] == ["ee", "mumu"]
    assert named.axes[0].get_ylabel() == "95 % CL upper limit"


def test_issue_bands_between_few_masses_stay_below_the_legend(weak):
    """A legend between two points used to lie on the bands, whose colours hid its own."""
    found = upper_limit(weak, "s")
    drawn = mf.plots.limits({1.0: found, 2.0: found})
    box = drawn.artists["legend"].get_window_extent().transformed(drawn.axes[0].transData.inverted())
    assert box.y0 > max(found.observed, found.expected[-1])


def test_limits_that_cannot_be_drawn_together_are_refused(weak):
    found = upper_limit(weak, "s")
    for limits, options, message in (
        ([found], {}, r"takes limits by their points"),
        ({1.0: found, "two": found}, {}, r"points must be numbers, or texts, got \[1.0, 'two'\]"),
        ({1.0: found, 2.0: replace(found, level=0.9)}, {}, r"all limits must have one level"),
        ({1.0: 3.0}, {}, r"takes what mf.intervals.upper_limit returns, got float"),
        (
            {1.0: found},
            {"scale": [1.0, 2.0]},
            r"scale must be a positive number, or one for each of 1 points",
        ),
        ({1.0: replace(found, observed=np.nan, expected=(np.nan,) * 5)}, {}, r"no limit is reached"),
    ):
        with pytest.raises((OptionError, mf.DataError), match=rf"plots\.limits: {message}"):
            mf.plots.limits(limits, **options)


# ------------------------------------------------------------------------------------ likelihood ratios


def test_a_ratio_of_nested_models_has_the_probability_of_wilks(weak):
    found = likelihood_ratio(weak, {"s": 0.0, SLOPE: -2.0}, toys=400, progress=False)
    free, fixed = mf.fit(weak), mf.fit(weak, fixed={"s": 0.0, "slope": -2.0})
    assert found.t == pytest.approx(2 * (fixed.nll - free.nll), abs=RATIO)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.t, 2))
    assert (
        abs(found.toy_p_value - found.p_value) < PULL_SIGMAS * found.toy_p_error + 0.03
    )  # not quite many events
    assert "with 2 degrees of freedom" in str(found)


def test_a_ratio_that_leaves_parameters_without_effect_needs_toys():
    mean = mf.Parameter("mean", 1.2, 0.3, 2.8)
    signal = mf.Parameter("s", 20.0, 0.0, 1000.0)
    model = mf.Sum([mf.Gaussian(X, mean, SIGMA), mf.Exponential(X, SLOPE)], yields=[signal, BACKGROUND])
    found = likelihood_ratio(mf.Likelihood(model, peak(10)), {"s": 0.0}, toys=50, progress=False)
    assert np.isnan(found.p_value)
    assert 0 < found.toy_p_value <= 1


def test_a_ratio_may_fix_every_parameter(weak):
    values = {"s": 5.0, "b": 250.0, "slope": -2.0}
    found = likelihood_ratio(weak, values, toys=50, progress=False)
    assert found.t == pytest.approx(2 * (weak.value(values) - mf.fit(weak).nll), abs=RATIO)
    assert not np.isnan(found.toys).any()
    assert pickle.loads(pickle.dumps(found)).null["b"] == 250.0


def test_models_that_are_not_nested_are_compared_by_toys():
    mean, width = mf.Parameter("m", 1.0, 0.5, 3.0), mf.Parameter("w", 1.0, 0.2, 5.0)
    null = mf.Likelihood(mf.Exponential(X, SLOPE), peak(0))
    other = mf.Likelihood(mf.Gaussian(X, mean, width), peak(0))
    found = likelihood_ratio(null, alternative=other, toys=200, progress=False)
    assert found.t == pytest.approx(2 * (mf.fit(null).nll - mf.fit(other).nll), abs=RATIO)
    assert np.isnan(found.p_value)
    assert found.toy_p_value > 0.05
    wrong = likelihood_ratio(other, alternative=null, toys=200, progress=False)
    assert wrong.toy_p_value < 0.05


def test_wrong_ratios_are_refused(weak):
    with pytest.raises(
        OptionError, match="likelihood_ratio: takes values of parameters as fixed, or an alternative"
    ):
        likelihood_ratio(weak)
    with pytest.raises(OptionError, match="likelihood_ratio: fixed must be numbers by name"):
        likelihood_ratio(weak, {})
    with pytest.raises(FitError, match="likelihood_ratio: values of 's' must be a list of numbers in"):
        likelihood_ratio(weak, {"slope": -2.0, "s": -50.0})
    with pytest.raises(FitError, match="likelihood_ratio: needs floating parameters, got 'mean'"):
        likelihood_ratio(weak, {"mean": 1.0})
    with pytest.raises(DataError, match="the alternative must have the same data, 256 entries, got"):
        likelihood_ratio(weak, alternative=mf.Likelihood(MODEL, peak(25)))
    binned = [mf.BinnedLikelihood(MODEL, np.histogram(weak.data["x"], n, (X.low, X.high))) for n in (10, 20)]
    for one, other in (binned, (weak, binned[0])):  # these used to be compared
        with pytest.raises(DataError, match="or other events or bins; make both of one dataset or histogram"):
            likelihood_ratio(one, alternative=other)
    with pytest.raises(DataError, match="both likelihoods must have yields, or neither"):
        likelihood_ratio(weak, alternative=mf.Likelihood(mf.Exponential(X, SLOPE), weak.data))


def test_asimov_data_are_no_negative_counts():
    with pytest.raises(DataError, match="asimov: expected counts must not be negative, got -"):
        mf.intervals.asimov(counted(9), {"s": -15.0})


def test_both_fits_of_a_toy_see_events_that_are_drawn_once(monkeypatch):
    # this used to draw them for each fit
    drawn, plain = [], Sampler.draw

    def counted(self, sizes, *rest):
        drawn.append(len(sizes))
        return plain(self, sizes, *rest)

    def drawing(*_):
        raise AssertionError("a fit draws its events")

    monkeypatch.setattr(Sampler, "draw", counted)
    monkeypatch.setattr(Toys, "whole_job", drawing)
    discovery(mf.Likelihood(MODEL, peak(25)), SIGNAL, toys=30, seed=1, progress=False)
    assert drawn == [30]


def test_p_values_of_large_significances_have_all_their_digits():
    # this used to be 0 beyond 8.3 standard deviations
    found = replace(discovery(mf.Likelihood(MODEL, peak(25)), SIGNAL), q=225.0)
    assert found.p_value == pytest.approx(stats.norm.sf(15.0), rel=1e-9)


def test_likelihoods_of_other_statistics_are_not_compared():
    """These used to be: a chi-square against a likelihood, whose difference means nothing."""
    counts = np.histogram(np.linspace(X.low, X.high, 200), 20)
    one, other = (mf.BinnedLikelihood(MODEL, counts, statistic=s) for s in ("likelihood", "neyman"))
    with pytest.raises(
        DataError, match=r"both likelihoods must have the same statistic, .* got 'likelihood', 'neyman'"
    ):
        likelihood_ratio(one, alternative=other)


@pytest.mark.parametrize(("seed", "toys"), [(0, 40), (2, 0), (6, 0)])
def test_discovery_finds_the_highest_of_several_bumps(seed, toys):
    """This used to stop at the bump next to the start value of the mass: q of 0.17 in the place of 9.57."""
    x, mass = mf.Observable("x", 0.0, 10.0), mf.Parameter("mass", 5.0, 0.5, 9.5)
    s, b = mf.Parameter("s", 10.0, 0.0, 300.0), mf.Parameter("b", 500.0, 1.0, 2000.0)
    model = mf.Sum([mf.Gaussian(x, mass, 0.3), mf.Uniform(x)], yields=[s, b])
    nll = mf.Likelihood(model, mf.generate(model, truth={"s": 0.0}, seed=seed))
    points = np.linspace(0.5, 9.5, 61)
    scan = mf.intervals.look_elsewhere(nll, s, mass, points, toys=toys, seed=1, progress=False)
    found = mf.intervals.discovery(nll, s, toys=toys or None, seed=1, progress=False)
    assert found.q >= scan.observed - 1e-3
    if toys:
        assert np.median(found.toys) > 0.8 * np.median(scan.toys)


def test_issue_a_signal_over_a_background_that_is_integrated_numerically_is_tested():
    # this used to be a ValueError of numpy: one tested value has no neighbours to look at, of which integrals were made
    x = mf.Observable("x", 0.0, 2.0)
    signals, power = mf.Parameter("signals", 5.0, -50, 50), mf.Parameter("power", 1.3, 0.5, 4)
    background = mf.Density(1 / (1 + x**power), [x])
    model = mf.Sum(
        [mf.Gaussian(x, 1.0, 0.05), background], yields=[signals, mf.Parameter("rest", 200, 0, 1e3)]
    )
    nll = mf.Likelihood(model, {"x": np.linspace(0.01, 1.99, 200) ** 1.1 / 1.1})
    free, without = mf.fit(nll, tolerance=1e-6), mf.fit(nll, fixed={"signals": 0.0}, tolerance=1e-6)
    test = mf.intervals.discovery(nll, signals)
    assert test.q == pytest.approx(2 * (without.nll - free.nll) * (free.values["signals"] > 0), abs=1e-5)


def test_limits_do_not_depend_on_how_coarse_the_points_are(weak):
    # these used to be interpolated on a cubic through the tested points, half as large as they are
    exact = upper_limit(weak, "s", progress=False)
    coarse = upper_limit(weak, "s", [100.0, 200.0], progress=False)
    np.testing.assert_array_equal(coarse.values, [0.0, 100.0, 200.0])
    limits = [(one.observed, *one.expected) for one in (coarse, exact)]
    np.testing.assert_allclose(*limits, rtol=LIMIT)


def zero_background(events):
    alone = mf.Sum([mf.shapes.Uniform(UNIT)], yields=[mf.Parameter("n", 1.0, 0.0, 60.0)])
    return mf.Likelihood(alone, {"u": np.linspace(0.1, 0.9, events)})


def test_no_event_over_no_background_sets_a_limit():
    # this used to be refused: no events times the logarithm of no expectation was not a number
    nothing = zero_background(0)
    found = upper_limit(nothing, "n", [2.0, 4.0], toys=1000, seed=1, progress=False)
    assert abs(found.observed - np.log(20)) < PULL_SIGMAS * found.errors[0]
    assert mf.intervals.profile(nothing, "n", progress=False).valid.all()
    assert discovery(nothing, "n").p_value == 0.5


def test_events_over_no_background_have_no_probability_without_a_signal():
    with pytest.raises(FitError, match="the data have no probability with 'n' at 0; leave these values out"):
        discovery(zero_background(2), "n")


def test_a_model_that_expects_nothing_draws_no_events():
    model = zero_background(0).model
    assert len(mf.generate(model, truth={"n": 0.0}, seed=1)) == 0
    with pytest.raises(ModelError, match="could not be drawn from"):
        mf.generate(model, 5, truth={"n": 0.0}, seed=1)


def test_asimov_data_of_a_numerical_convolution_are_events_with_weights():
    # these used to be bins, each with two integrals: limits took half a minute
    x, d = mf.Observable("x", 0.0, 10.0), mf.Observable("d", -2.0, 2.0)
    width = mf.Parameter("width", 0.3, 0.1, 1.0)
    model = mf.Convolution(mf.shapes.Laplace(x, 5.0, width), mf.Density(1 / (1 + 9 * d**2), d))
    nll = mf.intervals.asimov(mf.Likelihood(model, {"x": np.full(100, 5.0)}), {"width": 0.4})
    assert nll.entries == pytest.approx(100)
    assert abs(nll.gradient({"width": 0.4})[0]) < 1e-5 * nll.hessian({"width": 0.4})[0, 0]
