"""Histograms become events that keep content and variance of every bin, and events become histograms."""

import builtins

import boost_histogram as bh
import hist
import numpy as np
import pytest
import uproot
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import morefit as mf
from morefit.data.io.histogram import split_bins
from tolerances import BIN_SUMS, COARSE_BINS, FEW_ROUNDINGS, FINE_BIN_ERRORS, FINE_BINS, NUMPY_SUM

M = mf.Observable("m", 5.0, 7.0)
X = mf.Observable("x", -1.0, 1.0)
RNG = np.random.default_rng(7)
MASSES = RNG.normal(6.0, 0.2, 2000)
WEIGHTS = RNG.normal(1.0, 0.5, 2000)


def filled(weights=None, storage=None, bins=40):
    """A histogram of masses over the range of M."""
    found = hist.Hist(hist.axis.Regular(bins, 5, 7, name="m"), storage=storage or hist.storage.Double())
    return found.fill(MASSES, weight=weights)


def sums(dataset, edges):
    """Content and variance of every bin of a dataset."""
    weights = np.ones(len(dataset)) if dataset.weights is None else dataset.weights
    return (np.histogram(dataset["m"], edges, weights=w)[0] for w in (weights, weights**2))


# ---------------------------------------------------------------------------------------------- from histograms


def to_root(histogram, path):
    with uproot.recreate(path) as file:
        file["h"] = histogram
    with uproot.open(path) as file:
        return file["h"]


@pytest.mark.parametrize("kind", ["hist", "integers", "boost", "ROOT"])
def test_counts_become_so_many_events_without_weights(kind, tmp_path):
    histogram = filled(storage=hist.storage.Int64() if kind == "integers" else None)
    source = histogram
    if kind == "boost":
        source = bh.Histogram(histogram)
    if kind == "ROOT":
        source = to_root(histogram, tmp_path / "h.root")
    data = mf.Dataset.from_hist(source, M, at_centres=True)
    assert data.weights is None and data.names == ("m",)
    centres = histogram.axes[0].centers[histogram.values() > 0]
    np.testing.assert_allclose(np.unique(data["m"]), centres, rtol=FEW_ROUNDINGS)
    np.testing.assert_array_equal(next(sums(data, histogram.axes[0].edges)), histogram.values())


@pytest.mark.parametrize("weights", [WEIGHTS, np.full(2000, 0.25), -np.ones(2000), np.abs(WEIGHTS) ** 3])
def test_weights_keep_content_and_variance_of_every_bin(weights):
    histogram = filled(weights, hist.storage.Weight())
    content, variance = sums(mf.Dataset.from_hist(histogram, M, at_centres=True), histogram.axes[0].edges)
    np.testing.assert_allclose(content, histogram.values(), rtol=BIN_SUMS, atol=BIN_SUMS)
    np.testing.assert_allclose(variance, histogram.variances(), rtol=BIN_SUMS, atol=BIN_SUMS)


def test_the_errors_of_a_fit_to_bins_are_those_of_a_fit_to_the_events():
    model = mf.Gaussian(M, mf.Parameter("mu", 6.0, 5, 7), mf.Parameter("sigma", 0.2, 0.05, 1))
    weights = np.abs(WEIGHTS)
    for given_weights, storage in ((None, None), (weights, hist.storage.Weight())):
        histogram = filled(given_weights, storage, bins=400)
        binned = mf.fit(model, mf.Dataset.from_hist(histogram, M, at_centres=True))
        events = mf.fit(model, mf.Dataset({"m": MASSES}, weights=given_weights))
        for name in ("mu", "sigma"):
            assert binned.values[name] == pytest.approx(
                events.values[name], abs=FINE_BINS * events.errors[name]
            )
            assert binned.errors[name] == pytest.approx(events.errors[name], rel=FINE_BIN_ERRORS)


def test_a_width_grows_by_that_of_the_bins_as_the_docstring_says():
    model = mf.Gaussian(M, mf.Parameter("mu", 6.0, 5, 7), mf.Parameter("sigma", 0.2, 0.05, 1))
    edges = np.linspace(5, 7, 21)
    shape = np.diff(norm(6.0, 0.2).cdf(edges))
    histogram = hist.Hist(hist.axis.Variable(edges, name="m"))
    histogram[...] = np.round(1e6 * shape)
    sigma = mf.fit(model, mf.Dataset.from_hist(histogram, M, at_centres=True)).values["sigma"]
    assert sigma == pytest.approx(np.sqrt(0.2**2 + 0.1**2 / 12), rel=COARSE_BINS)


@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(1e-3, 1e3)) | st.just((0.0, 0.0)), min_size=1, max_size=20
    )
)
def test_any_content_and_variance_can_be_kept(bins):
    values, variances = np.array(bins).T
    counts, weights = split_bins(values, variances)
    place = np.repeat(np.arange(len(values)), counts)
    scale = np.abs(values).max() ** 2 + variances.max() + 1
    np.testing.assert_allclose(
        np.bincount(place, weights, len(values)), values, rtol=0, atol=BIN_SUMS * scale
    )
    np.testing.assert_allclose(
        np.bincount(place, weights**2, len(values)), variances, rtol=0, atol=BIN_SUMS * scale
    )
    assert np.all(counts <= np.ceil(values**2 / np.maximum(variances, 1e-300)) + 2)


