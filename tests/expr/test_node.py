"""Expressions: one object each, never changing, built by operators and NumPy functions."""

import json
import operator
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
from hypothesis import given

from morefit.errors import ModelError
from morefit.expr import (
    Expr,
    Op,
    add_all,
    apply,
    column,
    const,
    evaluate,
    make,
    scalar,
    to_expr,
    to_text,
    where,
)
from morefit.expr.node import UFUNCS, alive
from morefit.expr.numpy_functions import COMPOSED
from strategies import expressions
from tolerances import FEW_ROUNDINGS

x, y, z = scalar("x"), scalar("y"), scalar("z")


def deep(levels):
    node = x
    for _ in range(levels):
        node = np.sin(node)
    return node


def test_equal_expressions_are_the_same_object():
    assert np.exp(x) * (y + 1) is (1 + y) * np.exp(x)


def test_zero_and_minus_zero_are_two_numbers():
    assert const(0.0) is not const(-0.0)


def test_issue_order_of_minus_one_and_minus_two():
    # this used to depend on the order of building: hash(-1.0) == hash(-2.0)
    assert x**-1 + x**-2 is x**-2 + x**-1


def test_a_scalar_and_a_column_of_one_name_differ():
    assert scalar("m") is not column("m")


def test_expressions_that_nobody_holds_are_forgotten():
    before = len(alive)
    node = deep(1000)
    del node
    assert len(alive) == before


@given(expressions())
def test_pickling_keeps_identity(expr):
    assert pickle.loads(pickle.dumps(expr)) is expr


def test_pickling_goes_as_deep_as_the_graph():
    node = deep(100_000)
    assert pickle.loads(pickle.dumps(node)) is node


def test_expressions_never_change():
    with pytest.raises(AttributeError, match="expressions never change; build a new one"):
        x.op = Op.ADD


def test_an_expression_has_no_truth_value():
    with pytest.raises(ModelError, match=r"expression 'x < y': has no truth value; choose .* mf.where"):
        bool(x < y)


def test_an_expression_is_not_a_number():
    with pytest.raises(ModelError, match=r"expression 'x/y': is not a number; use np.exp"):
        float(x / y)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_constants_must_be_finite(number):
    with pytest.raises(ModelError, match=f"constant: must be finite, got {number}"):
        x * number


@pytest.mark.parametrize("thing", ["3", None, [1.0, 2.0], np.zeros(2)])
def test_only_numbers_and_quantities_enter_expressions(thing):
    with pytest.raises(ModelError, match=f"expression: takes numbers, .*, got {type(thing).__name__}"):
        where(x > 0, thing, 1)


@pytest.mark.parametrize("number", [10**400, -(10**400), Fraction(10**400, 3), Decimal("1e400")])
def test_a_number_too_large_for_a_double_is_refused(number):
    # this used to be a bare OverflowError
    with pytest.raises(ModelError, match=r"constant: must be finite, got -?inf"):
        x * number


@pytest.mark.parametrize(
    "number",
    [2, 2.0, True, np.int32(2), np.float32(2), np.bool_(True), np.array(2.0), Fraction(1, 2), Decimal("0.1")],
)
def test_real_numbers_of_any_kind_enter_expressions(number):
    assert to_expr(number) is const(float(number))


