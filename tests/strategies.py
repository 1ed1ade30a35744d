"""Random expressions over every operation, and points to evaluate them at."""

from hypothesis import strategies as st

from morefit.expr import (
    COMPARISONS,
    OPERATIONS,
    Op,
    add_all,
    apply,
    column,
    const,
    multiply_all,
    scalar,
    where,
)

SCALARS = [scalar(name) for name in ("a", "b", "c")]
COLUMNS = [column(name) for name in ("m", "n")]
NUMBERS = [const(v) for v in (-3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 0.1)]
POWERS = [const(v) for v in (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)]


# ways into the domain of an operation, from any real number
ANY = (lambda x: x,)
SMALL = (lambda x: x, lambda x: apply(Op.SIN, x), lambda x: apply(Op.ATAN, x))
POSITIVE = (
    lambda x: abs(x) + 0.5,
    lambda x: x**2 + 0.25,
    lambda x: apply(Op.EXP, apply(Op.SIN, x)),
    lambda x: x,
)
UNIT = (lambda x: apply(Op.TANH, x), lambda x: 0.9 * apply(Op.SIN, x))
PROBABILITY = (lambda x: 0.5 + 0.45 * apply(Op.SIN, x), lambda x: 1 / (1 + x**2))
DOMAIN = {
    Op.NDTRI: PROBABILITY,
    Op.EXP: SMALL,
    Op.EXP2: SMALL,
    Op.EXPM1: SMALL,
    Op.SINH: SMALL,
    Op.COSH: SMALL,
    Op.LOG: POSITIVE,
    Op.LOG1P: POSITIVE,
    Op.LOG2: POSITIVE,
    Op.LOG10: POSITIVE,
    Op.SQRT: POSITIVE,
    Op.LGAMMA: POSITIVE,
    Op.DIGAMMA: POSITIVE,
    Op.TRIGAMMA: POSITIVE,
    Op.TETRAGAMMA: POSITIVE,
    Op.ASIN: UNIT,
    Op.ATANH: UNIT,
    Op.ACOSH: (lambda x: 1.5 + abs(x), lambda x: apply(Op.COSH, apply(Op.SIN, x))),
    Op.ERFCX: (lambda x: x, lambda x: abs(x) + 0.5),
    Op.ACOS: UNIT,
}
SPECIAL = {
    Op.ADD,
    Op.MUL,
    Op.POW,
    Op.WHERE,
    Op.INTEGRAL,
    Op.NODE_SUM,
    Op.LOOKUP,
    Op.NAMED,
    Op.CELL,
} | COMPARISONS
SPECIAL |= {
    op
    for op in OPERATIONS
    if op.spelled
    or op.name.startswith(("KVE", "IVE", "GAMMA", "BETA", "DIGAMMA_", "TRIGAMMA_", "TAIL", "WOFZ_SLOPE"))
    or "_FAR_" in op.name
}  # slow in mpmath
PAIRS = (Op.ATAN2, Op.MIN, Op.MAX, Op.WOFZ_REAL, Op.WOFZ_IMAG)
FUNCTIONS = [op for op in OPERATIONS if op not in SPECIAL and op not in PAIRS]


def some_of(inner, functions):
    """One more operation on top of ``inner``."""
    numbers = st.sampled_from(NUMBERS)
    comparison = st.builds(apply, st.sampled_from(sorted(COMPARISONS, key=lambda op: op.rank)), inner, inner)
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda args: add_all(*args)),
        st.lists(inner, min_size=2, max_size=4).map(lambda args: multiply_all(*args)),
        st.builds(lambda k, x: k * x, numbers, inner),
        st.builds(lambda x, y: x - y, inner, inner),
        st.builds(lambda x, y: x / y, inner, inner),
        st.builds(lambda x, p: x**p, inner, st.sampled_from(POWERS)),
        st.builds(lambda safe, x, y: safe(x) ** apply(Op.SIN, y), st.sampled_from(POSITIVE), inner, inner),
        st.builds(apply, st.sampled_from(PAIRS), inner, inner),
        st.sampled_from(functions).flatmap(
            lambda op: st.builds(
                lambda safe, x: apply(op, safe(x)), st.sampled_from(DOMAIN.get(op, ANY)), inner
            )
        ),
        st.sampled_from(functions).flatmap(
            lambda op: st.builds(
                lambda safe, x: apply(op, safe(x)), st.sampled_from(DOMAIN.get(op, ANY)), inner
            )
        ),
        st.builds(where, comparison, inner, inner),
        comparison,
    )


def expressions(leaves=(*SCALARS, *COLUMNS), functions=FUNCTIONS, size=10):
    """Random expressions of some leaves; numbers among them."""
    leaf = st.one_of(st.sampled_from(leaves), st.sampled_from(leaves), st.sampled_from(NUMBERS))
    return st.recursive(leaf, lambda inner: some_of(inner, functions), max_leaves=size)


def points(names=("a", "b", "c", "m", "n")):
    """Values for names: sixteenths, so that ties, zeros and whole numbers come up."""
    number = st.integers(-48, 48).map(lambda k: k / 16)
    return st.fixed_dictionaries(dict.fromkeys(names, number))