def test_several_axes_become_several_observables():
    histogram = hist.Hist(hist.axis.Regular(4, 5, 7), hist.axis.Regular(3, -1, 1))
    histogram.fill([5.1, 5.1, 6.9], [-0.9, 0.9, 0.0])
    data = mf.Dataset.from_hist(histogram, [M, X], at_centres=True)
    found = sorted(zip(data["m"].tolist(), data["x"].round(12).tolist(), strict=True))
    assert found == [(5.25, -0.666666666667), (5.25, 0.666666666667), (6.75, 0.0)]


def test_an_empty_histogram_has_no_events():
    assert len(mf.Dataset.from_hist(hist.Hist(hist.axis.Regular(4, 5, 7)), M, at_centres=True)) == 0


def broken_weights(values, variances):
    histogram = hist.Hist(hist.axis.Regular(len(values), 5, 7), storage=hist.storage.Weight())
    histogram[...] = np.stack([values, variances], axis=-1)
    return histogram


REFUSED = {
    "must have axes, kind, values.. and variances.. as one of hist does, got tuple": (np.histogram([5.5]), M),
    "must count events, got one of kind .*MEAN.*; its bins contain means": (
        hist.Hist(hist.axis.Regular(4, 5, 7), storage=hist.storage.Mean()), M),
    "needs one observable per axis, here 1, got 2": (filled(), [M, X]),
    "the axis of 'm' must have bins of numbers, got categories": (hist.Hist(hist.axis.StrCategory(["a", "b"])), M),
    r"the axis of 'x' must span its range \[-1.0, 1.0\], got \[5.0, 7.0\]; slice the histogram": (filled(), X),
    "bin contents are not integer counts, so variances are required; fill it with": (filled(WEIGHTS), M),
    "1 of 2 bins have a content without a variance": (broken_weights([3.0, 1.0], [0.0, 1.0]), M),
    "1 of 2 bins are not finite": (broken_weights([np.nan, 1.0], [1.0, 1.0]), M),
    r"represents 1e\+12 events, more than 1e\+09; scale it down": (broken_weights([1e12, 1.0], [1e12, 1.0]), M),
}  # fmt: skip


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_kept_is_refused(says):
    with pytest.raises(mf.DataError, match=f"^histogram: {says}"):
        mf.Dataset.from_hist(*REFUSED[says])


def test_counts_must_be_whole_where_there_is_no_variance():
    histogram = hist.Hist(hist.axis.Regular(2, 5, 7))
    histogram[...] = [1.5, 2.0]
    data = mf.Dataset.from_hist(
        histogram, M, at_centres=True
    )  # hist says that variance and content are the same
    content, variance = sums(data, [5, 6, 7])
    np.testing.assert_allclose(content, [1.5, 2.0])
    np.testing.assert_allclose(variance, [1.5, 2.0])


# ---------------------------------------------------------------------------------------------- to histograms


def test_a_histogram_counts_what_numpy_counts_also_at_the_upper_end():
    data = mf.Dataset({"m": [5.0, 5.2, 6.0, 7.0]})
    histogram = data.to_hist(M, bins=10)
    np.testing.assert_array_equal(histogram.values(), np.histogram(data["m"], 10, (5, 7))[0])
    assert isinstance(histogram, hist.Hist) and histogram.axes[0].name == "m"
    assert isinstance(histogram.storage_type(), hist.storage.Double) and histogram.sum() == 4


def test_a_weighted_dataset_sums_squared_weights_too():
    data = mf.Dataset({"m": MASSES}, weights=WEIGHTS)
    histogram = data.to_hist(M, bins=20)
    assert isinstance(histogram.storage_type(), hist.storage.Weight)
    content, variance = sums(data, histogram.axes[0].edges)
    np.testing.assert_allclose(histogram.values(), content, rtol=NUMPY_SUM, atol=NUMPY_SUM)
    np.testing.assert_allclose(histogram.variances(), variance, rtol=NUMPY_SUM)


