"""A progress bar for long jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Timer
from typing import Any

SECONDS_UNSHOWN = 1.0  # before a bar appears: one for shorter jobs would flicker
NO_TERMINAL = (OSError, ValueError, AttributeError)  # of a stream that is closed, broken or None


def tell(text: str) -> None:
    """Write a line to standard error, which programs without a console do not have."""
    with suppress(*NO_TERMINAL):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def has_terminal() -> bool:
    """Return whether standard error is a terminal."""
    try:
        return bool(sys.stderr.isatty())
    except NO_TERMINAL:
        return False


_lock = Lock()  # of what is visible: alarms come from threads of their own
_visible: list[Bar] = []  # at most one: what a long job compiles has no bar of its own beside the job's


class Bar:
    """A progress bar on a terminal's standard error: it appears after a second and vanishes at the end.

    With a ``unit`` it also shows how many of them are done. None is an unknown total.
    """

    def __init__(self, what: str, total: int | None, shown: bool, *, unit: str = "") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.shown = shown and has_terminal()
        self.begin = time.monotonic()
        self.count = 0
        self.progress: Any = None
        self.alarm: Timer | None = None

    def __enter__(self) -> Bar:
        if self.shown:  # a long step reports nothing meanwhile
            self.alarm = Timer(SECONDS_UNSHOWN, self.show)
            self.alarm.daemon = True
            self.alarm.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        with _lock:
            self.shown = False
            if self.progress is not None:
                if self in _visible:
                    _visible.remove(self)
                with suppress(*NO_TERMINAL):  # the terminal may be gone
                    self.progress.stop()

    def done(self, count: int, what: str | None = None) -> None:
        """Show how many of all are done, and what is being done if that has changed."""
        self.count, self.what = count, what or self.what
        if self.shown and time.monotonic() - self.begin >= SECONDS_UNSHOWN:
            self.show()

    def show(self) -> None:
        """Show the present state, unless another bar is visible."""
        with _lock:
            if not self.shown or (_visible and _visible[0] is not self):
                return
            try:
                if self.progress is None:
                    self.start()
                self.progress.update(0, completed=self.count, description=self.what)
            except NO_TERMINAL:
                self.shown = False

    def start(self) -> None:
        """Show the bar."""
        from rich.console import Console  # slow imports, for long jobs only
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        counted = (MofNCompleteColumn(), self.unit) if self.unit else ()
        known = (*Progress.get_default_columns(), *counted)
        unknown = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        parts = unknown if self.total is None else known
        self.progress = Progress(*parts, console=Console(stderr=True), transient=True)
        self.progress.add_task(self.what, total=self.total)
        self.progress.start()
        _visible.append(self)


class LateBar:
    """A bar for jobs that are nearly always short, of unknown length: it costs next to nothing before a second has passed."""

    def __init__(self, shown: bool) -> None:
        self.shown, self.begin = shown, time.monotonic()
        self.bar: Bar | None = None

    def show(self, what: Callable[[], str]) -> None:
        """Show what has been done, if the job is long."""
        if self.shown and time.monotonic() - self.begin >= SECONDS_UNSHOWN:
            if self.bar is None:
                self.bar = Bar("", None, shown=True)
            self.bar.what = what()
            self.bar.show()

    def __enter__(self) -> LateBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.__exit__()
