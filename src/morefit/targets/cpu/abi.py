"""The argument table of every function of a CPU kernel: numbers and addresses."""

from __future__ import annotations

from morefit.kernel import Kernel, Sample
from morefit.targets.cpu.writer import Writer

# one 64-bit word each
ARGUMENTS = (
    "parameters",  # double[parameter][padded]
    "scalars",  # double[scalar][padded], scratch
    "padded",  # sets, rounded up to full vectors
    "sets",
    "columns",  # (address, step from set to set) for each column
    "starts",  # first event of a set ...
    "stops",  # ... and one past its last
    "bounds_step",  # 0: every set has the same events, 1: each its own
    "task_set",  # the set of each task
    "first_task",  # the first task of each set, and one past the last
    "tasks",
    "counter",  # the next task to be taken
    "grain",  # how many tasks to take at a time
    "partials",  # double[task][word], scratch
    "out",  # SUM: double[set][output]; STORE: double[set][output][out_step]
    "out_step",
    "seed",  # of the random numbers
    "first_toy",  # the number of the first set, for the random numbers
)
SEED, FIRST_TOY, STARTS = (ARGUMENTS.index(name) for name in ("seed", "first_toy", "starts"))


def signed(seed: int) -> int:
    """Return a seed as a word of the table, which is signed."""
    return seed - (1 << 64) if seed >> 63 else seed


def argument(writer: Writer, name: str, kind: str = "i64") -> str:
    """Load one word of the table."""
    address = writer.let(f"getelementptr i64, ptr %args, i64 {ARGUMENTS.index(name)}")
    return writer.let(f"load {kind}, ptr {address}")


def find_tables(kernel: Kernel, writer: Writer) -> dict[str, str]:
    """Load the address of each table; they follow those of the columns."""
    first = 0 if isinstance(kernel.frame, Sample) else len(kernel.columns)
    addresses = argument(writer, "columns", "ptr") if kernel.tables else ""
    names = {}
    for k, table in enumerate(kernel.tables):
        place = writer.let(f"getelementptr i64, ptr {addresses}, i64 {2 * (first + k)}")
        names[table.name] = writer.let(f"load ptr, ptr {place}")
    return names
