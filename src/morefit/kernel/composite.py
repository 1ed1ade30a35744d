"""Log densities that depend on many parameters through few expressions, such as the expected count of a bin: the chain rule in the loop.

With u_k those expressions and f the function of them, the Hessian is the sum of f_k u_k,ij and of f_kl u_k,i u_l,j. Most second
derivatives of a sum of components are zero, and products of first ones are summed in tiles, whatever f is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from morefit.dataclass import dataclass
from morefit.expr import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    LoopSymbol,
    Op,
    column,
    leaves,
    make,
    substitute,
    substitute_all,
    toposort,
    where,
)
from morefit.expr.walk import BINDING
from morefit.kernel.sums import Request, Terms, product, total, with_derivatives
from morefit.rewrite.derive import derivatives
from morefit.rewrite.functions import Functions
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import normalise

MAX_INNER = 3  # expressions that a log density is a function of
WIDEST = 32  # expressions that are looked at on the way
MAX_FILLED = 0.5  # of their second derivatives: with more of them, lines of the loop are as good
# a second derivative of the function, beyond which slopes are divided by what has them: the squares of those of a logarithm of next
# to nothing would underflow
LARGE = 1e150


@dataclass(frozen=True)
class Chain:
    """What the chain rule makes of one event: its value, slopes, second derivatives without products of slopes, and their factors."""

    value: Expr
    first: tuple[Expr, ...]
    second: tuple[Expr, ...]
    left: tuple[Expr, ...]
    right: tuple[Expr, ...]


@dataclass(frozen=True)
class Composite:
    """A function of few expressions, whose terms follow each other in the loop.

    First the function, its first and second derivatives, and those by logarithms of the expressions; then of each expression
    itself, its first and its second derivatives.
    """

    symbols: tuple[Expr, ...]  # which stand for the expressions
    count: int  # of parameters

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(k, m) for k in range(len(self.symbols)) for m in range(k + 1)]

    def chain(self, terms: Sequence[Expr]) -> Chain:
        """Put the terms of an event together."""
        size, each = len(self.symbols), 1 + self.count + self.count * (self.count + 1) // 2
        begin = 1 + size + 2 * len(self.pairs)
        inner = [terms[begin + k * each : begin + (k + 1) * each] for k in range(size)]
        shown = {symbol: expr[0] for symbol, expr in zip(self.symbols, inner, strict=True)}
        value, *outer = substitute_all(terms[:begin], shown)
        each_first = [one[1 : 1 + self.count] for one in inner]
        first, second = (
            tuple(total(*map(product, outer[:size], row)) for row in zip(*rows, strict=True))
            for rows in (each_first, [one[1 + self.count :] for one in inner])
        )
        slopes, bends = self.in_range(outer[size:], list(shown.values()), each_first)
        places = range(size)
        right = (
            total(*(product(bends[max(k, m), min(k, m)], slopes[m][i]) for m in places))
            for k in places
            for i in range(self.count)
        )
        return Chain(value, first, second, tuple(s for row in slopes for s in row), tuple(right))

    def in_range(
        self, bends: Sequence[Expr], inner: Sequence[Expr], slopes: Sequence[Sequence[Expr]]
    ) -> tuple[Sequence[Sequence[Expr]], dict[tuple[int, int], Expr]]:
        """Return slopes of the expressions and second derivatives of the function, in units in which both are numbers like others."""
        plain, relative = bends[: len(self.pairs)], bends[len(self.pairs) :]
        if any(one is not ZERO for one in relative):
            large = [Op.ABS(one) > LARGE for one in plain if one.op is not Op.CONST]
            beyond = large[0] if len(large) == 1 else total(*large) > 0
            plain = [where(beyond, there, here) for here, there in zip(plain, relative, strict=True)]
            units = [where(beyond, make(Op.POW, (u, MINUS_ONE)), ONE) for u in inner]
            slopes = [[product(unit, s) for s in row] for unit, row in zip(units, slopes, strict=True)]
        return slopes, dict(zip(self.pairs, plain, strict=True))


def composite_terms(log_density: Expr, request: Request, functions: Functions, new: Rewriter) -> Terms | None:
    """Return the terms of a log density that is a function of few expressions; None for others."""
    wrt = request.parameters
    found = find_inner(log_density, Moving(wrt, functions))
    if found is None:
        return None
    places, inner = found
    symbols = tuple(column(LoopSymbol(f"inner {k}")) for k in range(len(places)))
    (outer,) = normalise(substitute(log_density, dict(zip(places, symbols, strict=True))))
    composite = Composite(symbols, len(wrt))
    slopes = derivatives(outer, symbols, new)
    second = [derivatives(slopes[k], [symbols[m]], new)[0] for k, m in composite.pairs]
    relative = [ZERO] * len(second)
    if not set(symbols).isdisjoint(leaves(Op.COLUMN, *second)):
        units = [(symbols[k], symbols[m]) for k, m in composite.pairs]
        relative = [multiplied(one, unit, new) for one, unit in zip(second, units, strict=True)]
    terms = [outer, *slopes, *second, *relative]
    for one in inner:
        terms += with_derivatives(one, request, functions, new)
    return Terms(tuple(terms), functions.definitions(), composite)


def multiplied(root: Expr, factors: tuple[Expr, ...], new: Rewriter) -> Expr:
    """Multiply each term of a sum and each side of a choice, where negative powers cancel."""
    done: dict[Expr, Expr] = {}
    for node in toposort(root):
        if node.op is Op.ADD:
            done[node] = new(Op.ADD, tuple(done[arg] for arg in node.args))
        elif node.op is Op.WHERE:
            done[node] = new(Op.WHERE, (node.args[0], done[node.args[1]], done[node.args[2]]))
        else:
            done[node] = ZERO if node is ZERO else new(Op.MUL, (*factors, node))
    return done[root]


# ------------------------------------------------------------------------------------ which expressions


class Moving:
    """Which parameters the nodes of expressions depend on, as bits."""

    def __init__(self, parameters: Sequence[Expr], functions: Functions) -> None:
        self.count = len(parameters)
        self.functions = functions
        self.known = {leaf: 1 << k for k, leaf in enumerate(parameters)}

    def __call__(self, *roots: Expr) -> list[Expr]:
        """Return the nodes below that depend on parameters, arguments first."""
        order = toposort(*roots, enter_integrals=False)
        for node in order:
            if node not in self.known:
                self.known[node] = self.of(node)
        return [node for node in order if self.known[node]]

    def of(self, node: Expr) -> int:
        bits = 0
        for arg in node.args:
            bits |= self.known[arg]
        slopes = self.functions.slopes(node) if node.op is Op.SCALAR else None
        return bits | sum(1 << k for k, slope in enumerate(slopes or ()) if slope is not ZERO)

    def filled(self, roots: Sequence[Expr]) -> float:
        """Return the share of second derivatives of sums that may not be zero."""
        self(*roots)
        rows, stack = [0] * self.count, list(roots)
        while stack:
            node = stack.pop()
            moving = [arg for arg in node.args if self.known[arg]]
            if node.op is Op.ADD or (node.op is Op.MUL and len(moving) == 1):
                stack += moving
            elif moving or node.op is not Op.SCALAR:
                bits = self.known[node]
                rows = [row | bits if bits >> k & 1 else row for k, row in enumerate(rows)]
        return sum(row.bit_count() for row in rows) / self.count**2


def find_inner(root: Expr, moving: Moving) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
    """Return the fewest expressions through which a root depends on parameters, if most of their second derivatives are zero.

    Of as many the lowest; also as they are simplified.
    """
    lowest = {len(cut): cut for cut in cuts_below(root, moving) if len(cut) <= MAX_INNER}
    for size in sorted(lowest):
        inner = moving.functions.hide(normalise(*lowest[size]))
        if moving.filled(inner) <= MAX_FILLED:
            return lowest[size], inner
    return None


def cuts_below(root: Expr, moving: Moving) -> Iterator[tuple[Expr, ...]]:
    """Go down a graph: a node of a cut that no other node waits for is replaced by its arguments, those that add least first."""
    waiting = Counter(arg for node in moving(root) for arg in dict.fromkeys(node.args))
    cut = {root: None}
    while len(cut) <= WIDEST:
        yield tuple(cut)
        ready = [node for node in cut if node.args and not waiting[node] and node.op not in BINDING]
        if not ready:
            return
        below = {node: [arg for arg in dict.fromkeys(node.args) if moving.known[arg]] for node in ready}
        best = min(ready, key=lambda node: sum(arg not in cut for arg in below[node]))
        del cut[best]
        cut |= dict.fromkeys(below[best])
        waiting.subtract(below[best])
