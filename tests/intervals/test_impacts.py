"""Impacts of nuisance parameters, their pulls, and error budgets."""

import pickle

import numpy as np
import pytest

import morefit as mf

X = mf.Observable("x", 0.0, 10.0)


def counting(constraints=True):
    """Return a likelihood of one count, n = mu * s * (1 + 0.1 a) + b * exp(0.2 c), with constraints of a and c."""
    mu, a, c = (
        mf.Parameter("mu", 1.0, 0.0, 5.0),
        mf.Parameter("a", 0.0, -5.0, 5.0),
        mf.Parameter("c", 0.0, -5.0, 5.0),
    )
    model = mf.Sum(
        [mf.Uniform(X), mf.Uniform(X)],
        yields=[
            mf.Derived("signal", mu * 100 * (1 + 0.1 * a)),
            mf.Derived("background", 50 * np.exp(0.2 * c)),
        ],
    )
    measured = [mf.constraint(a, 0.0, 1.0), mf.constraint(c, 0.5, 1.0)] if constraints else []
    return mf.BinnedLikelihood(model, (np.array([160.0]), np.array([0.0, 10.0])), constraints=measured)


def peak(backend="auto"):
    """Return a peak over a background, with a constraint of each kind."""
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 0.5, 0.2, 1.0)
    slope, signals = mf.Parameter("slope", -0.2, -1.0, 1.0), mf.Parameter("signals", 200.0, 0.0, 1000.0)
    backgrounds = mf.Parameter("backgrounds", 300.0, 0.0, 2000.0)
    model = mf.Sum([mf.Gaussian(X, mean, width), mf.Exponential(X, slope)], yields=[signals, backgrounds])
    data = mf.generate(model, seed=4)
    constraints = [
        mf.constraint(mean, 5.05, 0.05),
        mf.constraint(width, 0.5, 0.05, kind="lognormal"),
        mf.constraint(2 * backgrounds, 610.0, kind="poisson"),
    ]
    return mf.Likelihood(model, data, constraints=constraints, backend=backend)


def test_impacts_are_those_of_fits_with_one_parameter_fixed():
    nll = peak()
    best = mf.fit(nll, tolerance=1e-5)
    impacts = mf.intervals.impacts(nll, "signals", best=best)
    assert sorted(impacts.names) == ["backgrounds", "mean", "slope", "width"]
    for k, name in enumerate(impacts.names):
        for side, sign in enumerate((-1, 1)):
            for changes, errors in (
                (impacts.before, impacts.nominal_errors),
                (impacts.after, impacts.errors),
            ):
                if np.isnan(errors[k]):
                    assert np.isnan(changes[k]).all()
                    continue
                fixed = mf.fit(nll, fixed={name: impacts.values[k] + sign * errors[k]}, tolerance=1e-5)
                assert changes[k, side] == pytest.approx(
                    fixed.values["signals"] - best.values["signals"], abs=0.01
                )
    largest = np.abs(impacts.after).max(axis=1)
    assert np.all(np.diff(largest) <= 0)


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_impacts_are_the_same_on_every_backend(backend):
    expected, impacts = (
        mf.intervals.impacts(peak("cpu"), "signals"),
        mf.intervals.impacts(peak(backend), "signals"),
    )
    assert impacts.names == expected.names
    np.testing.assert_allclose(impacts.after, expected.after, atol=1e-4)
    np.testing.assert_allclose(impacts.before, expected.before, atol=1e-4)


def test_the_nominal_values_and_errors_are_those_of_the_constraints():
    impacts = mf.intervals.impacts(peak(), "signals")
    nominal = dict(zip(impacts.names, zip(impacts.nominal, impacts.nominal_errors, strict=True), strict=True))
    assert nominal["mean"] == pytest.approx((5.05, 0.05))
    assert nominal["width"] == pytest.approx((0.5, 0.5 * np.log(1.1)), rel=1e-4)
    assert nominal["backgrounds"] == pytest.approx((305.0, np.sqrt(610) / 2), rel=1e-4)
    assert np.isnan(nominal["slope"]).all()


def test_pulls_and_impacts_of_a_count_are_those_of_a_calculation_by_hand():
    nll = counting()
    impacts = mf.intervals.impacts(nll, "mu")
    # one count determines mu alone: the constrained parameters stay where their constraints have them
    assert impacts.pulls == pytest.approx([0, 0], abs=1e-4)
    assert impacts.constrained == pytest.approx([1, 1], abs=1e-3)
    mu = (160 - 50 * np.exp(0.1)) / 100
    after = dict(zip(impacts.names, impacts.after, strict=True))
    assert after["a"] == pytest.approx([mu / 0.9 - mu, mu / 1.1 - mu], abs=1e-3)
    assert after["c"] == pytest.approx(
        [(160 - 50 * np.exp(0.1 + s * 0.2)) / 100 - mu for s in (-1, 1)], abs=1e-3
    )


def test_correlated_constraints_and_those_of_formulas_have_nominal_values():
    x, y, z = (mf.Parameter(name, 0.0, -10.0, 10.0) for name in ("x0", "y0", "z0"))
    model = mf.Gaussian(X, 5 + 0.1 * (x + y + z), 1.0)
    both = mf.constraint([x, y], [1.0, 2.0], [[0.25, 0.1], [0.1, 0.36]])
    nll = mf.Likelihood(
        model, mf.generate(model, 100, seed=1), constraints=[both, (z - 3) ** 2 / 2, (x + z) ** 2 / 1e6]
    )
    impacts = mf.intervals.impacts(nll, x)
    nominal = dict(zip(impacts.names, zip(impacts.nominal, impacts.nominal_errors, strict=True), strict=True))
    assert nominal["y0"] == pytest.approx((2.0, 0.6), rel=1e-4)
    assert nominal["z0"] == pytest.approx((3.0, 1.0), rel=1e-4)


