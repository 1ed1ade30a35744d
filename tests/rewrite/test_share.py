"""Sharing pairs of sums and products keeps values and prices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import judge, walk
from morefit.expr import multiply_all, price, scalar, toposort
from morefit.rewrite.share import share
from strategies import expressions, points

a, b, c, d = (scalar(name) for name in "abcd")
several = st.lists(expressions(), min_size=1, max_size=3).map(tuple)


@given(several, points())
def test_sharing_keeps_the_values(roots, values):
    for before, after in zip(roots, share(roots), strict=True):
        judged = judge(before, values)
        if judged:
            value, tolerance = judged
            assert walk(after, values)[after] == pytest.approx(value, rel=0, abs=tolerance)


@given(several)
def test_sharing_does_not_grow_the_price(roots):
    assert price(*share(roots)) <= price(*roots)


def test_a_common_pair_is_computed_once():
    roots = (multiply_all(a, b, c), multiply_all(a, b, d))
    assert any(node is a * b for node in toposort(*share(roots)))


def test_a_common_pair_lowers_the_price():
    roots = (multiply_all(a, b, c), multiply_all(a, b, d))
    assert price(*share(roots)) == price(*roots) - 1


def test_sums_in_products_are_shared_too():
    roots = (np.exp(a + b + c * d), (a + b) * c)
    assert price(*share(roots)) <= price(*roots)


def test_issue_a_repeated_factor_is_kept():
    # this used to lose a factor: all equal factors were taken out with a pair
    first, second = share((multiply_all(a, a, a), multiply_all(a, a, a, b)))
    assert walk(first, {"a": 2.0})[first] == 8.0
    assert walk(second, {"a": 2.0, "b": 3.0})[second] == 24.0
