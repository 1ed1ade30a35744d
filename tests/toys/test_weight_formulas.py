"""Toys whose events are weighted by a formula: drawn, weighted and fitted in compiled code, with errors of the sandwich."""

import pickle

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood.observed import observed
from morefit.minimise.batch import FAILED, NEWTON
from morefit.targets.base import WholePart
from morefit.toys import task as tasks
from morefit.toys.arguments import template_of
from tolerances import EXACT_ERRORS, PULL_SIGMAS, REORDERED

T, W = mf.Observable("t", 0.0, 6.0), mf.Observable("w", 0.2, 1.8)
SLOPE = mf.Parameter("slope", -0.6, -5.0, 5.0)
DECAY = mf.Exponential(T, SLOPE)
EFFICIENCY = 0.9 * np.exp(-0.4 * T) + 0.05
LEVEL = 0.6827


def study(model=DECAY, weights=1 / EFFICIENCY, toys=4, events=300, **options):
    return mf.toy_study(model, weights=weights, toys=toys, events=events, seed=2, progress=False, **options)


def fitted_alone(model, weights, constraints=()):
    """Return errors of toys, and those of fits of each of them alone."""
    alone = []

    def fit(data, values):
        result = mf.fit(model, data, constraints=constraints)
        assert result.errors_from == "sandwich"
        alone.append([result.errors[p.name] for p in model.parameters])
        return 0.0

    toys = study(model, weights, statistic=fit, constraints=constraints, fluctuate=False)
    assert toys.valid.all() and (toys.how == NEWTON).all()
    return toys.errors, np.array(alone)


def assert_pulls_are_right(toys):
    assert toys.valid.all()
    for name in toys.names:
        pulls = toys.pulls(name)
        assert abs(pulls.mean()) < PULL_SIGMAS / np.sqrt(len(pulls)), name
        assert abs(pulls.std() - 1) < PULL_SIGMAS / np.sqrt(2 * len(pulls)), name
        error = np.sqrt(LEVEL * (1 - LEVEL) / len(pulls))
        assert abs(np.mean(np.abs(pulls) < 1) - LEVEL) < PULL_SIGMAS * error, name


def test_pulls_of_toys_that_are_weighted_by_the_inverse_of_an_efficiency_are_right():
    assert_pulls_are_right(study(toys=300, events=1000))


def test_yields_are_those_of_weighted_events():
    decays, bumps = mf.Parameter("decays", 2000.0, 0, 1e5), mf.Parameter("bumps", 900.0, 0, 1e5)
    model = mf.Sum([mf.Exponential(T, -0.6), mf.Gaussian(T, 3.0, 0.3)], yields=[decays, bumps])
    toys = study(model, toys=300, events=None)
    assert_pulls_are_right(toys)
    t = np.linspace(0.0, 6.0, 6001)
    density = 2000 * DECAY.pdf({"t": t}) + 900 * mf.Gaussian(T, 3.0, 0.3).pdf({"t": t})
    expected = np.trapezoid(density * (0.9 * np.exp(-0.4 * t) + 0.05), t)
    assert abs(toys.events.mean() - expected) < PULL_SIGMAS * np.sqrt(expected / 300)


def test_weights_may_be_a_column_that_another_model_draws():
    both = mf.Product([DECAY, mf.Uniform(W)])
    assert_pulls_are_right(study(both, W, toys=300, events=300, fit_model=DECAY))


def test_errors_are_those_of_fits_of_each_toy():
    errors, alone = fitted_alone(DECAY, 1 / EFFICIENCY)
    np.testing.assert_allclose(errors, alone, rtol=EXACT_ERRORS)


def test_errors_are_right_with_numerical_integrals():
    model = mf.Density(np.exp(-mf.Parameter("a", 1.0, 0.2, 3.0) * T**1.5), [T])
    errors, alone = fitted_alone(model, 1 + T)
    np.testing.assert_allclose(errors, alone, rtol=EXACT_ERRORS)


def test_constraints_take_part_in_the_sandwich():
    errors, alone = fitted_alone(DECAY, 1 / EFFICIENCY, [mf.constraint(SLOPE, -0.6, 0.03)])
    np.testing.assert_allclose(errors, alone, rtol=EXACT_ERRORS)
    assert errors.max() < study().errors.max()


