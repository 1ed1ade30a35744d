"""Compare integrals that densities know by a formula of their own with numerical ones, once for each model."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING

from morefit.errors import ModelError
from morefit.expr import Expr, Op, const, domain_of, evaluate, leaves, substitute, symbols, toposort
from morefit.expr.evaluate import adapted_to
from morefit.model.arguments import conditional, listing
from morefit.model.integrate import integral_over_box, plain_integral
from morefit.model.parameter import Parameter

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

PLACES = (0.35, 0.7)  # of the ranges of given observables
MOVED = 0.1  # of the way to the further limit, or of the value: parameters, as an integral may be right at the start alone
MAX_SIZE = {
    1: 1000,
    2: 200,
    3: 200,
}  # operations of a density by its axes: the integral of a larger one takes too long
TOLERANCE = 1e-6  # of the numerical integral, and its relative error,
RESOLVED = 1e-4  # which it must not exceed, to be compared with
WRONG = 1e-3  # relative difference


def check_integral(pdf: Pdf) -> None:
    """Refuse a density with an integral of its own that depends on observables that it draws, or is wrong."""
    known, given = pdf.known_integral(), {o.name for o in pdf.given}
    if known is not None and (columns := [s for s in symbols(Op.COLUMN, known) if s.name not in given]):
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must not depend on observables, got one with"
            f" {listing(columns)}; {conditional(columns)}"
        )
    if not (pdf.integral_checked and can_compare(pdf)):
        return
    start = {p.name: p.start for p in pdf.parameters}
    if pdf.given:
        for place in PLACES:
            compare(pdf, start | {o.name: o.low + place * (o.high - o.low) for o in pdf.given})
    elif pdf.has_own_integral and not compare(pdf, {p.name: moved(p) for p in pdf.parameters}):
        compare(pdf, start)


def can_compare(pdf: Pdf) -> bool:
    """Return whether a quadrature of the density takes little time, and is what its integral means.

    It is not where events are whole numbers or labels: the density of these is that of single points.
    """
    if pdf.branches() or pdf.whole_numbers or len(pdf.drawn) not in MAX_SIZE:
        return False
    nodes = toposort(pdf.density(), enter_integrals=False, enter_sums=False)
    if len(nodes) > MAX_SIZE[len(pdf.drawn)]:
        return False
    labels = any(node.op in (Op.EQUAL, Op.NOT_EQUAL) and leaves(Op.COLUMN, node) for node in nodes)
    return not labels and not any(node.op in (Op.INTEGRAL, Op.NODE_SUM) for node in nodes)


def moved(parameter: Parameter) -> float:
    """Return a value of a parameter that floats beside its start, inside its limits."""
    start, below, above = parameter.start, parameter.start - parameter.low, parameter.high - parameter.start
    if parameter.fixed:
        return start
    most = max(abs(start), 1.0) if max(below, above) == inf else inf
    return start + MOVED * min(above, most) if above >= below else start - MOVED * min(below, most)


def compare(pdf: Pdf, values: Mapping[str, float]) -> bool:
    """Refuse an integral that is not that over what is drawn; return whether there is a numerical one to compare with."""
    integral = pdf.integral()
    if any(node.op is Op.INTEGRAL for node in toposort(integral)):
        return False
    known: dict[Expr, Expr] = {q.symbol: const(values[q.name]) for q in pdf.parameters}
    known |= {o.expr: const(values[o.name]) for o in pdf.given}
    density = substitute(pdf.density(), known)
    check = integral_over_box(density, pdf.drawn, ())
    if check.op is not Op.INTEGRAL:
        check = plain_integral(density, pdf.drawn)
    adapted = adapted_to(check.args[1:], domain_of(check), (), TOLERANCE)
    formula, total = float(evaluate(integral, values)), float(adapted.totals[0])
    if not (adapted.error < RESOLVED and isfinite(total) and total > 0):
        return False
    if not abs(formula - total) <= WRONG * total:
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must be that over {listing(pdf.drawn)}, which is {total:.6g} at"
            f" {written(values)}, got {formula:.6g}; change the integral{advice(pdf)}"
        )
    return True


def written(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in values.items()) or "all events"


def advice(pdf: Pdf) -> str:
    """Return what else may be done about an integral that is wrong."""
    if pdf.given:
        return " or what is given"
    return (
        " or leave it out; check=False takes it as it is, for events that are labels or have another measure"
    )
