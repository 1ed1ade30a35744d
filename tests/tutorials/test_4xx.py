"""RooFit's tutorials 401 to 409: tables, categories, weights, files, pandas."""

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from tutorial_models import FEW_SIGMA, near_truth, signal_and_background

TAGS, FLAVOURS = ("Lepton", "Kaon", "NetTagger-1", "NetTagger-2"), ("B0", "B0bar")


def tagged(events=4_000):
    """Return uniform numbers with a flavour and a tag each."""
    rng = np.random.default_rng(4)
    columns = {"x": rng.uniform(0, 10, events), "b0flav": rng.choice(FLAVOURS, events)}
    columns["tagCat"] = rng.choice(TAGS, events)
    return mf.Dataset(
        columns, [mf.Observable("x", 0, 10), mf.Category("b0flav", FLAVOURS), mf.Category("tagCat", TAGS)]
    )


def test_rf401_importttreethx_histograms_by_label_and_trees_with_cuts(tmp_path):
    rng = np.random.default_rng(1)
    x, y, z = (mf.Observable(name, -10, 10) for name in "xyz")
    c = mf.Category("c", ["SampleA", "SampleB", "SampleC"])
    gauss = {label: mf.Gaussian(x, mf.Parameter(f"mean_{label}", 0, -9, 9), 3.0) for label in c.labels}
    histograms = {
        label: np.histogram(rng.normal(mean, 3, 1_000), 100, (-10, 10))
        for label, mean in zip(c.labels, (0, -3, 3), strict=True)
    }
    result = mf.fit(mf.Simultaneous(gauss, c), histograms)
    assert near_truth(result, mean_SampleA=0, mean_SampleB=-3, mean_SampleC=3)

    columns = {"x": rng.normal(0, 3, 900), "y": rng.uniform(-15, 15, 900), "z": rng.normal(0, 5, 900)}
    mf.Dataset(columns | {"i": np.arange(900) % 3}).write(tmp_path / "tree.root")
    selected = mf.read(tmp_path / "tree.root", [x, y, z], cut="y + z < 0")
    inside = np.all([np.abs(column) <= 10 for column in columns.values()], axis=0)
    assert len(selected) == np.sum(inside & (columns["y"] + columns["z"] < 0))
    states = mf.read(tmp_path / "tree.root", [mf.Category("i", [0, 1], other="drop"), x])
    assert set(states["i"]) == {"0", "1"}
    parts = [selected[selected["z"] < -5], selected[np.abs(selected["z"]) < 5], selected[selected["z"] > 5]]
    joined = mf.Dataset.concatenate(
        part.with_column("c", label) for part, label in zip(parts, c.labels, strict=True)
    )
    assert [len(part) for part in joined.by_label("c").values()] == [len(part) for part in parts]


def test_rf402_datahandling_columns_rows_joins_and_bins(tmp_path):
    i = np.arange(1_000)
    x, y, c = mf.Observable("x", -10, 10), mf.Observable("y", 0, 40), mf.Category("c", ["Plus", "Minus"])
    d = mf.Dataset({"x": i / 50 - 10, "y": np.sqrt(i), "c": np.where(i % 2, "Plus", "Minus")}, [x, y, c])
    assert (d["x"][900], d["y"][900], d["c"][900]) == (8, 30, "Minus")
    d1, d2, d3 = mf.Dataset(d, [x, c]), mf.Dataset(d, y), d[d["y"] > 5.17]
    assert (d1.names, d2.names, len(d3)) == (("x", "c"), ("y",), 973)
    merged = mf.Dataset({**d1.columns, **d2.columns}, [x, c, y])
    assert len(mf.Dataset.concatenate([merged, d3])) == 1_973
    binned = d.to_hist([x, y], bins=10)
    assert binned.sum() == 1_000
    assert binned[{"x": slice(5, None, sum)}].values() == pytest.approx(
        np.histogram(d["y"][d["x"] >= 0], 10, (0, 40))[0]
    )
    d.write(tmp_path / "d.parquet")
    assert np.array_equal(mf.read(tmp_path / "d.parquet", [x, y, c])["c"], d["c"])


def test_rf403_weightedevts_errors_that_are_right_for_weights():
    x = mf.Observable("x", -10, 10)
    a1, a2 = mf.Parameter("a1", 0, -1, 1), mf.Parameter("a2", 0.1, 0, 10)
    model = mf.Polynomial(x, [a1, a2])
    data = mf.generate(mf.Uniform(x), 1_000, seed=3)
    weighted = data.with_weights(data["x"] ** 2 + 10)
    naive, right = mf.fit(model, weighted, errors="naive"), mf.fit(model, weighted)
    same_events = mf.fit(model, mf.generate(mf.Density(x**2 + 10, x), 1_000, seed=4))
    assert near_truth(right, a1=0, a2=0.1)
    assert naive.errors["a2"] < 0.5 * right.errors["a2"] < same_events.errors["a2"]
    bins = weighted.to_hist(x, bins=40)
    chi2 = mf.fit(mf.BinnedLikelihood(model, bins, statistic="neyman"))
    assert near_truth(chi2, a2=0.1)


