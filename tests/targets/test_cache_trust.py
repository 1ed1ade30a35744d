"""Who may put compiled code into the cache, and how much of it is kept."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from morefit.errors import BackendError
from morefit.targets import cache

KEY, CODE = "a" * 64, b"machine code" * 10


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with one entry, which is found."""
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "kernels"))
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE
    return tmp_path / "kernels"


@pytest.fixture
def stranger(monkeypatch):
    """Make files of this user look as if they belonged to somebody else."""

    def become_another():
        other = os.getuid() + 1
        monkeypatch.setattr(cache.os, "getuid", lambda: other)

    return become_another


def key(number):
    return f"{number:064x}"


def in_time(action, seconds=10.0):
    """Return what an action returns; fail if it hangs."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "hangs"
    return found[0]


def test_what_is_made_is_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        cache.store(KEY, CODE)
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / f"{KEY}.o"]
    assert [path.stat().st_mode & 0o077 for path in made] == [0, 0, 0]


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(folder, mode):
    """This used to run machine code that another user had planted."""
    folder.chmod(mode)
    assert cache.load(KEY) is None
    cache.store(key(1), CODE)
    assert [path.name for path in folder.iterdir()] == [f"{KEY}.o"]


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_an_entry_that_others_can_write_to_is_not_used(folder, mode):
    (folder / f"{KEY}.o").chmod(mode)
    assert cache.load(KEY) is None


def test_a_folder_of_another_user_is_not_used(folder, stranger):
    stranger()
    assert cache.load(KEY) is None
    cache.store(key(1), CODE)
    assert [path.name for path in folder.iterdir()] == [f"{KEY}.o"]


def test_an_entry_of_another_user_is_not_used(folder, stranger, monkeypatch):
    monkeypatch.setattr(cache, "private_folder", lambda chosen: chosen)
    stranger()
    assert cache.load(KEY) is None


def test_a_folder_below_one_that_others_can_write_to_is_not_used(folder):
    """They could put another one in its place."""
    folder.parent.chmod(0o777)
    assert cache.load(KEY) is None
    folder.parent.chmod(0o1777)  # sticky, as /tmp is: nobody else can
    assert cache.load(KEY) == CODE


def test_a_link_to_a_private_folder_is_followed_and_judged_by_where_it_leads(folder, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "link"))
    assert cache.load(KEY) == CODE
    folder.chmod(0o777)
    assert cache.load(KEY) is None


def test_links_in_a_circle_are_no_cache(tmp_path, monkeypatch):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "a"))
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None


def test_an_entry_that_is_a_link_is_not_followed(folder):
    entry = folder / f"{KEY}.o"
    entry.rename(folder / "elsewhere")
    entry.symlink_to(folder / "elsewhere")
    assert cache.load(KEY) is None


def test_an_entry_that_is_a_fifo_does_not_hang(folder):
    """This used to wait for ever for somebody to write."""
    (folder / f"{KEY}.o").unlink()
    os.mkfifo(folder / f"{KEY}.o", 0o600)
    assert in_time(lambda: cache.load(KEY)) is None


def test_a_fifo_for_a_folder_is_no_cache(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "kernels", 0o700)
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "kernels"))
    assert in_time(lambda: cache.load(KEY)) is None
    in_time(lambda: cache.store(KEY, CODE))


def test_the_state_of_the_cache_can_be_asked_for(folder, monkeypatch):
    assert cache.cache_state() == f"compiled code is kept in '{folder}'"
    folder.chmod(0o777)
    assert cache.cache_state() == f"compiled code is not kept on disk: others could change '{folder}'"
    monkeypatch.setenv("MOREFIT_CACHE_DIR", "")
    assert cache.cache_state() == "compiled code is not kept on disk"


def test_systems_without_users_have_a_cache(folder, monkeypatch):
    monkeypatch.delattr(cache.os, "getuid")
    assert cache.load(KEY) == CODE


def used(folder, number, seconds_ago):
    then = time.time() - seconds_ago
    os.utime(folder / f"{key(number)}.o", (then, then))


def test_entries_not_used_for_longest_are_removed_when_there_are_too_many(folder, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_MB", "0.01")
    monkeypatch.setattr(cache, "_unnoticed", {})
    for number in range(12):
        cache.store(key(number), bytes(1000))
        used(folder, number, 5000 - number)
    assert cache.load(key(5)) is not None  # the oldest but for those that go, now as new
    for number in range(12, 20):
        cache.store(key(number), bytes(1000))
    left = {path.stem for path in folder.glob("*.o")}
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000
    assert {key(5), key(19), key(18)} <= left and not left & {KEY, key(0), key(1), key(2)}


def test_only_entries_and_abandoned_pieces_are_removed(folder, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_MB", "0.002")
    for name, age in (("notes.txt", 9000), ("mine.o", 9000), ("old.tmp", 9000), ("new.tmp", 0)):
        (folder / name).write_bytes(bytes(5000))
        os.utime(folder / name, (time.time() - age,) * 2)
    monkeypatch.setattr(cache, "_unnoticed", {})
    cache.store(key(1), bytes(1000))
    cache.store(key(2), bytes(1000))
    assert {"notes.txt", "mine.o", "new.tmp"} <= {path.name for path in folder.iterdir()}
    assert not (folder / "old.tmp").exists()


def test_a_code_larger_than_the_cache_is_not_kept(folder, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_MB", "0")
    cache.store(key(1), bytes(1000))
    assert cache.load(key(1)) is None and cache.load(KEY) == CODE


@pytest.mark.parametrize("text", ["many", "-1", "nan"])
def test_a_size_that_is_none_is_refused(folder, monkeypatch, text):
    monkeypatch.setenv("MOREFIT_CACHE_MB", text)
    message = f"environment variable 'MOREFIT_CACHE_MB': must be a number from 0 on, got '{text}'"
    with pytest.raises(BackendError, match=message):
        cache.store(key(1), CODE)


def test_several_writers_keep_the_bound_and_never_read_half_an_entry(folder, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_MB", "0.02")

    def work(worker):
        for turn in range(40):
            cache.store(key(turn % 30), bytes([turn % 30]) * 1000)
            found = cache.load(key((turn + worker) % 30))
            assert found is None or found == bytes([(turn + worker) % 30]) * 1000

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    cache.trim(Path(folder), cache.max_bytes())
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 20_000
