"""Plots: the numbers they show, what they leave alone, and what they refuse."""

import copy
import pickle
import re
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from fit_results import GOOD
from morefit.data.histogram import count_events, poisson_interval
from morefit.plots import PullFit, project
from morefit.plots.canvas import one_panel
from morefit.plots.style import styled
from tolerances import BIN_INTEGRAL, FEW_ROUNDINGS, NUMPY_SUM, PULL_SIGMAS

SOURCE = Path(mf.__file__).parent
M = mf.Observable("m", 5.0, 7.0, label="$m$ [GeV]")
C = mf.Observable("c", -1.0, 1.0)
TRUTH = {"mu": 5.28, "sigma": 0.06, "alpha": -1.0, "fsig": 0.3}


@pytest.fixture(autouse=True)
def closed_figures():
    """Leave no figure open, and never show one."""
    plt.close("all")
    yield
    plt.close("all")


def mass(**weights):
    mu, sigma = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
    parts = [mf.Gaussian(M, mu, sigma), mf.Exponential(M, mf.Parameter("alpha", -1.0, -10.0, 10.0))]
    return mf.Sum(parts, **(weights or {"fractions": [mf.Parameter("fsig", 0.3, 0.0, 1.0)]}))


def angle():
    return mf.Polynomial(C, [mf.Parameter("c1", 0.4, -1.0, 1.0)])


def mass_probability(low, high):
    """Return how likely an event of the mass model lies in a range, by scipy."""
    signal = stats.truncnorm((5 - 5.28) / 0.06, (7 - 5.28) / 0.06, 5.28, 0.06)
    background = stats.truncexpon(2.0, 5.0, 1.0)
    return sum(w * (d.cdf(high) - d.cdf(low)) for w, d in ((0.3, signal), (0.7, background)))


@pytest.fixture(scope="module")
def data():
    return mf.generate(mass(), 5_000, seed=1)


@pytest.fixture(scope="module")
def plane():
    model = mf.Product([mass(), angle()])
    return model, mf.generate(model, 20_000, seed=2)


# ------------------------------------------------------------------------------------ counts and errors


def test_poisson_intervals_are_those_of_garwood():
    counts = np.array([0.0, 1.0, 2.0, 10.0, 1000.0])
    tail = stats.norm.sf(1)
    low, high = poisson_interval(counts)
    np.testing.assert_allclose(low[1:], stats.chi2.ppf(tail, 2 * counts[1:]) / 2, rtol=BIN_INTEGRAL)
    np.testing.assert_allclose(high, stats.chi2.isf(tail, 2 * counts + 2) / 2, rtol=BIN_INTEGRAL)
    assert low[0] == 0
    assert high[0] == pytest.approx(1.841, abs=5e-4)  # published in every table of them


def test_counts_carry_their_poisson_intervals():
    found = count_events(mf.Dataset({"x": [0.1, 0.2, 0.2, 0.9]}), "x", np.array([0.0, 0.5, 0.8, 1.0]))
    np.testing.assert_array_equal(found.counts, [3, 0, 1])
    low, high = poisson_interval(found.counts)
    np.testing.assert_allclose(found.counts - found.low, low, rtol=FEW_ROUNDINGS)
    np.testing.assert_allclose(found.counts + found.high, high, rtol=FEW_ROUNDINGS)


def test_weighted_counts_carry_the_root_of_the_sum_of_squared_weights():
    weights = np.array([0.5, 2.0, -1.0, 3.0])
    found = count_events(
        mf.Dataset({"x": [0.1, 0.2, 0.2, 0.9]}, weights=weights), "x", np.array([0.0, 0.5, 0.8, 1.0])
    )
    np.testing.assert_allclose(found.counts, [1.5, 0, 3])
    np.testing.assert_allclose(found.low, [np.sqrt(5.25), 0, 3])
    np.testing.assert_array_equal(found.low, found.high)


