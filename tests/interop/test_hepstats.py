"""The adapter for hepstats: its documented numbers, with hepstats where it is installed and by its formulas where not."""

from contextlib import ExitStack

import numpy as np
import pytest
from scipy import optimize, stats

import morefit as mf
from morefit.interop import hepstats_parts as adapter
from morefit.interop.hepstats import Loss, Minimiser

X = mf.Observable("x", 0.1, 3.0)
# what the docstrings of hepstats show for these data
SIGNIFICANCE, P_VALUE, LIMIT = 3.1719464825, 0.00075710454, 15.7257847
INTERVAL = (1.1810371356602791, 1.2156701172321935)


def peak(signals, *, floating=False, constraints=()):
    """Return the likelihood of the tutorials of hepstats: a peak of some events over 300 of background."""
    rng = np.random.RandomState(0)
    events = np.concatenate([rng.exponential(0.5, 300), rng.normal(1.2, 0.1, signals)])
    mean = mf.Parameter("mean", 1.2, 0.5, 2.0, fixed=not floating)
    sigma = mf.Parameter("sigma", 0.1, 0.02, 0.2, fixed=not floating)
    slope, signal = mf.Parameter("slope", -2.0, -4.0, -1.0), mf.Parameter("signals", 5.0, -20.0, 400.0)
    background = mf.Parameter("backgrounds", 300.0, 0.0, 2000.0)
    model = mf.Sum([mf.Gaussian(X, mean, sigma), mf.Exponential(X, slope)], yields=[signal, background])
    return mf.Likelihood(model, {"x": events[(events > 0.1) & (events < 3)]}, constraints=constraints)


def conditional(loss, name, value):
    """Return the minimum with a parameter fixed, as hepstats asks for it."""
    with ExitStack() as stack:
        stack.enter_context(loss[name].set_value(value))
        loss[name].floating = False
        minimum = Minimiser().minimize(loss=loss).fmin
        loss[name].floating = True
    return minimum


# ------------------------------------------------------------------------- without hepstats


def test_fits_through_the_adapter_give_the_documented_significance():
    loss = Loss(peak(25))
    free = Minimiser().minimize(loss)
    q = 2 * (conditional(loss, "signals", 0.0) - free.fmin)
    assert np.sqrt(q) == pytest.approx(SIGNIFICANCE, abs=1e-4)
    assert stats.norm.sf(np.sqrt(q)) == pytest.approx(P_VALUE, rel=1e-3)


def asimov(loss, bins=100):
    """Return a loss of what is expected without a signal, at the centres of bins, as hepstats makes it."""
    conditional(loss, "signals", 0.0)
    (model,), (low, high) = loss.model, loss.model[0].space.limit1d
    edges = np.linspace(low, high, bins + 1)
    centres = edges[:-1] + np.diff(edges) / 2
    with loss["signals"].set_value(0.0):
        weights = model.ext_pdf(centres) * model.space.area() / bins
    data = type(loss.data[0]).from_numpy(model.space, array=centres, weights=weights)
    return loss.create_new(model=loss.model, data=[data], constraints=loss.constraints)


def test_fits_through_the_adapter_give_the_documented_limit():
    loss = Loss(peak(10))
    free = Minimiser().minimize(loss)
    expected = asimov(loss)
    lowest = conditional(expected, "signals", 0.0)

    def cls(value):
        root = np.sqrt(2 * (conditional(loss, "signals", value) - free.fmin))
        spread = np.sqrt(2 * (conditional(expected, "signals", value) - lowest))
        return stats.norm.sf(root) / stats.norm.sf(root - spread)

    assert optimize.brentq(lambda v: cls(v) - 0.05, 12, 20, xtol=1e-4) == pytest.approx(LIMIT, abs=0.01)


def test_intervals_of_morefit_give_the_documented_numbers():
    weak, strong = peak(10), peak(25)
    assert mf.intervals.discovery(strong, "signals").significance == pytest.approx(SIGNIFICANCE, abs=1e-4)
    assert mf.intervals.upper_limit(weak, "signals", statistic="q").observed == pytest.approx(LIMIT, abs=0.01)
    low, high = mf.intervals.profile(peak(80, floating=True), "mean", progress=False).interval(0.68)
    assert (low, high) == pytest.approx(INTERVAL, abs=2e-5)


