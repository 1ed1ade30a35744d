"""Run whole fits on the CPU: every thread draws, sums and steps on its own, with its events in its own cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from morefit.arrays import Array, Integers
from morefit.random.xoshiro import BLOCK
from morefit.targets.base import Program, WholeFit
from morefit.targets.cpu.abi import ARGUMENTS
from morefit.targets.cpu.compile import find_code
from morefit.targets.cpu.fit_driver import CONTEXT, Driver, copy_text, drive_text
from morefit.targets.cpu.llvm import Target
from morefit.targets.cpu.memory import PADDING, Code, aligned
from morefit.targets.cpu.threads import WORKERS


class Native(Protocol):
    """A program with machine code."""

    @property
    def code(self) -> Code: ...

    @property
    def target(self) -> Target: ...

    @property
    def threads(self) -> int: ...

    @property
    def words(self) -> int: ...


def native(program: Program) -> Native:
    return cast(Native, program)


def run_whole_fits(job: WholeFit, sizes: Integers, seed: int, first_toy: int) -> Array:
    """Draw and fit a toy for each size; return a row for each, laid out as in ``job.layout``."""
    sums = native(job.sums)
    driver = Driver(job.layout, job.floating, sums.target.width, PADDING)
    code = find_code(drive_text(driver), ["drive"])
    results = np.empty((len(sizes), job.layout.width))
    counter = np.zeros(1, np.int64)
    threads = max(min(sums.threads, len(sizes)), 1)
    contexts = take_contexts(job, driver, threads, int(sizes.max(initial=0)))
    for context in contexts:
        context.clean(int(sizes.min(initial=context.cleaned)))
        context.aim(seed, first_toy, counter, sizes, results)
    WORKERS.run(code, "drive", [c.address for c in contexts])
    job.spare.extend(contexts)
    return results


def take_contexts(job: WholeFit, driver: Driver, threads: int, max_events: int) -> list[Context]:
    """Take contexts that are free and large enough, make the rest."""
    contexts: list[Context] = []
    while job.spare and len(contexts) < threads:
        context = job.spare.pop()
        if isinstance(context, Context) and context.max_events >= max_events:
            contexts.append(context)
    return contexts + [Context(job, driver, max_events) for _ in range(threads - len(contexts))]


@dataclass(eq=False)
class Context:
    """What one thread needs: tables for the four kernels, and room for one toy."""

    job: WholeFit
    driver: Driver
    max_events: int

    def __post_init__(self) -> None:
        lanes = self.driver.lanes
        self.keep: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = []
        self.step = -(-self.max_events // PADDING) * PADDING + PADDING
        blocks = -(-self.max_events // BLOCK) or 1
        self.zero, self.count = self.words([0]), self.words([0])
        self.tasks = self.words([0, 0])
        self.events = self.large_room(len(self.job.observables))
        self.derived = self.large_room(max(len(self.job.derived), 1))
        self.cleaned = self.step  # from where on nothing odd is read
        self.report = self.room(2 * blocks)
        self.rows = self.room(len(self.job.layout.rows) * lanes)
        self.start = self.room(len(self.job.layout.rows) * lanes)
        self.start[::lanes] = self.job.start
        self.written = self.room(len(self.job.layout.state) * self.driver.written_step)
        self.parameters = self.room(len(self.job.sums.kernel.parameters) * lanes)
        self.parameters[:] = np.repeat(self.job.parameters, lanes)
        self.outputs = self.room(len(self.job.layout.sums))
        self.partials = self.room(native(self.job.sums).words * blocks + PADDING)
        known = self.made()
        self.context = self.words([known.get(name, 0) for name in CONTEXT])
        self.address = address(self.context)

    def aim(self, seed: int, first_toy: int, counter: Integers, sizes: Integers, results: Array) -> None:
        """Set which toys to fit, and where to leave the results."""
        self.draw_args[ARGUMENTS.index("seed")] = np.uint64(seed).astype(np.int64)
        self.draw_args[ARGUMENTS.index("first_toy")] = first_toy
        for name, array in (("counter", counter), ("sizes", sizes), ("results", results)):
            self.context[CONTEXT.index(name)] = address(array)
        self.context[CONTEXT.index("toys")] = len(sizes)
        self.context[CONTEXT.index("max_steps")] = self.job.max_steps

    def room(self, count: int) -> Array:
        array = aligned(count)
        array[:] = 1.0  # what is read past the end must do no harm
        self.keep.append(array)
        return array

    def large_room(self, columns: int) -> Array:
        """Make room for events; the thread that fills it first has it from the system, all threads at once."""
        array = aligned(columns * self.step)
        self.keep.append(array)
        return array

    def clean(self, smallest: int) -> None:
        """Fill what is read past the end of a toy with harmless numbers; none has fewer events than ``smallest``."""
        if smallest < self.cleaned:
            for array in (self.events, self.derived):
                array.reshape(-1, self.step)[:, smallest : self.cleaned] = 1.0
            self.cleaned = smallest

    def words(self, numbers: Sequence[int]) -> Integers:
        array = np.array(numbers, np.int64)
        self.keep.append(array)
        return array

    def made(self) -> dict[str, int]:
        """Build the tables of the four kernels; return where everything is."""
        job = self.job
        observables = {n: self.events[k * self.step :] for k, n in enumerate(job.observables)}
        derived = {n: self.derived[k * self.step :] for k, n in enumerate(job.derived)}
        rows = {n: self.rows[k * self.driver.lanes :] for k, n in enumerate(job.layout.rows)}
        self.draw_args, draw = self.drawing()
        sums: dict[str, Array | Integers] = {
            "parameters": self.parameters, "partials": self.partials, "out": self.outputs,
            "stops": self.count, "first_task": self.tasks,
        }  # fmt: skip
        return {
            "draw": draw, "draw_args": address(self.draw_args),
            "draw_report": address(self.report),
            **(function("derive", job.derive, "block") if job.derive else {"derive": 0}),
            "derive_args": address(self.table(job.derive, observables, {"out": self.derived})) if job.derive else 0,
            **function("prepare", job.sums, "prepare"), **function("block", job.sums, "block"),
            **function("combine", job.sums, "combine"),
            "sum_args": address(self.table(job.sums, observables | derived, sums)),
            **function("step", job.step, "block"),
            "step_args": address(self.table(job.step, rows, {"out": self.written}, self.driver.written_step)),
            "count": address(self.count), "last_task": address(self.tasks[1:]),
            "parameters": address(self.parameters), "sums": address(self.outputs), "rows": address(self.rows),
            "written": address(self.written), "start": address(self.start),
        }  # fmt: skip

    def drawing(self) -> tuple[Integers, int]:
        """Return the table and the address of what fills the events of a toy: a sampler, or a copy of stored ones."""
        job, goal = self.job, {"out": self.events, "partials": self.report}
        if job.sampler is not None:
            return self.table(job.sampler, {}, goal), function("draw", job.sampler, "block")["draw"]
        code = find_code(copy_text(len(job.events)), ["block"])
        assert job.starts is not None
        pairs = self.words([word for buffer in job.events for word in (address(buffer.values), 0)])
        words = {"columns": address(pairs), "starts": address(job.starts), "out_step": self.step}
        words |= {name: address(array) for name, array in goal.items()}
        return self.words([words.get(name, 0) for name in ARGUMENTS]), code.addresses["block"]

    def table(
        self, program: Program, columns: Mapping[str, Array],
        arrays: Mapping[str, Array | Integers], out_step: int | None = None,
    ) -> Integers:  # fmt: skip
        """Write the table of one kernel, and compute what it needs once."""
        kernel, lanes = program.kernel, self.driver.lanes
        tables = [np.array(t.array) for t in kernel.tables]
        self.keep += tables
        named = [columns[n] for n in kernel.columns] if columns else []
        pairs = self.words([w for array in (*named, *tables) for w in (address(array), 0)])
        scalars = self.room(max(len(kernel.per_call.results), 1) * lanes)
        known = {
            "scalars": address(scalars), "padded": lanes, "sets": 1, "columns": address(pairs),
            "starts": address(self.zero), "out_step": self.step if out_step is None else out_step,
        } | {name: address(array) for name, array in arrays.items()}  # fmt: skip
        words = self.words([known.get(name, 0) for name in ARGUMENTS])
        if not kernel.parameters:
            native(program).code.functions["prepare"](address(words))
        return words


def address(array: Array | Integers) -> int:
    return int(array.ctypes.data)


def function(name: str, program: Program, which: str) -> dict[str, int]:
    code: Code = native(program).code
    return {name: code.addresses[which]}
