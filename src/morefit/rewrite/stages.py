"""Split expressions by what they depend on, so that nothing is computed more often than it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Flag, auto
from functools import reduce
from operator import and_

from morefit.dataclass import dataclass
from morefit.expr import (
    ONE,
    Expr,
    LoopSymbol,
    Op,
    Operation,
    column,
    const,
    fresh_prefix,
    leaves,
    make,
    node_price,
    price,
    rebuild,
    remake,
    scalar,
    substitute_all,
    toposort,
)
from morefit.rewrite.forms import settle_choices, use_double_angles
from morefit.rewrite.precompute import Precompute, choose_columns
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.share import share
from morefit.rewrite.simplify import base_and_power, coefficient, simplifier


class Depends(Flag):
    """What a value depends on, and so how often it changes."""

    NOTHING = 0  # folded when the graph is built
    PARAMETERS = auto()  # computed once per call
    EVENT = auto()  # computed once per dataset, or in the loop where that is cheaper
    BOTH = PARAMETERS | EVENT  # the loop body


@dataclass(frozen=True)
class Stages:
    """The same outputs, cut at the places where the rate of change jumps."""

    per_call: dict[str, Expr]  # scalar name -> expression of parameters
    per_dataset: dict[str, Expr]  # column name -> expression of observables
    per_event: tuple[Expr, ...]  # the loop body, one expression per output

    def __str__(self) -> str:
        lines = [f"per call     {n} = {e!r}   # price {price(e)}" for n, e in self.per_call.items()]
        lines += [f"per dataset  {n} = {e!r}   # price {price(e)}" for n, e in self.per_dataset.items()]
        lines += [f"per event    {e!r}" for e in self.per_event]
        return "\n".join([*lines, f"price of the loop body {price(*self.per_event)}"])


OF_LEAF = {Op.SCALAR: Depends.PARAMETERS, Op.COLUMN: Depends.EVENT}


def leaf_depends(leaf: Expr) -> Depends:
    """Return what a leaf depends on; what the loop computes counts as both, so that what has it stays there."""
    return Depends.BOTH if isinstance(leaf.value, LoopSymbol) else OF_LEAF.get(leaf.op, Depends.NOTHING)


def depends_on(*roots: Expr) -> dict[Expr, Depends]:
    """Return for every node below the roots what it depends on; an integral has no events left."""
    depends: dict[Expr, Depends] = {}
    for node in toposort(*roots):
        depends[node] = node_depends(node, depends)
    return depends


def node_depends(node: Expr, known: Mapping[Expr, Depends]) -> Depends:
    """Return what a node depends on, its arguments being known."""
    mask = leaf_depends(node)
    for arg in node.args:
        other = known[arg]
        if other is not mask and other is not Depends.NOTHING:  # what ``|`` gives, which takes long for flags
            mask = other if mask is Depends.NOTHING else Depends.BOTH
    return mask & Depends.PARAMETERS if node.op is Op.INTEGRAL else mask


class Regrouper:
    """Reorders sums and products so that parts with the same dependence stand together."""

    def __init__(self) -> None:
        self.new: Rewriter = simplifier()
        self.known: dict[Expr, Depends] = {}

    def depends(self, node: Expr) -> Depends:
        """Look up what a node depends on, working it out for nodes not seen before."""
        known = self.known
        stack = [] if node in known else [node]
        while stack:
            unknown = [arg for arg in stack[-1].args if arg not in known]
            if unknown:
                stack += unknown
            else:
                last = stack.pop()
                known[last] = node_depends(last, known)
        return known[node]

    def __call__(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """Rebuild one node from regrouped arguments."""
        if self.depends(node) is Depends.BOTH and node.op is Op.MUL:
            return self.group_product(self.flat(Op.MUL, args))
        if self.depends(node) is Depends.BOTH and node.op is Op.ADD:
            return self.group_sum(self.flat(Op.ADD, args))
        return remake(node, args)

    def flat(self, op: Operation, args: Iterable[Expr]) -> list[Expr]:
        """Open nested sums or products that depend on both sides; what depends on one side stays joined."""
        parts: list[Expr] = []
        stack = list(args)[::-1]
        while stack:
            node = stack.pop()
            if node.op is op and self.depends(node) is Depends.BOTH:
                stack += reversed(node.args)
            else:
                parts.append(node)
        return parts

    def group_product(self, factors: Sequence[Expr]) -> Expr:
        """Write a product as (what depends on parameters) * (on the event) * (on both) ..."""
        return make_nary(Op.MUL, self.groups(Op.MUL, factors))

    def groups(self, op: Operation, parts: Sequence[Expr]) -> list[Expr]:
        """Join the parts that depend on parameters only, and those that depend on the event only."""
        kinds: dict[Depends, list[Expr]] = {}
        for part in parts:
            kinds.setdefault(self.depends(part), []).append(part)
        numbers = kinds.get(Depends.NOTHING, [])
        # a number joins the parameters where there are some: it is then paid once per call
        home = Depends.PARAMETERS if Depends.PARAMETERS in kinds else Depends.EVENT
        if numbers and home in kinds:
            kinds[home] = [*numbers, *kinds[home]]
            numbers = []
        joined = [
            self.new(op, tuple(kinds[kind])) for kind in (Depends.PARAMETERS, Depends.EVENT) if kind in kinds
        ]
        return [*numbers, *joined, *kinds.get(Depends.BOTH, [])]

    def group_sum(self, terms: Sequence[Expr]) -> Expr:
        """Take common factors out of a sum, then join what depends on one side only."""
        split_terms = [self.split_term(term) for term in terms]
        return self.join_terms(merge(split_terms, self.new))

    def split_term(self, term: Expr) -> Term:
        """Write a term as (parameters and numbers) * (event) * (powers of what depends on both)."""
        sides: dict[bool, list[Expr]] = {True: [], False: []}
        mixed: Counter[Expr] = Counter()
        for factor in self.flat(Op.MUL, (term,)):
            kind = self.depends(factor)
            if kind is not Depends.BOTH:
                sides[kind is Depends.EVENT].append(factor)
                continue
            base, power = base_and_power(factor)
            if power == int(power) and power > 0:
                mixed[base] += int(power)
            else:
                mixed[factor] += 1
        weight, event = (
            self.new(Op.MUL, tuple(sides[side])) if sides[side] else ONE for side in (False, True)
        )
        return Term(weight, event, mixed)

    def join_terms(self, terms: list[Term]) -> Expr:
        """Factor out the commonest mixed factor until none is shared, then add what is left."""
        parts: list[Expr] = []
        while (common := commonest(terms)) is not None:
            inside = [t for t in terms if common in t.mixed]
            terms = [t for t in terms if common not in t.mixed]
            shared = reduce(and_, (t.mixed for t in inside))
            powers = [self.new(Op.POW, (base, as_const(n))) for base, n in shared.items()]
            weight, weights = self.common_weight(inside)
            rest = [Term(w, t.event, t.mixed - shared) for w, t in zip(weights, inside, strict=True)]
            parts.append(self.group_product(self.flat(Op.MUL, (weight, *powers, self.join_terms(rest)))))
        if terms or not parts:
            parts.append(self.join_plain(terms))
        return (
            make_nary(Op.ADD, self.groups(Op.ADD, self.flat(Op.ADD, parts))) if len(parts) > 1 else parts[0]
        )

    def common_weight(self, terms: list[Term]) -> tuple[Expr, list[Expr]]:
        """Return the weight that terms have in common, if one of them has no other, and what is left of each."""
        factors = [Counter(t.weight.args if t.weight.op is Op.MUL else (t.weight,)) for t in terms]
        common = reduce(and_, factors)
        if common not in factors or ONE in common:
            return ONE, [t.weight for t in terms]
        return self.new(Op.MUL, tuple(common.elements())), [
            self.new(Op.MUL, tuple((each - common).elements())) if each != common else ONE for each in factors
        ]

    def join_plain(self, terms: list[Term]) -> Expr:
        """Add terms without a common mixed factor; those with the same weight share one product."""
        by_weight: dict[Expr, list[tuple[float, Expr]]] = {}
        mixed: list[Expr] = []
        for term in terms:
            if term.mixed:
                powers = [self.new(Op.POW, (base, as_const(n))) for base, n in term.mixed.items()]
                mixed.append(self.group_product(self.flat(Op.MUL, (term.weight, term.event, *powers))))
            else:
                number, weight = coefficient(term.weight)
                by_weight.setdefault(weight, []).append((number, term.event))
        for weight, events in by_weight.items():
            mixed.append(self.group_product(self.flat(Op.MUL, self.weighted(weight, events))))
        return make_nary(Op.ADD, self.groups(Op.ADD, self.flat(Op.ADD, mixed)))

    def weighted(self, weight: Expr, events: list[tuple[float, Expr]]) -> tuple[Expr, ...]:
        """Multiply a sum of event-only terms by their weight; a number that all have goes with the weight."""
        common = events[0][0] if len({number for number, _ in events}) == 1 else 1.0
        terms = [self.new(Op.MUL, (const(number / common), event)) for number, event in events]
        return self.new(Op.MUL, (const(common), weight)), self.new(Op.ADD, tuple(terms))


@dataclass(frozen=True)
class Term:
    """One term of a sum, by what its factors depend on."""

    weight: Expr  # parameters and numbers
    event: Expr
    mixed: Counter[Expr]  # base -> whole power


def merge(terms: list[Term], new: Rewriter) -> list[Term]:
    """Add the weights of terms that are otherwise equal."""
    groups: dict[object, list[Term]] = {}
    for term in terms:
        groups.setdefault((term.event, frozenset(term.mixed.items())), []).append(term)
    return [
        Term(new(Op.ADD, tuple(t.weight for t in group)), group[0].event, group[0].mixed)
        for group in groups.values()
    ]


def commonest(terms: list[Term]) -> Expr | None:
    """Find the mixed factor that stands in most terms, if in two at least."""
    count = Counter(base for term in terms for base in term.mixed)
    best = max(count.items(), key=lambda item: (item[1], node_price(item[0]), item[0].order), default=None)
    return best[0] if best and best[1] > 1 else None


def as_const(power: int) -> Expr:
    return make(Op.CONST, value=float(power))


def make_nary(op: Operation, parts: list[Expr]) -> Expr:
    neutral = 1.0 if op is Op.MUL else 0.0
    rest = [p for p in parts if not (p.op is Op.CONST and p.number == neutral)]
    if not rest:
        return make(Op.CONST, value=neutral)
    return rest[0] if len(rest) == 1 else make(op, tuple(rest))


def event_sums(roots: Sequence[Expr]) -> list[Expr]:
    """Return the sums over nodes that depend on the event alone, such as integrals of densities without parameters.

    The node of a rule counts as a parameter, but a sum binds it. Of nested sums the outer ones are returned.
    """
    sums = [n for n in toposort(*roots, enter_integrals=False) if n.op is Op.NODE_SUM and is_of_event(n)]
    inside = set(toposort(*(arg for node in sums for arg in node.args)))
    return [node for node in sums if node not in inside]


def is_of_event(node: Expr) -> bool:
    """Return whether a sum over nodes depends on the event, and on nothing else."""
    columns = leaves(Op.COLUMN, node)
    if not columns or any(isinstance(leaf.value, LoopSymbol) for leaf in columns):
        return False
    return all(inner.op not in (Op.SCALAR, Op.INTEGRAL) for inner in toposort(node))


def regroup(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Reorder sums and products so that parts with the same dependence stand together; integrals stay as they are."""
    integrals = [node for node in toposort(*roots, enter_integrals=False) if node.op is Op.INTEGRAL]
    sums = event_sums(roots)
    if not (integrals or sums):
        return regroup_all(roots)
    prefix = fresh_prefix("integral", *roots)
    hidden = {node: scalar(f"{prefix}{k}") for k, node in enumerate(integrals)}
    hidden |= {node: column(f"{prefix}{k}") for k, node in enumerate(sums, len(hidden))}
    shown = {stand_in: node for node, stand_in in hidden.items()}
    shown |= {hidden[node]: remake(node, regroup_all(node.args)) for node in sums}
    return substitute_all(regroup_all(substitute_all(roots, hidden)), shown)