def test_values_are_set_and_restored():
    parameter = Loss(peak(25))["signals"]
    with parameter.set_value(3.0):
        assert parameter.value() == np.array(parameter) == 3.0
    assert parameter.value() == 5.0
    parameter.set_value(np.array(7.0))
    assert parameter.value() == 7.0
    assert repr(parameter) == "Parameter('signals', 7)"


def test_a_minimum_goes_through_values_in_the_order_of_parameters():
    loss = Loss(peak(25))
    minimum = Minimiser().minimize(loss)
    assert list(minimum) == [p.value() for p in loss.get_params()]
    assert minimum.valid
    assert minimum.converged
    errors = minimum.hesse()
    assert errors[loss["signals"]]["error"] == pytest.approx(
        np.sqrt(minimum.covariance([loss["signals"]])[0, 0])
    )
    assert loss.value() == pytest.approx(minimum.fmin)


def test_toys_change_data_and_what_constraints_measured():
    slope = mf.Parameter("slope", -2.0, -4.0, -1.0)
    model = mf.Exponential(X, slope)
    nll = mf.Likelihood(model, mf.generate(model, 500, seed=1), constraints=[mf.constraint(slope, -2.1, 0.1)])
    loss = Loss(nll, seed=1)
    Minimiser().minimize(loss)
    sampler = loss.model[0].create_sampler(n=400)
    toys = loss.create_new(model=loss.model, data=[sampler], constraints=loss.constraints)
    sampler.resample(param_values={loss["slope"]: -3.0})
    assert sampler.nevents == sampler.n_events == 400
    assert sampler.dataset["x"].mean() == pytest.approx(0.1 + 1 / 3, abs=0.05)
    (constraint,) = loss.constraints
    ((measured, drawn),) = constraint.sample(n=1000).items()
    assert drawn.mean() == pytest.approx(loss["slope"].value(), abs=0.02)
    assert drawn.std() == pytest.approx(0.1, rel=0.1)
    before = toys.value()
    with measured.set_value(-1.0):
        away = [(loss["slope"].value() - m) / 0.1 for m in (-1.0, -2.1)]
        assert toys.value() - before == pytest.approx(0.5 * (away[0] ** 2 - away[1] ** 2))
    assert loss.model[0].sample(50).nevents == 50


def test_an_extended_model_draws_a_poisson_number():
    loss = Loss(peak(25), seed=3)
    sampler = loss.model[0].create_sampler(n=1)
    sizes = []
    for _ in range(50):
        sampler.resample()
        sizes.append(sampler.nevents)
    assert np.mean(sizes) == pytest.approx(305, abs=10)
    assert np.std(sizes) > 8


def test_models_have_densities_components_and_yields():
    loss = Loss(peak(25))
    minimum = Minimiser().minimize(loss)
    (model,) = loss.model
    x = np.linspace(0.2, 2.9, 5)
    values = dict(minimum.result.values)
    np.testing.assert_allclose(model.pdf(x), peak(25).model.pdf(x, values))
    np.testing.assert_allclose(model.ext_pdf(x), (values["signals"] + values["backgrounds"]) * model.pdf(x))
    parts = model.get_models()
    assert [p.get_yield().name for p in parts] == ["signals", "backgrounds"]
    np.testing.assert_allclose(sum(p.ext_pdf(x) for p in parts), model.ext_pdf(x))
    assert model.integrate((0.1, 3.0)) == pytest.approx(1.0)
    assert loss.data[0].with_weights(np.ones(len(loss.data[0].dataset))).weights.sum() == loss.data[0].nevents
    loss.data[0].set_weights(None)
    assert loss.data[0].weights is None


def test_the_adapter_refuses_what_it_cannot_do():
    with pytest.raises(mf.ModelError, match="hepstats: takes likelihoods of events"):
        Loss(
            mf.BinnedLikelihood(
                mf.Gaussian(X, 1.2, mf.Parameter("s", 0.1, 0.05, 0.3)), ([3, 4], [0.1, 1.0, 3.0])
            )
        )
    with pytest.raises(mf.ModelError, match="hepstats: takes likelihoods of events"):
        Loss(3)
    with pytest.raises(
        mf.ModelError, match="parameter 'signal': does not float in the likelihood; did you mean 'signals'"
    ):
        Loss(peak(25))["signal"]
    n = mf.Parameter("n", 100.0, 0.0, 500.0)
    model = mf.Sum([mf.Gaussian(X, 1.2, 0.1), mf.Exponential(X, -2.0)], yields=[2 * n, n])
    with pytest.raises(mf.ModelError, match="hepstats: the yields of a sum must be floating parameters, got"):
        Loss(mf.Likelihood(model, [1.0, 1.2])).model[0].get_models()


