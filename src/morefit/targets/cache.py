"""Compiled code on disk: private to the user, written all or nothing, checked when read, bounded in size."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from functools import cache
from pathlib import Path

from morefit.digests import sha256
from morefit.errors import BackendError

MAGIC = b"morefit object 1\n"
DIGEST = 32  # bytes of a SHA-256
# endings of entries: machine code, records of kernels, and what a compiler knows of a processor
OBJECT, KERNEL, PROCESSOR = ".o", ".kernel", ".processor"
ENTRY = re.compile(r"[0-9a-f]{64}\.(o|kernel|processor)")
SIZE = "MOREFIT_CACHE_MB"  # the environment variable of the size limit in megabytes
DEFAULT_MEGABYTES = 500.0
REMAINING_SHARE = 0.75  # of the size allowed that stays when entries are removed
UNNOTICED_SHARE = 1 / 16  # of the size allowed that a process may store before it looks at the folder again
USED_AGAIN = 3600.0  # seconds after which an entry that is used becomes as new
ABANDONED = 3600.0  # seconds after which a file that was never finished is removed
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# a link is not followed, and a FIFO does not wait for a writer
SAFE_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))

_unnoticed: dict[Path, float] = {}  # bytes stored by this process since it last looked at a folder


def cache_folder() -> Path | None:
    """Return the folder for compiled code: MOREFIT_CACHE_DIR, or the user's cache; None if switched off ("")."""
    chosen = os.environ.get("MOREFIT_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        return user_folder() / "morefit"
    except RuntimeError:  # a user without a home
        return None


def user_folder() -> Path:
    """Return where programs of this user keep what they can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home())
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def key_of(*parts: str) -> str:
    """Return a name for what these texts determine together."""
    return sha256("\0".join(parts).encode()).hexdigest()


@cache
def source_version() -> str:
    """Return what stands for the source of morefit: what another source made is made anew."""
    states, folders = [], [os.fspath(Path(__file__).parents[1])]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    states.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return key_of(*sorted(states))


# ------------------------------------------------------------------------------------ trust


def private_folder(folder: Path) -> Path | None:
    """Return the real path of a folder that only this user can change, or None if it is not one.

    It belongs to the user and no other user can write to it, or put another folder in its place:
    folders above it belong to the user or to the administrator, and others cannot write to them unless they are
    sticky, as /tmp is.
    """
    try:
        real = folder.resolve(strict=True)
        if not hasattr(os, "getuid"):
            return real if real.is_dir() else None
        above = [parent.stat() for parent in real.parents]
        here = real.lstat()
    except (OSError, RuntimeError):  # absent, unreadable, or links in a circle
        return None
    trusted = {os.getuid(), 0, above[-1].st_uid if above else 0}  # who owns "/" can do anything
    safe_above = all(
        f.st_uid in trusted and not (f.st_mode & OTHERS_WRITE and not f.st_mode & stat.S_ISVTX) for f in above
    )
    return real if safe_above and stat.S_ISDIR(here.st_mode) and is_private(here) else None


def cache_state() -> str:
    """Return whether compiled code is cached on disk, and where."""
    folder = cache_folder()
    if folder is None:
        return "compiled code is not kept on disk"
    if folder.exists() and private_folder(folder) is None:
        return f"compiled code is not kept on disk: others could change '{folder}'"
    return f"compiled code is kept in '{folder}'"


def is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user and no other user can write to it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE)


def read_private(path: Path) -> bytes | None:
    """Return the content of a plain file that only this user can write to; note that it was used."""
    try:
        handle = os.open(path, SAFE_READ)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not (stat.S_ISREG(status.st_mode) and is_private(status)):
                return None
            data = file.read()
    except OSError:
        return None
    if time.time() - status.st_mtime > USED_AGAIN:
        with contextlib.suppress(OSError):
            os.utime(path)
    return data


# ------------------------------------------------------------------------------------ entries


def has_entry(key: str) -> bool:
    """Return whether something is stored under a key; it may yet be damaged or not to be trusted."""
    folder = cache_folder()
    return folder is not None and (folder / f"{key}{OBJECT}").exists()


def load(key: str, ending: str = OBJECT) -> bytes | None:
    """Return what was stored under a key, or None if there is nothing, or it is damaged or not to be trusted."""
    chosen = cache_folder()
    folder = None if chosen is None else private_folder(chosen)
    data = None if folder is None else read_private(folder / f"{key}{ending}")
    if data is None:
        return None
    head = data[: len(MAGIC)]
    digest = data[len(MAGIC) : len(MAGIC) + DIGEST]
    payload = data[len(MAGIC) + DIGEST :]
    if head != MAGIC or digest != sha256(key.encode() + payload).digest():
        return None
    return payload


def store(key: str, payload: bytes, ending: str = OBJECT) -> None:
    """Keep an entry for the next process; a cache that cannot be written is not an error."""
    chosen, limit = cache_folder(), max_bytes()
    if chosen is None or len(payload) > REMAINING_SHARE * limit:
        return
    with contextlib.suppress(OSError):
        make_folder(chosen)
        folder = private_folder(chosen)
        if folder is None:
            return
        write_entry(folder / f"{key}{ending}", MAGIC + sha256(key.encode() + payload).digest() + payload)
        _unnoticed[folder] = _unnoticed.get(folder, limit) + len(payload)
        if _unnoticed[folder] > UNNOTICED_SHARE * limit:
            trim(folder, limit)
            _unnoticed[folder] = 0


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for this user alone."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_entry(path: Path, content: bytes) -> None:
    """Write a file all or nothing."""
    from tempfile import mkstemp  # which needs more modules than reading entries does

    handle, name = mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except OSError:
        os.unlink(name)


# ------------------------------------------------------------------------------------ size


def max_bytes() -> float:
    """Return the size limit of the cache in bytes."""
    text = os.environ.get(SIZE, "")
    try:
        megabytes = float(text or DEFAULT_MEGABYTES)
    except ValueError:
        megabytes = -1.0
    if not megabytes >= 0:
        raise BackendError(f"environment variable '{SIZE}': must be a number from 0 on, got '{text}'")
    return megabytes * 1e6


def trim(folder: Path, limit: float) -> None:
    """Remove the entries that were not used for longest if all are too large together, and unfinished ones.

    Other processes may do the same at the same time, or read what is removed: that is compiled anew.
    """
    entries = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):  # gone meanwhile
                status = file.stat(follow_symlinks=False)
                if ENTRY.fullmatch(file.name) and stat.S_ISREG(status.st_mode):
                    entries.append((status.st_mtime, status.st_size, file.path))
                elif file.name.endswith(".tmp") and time.time() - status.st_mtime > ABANDONED:
                    os.unlink(file.path)
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= REMAINING_SHARE * limit:
            return
