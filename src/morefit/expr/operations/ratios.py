"""Ratios that are regular where both of their parts are zero: series there, written out once, after differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.expr.operations.areas import numbers
from morefit.expr.operations.arithmetic import Choices
from morefit.expr.operations.elementary import Exponential
from morefit.expr.operations.record import Operation, Prefix, Trait

NEAR = 1 / 16  # squares of s = z/(2 + z) below which ln(1 + z)/z is a series of them: z from -0.4 to 0.67
TERMS = 14  # the next one is under 1e-16 of the sum


def log1prel(z: Any, order: int, choose: Any, log1p: Any) -> Any:
    r"""Return $\ln(1 + z)/z$, or its first or second derivative.

    Near zero it is $2 h g(s^2)$ with $h = 1/(2 + z)$, $s = z h$ and $g(w) = \sum_k w^k/(2k + 1)$.
    """
    h = (2 + z) ** -1
    s = z * h
    square = s * s
    g, first, second = (series(square, derivative) for derivative in range(3))
    ratio = log1p(z) / z
    slope = ((1 + z) ** -1 - ratio) / z
    if order == 0:
        return choose(square < NEAR, 2 * h * g, ratio)
    if order == 1:
        return choose(square < NEAR, 2 * h**2 * (4 * s * h * first - g), slope)
    near = 4 * h**3 * (g + h * (4 * (h - 2 * s) * first + 8 * square * h * second))
    return choose(square < NEAR, near, -((1 + z) ** -2 + 2 * slope) / z)


def series(w: Any, derivative: int) -> Any:
    """Return a derivative of the sum of w^k / (2k + 1)."""
    total: Any = 0.0
    for k in range(TERMS + derivative - 1, derivative - 1, -1):
        falling = (1, k, k * (k - 1))[derivative]
        total = total * w + falling / (2 * k + 1)
    return total


def log_ratio(rank: int, order: int, **options: Any) -> Operation:
    """Return the operation that computes ln(1 + z)/z, or a derivative of it."""

    return Operation(
        rank=rank,
        price=100 * (1 + order),
        numpy=lambda z: numbers(log1prel, (z, order), np.where, np.log1p),
        latex=Prefix(r"\operatorname{log1prel}" + "'" * order),
        spelled=lambda z: log1prel(z, order, Choices.WHERE, Exponential.LOG1P),
        **options,
    )


class Ratios:
    """Ratios of one number; derivatives of third order are not known."""

    LOG1PREL: Operation = log_ratio(
        90, 0, partials=lambda z: (Ratios.LOG1PREL_SLOPE(z),), traits=Trait.NOT_NEGATIVE | Trait.POSITIVE
    )
    LOG1PREL_SLOPE: Operation = log_ratio(84, 1, partials=lambda z: (Ratios.LOG1PREL_BEND(z),))
    LOG1PREL_BEND: Operation = log_ratio(85, 2, partials=lambda z: (None,))
