"""What plots show on request: stacks, bands, residuals, ratios, boxes, points, planes, goodness of fit."""

from dataclasses import replace

import matplotlib.pyplot as plt
import mplhep
import numpy as np
import pytest
from scipy import integrate

import morefit as mf
from morefit.minimise.conditional import best_fit
from morefit.plots import project
from morefit.plots.canvas import LegendRoom, drawable, place_legends
from morefit.plots.panels import without_handle
from morefit.plots.style import settings, styled
from tolerances import BIN_INTEGRAL, FEW_ROUNDINGS

M = mf.Observable("m", 5.0, 7.0, label="$m$ [GeV]")
C = mf.Observable("c", -1.0, 1.0)
BAND = 2e-3  # relative, of differences over a fifth of a standard deviation


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def extended():
    mu, sigma = mf.Parameter("mu", 5.28, 5.0, 6.0, label=r"$\mu$"), mf.Parameter("sigma", 0.06, 0.005, 0.13)
    parts = [mf.Gaussian(M, mu, sigma), mf.Exponential(M, mf.Parameter("alpha", -1.0, -10.0, 10.0))]
    yields = [mf.Parameter("ns", 300.0, 0.0, 5000.0), mf.Parameter("nb", 700.0, 0.0, 5000.0)]
    return mf.Sum(parts, yields=yields, labels=["signal", "background"])


def nested():
    inner = mf.Sum([mf.Exponential(M, -1.0), mf.Uniform(M)], fractions=[0.6], labels=["slope", "flat"])
    return mf.Sum(
        [mf.Gaussian(M, 5.28, 0.06), inner],
        fractions=[mf.Parameter("f", 0.3, 0.0, 1.0)],
        labels=["signal", "rest"],
    )


@pytest.fixture(scope="module")
def fitted():
    model = extended()
    data = mf.generate(model, 1_000, seed=1)
    return model, data, mf.fit(model, data)


def texts(drawn):
    return [text.get_text() for text in drawn.artists["legend"].get_texts()]


# ------------------------------------------------------------------------------------ components


def test_stacked_components_reach_up_to_the_model(fitted):
    model, data, result = fitted
    drawn = mf.plot(model, data, values=result, components="stacked", lower=None)
    top = drawn.artists["signal"].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(drawn.artists["model"].get_ydata().max(), rel=FEW_ROUNDINGS)
    lowest = drawn.artists["background"].get_paths()[0].vertices[:, 1].min()
    assert lowest == 0


def test_nested_components_add_up_to_the_model_and_have_the_names_of_both():
    data = mf.generate(nested(), 200, seed=1)
    numbers = project(nested(), data, "m", nested=True)
    assert list(numbers.components) == ["signal", "rest: slope", "rest: flat"]
    np.testing.assert_allclose(sum(numbers.components.values()), numbers.curve, rtol=FEW_ROUNDINGS)
    flat = numbers.components["rest: flat"]
    assert flat.sum() == pytest.approx(200 * 0.7 * 0.4, rel=BIN_INTEGRAL)
    assert list(project(nested(), data, "m").components) == ["signal", "rest"]


def test_a_logarithmic_axis_shows_every_component(fitted):
    _, data, _ = fitted
    tiny = mf.Sum([nested(), mf.Gaussian(M, 6.5, 0.05)], fractions=[0.9999], labels=["all", "tiny"])
    drawn = mf.plot(tiny, data, log=True, lower=None)
    low, _ = drawn.axes[0].get_ylim()
    assert low < drawn.artists["tiny"].get_ydata().max() / 2


def test_many_components_do_not_fill_the_legend():
    parts = [mf.Gaussian(M, 5.1 + 0.1 * k, 0.05) for k in range(12)]
    drawn = mf.plot(mf.Sum(parts, fractions=[1 / 12] * 11), {"m": np.linspace(5.1, 6.9, 50)}, lower=None)
    assert texts(drawn)[-1] == "and 4 more"
    assert len([name for name in drawn.artists if name.startswith("Gaussian")]) == 12


# ------------------------------------------------------------------------------------ bands


def test_a_band_is_the_error_of_the_integral_over_each_bin(fitted):
    model, data, result = fitted
    numbers = project(model, data, "m", values=result, bins=8, oversampling=1, band=True)
    exact = [
        result.derived(model.expected_in({"m": (low, high)})).error
        for low, high in zip(numbers.edges[:-1], numbers.edges[1:], strict=True)
    ]
    np.testing.assert_allclose(numbers.band, exact, rtol=BAND)


