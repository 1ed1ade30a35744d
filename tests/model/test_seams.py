"""Features in combination: conditional densities in ranges, whole numbers in ranges or given something, tables that are smeared."""

import itertools

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from tolerances import NUMERICAL

X, Y = mf.Observable("x", 0, 10), mf.Observable("y", 0.5, 2)
MU, S = mf.Parameter("mu", 4, 1, 8), mf.Parameter("s", 0.8, 0.2, 3)
PEAK = mf.Gaussian(X, MU, S * Y, given=[Y])
ROWS = {"y": np.random.default_rng(1).uniform(0.6, 1.9, 1_000)}
N, LAM = mf.Observable("n", -0.5, 20.5), mf.Parameter("lam", 3, 0.1, 20)


def chance(low, high, y):
    return stats.norm.cdf(high, 4, 0.8 * y) - stats.norm.cdf(low, 4, 0.8 * y)


def test_a_restricted_conditional_density_is_conditional():
    # this used to be a density of both, not normalised in y, whose y was drawn too
    model = mf.Restricted(PEAK, {"x": (2, 5)})
    data = mf.generate(model, given=ROWS, seed=1)
    assert [o.name for o in model.given] == ["y"]
    assert np.array_equal(data["y"], ROWS["y"])
    below = chance(2, data["x"], data["y"]) / chance(2, 5, data["y"])
    assert stats.kstest(below, "uniform").pvalue > 1e-3


def test_restricted_conditional_sums_are_drawn_from():
    # these were refused
    model = mf.Restricted(mf.Sum([PEAK, mf.Uniform(X)], fractions=[0.6]), {"x": [(1, 3), (5, 8)]})
    data = mf.generate(model, given=ROWS, seed=1)
    assert np.array_equal(data["y"], ROWS["y"])

    def area(low, high):
        return 0.6 * chance(low, high, data["y"]) / chance(0, 10, data["y"]) + 0.4 * (high - low) / 10

    first = area(1, np.minimum(data["x"], 3))
    below = (first + area(5, np.maximum(data["x"], 5))) / (area(1, 3) + area(5, 8))
    assert stats.kstest(below, "uniform").pvalue > 1e-3
    with pytest.raises(mf.ModelError, match=r"with 'y' given cannot be drawn in ranges of it"):
        mf.generate(mf.Restricted(PEAK, {"y": (1.0, 1.5)}), given=ROWS)


def test_a_plot_of_a_conditional_fit_in_ranges_extrapolates_event_by_event():
    # this used to end in a KeyError
    data = mf.generate(PEAK, given=ROWS, seed=2)
    edges = [0, 2, 5, 10]
    numbers = mf.plots.project(mf.Restricted(PEAK, {"x": (2, 5)}), data, "x", bins=edges)
    y = data["y"][(data["x"] >= 2) & (data["x"] <= 5)]
    expected = [np.sum(chance(a, b, y) / chance(2, 5, y)) for a, b in itertools.pairwise(edges)]
    assert numbers.expected == pytest.approx(expected, rel=NUMERICAL)


def test_whole_numbers_in_ranges_are_drawn_as_whole_numbers():
    # these used to be drawn as any numbers
    ranges, numbers = {"n": [(1.5, 4.5), (6.5, 8.5)]}, [2, 3, 4, 7, 8]
    drawn = mf.generate(mf.Restricted(mf.shapes.Poisson(N, LAM), ranges), 2_000, seed=3)["n"]
    values, counts = np.unique(drawn, return_counts=True)
    expected = stats.poisson.pmf(numbers, 3)
    assert values.tolist() == numbers
    assert stats.chisquare(counts, 2_000 * expected / expected.sum()).pvalue > 1e-3


def test_whole_numbers_of_a_composition_in_ranges_are_refused():
    model = mf.Restricted(mf.Efficiency(mf.shapes.Poisson(N, LAM), 1 + N), {"n": (1.5, 8.5)})
    with pytest.raises(mf.ModelError, match=r"whole numbers of \['n'\] cannot be drawn from a composition"):
        mf.generate(model, 10)


def test_a_binomial_may_be_given_a_column_of_any_numbers():
    # this used to look for kinks without end, and wanted whole numbers in x
    passed = mf.Observable("passed", -0.5, 1.5)
    efficiency = 0.5 * (1 + mf.erf((X - 4) / S))
    model = mf.shapes.Binomial(passed, 1, efficiency, given=[X])
    points = np.random.default_rng(4).uniform(0, 10, 1_000)
    data = mf.generate(model, given={"x": points}, seed=4)
    result = mf.fit(model, data)
    assert abs(result.values["s"] - 0.8) < 4 * result.errors["s"]
    p = stats.norm.cdf((points - 4) * 2**0.5 / 0.8)
    by_hand = -np.log(np.where(data["passed"] == 1, p, 1 - p)).sum()
    assert mf.Likelihood(model, data).value({"s": 0.8}) == pytest.approx(by_hand, rel=NUMERICAL)


def test_an_acceptance_of_whole_numbers_is_that_of_each_number():
    # this used to be integrated over the step around each number, as if numbers between were possible
    model = mf.Efficiency(mf.shapes.Poisson(N, LAM), 1 / (1 + np.exp(-(N - 2))))
    numbers = np.arange(21)
    expected = stats.poisson.pmf(numbers, 3) / (1 + np.exp(-(numbers - 2.0)))
    assert model.pdf(numbers) == pytest.approx(expected / expected.sum(), rel=NUMERICAL)
    assert model.integrate({"n": (2.5, 3.5)}) == pytest.approx(expected[3] / expected.sum(), rel=NUMERICAL)
    result = mf.fit(model, mf.generate(model, 1_000, seed=5))
    assert abs(result.values["lam"] - 3) < 4 * result.errors["lam"]


@pytest.mark.parametrize("ranges", [{"x": (1.0, 9.0)}, {"x": [(0.0, 4.0), (6.0, 10.0)]}, {"y": (0.3, 1.0)}])
@pytest.mark.parametrize("yields_in", ["full", "range"])
def test_issue_an_extended_conditional_model_has_no_ranges(ranges, yields_in):
    # this used to be a KeyError, or yields that were not those of the full ranges
    x, y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.2, 1.5)
    parts = [mf.Gaussian(x, 5.0, y, given=[y]), mf.Exponential(x, -0.3)]
    yields = [mf.Parameter("signal", 400.0, 0.0, 3000.0), mf.Parameter("rest", 600.0, 0.0, 3000.0)]
    model = mf.Sum(parts, yields=yields, given=[y])
    with pytest.raises(
        mf.ModelError, match="restricted: with 'y' given, how many events an extended model expects"
    ):
        mf.fit(model, {"x": [2.0, 5.0], "y": [0.5, 0.6]}, ranges=ranges, yields_in=yields_in)
