"""The incomplete beta function and its derivatives, as OpenCL C: the formulas of targets/cpu/vecmath/incomplete_beta.py."""

from __future__ import annotations

from morefit.targets import coefficients as c

JETS = """\
double betaln(const double a, const double b);

// a number, its slopes in two directions, and the mixed derivative
double4 jet_product(const double4 a, const double4 b)
{
    const double mixed = fma(a.x, b.w, fma(a.w, b.x, fma(a.y, b.z, a.z * b.y)));
    return (double4)(a.x * b.x, fma(a.x, b.y, a.y * b.x), fma(a.x, b.z, a.z * b.x), mixed);
}

double4 jet_inverse(const double4 a)
{
    const double i = 1.0 / a.x, p = a.y * i, q = a.z * i;
    return (double4)(i, -p * i, -q * i, i * fma(2.0 * p, q, -a.w * i));
}

// derivatives of the logarithm
double4 jet_ratios(const double4 a)
{
    const double i = 1.0 / a.x, p = a.y * i, q = a.z * i;
    return (double4)(0.0, p, q, fma(a.w, i, -p * q));
}

double4 jet_of(const double number) { return (double4)(number, 0.0, 0.0, 0.0); }
double jet_size(const double4 a) { return fabs(a.x) + fabs(a.y) + fabs(a.z) + fabs(a.w); }
"""
BETA_PARTS = f"""\
{JETS}
// the continued fraction of the incomplete beta function, and derivatives of its logarithm
double4 beta_fraction(const double4 p, const double4 q, const double z)
{{
    const double4 total = p + q, first = jet_inverse(p + jet_of(1.0)), head = jet_of(1.0) - z * jet_product(total, first);
    double4 c = jet_of(1.0), d = jet_inverse(head), logs = -jet_ratios(head), odd = first;
    double h = d.x, off = 1.0;
    for (int n = 1; n < {c.INCOMPLETE_LIMIT} && off > 5.6e-17; n++) {{
        const double4 k = jet_of((double)n), even = jet_inverse(p + 2.0 * k), next = jet_inverse(p + 2.0 * k + jet_of(1.0));
        const double4 down = n * z * jet_product(q - k, jet_product(odd, even));
        const double4 up = -z * jet_product(jet_product(p + k, total + k), jet_product(even, next));
        off = 0.0;
        for (int i = 0; i < 2; i++) {{
            const double4 factor = i == 0 ? down : up, below = jet_product(factor, d) + jet_of(1.0);
            d = jet_inverse(below);
            c = jet_product(factor, jet_inverse(c)) + jet_of(1.0);
            const double4 changes = jet_ratios(c) - jet_ratios(below);
            const double change = c.x * d.x;
            h *= change;
            logs += changes;
            off += fabs(change - 1.0) + jet_size(changes);
        }}
        odd = next;
    }}
    return logs + jet_of(h);
}}

// p times the sum of (1 - q)_n z^n / (n! (p + n)) over positive n
double4 beta_series(const double4 p, const double4 q, const double z)
{{
    double4 total = jet_of(0.0), term = jet_of(1.0), part = jet_of(1.0);
    for (int n = 1; n < {c.INCOMPLETE_LIMIT} && any(isgreater(fabs(part), 5.6e-17 * fabs(total))); n++) {{
        term = jet_product(term, -z / n * (q - jet_of((double)n)));
        part = jet_product(term, jet_inverse(p + jet_of((double)n)));
        total += part;
    }}
    return jet_product(p, total);
}}

// x^(a - less) (1 - x)^(b - less) / B(a, b)
double beta_height(const double a, const double b, const double x, const double less)
{{
    if (!(fmin(a, b) >= {c.LARGE_SHAPE})) return exp(fma(a - less, log(x), (b - less) * log1p(-x)) - betaln(a, b));
    const double total = a + b, rest = 1.0 - x, product = rest * a;
    const double lost = fma(1.0 - rest - x, a, fma(rest, a, -product)), off = fma(x, b, -product) - lost;
    const double below = fma(a, log_bend(off / a, x * (total / a)), -stirling_tail(a));
    const double above = fma(b, log_bend(-off / b, rest * (total / b)), -stirling_tail(b));
    const double size = sqrt(a * (b / total)) * {c.INVERSE_ROOT_TWO_PI!r} * exp(below + above + stirling_tail(total));
    return less == 0.0 ? size : size / (x * rest);
}}

int beta_inside(const double a, const double b, const double x)
{{
    return a > 0.0 && b > 0.0 && a + b < INFINITY && x >= 0.0 && x <= 1.0;
}}

// the logarithm of the lighter side for p < 1
double log_of_short(const double p, const double q, const double log_z, const double series)
{{
    return fma(p, log_z, lgamma_rise(q, p) - lgamma(p + 1.0)) + log1p(series);
}}
"""
BETAINC = """\
// the regularised incomplete beta function
double betainc(const double a, const double b, const double x)
{
    if (!(a >= 0.0 && b >= 0.0 && a + b < INFINITY && x >= 0.0 && x <= 1.0)) return NAN;
    if (a == 0.0 || b == 0.0) return b == 0.0 ? 0.0 : 1.0;
    if (x == 0.0 || x == 1.0) return x;
    const int turned = x * (a + b + 2.0) > a + 1.0;
    const double p = turned ? b : a, q = turned ? a : b, z = turned ? 1.0 - x : x;
    if (p < 1.0) {
        const double size = log_of_short(p, q, turned ? log1p(-x) : log(x), beta_series(jet_of(p), jet_of(q), z).x);
        return turned ? -expm1(size) : exp(size);
    }
    const double tail = beta_height(a, b, x, 0.0) / p * beta_fraction(jet_of(p), jet_of(q), z).x;
    return turned ? 1.0 - tail : tail;
}
"""
BETA_SHAPES = """\
double digamma_rise(const double x, const double h);
double trigamma_rise(const double x, const double h);
double trigamma(const double x);

// a derivative of the incomplete beta function by its shapes: first and second say which, 0 for a and 1 for b
double beta_by_shapes(const double a, const double b, const double x, const int first, const int second, const int order)
{
    if (!beta_inside(a, b, x)) return NAN;
    if (x == 0.0 || x == 1.0) return 0.0;
    const int turned = x * (a + b + 2.0) > a + 1.0;
    const double p = turned ? b : a, q = turned ? a : b, z = turned ? 1.0 - x : x;
    const double log_z = turned ? log1p(-x) : log(x), log_rest = turned ? log(x) : log1p(-x);
    const double own = first == turned, other = second == turned;  // one where it is a derivative by p
    const double4 jet_p = (double4)(p, own, other, 0.0), jet_q = (double4)(q, 1.0 - own, 1.0 - other, 0.0);
    const int small = p < 1.0;
    const double total = 1.0 / (p + q), share = small ? 0.0 : 1.0 / q, q_up = small ? q : q + 1.0, last = small ? 0.0 : total;
    const double by_p = log_z + (digamma_rise(p + 1.0, q) - total);
    const double by_q = (small ? 0.0 : log_rest) + (digamma_rise(q_up, p) - last);
    double4 logs;
    double tail;
    if (small) {
        const double4 series = beta_series(jet_p, jet_q, z);
        logs = jet_ratios(series + jet_of(1.0));
        tail = exp(log_of_short(p, q, log_z, series.x));
    } else {
        logs = beta_fraction(jet_p, jet_q, z);
        tail = beta_height(a, b, x, 0.0) / p * logs.x;
    }
    const double sign = turned ? -tail : tail;
    const double one = fma(by_p, own, fma(by_q, 1.0 - own, logs.y)), two = fma(by_p, other, fma(by_q, 1.0 - other, logs.z));
    if (order == 1) return sign * fma(share, 1.0 - own, one);
    const double bend = fma(one, two, share * fma(1.0 - own, two, (1.0 - other) * one)) + logs.w;
    if (first != second) return sign * (bend + trigamma(p + q));
    if (own == 1.0) return sign * (bend + fma(total, total, trigamma_rise(p + 1.0, q)));
    return sign * (bend + fma(last, last, trigamma_rise(q_up, p)));
}
"""


def by_shapes(name: str, first: int, second: int, order: int) -> str:
    arguments = "const double a, const double b, const double x"
    return f"double betainc_by_{name}({arguments}) {{ return beta_by_shapes(a, b, x, {first}, {second}, {order}); }}\n"


BETA_DENSITY = """\
// x^(a - 1) (1 - x)^(b - 1) / B(a, b)
double beta_density(const double a, const double b, const double x)
{
    if (!beta_inside(a, b, x)) return NAN;
    if (x > 0.0 && x < 1.0) return beta_height(a, b, x, 1.0);
    const double shape = x == 0.0 ? a : b;
    return shape == 1.0 ? (x == 0.0 ? b : a) : shape > 1.0 ? 0.0 : INFINITY;
}
"""
SHARED = (BETA_PARTS, BETA_SHAPES)
FUNCTIONS = (
    BETAINC,
    by_shapes("a", 0, 0, 1),
    by_shapes("b", 1, 1, 1),
    by_shapes("aa", 0, 0, 2),
    by_shapes("ab", 0, 1, 2),
    by_shapes("bb", 1, 1, 2),
    BETA_DENSITY,
)
