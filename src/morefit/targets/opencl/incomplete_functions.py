"""Incomplete gamma functions, as OpenCL C: the formulas of targets/cpu/vecmath/incomplete.py."""

from __future__ import annotations

from morefit.targets import coefficients as c

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
