"""The sums over events that a fit needs: the logarithm of a density, its gradient, its Hessian, all from one pass."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from morefit.expr import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    Op,
    add_all,
    apply,
    const,
    leaves,
    make,
    multiply_all,
    substitute_all,
    toposort,
    where,
)
from morefit.kernel.build import PairTerms, SumLoop
from morefit.kernel.ir import COUNT, Reduce, Result
from morefit.kernel.symbols import WEIGHT
from morefit.rewrite.derive import derivatives
from morefit.rewrite.functions import Functions
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.share import share
from morefit.rewrite.simplify import normalise, simplifier

LARGEST = sys.float_info.max
SMALLEST = sys.float_info.min  # of the normal numbers
TILES_FROM = (
    13  # parameters on: the products of first derivatives are summed in tiles, unless a backend knows better
)

MAX_SQUARES = 6  # in a density whose Hessian is summed in tiles; and half of the parameters

Row = tuple[int, Reduce, Expr]  # an output, how it is reduced, and what comes from an event


@dataclass(frozen=True)
class Request:
    """What to sum over events: ``order`` 0 the value, 1 also the gradient, 2 also the Hessian."""

    log_density: Expr
    parameters: tuple[Expr, ...]  # to differentiate by
    order: int
    weighted: bool = False
    careful: bool = False  # leave out, and count, events whose density is not a positive number
    fisher: bool = False  # instead: the sums of (weight * gradient) pairs
    per_set: Expr = ZERO  # added once for each set, not for each event

    @property
    def outputs(self) -> int:
        """How many numbers come out, laid out as value, gradient, lower triangle of the Hessian."""
        n = len(self.parameters)
        triangle = n * (n + 1) // 2
        return triangle if self.fisher else 1 + n * (self.order > 0) + triangle * (self.order > 1)

    def renamed(self, names: Mapping[Expr, Expr]) -> Request:
        """Return the same sums with other names for their parameters."""
        log_density, per_set, *parameters = substitute_all(
            (self.log_density, self.per_set, *self.parameters), names
        )
        return replace(self, log_density=log_density, per_set=per_set, parameters=tuple(parameters))


def open_log(log_density: Expr) -> tuple[Expr, list[Expr]]:
    """Split a log density into a plain part and the densities whose logarithms are added to it."""
    (simple,) = normalise(log_density)
    terms = simple.args if simple.op is Op.ADD else (simple,)
    inner = [t.args[0] for t in terms if t.op is Op.LOG and leaves(Op.COLUMN, t)]
    plain = [t for t in terms if not (t.op is Op.LOG and leaves(Op.COLUMN, t))]
    return add_all(*plain) if len(plain) > 1 else (plain[0] if plain else ZERO), inner


def with_derivatives(root: Expr, request: Request, functions: Functions, new: Rewriter) -> list[Expr]:
    """Return an expression, its first and its second derivatives (lower triangle), as far as the request goes."""
    wrt, known = request.parameters, functions.slopes
    first = derivatives(root, wrt, new, known) if request.order > 0 or request.fisher else []
    second: list[Expr] = []
    if request.order > 1 and not request.fisher:
        for i, slope in enumerate(first):
            second += derivatives(slope, wrt[: i + 1], new, known)
    return [root, *first, *second]


def event_terms(request: Request, tiles_from: int = TILES_FROM) -> tuple[tuple[Expr, ...], dict[Expr, Expr]]:
    """Return everything the loop computes besides logarithms, quotients and products of quotients.

    Scalars stand in it for functions of parameters alone, which are returned as well. The squares of a density whose
    Hessian is summed in tiles come last: of each its factor, and the first derivatives of what is squared.
    """
    new, functions = simplifier(), Functions(request.parameters)
    (log_density,) = functions.hide((request.log_density,))
    plain, inner = open_log(log_density)
    parts = functions.hide((plain, *inner))
    wrt = request.parameters
    if not (request.order > 1 and len(inner) == 1 and len(wrt) >= tiles_from and not request.fisher):
        terms = [t for part in parts for t in with_derivatives(part, request, functions, new)]
        return tuple(terms), functions.definitions()
    rest, squares = open_squares(parts[1], request, functions)
    terms = with_derivatives(parts[0], request, functions, new)
    terms += [parts[1], *derivatives(parts[1], wrt, new, functions.slopes)]
    curved, tail = [with_derivatives(rest, request, functions, new)[1 + len(wrt) :]], list[Expr]()
    for factor, inside in squares:
        _, *slopes = with_derivatives(inside, request, functions, new)
        first, second = slopes[: len(wrt)], slopes[len(wrt) :]
        curved.append([d if d is ZERO else new(Op.MUL, (const(2), factor, inside, d)) for d in second])
        tail += [factor, *first]
    terms += [new(Op.ADD, each) for each in zip(*curved, strict=True)]
    return tuple(terms + tail), functions.definitions()


def open_squares(
    density: Expr, request: Request, functions: Functions
) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """Split a density into a rest and squares, each a factor that no parameter changes and what is squared."""

    def moves(node: Expr) -> bool:
        leaf = leaves(Op.SCALAR, node)
        return any(one in wrt or functions.slopes(one) is not None for one in leaf)

    wrt, limit = set(request.parameters), min(MAX_SQUARES, len(request.parameters) // 2)
    rest: list[Expr] = []
    squares: list[tuple[Expr, Expr]] = []
    stack = [(ONE, density)]
    while stack:
        factor, node = stack.pop()
        if node.op is Op.ADD:
            stack += [(factor, term) for term in reversed(node.args)]
            continue
        fixed = [f for f in factors_of(node) if not moves(f)]
        moving = [f for f in factors_of(node) if moves(f)]
        if len(moving) == 1 and moving[0].op is Op.ADD:
            stack.append((product(factor, *fixed), moving[0]))
        elif len(moving) == 1 and is_square(moving[0]) and len(squares) < limit:
            squares.append((product(factor, *fixed), moving[0].args[0]))
        else:
            rest.append(product(factor, node))
    return total(*rest), squares


def is_integral(term: Expr) -> bool:
    """Return whether a term of a log density is minus a logarithm, as that of an integral is."""
    return (
        term.op is Op.MUL and len(term.args) == 2 and term.args[0] is MINUS_ONE and term.args[1].op is Op.LOG
    )


def is_square(node: Expr) -> bool:
    return node.op is Op.POW and node.args[1].op is Op.CONST and node.args[1].number == 2.0


def set_terms(request: Request) -> list[Expr]:
    """Return what is added once for each set, output by output."""
    if request.per_set is ZERO or request.fisher:
        return []
    functions = Functions(request.parameters)
    (hidden,) = functions.hide(normalise(*functions.hide((request.per_set,))))
    terms = with_derivatives(hidden, request, functions, simplifier())
    return list(substitute_all(terms, functions.definitions()))


def is_zero(term: Expr) -> bool:
    return term.op is Op.CONST and term.number == 0.0


def product(*factors: Expr) -> Expr:
    """Multiply without touching the factors, which have been grouped with care."""
    if any(f is ZERO for f in factors):
        return ZERO
    rest = [f for f in factors if f is not ONE]
    return multiply_all(*rest) if len(rest) > 1 else (rest[0] if rest else ONE)


def total(*terms: Expr) -> Expr:
    rest = [t for t in terms if t is not ZERO]
    return add_all(*rest) if len(rest) > 1 else (rest[0] if rest else ZERO)


@dataclass(frozen=True)
class Part:
    """One density under a logarithm, or the plain part: its value and derivatives, ready for the loop.

    The second derivatives of squares are without the products of first derivatives.
    """

    value: Expr
    first: tuple[Expr, ...]
    second: tuple[Expr, ...]


@dataclass(frozen=True)
class Square:
    """A square in a density: its factor, and the first derivatives of what is squared."""

    factor: Expr
    first: tuple[Expr, ...]


def divided(part: Part) -> Part:
    """Divide the derivatives of a density by it; the quotients share what they have in common.

    A derivative that is, but for a number, a product that the density needs anyway is not computed again: this is
    so for all parameters in which a density is linear.
    """
    inverse = make(Op.POW, (part.value, MINUS_ONE))
    there = {frozenset(Counter(factors_of(n)).items()): n for n in toposort(part.value) if n.op is Op.MUL}

    def quotient(derivative: Expr) -> Expr:
        if derivative is ZERO or part.value is ONE:
            return derivative
        factors = factors_of(derivative)
        numbers = [f for f in factors if f.op is Op.CONST]
        rest = [f for f in factors if f.op is not Op.CONST]
        known = there.get(frozenset(Counter(rest).items()))
        return make(Op.MUL, (inverse, *numbers, *(rest if known is None else [known])))

    value, *rest = share((part.value, *(quotient(d) for d in (*part.first, *part.second))))
    return Part(value, tuple(rest[: len(part.first)]), tuple(rest[len(part.first) :]))


def factors_of(node: Expr) -> list[Expr]:
    """Open a product, and products inside it."""
    factors: list[Expr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if top.op is Op.MUL:
            stack += top.args
        else:
            factors.append(top)
    return factors


class Assembler:
    """Turns the terms of the loop into the results it sums."""

    def __init__(self, request: Request, terms: Sequence[Expr], tiles_from: int = TILES_FROM) -> None:
        self.request, self.tiles_from = request, tiles_from
        self.count = len(request.parameters)
        self.counted: list[tuple[int, Expr]] = []
        self.known: dict[Expr, bool] = {}  # whether it depends on the event
        length = self.length
        end = len(terms) // length * length
        parts = [self.part(terms[k : k + length]) for k in range(0, end, length)]
        squares = [terms[k : k + 1 + self.count] for k in range(end, len(terms), 1 + self.count)]
        self.squares = [Square(factor, tuple(first)) for factor, *first in squares]
        self.good: Expr = ONE
        if request.careful:
            parts = self.only_good(parts)
        self.plain, self.inner = parts[0], [divided(q) for q in parts[1:]]

    @property
    def length(self) -> int:
        """How many terms a part has; squares have fewer together."""
        n, request = self.count, self.request
        first = n * (request.order > 0 or request.fisher)
        return 1 + first + n * (n + 1) // 2 * (request.order > 1 and not request.fisher)

    def part(self, terms: Sequence[Expr]) -> Part:
        return Part(terms[0], tuple(terms[1 : 1 + self.count]), tuple(terms[1 + self.count :]))

    def only_good(self, parts: list[Part]) -> list[Part]:
        """Leave out events whose density is not a positive number."""
        plain, *inner = parts
        # a denormal density is zero inside loops that flush them, and must be bad for all
        tests = [test for q in inner for test in (q.value >= SMALLEST, q.value <= LARGEST)]
        tests.append(abs(plain.value) <= LARGEST)
        self.good = product(*tests)

        def keep(part: Part, instead: Expr) -> Part:
            value = where(self.good, part.value, instead)
            first, second = (
                tuple(d if d is ZERO else where(self.good, d, ZERO) for d in ds)
                for ds in (part.first, part.second)
            )
            return Part(value, first, second)

        self.squares = [
            Square(s.factor, tuple(d if d is ZERO else where(self.good, d, ZERO) for d in s.first))
            for s in self.squares
        ]
        return [keep(plain, ZERO), *(keep(q, ONE) for q in inner)]

    @property
    def weight(self) -> Expr:
        return WEIGHT if self.request.weighted else ONE

    def slopes(self, i: int) -> tuple[Expr, ...]:
        return (self.plain.first[i], *(q.first[i] for q in self.inner))

    def assemble(self) -> SumLoop:
        if self.request.fisher:
            return self.fisher()
        rows = list(self.value_rows())
        pairs: PairTerms | None = None
        if self.request.order > 0:
            rows += [self.row(1 + i, Reduce.ADD, *self.slopes(i)) for i in range(self.count)]
        if self.request.order > 1:
            in_tiles = self.count >= self.tiles_from and len(self.inner) == 1
            rows += self.hessian_rows(in_tiles)
            if in_tiles:
                pairs = self.pairs(self.inner[0])
        if self.request.careful:
            rows.append((self.request.outputs, Reduce.ADD, 1 - self.good))
        if self.counted and self.request.weighted:
            rows.append((COUNT, Reduce.EXACT, WEIGHT))
        terms = enumerate(set_terms(self.request))
        rows = [row for row in rows if row[2] is not ZERO]
        return SumLoop(
            outputs=self.request.outputs,
            results=tuple(expr for _, _, expr in rows),
            reduce=tuple(Result(output, how) for output, how, _ in rows),
            pairs=pairs,
            counted=tuple(self.counted),
            per_set=tuple((k, term) for k, term in terms if not is_zero(term)),
        )

    def pairs(self, part: Part) -> PairTerms:
        """Return the products of first derivatives in the Hessian of a logarithm, and in those of squares."""
        left, right = part.first, tuple(product(self.weight, s) for s in part.first)
        if not self.request.weighted and not self.squares:
            right = ()
        inverse = make(Op.POW, (part.value, MINUS_ONE))
        for square in self.squares:
            factor = make(Op.MUL, (const(-2), *factors_of(product(self.weight, square.factor, inverse))))
            left += square.first
            right += tuple(product(factor, s) for s in square.first)
        return PairTerms(left, right, output=1 + self.count, sign=-1.0, groups=1 + len(self.squares))

    def row(self, output: int, reduce: Reduce, *terms: Expr) -> Row:
        """Return what an event adds to an output; event-independent terms are counted instead, to be multiplied by the number of events."""
        parts = [part for term in terms for part in (term.args if term.op is Op.ADD else (term,))]
        constant = [part for part in parts if part is not ZERO and not self.varies(part)]
        if constant:
            self.counted.append((output, total(*constant)))
            terms = tuple(part for part in parts if part is ZERO or self.varies(part))
        return output, reduce, product(self.weight, total(*terms))

    def varies(self, expr: Expr) -> bool:
        """Return whether an expression depends on the event; remembers what it has seen, since terms share their parts."""
        stack = [expr]
        while stack:
            node = stack[-1]
            unknown = [arg for arg in node.args if arg not in self.known]
            stack += unknown
            if not unknown:
                self.known[stack.pop()] = node.op is Op.COLUMN or any(self.known[arg] for arg in node.args)
        return self.known[expr]

    def value_rows(self) -> Iterator[Row]:
        if self.request.weighted:
            logs = [apply(Op.LOG, q.value) for q in self.inner]
            yield self.row(0, Reduce.EXACT, self.plain.value, *logs)
            return
        plain = self.plain.value.args if self.plain.value.op is Op.ADD else (self.plain.value,)
        integrals = [term for term in plain if is_integral(term) and self.varies(term)]
        for density in (q.value for q in self.inner):
            yield 0, Reduce.LOG, density
        for term in integrals:
            yield 0, Reduce.LOG, make(Op.POW, (term.args[1].args[0], MINUS_ONE))
        yield self.row(
            0, Reduce.EXACT, *(term for term in plain if not any(term is one for one in integrals))
        )

    def hessian_rows(self, in_tiles: bool) -> list[Row]:
        rows, place = [], 0
        for i in range(self.count):
            for j in range(i + 1):
                terms = [self.plain.second[place]]
                for q in self.inner:
                    terms.append(q.second[place])
                    if not in_tiles:
                        terms.append(product(MINUS_ONE, product(q.first[i], q.first[j])))
                rows.append(self.row(1 + self.count + place, Reduce.ADD, *terms))
                place += 1
        return rows

    def fisher(self) -> SumLoop:
        outputs = self.request.outputs
        slopes = tuple(product(self.weight, total(*self.slopes(i))) for i in range(self.count))
        if self.count >= self.tiles_from:
            return SumLoop(outputs, (), (), PairTerms(slopes))
        pairs = [product(slopes[i], slopes[j]) for i in range(self.count) for j in range(i + 1)]
        rows = [(k, pair) for k, pair in enumerate(pairs) if pair is not ZERO]
        return SumLoop(outputs, tuple(p for _, p in rows), tuple(Result(k, Reduce.ADD) for k, _ in rows))
