"""Cut the lines of an event in two: functions and divisions first, for some events together, then the sums.

A long chain of functions makes a core wait, and sums keep all of its registers: apart, neither stands in the other's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from morefit.expr.operations import LlvmKind, Op
from morefit.kernel import Arith, Body, Line

MIN_SUMS = 10  # fewer leave enough registers for functions
MIN_LINES = 24  # besides those that functions need: fewer are not worth a second loop
MAX_STORED = (
    12  # numbers of an event that the sums need of functions; more cost as much to store as they spare
)
MAX_REPEATED = 4  # lines: what is made of so few is computed again, not stored
SLOW = (Arith.DIV, Op.SQRT)


def is_function(line: Line) -> bool:
    return line.op.llvm is not None and line.op.llvm.kind is LlvmKind.CALL


def is_slow(line: Line) -> bool:
    return line.op in SLOW or is_function(line)


def cut_phases(body: Body) -> tuple[Body, Body] | None:
    """Return the lines that functions need, their results being what others read of them, and the others.

    None if there are no functions, or too few other lines, or too much would have to be stored.
    """
    if len(body.results) < MIN_SUMS or not all(isinstance(line, Line) for line in body.lines):
        return None
    known = {line.target: line for line in body.plain}
    first = below([line.target for line in body.plain if is_slow(line)], known)
    others = [line for line in body.plain if line.target not in first]
    read = {a for line in others for a in line.args} | set(body.results)
    crossing = [line.target for line in body.plain if line.target in first and line.target in read]
    again = below([name for name in crossing if is_cheap(name, known)], known)
    stored = tuple(name for name in crossing if name not in again)
    if not any(map(is_function, body.plain)) or len(others) < MIN_LINES or len(stored) > MAX_STORED:
        return None
    then = [line for line in body.plain if line.target not in first or line.target in again]
    return Body(tuple(line for line in body.plain if line.target in first), stored), Body(
        tuple(then), body.results
    )


def is_cheap(name: str, known: Mapping[str, Line]) -> bool:
    """Return whether it takes few lines, and no slow ones, to compute a number again."""
    lines = below([name], known)
    return len(lines) <= MAX_REPEATED and not any(is_slow(known[n]) for n in lines)


def below(names: Iterable[str], known: Mapping[str, Line]) -> dict[str, None]:
    """Return lines and all lines they are made of, by name."""
    found: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in found and name in known:
            found[name] = None
            stack += [a for a in known[name].args if isinstance(a, str)]
    return found
