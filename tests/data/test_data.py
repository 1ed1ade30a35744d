"""A dataset takes columns from any source, checks them at the door and never changes afterwards."""

import copy
import pickle
import re
from dataclasses import FrozenInstanceError
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morefit.data.dataset import Dataset, build_drawn, dataset_of
from morefit.data.report import CutReport
from morefit.errors import DataError
from morefit.model import Observable


class Stand(NamedTuple):
    """A stand-in for an observable."""

    name: str
    low: float
    high: float


M = Stand("m", 5.0, 7.0)
X = Stand("x", -1.0, 1.0)
MASS = np.array([5.5, 6.0, 6.5])
COS = np.array([-0.5, 0.0, 0.5])

STRUCTURED = np.zeros(3, dtype=[("x", "f4"), ("m", "f8"), ("other", "i4")])
STRUCTURED["m"], STRUCTURED["x"] = MASS, COS

SOURCES = {
    "mapping": {"x": COS, "m": MASS, "other": ["a", "b", "c"]},
    "lists": {"x": list(COS), "m": list(MASS)},
    "DataFrame": pd.DataFrame({"x": COS, "m": MASS, "other": ["a", "b", "c"]}, index=[7, 3, 1]),
    "structured array": STRUCTURED,
    "record array": STRUCTURED.view(np.recarray),
    "2-d array": np.stack([MASS, COS], axis=1),
    "nested lists": np.stack([MASS, COS], axis=1).tolist(),
    "Dataset": Dataset({"x": COS, "m": MASS}),
}


def message(*args, **options):
    """Return what Dataset complains about."""
    with pytest.raises(DataError) as caught:
        Dataset(*args, **options)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_kind_of_source_gives_the_same_columns(source):
    dataset = Dataset(source, [M, X])
    assert dataset.names == ("m", "x")
    np.testing.assert_array_equal(dataset["m"], MASS)
    np.testing.assert_array_equal(dataset["x"], COS)


@pytest.mark.parametrize("source", [MASS, list(MASS), pd.Series(MASS, index=[4, 5, 6]), MASS[:, None]])
@pytest.mark.parametrize("observables", [M, [M], (M,)], ids=["alone", "list", "tuple"])
def test_one_observable_takes_a_one_dimensional_array(source, observables):
    np.testing.assert_array_equal(Dataset(source, observables)["m"], MASS)


def test_observables_may_come_from_any_iterable():
    assert Dataset([MASS[:1].item()], iter([M])).names == ("m",)


def test_without_observables_every_column_is_kept_without_a_range():
    dataset = Dataset({"m": [1e9, -1e9], "x": [1, 2]})
    assert dataset.names == ("m", "x")
    assert dataset["m"].max() == 1e9


def test_an_empty_dataset_is_allowed():
    assert len(Dataset([], M)) == 0
    assert "0 events" in repr(Dataset({"m": np.empty(0)}))


def test_a_model_observable_is_an_observable():
    observable = pytest.importorskip("morefit.model.observable", reason="no models yet").Observable(
        "m", 5.0, 7.0
    )
    assert Dataset(MASS, observable).names == Dataset(MASS, [observable]).names == ("m",)


# ---------------------------------------------------------------------------------------------- numbers

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@given(
    numbers=st.lists(st.integers(0, 100), max_size=20),
    dtype=st.sampled_from(DTYPES),
    order=st.sampled_from("<>"),
    step=st.sampled_from([-3, -2, -1, 1, 2, 5]),
    writeable=st.booleans(),
)
def test_the_layout_of_an_array_does_not_matter(numbers, dtype, order, step, writeable):
    memory = np.zeros(max(1, len(numbers)) * abs(step), dtype=order + dtype)
    array = memory[::step][: len(numbers)]
    array[:] = numbers
    memory.flags.writeable = writeable
    column = Dataset({"m": array})["m"]
    assert column.tolist() == [float(n) for n in numbers]
    assert column.dtype == np.float64 and column.dtype.isnative
    assert column.flags.c_contiguous and not column.flags.writeable


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_doubles_keep_every_bit(numbers):
    array = np.array(numbers, dtype=np.float64)
    assert Dataset({"m": array})["m"].tobytes() == array.tobytes()


@pytest.mark.parametrize("source", [{"m": MASS}, MASS, np.ma.array(MASS), pd.DataFrame({"m": MASS})])
def test_later_changes_to_the_source_change_nothing(source):
    source = copy.deepcopy(source)
    dataset = Dataset(source, M)
    (source["m"] if isinstance(source, dict) else source)[:] = 6.9
    np.testing.assert_array_equal(dataset["m"], MASS)


