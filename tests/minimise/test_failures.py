"""No failure of a minimiser is anything but a result that says so; what a likelihood lacks is named."""

import numpy as np
import pytest

import morefit as mf
from morefit.errors import BackendError
from morefit.minimise.objective import Objective
from morefit.targets.cpu.run import Cpu

X = mf.Observable("x", -5.0, 5.0)
Z = mf.Observable("z", 0.0, 1.0)
MU, SIGMA = mf.Parameter("mu", 0.0, -4.0, 4.0), mf.Parameter("sigma", 1.0, 0.1, 5.0)
COEFFICIENTS = [mf.Parameter("c1", 0.1, -1.0, 1.0), mf.Parameter("c2", 0.1, -1.0, 1.0)]
EVENTS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.9])


def bell():
    return {"x": np.random.default_rng(1).normal(0.3, 1.0, 200)}


# ------------------------------------------------------------------------- what Minuit raises


@pytest.mark.parametrize("strategy", [0, 1, 2])
@pytest.mark.parametrize("event", [4.9, -4.0, 0.5])
def test_issue_a_hessian_that_is_not_positive_definite_at_the_start_is_no_exception(event, strategy):
    # this used to be TypeError: 'NoneType' object is not callable, from inside iminuit
    found = mf.fit(mf.Polynomial(X, COEFFICIENTS), {"x": [event]}, strategy=strategy, minimiser="minuit")
    assert not found.valid
    assert found.reasons
    assert all(np.isfinite(list(found.values.values())))


def test_issue_a_toy_that_breaks_minuit_does_not_end_a_study():
    # this used to end the study with iminuit's TypeError
    toys = mf.toy_study(
        mf.Polynomial(X, COEFFICIENTS), toys=5, events=1, seed=1, progress=False, backend=Cpu(threads=1)
    )
    assert len(toys) == 5
    assert not toys.valid.any()


@pytest.mark.parametrize("error", [TypeError, FloatingPointError, np.linalg.LinAlgError, OverflowError])
def test_whatever_is_raised_on_the_way_is_a_reason(error, monkeypatch):
    plain, calls = Objective.gradient, []

    def broken(self, x):
        calls.append(x)
        if len(calls) > 3:  # also when it is tried again
            raise error("by a test")
        return plain(self, x)

    monkeypatch.setattr(Objective, "gradient", broken)
    found = mf.fit(mf.Gaussian(X, MU, SIGMA), bell(), start={"mu": 3.0}, minimiser="minuit")
    assert not found.valid
    assert found.reasons[0] == f"Minuit failed with {error.__name__}: by a test"
    assert found.nll < mf.Likelihood(mf.Gaussian(X, MU, SIGMA), bell()).value([3.0, 1.0])


@pytest.mark.parametrize(
    ("minimiser", "owner", "name"),
    [("minuit", Objective, "gradient"), ("newton", Cpu, "fit_whole"), ("auto", Cpu, "fit_whole")],
)
def test_a_device_that_fails_is_not_a_fit_that_fails(minimiser, owner, name, monkeypatch):
    def broken(*_):
        raise BackendError("backend 'opencl': by a test")

    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(BackendError, match="by a test"):
        mf.fit(mf.Gaussian(X, MU, SIGMA), bell(), minimiser=minimiser, backend=Cpu(threads=1))


def test_what_minos_raises_is_a_reason(monkeypatch):
    import iminuit

    def broken(self, *names, **options):
        raise RuntimeError("by a test")

    monkeypatch.setattr(iminuit.Minuit, "minos", broken)
    found = mf.fit(mf.Gaussian(X, MU, SIGMA), bell(), minos=True, minimiser="minuit")
    assert not found.valid
    assert found.minos == {}
    assert found.reasons == ("Minuit failed with RuntimeError: by a test",)


