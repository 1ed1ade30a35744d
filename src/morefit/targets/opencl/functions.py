"""The functions that operations need and OpenCL C lacks, or has less exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from morefit.expr.operations import Operation
from morefit.kernel.ir import Body, Kernel, Line
from morefit.targets import coefficients
from morefit.targets.opencl import (
    bessel_functions,
    error_functions,
    faddeeva_functions,
    gamma_difference_functions,
    incomplete_beta_functions,
    incomplete_functions,
)
from morefit.targets.opencl.dialect import outlined_function
from morefit.targets.opencl.polynomial import horner


def helpers(kernels: Sequence[Kernel]) -> list[str]:
    """Return the functions that some kernels call and C does not have."""
    used = {line.op.name for k in kernels for body in (k.per_call, k.per_event) for line in body.flat}
    used |= {name for op in used for name in CALLED.get(op, ())}
    shared = [text for text, operations in SHARED if used & operations]
    calls = {op: outlined_function(op) for k in kernels for op in outlined(k.per_call)}
    return [*shared, *(text for name, text in HELPERS.items() if name in used), *calls.values()]


def outlined(body: Body) -> list[Operation]:
    """Return which operations of what depends on parameters alone are functions of their own.

    Compilers copy an exponential to each place it is used at: hundreds of them, which integrals have, take seconds.
    """
    uses = Counter(line.op for line in body.lines if isinstance(line, Line))
    return [op for op, n in uses.items() if n >= MIN_USES and op.price >= MIN_PRICE and op.c[0].isalpha()]


MIN_USES, MIN_PRICE = 8, 15  # of an operation that is worth a function of its own


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
    const double inner = fma(z, {horner(coefficients.LOG_TAIL, "z")}, {coefficients.TWO_THIRDS[1]!r});
    const double third = {coefficients.TWO_THIRDS[0]!r} + inner, third_low = inner - (third - {coefficients.TWO_THIRDS[0]!r});
    const double y = z * third, y_low = fma(z, third_low, fma(z_low, third, fma(z, third, -y)));
    const double c = s * y, c_low = fma(s, y_low, fma(s_low, y, fma(s, y, -c)));
    const double h = 2.0 * s + c, h_low = (c - (h - 2.0 * s)) + fma(2.0, s_low, c_low);
    const double p = k * {coefficients.LN2_SHORT[0]!r}, a = p + h, b = a - p;
    const double a_low = (p - (a - b)) + (h - b) + fma(k, {coefficients.LN2_SHORT[1]!r}, h_low);
    const double l = a + a_low, l_low = a_low - (l - a);
    return fma(l, {factor[0]!r}, fma(l, {factor[1]!r}, l_low * {factor[0]!r}));
}}
"""