def test_a_masked_array_without_masked_entries_is_an_array():
    np.testing.assert_array_equal(Dataset({"m": np.ma.array(MASS, mask=False)})["m"], MASS)


def test_masked_entries_are_counted():
    masked = np.ma.array([1, 2, 3, 4], mask=[True, False, True, False])
    with pytest.raises(DataError, match=r"dataset: column 'm': 2 of 4 events are masked$"):
        Dataset({"m": masked})


@pytest.mark.parametrize(
    ("column", "dtype"),
    [([True, False], "bool"), ([b"a", b"b"], "|S1"), ([1j, 2], "complex128"), ([1, None], "object"),
     (np.array(["2020-01-01"], "M8[D]"), "datetime64[D]")],
)  # fmt: skip
def test_what_is_not_a_real_number_is_refused(column, dtype):
    with pytest.raises(
        DataError, match=re.escape(f"dataset: column 'm': must be real numbers, got dtype {dtype}")
    ):
        Dataset({"m": column})


@pytest.mark.parametrize(("column", "shape"), [(1.0, "1.0"), (np.zeros((3, 2)), "shape (3, 2)")])
def test_a_column_has_one_dimension(column, shape):
    with pytest.raises(
        DataError, match=re.escape(f"dataset: column 'm': must have one dimension, got {shape}")
    ):
        Dataset({"m": column})


def test_ragged_rows_are_refused():
    with pytest.raises(
        DataError, match="dataset: column 'm': must be rectangular, got rows of different lengths"
    ):
        Dataset({"m": [[1.0], [1.0, 2.0]]})


# ---------------------------------------------------------------------------------------------- complaints


def test_one_error_lists_everything_that_is_wrong():
    source = {"m": np.r_[4.0, np.nan, np.full(8, 6.0)], "X": np.zeros(10), "k": np.zeros(9), "s": ["a"] * 10}
    observables = [M, X, Stand("k", -1, 1), Stand("s", 0, 1), Stand("zeta", 0, 1)]
    assert message(source, observables, weights=[1.0, np.inf]) == (
        "dataset: observable 'x': missing; did you mean 'X'?; "
        "observable 's': must be real numbers, got dtype <U1; convert it with astype(float); "
        "observable 'zeta': missing; there are 'm', 'X', 'k', 's'; "
        "observable 'k': length must be 10 as for 'm', got 9; "
        "weights: length must be 10 as for 'm', got 2; "
        "observable 'm': 1 of 10 events are not finite; "
        "observable 'm': 1 of 10 events lie outside [5.0, 7.0]; "
        "use cut() to keep the events in range, or widen the range; "
        "weights: 1 of 2 weights are not finite"
    )


def test_events_outside_the_range_are_counted():
    with pytest.raises(
        DataError, match=r"observable 'm': 2 of 3 events lie outside \[5.0, 7.0\]; use cut\(\) to keep"
    ):
        Dataset([4.9, 5.0, 7.1], M)


def test_the_edges_of_the_range_are_inside():
    assert len(Dataset([5.0, 7.0], M)) == 2


def test_infinities_are_not_finite_rather_than_outside():
    assert message([np.inf, -np.inf, 6.0], M) == "dataset: observable 'm': 2 of 3 events are not finite"


def test_an_array_needs_observables():
    with pytest.raises(
        DataError, match="dataset: source: an array has no names for its columns; pass its observables"
    ):
        Dataset(MASS)


@pytest.mark.parametrize(
    ("source", "end"),
    [(np.zeros((2, 5)), r"got shape \(2, 5\); transpose it$"), (np.zeros((5, 3)), r"got shape \(5, 3\)$"),
     (np.zeros(5), r"got shape \(5,\)$")],
)  # fmt: skip
def test_an_array_has_one_column_per_observable(source, end):
    with pytest.raises(DataError, match="an array must have one column per observable, here 2, " + end):
        Dataset(source, [M, X])


@pytest.mark.parametrize("source", [None, 3.0, np.zeros((1, 1, 1))])
def test_what_has_no_columns_is_refused(source):
    with pytest.raises(
        DataError, match="dataset: source: must be named columns, an array with 1 or 2 dimensions"
    ):
        Dataset(source, M)


