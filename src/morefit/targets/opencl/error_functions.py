"""The scaled error function and the normal distribution, as OpenCL C."""

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


def tail(name: str, what: str, coefficients: tuple[float, ...]) -> str:
    start, pole = c.ERFCX_TAIL_FROM, c.ERFCX_TAIL_POLE
    return f"""\
// the {what} derivative of sqrt(pi) x erfcx(x) by 1 / (2 x^2), for x >= {start!r}
double {name}(const double x)
{{
    const double t = 1.0 - {2 * (start + pole)!r} / ((x < {start!r} ? {start!r} : x) + {pole!r});
    return {horner(coefficients, "t")};
}}
"""


TAIL_SLOPE = tail("tail_slope", "first", c.ERFCX_TAIL_SLOPE)
TAIL_BEND = tail("tail_bend", "second", c.ERFCX_TAIL_BEND)
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
