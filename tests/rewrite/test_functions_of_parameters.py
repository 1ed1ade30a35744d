"""Functions of parameters alone behind scalars: same values, same derivatives, no chain rule multiplied out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivatives import hessian
from judge import judge, walk
from morefit.expr import ZERO, Op, column, evaluate, integral_of, leaves, substitute, toposort
from morefit.expr.quadrature import Axis, Domain
from morefit.model.formulas import exprel, log1prel
from morefit.rewrite.derive import derivatives
from morefit.rewrite.functions import Functions
from morefit.rewrite.simplify import normalise
from strategies import SCALARS, expressions, points
from tolerances import NUMERIC_DERIVATIVE

a, b, c = SCALARS
m = column("m")
POINT = {"a": 0.7, "b": 1.3, "c": 0.4, "m": 0.9}


def second_derivatives(functions, root):
    """Return the lower triangle of the second derivatives, with the functions in the places of their scalars."""
    wrt = functions.parameters
    first = derivatives(root, wrt, known=functions.slopes)
    second = [d for i, s in enumerate(first) for d in derivatives(s, wrt[: i + 1], known=functions.slopes)]
    definitions = functions.definitions()
    return [substitute(d, definitions) for d in (*first, *second)]


@given(st.lists(expressions(), min_size=1, max_size=3).map(tuple), points())
def test_hiding_and_showing_keeps_the_values(roots, values):
    functions = Functions(SCALARS)
    hidden, definitions = functions.hide(roots), functions.definitions()
    for root, one in zip(roots, hidden, strict=True):
        if judged := judge(root, values):
            value, tolerance = judged
            shown = substitute(one, definitions)
            assert walk(shown, values)[shown] == pytest.approx(value, rel=0, abs=tolerance)


@pytest.mark.parametrize(
    "formula",
    [
        np.exp(-m / b) / (np.exp(a) * np.sin(b * c)),
        m * exprel(a * b) + np.log(1 + m * np.exp(c) * b),
        m**2 * a * b * c * np.sqrt(a + b) / (1 + a * b + b * c + a**2 * c**3),
        np.maximum(a, b) * np.exp(np.abs(a - c) * m),
        m * log1prel(a * b) * exprel((1 - c) * np.log1p(a * b)) * np.log1p(np.exp(a * b)),
    ],
    ids=["quotient", "series", "algebra", "kinks", "nested"],
)
def test_derivatives_through_scalars_are_those_of_the_formula(formula):
    functions = Functions(SCALARS)
    (hidden,) = functions.hide((formula,))
    assert functions.bodies
    first = derivatives(formula, SCALARS)
    expected = [*first, *(d for row in hessian(formula, SCALARS) for d in row)]
    for one, other in zip(second_derivatives(functions, hidden), expected, strict=True):
        assert float(evaluate(one, POINT)) == pytest.approx(
            float(evaluate(other, POINT)), rel=NUMERIC_DERIVATIVE
        )


def test_what_depends_on_the_event_stays():
    functions = Functions(SCALARS)
    (hidden,) = functions.hide((m * np.exp(a) + np.exp(b * m),))
    assert len(functions.bodies) == 1
    assert Op.EXP in {n.op for n in toposort(hidden)}


def test_cheap_algebra_stays():
    functions = Functions(SCALARS)
    functions.hide((m * (1 - a - b) / c,))
    assert not functions.bodies


def test_a_series_is_a_function_of_one_variable():
    functions = Functions(SCALARS)
    functions.hide((m * exprel(a * b * c),))
    (variable,) = set(functions.variables.values())
    assert functions.bodies[variable] is normalise(a * b * c)[0]


def test_an_integral_is_one_function():
    functions = Functions(SCALARS)
    domain = Domain((Axis("m", (0.0, 1.0)),))
    integral = integral_of(np.exp(-a * m), domain)
    (hidden,) = functions.hide((m / integral,))
    assert next(iter(functions.bodies.values())) is integral
    assert not [n for n in toposort(hidden) if n.op is Op.INTEGRAL]


def test_second_derivatives_of_a_product_of_functions_stay_short():
    # the chain rule multiplied out has products of all pairs of factors
    factors = [exprel(sum((k + 1) * p for p in SCALARS) * np.exp(a * k)) for k in range(1, 5)]
    formula = m * factors[0] * factors[1] * factors[2] * factors[3]
    functions = Functions(SCALARS)
    (hidden,) = functions.hide((formula,))
    short = len(toposort(*second_derivatives(functions, hidden)))
    simple = normalise(formula)[0]
    assert short < 0.5 * len(toposort(*(d for row in hessian(simple, SCALARS) for d in row)))


def test_functions_of_functions_are_differentiated_without_recursion():
    deep = a
    for _ in range(2_000):
        deep = np.sin(deep * b)
    functions = Functions(SCALARS)
    (hidden,) = functions.hide((m * deep,))
    (name,) = leaves(Op.SCALAR, hidden)
    assert functions.slopes(name)[2] is ZERO