def test_a_ragged_source_is_refused():
    with pytest.raises(DataError, match="dataset: source: must be rectangular"):
        Dataset([[1.0], [1.0, 2.0]], [M, X])


def test_a_dataset_needs_a_column():
    with pytest.raises(DataError, match="dataset: needs at least one column, got none"):
        Dataset({})
    with pytest.raises(DataError, match="dataset: needs at least one observable, got none"):
        Dataset({"m": MASS}, [])


def test_an_observable_has_a_name_and_a_range():
    with pytest.raises(DataError, match="dataset: an observable needs a name and a range, got 'm'"):
        Dataset({"m": MASS}, ["m"])


def test_an_observable_comes_once():
    with pytest.raises(DataError, match="dataset: observable 'm': given twice"):
        Dataset({"m": MASS}, [M, M])


def test_a_name_is_text():
    with pytest.raises(DataError, match="dataset: the name of a column must be text, got 0; rename it"):
        Dataset(pd.DataFrame(np.zeros((2, 1))))


def test_a_doubled_column_of_a_frame_is_refused():
    frame = pd.DataFrame(np.zeros((2, 2)), columns=["m", "m"])
    with pytest.raises(DataError, match="2 columns are named 'm'; rename or drop all but one"):
        Dataset(frame, Stand("m", 0, 1))


# ---------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0, -0.5], np.array([1, 2, -0.5], ">f4"), pd.Series([1.0, 2.0, -0.5])]
)
def test_weights_are_an_array(weights):
    dataset = Dataset(MASS, M, weights=weights)
    assert dataset.weights.tolist() == [1.0, 2.0, -0.5] and not dataset.weights.flags.writeable
    assert dataset.sum_of_weights == 2.5


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, lambda d: pd.DataFrame(d).to_records(index=False)])
def test_weights_may_be_a_column_which_is_then_no_observable(kind):
    dataset = Dataset(kind({"m": MASS, "w": [1.0, 2.0, 3.0]}), weights="w")
    assert dataset.names == ("m",)
    assert dataset.weights.tolist() == [1.0, 2.0, 3.0]


def test_without_weights_every_event_counts_once():
    dataset = Dataset(MASS, M)
    assert dataset.weights is None
    assert dataset.sum_of_weights == 3.0


def test_the_weights_of_a_dataset_come_along_unless_others_are_given():
    weighted = Dataset(MASS, M, weights=[1, 2, 3])
    assert Dataset(weighted, M).weights.tolist() == [1, 2, 3]
    assert Dataset.cut(weighted, Stand("m", 5.8, 7)).weights.tolist() == [2, 3]
    assert Dataset(weighted, M, weights=[4, 5, 6]).weights.tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1.0], "weights: length must be 3 as for 'm', got 1"),
        ([1.0, np.nan, np.inf], "weights: 2 of 3 weights are not finite"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "weights: 1 of 3 weights are masked"),
        (["a", "b", "c"], "weights: must be real numbers, got dtype <U1; convert it with astype\\(float\\)"),
        (2.0, "weights: must have one dimension, got 2.0"),
        ("W", "weights: no column 'W'; did you mean 'w'?"),
        ("m", "weights: column 'm' is an observable; name another column"),
    ],
)
def test_odd_weights_are_refused(weights, problem):
    with pytest.raises(DataError, match=f"^dataset: {problem.replace('?', '[?]')}$"):
        Dataset({"m": MASS, "w": MASS}, M, weights=weights)


def test_with_weights_keeps_the_events():
    dataset = Dataset(MASS, M)
    weighted = dataset.with_weights([1, 2, 3])
    assert weighted.weights.tolist() == [1, 2, 3] and dataset.weights is None
    np.testing.assert_array_equal(weighted["m"], MASS)
    assert weighted.with_weights(None).weights is None
    with pytest.raises(DataError, match="dataset: weights: length must be 3 as for 'm', got 2"):
        dataset.with_weights([1, 2])
    with pytest.raises(DataError, match="dataset: weights: 1 of 3 weights are not finite"):
        dataset.with_weights([1, 2, np.nan])


# ---------------------------------------------------------------------------------------------- cuts


