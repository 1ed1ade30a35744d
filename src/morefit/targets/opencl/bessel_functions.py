"""Modified Bessel functions of real order, as OpenCL C: the formulas of targets/cpu/vecmath/bessel.py."""

from __future__ import annotations

from morefit.targets import coefficients as c
from morefit.targets.opencl.dialect import horner

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
BESSEL_SERIES = f"""\
double digamma(const double x);
double trigamma(const double x);

// what a term x^-m, m = k + 1/2, of Hankel's expansion adds to a derivative
double hankel_part(const double term, const double k, const int n)
{{
    return n == 0 ? term : n == 1 ? term * (k + 0.5) : term * (k + 0.5) * (k + 1.5);
}}

// exp(-x) I_nu(x) for x > 30 + nu^2 / 2, or a derivative by x
double bessel_hankel(const double nu, const double x, const int n)
{{
    double term = 1.0, total = hankel_part(1.0, 0.0, n), part = 1.0;
    for (int k = 0; k < 60 && fabs(part) > 6.9e-18; k++) {{
        term *= (4.0 * nu * nu - (2.0 * k + 1.0) * (2.0 * k + 1.0)) * (-0.125 / x) / (k + 1.0);
        part = hankel_part(term, k + 1.0, n);
        total += part;
    }}
    for (int k = 0; k < n; k++) total /= -x;
    return total * {c.INVERSE_ROOT_TWO_PI!r} / sqrt(x);
}}

// what a term x^m, m = nu + 2 k, of a power series adds to a derivative of exp(-x) I_nu(x)
double power_part(const double m, const double x, const int n, const int by_x, const double slope, const double bend)
{{
    const double ratio = m / x, fall = ratio - 1.0;
    if (n > 0) return n == 2 ? fma(slope, slope, -bend) : by_x ? fma(slope, fall, 1.0 / x) : slope;
    return by_x == 0 ? 1.0 : by_x == 1 ? fall : fma(fall, fall, -ratio / x);
}}

// exp(-x) I_nu(x), or a derivative by nu and x: a sum of positive terms, each times a factor
double bessel_powers(const double nu, const double x, const int n, const int by_x)
{{
    const double half_x = 0.5 * x, square = half_x * half_x;
    double slope = n > 0 ? log(half_x) - digamma(nu + 1.0) : 0.0, bend = n == 2 ? trigamma(nu + 1.0) : 0.0;
    double term = 1.0, plain = 1.0, total = power_part(nu, x, n, by_x, slope, bend);
    for (int k = 1; k < {c.BESSEL_SERIES_LIMIT} && term > 6.9e-18 * plain; k++) {{
        const double step = 1.0 / (k + nu);
        term *= square / k * step;
        slope -= step;
        bend = fma(-step, step, bend);
        plain += term;
        total += term * power_part(nu + 2.0 * k, x, n, by_x, slope, bend);
    }}
    const double factor = exp(0.5 * ((nu == 0.0 ? 0.0 : nu * log(half_x)) - x - lgamma(nu + 1.0)));
    return total * factor * factor;
}}

// a term of the integral along the path, and its exponent
double2 path_node(const double nu, const double x, const double sinh_, const double cosh_, const int n, const int by_x)
{{
    const double slope = fmax(nu, {c.LEAST_ORDER!r}) / x, square = sinh_ * sinh_, v = 2.0 * atan(sinh_);
    const double above_one = cosh_ * cosh_, inverse_sine = 0.5 * above_one / sinh_, cosine = (1.0 - square) / above_one;
    const double stretched = sinh_ == 0.0 ? 1.0 : v * inverse_sine;
    const double rise = sinh_ == 0.0 ? 0.0 : fma(-cosine, stretched, 1.0) * inverse_sine;
    const double z = slope * stretched, root = sqrt(fma(z, z, 1.0)), u = asinh(z);
    const double real = (z * (z / (root + 1.0)) * (1.0 - square) - 2.0 * square) / above_one, imaginary = slope * v;
    const double exponent = fma(x, real, -nu * u);
    double term = 1.0, other = 0.0;
    for (int k = 0; k < n; k++) {{
        const double before = term;
        term = fma(v, other, -u * term);
        other = -fma(u, other, v * before);
    }}
    for (int k = 0; k < by_x; k++) {{
        const double before = term;
        term = fma(real, term, -imaginary * other);
        other = fma(real, other, imaginary * before);
    }}
    return (double2)(fma(other, slope * rise / root, term) * exp(exponent) / cosh_, exponent);
}}

// exp(-x) I_nu(x) for x > 0, or a derivative by nu and x: the trapezoidal rule along the path on which the integrand is real
double bessel_path(const double nu, const double x, const int n, const int by_x)
{{
    const double h = 1.0 / sqrt(fma(sqrt(fma(x, x, nu * nu)), {c.BESSEL_STEP[1]!r}, {c.BESSEL_STEP[0]!r}));
    const double turn = sinh(0.5 * h), stretch = cosh(0.5 * h);
    double2 node = path_node(nu, x, 0.0, 1.0, n, by_x);
    const double depth = node.y - {c.BESSEL_DEPTH!r} - (n > 0 && nu < 1.0 ? fmin(2.0 * x, 40.0) : 0.0);
    double total = 0.5 * node.x, s = 0.0, t = 1.0;
    for (int k = 1; k < {c.BESSEL_STEPS_LIMIT} && node.y > depth; k++) {{
        const double before = s;
        s = fma(s, stretch, t * turn);
        t = fma(t, stretch, before * turn);
        node = path_node(nu, x, s, t, n, by_x);
        total += node.x;
    }}
    return total * h * M_1_PI;
}}

// exp(-x) I_nu(x) for nu, x >= 0, or a derivative by nu and x
double bessel_first(const double nu, const double argument, const int n, const int by_x)
{{
    if (isnan(nu) || isnan(argument) || nu < 0.0 || argument < 0.0) return NAN;
    if (isinf(argument)) return 0.0;
    if (argument == 0.0 && by_x == 0) {{
        if (n == 0) return nu == 0.0 ? 1.0 : 0.0;
        return nu == 0.0 ? (n == 2 ? INFINITY : -INFINITY) : 0.0;
    }}
    const double x = n + by_x == 0 ? argument : fmax(argument, 1e-150), order = fmin(nu, 1e150);
    if (n == 0 && x > fma(0.5 * nu, nu, 30.0)) return bessel_hankel(nu, x, by_x);
    const int far = x > {c.CONTOUR_FROM!r} && (n > 0 || nu > {c.CONTOUR_ORDER!r});
    return far ? bessel_path(order, fmin(x, 1e150), n, by_x) : bessel_powers(order, x, n, by_x);
}}
"""


