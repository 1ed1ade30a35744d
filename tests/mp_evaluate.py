"""Evaluate expressions with many digits: a judge that does not share numpy's roundings."""

import mpmath

import mp_functions as precise
from morefit.expr import Op, domain_of, leaves, toposort
from morefit.expr.evaluate import adapted_to

DIGITS = 40


class Undefined(ValueError):
    """The expression has no real value here."""


def real(function):
    def checked(*args):
        try:
            value = function(*args)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise Undefined(str(error)) from error
        if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
            raise Undefined(str(value))
        return value

    return checked


def power_area(width, growth, n, derivatives=(0, 0, 0)):
    """Return the integral of (1 + growth u)^-n from 0 to a width, or its derivatives."""
    if any(derivatives):
        with mpmath.extradps(80):
            return mpmath.diff(power_area, (width, growth, n), derivatives)
    if n == 1:
        return mpmath.log1p(growth * width) / growth
    return ((1 + growth * width) ** (1 - n) - 1) / (growth * (1 - n))


def log1prel(z):
    return mpmath.log1p(z) / z if z else mpmath.mpf(1)


def mills(x):
    """Return the density of the normal distribution over its integral up to x."""
    with mpmath.extradps(30):
        return mpmath.sqrt(2 / mpmath.pi) / precise.erfcx(-x / mpmath.sqrt(2))


def voigt(x, y, s, order, side):
    """Return a part of a derivative of w((x + i y) / s) / s by x."""
    z = precise.wofz_derivative(x / s, y / s, order) if order else precise.wofz(x / s, y / s)
    return getattr(z, side) / s ** (order + 1)


def parts(prefix, orders, suffix=""):
    """Return operations that are parts of complex numbers, with the order of a derivative and the side."""
    names = [
        (f"{prefix}_{orders[n]}{suffix}_{side}", n, side.lower()) for n in orders for side in ("REAL", "IMAG")
    ]
    return [(getattr(Op, name), n, side) for name, n, side in names if hasattr(Op, name)]


