"""Constraints: what they add to a likelihood, what toys measure, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.cli import mass_model
from morefit.intervals import bootstrap, feldman_cousins, neyman_belt, profile
from tolerances import FEW_ROUNDINGS, NUMPY_SUM, SAME_MINIMUM

X = mf.Observable("x", -5.0, 5.0)
MU = mf.Parameter("mu", 0.3, -3.0, 3.0)
SIGMA = mf.Parameter("sigma", 1.1, 0.1, 5.0)
MODEL = mf.Gaussian(X, MU, SIGMA)
DATA = mf.generate(MODEL, 60, seed=1)
TOYS = np.arange(4000)
KNOWN = pickle.dumps(mf.constraint(SIGMA, 1.2, 0.1))


def added(constraint, **values):
    """Return what a constraint adds to minus the log likelihood of the data."""
    plain, bound = mf.Likelihood(MODEL, DATA), mf.Likelihood(MODEL, DATA, constraints=[constraint])
    own = {n: v for n, v in values.items() if n in ("mu", "sigma")}
    return bound.value(values) - plain.value(own)


# ------------------------------------------------------------------------------------ what they add


def test_a_gaussian_adds_half_the_squared_deviation():
    here = {"mu": 0.5, "sigma": 1.3}
    assert added(mf.constraint(MU * SIGMA, 0.5, 0.1), **here) == pytest.approx(0.5 * 1.5**2, rel=1e-9)


def test_correlated_gaussians_add_half_the_mahalanobis_distance():
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    constraint = mf.constraint([MU, SIGMA], [0.2, 1.0], covariance)
    away = np.array([0.5 - 0.2, 1.3 - 1.0])
    expected = 0.5 * away @ np.linalg.inv(covariance) @ away
    assert added(constraint, mu=0.5, sigma=1.3) == pytest.approx(expected, rel=1e-9)


def test_several_errors_are_a_diagonal_covariance():
    both = mf.constraint([MU, SIGMA], [0.2, 1.0], [0.2, 0.3])
    one, other = mf.constraint(MU, 0.2, 0.2), mf.constraint(SIGMA, 1.0, 0.3)
    here = {"mu": 0.5, "sigma": 1.3}
    assert added(both, **here) == pytest.approx(added(one, **here) + added(other, **here), rel=1e-9)


def test_counts_and_lognormals_add_their_logarithms_up_to_a_constant():
    count, factor = (
        mf.constraint(10 * SIGMA, 14, kind="poisson"),
        mf.constraint(SIGMA, 1.2, 0.3, kind="lognormal"),
    )
    for constraint, logpdf in (
        (count, lambda s: stats.poisson.logpmf(14, 10 * s)),
        (factor, lambda s: stats.norm.logpdf(np.log(1.2), np.log(s), np.log(1.25))),
    ):
        change = added(constraint, mu=0.3, sigma=1.7) - added(constraint, mu=0.3, sigma=0.9)
        assert change == pytest.approx(logpdf(0.9) - logpdf(1.7), rel=1e-8)


def test_a_formula_is_added_as_it_is():
    assert added(mf.constraint((MU - 1) ** 4), mu=0.5, sigma=1.3) == pytest.approx(0.5**4, rel=1e-8)
    assert added((MU - 1) ** 4, mu=0.5, sigma=1.3) == pytest.approx(0.5**4, rel=1e-8)


def test_all_ways_to_constrain_a_fit_agree():
    known = mf.constraint(MU, 0.2, 0.05)
    ways = [
        mf.fit(MODEL, DATA, constraints=[known]),
        mf.fit(MODEL, DATA, constraints=known),
        mf.fit(mf.Likelihood(MODEL, DATA), constraints=[known]),
        mf.fit(mf.Likelihood(MODEL, DATA) + known),
        mf.fit(mf.Likelihood(MODEL, DATA) + 0.5 * ((MU - 0.2) / 0.05) ** 2),
        mf.fit(mf.Likelihood(MODEL, DATA, constraints=[known])),
    ]
    for way in ways:
        for name, value in ways[0].values.items():
            assert way.values[name] == pytest.approx(value, rel=1e-9)
    precise = 1 / np.sqrt(1 / 0.05**2 + 60 / ways[0].values["sigma"] ** 2)
    assert ways[0].errors["mu"] == pytest.approx(precise, rel=0.02)


def test_a_constraint_of_two_parts_counts_once():
    known = mf.constraint(MU, 0.2, 0.05)
    both = sum(mf.Likelihood(MODEL, DATA, constraints=[known]) for _ in range(2))
    alone = mf.Likelihood(MODEL, DATA)
    here = {"mu": 0.5, "sigma": 1.3}
    assert both.value(here) == pytest.approx(2 * alone.value(here) + 0.5 * 6**2, rel=NUMPY_SUM)


def test_issue_a_formula_of_two_parts_counts_once():
    # this used to count twice
    halves, here = (DATA[:30], DATA[30:]), [0.5, 1.3]
    nll = sum(mf.Likelihood(MODEL, half, constraints=[0.5 * (SIGMA - 1.2) ** 2]) for half in halves)
    assert nll.value(here) - mf.Likelihood(MODEL, DATA).value(here) == pytest.approx(0.005, rel=1e-9)


@pytest.mark.parametrize("copy", [lambda: mf.constraint(SIGMA, 1.2, 0.1), lambda: pickle.loads(KNOWN)])
def test_issue_copies_of_a_measurement_in_a_sum_come_with_a_warning(copy):
    # this used to count twice in silence
    one, other = (mf.Likelihood(MODEL, half, constraints=[copy()]) for half in (DATA[:30], DATA[30:]))
    with pytest.warns(UserWarning, match=r"constraint\(sigma = 1.2 \+- 0.1\) is there twice, as two objects"):
        one + other


def test_issue_a_constraint_that_is_passed_twice_counts_once():
    # this used to count twice, where it was listed twice, or passed to a likelihood and to its fit
    known = mf.constraint(MU, 0.2, 0.05)
    once = mf.Likelihood(MODEL, DATA, constraints=[known])
    twice = mf.Likelihood(MODEL, DATA, constraints=[known, known])
    assert twice.value([0.5, 1.3]) == once.value([0.5, 1.3])
    assert mf.fit(once, constraints=[known]).values == mf.fit(once).values
    assert mf.fit(once + twice, constraints=known).values == mf.fit(once + twice).values


def test_other_measured_values_need_no_other_kernel():
    one, other = (mf.Likelihood(MODEL, DATA, constraints=[mf.constraint(MU, m, 0.1)]) for m in (0.1, 0.2))
    assert one.compile_request(one.request(2)) is other.compile_request(other.request(2))
    assert one.value({"mu": 0.1, "sigma": 1}) != other.value({"mu": 0.1, "sigma": 1})


def test_a_constrained_likelihood_can_be_pickled():
    nll = mf.Likelihood(MODEL, DATA, constraints=[mf.constraint(MU, 0.2, 0.05)])
    again = pickle.loads(pickle.dumps(nll))
    assert again.value({"mu": 0.5, "sigma": 1.3}) == nll.value({"mu": 0.5, "sigma": 1.3})


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (mf.constraint(MU, 0.2, 0.05), "constraint(mu = 0.2 +- 0.05)"),
        (mf.constraint([MU, SIGMA], [0.2, 1.0], [0.1, 0.1]), "constraint(mu, sigma = 0.2, 1, correlated)"),
        (mf.constraint(SIGMA, 3, kind="poisson"), "constraint(sigma = 3, a count)"),
        (mf.constraint(SIGMA, 2.0, 0.5, kind="lognormal"), "constraint(sigma = 2 times or divided by 1.25)"),
        (mf.constraint(MU**2), "constraint(mu**2)"),
    ],
)
def test_constraints_print_what_was_measured(constraint, text):
    assert repr(constraint) == text


# ------------------------------------------------------------------------------------ what toys measure

SEEN = mf.Parameter("seen", 0.25, fixed=True)
DRAWN = {
    "gaussian": (mf.constraint(2 * MU, 0.5, 0.1), stats.norm(0.6, 0.1), stats.norm(0.5, 0.1)),
    "lognormal": (
        mf.constraint(SIGMA, 1.0, 0.2, kind="lognormal"),
        stats.lognorm(np.log(1.2), scale=1.1),
        stats.lognorm(np.log(1.2), scale=1.0),
    ),
    "formula": (
        mf.constraint((MU - SEEN) ** 2, measured=SEEN, sample=lambda rng, v: rng.normal(v["mu"], 0.1)),
        stats.norm(0.3, 0.1),
        stats.norm(0.3, 0.1),
    ),
}
VALUES = {"mu": 0.3, "sigma": 1.1}


@pytest.mark.parametrize(("constraint", "at_truth", "at_data"), DRAWN.values(), ids=DRAWN)
def test_measured_values_are_drawn_around_the_truth_or_the_data(constraint, at_truth, at_data):
    for around_data, expected in ((False, at_truth), (True, at_data)):
        drawn = constraint.draw(VALUES, 7, TOYS, around_data=around_data)
        assert drawn.shape == (4000, 1)
        assert stats.kstest(drawn[:, 0], expected.cdf).pvalue > 1e-3
        some = constraint.draw(VALUES, 7, TOYS[17:20], around_data=around_data)
        np.testing.assert_array_equal(some, drawn[17:20])  # the number of a toy decides


def test_counts_are_drawn_from_poisson_distributions():
    constraint = mf.constraint(10 * SIGMA, 14, kind="poisson")
    for around_data, mean in ((False, 11.0), (True, 14.0)):
        drawn = constraint.draw(VALUES, 7, TOYS, around_data=around_data)[:, 0]
        assert drawn.mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / 4000))
        assert drawn.var() == pytest.approx(mean, rel=0.12)
        assert np.all(drawn == np.floor(drawn))


def test_correlated_values_are_drawn_with_their_covariance():
    covariance = np.array([[0.04, -0.03], [-0.03, 0.09]])
    drawn = mf.constraint([MU, SIGMA], [0.0, 1.0], covariance).draw(VALUES, 7, TOYS, around_data=False)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.3, 1.1], atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.01)


def test_generate_draws_a_whole_likelihood():
    known = mf.constraint(MU, 0.2, 0.05)
    nll = mf.Likelihood(MODEL, DATA, constraints=[known]) + mf.Likelihood(MODEL, DATA[:10])
    toy, again, other = (mf.generate(nll, truth={MU: 0.4}, seed=s) for s in (1, 1, 2))
    assert [part.events for part in toy.parts] == [60, 10]
    assert toy.parts[0].measured != 0.2
    assert toy.parts[0].measured == again.parts[0].measured != other.parts[0].measured
    np.testing.assert_array_equal(toy.parts[1].data["x"], again.parts[1].data["x"])
    assert not set(toy.parts[0].data["x"]) & set(toy.parts[1].data["x"])
    assert mf.generate(nll, seed=1, fluctuate=False).parts[0].measured == 0.2
    with pytest.raises(mf.ModelError, match="generate: a likelihood has its numbers of events already"):
        mf.generate(nll, 10)
    with pytest.raises(mf.ModelError, match="the likelihood has no parameter 'nu'; it has mu, sigma"):
        mf.generate(nll, truth={"nu": 1.0})


def test_expected_information_adds_that_of_constraints():
    plain = mf.fisher_information(MODEL, 60)
    known = mf.constraint(MU * 2, 0.9, 0.1)
    bound = mf.fisher_information(MODEL, 60, constraints=[known])
    assert bound.matrix[0, 0] - plain.matrix[0, 0] == pytest.approx(4 / 0.1**2, rel=1e-6)
    both = mf.Likelihood(MODEL, DATA, constraints=[known]) + mf.Likelihood(MODEL, DATA)
    np.testing.assert_allclose(mf.fisher_information(both).matrix, plain.matrix + bound.matrix, rtol=1e-6)
    with pytest.raises(mf.ModelError, match="a likelihood has its numbers of events already"):
        mf.fisher_information(both, 10)
    extended = mf.Sum(
        [MODEL, mf.Uniform(X)], yields=[mf.Parameter("ns", 50.0, 0, 500), mf.Parameter("nb", 20.0, 0, 500)]
    )
    expected = mf.fisher_information(extended).matrix
    np.testing.assert_array_equal(mf.fisher_information(mf.Likelihood(extended, DATA)).matrix, expected)


# ------------------------------------------------------------------------------------ what takes a likelihood


def two_parts():
    """Return the sum of the likelihoods of two datasets that share a mean and its constraint."""
    known, wide = mf.constraint(MU, 0.25, 0.1), mf.Parameter("wide", 2.0, 0.5, 4.0)
    other = mf.Gaussian(X, MU, wide)
    return mf.Likelihood(MODEL, DATA, constraints=[known]) + mf.Likelihood(
        other, mf.generate(other, 40, seed=2), constraints=[known]
    )


def test_everything_takes_a_sum_of_constrained_likelihoods():
    nll = two_parts()
    result = mf.fit(nll)
    assert result.valid and result.floating == ("mu", "sigma", "wide")
    toys = mf.toy_study(nll, toys=20, truth=result, seed=1, progress=False)
    assert toys.valid.all() and toys.events.tolist() == [100] * 20
    assert len(bootstrap(nll, replicas=20, progress=False)) == 20
    scan = feldman_cousins(nll, MU, [0.2, 0.3], toys=20, seed=1, progress=False)
    assert len(scan) == 2 and not scan.invalid.any()
    assert len(neyman_belt(nll, MU, [0.2], toys=20, seed=1, progress=False)) == 1
    assert np.isfinite(profile(nll, MU, size=5, progress=False).interval()).all()
    assert len(mf.plot(nll, "x", values=result)) == 2
    many = mf.fit_many(nll, [[part.data for part in nll.parts]] * 3)
    assert many.valid.all() and np.ptp(many.values, axis=0).max() == 0
    for j, name in enumerate(many.names):
        assert many.values[0, j] == pytest.approx(result.values[name], abs=SAME_MINIMUM * result.errors[name])
    assert nll.value(result) == pytest.approx(result.nll, rel=1e-12)


def test_a_statistic_gets_the_datasets_of_all_parts():
    seen = []
    mf.toy_study(
        two_parts(),
        toys=2,
        seed=1,
        progress=False,
        statistic=lambda data, v: seen.append(list(map(len, data))) or 1.0,
    )
    assert seen == [[60, 40], [60, 40]]


def test_a_plot_of_a_likelihood_needs_no_data_and_one_observable_no_name():
    nll = mf.Likelihood(MODEL, DATA)
    assert mf.plot(nll).numbers.counts.sum() == mf.plot(nll, "x").numbers.counts.sum() == 60
    with pytest.raises(mf.OptionError, match="plot: a likelihood has its data already"):
        mf.plot(nll, DATA)
    with pytest.raises(mf.OptionError, match="plot: ax is for one plot; a sum of likelihoods has several"):
        mf.plot(two_parts(), ax=1)


def test_toys_do_not_depend_on_the_parts_they_share_a_study_with():
    nll = two_parts()
    all_toys = mf.toy_study(nll, toys=12, seed=3, progress=False)
    some = mf.toy_study(nll, toys=12, seed=3, block=5, backend=mf.Cpu(threads=2), progress=False)
    for name in ("values", "errors", "nll"):
        assert getattr(all_toys, name).tobytes() == getattr(some, name).tobytes()


def test_the_toys_of_a_constrained_fit_are_those_of_fits_one_by_one():
    nll = two_parts()
    toys = mf.toy_study(nll, toys=3, seed=3, progress=False, statistic=lambda data, values: values["mu"])
    assert toys.statistics["statistic"] == pytest.approx(toys.values[:, 0], rel=FEW_ROUNDINGS)


def test_weighted_datasets_with_a_constraint_have_the_errors_of_fit():
    known = mf.constraint(MU, 0.2, 0.05)
    weighted = DATA.with_weights(np.linspace(0.5, 1.5, 60))
    many = mf.fit_many(MODEL, [weighted, weighted], constraints=[known])
    one = mf.fit(MODEL, weighted, constraints=[known])
    assert many.errors[0] == pytest.approx([one.errors[n] for n in many.names], rel=1e-3)


# ------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mf.constraint(MU, 1.0), "constraint: error is missing"),
        (lambda: mf.constraint(MU, None, 0.1), "constraint: value is missing"),
        (lambda: mf.constraint(MU, "a", 0.1), "constraint: value must be a finite number, got 'a'"),
        (lambda: mf.constraint(MU, np.nan, 0.1), "constraint: value must be a finite number, got nan"),
        (lambda: mf.constraint(MU, 1.0, -0.1), "constraint: error must be positive, got -0.1"),
        (lambda: mf.constraint([MU, SIGMA], [1.0], 0.1), "needs one value for each of 2 quantities, got 1"),
        (lambda: mf.constraint([MU, SIGMA], [1.0, 2.0], 0.1), "needs one error for each of 2 values, got 1"),
        (
            lambda: mf.constraint([MU, SIGMA], [1.0, 2.0], [[1, 2], [2, 1]]),
            "positive-definite covariance matrix",
        ),
        (
            lambda: mf.constraint(MU, 1.0, 0.1, kind="cauchy"),
            "kind must be 'gaussian', 'lognormal' or 'poisson'",
        ),
        (
            lambda: mf.constraint(SIGMA, 1.5, kind="poisson"),
            "a count must be a whole number from 0 on, got 1.5",
        ),
        (
            lambda: mf.constraint("mu", 2, 0.1),
            "quantity must be a parameter or a formula, not a name, got 'mu'",
        ),
        (lambda: mf.constraint(SIGMA, 2, 0.1, kind="poisson"), "a count has no error of its own"),
        (
            lambda: mf.constraint(SIGMA, -1.0, 0.1, kind="lognormal"),
            "a lognormal value must be positive, got -1",
        ),
        (
            lambda: mf.constraint([MU, SIGMA], [1, 2], kind="poisson"),
            "kind 'poisson' takes one quantity, got 2",
        ),
        (lambda: mf.constraint(MU, 1.0, 0.1, measured=SEEN), "measured and sample belong to a formula"),
        (lambda: mf.constraint(MU - SEEN, measured=SEEN), "measured and sample go together"),
        (
            lambda: mf.constraint(MU - SEEN, measured="seen", sample=len),
            "measured must be parameters of the formula",
        ),
        (
            lambda: mf.constraint(MU - SEEN, measured=SEEN, sample=1),
            "sample must be a function of a generator",
        ),
    ],
)
def test_constraints_that_make_no_sense_are_refused(make, message):
    with pytest.raises(mf.MorefitError, match=message):
        make()


def test_a_formula_that_toys_cannot_draw_is_refused_unless_it_stays():
    nll = mf.Likelihood(MODEL, DATA, constraints=[MU**2])
    rule = r"constraint 'mu\*\*2': has no measured value that toys could draw anew; use mf\.constraint\("
    with pytest.raises(mf.ModelError, match=rule):
        mf.toy_study(nll, toys=2, progress=False)
    with pytest.raises(mf.ModelError, match=rule):
        mf.generate(nll)
    with pytest.raises(mf.ModelError, match=rule):
        bootstrap(nll, replicas=2, progress=False)
    with pytest.raises(mf.ModelError, match=rule):
        mf.fit(nll, errors="bootstrap")
    assert len(bootstrap(nll, replicas=2, fluctuate=False, progress=False)) == 2
    assert mf.toy_study(nll, toys=2, fluctuate=False, progress=False).valid.all()


@pytest.mark.parametrize("drawn", [[1.0, 2.0], {"other": 1.0}, "one", None, {}], ids=repr)
def test_a_sample_must_return_as_many_numbers_as_there_are_measured_values(drawn):
    bad = mf.constraint(MU - SEEN, measured=SEEN, sample=lambda rng, values: drawn)
    with pytest.raises(
        mf.ModelError, match="sample must return 1 finite numbers, those of 'seen' in this order or by name"
    ):
        mf.toy_study(MODEL, toys=2, events=10, constraints=[bad], progress=False)


def test_a_sample_may_return_measured_values_by_name():
    # this used to be a TypeError of NumPy
    term, (plain, named) = (
        (MU - SEEN) ** 2,
        (lambda rng, v: rng.normal(v["mu"]), lambda rng, v: {"seen": rng.normal(v["mu"])}),
    )
    drawn = [
        mf.constraint(term, measured=SEEN, sample=s).draw(VALUES, 7, TOYS[:5], around_data=False)
        for s in (plain, named)
    ]
    np.testing.assert_array_equal(*drawn)


def test_what_is_expected_of_a_formula_is_where_it_is_lowest_at_the_true_parameters():
    # this used to be what was measured, so that Asimov data were not those of the true parameters
    count = mf.Parameter("count", 5.0, fixed=True)
    term = mf.constraint(
        30 * SIGMA - count * np.log(30 * SIGMA) + 8 * (MU - SEEN) ** 2,
        measured=[SEEN, count],
        sample=lambda rng, v: [0.3, 33.0],
    )
    assert term.expected(VALUES) == pytest.approx((0.3, 33.0))
    data = mf.intervals.asimov(mf.Likelihood(MODEL, DATA, constraints=[term]), VALUES)
    assert [data.parts[0].constraints[0].measured[k] for k in (0, 1)] == pytest.approx([0.3, 33.0])


def test_a_formula_that_no_measured_value_makes_lowest_has_no_asimov_data():
    term = mf.constraint(np.exp(MU) + np.exp(SEEN), measured=SEEN, sample=lambda rng, v: 0.3)
    with pytest.raises(mf.ModelError, match=r"nothing is expected of it; use mf\.constraint"):
        term.expected(VALUES)


def test_likelihoods_that_do_not_fit_together_are_refused():
    nll = two_parts()
    with pytest.raises(mf.FitError, match="must have as many parts as the one drawn from, 2, got 1"):
        mf.toy_study(nll, fit_model=MODEL, toys=2, progress=False)
    with pytest.raises(mf.ModelError, match="toy study: events must be left out for a sum of likelihoods"):
        mf.toy_study(nll, toys=2, events=10, progress=False)
    with pytest.raises(mf.ModelError, match="neyman_belt: events must be left out for a sum of likelihoods"):
        neyman_belt(nll, MU, [0.1], toys=2, events=10, progress=False)
    with pytest.raises(
        mf.DataError, match=r"fit_many: datasets\[0\]: must be a list of 2, one for each part"
    ):
        mf.fit_many(nll, [DATA])
    with pytest.raises(mf.DataError, match="toys have the weights of a formula of observables, got numbers"):
        mf.toy_study(mf.Likelihood(MODEL, DATA, weights=np.full(60, 0.5)), toys=2, progress=False)


def test_another_constraint_is_another_study(tmp_path):
    options = {"toys": 2, "events": 20, "seed": 1, "save": tmp_path / "toys.npz", "progress": False}
    mf.toy_study(mass_model(), constraints=[mf.constraint(mass_model().parameters[0], 5.28, 0.01)], **options)
    with pytest.raises(mf.DataError, match="belongs to a different study"):
        mf.toy_study(
            mass_model(), constraints=[mf.constraint(mass_model().parameters[0], 5.29, 0.01)], **options
        )
    with pytest.raises(mf.DataError, match="fluctuate is True in the file, False requested"):
        mf.toy_study(
            mass_model(),
            constraints=[mf.constraint(mass_model().parameters[0], 5.28, 0.01)],
            fluctuate=False,
            **options,
        )


# ------------------------------------------------------------------------------------ without any effect

ALONE = mf.Parameter("sigma_of_nobody", 0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda own: mf.fit(MODEL, DATA, constraints=own),
        lambda own: mf.fit(mf.Likelihood(MODEL, DATA) + own),
        lambda own: mf.fit_many(MODEL, [DATA], constraints=own),
        lambda own: mf.toy_study(MODEL, toys=1, events=9, constraints=own, progress=False),
        lambda own: mf.fisher_information(MODEL, 9, constraints=own),
        lambda own: neyman_belt(MODEL, "mu", [0.0], events=9, toys=1, constraints=own, progress=False),
    ],
)
def test_a_constraint_of_a_parameter_that_no_model_has_is_refused(use):
    # this used to be added in silence: a parameter of its own that changes nothing
    with pytest.raises(
        mf.ModelError, match=r"sigma_of_nobody = 0.4 .*: no model has 'sigma_of_nobody', so .*mean"
    ):
        use(mf.constraint(ALONE, 0.4, 0.1))


def test_constraints_may_reach_a_model_through_others_other_parts_and_other_choices():
    through = [mf.constraint(ALONE, 0.4, 0.1), mf.constraint(MU - ALONE, 0.0, 0.1)]
    assert mf.fit(MODEL, DATA, constraints=through).valid
    shifted = mf.Gaussian(X, ALONE, SIGMA)
    part = mf.Likelihood(MODEL, DATA, constraints=[mf.constraint(ALONE, 0.4, 0.1)])
    assert mf.fit(part + mf.Likelihood(shifted, DATA)).valid
    choice = mf.Choice("which", {"one": MODEL, "two": shifted})
    assert mf.fit(choice, DATA, constraints=mf.constraint(ALONE, 0.4, 0.1)).valid
    fits = mf.toy_study(
        MODEL, toys=1, events=9, seed=1, fit_model=shifted, constraints=mf.constraint(ALONE, 0.4, 0.1), progress=False
    )  # fmt: skip
    assert fits.names == ("sigma_of_nobody", "sigma")


WRONG_FORMULAS = {
    "a number": (lambda mu: mf.constraint(3.0, 5.0, 0.1), "quantity must depend on a parameter, got 3"),
    "a term without parameters": (lambda mu: mf.constraint(3.0), "must depend on a parameter, got 3"),
    "a condition": (
        lambda mu: mf.constraint(mu > 3),
        "must be a formula, got the condition '3 < mu'; limits",
    ),
    "two conditions": (lambda mu: mf.constraint((mu > 3) & (mu < 5)), "got the condition"),
    "an infinite variance": (
        lambda mu: mf.constraint([mu, 2 * mu], [5.0, 10.0], [[np.inf, 0.0], [0.0, 1.0]]),
        "error must be 2 numbers or a symmetric, positive-definite covariance matrix",
    ),
}


@pytest.mark.parametrize(("make", "message"), WRONG_FORMULAS.values(), ids=WRONG_FORMULAS)
def test_constraints_that_say_nothing_are_refused(make, message):
    # conditions used to be added as 1 or 0, and infinite variances to be an IndexError
    with pytest.raises(mf.ModelError, match=message):
        make(mf.Parameter("mu", 4.0, 0.0, 10.0))


def test_a_covariance_may_be_asymmetric_by_rounding():
    mu = mf.Parameter("mu", 4.0, 0.0, 10.0)
    mf.constraint([mu, 2 * mu], [5.0, 10.0], [[1.0, 1e-18], [-1e-18, 1.0]])  # this used to be refused
