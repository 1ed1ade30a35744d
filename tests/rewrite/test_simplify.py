"""Simplifying keeps the value, never raises the price, and knows where an identity ends."""

import numpy as np
import pytest
from hypothesis import assume, example, given

from judge import judge, walk
from morefit.expr import Op, add_all, apply, const, multiply_all, price, scalar, toposort, where
from morefit.rewrite.simplify import normalise, simplify, simplify_all
from strategies import expressions, points
from tolerances import FEW_ROUNDINGS

x, y, z = scalar("x"), scalar("y"), scalar("z")


def assert_same_value(before, after, values):
    judged = judge(before, values)
    assume(judged is not None)
    value, tolerance = judged
    assert walk(after, values)[after] == pytest.approx(value, rel=0, abs=tolerance)


@given(expressions(), points())
def test_simplify_keeps_the_value(expr, values):
    assert_same_value(expr, simplify(expr), values)


@given(expressions(), points())
def test_normalise_keeps_the_value(expr, values):
    assert_same_value(expr, normalise(expr)[0], values)


@given(expressions(size=20), points())
def test_simplify_keeps_the_value_of_larger_expressions(expr, values):
    assert_same_value(expr, simplify(expr), values)


@given(expressions(), points())
def test_simplifying_twice_keeps_the_value(expr, values):
    once = simplify(expr)
    assert_same_value(once, simplify(once), values)


@given(expressions())
def test_simplify_never_grows_the_price(expr):
    assert price(simplify(expr)) <= price(expr)


@given(expressions(), expressions())
def test_simplifying_together_never_grows_the_price(first, second):
    assert price(*simplify_all((first, second))) <= price(first, second)


@given(expressions())
@example(np.log(const(0)) + x)
@example(const(0) ** -1 * x)
@example(const(1e200) * (const(1e200) * x))
def test_no_infinite_number_ever_appears(expr):
    assert all(np.isfinite(node.number) for node in toposort(simplify(expr)) if node.op is Op.CONST)


STAYS = [
    np.arcsin(np.sin(x)),
    np.sqrt(x) ** 2,
    np.exp(np.log(x)),
    np.log(x**2),
    np.sqrt(x * y**2),
    np.log(x * y),
]


@pytest.mark.parametrize("expr", STAYS, ids=repr)
def test_what_holds_only_in_part_stays(expr):
    assert simplify(expr) is expr


@pytest.mark.parametrize(
    "expr", [np.log(const(0)), const(0) ** -1, np.sqrt(const(-1)), np.log(const(-1))], ids=repr
)
def test_what_has_no_value_stays(expr):
    assert simplify(expr) is expr


BECOMES = [
    (np.log(np.exp(x)), x),
    (np.log(np.exp(x) * y), x + np.log(y)),
    (np.log(2 * y), const(np.log(2)) + np.log(y)),
    (where(x < y, z, z), z),
    (where(const(1), x, y), x),
    (np.sqrt(x**2), abs(x)),
    (x + x + x, 3 * x),
    (x / x, const(1)),
    (x - x, const(0)),
    (0 - (-x), x),
    (np.exp(x) * np.exp(-x), const(1)),
    (np.sin(-x) + np.sin(x), const(0)),
    (abs(x**2), x**2),
    (x * x * x, x**3),
    ((x * y) ** 2 / y**2, x**2),
    (x + 0, x),
    (x * 1, x),
    (x * 0, const(0)),
]


@pytest.mark.parametrize(("before", "after"), BECOMES, ids=lambda e: repr(e))
def test_what_always_holds_is_used(before, after):
    assert simplify(before) is after


def test_a_choice_with_different_branches_stays():
    assert simplify(where(x < y, z, x)) is where(x < y, z, x)


def test_an_unlike_pair_is_not_merged():
    assert simplify(np.sqrt(x) * np.sqrt(x)) is not x


@pytest.mark.parametrize(
    ("expr", "values"),
    [
        ((1e200 * x) ** 2, {"x": 1e-150}),
        (apply(Op.MUL, 1e-200, x * 1e-200), {"x": 1e300}),
        (multiply_all(x, x, x) + multiply_all(x, x, x, y), {"x": 3.0, "y": 2.0}),
        (apply(Op.SQRT, x * y**2), {"x": -1.0, "y": 0.0}),
        ((x * abs(y)) ** 1.5, {"x": -1.0, "y": 0.0}),
    ],
    ids=repr,
)
def test_issue_values_that_used_to_change(expr, values):
    # these used to overflow, vanish, lose a factor, or become NaN
    with np.errstate(all="ignore"):
        assert walk(simplify(expr), values)[simplify(expr)] == pytest.approx(
            walk(expr, values)[expr], rel=FEW_ROUNDINGS
        )


def test_the_order_of_writing_does_not_matter():
    terms = [x * y, np.exp(x), y**2, const(3)]
    assert simplify(add_all(*terms)) is simplify(add_all(*reversed(terms)))


def test_no_warning_escapes_when_numbers_fold():
    simplify(np.log(const(0)) + const(1e300) ** 2)
