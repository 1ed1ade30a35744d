"""Errors of weighted fits are what they are called, for every kind of likelihood, and weights are checked."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
from morefit.minimise import covariance
from morefit.minimise.batch import Fits
from morefit.minimise.fit import REPLICAS
from morefit.minimise.replicas import Replicas
from tolerances import (
    EXACT_ERRORS,
    FEW_ROUNDINGS,
    NUMPY_SUM,
    PULL_SIGMAS,
    RECORDED_ERROR,
    REPEATED,
    SAME_MINIMUM,
    TOTAL_YIELD,
)

M = mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
FSIG, ALPHA = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
S, B = mf.Parameter("s", 600.0, 0.0, 1e5), mf.Parameter("b", 1400.0, 0.0, 1e5)
EVENTS = 2000


def mass():
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], fractions=[FSIG])


def extended(yields=(S, B)):
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], yields=yields)


@pytest.fixture(scope="module")
def data():
    return mf.generate(mass(), EVENTS, seed=7)


@pytest.fixture(scope="module")
def weights():
    """Weights of both signs, which add up to about 2000."""
    rng = np.random.default_rng(5)
    return np.where(rng.random(EVENTS) < 0.1, -0.4, rng.uniform(0.2, 2.0, EVENTS))


def point(likelihood, found):
    return np.array([found.values[p.name] for p in likelihood.parameters])


def matrices(likelihood, found):
    """Return Hessian and Fisher sums of the parameters that floated, at the minimum."""
    x = point(likelihood, found)
    rows = [[p.name for p in likelihood.parameters].index(n) for n in found.floating]
    return likelihood.hessian(x)[np.ix_(rows, rows)], likelihood.fisher(x)[np.ix_(rows, rows)]


def sandwiched(hessian, middle):
    inverse = np.linalg.inv(hessian)
    return inverse @ middle @ inverse


def assert_same(one, other, tolerance=EXACT_ERRORS):
    """Compare two covariances in units of the errors."""
    errors = np.sqrt(np.diag(other))
    np.testing.assert_allclose(
        one / errors / errors[:, None], other / errors / errors[:, None], atol=tolerance
    )


# ------------------------------------------------------------------------- which errors


def test_errors_are_naive_without_weights_and_the_sandwich_with(data, weights):
    assert mf.fit(mass(), data).errors_from == "naive"
    assert mf.fit(mass(), data, weights=weights).errors_from == "sandwich"
    assert mf.fit(mass(), data, weights=weights, errors="naive").errors_from == "naive"


def test_a_sum_with_one_weighted_part_has_sandwich_errors(data, weights):
    both = mf.Likelihood(mass(), data) + mf.Likelihood(mass(), data, weights=weights)
    assert mf.fit(both).errors_from == "sandwich"


def test_naive_errors_are_the_inverse_hessian(data, weights):
    likelihood = mf.Likelihood(mass(), data, weights=weights)
    found = mf.fit(likelihood, errors="naive")
    hessian, _ = matrices(likelihood, found)
    assert_same(found.covariance, np.linalg.inv(hessian))


@pytest.mark.parametrize("model", [mass(), extended()], ids=["fractions", "yields"])
def test_sandwich_is_made_of_hessian_and_squared_scores(model, data, weights):
    likelihood = mf.Likelihood(model, data, weights=weights)
    found = mf.fit(likelihood)
    assert found.valid
    assert_same(found.covariance, sandwiched(*matrices(likelihood, found)))


@pytest.mark.parametrize("model", [mass(), extended()], ids=["fractions", "yields"])
def test_sumw2_is_made_of_the_hessian_of_squared_weights(model, data, weights):
    likelihood, squared = (mf.Likelihood(model, data, weights=w) for w in (weights, weights**2))
    found = mf.fit(likelihood, errors="sumw2")
    expected = sandwiched(likelihood.hessian(x := point(likelihood, found)), squared.hessian(x))
    assert_same(found.covariance, expected)


def test_sumw2_leaves_a_yield_that_is_not_linear_where_it_is(data):
    """With all weights 3 the Hessian of squared weights is three times the other, whatever the yields are."""
    logs = [mf.Parameter("logs", np.log(1800.0)), mf.Parameter("logb", np.log(4200.0))]
    model = extended([np.exp(p) for p in logs])
    weights = np.full(EVENTS, 3.0)
    naive, squared = (mf.fit(model, data, weights=weights, errors=e) for e in ("naive", "sumw2"))
    assert_same(squared.covariance, 3 * naive.covariance)


def test_sumw2_without_weights_is_naive(data):
    naive, squared = (mf.fit(extended(), data, errors=e) for e in ("naive", "sumw2"))
    assert_same(squared.covariance, naive.covariance)


def test_sandwich_without_weights_is_close_to_naive(data):
    naive, robust = (mf.fit(mass(), data, errors=e) for e in ("naive", "sandwich"))
    assert robust.errors_from == "sandwich"
    for name in naive.floating:
        assert robust.errors[name] == pytest.approx(naive.errors[name], rel=0.1)
        assert robust.errors[name] != naive.errors[name]


def test_weights_of_one_give_the_sandwich_of_no_weights(data):
    one = mf.fit(extended(), data, weights=np.ones(EVENTS))
    none = mf.fit(extended(), data, errors="sandwich")
    assert_same(one.covariance, none.covariance, REPEATED)


def test_variances_below_zero_make_a_fit_invalid():
    """The Hessian of squared weights need not be positive: here heavy events lie close to the mean."""
    x = mf.Observable("x", -20.0, 20.0)
    model = mf.Gaussian(x, 0.0, mf.Parameter("width", 0.7, 0.1, 5.0))
    rng = np.random.default_rng(1)
    events = np.concatenate([0.1 * rng.choice([-1, 1], 10), 1.0 * rng.choice([-1, 1], 100)])
    weights = np.repeat([10.0, 1.0], [10, 100])
    assert mf.fit(model, events, weights=weights).valid
    found = mf.fit(model, events, weights=weights, errors="sumw2")
    assert not found.valid
    assert np.isnan(found.errors["width"])
    assert found.reasons == ("the sumw2 covariance has variances that are not positive",)


# ------------------------------------------------------------------------- extended


@pytest.mark.parametrize("errors", ["sandwich", "sumw2"])
def test_the_variance_of_the_total_yield_is_the_sum_of_squared_weights(data, weights, errors):
    found = mf.fit(extended(), data, weights=weights, errors=errors, tolerance=1e-4)
    total = found.values["s"] + found.values["b"]
    assert total == pytest.approx(weights.sum(), rel=TOTAL_YIELD)
    assert found.covariance_of("s", "b").sum() == pytest.approx(np.sum(weights**2), rel=TOTAL_YIELD)


def test_the_naive_variance_of_the_total_yield_is_the_sum_of_weights(data, weights):
    found = mf.fit(extended(), data, weights=weights, errors="naive", tolerance=1e-4)
    assert found.covariance_of("s", "b").sum() == pytest.approx(weights.sum(), rel=TOTAL_YIELD)


# ------------------------------------------------------------------------- constraints and sums of likelihoods


def test_a_constraint_varies_with_a_weight_of_one(data, weights):
    known = [mf.constraint(MU, 5.28, 0.002), mf.constraint(SIGMA * 2, 0.12, 0.01)]
    likelihood = mf.Likelihood(mass(), data, weights=weights, constraints=known)
    found = mf.fit(likelihood)
    hessian, scores = matrices(likelihood, found)
    k = [found.floating.index(n) for n in ("mu", "sigma")]
    scores[k[0], k[0]] += 1 / 0.002**2
    scores[k[1], k[1]] += 4 / 0.01**2
    assert_same(found.covariance, sandwiched(hessian, scores))


@pytest.mark.parametrize(
    ("errors", "known"),
    [("sandwich", 0.02), ("sumw2", 0.02), ("bootstrap", 4 / np.sqrt(2 * 500))],  # of 500 replicas: 4 sigma
)
def test_a_tight_constraint_gives_its_own_error(data, weights, errors, known):
    # this used to be nearly zero: the constraint was in H, but not in C
    likelihood = mf.Likelihood(mass(), data, weights=weights, constraints=[mf.constraint(MU, 5.28, 1e-4)])
    assert mf.fit(likelihood, errors=errors).errors["mu"] == pytest.approx(1e-4, rel=known)


def test_a_sum_of_likelihoods_adds_up_what_its_parts_say(data, weights):
    shift = mf.Parameter("shift", 0.0, -0.1, 0.1)
    other = mf.Sum([mf.Gaussian(M, MU + shift, SIGMA), mf.Exponential(M, ALPHA)], yields=[S, B])
    parts = [
        mf.Likelihood(mass(), data, weights=weights),
        mf.Likelihood(other, data, constraints=[mf.constraint(shift, 0.0, 0.01)]),
    ]
    both = parts[0] + parts[1]
    found = mf.fit(both, fixed=["sigma"])
    assert "sigma" not in found.floating
    total, names = np.zeros((len(found.floating),) * 2), found.floating
    for part in parts:
        rows = [k for k, p in enumerate(part.parameters) if p.name in names]
        places = [names.index(part.parameters[k].name) for k in rows]
        total[np.ix_(places, places)] += part.fisher(point(part, found))[np.ix_(rows, rows)]
    hessian, scores = matrices(both, found)
    np.testing.assert_allclose(scores, total, rtol=NUMPY_SUM)
    scores[names.index("shift"), names.index("shift")] += 1 / 0.01**2
    assert_same(found.covariance, sandwiched(hessian, scores))


def test_splitting_a_dataset_changes_no_error(data, weights):
    first = np.arange(EVENTS) < 700
    parts = [mf.Likelihood(mass(), data[w], weights=weights[w]) for w in (first, ~first)]
    whole = mf.fit(mass(), data, weights=weights, tolerance=1e-4)
    halves = mf.fit(parts[0] + parts[1], tolerance=1e-4)
    assert_same(halves.covariance, whole.covariance, REPEATED)


# ------------------------------------------------------------------------- fixed and limited parameters


@pytest.mark.parametrize("errors", ["sandwich", "sumw2"])
def test_a_parameter_fixed_in_the_fit_is_as_one_fixed_in_the_model(data, weights, errors):
    held = mf.Parameter("sigma", 0.06, 0.005, 0.13, fixed=True)
    model = mf.Sum([mf.Gaussian(M, MU, held), mf.Exponential(M, ALPHA)], fractions=[FSIG])
    one = mf.fit(mass(), data, weights=weights, fixed={"sigma": 0.06}, errors=errors, tolerance=1e-4)
    other = mf.fit(model, data, weights=weights, errors=errors, tolerance=1e-4)
    assert one.errors["sigma"] == 0.0
    order = [one.floating.index(n) for n in other.floating]
    assert_same(one.covariance[np.ix_(order, order)], other.covariance, REPEATED)


def test_limits_that_are_not_met_change_no_error(data, weights):
    wide = dict.fromkeys(("mu", "fsig", "alpha"), (-np.inf, np.inf)) | {"sigma": (1e-9, np.inf)}
    limited = mf.fit(mass(), data, weights=weights, tolerance=1e-4)
    free = mf.fit(mass(), data, weights=weights, limits=wide, tolerance=1e-4)
    assert_same(limited.covariance, free.covariance, REPEATED)


@pytest.mark.parametrize("minimiser", ["minuit", "newton"])
def test_a_parameter_at_its_limit_leaves_the_others_their_errors(data, weights, minimiser):
    found = mf.fit(
        mass(), data, weights=weights, limits={"fsig": (0.5, 1.0)}, start={"fsig": 0.6}, minimiser=minimiser
    )
    assert found.at_limit == ("fsig",)
    likelihood = mf.Likelihood(mass(), data, weights=weights)
    hessian, scores = matrices(likelihood, found)
    assert np.linalg.eigvalsh(hessian).min() > 0
    assert_same(found.covariance, sandwiched(hessian, scores))


def test_what_a_yield_at_zero_leaves_without_effect_is_no_defect_of_the_rest(data):
    # this used to be not valid: "the sandwich covariance has variances that are not positive"
    away = np.abs(data["m"] - 6.0) > 0.2
    gap = mf.Sum([mf.Gaussian(M, mf.Parameter("place", 6.0, 5.9, 6.1), 0.05), mass()], yields=[S, B])
    found = mf.fit(gap, {"m": data["m"][away]}, weights=np.full(away.sum(), 1.5))
    assert found.valid and found.at_limit == ("s",) and found.undetermined == ("place",)
    assert found.errors["b"] == pytest.approx(1.5 * np.sqrt(away.sum()), rel=EXACT_ERRORS)


def test_a_variance_that_is_not_of_the_hessian_stays_out_of_the_sandwich():
    """The Hessian is positive definite only without the last parameter, which has a variance of its own."""
    hessian = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, -1.0]])
    inverse = np.linalg.inv(hessian[:2, :2])
    given = np.zeros((3, 3))
    given[:2, :2], given[2, 2] = inverse, 0.25
    kept, own = covariance.split_fixed(given, hessian)
    np.testing.assert_allclose(kept[:2, :2], inverse)
    np.testing.assert_array_equal(own, np.diag([0, 0, 0.25]))
    assert not kept[2].any() and not kept[:, 2].any()
    everything, nothing = covariance.split_fixed(np.linalg.inv(np.abs(hessian)), np.abs(hessian))
    np.testing.assert_array_equal(everything, np.linalg.inv(np.abs(hessian)))
    assert not nothing.any()


# ------------------------------------------------------------------------- the bootstrap


@pytest.mark.parametrize("model", [mass(), extended()], ids=["fractions", "yields"])
def test_bootstrap_agrees_with_the_sandwich(model, data, weights):
    robust, spread = (mf.fit(model, data, weights=weights, errors=e) for e in ("sandwich", "bootstrap"))
    assert spread.valid
    assert spread.values == robust.values
    for name in robust.floating:
        ratio = spread.errors[name] / robust.errors[name]
        assert abs(ratio - 1) < PULL_SIGMAS / np.sqrt(2 * REPLICAS) + 1 / np.sqrt(EVENTS)


def test_bootstrap_of_a_sum_with_fixed_parameters(data, weights):
    both = mf.Likelihood(mass(), data) + mf.Likelihood(mass(), data, weights=weights)
    found = mf.fit(both, fixed=["alpha"], errors="bootstrap")
    assert found.valid
    assert found.errors["alpha"] == 0.0
    assert found.covariance.shape == (3, 3)
    assert set(found.seconds) == {"compile", "minimise", "hessian", "errors"}


@pytest.mark.parametrize(
    ("good", "reason"), [(449, "only 449 of 500 replicas"), (1, "only 1 of 500 replicas")]
)
def test_a_bootstrap_of_few_valid_replicas_is_not_valid(data, monkeypatch, good, reason):
    def pretend(self, count):
        fits = Fits.none(np.random.default_rng(1).normal(size=(count, 4)))
        fits.valid[:good] = True
        return fits

    monkeypatch.setattr(Replicas, "fit", pretend)
    found = mf.fit(mass(), data, errors="bootstrap")
    assert not found.valid
    assert found.reasons[0].startswith(reason)
    assert np.isfinite(found.covariance).all() == (good > 1)


def test_a_fit_that_failed_is_not_bootstrapped(data, monkeypatch):
    monkeypatch.setattr(Replicas, "fit", lambda *_: pytest.fail("was bootstrapped"))
    found = mf.fit(mass(), data, errors="bootstrap", max_calls=2, start={"mu": 5.4, "alpha": 1.0})
    assert not found.valid
    assert np.isnan(found.covariance).all()


# ------------------------------------------------------------------------- what is said, what is refused


def test_a_result_says_which_errors_it_shows(data, weights):
    naive = mf.fit(mass(), data)
    assert "errors:" not in str(naive)
    for kind in ("sandwich", "sumw2", "bootstrap"):
        found = mf.fit(mass(), data, weights=weights, errors=kind)
        assert f"\nerrors: {kind}, " in str(found)
        assert f"errors: {kind}, " in found._repr_html_()
        assert "errors" in found.seconds
        for again in (pickle.loads(pickle.dumps(found)), mf.FitResult.from_json(found.to_json())):
            assert again.errors_from == kind
            assert str(again) == str(found)


def test_a_result_knows_no_other_errors(data):
    with pytest.raises(
        mf.DataError, match=r"fit result: errors_from must be one of 'naive', .*, got 'guess'"
    ):
        replace(mf.fit(mass(), data), errors_from="guess")


def test_other_errors_are_refused(data):
    with pytest.raises(mf.OptionError, match=r"fit: errors must be one of 'auto', 'naive', .*, got 'hesse'"):
        mf.fit(mass(), data, errors="hesse")


def test_minos_is_refused_with_errors_it_knows_nothing_of(data, weights):
    with pytest.raises(
        mf.OptionError,
        match="fit: MINOS errors are not defined for errors='sandwich'; use errors='naive' or drop minos",
    ):
        mf.fit(mass(), data, weights=weights, minos=True)
    found = mf.fit(mass(), data, weights=weights, minos=["mu"], errors="naive")
    assert found.minos["mu"][1] == pytest.approx(found.errors["mu"], rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([np.nan, 1, 1], "dataset: weights: 1 of 3 weights are not finite"),
        ([0, 0, 0], "dataset: weights: all 3 are zero; there is nothing to fit"),
        ([1, -1, 0], "dataset: weights: their sum must be positive, got 0; too much is subtracted"),
        ([1, -1, -2], "dataset: weights: their sum must be positive, got -2"),
        ([1e308, 1e308, 1], "dataset: weights: their sum must be positive, got inf"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_weights_that_cannot_be_fitted_are_refused(wrong, message):
    with pytest.raises(mf.DataError, match=message):
        mf.fit(mass(), {"m": [5.2, 5.3, 6.0]}, weights=wrong)


def test_weights_of_every_part_are_checked(data):
    bad = mf.Likelihood(mass(), {"m": [5.2, 5.3]}, weights=[1.0, -2.0])
    with pytest.raises(mf.DataError, match="their sum must be positive, got -1"):
        mf.fit(mf.Likelihood(mass(), data) + bad)


@pytest.mark.parametrize("minimiser", ["auto", "minuit"])
@pytest.mark.parametrize("scale", [1e-2, 1e-3, 1e-4, 1e-5])
def test_issue_the_scale_of_weights_does_not_move_a_fit(data, weights, scale, minimiser):
    """A valid fit with weights of 1e-4 used to end up to two errors from the minimum: its EDM is as small as weights are."""
    begin = {"mu": 5.4, "sigma": 0.12, "fsig": 0.6, "alpha": 0.5}
    one = mf.fit(mass(), data, weights=weights, start=begin)
    other = mf.fit(mass(), data, weights=scale * weights, start=begin, minimiser=minimiser)
    assert other.valid
    for name in one.names:
        assert other.values[name] == pytest.approx(one.values[name], abs=SAME_MINIMUM * one.errors[name])
        assert other.errors[name] == pytest.approx(one.errors[name], rel=RECORDED_ERROR)


def test_a_few_weights_of_zero_leave_their_events_out(data):
    weights = (np.arange(EVENTS) < 1500).astype(float)
    some = mf.fit(mass(), data, weights=weights, tolerance=1e-4)
    cut = mf.fit(mass(), data[weights > 0], errors="sandwich", tolerance=1e-4)
    for name in some.floating:
        assert some.values[name] == pytest.approx(cut.values[name], abs=REPEATED * cut.errors[name])
        assert some.errors[name] == pytest.approx(cut.errors[name], rel=REPEATED)


def test_second_derivatives_of_terms_without_events():
    known = [mf.constraint(MU * SIGMA, 0.3, 0.1), 0.5 * np.exp(ALPHA)]
    likelihood = mf.Likelihood(mass(), {"m": [5.3]}, constraints=known)
    names = [p.name for p in likelihood.all_parameters]
    full = np.array([[p.start for p in likelihood.all_parameters]] * 2)
    full[1, names.index("mu")] = 5.5
    found = likelihood.hessian_of(likelihood.constraint_terms, full)
    a, b, c = names.index("mu"), names.index("sigma"), names.index("alpha")
    for k, mu in enumerate((5.28, 5.5)):
        assert found[k, a, a] == pytest.approx(0.06**2 / 0.01, rel=1e-12)
        assert found[k, a, b] == found[k, b, a] == pytest.approx((2 * mu * 0.06 - 0.3) / 0.01, rel=1e-12)
        assert found[k, c, c] == pytest.approx(0.5 * np.exp(-1), rel=FEW_ROUNDINGS)
        assert found[k, a, c] == 0.0


@pytest.mark.parametrize("scan", ["profile", "contour"])
def test_levels_of_a_weighted_likelihood_come_with_a_warning(scan, data, weights):
    nll = mf.Likelihood(mass(), data.with_weights(weights))
    names = (MU, SIGMA)[: 1 + (scan == "contour")]
    with pytest.warns(
        UserWarning, match=f"{scan}: events have weights, so that the levels of the likelihood are no prob"
    ):
        getattr(mf.intervals, scan)(nll, *names, size=3, progress=False)


def test_counts_and_points_have_variances_of_their_own(data, weights):
    """Squares of the scores of a few bins used to stand for their variances, and errors were half as large."""
    binned = mf.BinnedLikelihood(extended(), np.histogram(data["m"], 20, (5, 7)))
    points = mf.LeastSquares(lambda x: MU * x, [1.0, 2.0], [5.2, 10.7], 0.01)
    for nll in (binned, points, binned + points):
        plain, robust = mf.fit(nll), mf.fit(nll, errors="sandwich")
        np.testing.assert_allclose(robust.covariance, plain.covariance, rtol=1e-9)
    alpha = mf.Parameter("other", -1.0, -5.0, 5.0)
    events = mf.Likelihood(mf.Exponential(M, alpha), data, weights=weights)
    both = mf.fit(binned + events)
    assert both.errors_from == "sandwich"
    assert both.errors["s"] == pytest.approx(mf.fit(binned).errors["s"], rel=1e-3)
    assert both.errors["other"] == pytest.approx(mf.fit(events).errors["other"], rel=1e-3)