def test_a_cut_keeps_the_events_in_every_range_and_says_how_many():
    source = {"m": [4.0, 5.0, 6.0, np.nan, 7.0, 8.0], "x": [0.0, 0.0, 2.0, 2.0, 1.0, np.inf]}
    dataset = Dataset.cut(source, [M, X], weights=[1, 2, 3, 4, 5, np.nan])
    assert dataset["m"].tolist() == [5.0, 7.0] and dataset["x"].tolist() == [0.0, 1.0]
    assert dataset.weights.tolist() == [2.0, 5.0]
    assert dataset.report == CutReport(6, 2, {"m": 3, "x": 3}, not_numbers={"m": 1})
    assert str(dataset.report) == (
        "kept 2 of 6 events: 3 outside the range of 'm' (1 of them not a number), 3 outside the range of 'x'"
    )


def test_a_cut_that_removes_nothing_says_so():
    dataset = Dataset.cut(MASS, M)
    assert str(dataset.report) == "kept all 3 events"
    assert dataset.with_weights([1, 2, 3]).report is dataset.report


def test_only_a_cut_has_a_report():
    assert Dataset(MASS, M).report is None
    assert Dataset.cut(MASS, M)[:2].report is None


def test_a_cut_may_remove_everything():
    assert len(Dataset.cut([1.0, 2.0], M)) == 0


def test_a_cut_removes_masked_events():
    assert Dataset.cut(np.ma.array([5.5, 6.0], mask=[True, False]), M)["m"].tolist() == [6.0]


def test_a_cut_still_checks_what_it_cannot_cut():
    with pytest.raises(DataError, match="dataset: observable 'x': missing; there are 'm'"):
        Dataset.cut({"m": MASS}, [M, X])
    with pytest.raises(DataError, match="dataset: weights: 1 of 2 weights are not finite"):
        Dataset.cut([1.0, 5.5, 6.0], M, weights=[1.0, np.nan, 1.0])


# ---------------------------------------------------------------------------------------------- using it


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(DataError, match=r"dataset: no column 'MM'; did you mean 'mm'[?]"):
        Dataset({"mm": MASS})["MM"]
    with pytest.raises(DataError, match="dataset: no column 'q'; there are 'm', 'x'"):
        Dataset({"m": MASS, "x": COS})["q"]


def test_columns_are_a_copy():
    dataset = Dataset(MASS, M)
    dataset.columns.clear()
    assert dataset.names == ("m",)


CHOICES = {
    "list": [True, False, True],
    "series": pd.Series([True, False, True], name="m"),  # it has a name, as an observable does
    "slice": slice(None, None, 2),
    "indices": [0, 2],
    "from the end": np.array([-3, -1]),
    "unsigned": np.array([0, 2], np.uint8),
}


@pytest.mark.parametrize("which", CHOICES.values(), ids=CHOICES)
def test_events_are_chosen_by_a_mask_a_slice_or_indices(which):
    chosen = Dataset({"m": MASS, "x": COS}, [M, X], weights=[1, 2, 3])[which]
    assert isinstance(chosen, Dataset)
    assert chosen["m"].tolist() == [5.5, 6.5] and chosen["x"].tolist() == [-0.5, 0.5]
    assert chosen.weights.tolist() == [1, 3]
    assert chosen["m"].flags.c_contiguous and not chosen["m"].flags.writeable


def test_events_may_be_chosen_in_any_order_and_twice():
    assert Dataset(MASS, M)[[2, 0, 0]]["m"].tolist() == [MASS[2], MASS[0], MASS[0]]
    assert len(Dataset(MASS, M)[[]]) == 0 == len(Dataset(MASS, M)[5:])


TAKES = "dataset: takes the name of a column, an observable, a slice, a mask or indices of events, got "


@pytest.mark.parametrize(
    ("which", "problem"),
    [
        ([True, False], r"dataset: the mask must have shape \(3,\), got \(2,\)"),
        ([0, 3], "dataset: indices must lie from -3 to 2, got 3"),
        ([-4], "dataset: indices must lie from -3 to 2, got -4"),
        ([[0, 1]], r"dataset: indices must have one dimension, got shape \(1, 2\)"),
        ([[0], [1, 2]], "dataset: indices of events must be rectangular, got rows of different lengths"),
        (1, TAKES + "1"),
        (None, TAKES + "None"),
        (["m"], TAKES + r"shape \(1,\) of dtype <U1"),
        ([0.0, 1.0], TAKES + r"shape \(2,\) of dtype float64"),
        (np.ma.array([True, False, True], mask=[0, 0, 1]), TAKES + r"shape \(3,\) of dtype bool"),
        (
            slice("a", "b"),
            r"dataset: slice\('a', 'b', None\) is not a slice of events, slice indices must be",
        ),
        (slice(0, 2, 0), "is not a slice of events, slice step cannot be zero"),
    ],
    ids=str,
)
def test_what_chooses_no_events_is_refused(which, problem):
    with pytest.raises(DataError, match=problem):
        Dataset(MASS, M)[which]


