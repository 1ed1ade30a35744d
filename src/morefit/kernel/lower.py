"""From expressions to lines: put the nodes in order, give each a name, spell powers as multiplications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morefit.expr import NARY, Expr, Op, Operation, fresh_prefix, toposort
from morefit.kernel.ir import Arith, Atom, Body, Line

LARGEST_CHAIN = 64  # a larger whole power is left to the power function
LONG_SUM = 6  # terms; a sum of that many is added as two halves, which need not wait for each other


class Lowering:
    """Collects lines; equal lines are written once."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.lines: list[Line] = []
        self.seen: dict[tuple[object, ...], str] = {}
        self.negated: dict[Atom, Atom] = {}

    def line(self, op: Operation, *args: Atom) -> str:
        key = (op, *((type(a), a if isinstance(a, str) else a.hex()) for a in args))  # 0.0 == -0.0
        if key not in self.seen:
            self.seen[key] = f"{self.prefix}{len(self.lines)}"
            self.lines.append(Line(self.seen[key], op, args))
        return self.seen[key]

    def node(self, node: Expr, args: Sequence[Atom]) -> Atom:
        """Lower one node whose arguments have names."""
        if node.op is Op.NAMED:
            return args[0]
        if node.op is Op.ADD:
            return self.add(node.args, args)
        if node.op is Op.MUL:
            return self.multiply(node.args, args)
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
        result = self.whole_power(base, int(size)) if int(size) else 1.0
        if size != int(size):
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


def lower(roots: Sequence[Expr], names: Mapping[Expr, str], prefix: str = "v") -> Body:
    """Write expressions as lines; leaves and whatever else is in ``names`` are inputs."""
    lowering = Lowering(fresh_prefix(prefix, *roots, *names))
    atoms: dict[Expr, Atom] = dict(names)
    for node in toposort(*roots):
        if node in atoms:
            continue
        if node.op is Op.CONST:
            atoms[node] = node.number
        elif node.op is Op.INTEGRAL or not node.args:
            continue  # bound inside an integral that has a name itself
        elif all(a in atoms for a in node.args):
            assert node.op in NARY or len(node.args) == node.op.arity
            atoms[node] = lowering.node(node, [atoms[a] for a in node.args])
    results = tuple(atoms[root] for root in roots)
    return Body(live(lowering.lines, results), results)


def live(lines: Sequence[Line], results: Sequence[Atom]) -> tuple[Line, ...]:
    """Drop the lines that no result needs."""
    needed = {a for a in results if isinstance(a, str)}
    alive: list[Line] = []
    for line in reversed(lines):
        if line.target in needed:
            alive.append(line)
            needed.update(a for a in line.args if isinstance(a, str))
    return tuple(reversed(alive))