def test_the_band_of_a_value_at_its_limit_stays_inside():
    sigma = mf.Parameter("sigma", 0.05, 0.05, 0.3)
    model = mf.Gaussian(M, 6.0, sigma)
    result = mf.fit(model, mf.generate(mf.Gaussian(M, 6.0, 0.04), 500, seed=1))
    assert result.at_limit == ("sigma",)
    numbers = project(model, {"m": [6.0]}, "m", values=result, band=True)
    assert np.isfinite(numbers.band).all()


def test_the_band_of_summed_categories_knows_the_parameters_they_share():
    nb = mf.Parameter("nb", 500.0, 0.0, 5000.0)
    shared = mf.Sum([mf.Exponential(M, -1.0)], yields=[nb])
    models = mf.Simultaneous({"a": shared, "b": shared}, "k")
    data = mf.generate(models, seed=1)
    result = mf.fit(models, data)
    total = mf.plot(models, data, values=result, band=True, summed=True, lower=None).numbers
    one = mf.plot(models, data, values=result, band=True, category="a", lower=None, bins=total.edges).numbers
    np.testing.assert_allclose(total.band, 2 * one.band, rtol=FEW_ROUNDINGS)
    assert total.floating == ("nb",)


def test_a_band_without_a_fit_or_without_its_covariance_is_refused(fitted):
    model, data, result = fitted
    with pytest.raises(
        mf.OptionError, match="plot: band needs the result of a fit, with its covariance; pass values=result"
    ):
        mf.plot(model, data, band=True)
    failed = replace(result, errors={**result.errors, "mu": np.nan})
    with pytest.raises(
        mf.DataError, match="the covariance of the fit, which is not known for 'mu'; leave band out"
    ):
        mf.plot(model, data, values=failed, band=True)


# ------------------------------------------------------------------------------------ below


def test_residuals_and_ratios_compare_data_and_model(fitted):
    model, data, result = fitted
    numbers = project(model, data, "m", values=result, bins=10)
    for kind, expected in (
        ("residuals", numbers.counts - numbers.expected),
        ("ratio", numbers.counts / numbers.expected),
    ):
        drawn = mf.plot(model, data, values=result, bins=10, lower=kind, band=True)
        points = drawn.artists[kind].lines[0].get_ydata()
        shown = np.isin(expected.round(9), points.round(9))
        assert shown.all()
        assert f"band of {kind}" in drawn.artists
        assert drawn.axes[1].get_ylabel().startswith("data")


def test_ratios_that_are_far_from_one_are_marked_at_the_edge(fitted):
    _, data, _ = fitted
    drawn = mf.plot(mf.Exponential(M, -1.0), data, lower="ratio", bins=40)
    assert "ratio above" in drawn.artists
    assert drawn.axes[1].get_ylim() == (0.0, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": "pull"}, "plot: lower must be 'pulls', 'residuals', 'ratio' or None, got 'pull'"),
        ({"components": "stack"}, "plot: components must be True, False or 'stacked', got 'stack'"),
        ({"box": 3}, "plot: box must be True, 'chi2' or a list of names, got 3"),
        ({"box": ["sgma"]}, "plot: box names 'sgma', which is no parameter; did you mean 'sigma'"),
        ({"box": "mu", "values": {"mu": 5.3}}, "box with parameters needs the result of a fit; pass values=result, or box='chi2'"),
    ],
)  # fmt: skip
def test_looks_that_do_not_exist_are_refused(options, message, fitted):
    model, data, result = fitted
    with pytest.raises(mf.OptionError, match=message):
        mf.plot(model, data, **{"values": result, **options})


# ------------------------------------------------------------------------------------ boxes and notes


def test_the_chi_square_of_a_plot_is_that_of_the_test_of_the_same_bins(fitted):
    model, data, result = fitted
    nll = mf.Likelihood(model, data)
    exact = best_fit("test", nll, result)  # tests go on from a fit to the minimum itself
    test = mf.intervals.goodness_of_fit(nll, "chi2", best=exact, bins=50)
    shown = project(model, data, "m", values=exact, bins=50).chi2
    assert shown.statistic == pytest.approx(test.statistic, rel=BIN_INTEGRAL)
    assert shown.ndf == test.ndf


