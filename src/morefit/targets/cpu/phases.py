"""Cut the lines of an event into phases: functions and divisions first, for some events together, then the sums.

A long chain of functions makes a core wait, and sums keep all of its registers: apart, neither stands in the other's way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.expr.operations import LlvmKind, Op
from morefit.kernel.ir import Arith, Atom, Body, Line

MIN_SUMS = 10  # fewer leave enough registers for functions
MIN_LINES = 24  # besides those that functions need: fewer are not worth a second loop
# numbers of an event that phases leave for later ones; more cost as much to store as they spare
MAX_STORED = 20
MAX_REPEATED = 8  # lines: what is made of so few, and of what is stored, is computed again
MAX_CARRIED = 25  # vectors of sums in one loop: with more of them registers do not suffice, and each goes to memory and back
MAX_IN_ONE = 32  # vectors of sums: few more than registers hold are not worth a second loop
SLOW = (Arith.DIV, Op.SQRT)


@dataclass(frozen=True)
class Phase:
    """Lines that are computed for all events of a piece before the next phase begins."""

    lines: tuple[Line, ...]
    stored: tuple[str, ...]  # names that later phases read
    sums: tuple[int, ...]  # which results of the body are added


@dataclass(frozen=True)
class Goal:
    """What a phase is to compute: slow lines and others that are stored, and results that are added."""

    names: tuple[str, ...]
    sums: tuple[int, ...] = ()


def is_function(line: Line) -> bool:
    return line.op.llvm is not None and line.op.llvm.kind is LlvmKind.CALL


def is_slow(line: Line) -> bool:
    return line.op in SLOW or is_function(line)


def cut_phases(body: Body, carried: Sequence[int] = ()) -> tuple[Phase, ...] | None:
    """Return phases for functions, one after those they need, and for sums, as many as registers need to hold them.

    ``carried`` are the vectors that each sum takes. None if there are no functions, or too few other lines, or too much
    would have to be stored.
    """
    if len(body.results) < MIN_SUMS or not all(isinstance(line, Line) for line in body.lines):
        return None
    known = {line.target: line for line in body.plain}
    slow = [line.target for line in body.plain if is_slow(line)]
    if not any(map(is_function, body.plain)) or len(known) - len(below(slow, known)) < MIN_LINES:
        return None
    goals = function_goals(body)
    long = long_lines(body, slow) if sum(carried) > MAX_IN_ONE else []
    if long:
        goals += share_sums(body, carried, (*slow, *long), long)
    else:
        goals.append(Goal((), tuple(range(len(body.results)))))
    phases = fill(body, goals, {*slow, *long})
    return phases if sum(len(phase.stored) for phase in phases) <= MAX_STORED else None


def function_goals(body: Body) -> list[Goal]:
    """Return a phase for functions that need no others, one for those that need these, and so on; divisions with them."""
    levels: dict[Atom, int] = {}
    for line in body.plain:
        levels[line.target] = max((levels.get(a, 0) for a in line.args), default=0) + is_function(line)
    slow = [line.target for line in body.plain if is_slow(line)]
    first = min(levels[name] for name in slow if levels[name])
    phases: dict[int, list[str]] = {}
    for name in slow:
        phases.setdefault(max(levels[name], first), []).append(name)
    return [Goal(tuple(phases[level])) for level in sorted(phases)]


def long_lines(body: Body, slow: Sequence[str]) -> list[str]:
    """Return names that are used more than once and take more lines to compute again than that is worth."""
    users = Counter(a for line in body.plain for a in line.args) + Counter(body.results)
    needs: dict[Atom, frozenset[str]] = {name: frozenset() for name in slow}
    long = []
    for line in body.plain:
        if line.target not in needs:
            own = frozenset([line.target]).union(*(needs.get(a, frozenset()) for a in line.args))
            if users[line.target] > 1 and len(own) > MAX_REPEATED:
                long.append(line.target)
                own = frozenset()
            needs[line.target] = own
    return long


def share_sums(body: Body, carried: Sequence[int], ends: Container[str], long: Sequence[str]) -> list[Goal]:
    """Share sums among phases, so that each carries few of them, and such as have lines in common.

    The first of them also stores the lines that take long to compute again.
    """
    known = {line.target: line for line in body.plain}
    needs = [below([str(result)], known, ends).keys() for result in body.results]
    lines = set(below(long, known))
    left, room = set(range(len(body.results))), MAX_CARRIED - len(long) // 2
    goals: list[Goal] = []
    while left:
        places: list[int] = []
        while fitting := [k for k in left if carried[k] <= room]:
            sign = 1 if lines else -1  # begin with the longest
            best = max(fitting, key=lambda k: (2 * len(needs[k] & lines) - sign * len(needs[k]), -k))
            left.remove(best)
            places.append(best)
            lines |= needs[best]
            room -= carried[best]
        goals.append(Goal(() if goals else tuple(long), tuple(sorted(places))))
        lines, room = set(), MAX_CARRIED
    return goals


def fill(body: Body, goals: Sequence[Goal], ends: Container[str]) -> tuple[Phase, ...]:
    """Return the lines of each phase; what earlier ones have computed is read, or computed again if that takes few lines."""
    known = {line.target: line for line in body.plain}
    phases: list[dict[str, None]] = []
    stored: list[dict[str, None]] = [{} for _ in goals]
    made: dict[str, int] = {}  # which phase computes a name first
    for n, goal in enumerate(goals):
        lines: dict[str, None] = {}
        stack = [*goal.names, *(str(body.results[k]) for k in goal.sums)]
        while stack:
            name = stack.pop()
            if name not in known or name in lines:
                continue
            if name in made and not is_cheap(name, known, ends):
                stored[made[name]][name] = None
            else:
                lines[name] = None
                stack += [a for a in known[name].args if isinstance(a, str)]
        made = dict.fromkeys(lines, n) | made
        phases.append(lines)
    return tuple(
        Phase(tuple(line for line in body.plain if line.target in lines), tuple(names), goal.sums)
        for lines, names, goal in zip(phases, stored, goals, strict=True)
    )


def is_cheap(name: str, known: Mapping[str, Line], ends: Container[str]) -> bool:
    """Return whether it takes few lines, and no slow ones, to compute a number again."""
    return name not in ends and len(below([name], known, ends)) <= MAX_REPEATED


def below(names: Iterable[str], known: Mapping[str, Line], ends: Container[str] = ()) -> dict[str, None]:
    """Return lines and all lines they are made of, by name; not beyond ``ends``, and not these."""
    lines: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in lines and name in known and name not in ends:
            lines[name] = None
            stack += [a for a in known[name].args if isinstance(a, str)]
    return lines