def test_bins_may_be_given_by_name_as_numbers_or_edges():
    data = mf.Dataset({"m": [5.5, 6.5], "x": [0.0, 0.5]})
    histogram = data.to_hist([M, X], bins={"m": 3, "x": [-1, 0.25, 1]})
    assert histogram.values().tolist() == [[1, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize("bins", [[2, 4], (2, 4), np.array([2, 4]), [2, np.linspace(-1, 1, 5)]], ids=str)
def test_a_list_of_bins_has_an_entry_for_each_observable(bins):
    # [2, 4] used to be taken as the edges of both axes, so that the histogram was empty
    data = mf.Dataset({"m": MASSES[:500], "x": RNG.uniform(-1, 1, 500)})
    histogram = data.to_hist([M, X], bins=bins)
    assert histogram.axes.size == (2, 4)
    assert histogram.sum() == 500


def test_a_list_of_bins_for_one_observable_is_its_edges():
    histogram = mf.Dataset({"m": [5.5, 6.5]}).to_hist(M, bins=[5, 6, 7])
    assert histogram.values().tolist() == [1, 1]
    assert mf.Dataset({"m": [5.5, 6.5]}).to_hist([M], bins=[4]).values().tolist() == [0, 1, 0, 1]


def test_there_and_back_keeps_the_counts():
    data = mf.Dataset({"m": MASSES[:500]})
    histogram = data.to_hist(M, bins=50)
    again = mf.Dataset.from_hist(histogram, M, at_centres=True).to_hist(M, bins=50)
    assert again == histogram


def test_events_outside_are_in_the_flow_bins():
    histogram = mf.Dataset({"m": [4.0, 6.0, 8.0]}).to_hist(M, bins=2)
    assert histogram.values(flow=True).tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("bins", "says"),
    [(0, "bins of 'm' must be a positive number of them or rising edges, got 0"), (2.5, "got 2.5"),
     ({"m": [1, 1]}, r"got \[1, 1\]"), ({"m": [[1, 2]]}, r"got \[\[1, 2\]\]"),
     ({"x": 3}, "bins has no entry for 'm'; give a number of bins or edges"), (True, "got True"), ("ten", "got 'ten'"),
     (None, "bins has no entry for 'm'"), (["a", "b"], "rising edges, got"),
     ([10, 20], r"edges of 'm' must overlap its range \[5.0, 7.0\], got \[10, 20\]; a number of bins is one number")],
)  # fmt: skip
def test_odd_bins_are_refused(bins, says):
    with pytest.raises(mf.OptionError, match=f"^histogram: .*{says}"):
        mf.Dataset({"m": [5.5]}).to_hist(M, bins=bins)


def test_bins_must_say_something_of_every_observable():
    data = mf.Dataset({"m": [5.5], "x": [0.0]})
    with pytest.raises(
        mf.OptionError, match=r"a list with an entry for each of 2 observables, got \[1, 2, 3\]; give edges"
    ):
        data.to_hist([M, X], bins=[1, 2, 3])


def test_a_fit_of_a_histogram_is_warned_of():
    # on a steep slope it is 7 errors off, which nobody used to say
    with pytest.warns(
        UserWarning,
        match=r"not a binned fit.*use mf.BinnedLikelihood\(model, histogram\), .* or pass at_centres=True",
    ):
        mf.Dataset.from_hist(filled(), M)


@pytest.mark.parametrize("kind", ["hist", "boost", "ROOT", "PyROOT", "numpy", "numpy 2d", "numpy dd"])
def test_a_histogram_is_no_data(kind, tmp_path):
    # its contents used to be fitted as if they were events
    class TH1:
        """As PyROOT has it."""

        def GetNbinsX(self):
            return 3

        def GetBinContent(self, number):
            return 1.0

    histogram = {
        "hist": filled,
        "boost": lambda: bh.Histogram(filled()),
        "ROOT": lambda: to_root(filled(), tmp_path / "h.root"),
        "PyROOT": TH1,
        "numpy": lambda: np.histogram(MASSES),
        "numpy 2d": lambda: np.histogram2d(MASSES, MASSES),
        "numpy dd": lambda: np.histogramdd(np.column_stack([MASSES, MASSES])),
    }[kind]()
    model = mf.Gaussian(M, mf.Parameter("mu", 6.0, 5, 7), 0.2)
    says = r"a histogram has no events, got .*; fit its bins with mf.BinnedLikelihood.* with mf.Dataset.from_hist"
    with pytest.raises(mf.DataError, match=says):
        mf.Likelihood(model, histogram)
    with pytest.raises(mf.DataError, match=says):
        mf.Dataset.cut(histogram, M)
    with pytest.raises(mf.DataError, match=says):
        mf.fit_many(mf.Likelihood(model, {"m": [6.0]}), [histogram])
    if kind == "PyROOT":
        with pytest.raises(mf.DataError, match=says):
            mf.fit(model, histogram)
    if not kind.startswith("numpy"):
        with pytest.raises(mf.DataError, match=f"observable 'm': {says}"):
            mf.Dataset({"m": histogram}, M)
        with pytest.raises(mf.DataError, match=f"weights: {says}"):
            mf.Dataset({"m": [6.0]}, M, weights=histogram)


def test_a_histogram_needs_a_column():
    with pytest.raises(mf.DataError, match=r"dataset: no column 'x'; there are 'm'"):
        mf.Dataset({"m": [5.5]}).to_hist(X)


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name == "hist":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(mf.DataError, match=r'files: hist is not installed; pip install "morefit\[io\]"'):
        mf.Dataset({"m": [5.5]}).to_hist(M)
