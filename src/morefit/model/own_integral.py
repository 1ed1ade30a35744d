"""Compare integrals and quantiles that densities know by formulas of their own with numerical ones, once for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

from morefit.errors import ModelError
from morefit.expr import Expr, Op, const, domain_of, evaluate, leaves, substitute, symbols, toposort
from morefit.expr.evaluate import adapted_to
from morefit.model.arguments import conditional, listing
from morefit.model.integrate import integral_over_box, plain_integral
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

PLACES = (0.35, 0.7)  # of the ranges of given observables
MOVED = 0.1  # of the way to the further limit, or of the value: parameters, as an integral may be right at the start alone
# operations of a density by its axes: the integral of a larger one takes too long
MAX_SIZE = {1: 1000, 2: 200, 3: 200}
TOLERANCE = 1e-6  # of the numerical integral, and its relative error,
RESOLVED = 1e-4  # which it must not exceed, to be compared with
WRONG = 1e-3  # relative difference
PART = 0.3  # of the range, and of the events, up to which a density of one observable is compared
MAX_SHOWN = 6  # parameters in a message


def check_integral(pdf: Pdf) -> None:
    """Refuse a density with an integral of its own that depends on observables that it draws, or is wrong."""
    known, given = pdf.known_integral(), {o.name for o in pdf.given}
    if known is not None and (columns := [s for s in symbols(Op.COLUMN, known) if s.name not in given]):
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must not depend on observables, got one with"
            f" {listing(columns)}; {conditional(columns)}"
        )
    if not (pdf.given or pdf.has_own_integral) or not (pdf.integral_checked and can_compare(pdf)):
        return
    start = {p.name: p.start for p in pdf.parameters}
    if pdf.given:
        for place in PLACES:
            compare(pdf, start | {o.name: o.low + place * (o.high - o.low) for o in pdf.given})
    elif not compare(pdf, {p.name: moved(p) for p in pdf.parameters}):
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
    formula, total = float(evaluate(integral, values)), numerical(pdf, values, pdf.drawn)
    if total is None:
        return False
    if not abs(formula - total) <= WRONG * total:
        given = f" with {listing(pdf.given)} given" if pdf.given else ""
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must be that over {listing(pdf.drawn)}{given}, {total:.6g}"
            f"{where_it_is(pdf, values)}, got {formula:.6g}; {advice(pdf)}"
        )
    if pdf.has_own_integral and len(pdf.drawn) == 1:
        compare_parts(pdf, values, total)
    return True


def compare_parts(pdf: Pdf, values: Mapping[str, float], total: float) -> None:
    """Refuse a density of one observable whose integrals over parts of the range, or whose quantiles, are wrong."""
    (x,) = pdf.drawn
    middle = x.low + PART * (x.high - x.low)
    between, quantile = pdf.integral_between(const(x.low), const(middle)), pdf.quantile(const(PART))
    below = None if between is None else numerical(pdf, values, [x.within({x.name: (x.low, middle)})])
    if between is not None and below is not None:
        formula = float(evaluate(between, values))
        if not abs(formula - below) <= WRONG * total:
            raise ModelError(
                f"density '{type(pdf).__name__}': integral_between must return that over '{x.name}' from {x.low:.6g} to"
                f" {middle:.6g}, {below:.6g}{where_it_is(pdf, values)}, got {formula:.6g}; change it or leave it out"
            )
    if quantile is None:
        return
    place = float(evaluate(quantile, values))
    inside = x.low < place < x.high
    share = numerical(pdf, values, [x.within({x.name: (x.low, place)})]) if inside else 0.0
    if share is not None and not abs(share / total - PART) <= WRONG:
        raise ModelError(
            f"density '{type(pdf).__name__}': quantile({PART}) must be where {PART} of the events lie below, got"
            f" '{x.name}' = {place:.6g}, below which {share / total:.6g} lie{where_it_is(pdf, values)}; change it or leave it out"
        )


def numerical(pdf: Pdf, values: Mapping[str, float], drawn: Sequence[Observable]) -> float | None:
    """Return the numerical integral of a density over observables; None if it is not resolved, or not positive."""
    known: dict[Expr, Expr] = {q.symbol: const(values[q.name]) for q in pdf.parameters}
    known |= {o.expr: const(values[o.name]) for o in pdf.given}
    density = substitute(pdf.density(), known)
    check = integral_over_box(density, drawn, ())
    if check.op is not Op.INTEGRAL:
        check = plain_integral(density, drawn)
    adapted = adapted_to(check.args[1:], domain_of(check), (), TOLERANCE)
    total = float(adapted.totals[0])
    return total if adapted.error < RESOLVED and isfinite(total) and total > 0 else None


def where_it_is(pdf: Pdf, values: Mapping[str, float]) -> str:
    """Return at which values integrals were compared: of what is given, or of the first parameters."""
    names = [one.name for one in pdf.given or pdf.parameters]
    places = [f"{name} = {values[name]:.6g}" for name in names[:MAX_SHOWN]] + ["..."] * (
        len(names) > MAX_SHOWN
    )
    return f" at {', '.join(places)}" if places else ""


def advice(pdf: Pdf) -> str:
    """Return what can be done about an integral that is wrong."""
    if pdf.given:
        return "change the integral or what is given"
    by_option = "integral_checked" in vars(pdf)
    way = "check=False" if by_option else "integral_checked = False in its class"
    return f"change it or leave it out, or set {way} where events are labels or have another measure"
