"""Choices between densities are decided by fits, with a penalty for each parameter, and profiled by the envelope."""

import pickle

import numpy as np
import pytest

import morefit as mf

X = mf.Observable("x", 0, 10)
MU, F = mf.Parameter("mu", 5.0, 3, 7), mf.Parameter("f", 0.3, 0, 1)
G = mf.Parameter("g", 0.5, 0.1, 1)
SLOPE = mf.Parameter("slope", -0.3, -2, 1)
LINEAR, EXPONENTIAL = mf.Polynomial(X, [mf.Parameter("a", -0.05, -0.1, 1)]), mf.Exponential(X, SLOPE)
PEAK = mf.Gaussian(X, MU, 0.5)
BACKGROUND = mf.Choice("background", {"linear": LINEAR, "exponential": EXPONENTIAL})
MODEL = mf.Sum([PEAK, BACKGROUND], fractions=[F])
STEEP = mf.Sum([PEAK, EXPONENTIAL], fractions=[F])
STRAIGHT = mf.Sum([PEAK, LINEAR], fractions=[F])
DATA = mf.generate(STEEP, 2000, seed=3)


def test_a_fit_takes_the_lowest_nll():
    result = mf.fit(MODEL, DATA)
    one, other = mf.fit(STRAIGHT, DATA), mf.fit(STEEP, DATA)
    assert dict(result.choices) == {"background": "exponential"}
    assert result.nll == other.nll < one.nll
    assert dict(result.values) == dict(other.values)
    assert dict(result.alternatives) == pytest.approx(
        {"linear": one.nll + 0.5, "exponential": other.nll + 0.5}
    )
    assert "choice 'background': exponential" in str(result)
    again = mf.FitResult.from_json(result.to_json())
    assert again.choices == result.choices or dict(again.choices) == dict(result.choices)


def test_parameters_that_help_too_little_are_not_taken():
    more = mf.Density(np.exp(SLOPE * X) * (1 + mf.Parameter("extra", 0.01, -0.05, 1) * X), X)
    for penalty, label in ((10.0, "plain"), (0.0, "rich")):
        choice = mf.Choice("tail", {"plain": EXPONENTIAL, "rich": more}, penalty=penalty)
        result = mf.fit(mf.Sum([PEAK, choice], fractions=[F]), DATA)
        assert result.choices["tail"] == label


def test_options_may_name_parameters_of_one_density_only():
    result = mf.fit(
        MODEL, DATA, start={"a": 0.0}, limits={"slope": (-1, 0)}, fixed=["mu"], minos=["f", "slope"]
    )
    assert "mu" not in result.floating and set(result.minos) == {"f", "slope"}
    with pytest.raises(mf.FitError, match="parameter 'slop': not in the model; did you mean 'slope'"):
        mf.fit(MODEL, DATA, start={"slop": 0.0})


def test_profiles_are_envelopes():
    points = np.linspace(0.2, 0.4, 5)
    scan = mf.intervals.profile(MODEL, "f", points, data=DATA, progress=False)
    each = [mf.intervals.profile(m, "f", points, data=DATA, progress=False) for m in (STRAIGHT, STEEP)]
    np.testing.assert_allclose(scan.nll, np.min([one.nll for one in each], axis=0) + 0.5, atol=1e-4)
    assert scan.minimum == pytest.approx(min(one.minimum for one in each) + 0.5, abs=1e-4)
    assert set(scan.choices) <= {"linear", "exponential"} and len(scan.choices) == 5
    assert scan.names == ("mu", "a", "slope")
    low, high = mf.intervals.profile(MODEL, F, data=DATA, progress=False).interval()
    assert low < mf.fit(MODEL, DATA).values["f"] < high


def test_profiles_keep_what_the_best_fit_had_fixed():
    best = mf.fit(MODEL, DATA, fixed={"mu": 5.1})
    scan = mf.intervals.profile(MODEL, "f", [0.3, 0.35], data=DATA, best=best, progress=False)
    assert scan.names == ("a", "slope")


def test_profiles_need_a_valid_fit():
    hopeless = mf.Choice("shape", {"one": mf.Density(F + G, X), "two": mf.Density(F * G, X)})
    with pytest.raises(
        mf.FitError, match="profile: no density of the choices has a valid fit; change start values"
    ):
        mf.intervals.profile(hopeless, "f", [0.4], data=DATA, progress=False)


