"""Combination of results by the best linear unbiased estimate: published numbers, joint fits, refusals."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import morefit as mf

X = mf.Observable("x", 0.0, 10.0)
A, B = {"electron": (10.5, 1.0), "tau": (9.5, 3.0)}, {"electron": (13.5, 3.0), "tau": (14.0, 3.0)}


def test_the_lifetimes_of_lyons_gibaut_and_clifford():
    # NIM A270 (1988) 110, equations 14 to 19
    rho = [[1, 0.54, 0.36, 0.46], [0.54, 1, 0.44, 0.60], [0.36, 0.44, 1, 0.42], [0.46, 0.60, 0.42, 1]]
    numbers = [(9.5, 1.66), (11.9, 1.29), (11.1, 1.45), (8.9, 1.71)]
    both = mf.combine([{"t": pair} for pair in numbers], correlations={"t": rho})
    assert [round(w, 2) for w in both.weights[0]] == [0.14, 0.47, 0.35, 0.04]
    assert (round(both.values["t"], 1), round(both.errors["t"], 1)) == (11.2, 1.1)


def test_the_branching_fractions_of_valassi():
    # NIM A500 (2003) 391, equations 38 and 40: two experiments, with and without lepton universality
    apart = mf.combine([A, B])
    assert [round(apart.values[n], 2) for n in apart.names] == [10.80, 11.75]
    assert [round(apart.errors[n], 2) for n in apart.names] == [0.95, 2.12]
    assert (round(apart.chi2, 2), apart.ndf) == (2.02, 2)
    one = mf.combine([{"b": pair} for pair in (*A.values(), *B.values())])
    assert (round(one.values["b"], 2), round(one.errors["b"], 2)) == (10.96, 0.87)


def test_two_parameters_of_different_results_may_correlate():
    # the same, equation 46: both fractions of experiment B have a correlation of 99.5 %
    pairs = [{"electron": A["electron"]}, {"electron": B["electron"]}, {"tau": A["tau"]}, {"tau": B["tau"]}]
    rho = np.eye(4)
    rho[1, 3] = rho[3, 1] = 0.995
    both = mf.combine(pairs, correlations={("electron", "tau"): rho})
    covariance = np.diag([1.0, 9.0, 9.0, 9.0])
    covariance[1, 3] = covariance[3, 1] = 0.995 * 9
    design, y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]]), np.array([10.5, 13.5, 9.5, 14.0])
    inverse = np.linalg.inv(covariance)
    expected = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ y)
    assert [both.values[n] for n in ("electron", "tau")] == pytest.approx(expected)
    assert both.covariance == pytest.approx(np.linalg.inv(design.T @ inverse @ design))


def test_fits_combine_as_the_sum_of_their_likelihoods():
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 1.0, 0.5, 2.0)
    model = mf.Gaussian(X, mean, width)
    parts = [mf.Likelihood(model, mf.generate(model, 20_000, seed=s)) for s in (1, 2)]
    both, joint = mf.combine([mf.fit(part) for part in parts]), mf.fit(parts[0] + parts[1])
    for name in joint.floating:
        assert both.values[name] == pytest.approx(joint.values[name], abs=0.02 * joint.errors[name])
        assert both.errors[name] == pytest.approx(joint.errors[name], rel=0.01)
    # a published result as a constraint of the other fit
    other = mf.fit(parts[1])
    constrained = mf.fit(
        parts[0], constraints=[mf.constraint([mean, width], [*other.values.values()], other.covariance)]
    )
    assert constrained.values["mean"] == pytest.approx(both.values["mean"], abs=1e-4)


def test_what_only_one_result_measures_profits_from_correlations():
    result = mf.combine(
        [{"a": (1.0, 0.1)}, {"a": (1.2, 0.1), "b": (5.0, 1.0)}], correlations={("a", "b"): 0.5}
    )
    assert result.errors["b"] < 1.0
    assert result.ndf == 1
    chosen = mf.combine([{"a": (1.0, 0.1)}, {"a": (1.2, 0.1), "b": (5.0, 1.0)}], ["a"])
    assert chosen.names == ("a",)


def test_a_combination_prints_itself_and_pickles():
    text = str(pickle.loads(pickle.dumps(mf.combine([A, B]))))
    assert text.splitlines()[0] == "combination of 4 values, chi2 / ndf 2.025 / 2, p-value 0.363"
    assert np.isnan(mf.combine([{"a": (1.0, 0.1)}, {"b": (1.0, 0.1)}]).p_value)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([A], {}, "needs a list of two results or more"),
        (A, {}, "needs a list of two results or more"),
        ([A, 3], {}, "result 2 must be a fit result or .value, error. by name, got 3"),
        ([A, {"electron": 3.0}], {}, "parameter 'electron': result 2 must have .value, error., got 3.0"),
        ([A, {"electron": (1.0, 0.0)}], {}, "parameter 'electron': needs a value and a positive error in result 2, got 1 and 0"),
        ([A, {"electron": (np.nan, 1.0)}], {}, "needs a value and a positive error in result 2"),
        ([A, {"electron": (1.0, -0.1)}], {}, "parameter 'electron': result 2 must have .value, error., got .1.0, -0.1."),
        ([A, B], {"parameters": ["muon"]}, "parameter 'muon': no result has measured it"),
        ([A, B], {"correlations": {"muon": 0.1}}, "'muon' is not among the combined parameters"),
        ([A, B], {"correlations": {("tau",): 0.1}}, "write one parameter, or a pair"),
        ([A, B], {"correlations": {"tau": 1.1}}, r"must be a number in \[-1, 1\] or a symmetric matrix"),
        ([A, B], {"correlations": {"tau": "x"}}, r"must be a number in \[-1, 1\] or a symmetric matrix"),
        ([A, B], {"correlations": {"tau": [[1, 0.5], [0.4, 1]]}}, "or a symmetric matrix of shape .2, 2."),
        ([A, B], {"correlations": {"tau": 1.0}}, "not positive definite"),
        ([{}, {}], {}, "no parameter floats in any of the results"),
    ],
)  # fmt: skip
def test_bad_combinations_are_refused(arguments, options, message):
    with pytest.raises((mf.OptionError, mf.DataError), match=message):
        mf.combine(arguments, **options)


def test_a_blinded_result_is_refused():
    mean = mf.Parameter("mean", 5.0, 4.0, 6.0, blind="a phrase")
    result = mf.fit(mf.Gaussian(X, mean, 1.0), np.linspace(3, 7, 50))
    with pytest.raises(mf.DataError, match="parameter 'mean': is blinded in result 1"):
        mf.combine([result, {"mean": (5.0, 0.1)}])


def test_a_fit_that_is_not_valid_or_ends_at_a_limit_is_refused():
    mean, width = mf.Parameter("mean", 7.0, 6.0, 9.0), mf.Parameter("width", 1.0, 0.5, 3.0)
    result = mf.fit(mf.Gaussian(X, mean, width), np.linspace(3, 7, 50))
    assert result.at_limit == ("mean",)
    with pytest.raises(mf.DataError, match="parameter 'mean': is at its limit in result 1"):
        mf.combine([result, {"mean": (5.0, 0.1)}])
    bad = replace(result, valid=False, reasons=("no minimum",))
    with pytest.raises(mf.DataError, match="result 2 must be a valid fit, got one that is not: no minimum"):
        mf.combine([{"mean": (5.0, 0.1)}, bad])
    with pytest.raises(mf.FitError, match="error_budget: needs a valid fit, got one that is not: no minimum"):
        bad.error_budget("width", {"mean": "mean"})


def test_parameters_of_very_different_sizes_are_combined_exactly():
    # an inverse without scaling used to lose all digits of the smaller one
    result = mf.combine(
        [{"n": (1e9, 1e6), "f": (1e-9, 1e-12)}, {"n": (1.001e9, 1e6), "f": (2e-9, 1e-12)}],
        correlations={"n": 0.5, ("n", "f"): 0.1},
    )
    assert result.values["n"] == pytest.approx(1.0005e9, rel=1e-6)
    assert result.values["f"] == pytest.approx(1.5e-9, rel=1e-12)
    assert result.errors["f"] == pytest.approx(1e-12 / np.sqrt(2), rel=1e-2)
