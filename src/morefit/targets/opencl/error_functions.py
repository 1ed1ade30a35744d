"""The scaled error function, the normal distribution and the Faddeeva function, as OpenCL C."""

from __future__ import annotations

from morefit.targets import coefficients as c
from morefit.targets.opencl.polynomial import horner

ERFCX_POSITIVE = f"""\
double erfcx_positive(const double x)
{{
    const double d = x + {c.ERFCX_POLE!r}, i = 1.0 / d, t = fma(i, {-2 * c.ERFCX_POLE!r}, 1.0);
    const double r = i * {horner(c.ERFCX, "t")};
    const double lost = fma(fma(d, i, -1.0), d, x - (d - {c.ERFCX_POLE!r}));
    return x < 64.0 ? fma(lost, fma(x + x, r, {-2 * c.INVERSE_ROOT_PI!r}), r) : r;
}}
"""
ERFCX = """\
// exp(x^2) erfc(x)
double erfcx(const double x)
{
    const double r = erfcx_positive(fabs(x)), s = fmin(fabs(x), 27.0), q = s * s;
    return x < 0.0 ? fma(2.0 * exp(q), 1.0 + fma(s, s, -q), -r) : r;
}
"""
NORMAL_TAIL = """\
// the probability of a standard normal number beyond x >= 0, from half of erfcx there
double normal_tail(const double x, const double scaled)
{
    const double s = fmin(x, 39.0), q = -0.5 * s * s;
    return exp(q) * (1.0 + fma(-0.5 * s, s, -q)) * scaled;
}
"""
NDTR = """\
// the standard normal distribution
double ndtr(const double x)
{
    const double tail = normal_tail(fabs(x), 0.5 * erfcx_positive(M_SQRT1_2 * fabs(x)));
    return x < 0.0 ? tail : 1.0 - tail;
}
"""
LOG_NDTR = """\
// its logarithm
double log_ndtr(const double x)
{
    const double scaled = 0.5 * erfcx_positive(M_SQRT1_2 * fabs(x));
    return x < 0.0 ? fma(-0.5 * x, x, log(scaled)) : log1p(-normal_tail(x, scaled));
}
"""


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
    real *= y;
    imaginary *= x;
    if (y < {c.FADDEEVA_RATE / 2!r} && x < 28.0) {{
        double cosine, turn_cosine;
        const double sine = sincos(2.0 * M_PI * (between ? off : off - copysign(0.5, off)), &cosine);
        const double turn_sine = sincos(cross, &turn_cosine);
        const double q = -x * x, decay = exp({-c.FADDEEVA_RATE!r} * y);
        const double rest = y * (y - {c.FADDEEVA_RATE!r}), sum = q + rest, low = (q - sum) + rest + fma(-x, x, -q);
        const double below = decay + cosine;
        const double scale = 2.0 * exp(sum) * (1.0 + low) / fma(decay, below + cosine, 1.0);
        real = fma(scale, fma(turn_cosine, below, turn_sine * sine), real);
        imaginary = fma(scale, fma(turn_cosine, sine, -turn_sine * below), imaginary);
    }}
    return (double2)(real, imaginary);
}}

// the Faddeeva function w(x + i y)
double2 faddeeva(const double x, const double y)
{{
    const double2 forward = faddeeva_positive(fabs(x), fabs(y));
    const double imaginary = copysign(forward.y, x);
    if (!(y < 0.0)) return (double2)(forward.x, imaginary);
    const double a = clamp(x, -1e150, 1e150), b = clamp(y, -1e150, 1e150);
    const double square = b * b, sum = square - a * a, part = sum - square;
    const double low = (square - (sum - part)) - (a * a + part) + fma(b, b, -square) - fma(a, a, -(a * a));
    const double growth = 2.0 * exp(sum) * (fabs(sum) < 800.0 ? 1.0 + low : 1.0);
    const double turn = 2.0 * a * b, rest = fma(2.0 * a, b, -turn), sine = sin(turn), cosine = cos(turn);
    return (double2)(growth * fma(-rest, sine, cosine) - forward.x, imaginary - growth * fma(rest, cosine, sine));
}}
"""
WOFZ_REAL = "double wofz_real(const double x, const double y) { return faddeeva(x, y).x; }\n"
WOFZ_IMAG = "double wofz_imag(const double x, const double y) { return faddeeva(x, y).y; }\n"
