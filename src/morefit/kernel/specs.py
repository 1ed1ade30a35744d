"""What a kernel is to compute: sums of a fit, values of each event, events to draw, integrals by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, make, where
from morefit.kernel.ir import Precision, Reduce, Result
from morefit.kernel.sums import Request, Terms, event_terms, is_zero
from morefit.kernel.symbols import NODE_CONTRAST, NODE_WEIGHT
from morefit.rewrite.simplify import normalise

if TYPE_CHECKING:  # loops are made where no record of the kernel is
    from morefit.kernel.build import Loop
    from morefit.kernel.sums import Structure

NEXT_TO_NOTHING = 1e-60  # of an integrand
LARGEST = 1e300  # number that is one for sure


@dataclass(frozen=True, eq=False)
class Spec:
    """What the passes of the pipeline need to know of a kernel."""

    name: str
    roots: tuple[Expr, ...]  # all expressions of the specification
    # expressions of parameters and columns that the loop needs, simplified and differentiated
    terms: Callable[[], Terms]
    # the loop, from what is left of the terms for each event
    assemble: Callable[[tuple[Expr, ...], Structure | None], Loop]
    options: tuple[
        object, ...
    ] = ()  # everything else that it says, with the numbers of expressions of each kind


def sums(request: Request, tiles_from: int, precision: Precision) -> Spec:
    """Return the sums over events that a fit needs.

    From so many parameters on pairs of first derivatives are summed in tiles; derivatives may be made of sums that are
    scaled afterwards, of powers of a distance only in double precision, whose range they do not leave.
    """
    moments = precision is Precision.DOUBLE

    def assemble(per_event: tuple[Expr, ...], structure: Structure | None) -> Loop:
        from morefit.kernel.assemble import Assembler

        return Assembler(request, per_event, tiles_from, structure, with_moments=moments).assemble()

    own = request.order, request.weighted, request.careful, request.fisher
    return Spec(
        name="fisher" if request.fisher else ("value", "gradient", "hessian")[request.order],
        roots=(request.log_density, request.per_set, *request.parameters),
        terms=lambda: event_terms(request, tiles_from),
        assemble=assemble,
        options=(*own, tiles_from, moments),
    )


def values(outputs: tuple[Expr, ...]) -> Spec:
    """Return expressions to be computed and stored for each event."""
    return Spec("values", outputs, lambda: Terms(normalise(*outputs), {}), lambda terms, _: stored(terms))


def sample(drawn: tuple[Expr, ...], accept: Expr, above: Expr) -> Spec:
    """Return events to draw: expressions of random numbers."""
    roots = (*drawn, accept, above)
    return Spec("sample", roots, lambda: Terms(roots, {}), lambda terms, _: stored(terms, draws=True))


def stored(per_event: tuple[Expr, ...], *, draws: bool = False) -> Loop:
    from morefit.kernel.build import StoreLoop

    return StoreLoop(per_event, draws)


def integrals(integrand: Expr, bodies: tuple[Expr, ...], probes: tuple[Expr, ...]) -> Spec:
    """Return weighted sums over the nodes of a quadrature, and what tells how well these resolve the integrand.

    The outputs are the integrals of the bodies, the integral and the contrast of the integrand, and the probes, which
    depend on parameters only.
    """

    def terms() -> Terms:
        some = [b if b is integrand else without_overflow(b, integrand) for b in bodies]
        products = [make(Op.MUL, (NODE_WEIGHT, body)) for body in (*some, integrand)]
        return Terms((*products, make(Op.MUL, (NODE_CONTRAST, integrand))), {})

    def assemble(per_event: tuple[Expr, ...], _: Structure | None) -> Loop:
        from morefit.kernel.build import SumLoop

        count = len(per_event)
        each = enumerate(normalise(*probes), count)
        return SumLoop(
            outputs=count + len(probes),
            results=per_event,
            reduce=tuple(Result(k, Reduce.EXACT) for k in range(count)),
            per_set=tuple((k, probe) for k, probe in each if not is_zero(probe)),
        )

    return Spec("integral", (integrand, *bodies, *probes), terms, assemble, options=(len(bodies),))


def without_overflow(slope: Expr, integrand: Expr) -> Expr:
    """Return a derivative of an integrand, zero where it is not a number but the integrand is next to nothing.

    Far below a threshold 1 / (1 + exp(z)) is zero, and its derivative infinity times zero.
    """
    tiny = Op.ABS(integrand) < NEXT_TO_NOTHING
    return where(Op.ABS(slope) <= LARGEST, slope, where(tiny, ZERO, slope))
