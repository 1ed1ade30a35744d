"""Run kernels on the CPU, compiled in this process by LLVM."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.errors import BackendError
from morefit.kernel import Kernel, Precision, Sample, Store, Sum
from morefit.random.xoshiro import BLOCK
from morefit.resources import available_cores
from morefit.targets.base import Buffer, Drawn, Events, WholeFit
from morefit.targets.cpu.abi import ARGUMENTS
from morefit.targets.cpu.compile import find_code, host
from morefit.targets.cpu.fit import run_whole_fits
from morefit.targets.cpu.llvm import Target, render
from morefit.targets.cpu.loop import Block
from morefit.targets.cpu.memory import PADDING, Code, aligned
from morefit.targets.cpu.threads import WORKERS
from morefit.targets.cpu.writer import Vector
from morefit.targets.show import show_source

TILES_FROM = 10  # parameters: as lines of the loop their products are up to twice as slow as in tiles
MAX_THREADS = 4096  # no machine has more cores, and each thread needs memory of its own
WORTH_THREADS = 8e5  # lines times events; below it to meet other threads costs more than it brings


@dataclass(frozen=True, eq=False)
class CpuColumn:
    """A column in memory: aligned, and safe to read a vector past its end."""

    numbers: np.ndarray[Any, Any]  # padded
    count: int

    @classmethod
    def of(cls, column: Array, precision: Precision = Precision.DOUBLE) -> CpuColumn:
        """Copy numbers."""
        kind = np.float64 if precision is Precision.DOUBLE else np.float32
        count = len(column)
        numbers = aligned(count + PADDING, kind)
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            numbers[:count] = column
        # events that are there, so nothing odd can happen to them
        numbers[count:] = column[-1] if count else 1.0
        return cls(numbers, count)

    @property
    def address(self) -> int:
        return int(self.numbers.ctypes.data)

    @property
    def values(self) -> Array:
        return self.numbers[: self.count].astype(np.float64, copy=False)


@dataclass(frozen=True)
class Cpu:
    """The processor: ``threads`` (default: all cores) and vector ``width`` in doubles (default: the widest)."""

    threads: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            rule = "at least 1" if self.threads < 1 else f"at most {MAX_THREADS}"
            raise BackendError(f"backend 'cpu': threads must be {rule}, got {self.threads}")
        if self.width not in (None, 1, 2, 4, 8):
            raise BackendError(f"backend 'cpu': width must be 1, 2, 4 or 8, got {self.width}")

    @property
    def name(self) -> str:
        return "cpu"

    @property
    def label(self) -> str:
        return self.name

    @property
    def tiles_from(self) -> int:
        return TILES_FROM

    def compile(self, kernel: Kernel) -> CpuProgram:
        """Compile a kernel, or find it compiled before by this or another process."""
        target = Target(self.width or host().width, host().machine)
        source = render(kernel, target)
        show_source(source)
        begin = time.perf_counter()
        code = find_code(source, FUNCTIONS[type(kernel.frame)])
        threads = self.threads or available_cores()
        seconds = time.perf_counter() - begin
        return CpuProgram(
            kernel=kernel, source=source, code=code, target=target, threads=threads, compile_seconds=seconds
        )

    def fit_whole(self, job: WholeFit, sizes: Integers, seed: int, first_toy: int) -> Array | None:
        """Draw and fit a toy for each size, every thread on its own."""
        return run_whole_fits(job, sizes, seed, first_toy)

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> CpuColumn:
        """Copy a column to where vectors can read it."""
        return CpuColumn.of(column, precision)


FUNCTIONS = {
    Sum: ("run", "prepare", "work", "combine", "block"),
    Store: ("run", "prepare", "work", "block"),
    Sample: ("run", "prepare", "work", "block"),
}


@dataclass(frozen=True, eq=False)
class CpuProgram:
    """A kernel compiled for this processor."""

    kernel: Kernel
    source: str
    code: Code
    target: Target
    threads: int
    compile_seconds: float

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> CpuLaunch:
        assert all(isinstance(c, CpuColumn) for c in columns)
        return CpuLaunch(self, tuple(columns), events, tuple(steps) or (0,) * len(columns))  # type: ignore[arg-type]

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, one toy each, from random numbers that the seed and its number determine."""
        launch = CpuLaunch(self, (), events, ())
        return Workspace(launch, len(parameters)).draw(parameters, seed, first_toy)

    @cached_property
    def words(self) -> int:
        """How many words each task leaves for ``combine``."""
        lanes = self.target.width * (64 // self.kernel.precision.value)
        return Block(self.kernel, Vector(lanes, self.kernel.precision.value), Vector(lanes)).words


class CpuLaunch:
    """A program bound to columns. Any number of threads may call it at once."""

    def __init__(
        self, program: CpuProgram, columns: tuple[CpuColumn, ...], events: Events, steps: tuple[int, ...]
    ) -> None:
        self.program, self.columns, self.events = program, columns, events
        self.tables = [np.array(table.array) for table in program.kernel.tables]
        pairs = [(c.address, s) for c, s in zip(columns, steps, strict=True)]
        pairs += [(int(table.ctypes.data), 0) for table in self.tables]
        self.table = np.array(pairs, np.int64).reshape(-1)
        self.free: dict[int, list[Workspace]] = {}

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        sets = len(parameters)
        if not sets:
            return np.empty(self.program.kernel.shape(0, self.events.count))
        spare = self.free.setdefault(sets, [])
        try:
            space = spare.pop()
        except IndexError:
            space = Workspace(self, sets)
        out = space.launch(parameters)
        if len(spare) < 4 and space.size < MAX_SPARE:
            spare.append(space)
        if len(self.free) > 8:
            self.free.clear()
        return out

    def store(self) -> tuple[CpuColumn, ...]:
        """Compute the columns of a kernel without parameters."""
        return Workspace(self, 1).store()


MAX_SPARE = 1 << 22  # numbers; larger workspaces are freed after each call


class Workspace:
    """Everything one launch needs besides the program and the columns."""

    def __init__(self, launch: CpuLaunch, sets: int) -> None:
        program, events = launch.program, launch.events
        kernel, width = program.kernel, program.target.width
        assert events.shared or len(events.starts) == sets
        self.code, self.kernel, self.sets = program.code, kernel, sets
        self.summing = isinstance(kernel.frame, Sum)
        self.padded = padded = -(-sets // width) * width
        sizes = events.sizes(sets)
        blocks: Integers = -(-sizes // BLOCK)
        self.first_task = np.zeros(sets + 1, np.int64)
        np.cumsum(blocks, out=self.first_task[1:])
        self.task_set = np.repeat(np.arange(sets, dtype=np.int64), blocks)
        self.tasks = tasks = len(self.task_set)
        self.parameters = np.ones((len(kernel.parameters), padded))
        self.scalars = np.empty((max(len(kernel.per_call.results), 1), padded))
        self.partials = np.empty(
            0 if isinstance(kernel.frame, Store) else tasks * program.words + self.summing * PADDING
        )
        self.counter = np.zeros(1, np.int64)
        self.count = events.count
        self.keep = (launch.columns, launch.table, events)  # not launch, which refers to this workspace
        self.step = -(-events.count // PADDING) * PADDING + PADDING
        total = int(sizes.sum())
        products = kernel.pairs.groups * kernel.pairs.count**2 if kernel.pairs else 0
        effort = total * (8 + len(kernel.per_event.lines) + products)
        self.threads = min(program.threads, tasks) if effort > WORTH_THREADS else 1
        self.grain = max(min(tasks // (self.threads * 16), tasks * BLOCK // max(total, 1)), 1)
        shapes = {
            Sum: (sets, kernel.outputs + 1),
            Store: (sets, kernel.outputs, self.step),
            Sample: (kernel.outputs, self.step),
        }
        shape = shapes[type(kernel.frame)]
        self.out = aligned(math.prod(shape)).reshape(shape)
        self.size = self.partials.size + self.out.size + self.scalars.size
        words = self.arguments(launch)
        self.args = np.array([words[name] for name in ARGUMENTS], np.int64)
        self.address = int(self.args.ctypes.data)

    def arguments(self, launch: CpuLaunch) -> dict[str, int]:
        """Return the argument table of every function of the program."""
        events = launch.events
        return dict.fromkeys(ARGUMENTS, 0) | {
            "parameters": self.parameters.ctypes.data,
            "scalars": self.scalars.ctypes.data,
            "padded": self.padded,
            "sets": self.sets,
            "columns": launch.table.ctypes.data,
            "starts": events.starts.ctypes.data,
            "stops": events.stops.ctypes.data,
            "bounds_step": 0 if events.shared else 1,
            "task_set": self.task_set.ctypes.data,
            "first_task": self.first_task.ctypes.data,
            "tasks": self.tasks,
            "counter": self.counter.ctypes.data,
            "grain": self.grain,
            "partials": self.partials.ctypes.data,
            "out": self.out.ctypes.data,
            "out_step": self.step,
        }

    def launch(self, parameters: Array) -> Array:
        self.run(parameters)
        if self.summing:
            return self.out.copy()
        return self.out[:, :, : self.count].copy()

    # the workspace must not be used again after these: its output is what they return

    def store(self) -> tuple[CpuColumn, ...]:
        """Compute columns without parameters."""
        self.run(np.empty((1, 0)))
        return self.columns(self.out[0])

    def draw(self, parameters: Array, seed: int, first_toy: int) -> Drawn:
        """Draw events."""
        self.args[ARGUMENTS.index("seed")] = np.uint64(seed).astype(np.int64)
        self.args[ARGUMENTS.index("first_toy")] = first_toy
        self.run(parameters)
        above, given_up = self.partials.reshape(-1, 2).sum(axis=0) if len(self.partials) else (0, 0)
        return Drawn(self.columns(self.out), int(above), int(given_up))

    def columns(self, rows: Array) -> tuple[CpuColumn, ...]:
        rows[:, self.count :] = rows[:, self.count - 1 : self.count] if self.count else 1.0
        return tuple(CpuColumn(row, self.count) for row in rows)

    def run(self, parameters: Array) -> None:
        if self.sets == 1:
            self.parameters[:] = parameters.reshape(-1, 1)
        else:
            self.parameters[:, : self.sets] = parameters.T
            self.parameters[:, self.sets :] = parameters[-1][:, None]
        self.counter[0] = 0
        if self.threads == 1:
            self.code.functions["run"](self.address)
        else:
            self.code.functions["prepare"](self.address)
            WORKERS.run(self.code, "work", [self.address] * self.threads)
            if self.summing:
                self.code.functions["combine"](self.address)
