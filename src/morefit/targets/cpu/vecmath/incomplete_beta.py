"""Write the incomplete beta function and its derivatives by both shapes, with jets through a continued fraction or a series.

All is computed on the side of x where little of the distribution lies: with its own shape p first, the other q second, and z
the distance from the end. A shape p below one has a series in which terms of order p stand alone, so that they keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from morefit.dataclass import dataclass
from morefit.targets.coefficients import INCOMPLETE_LIMIT, INVERSE_ROOT_TWO_PI, LARGE_SHAPE
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function
from morefit.targets.cpu.vecmath.incomplete import lgamma_rise, log_bend, stirling_tail
from morefit.targets.cpu.writer import Operand, Writer

Jet = Sequence[str]  # (value,), (value, slope), (value, slope, bend) or (value, slope, other slope, mixed)


def slopes_of(jet: Jet) -> range:
    """Return the numbers of the slopes."""
    return range(1, (1, 2, 2, 3)[len(jet) - 1])


def linear(w: Writer, value: str, slopes: Sequence[str], size: int) -> Jet:
    """Return a number that has these slopes, and no bend if it has one."""
    return (value, *slopes, *[w.number(0.0)] * (size - 1 - len(slopes)))


def shifted(w: Writer, jet: Jet, number: Operand) -> Jet:
    """Add a number."""
    return (w.add(jet[0], number), *jet[1:])


def scaled(w: Writer, jet: Jet, factor: Operand) -> Jet:
    """Multiply by a number."""
    return tuple(w.mul(part, factor) for part in jet)


def added(w: Writer, a: Jet, b: Jet) -> Jet:
    return tuple(w.add(*parts) for parts in zip(a, b, strict=True))


def product(w: Writer, a: Jet, b: Jet) -> Jet:
    slopes = [w.fma(a[0], b[i], w.mul(a[i], b[0])) for i in slopes_of(a)]
    parts = [w.mul(a[0], b[0]), *slopes]
    if len(a) > 2:
        i, j = slopes_of(a)[0], slopes_of(a)[-1]
        cross = w.fma(a[i], b[j], w.mul(a[j], b[i]))
        parts.append(w.fma(a[0], b[-1], w.fma(a[-1], b[0], cross)))
    return tuple(parts)


def inverse(w: Writer, a: Jet) -> tuple[Jet, Jet]:
    """Return one over a jet, and the derivatives of its logarithm."""
    one_over = w.div(1.0, a[0])
    ratios = [w.mul(a[i], one_over) for i in slopes_of(a)]
    parts = [one_over, *(w.neg(w.mul(ratio, one_over)) for ratio in ratios)]
    if len(a) > 2:
        square, bend = w.mul(ratios[0], ratios[-1]), w.mul(a[-1], one_over)
        parts.append(w.mul(one_over, w.sub(w.add(square, square), bend)))
        ratios.append(w.sub(bend, square))
    return tuple(parts), tuple(ratios)


NEGLIGIBLE = 2.0**-54


@dataclass(frozen=True)
class Side:
    """Where the lighter side is: the shapes there, the distance z from its end, logarithms of z and 1 - z."""

    turned: str  # it is the side above x
    short: str  # its shape is below one
    p: str
    q: str
    z: str
    log_z: str
    log_rest: str


def _side(w: Writer, a: str, b: str, x: str) -> Side:
    turned = w.compare("ogt", w.mul(x, w.add(w.add(a, b), 2.0)), w.add(a, 1.0))
    p, q = w.select(turned, b, a), w.select(turned, a, b)
    below, above = w.call("log", x), w.call("log1p", w.neg(x))
    return Side(
        turned,
        w.compare("olt", p, 1.0),
        p,
        q,
        w.select(turned, w.sub(1.0, x), x),
        w.select(turned, above, below),
        w.select(turned, below, above),
    )


def _fraction(w: Writer, side: Side, p: Jet, q: Jet) -> Sequence[str]:
    """Return the continued fraction of the incomplete beta function (Lentz), and derivatives of its logarithm."""
    size, one = len(p), w.number(1.0)
    z = w.select(side.short, 0.0, side.z)
    total = added(w, p, q)
    first, _ = inverse(w, shifted(w, p, 1.0))
    head = shifted(w, scaled(w, product(w, total, first), w.neg(z)), 1.0)
    d, ratios = inverse(w, head)
    start = [d[0], *(w.neg(r) for r in ratios), w.number(0.0), one, *[w.number(0.0)] * (size - 1), *d, *first]

    def go(*state: str) -> tuple[list[str], str]:
        h, logs, k = state[0], list(state[1:size]), w.add(state[size], 1.0)
        rest: Sequence[Jet] = [state[size + 1 + n * size :][:size] for n in range(3)]
        e, d, odd = rest  # e and d are inverses
        twice = w.add(k, k)
        even, _ = inverse(w, shifted(w, p, twice))
        next_odd, _ = inverse(w, shifted(w, shifted(w, p, twice), 1.0))
        down = scaled(w, product(w, shifted(w, q, w.neg(k)), product(w, odd, even)), w.mul(k, z))
        up = product(w, product(w, shifted(w, p, k), shifted(w, total, k)), product(w, even, next_odd))
        off = w.number(0.0)
        for factor in (down, scaled(w, up, w.neg(z))):
            d, below = inverse(w, shifted(w, product(w, factor, d), 1.0))
            upper = shifted(w, product(w, factor, e), 1.0)
            e, above = inverse(w, upper)
            change = w.mul(upper[0], d[0])
            h = w.mul(h, change)
            changes = [w.sub(*pair) for pair in zip(above, below, strict=True)]
            logs = [w.add(*pair) for pair in zip(logs, changes, strict=True)]
            # all of them: the fraction of a whole shape ends, that of its neighbours does not
            for part in (w.sub(change, one), *changes):
                off = w.add(off, w.absolute(part))
        return [h, *logs, k, *e, *d, *next_odd], w.compare("ogt", off, NEGLIGIBLE)

    return w.repeat(start, go, INCOMPLETE_LIMIT)[:size]


def _series(w: Writer, side: Side, p: Jet, q: Jet) -> Jet:
    """Return p times the sum of (1 - q)_n z^n / (n! (p + n)) over positive n, for p < 1."""
    size, zero = len(p), w.number(0.0)
    z = w.select(side.short, side.z, 0.0)

    def go(*state: str) -> tuple[list[str], str]:
        parts: Sequence[Jet] = [state[:size], state[size : 2 * size]]
        total, term = parts
        n = w.add(state[2 * size], 1.0)
        factor = scaled(w, shifted(w, q, w.neg(n)), w.div(w.neg(z), n))
        term = product(w, term, factor)
        part = product(w, term, inverse(w, shifted(w, p, n))[0])
        total = added(w, total, part)
        going = w.compare("ogt", w.absolute(part[0]), w.mul(w.absolute(total[0]), NEGLIGIBLE))
        for value, sum_of in zip(part[1:], total[1:], strict=True):
            more = w.compare("ogt", w.absolute(value), w.mul(w.absolute(sum_of), NEGLIGIBLE))
            going = w.either(going, more)
        return [*total, *term, n], going

    start = [*[zero] * size, w.number(1.0), *[zero] * (size - 1), zero]
    return product(w, p, w.repeat(start, go, INCOMPLETE_LIMIT)[:size])


def _density(w: Writer, a: str, b: str, x: str, less: float = 0.0) -> str:
    """Return x^(a - less) (1 - x)^(b - less) / B(a, b); of large shapes about the mean, where nothing cancels."""
    total, rest = w.add(a, b), w.sub(1.0, x)
    powers = [w.sub(shape, less) for shape in (a, b)]
    logs = w.fma(powers[0], w.call("log", x), w.mul(powers[1], w.call("log1p", w.neg(x))))
    plain = w.call("exp", w.sub(logs, w.call("betaln", a, b)))
    product, lost = w.two_product(rest, a)
    lost = w.fma(w.sub(w.sub(1.0, rest), x), a, lost)
    off = w.sub(w.fma(x, b, w.neg(product)), lost)  # that far from the mean, times a + b
    exponent = w.number(0.0)
    for shape, place, distance in ((a, x, w.div(off, a)), (b, rest, w.div(w.neg(off), b))):
        bend = log_bend(w, distance, w.mul(place, w.div(total, shape)))
        exponent = w.sub(w.fma(shape, bend, exponent), stirling_tail(w, shape))
    exponent = w.add(exponent, stirling_tail(w, total))
    size = w.mul(w.intrinsic("sqrt", w.mul(a, w.div(b, total))), INVERSE_ROOT_TWO_PI)
    large = w.both(w.compare("oge", a, LARGE_SHAPE), w.compare("oge", b, LARGE_SHAPE))
    about = w.mul(size, w.call("exp", exponent))
    return w.select(large, w.div(about, w.mul(x, rest)) if less else about, plain)


def _inside(w: Writer, a: str, b: str, x: str) -> tuple[str, str, str, str]:
    """Return where x lies between its ends and both shapes are positive numbers, and harmless arguments elsewhere."""
    good = w.both(w.compare("ogt", x, 0.0), w.compare("olt", x, 1.0))
    for shape in (a, b):
        good = w.both(good, w.both(w.compare("ogt", shape, 0.0), w.compare("olt", shape, INFINITY)))
    return good, w.select(good, a, 1.0), w.select(good, b, 1.0), w.select(good, x, 0.5)


def _is_defined(w: Writer, a: str, b: str, x: str) -> str:
    """Return where x lies in [0, 1] and no shape is negative."""
    shapes = w.both(w.compare("oge", a, 0.0), w.compare("oge", b, 0.0))
    return w.both(shapes, w.both(w.compare("oge", x, 0.0), w.compare("ole", x, 1.0)))


def _log_of_short(w: Writer, side: Side, series: str) -> str:
    """Return the logarithm of the lighter side for p < 1."""
    rest = w.sub(lgamma_rise(w, side.q, side.p), w.call("lgamma", w.add(side.p, 1.0)))
    return w.add(w.fma(side.p, side.log_z, rest), w.call("log1p", series))


@vector_function(wide=True, out_of_line=True)
def betainc(w: Writer, a: str, b: str, x: str) -> str:
    """Return the regularised incomplete beta function, the distribution function of a beta distribution."""
    good, a_, b_, x_ = _inside(w, a, b, x)
    side = _side(w, a_, b_, x_)
    p, q = (side.p,), (side.q,)
    tail = w.mul(w.div(_density(w, a_, b_, x_), side.p), _fraction(w, side, p, q)[0])
    logarithm = _log_of_short(w, side, _series(w, side, p, q)[0])
    short = w.select(side.turned, w.neg(w.call("expm1", logarithm)), w.call("exp", logarithm))
    result = w.select(side.short, short, w.select(side.turned, w.sub(1.0, tail), tail))
    edge = w.choose("oeq", b, 0.0, 0.0, w.choose("oeq", a, 0.0, 1.0, x))
    edge = w.choose("olt", w.add(a, b), INFINITY, edge, NAN)
    return w.select(good, result, w.select(_is_defined(w, a, b, x), edge, NAN))


def _derivative(w: Writer, a: str, b: str, x: str, *, by: str) -> str:
    """Return a derivative of the incomplete beta function by its shapes: ``by`` is "a", "b", "aa", "ab" or "bb"."""
    good, a_, b_, x_ = _inside(w, a, b, x)
    side = _side(w, a_, b_, x_)
    one, zero = w.number(1.0), w.number(0.0)
    own, other = w.select(side.turned, zero, one), w.select(side.turned, one, zero)
    seeds = [(own, other) if name == "a" else (other, own) for name in sorted(set(by))]
    size = 1 + len(by) + (by == "ab")
    p = linear(w, side.p, [seed[0] for seed in seeds], size)
    q = linear(w, side.q, [seed[1] for seed in seeds], size)
    fraction = _fraction(w, side, p, q)
    series = _series(w, side, p, q)
    _, logs = inverse(w, shifted(w, series, 1.0))
    long = w.mul(w.div(_density(w, a_, b_, x_), side.p), fraction[0])
    tail = w.select(side.short, w.call("exp", _log_of_short(w, side, series[0])), long)
    logs = [w.select(side.short, *pair) for pair in zip(logs, fraction[1:], strict=True)]
    result = w.mul(tail, _relative(w, side, seeds, logs))
    result = w.select(side.turned, w.neg(result), result)
    edges = w.both(w.compare("ogt", a, 0.0), w.compare("ogt", b, 0.0))
    edges = w.both(edges, w.compare("olt", w.add(a, b), INFINITY))
    edges = w.both(edges, w.either(w.compare("oeq", x, 0.0), w.compare("oeq", x, 1.0)))
    return w.select(good, result, w.select(edges, zero, NAN))


def _relative(w: Writer, side: Side, seeds: Sequence[tuple[str, str]], logs: Sequence[str]) -> str:
    """Return a derivative of the lighter side over itself, from those of the logarithm of its last factor.

    The factor before is z^p (1 - z)^q / (p B(p, q)), without (1 - z)^q where p is below one. Elsewhere it is q times something
    regular: that q is differentiated apart, since its bend cancels the square of its slope.
    """
    one, p, q = w.number(1.0), side.p, side.q
    total = w.div(one, w.add(p, q))
    share = w.select(side.short, 0.0, w.div(one, q))
    up, q_up = w.add(p, one), w.select(side.short, q, w.add(q, one))
    last = w.select(side.short, 0.0, total)
    by_p = w.add(side.log_z, w.sub(w.call("digamma_rise", up, q), total))
    by_q = w.sub(w.call("digamma_rise", q_up, p), last)
    by_q = w.add(w.select(side.short, 0.0, side.log_rest), by_q)
    slopes = [
        w.fma(by_p, own, w.fma(by_q, other, log)) for (own, other), log in zip(seeds, logs, strict=False)
    ]
    shares = [w.mul(share, other) for _, other in seeds]
    if len(logs) == 1:
        return w.add(slopes[0], shares[0])
    cross = w.fma(shares[0], slopes[-1], w.mul(shares[-1], slopes[0]))
    bend = w.add(w.fma(slopes[0], slopes[-1], cross), logs[-1])
    if len(logs) == 3:  # one of the two seeds is p, the other is q
        return w.add(bend, w.call("trigamma", w.add(p, q)))
    own, other = seeds[0]
    p_bend = w.fma(total, total, w.call("trigamma_rise", up, q))
    q_bend = w.fma(last, last, w.call("trigamma_rise", q_up, p))
    return w.add(bend, w.fma(p_bend, own, w.mul(q_bend, other)))


for _by in ("a", "b", "aa", "ab", "bb"):
    vector_function(name=f"betainc_by_{_by}", wide=True, out_of_line=True)(partial(_derivative, by=_by))


@vector_function(wide=True, out_of_line=True)
def beta_density(w: Writer, a: str, b: str, x: str) -> str:
    """Return x^(a - 1) (1 - x)^(b - 1) / B(a, b), the density of a beta distribution."""
    good, a_, b_, x_ = _inside(w, a, b, x)
    inside = _density(w, a_, b_, x_, 1.0)
    power = w.sub(w.choose("oeq", x, 0.0, a, b), 1.0)
    height = w.choose("oeq", x, 0.0, b, a)  # of a shape of one
    edge = w.choose("oeq", power, 0.0, height, w.choose("ogt", power, 0.0, 0.0, INFINITY))
    positive = w.both(w.compare("ogt", a, 0.0), w.compare("ogt", b, 0.0))
    positive = w.both(positive, w.compare("olt", w.add(a, b), INFINITY))
    return w.select(good, inside, w.select(w.both(positive, _is_defined(w, a, b, x)), edge, NAN))
