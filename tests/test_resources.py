"""Cores and memory that this process may use, and absurd sizes that are refused at once."""

from __future__ import annotations

import os

import numpy as np
import pytest

import morefit as mf
from morefit import resources as limits
from morefit.arrays import address, read_only
from morefit.errors import BackendError, DataError
from morefit.records.named_arrays import ArrayByName
from morefit.resources import available_cores, check_memory, core_quota, in_words

CORES = 8
HUGE = 10**15
X = mf.Observable("x", -5.0, 5.0)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with eight cores, whose control groups are files of the test."""
    for name in ("MOREFIT_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda process: set(range(CORES)), raising=False)
    monkeypatch.setattr(limits, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(limits, "OWN_GROUPS", tmp_path / "own")
    core_quota.cache_clear()
    limits.available_memory.cache_clear()
    yield tmp_path
    core_quota.cache_clear()
    limits.available_memory.cache_clear()


def groups(machine, own, **files):
    """Write the groups of this process, and what is in them; "__" stands for a slash and "_" for a dot."""
    (machine / "own").write_text(own)
    for name, text in files.items():
        path = machine / "groups" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_all_cores_are_used_if_nobody_says_otherwise(machine):
    assert available_cores() == CORES


def test_the_affinity_is_respected(machine, monkeypatch):
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda process: {3, 5})
    assert available_cores() == 2


def test_systems_without_affinity_count_their_cores(machine, monkeypatch):
    monkeypatch.delattr(limits.os, "sched_getaffinity")
    monkeypatch.setattr(limits.os, "cpu_count", lambda: 5)
    assert available_cores() == 5


@pytest.mark.parametrize(
    ("text", "cores"),
    [("2", 2), (" 3 ", 3), ("4,2", 4), ("64", CORES), ("0", CORES), ("-1", CORES), ("many", CORES), ("", CORES), ("²", CORES)],
)  # fmt: skip
def test_openmp_says_how_many_threads_at_most(machine, monkeypatch, text, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert available_cores() == cores


def test_our_own_variable_has_the_last_word(machine, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MOREFIT_NUM_THREADS", "12")
    assert available_cores() == 12
    assert np.isfinite(likelihood().value([0.1, 1.0]))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "²"])
def test_a_number_of_threads_that_is_none_is_refused(machine, monkeypatch, text):
    monkeypatch.setenv("MOREFIT_NUM_THREADS", text)
    rule = f"environment variable 'MOREFIT_NUM_THREADS': must be a whole number from 1 on, got '{text}'"
    with pytest.raises(BackendError, match=rule):
        available_cores()


@pytest.mark.parametrize(
    ("quota", "cores"), [("200000 100000", 2), ("250000 100000", 3), ("1000 100000", 1), ("max 100000", CORES), ("", CORES)]
)  # fmt: skip
def test_quotas_of_control_groups_are_respected(machine, quota, cores):
    groups(machine, "0::/user/job\n", **{"user/job/cpu.max": quota})
    assert available_cores() == cores


def test_the_quota_of_a_group_above_counts_too(machine):
    groups(
        machine, "0::/user/job\n",
        **{"user/job/cpu.max": "max 100000", "user/cpu.max": "300000 100000", "cpu.max": "700000 100000"},
    )  # fmt: skip
    assert available_cores() == 3


def test_inside_a_container_the_own_group_is_the_root(machine):
    groups(machine, "0::/docker/0123\n", **{"cpu.max": "150000 100000"})
    assert available_cores() == 2


@pytest.mark.parametrize(("quota", "cores"), [("400000", 4), ("-1", CORES)])
def test_quotas_of_the_first_version_are_respected(machine, quota, cores):
    files = {"cpu,cpuacct/job/cpu.cfs_quota_us": quota, "cpu,cpuacct/job/cpu.cfs_period_us": "100000"}
    groups(machine, "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/job\n", **files)
    assert available_cores() == cores


def test_memory_of_a_control_group_is_a_limit(machine):
    groups(machine, "0::/job\n", **{"job/memory.max": "4000000000", "memory.max": "max"})
    assert limits.available_memory() <= 4e9
    with pytest.raises(
        DataError, match="toys need about 5 GB of memory, this machine has 4 GB; ask for fewer"
    ):
        check_memory("toys", 5e9)


@pytest.mark.parametrize(
    ("size", "words"), [(0.0, "0 bytes"), (999.0, "999 bytes"), (64e9, "64 GB"), (1.5e15, "1.5 PB"), (1e30, "1e+12 EB")]
)  # fmt: skip
def test_sizes_are_said_in_words(size, words):
    assert in_words(size) == words


# ------------------------------------------------------------------------------------ absurd sizes


def normal():
    return mf.Gaussian(X, mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.0, 0.5, 2.0))


def extended(expected):
    return mf.Sum([normal(), mf.Uniform(X)], yields=[mf.Parameter("n", expected, 0.0, 1e20), 1.0])


def drawn():
    return mf.generate(normal(), 100, seed=1)


def likelihood():
    return mf.Likelihood(normal(), drawn())


ABSURD = {
    "toys": lambda: mf.toy_study(normal(), toys=HUGE, events=10),
    "toys as a float": lambda: mf.toy_study(normal(), toys=1e18, events=10),
    "events of toys": lambda: mf.toy_study(normal(), toys=1, events=HUGE),
    "events of some toys": lambda: mf.toy_study(normal(), toys=2, events=[1, HUGE]),
    "expected events of toys": lambda: mf.toy_study(extended(9e10), toys=1),
    "generate": lambda: mf.generate(normal(), HUGE),
    "generate many": lambda: mf.generate(normal(), [HUGE, HUGE]),
    "generate extended": lambda: mf.generate(extended(9e10)),
    "bins": lambda: mf.plot(normal(), drawn(), "x", bins=HUGE),
    "oversampling": lambda: mf.plot(normal(), drawn(), "x", oversampling=HUGE),
    "histogram": lambda: drawn().to_hist(normal().observables, bins=HUGE),
    "profile": lambda: mf.intervals.profile(likelihood(), "mu", size=HUGE),
    "profile in bounds": lambda: mf.intervals.profile(likelihood(), "mu", bounds=(-0.5, 0.5), size=HUGE),
    "contour": lambda: mf.intervals.contour(likelihood(), "mu", "sigma", size=10**8),
    "bootstrap": lambda: mf.intervals.bootstrap(likelihood(), replicas=HUGE),
    "feldman_cousins": lambda: mf.intervals.feldman_cousins(
        mf.Likelihood(normal(), drawn()), "mu", [0.0], toys=HUGE
    ),
    "neyman_belt": lambda: mf.intervals.neyman_belt(normal(), "mu", [0.0], events=10, toys=HUGE),
}


@pytest.mark.parametrize("what", ABSURD)
def test_absurd_sizes_are_refused_with_a_word_about_memory(what, monkeypatch):
    """These used to end in MemoryError, or in the death of the process."""
    monkeypatch.setattr(limits, "available_memory", lambda: 64e9)
    with pytest.raises(
        DataError, match=r"\d.* need about \d.* of memory, this machine has .*; ask for fewer"
    ):
        ABSURD[what]()


def test_a_histogram_of_many_small_axes_is_refused():
    box = [mf.Observable(name, 0.0, 1.0) for name in "abcd"]
    some = mf.Dataset({o.name: np.array([0.5]) for o in box})
    with pytest.raises(DataError, match=r"histogram: 1.*e.*15 bins need about"):
        some.to_hist(box, bins=5800)


def test_absurd_numbers_of_threads_are_refused():
    with pytest.raises(BackendError, match="backend 'cpu': threads must be a whole number, got '4'"):
        mf.Cpu(threads="4")
    with pytest.raises(BackendError, match="backend 'cpu': threads must be at most 4096, got 1000000"):
        mf.Cpu(threads=10**6)


def test_nothing_reads_the_groups_of_this_machine_twice(machine):
    groups(machine, "0::/\n", **{"cpu.max": "100000 100000"})
    assert available_cores() == 1
    os.unlink(machine / "groups" / "cpu.max")
    assert available_cores() == 1


@pytest.mark.parametrize(
    "array",
    [np.ones(3), np.ones(8)[5:], np.ones((3, 4)).T, np.empty(0), read_only(np.ones(2)), np.ones(2, np.int32)],
    ids=["own", "part", "transposed", "empty", "read-only", "integers"],
)
def test_the_address_of_an_array_is_that_of_its_numbers(array):
    assert address(array) == array.ctypes.data
    assert address(array.view(ArrayByName)) == array.ctypes.data
