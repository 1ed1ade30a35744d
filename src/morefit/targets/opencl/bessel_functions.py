"""Modified Bessel functions of real order, as OpenCL C: the formulas of targets/cpu/vecmath/bessel.py."""

from __future__ import annotations

from morefit.targets import coefficients as c
from morefit.targets.opencl.polynomial import horner

TRAPEZOID = f"""\
// exp(x) K_nu(x), or derivatives by nu and -x: the integral of t^n (cosh(t) - 1)^m exp(-x (cosh(t) - 1)) cosh(nu t), or sinh(nu t) for odd n
double bessel_trapezoid(const double nu, const double argument, const int n, const int m)
{{
    if (isnan(nu) || isnan(argument) || argument < 0.0) return NAN;
    if (argument == 0.0) return INFINITY;
    if (isinf(argument)) return 0.0;
    const double order = fabs(nu), x = fmin(argument, 1e150);
    const double step = 1.0 / sqrt(fma(sqrt(fma(x, x, order * order)), {c.BESSEL_STEP[1]!r}, {c.BESSEL_STEP[0]!r}));
    const double square = step * step, growth = square * {horner(c.COSH_LESS_ONE, "square")};
    const double slope = order * step, fall = exp(-2.0 * slope);
    double total = n == 0 && m == 0 ? 0.5 : 0.0, height = 0.0, rise = 0.5 * growth, ratio = 1.0, exponent = 0.0;
    for (int k = 1; k < {4 * c.BESSEL_STEPS_LIMIT}; k++) {{
        const double before = exponent, t = k * step;
        height += rise;
        rise = fma(growth, height + 1.0, rise);
        ratio *= fall;
        exponent = fma(slope, (double)k, -x * height);
        double term = 0.5 * exp(exponent) * (n % 2 ? 1.0 - ratio : 1.0 + ratio);
        for (int i = 0; i < n; i++) term *= t;
        for (int i = 0; i < m; i++) term *= height;
        total += term;
        if (!(term > 6.9e-18 * total || exponent >= before)) break;
    }}
    return total * step;
}}
"""
KVE = "double kve(const double nu, const double x) { return bessel_trapezoid(nu, x, 0, 0); }\n"
KVE_BY_ORDER = """\
double kve_by_order(const double nu, const double x)
{
    const double size = bessel_trapezoid(nu, x, 1, 0);
    return nu < 0.0 ? -size : size;
}
"""
KVE_BY_ORDER_TWICE = (
    "double kve_by_order_twice(const double nu, const double x) { return bessel_trapezoid(nu, x, 2, 0); }\n"
)
KVE_SLOPE = "double kve_slope(const double nu, const double x) { return -bessel_trapezoid(nu, x, 0, 1); }\n"
KVE_BEND = "double kve_bend(const double nu, const double x) { return bessel_trapezoid(nu, x, 0, 2); }\n"
KVE_BY_ORDER_SLOPE = """\
double kve_by_order_slope(const double nu, const double x)
{
    const double size = bessel_trapezoid(nu, x, 1, 1);
    return nu < 0.0 ? size : -size;
}
"""
BESSEL_SERIES = f"""\
// what a term x^-m, m = k + 1/2, of Hankel's expansion adds to a derivative
double hankel_part(const double term, const double k, const int n)
{{
    return n == 0 ? term : n == 1 ? term * (k + 0.5) : term * (k + 0.5) * (k + 1.5);
}}

// what a term x^m, m = nu + 2 k, of a power series adds to a derivative of exp(-x) I_nu(x)
double power_part(const double term, const double m, const double x, const int n)
{{
    const double ratio = m / x, fall = ratio - 1.0;
    return n == 0 ? term : n == 1 ? term * fall : term * fma(fall, fall, -ratio / x);
}}

// exp(-x) I_nu(x) for nu, x >= 0, or a derivative by x: Hankel's expansion, or a power series of positive terms
double bessel_series(const double nu, const double argument, const int n)
{{
    if (isnan(nu) || isnan(argument) || nu < 0.0 || argument < 0.0) return NAN;
    if (argument == 0.0 && n == 0) return nu == 0.0 ? 1.0 : 0.0;
    if (isinf(argument)) return 0.0;
    const double x = n == 0 ? argument : fmax(argument, 1e-150);
    double term = 1.0;
    if (x > fma(0.5 * nu, nu, 30.0)) {{
        double total = hankel_part(1.0, 0.0, n), part = 1.0;
        for (int k = 0; k < 60 && fabs(part) > 6.9e-18; k++) {{
            term *= (4.0 * nu * nu - (2.0 * k + 1.0) * (2.0 * k + 1.0)) * (-0.125 / x) / (k + 1.0);
            part = hankel_part(term, k + 1.0, n);
            total += part;
        }}
        for (int k = 0; k < n; k++) total /= -x;
        return total * {c.INVERSE_ROOT_TWO_PI!r} / sqrt(x);
    }}
    const double half_x = 0.5 * x, square = half_x * half_x, lift = x > 300.0 ? 0x1p-1000 : 1.0;
    double plain = term = lift, total = power_part(term, nu, x, n);
    for (int k = 1; k < {c.BESSEL_SERIES_LIMIT} && term > 6.9e-18 * plain; k++) {{
        term *= square / (k * (k + nu));
        plain += term;
        total += power_part(term, nu + 2.0 * k, x, n);
    }}
    const double factor = exp(0.5 * ((nu == 0.0 ? 0.0 : nu * log(half_x)) - x - lgamma(nu + 1.0)));
    return total * factor / lift * factor;
}}
"""
IVE = "double ive(const double nu, const double x) { return bessel_series(nu, x, 0); }\n"
IVE_SLOPE = "double ive_slope(const double nu, const double x) { return bessel_series(nu, x, 1); }\n"
IVE_BEND = "double ive_bend(const double nu, const double x) { return bessel_series(nu, x, 2); }\n"