def hostile_models():
    a, b = mf.Parameter("a", 1.0, -5.0, 5.0), mf.Parameter("b", 0.5, -5.0, 5.0)
    step = mf.Density(mf.where(X < MU, 1.0, 2.0), [X], integral=(MU + 5) + 2 * (5 - MU))
    return {
        "no effect": mf.Density(1 + 0 * a, [X]),
        "difference": mf.Gaussian(X, a - b, SIGMA),
        "ratio": mf.Gaussian(X, a / b, SIGMA),
        "same twice": mf.Sum([mf.Gaussian(X, MU, SIGMA)] * 2, fractions=[mf.Parameter("f", 0.3, 0.0, 1.0)]),
        "step": step,
        "root": mf.Density(
            np.sqrt(a) * np.exp(-0.5 * X**2) + 0.1, [X], integral=2.5 * np.sqrt(a) + 1, check=False
        ),
        "logarithm": mf.Density(np.exp(-0.5 * ((X - np.log(a)) / SIGMA) ** 2), [X], integral=2.5 * SIGMA),
        "pole": mf.Gaussian(X, 1 / a, SIGMA),
        "overflow": mf.Density(np.exp(50 * a * X**2), [X], integral=1, check=False),
        "saddle": mf.Density(1 + a**2 * X**2, [X], integral=10 + a**2 * 250 / 3),
        "square": mf.Gaussian(X, -(a**2), SIGMA),
        "few for many": mf.Polynomial(X, [mf.Parameter(f"c{k}", 0.01, -2.0, 2.0) for k in range(4)]),
        "no lower limit": mf.Gaussian(X, mf.Parameter("mu", 0.0), mf.Parameter("sigma", 1.0)),
    }


@pytest.mark.parametrize(
    "how",
    [{}, {"minimiser": "minuit"}, {"minimiser": "minuit", "strategy": 1}, {"minimiser": "newton"}],
    ids=str,
)
@pytest.mark.parametrize("events", [1, 3, 200])
@pytest.mark.parametrize("name", hostile_models())
def test_hostile_fits_end_in_results_that_are_valid_with_errors_or_say_why_not(name, events, how):
    data = {"x": np.random.default_rng(3).normal(0.3, 1.0, events)}
    found = mf.fit(hostile_models()[name], data, **how)
    assert found.valid is not bool(found.reasons)
    assert all(np.isfinite(list(found.values.values())))
    for n, (low, high) in found.limits.items():
        assert low <= found.values[n] <= high
    if found.valid:
        assert all(np.isfinite(error) == (n not in found.undetermined) for n, error in found.errors.items())
        assert not found.undetermined or found.at_limit
    assert str(found)
    assert found._repr_html_()


# ------------------------------------------------------------------------- derivatives that do not exist


def test_issue_the_event_and_the_parameter_without_a_derivative_are_named():
    # this used to be "the likelihood is not finite at the start values"
    kink = mf.Density(np.sqrt(abs(mf.Parameter("p", 0.5, 0.0, 5.0) - Z)) + 1, [Z], integral=1, check=False)
    rule = r"fit: at the start values the derivative by 'p' does not exist for event 4 \(z = 0\.5\)"
    with pytest.raises(mf.FitError, match=rule + "; change them, the model or the range"):
        mf.fit(kink, {"z": EVENTS})


def test_how_many_other_events_have_no_derivative_is_said():
    kink = mf.Density(np.sqrt(abs(mf.Parameter("p", 0.5, 0.0, 5.0) - Z)) + 1, [Z], integral=1, check=False)
    with pytest.raises(mf.FitError, match=r"event 4 \(z = 0\.5\) nor for 2 others"):
        mf.fit(kink, {"z": np.array([*EVENTS, 0.5, 0.5])})


def test_the_part_of_a_sum_of_likelihoods_is_found_too():
    p = mf.Parameter("p", 0.5, 0.0, 5.0)
    good = mf.Likelihood(mf.Density(1 + p * Z, [Z], integral=1 + p / 2), {"z": EVENTS})
    bad = mf.Likelihood(mf.Density(np.sqrt(abs(p - Z)) + 1, [Z], integral=1, check=False), {"z": EVENTS})
    with pytest.raises(mf.FitError, match=r"the derivative by 'p' does not exist for event 4 \(z = 0\.5\)"):
        mf.fit(good + bad)


def test_a_minimum_without_second_derivatives_says_where():
    p = mf.Parameter("p", 0.0, -1.0, 1.0)
    found = mf.fit(
        mf.Density(np.exp(-(abs(p) ** 1.5) * (1 + Z)), [Z], integral=1, check=False), {"z": EVENTS}
    )
    assert found.reasons[-1] == (
        "at the minimum the second derivative by 'p' does not exist for event 0 (z = 0) nor for 5 others"
    )


# ------------------------------------------------------------------------- no events at all


def counting(free_shape=False):
    peak = mf.Gaussian(X, MU, SIGMA) if free_shape else mf.Gaussian(X, 0.0, 1.0)
    yields = [mf.Parameter("ns", 3.0, 0.0, 100.0), mf.Parameter("nb", 5.0, 0.0, 100.0)]
    return mf.Sum([peak, mf.Uniform(X)], yields=yields)


