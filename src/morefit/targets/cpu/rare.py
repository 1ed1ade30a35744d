"""Branches of choices that no lane of a vector may need: their functions are computed only where one does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush

from morefit.expr.operations import Op
from morefit.kernel import Atom, Body, Line
from morefit.targets.cpu.phases import is_function

Branches = Mapping[
    str, Mapping[int, tuple[Line, ...]]
]  # of choices by name: lines that only one side of them needs


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
