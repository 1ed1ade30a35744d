"""The Faddeeva function and its derivatives, as OpenCL C: the formulas of targets/cpu/vecmath/faddeeva.py."""

from __future__ import annotations

from morefit.targets import coefficients as c


def rows(nodes: tuple[tuple[float, float], ...]) -> str:
    return ", ".join(f"{{{t!r}, {weight!r}}}" for t, weight in nodes)


FADDEEVA = f"""\
__constant double faddeeva_nodes[2][{len(c.FADDEEVA_ON)}][2] = {{
    {{{rows(c.FADDEEVA_ON)}}},
    {{{rows(c.FADDEEVA_BETWEEN)}}}}};

// w(x + i y) for large arguments: i z / (sqrt(pi) (z^2 - 1/2))
double2 faddeeva_far(const double x, const double y)
{{
    const double scale = fmax(x, y), inverse = 1.0 / fmin(scale, 1e307), half_square = 0.5 * inverse * inverse;
    const double u = fmin(x, 1e307) * inverse, v = fmin(y, 1e307) * inverse;
    const double distance = (u - v) * (u + v) - half_square, cross = 2.0 * u * v, size = fma(u, u, v * v);
    const double factor = (scale > 1e307 ? 0.0 : inverse) * {c.INVERSE_ROOT_PI!r} / fma(distance, distance, cross * cross);
    return (double2)(v * (size + half_square) * factor, u * (size - half_square) * factor);
}}

// what the pole of the integrand adds, x being off by so many steps from the middle between two nodes
double2 faddeeva_pole(const double x, const double y, const double off)
{{
    if (!(y < {c.FADDEEVA_RATE / 2!r} && x < 28.0)) return (double2)(0.0, 0.0);
    double cosine, turn_cosine;
    const double sine = sincos(2.0 * M_PI * off, &cosine), turn_sine = sincos(2.0 * x * y, &turn_cosine);
    const double q = -x * x, decay = exp({-c.FADDEEVA_RATE!r} * y);
    const double rest = y * (y - {c.FADDEEVA_RATE!r}), sum = q + rest, low = (q - sum) + rest + fma(-x, x, -q);
    const double below = decay + cosine;
    const double scale = 2.0 * exp(sum) * (1.0 + low) / fma(decay, below + cosine, 1.0);
    return scale * (double2)(fma(turn_cosine, below, turn_sine * sine), fma(turn_cosine, sine, -turn_sine * below));
}}

// 2 exp(-z^2), by which w(z) and -w(-z) differ
double2 faddeeva_gaussian(const double x, const double y)
{{
    const double a = clamp(x, -1e150, 1e150), b = clamp(y, -1e150, 1e150);
    const double square = b * b, sum = square - a * a, part = sum - square;
    const double low = (square - (sum - part)) - (a * a + part) + fma(b, b, -square) - fma(a, a, -(a * a));
    const double growth = 2.0 * exp(sum) * (fabs(sum) < 800.0 ? 1.0 + low : 1.0);
    const double turn = 2.0 * a * b, rest = fma(2.0 * a, b, -turn), sine = sin(turn), cosine = cos(turn);
    return growth * (double2)(fma(-rest, sine, cosine), -fma(rest, cosine, sine));
}}

// w(x + i y) for x, y >= 0: a sum over nodes away from x, and what the pole adds to it
double2 faddeeva_positive(const double x, const double y)
{{
    if (isnan(x) || isnan(y)) return (double2)(NAN, NAN);
    if (x > {c.FADDEEVA_FAR!r} || y > {c.FADDEEVA_FAR!r}) return faddeeva_far(x, y);
    const double ratio = x * {1 / c.FADDEEVA_STEP!r}, off = ratio - rint(ratio);
    const int between = fabs(off) <= 0.25;
    const double size = fma(x, x, y * y), cross = 2.0 * x * y;
    double real = 0.0, imaginary = 0.0;
    for (int k = {len(c.FADDEEVA_ON) - 1}; k >= 0; k--) {{
        const double t = faddeeva_nodes[between][k][0], distance = (x - t) * (x + t) - y * y;
        const double weight = faddeeva_nodes[between][k][1] / fma(distance, distance, cross * cross);
        real = fma(weight, fma(t, t, size), real);
        imaginary = fma(weight, fma(-t, t, size), imaginary);
    }}
    const double2 pole = faddeeva_pole(x, y, between ? off : off - copysign(0.5, off));
    return (double2)(fma(y, real, pole.x), fma(x, imaginary, pole.y));
}}

// the Faddeeva function w(x + i y)
double2 faddeeva(const double x, const double y)
{{
    const double2 forward = faddeeva_positive(fabs(x), fabs(y));
    const double imaginary = copysign(forward.y, x);
    if (!(y < 0.0)) return (double2)(forward.x, imaginary);
    const double2 gaussian = faddeeva_gaussian(x, y);
    return (double2)(gaussian.x - forward.x, imaginary + gaussian.y);
}}
"""
PRODUCT = "double2 complex_product(const double2 a, const double2 b) { return (double2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }\n"


