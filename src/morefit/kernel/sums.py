"""The sums over events that a fit needs: the logarithm of a density, its gradient, its Hessian, all from one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from morefit.dataclass import dataclass
from morefit.expr import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    Op,
    add_all,
    const,
    leaves,
    multiply_all,
    substitute_all,
)
from morefit.rewrite.derive import derivatives
from morefit.rewrite.functions import Functions
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import normalise, simplifier

if TYPE_CHECKING:
    from morefit.kernel.composite import Composite
    from morefit.kernel.families import Families

# parameters on: the products of first derivatives are summed in tiles, unless a backend knows better
TILES_FROM = 13
# of fewer, sums of families take less time than products in tiles (a double Crystal Ball on a slope, 8 parameters: 8.7 and 11.3 ns)
MANY = 10

MAX_SQUARES = 6  # in a density whose Hessian is summed in tiles; and half of the parameters


Structure: TypeAlias = "Families | Composite"


class Terms(NamedTuple):
    """Expressions that a loop needs, what scalars in them stand for, and what its second derivatives are made of."""

    exprs: tuple[Expr, ...]
    functions: Mapping[Expr, Expr]
    structure: Structure | None = None


@dataclass(frozen=True)
class Request:
    """What to sum over events: ``order`` 0 the value, 1 also the gradient, 2 also the Hessian."""

    log_density: Expr
    parameters: tuple[Expr, ...]  # to differentiate by
    order: int
    weighted: bool = False
    careful: bool = False  # leave out, and count, events whose density is not a positive number
    fisher: bool = False  # instead: the sums of (weight * gradient) pairs
    per_set: Expr = ZERO  # added once for each set, not for each event; to pairs its second derivatives

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
    first = (
        derivatives(root, wrt, new, known, functions.integrals) if request.order > 0 or request.fisher else []
    )
    second: list[Expr] = []
    if request.order > 1 and not request.fisher:
        for i, slope in enumerate(first):
            second += derivatives(slope, wrt[: i + 1], new, known, functions.integrals)
    return [root, *first, *second]


def event_terms(request: Request, tiles_from: int = TILES_FROM) -> Terms:
    """Return everything the loop computes besides logarithms, quotients and products of quotients.

    Scalars stand in it for functions of parameters alone, which are returned as well. The squares of a density whose
    Hessian is summed in tiles come last: of each its factor, and the first derivatives of what is squared. So do the
    terms of families of parameters, where it is not.
    """
    new, functions = simplifier(), Functions(request.parameters)
    (log_density,) = functions.hide((request.log_density,))
    plain, inner = open_log(log_density)
    wrt = request.parameters
    many = len(wrt) >= max(tiles_from, MANY)
    in_tiles = request.order > 1 and many and not request.fisher
    if in_tiles and not inner:
        from morefit.kernel.composite import composite_terms

        if (composed := composite_terms(log_density, request, functions, new)) is not None:
            return composed
    parts = functions.hide((plain, *inner))
    if not (in_tiles and len(inner) == 1):
        terms = [t for part in parts for t in with_derivatives(part, request, functions, new)]
        families = None
        if request.order > 1 and len(inner) == 1 and not request.fisher:
            families, terms = find_families(terms, len(wrt), new)
        return Terms(tuple(terms), functions.definitions(), families)
    rest, squares = open_squares(parts[1], request, functions)
    terms = with_derivatives(parts[0], request, functions, new)
    terms += [parts[1], *derivatives(parts[1], wrt, new, functions.slopes, functions.integrals)]
    curved, tail = [with_derivatives(rest, request, functions, new)[1 + len(wrt) :]], list[Expr]()
    for factor, inside in squares:
        _, *slopes = with_derivatives(inside, request, functions, new)
        first, second = slopes[: len(wrt)], slopes[len(wrt) :]
        curved.append([d if d is ZERO else new(Op.MUL, (const(2), factor, inside, d)) for d in second])
        tail += [factor, *first]
    terms += [new(Op.ADD, each) for each in zip(*curved, strict=True)]
    return Terms(tuple(terms + tail), functions.definitions())


def find_families(terms: list[Expr], count: int, new: Rewriter) -> tuple[Families | None, list[Expr]]:
    """Find families among the parameters of one density; their terms take the place of its second derivatives."""
    from morefit.kernel.families import Finder

    first = len(terms) // 2 + 1
    finder = Finder(terms[first : first + count], terms[first + count :], new)
    families = finder.find()
    if not families.members:
        return None, terms
    return families, [*terms[: first + count], *finder.rest, *families.terms]


def open_squares(
    density: Expr, request: Request, functions: Functions
) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """Split a density into a rest and squares, each a factor that no parameter changes and what is squared."""
    from morefit.kernel.families import factors_of

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
    if request.per_set is ZERO:
        return []
    if request.fisher:
        return set_terms(replace(request, order=2, fisher=False))[1 + len(request.parameters) :]
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
