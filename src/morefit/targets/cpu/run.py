"""Run kernels on the CPU, compiled in this process by LLVM."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.ir import Kernel, Precision, Sample, Store, Sum
from morefit.kernel.program import Driver
from morefit.random.xoshiro import BLOCK
from morefit.resources import PADDING, aligned, available_cores
from morefit.targets.base import (
    Buffer,
    Drawn,
    Events,
    Pieces,
    ToyBatch,
    WholeFit,
    check_whole_numbers,
    show_source,
    shows_source,
)
from morefit.targets.cpu.abi import ARGUMENTS, FIRST_TOY, SEED, Arena, Code, Target, block_words, signed
from morefit.targets.cpu.columns import CpuColumn, ScatteredColumn
from morefit.targets.cpu.compile import Pending, find_written, host, is_compiled
from morefit.targets.cpu.threads import WORKERS
from morefit.text.arguments import constructor_in_sentences

TILES_FROM = 10  # parameters: as lines of the loop their products are up to twice as slow as in tiles
MAX_THREADS = 4096  # no machine has more cores, and each thread needs memory of its own
WORTH_THREADS = 8e5  # lines times events; below it to meet other threads costs more than it brings


@constructor_in_sentences
@dataclass(frozen=True)
class Cpu:
    """The processor: ``threads`` (default: all cores) and vector ``width`` in doubles (default: the widest).

    Example: ``mf.fit(model, data, backend=mf.Cpu(threads=1))``
    """

    name: ClassVar[str] = "cpu"
    label: ClassVar[str] = name
    tiles_from: ClassVar[int] = TILES_FROM
    toys_together: ClassVar[int] = 1
    draws_measured: ClassVar[bool] = False  # NumPy needs a hundredth of the time of a fit
    scales_sums: ClassVar[bool] = True
    sent_together: ClassVar[int | None] = None
    threads: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        check_whole_numbers(self, "cpu", ("threads", "width"))
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            rule = "at least 1" if self.threads < 1 else f"at most {MAX_THREADS}"
            raise BackendError(f"backend 'cpu': threads must be {rule}, got {self.threads}")
        if self.width not in (None, 1, 2, 4, 8):
            raise BackendError(f"backend 'cpu': width must be 1, 2, 4 or 8, got {self.width}")
        host()  # imports LLVM if no process has asked it for this processor, before a model waits for it

    def compile(self, kernel: Kernel, identity: str | None = None) -> CpuProgram:
        """Compile a kernel, or find it compiled before by this or another process; its text is written only if it is needed."""
        target = Target(self.width or host().width, host().machine)

        @cache
        def written() -> str:
            from morefit.targets.cpu.llvm import render  # slow, and code that is known needs no text

            return render(kernel, target)

        if shows_source():
            show_source(written())
        parts = (written(),) if identity is None else (identity, repr(target))
        if not (compiled := is_compiled(*parts)):
            written()  # here, since others wait while machine code is made
        names, threads = FUNCTIONS[type(kernel.frame)], self.threads or available_cores()
        pending = Pending(lambda: find_written(parts, written, names), ahead=not compiled)
        return CpuProgram(kernel=kernel, written=written, pending=pending, target=target, threads=threads)

    def expect_fits(self, driver: Driver, layout: FitLayout, toys: int = 1) -> bool:
        """Begin to compile the driver of whole fits, which does not depend on the model."""
        from morefit.targets.cpu.fit_driver import expect_driver

        expect_driver(driver, layout)
        return False

    def sum_counts(self, table: CountsTable, points: Array) -> Array:
        """Sum over the bins of a model of counts at many points."""
        from morefit.targets.cpu.counts import run_counts

        return run_counts(table, points, self.threads or available_cores())

    def prepare_fits(self, job: WholeFit, toys: ToyBatch) -> None:
        """Wait for machine code."""
        from morefit.targets.cpu.fit import take_contexts

        job.spare.extend(take_contexts(job, 1, toys.sizes.max(axis=0, initial=0)))

    def fit_whole(self, job: WholeFit, toys: ToyBatch, width: int) -> Array | None:
        """Draw and fit toys, every thread on its own."""
        from morefit.targets.cpu.fit import run_whole_fits

        if toys.offsets is not None:  # few of many
            return np.concatenate([run_whole_fits(job, one, width, 1) for one in toys.each()])
        return run_whole_fits(job, toys, width, 1 if len(toys) == 1 else self.threads or available_cores())

    def fit_whole_together(self, fits: Sequence[tuple[WholeFit, ToyBatch]], width: int) -> list[Array | None]:
        """Draw and fit the toys of several jobs, one after the other."""
        return [self.fit_whole(job, toys, width) for job, toys in fits]

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> CpuColumn:
        """Copy a column to where vectors can read it."""
        return CpuColumn.of(column, precision)

    def upload_pieces(self, pieces: Pieces) -> ScatteredColumn:
        """Leave pieces where they are."""
        return ScatteredColumn(pieces)


FUNCTIONS = {
    Sum: ("run", "prepare", "work", "combine", "block"),
    Store: ("run", "prepare", "work", "block"),
    Sample: ("run", "prepare", "work", "block"),
}


@dataclass(frozen=True, eq=False)
class CpuProgram:
    """A kernel that is, or is being, compiled for this processor."""

    kernel: Kernel
    written: Callable[[], str]  # its text
    pending: Pending
    target: Target
    threads: int

    @property
    def source(self) -> str:
        return self.written()

    @property  # a cached one has a lock in older Pythons, which a child of this process could not open
    def code(self) -> Code:
        return self.pending.wait_visibly()

    @property
    def compile_seconds(self) -> float:
        self.pending.wait()
        return self.pending.seconds

    def expect(self, events: Events | None) -> None:
        """Do nothing: it has begun."""

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
        return block_words(self.kernel)

    @cached_property
    def tables(self) -> tuple[list[Array], list[int]]:
        """The tables that the kernel reads, and the words that say where they are."""
        arrays = [table.array for table in self.kernel.tables]
        return arrays, [word for array in arrays for word in (int(array.ctypes.data), 0)]

    @cached_property
    def effort(self) -> int:
        """How many operations an event takes, about."""
        pairs = self.kernel.pairs
        return 8 + self.kernel.per_event.effort + (pairs.groups * pairs.count**2 if pairs else 0)


class CpuLaunch:
    """A program bound to columns. Any number of threads may call it at once."""

    def __init__(
        self, program: CpuProgram, columns: tuple[CpuColumn, ...], events: Events, steps: tuple[int, ...]
    ) -> None:
        self.program, self.columns, self.events = program, columns, events
        self.tables, words = program.tables
        self.table = [word for c, s in zip(columns, steps, strict=True) for word in (c.address, s)] + words
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


def tasks_of(sizes: Integers, sets: int) -> tuple[Sequence[int] | Integers, int | Integers, int]:
    """Return the first task of each set and their number after it, the set of each task, and the number of events."""
    if sets == 1:  # the usual case: one fit at a time
        total = int(sizes[0])
        return (0, -(-total // BLOCK)), 0, total
    blocks: Integers = -(-sizes // BLOCK)
    first = np.zeros(sets + 1, np.int64)
    np.cumsum(blocks, out=first[1:])
    return first, np.repeat(np.arange(sets, dtype=np.int64), blocks), int(sizes.sum())


class Workspace:
    """Everything one launch needs besides the program and the columns: all small arrays in one block of memory."""

    def __init__(self, launch: CpuLaunch, sets: int) -> None:
        program, events = launch.program, launch.events
        kernel, width = program.kernel, program.target.width
        assert events.shared or len(events.starts) == sets
        self.code, self.kernel, self.sets, self.count = program.code, kernel, sets, events.count
        self.summing = isinstance(kernel.frame, Sum)
        self.padded = padded = -(-sets // width) * width
        first_task, task_set, total = tasks_of(events.sizes(sets), sets)
        self.tasks = tasks = int(first_task[-1])
        partials = 0 if isinstance(kernel.frame, Store) else tasks * program.words + self.summing * PADDING
        self.arena = arena = Arena(
            counter=2 * PADDING,  # of one word, which all threads write: nothing else is near it
            arguments=len(ARGUMENTS), columns=len(launch.table), starts=len(events.starts), stops=len(events.stops),
            first_task=sets + 1, task_set=tasks, parameters=len(kernel.parameters) * padded,
            scalars=max(len(kernel.per_call.results), 1) * padded, partials=partials,
            sums=sets * (kernel.outputs + 1) if self.summing else 0,
        )  # fmt: skip
        arena.part("columns")[:] = launch.table
        arena.part("starts")[:] = events.starts
        arena.part("stops")[:] = events.stops
        arena.part("first_task")[:] = first_task
        arena.part("task_set")[:] = task_set
        self.parameters = arena.part("parameters").view(np.float64).reshape(-1, padded)
        self.partials = arena.part("partials").view(np.float64)
        self.keep = (launch.columns, launch.tables)  # not launch, which refers to this workspace
        self.step = -(-self.count // PADDING) * PADDING + PADDING
        self.threads = min(program.threads, tasks) if total * program.effort > WORTH_THREADS else 1
        self.grain = max(min(tasks // (self.threads * 16), tasks * BLOCK // max(total, 1)), 1)
        self.out = self.make_output()
        self.size = self.arena.words.size + self.out.size
        self.args = arena.part("arguments")
        words = self.arguments(events.shared)
        self.args[:] = [words.get(name, 0) for name in ARGUMENTS]
        self.address = arena.address("arguments")

    def make_output(self) -> Array:
        """Make room for what comes out: sums are copied from it, events stay there, padded for whole vectors."""
        if self.summing:
            return self.arena.part("sums").view(np.float64).reshape(self.sets, -1)
        rows = (self.kernel.outputs, self.step)
        shape = rows if isinstance(self.kernel.frame, Sample) else (self.sets, *rows)
        return aligned(math.prod(shape)).reshape(shape)

    def arguments(self, shared: bool) -> dict[str, int]:
        """Return the argument table of every function of the program; what is left out is zero."""
        address = self.arena.address
        return {
            "parameters": address("parameters"),
            "scalars": address("scalars"),
            "padded": self.padded,
            "sets": self.sets,
            "columns": address("columns"),
            "starts": address("starts"),
            "stops": address("stops"),
            "bounds_step": 0 if shared else 1,
            "task_set": address("task_set"),
            "first_task": address("first_task"),
            "tasks": self.tasks,
            "counter": address("counter") + 8 * PADDING,
            "grain": self.grain,
            "partials": address("partials"),
            "out": address("sums") if self.summing else self.out.ctypes.data,
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
        self.args[SEED] = signed(seed)
        self.args[FIRST_TOY] = first_toy
        self.run(parameters)
        failures = self.partials.reshape(-1, 2).sum(axis=0) if self.partials.any() else (0, 0)
        return Drawn(self.columns(self.out), *map(int, failures))

    def columns(self, rows: Array) -> tuple[CpuColumn, ...]:
        rows[:, self.count :] = rows[:, self.count - 1 : self.count] if self.count else 1.0
        return tuple(CpuColumn(row[: self.count]) for row in rows)

    def run(self, parameters: Array) -> None:
        if self.sets == 1:
            self.parameters[:] = parameters.reshape(-1, 1)
        else:
            self.parameters[:, : self.sets] = parameters.T
            self.parameters[:, self.sets :] = parameters[-1][:, None]
        self.arena.words[PADDING] = 0  # the counter
        if self.threads == 1:
            self.code.functions["run"](self.address)
        else:
            self.code.functions["prepare"](self.address)
            WORKERS.run(self.code, "work", [self.address] * self.threads)
            if self.summing:
                self.code.functions["combine"](self.address)
