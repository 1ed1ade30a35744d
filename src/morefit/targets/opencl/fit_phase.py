"""A phase of whole fits on a device: one kernel, which all toys that are still fitted go through together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import cached_property

from morefit.dataclass import dataclass
from morefit.targets.opencl.dialect import Dialect, indented

TILE = 32  # toys whose records are side by side, or work items that take the step of one toy together


class Runs(Enum):
    """What goes through a phase."""

    ALL = auto()  # a work item per toy, also of those that are no longer fitted
    ITEMS = auto()  # a work item per toy
    TILES = auto()  # TILE work items per toy
    GROUPS = auto()  # a work-group per toy
    BLOCKS = auto()  # a work-group per block of the events of a part


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One kernel; ``index`` is the toy in its lines. Arguments are declarations, which end with a name."""

    name: str
    runs: Runs
    arguments: Sequence[str]
    lines: Sequence[str]
    part: int = 0  # of the likelihood, where it runs over its blocks
    begins: bool = False  # all toys go through it, not only those that are still fitted
    many_blocks: bool = False  # only where a toy may have several blocks of the part

    @property
    def all_arguments(self) -> list[str]:
        """All declarations: which toys or blocks, then the phase's own."""
        lists = {
            Runs.ALL: ["const int all_toys"],
            Runs.ITEMS: ["{m}const int *active", "const int active_toys"],
            Runs.TILES: ["{m}const int *active"],
            Runs.GROUPS: ["{m}const int *active"],
            Runs.BLOCKS: [f"{{m}}const block_of_events *blocks{self.part}"],
        }
        running = [] if self.begins else ["{m}int *running"]
        return [*lists[self.runs], *running, *self.arguments]

    @cached_property
    def names(self) -> list[str]:
        """The names of all arguments, in order."""
        return [name_of(declaration) for declaration in self.all_arguments]

    def text(self, d: Dialect) -> list[str]:
        """Write the kernel."""
        head = {
            Runs.ALL: [f"const int index = {d.place};", "if (index >= all_toys) return;"],
            Runs.ITEMS: [
                f"if ({d.place} >= active_toys) return;",
                f"const int index = active[{d.place}];",
            ],
            Runs.TILES: [f"const int index = active[{d.group}], item = {d.item};"],
            Runs.GROUPS: [f"const int index = active[{d.group}], item = {d.item};"],
            Runs.BLOCKS: [
                f"const block_of_events block = blocks{self.part}[{d.group}];",
                f"const int item = {d.item}, index = block.set, count = block.count;",
            ],
        }[self.runs]
        stop = [] if self.begins else ["if (!running[index]) return;"]
        kernel = d.free_kernel if self.runs in (Runs.ALL, Runs.ITEMS, Runs.TILES) else d.kernel
        arguments = ",\n".join(indented([a.format(m=d.memory) for a in self.all_arguments]))
        body = indented([*head, *stop, *self.lines])
        return [f"{kernel} {self.name}(", f"{arguments})", "{", *body, "}", ""]


def name_of(declaration: str) -> str:
    """Return the name of an argument."""
    return declaration.split()[-1].lstrip("*")
