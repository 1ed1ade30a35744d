"""Run kernels on the CPU, compiled in this process by LLVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from morefit.arrays import Array, address
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import MAX_SHIFTS, FitLayout
from morefit.kernel.ir import Kernel, Precision, Sample, Store, Sum
from morefit.kernel.program import Driver
from morefit.resources import available_cores
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
from morefit.targets.cpu.abi import (
    Code,
    Target,
    block_words,
)
from morefit.targets.cpu.columns import CpuColumn, ScatteredColumn
from morefit.targets.cpu.compile import Pending, expect_text, find_written, host, is_compiled
from morefit.targets.cpu.workspace import Workspace
from morefit.text.arguments import constructor_in_sentences

# parameters: as lines of the loop their products are slower than in tiles, those of 10 up to twice
TILES_FROM = 8
MAX_THREADS = 4096  # no machine has more cores, and each thread needs memory of its own


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

    def max_shifts(self, parameters: int) -> int:
        """Return a number that is nearly always enough: eigenvalues take as long as ten factorisations."""
        return MAX_SHIFTS

    def expect_kernels(self) -> None:
        """Do nothing: threads of this process compile."""

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
            expect_text()
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

        job.spare.extend(take_contexts(job, 1, toys.largest))

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
    spare: list[Workspace] = field(default_factory=list)  # of the last draw
    # of sums over all events of a dataset, by the numbers of sets and of events: fits of a model take them over
    spaces: dict[tuple[int, int], list[Workspace]] = field(default_factory=dict)

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
        try:
            space = self.spare.pop()
        except IndexError:
            space = None
        if space is None or not space.serves(events):
            space = Workspace(CpuLaunch(self, (), events, ()), len(parameters))
        drawn = space.draw(events, parameters, seed, first_toy)
        if space.sets == 1:  # the usual case
            self.spare[:] = [space]
        return drawn

    @cached_property
    def words(self) -> int:
        """How many words each task leaves for ``combine``."""
        return block_words(self.kernel)

    @cached_property
    def tables(self) -> tuple[list[Array], list[int]]:
        """The tables that the kernel reads, and the words that say where they are."""
        arrays = [table.array for table in self.kernel.tables]
        return arrays, [word for array in arrays for word in (address(array), 0)]

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
        self.free: dict[tuple[int, int], list[Workspace]] = {}
        sums = isinstance(program.kernel.frame, Sum)
        self.is_small = sums and events.shared and not events.starts[0] and events.count <= MAX_TAKEN_OVER

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        sets = len(parameters)
        if not sets:
            return np.empty(self.program.kernel.shape(0, self.events.count))
        spaces = self.program.spaces if self.is_small else self.free
        spare = spaces.setdefault((sets, self.events.count), [])
        try:
            space = spare.pop()
        except IndexError:
            space = Workspace(self, sets)
        if self.is_small:
            space.aim(self)
        out = space.launch(parameters)
        if self.is_small:
            space.keep = ()
        if len(spare) < 4 and space.size < MAX_SPARE:
            spare.append(space)
        if len(spaces) > 8:
            spaces.clear()
        return out

    def store(self) -> tuple[CpuColumn, ...]:
        """Compute the columns of a kernel without parameters."""
        return Workspace(self, 1).store()


MAX_SPARE = 1 << 22  # numbers; larger workspaces are freed after each call
MAX_TAKEN_OVER = 20_000  # events; of more, a workspace takes less time to make than the sums