def series(order: int) -> str:
    """Write the series of a derivative of w: a polynomial in 1 / z^2, times i / z^(order + 1)."""
    coefficients = c.FADDEEVA_SERIES[order]
    numbers, last = ", ".join(map(repr, coefficients)), len(coefficients) - 1
    powers = "".join(f"    total = complex_product(total, {name});\n" for name in power_names(order + 1))
    return f"""\
__constant double faddeeva_series_{order}[{last + 1}] = {{{numbers}}};

// a derivative of w(x + i y) of order {order}, far from the origin
double2 faddeeva_far_{order}(const double x, const double y)
{{
    const double scale = fmin(fmax(fabs(x), fabs(y)), 1e307), inverse = 1.0 / scale;
    const double u = clamp(x, -1e307, 1e307) * inverse, v = clamp(y, -1e307, 1e307) * inverse;
    const double2 first = (double2)(u, -v) * (inverse / fma(u, u, v * v)), second = complex_product(first, first);
    double2 total = (double2)(faddeeva_series_{order}[{last}], 0.0);
    for (int k = {last - 1}; k >= 0; k--)
        total = complex_product(total, second) + (double2)(faddeeva_series_{order}[k], 0.0);
{powers}    return (double2)(-total.y, total.x);
}}
"""


def power_names(power: int) -> list[str]:
    return ["second"] * (power // 2) + ["first"] * (power % 2)


SLOPE = (
    series(1)
    + f"""\
// the derivative of w(x + i y) for x, y >= 0
double2 faddeeva_slope_positive(const double x, const double y)
{{
    if (isnan(x) || isnan(y)) return (double2)(NAN, NAN);
    if (x > {c.FADDEEVA_FAR!r} || y > {c.FADDEEVA_FAR!r}) return faddeeva_far_1(x, y);
    const double ratio = x * {1 / c.FADDEEVA_STEP!r}, off = ratio - rint(ratio), cross = 2.0 * x * y;
    const int between = fabs(off) <= 0.25;
    double parts = 0.0, distances = 0.0;
    for (int k = {len(c.FADDEEVA_ON) - 1}; k >= 0; k--) {{
        const double t = faddeeva_nodes[between][k][0], distance = (x - t) * (x + t) - y * y;
        const double part = faddeeva_nodes[between][k][1] * t * t / fma(distance, distance, cross * cross);
        parts += part;
        distances = fma(part, distance, distances);
    }}
    if (fma(x, x, y * y) > {c.FADDEEVA_MOMENT_FROM**2!r}) {{
        const double moment = between ? {c.FADDEEVA_MOMENTS[1]!r} : {c.FADDEEVA_MOMENTS[0]!r};
        parts *= moment;
        distances *= moment;
    }}
    const double2 pole = faddeeva_pole(x, y, between ? off : off - copysign(0.5, off));
    return -2.0 * (double2)(fma(cross, parts, x * pole.x - y * pole.y), distances + x * pole.y + y * pole.x);
}}

// the derivative of the Faddeeva function
double2 faddeeva_slope(const double x, const double y)
{{
    double2 forward = faddeeva_slope_positive(fabs(x), fabs(y));
    if (x < 0.0) forward.x = -forward.x;
    if (!(y < 0.0)) return forward;
    const double2 below = complex_product((double2)(-2.0 * x, -2.0 * y), faddeeva_gaussian(x, y));
    return (double2)(below.x - forward.x, below.y + forward.y);
}}
"""
)


def far(order: int, hermite: str) -> str:
    """Write a derivative of w far from the origin: its series, and 2 exp(-z^2) below the real axis, a half of it close to that."""
    return (
        series(order)
        + f"""\
double2 faddeeva_derivative_{order}(const double x, const double y)
{{
    if (isnan(x) || isnan(y)) return (double2)(NAN, NAN);
    if (fma(x, x, y * y) < {c.FADDEEVA_SERIES_FROM**2!r}) return (double2)(0.0, 0.0);
    const double2 result = faddeeva_far_{order}(x, y);
    if (!(y <= 0.01 && y * y - x * x > -750.0)) return result;
    const double2 z = (double2)(x, y), square = complex_product(z, z);
    return result + (y < -0.01 ? 1.0 : 0.5) * complex_product({hermite}, faddeeva_gaussian(x, y));
}}
"""
    )


def part(name: str, function: str, side: str) -> str:
    return f"double {name}(const double x, const double y) {{ return {function}(x, y).{side}; }}\n"


SHARED = (
    PRODUCT,
    FADDEEVA,
    SLOPE,
    far(2, "4.0 * square - (double2)(2.0, 0.0)"),
    far(3, "complex_product((double2)(12.0, 0.0) - 8.0 * square, z)"),
    far(4, "complex_product(16.0 * square - (double2)(48.0, 0.0), square) + (double2)(12.0, 0.0)"),
)
FUNCTIONS = tuple(
    part(f"wofz{name}_{'real' if side == 'x' else 'imag'}", function, side)
    for name, function, sides in (
        ("", "faddeeva", "xy"),
        ("_slope", "faddeeva_slope", "xy"),
        ("_bend_far", "faddeeva_derivative_2", "xy"),
        ("_third_far", "faddeeva_derivative_3", "xy"),
        ("_fourth_far", "faddeeva_derivative_4", "x"),
    )
    for side in sides
)
