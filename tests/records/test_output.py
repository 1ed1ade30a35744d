"""Files that are written: refused before the work, complete or not at all, by one writer at a time."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import morefit as mf
from morefit.errors import DataError
from morefit.intervals import bootstrap, feldman_cousins, neyman_belt
from morefit.records import output as target
from morefit.records.output import complete_file, only_writer, writable_place
from morefit.toys.study import toy_study

X = mf.Observable("x", -5.0, 5.0)


def gaussian():
    return mf.Gaussian(X, mf.Parameter("mu", 0.0, -3.0, 3.0), 1.0)


def study(path, **options):
    return toy_study(gaussian(), **({"toys": 6, "events": 50, "seed": 1, "block": 2, "save": path} | options))


def data():
    return mf.generate(gaussian(), 50, seed=1)


# everything that writes a file: a name, and what is called with its path
WRITERS = {
    "study.npz": study,
    "scan.npz": lambda path: feldman_cousins(
        mf.Likelihood(gaussian(), data()), "mu", [0.0], toys=3, seed=1, save=path
    ),
    "toys.npz": lambda path: toy_study(gaussian(), toys=2, events=50, seed=1).save(path),
    "fit.json": lambda path: mf.fit(gaussian(), data()).to_json(path),
    "graph.dot": lambda path: mf.draw(gaussian()).save(path),
    **{f"data{kind}": lambda path: data().write(path) for kind in (".npz", ".csv", ".parquet", ".root")},
}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=WRITERS)
def place(request, tmp_path):
    return tmp_path / request.param


# ------------------------------------------------------------------------------------ places


def test_every_writer_writes_and_leaves_nothing_else(place):
    WRITERS[place.name](place)
    assert names(place.parent) == [place.name]
    assert place.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_pipe_named_as_output_is_refused_and_stays(place):
    """This used to be replaced by a file."""
    os.mkfifo(place)
    with pytest.raises(
        DataError, match=r"is not a plain file but a pipe, a device or the like; name another file"
    ):
        WRITERS[place.name](place)
    assert stat.S_ISFIFO(place.stat().st_mode) and names(place.parent) == [place.name]


def test_a_folder_named_as_output_is_refused(place):
    place.mkdir()
    with pytest.raises(DataError, match=r"is a folder; name a file in it"):
        WRITERS[place.name](place)


def test_output_in_a_folder_that_is_not_there_is_refused(place):
    with pytest.raises(DataError, match=r"there is no folder .*nowhere'; make it first"):
        WRITERS[place.name](place.parent / "nowhere" / place.name)


def test_a_link_is_followed_and_stays(place):
    """This used to be replaced by a file."""
    (place.parent / "real").mkdir()
    place.symlink_to(place.parent / "real" / place.name)
    WRITERS[place.name](place)
    assert place.is_symlink() and (place.parent / "real" / place.name).is_file()
    assert names(place.parent / "real") == [place.name] and place.stat().st_size


def test_links_in_a_circle_are_refused(place):
    place.symlink_to(place)
    with pytest.raises(DataError, match=r"cannot be written, .*; name another file"):
        WRITERS[place.name](place)


def test_a_link_to_a_device_is_refused(place):
    place.symlink_to(os.devnull)
    with pytest.raises(DataError, match="is not a plain file"):
        WRITERS[place.name](place)
    assert place.is_symlink() and stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_link_by_another_user_in_a_folder_for_all_is_refused(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    link, folder = (tmp_path / "link").lstat(), tmp_path.stat()
    mine, root, other = os.getuid(), 0, os.getuid() + 1
    cases = {
        (0o1777, root, other): True,
        (0o1777, root, mine): False,
        (0o1777, other, other): False,
        (0o755, root, other): False,
    }
    for (mode, owner, maker), bait in cases.items():
        assert (
            target.is_untrusted(status(link, st_uid=maker), status(folder, st_mode=mode, st_uid=owner))
            is bait
        )
    monkeypatch.setattr(target, "is_untrusted", lambda *_: True)
    with pytest.raises(
        DataError, match="a link that another user made in a folder for all; name another file"
    ):
        study(tmp_path / "link")


def status(one, **changes):
    return SimpleNamespace(**({name: getattr(one, name) for name in ("st_uid", "st_mode")} | changes))


def test_a_private_file_stays_private(place):
    place.touch()
    if place.name not in ("study.npz", "scan.npz"):  # which would be resumed
        place.chmod(0o600)
        WRITERS[place.name](place)
        assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["x" * 300 + ".npz", "a\0b.npz"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"toy study '.*': cannot be written, .*; name another file"):
        study(tmp_path / name)


def test_what_is_no_name_is_refused():
    with pytest.raises(DataError, match="toy study: must be the name of a file, got 5"):
        study(5)


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    """This used to be said after the last toy."""

    def refuse(path, flags, *mode):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(target.os, "open", refuse)
    with pytest.raises(DataError, match="cannot be written, Permission denied; name another file"):
        study(tmp_path / "study.npz", statistic=lambda *_: pytest.fail("worked"))


def test_a_study_that_others_protect_from_writing_is_refused(tmp_path, monkeypatch):
    (tmp_path / "study.npz").touch()
    real = os.open

    def read_only(path, flags, *mode):
        if Path(path).name == "study.npz" and flags & os.O_WRONLY:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(path, flags, *mode)

    monkeypatch.setattr(target.os, "open", read_only)
    with pytest.raises(DataError, match="cannot be written, Operation not permitted"):
        study(tmp_path / "study.npz")


# ------------------------------------------------------------------------------------ full disks


def fill_disk(monkeypatch, *, after):
    """Let writing fail after some files."""
    real, done = os.fsync, []

    def full(handle):
        done.append(handle)
        if len(done) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(target.os, "fsync", full)


def test_a_full_disk_is_a_clear_error_and_the_old_file_stays(place, monkeypatch):
    place.write_bytes(b"") if place.name not in ("study.npz", "scan.npz") else None
    before = names(place.parent)
    fill_disk(monkeypatch, after=0)
    with pytest.raises(mf.MorefitError, match="cannot be written, No space left on device; make room"):
        WRITERS[place.name](place)
    assert names(place.parent) == before


def test_a_full_disk_loses_no_finished_toy(tmp_path, monkeypatch, capsys):
    """This used to lose 19 500 finished toys to a bare OSError."""
    whole = study(None)
    fill_disk(monkeypatch, after=1)
    monkeypatch.setattr("morefit.jobs.checkpoint.SAVE_SECONDS", 0.0)
    monkeypatch.setattr("morefit.jobs.checkpoint.SAVE_SHARE", np.inf)
    with pytest.raises(
        mf.BrokenJob,
        match=r"^toy study '.*': cannot be written, No space left on device; make room; 6 of 6 toys are finished; 2 of them"
        r" are saved in '.*study.npz'; finished.save",
    ) as caught:
        study(tmp_path / "study.npz")
    np.testing.assert_array_equal(caught.value.finished.values, whole.values)
    assert capsys.readouterr().err.count("the work goes on, and writing is tried again") == 1
    monkeypatch.undo()
    np.testing.assert_array_equal(study(tmp_path / "study.npz").values, whole.values)  # two were kept


def test_a_disk_that_has_room_again_is_written_to(tmp_path, monkeypatch, capsys):
    fill_disk(monkeypatch, after=0)

    def make_room(dataset, values):
        monkeypatch.undo()
        return 0.0

    monkeypatch.setattr("morefit.jobs.checkpoint.SAVE_SECONDS", 0.0)
    toys = study(tmp_path / "study.npz", statistic=Later(make_room))
    assert len(mf.ToyResults.load(tmp_path / "study.npz")) == len(toys) == 6


class Later:
    """Does something at the last toy but one."""

    def __init__(self, action):
        self.action, self.calls = action, 0

    def __call__(self, dataset, values):
        self.calls += 1
        return self.action(dataset, values) if self.calls == 5 else 0.0


# long jobs besides studies: a name, what is called with its path, how many items it has, and what they are
JOBS = {
    "feldman_cousins of mu": (
        lambda path, **o: feldman_cousins(
            mf.Likelihood(gaussian(), data()), "mu", [0.0, 0.1], toys=3, seed=1, save=path, **o
        ),
        "2 of 2 points",
    ),
    "neyman_belt of mu": (
        lambda path, **o: neyman_belt(gaussian(), "mu", [0.0, 0.1], events=5, toys=3, seed=1, save=path, **o),
        "2 of 2 points",
    ),
    "bootstrap": (
        lambda path, **o: bootstrap(mf.Likelihood(gaussian(), data()), replicas=4, seed=1, save=path, **o),
        "4 of 4 replicas",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_full_disk_loses_nothing_and_says_that_nothing_is_saved(tmp_path, monkeypatch, name):
    """Scans used to say "kept in 'scan.npz', call again to resume" although that file did not exist."""
    call, count = JOBS[name]
    fill_disk(monkeypatch, after=0)
    rule = rf"^{name} '.*': cannot be written, No space left on device; make room; {count} are finished; they are NOT saved"
    with pytest.raises(mf.BrokenJob, match=rule) as caught:
        call(tmp_path / "job.npz")
    assert len(caught.value.finished) == int(count[0])
    assert not (tmp_path / "job.npz").exists()
    monkeypatch.undo()
    caught.value.finished.save(tmp_path / "elsewhere.npz")
    whole, again = call(tmp_path / "job.npz"), type(caught.value.finished).load(tmp_path / "elsewhere.npz")
    np.testing.assert_array_equal(whole.values, again.values)


def fill_folder(monkeypatch, folder):
    """Let writing fail in one folder only."""
    real = os.fsync

    def full(handle):
        if os.fstat(handle).st_ino in {entry.stat().st_ino for entry in os.scandir(folder)}:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(target.os, "fsync", full)


@pytest.mark.parametrize("name", JOBS)
def test_what_a_full_disk_does_not_take_is_saved_in_another_folder_and_resumed_from_there(
    tmp_path, monkeypatch, name
):
    """A command or a script that ended with this error used to lose what was finished."""
    call, count = JOBS[name]
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir(), other.mkdir()
    monkeypatch.chdir(other)
    fill_folder(monkeypatch, full)
    rule = rf"make room; {count} are finished and saved in '(.*)'; move that to '.*job.npz' and call again to resume$"
    with pytest.raises(mf.BrokenJob, match=rule) as caught:
        call(full / "job.npz")
    assert names(full) == [] and len(names(other)) == 1
    monkeypatch.undo()
    (other / names(other)[0]).rename(full / "job.npz")
    resumed = call(full / "job.npz", progress=False)
    np.testing.assert_array_equal(resumed.values, caught.value.finished.values)


def test_a_limit_of_the_system_on_files_is_a_clear_error(tmp_path):
    code = """
        import resource, sys
        import numpy as np, morefit as mf
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            mf.Dataset({"x": np.zeros(10_000)}).write(sys.argv[1])
        except mf.DataError as error:
            print(error)
    """
    out = run_code(code, tmp_path / "data.npz", MOREFIT_CACHE_DIR="")
    assert "data.npz': cannot be written, File too large; make room" in out
    assert names(tmp_path) == []


def run_code(code, *arguments, **environment):
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("failure", "raises", "says"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            DataError,
            "cannot be locked, No space left on device; make room",
        ),
        (
            OSError(errno.EIO, "Input/output error"),
            DataError,
            "cannot be locked, Input/output error; name another file",
        ),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
    ids=["full", "broken", "interrupted"],
)
def test_issue_12_a_lock_that_cannot_be_written_is_released(tmp_path, monkeypatch, failure, raises, says):
    """This used to keep the lock: with room again, the same call said that another study is writing this file."""
    path = tmp_path / "study.npz"

    def fail(handle, content):
        raise failure

    monkeypatch.setattr(target.os, "write", fail)
    with pytest.raises(raises, match=says), only_writer("toy study", path):
        pytest.fail("the lock has no owner")
    assert names(tmp_path) == [] and not target._locked
    monkeypatch.undo()
    with only_writer("toy study", path):
        assert names(tmp_path) == [".study.npz.lock"]
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------------ one writer


def test_two_studies_cannot_write_one_file(tmp_path):
    """This used to let both succeed, and one was lost."""
    path = tmp_path / "study.npz"

    def second(dataset, values):
        rule = rf"another study is writing this file \(process {os.getpid()} on .*\); wait for it or name another file"
        with pytest.raises(DataError, match=rule):
            study(path)
        with pytest.raises(DataError, match=rule):
            feldman_cousins(mf.Likelihood(gaussian(), data()), "mu", [0.0], toys=3, seed=1, save=path)
        return 0.0

    study(path, toys=2, statistic=second)
    assert names(tmp_path) == ["study.npz"]


HOLD = """
    import sys, time
    from pathlib import Path
    from morefit.records.output import complete_file, only_writer
    with only_writer("toy study", Path(sys.argv[1])), complete_file(Path(sys.argv[1])) as part:
        part.write_text("half")
        print("ready", flush=True)
        time.sleep(600)
