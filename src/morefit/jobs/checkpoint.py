"""Keep a file up to date while work goes on, without spending much time on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from morefit.errors import BackendError, DataError
from morefit.text.progress import tell

SAVE_SECONDS = 2.0  # the least time between two savings
SAVE_SHARE = 0.05  # the most of all time that they take


class BrokenStudy(BackendError):
    """A study that could not go on, or not write its file; ``finished`` holds what was done, if there is anything."""

    def __init__(self, message: str, finished: Any = None) -> None:
        super().__init__(message)
        self.finished = finished


@dataclass(eq=False)
class Keeper:
    """Knows whether there is something new to write, and when writing is due again."""

    path: Path | None  # None: there is no file to keep
    save: Callable[[Path], None]
    changed: bool = False  # since it was written
    next_write: float = 0.0
    failed: bool = False  # the last time

    def note(self) -> None:
        """Note that there is something new, and write the file if that is due; if that fails, it is tried again later."""
        self.changed = True
        if time.monotonic() < self.next_write:
            return
        try:
            self.write()
        except DataError as error:
            if not self.failed:
                tell(f"{error}; the work goes on, and writing is tried again")
            self.failed = True

    def write(self) -> None:
        """Write what is finished, if there is a file and something new."""
        if self.path is None or not self.changed:
            return
        begin = time.monotonic()
        try:
            self.save(self.path)
            self.changed = self.failed = False
        finally:
            end = time.monotonic()
            self.next_write = end + max(SAVE_SECONDS, (end - begin) / SAVE_SHARE)
