"""Integrals over a template, such as one seen with any resolution: weighted points stand for it, and kinks are treated apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_

import numpy as np

from morefit.expr import (
    ZERO,
    Expr,
    NodeRule,
    Op,
    Table,
    TemplateRule,
    TermRule,
    column,
    const,
    evaluate,
    lookup,
    node_sum,
    toposort,
    where,
)
from morefit.expr.interpolate import cell_of, piecewise
from morefit.expr.node_rule import Pieces
from morefit.model.integrate import check_points, missed, relative_error, sample_points
from morefit.model.integrate.cube import choose_panel
from morefit.model.integrate.panels import Edges
from morefit.model.integrate.per_event import TOLERANCE
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

MAX_KINKS = 3  # of what is integrated with a template, that are treated apart
CELLS_PANELS = 8  # of nodes, between kinks in a part of many cells
FIRST_PARTS, MAX_PARTS = 8, 4096  # of the range of a template, at least, each with some points
MAX_POINTS = 1 << 16

Function = Callable[[Expr], Expr]


@np.errstate(all="ignore")
def integral_over_template(
    function: Function,
    t: Observable,
    pieces: Pieces,
    parameters: Sequence[Parameter],
    given: Sequence[Observable],
) -> Expr | None:
    """Return the integral of a template times a function of t, of parameters, and of observables that are given.

    The template is the piecewise polynomial of ``pieces``, on the range of t. None if kinks of the function cannot be solved
    for t, or if too many points were needed, as where it has many kinks.
    """
    body = function(t.expr)
    if any(node.op is Op.NODE_SUM for node in toposort(body)):
        return None
    edges = Edges(t, body, set(), sample_points((t, *given), parameters))
    edges.moving += [const(end) for end in edges.fixed]
    if edges.any_singular or edges.undecided:
        return None
    kinks = edges.sorted_moving(guarded=False) if len(edges.moving) <= MAX_KINKS else []
    points = {p.name: p.start for p in parameters} | check_points(given)
    product = piecewise(t.expr, *pieces) * body

    def total(rule: TemplateRule) -> Expr:
        return with_kinks(function, rule, kinks) if kinks else mean(function, rule)

    rule = TemplateRule.of_pieces(pieces, FIRST_PARTS)
    while rule.panels <= MAX_PARTS and rule.finer.count <= MAX_POINTS:
        coarse, fine = total(rule), total(rule.finer)
        if relative_error(evaluate(coarse, points), evaluate(fine, points)) <= TOLERANCE:
            return fine if missed(fine, product, t, points) <= TOLERANCE else None
        rule = rule.finer
    return None


def mean(function: Function, rule: TemplateRule) -> Expr:
    """Return the integral over a template by its points alone."""
    return rule.total * node_sum(function(column(rule.symbol)), rule)


def with_kinks(function: Function, rule: TemplateRule, kinks: Sequence[Expr]) -> Expr:
    """Return the integral by points in parts without a kink, and by nodes from kink to kink in the others.

    Of kinks in one part, the first one counts.
    """
    ends, table = rule.parts, Table.of(rule.parts)
    parts = [cell_of(kink, ends) for kink in kinks]
    spans = [(lookup(table, part), lookup(table, part + 1)) for part in parts]
    starts, widths = list[Expr](), list[Expr]()
    for k, (low, high) in enumerate(spans):
        cuts = [low, *(Op.MIN(Op.MAX(kink, low), high) for kink in kinks), high]
        for a, b in pairwise(cuts):
            starts.append(a)
            widths.append(where(parts[k - 1] < parts[k], b - a, ZERO) if k else b - a)
    panels, nodes = TermRule.of(len(starts), 1), NodeRule.of(CELLS_PANELS if rule.joins else 1, 0)
    index = column(panels.symbol) + 0.5
    width = choose_panel(index, widths)
    t = choose_panel(index, starts) + width * column(nodes.symbol)
    inside = width * node_sum(piecewise(t, *rule.pieces) * function(t), nodes)

    def outside(point: Expr) -> Expr:
        apart = [(point < low) | (point > high) for low, high in spans]
        return where(reduce(and_, apart), function(point), ZERO)

    return mean(outside, rule) + len(starts) * node_sum(inside, panels)
