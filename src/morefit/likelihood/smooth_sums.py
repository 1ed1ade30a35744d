"""Likelihoods with polynomials of columns in the place of integrals for each event, as ``model/integrate/smooth.py`` makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from morefit.arrays import Array, Flags
from morefit.expr import Expr, Op, leaves, substitute
from morefit.kernel.sums import Request
from morefit.model.integrate.smooth import SmoothSum, smooth_sum
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Events

WORST = 1e-8  # of the logarithm of an integral where a fit ended
MAX_SUMS = 500  # coefficients and their derivatives: more take seconds to compile
CHECKS = (
    9,
    3,
    3,
)  # points along each axis at which a polynomial of one, two or three columns is compared, where a fit ended


def smooth_sums(
    nodes: Sequence[Expr],
    floating: Sequence[Expr],
    ranges: Mapping[str, tuple[float, float]],
    rows: Sequence[Mapping[str, float]],
) -> tuple[SmoothSum, ...]:
    """Return those of some sums over nodes that are smooth in their few columns, at rows of parameters."""
    each = []
    for node in nodes:
        moving = len({*leaves(Op.SCALAR, node)} & {*floating})
        most = MAX_SUMS / ((1 + moving) * (2 + moving) // 2)
        each.append(smooth_sum(node, ranges, rows, most) if moving else None)
    return tuple(one for one in each if one is not None)


def smoothed(request: Request, smooth: Sequence[SmoothSum]) -> Request:
    """Return what to sum over events, with polynomials in the place of some sums over nodes."""
    if not smooth:
        return request
    return replace(
        request, log_density=substitute(request.log_density, {one.node: one.polynomial for one in smooth})
    )


def rough_rows(
    smooth: Sequence[SmoothSum], parameters: Sequence[Expr], full: Array, settings: Settings
) -> Flags:
    """Return at which rows of all parameters polynomials are not what they stand for."""
    rough = np.zeros(len(full), np.bool_)
    for one in smooth:
        checks = [CHECKS[len(one.grid.axes) - 1]] * len(one.grid.axes)
        points = one.grid.points(checks)
        compiled = compile_values((one.node,), tuple(parameters), settings)
        count = len(next(iter(points.values())))
        bound = compiled.bind(Columns(points), Events.all_sets(count))
        rough |= ~(one.errors(bound(full)[:, 0], checks) <= WORST)
    return rough
