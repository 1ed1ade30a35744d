"""A likelihood gives value, gradient and Hessian of -sum ln P for one or many parameter sets, and adds up."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.likelihood import JointLikelihood
from tolerances import DIFFERENCES, FEW_ROUNDINGS, NUMPY_SUM, RECORDED_DIGITS, SCIPY_DENSITY

REFERENCE = Path(__file__).parents[1] / "reference"
M = mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
FSIG, ALPHA = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
START = {"mu": 5.28, "sigma": 0.06, "fsig": 0.3, "alpha": -1.0}


def mass(mu=MU, sigma=SIGMA, fsig=FSIG, alpha=ALPHA):
    return mf.Sum([mf.Gaussian(M, mu, sigma), mf.Exponential(M, alpha)], fractions=[fsig])


def events(n=500, seed=1):
    rng = np.random.default_rng(seed)
    signal, background = rng.normal(5.28, 0.06, n), 5 + rng.exponential(1.0, 4 * n)
    return np.concatenate([signal[: n // 3], background[background < 2 + 5][: n - n // 3]])


def mass_density(m, mu, sigma, fsig, alpha):
    signal = stats.truncnorm((5 - mu) / sigma, (7 - mu) / sigma, mu, sigma).pdf(m)
    return fsig * signal + (1 - fsig) * alpha * np.exp(alpha * (m - 5)) / np.expm1(2 * alpha)


def vector(likelihood, **values):
    known = START | values
    return np.array([known[p.name] for p in likelihood.parameters])


def differences(function, x, step=1e-5):
    """Central differences along each parameter, scaled to its size."""
    rows = []
    for k, value in enumerate(x):
        move = np.zeros_like(x)
        move[k] = step * max(abs(value), 0.1)
        rows.append((function(x + move) - function(x - move)) / (2 * move[k]))
    return np.array(rows)


@pytest.fixture(scope="module")
def likelihood():
    return mf.Likelihood(mass(), {"m": events()})


# ------------------------------------------------------------------------- values and shapes


def test_value_is_minus_the_sum_of_logarithms(likelihood):
    x = vector(likelihood, mu=5.29, fsig=0.35)
    values = dict(zip([p.name for p in likelihood.parameters], x, strict=True))
    expected = -np.sum(np.log(mass_density(events(), **values)))
    assert likelihood.value(x) == pytest.approx(expected, rel=NUMPY_SUM)
    assert isinstance(likelihood.value(x), float)


def test_gradient_agrees_with_differences(likelihood):
    x = vector(likelihood)
    found = likelihood.gradient(x)
    expected = differences(likelihood.value, x)
    np.testing.assert_allclose(found, expected, rtol=DIFFERENCES, atol=DIFFERENCES * np.abs(expected).max())


def test_hessian_agrees_with_differences_of_the_gradient(likelihood):
    x = vector(likelihood)
    found, expected = likelihood.hessian(x), differences(likelihood.gradient, x)
    np.testing.assert_allclose(found, expected, rtol=DIFFERENCES, atol=DIFFERENCES * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("sets", [1, 2, 3, 9, 17])
def test_shapes_for_many_sets(likelihood, sets):
    rng = np.random.default_rng(sets)
    x = vector(likelihood) * rng.uniform(0.99, 1.01, (sets, 4))
    value, gradient, hessian = likelihood.value(x), likelihood.gradient(x), likelihood.hessian(x)
    assert (value.shape, gradient.shape, hessian.shape) == ((sets,), (sets, 4), (sets, 4, 4))
    for k, row in enumerate(x):
        assert likelihood.value(row) == value[k]
        np.testing.assert_array_equal(likelihood.gradient(row), gradient[k])
        np.testing.assert_array_equal(likelihood.hessian(row), hessian[k])


def test_no_sets_give_nothing(likelihood):
    nothing = np.empty((0, 4))
    assert likelihood.value(nothing).shape == (0,)
    assert likelihood.gradient(nothing).shape == (0, 4)
    assert likelihood.hessian(nothing).shape == (0, 4, 4)


@pytest.mark.parametrize("x", [[5.28], [[5.28, 0.06]], np.zeros((2, 2, 4)), 5.28, np.zeros((4, 5))])
def test_wrong_shape_is_answered_with_the_right_one(likelihood, x):
    names = ", ".join(p.name for p in likelihood.parameters)
    message = rf"likelihood: x must have shape \(4,\) or \(sets, 4\) for {names}, got "
    for method in (likelihood.value, likelihood.gradient, likelihood.hessian, likelihood.per_event):
        with pytest.raises(mf.ModelError, match=message):
            method(x)


def test_a_likelihood_is_called_with_numbers_one_by_one_or_values_by_name(likelihood):
    expected = likelihood.value(vector(likelihood))
    assert likelihood(*vector(likelihood)) == likelihood(START) == expected


def test_text_is_no_point(likelihood):
    with pytest.raises(mf.ModelError, match="likelihood: x must be numbers, got 'text'"):
        likelihood.value("text")  # this used to be a ValueError


def test_data_are_copied():
    data = events()
    likelihood = mf.Likelihood(mass(), {"m": data})
    before = likelihood.value(vector(likelihood))
    data[:] = 6.0
    assert likelihood.value(vector(likelihood)) == before


def test_fixed_parameters_are_left_out_of_x():
    model = mass(sigma=mf.Parameter("sigma", 0.06, fixed=True))
    fixed = mf.Likelihood(model, {"m": events()})
    free = mf.Likelihood(mass(), {"m": events()})
    assert [p.name for p in fixed.parameters] == [p.name for p in free.parameters if p.name != "sigma"]
    assert "sigma" in [p.name for p in fixed.all_parameters]
    keep = [k for k, p in enumerate(free.parameters) if p.name != "sigma"]
    x, y = vector(fixed, mu=5.3), vector(free, mu=5.3)
    assert fixed.value(x) == pytest.approx(free.value(y), rel=FEW_ROUNDINGS)
    np.testing.assert_allclose(fixed.gradient(x), free.gradient(y)[keep], rtol=NUMPY_SUM)
    np.testing.assert_allclose(fixed.hessian(x), free.hessian(y)[np.ix_(keep, keep)], rtol=NUMPY_SUM)


def test_likelihood_without_floating_parameters_still_has_a_value():
    model = mf.Gaussian(M, 5.5, 0.3)
    likelihood = mf.Likelihood(model, {"m": events()})
    expected = -np.sum(np.log(stats.truncnorm(-0.5 / 0.3, 5, 5.5, 0.3).pdf(events())))
    assert likelihood.value([]) == pytest.approx(expected, rel=NUMPY_SUM)
    assert likelihood.gradient([]).shape == (0,)


# ------------------------------------------------------------------------- weights, yields, constraints


def test_weights_multiply_each_logarithm():
    weights = np.random.default_rng(3).uniform(-0.2, 2, 500)
    likelihood = mf.Likelihood(mass(), {"m": events()}, weights=weights)
    x = vector(likelihood)
    expected = -np.sum(weights * np.log(mass_density(events(), **START)))
    assert likelihood.value(x) == pytest.approx(expected, rel=NUMPY_SUM)
    np.testing.assert_allclose(likelihood.gradient(x), differences(likelihood.value, x), rtol=1e-4)
    expected = differences(likelihood.gradient, x)
    np.testing.assert_allclose(
        likelihood.hessian(x), expected, rtol=DIFFERENCES, atol=DIFFERENCES * np.abs(expected).max()
    )


def test_weights_of_one_change_nothing(likelihood):
    weighted = mf.Likelihood(mass(), {"m": events()}, weights=np.ones(500))
    x = vector(likelihood)
    assert weighted.value(x) == pytest.approx(likelihood.value(x), rel=NUMPY_SUM)
    np.testing.assert_allclose(weighted.hessian(x), likelihood.hessian(x), rtol=NUMPY_SUM)


def test_weights_of_two_count_events_twice(likelihood):
    weighted = mf.Likelihood(mass(), {"m": events()}, weights=np.full(500, 2.0))
    double = mf.Likelihood(mass(), {"m": np.repeat(events(), 2)})
    x = vector(likelihood)
    assert weighted.value(x) == pytest.approx(double.value(x), rel=NUMPY_SUM)
    np.testing.assert_allclose(weighted.gradient(x), double.gradient(x), rtol=NUMPY_SUM, atol=1e-10)


def test_weights_come_with_the_dataset():
    weights = np.linspace(0.5, 1.5, 500)
    dataset = mf.Dataset({"m": events()}, M, weights=weights)
    given = mf.Likelihood(mass(), {"m": events()}, weights=weights)
    x = vector(given)
    assert mf.Likelihood(mass(), dataset).value(x) == given.value(x)


def test_fisher_is_the_sum_of_squared_slopes(likelihood):
    weights = np.random.default_rng(3).uniform(0.1, 2, 500)
    weighted = mf.Likelihood(mass(), {"m": events()}, weights=weights)
    x = vector(likelihood)
    logs = differences(lambda y: np.log(weighted.per_event(y)), x)
    expected = (logs * weights**2) @ logs.T
    np.testing.assert_allclose(weighted.fisher(x), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    plain = likelihood.fisher(np.array([x, x]))
    assert plain.shape == (2, 4, 4)
    np.testing.assert_allclose(plain[0], logs @ logs.T, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_fisher_of_a_sum_is_that_of_all_events():
    parts = [
        mf.Likelihood(mass(), {"m": events(300, seed)}, weights=np.full(300, w))
        for seed, w in ((1, 2.0), (2, -1.0))
    ]
    joined = mf.Likelihood(
        mass(),
        {"m": np.concatenate([events(300, 1), events(300, 2)])},
        weights=np.repeat([2.0, -1.0], 300),
    )
    both = parts[0] + parts[1]
    assert both.parts == tuple(parts)
    assert both.weighted
    x = vector(both)
    np.testing.assert_allclose(both.fisher(x), joined.fisher(x), rtol=1e-10)
    assert both.fisher(np.array([x, x])).shape == (2, 4, 4)


def test_an_evaluation_can_be_cut_to_some_parameters(likelihood):
    full = np.array([[p.start for p in likelihood.all_parameters]])
    found = likelihood.evaluate_full(full, 2)
    cut = found.cut([2, 0])
    np.testing.assert_array_equal(cut.gradient, found.gradient[:, [2, 0]])
    assert cut.hessian[0, 0, 1] == found.hessian[0, 2, 0]
    assert cut.value is found.value


def extended():
    s, b = mf.Parameter("s", 150.0, 0, 1e4), mf.Parameter("b", 350.0, 0, 1e4)
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], yields=[s, b])


def test_extended_likelihood_adds_the_expected_number():
    likelihood = mf.Likelihood(extended(), {"m": events()})
    x = vector(likelihood, s=160.0, b=330.0)
    shape = mass_density(events(), 5.28, 0.06, 160 / 490, -1.0)
    assert likelihood.value(x) == pytest.approx(490 - np.sum(np.log(490 * shape)), rel=NUMPY_SUM)
    expected = differences(likelihood.value, x)
    np.testing.assert_allclose(likelihood.gradient(x), expected, rtol=1e-5, atol=1e-5)
    expected = differences(likelihood.gradient, x)
    np.testing.assert_allclose(
        likelihood.hessian(x), expected, rtol=1e-5, atol=DIFFERENCES * np.abs(expected).max()
    )


def test_expected_number_is_added_once_also_with_weights():
    weights = np.full(500, 0.5)
    likelihood = mf.Likelihood(extended(), {"m": events()}, weights=weights)
    x = vector(likelihood, s=160.0, b=330.0)
    shape = mass_density(events(), 5.28, 0.06, 160 / 490, -1.0)
    assert likelihood.value(x) == pytest.approx(490 - 0.5 * np.sum(np.log(490 * shape)), rel=NUMPY_SUM)


def test_constraint_is_added_once(likelihood):
    bound = mf.Likelihood(mass(), {"m": events()}, constraints=[mf.constraint(MU, 5.27, 0.01)])
    x = vector(likelihood, mu=5.29)
    k = [p.name for p in likelihood.parameters].index("mu")
    assert bound.value(x) - likelihood.value(x) == pytest.approx(2.0, rel=1e-10)
    assert (bound.gradient(x) - likelihood.gradient(x))[k] == pytest.approx(200, rel=1e-8)
    assert (bound.hessian(x) - likelihood.hessian(x))[k, k] == pytest.approx(1e4, rel=1e-8)


def test_constraint_may_bring_a_parameter_of_its_own():
    scale = mf.Parameter("scale", 1.0)
    model = mass(mu=5.28, sigma=SIGMA * scale)
    likelihood = mf.Likelihood(
        model,
        {"m": events()},
        constraints=[mf.constraint(scale * mf.Parameter("extra", 2.0), 2.1, 0.1)],
    )
    assert "extra" in [p.name for p in likelihood.parameters]
    x = vector(likelihood, scale=1.0, extra=2.0)
    expected = -np.sum(np.log(mass_density(events(), **START))) + 0.5
    assert likelihood.value(x) == pytest.approx(expected, rel=NUMPY_SUM)


@pytest.mark.parametrize("error", [0, -1, np.nan])
def test_constraint_needs_a_positive_error(error):
    with pytest.raises(mf.ModelError, match=f"constraint: error must be positive, got {error}"):
        mf.constraint(MU, 5.28, error)


def test_constraint_on_another_parameter_of_the_same_name_is_refused():
    other = mf.Parameter("mu", 5.0)
    with pytest.raises(mf.ModelError, match=r"parameter 'mu': two different .*'mu', 5\.28, .*'mu', 5\.0\)"):
        mf.Likelihood(mass(), {"m": events()}, constraints=[mf.constraint(other, 5.28, 0.01)])


# ------------------------------------------------------------------------- sums of likelihoods


def test_likelihoods_of_two_datasets_add():
    first, second = (mf.Likelihood(mass(), {"m": events(300, seed)}) for seed in (1, 2))
    both = first + second
    joined = mf.Likelihood(mass(), {"m": np.concatenate([events(300, 1), events(300, 2)])})
    x = vector(both)
    assert both.events == 600
    assert both.parameters == joined.parameters
    assert both.value(x) == pytest.approx(joined.value(x), rel=NUMPY_SUM)
    np.testing.assert_allclose(both.gradient(x), joined.gradient(x), rtol=1e-10)
    np.testing.assert_allclose(both.hessian(x), joined.hessian(x), rtol=1e-10)


def test_likelihoods_of_two_models_share_parameters_by_name():
    x = mf.Observable("x", 0.0, 4.0)
    tau = mf.Parameter("tau", 1.0)
    other = mf.Likelihood(mf.Gaussian(x, MU - 4, tau), {"x": np.linspace(0.1, 3.9, 40)})
    first = mf.Likelihood(mass(), {"m": events()})
    both = other + first
    assert sorted(p.name for p in both.parameters) == ["alpha", "fsig", "mu", "sigma", "tau"]
    point = vector(both, tau=1.1)
    parts = [vector(part, tau=1.1) for part in (other, first)]
    assert both.value(point) == pytest.approx(
        other.value(parts[0]) + first.value(parts[1]), rel=FEW_ROUNDINGS
    )
    gradient, hessian = both.gradient(point), both.hessian(point)
    names = [p.name for p in both.parameters]
    total, square = np.zeros(5), np.zeros((5, 5))
    for part, own in zip((other, first), parts, strict=True):
        rows = [names.index(p.name) for p in part.parameters]
        total[rows] += part.gradient(own)
        square[np.ix_(rows, rows)] += part.hessian(own)
    np.testing.assert_allclose(gradient, total, rtol=FEW_ROUNDINGS)
    np.testing.assert_allclose(hessian, square, rtol=FEW_ROUNDINGS)
    sets = np.array([point, point * 1.001, point * 0.999])
    assert both.hessian(sets).shape == (3, 5, 5)
    np.testing.assert_array_equal(both.hessian(sets)[0], hessian)


def test_sums_of_likelihoods_are_flat():
    parts = [mf.Likelihood(mass(), {"m": events(50, seed)}) for seed in range(3)]
    total = parts[0] + parts[1] + parts[2]
    assert isinstance(total, JointLikelihood)
    assert total.parts == tuple(parts)


def test_conflicting_definitions_of_a_parameter_are_both_shown():
    other = mf.Likelihood(mass(mu=mf.Parameter("mu", 5.3, 5.0, 6.0)), {"m": events()})
    with pytest.raises(
        mf.ModelError, match=r"parameter 'mu': two different .*'mu', 5\.28, .*'mu', 5\.3, .*rename one"
    ):
        mf.Likelihood(mass(), {"m": events()}) + other


def test_sum_of_likelihoods_says_which_shape_it_wants():
    both = mf.Likelihood(mass(), {"m": events()}) + mf.Likelihood(mass(), {"m": events()})
    with pytest.raises(mf.ModelError, match=r"x must have shape \(4,\)"):
        both.value([1, 2])


def test_sum_of_likelihoods_can_be_pickled():
    both = mf.Likelihood(mass(), {"m": events()}) + mf.Likelihood(mass(), {"m": events(100, 5)})
    again = pickle.loads(pickle.dumps(both))
    assert again.value(vector(both)) == both.value(vector(both))


# ------------------------------------------------------------------------- each event, bad events


def test_per_event_gives_the_normalised_density(likelihood):
    x = vector(likelihood)
    np.testing.assert_allclose(likelihood.per_event(x), mass_density(events(), **START), rtol=SCIPY_DENSITY)
    assert likelihood.per_event(np.array([x, x, x])).shape == (3, 500)


def test_per_event_of_an_extended_model_is_normalised_too():
    likelihood = mf.Likelihood(extended(), {"m": events()})
    found = likelihood.per_event(vector(likelihood, s=150.0, b=350.0))
    np.testing.assert_allclose(found, mass_density(events(), **START), rtol=SCIPY_DENSITY)


@pytest.fixture(params=["cpu", "reference"])
def line(request):
    """1 + c x, negative for some events if |c| > 1."""
    x = mf.Observable("x", -1.0, 1.0)
    model = mf.Polynomial(x, [mf.Parameter("c", 0.0)])
    return mf.Likelihood(model, {"x": np.linspace(-1, 1, 11)}, backend=request.param)


def test_negative_density_gives_infinity_and_no_derivatives(line):
    assert line.value([2.0]) == np.inf
    assert np.isnan(line.gradient([2.0])).all()
    assert np.isnan(line.hessian([2.0])).all()


def test_negative_density_in_one_set_leaves_the_others_alone(line):
    values = line.value([[0.5], [2.0], [-0.5], [-3.0]])
    assert np.isfinite(values).tolist() == [True, False, True, False]
    assert values[0] == line.value([0.5])
    slopes = line.gradient([[0.5], [2.0]])
    assert slopes[0] == line.gradient([0.5])
    assert np.isnan(slopes[1])


def test_two_negative_densities_do_not_make_a_positive_one(line):
    # of eleven events those at -1.0 and -0.8 are negative
    assert line.value([1.3]) == np.inf
    assert len(line.bad_events([1.3])) == 2


def test_zero_density_gives_infinity(line):
    assert line.value([1.0]) == np.inf


def test_bad_events_are_named(line):
    bad = line.bad_events([2.0])
    assert str(bad) == "3 of 11 events have no positive density: event 0 (-0.5), 1 (-0.3), 2 (-0.1)"
    assert str(line.bad_events([0.5])) == "all 11 events have a positive density"
    assert bad.indices.tolist() == [0, 1, 2]


def test_bad_events_list_ends_after_five():
    x = mf.Observable("x", -1.0, 1.0)
    likelihood = mf.Likelihood(mf.Polynomial(x, [mf.Parameter("c", 0.0)]), {"x": np.linspace(-1, 1, 101)})
    assert str(likelihood.bad_events([10.0])).endswith(", ...")


def test_parameter_that_is_not_a_number_is_seen(likelihood):
    x = vector(likelihood, mu=np.nan)
    assert likelihood.value(x) == np.inf
    assert np.isnan(likelihood.gradient(x)).all()


def test_sum_of_likelihoods_says_which_events_are_bad(line):
    both = line + copy.copy(line)
    assert both.value([2.0]) == np.inf
    assert len(both.bad_events([2.0])) == 3
    assert len(both.bad_events([0.0])) == 0


@pytest.mark.parametrize("bad_first", [False, True])
def test_bad_events_of_a_sum_are_those_of_the_part_that_has_them(bad_first):
    x = mf.Observable("x", -1.0, 1.0)
    model = mf.Polynomial(x, [mf.Parameter("c", 0.0)])
    good = mf.Likelihood(model, {"x": np.linspace(-0.1, 0.1, 5)})
    bad = mf.Likelihood(model, {"x": [0.0, -0.8, 0.3, -0.9]})
    found = (bad + good if bad_first else good + bad).bad_events([2.0])
    assert list(found.indices) == [1, 3]
    assert found.total == 4
    assert str(found).startswith("2 of 4 events have no positive density: event 1 (")


@pytest.mark.parametrize("other", [1, 0.0, "a", None, [1.0]])
def test_only_likelihoods_can_be_added(line, other):
    # this used to be AttributeError: 'int' object has no attribute 'parts'
    with pytest.raises(mf.ModelError, match="likelihood: is added to other likelihoods"):
        line + other
    with pytest.raises(mf.ModelError, match="likelihood: is added to other likelihoods"):
        other + line


# ------------------------------------------------------------------------- backends, precision, pickling


def test_backend_names_are_known(likelihood):
    x = vector(likelihood)
    for backend in ("auto", "cpu", "reference", mf.Cpu(), mf.Cpu(threads=1), mf.Cpu(width=2)):
        other = mf.Likelihood(mass(), {"m": events()}, backend=backend)
        assert other.value(x) == pytest.approx(likelihood.value(x), rel=NUMPY_SUM)


def test_unknown_backend_lists_the_known_ones():
    with pytest.raises(mf.BackendError, match=r"backend 'gpu': not known; use one of .*'cpu'"):
        mf.Likelihood(mass(), {"m": events()}, backend="gpu")


def test_single_precision_is_close():
    single = mf.Likelihood(mass(), {"m": events()}, precision="single")
    double = mf.Likelihood(mass(), {"m": events()})
    x = vector(double)
    assert single.value(x) == pytest.approx(double.value(x), rel=1e-5)


def test_unknown_precision_is_refused():
    with pytest.raises(mf.OptionError, match="precision 'half': not known; use 'double' or 'single'"):
        mf.Likelihood(mass(), {"m": events()}, precision="half")


@pytest.mark.parametrize("precompute", ["auto", "all", "none"])
def test_precomputing_changes_nothing(likelihood, precompute):
    other = mf.Likelihood(mass(), {"m": events()}, precompute=precompute)
    x = vector(likelihood)
    assert other.value(x) == pytest.approx(likelihood.value(x), rel=NUMPY_SUM)
    np.testing.assert_allclose(other.hessian(x), likelihood.hessian(x), rtol=1e-10)


def test_likelihood_can_be_pickled(likelihood):
    again = pickle.loads(pickle.dumps(likelihood))
    x = vector(likelihood)
    assert again.parameters == likelihood.parameters
    assert again.value(x) == likelihood.value(x)
    np.testing.assert_array_equal(again.hessian(x), likelihood.hessian(x))


def test_events_outside_the_range_are_counted():
    with pytest.raises(mf.DataError, match=r"observable 'm': 2 of 3 events lie outside \[5.0, 7.0\]"):
        mf.Likelihood(mass(), {"m": [4.0, 6.0, 8.0]})


def test_missing_column_is_named():
    with pytest.raises(mf.DataError, match="observable 'm': missing"):
        mf.Likelihood(mass(), {"mass": events()})


def test_empty_dataset_has_an_empty_sum():
    likelihood = mf.Likelihood(mass(), {"m": np.empty(0)})
    assert likelihood.value(vector(likelihood)) == 0.0


# ------------------------------------------------------------------------- what the C++ system recorded


@pytest.fixture(scope="module")
def recorded():
    found = json.loads((REFERENCE / "mass_10k.json").read_text())["results"]["ana"]
    data = np.loadtxt(REFERENCE / "mass_10k.csv", skiprows=1)
    likelihood = mf.Likelihood(mass(), {"m": data})
    names = ["mu" if name == "mb" else name for name in found["names"]]
    order = [names.index(p.name) for p in likelihood.parameters]
    return found, likelihood, order


def test_recorded_value_at_the_start(recorded):
    found, likelihood, order = recorded
    x = np.array(found["start_values"])[order]
    assert 2 * likelihood.value(x) == pytest.approx(found["minus2logL_at_start"], rel=RECORDED_DIGITS)


def test_recorded_gradient_at_the_start(recorded):
    found, likelihood, order = recorded
    x = np.array(found["start_values"])[order]
    np.testing.assert_allclose(
        2 * likelihood.gradient(x), np.array(found["grad_at_start"])[order], RECORDED_DIGITS
    )


def test_recorded_hessian_at_the_start(recorded):
    found, likelihood, order = recorded
    x = np.array(found["start_values"])[order]
    expected = np.array(found["hessian_at_start"]).reshape(4, 4)[np.ix_(order, order)]
    np.testing.assert_allclose(2 * likelihood.hessian(x), expected, rtol=RECORDED_DIGITS)


def test_recorded_value_at_the_minimum(recorded):
    found, likelihood, order = recorded
    x = np.array(found["values"])[order]
    assert 2 * likelihood.value(x) == pytest.approx(found["minus2logL_reeval"], rel=RECORDED_DIGITS)


# ---------------------------------------------------------------------------------- points by name


def cubic():
    x = mf.Observable("x", 0.0, 1.0)
    parameters = [mf.Parameter(f"a{k}", 0.1 * k, -1.0, 2.0) for k in (1, 2, 10)]
    return mf.Density(1 + sum(p * x ** (k + 1) for k, p in enumerate(parameters)), [x])


def test_the_parameters_of_a_formula_are_in_the_order_of_their_names():
    """A sum has no order: they used to come as a hash would have them."""
    assert [p.name for p in cubic().parameters] == ["a1", "a2", "a10"]


def test_points_may_be_given_by_name():
    nll = mf.Likelihood(cubic(), {"x": np.linspace(0.1, 0.9, 30)})
    named = {"a10": 0.3, "a1": 0.1, "a2": 0.2}
    assert nll.value(named) == nll.value([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(nll.hessian(named), nll.hessian([0.1, 0.2, 0.3]))
    many = nll.value(named | {"a2": [0.2, 0.5]})
    np.testing.assert_array_equal(many, [nll.value([0.1, 0.2, 0.3]), nll.value([0.1, 0.5, 0.3])])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"a1": 0.1, "a2": 0.2}, "x has no value for a10"),
        (
            {"a1": [1, 2], "a2": 0.2, "a10": [1, 2, 3]},
            r"x must have as many values of each parameter, got a1 \(2,\), a10 \(3,\)",
        ),
        ({"a1": 0.1, "a2": 0.2, "a10": 0.3, "b": 1.0}, "x has 'b'; the parameters are a1, a2, a10"),
    ],
)
def test_points_by_name_must_name_what_floats(named, message):
    nll = mf.Likelihood(cubic(), {"x": np.linspace(0.1, 0.9, 30)})
    with pytest.raises(mf.ModelError, match=message):
        nll.value(named)


def test_a_dataset_checked_for_the_same_observables_is_taken_as_it_is():
    x = mf.Observable("x", 0.0, 10.0)
    model = mf.Exponential(x, mf.Parameter("slope", -0.5, -2.0, 1.0))
    drawn, read = mf.generate(model, 100, seed=1), mf.Dataset({"x": [1.0, 2.0]}, x)
    assert mf.Likelihood(model, drawn).data is drawn
    assert mf.Likelihood(model, read).data is read
    assert mf.Likelihood(model, pickle.loads(pickle.dumps(read))).data is not read


@pytest.mark.parametrize("high", [5.0, 20.0])
def test_a_dataset_checked_for_other_ranges_is_checked_again(high):
    wide = mf.Exponential(mf.Observable("x", 0.0, 10.0), mf.Parameter("slope", -0.1, -2.0, 1.0))
    other = mf.Exponential(mf.Observable("x", 0.0, high), mf.Parameter("slope", -0.1, -2.0, 1.0))
    drawn = mf.generate(wide, 1_000, seed=1)
    if high > 10.0:
        assert mf.Likelihood(other, drawn).data["x"].tolist() == drawn["x"].tolist()
    else:
        with pytest.raises(
            mf.DataError, match=r"dataset: observable 'x': \d+ of 1000 events lie outside \[0.0, 5.0\]"
        ):
            mf.Likelihood(other, drawn)


def test_weights_passed_for_a_checked_dataset_are_checked():
    model = mf.Exponential(mf.Observable("x", 0.0, 10.0), mf.Parameter("slope", -0.1, -2.0, 1.0))
    drawn = mf.generate(model, 3, seed=1)
    with pytest.raises(mf.DataError, match="dataset: weights: length must be 3 as for 'x', got 2"):
        mf.Likelihood(model, drawn, weights=[1.0, 2.0])
    assert mf.Likelihood(model, drawn, weights=[1.0, 2.0, 3.0]).data.weights.tolist() == [1.0, 2.0, 3.0]
