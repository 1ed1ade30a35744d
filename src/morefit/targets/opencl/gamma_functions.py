"""Gamma functions, their derivatives and differences, and incomplete ones, as OpenCL C: the formulas of targets/cpu/vecmath."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.targets import coefficients as c
from morefit.targets.opencl.dialect import horner

DIGAMMA = f"""\
double digamma_positive(const double x)
{{
    const double y = x < 4.0 ? x + 4.0 : x, i = 1.0 / y, s = i * i;
    const double series = fma(s, {horner(c.DIGAMMA, "s")}, 0.5 * i);
    if (!(x < 4.0)) return log(y) - series;
    double total = log(y), low = -series;
    for (int k = 3; k >= 0; k--) {{
        const double term = -1.0 / (x + k), sum = total + term, part = sum - total;
        low += (total - (sum - part)) + (term - part);
        total = sum;
    }}
    return isinf(total) ? total : total + low;
}}

// the derivative of lgamma; NaN at its poles below zero
double digamma(const double x)
{{
    if (x == 0.0) return copysign((double)INFINITY, -x);
    if (!(x < 0.0)) return digamma_positive(x);
    const double off = x - rint(x);
    return off == 0.0 ? (double)NAN : digamma_positive(1.0 - x) - M_PI * cospi(off) / sinpi(off);
}}
"""
TRIGAMMA = f"""\
double trigamma_positive(const double x)
{{
    const double y = x < 4.0 ? x + 4.0 : x, i = 1.0 / y, s = i * i;
    double total = i + fma(i * s, {horner(c.TRIGAMMA, "s")}, 0.5 * s);
    if (x < 4.0)
        for (int k = 3; k >= 0; k--) total += 1.0 / ((x + k) * (x + k));
    return total;
}}

// the second derivative of lgamma; infinite at its poles
double trigamma(const double x)
{{
    if (!(x < 0.0)) return trigamma_positive(x);
    const double slope = M_PI / sinpi(x - rint(x));
    return slope * slope - trigamma_positive(1.0 - x);
}}
"""
TETRAGAMMA = f"""\
double tetragamma_positive(const double x)
{{
    const double y = x < {c.TETRAGAMMA_FROM}.0 ? x + {c.TETRAGAMMA_FROM}.0 : x, i = 1.0 / y, s = i * i;
    double total = fma(s, fma(s, {horner(c.TETRAGAMMA, "s")}, i), s);
    if (x < {c.TETRAGAMMA_FROM}.0)
        for (int k = {c.TETRAGAMMA_FROM - 1}; k >= 0; k--)
            total += 2.0 / ((x + k) * (x + k) * (x + k));
    return -total;
}}

// the third derivative of lgamma; NaN at its poles below zero
double tetragamma(const double x)
{{
    if (x == 0.0) return copysign((double)INFINITY, -x);
    if (!(x < 0.0)) return tetragamma_positive(x);
    const double off = x - rint(x), slope = M_PI / sinpi(off);
    if (off == 0.0) return NAN;
    return tetragamma_positive(1.0 - x) - 2.0 * slope * slope * slope * cospi(off);
}}
"""


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
GAMMA_PARTS = f"""\
// x^(a - less) e^-x / Gamma(a)
double gamma_height(const double a, const double x, const double less)
{{
    if (a < {c.LARGE_SHAPE!r}) return exp(fma(a - less, log(x), -x) - lgamma(a));
    const double i = 1.0 / a, size = {c.INVERSE_ROOT_TWO_PI!r} * sqrt(a);
    return (less == 0.0 ? size : size / x) * exp(a * log_bend((x - a) * i, x * i) - stirling_tail(a));
}}

// the sum of x^k / ((a + 1) ... (a + k)), and its first two derivatives by a
double4 gamma_series(const double a, const double x)
{{
    double total = 1.0, slope = 0.0, bend = 0.0, term = 1.0, first = 0.0, second = 0.0;
    for (int k = 1; k < {c.INCOMPLETE_LIMIT} && term > 1.4e-17 * total; k++) {{
        const double inverse = 1.0 / (a + k);
        term *= x * inverse;
        first += inverse;
        second = fma(inverse, inverse, second);
        total += term;
        slope = fma(-term, first, slope);
        bend = fma(term, fma(first, first, second), bend);
    }}
    return (double4)(total, slope, bend, 0.0);
}}

