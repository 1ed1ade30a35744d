"""Choices inside a branch of the same choice, and exponents that are choices."""

import numpy as np
import pytest

from morefit.expr import Op, column, const, evaluate, scalar, toposort, where
from morefit.rewrite.forms import settle_choices, use_base_two
from morefit.rewrite.simplify import normalise, simplifier
from tolerances import FEW_ULP

x, a, b = column("x"), scalar("a"), scalar("b")
left, right = x < -a, x > b


def choices_left(root):
    (settled,) = settle_choices(normalise(root), simplifier())
    return settled, sum(node.op is Op.WHERE for node in toposort(settled))


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (where(left, a * where(left, x, 0), 1), 1),
        (where(left, 1, b + where(left, x, a) ** 2), 1),
        (where(left, a * where(left, 0, x), 0), 0),
        (where(left, x, where(right, x * where(left, a, where(right, b, 0)), 0)), 2),
        (where(left, where(right, x, a), x), 2),
        # a function of a choice serves both branches: it is not made two
        (where(left, a * Op.LOG(where(left, 1 - x, 1)), b * Op.LOG(where(left, 1 - x, 1))), 2),
        (where(left, a / where(left, 1 - x, 1), b / where(left, 1 - x, 1)), 2),
    ],
    ids=repr,
)
def test_a_choice_inside_a_branch_is_made_there(written, count):
    settled, left_over = choices_left(written)
    assert left_over == count
    values = {"x": np.linspace(-3.0, 3.0, 31), "a": 0.7, "b": 0.4}
    np.testing.assert_allclose(evaluate(settled, values), evaluate(written, values), rtol=FEW_ULP)


@pytest.mark.parametrize(
    "exponent",
    [
        a + b * x**2,
        const(2) + a * x,
        where(left, a - b * Op.LOG(1 - x), -b * x**2),
        a + where(left, b * x, a),
    ],
    ids=repr,
)
def test_sums_and_choices_of_products_take_base_two(exponent):
    (turned,), scalars = use_base_two((Op.EXP(exponent),))
    assert turned.op is Op.EXP2
    values = {"x": np.linspace(-3.0, 0.9, 31), "a": 0.7, "b": -0.4}
    new = values | {name: float(evaluate(term, values)) for name, term in scalars.items()}
    np.testing.assert_allclose(evaluate(turned, new), np.exp(evaluate(exponent, values)), rtol=4 * FEW_ULP)


@pytest.mark.parametrize("exponent", [x**2, x + a, where(left, x, a)], ids=repr)
def test_an_exponent_whose_parts_have_no_scalar_stays(exponent):
    (turned,), scalars = use_base_two((Op.EXP(exponent),))
    assert turned.op is Op.EXP
    assert not scalars


def test_a_sum_that_others_use_is_not_computed_twice_for_base_two():
    inner = a * x + b
    (turned, _), _ = use_base_two((Op.EXP(where(left, inner, 0)), inner))
    assert turned.op is Op.EXP