def test_a_column_is_found_by_its_observable():
    dataset = Dataset({"m": MASS, "x": COS}, [M, X])
    assert dataset[M] is dataset["m"]
    with pytest.raises(DataError, match=r"dataset: no column 'y'; there are 'm', 'x'"):
        dataset[Stand("y", 0.0, 1.0)]


# ---------------------------------------------------------------------------------------------- joining


def test_datasets_are_concatenated_in_order():
    some = Dataset({"m": MASS, "x": COS}, [M, X])
    both = Dataset.concatenate([some[:2], Dataset({"x": COS, "m": MASS})])
    assert both.names == ("m", "x") and both.weights is None and both.report is None
    assert both["m"].tolist() == [*MASS[:2], *MASS] and both["x"].tolist() == [*COS[:2], *COS]


def test_events_without_weights_count_once_among_weighted_ones():
    both = Dataset.concatenate(iter([Dataset(MASS, M), Dataset(MASS, M, weights=[2, 3, 4])]))
    assert both.weights.tolist() == [1, 1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "dataset: needs at least one dataset to concatenate, got none"),
        ([MASS], "dataset: concatenates datasets, got one of type "),
        (
            [Dataset({"m": MASS, "x": COS}), Dataset({"m": MASS, "y": COS})],
            "dataset: to concatenate datasets their columns must agree, got 'm', 'x' and 'm', 'y'",
        ),
    ],
)
def test_what_cannot_be_concatenated_is_refused(parts, problem):
    with pytest.raises(DataError, match=problem):
        Dataset.concatenate(parts)


def test_a_dataset_becomes_a_frame_of_pandas_and_back():
    dataset = Dataset({"m": MASS, "x": COS}, [M, X], weights=[1, 2, 3])
    frame = dataset.to_pandas(weight="w")
    assert list(frame) == ["m", "x", "w"] and len(frame) == 3
    again = Dataset(frame, [M, X], weights="w")
    assert again["x"].tobytes() == dataset["x"].tobytes()
    assert again.weights.tobytes() == dataset.weights.tobytes()
    assert list(dataset.with_weights(None).to_pandas()) == ["m", "x"]
    with pytest.raises(DataError, match="dataset: a column is called 'm' already; name that of the weights"):
        dataset.to_pandas(weight="m")


