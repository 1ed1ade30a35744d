"""From the terms of a loop to what it sums: logarithms, quotients, products of first derivatives."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from morefit.expr import MINUS_ONE, ONE, ZERO, Expr, Op, const, make, where
from morefit.kernel.build import PairTerms, ScaledTerm, SumLoop
from morefit.kernel.composite import Chain, Composite
from morefit.kernel.families import Families, factors_of, masked
from morefit.kernel.ir import COUNT, SCALED, Reduce, Result
from morefit.kernel.moments import Moments, find_moments
from morefit.kernel.parts import Members, Part, Square, divided
from morefit.kernel.sums import (
    MANY,
    TILES_FROM,
    Request,
    Structure,
    is_integral,
    is_zero,
    product,
    set_terms,
    total,
)
from morefit.kernel.symbols import WEIGHT
from morefit.rewrite.share import share

LARGEST = sys.float_info.max
SMALLEST = sys.float_info.min  # of the normal numbers

Row = tuple[int, Reduce, Expr]  # an output, how it is reduced, and what comes from an event


class Assembler:
    """Turns the terms of the loop into the results it sums."""

    def __init__(
        self,
        request: Request,
        terms: Sequence[Expr],
        tiles_from: int = TILES_FROM,
        structure: Structure | None = None,
        *,
        with_moments: bool = False,
    ) -> None:
        self.request, self.tiles_from = request, tiles_from
        self.count = len(request.parameters)
        families = structure if isinstance(structure, Families) else None
        self.chain = structure.chain(terms) if isinstance(structure, Composite) else None
        if self.chain is not None:
            terms = (self.chain.value, *self.chain.first, *self.chain.second)
        self.counted: list[tuple[int, Expr]] = []
        self.known: dict[Expr, bool] = {}  # whether it depends on the event
        length, begin = self.length, len(terms) - (len(families.terms) if families else 0)
        terms, self.own = terms[:begin], list(terms[begin:])  # those of families
        end = len(terms) // length * length
        parts = [self.part(terms[k : k + length]) for k in range(0, end, length)]
        squares = [terms[k : k + 1 + self.count] for k in range(end, len(terms), 1 + self.count)]
        self.squares = [Square(factor, tuple(first)) for factor, *first in squares]
        self.good: Expr = ONE
        if request.careful:
            parts = self.only_good(parts)
        self.plain, self.members = parts[0], list[Members]()
        if families is None:
            self.inner = [divided(q)[0] for q in parts[1:]]
        else:
            self.inner = [self.join(parts[1], families)]
        self.moments = Moments()
        self.made_of_moments: list[tuple[int, int, Expr]] = []  # an output, a moment, its coefficient
        if with_moments and request.order > 0 and not (request.careful or request.fisher):
            self.moments = self.find_moments()

    def find_moments(self) -> Moments:
        """Return the terms that derivatives share, of those that are not multiplied with each other."""
        every = (self.plain, *self.inner)
        first, second = (
            [d for each in some for d in each if d is not ZERO]
            for some in ([q.first for q in every], [q.second for q in every])
        )
        rows, terms = ([*first, *second], []) if self.in_tiles else (first, second)
        needed = first if self.request.order > 1 else []  # for products
        return find_moments(rows, terms, [*needed, *(q.value for q in every)])

    @property
    def length(self) -> int:
        """How many terms a part has; squares have fewer together."""
        n, request = self.count, self.request
        first = n * (request.order > 0 or request.fisher)
        return 1 + first + n * (n + 1) // 2 * (request.order > 1 and not request.fisher)

    def join(self, part: Part, families: Families) -> Part:
        """Divide a density with families; the first derivatives of their members are made of ratios and slopes."""
        all_members = [member for family in families.members for member in family.slopes]
        first = tuple(ZERO if i in all_members else d for i, d in enumerate(part.first))
        wanted = [k for f in families.members for k in (f.factor, *f.crossed.values())]
        part, ratios = divided(replace(part, first=first), [self.event(self.own[k]) for k in wanted])
        ratio = dict(zip(wanted, ratios, strict=True))
        slopes = list(part.first)
        for f in families.members:
            of_members = {i: self.event(self.own[k]) for i, k in f.slopes.items()}
            crossed = {pair: ratio[k] for pair, k in f.crossed.items()}
            self.members.append(Members(f, ratio[f.factor], of_members, crossed))
            for i, slope in of_members.items():
                slopes[i] = product(ratio[f.factor], slope)
        return replace(part, first=tuple(slopes))

    def event(self, term: Expr) -> Expr:
        """Return a term of an event, zero for one that is left out."""
        return term if self.good is ONE or term is ZERO else where(self.good, term, ZERO)

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
            rows += self.hessian_rows()
            if self.in_tiles:
                pairs = self.pairs(self.inner[0])
            elif self.chain is not None:
                pairs = self.chained_pairs(self.chain)
        if self.request.careful:
            rows.append((self.request.outputs, Reduce.ADD, 1 - self.good))
        if self.counted and self.request.weighted:
            rows.append((COUNT, Reduce.EXACT, WEIGHT))
        rows = [row for row in rows if row[2] is not ZERO]
        scaled = self.sum_scaled(rows) + self.sum_moments(rows)
        return SumLoop(
            outputs=self.request.outputs,
            results=tuple(expr for _, _, expr in rows),
            reduce=tuple(Result(output, how) for output, how, _ in rows),
            pairs=pairs,
            counted=tuple(self.counted),
            scaled=scaled,
            per_set=self.per_set,
        )

    @property
    def per_set(self) -> tuple[tuple[int, Expr], ...]:
        """What is added to outputs once for each set."""
        return tuple((k, term) for k, term in enumerate(set_terms(self.request)) if not is_zero(term))

    def sum_scaled(self, rows: list[Row]) -> tuple[ScaledTerm, ...]:
        """Add sums of the terms that second derivatives are made of; return how they are scaled and added to outputs."""
        scaled: list[ScaledTerm] = []
        for members in self.members:
            begin, family = len(rows), members.family
            terms = [self.event(self.own[term]) for term, _ in family.sums]
            products = share(tuple(make(Op.MUL, (members.ratio, *factors_of(t))) for t in terms))
            for term, (_, region) in zip(products, family.sums, strict=True):
                conditions = [(self.own[c], side) for c, side in region]
                rows.append((SCALED, Reduce.ADD, masked(product(self.weight, term), conditions)))
            places = [(begin + k, 1 + self.count + at, self.own[c]) for at, k, c in family.scaled]
            scaled += [ScaledTerm(*place) for place in places]
        return tuple(scaled)

    def sum_moments(self, rows: list[Row]) -> tuple[ScaledTerm, ...]:
        """Add sums of moments; return how they are scaled and added to outputs."""
        begin = len(rows)
        rows += [(SCALED, Reduce.ADD, product(self.weight, term)) for term in self.moments.sums]
        return tuple(ScaledTerm(begin + k, output, by) for output, k, by in self.made_of_moments)

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

    def chained_pairs(self, chain: Chain) -> PairTerms:
        """Return the products of first derivatives in the Hessian of a function of few expressions."""
        left = tuple(map(self.event, chain.left))
        right = tuple(product(self.weight, self.event(factor)) for factor in chain.right)
        return PairTerms(left, right, output=1 + self.count, groups=len(left) // self.count)

    def row(self, output: int, reduce: Reduce, *terms: Expr) -> Row:
        """Return what an event adds to an output; event-independent terms are counted instead, to be multiplied by the number of events."""
        if reduce is Reduce.ADD:
            made_of = self.moments.made_of
            self.made_of_moments += [(output, k, by) for term in terms for k, by in made_of.get(term, ())]
            terms = tuple(term for term in terms if term not in made_of)
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
            logs = [Op.LOG(q.value) for q in self.inner]
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

    @cached_property
    def in_tiles(self) -> bool:
        """Whether products of first derivatives are summed in tiles: of not so many only if there is little else to sum."""
        if self.count < self.tiles_from or len(self.inner) != 1 or self.members:
            return False
        others = sum(second is not ZERO for second in self.inner[0].second)
        return self.count >= MANY or others <= self.count

    def hessian_rows(self) -> list[Row]:
        rows, place = [], 0
        for i in range(self.count):
            for j in range(i + 1):
                terms = [self.plain.second[place]]
                for q in self.inner:
                    terms.append(q.second[place])
                    if not self.in_tiles:
                        terms.append(self.pair(q, i, j))
                rows.append(self.row(1 + self.count + place, Reduce.ADD, *terms))
                place += 1
        return rows

    def pair(self, part: Part, i: int, j: int) -> Expr:
        """Return what first derivatives add to a second one of a logarithm."""
        for members in self.members:
            joined = members.pair(i, j, part.first)
            if joined is not None:
                return joined
        return product(MINUS_ONE, product(part.first[i], part.first[j]))

    def fisher(self) -> SumLoop:
        outputs = self.request.outputs
        slopes = tuple(product(self.weight, total(*self.slopes(i))) for i in range(self.count))
        if self.count >= self.tiles_from:
            return SumLoop(outputs, (), (), PairTerms(slopes), per_set=self.per_set)
        pairs = [product(slopes[i], slopes[j]) for i in range(self.count) for j in range(i + 1)]
        rows = [(k, pair) for k, pair in enumerate(pairs) if pair is not ZERO]
        results = tuple(Result(k, Reduce.ADD) for k, _ in rows)
        return SumLoop(outputs, tuple(p for _, p in rows), results, per_set=self.per_set)