def test_blind_bins_and_bins_without_events_have_no_part_in_a_chi_square(fitted):
    model, data, result = fitted
    whole = project(model, data, "m", values=result, bins=20).chi2
    blind = project(model, data, "m", values=result, bins=20, blind=(5.2, 5.4)).chi2
    assert blind.ndf == whole.ndf - 2
    assert project(model, data, "m", values=result, blind=(5.0, 7.0)).chi2.ndf == 0


def test_a_box_has_the_chi_square_and_parameters_with_their_labels(fitted):
    model, data, result = fitted
    lines = texts(mf.plot(model, data, values=result, box=True, lower=None))
    assert any(line.startswith(r"$\chi^2/\mathrm{ndf} = ") for line in lines)
    assert rf"$\mu$ = ${result.values['mu']:.3f} \pm {result.errors['mu']:.3f}$" in lines
    assert len(texts(mf.plot(model, data, values=result, box="chi2", lower=None))) == 5
    mu = next(p for p in model.parameters if p.name == "mu")
    for own in (mu, ["chi2", mu]):  # a list with a parameter used to be compared with 'chi2'
        assert any(
            line.startswith(r"$\mu$ = ") for line in texts(mf.plot(model, data, values=result, box=own))
        )
    assert len(texts(mf.plot(model, data, values=result, lower=None))) == 4


def test_a_long_legend_stays_inside_the_axes():
    """One higher than the axes used to make them collapse."""
    with styled(None):
        ax = plt.figure(layout="constrained").add_subplot()
        (line,) = ax.plot([0.0, 1.0], [0.0, 1.0])
        handles = [*without_handle(ax, tuple(f"a_long_name_{k} = 1.234 +- 0.056" for k in range(18))), line]
        (legend,) = place_legends([LegendRoom(ax, handles, np.array([0.0, 1.0]), np.array([0.0, 1.0]))])
        ax.figure.draw_without_rendering()
    box, axes = legend.get_window_extent(), ax.get_window_extent()
    assert axes.height > 350
    assert box.x0 >= axes.x0 and box.x1 <= axes.x1 and box.y0 >= axes.y0 + 0.3 * axes.height


def test_the_legend_says_when_start_values_are_drawn(fitted):
    model, data, result = fitted
    assert "model at start values" in texts(mf.plot(model, data))
    assert "model" in texts(mf.plot(model, data, values=result))
    assert "model" in texts(mf.plot(mf.Exponential(M, -1.0), data))  # which has no parameters


def test_a_curve_that_is_no_number_is_refused(fitted):
    model, data, _ = fitted
    with pytest.raises(mf.ModelError, match="plot: the model is not a number in bins of 'm' at these values"):
        mf.plot(model, data, values={"sigma": 0.0})


@pytest.mark.parametrize("label", [r"$\foo{x}$", r"$\frac{1}$", r"a $x^$ b"])
def test_labels_that_matplotlib_cannot_draw_are_shown_as_they_are_written(label):
    assert drawable(label) == label.replace("$", r"\$")
    assert drawable(r"$\mu$ of <b>") == r"$\mu$ of <b>"
    x = mf.Observable("x", 0.0, 1.0, label=label)
    mf.plot(mf.Uniform(x), {"x": [0.5]}).figure.draw_without_rendering()


@pytest.mark.parametrize("name", ["LHCb1", "CMS", "ATLAS"])
def test_text_and_mathematics_of_a_style_are_of_one_kind(name, caplog):
    chosen = settings(name)
    serif = vars(mplhep.style)[name]["font.family"] == "serif"
    assert chosen["mathtext.fontset"] == ("stix" if serif else "stixsans")
    assert isinstance(chosen["font.family"], str)
    mf.plot(mf.Uniform(M), {"m": [5.5]}, style=name).figure.draw_without_rendering()
    assert "not found" not in caplog.text  # matplotlib used to log every font that is not installed


# ------------------------------------------------------------------------------------ other likelihoods


def test_blind_ranges_hide_the_counts_of_a_histogram(fitted):
    # this used to show them: blind was for events alone
    model, data, result = fitted
    binned = mf.BinnedLikelihood(model, np.histogram(data["m"], 20, (5, 7)))
    numbers = mf.plot(binned, values=result, blind=(5.2, 5.4), lower=None).numbers
    assert np.isnan(numbers.counts).sum() == 2