OPERATORS = ["mod", "floordiv", "add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("left", "right"), [(x, y), (x, 0.7), (1.3, y)])
def test_operators_mean_what_they_mean_for_numbers(name, left, right):
    how = getattr(operator, name)
    values = {"x": 1.3, "y": 0.7}
    assert evaluate(how(left, right), values) == pytest.approx(float(how(1.3, 0.7)), rel=FEW_ROUNDINGS)


@pytest.mark.parametrize("how", [operator.neg, operator.pos, abs])
def test_signs_mean_what_they_mean_for_numbers(how):
    assert evaluate(how(x), {"x": -1.3}) == how(-1.3)


def ufunc(name):
    return getattr(np, name, None) or getattr(scipy.special, name)


@pytest.mark.parametrize("name", sorted([*UFUNCS, *COMPOSED]))
@pytest.mark.parametrize(
    "numbers", [(0.7, 0.3), (-0.6, 0.3), (-1.0, 0.0), (0.0, -2.0), (0.5, 0.5), (2.0, -1.5)]
)
def test_numpy_functions_mean_what_they_mean_for_numbers(name, numbers):
    function, numbers = ufunc(name), (*numbers, 0.4)
    with np.errstate(all="ignore"):
        expected = float(function(*numbers[: function.nin]))
    if name == "betaln" and min(numbers[:2]) < 0:  # scipy's has lost the sign of the beta function
        expected = float("nan")
    found = evaluate(function(*(x, y, z)[: function.nin]), dict(zip("xyz", numbers, strict=True)))
    assert float(found) == pytest.approx(expected, rel=FEW_ROUNDINGS, nan_ok=True)


def test_an_unknown_numpy_function_is_named():
    with pytest.raises(
        ModelError, match="numpy function 'gcd': not known to morefit; it knows absolute, add"
    ):
        np.gcd(x, y)


PIECES = {
    "where": lambda x, y: np.where(x < y, x, 2.0),
    "select": lambda x, y: np.select([x < 0, x < y], [1.0, x], y),
    "select without a default": lambda x, y: np.select([x < -1], [3.0]),
    "piecewise": lambda x, y: np.piecewise(x, [x < y, x > 0], [lambda v: v**2, 5.0, 0.5]),
    "clip": lambda x, y: np.clip(x, None, y) + np.clip(x, y, None) + np.clip(x, a_min=-0.1, a_max=0.1),
    "sinc": lambda x, y: np.sinc(x) + np.sinc(x - x),
}


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("at", [-2.0, -0.5, 0.3, 0.5, 1.7])
def test_issue_pieces_of_numpy_take_expressions(name, at):
    """np.where used to want a truth value, and others raised errors of NumPy's own code."""
    expected = float(PIECES[name](np.array(at), np.array(0.4)))
    assert float(evaluate(PIECES[name](x, y), {"x": at, "y": 0.4})) == pytest.approx(
        expected, rel=FEW_ROUNDINGS
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: np.isclose(x, y),
            "'isclose': does not work on expressions; write it with operators, np.clip",
        ),
        (lambda: np.where(x < y), "'where': needs a condition and two expressions"),
        (
            lambda: np.select([x < 0, x < 1], [1.0]),
            "'select': needs one expression for each condition, got 1 for 2",
        ),
    ],
)
def test_what_numpy_cannot_do_with_expressions_is_a_sentence(call, message):
    with pytest.raises(ModelError, match=f"numpy function {message}"):
        call()


def test_numpy_reductions_are_refused():
    with pytest.raises(ModelError, match="numpy function 'add': only plain calls work on expressions"):
        np.add.reduce(x)


def test_a_numpy_number_on_the_left_builds_an_expression():
    assert np.float64(2) * x is 2 * x


def test_where_takes_numbers():
    assert where(x < 0, 1, 2).args[1:] == (const(1), const(2))


ORDER = """
import json, sys
import numpy as np
from morefit.expr import *
names = "alpha beta gamma m n p q".split()
leaves = [scalar(n) for n in names] + [column(n) for n in names]
total = add_all(*(np.exp(a * 2) * b ** -1 + b ** -2 for a in leaves for b in leaves), 3)
print(json.dumps([to_text(total, None), [to_text(a, None) for a in total.args]]))
"""


def test_the_order_of_arguments_is_the_same_in_every_process():
    def run(seed):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", ORDER], env=env, capture_output=True, text=True, check=True
        ).stdout

    first = run("1")
    assert json.loads(first)[1]
    assert first == run("2")


def test_text_names_an_expression_in_messages():
    assert repr(x - y) == to_text(x - y) == "x - y"


def test_a_sum_of_nothing_is_zero():
    assert add_all() is const(0)


def test_apply_takes_numbers():
    assert apply(Op.MIN, 1, x) is make(Op.MIN, (const(1), x))


def test_a_notebook_shows_latex():
    assert (x / y)._repr_latex_() == r"$\frac{x}{y}$"
    assert isinstance(x, Expr)


def test_conditions_are_joined_as_in_numpy():
    x, y = column("x"), column("y")
    values = {"x": np.array([0.0, 1.0, 2.0, 3.0]), "y": np.array([0.0, 5.0, 0.0, 5.0])}
    for formula, expected in [
        ((x > 0.5) & (x < 2.5), [0, 1, 1, 0]),
        ((x < 0.5) | (y > 1), [1, 1, 0, 1]),
        (~(x < 1.5), [0, 0, 1, 1]),
        ((x > 0.5) & ((y > 1) | (x > 1.5)) & ~(x > 2.5), [0, 1, 1, 0]),
    ]:
        np.testing.assert_array_equal(evaluate(formula, values), expected)


@pytest.mark.parametrize(
    "wrong", [lambda x: x & 4, lambda x: (x > 1) | x, lambda x: ~x, lambda x: 1.5 & (x > 1)]
)
def test_numbers_are_not_taken_for_bits(wrong):
    with pytest.raises(
        ModelError, match=r"&, \| and ~ join comparisons such as \(x > 1\); put them in brackets"
    ):
        wrong(column("x"))


@pytest.mark.parametrize("how", [lambda e: 1j * e, lambda e: e + 2j, lambda e: np.complex128(1j) / e])
def test_issue_complex_numbers_are_refused_in_a_sentence(how):
    # this used to be a TypeError about operands, in the first line of an amplitude
    with pytest.raises(
        ModelError, match=r"takes real numbers, got .*j\)?; write the real and imaginary part"
    ):
        how(column("x"))