"""


def hold(path):
    """Start a process that has a file locked and half written."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_another_process_keeps_its_file_until_it_is_killed(tmp_path):
    path = tmp_path / "study.npz"
    process = hold(path)
    try:
        with pytest.raises(
            DataError, match=rf"another study is writing this file \(process {process.pid} on"
        ):
            study(path)
        assert len(names(tmp_path)) == 2  # its lock and its half
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    study(path)
    assert names(tmp_path) == ["study.npz"]  # what it left is gone, which used to stay for ever


def test_the_file_of_a_study_that_ended_is_free(tmp_path):
    place = tmp_path / "study.npz"
    with pytest.raises(ZeroDivisionError), only_writer("toy study", place):
        raise ZeroDivisionError
    with only_writer("toy study", place):
        assert names(tmp_path) == [".study.npz.lock"]
    assert names(tmp_path) == []


def wait_for_ever():
    time.sleep(600)


def test_a_child_does_not_keep_the_lock_of_its_parent(tmp_path):
    """Forked workers of a killed study would hold its file for ever."""
    place = tmp_path / "study.npz"
    with only_writer("toy study", place):
        child = multiprocessing.get_context("fork").Process(target=wait_for_ever)
        child.start()
    try:
        with only_writer("toy study", place):
            pass
    finally:
        child.kill()
        child.join()


