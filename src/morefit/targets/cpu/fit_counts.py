"""Models of counts in whole fits on one thread."""

from __future__ import annotations

from collections.abc import Mapping

from morefit.arrays import Integers, address
from morefit.random.xoshiro import BLOCK
from morefit.resources import PADDING
from morefit.targets.base import CountsPart, ToyBatch
from morefit.targets.cpu import fit_stages as stages
from morefit.targets.cpu.abi import ARGUMENTS, FIRST_TOY, SEED, signed
from morefit.targets.cpu.compile import find_code
from morefit.targets.cpu.counts import addresses, counts_code
from morefit.targets.cpu.fit_driver import copy_text
from morefit.targets.cpu.fit_memory import Memory, rows_words, set_toys, stored_words


class CountsContext:
    """The words of a part that is a model of counts, and its point: parameters, measured values, and the counts of a toy."""

    def __init__(self, part: CountsPart, bins: int, memory: Memory) -> None:
        self.part, table, self.point = part, part.table, memory.room(part.table.point_size)
        self.score_words: list[Integers] = []  # counts have none
        outputs, count = memory.room(table.outputs), memory.words([0, 0])
        self.code, blocks = counts_code(), -(-bins // BLOCK) or 1
        goal = {
            "out": address(self.point[part.parameters :]), "out_step": bins,
            "partials": address(memory.room(2 * blocks)),
        }  # fmt: skip
        space, draw = memory.room(table.work_size + PADDING), self.drawing(memory, goal)
        known = {
            stages.DRAW: draw, stages.DRAW_ARGS: address(self.draw_args),
            stages.DRAW_REPORT: goal["partials"], stages.PREPARE: self.code.addresses["sum_one"],
            stages.SUM_ARGS: address(memory.words(addresses(table, self.point, space, outputs))),
            stages.COUNT: address(count), stages.LAST_TASK: address(count[1:]),
            stages.PARAMETERS: address(self.point), stages.LANES: 1,
            stages.FLOATING: address(memory.words(part.floating)),
            stages.PLACES: address(memory.words(part.places)), stages.FLOATING_COUNT: len(part.floating),
            stages.MEASURED_FIRST: part.measured, stages.OUTPUTS: address(outputs),
        }  # fmt: skip
        self.words = memory.words([known.get(k, 0) for k in range(stages.FIRST_INTEGRAL)])

    def drawing(self, memory: Memory, goal: Mapping[str, int]) -> int:
        """Make the table of what fills in the counts of a toy; return its address."""
        if self.part.sampler is not None:
            self.draw_code, self.draw_args = rows_words(self.part.sampler, memory, goal)
            return self.draw_code.addresses["draw_block"]
        self.draw_code, self.stored = find_code(copy_text(1), ["block"]), memory.words([0, 0])
        words = {"columns": address(self.stored), **goal}
        self.draw_args = memory.words([words.get(name, 0) for name in ARGUMENTS])
        return self.draw_code.addresses["block"]

    def aim(self, toys: ToyBatch, k: int) -> None:
        """Set which toys to fit, as part k of each."""
        own = toys.parts[k]
        set_toys(self.words, toys, k)
        self.point[: self.part.parameters] = own.parameters
        if self.part.sampler is not None:
            self.draw_args[SEED] = signed(own.seed)
            self.draw_args[FIRST_TOY] = toys.first
        else:
            self.stored[:] = stored_words(own)
