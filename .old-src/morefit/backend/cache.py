"""Compiled code on disk: written at once or not at all, checked when read, thrown away when in doubt."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path

MAGIC = b"morefit object 1\n"
DIGEST = 32  # bytes of a SHA-256


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
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(key: str) -> bytes | None:
    """Return what was stored under a key, or None if there is nothing or it is damaged."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        data = (folder / f"{key}.o").read_bytes()
    except OSError:
        return None
    head, digest, payload = (
        data[: len(MAGIC)],
        data[len(MAGIC) : len(MAGIC) + DIGEST],
        data[len(MAGIC) + DIGEST :],
    )
    if head != MAGIC or digest != hashlib.sha256(key.encode() + payload).digest():
        return None
    return payload


def store(key: str, payload: bytes) -> None:
    """Keep compiled code for the next process; a cache that cannot be written is not an error."""
    folder = cache_folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(key.encode() + payload).digest() + payload)
            os.replace(name, folder / f"{key}.o")
        except OSError:
            os.unlink(name)
