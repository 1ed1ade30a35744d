"""Workers with another morefit, or other packages that numbers depend on, are refused."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from morefit import workers
from morefit.errors import BackendError, BrokenJob
from morefit.toys.study import toy_study

SOURCE = Path(mf.__file__).parent
WORKER = """
import pickle, sys
try:
    work, args = pickle.load(sys.stdin.buffer)
    answer = True, work(*args)
except Exception as error:
    answer = False, error
sys.stdout.buffer.write(pickle.dumps(answer))
"""


class Elsewhere(Executor):
    """A worker on another machine: a process of its own, with the morefit of another folder."""

    def __init__(self, folder):
        self.folder = folder

    def submit(self, work, /, *args, **options):
        done = subprocess.run(
            [sys.executable, "-c", WORKER], input=pickle.dumps((work, args)), capture_output=True, check=True,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
        )  # fmt: skip
        good, answer = pickle.loads(done.stdout)
        future = Future()
        future.set_result(answer) if good else future.set_exception(answer)
        return future


@pytest.fixture
def elsewhere(tmp_path):
    """A copy of morefit in another folder."""
    shutil.copytree(SOURCE, tmp_path / "morefit")  # with its bytecode, so that a process starts in no time
    return Elsewhere(tmp_path)


def change(executor, file, old, new):
    path = executor.folder / "morefit" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def gaussian():
    return mf.Gaussian(mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.0, -3.0, 3.0), 1.0)


OPTIONS = {"toys": 4, "events": 30, "seed": 1}


def test_a_worker_with_the_same_source_takes_part(elsewhere):
    found = toy_study(gaussian(), executor=elsewhere, **OPTIONS)
    np.testing.assert_array_equal(found.values, toy_study(gaussian(), **OPTIONS).values)


def test_a_worker_with_other_source_is_refused(elsewhere):
    """It used to join silently: 1 500 of 4 000 toys differed."""
    change(elsewhere, "sampling/generate.py", "REPAIRS = ", "REPAIRS = 1 + ")
    rule = r"worker on '.*': must have the versions of the main process, got source of morefit \w+ instead of \w+;"
    with pytest.raises(BackendError, match=rf"{rule} install the same on all, and start the workers anew"):
        toy_study(gaussian(), executor=elsewhere, **OPTIONS)


def test_a_worker_that_cannot_compare_versions_is_refused(elsewhere):
    change(elsewhere, "workers.py", "def on_worker(", "def another(")
    with pytest.raises(
        BackendError, match=r"a worker must have the morefit of the main process; install the same"
    ):
        toy_study(gaussian(), executor=elsewhere, **OPTIONS)


def study(executor):
    toy_study(gaussian(), executor=executor, **OPTIONS)


def belt(executor):
    mf.intervals.neyman_belt(gaussian(), "mu", [0.0], events=5, toys=3, seed=1, executor=executor)


@pytest.mark.parametrize(
    ("package", "job"), [("morefit", study), ("numpy", study), ("llvmlite", belt), ("iminuit", study)]
)
def test_versions_of_other_packages_are_compared(monkeypatch, package, job):
    asked = workers.origin() | {package: "0.0.1"}
    monkeypatch.setattr("morefit.jobs.run.origin", lambda: asked)
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(BackendError, match=rf"got {package} \S+ instead of 0.0.1;"),
    ):
        job(pool)


def test_finished_toys_are_kept_when_another_worker_joins(tmp_path, monkeypatch):
    answers = iter([workers.origin()] * 2 + [workers.origin() | {"numpy": "0.0.1"}] * 10)
    monkeypatch.setattr("morefit.jobs.run.origin", lambda: next(answers))
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(BrokenJob, match=r"numpy .* of 4 toys are finished") as caught,
    ):
        toy_study(gaussian(), executor=pool, block=1, save=tmp_path / "study.npz", **OPTIONS)
    assert 1 <= len(caught.value.finished) <= 2
