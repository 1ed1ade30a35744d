"""Lines say what expressions say, in the fewest and cheapest steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import judge
from morefit.expr import MINUS_ONE, Op, add_all, apply, column, evaluate, leaves, make, scalar
from morefit.kernel.ir import Arith
from morefit.kernel.lower import lower
from morefit.targets.reference.run import run_body
from strategies import expressions, points
from tolerances import EPSILON, FEW_ROUNDINGS, ROUNDINGS

x, y, z = (column(name) for name in "xyz")


def named(*roots):
    return {leaf: leaf.name for op in (Op.SCALAR, Op.COLUMN) for leaf in leaves(op, *roots)}


def lowered(*roots):
    return lower(roots, named(*roots))


def operations(*roots):
    return [line.op for line in lowered(*roots).lines]


def value_of(root, **values):
    (found,) = run_body(lowered(root), values)
    return found


@pytest.mark.parametrize(
    ("power", "steps"), [(2, 1), (3, 2), (4, 2), (5, 3), (7, 4), (8, 3), (16, 4), (64, 6)]
)
def test_whole_powers_become_multiplications(power, steps):
    assert operations(x**power) == [Op.MUL] * steps
    assert value_of(x**power, x=1.25) == pytest.approx(1.25**power, rel=ROUNDINGS * EPSILON)


def test_large_powers_are_left_to_the_power_function():
    assert operations(x**65) == [Op.POW]
    assert operations(x**0.3) == [Op.POW]
    assert operations(x**y) == [Op.POW]


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (-1, [Arith.DIV]),
        (-2, [Arith.DIV, Op.MUL]),
        (0.5, [Op.SQRT]),
        (-0.5, [Op.SQRT, Arith.DIV]),
        (1.5, [Op.SQRT, Op.MUL]),
        (2.5, [Op.MUL, Op.SQRT, Op.MUL]),
        (-1.5, [Op.SQRT, Op.MUL, Arith.DIV]),
    ],
)
def test_negative_and_half_powers_need_a_division_or_a_root(power, expected):
    assert operations(x**power) == expected
    assert value_of(x**power, x=2.25) == pytest.approx(2.25**power, rel=FEW_ROUNDINGS)


def test_negative_powers_share_one_division():
    assert operations(x**-1, x**-2, x**-3) == [Arith.DIV, Op.MUL, Op.MUL]


def test_powers_share_their_squares():
    assert operations(x**2, x**3, x**4) == [Op.MUL] * 3


def test_adding_a_negative_becomes_a_subtraction():
    assert operations(x - y) == [Arith.SUB]
    assert operations(x - y * z) == [Op.MUL, Arith.SUB]
    assert operations(-x + y) == [Arith.SUB]
    assert operations(-x - y) == [Arith.NEG, Arith.SUB]


def test_a_negative_used_elsewhere_is_still_written():
    assert sorted(op.name for op in operations(x - y, np.exp(-y))) == ["EXP", "NEG", "SUB"]


def test_two_minus_signs_cancel():
    twice = make(Op.MUL, (MINUS_ONE, MINUS_ONE, x))
    assert value_of(twice, x=3.0) == 3.0
    assert value_of(add_all(y, twice), x=3.0, y=1.0) == 4.0
    assert value_of(make(Op.MUL, (MINUS_ONE, MINUS_ONE, MINUS_ONE, x)), x=3.0) == -3.0
    assert value_of(make(Op.MUL, (MINUS_ONE, MINUS_ONE))) == 1.0


def test_no_line_is_dead():
    roots = (x - y * z, np.exp(-x) + x**-3, apply(Op.WHERE, x < y, x * y, -z))
    body = lowered(*roots)
    used = {a for line in body.lines for a in line.args} | set(body.results)
    assert {line.target for line in body.lines} <= used


def test_no_line_is_written_twice():
    body = lowered((x * y) ** 2 + np.exp(x * y), np.exp(x * y) - (x * y))
    assert len({(line.op, line.args) for line in body.lines}) == len(body.lines)


def test_every_line_comes_after_what_it_needs():
    body = lowered((x - y) ** -3 * np.exp(-z), np.sqrt(x * y - z))
    known = {"x", "y", "z"}
    for line in body.lines:
        assert {a for a in line.args if isinstance(a, str)} <= known
        known.add(line.target)


def test_zero_and_minus_zero_are_two_numbers():
    """They compare equal, and one divided by them is not."""
    body = lowered(x * 0.0, x * -0.0, apply(Op.ATAN2, 0.0, x), apply(Op.ATAN2, -0.0, x))
    found = run_body(body, {"x": -1.0})
    assert found[2] == np.pi
    assert found[3] == -np.pi
    assert [bool(np.signbit(f)) for f in found[:2]] == [True, False]


@pytest.mark.parametrize("name", ["v0", "v1", "v", "v00", "v_0"])
def test_names_never_clash(name):
    taken, other = column(name), scalar("v2")
    root = np.exp(taken * other) - taken**3
    body = lowered(root)
    targets = [line.target for line in body.lines]
    assert len(set(targets)) == len(targets)
    assert not {name, "v2"} & set(targets)
    (found,) = run_body(body, {name: 0.5, "v2": 0.25})
    assert found == pytest.approx(evaluate(root, {name: 0.5, "v2": 0.25}), rel=FEW_ROUNDINGS)


def test_what_has_a_name_is_not_computed():
    inner = np.exp(x * y)
    body = lower([inner + x], {inner: "given", x: "x"})
    assert [line.op for line in body.lines] == [Op.ADD]


def test_numbers_are_results_too():
    body = lower([make(Op.CONST, value=3.0), x], {x: "x"})
    assert body.results == (3.0, "x")
    assert body.lines == ()


@given(st.lists(expressions(), min_size=1, max_size=3), points())
def test_lines_compute_what_expressions_mean(roots, point):
    found = run_body(lowered(*roots), point)
    for root, number in zip(roots, found, strict=True):
        judged = judge(root, point)
        if judged is not None:
            assert abs(number - judged[0]) <= judged[1]