def test_a_child_that_ends_in_the_middle_leaves_the_files_of_its_parent_alone(tmp_path):
    place = tmp_path / "study.npz"
    with only_writer("toy study", place), complete_file(place) as part:
        before = names(tmp_path)
        child = os.fork()
        if not child:
            try:
                target.discard(part, 0)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert names(tmp_path) == before
        part.write_text("whole")
    assert place.read_text() == "whole"


@pytest.fixture
def no_locks(monkeypatch):
    """A file system that has no locks, as some shared ones have none."""

    def refuse(handle, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(target.fcntl, "flock", refuse)


def test_without_locks_a_living_owner_is_respected(tmp_path, no_locks):
    place = tmp_path / "study.npz"
    with (
        only_writer("toy study", place),
        pytest.raises(DataError, match=r"another study .*; if no such process runs, remove '.*lock'"),
        only_writer("toy study", place),
    ):
        pass


@pytest.mark.parametrize(("owner", "free"), [("dead", True), ("elsewhere", False), ("nonsense", True)])
def test_without_locks_the_owner_is_looked_for(tmp_path, no_locks, owner, free):
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    texts = {
        "dead": json.dumps({"process": int(done.stdout), "host": target.node()}),
        "elsewhere": json.dumps({"process": 1, "host": "another"}),
        "nonsense": "[",
    }
    (tmp_path / ".study.npz.lock").write_text(texts[owner])
    if free:
        study(tmp_path / "study.npz")
        assert names(tmp_path) == ["study.npz"]
    else:
        with pytest.raises(DataError, match="process 1 on another"):
            study(tmp_path / "study.npz")


def test_without_locks_only_old_pieces_are_removed(tmp_path, no_locks):
    for name, age in (("old", 2 * target.ABANDONED), ("new", 0.0)):
        (tmp_path / f".a.npz.{name}.part").touch()
        os.utime(tmp_path / f".a.npz.{name}.part", (time.time() - age,) * 2)
    (tmp_path / ".b.npz.old.part").touch()
    writable_place("file", tmp_path / "a.npz")
    assert names(tmp_path) == [".a.npz.new.part", ".b.npz.old.part"]


def test_systems_without_locks_of_this_kind_write_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(target, "fcntl", None)
    study(tmp_path / "study.npz")
    assert names(tmp_path) == ["study.npz"]


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".study.npz.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(DataError, match=r"cannot be locked, .*; name another file"):
        study(tmp_path / "study.npz")
    assert (tmp_path / "victim").read_text() == "precious"
