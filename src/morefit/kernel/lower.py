"""From expressions to lines: put the nodes in order, give each a name, spell powers as multiplications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from morefit.expr import (
    NARY,
    SYMMETRIC,
    Expr,
    NodeRule,
    Op,
    Operation,
    column,
    fresh_prefix,
    leaves,
    rule_of,
    toposort,
)
from morefit.kernel.ir import Arith, Atom, Body, Line, NodeLoop

LARGEST_CHAIN = 64  # a larger whole power is left to the power function
LONG_SUM = 6  # terms; a sum of that many is added as two halves, which need not wait for each other


Arranged = Mapping[Expr, tuple[Expr, ...]]  # arguments in another order
NOT_ARRANGED: Arranged = {}


class Lowering:
    """Collects lines; equal lines are written once."""

    def __init__(
        self, prefix: str, around: Lowering | None = None, arranged: Arranged = NOT_ARRANGED
    ) -> None:
        self.prefix = prefix
        self.arranged: Arranged = around.arranged if around else arranged
        self.lines: list[Line | NodeLoop] = []
        self.numbers: Iterator[int] = around.numbers if around else count()
        self.seen: dict[tuple[object, ...], str] = dict(around.seen) if around else {}
        self.negated: dict[Atom, Atom] = dict(around.negated) if around else {}

    def fresh(self) -> str:
        """Return a new name."""
        return f"{self.prefix}{next(self.numbers)}"

    def line(self, op: Operation, *args: Atom) -> str:
        parts = [a if isinstance(a, str) else (a.hex(),) for a in args]  # 0.0 == -0.0
        if op in SYMMETRIC and str(parts[0]) > str(parts[1]):
            parts.reverse()
        key = (op, *parts)
        if key not in self.seen:
            self.seen[key] = self.fresh()
            self.lines.append(Line(self.seen[key], op, args))
        return self.seen[key]

    def node(self, node: Expr, atoms: Mapping[Expr, Atom]) -> Atom:
        """Lower one node whose arguments have names."""
        nodes = self.arranged.get(node, node.args)
        args = [atoms[a] for a in nodes]
        if node.op is Op.NAMED:
            return args[0]
        if node.op is Op.ADD:
            return self.add(nodes, args)
        if node.op is Op.MUL:
            return self.multiply(nodes, args)
        if node.op is Op.POW and node.args[1].op is Op.CONST:
            return self.power(args[0], node.args[1].number)
        return self.line(node.op, *args)

    def multiply(self, nodes: Sequence[Expr], atoms: Sequence[Atom]) -> Atom:
        parts = [a for n, a in zip(nodes, atoms, strict=True) if not is_minus_one(n)]
        negative = (len(nodes) - len(parts)) % 2 == 1
        total = parts[0] if parts else 1.0
        for part in parts[1:]:
            total = self.line(Op.MUL, total, part)
        return self.negate(total) if negative else total

    def negate(self, atom: Atom) -> Atom:
        target = self.line(Arith.NEG, atom)
        self.negated[target] = atom
        return target

    def add(self, nodes: Sequence[Expr], atoms: Sequence[Atom]) -> Atom:
        """Add, turning the addition of a negative into a subtraction."""
        parts = [self.sign(n, a) for n, a in zip(nodes, atoms, strict=True)]
        parts.sort(key=lambda part: part[0])  # positive ones first
        return self.total(parts)

    def total(self, parts: Sequence[tuple[bool, Atom]]) -> Atom:
        if len(parts) >= LONG_SUM:
            return self.line(Op.ADD, self.total(parts[::2]), self.total(parts[1::2]))
        negative, total = parts[0]
        if negative:
            total = self.negate(total)
        for negative, part in parts[1:]:
            total = self.line(Arith.SUB if negative else Op.ADD, total, part)
        return total

    def sign(self, node: Expr, atom: Atom) -> tuple[bool, Atom]:
        """Undo the negation of a term; its line falls away later if nothing else uses it."""
        if node.op is Op.MUL and atom in self.negated:
            return True, self.negated[atom]
        return False, atom

    def power(self, base: Atom, exponent: float) -> Atom:
        size = abs(exponent)
        if 2 * size != int(2 * size) or size > LARGEST_CHAIN:
            return self.line(Op.POW, base, exponent)
        if size == int(size) and exponent < 0:
            base = self.line(Arith.DIV, 1.0, base)  # one division serves all negative powers
        result = self.whole_power(base, int(size)) if int(size) else 1.0
        if size == int(size):
            return result
        root = self.line(Op.SQRT, base)
        result = root if result == 1.0 else self.line(Op.MUL, result, root)
        return self.line(Arith.DIV, 1.0, result) if exponent < 0 else result

    def whole_power(self, base: Atom, n: int) -> Atom:
        if n == 1:
            return base
        half = self.whole_power(base, n // 2)
        square = self.line(Op.MUL, half, half)
        return self.line(Op.MUL, square, base) if n % 2 else square


def is_minus_one(node: Expr) -> bool:
    return node.op is Op.CONST and node.number == -1.0


def lower(
    roots: Sequence[Expr], names: Mapping[Expr, str], prefix: str = "v", arranged: Arranged = NOT_ARRANGED
) -> Body:
    """Write expressions as lines; leaves and whatever else is in ``names`` are inputs. Some arguments may be in another order."""
    lowering = Lowering(fresh_prefix(prefix, *roots, *names), arranged=arranged)
    return lower_inside(roots, dict(names), lowering)


def lower_inside(roots: Sequence[Expr], atoms: dict[Expr, Atom], lowering: Lowering) -> Body:
    """Write expressions of what has names already; sums over the nodes of one rule share a loop."""
    waiting = toposort(*roots, arranged=lowering.arranged)
    while waiting:
        left = [node for node in waiting if not lower_node(node, atoms, lowering)]
        rules: dict[NodeRule, list[Expr]] = {}
        for node in left:
            if node.op is Op.NODE_SUM and is_ready(node, atoms):
                rules.setdefault(rule_of(node), []).append(node)
        for rule, sums in rules.items():
            inside = {**atoms, column(rule.symbol): rule.symbol.name}
            body = lower_inside([s.args[0] for s in sums], inside, Lowering(lowering.prefix, lowering))
            targets = tuple(lowering.fresh() for _ in sums)
            nodes, weights = rule.tables
            loop = NodeLoop(targets, rule.symbol.name, (nodes.name, weights.name), rule.count, body)
            lowering.lines.append(loop)
            atoms |= zip(sums, targets, strict=True)
        waiting = left if rules else []
    results = tuple(atoms[root] for root in roots)
    return Body(live(lowering.lines, results), results)


def lower_node(node: Expr, atoms: dict[Expr, Atom], lowering: Lowering) -> bool:
    """Write a node whose arguments have names; return whether it has one now."""
    if node not in atoms and node.op is Op.CONST:
        atoms[node] = node.number
    elif node not in atoms:
        bound = node.op in (Op.INTEGRAL, Op.NODE_SUM) or not node.args  # or inside of one that has a name
        if bound or not all(a in atoms for a in node.args):
            return False
        assert node.op in NARY or len(node.args) == node.op.arity
        atoms[node] = lowering.node(node, atoms)
    return True


def is_ready(node: Expr, atoms: Mapping[Expr, Atom]) -> bool:
    """Return whether all that a sum over nodes depends on has a name, also other sums that do not depend on its node."""

    def available(one: Expr) -> bool:
        return all(leaf in atoms for leaf in leaves(Op.COLUMN, one))

    inner = (one for one in toposort(*node.args) if one.op is Op.NODE_SUM and one not in atoms)
    return available(node) and not any(map(available, inner))


def live(lines: Sequence[Line | NodeLoop], results: Sequence[Atom]) -> tuple[Line | NodeLoop, ...]:
    """Drop the lines that no result needs."""
    needed = {a for a in results if isinstance(a, str)}
    alive: list[Line | NodeLoop] = []
    for line in reversed(lines):
        if isinstance(line, NodeLoop):
            pairs = [p for p in zip(line.targets, line.body.results, strict=True) if p[0] in needed]
            if not pairs:
                continue
            wanted = tuple(result for _, result in pairs)
            body = Body(live(line.body.lines, wanted), wanted)
            alive.append(replace(line, targets=tuple(target for target, _ in pairs), body=body))
            needed |= body.reads
        elif line.target in needed:
            alive.append(line)
            needed.update(a for a in line.args if isinstance(a, str))
    return tuple(reversed(alive))
