"""Columns of labels: which labels are read, what is refused, and that files, cuts and copies keep them."""

import pickle

import numpy as np
import pandas as pd
import pytest

import morefit as mf

M = mf.Observable("m", 0.0, 1.0)
YEAR = mf.Category("year", ["2016", 2017])
LABELS = ["2016", "2017", "2016"]
MASS = [0.1, 0.2, 0.3]

READ = {
    "text": LABELS,
    "objects": np.array(LABELS, object),
    "new strings of numpy": np.array(LABELS, np.dtypes.StringDType()),
    "whole numbers": np.array(LABELS, np.int32),
    "whole numbers as doubles": np.array(LABELS, float),
    "mixed": np.array(["2016", 2017, 2016.0], object),
    "a categorical": pd.Categorical(LABELS),
    "a categorical of numbers": pd.Series([2016, 2017, 2016], dtype="category"),
    "strings of pandas": pd.Series(LABELS, dtype="string"),
}


def data():
    return mf.Dataset({"m": MASS, "year": LABELS}, [M, YEAR])


@pytest.mark.parametrize("raw", READ.values(), ids=READ)
def test_labels_of_any_kind_are_read(raw):
    dataset = mf.Dataset({"m": MASS, "year": raw}, [M, YEAR])
    assert dataset["year"].tolist() == LABELS
    assert dataset.labels == {"year": ("2016", "2017")}


REFUSED = {
    "none": (["2016", None, "2017"], "1 of 3 events have no label; leave them out"),
    "not a number": ([np.nan, 2016, np.nan], "2 of 3 events have no label; leave them out"),
    "masked": (np.ma.masked_array([2016, 2017, 2016], [0, 1, 0]), "1 of 3 events have no label"),
    "missing in pandas": (pd.Series(["2016", pd.NA, "2017"], dtype="string"), "1 of 3 events have no label"),
    "unknown": (["2018", "2016", "2019"], "2 of 3 events have labels that are not known, '2018', '2019'; the labels are '2016', '2017'; add them, or leave such events out with mf.Category"),
    "empty text": (["", "2016", "2017"], "1 of 3 events have labels that are not known, ''"),
    "truth values": ([True, False, True], "labels must be text or whole numbers, got True"),
    "fractions": ([2016, 2016.5, 2017], "labels must be text or whole numbers, got 2016.5"),
    "infinite": ([2016, np.inf, 2017], "labels must be text or whole numbers, got inf"),
    "bytes": ([b"2016", b"2017", b"2016"], "labels must be text or whole numbers, got b'2016'"),
    "a table": ([["2016"], ["2017"], ["2016"]], r"labels must have one dimension, got shape \(3, 1\)"),
    "lists": (np.array([["a"], ["b", "c"], ["d"]], object), "labels must be text or whole numbers, got lists"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_label_is_refused(raw, says):
    with pytest.raises(mf.DataError, match=f"^dataset: category 'year': {says}"):
        mf.Dataset({"m": MASS, "year": raw}, [M, YEAR])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("year", "2016"), "category 'year': labels must be a list, got '2016'"),
        (("year", []), "category 'year': needs at least one label, got none"),
        (("year", ["1", 1]), "category 'year': labels must differ, got '1' twice"),
        (("year", [None]), "category 'year': labels must be text or whole numbers, got None"),
        ((["2016"], "year"), r"category \['2016'\]: name must be a word"),
    ],
)
def test_categories_that_make_no_sense_are_refused(arguments, says):
    with pytest.raises(mf.ModelError, match=says):
        mf.Category(*arguments)
    with pytest.raises(mf.ModelError, match="category 'year': other must be 'error' or 'drop', got 'keep'"):
        mf.Category("year", ["2016"], other="keep")


def test_other_labels_are_dropped_with_a_report():
    some = mf.Category("year", ["2017"], other="drop")
    dataset = mf.Dataset({"m": MASS, "year": LABELS}, [M, some])
    assert dataset["m"].tolist() == [0.2]
    assert dataset.report.summary == "kept 1 of 3 events: 2 outside the range of 'year'"
    assert mf.Dataset.cut({"m": MASS, "year": LABELS}, [M, some]).report.outside == {"m": 0, "year": 2}
    assert mf.Dataset(data(), [M, some])["year"].tolist() == ["2017"]


def test_text_without_observables_is_a_column_of_labels():
    dataset = mf.Dataset(pd.DataFrame({"m": MASS, "sign": ["plus", "minus", "plus"]}))
    assert dataset.labels == {"sign": ("minus", "plus")}
    with pytest.raises(mf.DataError, match=r"column 'm': has 2000 different texts, .* astype\(float\)"):
        mf.Dataset({"m": [f"{k / 7}" for k in range(2000)]})
    with pytest.raises(mf.DataError, match="has no events, and so no labels; declare them"):
        mf.Dataset({"m": np.array([], str)})


def test_labels_are_no_observable():
    with pytest.raises(mf.DataError, match="observable 'year': must be real numbers, got dtype <U4"):
        mf.Dataset(data(), mf.Observable("year", 0, 10))
    with pytest.raises(mf.DataError, match="category 'year': has no bins"):
        data().to_hist([M, YEAR])