def test_pulls_use_the_error_on_the_side_of_the_model():
    found = count_events(mf.Dataset({"x": np.repeat([0.5, 1.5], 9)}), "x", np.array([0.0, 1.0, 2.0]))
    low, high = poisson_interval(np.array([9.0]))
    expected = [(9 - 5) / (9 - low[0]), (9 - 14) / (high[0] - 9)]
    np.testing.assert_allclose(found.pulls(np.array([5.0, 14.0])), expected, rtol=FEW_ROUNDINGS)


def test_empty_bins_have_finite_pulls_and_none_if_no_error_is_known():
    edges = np.array([0.0, 1.0, 2.0])
    plain = count_events(mf.Dataset({"x": [0.5]}), "x", edges)
    assert plain.pulls(np.array([1.0, 3.0]))[1] == pytest.approx(-3 / 1.841, rel=1e-3)
    weighted = count_events(mf.Dataset({"x": [0.5]}, weights=[2.0]), "x", edges)
    np.testing.assert_array_equal(np.isnan(weighted.pulls(np.array([1.0, 3.0]))), [False, True])


# ------------------------------------------------------------------------------------ normalisation


def test_model_is_normalised_to_the_events(data):
    found = project(mass(), data, "m", bins=40)
    assert found.expected.sum() == pytest.approx(5_000, rel=BIN_INTEGRAL)
    assert found.counts.sum() == 5_000
    edges = found.edges
    np.testing.assert_allclose(
        found.expected, [5_000 * mass_probability(*edges[k : k + 2]) for k in range(40)], rtol=BIN_INTEGRAL
    )


def test_weighted_events_normalise_to_the_sum_of_weights(data):
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(data))
    for found in (
        project(mass(), data, "m", weights=weights),
        project(mass(), data.with_weights(weights), "m"),
    ):
        assert found.weighted
        assert found.expected.sum() == pytest.approx(weights.sum(), rel=BIN_INTEGRAL)
        assert found.counts.sum() == pytest.approx(weights.sum(), rel=NUMPY_SUM)


def test_extended_model_is_normalised_to_its_yields_whatever_the_data(data):
    yields = [mf.Parameter("s", 1200.0, 0, 1e6), mf.Parameter("b", 2800.0, 0, 1e6)]
    found = project(mass(yields=yields), data, "m", values={"s": 1500.0}, labels=["signal", "background"])
    assert found.components["signal"].sum() == pytest.approx(1500, rel=BIN_INTEGRAL)
    assert found.components["background"].sum() == pytest.approx(2800, rel=BIN_INTEGRAL)
    assert found.expected.sum() == pytest.approx(4300, rel=BIN_INTEGRAL)


@pytest.mark.parametrize("how", [{"ranges": {"m": (5.2, 5.4)}}, {"bins": np.linspace(5.2, 5.4, 5)}])
def test_part_of_the_range_shows_what_is_expected_there_and_not_what_was_counted(data, how):
    found = project(mass(), data, "m", **how)
    assert found.expected.sum() == pytest.approx(5_000 * mass_probability(5.2, 5.4), rel=BIN_INTEGRAL)
    inside = np.sum((data["m"] >= 5.2) & (data["m"] <= 5.4))
    assert found.counts.sum() == inside != found.expected.sum()


def test_range_of_another_observable_cuts_the_data_and_scales_the_model(plane):
    model, data = plane
    found = project(model, data, "m", ranges={"c": (0.0, 0.5)})
    share = (0.5 + 0.4 * 0.125) / 2
    assert found.expected.sum() == pytest.approx(20_000 * share, rel=BIN_INTEGRAL)
    assert found.counts.sum() == np.sum((data["c"] >= 0) & (data["c"] <= 0.5))
    assert dict(found.ranges) == {"c": (0.0, 0.5)}


@pytest.mark.parametrize("observable", ["m", "c"])
@pytest.mark.parametrize("ranges", [{}, {"c": (-1.0, -0.2)}, {"m": (5.2, 5.4), "c": (0.1, 0.9)}])
def test_data_of_the_model_have_pulls_of_unit_width(plane, observable, ranges):
    model, data = plane
    found = project(model, data, observable, ranges=ranges, bins=20)
    spread = (found.counts - found.expected) ** 2 / found.expected
    assert abs(spread.sum() - 20) < PULL_SIGMAS * np.sqrt(2 * 20)
    assert np.all(np.sign(found.pulls) == np.sign(found.counts - found.expected))


