"""Where operations are not smooth is known: panels end there, and move with it."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import ZERO, Op, Operation, column, to_expr
from morefit.model.integrate import solve
from morefit.model.integrate.edges import find_centres, zeros_of_kinks

ARGUMENTS = (column("x"), column("y"), column("z"))
# steps of a floor are solved for apart, a lookup is at a floor or a cell, and two numbers are equal at single points
APART = {Op.FIXED, Op.FLOOR, Op.LOOKUP, Op.CELL, Op.EQUAL, Op.NOT_EQUAL}


def has_no_slope(op):
    """Return whether all derivatives of an operation are zero: it is a step."""
    if not op.arity or op.partials is None:
        return False
    slopes = op.partials(*ARGUMENTS[: op.arity])
    return all(slope is not None and to_expr(slope) is ZERO for slope in slopes)


def test_steps_are_edges():
    # the step of a sign was none
    operations = [op for kind in Op.__mro__ for op in vars(kind).values() if isinstance(op, Operation)]
    steps = [op for op in operations if has_no_slope(op) and op not in APART]
    assert {Op.SIGN, Op.LESS, Op.LESS_EQUAL} == set(steps)
    assert all(zeros_of_kinks(op(*ARGUMENTS[: op.arity])) for op in steps)


@pytest.mark.parametrize(
    "step",
    [lambda x, m: 1.5 + mf.sign(x - m), lambda x, m: 1.5 + np.arctan2(m - x, x - 9) / np.pi],
    ids=["sign", "angle"],
)
def test_steps_that_move_have_slopes(step):
    # gradients by the place of the step used to be zero, in silence
    x, m = mf.Observable("x", 0, 2), mf.Parameter("m", 0.8, 0.1, 1.9)
    nll = mf.Likelihood(mf.Density(step(x, m), [x]), {"x": [0.05]})
    high, low = 1e-4, -1e-4
    difference = (nll.value([0.8 + high]) - nll.value([0.8 + low])) / (high - low)
    assert abs(difference) > 0.1
    assert nll.gradient([0.8])[0] == pytest.approx(difference, rel=1e-6)


def test_steps_of_a_floor_move_with_a_parameter():
    # they used to be refused
    x, d = mf.Observable("x", 0, 10), mf.Parameter("d", 3.3, 1, 8)
    nll = mf.Likelihood(mf.Density(1 + 0.3 * np.floor(x / 10 * d), [x]), {"x": [0.1]})
    for value, steps in ((3.3, 3), (7.2, 7)):
        area = 10 + 0.3 * sum(10 - 10 * k / value for k in range(1, steps + 1))
        slope = 0.3 * sum(10 * k / value**2 for k in range(1, steps + 1)) / area
        assert nll.value([value]) == pytest.approx(np.log(area), rel=1e-12)
        assert nll.gradient([value])[0] == pytest.approx(slope, rel=1e-10)


def test_sums_of_many_terms_are_solved_once_each(monkeypatch):
    # each part of a chain of sums was made a polynomial from its leaves up: 300 terms took 4 to 20 s
    calls = []
    combine = solve.combine
    monkeypatch.setattr(solve, "combine", lambda *args: calls.append(1) or combine(*args))
    total, c = column("x"), to_expr(mf.Parameter("c", 0.1, 0.0, 1.0))
    for _ in range(60):
        total = total + c
    centres, hidden = find_centres(Op.EXP(total), column("x"), (0.0, 1.0), set(), {"c": 0.1, "x": 0.5})
    assert len(centres) == 60 and not hidden
    assert len(calls) <= 2 * 60
