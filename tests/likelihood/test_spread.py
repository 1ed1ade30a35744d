"""Likelihoods of files whose pieces are in the memory of workers of Dask: the same bits, whoever has them."""

import os
import pickle
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import morefit as mf
from morefit.data import files
from tolerances import EXACT_FIT_ERRORS

pytest.importorskip("pyarrow", reason="needs the extra 'io'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")

M = mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
SIGNAL, BACKGROUND = mf.Parameter("signal", 300, 0, 1e5), mf.Parameter("background", 700, 0, 1e5)
MODEL = mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, -1.0)], yields=[SIGNAL, BACKGROUND])
START = [p.start for p in MODEL.parameters if not p.fixed]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 300)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    name = tmp_path_factory.mktemp("events") / "events.parquet"
    data = mf.generate(MODEL, 4000, seed=3)
    mf.Dataset(data, weights=np.random.default_rng(1).uniform(0.5, 1.5, len(data))).write(name)
    return name


@contextmanager
def client_of(workers):
    """Return a client with some workers in this process."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("options", [{}, {"weights": "weight", "cut": "m < 6.9"}], ids=["plain", "selected"])
def test_the_number_of_workers_changes_no_bit(path, options):
    here = mf.Likelihood(MODEL, mf.FileDataset(path, M, **options))
    expected = here.hessian(START), here.gradient(START), here.value(START)
    for workers in (1, 3):
        with client_of(workers) as client:
            data = mf.FileDataset(path, M, **options, executor=client)
            assert str(data.report) == str(here.data.report)
            there = mf.Likelihood(MODEL, data)
            found = there.hessian(START), there.gradient(START), there.value(START)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        assert there.passes == 1


def test_a_fit_in_ranges_on_workers_has_the_bits_of_one_here(path):
    options = {"ranges": {"m": [(5.0, 6.0), (6.5, 7.0)]}}
    expected = mf.fit(MODEL, mf.FileDataset(path, M, weights="weight"), **options)
    with client_of(2) as client:
        found = mf.fit(MODEL, mf.FileDataset(path, M, weights="weight", executor=client), **options)
    assert found.valid
    assert dict(found.values) == dict(expected.values)
    assert dict(found.errors) == dict(expected.errors)
    in_memory = mf.fit(MODEL, mf.read(path, M, weights="weight"), **options)
    assert found.errors["mu"] == pytest.approx(in_memory.errors["mu"], rel=EXACT_FIT_ERRORS)


def test_a_group_that_dask_moves_is_read_again(path):
    pieces = mf.FileDataset(path, M)._pieces
    group = files.Group(pieces, 1, 4)
    group.computed["bound"] = lambda: 0  # does not pickle
    other = pickle.loads(pickle.dumps(group))
    assert [len(one) for one in other.datasets] == [300, 300, 300]
    assert sys.getsizeof(group) >= 16 * 900
    assert len(pickle.dumps(group)) < 5000


def test_errors_of_workers_arrive_here(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"m": [6.0, np.nan]}), tmp_path / "other.parquet")
    rule = "column 'm': 1 of 2 events are not finite, the first in row 1"
    with client_of(1) as client, pytest.raises(mf.DataError, match=rule):
        mf.FileDataset(tmp_path / "other.parquet", M, executor=client)


def test_only_clients_of_dask_hold_pieces(path):
    rule = "files: executor must be a dask.distributed.Client, whose workers hold the events, got ThreadPoolExecutor"
    with ThreadPoolExecutor(1) as pool, pytest.raises(mf.BackendError, match=rule):
        mf.FileDataset(path, M, executor=pool)


class Failing:
    """A result that never comes."""

    def __init__(self, error):
        self.error = error

    def result(self):
        raise self.error


class KilledWorker(Exception):
    """As Dask calls it when a task has killed several workers."""


def test_lost_workers_are_explained():
    with pytest.raises(
        mf.BackendError, match=r"files: workers were lost .*; give them more memory or start more"
    ):
        files.result_of(Failing(KilledWorker("four times")))
    with pytest.raises(mf.DataError, match="file: gone"):
        files.result_of(Failing(mf.DataError("file: gone")))


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(path):
    expected = mf.Likelihood(MODEL, mf.FileDataset(path, M)).hessian(START)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        nll = mf.Likelihood(MODEL, mf.FileDataset(path, M, executor=client))
        assert np.array_equal(nll.hessian(START), expected)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        nll.evaluated.clear()
        assert np.array_equal(nll.hessian(START), expected)
