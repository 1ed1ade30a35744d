"""The memory of one launch on the CPU: tables of addresses, tasks, scratch and sums in one block, and how it is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.kernel.ir import Sample, Store, Sum
from morefit.random.xoshiro import BLOCK
from morefit.resources import PADDING, aligned
from morefit.targets.base import Drawn, Events
from morefit.targets.cpu.abi import ARGUMENTS, FIRST_TOY, OUT, OUT_STEP, SEED, Arena, signed
from morefit.targets.cpu.columns import CpuColumn
from morefit.targets.cpu.threads import WORKERS

if TYPE_CHECKING:
    from morefit.targets.cpu.run import CpuLaunch

WORTH_THREADS = 8e5  # lines times events; below it to meet other threads costs more than it brings


def tasks_of(sizes: Integers, sets: int) -> tuple[Sequence[int] | Integers, int | Integers, int]:
    """Return the first task of each set and their number after it, the set of each task, and the number of events."""
    if sets == 1:  # the usual case: one fit at a time
        total = int(sizes[0])
        return (0, -(-total // BLOCK)), 0, total
    blocks: Integers = -(-sizes // BLOCK)
    first = np.zeros(sets + 1, np.int64)
    np.cumsum(blocks, out=first[1:])
    return first, np.repeat(np.arange(sets, dtype=np.int64), blocks), int(sizes.sum())


def step_of(count: int) -> int:
    """Return how far the columns of some events are apart, so that vectors can read past the end of each."""
    return -(-count // PADDING) * PADDING + PADDING


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
        arena.part("starts")[:] = events.starts
        arena.part("stops")[:] = events.stops
        arena.part("first_task")[:] = first_task
        arena.part("task_set")[:] = task_set
        self.parameters = arena.part("parameters").view(np.float64).reshape(-1, padded)
        self.partials = arena.part("partials").view(np.float64)
        self.aim(launch)
        self.step = step_of(self.count)
        self.threads = min(program.threads, tasks) if total * program.effort > WORTH_THREADS else 1
        self.grain = max(min(tasks // (self.threads * 16), tasks * BLOCK // max(total, 1)), 1)
        # each draw has room of its own
        self.out = np.empty(0) if isinstance(kernel.frame, Sample) else self.make_output()
        self.size = self.arena.words.size + self.out.size
        self.args = arena.part("arguments")
        words = self.arguments(events.shared)
        self.args[:] = [words.get(name, 0) for name in ARGUMENTS]
        self.address = arena.address("arguments")

    def aim(self, launch: CpuLaunch) -> None:
        """Read these columns, of as many events."""
        self.arena.part("columns")[:] = launch.table
        # not launch, which may have this workspace
        self.keep: tuple[object, ...] = (launch.columns, launch.tables)

    def make_output(self) -> Array:
        """Make room for what comes out: sums are copied from it, events stay there, padded for whole vectors."""
        if self.summing:
            return self.arena.part("sums").view(np.float64).reshape(self.sets, -1)
        rows = (self.kernel.outputs, self.step)
        shape = rows if isinstance(self.kernel.frame, Sample) else (self.sets, *rows)
        return aligned(math.prod(shape)).reshape(shape)

    def arguments(self, shared: bool) -> dict[str, int]:
        """Return the argument table of every function of the program; what is left out is zero."""
        place = self.arena.address
        return {
            "parameters": place("parameters"),
            "scalars": place("scalars"),
            "padded": self.padded,
            "sets": self.sets,
            "columns": place("columns"),
            "starts": place("starts"),
            "stops": place("stops"),
            "bounds_step": 0 if shared else 1,
            "task_set": place("task_set"),
            "first_task": place("first_task"),
            "tasks": self.tasks,
            "counter": place("counter") + 8 * PADDING,
            "grain": self.grain,
            "partials": place("partials"),
            "out": place("sums") if self.summing else address(self.out),
            "out_step": self.step,
        }

    def launch(self, parameters: Array) -> Array:
        self.run(parameters)
        if self.summing:
            return self.out.copy()
        return self.out[:, :, : self.count].copy()

    def store(self) -> tuple[CpuColumn, ...]:
        """Compute columns without parameters; the workspace must not be used again, as its output is what this returns."""
        self.run(np.empty((1, 0)))
        return self.columns(self.out[0])

    def serves(self, events: Events) -> bool:
        """Return whether there is room to draw other events: those of one set, in as many tasks."""
        return self.sets == len(events.stops) == 1 and self.tasks == -(-events.count // BLOCK)

    def draw(self, events: Events, parameters: Array, seed: int, first_toy: int) -> Drawn:
        """Draw events, as many as those that the workspace was made for or others that it serves."""
        if events.count != self.count:
            self.count, self.step = events.count, step_of(events.count)
            self.arena.part("stops")[:] = events.stops
        out = self.make_output()
        args = self.args
        args[OUT], args[OUT_STEP] = address(out), self.step
        args[SEED], args[FIRST_TOY] = signed(seed), first_toy
        self.run(parameters)
        failures = self.partials.reshape(-1, 2).sum(axis=0) if np.count_nonzero(self.partials) else (0, 0)
        return Drawn(self.columns(out), *map(int, failures))

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