// Gamma(a, x) e^x / x^a as a continued fraction, and two derivatives of its logarithm by a
double4 gamma_fraction(const double a, const double x)
{{
    double b = x - a + 1.0, d = 1.0 / b, h = d, slope = d, bend = d * d;
    double d1 = d * d, d2 = 2.0 * d1 * d, e = 1e-300, e1 = 0.0, e2 = 0.0, off = 1.0;
    for (int k = 1; k < {c.INCOMPLETE_LIMIT} && off > 1.4e-17; k++) {{
        const double n = -(double)k * (k - a);
        b += 2.0;
        const double y = fma(n, d, b), y1 = fma(n, d1, fma((double)k, d, -1.0)), y2 = fma(n, d2, 2.0 * k * d1);
        const double z = fma(n, e, b), z1 = fma(n, e1, fma((double)k, e, -1.0)), z2 = fma(n, e2, 2.0 * k * e1);
        const double p = y1 / y, q = y2 / y, r = z1 / z, s = z2 / z;
        d = 1.0 / y, d1 = -p * d, d2 = d * (2.0 * p * p - q);
        e = 1.0 / z, e1 = -r * e, e2 = e * (2.0 * r * r - s);
        const double change = d * z, turn = (s - r * r) - (q - p * p);
        h *= change;
        slope += r - p;
        bend += turn;
        off = fabs(change - 1.0) + fabs(r - p) + fabs(turn);
    }}
    return (double4)(h, slope, bend, 0.0);
}}

int gamma_outside(const double a, const double x) {{ return !(a > 0.0 && x >= 0.0 && a < INFINITY || a == 0.0 && x > 0.0); }}
"""
GAMMAINC = """\
double gammainc(const double a, const double x)
{
    if (gamma_outside(a, x)) return NAN;
    if (a < 2.3e-308) return 1.0;
    if (x == 0.0 || isinf(x)) return x == 0.0 ? 0.0 : 1.0;
    if (x < a + 1.0) return gamma_height(a, x, 0.0) / a * gamma_series(a, x).x;
    return 1.0 - gamma_height(a, x, 0.0) * gamma_fraction(a, x).x;
}
"""
GAMMAINCC = """\
double gammaincc(const double a, const double x)
{
    if (gamma_outside(a, x)) return NAN;
    if (a < 2.3e-308) return 0.0;
    if (x == 0.0 || isinf(x)) return x == 0.0 ? 1.0 : 0.0;
    if (x < a + 1.0) return 1.0 - gamma_height(a, x, 0.0) / a * gamma_series(a, x).x;
    return gamma_height(a, x, 0.0) * gamma_fraction(a, x).x;
}
"""
GAMMAINC_BY_SHAPE = """\
double gammainc_by_shape(const double a, const double x)
{
    if (gamma_outside(a, x)) return NAN;
    if (a < 2.3e-308) return 0.0;
    if (x == 0.0 || isinf(x)) return 0.0;
    if (x < a + 1.0) {
        const double4 series = gamma_series(a, x);
        return gamma_height(a, x, 0.0) / a * fma(log(x) - digamma(a + 1.0), series.x, series.y);
    }
    const double4 fraction = gamma_fraction(a, x);
    return -gamma_height(a, x, 0.0) * fraction.x * (log(x) - digamma(a) + fraction.y);
}
"""
GAMMAINC_BY_SHAPE_TWICE = """\
double gammainc_by_shape_twice(const double a, const double x)
{
    if (gamma_outside(a, x)) return NAN;
    if (a < 2.3e-308) return 0.0;
    if (x == 0.0 || isinf(x)) return 0.0;
    if (x < a + 1.0) {
        const double4 series = gamma_series(a, x);
        const double slope = log(x) - digamma(a + 1.0), bend = fma(slope, slope, -trigamma(a + 1.0));
        return gamma_height(a, x, 0.0) / a * fma(bend, series.x, fma(2.0 * slope, series.y, series.z));
    }
    const double4 fraction = gamma_fraction(a, x);
    const double slope = log(x) - digamma(a) + fraction.y;
    return -gamma_height(a, x, 0.0) * fraction.x * fma(slope, slope, fraction.z - trigamma(a));
}
"""
GAMMA_DENSITY = """\
double gamma_density(const double a, const double x)
{
    if (!(a > 0.0 && a < INFINITY && x >= 0.0)) return NAN;
    if (x == 0.0) return a == 1.0 ? 1.0 : a > 1.0 ? 0.0 : INFINITY;
    return isinf(x) ? 0.0 : gamma_height(a, x, 1.0);
}
"""

SHARED = (STIRLING, GAMMA_PARTS, LGAMMA_RISE)
POLYGAMMA = (DIGAMMA, TRIGAMMA, TETRAGAMMA)
FUNCTIONS = (
    GAMMAINC,
    GAMMAINCC,
    GAMMAINC_BY_SHAPE,
    GAMMAINC_BY_SHAPE_TWICE,
    GAMMA_DENSITY,
    DIGAMMA_RISE,
    TRIGAMMA_RISE,
    BETALN,
)
