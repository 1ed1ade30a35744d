"""What a kernel is to compute: sums of a fit, values of each event, events to draw, integrals by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from morefit.expr import ZERO, Expr, Op, make, where
from morefit.kernel.ir import Reduce, Result
from morefit.kernel.sums import Request, Terms, event_terms, is_zero
from morefit.kernel.symbols import NODE_CONTRAST, NODE_WEIGHT
from morefit.rewrite.simplify import normalise

if TYPE_CHECKING:  # loops are made where no record of the kernel is
    from morefit.kernel.build import Loop
    from morefit.kernel.families import Families

NEXT_TO_NOTHING = 1e-60  # of an integrand
LARGEST = 1e300  # number that is one for sure


class Spec(Protocol):
    """What the passes of the pipeline need to know."""

    @property
    def name(self) -> str: ...

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All expressions of the specification."""
        ...

    @property
    def options(self) -> tuple[object, ...]:
        """Everything else that it says, with the numbers of expressions of each kind."""
        ...

    def terms(self) -> Terms:
        """Return expressions of parameters and columns that the loop needs, simplified and differentiated."""
        ...

    def assemble(self, per_event: tuple[Expr, ...], families: Families | None) -> Loop:
        """Return the loop, from what is left of the terms for each event."""
        ...


@dataclass(frozen=True)
class SumSpec:
    """The sums over events that a fit needs."""

    request: Request
    tiles_from: int  # parameters from which on pairs of first derivatives are summed in tiles
    scales_sums: bool  # whether second derivatives may be made of sums that are scaled afterwards

    @property
    def name(self) -> str:
        return "fisher" if self.request.fisher else ("value", "gradient", "hessian")[self.request.order]

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (self.request.log_density, self.request.per_set, *self.request.parameters)

    @property
    def options(self) -> tuple[object, ...]:
        request = self.request
        own = request.order, request.weighted, request.careful, request.fisher
        return *own, self.tiles_from, self.scales_sums

    def terms(self) -> Terms:
        return event_terms(self.request, self.tiles_from, scaled=self.scales_sums)

    def assemble(self, per_event: tuple[Expr, ...], families: Families | None) -> Loop:
        from morefit.kernel.assemble import Assembler

        return Assembler(self.request, per_event, self.tiles_from, families).assemble()


@dataclass(frozen=True)
class ValueSpec:
    """Expressions to be computed and stored for each event."""

    outputs: tuple[Expr, ...]
    name: str = "values"

    @property
    def roots(self) -> tuple[Expr, ...]:
        return self.outputs

    @property
    def options(self) -> tuple[object, ...]:
        return ()

    def terms(self) -> Terms:
        return Terms(normalise(*self.outputs), {})

    def assemble(self, per_event: tuple[Expr, ...], families: Families | None) -> Loop:
        from morefit.kernel.build import StoreLoop

        return StoreLoop(per_event)


@dataclass(frozen=True)
class SampleSpec:
    """Events to draw: expressions of random numbers."""

    drawn: tuple[Expr, ...]
    accept: Expr
    above: Expr
    name: str = "sample"

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (*self.drawn, self.accept, self.above)

    @property
    def options(self) -> tuple[object, ...]:
        return ()

    def terms(self) -> Terms:
        return Terms(self.roots, {})

    def assemble(self, per_event: tuple[Expr, ...], families: Families | None) -> Loop:
        from morefit.kernel.build import SampleLoop

        return SampleLoop(per_event)


@dataclass(frozen=True)
class IntegralSpec:
    """Weighted sums over the nodes of a quadrature, and what tells how well these resolve the integrand.

    The outputs are the integrals of the bodies, the integral and the contrast of the integrand, and the probes, which
    depend on parameters only.
    """

    integrand: Expr
    bodies: tuple[Expr, ...]
    probes: tuple[Expr, ...]
    name: str = "integral"

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (self.integrand, *self.bodies, *self.probes)

    @property
    def options(self) -> tuple[object, ...]:
        return (len(self.bodies),)

    def terms(self) -> Terms:
        bodies = [b if b is self.integrand else without_overflow(b, self.integrand) for b in self.bodies]
        products = [make(Op.MUL, (NODE_WEIGHT, body)) for body in (*bodies, self.integrand)]
        return Terms((*products, make(Op.MUL, (NODE_CONTRAST, self.integrand))), {})

    def assemble(self, per_event: tuple[Expr, ...], families: Families | None) -> Loop:
        from morefit.kernel.build import SumLoop

        count = len(per_event)
        probes = enumerate(normalise(*self.probes), count)
        return SumLoop(
            outputs=count + len(self.probes),
            results=per_event,
            reduce=tuple(Result(k, Reduce.EXACT) for k in range(count)),
            per_set=tuple((k, probe) for k, probe in probes if not is_zero(probe)),
        )


def without_overflow(slope: Expr, integrand: Expr) -> Expr:
    """Return a derivative of an integrand, zero where it is not a number but the integrand is next to nothing.

    Far below a threshold 1 / (1 + exp(z)) is zero, and its derivative infinity times zero.
    """
    tiny = Op.ABS(integrand) < NEXT_TO_NOTHING
    return where(Op.ABS(slope) <= LARGEST, slope, where(tiny, ZERO, slope))
