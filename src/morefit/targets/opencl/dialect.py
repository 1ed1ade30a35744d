"""Kernel lines as C: one row an operation, names that C accepts, and the functions that C lacks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from morefit.expr import Op
from morefit.kernel import Arith, Atom, Body, Precision
from morefit.targets import coefficients


@dataclass(frozen=True)
class Dialect:
    """How one language of the C family spells what C does not have."""

    name: str
    prologue: str  # before everything else
    kernel: str  # begins a kernel of work-groups of a size known now
    free_kernel: str  # begins a kernel of work-groups of any size
    memory: str  # says that a pointer is into the memory of the device ...
    shared: str  # ... or into that of a work-group
    item: str  # the number of a work item in its group
    group: str
    place: str  # the number of a work item among all
    wait: str  # until all of the group are here and see each other's shared memory ...
    wait_memory: str  # ... or that of the device, too
    bits: str  # the bits of a double as an integer
    from_bits: str
    word: str  # the type of an unsigned integer of 64 bits
    high_product: str  # the upper half of a product of 32-bit integers
    count_up: str  # adds to an integer that others add to as well; its value is what was there


OPENCL = Dialect(
    name="OpenCL C",
    prologue="#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    kernel="__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void",
    free_kernel="__kernel void",
    memory="__global ",
    shared="__local ",
    item="get_local_id(0)",
    group="get_group_id(0)",
    place="get_global_id(0)",
    wait="barrier(CLK_LOCAL_MEM_FENCE);",
    wait_memory="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    bits="as_ulong({0})",
    from_bits="as_double({0})",
    word="ulong",
    high_product="mul_hi({0}, {1})",
    count_up="atomic_add({0}, {1})",
)


def function(name: str, count: int = 1) -> str:
    return f"{name}({', '.join(f'{{{k}}}' for k in range(count))})"


TEXT: dict[Op | Arith, str] = {
    Op.ADD: "{0} + {1}",
    Op.MUL: "{0} * {1}",
    Arith.SUB: "{0} - {1}",
    Arith.DIV: "{0} / {1}",
    Arith.NEG: "-{0}",
    Op.POW: function("pow", 2),
    Op.EXP: function("exp"),
    Op.EXP2: function("exp2"),
    Op.EXPM1: function("expm1"),
    Op.LOG: function("log"),
    Op.LOG1P: function("log1p"),
    Op.LOG2: function("exact_log2"),
    Op.LOG10: function("exact_log10"),
    Op.SQRT: function("sqrt"),
    Op.SIN: function("sin"),
    Op.COS: function("cos"),
    Op.TAN: function("tan"),
    Op.ASIN: function("asin"),
    Op.ACOS: function("acos"),
    Op.ATAN: function("atan"),
    Op.ATAN2: function("atan2", 2),
    Op.SINH: function("sinh"),
    Op.COSH: function("cosh"),
    Op.TANH: function("tanh"),
    Op.ERF: function("erf"),
    Op.ERFC: function("erfc"),
    Op.NDTRI: function("ndtri"),
    Op.LGAMMA: function("lgamma"),
    Op.DIGAMMA: function("digamma"),
    Op.TRIGAMMA: function("trigamma"),
    Op.TETRAGAMMA: function("tetragamma"),
    Op.ABS: function("fabs"),
    Op.FLOOR: function("floor"),
    # a NaN wins, as in numpy
    Op.MIN: "({0} < {1} || isnan({0})) ? {0} : {1}",
    Op.MAX: "({0} > {1} || isnan({0})) ? {0} : {1}",
    Op.LESS: "({0} < {1}) ? 1.0 : 0.0",
    Op.LESS_EQUAL: "({0} <= {1}) ? 1.0 : 0.0",
    Op.EQUAL: "({0} == {1}) ? 1.0 : 0.0",
    Op.NOT_EQUAL: "({0} != {1}) ? 1.0 : 0.0",
    Op.WHERE: "({0} != 0) ? {1} : {2}",
    Op.LOOKUP: "{0}[(int)({1})]",
}


def number_text(number: float, precision: Precision = Precision.DOUBLE) -> str:
    """Write a number with all its digits; a negative one in brackets."""
    if precision is Precision.SINGLE:
        with np.errstate(over="ignore"):
            short = np.float32(number)
        text = f"{short!s}f" if np.isfinite(short) else special(float(short), "float")
    else:
        text = repr(number) if math.isfinite(number) else special(number, "double")
    return f"({text})" if text.startswith("-") else text


def special(number: float, kind: str) -> str:
    if math.isnan(number):
        return f"(({kind})NAN)"
    return f"(({kind}){'-' if number < 0 else ''}INFINITY)"


@dataclass
class Names:
    """Gives each name of a kernel an identifier of its own; the role before it keeps it apart from C's words."""

    precision: Precision = Precision.DOUBLE
    known: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, role: str, shown: str | None = None) -> str:
        """Make an identifier, such as ``c_weight_of_the_event`` for a column; ``shown`` stands for a longer name."""
        plain = f"{role}_{re.sub(r'[^0-9A-Za-z]+', '_', name if shown is None else shown).strip('_')}"
        taken = set(self.known.values())
        while plain in taken:
            plain += "_"
        self.known[name] = plain
        return plain

    def target(self, name: str) -> str:
        """Take the name of a line as it is: a letter or two and a number."""
        self.known[name] = name if name not in self.known.values() else f"{name}_"
        return self.known[name]

    def atom(self, value: Atom) -> str:
        return self.known[value] if isinstance(value, str) else number_text(value, self.precision)

    def copy(self) -> Names:
        return Names(self.precision, dict(self.known))


def body_lines(body: Body, names: Names, kind: str) -> list[str]:
    """Write the lines of a body as constants of a type."""
    lines = []
    for line in body.lines:
        text = TEXT[line.op].format(*(names.atom(a) for a in line.args))
        lines.append(f"const {kind} {names.target(line.target)} = {text};")
    return lines


def used_names(body: Body) -> set[str]:
    """Return every name that a body reads."""
    atoms = [a for line in body.lines for a in line.args] + list(body.results)
    return {a for a in atoms if isinstance(a, str)}


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [("    " * depth + line) if line else line for line in lines]


def helpers(bodies: Sequence[Body]) -> list[str]:
    """Return the functions that some lines call and C does not have."""
    used = {line.op for body in bodies for line in body.lines}
    return [text for op, text in HELPERS.items() if op in used]


def horner(coefficients: Sequence[float], x: str) -> str:
    """Write a polynomial, lowest coefficient first."""
    *rest, text = map(repr, coefficients)
    for c in reversed(rest):
        text = f"fma({x}, {text}, {c})"
    return text


def logarithm(name: str, base: str, factor: tuple[float, float]) -> str:
    """Write a logarithm as targets/cpu/vecmath does, with pairs of doubles: OpenCL's own is not exact at powers."""
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
    const double high = l * {factor[0]!r};
    return high + fma(l, {factor[1]!r}, fma(l_low, {factor[0]!r}, fma(l, {factor[0]!r}, -high)));
}}
"""


# The formulas of targets/cpu/vecmath, most without its pairs of doubles: right to a few units in the last place.
HELPERS: Mapping[Op, str] = {
    Op.LOG2: logarithm("exact_log2", "two", coefficients.TO_BASE_TWO),
    Op.LOG10: logarithm("exact_log10", "ten", coefficients.TO_BASE_TEN),
    Op.NDTRI: f"""\
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
    Op.DIGAMMA: f"""\
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
    Op.TRIGAMMA: f"""\
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
    Op.TETRAGAMMA: f"""\
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
}