def line():
    slope = mf.Parameter("slope", 1.0, -10.0, 10.0, label="$a$")
    start = mf.Parameter("start", 0.0, -10.0, 10.0)
    x = np.linspace(1, 9, 9)
    y = 2 + 0.5 * x + np.random.default_rng(1).normal(0, 0.3, 9)
    return mf.LeastSquares(lambda x: start + slope * x, x, y, 0.3, 0.1), (start, slope)


def test_least_squares_are_drawn_as_points_with_the_function():
    points, (start, slope) = line()
    result = mf.fit(points)
    drawn = mf.plot(points, values=result, band=True, box=True)
    numbers = drawn.numbers
    assert numbers.chi2.statistic == pytest.approx(result.chi2, rel=FEW_ROUNDINGS)
    assert numbers.chi2.ndf == result.ndf == 7
    place = float(numbers.curve_x[100])
    assert numbers.band[100] == pytest.approx(result.derived(start + slope * place).error, rel=BAND)
    assert {"data", "model", "band", "pulls"} <= set(drawn.artists)
    for lower in ("residuals", "ratio"):
        assert lower in mf.plot(points, values=result, lower=lower).artists
    assert "function at start values" in texts(mf.plot(points, lower=None))


def test_points_that_cannot_be_drawn_are_refused():
    points, _ = line()
    with pytest.raises(
        mf.OptionError, match="least squares have their points already; give no bins, ranges or blind"
    ):
        mf.plot(points, bins=10)
    x, y, a = mf.Observable("x", 0, 1), mf.Observable("y", 0, 1), mf.Parameter("a", 1.0)
    plane = mf.LeastSquares(a * x + y, {"x": [0.1, 0.2], "y": [0.1, 0.3]}, [1.0, 2.0], 0.1)
    with pytest.raises(mf.OptionError, match=r"plot: draws points in one observable, got \['x', 'y'\]"):
        mf.plot(plane)


# ------------------------------------------------------------------------------------ planes


def test_the_model_in_a_plane_is_its_integral_over_each_bin():
    c1 = mf.Parameter("c1", 0.4, -1.0, 1.0)
    formula = mf.Density(1 + c1 * C * (M - 6) ** 2, observables=[M, C])
    data = mf.generate(formula, 2_000, seed=1)
    numbers = mf.plots.plane(formula, data, "m", "c", bins=(4, [-1, 0, 0.5, 1])).numbers
    assert numbers.counts.sum() == 2_000
    assert numbers.expected.sum() == pytest.approx(2_000, rel=BIN_INTEGRAL)
    area, _ = integrate.dblquad(lambda c, m: 1 + 0.4 * c * (m - 6) ** 2, 5.5, 6.0, 0.5, 1.0)
    assert numbers.expected[1, 2] == pytest.approx(2_000 * area / 4, rel=BIN_INTEGRAL)
    assert np.isfinite(numbers.pulls).all()


def test_a_plane_shows_a_part_of_the_events_with_weights_in_own_axes():
    model = mf.Product([mf.Exponential(M, -1.0), mf.Uniform(C), mf.Uniform(mf.Observable("d", 0, 1))])
    data = mf.generate(model, 500, seed=1)
    _, axes = plt.subplots(1, 3)
    weights = np.full(500, 2.0)
    drawn = mf.plots.plane(
        model, data, C, M, ranges={"d": (0.0, 0.5)}, weights=weights, ax=axes, log=True, bins=5
    )
    assert drawn.axes == tuple(axes)
    assert drawn.numbers.counts.sum() == 2 * np.sum(data["d"] <= 0.5)
    assert drawn.numbers.expected.sum() == pytest.approx(500, rel=BIN_INTEGRAL)


def test_planes_that_cannot_be_drawn_are_refused():
    two = mf.Product([mf.Exponential(M, -1.0), mf.Uniform(C)])
    events = mf.generate(two, 50, seed=1)
    with pytest.raises(mf.OptionError, match=r"plots\.plane: needs two observables, got 'm' twice"):
        mf.plots.plane(two, events, "m", M)
    with pytest.raises(
        mf.OptionError, match=r"plots\.plane: bins must be a number or those of x and y, got 3"
    ):
        mf.plots.plane(two, events, "m", "c", bins=(3, 3, 3))
    with pytest.raises(mf.OptionError, match=r"plots\.plane: ax must be three Axes of matplotlib"):
        mf.plots.plane(two, events, "m", "c", ax=plt.subplots()[1])
    result = mf.fit(mf.Sum([two], yields=[mf.Parameter("n", 50.0, 0, 100)]), events, ranges={"m": (5.0, 6.0)})
    with pytest.raises(mf.OptionError, match=r"plots\.plane: draws densities in their whole ranges"):
        mf.plots.plane(two, events, "m", "c", values=result)