def test_parameters_are_those_of_zfit_where_it_is_installed(monkeypatch):
    class ZfitParameter:
        floating = name = property()

    class Fake:
        class Parameter(ZfitParameter):
            pass

    monkeypatch.setattr(adapter, "find_spec", lambda name: True)
    monkeypatch.setattr(adapter, "import_module", lambda name: Fake)
    adapter.parameter_class.cache_clear()
    try:
        parameter = Loss(peak(25))["signals"]
    finally:
        adapter.parameter_class.cache_clear()
    assert isinstance(parameter, ZfitParameter)
    parameter.floating = False
    assert (parameter.name, parameter.floating, parameter.independent) == ("signals", False, True)


# ---------------------------------------------------------------------------- with hepstats


@pytest.fixture
def hepstats():
    return pytest.importorskip("hepstats", reason="hepstats is not installed")


def calculator(loss, kind="AsymptoticCalculator", **options):
    from hepstats.hypotests import calculators

    made = getattr(calculators, kind)(loss, Minimiser(), **options)
    made.bestfit = Minimiser().minimize(loss)
    return made


def test_hepstats_takes_the_loss(hepstats):
    from hepstats.utils.fit import api_check

    loss = Loss(peak(25))
    assert api_check.is_valid_loss(loss)
    assert api_check.is_valid_fitresult(Minimiser().minimize(loss))
    assert api_check.is_valid_minimizer(Minimiser())
    assert api_check.is_valid_data(loss.model[0].create_sampler(3))


def test_hepstats_discovers(hepstats):
    from hepstats.hypotests import Discovery
    from hepstats.hypotests.parameters import POI

    loss = Loss(peak(25))
    p, significance = Discovery(calculator(loss), POI(loss["signals"], 0)).result()
    assert significance == pytest.approx(SIGNIFICANCE, abs=1e-4)
    assert p == pytest.approx(P_VALUE, rel=1e-3)


def test_hepstats_sets_limits(hepstats):
    from hepstats.hypotests import UpperLimit
    from hepstats.hypotests.parameters import POI, POIarray

    loss = Loss(peak(10))
    points = POIarray(loss["signals"], np.linspace(0.0, 25, 20))
    p_values = UpperLimit(calculator(loss), points, POI(loss["signals"], 0)).pvalues(CLs=True)["cls"]
    assert np.interp(-np.log(0.05), -np.log(p_values[5:]), points.values[5:]) == pytest.approx(
        LIMIT, abs=0.02
    )


def test_hepstats_finds_intervals(hepstats):
    from hepstats.hypotests import ConfidenceInterval
    from hepstats.hypotests.parameters import POIarray

    loss = Loss(peak(80, floating=True))
    bands = ConfidenceInterval(
        calculator(loss), POIarray(loss["mean"], np.linspace(1.15, 1.26, 100))
    ).interval()
    assert (bands["lower"], bands["upper"]) == pytest.approx(INTERVAL, abs=2e-5)


def test_hepstats_draws_toys(hepstats):
    from hepstats.hypotests import Discovery
    from hepstats.hypotests.parameters import POI

    plain = peak(12)
    (slope,) = (p for p in plain.parameters if p.name == "slope")
    nll = plain + mf.constraint(slope, -2.0, 0.2)
    loss = Loss(nll, seed=4)
    frequentist = calculator(loss, "FrequentistCalculator", ntoysnull=200, ntoysalt=0)
    p, _ = Discovery(frequentist, POI(loss["signals"], 0)).result()
    expected = mf.intervals.discovery(nll, "signals").p_value
    assert p == pytest.approx(expected, abs=5 * np.sqrt(expected / 200))


def test_hepstats_computes_sweights(hepstats):
    from hepstats.splot import compute_sweights

    loss = Loss(peak(80))
    minimum = Minimiser().minimize(loss)
    theirs = compute_sweights(loss.model[0], loss.data[0])
    ours = mf.sweights(loss.likelihood.model, loss.data[0].dataset, minimum.result)
    np.testing.assert_allclose(theirs[loss["signals"]], ours.weights["Gaussian"], atol=1e-3)
