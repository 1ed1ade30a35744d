"""Ways to walk a graph. Nothing else in morefit goes down an expression of unknown depth."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from morefit.expr.build import same
from morefit.expr.node import Expr, Value, make
from morefit.expr.node_rule import NodeRule
from morefit.expr.operations import NARY, SYMMETRIC, Op, Operation
from morefit.expr.quadrature import Domain
from morefit.expr.symbol import Symbol

BINDING = (Op.INTEGRAL, Op.NODE_SUM)  # operations that bind columns of their arguments
FIRST_NUMBERS = 8  # of a form: they order arguments that are equal but for numbers
DIVISION_PRICE = 10  # of the reciprocal that a negative power needs


def toposort(
    *roots: Expr,
    enter_integrals: bool = True,
    enter_sums: bool = True,
    arranged: Mapping[Expr, tuple[Expr, ...]] | None = None,
) -> list[Expr]:
    """Return every node below the roots, arguments before the nodes that use them; those of some nodes may be in another order."""
    closed = {op for op, enter in ((Op.INTEGRAL, enter_integrals), (Op.NODE_SUM, enter_sums)) if not enter}
    order: dict[Expr, None] = {}
    stack: list[Expr | None] = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if node is None:  # all arguments of the node below are in order
            node = stack.pop()
            assert node is not None
            order[node] = None
        elif node not in order:
            if node.args and node.op not in closed:
                stack += (node, None)
                stack += (arranged.get(node, node.args) if arranged else node.args)[::-1]
            else:
                order[node] = None
    return list(order)


class Form(NamedTuple):
    """What expressions that are equal but for numbers have in common, the same in all processes, and their first numbers."""

    rank: int  # of the outermost operation
    key: int
    numbers: tuple[float, ...] = ()

    @property
    def kind(self) -> tuple[int, int]:
        return self.rank, self.key


def forms_of(*roots: Expr) -> dict[Expr, Form]:
    """Return the form of every node below the roots."""
    forms: dict[Expr, Form] = {}
    for node in toposort(*roots):
        below = [forms[arg] for arg in arranged(node, forms)]
        known = node.op is Op.CONST
        name = 0 if below or known else node.order[1]
        if isinstance(node.value, Domain):
            name = zlib.crc32(str(node.value).encode())
        inner = chain.from_iterable(form.numbers for form in below)
        numbers = (node.number,) if known else tuple(islice(inner, FIRST_NUMBERS))
        forms[node] = Form(node.op.rank, hash((name, tuple(form.kind for form in below))), numbers)
    return forms


def arranged(node: Expr, forms: Mapping[Expr, Form]) -> Sequence[Expr]:
    """Return the arguments of an operation; where they may be exchanged, in an order that numbers hardly change."""
    return sorted(node.args, key=forms.__getitem__) if node.op in SYMMETRIC else node.args


def arranged_by_form(*roots: Expr) -> dict[Expr, tuple[Expr, ...]]:
    """Return the arguments of symmetric operations in an order that does not depend on the numbers in them."""
    forms = forms_of(*roots)
    return {
        node: tuple(sorted(node.args, key=lambda arg: forms[arg].kind))
        for node in forms
        if node.op in SYMMETRIC
    }


def to_rows(root: Expr) -> tuple[tuple[Operation, tuple[int, ...], Value], ...]:
    """Flatten a graph to rows that name their arguments by number: pickles without recursion."""
    index = {node: k for k, node in enumerate(toposort(root))}
    return tuple((node.op, tuple(index[a] for a in node.args), node.value) for node in index)


def from_rows(rows: Iterable[tuple[Operation, tuple[int, ...], Value]]) -> Expr:
    """Return the expression of the last row."""
    nodes: list[Expr] = []
    for op, args, value in rows:
        nodes.append(make(op, tuple(nodes[a] for a in args), value))
    return nodes[-1]


def rebuild(roots: tuple[Expr, ...], how: Callable[[Expr, tuple[Expr, ...]], Expr]) -> tuple[Expr, ...]:
    """Rebuild graphs from the leaves up; ``how`` gets each old node and its new arguments."""
    done: dict[Expr, Expr] = {}
    new = done.__getitem__
    for node in toposort(*roots):
        done[node] = how(node, tuple(map(new, node.args)))
    return tuple(map(new, roots))


def remake(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """Return the same operation on other arguments."""
    return node if same(args, node.args) else make(node.op, args, node.value)


def substitute(root: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """Replace nodes, top down: a replaced node is not entered."""
    return substitute_all((root,), replacements)[0]


def substitute_all(roots: Iterable[Expr], replacements: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """Replace nodes in several expressions; what they share is walked once."""
    return substitute_known(tuple(roots), dict(replacements))


def substitute_known(roots: tuple[Expr, ...], done: dict[Expr, Expr]) -> tuple[Expr, ...]:
    """Do the same, and add to the replacements what has become of every node."""
    new = done.__getitem__
    stack: list[Expr | None] = [*roots]
    while stack:
        node = stack.pop()
        if node is None:  # all arguments of the node below are done
            node = stack.pop()
            assert node is not None
            done[node] = remake(node, tuple(map(new, node.args)))
        elif node not in done:
            if node.args:
                stack += (node, None)
                stack += node.args
            else:
                done[node] = node
    return tuple(map(new, roots))


def leaves(op: Operation, *roots: Expr) -> list[Expr]:
    """Return the leaves of one kind that the value depends on: columns bound by an integral do not count."""
    free: dict[Expr, None] = {}
    seen: set[Expr] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is op:
            free[node] = None
        elif node.op in BINDING and op is Op.COLUMN:
            bound = domain_of(node).names
            free |= dict.fromkeys(leaf for leaf in leaves(op, *node.args) if leaf.name not in bound)
        else:
            stack += reversed(node.args)
    return list(free)


def rule_of(node_sum: Expr) -> NodeRule:
    """Return the rule of a sum over nodes."""
    assert isinstance(node_sum.value, NodeRule)
    return node_sum.value


def with_finer_rules(root: Expr) -> Expr:
    """Return an expression with twice as many panels in each of its sums over nodes."""
    return with_rules(root, lambda rule: rule.finer)


def with_coarser_rules(root: Expr) -> Expr:
    """Return an expression with half as many panels in each of its sums over nodes."""
    return with_rules(root, lambda rule: rule.coarser)


def with_rules(root: Expr, change: Callable[[NodeRule], NodeRule]) -> Expr:
    """Return an expression with other rules in its sums over nodes."""

    def refine(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op is not Op.NODE_SUM:
            return remake(node, args)
        old, new = rule_of(node), change(rule_of(node))
        node_of = {make(Op.COLUMN, value=old.symbol): make(Op.COLUMN, value=new.symbol)}
        return make(Op.NODE_SUM, (substitute(args[0], node_of),), new)

    return rebuild((root,), refine)[0]


def domain_of(integral: Expr) -> Domain:
    """Return what an integral runs over."""
    assert isinstance(integral.value, Domain)
    return integral.value


def symbols(op: Operation, *roots: Expr) -> list[Symbol]:
    """Return the symbols of the leaves of one kind, in order of first appearance."""
    return [leaf.value for leaf in leaves(op, *roots) if isinstance(leaf.value, Symbol)]


def uses(*roots: Expr) -> Counter[Expr]:
    """Count how often each node stands as an argument or a root."""
    count: Counter[Expr] = Counter(roots)
    for node in toposort(*roots):
        count.update(node.args)
    return count


def node_price(node: Expr) -> int:
    """Price one node, its arguments being there already."""
    if node.op in NARY:
        free = sum(a.op is Op.CONST and a.number == -1.0 for a in node.args) if node.op is Op.MUL else 0
        return node.op.price * max(len(node.args) - 1 - free, 0)
    if node.op is Op.POW and node.args[1].op is Op.CONST:
        return power_price(node.args[1].number)
    return node.op.price


def power_price(exponent: float) -> int:
    """Price a constant power: multiplications for small whole numbers, a reciprocal, a root."""
    size, price = abs(exponent), DIVISION_PRICE if exponent < 0 else 0
    if 2 * size != int(2 * size) or size > 64:
        return Op.POW.price
    whole = int(size)
    if size != whole:
        price += Op.SQRT.price + (1 if whole else 0)
    return price + max(whole.bit_length() - 1 + whole.bit_count() - 1, 0)


def fresh_prefix(wanted: str, *roots: Expr) -> str:
    """Return a prefix that, with a number behind it, is not yet a name in the graphs."""
    taken = {leaf.value.name for leaf in toposort(*roots) if isinstance(leaf.value, Symbol)}
    while any(name.startswith(wanted) and name[len(wanted) :].isdigit() for name in taken):
        wanted += "_"
    return wanted


def price(*roots: Expr) -> int:
    """Price a graph, each shared node once."""
    return sum(map(node_price, toposort(*roots)))
