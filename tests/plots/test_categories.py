"""Plots of simultaneous models: by label, one of them, and their sum."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import morefit as mf

M = mf.Observable("m", 0.0, 1.0)
SLOPE = mf.Parameter("slope", -2, -9, 9)
YIELDS = {label: mf.Parameter(f"n_{label}", n, 0, 1e4) for label, n in (("up", 300), ("down", 500))}
MODELS = mf.Simultaneous(
    {label: mf.Sum([mf.Exponential(M, SLOPE)], yields=[n]) for label, n in YIELDS.items()}, "polarity"
)
DATA = mf.generate(MODELS, seed=1)
RESULT = mf.fit(MODELS, DATA)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_each_category_has_a_plot_in_one_figure():
    plots = mf.plot(MODELS, DATA, "m", values=RESULT)
    assert list(plots) == ["up", "down"]
    assert plots["up"].figure is plots["down"].figure
    for label, plot in plots.items():
        assert plot.axes[0].get_title() == label
        assert plot.numbers.counts.sum() == len(DATA.by_label("polarity")[label])
        assert plot.numbers.expected.sum() == pytest.approx(RESULT.values[f"n_{label}"])


def test_one_category_is_the_plot_of_its_model():
    own = mf.plot(MODELS, DATA, values=RESULT, category="down", bins=10).numbers
    values = {name: value for name, value in RESULT.values.items() if name != "n_up"}
    alone = mf.plot(MODELS["down"], DATA.by_label("polarity")["down"], values=values, bins=10).numbers
    np.testing.assert_array_equal(own.counts, alone.counts)
    np.testing.assert_array_equal(own.curve, alone.curve)


def test_the_sum_adds_counts_and_curves():
    total = mf.plot(MODELS, DATA, values=RESULT, summed=True).numbers
    assert total.counts.sum() == len(DATA)
    assert total.expected.sum() == pytest.approx(sum(RESULT.values[f"n_{label}"] for label in YIELDS))
    weighted = mf.plot(MODELS, DATA.with_weights(np.full(len(DATA), 2.0)), values=RESULT, summed=True).numbers
    np.testing.assert_allclose(weighted.errors[0] ** 2, 2 * weighted.counts)
    bins = {label: own.to_hist(M, 20) for label, own in DATA.by_label("polarity").items()}
    assert mf.plot(MODELS, bins, values=RESULT, summed=True).numbers.counts.sum() == len(DATA)


def test_a_fit_in_ranges_is_drawn_in_them():
    result = mf.fit(MODELS, DATA, ranges={"up": {"m": (0.5, 1.0)}})
    assert not mf.plot(MODELS, DATA, values=result, category="up").numbers.fitted.all()
    assert mf.plot(MODELS, DATA, values=result, category="down").numbers.fitted.all()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(mf.OptionError, match="category 'polarity': has no label 'left'"):
        mf.plot(MODELS, DATA, category="left")
    with pytest.raises(mf.OptionError, match="plot: draws one category or the sum of all"):
        mf.plot(MODELS, DATA, category="up", summed=True)
    with pytest.raises(mf.OptionError, match="plot: ax is for one plot; choose a category or summed=True"):
        mf.plot(MODELS, DATA, ax=plt.subplots()[1])
    with pytest.raises(mf.OptionError, match="has categories; leave category and summed out"):
        mf.plot(MODELS["up"], DATA, category="up")
    with pytest.raises(mf.DataError, match="category 'down': plot: the dataset has no events"):
        mf.plot(MODELS, DATA[DATA["polarity"] == "up"])
    bins = {label: own.to_hist(M, 10 + len(label)) for label, own in DATA.by_label("polarity").items()}
    with pytest.raises(
        mf.OptionError, match="plot: categories that are combined need the same range and the same bins"
    ):
        mf.plot(MODELS, bins, summed=True)
    other = mf.Simultaneous(
        {"up": MODELS["up"], "down": mf.Uniform(mf.Observable(M.name, M.low - 1, M.high))}, "polarity"
    )
    with pytest.raises(mf.OptionError, match="need the same range and the same bins; draw them one by one"):
        mf.plot(other, DATA, values=RESULT, summed=True)


def test_the_asymmetry_is_that_of_counts_and_models():
    plot = mf.plots.asymmetry(MODELS, DATA, ("up", "down"), values=RESULT, bins=5)
    own = DATA.by_label("polarity")
    up, down = (np.histogram(own[label]["m"], bins=5, range=(0, 1))[0] for label in ("up", "down"))
    expected = (up - down) / (up + down)
    np.testing.assert_allclose(plot.numbers.values, expected)
    np.testing.assert_allclose(plot.numbers.errors, np.sqrt((1 - expected**2) / (up + down)))
    n = [RESULT.values[f"n_{label}"] for label in ("up", "down")]
    np.testing.assert_allclose(plot.numbers.curve, (n[0] - n[1]) / (n[0] + n[1]))
    twice = mf.plots.asymmetry(
        MODELS, DATA.with_weights(np.full(len(DATA), 2.0)), ("up", "down"), values=RESULT, bins=5
    )
    np.testing.assert_allclose(twice.numbers.errors, plot.numbers.errors)


def test_an_asymmetry_needs_two_labels():
    with pytest.raises(mf.ModelError, match=r"asymmetry: takes mf.Simultaneous, .* got Gaussian"):
        mf.plots.asymmetry(mf.Gaussian(mf.Observable("x", 0, 1), 0.5, 0.1), {"x": [0.5]}, ("up", "down"))
    with pytest.raises(mf.OptionError, match="asymmetry: labels must be two, got 'up'"):
        mf.plots.asymmetry(MODELS, DATA, "up")
    with pytest.raises(mf.OptionError, match="asymmetry: labels must differ, got"):
        mf.plots.asymmetry(MODELS, DATA, ("up", "up"))
    with pytest.raises(mf.OptionError, match="category 'polarity': has no label 'left'"):
        mf.plots.asymmetry(MODELS, DATA, ("up", "left"))
