"""Check the numerical integrals of a model by other means than those that computed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from morefit.backend import Array
from morefit.errors import ModelError
from morefit.expr import Expr, Op, const, domain_of, evaluate, leaves, substitute, toposort
from morefit.expr.evaluate import adapt_around, adapted_to, places_at
from morefit.model import Pdf
from morefit.model.integrate import plain_integral
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise

MAX_EVENTS = 20_000  # at which the density is looked at for peaks that were missed
PEAKS = 8  # of them around which boxes are cut closely
STEP = 1e-4  # of a parameter, for differences
UNSMOOTH = 1e-4  # relative difference between a derivative and a difference


def integral_error(model: Pdf, values: Mapping[str, float], events: Mapping[str, Array]) -> float:
    """Return how far, relatively, the worst numerical integral of a model is from an independent one.

    That is made in the observables themselves, without the map onto panels, its boxes cut closely around the events where
    the density is largest: a peak that has events is not missed.
    """
    return max((density_error(pdf, values, events) for pdf in numerical(model)), default=0.0)


def numerical(model: Pdf) -> Iterator[Pdf]:
    """Return the densities of a model that are integrated numerically."""
    for pdf in model.components():
        if any(node.op is Op.INTEGRAL for node in toposort(pdf.integral())):
            yield pdf


def density_error(pdf: Pdf, values: Mapping[str, float], events: Mapping[str, Array]) -> float:
    known = {leaf: const(values[leaf.name]) for leaf in leaves(Op.SCALAR, pdf.density())}
    density = substitute(pdf.density(), known)
    columns = {o.name: events[o.name] for o in pdf.observables}
    some = slice(None, None, max(1, len(next(iter(columns.values()))) // MAX_EVENTS))
    columns = {name: numbers[some] for name, numbers in columns.items()}
    heights = np.broadcast_to(evaluate(density, columns), next(iter(columns.values())).shape)
    highest = np.argsort(-np.nan_to_num(heights))[:PEAKS]
    places = np.column_stack([columns[o.name][highest] for o in pdf.observables])
    check = plain_integral(density, pdf.observables, {})
    domain = domain_of(check)
    places = np.concatenate([places, places_at(check.args[2:], domain, {}).reshape(-1, len(domain.axes))])
    other = adapt_around(check.args[1:], domain, (), places)
    total = float(evaluate(pdf.integral(), values))
    return max(0.0, abs(float(other.totals[0]) / total - 1) - other.error)


def check_smooth(model: Pdf, values: Mapping[str, float]) -> None:
    """Refuse a model whose integral has a kink that moves with a parameter but was not found as an edge.

    Derivatives by that parameter would lack what the kink contributes; differences of integrals have it.
    """
    for pdf in numerical(model):
        for node in toposort(pdf.integral(), enter_integrals=False):
            if node.op is Op.INTEGRAL:
                check_integral(pdf, node, values)


def check_integral(pdf: Pdf, integral: Expr, values: Mapping[str, float]) -> None:
    domain = domain_of(integral)
    conditions = integral.args[2 + len(domain.places) :]
    if not conditions:
        return
    own = {leaf.name: values[leaf.name] for leaf in leaves(Op.SCALAR, integral)}
    nodes = adapted_to(integral.args[1:], domain, tuple(own.items())).boxes.nodes()
    crossed = [c for c in conditions if np.ptp(np.sign(evaluate(c, {**own, **nodes.columns}))) > 0]
    moving = {leaf for c in crossed for leaf in leaves(Op.SCALAR, c)}
    for parameter in sorted(moving, key=lambda leaf: leaf.name):
        name = parameter.name
        step = STEP * max(abs(own[name]), 1e-3)
        above, below = (float(evaluate(integral, {**own, name: own[name] + s * step})) for s in (1, -1))
        slope = float(evaluate(derivatives(normalise(integral)[0], [parameter])[0], own))
        total = float(evaluate(integral, own))
        if abs((above - below) / 2 - slope * step) > UNSMOOTH * max(abs(above - below), STEP * abs(total)):
            raise ModelError(
                f"density '{pdf.density()!r}': its integral has a kink that moves with '{name}', from a condition that"
                " cannot be solved for an observable; write the condition with the observable alone on one side, or"
                " give an integral"
            )
