"""Compiling beside other work: threads that begin before anyone waits for what they compile."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from morefit.resources import available_cores

# seconds after which another thread gets Python's lock, while something is compiled: a compiler needs it after each of its some
# dozen calls, and would wait ten times as long for it each time
SWITCH = 5e-4


class Threads:
    """The threads that compile, and how Python's lock was shared before they began."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[threading.Thread] = set()
        self.interval = sys.getswitchinterval()

    def start(self, thread: threading.Thread) -> None:
        """Start a thread; who sees it among those that run can wait for it."""
        with self.lock:
            if not self.running:
                self.interval = sys.getswitchinterval()
                sys.setswitchinterval(min(self.interval, SWITCH))
            try:
                thread.start()
                self.running.add(thread)
            finally:
                self.restore()

    def remove(self, thread: threading.Thread) -> None:
        with self.lock:
            self.running.discard(thread)
            self.restore()

    def restore(self) -> None:
        """Share Python's lock as before if nothing is compiled."""
        if not self.running:
            sys.setswitchinterval(self.interval)


THREADS = Threads()
if hasattr(os, "register_at_fork"):
    # the child has none of them, and its lock may be one that nobody opens
    os.register_at_fork(after_in_child=THREADS.__init__)  # type: ignore[misc]


def compile_ahead(work: Callable[[], object]) -> threading.Thread | None:
    """Start work on a thread, if there is a core for it; its errors are raised by the caller that waits for it and repeats it."""
    if available_cores() == 1:
        return None

    def run() -> None:
        with suppress(Exception):
            work()
        THREADS.remove(threading.current_thread())

    thread = threading.Thread(target=run, name="morefit compiler")
    try:
        THREADS.start(thread)
    except RuntimeError:  # no more threads, as at the end of the interpreter
        return None
    return thread


def is_ahead() -> bool:
    """Return whether this thread is one of those, for which perhaps nobody waits."""
    with THREADS.lock:  # one that has begun is among them
        return threading.current_thread() in THREADS.running


def wait_for_all() -> None:
    """Wait for all such threads, which a child of this process would not have."""
    with THREADS.lock:
        running = tuple(THREADS.running)
    for thread in running:
        if thread is not threading.current_thread():
            thread.join()