def test_a_dataset_cannot_be_changed():
    dataset = Dataset(MASS, M, weights=[1, 2, 3])
    with pytest.raises(FrozenInstanceError):
        dataset.weights = None
    with pytest.raises(FrozenInstanceError):
        dataset.anything = 1
    with pytest.raises(ValueError, match="read-only"):
        dataset["m"][0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        dataset.weights[0] = 1.0


def test_a_dataset_is_not_iterable_and_equals_only_itself():
    dataset = Dataset(MASS, M)
    with pytest.raises(TypeError, match="not iterable"):
        iter(dataset)
    assert dataset == dataset and dataset != Dataset(dataset)
    assert len({dataset, dataset}) == 1


@pytest.mark.parametrize("copied", [lambda d: pickle.loads(pickle.dumps(d)), copy.deepcopy, copy.copy])
def test_copies_are_exact_and_read_only(copied):
    dataset = Dataset.cut(
        {"m": [5.1, 1 / 3 + 5, 9.0], "x": [0.1, -0.0, 0.2]}, [M, X], weights=[0.1, 1 / 3, 1]
    )
    again = copied(dataset)
    assert again.names == dataset.names and again.report == dataset.report
    for name in dataset.names:
        assert again[name].tobytes() == dataset[name].tobytes()
        assert not again[name].flags.writeable
    assert again.weights.tobytes() == dataset.weights.tobytes() and not again.weights.flags.writeable


def test_a_dataset_prints_what_it_holds():
    dataset = Dataset({"m": [5.25, 6.0, 6.5], "cos_theta": COS}, weights=[1, 2, 0.5])
    assert str(dataset) == (
        "Dataset: 3 events, sum of weights 3.5\n"
        "  column       min     mean  max\n"
        "  m           5.25  5.91667  6.5\n"
        "  cos_theta  -0.5   0        0.5\n"
        "  (weights)   0.5   1.16667  2"
    )


def test_the_repr_of_a_dataset_is_one_line():
    assert repr(Dataset({"m": MASS, "x": COS})) == "Dataset(3 events: m, x)"
    assert repr(Dataset(MASS, M, weights=[1, 2, 3])) == "Dataset(3 events, sum of weights 6: m)"
    many = Dataset({f"a_column_with_number_{k}": MASS for k in range(20)})
    assert repr(many) == "Dataset(3 events: 20 columns)"


def test_a_dataset_shows_itself_in_notebooks():
    shown = Dataset({"<m>": [5.0, 6.0]})._repr_html_()
    assert shown == (
        "<table><caption>Dataset: 2 events</caption>"
        '<tr><th style="text-align:left">column</th><th style="text-align:right">min</th>'
        '<th style="text-align:right">mean</th><th style="text-align:right">max</th></tr>'
        '<tr><td style="text-align:left;white-space:nowrap">&lt;m&gt;</td>'
        '<td style="text-align:right;white-space:nowrap">5</td>'
        '<td style="text-align:right;white-space:nowrap">5.5</td>'
        '<td style="text-align:right;white-space:nowrap">6</td></tr></table>'
    )


@pytest.mark.parametrize(
    ("number", "rule"),
    [(2.0, r"1 of 2 events lie outside \[0.0, 1.0\]"), (np.nan, "1 of 2 events are not finite"), (np.inf, "1 of 2 events are not finite")],
)  # fmt: skip
def test_drawn_events_outside_their_range_are_an_error(number, rule):
    with pytest.raises(DataError, match=f"dataset: observable 'x': {rule}"):
        build_drawn({"x": np.array([0.5, number])}, (Stand("x", 0.0, 1.0),))


def test_issue_counts_with_the_centres_of_their_bins_are_no_histogram():
    # this used to speak of columns only
    with pytest.raises(
        DataError, match=r"got shape \(2, 3\); a histogram is \(counts, edges\) with one edge more"
    ):
        Dataset((np.ones(3), np.linspace(5, 7, 3)), [M])


def test_ranges_of_columns_are_written_as_those_of_fits():
    # one pair used to be a TypeError
    data = Dataset({"x": [0.5, 1.5, 2.5, 3.5], "tag": ["a", "b", "a", "b"]})
    x = Observable("x", 0.0, 5.0)
    assert len(data.inside({"x": (1.0, 3.0)})) == 2
    assert len(data.inside({x: [(0.0, 1.0), (3.0, 4.0)]})) == 2
    for wrong, message in {
        "y": "no column 'y'; there are 'x', 'tag'",
        "tag": "column 'tag': has labels, and labels no ranges",
    }.items():
        with pytest.raises(DataError, match=message):
            data.inside({wrong: (1.0, 3.0)})
    with pytest.raises(DataError, match="observable 'x': a sub-range must not be empty"):
        data.inside({"x": (3.0, 1.0)})
    with pytest.raises(DataError, match="ranges must be"):
        data.inside({})


def test_a_mask_of_numbers_is_not_taken_for_indices():
    # flags of type int8 used to select the first two events again and again
    data = Dataset({"x": [0.5, 1.5, 2.5]})
    with pytest.raises(DataError, match=r"the mask must be of booleans, got one of the numbers 0 and 1"):
        data[np.array([1, 0, 1], np.int8)]
    assert len(data[np.array([0, 2, 1])]) == 3
    with pytest.raises(DataError, match="a mask or indices of events, got one of type Expr"):
        data[Observable("x", 0.0, 5.0) > 1]  # this used to be an AssertionError


def test_one_dataset_is_concatenated_with_nothing():
    data = Dataset({"x": [0.5, 1.5, 2.5]})
    assert len(Dataset.concatenate(data)) == 3


def test_a_dataset_is_checked_once_for_its_observables():
    x, y = Observable("x", 0.0, 10.0), Observable("y", 0.0, 1.0)
    data = Dataset({"y": np.linspace(0.1, 0.9, 5), "x": np.linspace(1.0, 9.0, 5)}, weights=np.full(5, 2.0))
    both, one = dataset_of(data, (y, x), None), dataset_of(data, (x,), None)
    assert both is data
    assert (one.names, one.sum_of_weights) == (("x",), 10.0)
    with pytest.raises(DataError, match="observable 'x': 1 of 5 events lie outside"):
        dataset_of(data, (y, Observable("x", 2.0, 10.0)), None)
    assert dataset_of(data, (y, x), None) is data
