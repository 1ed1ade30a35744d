"""Weights of a dataset may be a formula of observables, also of those that it does not have otherwise."""

import numpy as np
import pytest

import morefit as mf
from morefit.data.weights import observables_of, weight_formula
from morefit.expr import const

X, Y = mf.Observable("x", 0.0, 4.0), mf.Observable("y", 1.0, 2.0)
TABLE = {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([1.0, 1.5, 2.0])}


@pytest.mark.parametrize(
    ("weights", "numbers"),
    [(1 / Y, [1.0, 1 / 1.5, 0.5]), (Y, [1.0, 1.5, 2.0]), (X * Y, [1, 3, 6]), (mf.where(X > 2, 1, -1), [-1, -1, 1])],
)  # fmt: skip
def test_a_formula_is_computed_from_the_columns(weights, numbers):
    data = mf.Dataset(TABLE, X, weights=weights)
    np.testing.assert_allclose(data.weights, numbers)
    assert data.names == ("x",)
    np.testing.assert_array_equal(mf.Dataset(TABLE).with_weights(weights).weights, data.weights)
    np.testing.assert_array_equal(mf.Dataset(TABLE, weights=weights).weights, data.weights)
    again = mf.Dataset(mf.Dataset(TABLE), X, weights=weights)
    np.testing.assert_array_equal(again.weights, data.weights)


def test_a_formula_takes_the_place_of_weights_that_a_dataset_has():
    data = mf.Dataset(TABLE, weights=[7.0, 8.0, 9.0])
    assert mf.Dataset(data, X, weights=Y).weights.tolist() == [1.0, 1.5, 2.0]


def test_a_cut_leaves_out_events_that_only_weights_are_outside_of():
    data = mf.Dataset.cut({**TABLE, "y": [1.0, 7.0, 2.0]}, X, weights=1 / Y)
    assert data.names == ("x",) and data.weights.tolist() == [1.0, 0.5]
    assert data.report.outside == {"x": 0, "y": 1}


@pytest.mark.parametrize(
    ("source", "weights", "message"),
    [
        ({"x": [1.0]}, 1 / Y, "dataset: observable 'y': missing; there are 'x'"),
        ({"x": [1.0], "y": [3.0]}, 1 / Y, r"observable 'y': 1 of 1 events lie outside \[1.0, 2.0\]"),
        (TABLE, 1 / (X - 2), "dataset: weights: 1 of 3 weights are not finite"),
        (TABLE, X * mf.Parameter("a", 1.0), "weights: must be a formula of observables alone, got the parameters 'a'; write"),
        (TABLE, X.expr * 0 + mf.Parameter("a", 1.0), "formula of observables alone, got the parameters 'a'"),
        (TABLE, 1 / mf.Observable("x", 0.0, 2.0), r"observable 'x': 1 of 3 events lie outside \[0.0, 2.0\]"),
    ],
)  # fmt: skip
def test_formulas_that_give_no_weights_are_refused(source, weights, message):
    with pytest.raises(mf.DataError, match=message):
        mf.Dataset(source, X, weights=weights)


def test_a_column_that_is_not_there_is_named_without_observables_as_well():
    with pytest.raises(mf.DataError, match="dataset: weights: no column 'y'"):
        mf.Dataset({"x": [1.0]}, weights=1 / Y)
    with pytest.raises(mf.DataError, match="dataset: weights: no column 'y'"):
        mf.Dataset({"x": [1.0]}).with_weights(Y)


def test_a_formula_without_observables_is_refused():
    with pytest.raises(
        mf.DataError, match=r"must be a formula of observables, got .*, which has none; a factor"
    ):
        mf.Dataset(TABLE, weights=const(2.0))


def test_what_is_no_formula_is_none():
    assert weight_formula("w") is None and weight_formula([1.0]) is None and weight_formula(None) is None
    assert {o.name for o in observables_of(weight_formula(X / Y))} == {"x", "y"}
