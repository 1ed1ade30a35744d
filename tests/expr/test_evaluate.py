"""The meaning of expressions in numpy."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from scipy.integrate import dblquad, quad

from judge import judge
from morefit.expr import Op, column, const, evaluate, integral_of, scalar, where
from morefit.expr.evaluate import crossing, evaluate_all, places_at, zeros_in_boxes
from morefit.expr.quadrature import Axis, Boxes, Domain
from mp_evaluate import DIGITS, Undefined, mp_evaluate
from strategies import expressions, points
from tolerances import QUADRATURE

a, b, m, n = scalar("a"), scalar("b"), column("m"), column("n")


@given(expressions(), points())
def test_numpy_agrees_with_many_digits(expr, values):
    judged = judge(expr, values)
    assume(judged is not None)
    with mpmath.workdps(DIGITS):
        try:
            exact = float(mp_evaluate(expr, values))
        except Undefined:
            assume(False)
    value, tolerance = judged
    assert value == pytest.approx(exact, rel=0, abs=tolerance)


def test_columns_are_evaluated_event_by_event():
    assert evaluate(a * m, {"a": 2.0, "m": np.arange(3.0)}).tolist() == [0.0, 2.0, 4.0]


def test_issue_whole_numbers_have_negative_powers():
    # this used to raise: numpy has no negative powers of integers
    assert evaluate(a**b, {"a": 2, "b": -1}) == 0.5


def test_a_comparison_is_one_or_zero():
    assert evaluate(a < m, {"a": 1.0, "m": np.array([0.0, 1.0, 2.0])}).tolist() == [0.0, 0.0, 1.0]


def test_where_ignores_what_it_does_not_choose():
    assert evaluate(where(a > 0, np.log(a), 3), {"a": -1.0}) == 3.0


def test_no_warning_escapes():
    assert evaluate(np.log(a), {"a": 0.0}) == -np.inf


def test_a_missing_value_is_named():
    with pytest.raises(KeyError, match="a"):
        evaluate(a + 1, {})


@pytest.mark.parametrize("body", [np.exp(-a * m), np.sin(m) ** 2 * a, 1 / (m**2 + a), const(1.0) * m])
def test_an_integral_agrees_with_scipy(body):
    integral = integral_of(body, Domain((Axis("m", (0.0, 1.0, 2.5)),)))
    expected, _ = quad(lambda v: float(evaluate(body, {"a": 1.3, "m": v})), 0.0, 2.5, epsabs=0, epsrel=1e-13)
    assert evaluate(integral, {"a": 1.3}) == pytest.approx(expected, rel=QUADRATURE)


def test_an_integral_over_two_columns_agrees_with_scipy():
    body = np.exp(-a * m * n) * m
    integral = integral_of(
        body,
        Domain(
            (
                Axis("m", (0.0, 1.0)),
                Axis("n", (-1.0, 0.5, 2.0)),
            )
        ),
    )
    expected, _ = dblquad(lambda v, u: float(evaluate(body, {"a": 0.7, "m": u, "n": v})), 0, 1, -1, 2)
    assert evaluate(integral, {"a": 0.7}) == pytest.approx(expected, rel=QUADRATURE)


def test_the_column_outside_an_integral_is_not_the_one_inside():
    integral = integral_of(m**2, Domain((Axis("m", (0.0, 1.0)),)))
    found = evaluate(m / integral, {"m": np.array([1.0, 2.0])})
    assert found == pytest.approx([3.0, 6.0], rel=QUADRATURE)


@pytest.mark.parametrize("power", [1, 4])
def test_the_weights_of_boxes_add_up_to_the_volume(power):
    domain = Domain((Axis("m", (0.0, 1.0, 3.0), singular=True), Axis("n", (-1.0, 1.0))))
    assert Boxes.first(domain, power).nodes().weights.sum() == pytest.approx(6.0, rel=QUADRATURE)


def test_places_of_an_axis_are_computed_together(monkeypatch):
    """They used to be computed one by one, hundreds of them at each place on the axes before: seconds for a disc and a ridge."""
    evaluations = []

    def count(roots, values):
        evaluations.append(len(roots))
        return evaluate_all(roots, values)

    monkeypatch.setitem(
        places_at.__globals__, "evaluate_all", count
    )  # the module has the name of its function
    domain = Domain((Axis("m"), Axis("n")), (0, 0, 1, 1))
    places = places_at((m, const(0.2), a, 0.5 * m, m + a), domain, {"a": 0.6})
    assert {tuple(place) for place in np.round(places, 9)} == {(0.2, 0.1), (0.2, 0.8), (0.6, 0.3)}
    assert evaluations == [2, 2]


def test_zeros_of_sums_in_boxes_lie_on_the_higher_side_of_a_step():
    # a narrow ridge ends at a step, where its height is that of one side
    x, y = column("x"), column("y")
    ridge = where(x < y, Op.EXP(-(((x - y) / 1e-5) ** 2)), 0.0)
    domain = Domain((Axis("x"), Axis("y")), hidden=True)
    boxes = Boxes(domain, np.array([[0.1, 0.0], [0.8, 0.0]]), np.array([[0.4, 0.5], [1.0, 0.3]]))
    places = zeros_in_boxes(ridge, boxes, {})
    assert np.isnan(places[1]).all()  # no sum changes its sign
    assert evaluate(ridge, {"x": places[0, 0], "y": places[0, 1]}) > 0.9


@pytest.mark.parametrize(
    "function", [lambda x: x**3 - 0.2, lambda x: np.tan(3 * x) - 0.3, lambda x: 1e9 * (x - 0.1), np.sign]
)
def test_crossings_are_as_close_as_doubles_need(function):
    low, high = np.array([[-0.21], [0.0]]), np.array([[1.0], [0.7]])
    ends = function(low[:, 0]), function(high[:, 0])
    crossed = np.sign(ends[0]) != np.sign(ends[1])
    zeros = crossing(lambda _, points: function(points[:, 0]), low, high, ends)[:, 0]
    step = 2e-5
    below, above = function(zeros - step), function(zeros + step)
    assert np.all((np.sign(below) != np.sign(above))[crossed])
