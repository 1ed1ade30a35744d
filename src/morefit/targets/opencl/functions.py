"""The functions that operations need and OpenCL C lacks, or has less exactly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from morefit.expr.operations import Operation
from morefit.kernel.ir import Body, Kernel, Line
from morefit.targets import coefficients as c
from morefit.targets.opencl import (
    bessel_functions,
    faddeeva_functions,
    gamma_functions,
    incomplete_beta_functions,
)
from morefit.targets.opencl.dialect import horner, outlined_function

DEFINED = re.compile(r"^(?:double[24]?|int) (\w+)\([^;\n]*\)(?: \{|\n)", re.MULTILINE)
CALLED = re.compile(r"//.*|\b(\w+)\(")  # of comments nothing


def helpers(kernels: Sequence[Kernel]) -> list[str]:
    """Return the functions that some kernels call and C does not have, and those that these call."""
    operations = {line.op for k in kernels for body in (k.per_call, k.per_event) for line in body.flat}
    known, needed = texts_by_function(), set[str]()
    waiting = [name for op in operations for name in CALLED.findall(op.c)]
    while waiting:
        text = known.get(waiting.pop())
        if text is not None and text not in needed:
            needed.add(text)
            waiting += CALLED.findall(text)
    calls = {op: outlined_function(op) for k in kernels for op in outlined(k.per_call)}
    return [*(text for text in TEXTS if text in needed), *calls.values()]


@cache
def texts_by_function() -> dict[str, str]:
    """Return the text that defines each function."""
    return {name: text for text in TEXTS for name in DEFINED.findall(text)}


def outlined(body: Body) -> list[Operation]:
    """Return which operations of what depends on parameters alone are functions of their own.

    Compilers copy an exponential to each place it is used at: hundreds of them, which integrals have, take seconds.
    """
    uses = Counter(line.op for line in body.lines if isinstance(line, Line))
    return [op for op, n in uses.items() if n >= MIN_USES and op.price >= MIN_PRICE and op.c[0].isalpha()]


MIN_USES, MIN_PRICE = 2, 15  # of an operation that is worth a function of its own


def logarithm(name: str, base: str, factor: tuple[float, float]) -> str:
    """Write a logarithm as targets/cpu/vecmath does, with pairs of doubles: OpenCL's own is not exact at powers.

    Compilers may join a product and a sum into one ``fma``; what was rounded off a product that is joined must not be added.
    """
    return f"""\
// the logarithm to base {base}, exact at its powers
double {name}(const double x)
{{
    if (!(x > 0.0) || isinf(x)) return log(x);
    int e;
    double m = frexp(x, &e);
    if (m < M_SQRT1_2) {{ m *= 2.0; e--; }}
    const double f = m - 1.0, k = (double)e, d = 2.0 + f, d_low = f - (d - 2.0);
    const double s = f / d, s_low = fma(-s, d_low, fma(-s, d, f)) / d;
    const double z = s * s, z_low = fma(2.0 * s, s_low, fma(s, s, -z));
    const double inner = fma(z, {horner(c.LOG_TAIL, "z")}, {c.TWO_THIRDS[1]!r});
    const double third = {c.TWO_THIRDS[0]!r} + inner, third_low = inner - (third - {c.TWO_THIRDS[0]!r});
    const double y = z * third, y_low = fma(z, third_low, fma(z_low, third, fma(z, third, -y)));
    const double c = s * y, c_low = fma(s, y_low, fma(s_low, y, fma(s, y, -c)));
    const double h = 2.0 * s + c, h_low = (c - (h - 2.0 * s)) + fma(2.0, s_low, c_low);
    const double p = k * {c.LN2_SHORT[0]!r}, a = p + h, b = a - p;
    const double a_low = (p - (a - b)) + (h - b) + fma(k, {c.LN2_SHORT[1]!r}, h_low);
    const double l = a + a_low, l_low = a_low - (l - a);
    return fma(l, {factor[0]!r}, fma(l, {factor[1]!r}, l_low * {factor[0]!r}));
}}
"""


NDTRI = f"""\
// the quantile of the standard normal distribution; NaN outside [0, 1]
double ndtri(const double p)
{{
    const double q = p - 0.5, c = fma(q, -q, {c.CENTRE * c.CENTRE!r});
    if (c > 0.0)
        return q * {horner(c.CENTRE_TOP, "c")}
            / {horner(c.CENTRE_BOTTOM, "c")};
    const double small = q > 0.0 ? 1.0 - p : p;
    if (small < 0.0 || isnan(p)) return NAN;
    if (small == 0.0) return q > 0.0 ? INFINITY : -INFINITY;
    const double root = sqrt(-log(small)), t = root - {c.TAIL_FROM!r}, f = root - {c.FAR_FROM!r};
    const double size = f > 0.0
        ? {horner(c.FAR_TOP, "f")}
            / {horner(c.FAR_BOTTOM, "f")}
        : {horner(c.TAIL_TOP, "t")}
            / {horner(c.TAIL_BOTTOM, "t")};
    return q > 0.0 ? size : -size;
}}
"""
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


# In the order of a program: what several functions call comes first. The formulas are those of targets/cpu/vecmath, most without its
# pairs of doubles: right to a few units in the last place.
TEXTS = (
    ERFCX_POSITIVE,
    NORMAL_TAIL,
    *faddeeva_functions.SHARED,
    *bessel_functions.SHARED,
    *gamma_functions.SHARED,
    *incomplete_beta_functions.SHARED,
    logarithm("exact_log2", "two", c.TO_BASE_TWO),
    logarithm("exact_log10", "ten", c.TO_BASE_TEN),
    NDTRI,
    *gamma_functions.POLYGAMMA,
    ERFCX,
    NDTR,
    LOG_NDTR,
    tail("tail_slope", "first", c.ERFCX_TAIL_SLOPE),
    tail("tail_bend", "second", c.ERFCX_TAIL_BEND),
    *faddeeva_functions.FUNCTIONS,
    *bessel_functions.FUNCTIONS,
    *gamma_functions.FUNCTIONS,
    *incomplete_beta_functions.FUNCTIONS,
)
