"""Run whole fits on the CPU: every thread draws, sums and steps on its own, with its events in its own cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import ge
from typing import Protocol

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.kernel.rows_layout import RowsTable
from morefit.random.xoshiro import BLOCK
from morefit.resources import PADDING, aligned
from morefit.targets.base import (
    CountsPart,
    Program,
    ToyBatch,
    WholeFit,
    WholeIntegral,
    WholePart,
)
from morefit.targets.cpu import fit_stages as stages
from morefit.targets.cpu.abi import ARGUMENTS, FIRST_TOY, SEED, signed
from morefit.targets.cpu.compile import find_code
from morefit.targets.cpu.fit_driver import copy_text, driver_code
from morefit.targets.cpu.fit_memory import (
    Memory,
    function,
    native,
    rows_words,
    set_toys,
    stored_words,
)
from morefit.targets.cpu.threads import WORKERS


def run_whole_fits(job: WholeFit, toys: ToyBatch, width: int, threads: int) -> Array:
    """Draw and fit toys; return the first numbers of the record of each."""
    results = np.empty((len(toys), width))
    contexts = take_contexts(job, max(min(threads, len(toys)), 1), toys.largest)
    counter = contexts[0].counter
    counter[0] = 0
    for context in contexts:
        context.aim(toys, address(counter), results)
    WORKERS.run(contexts[0].code, "drive", [c.address for c in contexts])
    job.spare.extend(contexts)
    return results


def take_contexts(job: WholeFit, threads: int, max_events: Sequence[int]) -> list[Context]:
    """Take contexts that are free and large enough, make the rest."""
    contexts: list[Context] = []
    while job.spare and len(contexts) < threads:
        context = job.spare.pop()
        if isinstance(context, Context) and all(map(ge, context.max_events, max_events)):
            contexts.append(context)
    return contexts + [Context(job, max_events) for _ in range(threads - len(contexts))]


class Context:
    """What one thread needs: tables for all kernels, and room for one toy of so many events in each part."""

    def __init__(self, job: WholeFit, max_events: Sequence[int]) -> None:
        # the job refers to this, which must not refer to it: its memory would be kept until the next garbage collection
        memory, layout = Memory(), job.layout
        self.max_events = max_events
        self.memory, self.code = memory, driver_code(job.driver, layout)
        self.parts = [
            part_context(part, events, memory) for part, events in zip(job.parts, max_events, strict=True)
        ]
        # squared scores follow the parts
        tables = [part.words for part in self.parts] + [w for part in self.parts for w in part.score_words]
        self.context = memory.words([0] * (stages.FIRST_PART + len(tables)))
        self.context[stages.RECORD] = address(memory.room(layout.size))
        self.context[stages.RECORD_SIZE] = layout.size
        self.context[stages.PARTS] = len(self.parts)
        self.context[stages.FIRST_PART :] = list(map(address, tables))
        self.address = address(self.context)
        self.counter = memory.words([0])
        self.record: Array | None = None

    def aim(self, toys: ToyBatch, counter: int, results: Array) -> None:
        """Set which toys to fit, where their counter is, and where to leave the results."""
        self.context[stages.COUNTER] = counter
        self.context[stages.TOYS] = len(toys)
        self.context[stages.RESULTS] = address(results)
        self.context[stages.WIDTH] = results.shape[1]
        if toys.record is not self.record:  # fits of a model have the same
            self.record = toys.record
            self.context[stages.FIRST_RECORD] = address(toys.record)
        for k, part in enumerate(self.parts):
            part.aim(toys, k)


class AnyPart(Protocol):
    """The tables of any part of a likelihood."""

    words: Integers
    score_words: list[Integers]

    def aim(self, toys: ToyBatch, k: int) -> None: ...


def part_context(part: WholePart | CountsPart, max_events: int, memory: Memory) -> AnyPart:
    """Return the tables of a part, and room for one toy."""
    if isinstance(part, CountsPart):
        from morefit.targets.cpu.fit_counts import CountsContext  # only models of counts need it

        return CountsContext(part, max_events, memory)
    return PartContext(part, max_events, memory)


class PartContext:
    """The tables of one part of a likelihood, and room for its events in one toy."""

    def __init__(self, part: WholePart, max_events: int, memory: Memory) -> None:
        self.part, self.memory = part, memory
        self.lanes = native(part.sums).target.width
        self.step = -(-max_events // PADDING) * PADDING + PADDING
        self.cleaned = self.step  # from where on nothing odd is read
        self.blocks = -(-max_events // BLOCK) or 1
        self.events = self.large_room(len(part.observables))
        self.derived = self.large_room(max(len(part.derived), 1))
        kernels = [part.sums.kernel, *([part.scores.program.kernel] if part.scores else [])]
        self.parameters = memory.room(max(len(kernel.parameters) for kernel in kernels) * self.lanes)
        self.own_parameters = self.parameters.reshape(-1, self.lanes)[: part.parameters]
        self.columns = self.named_columns()
        self.count, self.tasks = memory.words([0]), memory.words([0, 0])
        self.draw_args, draw = self.drawing()
        known = {stages.DRAW: draw, stages.DRAW_ARGS: address(self.draw_args)} | self.deriving()
        self.words = self.sum_words(part.sums, part.sums.kernel.columns, part.integrals, known)
        self.score_words: list[Integers] = []
        if (scores := part.scores) is not None:
            self.score_words.append(self.sum_words(scores.program, scores.columns, scores.integrals, {}))

    def large_room(self, columns: int) -> Array:
        """Make room for events; the thread that fills it first has it from the system, all threads at once."""
        array = aligned(columns * self.step)
        self.memory.arrays.append(array)
        return array

    def named_columns(self) -> dict[str, Array]:
        """Return where the columns of a toy are."""
        part = self.part
        names = [*part.observables, *part.derived]
        arrays = [
            array[k * self.step :]
            for array, count in ((self.events, len(part.observables)), (self.derived, len(part.derived)))
            for k in range(count)
        ]
        return dict(zip(names, arrays, strict=True))

    def sum_words(
        self,
        program: Program,
        columns: Sequence[str],
        integrals: Sequence[WholeIntegral],
        known: Mapping[int, int],
    ) -> Integers:
        """Build the table of a kernel that sums over events, from these columns; return its words, with some that are known."""
        part, memory = self.part, self.memory
        outputs = memory.room(program.kernel.outputs + 1)
        sums = {
            "parameters": address(self.parameters), "out": address(outputs), "stops": address(self.count),
            "partials": address(memory.room(native(program).words * self.blocks + PADDING)),
            "first_task": address(self.tasks), "out_step": self.step,
        }  # fmt: skip
        own = {
            stages.PREPARE: function(program, "prepare"), stages.SUM_BLOCK: function(program, "block"),
            stages.COMBINE: function(program, "combine"),
            stages.SUM_ARGS: address(self.table(program, columns, sums)),
            stages.COUNT: address(self.count), stages.LAST_TASK: address(self.tasks[1:]),
            stages.PARAMETERS: address(self.parameters), stages.LANES: self.lanes,
            stages.FLOATING: address(memory.words(part.floating)),
            stages.PLACES: address(memory.words(part.places)), stages.FLOATING_COUNT: len(part.floating),
            stages.MEASURED_FIRST: part.measured, stages.OUTPUTS: address(outputs),
            stages.DRAW_REPORT: address(self.report), stages.INTEGRALS: len(integrals), **known,
        }  # fmt: skip
        tables = self.integral_tables(integrals)
        return memory.words([own.get(k, 0) for k in range(stages.FIRST_INTEGRAL)] + tables)

    def deriving(self) -> dict[int, int]:
        """Return the words of what computes event-only columns."""
        derive = self.part.derive
        if derive is None:
            return {}
        goal = {"out": address(self.derived), "out_step": self.step}
        table = self.table(derive, derive.kernel.columns, goal)
        return {stages.DERIVE: function(derive, "block"), stages.DERIVE_ARGS: address(table)}

    def table(self, program: Program, columns: Sequence[str], known: Mapping[str, int]) -> Integers:
        return self.memory.table(program, [self.columns[name] for name in columns], self.lanes, known)

    def drawing(self) -> tuple[Integers, int]:
        """Return the table and the address of what fills the events of a toy: a sampler, or a copy of stored ones."""
        part, memory = self.part, self.memory
        self.report = memory.room(2 * self.blocks)
        goal = {"out": address(self.events), "partials": address(self.report), "out_step": self.step}
        if isinstance(part.sampler, RowsTable):
            self.code, args = rows_words(part.sampler, memory, goal)
            return args, self.code.addresses["draw_block"]
        if part.sampler is not None:
            return memory.table(part.sampler, [], self.lanes, goal), function(part.sampler, "block")
        # kept, since the table has its address only
        self.code = code = find_code(copy_text(len(part.observables)), ["block"])
        self.stored = memory.words([0] * (2 * len(part.observables)))
        words = {"columns": address(self.stored), **goal}
        return memory.words([words.get(name, 0) for name in ARGUMENTS]), code.addresses["block"]

    def integral_tables(self, integrals: Sequence[WholeIntegral]) -> list[int]:
        """Build the tables of numerical integrals; their results follow the parameters of the sums."""
        target, addresses = self.part.parameters, []
        for integral in integrals:
            addresses.append(address(self.integral_words(integral, target)))
            target += integral.bodies
        return addresses

    def integral_words(self, integral: WholeIntegral, target: int) -> Integers:
        memory, program = self.memory, integral.program
        nodes = len(integral.nodes[0])
        blocks = -(-nodes // BLOCK)
        columns = []
        for column in integral.nodes:
            padded = memory.room(nodes + PADDING)
            padded[:nodes], padded[nodes:] = column, column[-1]
            columns.append(padded)
        outputs = memory.room(program.kernel.outputs + 1)
        args = memory.table(program, columns, self.lanes, {
            "parameters": address(self.parameters), "out": address(outputs),
            "partials": address(memory.room(native(program).words * blocks + PADDING)),
            "stops": address(memory.words([nodes])), "first_task": address(memory.words([0, blocks])),
        })  # fmt: skip
        boxes, axes, _ = integral.edges.shape
        known = {
            stages.NODE_PREPARE: function(program, "prepare"), stages.NODE_BLOCK: function(program, "block"),
            stages.NODE_COMBINE: function(program, "combine"), stages.NODE_ARGS: address(args),
            stages.NODES: nodes, stages.NODE_OUTPUTS: address(outputs), stages.BODIES: integral.bodies,
            stages.TARGET: target, stages.CONTRAST_LIMIT: memory.own(integral.limits),
            stages.PEAKS: len(integral.limits) - 1, stages.AXES: axes, stages.BOXES: boxes,
            stages.BOX_EDGES: memory.own(integral.edges),
        }  # fmt: skip
        return memory.words([known[k] for k in range(len(known))])

    def aim(self, toys: ToyBatch, k: int) -> None:
        """Set which toys to draw, as part k of each."""
        sizes, own = toys.sizes, toys.parts[k]
        self.clean(int(sizes[0, k] if len(sizes) == 1 else sizes[:, k].min(initial=self.cleaned)))
        set_toys(self.words, toys, k)
        self.own_parameters[:] = own.parameters[:, None]
        if self.part.sampler is not None:
            self.draw_args[SEED] = signed(own.seed)
            self.draw_args[FIRST_TOY] = toys.first
        elif own.starts is not None:
            self.stored[:] = stored_words(own)

    def clean(self, smallest: int) -> None:
        """Fill what is read past the end of a toy with harmless numbers; none has fewer events than ``smallest``."""
        if smallest < self.cleaned:
            for array in (self.events, self.derived):
                array.reshape(-1, self.step)[:, smallest : self.cleaned] = 1.0
            self.cleaned = smallest
