"""Kernels as LLVM IR for the CPU: explicit vectors, one call per launch.

The text of a kernel has five functions, all taking one table of numbers and addresses (``ARGUMENTS``):
``prepare`` computes the per-call scalars, vectorised over parameter sets; ``block`` (one set, at most ``BLOCK``
events) is the loop; ``work`` takes tasks (one block of one set) from a shared counter until none is left, so
that any number of threads may run it; ``combine`` adds the blocks of each set in order; ``run`` does it all.
"""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.kernel.ir import Atom, Body, Kernel, Line, NodeLoop, Sample, Store, Sum
from morefit.random.xoshiro import BLOCK
from morefit.targets.cpu import vecmath
from morefit.targets.cpu.abi import Target, argument, find_tables
from morefit.targets.cpu.denormals import DECLARED, FLUSH
from morefit.targets.cpu.emit import emit_body
from morefit.targets.cpu.loop import Block
from morefit.targets.cpu.reduce_blocks import combine_text
from morefit.targets.cpu.sample import vectors_together
from morefit.targets.cpu.vecmath import CALLED, INLINE
from morefit.targets.cpu.writer import Vector, Writer

WHOLE = 8_000  # lines of a per-call stage that are one function; LLVM takes ever longer for each line of a longer one,
PIECE = 300  # which becomes functions of that many: half the time for 20 000 lines, which run 8 % slower
MAX_INLINED = 4_000  # lines of copies of a function in the loop; beyond, it is called, and runs as fast


