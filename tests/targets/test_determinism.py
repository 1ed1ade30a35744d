"""The same question has the same answer, to the last bit."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
from launching import KINDS, Layout, bind, model_of, sums_of, values_of

import morefit as mf
from ensembles import ensemble_of, fit_rows
from morefit.pipeline import Columns
from morefit.targets.cpu import compile as machine_code
from morefit.targets.cpu.run import Cpu
from zoo import around, mass

EVENTS = 30_001
SETS = 17
RAGGED = (0, 1, 9000, 7, 4096, 5001)
models = pytest.mark.parametrize("name", ["mass", "kstarmumu", "numerical"])


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.view(np.int64), b.view(np.int64))


@pytest.mark.parametrize("kind", KINDS)
@models
def test_any_number_of_threads_gives_the_same_bits(name, kind):
    x = around(model_of(name)[2], 3)
    found = [bind(sums_of(name, kind, False, Cpu(threads=n)), name, Layout(EVENTS))(x) for n in (1, 2, 3, 4)]
    for other in found[1:]:
        assert_same_bits(found[0], other)


def test_programs_are_compiled_anew_where_tests_switch_the_optimisation(monkeypatch):
    # programs of one thread were those of another file, at its level, and had other bits than those of two threads
    before = sums_of("mass", "value", False, Cpu(threads=1))
    monkeypatch.setattr(machine_code, "LEVEL", 2 - machine_code.LEVEL)
    assert sums_of("mass", "value", False, Cpu(threads=1)) is not before


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bits_for_many_parameters():
    x = around(model_of("many")[2], 2)
    found = [
        bind(sums_of("many", "hessian", True, Cpu(threads=n)), "many", Layout(9001, True)) for n in (1, 3)
    ]
    assert_same_bits(found[0](x), found[1](x))


def test_threads_do_share_the_work(monkeypatch):
    """Without this the tests above might compare one thread with itself."""
    compiled = sums_of("mass", "value", False, Cpu(threads=3))
    launch = bind(compiled, "mass", Layout(EVENTS)).launch
    launch(around(model_of("mass")[2], 1))
    (space,) = launch.free[1, EVENTS]
    assert space.threads == 3


def test_workspaces_serve_other_data_of_the_same_size(fast):
    """Fits of toys take over the memory of those before, but neither their columns nor their sums."""
    likelihoods = [
        mf.Likelihood(mass()[0], mass(n, seed)[1], backend=fast) for n, seed in ((500, 1), (500, 2), (501, 3))
    ]
    x = likelihoods[0].points([p.start for p in likelihoods[0].parameters])[0]
    alone = [one.evaluate_full(x, 2) for one in likelihoods]
    for k in (0, 1, 2, 1, 0):
        again = likelihoods[k].evaluate_full(x, 2)
        assert_same_bits(again.value, alone[k].value)
        assert_same_bits(again.hessian, alone[k].hessian)
    assert len({float(one.value[0]) for one in alone}) == 3


def test_workspaces_do_not_keep_columns():
    likelihood = mf.Likelihood(mass()[0], mass(700, 5)[1], backend=Cpu(threads=1))
    likelihood.value([p.start for p in likelihood.parameters])
    launch = likelihood.program(0).launch
    columns = [weakref.ref(column) for column in launch.columns]
    assert launch.program.spaces
    del likelihood, launch
    gc.collect()
    assert not any(column() for column in columns)


@pytest.mark.parametrize("kind", ["value", "hessian", "fisher"])
@models
def test_a_batch_may_be_split_in_any_way(name, kind, fast):
    bound = bind(sums_of(name, kind, False, fast), name, Layout(5000))
    x = around(model_of(name)[2], SETS)
    whole = bound(x)
    for pieces in ((1,) * SETS, (5, 12), (8, 8, 1), (16, 1)):
        parts = np.split(x, np.cumsum(pieces)[:-1])
        assert_same_bits(whole, np.concatenate([bound(part) for part in parts]))


@models
def test_a_batch_of_densities_may_be_split_in_any_way(name, fast):
    bound = bind(values_of(name, fast), name, Layout(5000))
    x = around(model_of(name)[2], 5)
    assert_same_bits(bound(x), np.concatenate([bound(row[None]) for row in x]))


@models
def test_sets_with_events_of_their_own_give_what_each_gives_alone(name, fast):
    model, data, values = model_of(name)
    compiled = sums_of(name, "hessian", False, fast)
    x = around(values, len(RAGGED))
    whole = bind(compiled, name, Layout(RAGGED))(x)
    events = Layout(RAGGED).events
    for k, (low, high) in enumerate(zip(events.starts, events.stops, strict=True)):
        columns = {o.name: np.resize(data[o.name], events.count)[low:high] for o in model.observables}
        alone = compiled.bind(Columns(columns), Layout(int(high - low)).events)(x[k : k + 1])
        assert_same_bits(whole[k : k + 1], alone)


def test_the_order_of_the_sets_does_not_matter(fast):
    bound = bind(sums_of("mass", "hessian", False, fast), "mass", Layout(5000))
    x = around(model_of("mass")[2], SETS)
    assert_same_bits(bound(x)[::-1], bound(x[::-1]))


@models
def test_repeated_runs_give_the_same_bits(name, fast):
    bound = bind(sums_of(name, "hessian", False, fast), name, Layout(EVENTS))
    x = around(model_of(name)[2], 3)
    first = bound(x)
    for _ in range(20):
        assert_same_bits(first, bound(x))


@pytest.mark.parametrize("name", ["mass", "kstarmumu"])
def test_toys_do_not_depend_on_those_fitted_before_in_the_same_memory(name):
    model = model_of(name)[0]
    start = {p.name: p.start for p in model.parameters}
    sizes = [np.array(s) for s in ([5000] * 4, [700, 90, 4096, 100], [3000, 1, 900], [0, 30])]

    def make():
        return ensemble_of(model, start, start, 3, Cpu(threads=3))

    used = make()
    for some in sizes:
        np.testing.assert_array_equal(fit_rows(used, some), fit_rows(make(), some))


KERNEL = """
define double @f(double %a, double %b) {
  %c = fmul contract double %a, %b
  %d = fadd contract double %c, %b
  ret double %d
}
"""
FIRST_AND_LATER = """
import sys
from morefit.targets.cpu import compile as machine_code
machine_code.LEVEL = 0  # at which LLVM selects instructions in another way, unless it is told not to
machine_code.host()
first, _, later = (machine_code.build_object(sys.argv[1], driver=driver) for driver in (False, True, False))
print(first == later)
"""


def test_machine_code_does_not_depend_on_what_was_compiled_before():
    # at the lowest level a kernel was another one before the first driver of a process than after it
    command = [sys.executable, "-c", FIRST_AND_LATER, KERNEL]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