WOFZ = parts("WOFZ", {1: "SLOPE", 2: "BEND", 3: "THIRD"}) + parts(
    "WOFZ", {2: "BEND", 3: "THIRD", 4: "FOURTH"}, "_FAR"
)
VOIGT = [(Op.VOIGT, 0, "real"), *parts("VOIGT", {1: "SLOPE", 2: "BEND", 3: "THIRD", 4: "FOURTH"})]
MEANING = {
    Op.ADD: lambda *x: mpmath.fsum(x),
    Op.MUL: lambda *x: mpmath.fprod(x),
    Op.POW: lambda x, y: mpmath.power(x, int(y) if y == int(y) else y),
    Op.RATIO: lambda x, y: x / y,
    Op.EXP: mpmath.exp,
    Op.EXP2: lambda x: mpmath.power(2, x),
    Op.EXPM1: mpmath.expm1,
    Op.LOG: mpmath.log,
    Op.LOG1P: mpmath.log1p,
    Op.LOG2: lambda x: mpmath.log(x, 2),
    Op.LOG10: mpmath.log10,
    Op.SQRT: mpmath.sqrt,
    Op.SIN: mpmath.sin,
    Op.COS: mpmath.cos,
    Op.TAN: mpmath.tan,
    Op.ASIN: mpmath.asin,
    Op.ACOS: mpmath.acos,
    Op.ATAN: mpmath.atan,
    Op.ATAN2: mpmath.atan2,
    Op.SINH: mpmath.sinh,
    Op.COSH: mpmath.cosh,
    Op.TANH: mpmath.tanh,
    Op.ERF: mpmath.erf,
    Op.ASINH: mpmath.asinh,
    Op.ACOSH: mpmath.acosh,
    Op.ATANH: mpmath.atanh,
    Op.SIGN: mpmath.sign,
    Op.ERFC: mpmath.erfc,
    Op.ERFCX: precise.erfcx,
    Op.GAUSSIAN_AT_END: lambda t, sigma: mpmath.exp(-((t / sigma) ** 2) / 2),
    **dict.fromkeys(
        (Op.SMEARED_DECAY, Op.DECAY_AT_END),
        lambda t, rate, sigma: (
            mpmath.exp(rate * (rate * sigma**2 / 2 - t))
            * mpmath.erfc((sigma * rate - t / sigma) / mpmath.sqrt(2))
            / 2
        ),
    ),
    **dict.fromkeys(
        (Op.NORMAL_AREA, Op.NORMAL_INTEGRAL),
        lambda middle, width, sigma: (
            sigma
            * mpmath.sqrt(mpmath.pi / 2)
            * sum(
                side * mpmath.erf((middle + side * width / 2) / (sigma * mpmath.sqrt(2))) for side in (-1, 1)
            )
        ),
    ),
    Op.LOG1PREL: log1prel,
    Op.LOG1PREL_SLOPE: lambda z: mpmath.diff(log1prel, z, 1),
    Op.LOG1PREL_BEND: lambda z: mpmath.diff(log1prel, z, 2),
    Op.POWER_AREA: power_area,
    Op.POWER_AREA_BY_GROWTH: lambda *args: power_area(*args, (0, 1, 0)),
    Op.POWER_AREA_BY_N: lambda *args: power_area(*args, (0, 0, 1)),
    Op.POWER_AREA_BY_GROWTH_TWICE: lambda *args: power_area(*args, (0, 2, 0)),
    Op.POWER_AREA_BY_GROWTH_AND_N: lambda *args: power_area(*args, (0, 1, 1)),
    Op.POWER_AREA_BY_N_TWICE: lambda *args: power_area(*args, (0, 0, 2)),
    Op.NDTR: precise.ndtr,
    Op.LOG_NDTR: precise.log_ndtr,
    Op.WOFZ_REAL: lambda x, y: precise.wofz(x, y).real,
    Op.WOFZ_IMAG: lambda x, y: precise.wofz(x, y).imag,
    Op.ERFCX_SLOPE: lambda x: -precise.wofz_derivative(mpmath.mpf(0), x, 1).imag,
    Op.ERFCX_BEND: lambda x: -precise.wofz_derivative(mpmath.mpf(0), x, 2).real,
    Op.WOFZ_TAIL_REAL: lambda x, y: mpmath.sqrt(mpmath.pi) * (mpmath.mpc(x, y) * precise.wofz(x, y)).imag,
    Op.WOFZ_TAIL_IMAG: lambda x, y: -mpmath.sqrt(mpmath.pi) * (mpmath.mpc(x, y) * precise.wofz(x, y)).real,
    Op.TAIL: lambda x: mpmath.sqrt(mpmath.pi) * x * precise.erfcx(x),
    Op.TAIL_SLOPE: lambda x: precise.tail(x, 1),
    Op.TAIL_BEND: lambda x: precise.tail(x, 2),
    Op.MILLS: mills,
    Op.MILLS_REST: lambda x: mills(x) + x,
    **{
        op: lambda x, y, order=order, side=side: getattr(precise.wofz_derivative(x, y, order), side)
        for op, order, side in WOFZ
    },
    **{op: lambda *args, order=order, side=side: voigt(*args, order, side) for op, order, side in VOIGT},
    Op.KVE: precise.kve,
    Op.KVE_SLOPE: lambda nu, x: precise.kve(nu, x, 0, 1),
    Op.KVE_BEND: lambda nu, x: precise.kve(nu, x, 0, 2),
    Op.KVE_BY_ORDER_SLOPE: lambda nu, x: precise.kve(nu, x, 1, 1),
    Op.LOG_KVE_SLOPE: lambda nu, x: precise.kve(nu, x, 0, 1) / precise.kve(nu, x),
    Op.KVE_BY_ORDER: lambda nu, x: precise.kve(nu, x, 1),
    Op.KVE_BY_ORDER_TWICE: lambda nu, x: precise.kve(nu, x, 2),
    Op.LOG_KVE: lambda nu, x: mpmath.log(precise.kve(nu, x)),
    Op.KV_RATIO: lambda nu, x: precise.kve(nu + 1, x) / precise.kve(nu, x),
    Op.LOG_KVE_BY_ORDER: lambda nu, x: precise.kve(nu, x, 1) / precise.kve(nu, x),
    Op.LOG_KVE_BY_ORDER_TWICE: lambda nu, x: (
        precise.kve(nu, x, 2) / precise.kve(nu, x) - (precise.kve(nu, x, 1) / precise.kve(nu, x)) ** 2
    ),
    Op.IVE: precise.ive,
    Op.IVE_SLOPE: lambda nu, x: precise.ive(nu, x, 1),
    Op.IVE_BEND: lambda nu, x: precise.ive(nu, x, 2),
    Op.GAMMAINC: precise.gammainc,
    Op.GAMMAINCC: precise.gammaincc,
    Op.GAMMAINC_BY_SHAPE: lambda a, x: precise.gammainc(a, x, 1),
    Op.GAMMAINC_BY_SHAPE_TWICE: lambda a, x: precise.gammainc(a, x, 2),
    Op.ATANH_SLOPE: lambda x: 1 / (1 - x * x),
    Op.IVE_BY_ORDER: lambda nu, x: precise.ive(nu, x, 0, 1),
    Op.IVE_BY_ORDER_TWICE: lambda nu, x: precise.ive(nu, x, 0, 2),
    Op.IVE_BY_ORDER_SLOPE: lambda nu, x: precise.ive(nu, x, 1, 1),
    Op.GAMMA_DENSITY: precise.gamma_density,
    Op.BETALN: precise.betaln,
    Op.DIGAMMA_RISE: lambda x, h: precise.rise(0, x, h),
    Op.TRIGAMMA_RISE: lambda x, h: precise.rise(1, x, h),
    Op.BETA_DENSITY: precise.beta_density,
    Op.BETAINC: precise.betainc,
    Op.BETAINC_BY_A: lambda a, b, x: precise.betainc(a, b, x, "a"),
    Op.BETAINC_BY_B: lambda a, b, x: precise.betainc(a, b, x, "b"),
    Op.BETAINC_BY_AA: lambda a, b, x: precise.betainc(a, b, x, "aa"),
    Op.BETAINC_BY_AB: lambda a, b, x: precise.betainc(a, b, x, "ab"),
    Op.BETAINC_BY_BB: lambda a, b, x: precise.betainc(a, b, x, "bb"),
    Op.NDTRI: lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1),
    Op.LGAMMA: lambda x: mpmath.log(abs(mpmath.gamma(x))),
    Op.DIGAMMA: lambda x: mpmath.psi(0, x),
    Op.TRIGAMMA: lambda x: mpmath.psi(1, x),
    Op.TETRAGAMMA: lambda x: mpmath.psi(2, x),
    Op.ABS: abs,
    Op.FLOOR: mpmath.floor,
    Op.MIN: min,
    Op.MAX: max,
    Op.LESS: lambda x, y: mpmath.mpf(x < y),
    Op.LESS_EQUAL: lambda x, y: mpmath.mpf(x <= y),
    Op.EQUAL: lambda x, y: mpmath.mpf(x == y),
    Op.NOT_EQUAL: lambda x, y: mpmath.mpf(x != y),
    Op.WHERE: lambda c, x, y: x if c != 0 else y,
    Op.NAMED: lambda x: x,
    Op.FIXED: lambda x: x,
}