def test_a_constraint_that_does_not_determine_its_parameters_leaves_no_numbers_before_the_fit():
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 1.0, 0.5, 2.0)
    model = mf.Gaussian(X, mean, width)
    nll = mf.Likelihood(
        model, mf.generate(model, 100, seed=1), constraints=[mf.constraint(mean / width, 5.0, 0.1)]
    )
    impacts = mf.intervals.impacts(nll, mean)
    assert np.isnan(impacts.nominal).all()
    assert np.isnan(impacts.before).all()
    assert np.isfinite(impacts.after).all()


def test_a_value_outside_limits_leaves_no_change():
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 1.0, 0.99, 2.0)
    model = mf.Gaussian(X, mean, width)
    impacts = mf.intervals.impacts(
        mf.Likelihood(model, mf.generate(model, 100, truth={"width": 1.0}, seed=2)), mean
    )
    assert np.isnan(impacts.after[0, 0])


def test_impacts_need_a_floating_parameter():
    with pytest.raises(
        mf.FitError, match="impacts: needs floating parameters, got 'signal': did you mean 'signals'"
    ):
        mf.intervals.impacts(peak(), "signal")
    with pytest.raises(mf.FitError, match="impacts: takes a model or a likelihood, got int"):
        mf.intervals.impacts(3, "signal")


def test_impacts_print_themselves_and_pickle():
    impacts = mf.intervals.impacts(counting(), "mu")
    text = str(pickle.loads(pickle.dumps(impacts)))
    assert text.startswith("impacts on mu = ")
    assert "error / constraint" in text
    alone = mf.intervals.impacts(
        mf.Likelihood(mf.Gaussian(X, mf.Parameter("m", 5.0, 0.0, 9.0), 1.0), [5.0, 6.0]), "m"
    )
    assert alone.names == ()


def test_impacts_are_drawn():
    impacts = mf.intervals.impacts(peak(), "signals")
    plot = mf.plots.impacts(impacts, largest=3, labels={impacts.names[1]: r"$\mu$"})
    pulls, changes = plot.axes
    assert [tick.get_text() for tick in pulls.get_yticklabels()][1] == r"$\mu$"
    assert len(plot.artists["after, one error up"]) == 3
    assert changes.get_xlabel() == "change of signals"
    again = mf.plots.impacts(impacts, ax=plot.axes)
    assert again.figure is plot.figure
    with pytest.raises(mf.DataError, match="ax must be a pair of axes"):
        mf.plots.impacts(impacts, ax=pulls)
    with pytest.raises(mf.OptionError, match="largest must be"):
        mf.plots.impacts(impacts, largest=0)
    alone = mf.intervals.impacts(
        mf.Likelihood(mf.Gaussian(X, mf.Parameter("m", 5.0, 0.0, 9.0), 1.0), [5.0, 6.0]), "m"
    )
    with pytest.raises(mf.DataError, match="no other parameter floats"):
        mf.plots.impacts(alone)


# ----------------------------------------------------------------------------------- error budgets


def test_an_error_budget_is_what_fits_with_groups_fixed_say():
    nll = peak()
    best = mf.fit(nll, tolerance=1e-4)
    budget = best.error_budget("signals", {"shape": ["mean", "width"], "slope": nll.all_parameters[2]})
    without = {
        "shape": mf.fit(nll, fixed={n: best.values[n] for n in ("mean", "width")}, tolerance=1e-4),
        "slope": mf.fit(nll, fixed={"slope": best.values["slope"]}, tolerance=1e-4),
    }
    for group, result in without.items():
        expected = np.sqrt(best.errors["signals"] ** 2 - result.errors["signals"] ** 2)
        assert budget.groups[group] == pytest.approx(expected, rel=1e-3)
    neither = mf.fit(nll, fixed={n: best.values[n] for n in ("mean", "width", "slope")}, tolerance=1e-4)
    assert budget.statistical == pytest.approx(neither.errors["signals"], rel=1e-4)
    assert budget.systematic**2 + budget.statistical**2 == pytest.approx(budget.total**2)
    assert "statistical" in str(pickle.loads(pickle.dumps(budget)))


def test_parts_of_a_budget_add_up_where_groups_do_not_correlate():
    budget = mf.fit(counting()).error_budget("mu", {"a": "a", "c": "c"})
    assert budget.statistical**2 + sum(e**2 for e in budget.groups.values()) == pytest.approx(
        budget.total**2, rel=1e-3
    )
    assert budget.statistical == pytest.approx(np.sqrt(160) / 100, rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "groups must be parameters by name of the group"),
        (["mean"], "groups must be parameters by name of the group"),
        ({"shape": 3}, "group 'shape': must be a parameter or a list of them, got 3"),
        ({"total": "mean"}, "group 'total': this name is taken"),
        ({"a": "mean", "b": ["mean"]}, "parameter 'mean': must be in one group at most"),
        ({"a": "signals"}, "parameter 'signals': must be in one group at most"),
        ({"a": "men"}, "parameter 'men': not in the model; did you mean 'mean'"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    with pytest.raises((mf.OptionError, mf.ModelError), match=message):
        mf.fit(peak()).error_budget("signals", groups)


def test_a_budget_needs_an_inverse_hessian():
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 1.0, 0.5, 2.0)
    result = mf.fit(mf.Gaussian(X, mean, width), np.linspace(3, 7, 50), weights=np.linspace(0.5, 1.5, 50))
    with pytest.raises(
        mf.FitError, match="needs a covariance that is the inverse of a Hessian, got errors='sandwich'"
    ):
        result.error_budget(mean, {"width": width})