def test_curve_has_finer_bins_and_leaves_the_expected_numbers_alone(data):
    coarse, fine = (project(mass(), data, "m", bins=30, oversampling=n) for n in (1, 25))
    assert len(coarse.curve) == coarse.oversampling * 30 == 30
    assert len(fine.curve) == 25 * 30
    np.testing.assert_allclose(fine.expected, coarse.expected, rtol=BIN_INTEGRAL)
    np.testing.assert_allclose(fine.curve.reshape(30, 25).sum(axis=1), fine.expected, rtol=FEW_ROUNDINGS)
    assert set(fine.edges) <= set(fine.curve_edges)


def test_components_add_up_to_the_model(plane):
    model, data = plane
    for observable in ("m", "c"):
        found = project(model, data, observable, labels=["signal", "background"])
        np.testing.assert_allclose(sum(found.components.values()), found.curve, rtol=FEW_ROUNDINGS)
        assert found.components["signal"].sum() == pytest.approx(0.3 * 20_000, rel=BIN_INTEGRAL)


def test_components_are_named_by_their_kind_and_numbered_if_it_comes_twice(data):
    parts = [mf.Gaussian(M, 5.3, 0.1), mf.Gaussian(M, 5.4, 0.2), mf.Uniform(M)]
    found = project(mf.Sum(parts, fractions=[0.2, 0.3]), data, "m")
    assert list(found.components) == ["Gaussian 1", "Gaussian 2", "Uniform"]
    assert not project(parts[0], data, "m").components


def test_values_are_those_of_a_fit_or_given_or_at_the_start(data):
    result = mf.fit(mass(), data)
    fitted = project(mass(), data, "m", values=result)
    given = project(mass(), data, "m", values=dict(result.values))
    start = project(mass(), data, "m")
    np.testing.assert_array_equal(fitted.expected, given.expected)
    np.testing.assert_array_equal(start.expected, project(mass(), data, "m", values=TRUTH).expected)
    assert np.any(start.expected != fitted.expected)


def test_plots_are_pickled_and_copied():
    # this used to be an error about a mapping
    plot = mf.plots.correlation(GOOD)
    for other in (pickle.loads(pickle.dumps(plot)), copy.deepcopy(plot)):
        assert list(other.artists) == list(plot.artists)
        assert other.figure is not plot.figure


def test_numbers_cannot_be_changed(data):
    found = project(mass(), data, "m")
    with pytest.raises(ValueError, match="read-only"):
        found.counts[0] = 1
    with pytest.raises(TypeError):
        found.components["Gaussian"] = found.curve
    copy = pickle.loads(pickle.dumps(found))
    assert not copy.counts.flags.writeable
    np.testing.assert_array_equal(copy.components["Gaussian"], found.components["Gaussian"])


@pytest.mark.parametrize(("events", "bins"), [(60, 10), (1_000, 20), (100_000, 100), (10**6, 100)])
def test_number_of_bins_follows_the_number_of_events(events, bins):
    masses = np.linspace(5, 7, events)
    assert len(project(mf.Uniform(M), {"m": masses}, "m").counts) == bins


# ------------------------------------------------------------------------------------ figures


def test_plot_returns_axes_artists_and_numbers(data):
    drawn = mf.plot(mass(), data, "m", labels=["signal", "background"])
    assert isinstance(drawn, mf.Plot)
    assert len(drawn.axes) == 2
    assert {"data", "model", "signal", "background", "pulls", "legend"} <= set(drawn.artists)
    assert drawn.figure is drawn.axes[0].figure
    with pytest.raises(TypeError):
        drawn.artists["data"] = None
    height = drawn.artists["model"].get_ydata()[1:-1]
    np.testing.assert_allclose(height, 10 * drawn.numbers.curve, rtol=FEW_ROUNDINGS)
    bars = [bar.get_height() for bar in drawn.artists["pulls"]]
    np.testing.assert_allclose(bars, drawn.numbers.pulls)


