"""Kernel lines as LLVM instructions: the record of an operation says which; rare branches are computed only where a lane needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from morefit.expr.operations import LlvmKind, Op, Operation
from morefit.kernel.ir import Atom, Body, Line, NodeLoop
from morefit.targets.cpu.phases import is_function
from morefit.targets.cpu.writer import ANY_DENORMALS, Writer

# of choices by name: lines that only one side of them needs
Branches = Mapping[str, Mapping[int, tuple[Line, ...]]]


def rare_branches(body: Body) -> Branches:
    """Return the lines of branches that have functions which nothing else needs."""
    known = {line.target: line for line in body.lines if isinstance(line, Line)}
    used = Counter[Atom](a for line in known.values() for a in line.args)
    used.update(body.results)
    for loop in (line for line in body.lines if not isinstance(line, Line)):
        used.update(loop.body.reads)
    order: dict[Atom, int] = {name: k for k, name in enumerate(known)}
    branches: dict[str, dict[int, tuple[Line, ...]]] = {}
    taken: set[str] = set()
    for choice in reversed([line for line in known.values() if line.op is Op.WHERE]):
        for side in (1, 2):
            lines = own_lines(choice.args[side], known, used, order)
            if any(map(is_function, lines)) and taken.isdisjoint(line.target for line in lines):
                branches.setdefault(choice.target, {})[side] = lines
                taken.update(line.target for line in lines)
    return branches


def own_lines(
    name: Atom, known: Mapping[str, Line], used: Mapping[Atom, int], order: Mapping[Atom, int]
) -> tuple[Line, ...]:
    """Return the lines that nothing but a name is made of, in their order; none if it is used twice."""
    if name not in known or used[name] > 1:
        return ()
    users, own = Counter[Atom]([name]), list[Line]()
    waiting = [(-order[name], str(name))]  # users come before what they use
    while waiting:
        line = known[heappop(waiting)[1]]
        if users[line.target] == used[line.target]:
            own.append(line)
            for arg in line.args:
                if arg in known and not users[arg]:
                    heappush(waiting, (-order[arg], str(arg)))
                users[arg] += 1
    return tuple(reversed(own))


def instruction(w: Writer, name: str, *args: str) -> str:
    return w.let(f"{name} {w.vector.type} {', '.join(args)}")


def comparison(w: Writer, predicate: str, a: str, b: str) -> str:
    return w.select(w.compare(predicate, a, b), 1.0, 0.0)


def choice(w: Writer, predicate: str, a: str, b: str) -> str:
    """Take the first argument where it compares so with the second or is NaN, as numpy does."""
    holds = w.compare(predicate, a, b)
    return w.select(w.let(f"or {w.vector.mask} {holds}, {w.compare('uno', a, a)}"), a, b)


def select(w: Writer, name: str, condition: str, a: str, b: str) -> str:
    return w.select(w.compare("une", condition, 0.0), a, b)


def gather(w: Writer, name: str, table: str, place: str) -> str:
    """Load one number for each lane; the register of a table is its address."""
    v = w.vector
    indices = w.let(f"fptosi {v.type} {place} to <{v.width} x i64>")
    result = "undef"
    for lane in range(v.width):
        index = w.let(f"extractelement <{v.width} x i64> {indices}, i32 {lane}")
        number = w.let(f"load double, ptr {w.let(f'getelementptr double, ptr {table}, i64 {index}')}")
        if v.bits == 32:
            number = w.let(f"fptrunc double {number} to float")
        result = w.let(f"insertelement {v.type} {result}, {v.scalar} {number}, i32 {lane}")
    return result


EMIT: dict[LlvmKind, Callable[..., str]] = {
    LlvmKind.INSTRUCTION: instruction,
    LlvmKind.INTRINSIC: Writer.intrinsic,
    LlvmKind.CALL: Writer.call,
    LlvmKind.COMPARISON: comparison,
    LlvmKind.CHOICE: choice,
    LlvmKind.SELECT: select,
    LlvmKind.GATHER: gather,
}


def emit(writer: Writer, op: Operation, args: list[str], *, flushed: bool) -> str:
    """Write one operation; return the register of its result."""
    llvm = op.llvm
    assert llvm is not None
    return EMIT[llvm.kind](writer, llvm.flushed if flushed and llvm.flushed else llvm.name, *args)


def atom_of(value: Atom, writer: Writer, registers: Mapping[str, str]) -> str:
    return registers[value] if isinstance(value, str) else writer.number(value)


def emit_body(
    writer: Writer,
    body: Body,
    names: Mapping[str, str],
    *,
    flushed: bool = False,
    after: Callable[[str, str], None] = lambda name, register: None,
) -> list[str]:
    """Write the lines of a body; return the registers of its results. ``after`` is called with each name and its register."""
    registers = dict(names)

    def atom(value: Atom) -> str:
        if value in writer.in_memory and value not in registers:
            return spread_number(writer, writer.in_memory[str(value)])
        return atom_of(value, writer, registers)

    def with_loaded(reads: Iterable[str]) -> dict[str, str]:
        loaded = [name for name in reads if name in writer.in_memory and name not in registers]
        return registers | {name: atom(name) for name in sorted(loaded)}

    rare = rare_branches(body) if flushed else {}
    delayed = {line.target for branches in rare.values() for lines in branches.values() for line in lines}
    for line in body.lines:
        if isinstance(line, Line) and line.target in delayed:
            continue
        if isinstance(line, Line) and line.target in rare:
            own = Body(
                (*(one for lines in rare[line.target].values() for one in lines), line), (line.target,)
            )
            known = with_loaded(own.reads)
            registers[line.target] = emit_choice(writer, line, rare[line.target], known)
            after(line.target, registers[line.target])
            continue
        if isinstance(line, NodeLoop):
            registers |= emit_loop(writer, line, with_loaded(line.body.reads), flushed=flushed)
            continue
        registers[line.target] = emit(writer, line.op, [atom(a) for a in line.args], flushed=flushed)
        after(line.target, registers[line.target])
    return [atom(r) for r in body.results]


def emit_choice(
    writer: Writer, choice: Line, branches: Mapping[int, tuple[Line, ...]], registers: Mapping[str, str]
) -> str:
    """Write a choice of which one branch, or each, is computed only if a lane takes it."""
    yes = writer.compare("une", atom_of(choice.args[0], writer, registers), writer.number(0.0))
    masks = {1: yes, 2: writer.let(f"xor {writer.vector.mask} {yes}, {writer.vector.all_true}")}
    always = [choice.args[side] for side in masks if side not in branches]
    result = atom_of(always[0] if always else 0.0, writer, registers)
    for side, lines in branches.items():
        result = emit_branch(writer, Body(lines, (choice.args[side],)), registers, masks[side], result)
    return result


def emit_branch(writer: Writer, body: Body, registers: Mapping[str, str], mask: str, other: str) -> str:
    """Write a branch as a function of its own, which LLVM inlines; where its mask is not set it has another value."""
    v, w, reads = writer.vector, writer.inside(f"{writer.prefix}z"), body.reads
    inputs = [name for name in registers if name in reads]
    names = {name: f"%i{k}" for k, name in enumerate(inputs)}
    kinds = {name: "ptr" if name in body.tables else v.type for name in inputs}
    value = w.where_any("%mask", "%other", lambda: emit_body(w, body, names, flushed=True)[0])
    full = f"@branch_{writer.prefix}{len(writer.definitions)}"
    arguments = [f"{v.mask} %mask", f"{v.type} %other", *(f"{kinds[name]} {names[name]}" for name in inputs)]
    head = f"define internal {v.type} {full}({', '.join(arguments)}) alwaysinline {ANY_DENORMALS} {{"
    writer.definitions.append("\n".join([head, "entry:", *w.lines, f"  ret {v.type} {value}", "}"]))
    passed = [
        f"{v.mask} {mask}",
        f"{v.type} {other}",
        *(f"{kinds[name]} {registers[name]}" for name in inputs),
    ]
    return writer.let(f"call {v.type} {full}({', '.join(passed)})")


def emit_loop(
    writer: Writer, loop: NodeLoop, registers: Mapping[str, str], *, flushed: bool
) -> dict[str, str]:
    """Write sums over the nodes of a rule as a function of their own, which LLVM inlines; return their registers."""
    v, sums = writer.vector, range(len(loop.targets))
    tables = loop.body.tables
    reads = loop.body.reads | tables
    inputs = {name: register for name, register in registers.items() if name in reads}
    kinds = {name: "ptr" if name in tables else v.type for name in inputs}
    w = writer.inside("n")
    node, weight = (spread_load(w, f"%{table}") for table in ("nodes", "weights"))
    names = {name: f"%i{k}" for k, name in enumerate(inputs)} | {loop.node: node}
    results = emit_body(w, loop.body, names, flushed=flushed)
    totals = [w.fma(weight, result, f"%s{k}") for k, result in zip(sums, results, strict=True)]
    stage = "call_" * writer.out_of_line  # of a kernel, which may have loops in both
    full, kind = f"@nodes_{stage}{len(writer.definitions)}", f"{{ {', '.join(v.type for _ in sums)} }}"
    arguments = ["ptr %nodes", "ptr %weights", *(f"{kinds[name]} {names[name]}" for name in inputs)]
    lines = [
        f"define internal {kind} {full}({', '.join(arguments)}) alwaysinline {ANY_DENORMALS} {{",
        "entry:", "  br label %loop",
        "loop:", "  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]",
        *(f"  %s{k} = phi {v.type} [ zeroinitializer, %entry ], [ {totals[k]}, %loop ]" for k in sums),
        *w.lines,
        "  %k1 = add i64 %k, 1", f"  %more = icmp slt i64 %k1, {loop.count}",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]  # fmt: skip
    result = "undef"
    for k in sums:
        lines.append(f"  %r{k} = insertvalue {kind} {result}, {v.type} {totals[k]}, {k}")
        result = f"%r{k}"
    writer.definitions.append("\n".join([*lines, f"  ret {kind} {result}", "}"]))
    arguments = [f"ptr {registers[table]}" for table in loop.tables]
    arguments += [f"{kinds[name]} {register}" for name, register in inputs.items()]
    call = writer.let(f"call {kind} {full}({', '.join(arguments)})")
    return {t: writer.let(f"extractvalue {kind} {call}, {k}") for k, t in enumerate(loop.targets)}


def spread_load(w: Writer, table: str) -> str:
    """Load the number of a table at %k into all lanes."""
    return spread_number(w, f"getelementptr double, ptr {table}, i64 %k")


def spread_number(w: Writer, place: str) -> str:
    """Load a number into all lanes."""
    v = w.vector
    number = w.let(f"load double, ptr {w.let(place)}")
    if v.bits == 32:
        number = w.let(f"fptrunc double {number} to float")
    one = w.let(f"insertelement {v.type} undef, {v.scalar} {number}, i32 0")
    return w.let(f"shufflevector {v.type} {one}, {v.type} undef, <{v.width} x i32> zeroinitializer")
