"""Data that stay in files: the events of ``mf.read`` in pieces, and what cannot be done with pieces."""

import os
import pickle
import threading
from contextlib import closing

import numpy as np
import pytest

import morefit as mf
from morefit.data import files
from morefit.data.io.table import Chunk
from morefit.data.pieces import in_pieces, read_ahead

pyarrow = pytest.importorskip("pyarrow", reason="needs the extra 'io'")
pytest.importorskip("uproot", reason="needs the extra 'io'")

M = mf.Observable("m", 5.0, 7.0)
SELECTION = {"cut": "pt > 1", "weights": "weight"}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 1000)


@pytest.fixture(params=["parquet", "root"])
def paths(request, tmp_path):
    """Two files of events, some of which are outside the range or do not pass a cut; the first has two row groups."""
    rng = np.random.default_rng(1)
    m, pt, w = rng.uniform(4.9, 7.1, 5700), rng.uniform(0, 5, 5700), rng.uniform(0.5, 1.5, 5700)
    m[1000:2000] = 6.0  # a piece of which all events may be kept
    pt[1000:2000] = 2.0
    data = mf.Dataset({"m": m, "pt": pt}, weights=w)
    names = [tmp_path / f"{name}.{request.param}" for name in "ab"]
    data[:3300].write(names[0])
    data[3300:].write(names[1])
    if request.param == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(parquet.read_table(names[0]), names[0], row_group_size=1700)
    return names


@pytest.mark.parametrize("options", [{}, {"cut": "pt > 1"}, {"weights": "weight"}, SELECTION])
def test_the_events_are_those_that_read_selects(paths, options):
    here, there = mf.read(paths, M, **options), mf.FileDataset(paths, M, **options)
    for _ in range(2):
        pieces = list(there.pieces())
        assert [len(piece) for piece in pieces] == list(there._kept)
        whole = mf.Dataset.concatenate(pieces)
        assert np.array_equal(whole["m"], here["m"])
        assert whole.weighted is there.weighted is here.weighted is ("weights" in options)
        assert not whole.weighted or np.array_equal(whole.weights, here.weights)
    assert len(there) == len(here)
    assert str(there.report) == str(here.report)
    assert there.sum_of_weights == pytest.approx(here.sum_of_weights, rel=1e-14)
    assert there.names == ("m",)
    assert set(there.sample["m"]) <= set(here["m"])


def test_pieces_can_be_entered_anywhere(paths):
    data = mf.FileDataset(paths, M)
    every = list(data.pieces())
    some = list(data._pieces.read(2, 6, data._kept))
    assert len(every) == 7
    assert all(np.array_equal(a["m"], b["m"]) for a, b in zip(every[2:6], some, strict=True))


def test_ranges_select_events_as_in_memory(paths):
    region = {"m": [(5.0, 5.5), (6.5, 7.0)]}
    here, there = mf.read(paths, M).inside(region), mf.FileDataset(paths, M).inside(region)
    assert np.array_equal(mf.Dataset.concatenate(there.pieces())["m"], here["m"])
    assert there.report.summary == here.report.summary


def test_a_histogram_is_filled_in_one_pass(paths):
    here, there = mf.read(paths, M, **SELECTION), mf.FileDataset(paths, M, **SELECTION)
    expected, found = here.to_hist(M, 20), there.to_hist(M, 20)
    assert found.values() == pytest.approx(expected.values(), rel=1e-13)
    assert found.variances() == pytest.approx(expected.variances(), rel=1e-13)


def test_it_prints_and_pickles(paths):
    data = mf.FileDataset(paths, M, cut="pt > 1")
    assert repr(data).startswith(f"FileDataset({len(data)} events in 2 files of")
    assert "did not pass 'pt > 1'" in str(data)
    assert data._repr_html_().startswith("<pre>FileDataset")
    other = pickle.loads(pickle.dumps(data))
    assert len(other) == len(data)
    assert other.weights is None
    assert np.array_equal(next(other.pieces())["m"], next(data.pieces())["m"])


def test_a_file_without_rows_has_no_pieces(tmp_path, paths):
    empty = tmp_path / f"empty{paths[0].suffix}"
    mf.Dataset({"m": np.empty(0)}).write(empty)
    data = mf.FileDataset([empty, paths[0]], M, cut="pt > 1")
    assert str(data.report) == str(mf.read([empty, paths[0]], M, cut="pt > 1").report)
    assert [report.kept for report in data.report.files.values()] == [0, len(data)]
    with pytest.raises(mf.DataError, match="has no events; check whether it was filled"):
        mf.FileDataset(empty, M)


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_chunks_of_any_size_become_pieces_of_one_size(rows):
    numbers = np.arange(20)
    chunks = [Chunk({"m": part}, 1.0) for part in np.split(numbers, [1, 1, 8, 13])]
    pieces = [piece["m"] for piece in in_pieces(chunks, rows)]
    assert np.array_equal(np.concatenate(pieces), numbers)
    assert all(len(piece) == min(rows, 20) for piece in pieces[:-1])


# ------------------------------------------------------------------------------------------ what goes wrong


