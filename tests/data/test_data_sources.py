"""Data of any kind are read right, or refused with an error that says what to give instead."""

import datetime
import decimal
import io
import pathlib
import warnings
from types import SimpleNamespace

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

import morefit as mf
from morefit.data.sources import Query
from morefit.validate import follows

X, Y = mf.Observable("x", -5.0, 5.0), mf.Observable("y", -5.0, 5.0)
ONE, TWO = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
RECORDS = [("x", float), ("y", float)]


class Named:
    """As a frame of polars is: names, and columns that become arrays."""

    columns = ("x", "y")

    def __getitem__(self, name):
        return {"x": ONE, "y": TWO}[name]


class Lazy:
    """As a query of Spark is: it has no items."""

    @property
    def columns(self):
        warnings.warn("resolving the schema is expensive", UserWarning, stacklevel=2)
        return ["x", "y"]

    def __getitem__(self, name):
        raise TypeError("'LazyFrame' object is not subscriptable")

    def select(self, *columns):
        return self

    def collect(self):
        return Named()


class Polars(Lazy):
    """As a lazy frame of polars is: it says what its columns are, and runs for some of them."""

    def __init__(self, numbers):
        self.numbers, self.selected = numbers, None

    def collect_schema(self):
        return SimpleNamespace(names=lambda: list(self.numbers))

    def head(self, rows):
        return Polars({name: column[:rows] for name, column in self.numbers.items()})

    def select(self, names):
        self.selected = list(names)
        return Polars({name: self.numbers[name] for name in names})

    def collect(self):
        return self.numbers


