"""Integrals for each event: fixed rules inside the loop, on every backend, against formulas, scipy and differences."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import integrate as quadrature

import morefit as mf
from backend_rows import COMPILED, there
from morefit.errors import ModelError
from morefit.expr import NodeRule, Op, column, evaluate, node_sum, rule_of, toposort
from morefit.kernel.ir import NodeLoop
from morefit.likelihood.accuracy import integral_error
from morefit.model.integrate import integral_over
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise
from tolerances import DIFFERENCES, SAME_LINES

PER_EVENT = 1e-9  # promised of an integral for each event at the start values

X, D = mf.Observable("x", -3.0, 3.0), mf.Observable("d", -3.0, 3.0)
MU, S = mf.Parameter("mu", 0.3, -1.0, 1.0), mf.Parameter("s", 0.5, 0.1, 2.0)
VALUES = {"mu": 0.3, "s": 0.5}
POINTS = np.linspace(-2.5, 2.9, 7)


def smooth():
    return np.exp(-0.5 * (D / S) ** 2) * np.exp(-0.5 * ((X - D - MU) / 0.7) ** 2)


def with_kink():
    return np.exp(-0.5 * (D / S) ** 2) * mf.where(X - D - MU < 0, 0, np.exp(-(X - D - MU) / 0.7))


def with_root():
    return np.exp(-0.5 * (D / S) ** 2) * mf.where(X - D - MU < 0, 0, np.sqrt(abs(X - D - MU)))


@pytest.mark.parametrize("density", [smooth, with_kink, with_root], ids=lambda f: f.__name__)
def test_an_integral_is_scipys_at_every_event(density):
    formula = density()
    integral = integral_over(formula, [D], [MU, S], given=[X])
    for x, number in zip(POINTS, evaluate(integral, {**VALUES, "x": POINTS}), strict=True):
        kink = [x - 0.3] if abs(x - 0.3) < 3 else None
        integrand = partial(lambda d, x: float(evaluate(formula, {**VALUES, "x": x, "d": d})), x=x)
        expected, _ = quadrature.quad(integrand, -3, 3, points=kink, epsrel=1e-12, epsabs=0, limit=500)
        assert number == pytest.approx(expected, rel=PER_EVENT)


@pytest.mark.parametrize("density", [smooth, with_kink], ids=lambda f: f.__name__)
def test_derivatives_are_those_under_the_integral(density):
    (integral,) = normalise(integral_over(density(), [D], [MU, S], given=[X]))
    first = derivatives(integral, [MU.expr, S.expr])
    second = derivatives(first[0], [S.expr])
    step = 1e-5
    for expr, slope, name in [
        (integral, first[0], "mu"),
        (integral, first[1], "s"),
        (first[0], second[0], "s"),
    ]:
        ends = [evaluate(expr, {**VALUES, "x": POINTS, name: VALUES[name] + e * step}) for e in (-1, 1)]
        found = evaluate(slope, {**VALUES, "x": POINTS})
        np.testing.assert_allclose(found, (ends[1] - ends[0]) / (2 * step), rtol=DIFFERENCES, atol=1e-8)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("density", [smooth, with_kink], ids=lambda f: f.__name__)
def test_every_backend_computes_the_same_sums(name, density):
    integral = integral_over(density(), [D], [MU, S], given=[X])
    model = mf.Density(integral, [X], integral=1.0 + S, check=False)
    data = {"x": np.linspace(-2.5, 2.5, 77)}
    point = np.array([[0.2, 0.6]])
    found = mf.Likelihood(model, data, backend=there(COMPILED[name])).evaluate_full(point, 2)
    expected = mf.Likelihood(model, data, backend="reference").evaluate_full(point, 2)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-11, atol=1e-10)


def test_value_and_derivatives_share_one_loop():
    model = mf.Density(integral_over(smooth(), [D], [MU, S], given=[X]), [X], integral=1.0 + S, check=False)
    likelihood = mf.Likelihood(model, {"x": POINTS}, backend="cpu")
    hessian = likelihood.compile_request(likelihood.request(2)).program.kernel
    (loop,) = [line for line in hessian.per_event.lines if isinstance(line, NodeLoop)]
    assert len(loop.targets) == 6
    assert str(hessian).count("for node 0 in") == 1


def test_a_sum_inside_a_sum_has_a_node_of_its_own():
    e = mf.Observable("e", -1.0, 1.0)
    inner = integral_over(np.exp(-((D - e) ** 2)) * S, [e], [S], given=[D])
    outer = integral_over(inner * np.exp(-((X - D) ** 2)), [D], [S], given=[X])
    depths = {rule_of(node).depth for node in toposort(outer) if node.op is Op.NODE_SUM}
    assert depths == {0, 1}

    def expected(x):
        value, _ = quadrature.dblquad(
            lambda e, d: 0.5 * math.exp(-((d - e) ** 2) - (x - d) ** 2), -3, 3, -1, 1, epsrel=1e-11
        )
        return value

    model = mf.Density(outer, [X], integral=1.0, check=False)
    for backend in ("reference", "cpu", there(COMPILED["opencl"])):
        found = model.pdf(POINTS[::3], {"s": 0.5}, backend=backend)
        np.testing.assert_allclose(found, [expected(x) for x in POINTS[::3]], rtol=PER_EVENT)


def test_the_integral_over_an_integral_for_each_event_is_numerical():
    integral = integral_over(smooth(), [D], [MU, S], given=[X])
    model = mf.Density(integral, [X])
    edges = quadrature.dblquad(
        lambda d, x: math.exp(-0.5 * (d / 0.5) ** 2 - 0.5 * ((x - d - 0.3) / 0.7) ** 2),
        -3,
        3,
        -3,
        3,
        epsrel=1e-11,
    )
    assert evaluate(model.integral(), VALUES) == pytest.approx(edges[0], rel=PER_EVENT)


def test_the_sum_over_nodes_of_what_does_not_depend_on_them_is_itself():
    rule = NodeRule.of(2, 0)
    u = column(rule.symbol)
    assert evaluate(node_sum(X * S, rule), {"x": 2.0, "s": 3.0}) == pytest.approx(6.0, rel=SAME_LINES)
    assert derivatives(node_sum(S * X + u, rule), [S.expr])[0] is X.expr


def test_a_rule_that_no_longer_resolves_is_reported():
    narrow = mf.Parameter("s", 0.5, 0.001, 2.0)
    formula = np.exp(-0.5 * (D / narrow) ** 2) / narrow * (1 + (X - D) ** 2)
    model = mf.Density(integral_over(formula, [D], [narrow], given=[X]), [X], integral=1.0, check=False)
    data = {"x": np.linspace(-1, 1, 50)}
    assert integral_error(model, {"s": 0.5}, data) < PER_EVENT
    assert integral_error(model, {"s": 0.002}, data) > 1e-3


@pytest.mark.parametrize("width", [1e-2, 1e-6])
def test_a_narrow_peak_that_moves_with_the_event_is_followed(width):
    integral = integral_over(np.exp(-0.5 * ((D - X) / width) ** 2), [D], [], given=[X])
    exact = math.sqrt(2 * math.pi) * width
    np.testing.assert_allclose(evaluate(integral, {"x": POINTS}), exact, rtol=PER_EVENT)


def test_an_integral_that_no_rule_reaches_is_refused():
    spike = np.exp(-0.5 * ((D - X) / 1e-9) ** 2)
    with pytest.raises(ModelError, match=r"over 'd' for each event is uncertain by .* give an integral"):
        integral_over(spike, [D], [], given=[X])
    pole = 1 / abs(D - X)
    with pytest.raises(ModelError, match=r"for each event is (infinite or not a number|uncertain)"):
        integral_over(pole, [D], [], given=[X])
    e = mf.Observable("e", -1.0, 1.0)
    with pytest.raises(ModelError, match="for each event are done in 1 dimension, got 2; give an integral"):
        integral_over(spike * e, [D, e], [], given=[X])
