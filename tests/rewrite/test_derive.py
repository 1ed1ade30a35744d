"""Derivatives against numeric ones with many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from derivatives import hessian
from judge import walk
from morefit.errors import ModelError
from morefit.expr import (
    COMPARISONS,
    OPERATIONS,
    Op,
    apply,
    column,
    evaluate,
    integral_of,
    multiply_all,
    scalar,
    toposort,
    where,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.rewrite.derive import NO_SLOPE, gradient, partials_of
from mp_evaluate import DIGITS, Undefined, mp_evaluate
from strategies import FUNCTIONS, SCALARS, expressions, points
from tolerances import NUMERIC_DERIVATIVE, TWICE_DIVIDED
from zoo_expressions import kstarmumu, mass_model

x, y, z = scalar("x"), scalar("y"), scalar("z")
KINKS = COMPARISONS | {Op.ABS, Op.MIN, Op.MAX, Op.SIGN}

# where to differentiate each operation; the same two numbers for any other
PLACES = {
    Op.ASIN: (0.3, -0.7),
    Op.ACOS: (0.3, -0.7),
    Op.LOG: (0.3, 2.5),
    Op.LOG2: (0.3, 2.5),
    Op.LOG10: (0.3, 2.5),
    Op.SQRT: (0.3, 2.5),
    Op.LOG1P: (0.3, -0.6),
}
PLACES |= {Op.LGAMMA: (0.3, 4.5), Op.DIGAMMA: (0.3, 4.5), Op.TRIGAMMA: (0.3, 4.5)}
PLACES |= dict.fromkeys((Op.LOG1PREL, Op.LOG1PREL_SLOPE), (1e-9, -0.45, 0.55, 3.0))
PLACES |= {Op.NDTRI: (0.3, 0.9), Op.ACOSH: (1.3, 4.5), Op.ATANH: (0.3, -0.7)}
PAIRS = {Op.POW: ((0.3, -1.2), (2.5, 0.7)), Op.ATAN2: ((0.3, -1.2), (-2.5, 0.7))}
PAIRS |= dict.fromkeys((Op.KVE, Op.KVE_BY_ORDER), ((0.3, 1.2), (2.5, 0.7)))
PAIRS |= dict.fromkeys((Op.KVE_SLOPE, Op.LOG_KVE_SLOPE), ((0.3, 1.2), (2.5, 0.7)))
PAIRS |= dict.fromkeys((Op.LOG_KVE, Op.KV_RATIO, Op.LOG_KVE_BY_ORDER), ((0.3, 1.2), (-2.5, 0.7)))
PLACES |= dict.fromkeys((Op.TAIL, Op.TAIL_SLOPE), (2.5, 30.0))
PLACES |= dict.fromkeys((Op.ERFCX, Op.ERFCX_SLOPE), (-1.2, 0.3, 3.0))
PLACES |= dict.fromkeys((Op.LOG_NDTR, Op.MILLS, Op.MILLS_REST), (1.2, -0.3, -4.0))
PAIRS |= dict.fromkeys(
    (Op.VOIGT, Op.VOIGT_SLOPE_REAL, Op.VOIGT_SLOPE_IMAG), ((0.3, 0.2, 0.7), (-2.0, 0.9, 0.1))
)
PAIRS |= {Op.VOIGT_BEND_REAL: PAIRS[Op.VOIGT]}
PAIRS |= dict.fromkeys((Op.GAMMAINC, Op.GAMMAINCC, Op.GAMMAINC_BY_SHAPE), ((0.3, 1.2), (2.5, 0.7)))
PAIRS |= dict.fromkeys((Op.GAMMA_DENSITY, Op.IVE, Op.IVE_SLOPE, Op.IVE_BY_ORDER), ((0.3, 1.2), (2.5, 0.7)))
PAIRS |= dict.fromkeys((Op.BETALN, Op.DIGAMMA_RISE, Op.TRIGAMMA_RISE), ((0.3, 1.2), (2.5, 0.7)))
PAIRS |= dict.fromkeys((Op.BETAINC, Op.BETA_DENSITY), ((0.3, 1.2, 0.7), (2.5, 0.7, 0.2)))
PAIRS |= dict.fromkeys((Op.BETAINC_BY_A, Op.BETAINC_BY_B), ((0.3, 1.2, 0.7), (2.5, 0.7, 0.2)))
PAIRS |= dict.fromkeys(
    (Op.SMEARED_DECAY, Op.DECAY_AT_END), ((0.3, 1.2, 0.7), (-0.4, 0.9, 0.2), (2.5, 0.7, 0.1))
)
PAIRS |= {Op.GAUSSIAN_AT_END: ((0.3, 0.7), (-0.4, 0.2))}
PAIRS |= dict.fromkeys(
    (Op.NORMAL_AREA, Op.NORMAL_INTEGRAL), ((-0.3, 1.2, 0.7), (2.5, 0.4, 0.6), (0.1, 2.5, 0.9))
)
PAIRS |= {Op.NORMAL_AREA: (*PAIRS[Op.NORMAL_AREA], (0.2, 1e-3, 0.5), (0.2, 0.0, 0.5))}
POWER_LAWS = (2.0, 0.7, 2.5), (0.1, 0.3, 1.2), (3.0, 0.01, 4.0), (5.0, 2.0, 0.6), (2.0, 1e-9, 3.0)
PAIRS |= dict.fromkeys((Op.POWER_AREA, Op.POWER_AREA_BY_GROWTH, Op.POWER_AREA_BY_N), POWER_LAWS)
NOT_BY_ALL = {op for op in OPERATIONS if op.partials and any(p is None for p in partials_of(op))}


def close(found, expected):
    return abs(found - expected) <= NUMERIC_DERIVATIVE * max(1, abs(expected))


def numeric(expr, values, *names):
    """Differentiate by each name in turn, numerically."""
    different = sorted(set(names))
    orders = tuple(names.count(name) for name in different)

    def function(*numbers):
        return mp_evaluate(expr, {**values, **dict(zip(different, numbers, strict=True))})

    at = tuple(mpmath.mpf(values[name]) for name in different)
    return mpmath.diff(function, at, orders) if len(at) > 1 else mpmath.diff(function, at[0], orders[0])


def cases():
    for op in (*(op for op in OPERATIONS if op.partials), Op.MIN, Op.MAX):
        # needs a table, is taken for a number, or has tests of its own
        if op in (Op.LOOKUP, Op.CELL, Op.FIXED) or op in NOT_BY_ALL:
            continue
        if op.arity == 1:
            for number in PLACES.get(op, (0.3, -1.2)):
                yield op, {"x": number}
        else:
            for pair in PAIRS.get(op, ((0.3, -1.2), (-0.4, 0.9))):
                yield op, dict(zip("xyz", pair, strict=False))


ENDS = {
    Op.TRIGAMMA,
    Op.KVE_BY_ORDER,
    Op.LOG_KVE_BY_ORDER,
    Op.LOG_KVE_SLOPE,
    Op.VOIGT_SLOPE_REAL,
    Op.VOIGT_SLOPE_IMAG,
    Op.VOIGT_BEND_REAL,
    Op.TAIL_SLOPE,
    Op.KVE_SLOPE,
    Op.GAMMAINC_BY_SHAPE,
    Op.TRIGAMMA_RISE,
    Op.IVE_SLOPE,
    Op.IVE_BY_ORDER,
    Op.BETAINC_BY_A,
    Op.BETAINC_BY_B,
    Op.LOG1PREL_SLOPE,
    Op.POWER_AREA_BY_GROWTH,
    Op.POWER_AREA_BY_N,
}  # what has a first derivative only
CASES = [pytest.param(op, v, id=f"{op.name.lower()} at {list(v.values())}") for op, v in cases()]


@pytest.mark.parametrize(("op", "values"), CASES)
def test_gradient_of_every_operation(op, values):
    leaves = [scalar(name) for name in values]
    expr = apply(op, *leaves)
    with mpmath.workdps(DIGITS):
        for leaf, slope in zip(leaves, gradient(expr, leaves), strict=True):
            assert close(mp_evaluate(slope, values), numeric(expr, values, leaf.name))


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op.name.startswith("POWER_AREA")])
def test_areas_below_power_laws_and_their_derivatives_have_their_digits(op):
    arguments = [scalar(name) for name in "xyz"]
    written = op.spelled(*arguments)
    for numbers in (*POWER_LAWS, (1.3, 0.06, 1.0 + 1e-9), (0.4, 0.1, 50.0)):
        values = dict(zip("xyz", numbers, strict=True))
        with mpmath.workdps(DIGITS):
            expected = float(mp_evaluate(op(*arguments), values))
        assert op.numpy(*numbers) == pytest.approx(expected, rel=TWICE_DIVIDED)
        assert evaluate(written, values) == pytest.approx(expected, rel=TWICE_DIVIDED)


@pytest.mark.parametrize("op", [Op.LOG1PREL, Op.LOG1PREL_SLOPE, Op.LOG1PREL_BEND])
def test_a_ratio_of_a_logarithm_has_its_digits_with_two_derivatives(op):
    written = op.spelled(scalar("z"))
    for z in (-0.999, -0.401, -0.399, -1e-3, -1e-300, 0.0, 1e-12, 0.3, 0.666, 0.667, 2.0, 1e6):
        with mpmath.workdps(DIGITS):
            expected = float(mp_evaluate(op(scalar("z")), {"z": z}))
        assert op.numpy(z) == pytest.approx(expected, rel=TWICE_DIVIDED)
        assert evaluate(written, {"z": z}) == pytest.approx(expected, rel=TWICE_DIVIDED)


@pytest.mark.parametrize(("op", "values"), [c for c in CASES if c.values[0] not in ENDS])
def test_hessian_of_every_operation(op, values):
    leaves = [scalar(name) for name in values]
    expr = apply(op, *leaves)
    with mpmath.workdps(DIGITS):
        for i, row in enumerate(hessian(expr, leaves)):
            for j, second in enumerate(row):
                expected = numeric(expr, values, leaves[i].name, leaves[j].name)
                assert close(mp_evaluate(second, values), expected)


def smooth(expr, values):
    """Say whether an expression is well away from kinks, poles and the edges of domains."""
    try:
        with mpmath.workdps(DIGITS):
            done = walk(expr, values)
    except (OverflowError, ZeroDivisionError):
        return False
    numbers = list(done.values())
    if not np.all(np.isfinite(numbers)) or max(map(abs, numbers)) > 1e4:
        return False
    for node in toposort(expr):
        sizes = [abs(done[a]) for a in node.args]
        if node.op in KINKS and len(sizes) == 2 and abs(done[node.args[0]] - done[node.args[1]]) < 0.01:
            return False
        if node.op in KINKS | {Op.POW, Op.SQRT, Op.LOG} and sizes[0] < 0.01:
            return False
        if node.op is Op.NDTRI and not 0.01 < sizes[0] < 0.99:
            return False
        if node.op is Op.ACOSH and sizes[0] < 1.01:
            return False
        if node.op in (Op.ASIN, Op.ACOS, Op.ATANH) and sizes[0] > 0.99:
            return False
        if node.op is Op.ATAN2 and min(sizes) < 0.01:
            return False
    return True


DERIVABLE = [op for op in FUNCTIONS if op not in (NO_SLOPE | {Op.TRIGAMMA})]
TWICE = [op for op in DERIVABLE if op is not Op.DIGAMMA]


@given(expressions(SCALARS, DERIVABLE, 6), points(("a", "b", "c")))
def test_gradient_of_random_expressions(expr, values):
    assume(smooth(expr, values))
    with mpmath.workdps(DIGITS):
        for leaf, slope in zip(SCALARS, gradient(expr, SCALARS), strict=True):
            try:
                expected = numeric(expr, values, leaf.name)
            except Undefined:
                assume(False)
            assert close(mp_evaluate(slope, values), expected)


@given(expressions(SCALARS[:2], TWICE, 4), points(("a", "b")))
def test_hessian_of_random_expressions(expr, values):
    assume(smooth(expr, values))
    a, b = SCALARS[:2]
    (aa,), (ba, bb) = hessian(expr, [a, b])
    with mpmath.workdps(DIGITS):
        for second, names in ((aa, "aa"), (ba, "ab"), (bb, "bb")):
            try:
                expected = numeric(expr, values, *names)
            except Undefined:
                assume(False)
            assert close(mp_evaluate(second, values), expected)


@pytest.mark.parametrize("model", [mass_model(), kstarmumu()], ids=["mass", "kstarmumu"])
def test_gradient_of_the_models_of_the_paper(model):
    with mpmath.workdps(DIGITS):
        for leaf, slope in zip(model.parameters, gradient(model.density, model.parameters), strict=True):
            assert close(mp_evaluate(slope, model.point), numeric(model.density, model.point, leaf.name))


def test_a_size_squared_has_its_second_derivative_at_zero():
    (row,) = hessian(abs(x) ** 2, [x])
    assert evaluate(row[0], {"x": 0.0}) == 2.0


def test_a_kink_takes_the_slope_of_its_right_side():
    assert evaluate(gradient(abs(x), [x])[0], {"x": 0.0}) == 1.0


def test_a_derivative_goes_through_an_integral():
    m = column("m")
    integral = integral_of(np.exp(-x * m) * x, Domain((Axis("m", (0.0, 1.0, 2.0)),)))
    (slope,) = gradient(integral, [x])
    with mpmath.workdps(DIGITS):
        assert close(mp_evaluate(slope, {"x": 0.8}), numeric(integral, {"x": 0.8}, "x"))


def test_an_integral_without_the_parameter_has_no_slope():
    integral = integral_of(column("m") * y, Domain((Axis("m", (0.0, 1.0)),)))
    assert evaluate(gradient(integral, [x])[0], {"y": 1.0}) == 0.0


def test_a_choice_is_differentiated_branch_by_branch():
    (slope,) = gradient(where(x < y, x**2, y), [x])
    assert slope is where(x < y, 2 * x, 0)


def test_the_branch_not_taken_does_no_harm():
    (slope,) = gradient(where(x > 0, np.log(x), 3 * x), [x])
    assert evaluate(slope, {"x": 0.0}) == 3.0


# what has no derivative, or no value, in the branch that is not taken
GUARDED = (
    lambda e: np.sqrt(np.maximum(e, 0)),
    lambda e: np.maximum(e, 0) ** 0.4,
    lambda e: np.maximum(e, 0) ** apply(Op.EXP, 0.3 * e),
    lambda e: np.arcsin(np.minimum(abs(e), 1)),
    lambda e: where(e > 0, np.sqrt(e), e),
    lambda e: where(e > 0, np.log(e) * e, 2 - e),
    lambda e: where(e < 0, 1 / e, e**2),
    lambda e: np.maximum(where(e < 0, e, -1 / e), -3),
    lambda e: abs(e) ** 1.5,
)


def guarded(inner):
    return st.one_of(
        st.builds(lambda how, e: how(e), st.sampled_from(GUARDED), inner),
        st.builds(lambda e, f: e + f, inner, inner),
        st.builds(lambda e, f: e - 2 * f, inner, inner),
        st.builds(lambda e, f: e * f, inner, inner),
        st.builds(np.sin, inner),
    )


def off_ties(expr, values):
    """Say whether no choice is undecided, and every number that is needed is one."""
    with mpmath.workdps(DIGITS):
        try:
            return all(
                len({mp_evaluate(a, values) for a in (*node.args, 0 * x)[:2]}) == 2
                for node in toposort(expr)
                if node.op in KINKS
            )
        except Undefined:
            return False


@settings(max_examples=200)
@given(st.recursive(st.sampled_from(SCALARS[:2]), guarded, max_leaves=6), points(("a", "b")))
def test_a_derivative_that_exists_is_found_beside_branches_that_have_none(expr, values):
    # 0 * inf used to make NaN of it
    assume(off_ties(expr, {**values, "x": 0.0}))
    with mpmath.workdps(DIGITS):
        for leaf, slope in zip(SCALARS[:2], gradient(expr, SCALARS[:2]), strict=True):
            expected = numeric(expr, values, leaf.name)
            found = float(evaluate(slope, values))
            assert abs(found - expected) <= 1e-9 * max(1, abs(expected))


def test_a_long_product_is_differentiated():
    factors = [scalar(f"p{k}") for k in range(50)]
    (slope,) = gradient(multiply_all(*factors), [factors[7]])
    values = {f.name: 1 + 0.01 * k for k, f in enumerate(factors)}
    expected = np.prod([values[f.name] for f in factors if f is not factors[7]])
    assert evaluate(slope, values) == pytest.approx(expected, rel=NUMERIC_DERIVATIVE)


def test_tetragamma_has_no_derivative():
    with pytest.raises(
        ModelError, match="operation 'tetragamma': has no derivative; take numeric derivatives"
    ):
        gradient(apply(Op.TETRAGAMMA, x), [x])


def test_what_does_not_depend_on_a_parameter_has_slope_zero():
    assert gradient(np.exp(y), [x])[0].number == 0.0


def test_the_hessian_is_a_lower_triangle():
    assert [len(row) for row in hessian(x * y * z, [x, y, z])] == [1, 2, 3]


@pytest.mark.parametrize(
    ("op", "place"),
    [(Op.KVE_BY_ORDER_TWICE, (0.3, 1.2)), (Op.GAMMAINC_BY_SHAPE_TWICE, (0.3, 1.2))],
    ids=str,
)
def test_a_function_without_a_derivative_by_its_order_has_one_by_its_argument(op, place):
    values = dict(zip("xy", place, strict=True))
    expr = apply(op, x, y)
    with mpmath.workdps(DIGITS):
        assert close(mp_evaluate(gradient(expr, [y])[0], values), numeric(expr, values, "y"))
    with pytest.raises(
        ModelError, match=f"operation '{op.name.lower()}': has no derivative by its argument number 1"
    ):
        gradient(expr, [x])