def test_labels_say_observable_unit_and_width(data):
    main, below = mf.plot(mass(), data, M, bins=40).axes
    assert below.get_xlabel() == "$m$ [GeV]"
    assert main.get_ylabel() == "Events / (0.05 GeV)"
    (main,) = mf.plot(mass(), data, M, bins=[5, 5.5, 7], lower=None).axes
    assert main.get_ylabel() == "Events / (GeV)"
    (main,) = mf.plot(angle(), {"c": [0.5]}, C, bins=[-1, 0.5, 1], lower=None).axes
    assert main.get_ylabel() == "Events per unit of c"
    (main,) = mf.plot(angle(), {"c": [0.5]}, C, bins=10, lower=None, weights=[2.0]).axes
    assert main.get_ylabel() == "Weighted events / 0.2"


def test_bins_of_different_width_are_drawn_as_densities(data):
    edges = np.array([5.0, 5.2, 5.4, 6.0, 7.0])
    drawn = mf.plot(mass(), data, "m", bins=edges)
    heights = drawn.artists["data"].lines[0].get_ydata()
    np.testing.assert_allclose(heights, drawn.numbers.counts / np.diff(edges))
    curve, places = (drawn.artists["model"].get_data()[k] for k in (1, 0))
    assert integrate.trapezoid(curve, places) == pytest.approx(5_000, rel=0.02)
    assert np.max(np.abs(np.diff(curve))) < 0.5 * curve.max()  # no jumps where widths change


def test_empty_bins_are_drawn_when_asked_for():
    masses = {"m": np.array([5.05, 5.06, 6.95])}
    hidden = mf.plot(mass(), masses, "m", bins=10)
    shown = mf.plot(mass(), masses, "m", bins=10, empty_bins=True)
    assert len(hidden.artists["data"].lines[0].get_xdata()) == 2
    assert len(shown.artists["data"].lines[0].get_xdata()) == 10
    assert np.all(np.isfinite(shown.numbers.pulls))


def test_logarithmic_axis_shows_every_count(data):
    drawn = mf.plot(mass(), data, "m", log=True, bins=50)
    low, high = drawn.axes[0].get_ylim()
    assert drawn.axes[0].get_yscale() == "log"
    positive = drawn.numbers.counts[drawn.numbers.counts > 0]
    assert 0 < low < positive.min()
    assert high > positive.max()


def test_pulls_beyond_the_panel_are_marked_at_its_edge():
    masses = {"m": np.concatenate([np.full(500, 5.9), np.linspace(5, 7, 100)])}
    drawn = mf.plot(mf.Uniform(M), masses, "m", bins=11)
    assert drawn.numbers.pulls.max() > 5
    assert drawn.axes[1].get_ylim() == (-5, 5)
    assert list(drawn.artists["pulls above"].get_xdata()) == [pytest.approx(5 + 4.5 * 2 / 11)]
    assert max(bar.get_height() for bar in drawn.artists["pulls"]) == 5


@pytest.mark.parametrize("log", [False, True])
def test_legend_does_not_cover_the_data(log):
    flat = {"c": np.random.default_rng(1).uniform(-1, 1, 4_000)}
    drawn = mf.plot(mf.Uniform(C), flat, "c", log=log)
    drawn.figure.draw_without_rendering()
    main = drawn.axes[0]
    box = drawn.artists["legend"].get_window_extent()
    tops = drawn.numbers.counts + drawn.numbers.errors[1]
    middles = (drawn.numbers.edges[1:] + drawn.numbers.edges[:-1]) / 2
    places = main.transData.transform(np.column_stack([middles, tops]))
    assert not np.any((places[:, 0] > box.x0) & (places[:, 0] < box.x1) & (places[:, 1] > box.y0))
    assert all(len(ax.xaxis.get_minorticklocs()) for ax in drawn.axes)  # left out to place the legend


def test_one_axes_gets_the_main_panel_and_two_get_the_pulls(data):
    figure, (left, right) = plt.subplots(1, 2)
    assert mf.plot(mass(), data, "m", ax=left).axes == (left,)
    assert mf.plot(mass(), data, "m", ax=(left, right)).axes == (left, right)
    assert mf.plot(mass(), data, "m", ax=np.array([left, right])).figure is figure
    assert plt.get_fignums() == [figure.number]


