"""Arrays of results are indexed by parameters and names as well as by numbers."""

import copy
import pickle

import numpy as np
import pytest

import morefit as mf
from fit_results import GOOD
from morefit.records.named_arrays import by_names

MU, SIGMA = mf.Parameter("mu", 0.0), mf.Parameter("sigma", 1.0)
TABLE = np.arange(12.0).reshape(6, 2)
VALUES = by_names(TABLE, ["mu", "sigma"])
MATRIX = by_names(np.array([[1.0, 2.0], [2.0, 5.0]]), ["mu", "sigma"], 2)


def test_a_table_has_a_column_for_each_parameter():
    for key in ("sigma", SIGMA, (slice(None), "sigma"), (..., SIGMA)):
        np.testing.assert_array_equal(VALUES[key], TABLE[:, 1])
    np.testing.assert_array_equal(VALUES[["sigma", MU]], TABLE[:, [1, 0]])
    assert VALUES[3, "mu"] == TABLE[3, 0]


def test_a_matrix_has_a_row_and_a_column_for_each_parameter():
    assert MATRIX["mu", SIGMA] == 2.0
    np.testing.assert_array_equal(MATRIX[SIGMA], [2.0, 5.0])
    np.testing.assert_array_equal(MATRIX[["sigma", "mu"], ["sigma", "mu"]], [[5.0, 2.0], [2.0, 1.0]])


def test_numbers_slices_and_masks_work_as_in_numpy():
    for key in (0, -1, slice(1, 3), (2, 1), TABLE[:, 0] > 3, [0, 2], None, ...):
        np.testing.assert_array_equal(VALUES[key], TABLE[key])


@pytest.mark.parametrize(
    ("array", "key", "message"),
    [
        (VALUES, "nu", "parameter 'nu': not fitted; did you mean 'mu'?"),
        (MATRIX, ("mu", "nu"), "parameter 'nu': not fitted"),
        (VALUES, ("mu", "sigma"), r"takes names at place 1, got \('mu', 'sigma'\)"),
        (MATRIX, ("mu", "mu", "mu"), "takes names at place 0 and place 1, got"),
    ],
)
def test_names_that_are_not_there_are_answered_in_a_sentence(array, key, message):
    with pytest.raises(mf.ModelError, match=message):
        array[key]


def test_what_is_computed_with_them_is_a_plain_array():
    for plain in (MATRIX * 2, np.sqrt(MATRIX), np.linalg.inv(MATRIX), MATRIX @ MATRIX, 2 * MATRIX["mu"]):
        assert type(plain) is np.ndarray
    assert repr(MATRIX) == repr(np.asarray(MATRIX))


def test_names_survive_copies_and_pickles():
    for other in (copy.deepcopy(MATRIX), copy.copy(MATRIX), pickle.loads(pickle.dumps(MATRIX))):
        assert other["mu", "sigma"] == 2.0


def test_every_result_is_indexed_by_parameters():
    # result.covariance["mu", "sigma"] used to be an IndexError of NumPy
    names, two, flags = ("mu", "sigma"), np.array([[1.0, 0.5], [0.5, 4.0]]), np.ones(3, bool)
    table, whole = np.arange(6.0).reshape(3, 2), np.arange(3)
    toys = mf.ToyResults(names, {}, table, table, whole, whole, flags, 0 * whole, whole, 1)
    replicas = mf.intervals.Bootstrap(names, table[0], table, whole, flags, 1)
    information = mf.FisherInformation(names, {"mu": 1.0, "sigma": 2.0}, 10.0, two, 0.0, 1e-8)
    combined = mf.Combination(names, information.values, information.errors, two, two, 0.0, 0)
    for values in (toys.values, toys.errors, replicas.values, pickle.loads(pickle.dumps(toys)).values):
        assert values[SIGMA].tolist() == [1.0, 3.0, 5.0]
    for row in (replicas.best, replicas.errors, replicas.bias):
        assert row["sigma"] == row[1]
    others = mf.intervals.Profile("tau", whole, whole, names, table, flags, 1.0, 0.0, (0.0, 2.0)).others
    assert others["sigma"].tolist() == [1.0, 3.0, 5.0]
    impacts = mf.intervals.Impacts(
        "tau", 1.0, 0.1, names, *table[:1], *table[:1], *table[:1], *table[:1], two, two
    )
    assert (impacts.errors["sigma"], impacts.after[SIGMA].tolist()) == (1.0, [0.5, 4.0])
    for matrix in (GOOD.covariance, GOOD.correlation, information.matrix, information.covariance, combined.covariance, replicas.covariance):  # fmt: skip
        assert matrix[MU, "sigma"] == matrix[0, 1]
