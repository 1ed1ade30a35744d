"""Formulas that several shapes share, written so that they stay exact where the naive ones fail."""

from __future__ import annotations

import math

from morefit.expr import Expr, Op, apply, const, where

SERIES = 19  # terms: below |z| = 1 the next one is under 1e-18 of the sum, also in the second derivative


def exprel(z: Expr) -> Expr:
    r"""Return $(e^z - 1)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    series = const(1 / math.factorial(SERIES + 1))
    for k in range(SERIES, 0, -1):
        series = series * z + 1 / math.factorial(k)
    return where(abs(z) < 1, series, apply(Op.EXPM1, z) / z)


def normal_integral(low: Expr, high: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-t^2/2}\,dt$, exact in relative terms also far out in a tail."""
    middle = abs(low + high) / (2 * math.sqrt(2))
    half = (high - low) / (2 * math.sqrt(2))
    return math.sqrt(math.pi / 2) * (apply(Op.ERFC, middle - half) - apply(Op.ERFC, middle + half))
