"""Comparisons are conditions; their truth value, and what Python would make of it, are errors that say what to write."""

import copy
import math
import pickle

import numpy as np
import pytest

import morefit as mf
from morefit.errors import ModelError
from morefit.expr import Op, column, evaluate, scalar, to_latex, to_text
from tolerances import SAME_MINIMUM

x, y = column("x"), scalar("y")
OBSERVABLE, PARAMETER = mf.Observable("m", 0, 5), mf.Parameter("mu", 1, 0, 5)
QUANTITIES = pytest.mark.parametrize("quantity", [x, OBSERVABLE, PARAMETER, 2 * x + 1], ids=str)


@QUANTITIES
def test_equality_is_a_condition(quantity):
    # this used to be Python's False and True, so that where(tag == 1, a, b) was b
    assert (quantity == 1).op is Op.EQUAL
    assert (quantity != 1).op is Op.NOT_EQUAL


def test_equality_means_what_it_means_for_numbers():
    values = {"x": np.array([0.0, 1.0, 2.0, np.nan]), "y": 1.0}
    for formula, expected in [
        (x == 1, [0, 1, 0, 0]),
        (1 == x, [0, 1, 0, 0]),
        (x != 1, [1, 0, 1, 1]),
        (x == y, [0, 1, 0, 0]),
        (~(x == 1), [1, 0, 1, 1]),
        ((x != 1) & (x < 2), [1, 0, 0, 0]),
        ((x == 0) | (x == 2), [1, 0, 1, 0]),
        (np.not_equal(x, 1), [1, 0, 1, 1]),
    ]:
        np.testing.assert_array_equal(evaluate(formula, values), expected)


def test_equality_is_written_as_it_was_meant():
    assert [to_text(x == 1), to_text(x != 1), to_latex(x != 1)] == ["x == 1", "x != 1", r"x \neq 1"]


def test_a_category_is_fitted_as_numpy_would():
    # this used to fit a = 1.000, validly
    rng = np.random.default_rng(5)
    tag, eff = mf.Observable("tag", -2, 2), mf.Parameter("a", 0.5, 0.01, 0.99)
    model = mf.Density(mf.where(tag == 1, eff, 1 - eff), tag, integral=1.0)
    data = np.where(rng.random(2000) < 0.4, 1.0, -1.0)
    result = mf.fit(model, {"tag": data})
    assert result.valid
    assert result.values["a"] == pytest.approx(np.mean(data == 1), abs=SAME_MINIMUM * result.errors["a"])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: 1 if v > 1 else 2,
        lambda v: 0 < v < 1,
        lambda v: v > 0 and v < 1,
        lambda v: v < 0 or v > 1,
        lambda v: not v,
        lambda v: max(v, 2.0),
        lambda v: min(2.0, v),
        lambda v: sorted([v, 2.0]),
        lambda v: v in [1.0, 2.0],
        lambda v: [1.0, v].index(v),
        lambda v: (v, 1) == (1, v),
    ],
)
@QUANTITIES
def test_a_truth_value_is_an_error_that_says_what_to_write(wrong, quantity):
    with pytest.raises(
        ModelError,
        match=r"has no truth value; choose between two expressions with mf.where\(condition, a, b\), join"
        r" conditions with &, \| and ~ as in \(x > 0\) & \(x < 1\), write np.minimum and np.maximum for min and max",
    ):
        wrong(quantity)


@pytest.mark.parametrize("number", [math.exp, math.floor, float, int, complex])
@QUANTITIES
def test_a_quantity_is_no_number(number, quantity):
    with pytest.raises(ModelError, match=r"is not a number; use np.exp and the like instead of math.exp"):
        number(quantity)


@QUANTITIES
def test_a_quantity_cannot_be_rounded(quantity):
    with pytest.raises(ModelError, match=r"cannot be rounded; use np\.floor"):
        round(quantity)


@pytest.mark.parametrize("wrong", [list, len, iter, lambda v: v[0], lambda v: range(v)])
@QUANTITIES
def test_a_quantity_is_no_list(wrong, quantity):
    with pytest.raises(TypeError):
        wrong(quantity)


@pytest.mark.parametrize("other", ["B0", None, [1.0], (1,), {}, 1j])
@QUANTITIES
def test_what_is_no_number_is_not_compared(other, quantity):
    # Python would make its plain False of it
    for compare in (lambda a, b: a == b, lambda a, b: a != b):
        with pytest.raises(ModelError, match=r"is compared with numbers and expressions, got .*use 'is'"):
            compare(quantity, other)


@pytest.mark.parametrize("other", ["3", None, [1.0, 2.0], object()])
def test_operators_leave_foreign_kinds_to_python(other):
    # these used to raise ModelError, so that another type could not join in
    for operator in (lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a < b, lambda a, b: a**b):
        with pytest.raises(TypeError):
            operator(x, other)


def test_a_foreign_type_may_join_in():
    class Pair:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "joined"

        def __eq__(self, other):
            return "compared"

        __hash__ = None

    assert x + Pair() == "joined"
    assert (PARAMETER == Pair()) == "compared"


def test_arrays_hold_quantities_and_are_not_taken_for_them():
    row = np.array([x, y]) + 1
    assert row[0] is x + 1
    assert np.sum([x, y]) is x + y
    assert np.array(x) * 2 is x * 2
    with pytest.raises(ModelError, match=r"expression: takes numbers, .*, got ndarray"):
        x + np.zeros(2)


def test_equal_parameters_and_observables_are_the_same_object():
    assert mf.Parameter("mu", 1.0, low=0, high=np.int64(5)) is PARAMETER
    assert mf.Observable("m", 0.0, 5.0) is OBSERVABLE
    assert mf.Parameter("mu", 1.5, 0, 5) is not PARAMETER
    for one in (PARAMETER, OBSERVABLE):
        assert pickle.loads(pickle.dumps(one)) is one
        assert copy.deepcopy(one) is one
        assert {one: 1}[copy.copy(one)] == 1


def test_many_expressions_are_keys_of_one_mapping():
    # equal hashes would call ==, whose truth value is an error
    some = [scalar(f"p{i}") * k + x for i in range(200) for k in range(1, 51)]
    assert len(dict.fromkeys(some)) == len({(s, s): 0 for s in some}) == 10_000