def render(kernel: Kernel, target: Target) -> str:
    """Write a kernel as the text of an LLVM module."""
    lanes = target.width * (64 // kernel.precision.value)
    if isinstance(kernel.frame, Sample):
        lanes *= vectors_together(kernel, target)
    lines = Vector(lanes, kernel.precision.value)
    wide = Vector(lanes)
    narrow = Vector(target.width)
    block = Block(kernel, lines, wide)
    parts = [prepare_text(kernel.per_call, kernel, narrow), block.text()]
    if isinstance(kernel.frame, Sum):
        parts.append(combine_text(kernel, block))
    texts = [text for text, _ in parts]
    needs = [writer for _, writers in parts for writer in writers]
    functions = list(dict.fromkeys(text for writer in needs for text in writer.definitions))
    declarations: dict[str, str] = {}
    wanted: dict[tuple[Vector, bool], dict[str, None]] = {}
    for writer in needs:
        declarations |= writer.intrinsics
        for name, vector in writer.functions:
            wanted.setdefault((vector, writer.out_of_line), {})[name] = None
    for (kind, out_of_line), names in wanted.items():
        defined, declared = vecmath.define(names, kind, out_of_line=out_of_line)
        functions += [d for d in defined if d not in functions]
        declarations |= declared
    functions = [called_if_often(text, [*texts, *functions]) for text in functions]
    head = [f"; {line}" for line in str(kernel).splitlines()]
    return "\n".join([*head, *sorted(set(declarations.values()) | set(DECLARED[target.machine])), *functions, *texts,
                      work_text(target), RUN[type(kernel.frame)]])  # fmt: skip


def called_if_often(function: str, texts: Sequence[str]) -> str:
    """Return a function that is not inlined where its copies would have too many lines."""
    name = function[function.index("@") : function.index("(") + 1]
    lines = sum(text.count(name) for text in texts) * function.count("\n")
    return function.replace(INLINE, CALLED, 1) if lines > MAX_INLINED else function


def prepare_text(body: Body, kernel: Kernel, vector: Vector) -> tuple[str, list[Writer]]:
    """Compute the per-call scalars of every set, a vector of sets at a time.

    A long body is written as several functions.
    """
    pieces, definitions = cut_body(body), list[str]()
    texts, writers = zip(*(piece.text(kernel, vector, definitions) for piece in pieces), strict=True)
    head = Writer(vector, "h")
    padded = argument(head, "padded")
    rooms = sum(len(piece.carried) for piece in pieces)
    lines = [
        *texts,
        "define void @prepare(ptr noalias %args) {",
        "entry:",
        f"  %carried = alloca [{max(rooms, 1)} x {vector.type}], align 64",
        *head.lines,
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  call void @prepare_{piece.number}(ptr %args, ptr %carried, i64 %i)" for piece in pieces),
        f"  %next = add i64 %i, {vector.width}",
        f"  %more = icmp slt i64 %next, {padded}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines), list(writers)


@dataclass(frozen=True)
class Piece:
    """Some lines of the per-call stage: what they read of earlier pieces, keep for later ones, and the results among them."""

    number: int
    lines: tuple[Line | NodeLoop, ...]
    read: dict[str, int]  # names to their places
    carried: dict[str, int]
    results: tuple[tuple[int, Atom], ...]  # rows of the scalars, and what goes there

    def text(self, kernel: Kernel, vector: Vector, definitions: list[str]) -> tuple[str, Writer]:
        """Write a function for one vector of sets; all pieces add to the same ``definitions``."""
        w = Writer(vector, "t", out_of_line=True, definitions=definitions)
        parameters, scalars = argument(w, "parameters", "ptr"), argument(w, "scalars", "ptr")
        padded = argument(w, "padded")

        def cell(base: str, row: int) -> str:
            index = w.let(f"add i64 {w.let(f'mul i64 {padded}, {row}')}, %i")
            return w.let(f"getelementptr double, ptr {base}, i64 {index}")

        def room(place: int) -> str:
            return w.let(f"getelementptr {vector.type}, ptr %carried, i64 {place}")

        body = Body(self.lines, tuple(atom for _, atom in self.results))
        used = body.reads
        names = {
            name: w.let(f"load {vector.type}, ptr {cell(parameters, k)}, align 8")
            for k, name in enumerate(kernel.parameters)
            if name in used
        }
        names |= {n: w.let(f"load {vector.type}, ptr {room(k)}, align 64") for n, k in self.read.items()}
        names |= find_tables(kernel, w) if body.tables else {}
        wanted = (*self.carried, *(atom for _, atom in self.results))
        registers = emit_body(w, Body(self.lines, wanted), names)
        addresses = [room(k) for k in self.carried.values()] + [cell(scalars, row) for row, _ in self.results]
        for k, (register, address) in enumerate(zip(registers, addresses, strict=True)):
            align = 64 if k < len(self.carried) else 8
            w.lines.append(f"  store {vector.type} {register}, ptr {address}, align {align}")
        inline = "noinline" if self.carried or self.read else "alwaysinline"
        head = f"define internal void @prepare_{self.number}(ptr %args, ptr noalias %carried, i64 %i) {inline} {{"
        return "\n".join([head, *w.lines, "  ret void", "}"]), w


def targets_of(*lines: Line | NodeLoop) -> list[str]:
    """Return the names that lines write."""
    return [t for line in lines for t in (line.targets if isinstance(line, NodeLoop) else (line.target,))]


def names_in(line: Line | NodeLoop) -> list[str]:
    """Return the names that a line reads, in the same order in every process."""
    if isinstance(line, NodeLoop):
        return sorted(line.body.reads)
    return [name for name in line.args if isinstance(name, str)]


def cut_body(body: Body) -> list[Piece]:
    """Cut a long body into pieces."""
    lines = body.lines
    size = PIECE if len(lines) > WHOLE else WHOLE
    groups = [lines[k : k + size] for k in range(0, len(lines), size)] or [()]
    owner = {target: number for number, group in enumerate(groups) for target in targets_of(*group)}
    reads: list[dict[str, None]] = [{} for _ in groups]
    for number, group in enumerate(groups):
        for name in (name for line in group for name in names_in(line)):
            if owner.get(name, number) != number:
                reads[number][name] = None
    places = {name: k for k, name in enumerate(dict.fromkeys(n for read in reads for n in read))}
    results: list[list[tuple[int, Atom]]] = [[] for _ in groups]
    for row, atom in enumerate(body.results):
        results[owner.get(atom, 0) if isinstance(atom, str) else 0].append((row, atom))
    return [
        Piece(
            number,
            group,
            {name: places[name] for name in reads[number]},
            {target: places[target] for target in targets_of(*group) if target in places},
            tuple(results[number]),
        )
        for number, group in enumerate(groups)
    ]


def work_text(target: Target) -> str:
    """Take tasks from the counter until none is left."""
    head, task = Writer(Vector(1), "h"), Writer(Vector(1), "t")
    tasks, counter, grain = argument(head, "tasks"), argument(head, "counter", "ptr"), argument(head, "grain")
    task_set, first = argument(head, "task_set", "ptr"), argument(head, "first_task", "ptr")
    starts, stops = argument(head, "starts", "ptr"), argument(head, "stops", "ptr")
    step = argument(head, "bounds_step")

    def load(base: str, index: str) -> str:
        return task.let(f"load i64, ptr {task.let(f'getelementptr i64, ptr {base}, i64 {index}')}")

    which = load(task_set, "%task")
    bounds = task.let(f"mul i64 {which}, {step}")
    number = task.let(f"sub i64 %task, {load(first, which)}")
    offset = task.let(f"mul i64 {number}, {BLOCK}")
    begin = task.let(f"add i64 {load(starts, bounds)}, {offset}")
    full = task.let(f"add i64 {begin}, {BLOCK}")
    stop = load(stops, bounds)
    end = task.let(f"call i64 @llvm.smin.i64(i64 {full}, i64 {stop})")
    flush, restore = FLUSH[target.machine]
    return "\n".join([
        "declare i64 @llvm.smin.i64(i64, i64)",
        "define void @work(ptr noalias %args) {", "entry:", flush, *head.lines, "  br label %take",
        "take:",
        f"  %from = atomicrmw add ptr {counter}, i64 {grain} seq_cst",
        f"  %wish = add i64 %from, {grain}",
        f"  %to = call i64 @llvm.smin.i64(i64 %wish, i64 {tasks})",
        "  %any = icmp slt i64 %from, %to",
        "  br i1 %any, label %next, label %done",
        "next:",
        "  %task = phi i64 [ %from, %take ], [ %after, %next ]",
        *task.lines,
        f"  call void @block(ptr %args, i64 {which}, i64 {begin}, i64 {end}, i64 %task)",
        "  %after = add i64 %task, 1",
        "  %more = icmp slt i64 %after, %to",
        "  br i1 %more, label %next, label %take",
        "done:", restore, "  ret void", "}",
    ])  # fmt: skip


WITHOUT_COMBINE = """define void @run(ptr noalias %args) {
  call void @prepare(ptr %args)
  call void @work(ptr %args)
  ret void
}"""
RUN = {
    Store: WITHOUT_COMBINE,
    Sample: WITHOUT_COMBINE,
    Sum: """define void @run(ptr noalias %args) {
  call void @prepare(ptr %args)
  call void @work(ptr %args)
  call void @combine(ptr %args)
  ret void
}""",
}