def test_rf404_categories_tables_of_labels():
    data = tagged()
    by_flavour = {label: len(part) for label, part in data.by_label("b0flav").items()}
    assert sum(by_flavour.values()) == 4_000
    assert stats.binomtest(by_flavour["B0"], 4_000).pvalue > 1e-4
    late = data[data["x"] > 8.23].to_pandas()
    share = (late["tagCat"] == "Lepton").mean()
    assert abs(share - 0.25) < FEW_SIGMA * (0.25 * 0.75 / len(late)) ** 0.5
    assert late.groupby(["tagCat", "b0flav"], observed=True).size().shape == (8,)
    good = mf.Dataset(data, [mf.Category("tagCat", ["Lepton", "Kaon"], other="drop")])
    assert len(good) == np.isin(data["tagCat"], ["Lepton", "Kaon"]).sum()


def test_rf405_realtocatfuncs_regions_and_bins_of_a_number():
    x = mf.Observable("x", 0, 10)
    data = mf.generate(mf.shapes.Argus(x, 10.0, -1.0), 2_000, seed=5)
    names = np.array(["Background", "SideBand", "Signal", "SideBand", "Background"])
    regions = data.with_column("region", lambda x: names[np.digitize(x, [4.23, 5.23, 8.23, 9.23])])
    side = (data["x"] > 4.23) & (data["x"] < 5.23) | (data["x"] > 8.23) & (data["x"] < 9.23)
    assert np.array_equal(regions.by_label("region")["SideBand"]["x"], data["x"][side])
    coarse = data.with_column("bin", lambda x: np.floor(x).astype(int).astype(str))
    counts = {label: len(part) for label, part in coarse.by_label("bin").items()}
    assert [counts[str(k)] for k in range(10)] == list(np.histogram(data["x"], 10, (0, 10))[0])


def test_rf406_cattocatfuncs_joined_and_mapped_labels():
    data = tagged()
    mapped = data.with_column(
        "type", lambda tagCat: np.where(np.char.startswith(tagCat, "Net"), "net", "cut")
    )
    assert len(mapped.by_label("type")["net"]) == np.isin(data["tagCat"], TAGS[2:]).sum()
    crossed = mapped.with_column("both", lambda b0flav, type: np.char.add(np.char.add(b0flav, ";"), type))
    parts = crossed.by_label("both")
    assert set(parts) == {"B0;net", "B0;cut", "B0bar;net", "B0bar;cut"}
    assert set(parts["B0;net"]["tagCat"]) == set(TAGS[2:])


def test_rf407_computationalgraphvisualization_trees_graphs_and_tables_in_latex():
    model = signal_and_background(fractions=[mf.Parameter("fraction", 0.5, 0, 1)])
    result = mf.fit(model, mf.generate(model, 1_000, seed=6), fixed=["share"])
    assert str(model).count("\n") == 4
    assert mf.draw(model).dot.startswith("digraph")
    assert result.to_latex().count(r"\\") >= 4
    assert result.to_pandas().loc["a0", "value"] == result.values["a0"]


@pytest.mark.parametrize("kind", ["dictionary", "pandas", "structured"])
def test_rf408_rf409_rdataframe_numpy_pandas_and_histograms(kind):
    """RDataFrame.AsNumpy returns a dictionary of arrays, which is data as it is."""
    rng = np.random.default_rng(7)
    columns = {"x": rng.uniform(-5, 5, 5_000), "y": rng.normal(1, 3, 5_000)}
    x, y = mf.Observable("x", -5, 5), mf.Observable("y", -50, 50)
    mean, sigma = mf.Parameter("mean", 0, -10, 10), mf.Parameter("sigma", 1, 0.1, 10)
    frame = mf.Dataset(columns).to_pandas()
    source = {"dictionary": columns, "pandas": frame, "structured": frame.to_records(index=False)}[kind]
    data = mf.Dataset(source, [x, y])
    assert np.array_equal(data["y"], columns["y"])
    histogram = data.to_hist([x, y], bins=[10, 20])
    assert histogram.values() == pytest.approx(
        np.histogram2d(*columns.values(), bins=[10, 20], range=[(-5, 5), (-50, 50)])[0]
    )
    model = mf.Product([mf.Uniform(x), mf.Gaussian(y, mean, sigma)])
    assert near_truth(mf.fit(model, data), mean=1, sigma=3)
    assert near_truth(mf.fit(mf.Gaussian(y, mean, sigma), histogram.project("y")), mean=1, sigma=3)
