"""Files of four kinds: what is written comes back to the last bit, and what cannot be read says which file and why."""

import builtins
import itertools
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
import uproot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import morefit as mf
from morefit.data import reading
from morefit.data.io import formats

M = mf.Observable("m", 5.0, 7.0)
X = mf.Observable("x", -1.0, 1.0)
SUFFIXES = [suffix for row in formats.FORMATS for suffix in row.suffixes]
ANY = mf.Observable("any", -np.finfo(np.float64).max, np.finfo(np.float64).max)
PACKAGES = {".root": "uproot", ".parquet": "pyarrow", ".csv": "pyarrow"}

all_kinds = pytest.mark.parametrize("suffix", SUFFIXES)


def write(path, columns):
    """Write raw columns of any type without morefit, except for ROOT's default name of a tree."""
    if path.suffix == ".root":
        with uproot.recreate(path) as file:
            file.mktree("events", {n: np.asarray(c).dtype for n, c in columns.items()}).extend(columns)
    elif path.suffix == ".npz":
        np.savez(path, **columns)
    else:
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.fixture
def sample(tmp_path):
    """Six events in a file of the kind asked for: two outside, one of them also failing pt > 2."""

    def make(suffix, name="data"):
        columns = {
            "m": np.array([4.0, 5.5, 6.0, 6.5, 7.5, 6.2]),
            "x": np.array([0.125, 0.25, -0.375, 0.5, 0.5, -0.625], np.float32),
            "pt": np.array([1.0, 3.0, 4.0, 1.5, 5.0, 6.0]),
            "n": np.array([1, 2, 3, 4, 5, 6], np.uint8),
            "w": np.array([1.0, 0.5, 2.0, 1.0, 1.0, -1.0]),
        }
        return write(tmp_path / f"{name}{suffix}", columns)

    return make


# ---------------------------------------------------------------------------------------------- round trips


@all_kinds
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(
    numbers=arrays(np.float64, st.integers(1, 30), elements=st.floats(allow_nan=False, allow_infinity=False))
)
def test_every_bit_comes_back(suffix, numbers, tmp_path):
    dataset = mf.Dataset({"any": numbers, "other": numbers[::-1]}, weights=-numbers)
    dataset.write(tmp_path / f"bits{suffix}")
    again = mf.read(tmp_path / f"bits{suffix}", ANY, weights="weight")
    assert again["any"].tobytes() == dataset["any"].tobytes()
    assert again.weights.tobytes() == dataset.weights.tobytes()
    assert again.names == ("any",)


@all_kinds
def test_a_dataset_that_was_drawn_comes_back_and_fits_the_same(suffix, tmp_path):
    model = mf.Gaussian(M, mf.Parameter("mu", 5.9, 5, 7), mf.Parameter("sigma", 0.3, 0.1, 1))
    data = mf.generate(model, 500, seed=3)
    data.write(tmp_path / f"drawn{suffix}")
    again = mf.read(tmp_path / f"drawn{suffix}", [M])
    assert again.report.summary == "kept all 500 events"
    assert mf.fit(model, again).values == mf.fit(model, data).values


@all_kinds
@pytest.mark.parametrize("name", ["file", "a.b", "allow_pickle", "B0_M"])
def test_a_column_may_have_any_name_of_an_observable(suffix, name, tmp_path):
    observable = mf.Observable(name, 0.0, 2.0)
    mf.Dataset({name: [1.0, 1.5]}).write(tmp_path / f"names{suffix}")
    assert mf.read(tmp_path / f"names{suffix}", observable, cut=f"{name} > 1.2")[name].tolist() == [1.5]


def test_the_tree_and_the_column_of_weights_can_be_named(tmp_path):
    path = tmp_path / "named.root"
    mf.Dataset({"m": [5.5]}, weights=[2.0]).write(path, tree="decays", weight="sw")
    with uproot.open(path) as file:
        assert file["decays"].keys() == ["m", "sw"]
    assert mf.read(path, M, weights="sw", tree="decays").weights.tolist() == [2.0]


