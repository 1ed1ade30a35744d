"""Differences of gamma functions and the beta function, as OpenCL C: the formulas of targets/cpu/vecmath/gamma_difference.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.targets import coefficients as c
from morefit.targets.opencl.polynomial import horner


def divided(coefficients: Sequence[float], first: str, second: str) -> str:
    """Write statements that leave (P(first) - P(second)) / (first - second) in ``slope``, for a polynomial P."""
    steps = [
        f"slope = fma(slope, {second}, value); value = fma(value, {first}, {k!r});"
        for k in coefficients[-2::-1]
    ]
    return " ".join([f"double value = {coefficients[-1]!r}, slope = 0.0;", *steps])


FALL = """\
    const double far = {far} ? x : x + {start}.0, end = far + h, i = 1.0 / far, j = 1.0 / end;
    const double rise = h * i * j, s = i * i, t = j * j, square_rise = rise * (i + j);
"""
DIGAMMA_RISE = f"""\
// digamma(x + h) - digamma(x) for x > 0 and h >= 0
double digamma_rise(const double x, const double h)
{{
    if (!(x >= 0.0 && h >= 0.0)) return NAN;
    if (isinf(x) || isinf(h)) return isinf(x) ? 0.0 : INFINITY;
{FALL.format(far="x >= 4.0", start=4)}
    {divided((0.0, *c.DIGAMMA), "s", "t")}
    double total = log1p(h * i) + fma(0.5, rise, square_rise * slope);
    if (x < 4.0)
        for (int k = 0; k < 4; k++) total += h / (x + k + h) / (x + k);
    return total;
}}
"""
TRIGAMMA_RISE = f"""\
// trigamma(x + h) - trigamma(x) for x > 0 and h >= 0
double trigamma_rise(const double x, const double h)
{{
    if (!(x >= 0.0 && h >= 0.0)) return NAN;
    if (isinf(x) || isinf(h)) return isinf(x) ? 0.0 : -trigamma(x);
{FALL.format(far="x >= 4.0", start=4)}
    {divided((0.0, *c.TRIGAMMA), "s", "t")}
    double total = rise + square_rise * fma(i, slope, 0.5) + rise * t * {horner(c.TRIGAMMA, "t")};
    if (x < 4.0)
        for (int k = 0; k < 4; k++) {{
            const double inverse = 1.0 / (x + k), last = 1.0 / (x + k + h);
            total += h * last * inverse * (inverse + last);
        }}
    return -total;
}}
"""
LGAMMA_RISE = f"""\
// lgamma(x + h) - lgamma(x) for x > 0, with all digits where h is small
double lgamma_rise(const double x, const double h)
{{
{FALL.format(far=f"x >= {c.LARGE_SHAPE}", start=int(c.LARGE_SHAPE))}
    {divided(c.STIRLING_TAIL, "s", "t")}
    const double tail = rise * {horner(c.STIRLING_TAIL, "t")} + i * square_rise * slope;
    const double growth = log1p(h * i), total = fma(h, log(end), fma(far, growth, -h) - fma(0.5, growth, tail));
    if (x >= {c.LARGE_SHAPE}) return total;
    double product = h / x;
    for (int k = 1; k < {int(c.LARGE_SHAPE)}; k++) {{
        const double ratio = h / (x + k);
        product += fma(product, ratio, ratio);
    }}
    return total - log1p(product);
}}
"""
BETALN = f"""\
// the logarithm of the beta function, for positive a and b
double betaln(const double a, const double b)
{{
    const double p = fmin(a, b), q = fmax(a, b), total = p + q;
    if (!(a >= 0.0 && b >= 0.0)) return NAN;
    if (isinf(q) || p == 0.0) return isinf(q) ? -INFINITY : INFINITY;
    if (p < {c.LARGE_SHAPE}) return lgamma(p) - lgamma_rise(q, p);
    const double shares = fma(p - 0.5, log(p / total), fma(-q, log1p(p / q), -0.5 * log(q)));
    return shares + {0.5 * math.log(2 * math.pi)!r} + (stirling_tail(p) + stirling_tail(q) - stirling_tail(total));
}}
"""
STIRLING = f"""\
// what Stirling's formula for lgamma lacks
double stirling_tail(const double x)
{{
    const double i = 1.0 / x, s = i * i;
    return i * {horner(c.STIRLING_TAIL, "s")};
}}

// log(1 + distance) - distance; 1 + distance is also a ratio
double log_bend(const double distance, const double ratio)
{{
    const double s = distance / (2.0 + distance), z = s * s;
    if (!(distance > -0.29 && distance < 0.41)) return (distance > -0.5 ? log1p(distance) : log(ratio)) - distance;
    return s * fma(z, fma(z, {horner(c.LOG_TAIL, "z")}, {c.TWO_THIRDS[0]!r}), -distance);
}}
"""