def test_a_file_that_changed_is_an_error_at_the_next_pass(paths):
    data = mf.FileDataset(paths, M)
    state = paths[1].stat()
    os.utime(paths[1], ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    with pytest.raises(
        mf.DataError, match=f"{paths[1].name}': must not change between two passes over the data"
    ):
        list(data.pieces())
    paths[1].unlink()
    with pytest.raises(mf.DataError, match="must be there at every pass over the data, got No such file"):
        list(data.pieces())


def test_events_that_changed_behind_an_old_date_are_an_error(paths):
    data = mf.FileDataset(paths, M, cut="pt > 1")
    with pytest.raises(mf.DataError, match="must not change between two passes"):
        list(data._pieces.read(0, 2, (0, *data._kept[1:])))


def test_weights_may_be_a_formula_whose_observables_select_events_too(paths):
    # this used to be refused
    pt = mf.Observable("pt", 0.5, 4.5)
    formula = 1 / (0.2 + 0.1 * pt + 0.01 * M)
    both = mf.read(paths, [M, pt])
    expected = 1 / (0.2 + 0.1 * both["pt"] + 0.01 * both["m"])
    there, plain = mf.FileDataset(paths, M, weights=formula), mf.FileDataset(paths, M, weights="weight")
    for data in (
        mf.read(paths, M, weights=formula),
        *map(whole, (there, plain._for_observables((M,), formula))),
    ):
        np.testing.assert_array_equal(data["m"], both["m"])
        np.testing.assert_allclose(data.weights, expected, rtol=1e-15)
    assert there._for_observables((M,), formula) is there
    assert pickle.loads(pickle.dumps(there)).sum_of_weights == there.sum_of_weights


def whole(data):
    return mf.Dataset.concatenate(list(data.pieces()))


@pytest.mark.parametrize("name", ["m", "w"])
def test_numbers_that_are_none_are_named_by_file_and_row(tmp_path, name):
    columns = {"m": np.full(3000, 6.0), "w": np.ones(3000)}
    columns[name][2500] = np.nan
    path = tmp_path / "nan.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    rule = f"nan.parquet': column '{name}': 1 of 1000 events are not finite, the first in row 2500; leave them out"
    with pytest.raises(mf.DataError, match=rule):
        mf.FileDataset(path, M, weights="w")
    assert len(mf.FileDataset(path, M, weights="w", cut=f"isfinite({name})")) == 2999


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda data: data["m"], "dataset: this needs all events in memory, got events that stay in files; read"),
        (lambda data: data.columns, "needs all events in memory"),
        (lambda data: data[:10], "needs all events in memory"),
        (lambda data: data.weights, "needs all events in memory"),
        (lambda data: data.to_pandas(), "needs all events in memory"),
        (lambda data: data.write("x.npz"), "needs all events in memory"),
        (lambda data: data.with_column("y", lambda m: m), "needs all events in memory"),
        (lambda data: mf.Dataset(data, M), "needs all events in memory"),
        (lambda data: mf.Dataset.concatenate([data, data]), "needs all events in memory"),
        (lambda data: data._for_observables((M,), [1.0]), "weights: must be a column of the files, or a formula of observables"),
        (lambda data: data._for_observables((mf.Observable("x", 0, 1),)), "observable 'x': missing; did you mean|observable 'x': missing; "),
        (lambda data: data._for_observables((mf.Observable("m", 5, 6),)), r"observable 'm': events must lie in \[5.0, 6.0\], got 5.* to 6.9.*; pass this observable to mf.FileDataset"),
    ],
)  # fmt: skip
def test_what_needs_all_events_is_refused(paths, call, rule):
    with pytest.raises(mf.DataError, match=rule):
        call(mf.FileDataset(paths, M, weights="weight"))


def test_unknown_attributes_are_what_they_are_elsewhere(paths):
    with pytest.raises(AttributeError, match="'FileDataset' object has no attribute 'colums'"):
        mf.FileDataset(paths, M).colums  # noqa: B018


def test_other_files_and_labels_are_refused(tmp_path):
    mf.Dataset({"m": [6.0]}).write(tmp_path / "a.npz")
    with pytest.raises(
        mf.DataError, match=r"only parquet and ROOT files can be read in pieces, got '\.npz'; write it"
    ):
        mf.FileDataset(tmp_path / "a.npz", M)
    with pytest.raises(
        mf.DataError, match="category 'year': data that stay in files cannot have labels; select"
    ):
        mf.FileDataset(tmp_path / "a.npz", [M, mf.Category("year", ["2016"])])


def test_one_piece_is_read_ahead_and_no_more():
    begun = []

    def items():
        try:
            for k in range(10):
                begun.append(k)
                yield k
        finally:
            begun.append(threading.current_thread().name)

    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 0
        assert next(ahead) == 1
    assert begun[:-1] in ([0, 1], [0, 1, 2])  # the next one may have begun
    assert begun[-1].startswith("morefit-reader")
    assert not [t for t in threading.enumerate() if t.name.startswith("morefit-reader")]


def test_errors_of_the_reader_arrive_where_pieces_are_used():
    def items():
        yield 1
        raise mf.DataError("file: damaged")

    with pytest.raises(mf.DataError, match="file: damaged"):
        list(read_ahead(items()))
