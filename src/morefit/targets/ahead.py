"""Compiling beside other work: threads that begin before anyone waits for what they compile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from morefit.resources import available_cores

_running: set[threading.Thread] = set()


def compile_ahead(work: Callable[[], object]) -> threading.Thread | None:
    """Start work on a thread, if there is a core for it; its errors are raised by the caller that waits for it and repeats it."""
    if available_cores() == 1:
        return None

    def run() -> None:
        with suppress(Exception):
            work()
        _running.discard(threading.current_thread())

    thread = threading.Thread(target=run, name="morefit compiler")
    _running.add(thread)
    try:
        thread.start()
    except RuntimeError:  # no more threads, as at the end of the interpreter
        _running.discard(thread)
        return None
    return thread


def wait_for_all() -> None:
    """Wait for all such threads, which a child of this process would not have."""
    for thread in tuple(_running):
        if thread is not threading.current_thread():
            thread.join()
