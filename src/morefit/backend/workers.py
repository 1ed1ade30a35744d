"""Threads that wait for compiled code to run; they start when first needed and survive a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

# what to call, with which argument, where to say that it is done, and who owns the memory it works on: an
# interrupt may take the caller away while others still write there
Job = tuple[Callable[[int], None], int, "SimpleQueue[None]", object]


class Workers:
    """A set of threads that grows to what was asked for."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.lock = threading.Lock()
        self.count = 0

    def run(self, function: Callable[[int], None], arguments: Sequence[int], owner: object) -> None:
        """Call a function that releases the GIL with each argument at once, a thread each, this one included."""
        self.grow(len(arguments) - 1)
        done: SimpleQueue[None] = SimpleQueue()
        for argument in arguments[1:]:
            self.jobs.put((function, argument, done, owner))
        try:
            function(arguments[0])
        finally:
            for _ in arguments[1:]:
                done.get()

    def grow(self, count: int) -> None:
        with self.lock:
            for _ in range(self.count, count):
                threading.Thread(target=serve, args=(self.jobs,), name="morefit", daemon=True).start()
                self.count += 1


def serve(jobs: SimpleQueue[Job]) -> None:
    while True:
        do(jobs.get())


def do(job: Job) -> None:
    """Do one job; nothing of it stays alive while the thread waits for the next."""
    function, argument, done, _ = job
    try:
        function(argument)
    finally:
        done.put(None)


WORKERS = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.__init__)  # type: ignore[misc]  # the child has none of our threads


def available_cores() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
