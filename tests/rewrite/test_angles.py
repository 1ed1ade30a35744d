"""Functions of doubled angles: by number in test_rules.py; here, when they are replaced and what is left."""

import mpmath
import numpy as np
import pytest

from morefit.expr import Op, apply, column, evaluate, leaves, scalar, toposort
from morefit.rewrite.forms import choose_rules, use_double_angles
from morefit.rewrite.simplify import normalise, simplifier
from morefit.rewrite.stages import regroup, split
from zoo_expressions import kstarmumu

u, v, a = column("u"), column("v"), scalar("a")


def cos(angle):
    return apply(Op.COS, angle)


def sin(angle):
    return apply(Op.SIN, angle)


def functions_left(*roots):
    found = use_double_angles(normalise(*roots), simplifier())
    return {n for n in toposort(*found) if n.op in (Op.COS, Op.SIN)}


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (cos(u) + cos(2 * u), [cos(u)]),
        (sin(u) + cos(2 * u), [sin(u)]),
        (sin(u) + cos(u) + sin(2 * u) + cos(-2 * u), [sin(u), cos(u)]),
        (sin(2 * u) + cos(4 * u), [sin(2 * u)]),
        (cos(u * v / 2) + cos(u * v), [cos(u * v / 2)]),
        (cos(u - a) + cos(2 * (u - a)), [cos(u - a)]),
        (cos(u) * sin(u) + sin(sin(2 * u)), [cos(u), sin(u), sin(2 * cos(u) * sin(u))]),
    ],
    ids=repr,
)
def test_functions_of_a_doubled_angle_go(written, left):
    assert functions_left(written) == set(normalise(*left))


@pytest.mark.parametrize(
    "written",
    [
        cos(2 * u) + sin(2 * u),  # would need new functions
        cos(u) + sin(2 * u),
        sin(u) + sin(2 * u),
        cos(u) + cos(3 * u),
        cos(u) + cos(2 * v),
    ],
    ids=repr,
)
def test_functions_stay_where_replacing_them_needs_a_new_one(written):
    assert not choose_rules(normalise(written))


def test_no_angle_is_doubled_twice():
    """Each doubling multiplies an error by up to four: of u, 2u, 4u, 8u the third is computed again."""
    assert functions_left(cos(u) + cos(2 * u) + cos(4 * u) + cos(8 * u)) == {cos(u), cos(4 * u)}


def test_doubled_angles_are_as_exact_as_an_angle_rounded_once():
    """Near the zeros of cos(2u) the error is that of the last bit of u, as it would be of a rounded angle."""
    numbers = np.concatenate([np.linspace(-7, 7, 1999), np.pi / 4 * (1 + np.linspace(-1e-9, 1e-9, 99))])
    known = normalise(cos(u), sin(u), cos(2 * u), sin(2 * u))
    found = use_double_angles(known, simplifier())[2:]
    for expr, exact in zip(found, (mpmath.cos, mpmath.sin), strict=True):
        with mpmath.workdps(30):
            expected = [exact(2 * mpmath.mpf(n)) for n in numbers]
            off = [abs(f - e) for f, e in zip(evaluate(expr, {"u": numbers}), expected, strict=True)]
        assert max(off) < 3 * np.finfo(float).eps


def test_the_angular_density_reads_five_columns():
    (body,) = regroup(normalise(kstarmumu().density))
    assert len(leaves(Op.COLUMN, *split((body,)).per_event)) == 5
