"""Files that are written: places refused before the work, one writer at a time, complete or not at all."""

from __future__ import annotations

import errno
import glob
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from morefit.errors import DataError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

ABANDONED = 24 * 3600.0  # seconds after which an unfinished file is nobody's, where no locks tell
EXTRA = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
WAIT_FOR_NOBODY = getattr(os, "O_NONBLOCK", 0)
FULL = tuple(getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG"))
FREE, TAKEN, NO_LOCKS = "free", "taken", "no locks"

_held: set[int] = set()  # handles of files that this process has locked


def let_go() -> None:
    """Close what the parent has locked: a child that outlives it would keep the locks."""
    for handle in _held:
        with suppress(OSError):
            os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=let_go)


# ------------------------------------------------------------------------------------ places


def writable_place(what: str, path: str | PathLike[str]) -> Path:
    """Return where a file is to be written, links followed; refuse a place where that cannot be done.

    ``what`` begins the message, such as "toy study". What writers that were killed left there is removed.
    """
    if not isinstance(path, str | PathLike):
        raise DataError(f"{what}: must be the name of a file, got {path!r}")
    try:
        place = followed(Path(path).expanduser())
        problem = problem_with(place)
        if not problem:
            try_to_write(place)
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # such as links in a circle, or a null byte in a name
        problem = f"cannot be written, {reason(error)}; name another file"
    if problem:
        raise DataError(f"{what} '{path}': {problem}")
    return place


def followed(path: Path) -> Path:
    """Return the file that a link stands for, so that it is written and the link stays."""
    if not path.is_symlink():
        return path
    if is_bait(path.lstat(), path.parent.stat()):
        raise OSError("a link that another user made in a folder for all")
    return path.resolve()


def is_bait(link: os.stat_result, folder: os.stat_result) -> bool:
    """Whether a link in a folder such as /tmp is neither ours nor of the owner of the folder, as Linux judges it."""
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    return bool(shared) and link.st_uid not in (folder.st_uid, os.getuid())


def problem_with(place: Path) -> str:
    """Say what is wrong with a place as it is, or nothing."""
    if not place.parent.is_dir():
        return f"there is no folder '{place.parent}'; make it first"
    if place.is_dir():
        return "is a folder; name a file in it"
    if place.exists() and not place.is_file():
        return "is no plain file but a pipe, a device or the like; name another file"
    return ""


def try_to_write(place: Path) -> None:
    """Open the file if there is one, and make another beside it; raise what the system says."""
    if place.exists():
        os.close(os.open(place, os.O_WRONLY | WAIT_FOR_NOBODY | EXTRA))
    remove_abandoned(place)
    part, handle = open_part(place)
    discard(part, handle)


def reason(error: BaseException) -> str:
    """Return what the system says, without numbers and names."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


# ------------------------------------------------------------------------------------ whole files


@contextmanager
def complete_file(path: str | PathLike[str], what: str = "file") -> Iterator[Path]:
    """Give a path beside the place of a file to write to; it is moved there when it is complete."""
    place = writable_place(what, path)
    try:
        part, handle = open_part(place)
        try:
            yield part
            with part.open("r+b") as file:
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                part.chmod(stat.S_IMODE(place.stat().st_mode))  # a private file stays private
            if fcntl is None:
                release(handle)  # Windows moves no file that is open
            part.replace(place)
        finally:  # also after Ctrl-C: nothing half-written stays behind
            discard(part, handle)
    except OSError as error:
        remedy = "make room" if error.errno in FULL else "name another file"
        raise DataError(f"{what} '{path}': cannot be written, {reason(error)}; {remedy}") from error


def open_part(place: Path) -> tuple[Path, int]:
    """Make a file beside a place and lock it, so that others know somebody is at work on it."""
    while True:
        part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | EXTRA, 0o666)
        if lock(handle) != TAKEN and is_same(handle, part):
            _held.add(handle)
            return part, handle
        os.close(handle)  # somebody took it for abandoned before it was locked


def discard(part: Path, handle: int) -> None:
    """Remove a file of ours, if it is still there; a child of this process has none."""
    if fcntl is None:
        release(handle)  # Windows removes no file that is open
    elif handle not in _held:
        return
    with suppress(OSError):
        part.unlink()
    release(handle)  # not before, where that can be: somebody could have taken it meanwhile


def release(handle: int) -> None:
    """Close a file that is locked, unless that is done already."""
    if handle in _held:
        _held.discard(handle)
        os.close(handle)


def remove_abandoned(place: Path) -> None:
    """Remove unfinished files of writers that are gone."""
    for name in glob.glob(f".{glob.escape(place.name)}.*.part", root_dir=place.parent):
        part = place.with_name(name)
        with suppress(OSError):
            handle = os.open(part, os.O_RDWR | WAIT_FOR_NOBODY | EXTRA)
            try:
                state = lock(handle)
                old = time.time() - os.fstat(handle).st_mtime > ABANDONED
            finally:
                os.close(handle)
            if state == FREE or (state == NO_LOCKS and old):
                part.unlink()


# ------------------------------------------------------------------------------------ one writer


@contextmanager
def only_writer(what: str, place: Path) -> Iterator[None]:
    """Keep a place to oneself; refuse it if another process, or a study in this one, has it already."""
    path = place.with_name(f".{place.name}.lock")
    try:
        handle = take(what, place, path)
    except OSError as error:
        raise DataError(f"{what} '{place}': cannot be locked, {reason(error)}; name another file") from error
    try:
        yield
    finally:
        discard(path, handle)


def take(what: str, place: Path, path: Path) -> int:
    """Return the handle of a lock that is ours; one left by a process that is gone is taken over."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | WAIT_FOR_NOBODY | EXTRA, 0o644)
        state = lock(handle)
        owner = read_owner(handle)
        if state == TAKEN or (state == NO_LOCKS and is_alive(owner)):
            os.close(handle)
            who = f"process {owner.get('process', '?')} on {owner.get('host', '?')}"
            raise DataError(
                f"{what} '{place}': another study is writing this file ({who}); wait for it or name another file;"
                f" if no such process runs, remove '{path}'"
            )
        if is_same(handle, path):
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, json.dumps({"process": os.getpid(), "host": node()}).encode())
            _held.add(handle)
            return handle
        os.close(handle)  # its owner removed it before we had it


def node() -> str:
    """Return the name of this host."""
    import platform  # only studies that have a file need it

    return platform.node()


def read_owner(handle: int) -> dict[str, Any]:
    """Return who wrote a lock, as far as that can be read."""
    with suppress(OSError, ValueError):
        owner = json.loads(os.read(handle, 1000))
        return owner if isinstance(owner, dict) else {}
    return {}


def is_alive(owner: dict[str, Any]) -> bool:
    """Whether the owner of a lock may still be at work; on another host nobody can tell."""
    process = owner.get("process")
    if not isinstance(process, int) or owner.get("host") != node() or sys.platform == "win32":
        return bool(owner)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def lock(handle: int) -> str:
    """Lock a file that is open, until it is closed: FREE if that worked, TAKEN, or NO_LOCKS on this file system."""
    if fcntl is None:
        return NO_LOCKS
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return TAKEN
    except OSError:
        return NO_LOCKS
    return FREE


def is_same(handle: int, path: Path) -> bool:
    """Whether a file that is open is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