class Elsewhere:
    """As a tensor on another device is."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert a tensor of a device\nto numpy")


class Ndarray(np.ndarray):
    """As the arrays of RDataFrame are."""


# what both columns can be read from
READ = {
    "a mapping": {"x": ONE, "y": TWO},
    "a pandas frame": pd.DataFrame({"x": ONE, "y": TWO}),
    "a pandas frame of Arrow": pd.DataFrame({"x": ONE, "y": TWO}).convert_dtypes(dtype_backend="pyarrow"),
    "a pandas frame with whole numbers": pd.DataFrame({"x": ONE, "y": pd.array([1, 2, 3], dtype="Int64")}),
    "an Arrow table": pa.table({"x": ONE, "y": TWO}),
    "an Arrow batch": pa.record_batch({"x": pa.array(ONE), "y": pa.array(TWO)}),
    "awkward records": ak.Array([{"x": x, "y": y} for x, y in zip(ONE, TWO, strict=True)]),
    "awkward columns": ak.zip({"x": ONE, "y": TWO}),
    "a structured array": np.array(list(zip(ONE, TWO, strict=True)), RECORDS),
    "a record array": np.rec.array(list(zip(ONE, TWO, strict=True)), RECORDS),
    "a frame of another kind": Named(),
    "what a lazy frame collects": Lazy().collect(),
    "a lazy frame of polars": Polars({"x": ONE, "y": TWO, "z": ["a", "b", "c"]}),
    "what RDataFrame.AsNumpy returns": {"x": ONE.view(Ndarray), "y": TWO.view(Ndarray)},
    "an array": np.column_stack([ONE, TWO]),
    "a list of rows": [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]],
    "a dataset": mf.Dataset({"x": ONE, "y": TWO}),
}


@pytest.mark.parametrize("source", READ.values(), ids=READ)
def test_columns_are_read_from(source):
    data = mf.Dataset(source, [X, Y])
    assert data["x"].tolist() == ONE.tolist()
    assert data["y"].tolist() == TWO.tolist()


@pytest.mark.parametrize(
    "source",
    [
        ONE,
        ONE.tolist(),
        pd.Series(ONE),
        pa.array(ONE),
        pa.chunked_array([ONE]),
        ak.Array(ONE),
        memoryview(ONE),
    ],
    ids=lambda source: type(source).__name__,
)
def test_one_column_is_read_from(source):
    assert mf.Dataset(source, X)["x"].tolist() == ONE.tolist()
    assert mf.Dataset({"x": source}, X)["x"].tolist() == ONE.tolist()


def test_a_tree_of_uproot_is_read(tmp_path):
    with uproot.recreate(tmp_path / "f.root") as file:
        file["t"] = {"x": ONE, "y": TWO}
    with uproot.open(tmp_path / "f.root") as file:
        assert mf.Dataset(file["t"], [X, Y])["y"].tolist() == TWO.tolist()


MISSING = {
    "pandas": pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")}),
    "Arrow": pa.table({"x": pa.array([1, None, 3])}),
    "awkward": ak.Array([{"x": 1.0}, {"x": None}, {"x": 3.0}]),
    "masked": {"x": np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])},
    "masked records": np.ma.array(
        [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], mask=[(0, 0), (1, 0), (0, 0)], dtype=RECORDS
    ),
}


@pytest.mark.parametrize("source", MISSING.values(), ids=MISSING)
def test_missing_numbers_are_counted(source):
    with pytest.raises(mf.DataError, match=r"observable 'x': 1 of 3 events are (masked|not finite)"):
        mf.Dataset(source, X)
    assert len(mf.Dataset.cut(source, X)) == 2


# what is given, and what the message says
KINDS = "must be named columns, an array with 1 or 2 dimensions or a Dataset, got"
REFUSED = {
    "a lazy frame": (Lazy(), r"got a query of type Lazy that has not been run; pass what its collect\(\) returns"),
    "a path": ("data.root", rf"{KINDS} 'data.root'; read files with mf.read\(path, observables\)"),
    "a path object": (pathlib.Path("data.root"), r"; read files with mf.read"),
    "bytes": (b"data", r"; read files with mf.read"),
    "a generator": ((x for x in ONE), "must have an order and a length, got one of type generator; make a list of it"),
    "an iterator": (map(float, ONE), "got one of type map; make a list of it"),
    "a set": ({0.1, 0.2}, "got one of type set; make a list of it"),
    "None": (None, f"{KINDS} None"),
    "a number": (1.5, f"{KINDS} 1.5"),
    "three dimensions": (np.zeros((2, 2, 2)), rf"{KINDS} shape \(2, 2, 2\) of dtype float64"),
    "a model": (mf.Gaussian(X, 0.0, 1.0), f"{KINDS} one of type Gaussian"),
    "a file": (io.StringIO("x"), "got one of type StringIO; make a list of it"),
    "rows of different lengths": ([[1.0], [1.0, 2.0]], "must be rectangular, got rows of different lengths"),
    "a tensor elsewhere": (Elsewhere(), r"must be numbers, got one of type Elsewhere \(TypeError: can't convert a tensor of a"),
    "names that are no text": (pd.DataFrame([[1.0]]), "'x': missing; the names of columns must be text, got 0; rename them"),
    "a column of lists": (ak.Array([{"x": [1.0, 2.0]}, {"x": [1.0]}]), "'x': must be rectangular"),
    "a column of text": (pa.table({"x": ["a"]}), "'x': must be real numbers, got dtype object; convert it"),
    "a column that is a word": ({"x": "abc"}, "'x': must have one dimension, got 'abc'"),
    "a column that is a number": ({"x": 1.0}, "'x': must have one dimension, got 1.0"),
    "a column that is a mapping": ({"x": {"a": 1}}, "'x': must have one dimension, got one of type dict"),
    "a column that is a set": ({"x": {1.0}}, "'x': must have an order and a length, got one of type set"),
    "two columns of a name": (pd.DataFrame(np.zeros((3, 2)), columns=["x", "x"]), "source: 2 columns are named 'x'; rename or drop all but one"),
    "complex numbers": ({"x": [1j]}, "'x': must be real numbers, got dtype complex128; take its real part"),
    "times": ({"x": np.array(["2020-01-01"], "M8[s]")}, r"got dtype datetime64\[s\]; subtract a point in time and divide"),
    "times of Python": ({"x": [datetime.datetime(2020, 1, 1)]}, "got dtype object; convert it"),
    "durations": ({"x": np.array([1], "m8[s]")}, r"got dtype timedelta64\[s\]; divide it by a unit"),
    "true and false": ({"x": [True]}, r"got dtype bool; convert it with astype\(float\)"),
    "decimals": ({"x": [decimal.Decimal(1)]}, r"got dtype object; convert it with astype\(float\)"),
    "records inside of a record": (np.zeros(2, [("x", [("a", float)])]), "got dtype .*; choose one of its fields"),
    "numbers too large": ({"x": [10**400]}, "got dtype object"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(source, says):
    with pytest.raises(mf.DataError, match=f"^dataset: .*{says}"):
        mf.Dataset(source, X)


def test_a_column_is_found_by_its_name():
    data = mf.Dataset({"x": ONE})
    for name in (0, ["x"], None):
        with pytest.raises(
            mf.DataError, match=r"dataset: takes the name of a column, an observable, a slice"
        ):
            data[name]


def test_frames_are_not_taken_for_lazy_ones():
    assert follows(Lazy(), Query)
    for name, source in READ.items():
        assert follows(source, Query) == (name == "a lazy frame of polars")


@pytest.mark.parametrize(
    "names", [("collect", "select"), ("column_names", "column"), ("fields", "layout"), ("kind", "variances")]
)
def test_columns_do_not_make_a_frame_something_else(names):
    # this used to be a query, a table of Arrow, an awkward array and a histogram in Python 3.11
    frame = pd.DataFrame(dict.fromkeys(names, ONE) | {"x": TWO})
    assert mf.Dataset(frame, X)["x"].tolist() == TWO.tolist()


def test_what_an_instance_has_counts():
    assert follows(SimpleNamespace(collect=len, select=len), Query)
    assert not follows(SimpleNamespace(collect=len), Query)


def test_a_lazy_frame_runs_for_the_columns_that_are_needed():
    frame = Polars({"x": ONE, "y": TWO, "w": TWO, "z": ["a", "b", "c"]})
    data = mf.Dataset(frame, X, weights="w")
    assert frame.selected == ["x", "w"]
    assert data.weights.tolist() == TWO.tolist()
    with pytest.raises(mf.DataError, match="observable 'y': missing; there are 'x'"):
        mf.Dataset(Polars({"x": ONE}), Y)
    assert mf.Dataset(Polars({"x": ONE, "y": TWO})).names == ("x", "y")


def test_frames_of_polars_are_read():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({"x": ONE, "y": TWO, "name": ["a", "b", "c"]})
    for source in (frame, frame.lazy(), {"x": frame["x"], "y": frame["y"]}):
        data = mf.Dataset(source, [X, Y])
        assert data["x"].tolist() == ONE.tolist()
        assert data["y"].tolist() == TWO.tolist()
    with pytest.raises(mf.DataError, match="observable 'x': 1 of 3 events are not finite"):
        mf.Dataset(polars.LazyFrame({"x": [0.1, None, 0.3]}), X)


def test_arrays_of_xarray_are_read():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xarray.Dataset({"x": ("event", ONE), "y": ("event", TWO)}, coords={"event": [4, 5, 6]})
    table = xarray.DataArray(np.column_stack([ONE, TWO]), dims=("event", "column"))
    for source in (data, table, {"x": data["x"], "y": data["y"]}):
        assert mf.Dataset(source, [X, Y])["y"].tolist() == TWO.tolist()


@pytest.mark.parametrize("make", [lambda c, n: pa.Table.from_arrays(c, n), lambda c, n: pd.DataFrame(np.transpose(c), columns=n)], ids=["arrow", "pandas"])  # fmt: skip
def test_columns_of_one_name_are_refused_where_they_are_wanted(make):
    # these used to be a KeyError of pyarrow, and a message about the number of dimensions
    source = make([ONE, ONE, TWO], ["x", "x", "y"])
    with pytest.raises(
        mf.DataError, match="dataset: source: 2 columns are named 'x'; rename or drop all but one"
    ):
        mf.Dataset(source, [X])
    assert mf.Dataset(source, [Y])["y"][0] == 1.0


def test_columns_of_one_name_in_files_are_refused_where_they_are_wanted(tmp_path):
    # these used to be a file that may be cut short, whichever columns were wanted
    (tmp_path / "a.csv").write_text("x,x,y\n1,2,3\n")
    pq.write_table(pa.Table.from_arrays([ONE, ONE, ONE], ["x", "x", "y"]), tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(mf.DataError, match=rf"file '.*{name}': 2 columns are named 'x'"):
            mf.read(tmp_path / name, [X])
        assert len(mf.read(tmp_path / name, [Y])) in (1, 3)