def of_first_kind(name: str, n: int, by_x: int) -> str:
    return f"double {name}(const double nu, const double x) {{ return bessel_first(nu, x, {n}, {by_x}); }}\n"


def of_second_kind(name: str, n: int, by_x: int) -> str:
    """Write a derivative by nu and x, which is even or odd in nu."""
    head, size = f"double {name}(const double nu, const double x)", f"bessel_trapezoid(nu, x, {n}, {by_x})"
    if n % 2 == 0:
        return f"{head} {{ return {'-' * (by_x % 2)}{size}; }}\n"
    signs = ("size : -size", "-size : size")[by_x == 0]
    return f"{head}\n{{\n    const double size = {size};\n    return nu < 0.0 ? {signs};\n}}\n"


SHARED = (TRAPEZOID, BESSEL_SERIES)
FUNCTIONS = (
    of_second_kind("kve", 0, 0),
    of_second_kind("kve_by_order", 1, 0),
    of_second_kind("kve_by_order_twice", 2, 0),
    of_second_kind("kve_slope", 0, 1),
    of_second_kind("kve_bend", 0, 2),
    of_second_kind("kve_by_order_slope", 1, 1),
    of_first_kind("ive", 0, 0),
    of_first_kind("ive_slope", 0, 1),
    of_first_kind("ive_bend", 0, 2),
    of_first_kind("ive_by_order", 1, 0),
    of_first_kind("ive_by_order_twice", 2, 0),
    of_first_kind("ive_by_order_slope", 1, 1),
)
