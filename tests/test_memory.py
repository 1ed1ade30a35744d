"""Memory of columns is used again when nobody refers to it, and read where it is if vectors can."""

import gc

import numpy as np
import pytest

import morefit as mf
from morefit.resources import (
    LARGE,
    PADDING,
    Block,
    aligned,
    can_read_past,
    concatenate,
    free_memory,
    max_free,
    take_rows,
)
from morefit.targets.cpu.columns import CpuColumn

COUNT = LARGE // 8


def address(array):
    return array.ctypes.data


@pytest.fixture(autouse=True)
def nothing_free():
    Block.free.clear()
    yield
    Block.free.clear()


def test_large_memory_is_used_again_once_no_part_of_it_is_in_use():
    array = aligned(COUNT)
    place, part = address(array), array[5:7].reshape(2, 1)
    del array
    assert address(aligned(COUNT)) != place
    part[:] = 3.0
    del part
    assert address(aligned(COUNT)) == place


def test_memory_that_is_much_too_large_or_too_small_is_left_to_others():
    places = {address(aligned(count)) for count in (2 * COUNT, COUNT)}
    middle = aligned(int(1.5 * COUNT))
    assert address(middle) not in places


def test_free_memory_is_limited(monkeypatch):
    monkeypatch.setattr("morefit.resources.max_free", lambda: 3 * LARGE)
    for array in [aligned(COUNT) for _ in range(5)]:
        del array
    assert 0 < sum(one.size for one in Block.free.values()) <= 3 * LARGE
    assert max_free() > 0


def test_a_study_takes_over_the_memory_of_the_one_before(monkeypatch):
    """This used to wait for a garbage collection: a study of ten toys of 10^6 events took half as long again for new pages."""
    wanted = []

    def recorded(size):
        found = free_memory(size)
        wanted.append(found is not None)
        return found

    monkeypatch.setattr("morefit.resources.free_memory", recorded)
    x, slope = mf.Observable("x", 0.0, 1.0), mf.Parameter("slope", 0.5, -0.9, 0.9)
    model = mf.Density(1 + slope * x, [x])
    gc.collect()
    gc.disable()
    try:
        for seed in (1, 2, 3):
            mf.toy_study(model, toys=2, events=2 * COUNT, seed=seed, backend=mf.Cpu(threads=1))
    finally:
        gc.enable()
    first, *others = np.array_split(wanted, 3)
    assert not any(first)
    assert all(map(np.all, others))


def test_columns_are_read_where_they_are_only_if_numbers_follow_them():
    array = aligned(COUNT + PADDING)
    array[:] = 1.0
    assert can_read_past(array[:COUNT]) and can_read_past(array[8:COUNT])
    assert not can_read_past(array[: COUNT + 1])  # too few follow
    assert not can_read_past(array[1:COUNT])  # not on a cache line
    assert not can_read_past(array[: COUNT // 2 : 2])
    assert not can_read_past(array.view(np.int64)[:COUNT])
    assert not can_read_past(np.ones(COUNT + PADDING)[:COUNT])


def test_large_data_are_copied_once():
    x = mf.Observable("x", 0.0, 1.0)
    numbers = np.linspace(0, 1, COUNT)
    data = mf.Dataset(numbers, x)
    numbers[:] = 7.0
    assert data["x"].max() == 1.0 and not data["x"].flags.writeable
    drawn = mf.generate(mf.Uniform(x), COUNT + 3, seed=1)
    for column in (data["x"], drawn["x"], drawn[: COUNT // 2]["x"]):
        assert address(CpuColumn.of(column).numbers) == address(column)
    assert address(CpuColumn.of(data[5:]["x"]).numbers) != address(data[5:]["x"])


@pytest.mark.parametrize("lengths", [(3,), (0, 2, 0), (COUNT, 5, COUNT + 1, 7), tuple(range(2000))])
def test_joined_columns_can_be_read_where_they_are(lengths):
    columns = [np.full(length, float(k)) for k, length in enumerate(lengths)]
    joined = concatenate(columns)
    np.testing.assert_array_equal(joined, np.repeat(np.arange(len(lengths)), lengths))
    assert can_read_past(joined)


def test_rows_of_a_table_can_be_read_where_they_are():
    table = np.arange(12.0).reshape(4, 3)
    taken = take_rows(table, np.array([2, 0]))
    assert taken.tolist() == [[6, 7, 8], [0, 1, 2]] and can_read_past(taken.ravel())
    assert np.shares_memory(take_rows(table, np.arange(4)), table)
    assert take_rows(table, np.array([3, 2, 1, 0])).tolist() == table[::-1].tolist()