def test_axes_may_lie_in_a_part_of_a_figure(data):
    figure = plt.figure(layout="constrained")
    part, _ = figure.subfigures(1, 2)
    drawn = mf.plot(mass(), data, "m", ax=part.subplots(2, 1, sharex=True))
    assert drawn.figure is figure


def test_range_where_nothing_is_expected_or_counted_can_be_drawn():
    peak = mf.Gaussian(M, 5.1, 1e-3)
    drawn = mf.plot(peak, {"m": [5.1, 5.1005]}, "m", bins=np.linspace(6, 7, 5))
    assert np.all(drawn.numbers.pulls == 0)


def test_global_state_of_matplotlib_is_left_alone(data, monkeypatch):
    def shown(*_, **__):
        raise AssertionError("a plot was shown")

    monkeypatch.setattr(plt, "show", shown)
    before = mpl.rcParams.copy()
    for style in (None, "LHCb2", {"lines.linewidth": 3}):
        mf.plot(mass(), data, "m", style=style)
    assert dict(mpl.rcParams) == dict(before)
    assert len(plt.get_fignums()) == 3


def test_styles_of_mplhep_are_known_by_name(data):
    own = mf.plot(mass(), data, "m")
    lhcb = mf.plot(mass(), data, "m", style="LHCb2")
    assert lhcb.axes[0].yaxis.label.get_size() > own.axes[0].yaxis.label.get_size()
    thick = mf.plot(mass(), data, "m", style={"lines.linewidth": 7})
    assert thick.artists["model"].get_linewidth() == 7


def test_matplotlib_is_imported_in_one_room_and_only_when_needed():
    importing = re.compile(r"^( *)(?:import|from) (?:matplotlib|mplhep)\b", re.M)
    for path in SOURCE.rglob("*.py"):
        indents = importing.findall(path.read_text(encoding="utf-8"))
        subclass = path.name == "ticks.py"  # of a class of matplotlib; a function imports it when it draws
        assert not indents or (path.parent.name == "plots" and (subclass or all(indents))), path


def test_numbers_at_ticks_are_text_and_the_power_of_ten_that_they_share_is_mathematics():
    with styled(None):
        ax = one_panel("plot", None)
    ax.set_ylim(0, 4e7)
    numbers = pickle.loads(pickle.dumps(ax.yaxis.get_major_formatter()))
    assert numbers.format_ticks([0.0, 1e7, 2e7]) == ["0", "1", "2"]
    assert numbers.get_offset() == r"$\times\mathdefault{10^{7}}\mathdefault{}$"


# ------------------------------------------------------------------------------------ toys, scans, matrices


def toys(pulls):
    """Make up toys with given pulls of one parameter."""
    n = len(pulls)
    return mf.ToyResults(
        ("mu",), {"mu": 2.0}, 2.0 + 0.5 * np.asarray(pulls)[:, None], np.full((n, 1), 0.5), np.zeros(n), np.zeros(n),
        np.ones(n, bool), np.zeros(n, np.uint8), np.full(n, 10), 1,
    )  # fmt: skip


def test_pulls_of_toys_are_fitted_by_a_gaussian():
    pulls = np.random.default_rng(3).normal(0.2, 1.3, 4_000)
    drawn = mf.plots.pulls(toys(pulls), "mu")
    found = drawn.numbers
    assert isinstance(found, PullFit)
    assert found.outside == np.sum(np.abs(pulls) > 5)
    assert found.result.valid
    for name, true in (("mean", 0.2), ("width", 1.3)):
        assert abs(found.result.values[name] - true) < PULL_SIGMAS * found.result.errors[name]
    texts = [text.get_text() for text in drawn.artists["legend"].get_texts()]
    assert texts[0] == "toys"
    assert re.match(r"Gaussian\nmean \$.* \\pm .*\$\nwidth", texts[1])


def test_toys_outside_or_without_a_pull_are_counted():
    found = mf.plots.pulls(toys([*np.linspace(-1, 1, 30), 70.0, np.nan]), "mu")
    assert (found.numbers.outside, found.numbers.missing) == (1, 1)
    assert "1 outside\n1 without" in found.artists["legend"].get_texts()[1].get_text()