def regroup_all(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Reorder sums and products of expressions without integrals."""
    regrouper = Regrouper()
    simple = settle_choices(rebuild(tuple(roots), regrouper.new.rebuild), regrouper.new)
    return share(rebuild(use_double_angles(simple, regrouper.new), regrouper))


def split(
    outputs: Sequence[Expr], precompute: Precompute = "auto", functions: Mapping[Expr, Expr] | None = None
) -> Stages:
    """Move out of the loop what depends on parameters only, and what depends on the event only if that pays.

    ``functions`` are the functions of parameters that some scalars stand for.
    """
    functions = functions or {}
    sums = [] if precompute == "none" else event_sums(outputs)
    prefix = fresh_prefix("s", *outputs)
    hidden = {node: column(f"{prefix}{k}") for k, node in enumerate(sums)}
    shown = {stand_in: node for node, stand_in in hidden.items()}
    outputs = substitute_all(outputs, hidden)
    depends = depends_on(*outputs)
    nodes = toposort(*outputs, enter_integrals=False)
    border = set(outputs)  # nodes used by something with other needs
    for user in nodes:
        if user.op is not Op.INTEGRAL:
            border.update(arg for arg in user.args if depends[arg] != depends[user])
    for node in list(border):
        # a negation is free: what it negates is what counts
        if node.op is Op.MUL and node_price(node) == 0 and functions.keys().isdisjoint(node.args):
            border.update(node.args)

    inner = [n for n in nodes if n in border and depends[n] is Depends.PARAMETERS]
    hoisted = [n for n in inner if is_worth_hoisting(n) or not functions.keys().isdisjoint((n, *n.args))]
    needed = [n for n in nodes if n in border and depends[n] is Depends.EVENT]
    columns = choose_columns(needed, precompute)
    b, c = fresh_prefix("b", *outputs), fresh_prefix("c", *outputs)
    cut = {node: scalar(f"{b}{i}") for i, node in enumerate(hoisted)}
    cut |= {node: column(f"{c}{i}") for i, node in enumerate(columns)}
    per_event = substitute_all(outputs, cut)
    named = {cut[n].name: n for n in columns}
    named |= {leaf.name: leaf for leaf in leaves(Op.COLUMN, *per_event) if leaf in shown}
    return Stages(
        dict(zip((cut[n].name for n in hoisted), substitute_all(hoisted, functions), strict=True)),
        dict(zip(named, substitute_all(named.values(), shown), strict=True)),
        per_event,
    )


def is_worth_hoisting(node: Expr) -> bool:
    """A parameter or its negative is free to use as it is."""
    return node.op is Op.INTEGRAL or node_price(node) > 0
