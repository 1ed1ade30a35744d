"""Exponential decays, also with oscillations, seen with a Gaussian resolution: values and integrals in closed form."""

from __future__ import annotations

import math

from morefit.expr import Expr, Op, where
from morefit.model.formulas import normal_area


def smeared_decay(t: Expr, rate: Expr, sigma: Expr) -> Expr:
    r"""Return $e^{-\Gamma t}$ for positive times, convolved with a Gaussian of mean zero.

    $\frac12 e^{-t^2/2\sigma^2}\operatorname{erfcx}(u)$ with $u=(\sigma\Gamma-t/\sigma)/\sqrt2$; for negative u, where erfcx
    overflows, by erfcx(-u) = 2 exp(u^2) - erfcx(u). No two large numbers are subtracted.
    """
    u = (sigma * rate - t / sigma) / math.sqrt(2)
    near = 0.5 * Op.EXP(-0.5 * (t / sigma) ** 2) * Op.ERFCX(abs(u))
    return where(u < 0, Op.EXP(rate * (0.5 * rate * sigma**2 - t)) - near, near)


def smeared_decay_area(low: Expr, high: Expr, rate: Expr, sigma: Expr) -> Expr:
    """Return the integral of ``smeared_decay`` over t, from its own differential equation f' = gauss - rate f."""
    gauss = normal_area(low, high, sigma) / (sigma * math.sqrt(2 * math.pi))
    return (gauss + smeared_decay(low, rate, sigma) - smeared_decay(high, rate, sigma)) / rate
