"""Modified Bessel functions of real order, as OpenCL C: the formulas of targets/cpu/vecmath/bessel.py."""

from __future__ import annotations

from morefit.targets import coefficients as c
from morefit.targets.opencl.polynomial import horner

TRAPEZOID = f"""\
// exp(x) K_nu(x), or a derivative by nu: the integral of t^n exp(-x (cosh(t) - 1)) cosh(nu t), or sinh(nu t) for odd n
double bessel_trapezoid(const double nu, const double argument, const int n)
{{
    if (isnan(nu) || isnan(argument) || argument < 0.0) return NAN;
    if (argument == 0.0) return INFINITY;
    if (isinf(argument)) return 0.0;
    const double order = fabs(nu), x = fmin(argument, 1e150);
    const double step = 1.0 / sqrt(fma(sqrt(fma(x, x, order * order)), {c.BESSEL_STEP[1]!r}, {c.BESSEL_STEP[0]!r}));
    const double square = step * step, growth = square * {horner(c.COSH_LESS_ONE, "square")};
    const double slope = order * step, fall = exp(-2.0 * slope);
    double total = n == 0 ? 0.5 : 0.0, height = 0.0, rise = 0.5 * growth, ratio = 1.0, exponent = 0.0;
    for (int k = 1; k < {4 * c.BESSEL_STEPS_LIMIT}; k++) {{
        const double before = exponent, t = k * step;
        height += rise;
        rise = fma(growth, height + 1.0, rise);
        ratio *= fall;
        exponent = fma(slope, (double)k, -x * height);
        double term = 0.5 * exp(exponent) * (n % 2 ? 1.0 - ratio : 1.0 + ratio);
        for (int i = 0; i < n; i++) term *= t;
        total += term;
        if (!(term > 6.9e-18 * total || exponent >= before)) break;
    }}
    return total * step;
}}
"""
KVE = "double kve(const double nu, const double x) { return bessel_trapezoid(nu, x, 0); }\n"
KVE_BY_ORDER = """\
double kve_by_order(const double nu, const double x)
{
    const double size = bessel_trapezoid(nu, x, 1);
    return nu < 0.0 ? -size : size;
}
"""
KVE_BY_ORDER_TWICE = (
    "double kve_by_order_twice(const double nu, const double x) { return bessel_trapezoid(nu, x, 2); }\n"
)
IVE = f"""\
// exp(-x) I_nu(x) for nu, x >= 0: Hankel's expansion, or a power series of positive terms
double ive(const double nu, const double x)
{{
    if (isnan(nu) || isnan(x) || nu < 0.0 || x < 0.0) return NAN;
    if (x == 0.0) return nu == 0.0 ? 1.0 : 0.0;
    if (isinf(x)) return 0.0;
    double total = 1.0, term = 1.0;
    if (x > fma(0.5 * nu, nu, 30.0)) {{
        for (int k = 0; k < 60 && fabs(term) > 6.9e-18; k++) {{
            term *= (4.0 * nu * nu - (2.0 * k + 1.0) * (2.0 * k + 1.0)) * (-0.125 / x) / (k + 1.0);
            total += term;
        }}
        return total * {c.INVERSE_ROOT_TWO_PI!r} / sqrt(x);
    }}
    const double half_x = 0.5 * x, square = half_x * half_x, lift = x > 300.0 ? 0x1p-1000 : 1.0;
    total = term = lift;
    for (int k = 1; k < {c.BESSEL_SERIES_LIMIT} && term > 6.9e-18 * total; k++) {{
        term *= square / (k * (k + nu));
        total += term;
    }}
    const double factor = exp(0.5 * ((nu == 0.0 ? 0.0 : nu * log(half_x)) - x - lgamma(nu + 1.0)));
    return total * factor / lift * factor;
}}
"""
