"""Plots of fits in ranges: normalised in them, dashed outside, empty where they are blind."""

import numpy as np
import pytest

import morefit as mf
from tolerances import NUMERICAL

M, T = mf.Observable("m", 5.0, 7.0), mf.Observable("t", 0.0, 5.0)
MU, TAU = mf.Parameter("mu", 5.3, 5.0, 6.0), mf.Parameter("tau", 1.2, 0.2, 5.0)
ALPHA, SLOPE = mf.Parameter("alpha", -1.0, -10.0, 10.0), mf.Parameter("slope", -0.2, -3.0, 3.0)
COUNTS = [mf.Parameter("signal", 1500, 0, 1e6), mf.Parameter("background", 3500, 0, 1e6)]
RANGES, TIMES = ((5.0, 5.2), (5.4, 6.5)), ((0.5, 1.0), (2.0, 4.5))
EDGES = np.linspace(5.0, 7.0, 21)
INSIDE = (EDGES[1:] < 5.201) | ((EDGES[:-1] > 5.399) & (EDGES[1:] < 6.501))


def model(kind):
    """Return a sum of products with yields or a fraction, or a density that is no product."""
    if kind == "joined":
        return mf.Density(
            np.exp(-0.5 * ((M - MU) / 0.5) ** 2 - T / TAU * (1 + 0.2 * ALPHA * (M - 6))), [M, T]
        )
    pdfs = [
        mf.Product([mf.Gaussian(M, MU, 0.1), mf.Exponential(T, -1 / TAU)]),
        mf.Product([mf.Exponential(M, ALPHA), mf.Exponential(T, SLOPE)]),
    ]
    weights = {"yields": COUNTS} if kind == "yields" else {"fractions": [0.3]}
    return mf.Sum(pdfs, labels=["peak", "tail"], **weights)


def in_times(data):
    return np.any([(data["t"] >= low) & (data["t"] <= high) for low, high in TIMES], axis=0)


def restricted(kind):
    return mf.Restricted(model(kind), {"m": RANGES, "t": TIMES})


@pytest.mark.parametrize("kind", ["yields", "fractions", "joined"])
def test_curve_in_ranges_is_the_restricted_density_and_goes_on_outside(kind):
    data = mf.generate(model(kind), 5000, seed=1)
    ranged = restricted(kind)
    numbers = mf.plots.project(ranged, data, "m", bins=20)
    inside = mf.Likelihood(ranged, data)
    total = inside.events if kind != "yields" else 5000 * model(kind).integrate({"m": RANGES, "t": TIMES})
    for k in (0, 8, 12):
        share = ranged.integrate({"m": (EDGES[k], EDGES[k + 1])})
        assert numbers.expected[k] == pytest.approx(total * share, rel=NUMERICAL)
    # outside of the ranges of m, those of t still count
    share = model(kind).integrate({"m": (EDGES[3], EDGES[4]), "t": TIMES})
    area = model(kind).integrate({"m": RANGES, "t": TIMES})
    assert numbers.expected[3] == pytest.approx(total * share / area, rel=NUMERICAL)
    chosen = data["m"][in_times(data)]
    assert np.array_equal(numbers.counts, np.histogram(chosen, EDGES)[0])
    fitted = numbers.fitted.reshape(20, -1)
    assert np.array_equal(fitted.all(axis=1), INSIDE)
    assert np.array_equal(fitted.any(axis=1), INSIDE)
    if kind != "joined":
        np.testing.assert_allclose(sum(numbers.components.values()), numbers.curve)


def test_projections_on_another_observable_take_the_ranges_of_the_first():
    data = mf.generate(model("fractions"), 5000, seed=1)
    numbers = mf.plots.project(restricted("fractions"), data, "t", bins=10, ranges={"m": (5.0, 5.5)})
    m = data["m"]
    inside = ((m >= 5.0) & (m <= 5.2)) | ((m >= 5.4) & (m <= 5.5))
    assert np.array_equal(numbers.counts, np.histogram(data["t"][inside], numbers.edges)[0])
    total = mf.Likelihood(restricted("fractions"), data).events
    whole = model("fractions")
    area = whole.integrate({"m": RANGES, "t": TIMES})
    share = whole.integrate({"m": [(5.0, 5.2), (5.4, 5.5)], "t": (1.0, 1.5)})
    assert numbers.expected[2] == pytest.approx(total * share / area, rel=NUMERICAL)