def test_weights_do_not_replace_a_column(tmp_path):
    data = mf.Dataset({"m": [5.5], "weight": [1.0]}, weights=[2.0])
    with pytest.raises(
        mf.DataError, match="dataset: a column is called 'weight' already; name that of the weights"
    ):
        data.write(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


@all_kinds
def test_writing_replaces_a_file_at_once_or_not_at_all(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"kept{suffix}"
    mf.Dataset({"m": [5.5]}).write(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        mf.Dataset({"m": [6.5]}).write(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_writing_needs_a_folder_and_a_known_ending(tmp_path):
    data = mf.Dataset({"m": [5.5]})
    with pytest.raises(mf.DataError, match=r"there is no folder '.*nowhere'; make it first"):
        data.write(tmp_path / "nowhere" / "a.root")
    with pytest.raises(
        mf.DataError, match=r"file 'a.h5': its name must end in .root, .*, got '.h5'; convert it"
    ):
        data.write("a.h5")
    with pytest.raises(mf.DataError, match=r"only ROOT files have trees, got tree='t'; leave it out"):
        data.write(tmp_path / "a.csv", tree="t")


# ---------------------------------------------------------------------------------------------- what is kept


@all_kinds
def test_cut_ranges_and_weights_work_alike_for_every_kind_of_file(suffix, sample):
    data = mf.read(sample(suffix), [M, X], cut="pt > 2 & n != 6", weights="w")
    assert data["m"].tolist() == [5.5, 6.0] and data["x"].tolist() == [0.25, -0.375]
    assert data["x"].dtype == np.float64
    assert data.weights.tolist() == [0.5, 2.0]
    assert data.report == mf.CutReport(
        6, 2, {"m": 1, "x": 0}, 3, "pt > 2 & n != 6", {str(sample(suffix)): mf.CutReport(6, 2, {"m": 1, "x": 0}, 3, "pt > 2 & n != 6")}
    )  # fmt: skip
    assert data.report.summary == (
        "kept 2 of 6 events: 3 did not pass 'pt > 2 & n != 6', 1 outside the range of 'm'"
    )


def test_a_dataset_says_in_print_what_was_cut(sample):
    data = mf.read(sample(".npz"), M)
    assert str(data).splitlines()[-1] == "cut: kept 4 of 6 events: 2 outside the range of 'm'"
    assert "<caption>Dataset: 4 events<br>cut: kept 4 of 6 events" in data._repr_html_()
    assert "cut:" not in str(mf.Dataset(data))


@all_kinds
def test_only_the_columns_needed_are_read(suffix, sample, monkeypatch):
    asked = []

    @contextmanager
    def listening(path, tree=None):
        with formats.open_table(path, tree) as inside:
            yield replace(inside, chunks=lambda names: asked.append(tuple(names)) or inside.chunks(names))

    monkeypatch.setattr(reading, "open_table", listening)
    mf.read(sample(suffix), M, cut="n > 2", weights="w")
    assert asked == [("m", "w", "n")]


def test_a_column_of_text_beside_is_not_looked_at(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text("m, name\n5.5, a\n6.5, b\n")
    assert mf.read(path, M)["m"].tolist() == [5.5, 6.5]


@all_kinds
def test_files_are_read_in_pieces(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "ROWS", 7)
    monkeypatch.setattr(formats, "ROWS", 7)
    monkeypatch.setattr(formats, "BYTES", 200)
    numbers = np.random.default_rng(1).uniform(4.9, 7.0, 100)
    path = write(tmp_path / f"pieces{suffix}", {"m": numbers, "k": np.arange(100)})
    with formats.open_table(path) as opened:
        pieces = list(opened.chunks(["m"]))
    assert len(pieces) == (1 if suffix == ".npz" else 15) or (suffix == ".csv" and len(pieces) > 5)
    assert pieces[-1].done == 1.0 and all(a.done <= b.done for a, b in itertools.pairwise(pieces))
    data = mf.read(path, M, cut="k % 2 == 0")
    np.testing.assert_array_equal(data["m"], numbers[::2][numbers[::2] >= 5.0])


def test_writing_in_pieces_gives_the_same_events(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "ROWS", 7)
    data = mf.Dataset({"m": np.linspace(5, 7, 50)})
    data.write(tmp_path / "a.root")
    assert mf.read(tmp_path / "a.root", M)["m"].tobytes() == data["m"].tobytes()


def test_a_function_is_given_the_columns_its_arguments_name(sample):
    data = mf.read(sample(".root"), M, cut=lambda pt, n: (pt > 2) & (n < 6))
    assert data["m"].tolist() == [5.5, 6.0]
    assert data.report.condition == "<lambda>" and data.report.failed == 3


def test_events_that_are_not_numbers_can_be_cut_away(tmp_path):
    path = write(tmp_path / "nan.parquet", {"m": [5.5, np.nan, 6.5], "w": [1.0, 1.0, np.inf]})
    assert mf.read(path, M, cut="isfinite(m) & isfinite(w)", weights="w")["m"].tolist() == [5.5]


def test_the_weight_of_an_event_that_is_left_out_does_not_matter(tmp_path):
    path = write(tmp_path / "nan.parquet", {"m": [5.5, 9.0], "w": [1.0, np.nan]})
    assert mf.read(path, M, weights="w").weights.tolist() == [1.0]


def test_a_cut_may_leave_nothing(sample):
    data = mf.read(sample(".csv"), M, cut="pt > 100")
    assert len(data) == 0 and data.report.failed == 6


# ---------------------------------------------------------------------------------------------- many files


def test_a_pattern_takes_its_files_in_the_order_of_their_names(sample, tmp_path):
    for name in ("run2", "run1", "run10"):
        sample(".root", name)
    data = mf.read(tmp_path / "run*.root", M, cut="pt > 2")
    assert [name.rpartition("/")[2] for name in data.report.files] == ["run1.root", "run10.root", "run2.root"]
    assert len(data) == 9 and data.report.total == 18
    assert str(data.report).splitlines()[0] == data.report.summary
    assert str(data.report).splitlines()[1].endswith("run1.root: kept 3 of 6 events: 2 did not pass 'pt > 2', 1 outside the range of 'm'")  # fmt: skip


def test_files_may_be_listed_and_of_different_kinds(sample):
    data = mf.read([sample(".root"), str(sample(".parquet")), sample(".csv")], M)
    assert len(data) == 12 and len(data.report.files) == 3


def test_a_pattern_goes_into_folders(sample, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    sample(".npz").rename(tmp_path / "a" / "b" / "deep.npz")
    assert len(mf.read(str(tmp_path / "**" / "*.npz"), M)) == 4


def test_a_name_with_brackets_is_a_name_where_there_is_such_a_file(sample):
    assert len(mf.read(sample(".npz", "data[1]"), M)) == 4


def test_a_file_without_events_among_others_is_fine(sample, tmp_path):
    with uproot.recreate(tmp_path / "data0.root") as file:
        file.mktree("events", {"other": "float64"})
    sample(".root", "data1")
    data = mf.read(tmp_path / "data*.root", M)
    assert [r.total for r in data.report.files.values()] == [0, 6]


def test_progress_is_told_in_bytes_of_all_files(sample, tmp_path, monkeypatch):
    told = []

    class Listener:
        def __init__(self, what, total, shown):
            told.append((what, total, shown))

        def __enter__(self):
            return self

        def __exit__(self, *what):
            pass

        def done(self, count):
            told.append(count)

    monkeypatch.setattr(reading, "Bar", Listener)
    files = [sample(".root", "one"), sample(".csv", "two")]
    mf.read(files, M, progress=False)
    total = sum(file.stat().st_size for file in files)
    assert told[0] == ("reading", total, False)
    assert told[-1] == total and told[1:] == sorted(told[1:])


# ---------------------------------------------------------------------------------------------- complaints


@all_kinds
def test_a_missing_column_gets_a_suggestion_and_the_file(suffix, sample):
    with pytest.raises(mf.DataError, match=rf"file '.*data\{suffix}': (tree 'events'|table): no column 'M', did you mean 'm'[?]; no column 'PT', did you mean 'pt'[?]$"):  # fmt: skip
        mf.read(sample(suffix), mf.Observable("M", 0, 1), cut="PT > 2")


def test_every_file_without_a_column_is_named_before_any_is_read(sample, tmp_path):
    for i in range(7):
        write(tmp_path / f"bad{i}.npz", {"mass": [1.0]})
    with pytest.raises(
        mf.DataError, match=r"bad0.npz': table: no column 'm'.*bad4.npz'.*; and 2 more files$"
    ):
        mf.read([sample(".npz"), tmp_path / "bad*.npz"], M)


def test_a_missing_weight_gets_a_suggestion(sample):
    with pytest.raises(mf.DataError, match=r"no column 'W', did you mean 'w'[?]"):
        mf.read(sample(".root"), M, weights="W")
    with pytest.raises(mf.DataError, match="weights: column 'm' is an observable; name another column"):
        mf.read(sample(".root"), M, weights="m")


@pytest.mark.parametrize("suffix", [".root", ".parquet"])
@pytest.mark.parametrize("cut", [None, "j > 1"])
def test_a_jagged_column_is_refused(suffix, cut, tmp_path):
    path = tmp_path / f"jagged{suffix}"
    lists = ak.Array([[], [5.5], [6.0, 6.5]])
    if suffix == ".root":
        with uproot.recreate(path) as file:
            file.mktree("events", {"j": "var * float64", "m": "float64"}).extend(
                {"j": lists, "m": [5.5, 6, 6]}
            )
    else:
        pyarrow.parquet.write_table(pyarrow.table({"j": lists.to_list(), "m": [5.5, 6, 6]}), path)
    observable = M if cut else mf.Observable("j", 5, 7)
    with pytest.raises(mf.DataError, match=r"jagged.*': column 'j': must have one number per event, got lists; choose one of them with awkward"):  # fmt: skip
        mf.read(path, observable, cut=cut)


@pytest.mark.parametrize("suffix", [".root", ".npz"])
def test_a_column_of_vectors_is_refused(suffix, tmp_path):
    path = tmp_path / f"vectors{suffix}"
    if suffix == ".root":
        with uproot.recreate(path) as file:
            file.mktree("events", {"m": "3 * float64"}).extend({"m": np.ones((2, 3))})
    else:
        np.savez(path, m=np.ones((2, 3)))
    with pytest.raises(mf.DataError, match=r"column 'm': must have one number per event, got shape \(2, 3\)"):
        mf.read(path, M)


def test_columns_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", m=np.full(3, 5.5), x=np.zeros(2))
    with pytest.raises(mf.DataError, match=r"a.npz': columns must have one length, got 3 of 'm', 2 of 'x'"):
        mf.read(tmp_path / "a.npz", [M, X])


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_column_of_text_is_refused(suffix, tmp_path):
    path = write(tmp_path / f"text{suffix}", {"m": ["a", "b"]})
    with pytest.raises(mf.DataError, match=r"text.*': (column 'm': must be real numbers, got dtype .*; convert it|cannot be read as CSV, .*conversion error to double: invalid value 'a')"):  # fmt: skip
        mf.read(path, M)


@all_kinds
def test_numbers_that_are_none_are_refused_with_the_way_out(suffix, tmp_path):
    path = write(tmp_path / f"nan{suffix}", {"m": [5.5, np.nan, np.inf], "w": [np.nan, 1.0, 1.0]})
    with pytest.raises(mf.DataError, match=r"""nan.*': column 'm': 2 of 3 events are not finite, the first in row 1; column 'w': 1 of 3 events are not finite, the first in row 0; leave them out with cut="isfinite\(m\) & isfinite\(w\)"$"""):  # fmt: skip
        mf.read(path, M, weights="w")


def test_missing_numbers_are_no_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("m,x\n5.5,0.1\n,0.2\n")
    pyarrow.parquet.write_table(pyarrow.table({"m": [6, None]}), tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(mf.DataError, match="column 'm': 1 of 2 events are not finite"):
            mf.read(tmp_path / name, M)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_without_any_event_are_refused(suffix, tmp_path):
    path = write(tmp_path / f"empty{suffix}", {"m": np.empty(0)})
    with pytest.raises(mf.DataError, match=r"empty.*': has no events; check whether it was filled"):
        mf.read(path, M)


def test_a_file_with_several_trees_needs_a_choice(tmp_path):
    path = tmp_path / "trees.root"
    with uproot.recreate(path) as file:
        file["decays"] = {"m": np.array([5.5])}
        file["info/lumi"] = {"l": np.array([1.0])}
        file["counts"] = np.histogram([1.0, 2.0])
    with pytest.raises(mf.DataError, match=r"has 2 trees, 'decays', 'info/lumi'; choose one with tree="):
        mf.read(path, M)
    with pytest.raises(mf.DataError, match=r"has no tree 'decay'; its trees are 'decays', 'info/lumi'"):
        mf.read(path, M, tree="decay")
    assert len(mf.read(path, M, tree="decays")) == 1


def test_a_file_without_a_tree_is_refused(tmp_path):
    with uproot.recreate(tmp_path / "h.root") as file:
        file["counts"] = np.histogram([1.0, 2.0])
    with pytest.raises(
        mf.DataError, match=r"must have a tree, got none; histograms go into Dataset.from_hist"
    ):
        mf.read(tmp_path / "h.root", M)


def test_an_rntuple_is_a_tree(tmp_path):
    with uproot.recreate(tmp_path / "r.root") as file:
        file.mkrntuple("events", {"m": np.array([5.5, 8.0])})
    assert mf.read(tmp_path / "r.root", M)["m"].tolist() == [5.5]


def test_a_tree_is_only_for_root_files(sample):
    with pytest.raises(
        mf.DataError, match=r"data.csv': only ROOT files have trees, got tree='events'; leave it out"
    ):
        mf.read(sample(".csv"), M, tree="events")
    assert len(mf.read([sample(".csv"), sample(".root")], M, tree="events")) == 8


@all_kinds
@pytest.mark.parametrize("how", ["short", "empty", "other"])
def test_a_broken_file_is_named(suffix, how, sample):
    path = sample(suffix)
    whole = path.read_bytes()
    short = whole.rpartition(b",")[0] if suffix == ".csv" else whole[:300]
    path.write_bytes({"short": short, "empty": b"", "other": b"\xff\xfe\x00 no table \x93" * 40}[how])
    kind = "ROOT|parquet|CSV|npz"
    with pytest.raises(mf.DataError, match=rf"file '.*data\{suffix}': cannot be read as ({kind}), got \w+.*; it may be cut short or of another kind"):  # fmt: skip
        mf.read(path, M)


def test_paths_that_stand_for_no_file_are_explained(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample(".root")
    for path, says in {
        "dta.root": r"file 'dta.root': does not exist; did you mean 'data.root'[?]",
        "nothing.csv": r"file 'nothing.csv': does not exist; looked in '.*'",
        "far/away.csv": r"file 'far/away.csv': does not exist; looked in '.*far'",
        "*.csv": r"file '\*.csv': no file matches this pattern in '.*'",
        ".": r"file '.': is a folder; choose files in it, such as '\*.root'",
    }.items():
        with pytest.raises(mf.DataError, match=says):
            mf.read(path, M)
    with pytest.raises(mf.DataError, match=r"file 'data.root': given twice; its events would count twice"):
        mf.read(["data.root", "*.root"], M)
    with pytest.raises(mf.DataError, match="files: needs at least one path, got none"):
        mf.read([], M)
    (tmp_path / "data.h5").touch()
    with pytest.raises(mf.DataError, match=r"file 'data.h5': its name must end in .root, .parquet, .pq, .csv, .npz, got '.h5'; convert it"):  # fmt: skip
        mf.read("data.h5", M)


@pytest.mark.parametrize(("suffix", "package"), PACKAGES.items())
def test_a_missing_package_says_how_to_install_it(suffix, package, sample, tmp_path, monkeypatch):
    path = sample(suffix)
    imported = builtins.__import__

    def without(name, *rest, **options):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return imported(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    for use in (lambda: mf.read(path, M), lambda: mf.Dataset({"m": [5.5]}).write(tmp_path / f"new{suffix}")):
        with pytest.raises(
            mf.DataError, match=rf'files: {package} is not installed; pip install "morefit\[io\]"'
        ):
            use()


def test_npz_needs_no_other_package(tmp_path):
    code = (
        "import sys\nsys.modules.update(dict.fromkeys(('uproot', 'pyarrow', 'pandas', 'hist')))\n"
        "import morefit as mf\nmf.Dataset({'m': [1.0]}).write('a.npz')\n"
        "print(len(mf.read('a.npz', mf.Observable('m', 0, 2))))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert found.stdout.strip() == "1", found.stderr


def test_the_columns_of_a_csv_file_may_have_spaces_around_and_hold_truths(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffm , x,good\n5.5, 0.1,true\n6 ,0.2,false\n6.5,nan,true\n")
    assert mf.read(tmp_path / "a.csv", [M, X], cut="good & isfinite(x)")["x"].tolist() == [0.1]


def test_whole_numbers_in_a_csv_file_may_be_followed_by_others(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BYTES", 16)
    (tmp_path / "a.csv").write_text("m\n" + "6\n" * 50 + "6.25\n")
    assert mf.read(tmp_path / "a.csv", M)["m"][-1] == 6.25


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "data.csv")
    with pytest.raises(
        mf.DataError, match=r"data.csv': is not a plain file but a pipe or a device; write its content"
    ):
        mf.read(tmp_path / "data.csv", [mf.Observable("x", 0.0, 1.0)])
