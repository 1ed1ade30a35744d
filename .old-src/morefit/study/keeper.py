"""Keep a file up to date while work goes on, without spending much time on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SAVE_SECONDS = 2.0  # the least time between two savings
SAVE_SHARE = 0.05  # the most of all time that they take


@dataclass(eq=False)
class Keeper:
    """Knows whether there is something new to write, and when writing is due again."""

    path: Path | None  # None: there is no file to keep
    save: Callable[[Path], None]
    changed: bool = False  # since it was written
    next_write: float = 0.0

    def note(self) -> None:
        """Note that there is something new, and write the file if that is due."""
        self.changed = True
        if time.monotonic() >= self.next_write:
            self.write()

    def write(self) -> None:
        """Write what is finished, if there is a file and something new."""
        if self.path is None or not self.changed:
            return
        begin = time.monotonic()
        self.save(self.path)
        self.changed = False
        end = time.monotonic()
        self.next_write = end + max(SAVE_SECONDS, (end - begin) / SAVE_SHARE)
