"""Kernel lines as C, with names that C accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from morefit.dataclass import dataclass
from morefit.expr.operations import Operation
from morefit.kernel.ir import Atom, Body, NodeLoop, Precision


@dataclass(frozen=True)
class Dialect:
    """How one language of the C family spells what C does not have."""

    name: str
    prologue: str  # before everything else
    kernel: str  # begins a kernel of work-groups of a size known now
    free_kernel: str  # begins a kernel of work-groups of any size
    memory: str  # says that a pointer is into the memory of the device ...
    shared: str  # ... or into that of a work-group ...
    constant: str  # ... or into what is cached for all items that read the same
    item: str  # the number of a work item in its group
    items: str  # how many there are in a group
    group: str
    place: str  # the number of a work item among all
    wait: str  # until all of the group are here and see each other's shared memory ...
    wait_memory: str  # ... or that of the device, too
    bits: str  # the bits of a double as an integer
    from_bits: str
    word: str  # the type of an unsigned integer of 64 bits
    high_product: str  # the upper half of a product of 32-bit integers
    count_up: str  # adds to an integer that others add to as well; its value is what was there
    # whether loops read scalars from shared memory, and have registers for more events
    shared_scalars: bool = False
    # whether compilers take so long that texts are cut, to be built at the same time
    cut_texts: bool = False


OPENCL = Dialect(
    name="OpenCL C",
    prologue="#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    kernel="__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void",
    free_kernel="__kernel void",
    memory="__global ",
    shared="__local ",
    constant="__constant ",
    item="get_local_id(0)",
    items="get_local_size(0)",
    group="get_group_id(0)",
    place="get_global_id(0)",
    wait="barrier(CLK_LOCAL_MEM_FENCE);",
    wait_memory="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    bits="as_ulong({0})",
    from_bits="as_double({0})",
    word="ulong",
    high_product="mul_hi({0}, {1})",
    count_up="atomic_add({0}, {1})",
)
OPENCL_GPU = replace(OPENCL, shared_scalars=True, cut_texts=True)


def number_text(number: float, precision: Precision = Precision.DOUBLE) -> str:
    """Write a number with all its digits; a negative one in brackets."""
    if precision is Precision.SINGLE:
        with np.errstate(over="ignore"):
            short = np.float32(number)
        text = f"{short!s}f" if np.isfinite(short) else special(float(short), "float")
    else:
        text = repr(number) if math.isfinite(number) else special(number, "double")
    return f"({text})" if text.startswith("-") else text


def special(number: float, kind: str) -> str:
    if math.isnan(number):
        return f"(({kind})NAN)"
    return f"(({kind}){'-' if number < 0 else ''}INFINITY)"


@dataclass
class Names:
    """Gives each name of a kernel an identifier of its own; the role before it keeps it apart from C's words."""

    precision: Precision = Precision.DOUBLE
    known: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = set(self.known.values())

    def know(self, texts: Mapping[str, str]) -> None:
        """Take what stands for some names as it is."""
        self.known |= texts
        self.taken.update(texts.values())

    def add(self, name: str, role: str, shown: str | None = None) -> str:
        """Make an identifier, such as ``c_weight_of_the_event`` for a column; ``shown`` stands for a longer name."""
        plain = f"{role}_{re.sub(r'[^0-9A-Za-z]+', '_', name if shown is None else shown).strip('_')}"
        while plain in self.taken:
            plain += "_"
        self.know({name: plain})
        return plain

    def target(self, name: str) -> str:
        """Take the name of a line as it is: a letter or two and a number."""
        own = f"{name}_" if name in self.taken else name
        self.known[name] = own
        self.taken.add(own)
        return own

    def atom(self, value: Atom) -> str:
        return self.known[value] if isinstance(value, str) else number_text(value, self.precision)

    def copy(self) -> Names:
        return Names(self.precision, dict(self.known))


def body_lines(
    body: Body, names: Names, kind: str, outlined: Container[Operation] = frozenset()
) -> list[str]:
    """Write the lines of a body as constants of a type; those operations are functions of their own."""
    lines = []
    for line in body.lines:
        if isinstance(line, NodeLoop):
            lines += node_loop_lines(line, names, kind)
            continue
        text = (outlined_call(line.op) if line.op in outlined else line.op.c).format(
            *map(names.atom, line.args)
        )
        lines.append(f"const {kind} {names.target(line.target)} = {text};")
    return lines


def outlined_call(op: Operation) -> str:
    """Return how an operation that is a function of its own is called."""
    return f"call_{op.name.lower()}({', '.join(f'{{{k}}}' for k in range(op.arity))})"


def outlined_function(op: Operation) -> str:
    """Write an operation as a function that is not copied to where it is called."""
    names = [f"x{k}" for k in range(op.arity)]
    call = outlined_call(op).format(*(f"const double {name}" for name in names))
    return f"__attribute__((noinline)) double {call} {{ return {op.c.format(*names)}; }}"


def node_loop_lines(loop: NodeLoop, names: Names, kind: str) -> list[str]:
    """Write sums over the nodes of a rule."""
    sums = [names.target(target) for target in loop.targets]
    nodes, weights = (names.known[table] for table in loop.tables)
    place = f"k_{sums[0]}"
    inside = [
        f"const {kind} {names.add(loop.node, 'node')} = {nodes}[{place}], w_{sums[0]} = {weights}[{place}];",
        *body_lines(loop.body, names, kind),
    ]
    inside += [
        f"{s} = fma(w_{sums[0]}, {names.atom(r)}, {s});" for s, r in zip(sums, loop.body.results, strict=True)
    ]
    return [
        f"{kind} {', '.join(f'{s} = 0' for s in sums)};",
        "#pragma unroll 1",
        f"for (int {place} = 0; {place} < {loop.count}; {place}++) {{",
        *indented(inside),
        "}",
    ]


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [("    " * depth + line) if line else line for line in lines]


def horner(coefficients: Sequence[float], x: str) -> str:
    """Write a polynomial, lowest coefficient first."""
    *rest, text = map(repr, coefficients)
    for c in reversed(rest):
        text = f"fma({x}, {text}, {c})"
    return text