def test_bins_beside_weighted_events_have_their_own_variances():
    histogram = np.histogram(mf.generate(DECAY, 2000, seed=1)["t"], 20, (0.0, 6.0))
    data = mf.generate(mf.Efficiency(DECAY, EFFICIENCY), 500, seed=3)
    joint = mf.Likelihood(DECAY, data, weights=1 / EFFICIENCY) + mf.BinnedLikelihood(DECAY, histogram)
    toys = mf.toy_study(joint, toys=200, seed=4, progress=False)
    assert_pulls_are_right(toys)
    assert toys.errors.mean() == pytest.approx(mf.fit(joint).errors["slope"], rel=0.1)


def test_a_likelihood_has_the_formula_of_its_weights_and_toys_as_many_events_as_data():
    data = mf.generate(mf.Efficiency(DECAY, EFFICIENCY), 300, seed=1)
    likelihood = mf.Likelihood(DECAY, data, weights=1 / EFFICIENCY)
    toys = mf.toy_study(likelihood, toys=4, seed=2, progress=False)
    np.testing.assert_array_equal(toys.errors, study().errors)
    other = pickle.loads(pickle.dumps(likelihood))
    np.testing.assert_array_equal(mf.toy_study(other, toys=4, seed=2, progress=False).errors, toys.errors)
    assert repr(likelihood).startswith("Likelihood(300 events of weight 1/(0.05 + 0.9*exp(-0.4*t)), par")


def test_a_fit_with_a_formula_is_that_with_its_numbers():
    data = mf.generate(DECAY, 300, seed=1)
    one = mf.fit(DECAY, data, weights=1 / EFFICIENCY)
    other = mf.fit(DECAY, data, weights=1 / (0.9 * np.exp(-0.4 * data["t"]) + 0.05))
    assert one.errors_from == "sandwich" and one.values == other.values and one.errors == other.errors
    many = mf.fit_many(mf.Likelihood(DECAY, data, weights=1 / EFFICIENCY), [data])
    assert many.errors[0, 0] == pytest.approx(one.errors["slope"], rel=EXACT_ERRORS)


def test_pseudo_data_of_such_a_likelihood_have_weights():
    data = mf.generate(mf.Efficiency(DECAY, EFFICIENCY), 300, seed=1)
    drawn = mf.generate(mf.Likelihood(DECAY, data, weights=1 / EFFICIENCY), seed=2)
    numbers = 1 / (0.9 * np.exp(-0.4 * drawn.data["t"]) + 0.05)
    np.testing.assert_allclose(drawn.data.weights, numbers, rtol=REORDERED)
    assert drawn.data["t"].mean() < mf.generate(DECAY, 300, seed=2)["t"].mean()


@pytest.mark.parametrize("yields_in", ["full", "range"])
def test_ranges_leave_out_events_of_weighted_toys(yields_in):
    decays, bumps = mf.Parameter("decays", 2000.0, 0, 1e5), mf.Parameter("bumps", 900.0, 0, 1e5)
    model = mf.Sum([mf.Exponential(T, -0.6), mf.Gaussian(T, 3.0, 0.3)], yields=[decays, bumps])
    ranges = {"t": [(0.0, 2.0), (2.5, 4.0)]}
    assert_pulls_are_right(study(model, toys=200, events=None, ranges=ranges, yields_in=yields_in))


def test_weights_of_what_a_model_is_given_change_no_density():
    scale = mf.Observable("s", 0.5, 1.0)
    model = mf.Gaussian(T, mf.Parameter("mu", 3.0, 2.0, 4.0), scale, given=[scale])
    given = {"s": np.linspace(0.5, 1.0, 50)}
    plain = study(model, None, given=given)
    weighted = study(model, 1 / scale, given=given)
    assert weighted.valid.all() and not np.array_equal(weighted.errors, plain.errors)
    drawn = observed("test", template_of("test", model, given=given, weights=1 / scale, weighted=True))
    assert drawn.parts[0].model is model


