"""Threads that help with compiled work; they start when first needed and survive a fork."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np

from morefit.memory import aligned
from morefit.targets.cpu.compile import find_code, host
from morefit.targets.cpu.memory import Code
from morefit.targets.cpu.threads_ir import LINE, POOL, RESTS, pool_text

PATIENCE = 5e-4  # seconds that a thread waits for work before it sleeps: longer than Python takes between two launches
FIRST_RESTS, FIRST_TIMES = 16 * RESTS, 5  # to find out how long one takes, undisturbed


class Pool:
    """Threads, and the words by which they meet (``targets/cpu/threads_ir.py``)."""

    def __init__(self) -> None:
        self.code = find_code(pool_text(host().machine), ("lead", "serve", "idle"))
        self.words = aligned(len(POOL) * LINE).view(np.int64)
        self.words[:] = 0
        self.address = int(self.words.ctypes.data)
        self.put("patience", FIRST_RESTS)
        each = min(self.idle_seconds() for _ in range(FIRST_TIMES)) / FIRST_RESTS
        self.put("patience", max(int(PATIENCE / max(each, 1e-9)), 1))
        self.put("give_way", give_way())  # not before: others may take as long as they like
        self.bell: SimpleQueue[None] = SimpleQueue()  # wakes one who sleeps
        self.count = 0

    def idle_seconds(self) -> float:
        """Return how long a thread waits in vain."""
        begin = time.perf_counter()
        self.code.functions["idle"](self.address)
        return time.perf_counter() - begin

    def put(self, name: str, word: int) -> None:
        self.words[POOL.index(name) * LINE] = word

    def wake(self, count: int) -> None:
        """Start threads until ``count`` wait for work, including those that are starting."""
        for _ in range(self.count, count):
            threading.Thread(target=serve, args=(self,), name="morefit", daemon=True).start()
            self.count += 1
        awake = int(self.words[POOL.index("awake") * LINE])
        for _ in range(count - awake - self.bell.qsize()):
            self.bell.put(None)


def serve(pool: Pool) -> None:
    """Help whenever the bell rings. This thread keeps the pool: at exit it may still be looking for work."""
    while True:
        pool.bell.get()
        pool.code.functions["serve"](pool.address)


class Workers:
    """The pool of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: Pool | None = None

    def run(self, code: Code, name: str, arguments: Sequence[int]) -> None:
        """Call a compiled function with all arguments at once, one thread per argument, this one included.

        The call with the first argument must be able to do all there is to do: others come if they can. When this
        returns, all who came have left.
        """
        if len(arguments) == 1:
            code.functions[name](arguments[0])
            return
        with self.lock:
            self.pool = self.pool or Pool()
            pool = self.pool
            pool.wake(len(arguments) - 1)
        call = np.array([pool.address, code.addresses[name], len(arguments), *arguments], np.int64)
        pool.code.functions["lead"](int(call.ctypes.data))


WORKERS = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.__init__)  # type: ignore[misc]  # the child has none of our threads


def give_way() -> int:
    """Return the address of the function that lets other threads run, 0 if there is none."""
    try:
        if sys.platform == "win32":
            function = ctypes.windll.kernel32.SwitchToThread
        else:
            function = ctypes.CDLL(None).sched_yield
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    except (AttributeError, OSError):
        return 0