def test_data_of_a_likelihood_are_empty_outside_of_its_ranges():
    data = mf.generate(model("yields"), seed=1)
    nll = mf.Likelihood(model("yields"), data, ranges={"m": RANGES, "t": TIMES})
    numbers = mf.plot(nll, "m", bins=20).numbers
    assert np.array_equal(np.isfinite(numbers.counts), INSIDE)
    assert np.array_equal(np.isfinite(numbers.pulls), INSIDE)
    assert np.nansum(numbers.counts) == nll.events
    coarse = mf.plot(nll, "m", bins=[5.0, 5.1, 5.3, 5.45, 6.0, 7.0]).numbers
    assert np.isfinite(coarse.counts).tolist() == [True, False, False, True, False]


def test_result_of_a_fit_in_ranges_says_how_to_normalise():
    data = mf.generate(model("yields"), seed=1)
    result = mf.fit(model("yields"), data, ranges={"m": RANGES}, yields_in="range")
    drawn = mf.plot(model("yields"), data, "m", values=result, bins=20)
    numbers = drawn.numbers
    assert np.array_equal(numbers.counts, np.histogram(data["m"], EDGES)[0])
    assert numbers.expected[INSIDE].sum() == pytest.approx(result.events, rel=1e-4)
    assert np.isnan(drawn.artists["model"].get_ydata()[1:-1][~numbers.fitted]).all()
    assert np.isfinite(drawn.artists["extrapolation"].get_ydata()).all()
    explicit = mf.plots.project(
        mf.Restricted(model("yields"), {"m": RANGES}, yields_in="range"),
        data,
        "m",
        values=result.values,
        bins=20,
    )
    assert np.array_equal(explicit.curve, numbers.curve)
    assert "extrapolation" not in mf.plot(model("yields"), data, "m").artists


def test_blind_bins_have_no_data_anywhere():
    data = mf.generate(model("fractions"), 5000, seed=1)
    drawn = mf.plot(model("fractions"), data, "m", bins=20, blind=[(5.25, 5.35), (6.0, 6.2)])
    blind = np.isin(np.arange(20), [2, 3, 10, 11])
    numbers = drawn.numbers
    for values in (numbers.counts, numbers.errors[0], numbers.errors[1], numbers.pulls):
        assert np.array_equal(np.isnan(values), blind)
    points = drawn.artists["data"].lines[0].get_xdata()
    assert len(points) == 16
    assert not np.any((points > 5.2) & (points < 5.4))
    assert np.isfinite(numbers.curve).all()
    alone = mf.plot(model("fractions"), data, "m", bins=20, blind=(5.0, 7.0))
    assert np.isnan(alone.numbers.counts).all()


def test_result_of_a_fit_in_ranges_of_another_observable_is_refused():
    data = mf.generate(model("fractions"), 500, seed=1)
    result = mf.fit(model("fractions"), data, ranges={"t": (1, 5)})
    with pytest.raises(
        mf.OptionError, match="plot: values are of a fit in ranges of 't', which the model does not"
    ):
        mf.plot(model("fractions").marginal("m"), {"m": data["m"]}, values=result)


def test_blind_ranges_may_be_by_the_name_of_the_observable():
    data = mf.generate(model("fractions"), 300, seed=1)
    one, other = (
        mf.plot(model("fractions"), data, "m", bins=8, blind=b) for b in ({"m": (5.5, 6)}, (5.5, 6))
    )
    np.testing.assert_array_equal(one.numbers.counts, other.numbers.counts)
    with pytest.raises(mf.OptionError, match="blind names 'mass', but 'm' is plotted; leave it out"):
        mf.plot(model("fractions"), data, "m", blind={"mass": (5.5, 6)})


def test_wrong_blind_ranges_are_explained():
    data = mf.generate(model("fractions"), 100, seed=1)
    with pytest.raises(mf.DataError, match=r"observable 'm': a sub-range must be \(low, high\), got 5.2"):
        mf.plot(model("fractions"), data, "m", blind=5.2)
    with pytest.raises(mf.DataError, match=r"a sub-range must lie in \[5.0, 7.0\], got \(4.0, 5.2\)"):
        mf.plot(model("fractions"), data, "m", blind=(4, 5.2))
    with pytest.raises(
        mf.DataError, match=r"observable 't': a sub-range must be one \(low, high\), got 2; plot them"
    ):
        mf.plot(model("fractions"), data, "m", ranges={"t": [(0, 1), (2, 3)]})
