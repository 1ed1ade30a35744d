"""Machine code that is compiled beside other work: LLVM needs no lock of Python, which goes on to the next kernel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from morefit.resources import available_cores
from morefit.targets.cpu.memory import Code
from morefit.text.progress import Bar

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


class Pending:
    """Machine code that a thread may be compiling."""

    def __init__(self, find: Callable[[], Code], *, ahead: bool) -> None:
        self.find = find
        self.code: Code | None = None
        self.seconds = 0.0
        self.thread = compile_ahead(self.compile) if ahead else None

    def compile(self) -> Code:
        """Compile now."""
        begin = time.thread_time()  # without what others compile before it
        self.code = self.find()
        self.seconds = time.thread_time() - begin
        return self.code

    def wait(self) -> Code:
        """Return the code as soon as it is there; a child of a process does without the threads of its parent."""
        if self.code is None and self.thread is not None:
            self.thread.join()
        return self.compile() if self.code is None else self.code

    def wait_visibly(self) -> Code:
        """Return the code, with a progress bar if that takes long."""
        if self.code is not None:
            return self.code
        with Bar("compiling: machine code", 1, shown=True):
            return self.wait()
