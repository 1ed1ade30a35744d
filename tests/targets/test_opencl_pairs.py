"""Sums of many parameters on GPUs: products of pairs in shared memory, and more sums than there are registers."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import morefit as mf
from backend_rows import there
from morefit.kernel.ir import Kernel, Pairs
from morefit.targets.opencl import device as opencl_device
from morefit.targets.opencl.dialect import OPENCL_GPU
from morefit.targets.opencl.pairs import BANKS, PairSum, turns_at_banks
from morefit.targets.opencl.run import OpenCL
from morefit.targets.opencl.source import render
from morefit.targets.opencl.sums import TOGETHER, turns_of
from morefit.targets.reference.run import Reference
from tolerances import NUMPY_SUM

SHARED_BYTES = 48 << 10  # of a work-group, on NVIDIA's devices
GROUPS = (64, 128, 256)
X = mf.Observable("x", 0.0, 100.0)
SIZES = {"double": 8, "real": 8, "int": 4}


def peaks_of(parameters: int) -> mf.Pdf:
    """Return a model with three parameters for each peak, but for the last ones."""
    floating = [
        mf.Parameter(f"{name}{k}", start, low, high)
        for k in range(-(-parameters // 3))
        for name, start, low, high in (("n", 50.0, 0.0, 200.0), ("mu", 100 * (k + 0.5) / (parameters / 3), 0, 100), ("s", 2.0, 0.5, 5))
    ]  # fmt: skip
    peaks = [mf.Gaussian(X, floating[k + 1], floating[k + 2]) for k in range(0, len(floating), 3)]
    return mf.Sum(peaks, yields=floating[::3])


@cache
def kernel_of(parameters: int) -> Kernel:
    likelihood = mf.Likelihood(peaks_of(parameters), {"x": np.empty(0)}, backend=Reference())
    return likelihood.sums(2).program.kernel


def pair_sum(count: int, group: int, sides: int = 1, groups: int = 1) -> PairSum:
    names = tuple(f"x{k}" for k in range(count * groups))
    return PairSum(Pairs(names, names if sides > 1 else (), 0, 1.0, groups), group, OPENCL_GPU)


@pytest.mark.parametrize("parameters", [12, 30, 60, 90, 120, 150])
@pytest.mark.parametrize("group", GROUPS)
def test_shared_memory_is_enough_for_any_number_of_parameters(parameters, group):
    text = render(kernel_of(parameters), group, OPENCL_GPU)
    body = text[text.index("void sums(") : text.index("void combine(")]
    found = re.findall(r"__local (\w+) \w+\[(\d+)\]", body)
    assert len(found) == 2
    assert sum(SIZES[kind] * int(count) for kind, count in found) <= SHARED_BYTES


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("group", [16, *GROUPS])
@pytest.mark.parametrize("count", [2, 10, 17, 29, 61, 90, 200])
def test_no_other_distance_of_events_takes_fewer_turns(count, group, sides, groups):
    pairs = pair_sum(count, group, sides, groups)
    turns = pairs.bank_turns(pairs.pitch)
    least = pairs.row * groups + 1
    assert least <= pairs.pitch
    assert pairs.events * pairs.pitch <= pairs.room
    assert turns <= pairs.bank_turns(least)


def test_turns_at_banks_are_those_of_different_places_in_one_bank():
    assert turns_at_banks([5] * BANKS) == 1
    assert turns_at_banks(range(BANKS)) == 1
    assert turns_at_banks([BANKS * k for k in range(BANKS)]) == BANKS
    assert turns_at_banks([*range(BANKS), 0, BANKS]) == 3


@pytest.mark.parametrize("parameters", [6, 60, 150])
def test_every_sum_is_taken_in_one_loop(parameters):
    kernel = kernel_of(parameters)
    turns = turns_of(kernel)
    assert [k for sums in turns for k in sums] == list(range(len(kernel.sums.results)))
    assert max(map(len, turns)) <= TOGETHER
    assert (len(turns) > 1) == (len(kernel.sums.results) > TOGETHER)
    assert len(turns) == 1 or not turns[-1]


@pytest.mark.parametrize("group", [16, *GROUPS])
@pytest.mark.parametrize("parameters", [12, 18, 33, 60, 90])
def test_sums_of_many_parameters_agree_with_those_of_the_reference(parameters, group, monkeypatch):
    there(OpenCL())
    monkeypatch.setattr(opencl_device.Device, "dialect", OPENCL_GPU)
    model = peaks_of(parameters)
    data = {"x": np.random.default_rng(parameters).uniform(0.0, 100.0, 777)}
    at = np.array([p.start for p in model.parameters])
    weights = np.linspace(0.5, 1.5, 777)
    for own in (None, weights):
        usual, other = (
            mf.Likelihood(model, data, weights=own, backend=b)
            for b in (Reference(), OpenCL(work_group=group))
        )
        exact, found = usual.hessian(at), other.hessian(at)
        np.testing.assert_allclose(found, exact, rtol=NUMPY_SUM, atol=NUMPY_SUM * np.abs(exact).max())