def test_too_few_pulls_are_refused():
    with pytest.raises(
        mf.DataError, match=r"needs at least 5 pulls between -5 and 5, got 2 of 3 toys for 'mu'"
    ):
        mf.plots.pulls(toys([0.1, 0.2, 99.0]), "mu")


@pytest.fixture(scope="module")
def likelihood(data):
    return mf.Likelihood(mass(), data)


@pytest.fixture(scope="module")
def best(likelihood):
    return mf.fit(likelihood)


def test_profile_is_drawn_with_its_intervals(likelihood, best):
    found = mf.intervals.profile(likelihood, "mu", best=best, size=11, progress=False)
    drawn = mf.plots.profile(found)
    assert drawn.numbers is found
    ends = [segment[0, 0] for segment in drawn.artists["68.27 % ends"].get_segments()]
    np.testing.assert_allclose(ends, found.interval(0.6827))
    x, y = drawn.artists["curve"].get_data()
    np.testing.assert_allclose(np.interp(found.interval(0.6827), x, y), 0.5, atol=0.02)


def test_contour_is_drawn_with_its_lines(likelihood, best):
    found = mf.intervals.contour(likelihood, "mu", "sigma", best=best, size=9, progress=False)
    drawn = mf.plots.contour(found)
    (line,) = drawn.artists["95.45 %"]
    np.testing.assert_array_equal(line.get_xydata(), found.lines(0.9545)[0])
    legend = drawn.artists["legend"].get_window_extent()  # it used to cover the best fit
    points = drawn.axes[0].transData.transform([found.best, *line.get_xydata()])
    assert not any(legend.contains(*point) for point in points)


def belt():
    values = np.linspace(0, 1, 5)
    spread = np.linspace(-0.2, 0.2, 201)
    return mf.intervals.NeymanBelt("f", values, values[:, None] + spread, (0.0, 1.0), 0.9, 1)


def test_belt_is_drawn_with_the_interval_of_an_estimate():
    drawn = mf.plots.belt(belt(), 0.4, levels=(0.9, 0.5))
    low, high = (line.get_xdata() for line in drawn.artists["90 % edges"])
    np.testing.assert_array_equal(low, belt().low)
    np.testing.assert_array_equal(high, belt().high)
    (shade,) = drawn.artists["interval"]
    assert shade.get_y() == pytest.approx(belt().interval(0.4).low)
    assert "observed" not in mf.plots.belt(belt()).artists


def p_values():
    values = np.linspace(0, 1, 5)
    t = np.random.default_rng(1).chisquare(1, (5, 400)).astype(np.float32)
    return mf.intervals.FeldmanCousins(
        "f", values, (values - 0.4) ** 2 * 60, t, ("f",), values[:, None], np.zeros(5, np.int64), 0.4, (0.0, 1.0), 0.9, 1
    )  # fmt: skip


def test_p_values_are_drawn_with_their_level_and_critical_values():
    found = p_values()
    drawn = mf.plots.p_values(found)
    np.testing.assert_array_equal(drawn.artists["p"].lines[0].get_ydata(), found.p_values)
    np.testing.assert_array_equal(drawn.artists["critical"].get_ydata(), found.critical)
    assert drawn.artists["level"].get_ydata()[0] == pytest.approx(0.1)
    ((shade,), _) = drawn.artists["accepted"]
    assert shade.get_x() == pytest.approx(found.interval().low)
    _, ax = plt.subplots()
    assert mf.plots.p_values(found, ax=ax).axes == (ax,)


def test_correlations_are_drawn_as_a_matrix(best):
    drawn = mf.plots.correlation(best)
    np.testing.assert_array_equal(drawn.artists["image"].get_array(), best.correlation)
    assert [t.get_text() for t in drawn.axes[0].get_yticklabels()] == list(best.floating)
    assert len(drawn.artists["texts"]) == 16


# ------------------------------------------------------------------------------------ what is refused

