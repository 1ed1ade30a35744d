"""Functions ahead of the sums, and branches that no lane takes."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Op
from morefit.kernel.ir import Arith, Body, Line
from morefit.targets.cpu.emit import rare_branches
from morefit.targets.cpu.phases import MAX_CARRIED, MAX_IN_ONE, MIN_LINES, MIN_SUMS, cut_phases
from tolerances import REORDERED, SINGLE

P = mf.Parameter
X = mf.Observable("x", 0.0, 10.0)


def body_of(functions, sums):
    lines = [Line("d", Arith.SUB, ("x", "a"))]
    lines += [Line(f"f{k}", Op.EXP, ("d" if k == 0 else f"f{k - 1}",)) for k in range(functions)]
    last = f"f{functions - 1}" if functions else "d"
    lines += [Line(f"v{k}", Op.MUL, (last if k == 0 else f"v{k - 1}", "d")) for k in range(sums)]
    return Body(tuple(lines), tuple(f"v{k}" for k in range(sums)))


def test_functions_come_first_and_what_is_cheap_is_computed_again():
    first, second, then = cut_phases(body_of(2, MIN_LINES))
    assert [line.target for line in first.lines] == ["d", "f0"]
    assert [line.target for line in second.lines] == ["f1"]
    assert (first.stored, second.stored) == (("f0",), ("f1",))
    assert then.lines[0].target == "d"
    assert len(then.lines) == 1 + MIN_LINES
    assert then.sums == tuple(range(MIN_LINES))


def test_sums_that_registers_do_not_hold_are_shared_by_loops():
    body = body_of(1, 2 * MAX_IN_ONE)
    _, *loops = cut_phases(body, [1] * len(body.results))
    assert len(loops) > 1
    assert sorted(k for loop in loops for k in loop.sums) == list(range(len(body.results)))
    assert all(len(loop.sums) <= MAX_CARRIED for loop in loops)
    names = {"d", "x", "a"}
    for loop in loops:  # what is read is computed there, or stored by an earlier one
        names |= {line.target for line in loop.lines}
        assert {a for line in loop.lines for a in line.args} <= names | {"f0"}
        names = {"d", "x", "a", *(n for one in loops for n in one.stored)}


@pytest.mark.parametrize(("functions", "sums"), [(0, MIN_LINES), (1, MIN_SUMS - 1), (1, MIN_LINES - 1)])
def test_one_loop_is_left_without_functions_or_with_few_sums(functions, sums):
    assert cut_phases(body_of(functions, sums)) is None


def test_only_lines_that_nothing_else_needs_wait_for_a_lane():
    lines = (
        Line("c", Op.LESS, ("x", 0.0)),
        Line("u", Op.EXP, ("x",)),
        Line("own", Op.EXP, ("u",)),
        Line("r", Op.WHERE, ("c", "own", "u")),
    )
    assert rare_branches(Body(lines, ("r",))) == {"r": {1: (lines[2],)}}
    assert not rare_branches(Body(lines, ("r", "own")))


def stepped():
    """Return a density whose branches have a table, a function of it, and another choice inside."""
    table = mf.table(X, np.linspace(0.0, 10.0, 6), [1.0, 3.0, 2.0, 4.0, 1.5], "steps")
    a, b = P("a", 0.4, 0.1, 2.0), P("b", 1.3, 0.1, 3.0)
    inner = mf.where(X < 1, np.exp(-b * X), np.sin(X) ** 2 * b)
    return mf.Density(mf.where(X < 5, a * np.log(1 + table) + inner, b * np.exp(-a * X)), X)


@pytest.mark.parametrize(
    "events", [np.linspace(6.0, 9.9, 37), np.linspace(0.1, 4.9, 37), np.linspace(0.1, 9.9, 1001)]
)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_skipped_branches_change_nothing(events, precision):
    model = stepped()
    fast, slow = (mf.Likelihood(model, {"x": events}, backend=b, precision=p)
                  for b, p in (("cpu", precision), ("reference", "double")))  # fmt: skip
    at = np.array([p.start for p in model.parameters])
    np.testing.assert_allclose(
        fast.hessian(at), slow.hessian(at), rtol=REORDERED if precision == "double" else 10 * SINGLE
    )