@pytest.mark.parametrize("minimiser", ["minuit", "newton"])
def test_issue_no_events_are_a_measurement_of_yields(minimiser):
    # this used to be refused, so that there was no limit for zero observed events
    found = mf.fit(counting(), {"x": []}, minimiser=minimiser)
    assert found.valid
    assert found.values == {"ns": 0.0, "nb": 0.0}
    assert found.at_limit == ("ns", "nb")
    assert found.errors["ns"] == pytest.approx(0.5)
    assert found.nll == 0.0


def test_no_events_do_not_determine_a_shape():
    found = mf.fit(counting(free_shape=True), {"x": []})
    assert found.valid  # for the yields
    assert found.undetermined == ("mu", "sigma")
    assert "fit valid but for mu, sigma, UNDETERMINED" in str(found)


def test_no_events_may_be_a_part_of_a_sum_of_likelihoods():
    parts = [mf.Likelihood(counting(), {"x": x}) for x in ([], [0.1, 3.0, -2.0])]
    found = mf.fit(parts[0] + parts[1])
    assert found.values["ns"] + found.values["nb"] == pytest.approx(1.5, abs=1e-2)


def test_many_datasets_may_have_some_without_events():
    found = mf.fit_many(counting(), [{"x": []}, {"x": [0.1, 0.2]}])
    assert found.valid.all()
    np.testing.assert_array_equal(found.values[0], 0.0)


# ------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": {"mu": "a"}}, "parameter 'mu': start must be a number, got 'a'"),
        ({"start": [1.0]}, "fit: start must map names of parameters to numbers, got list"),
        ({"limits": {"mu": 5}}, r"parameter 'mu': limits must be \(low, high\), got 5"),
        ({"limits": {"mu": (3, "b")}}, "parameter 'mu': high must be a number, got 'b'"),
        ({"limits": {"mu": (1, 1)}}, r"parameter 'mu': low must be below high, got 1 and 1"),
        ({"fixed": 5}, "fit: fixed must be names of parameters, or map them to values, got 5"),
        ({"fixed": {"mu": "x"}}, "parameter 'mu': fixed value must be a finite number, got 'x'"),
        ({"fixed": {"mu": np.nan}}, "parameter 'mu': fixed value must be a finite number, got nan"),
        ({"strategy": 7}, "fit: strategy must be 0, 1 or 2, got 7"),
        ({"tolerance": -1}, "fit: tolerance must be a positive number, got -1"),
        ({"tolerance": "x"}, "fit: tolerance must be a positive number, got 'x'"),
        ({"max_calls": 0}, "fit: max_calls must be a positive whole number or None, got 0"),
        ({"minos": 5}, "fit: minos must be True, False or names of parameters, got 5"),
    ],
)
def test_wrong_arguments_are_answered_in_words(arguments, message):
    # these used to be iminuit's and Python's own errors
    with pytest.raises(mf.OptionError, match=message):
        mf.fit(mf.Gaussian(X, MU, SIGMA), bell(), **arguments)


def test_none_is_an_open_limit():
    found = mf.fit(mf.Gaussian(X, MU, SIGMA), bell(), limits={"mu": (None, 3.0)})
    assert found.limits["mu"] == (-np.inf, 3.0)


@pytest.mark.parametrize("count", [21, 101])
def test_issue_a_minimum_at_the_kink_of_an_event_is_valid(count):
    """The median of few events used to be NOT VALID: the slopes of the nll jump there, so that none is zero."""
    x = mf.Observable("x", -10.0, 10.0)
    model = mf.shapes.Laplace(x, mf.Parameter("m", 0.3, -5.0, 5.0), mf.Parameter("b", 1.0, 0.1, 5.0))
    data = mf.generate(model, count, seed=1)
    result = mf.fit(model, data)
    assert result.valid
    assert result.values["m"] == pytest.approx(np.median(data["x"]), abs=1e-3 * result.errors["m"])


def test_a_valid_minimum_between_kinks_says_where_the_likelihood_is_lower():
    """A cusp at every event makes as many minima: a fit used to be valid in one of them without a word."""
    x, mu = mf.Observable("x", -10, 10), mf.Parameter("mu", 0.3, -5, 5)
    events = np.random.default_rng(1).laplace(0, 1, 400)
    area = np.log((10.05 - mu) / 0.05) + np.log((10.05 + mu) / 0.05)
    nll = mf.Likelihood(mf.Density(1 / (0.05 + abs(x - mu)), [x], integral=area), {"x": events})
    result = mf.fit(nll)
    around = result.values["mu"] + 3 * result.errors["mu"] * np.linspace(-1, 1, 60)
    lower = result.nll - min(nll.value([place]) for place in around)
    assert lower > 0.03
    assert f"this is a local minimum: the nll is lower by {lower:.2g} at mu = " in result.notes[0]