def test_everything_that_returns_events_keeps_their_labels():
    dataset = data()
    assert dataset[dataset["year"] == "2016"]["m"].tolist() == [0.1, 0.3]
    assert dataset[::-1]["year"].tolist() == LABELS[::-1]
    assert dataset.inside({"m": [(0.15, 0.25)]})["year"].tolist() == ["2017"]
    assert dataset.with_weights([1, 2, 3]).labels == dataset.labels
    assert dataset.with_column("p", lambda m: 2 * m)["year"].tolist() == LABELS
    assert dataset.with_column("year", lambda m: 2 * m).labels == {}
    assert pickle.loads(pickle.dumps(dataset))["year"].tolist() == LABELS
    assert mf.Dataset(dataset)["year"].tolist() == LABELS
    assert dataset.to_pandas()["year"].tolist() == LABELS
    assert {label: len(own) for label, own in dataset.by_label("year").items()} == {"2016": 2, "2017": 1}
    with pytest.raises(mf.DataError, match="dataset: no column of labels 'm'; there are 'year'"):
        dataset.by_label("m")


def test_concatenation_joins_labels():
    other = mf.Dataset({"m": [0.5], "year": ["2015"]})
    joined = mf.Dataset.concatenate([data(), other])
    assert joined["year"].tolist() == [*LABELS, "2015"]
    assert joined.labels == {"year": ("2016", "2017", "2015")}
    numbers = mf.Dataset({"m": [0.5], "year": [2015]})
    with pytest.raises(
        mf.DataError, match="column 'year': has labels in some datasets and numbers in others"
    ):
        mf.Dataset.concatenate([data(), numbers])


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
@pytest.mark.parametrize("labels", [LABELS, ["up", "down", "up"]], ids=["digits", "words"])
def test_files_keep_labels(suffix, labels, tmp_path):
    category = mf.Category("year", sorted(set(labels)))
    path = tmp_path / f"data{suffix}"
    mf.Dataset({"m": MASS, "year": labels}, [M, category]).write(path)
    assert mf.read(path, [M, category])["year"].tolist() == labels
    with pytest.raises(mf.DataError, match="column 'year': 2 of 3 events have labels that are not known"):
        mf.read(path, [M, mf.Category("year", [labels[1]])])
    some = mf.read(path, [M, mf.Category("year", [labels[1]], other="drop")])
    assert (some["m"].tolist(), some.report.outside) == ([0.2], {"m": 0, "year": 2})


def test_trees_of_root_have_no_labels(tmp_path):
    with pytest.raises(
        mf.DataError, match="column 'year': labels cannot be written to a tree of ROOT; write a"
    ):
        data().write(tmp_path / "data.root")


def test_labels_are_printed_with_their_numbers():
    assert str(data()).splitlines()[-1] == "labels of 'year': 2016 (2), 2017 (1)"
    assert repr(data()) == "Dataset(3 events: m, year)"
    assert repr(YEAR) == "Category('year', ['2016', '2017'])"


# ---------------------------------------------------------------------------- in formulas

TAG = mf.Category("tag", [-1, 1])
X, TAU = mf.Observable("x", 0, 5), mf.Parameter("tau", 1.5, 1, 2)
IN_FORMULAS = {
    "factor": lambda c: c * X,
    "second factor": lambda c: X * c,
    "term": lambda c: 1 + c,
    "sign": lambda c: -c,
    "power": lambda c: c**2,
    "order": lambda c: c > 0,
    "equal to a label": lambda c: mf.where(c == "2016", X, 1),
    "equal to a number": lambda c: mf.where(c == 1, X, 1),
    "not equal": lambda c: mf.where(c != -1, X, 1),
    "label before": lambda c: mf.where("2016" == c, X, 1),
    "equal to a parameter": lambda c: mf.where(TAU == c, X, 1),
    "equal to numbers": lambda c: c == np.arange(2),
    "condition": lambda c: (X > 1) & c,
    "function": lambda c: np.exp(c),
    "choice": lambda c: np.where(c, X, 1),
}


ODD = mf.Category("odd", ["--3", "\N{SUPERSCRIPT TWO}", "4"])  # some of which look like numbers


@pytest.mark.parametrize("formula", IN_FORMULAS.values(), ids=IN_FORMULAS)
@pytest.mark.parametrize("category", [mf.Category("magnet", ["up", "down"]), TAG, ODD], ids=lambda c: c.name)
def test_labels_are_refused_in_formulas(category, formula):
    """A comparison would be False, and the formula right for no label."""
    with pytest.raises(mf.ModelError, match=r"is a column of labels.*mf\.Simultaneous") as refused:
        formula(category)
    assert ("mf.Observable('tag', -1, 1)" in str(refused.value)) == (category is TAG)


def test_categories_are_equal_by_what_they_declare():
    same, other = mf.Category("year", [2016, 2017]), mf.Category("year", ["2016"])
    assert same == YEAR
    assert hash(same) == hash(YEAR)
    assert other != YEAR
    assert mf.Category("year", [2016, 2017], other="drop") != YEAR
    assert YEAR != b"year"
    assert {YEAR, same, other} == {YEAR, other}
    assert pickle.loads(pickle.dumps(YEAR)) == YEAR