WRONG = {
    "unknown": ({"observable": "mm"}, mf.ModelError, r"observable 'mm': not in the model; did you mean 'm'\?"),
    "no such range": ({"ranges": {"n": (0, 1)}}, mf.ModelError, "observable 'n': not in the model; "),
    "no pair": ({"ranges": {"m": 5.0}}, mf.DataError, r"observable 'm': a sub-range must be \(low, high\), got 5.0"),
    "empty range": ({"ranges": {"m": (6, 6)}}, mf.DataError, "observable 'm': a sub-range must not be empty, got"),
    "too wide": (
        {"ranges": {"m": (4, 6)}}, mf.DataError, r"a sub-range must lie in \[5.0, 7.0\], got \(4.0, 6.0\); the model"
    ),
    "no events": (
        {"ranges": {"m": (6.5, 6.6)}, "data": {"m": [5.1, 5.2]}}, mf.DataError,
        r"dataset: none of 2 events has 'm' in \[6.5, 6.6\]; widen the ranges",
    ),
    "no column": ({"data": {"n": [5.5]}}, mf.DataError, "dataset: observable 'm': missing;"),
    "events outside": ({"data": {"m": [5.5, 7.5]}}, mf.DataError, r"1 of 2 events lie outside \[5.0, 7.0\]"),
    "no bins": ({"bins": 0}, mf.OptionError, "observable 'm': needs at least one bin, got 0"),
    "descending": ({"bins": [6, 5]}, mf.OptionError, r"bins must be a number or edges that ascend, got \[6, 5\]"),
    "bins outside": ({"bins": [4, 6]}, mf.OptionError, r"bins must lie in \[5.0, 7.0\], got edges from 4.0 to 6.0"),
    "oversampling": ({"oversampling": 0}, mf.OptionError, "plot: oversampling must be at least 1, got 0"),
    "labels": ({"labels": ["one"]}, mf.ModelError, r"labels must name the 2 components of the model, .* got \['one'\]"),
    "taken": ({"labels": ["data", "b"]}, mf.ModelError, r"and not 'data', 'model', 'extrapolation', 'band', 'legend', 'pulls', 'residuals', 'ratio', got \['data', 'b'\]"),
    "stranger": ({"values": {"nu": 1.0}}, mf.ModelError, r"has no parameter 'nu'; did you mean 'mu'\?"),
    "ax": ({"ax": 3}, mf.OptionError, r"plot: ax must be Axes or a pair \(main, lower\) of them, got int"),
    "three axes": ({"ax": (1, 2, 3)}, mf.OptionError, "of them, got int, int, int"),
    "style": ({"style": "LHCb3"}, mf.OptionError, r"style 'LHCb3': not one of mplhep; did you mean 'LHCb"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_plotted_is_refused_with_a_way_out(name, data):
    wrong, kind, message = WRONG[name]
    arguments = {"data": data, "observable": "m"} | wrong
    with pytest.raises(kind, match=message):
        mf.plot(mass(), **arguments)
    assert not plt.get_fignums()


def test_result_of_another_model_is_refused(data):
    result = mf.fit(mf.Exponential(M, mf.Parameter("alpha", -1.0, -10.0, 10.0)), data)
    with pytest.raises(
        mf.ModelError, match=r"parameter 'mu': not in the fit result, which has 'alpha'; pass"
    ):
        mf.plot(mass(), data, "m", values=result)


@pytest.mark.parametrize("levels", [(), (0.1, 0.2, 0.3, 0.4)])
def test_levels_must_be_few(levels):
    with pytest.raises(mf.OptionError, match=f"plots.belt: takes one to 3 levels, got {len(levels)}"):
        mf.plots.belt(belt(), levels=levels)


def test_scans_take_single_axes():
    with pytest.raises(mf.OptionError, match=r"plots\.belt: ax must be the Axes of matplotlib, got tuple"):
        mf.plots.belt(belt(), ax=(1, 2))


def test_missing_matplotlib_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(mf.BackendError, match=r'matplotlib is not installed; pip install "morefit\[plot\]"'):
        mf.plot(mass(), data, "m")
    assert project(mass(), data, "m").counts.sum() == 5_000  # the numbers need no matplotlib


def test_missing_mplhep_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "mplhep", None)
    with pytest.raises(mf.BackendError, match=r"style 'LHCb2': mplhep is not installed; pip install"):
        mf.plot(mass(), data, "m", style="LHCb2")


# ------------------------------------------------------------------------------------ labels


LABELS = {"mu": r"$\mu$ [GeV]", "f": "$f$"}


def test_legends_use_the_labels_of_a_sum():
    x, mean = mf.Observable("x", -3.0, 3.0), mf.Parameter("mean", 0.0, -1.0, 1.0)
    parts = [mf.Gaussian(x, mean, 0.5), mf.Uniform(x)]
    model = mf.Sum(parts, fractions=[0.5], labels=["signal", "background"])
    data = mf.generate(model, 100, seed=1)
    drawn = mf.plot(model, data, x)
    assert list(drawn.numbers.components) == ["signal", "background"]
    assert [t.get_text() for t in drawn.artists["legend"].get_texts()][-2:] == ["signal", "background"]
    assert list(mf.plot(model, data, x, labels=["a", "b"]).numbers.components) == ["a", "b"]
    with pytest.raises(mf.ModelError, match=r"plot: labels must name the 2 components .* and not 'data'"):
        mf.plot(mf.Sum(parts, fractions=[0.5], labels=["data", "b"]), data, x)


def test_axes_use_the_labels_of_parameters(likelihood, best):
    model = mf.Gaussian(mf.Observable("x", 0, 1), mf.Parameter("mu", 0.5, label=LABELS["mu"]), 0.1)
    scan = mf.intervals.profile(likelihood, "mu", best=best, size=5, progress=False)
    assert mf.plots.profile(scan).axes[0].get_xlabel() == "mu"
    for labels in (LABELS, model):
        assert mf.plots.profile(scan, labels=labels).axes[0].get_xlabel() == LABELS["mu"]
    grid = mf.intervals.contour(likelihood, "mu", "sigma", best=best, size=5, progress=False)
    main = mf.plots.contour(grid, labels=model).axes[0]
    assert (main.get_xlabel(), main.get_ylabel()) == (LABELS["mu"], "sigma")
    main = mf.plots.belt(belt(), labels=LABELS).axes[0]
    assert (main.get_xlabel(), main.get_ylabel()) == ("estimate of $f$", "true $f$")
    assert mf.plots.p_values(p_values(), labels=LABELS).axes[1].get_xlabel() == "$f$"
    ticks = mf.plots.correlation(best, labels=LABELS).axes[0].get_yticklabels()
    assert [t.get_text() for t in ticks] == [LABELS.get(name, name) for name in best.floating]


def test_pulls_use_the_label_of_their_parameter():
    study = toys(np.linspace(-1, 1, 30))
    for parameter, labels, text in (
        ("mu", None, "pull of mu"),
        ("mu", LABELS, f"pull of {LABELS['mu']}"),
        (mf.Parameter("mu", 0.0, label="$m$"), None, "pull of $m$"),
        (mf.Parameter("mu", 0.0), LABELS, f"pull of {LABELS['mu']}"),
    ):
        assert mf.plots.pulls(study, parameter, labels=labels).axes[0].get_xlabel() == text


def test_weights_that_were_left_out_are_missed():
    # this used to draw the events as they are below a model with the sum of their weights
    slope, total = mf.Parameter("slope", -1.0, -5.0, 5.0), mf.Parameter("total", 10.0, 0.0, 100.0)
    x = mf.Observable("x", 0.0, 1.0)
    model, data = mf.Sum([mf.Exponential(x, slope)], yields=[total]), {"x": [0.1, 0.4, 0.8]}
    result = mf.fit(model, data, weights=[2.0, 3.0, 2.0])
    with pytest.warns(UserWarning, match="the fit had weights, and these data have none; pass weights="):
        mf.plot(model, data, values=result)
    plotted = mf.plot(model, data, values=result, weights=[2.0, 3.0, 2.0])
    off = plotted.numbers.counts.sum() - plotted.numbers.expected.sum()
    assert abs(off) < 0.01 * result.errors["total"]
    plt.close("all")