# ------------------------------------------------------------------------------------ tests of goodness, matrices


def test_the_statistics_of_toys_are_drawn_with_that_of_the_data(fitted):
    model, data, result = fitted
    nll = mf.Likelihood(model, data)
    test = mf.intervals.goodness_of_fit(nll, "chi2", best=result, toys=50, progress=False, bins=20)
    drawn = mf.plots.goodness_of_fit(test, bins=10)
    assert {"toys", "chi2", "data", "legend"} <= set(drawn.artists)
    assert drawn.artists["data"].get_segments()[0][0, 0] == test.statistic
    values, _, _ = drawn.artists["toys"].get_data()
    assert values.sum() == np.isfinite(test.toys).sum()
    with pytest.raises(
        mf.DataError, match=r"plots\.goodness_of_fit: needs statistics of toys, got none; pass toys="
    ):
        mf.plots.goodness_of_fit(mf.intervals.goodness_of_fit(nll, "ks", best=result))


def test_correlations_have_the_labels_of_the_result_and_shorten_long_names(fitted):
    *_, result = fitted
    (main,) = mf.plots.correlation(result).axes
    assert r"$\mu$" in [tick.get_text() for tick in main.get_yticklabels()]
    shapes = [mf.Parameter(f"coefficient_with_a_very_long_name_{k}", 0.5, 0.0, 1.0) for k in range(14)]
    model = mf.shapes.Bernstein(C, shapes)
    many = mf.fit(model, mf.generate(model, 3_000, seed=1), fixed=shapes[:1])
    (main,) = mf.plots.correlation(many).axes
    assert max(len(tick.get_text()) for tick in main.get_yticklabels()) <= 24


# ------------------------------------------------------------------------------------ issues


def test_issue_efficiencies_over_products_of_histograms_are_drawn():
    # this used to fail with an AssertionError, as an equation with a product of one factor was not solved
    x, y, z = mf.Observable("x", 0, 1), mf.Observable("y", -1, 2), mf.Observable("z", 0, 3)
    edges = [0, 0.3, 0.6, 1.0], [-1, 0.3, 0.6, 2.0]
    table = mf.Histogram([x, y], (np.arange(1, 10.0).reshape(3, 3), *edges))
    rate = mf.Parameter("rate", 0.4, 0.1, 0.9)
    model = mf.Efficiency(mf.Product([table, mf.Exponential(z, -1 * rate)]), np.exp(-x * y))
    numbers = project(model, mf.generate(model, 100, seed=1), "x", bins=3)
    cells = np.arange(1, 10.0).reshape(3, 3) / np.outer(np.diff(edges[0]), np.diff(edges[1]))

    def area(i):
        parts = (
            cells[i, j]
            * integrate.dblquad(lambda v, u: np.exp(-u * v), *edges[0][i : i + 2], *edges[1][j : j + 2])[0]
            for j in range(3)
        )
        return sum(parts)

    areas = np.array([area(i) for i in range(3)])
    inside = project(model, {"x": [0.1], "y": [0.0], "z": [1.0]}, "x", bins=edges[0]).expected
    np.testing.assert_allclose(inside, areas / areas.sum(), rtol=BIN_INTEGRAL)
    assert numbers.expected.sum() == pytest.approx(100, rel=BIN_INTEGRAL)


@pytest.mark.parametrize(
    ("name", "made_by"),
    [
        ("belt", "intervals.neyman_belt"), ("contour", "intervals.contour"), ("correlation", "fit"),
        ("goodness_of_fit", "intervals.goodness_of_fit"), ("impacts", "intervals.impacts"), ("limit", "intervals.upper_limit"),
        ("p_values", "intervals.feldman_cousins"), ("profile", "intervals.profile"), ("pulls", "toy_study"),
    ],
)  # fmt: skip
def test_plots_of_results_refuse_everything_else(name, made_by):
    arguments = (extended(), "mu")[: 2 if name == "pulls" else 1]
    with pytest.raises(mf.OptionError, match=rf"plots\.{name}: takes what mf\.{made_by} returns, got Sum"):
        getattr(mf.plots, name)(*arguments)
