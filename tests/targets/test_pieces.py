"""Columns of many arrays are found, checked and copied where they are, as numpy would."""

import numpy as np
import pytest

from morefit.targets.cpu import pieces as module
from morefit.targets.cpu.pieces import Pieces

RNG = np.random.default_rng(7)
SIZES = [3, 0, 1, 8, 100, 1001, 17]


@pytest.fixture
def arrays():
    return [RNG.uniform(-1.0, 2.0, size) for size in SIZES]


def test_numbers_follow_one_another_from_any_on(arrays):
    pieces, together = Pieces.of(arrays), np.concatenate(arrays)
    assert pieces.sizes.tolist() == SIZES
    assert pieces.count == len(together)
    np.testing.assert_array_equal(pieces.joined(), together)
    for first, count in [(0, 0), (0, 3), (2, 3), (3, 1), (5, 900), (len(together) - 1, 1)]:
        target = np.zeros(count)
        pieces.copy(first, target)
        np.testing.assert_array_equal(target, together[first : first + count])


def test_ranges_and_sums_are_those_of_each_array(arrays, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 64)  # some arrays have several
    monkeypatch.setattr(module, "WORTH_THREADS", 1)
    arrays[4][99], arrays[5][3], arrays[6][0] = np.nan, 2.5, -np.inf
    pieces = Pieces.of(arrays)
    totals, magnitudes = pieces.sums()
    assert pieces.are_inside(-1.0, 2.0).tolist() == [True, True, True, True, False, False, False]
    np.testing.assert_allclose(totals, [a.sum() for a in arrays], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(magnitudes, [np.abs(a).sum() for a in arrays], rtol=1e-12)


def test_some_pieces_tables_and_parts_of_one_array_are_found(arrays):
    some = Pieces.of(arrays).some(np.array([4, 0]))
    np.testing.assert_array_equal(some.joined(), np.concatenate([arrays[4], arrays[0]]))
    table = RNG.random((6, 5))
    np.testing.assert_array_equal(Pieces.rows(table[::2, 1:4]).joined(), table[::2, 1:4].ravel())
    cut = Pieces.cut(arrays[5], np.array([1, 0, 700, 300])).between(slice(1, 3))
    np.testing.assert_array_equal(cut.joined(), arrays[5][1:701])
    np.testing.assert_array_equal(cut.arrays[1], arrays[5][1:701])


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(3, np.float32), np.zeros(3, np.int64), np.zeros((2, 2)), np.array(1.0), np.zeros(8)[::2], [1.0, 2.0],
        np.zeros(3, np.dtype(np.float64).newbyteorder()), np.ma.masked_array([1.0, 2.0], [0, 1]),
        np.zeros(17, np.uint8)[1:].view(np.float64), np.zeros(2, np.complex64),
    ],
    ids=["single", "integers", "table", "number", "every second", "list", "byte order", "mask", "odd address", "complex"],
)  # fmt: skip
def test_anything_but_doubles_that_follow_one_another_is_not_taken(other):
    assert Pieces.of([np.zeros(3), other]) is None
    assert Pieces.rows(np.zeros((3, 4)).T) is None
