"""The runner of long jobs, with a job that counts: blocks, gaps, files, interrupts, broken executors."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from morefit.errors import BackendError, BrokenJob, DataError
from morefit.jobs import checkpoint
from morefit.jobs.checkpoint import Saved, locks_file, read_saved
from morefit.jobs.run import Job, run_job
from morefit.records.results import Layout, Part, load_result

LAYOUT = Layout("numbers", ("seconds", "backend"), ("values",))


@dataclass(frozen=True, eq=False)
class Numbers:
    values: np.ndarray
    seconds: Mapping[str, float] = field(default_factory=dict)
    backend: str = "here"

    def __len__(self) -> int:
        return len(self.values)


def count(first, stop):
    return Numbers(np.arange(first, stop), {"count": 1.0})


def pairs(missing):
    return ((k, min(k + 2, stop)) for first, stop in missing for k in range(first, stop, 2))


def job(size=7, work=count, **changes):
    return Job(
        **{
            "name": "count", "noun": "count", "items": "numbers", "size": size, "layout": LAYOUT, "facts": {"a": 1},
            "cut": pairs, "work": lambda first, stop, report: partial(work, first, stop),
        } | changes
    )  # fmt: skip


def run(job, save=None, executor=None):
    saved = read_saved("count", save, LAYOUT, Numbers)
    return run_job(job, save=save, saved=saved, executor=executor, progress=False)


def failing(error, first, stop):
    """Fail at the second block."""
    if first == 2:
        raise error
    return count(first, stop)


def load(path):
    return load_result("count", path, LAYOUT, Numbers).values.tolist()


def test_blocks_are_joined_in_order():
    whole = run(job())
    assert whole.values.tolist() == list(range(7))
    assert whole.seconds == {"count": 4.0}


def test_workers_may_finish_in_any_order():
    def slow(first, stop):
        time.sleep(0.02 if first == 0 else 0.0)
        return count(first, stop)

    with ThreadPoolExecutor(3) as pool:
        assert run(job(work=slow), executor=pool).values.tolist() == list(range(7))


def test_an_interrupt_returns_what_is_finished_and_saves_it(tmp_path, capsys):
    stopped = run(job(work=partial(failing, KeyboardInterrupt())), tmp_path / "count.npz")
    assert stopped.values.tolist() == [0, 1]
    assert "count: interrupted; 2 of 7 numbers are finished and saved in" in capsys.readouterr().err
    assert load(tmp_path / "count.npz") == [0, 1]
    assert run(job(), tmp_path / "count.npz").values.tolist() == list(range(7))


def test_an_interrupt_before_anything_is_finished_is_an_interrupt():
    def stop(first, stop):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(job(work=stop))


@pytest.mark.parametrize("error", [ValueError("no luck"), BackendError("count: no luck")], ids=repr)
def test_an_error_carries_what_is_finished(error):
    rule = r"^count: (ValueError: )?no luck; 2 of 7 numbers are finished; use save= to be able to resume$"
    with pytest.raises(BrokenJob, match=rule) as caught:
        run(job(work=partial(failing, error)))
    assert caught.value.finished.values.tolist() == [0, 1]
    assert caught.value.__cause__ is error


def test_an_error_before_anything_is_finished_is_that_error():
    with pytest.raises(ValueError, match=r"^no luck$"):
        run(job(cut=lambda missing: iter([(2, 4)]), work=partial(failing, ValueError("no luck"))))


def test_finished_blocks_of_workers_are_not_lost_with_others():
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(BrokenJob, match=r"no luck; [246] of 7 numbers") as caught,
    ):
        run(job(work=partial(failing, ValueError("no luck"))), executor=pool)
    assert caught.value.finished.values.tolist()[:2] == [0, 1]


class Closing(Executor):
    """Takes one block, then no more."""

    def __init__(self):
        self.blocks = 0

    def submit(self, work):
        self.blocks += 1
        if self.blocks > 1:
            raise BrokenExecutor("closed")
        future = Future()
        future.set_result(work())
        return future


def test_an_executor_that_takes_no_more_blocks_breaks_the_job(tmp_path):
    rule = r"count: the workers are gone \(closed\); 2 of 7 numbers are finished and saved in '.*'; call again to resume"
    with pytest.raises(BrokenJob, match=rule) as caught:
        run(job(), tmp_path / "count.npz", Closing())
    assert caught.value.finished.values.tolist() == [0, 1]


def test_a_broken_executor_without_anything_finished():
    executor = Closing()
    executor.blocks = 1
    with pytest.raises(
        BrokenJob, match=r"the workers are gone \(closed\); 0 of 7 numbers are finished$"
    ) as caught:
        run(job(), executor=executor)
    assert caught.value.finished is None


def test_gaps_are_filled():
    saved = Saved({"a": 1}, [Part(1, 2, count(1, 2)), Part(4, 6, count(4, 6))])
    done = []

    def noted(first, stop):
        done.append((first, stop))
        return count(first, stop)

    whole = run_job(job(work=noted), save=None, saved=saved, executor=None, progress=False)
    assert done == [(0, 1), (2, 4), (6, 7)]
    assert whole.values.tolist() == list(range(7))


def test_times_of_a_resumed_job_are_counted_once(tmp_path):
    run(job(size=4), tmp_path / "count.npz")
    assert run(job(size=6), tmp_path / "count.npz").seconds == {"count": 3.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"facts": {"a": 2}}, "a is 1 in the file, 2 requested"),
        ({"size": 5}, "numbers are up to 7 in the file, 5 requested"),
        ({"check_saved": lambda part: [f"{part.stop} is wrong"]}, "7 is wrong"),
    ],
)
def test_the_file_of_another_job_is_refused(tmp_path, changes, message):
    run(job(), tmp_path / "count.npz")
    rule = (
        f"count '.*': the file belongs to a different count: {message}; name another file, or remove this one"
    )
    with pytest.raises(DataError, match=rule):
        run(job(**changes), tmp_path / "count.npz")


def test_what_is_said_to_be_saved_is_saved(tmp_path, monkeypatch):
    """An error used to name a file that did not exist, or that held less."""
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0.0)
    path, real = tmp_path / "count.npz", Path.replace

    def full(part, target):
        if path.exists():
            raise OSError(28, "No space left on device")
        return real(part, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        BrokenJob, match=r"make room; 7 of 7 numbers are finished; 2 of them are saved in '.*count.npz'"
    ):
        run(job(), path)
    assert load(path) == [0, 1]


def test_a_file_is_locked_before_the_work_begins(tmp_path):
    @locks_file("count")
    def outer(*, save):
        with pytest.raises(DataError, match="another study is writing this file"):
            inner(save=save)

    @locks_file("count")
    def inner(*, save):
        raise AssertionError("not reached")

    outer(save=tmp_path / "count.npz")
    with pytest.raises(DataError, match=r"count '.*': there is no folder"):
        inner(save=tmp_path / "nowhere" / "count.npz")


def test_anything_else_is_no_executor():
    with pytest.raises(
        BackendError, match=r"count: executor must be a concurrent\.futures\.Executor .*, got int"
    ):
        run(job(), executor=4)


def gaussian():
    return mf.Gaussian(mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.0, -3.0, 3.0), 1.0)


# every long job with a model
LONG_JOBS = {
    "study": lambda **o: mf.toy_study(gaussian(), toys=9, events=30, seed=1, **o),
    "scan": lambda **o: mf.intervals.feldman_cousins(
        mf.Likelihood(gaussian(), mf.generate(gaussian(), 50, seed=1)),
        "mu",
        [-0.1, 0.0, 0.1],
        toys=5,
        seed=1,
        **o,
    ),
    "belt": lambda **o: mf.intervals.neyman_belt(gaussian(), "mu", [0.0, 0.1], events=5, toys=9, seed=1, **o),
    "bootstrap": lambda **o: mf.intervals.bootstrap(
        mf.Likelihood(gaussian(), mf.generate(gaussian(), 50, seed=1)), replicas=9, seed=1, **o
    ),
}
NUMBERS = ("values", "errors", "t", "t_data", "estimates", "nll")


# sockets and tasks that Dask leaves to the garbage collector are not ours to judge
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_dask_gives_the_same_bits_for_every_job():
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = {name: run(executor=client) for name, run in LONG_JOBS.items()}
    for name, run in LONG_JOBS.items():
        here = run()
        for number in (n for n in NUMBERS if hasattr(here, n)):
            np.testing.assert_array_equal(getattr(found[name], number), getattr(here, number), name)


def no_blocks(job, blocks, report):
    assert list(blocks) == []
    yield from ()


@pytest.mark.parametrize("name", LONG_JOBS)
def test_every_job_is_loaded_from_its_file_when_it_is_complete(tmp_path, monkeypatch, name):
    whole = LONG_JOBS[name](save=tmp_path / "job.npz")
    monkeypatch.setattr("morefit.jobs.run.here", no_blocks)
    again = LONG_JOBS[name](save=tmp_path / "job.npz")
    np.testing.assert_array_equal(again.values, whole.values)
    assert again.seconds == whole.seconds
    assert str(type(whole).load(tmp_path / "job.npz")) == str(whole)
