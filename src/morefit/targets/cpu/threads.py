"""Threads that help with compiled work, and how they meet, as LLVM IR: no lock, and nothing of Python while work is to be had.

``lead`` opens a job, works on it, closes it and waits for those who came to help. ``serve`` waits for jobs and helps;
after some time without one it returns, and its thread may sleep. Whoever helps has taken a seat, which says what it
works on. A helper first counts itself in, then looks whether the job is still open; the leader first closes the job,
then looks who is in: so none can come in unseen. If another thread leads already, a leader works alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np

from morefit.arrays import address
from morefit.resources import aligned
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.compile import find_code, host

LINE = 8  # words between two of these: no thread waits for a cache line because of its neighbour
POOL = (
    "number",  # of the job; odd while it is open
    "inside",  # how many help
    "seats",  # that are left
    "awake",  # how many serve
    "busy",  # whether a thread leads
    "function",  # to be called with ...
    "arguments",  # ... the argument of a seat
    "patience",  # how many rests without a job before a helper leaves
    "give_way",  # a function that lets other threads run, or 0
)
CALL = ("pool", "function", "count")  # the words of a leader's table; the arguments follow
RESTS = 64  # between two times of giving way

PAUSE = {
    "x86": ("declare void @llvm.x86.sse2.pause()", "  call void @llvm.x86.sse2.pause()"),
    "arm": ("declare void @llvm.aarch64.hint(i32)", "  call void @llvm.aarch64.hint(i32 1)"),
    "other": ("", ""),
}


def place(name: str, register: str) -> str:
    return f"  {register} = getelementptr i64, ptr %pool, i64 {POOL.index(name) * LINE}"


def pool_text(machine: str) -> str:
    """Write the functions for a kind of processor."""
    declare, pause = PAUSE[machine]
    return "\n".join([declare, *rest_lines(pause), *idle_lines(), *lead_lines(), *serve_lines()])


def rest_lines(pause: str) -> list[str]:
    """Wait a little; the count says when to let others run."""
    return [
        "define void @rest(ptr %pool, i64 %count) {", "entry:", pause,
        f"  %turn = and i64 %count, {RESTS - 1}",
        f"  %due = icmp eq i64 %turn, {RESTS - 1}",
        "  br i1 %due, label %ask, label %done",
        "ask:", place("give_way", "%p"), "  %give_way = load ptr, ptr %p",
        "  %able = icmp ne ptr %give_way, null",
        "  br i1 %able, label %give, label %done",
        "give:", "  call i32 %give_way()", "  br label %done",
        "done:", "  ret void", "}",
    ]  # fmt: skip


def idle_lines() -> list[str]:
    """Rest as often as a helper without a job."""
    return [
        "define void @idle(ptr %pool) {", "entry:",
        place("patience", "%p"), "  %patience = load i64, ptr %p", "  br label %again",
        "again:", "  %k = phi i64 [ 0, %entry ], [ %next, %again ]",
        "  call void @rest(ptr %pool, i64 %k)",
        "  %next = add i64 %k, 1", "  %more = icmp slt i64 %next, %patience",
        "  br i1 %more, label %again, label %done",
        "done:", "  ret void", "}",
    ]  # fmt: skip


def lead_lines() -> list[str]:
    """Open a job, work on it, close it, and wait for those who help."""
    return [
        "define void @lead(ptr %call) {", "entry:",
        "  %pool = load ptr, ptr %call",
        f"  %pc = getelementptr i64, ptr %call, i64 {CALL.index('function')}", "  %function = load ptr, ptr %pc",
        f"  %pn = getelementptr i64, ptr %call, i64 {CALL.index('count')}", "  %count = load i64, ptr %pn",
        f"  %arguments = getelementptr i64, ptr %call, i64 {len(CALL)}", "  %own = load ptr, ptr %arguments",
        place("busy", "%busy"), place("number", "%number"), place("inside", "%inside"),
        "  %claim = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst", "  %mine = extractvalue { i64, i1 } %claim, 1",
        "  br i1 %mine, label %open, label %alone",
        "alone:", "  call void %function(ptr %own)", "  ret void",
        "open:",
        place("function", "%pf"), "  store ptr %function, ptr %pf",
        place("arguments", "%pa"), "  store ptr %arguments, ptr %pa",
        place("seats", "%ps"), "  %seats = sub i64 %count, 1", "  store atomic i64 %seats, ptr %ps seq_cst, align 8",
        "  %opened = atomicrmw add ptr %number, i64 1 seq_cst",
        "  call void %function(ptr %own)",
        "  %closed = atomicrmw add ptr %number, i64 1 seq_cst",
        "  br label %wait",
        "wait:", "  %k = phi i64 [ 0, %open ], [ %next, %longer ]",
        "  %others = load atomic i64, ptr %inside seq_cst, align 8",
        "  %none = icmp eq i64 %others, 0",
        "  br i1 %none, label %done, label %longer",
        "longer:", "  call void @rest(ptr %pool, i64 %k)", "  %next = add i64 %k, 1", "  br label %wait",
        "done:", "  store atomic i64 0, ptr %busy seq_cst, align 8", "  ret void", "}",
    ]  # fmt: skip


def serve_lines() -> list[str]:
    """Help with jobs, until there was none for some time."""
    return [
        "define void @serve(ptr %pool) {", "entry:",
        place("awake", "%awake"), place("number", "%number"), place("inside", "%inside"), place("seats", "%seats"),
        place("function", "%pf"), place("arguments", "%pa"),
        place("patience", "%pp"), "  %patience = load i64, ptr %pp",
        "  %came = atomicrmw add ptr %awake, i64 1 seq_cst",
        "  br label %look",
        "look:",
        "  %last = phi i64 [ 0, %entry ], [ %last, %pass ], [ %job, %out ]",
        "  %k = phi i64 [ 0, %entry ], [ %next, %pass ], [ 0, %out ]",
        "  %job = load atomic i64, ptr %number seq_cst, align 8",
        "  %odd = and i64 %job, 1", "  %open = icmp eq i64 %odd, 1", "  %other = icmp ne i64 %job, %last",
        "  %fresh = and i1 %open, %other",
        "  br i1 %fresh, label %enter, label %idle",
        "idle:", "  %next = add i64 %k, 1", "  %more = icmp slt i64 %next, %patience",
        "  br i1 %more, label %pass, label %leave",
        "pass:", "  call void @rest(ptr %pool, i64 %k)", "  br label %look",
        "enter:",
        "  %before = atomicrmw add ptr %inside, i64 1 seq_cst",
        "  %now = load atomic i64, ptr %number seq_cst, align 8",
        "  %still = icmp eq i64 %now, %job",
        "  br i1 %still, label %sit, label %out",
        "sit:",
        "  %seat = atomicrmw sub ptr %seats, i64 1 seq_cst",
        "  %free = icmp sgt i64 %seat, 0",
        "  br i1 %free, label %help, label %out",
        "help:",
        "  %function = load ptr, ptr %pf", "  %arguments = load ptr, ptr %pa",
        "  %pg = getelementptr i64, ptr %arguments, i64 %seat", "  %argument = load ptr, ptr %pg",
        "  call void %function(ptr %argument)",
        "  br label %out",
        "out:",
        "  %after = atomicrmw sub ptr %inside, i64 1 seq_cst",
        "  br label %look",
        "leave:",
        "  %left = atomicrmw sub ptr %awake, i64 1 seq_cst",
        "  ret void", "}",
    ]  # fmt: skip


PATIENCE = 5e-4  # seconds that a thread waits for work before it sleeps: longer than Python takes between two launches
FIRST_RESTS, FIRST_TIMES = 16 * RESTS, 5  # to find out how long one takes, undisturbed


class Pool:
    """Threads, and the words by which they meet (``targets/cpu/threads.py``)."""

    def __init__(self) -> None:
        self.code = find_code(pool_text(host().machine), ("lead", "serve", "idle"))
        self.words = aligned(len(POOL) * LINE).view(np.int64)
        self.words[:] = 0
        self.address = address(self.words)
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
        pool.code.functions["lead"](address(call))


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
