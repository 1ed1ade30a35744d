"""Output files: paths checked before the work begins, one writer at a time, complete or not at all."""

from __future__ import annotations

import errno
import glob
import importlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from morefit.errors import DataError

fcntl: Any = None if os.name == "nt" else importlib.import_module("fcntl")  # not on Windows

ABANDONED = 24 * 3600.0  # seconds after which an unfinished file is removed on file systems without locks
EXTRA = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
NONBLOCKING = getattr(os, "O_NONBLOCK", 0)
FULL = tuple(getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG"))
FREE, TAKEN, NO_LOCKS = "free", "taken", "no locks"

_locked: set[int] = set()  # handles of files that this process has locked


def close_inherited() -> None:
    """Close the files that the parent process has locked: a child that outlives it would keep the locks."""
    for handle in _locked:
        with suppress(OSError):
            os.close(handle)
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=close_inherited)


# ------------------------------------------------------------------------------------ paths


def writable_place(what: str, path: str | PathLike[str]) -> Path:
    """Return the path where a file is to be written, links resolved, or raise an error if that is impossible.

    ``what`` begins the message, such as "toy study". Unfinished files of writers that were killed are removed.
    """
    if not isinstance(path, str | PathLike):
        raise DataError(f"{what}: must be the name of a file, got {path!r}")
    try:
        target = resolved(Path(path).expanduser())
        problem = problem_with(target)
        if not problem:
            try_to_write(target)
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # such as links in a circle, or a null byte in a name
        problem = f"cannot be written, {reason(error)}; {remedy(error)}"
    if problem:
        raise DataError(f"{what} '{path}': {problem}")
    return target


def resolved(path: Path) -> Path:
    """Return the file that a link points to, so that it is written and the link stays."""
    if not path.is_symlink():
        return path
    if is_untrusted(path.lstat(), path.parent.stat()):
        raise OSError("a link that another user made in a folder for all")
    return path.resolve()


def is_untrusted(link: os.stat_result, folder: os.stat_result) -> bool:
    """Return whether a link in a folder such as /tmp belongs neither to us nor to the owner of the folder (as in Linux)."""
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    return bool(shared) and link.st_uid not in (folder.st_uid, os.getuid())


def problem_with(place: Path) -> str:
    """Return why no file can be written at a path, empty if it can."""
    if not place.parent.is_dir():
        return f"there is no folder '{place.parent}'; make it first"
    if place.is_dir():
        return "is a folder; name a file in it"
    if place.exists() and not place.is_file():
        return "is not a plain file but a pipe, a device or the like; name another file"
    return ""


def try_to_write(place: Path) -> None:
    """Open the file if there is one, and create another beside it; raise the error of the system if that fails."""
    if place.exists():
        os.close(os.open(place, os.O_WRONLY | NONBLOCKING | EXTRA))
    remove_abandoned(place)
    part, handle = open_part(place)
    discard(part, handle)


def reason(error: BaseException) -> str:
    """Return the message of an error of the system, without its number and the name of the file."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def remedy(error: BaseException) -> str:
    """Return what to do about a file that cannot be written."""
    return "make room" if isinstance(error, OSError) and error.errno in FULL else "name another file"


# ------------------------------------------------------------------------------------ whole files


@contextmanager
def complete_file(path: str | PathLike[str], what: str = "file") -> Iterator[Path]:
    """Yield a path beside that of a file, to write to; it is moved there when it is complete."""
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
        raise DataError(f"{what} '{path}': cannot be written, {reason(error)}; {remedy(error)}") from error


def open_part(place: Path) -> tuple[Path, int]:
    """Create a file beside a path and lock it, so that other processes do not remove it."""
    while True:
        part = place.with_name(f".{place.name}.{os.urandom(4).hex()}.part")
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | EXTRA, 0o666)
        if lock(handle) != TAKEN and is_same(handle, part):
            _locked.add(handle)
            return part, handle
        os.close(handle)  # another process removed it as abandoned before it was locked


def discard(part: Path, handle: int) -> None:
    """Remove a file of this process, if it still exists; a child process has none."""
    if fcntl is None:
        release(handle)  # Windows removes no file that is open
    elif handle not in _locked:
        return
    with suppress(OSError):
        part.unlink()
    release(handle)  # not before, where possible: another process could have locked it meanwhile


def release(handle: int) -> None:
    """Close a file that is locked, unless it is closed already."""
    if handle in _locked:
        _locked.discard(handle)
        os.close(handle)


def remove_abandoned(place: Path) -> None:
    """Remove unfinished files of processes that have ended."""
    for name in glob.glob(f".{glob.escape(place.name)}.*.part", root_dir=place.parent):
        part = place.with_name(name)
        with suppress(OSError):
            handle = os.open(part, os.O_RDWR | NONBLOCKING | EXTRA)
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
    """Lock a path against other writers; raise an error if another process, or a study in this one, has locked it."""
    path = place.with_name(f".{place.name}.lock")
    try:
        handle = take(what, place, path)
    except OSError as error:
        raise DataError(f"{what} '{place}': cannot be locked, {reason(error)}; {remedy(error)}") from error
    try:
        yield
    finally:
        discard(path, handle)


def take(what: str, place: Path, path: Path) -> int:
    """Return the handle of a lock file of this process; one that an ended process left is taken over."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NONBLOCKING | EXTRA, 0o644)
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
            _locked.add(handle)
            try:
                write_owner(handle)
            except BaseException:  # a full disk, or Ctrl-C: no lock without an owner stays behind
                discard(path, handle)
                raise
            return handle
        os.close(handle)  # its owner removed it before it was locked here


def node() -> str:
    """Return the name of this host."""
    import platform  # only studies that have a file need it

    return platform.node()


def write_owner(handle: int) -> None:
    """Write process and host of this process into a lock file."""
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps({"process": os.getpid(), "host": node()}).encode())


def read_owner(handle: int) -> dict[str, Any]:
    """Return process and host in a lock file, as far as that can be read."""
    with suppress(OSError, ValueError):
        owner = json.loads(os.read(handle, 1000))
        return owner if isinstance(owner, dict) else {}
    return {}


def is_alive(owner: dict[str, Any]) -> bool:
    """Return whether the owner of a lock may still run; True for another host, as that is not known."""
    process = owner.get("process")
    if not isinstance(process, int) or owner.get("host") != node() or sys.platform == "win32":
        return bool(owner)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


def lock(handle: int) -> str:
    """Lock an open file until it is closed; return FREE if that worked, TAKEN, or NO_LOCKS on this file system."""
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
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