# By the name of the operation. The formulas of targets/cpu/vecmath, most without its pairs of doubles: right to a few units in the last place.
HELPERS: Mapping[str, str] = {
    "LOG2": logarithm("exact_log2", "two", coefficients.TO_BASE_TWO),
    "LOG10": logarithm("exact_log10", "ten", coefficients.TO_BASE_TEN),
    "NDTRI": f"""\
// the quantile of the standard normal distribution; NaN outside [0, 1]
double ndtri(const double p)
{{
    const double q = p - 0.5, c = fma(q, -q, {coefficients.CENTRE * coefficients.CENTRE!r});
    if (c > 0.0)
        return q * {horner(coefficients.CENTRE_TOP, "c")}
            / {horner(coefficients.CENTRE_BOTTOM, "c")};
    const double small = q > 0.0 ? 1.0 - p : p;
    if (small < 0.0 || isnan(p)) return NAN;
    if (small == 0.0) return q > 0.0 ? INFINITY : -INFINITY;
    const double root = sqrt(-log(small)), t = root - {coefficients.TAIL_FROM!r}, f = root - {coefficients.FAR_FROM!r};
    const double size = f > 0.0
        ? {horner(coefficients.FAR_TOP, "f")}
            / {horner(coefficients.FAR_BOTTOM, "f")}
        : {horner(coefficients.TAIL_TOP, "t")}
            / {horner(coefficients.TAIL_BOTTOM, "t")};
    return q > 0.0 ? size : -size;
}}
""",
    "DIGAMMA": f"""\
double digamma_positive(const double x)
{{
    const double y = x < 4.0 ? x + 4.0 : x, i = 1.0 / y, s = i * i;
    const double series = fma(s, {horner(coefficients.DIGAMMA, "s")}, 0.5 * i);
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
""",
    "TRIGAMMA": f"""\
double trigamma_positive(const double x)
{{
    const double y = x < 4.0 ? x + 4.0 : x, i = 1.0 / y, s = i * i;
    double total = i + fma(i * s, {horner(coefficients.TRIGAMMA, "s")}, 0.5 * s);
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
""",
    "TETRAGAMMA": f"""\
double tetragamma_positive(const double x)
{{
    const double y = x < {coefficients.TETRAGAMMA_FROM}.0 ? x + {coefficients.TETRAGAMMA_FROM}.0 : x, i = 1.0 / y, s = i * i;
    double total = fma(s, fma(s, {horner(coefficients.TETRAGAMMA, "s")}, i), s);
    if (x < {coefficients.TETRAGAMMA_FROM}.0)
        for (int k = {coefficients.TETRAGAMMA_FROM - 1}; k >= 0; k--)
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
""",
    "ERFCX": error_functions.ERFCX,
    "NDTR": error_functions.NDTR,
    "LOG_NDTR": error_functions.LOG_NDTR,
    "TAIL_SLOPE": error_functions.TAIL_SLOPE,
    "TAIL_BEND": error_functions.TAIL_BEND,
    "WOFZ_REAL": faddeeva_functions.WOFZ_REAL,
    "WOFZ_IMAG": faddeeva_functions.WOFZ_IMAG,
    "WOFZ_SLOPE_REAL": faddeeva_functions.WOFZ_SLOPE_REAL,
    "WOFZ_SLOPE_IMAG": faddeeva_functions.WOFZ_SLOPE_IMAG,
    "WOFZ_BEND_FAR_REAL": faddeeva_functions.WOFZ_BEND_FAR_REAL,
    "WOFZ_BEND_FAR_IMAG": faddeeva_functions.WOFZ_BEND_FAR_IMAG,
    "WOFZ_THIRD_FAR_REAL": faddeeva_functions.WOFZ_THIRD_FAR_REAL,
    "WOFZ_THIRD_FAR_IMAG": faddeeva_functions.WOFZ_THIRD_FAR_IMAG,
    "WOFZ_FOURTH_FAR_REAL": faddeeva_functions.WOFZ_FOURTH_FAR_REAL,
    "KVE": bessel_functions.KVE,
    "KVE_BY_ORDER": bessel_functions.KVE_BY_ORDER,
    "KVE_BY_ORDER_TWICE": bessel_functions.KVE_BY_ORDER_TWICE,
    "KVE_SLOPE": bessel_functions.KVE_SLOPE,
    "KVE_BEND": bessel_functions.KVE_BEND,
    "KVE_BY_ORDER_SLOPE": bessel_functions.KVE_BY_ORDER_SLOPE,
    "IVE": bessel_functions.IVE,
    "IVE_SLOPE": bessel_functions.IVE_SLOPE,
    "IVE_BEND": bessel_functions.IVE_BEND,
    "IVE_BY_ORDER": bessel_functions.IVE_BY_ORDER,
    "IVE_BY_ORDER_TWICE": bessel_functions.IVE_BY_ORDER_TWICE,
    "IVE_BY_ORDER_SLOPE": bessel_functions.IVE_BY_ORDER_SLOPE,
    "GAMMAINC": incomplete_functions.GAMMAINC,
    "GAMMAINCC": incomplete_functions.GAMMAINCC,
    "GAMMAINC_BY_SHAPE": incomplete_functions.GAMMAINC_BY_SHAPE,
    "GAMMAINC_BY_SHAPE_TWICE": incomplete_functions.GAMMAINC_BY_SHAPE_TWICE,
    "GAMMA_DENSITY": incomplete_functions.GAMMA_DENSITY,
    "DIGAMMA_RISE": gamma_difference_functions.DIGAMMA_RISE,
    "TRIGAMMA_RISE": gamma_difference_functions.TRIGAMMA_RISE,
    "BETALN": gamma_difference_functions.BETALN,
    "BETAINC": incomplete_beta_functions.BETAINC,
    "BETAINC_BY_A": incomplete_beta_functions.BETAINC_BY_A,
    "BETAINC_BY_B": incomplete_beta_functions.BETAINC_BY_B,
    "BETAINC_BY_AA": incomplete_beta_functions.BETAINC_BY_AA,
    "BETAINC_BY_AB": incomplete_beta_functions.BETAINC_BY_AB,
    "BETAINC_BY_BB": incomplete_beta_functions.BETAINC_BY_BB,
    "BETA_DENSITY": incomplete_beta_functions.BETA_DENSITY,
}
FAR_NAMES = (
    {"WOFZ_BEND_FAR_REAL", "WOFZ_BEND_FAR_IMAG"},
    {"WOFZ_THIRD_FAR_REAL", "WOFZ_THIRD_FAR_IMAG"},
    {"WOFZ_FOURTH_FAR_REAL"},
)
FADDEEVA_FAR = set[str]().union(*FAR_NAMES)
OF_FIRST_KIND = {"IVE", "IVE_SLOPE", "IVE_BEND", "IVE_BY_ORDER", "IVE_BY_ORDER_TWICE", "IVE_BY_ORDER_SLOPE"}
BY_SHAPES = {"BETAINC_BY_A", "BETAINC_BY_B", "BETAINC_BY_AA", "BETAINC_BY_AB", "BETAINC_BY_BB"}
OF_BETA = {"BETAINC", "BETA_DENSITY", *BY_SHAPES}
OF_GAMMA = {"GAMMAINC", "GAMMAINCC", "GAMMAINC_BY_SHAPE", "GAMMAINC_BY_SHAPE_TWICE", "GAMMA_DENSITY"}
# What the texts of several operations call, and which.
SHARED: Sequence[tuple[str, set[str]]] = (
    (error_functions.ERFCX_POSITIVE, {"ERFCX", "NDTR", "LOG_NDTR"}),
    (error_functions.NORMAL_TAIL, {"NDTR", "LOG_NDTR"}),
    (faddeeva_functions.PRODUCT, {"WOFZ_SLOPE_REAL", "WOFZ_SLOPE_IMAG", *FADDEEVA_FAR}),
    (
        faddeeva_functions.FADDEEVA,
        {"WOFZ_REAL", "WOFZ_IMAG", "WOFZ_SLOPE_REAL", "WOFZ_SLOPE_IMAG", *FADDEEVA_FAR},
    ),
    (faddeeva_functions.SLOPE, {"WOFZ_SLOPE_REAL", "WOFZ_SLOPE_IMAG"}),
    *zip(faddeeva_functions.FAR.values(), FAR_NAMES, strict=True),
    (
        bessel_functions.TRAPEZOID,
        {"KVE", "KVE_BY_ORDER", "KVE_BY_ORDER_TWICE", "KVE_SLOPE", "KVE_BEND", "KVE_BY_ORDER_SLOPE"},
    ),
    (gamma_difference_functions.STIRLING, {"BETALN", *OF_GAMMA}),
    (incomplete_functions.GAMMA_PARTS, OF_GAMMA),
    (bessel_functions.BESSEL_SERIES, OF_FIRST_KIND),
    (gamma_difference_functions.LGAMMA_RISE, {"BETALN"}),
    (incomplete_beta_functions.BETA_PARTS, OF_BETA),
    (incomplete_beta_functions.BETA_SHAPES, BY_SHAPES),
)
# Operations whose functions others call.
CALLED: Mapping[str, tuple[str, ...]] = {
    "GAMMAINC_BY_SHAPE": ("DIGAMMA",),
    "GAMMAINC_BY_SHAPE_TWICE": ("DIGAMMA", "TRIGAMMA"),
    "TRIGAMMA_RISE": ("TRIGAMMA",),
    **dict.fromkeys(OF_FIRST_KIND, ("DIGAMMA", "TRIGAMMA")),
    **dict.fromkeys(OF_BETA, ("BETALN",)),
    **dict.fromkeys(BY_SHAPES, ("DIGAMMA_RISE", "TRIGAMMA_RISE", "TRIGAMMA", "BETALN")),
}
