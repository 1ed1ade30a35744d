"""Integrals of many functions of the same observables at once: on one set of boxes, which resolve all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morefit.arrays import Array
from morefit.expr import Expr, Op, add_all, domain_of, fresh_prefix, leaves, multiply_all
from morefit.expr.adapt import adapt
from morefit.expr.evaluate import evaluate_all, places_at, zeros_in_boxes
from morefit.expr.quadrature import Boxes
from morefit.model.integrate.cube import integral_over_box
from morefit.model.integrate.separate import separate
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

MAX_NUMBERS = 1 << 20  # of all functions at nodes that are evaluated together


def integrate_jointly(
    functions: Sequence[Expr], box: Sequence[Observable], tolerance: float, worst: float
) -> list[tuple[float, float]] | None:
    """Return the integrals of event-only functions over a box, and those of their sizes; None if one is not accurate.

    They are mapped to the cube together, each with a factor that says which one it is.
    """
    prefix = fresh_prefix("function", *functions)
    marks = [Parameter(f"{prefix}{k}", 1.0, 0.5, 2.0) for k in range(len(functions))]
    marked = [mark * function for mark, function in zip(marks, functions, strict=True)]
    whole = integral_over_box(add_all(*marked) if len(marked) > 1 else marked[0], box, marks)
    bodies = None if whole.op is not Op.INTEGRAL else bodies_of(whole.args[0], marks)
    if bodies is None:
        return None
    domain, (subject, *places) = domain_of(whole), whole.args[1:]
    start = {mark.name: 1.0 for mark in marks}

    def measure(boxes: Boxes) -> Array:
        together = max(1, MAX_NUMBERS // (boxes.nodes_each * len(bodies)))
        parts = [
            areas(bodies, boxes.replaced(boxes.low[k : k + together], boxes.high[k : k + together]))[0]
            for k in range(0, len(boxes), together)
        ]
        return np.concatenate(parts)

    adapted = adapt(
        domain,
        measure,
        places_at((subject, *places), domain, start),
        tolerance,
        search=lambda boxes: zeros_in_boxes(subject, boxes, start),
    )
    if not adapted.error <= worst:
        return None
    totals, sizes = (each.sum(axis=0).tolist() for each in areas(bodies, adapted.boxes))
    return list(zip(totals, sizes, strict=True))


def bodies_of(body: Expr, marks: Sequence[Parameter]) -> list[Expr] | None:
    """Return what each mark is multiplied by in a sum."""
    terms = separate(body)
    parts: dict[str, list[Expr]] = {mark.name: [] for mark in marks}
    for weight, event in terms or ():
        names = [leaf.name for factor in weight for leaf in leaves(Op.SCALAR, factor)]
        if len(names) != 1:
            return None
        numbers = [factor for factor in weight if not leaves(Op.SCALAR, factor)]
        parts[names[0]].append(multiply_all(*numbers, *event))
    if not all(parts.values()):
        return None
    return [add_all(*own) if len(own) > 1 else own[0] for own in parts.values()]


def areas(bodies: Sequence[Expr], boxes: Boxes) -> tuple[Array, Array]:
    """Return the integrals of functions over each box, (boxes, functions), and those of their sizes."""
    nodes = boxes.nodes()
    values = np.array(
        [np.broadcast_to(each, nodes.weights.shape) for each in evaluate_all(tuple(bodies), nodes.columns)]
    )
    terms = (nodes.weights * values).reshape(len(bodies), len(boxes), -1)
    return terms.sum(axis=2).T, np.abs(terms).sum(axis=2).T