def test_a_choice_is_decided_by_hand():
    for model in (MODEL.choose({"background": "exponential"}), MODEL.replace({"background": EXPONENTIAL})):
        np.testing.assert_allclose(model.pdf(DATA), STEEP.pdf(DATA))
    moved = MODEL.replace({"mu": 4.0}).choose({"background": "exponential"})
    assert [p.name for p in moved.parameters] == ["slope", "f"]
    assert MODEL.choose({}).pdfs[1] is not None


def test_two_choices_are_decided_together():
    peak = mf.Choice("peak", {"narrow": PEAK, "wide": mf.Gaussian(X, MU, 2.0)})
    result = mf.fit(mf.Sum([peak, BACKGROUND], fractions=[F]), DATA)
    assert dict(result.choices) == {"peak": "narrow", "background": "exponential"}
    assert list(result.alternatives) == [
        "narrow, linear",
        "narrow, exponential",
        "wide, linear",
        "wide, exponential",
    ]


def test_choices_of_categories_are_decided_together():
    # this used to be refused where models are put together by label
    other = mf.Choice("other", {"linear": LINEAR, "exponential": EXPONENTIAL})
    models = {"up": MODEL, "down": mf.Sum([PEAK, other], fractions=[G])}
    model, data = mf.Simultaneous(models, "polarity"), {"up": DATA, "down": DATA}
    result = mf.fit(model, data, fixed={"mu": 5.0})
    assert dict(result.choices) == {"background": "exponential", "other": "exponential"}
    by_hand = mf.fit(model.choose(result.choices), data, fixed={"mu": 5.0})
    assert result.values == by_hand.values
    assert min(result.alternatives.values()) == result.nll + 0.5 + 0.5  # two choices, each with the slope
    assert "background = exponential" in str(model)
    scan = mf.intervals.profile(model, F, data=data, best=result, size=5, progress=False)
    np.testing.assert_allclose(scan.nll.min(), min(result.alternatives.values()), atol=1e-3)
    for use in (lambda: mf.Likelihood(model, data), lambda: mf.generate(model, {"up": 3, "down": 4})):
        with pytest.raises(
            mf.ModelError, match=r"choice 'background': is not decided; pass the model to mf\.fit"
        ):
            use()


def test_what_is_not_decided_is_printed_and_travels():
    again = pickle.loads(pickle.dumps(MODEL))
    assert "background" in str(again) and "Choice" in repr(again)
    assert "Choice" in BACKGROUND._repr_latex_()


def test_what_is_not_decided_has_no_density():
    why = r"choice 'background': is not decided; pass the model to mf.fit or mf.intervals.profile with its data, or decide"
    for use in (
        lambda: MODEL.pdf([1.0]),
        lambda: mf.generate(MODEL, 10, seed=1),
        lambda: mf.Likelihood(MODEL, DATA),
        lambda: mf.toy_study(MODEL, toys=2, events=10, seed=1),
        lambda: mf.plot(MODEL, DATA),
        lambda: mf.explain(MODEL, DATA),
        lambda: mf.intervals.contour(MODEL, "mu", "f", data=DATA),
    ):
        with pytest.raises(mf.ModelError, match=why):
            use()


def test_wrong_choices_are_refused():
    with pytest.raises(
        mf.ModelError, match=r"choice 'c': takes densities by label, as in \{'linear': pdf, ...\}, got"
    ):
        mf.Choice("c", [PEAK, LINEAR])
    with pytest.raises(mf.ModelError, match="choice 'c': needs at least two densities, got 1"):
        mf.Choice("c", {"a": PEAK})
    with pytest.raises(mf.ModelError, match="choice 'c': takes densities, got 3"):
        mf.Choice("c", {"a": PEAK, "b": 3})
    with pytest.raises(mf.ModelError, match="choice 'c': penalty must be zero or positive, got -1"):
        mf.Choice("c", {"a": PEAK, "b": LINEAR}, penalty=-1)
    other = mf.Gaussian(mf.Observable("y", 0, 1), MU, 1.0)
    with pytest.raises(mf.ModelError, match="choice 'c': its densities must share their observables"):
        mf.Choice("c", {"a": PEAK, "b": other})
    with pytest.raises(
        mf.ModelError, match="choice 'background': has no density 'linea'; did you mean 'linear'"
    ):
        MODEL.choose({"background": "linea"})
    with pytest.raises(
        mf.ModelError, match="choice 'backgrund': not in the model; did you mean 'background'"
    ):
        MODEL.choose({"backgrund": "linear"})
    twin = mf.Choice("background", {"linear": LINEAR, "exponential": EXPONENTIAL})
    with pytest.raises(
        mf.ModelError, match="choice 'background': two different ones share this name; rename one"
    ):
        mf.fit(mf.Sum([twin, BACKGROUND], fractions=[F]), DATA)
