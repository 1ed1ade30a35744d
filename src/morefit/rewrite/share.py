"""Find the pairs that several sums or products have in common and compute each once."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from morefit.expr import Expr, Op, Operation, make, rebuild, remake, same, toposort

LONGEST = 40  # arguments; a longer sum or product is left as it is: its pairs would be too many
Pair = tuple[Expr, Expr]


def share(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Nest sums and products so that what they share is one node."""
    for op in (Op.MUL, Op.ADD):
        groups = {n: list(n.args) for n in toposort(*roots) if n.op is op and len(n.args) <= LONGEST}
        pull_pairs(op, groups)

        def nest(
            node: Expr, args: tuple[Expr, ...], op: Operation = op, groups: dict[Expr, list[Expr]] = groups
        ) -> Expr:
            if node not in groups or same(tuple(groups[node]), node.args):
                return remake(node, args)
            renew = dict(zip(node.args, args, strict=True))
            parts = tuple(rename(part, op, renew) for part in groups[node])
            return parts[0] if len(parts) == 1 else make(op, parts)

        roots = rebuild(roots, nest)
    return roots


def rename(part: Expr, op: Operation, renew: dict[Expr, Expr]) -> Expr:
    """Rebuild a pulled-out pair from the new arguments it was made of; pairs nest at most LONGEST deep."""
    if part in renew:
        return renew[part]
    return make(op, tuple(rename(a, op, renew) for a in part.args))


def pull_pairs(op: Operation, groups: dict[Expr, list[Expr]]) -> None:
    """Replace the most frequent pair by one node until no pair stands in two groups."""
    members: dict[Pair, set[Expr]] = defaultdict(set)
    for owner, parts in groups.items():
        for pair in pairs(parts):
            members[pair].add(owner)
    # the counter keeps heapq from comparing expressions, which have no order of their own
    heap = [(rank(p, owners), i, p) for i, (p, owners) in enumerate(members.items()) if len(owners) > 1]
    heapq.heapify(heap)
    count = len(members)
    while heap:
        entry, serial, pair = heapq.heappop(heap)
        owners = members[pair]
        if len(owners) < 2:
            continue
        if entry != rank(pair, owners):  # some of its groups have changed since
            heapq.heappush(heap, (rank(pair, owners), serial, pair))
            continue
        joined = make(op, pair)
        grown: dict[Pair, None] = {}
        for owner in sorted(owners, key=lambda o: o.order):
            for new in join(owner, pair, joined, groups[owner], members):
                grown[new] = None
        for new in grown:
            if len(members[new]) > 1:
                count += 1
                heapq.heappush(heap, (rank(new, members[new]), count, new))


def join(
    owner: Expr, pair: Pair, joined: Expr, parts: list[Expr], members: dict[Pair, set[Expr]]
) -> list[Pair]:
    """Replace a pair among the parts of a group by one node; return the pairs that this node makes."""
    twice = len(set(parts)) < len(parts)  # a product can have a factor twice
    gone = list(pairs(parts)) if twice else []
    for part in pair:
        parts.pop(place(part, parts))
    gone += [pair, *(in_order(part, other) for part in pair for other in parts)]
    for old in gone:
        members[old].discard(owner)
    new = [in_order(joined, other) for other in parts]
    parts.append(joined)
    for one in pairs(parts) if twice else new:
        members[one].add(owner)
    return new


def place(part: Expr, parts: list[Expr]) -> int:
    """Return where an expression stands first."""
    return next(k for k, other in enumerate(parts) if other is part)


def in_order(a: Expr, b: Expr) -> Pair:
    return (b, a) if b.order < a.order else (a, b)


def pairs(parts: Iterable[Expr]) -> Iterable[Pair]:
    return combinations(sorted(parts, key=lambda p: p.order), 2)


def rank(pair: Pair, owners: set[Expr]) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Put the pair with most groups first; ties in an order that is the same in every process."""
    return (-len(owners), pair[0].order, pair[1].order)