def mp_evaluate(root, values):
    """Compute an expression in the working precision of mpmath; raise Undefined where it has no real value."""
    done = {}
    for node in toposort(root, enter_integrals=False):
        if node.op is Op.CONST:
            done[node] = mpmath.mpf(node.number)
        elif node.op is Op.INTEGRAL:
            known = tuple((leaf.name, float(values[leaf.name])) for leaf in leaves(Op.SCALAR, node))
            nodes = adapted_to(node.args[1:], domain_of(node), known).boxes.nodes()
            points = ({n: x[k] for n, x in nodes.columns.items()} for k in range(len(nodes.weights)))
            body = [mp_evaluate(node.args[0], {**values, **point}) for point in points]
            done[node] = mpmath.fdot(zip(map(mpmath.mpf, nodes.weights), body, strict=True))
        elif node.args:
            args = [done[a] for a in node.args]
            if any(a is None for a in args):
                chosen = node.op is Op.WHERE and args[0] is not None
                done[node] = MEANING[Op.WHERE](*args) if chosen else None
                continue
            try:
                done[node] = real(MEANING[node.op])(*args)
            except Undefined:
                done[node] = None  # bad only if the value needs it
        else:
            done[node] = mpmath.mpf(values[node.name])
    if done[root] is None:
        raise Undefined(repr(root))
    return done[root]
