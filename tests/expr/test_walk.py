"""Walking graphs: every node once, at any depth."""

import time

import numpy as np
import pytest
from hypothesis import given

from morefit.expr import (
    Op,
    column,
    const,
    evaluate,
    fresh_prefix,
    integral_of,
    leaves,
    node_price,
    price,
    rebuild,
    remake,
    scalar,
    substitute,
    symbols,
    toposort,
    uses,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import simplify
from morefit.rewrite.stages import regroup, split
from strategies import expressions

a, b, m = scalar("a"), scalar("b"), column("m")
PATIENCE = 2.5  # seconds of work on a slow machine, for growth in proportion: its square would be a minute


@given(expressions())
def test_arguments_come_before_the_nodes_that_use_them(expr):
    place = {node: i for i, node in enumerate(toposort(expr))}
    assert all(place[arg] < place[node] for node in place for arg in node.args)


@given(expressions())
def test_rebuilding_as_it_was_gives_the_same_object(expr):
    assert rebuild((expr,), remake) == (expr,)


def test_shared_nodes_are_listed_once():
    shared = np.exp(a)
    assert sum(node is shared for node in toposort(shared * shared + shared)) == 1


def test_uses_count_arguments_and_roots():
    shared = np.exp(a)
    assert uses(shared, shared + b)[shared] == 2


def test_a_replaced_node_is_not_entered():
    assert substitute(np.exp(a) + a, {np.exp(a): a * 2, a: b}) is a * 2 + b


def test_columns_bound_by_an_integral_do_not_count():
    integral = integral_of(a * m, Domain((Axis("m", (0.0, 1.0)),)))
    assert leaves(Op.COLUMN, integral) == []


def test_a_column_counts_where_it_also_stands_outside_an_integral():
    integral = integral_of(a * m, Domain((Axis("m", (0.0, 1.0)),)))
    assert leaves(Op.COLUMN, integral * m) == [m]


def test_integrals_can_be_left_closed():
    integral = integral_of(a * m, Domain((Axis("m", (0.0, 1.0)),)))
    assert all(node is not m for node in toposort(integral, enter_integrals=False))


def test_symbols_come_in_order_of_first_appearance():
    assert [s.name for s in symbols(Op.SCALAR, b / 2, a, b)] == ["b", "a"]


@pytest.mark.parametrize(
    ("name", "prefix"), [("x", "b"), ("b", "b"), ("b0", "b_"), ("b12", "b_"), ("bx", "b")]
)
def test_a_fresh_prefix_avoids_the_names_in_use(name, prefix):
    assert fresh_prefix("b", scalar(name) * m) == prefix


def test_a_fresh_prefix_avoids_names_of_columns_and_longer_prefixes():
    assert fresh_prefix("b", column("b0") + scalar("b_3")) == "b__"


def test_a_minus_sign_is_free():
    assert node_price(-a) == 0


def test_a_square_costs_one_multiplication():
    assert node_price(a**2) == node_price(a * a)


def test_a_shared_node_is_paid_once():
    assert price(np.exp(a) + np.exp(a) * b) == price(np.exp(a)) + 2


def chain(step, levels=3_750):
    node = a
    for k in range(levels):
        node = step(node, k)
    return node


GRAPHS = {
    "functions of functions": lambda: chain(lambda s, k: np.sin(a * s + m), 2_500),
    "a sum built term by term": lambda: chain(lambda s, k: s + np.exp(b * (k + 0.5)) * m),
    "a product built factor by factor": lambda: chain(lambda s, k: s * (b + (k + 0.5))),
    "differences of differences": lambda: chain(lambda s, k: np.tanh(m - s), 2_000),
    "everything shared": lambda: chain(lambda s, k: s * s + a, 3_000),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_large_graph_is_simplified_and_differentiated_in_seconds(name):
    start = time.process_time()
    expr = GRAPHS[name]()
    assert len(toposort(expr)) > 5_900
    gradient(simplify(expr), [a])
    assert time.process_time() - start < PATIENCE


def test_a_deep_graph_is_split_without_recursion():
    stages = split(regroup((chain(lambda s, k: np.sin(a * s + m), 2_500),)))
    assert len(stages.per_event) == 1


def test_issue_a_wide_sum_with_many_common_factors_is_regrouped():
    # this used to exceed the recursion limit: one level for each common factor
    mixed = [np.exp(m * scalar(f"p{k}")) for k in range(600)]
    total = sum((e * m + e * a for e in mixed), const(0))
    assert split(regroup((total,))).per_event


def test_a_deep_graph_is_evaluated_without_recursion():
    assert np.isfinite(evaluate(chain(lambda s, k: np.sin(s), 20_000), {"a": 1.0}))
