"""Files that were cut short or changed: never another error than one that names the file, never other numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest

import morefit as mf
from ensembles import task_of
from morefit.errors import DataError
from morefit.intervals import FeldmanCousins, NeymanBelt, feldman_cousins, neyman_belt
from morefit.jobs.checkpoint import read_saved
from morefit.records.results import concatenate, save_result
from morefit.toys.results import LAYOUT
from morefit.toys.study import toy_study
from morefit.toys.task import compute_block, facts_of

X = mf.Observable("x", -5.0, 5.0)
FLIPS = 400


def gaussian():
    return mf.Gaussian(X, mf.Parameter("mu", 0.0, -3.0, 3.0), 1.0)


def note(dataset, values):
    return {"mean": float(np.mean(dataset["x"]))}


def write_study(path):
    """Write a study with a gap, so that its file has two runs."""
    task = task_of(gaussian(), {"mu": 0.0}, 1, mf.Cpu(threads=1), note)
    parts = [compute_block(task, first, np.array([30, 30])) for first in (0, 4)]
    more = {"facts": facts_of(task), "runs": [[0, 2], [4, 6]]}
    save_result("toy study", path, LAYOUT, concatenate(LAYOUT, parts), more)


def read_study(path):
    """Read a study that is there."""
    return read_saved("toy study", path, LAYOUT, mf.ToyResults)


def data():
    return mf.generate(gaussian(), 50, seed=1)


# a name: what writes the file, what reads it back, and the numbers in it
FILES = {
    "study.npz": (
        write_study,
        read_study,
        lambda s: [(p.first, p.result.values, p.result.statistics["mean"]) for p in s.parts],
    ),
    "toys.npz": (
        lambda path: toy_study(gaussian(), toys=3, events=30, seed=1, statistic=note).save(path),
        mf.ToyResults.load,
        lambda toys: (toys.values, toys.errors, toys.nll, toys.events, toys.statistics["mean"]),
    ),
    "scan.npz": (
        lambda path: feldman_cousins(
            mf.Likelihood(gaussian(), data()), "mu", [0.0, 0.1], toys=3, seed=1
        ).save(path),
        FeldmanCousins.load,
        lambda scan: (scan.values, scan.t, scan.t_data),
    ),
    "belt.npz": (
        lambda path: neyman_belt(gaussian(), "mu", [0.0, 0.1], events=5, toys=3, seed=1).save(path),
        NeymanBelt.load,
        lambda belt: (belt.values, belt.estimates),
    ),
    "fit.json": (lambda path: mf.fit(gaussian(), data()).to_json(path), mf.FitResult.from_json, None),
    "data.npz": (
        lambda path: data().write(path),
        lambda path: mf.read(path, [X], progress=False),
        lambda found: found["x"],
    ),
    "data.parquet": (
        lambda path: data().write(path),
        lambda path: mf.read(path, [X], progress=False),
        lambda found: found["x"],
    ),
}


@pytest.fixture(params=FILES)
def whole(request, tmp_path):
    """A file, what reads it, the numbers in it and how to get at them."""
    write, read, numbers = FILES[request.param]
    path = tmp_path / request.param
    write(path)
    return path, read, numbers


def attempt(read, path):
    """Return what is in a file, or None if it is refused as it must be."""
    try:
        return read(path)
    except DataError as error:
        message = str(error)
    assert str(path) in message
    return None


def test_a_file_cut_short_at_any_length_is_refused(whole):
    """These used to raise errors of zipfile, numpy and json."""
    path, read, _ = whole
    content = path.read_bytes()
    for length in [*range(0, len(content), max(len(content) // 400, 1)), len(content) - 1]:
        path.write_bytes(content[:length])
        assert attempt(read, path) is None, length


def test_changed_bytes_are_noticed_or_without_effect(whole):
    """Parquet files used to be read as other numbers."""
    path, read, numbers = whole
    content, rng = path.read_bytes(), np.random.default_rng(1)
    expected = None if numbers is None else numbers(read(path))
    for place in rng.integers(0, len(content), FLIPS).tolist():
        flipped = content[place] ^ (1 << int(rng.integers(8)))
        path.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
        found = attempt(read, path)
        if found is not None and numbers is not None:
            assert same(numbers(found), expected), place


def same(one, other):
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{" * 100_000, b"null", b"[1]", os.urandom(1000)])
def test_other_content_is_refused(whole, content):
    path, read, _ = whole
    path.write_bytes(content)
    assert attempt(read, path) is None


def test_files_that_are_not_there_are_refused(whole):
    path, read, _ = whole
    path.unlink()
    assert attempt(read, path) is None
    path.mkdir()
    assert attempt(read, path) is None


@pytest.mark.parametrize("name", ["study.npz", "toys.npz", "scan.npz", "fit.json"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"cannot be read, it is not a plain file; name another file"):
        FILES[name][1](tmp_path / name)


def test_parquet_files_have_checksums(tmp_path):
    """Without them, a changed number is just another number."""
    import pyarrow.parquet as pq

    column = np.random.default_rng(1).normal(size=20_000)
    mf.Dataset({"x": column}).write(tmp_path / "data.parquet")
    content = bytearray((tmp_path / "data.parquet").read_bytes())
    place = bytes(content).index(column[100:101].tobytes())
    content[place + 3] ^= 1
    (tmp_path / "data.parquet").write_bytes(content)
    assert not np.array_equal(pq.read_table(tmp_path / "data.parquet")["x"].to_numpy(), column)
    with pytest.raises(DataError, match=r"data.parquet': cannot be read as parquet, got OSError: .*CRC"):
        mf.read(tmp_path / "data.parquet", [mf.Observable("x", -10.0, 10.0)], progress=False)


@pytest.mark.parametrize("load", [mf.FitResult.from_json, mf.ToyResults.load, mf.intervals.NeymanBelt.load])
@pytest.mark.parametrize("source", [None, 3, b"study.npz", ["study.npz"]])
def test_what_is_no_path_is_refused(load, source):
    with pytest.raises(DataError, match=rf": takes the path of a file, got {type(source).__name__}"):
        load(source)