def test_categories_have_one_formula_or_one_each():
    other = mf.Exponential(T, mf.Parameter("other", -0.3, -5.0, 5.0))
    models = mf.Simultaneous({"a": DECAY, "b": other}, "kind")
    numbers = {"a": 200, "b": 100}
    one = study(models, events=numbers)
    each = study(models, {"a": 1 / EFFICIENCY, "b": 1 / EFFICIENCY}, events=numbers)
    np.testing.assert_array_equal(one.errors, each.errors)
    data = mf.generate(models, numbers, seed=1)
    result = mf.fit(models, data, weights=1 / EFFICIENCY)
    assert result.errors_from == "sandwich"
    assert all(part.weight is not None for part in mf.Likelihood(models, data, weights=1 / EFFICIENCY).parts)


def task_of(weights):
    fitted = template_of("test", DECAY, weights=weights, weighted=True)
    values = {"slope": -0.6}
    return tasks.Task(
        drawn=observed("test", fitted), fitted=fitted, truth=values, start=values, seed=2, backend=mf.Cpu(threads=1),
        statistic=None,
    )  # fmt: skip


def test_toys_do_not_depend_on_their_company_and_tasks_pickle():
    task = task_of(1 / EFFICIENCY)
    all_toys = tasks.compute_block(task, 0, np.full(20, 100))
    one = tasks.compute_block(pickle.loads(pickle.dumps(task)), 7, np.full(1, 100))
    assert one.values[0] == all_toys.values[7] and one.errors[0] == all_toys.errors[7]


def test_facts_of_a_study_have_the_formula():
    facts = [tasks.facts_of(task_of(w))["fitted model"]["weights"] for w in (1 / EFFICIENCY, 1 + T)]
    assert facts[0] != facts[1]


def test_weights_are_computed_where_toys_are_drawn():
    ensemble = task_of(1 / EFFICIENCY).ensemble()
    (part,) = ensemble.whole_fit().parts
    assert isinstance(part, WholePart) and part.derived[-1].startswith("weight") and part.scores is not None
    assert ensemble.result_width == ensemble.layout.width


def test_toys_whose_weights_add_up_to_less_than_zero_are_not_valid():
    toys = study(weights=T - 1.5, fit_model=DECAY, toys=12, events=30)
    assert 0 < toys.valid.sum() < 12
    assert (toys.how[~toys.valid] == FAILED).all()


NARROW = mf.Observable("t", 1.0, 2.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": W}, mf.ModelError, "toy study: the model does not draw 'w', which weights depend on; give the density"),
        ({"weights": T - 3}, mf.ModelError, "events follow the model divided by their weight, which must be a density"),
        ({"weights": W, "fit_model": DECAY}, mf.FitError, "toys: weights depend on 'w', which the generating model does not draw"),
        ({"weights": 1 / NARROW, "fit_model": DECAY}, mf.FitError, r"that of the weights must span the range that is drawn"),
        ({"weights": [1.0, 2.0]}, mf.OptionError, r"weights must be a formula of observables, such as .*, got \[1.0, 2.0\]"),
        ({"weights": SLOPE * T}, mf.DataError, "must be a formula of observables alone, got the parameters 'slope'"),
        ({"weights": 1 / mf.where(T > 3, 0 * T, T), "fit_model": DECAY}, mf.DataError, "weights are not finite"),
    ],
)  # fmt: skip
def test_weights_that_toys_cannot_have_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        study(**options)


def test_a_likelihood_of_weights_without_a_formula_is_refused_and_none_takes_another():
    data = mf.generate(DECAY, 30, seed=1)
    with pytest.raises(
        mf.DataError, match="toys have the weights of a formula of observables, got numbers; write"
    ):
        study(mf.Likelihood(DECAY, data, weights=np.ones(30)), None, events=None)
    likelihood = mf.Likelihood(DECAY, data, weights=1 / EFFICIENCY)
    with pytest.raises(mf.OptionError, match="a likelihood has its weights already; leave weights out"):
        study(likelihood, events=None)
    with pytest.raises(
        mf.DataError, match="feldman_cousins: toys have no weights, so the data must not have any"
    ):
        mf.intervals.feldman_cousins(likelihood, "slope", [-0.6, -0.5], toys=10, progress=False)


def test_the_scale_of_weights_moves_no_fit():
    # fits of events with weights of 1e-4 used to end where the first EDM below that of events that count once was seen
    whole, small = study(weights=1 / EFFICIENCY), study(weights=1e-4 / EFFICIENCY)
    assert np.abs((small.values - whole.values) / whole.errors).max() < 0.02
    assert np.allclose(small.errors, whole.errors, rtol=1e-2)
