"""Compiled likelihoods live well with processes, threads, the interpreter and the memory."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from zoo import ZOO, around, gaussian, mass, numerical

PAGE = resource.getpagesize()
MEGABYTE = 2**20
LEAK = 20 * MEGABYTE  # what the allocator may keep without anything being lost
HERE = Path(__file__).parents[1]


def resident() -> int:
    """Return the bytes this process holds in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def evaluated(nll, x):
    return nll.value(x).hex(), nll.hessian(x).tobytes()


def evaluate_in_child(nll, x, queue):
    queue.put(evaluated(nll, x))


def mass_likelihood(n=50_000, threads=2):
    model, data, x = mass(n)
    return mf.Likelihood(model, data, backend=Cpu(threads=threads)), x


# ------------------------------------------------------------------------------------------ processes


def test_a_forked_child_evaluates_with_threads_of_its_own():
    nll, x = mass_likelihood()
    before = evaluated(nll, x)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
        child = context.Process(target=evaluate_in_child, args=(nll, x, queue))
        child.start()
    found = queue.get()
    child.join(30)
    assert child.exitcode == 0
    assert found == before
    assert evaluated(nll, x) == before


def test_a_child_forked_during_an_evaluation_is_not_stuck():
    """Another thread may hold any of our locks, or wait in our queue, at that moment."""
    nll, x = mass_likelihood(200_000)
    expected = nll.value(x)
    stop = threading.Event()

    def keep_busy():
        number = 0
        while not stop.is_set():
            nll.value(x)
            number += 1
            other = mf.Likelihood(gaussian(10)[0], gaussian(10)[1], backend=Cpu(threads=2))
            other.program(number % 3)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                faulthandler.dump_traceback_later(10, file=sys.__stderr__)  # says where it is stuck
                signal.alarm(20)
                os._exit(0 if nll.value(x) == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


def test_issue_a_child_forked_while_code_is_freed_can_compile():
    """LLVM's own lock was held at that moment, by a thread that the child does not have."""
    program = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
from morefit.targets.cpu import compile as machine
machine.MAX_PROGRAMS = 1
stop = threading.Event()
def compile_function(name):
    return machine.find_code(f"define void @{name}(ptr %x) {{ ret void }}", (name,))
def keep_busy():
    number = 0
    while not stop.is_set():
        number += 1
        code = compile_function(f"f{number % 40}")
        compile_function("another")
        del code  # nobody else has it
busy = threading.Thread(target=keep_busy)
busy.start()
stuck = 0
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        compile_function("of_the_child")
        os._exit(0)
    stuck = os.waitpid(child, 0)[1]
    if stuck:
        break
stop.set()
busy.join()
sys.exit(stuck != 0)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_issue_a_child_forked_while_the_compiler_is_imported_can_compile():
    """The lock of an import that was under way belonged to a thread that the child does not have."""
    program = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
from morefit.targets.cpu import compile as machine
importing = threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "morefit.targets.cpu.codegen" and not importing.is_set():
            importing.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slow())
def compile_function(name):
    return machine.find_code(f"define void @{name}(ptr %x) {{ ret void }}", (name,))
other = threading.Thread(target=compile_function, args=("of_the_parent",))
other.start()
importing.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    compile_function("of_the_child")
    os._exit(0)
stuck = os.waitpid(child, 0)[1]
other.join()
sys.exit(stuck != 0)
"""
    environment = {**os.environ, "MOREFIT_CACHE_DIR": ""}  # the compiler is not wanted where code is on disk
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0


def test_a_child_forked_while_compiling_can_compile():
    """This used to wait for ever for a lock that only the parent could open."""
    program = """
import os, signal, sys, threading, time, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
import morefit as mf
from morefit.targets.cpu import compile as machine
from zoo import mass, gaussian
real, started = machine.build_object, threading.Event()
def slow(*arguments, **options):
    started.set()
    time.sleep(1.0)
    return real(*arguments, **options)
model, data, x = mass(100)
machine.build_object = slow
thread = threading.Thread(target=lambda: mf.Likelihood(model, data, backend=mf.Cpu(threads=2)).value(x))
thread.start()
started.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    machine.build_object = real
    model, data, x = gaussian(100)
    os._exit(0 if mf.Likelihood(model, data, backend=mf.Cpu(threads=2)).value(x) > 0 else 1)
status = os.waitpid(child, 0)[1]
thread.join()
sys.exit(status != 0)
"""
    environment = os.environ | {"MOREFIT_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", program, str(HERE)], env=environment, check=True, timeout=60)


def value_in_worker(nll, x):
    return nll.value(x).hex()


def test_a_spawned_pool_takes_models_likelihoods_and_results():
    jobs = []
    for build in (mass, numerical):
        model, data, x = build(2000)
        jobs.append((mf.Likelihood(model, data, backend=Cpu(threads=1)), x))
    expected = [value_in_worker(*job) for job in jobs]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(value_in_worker, *zip(*jobs, strict=True))) == expected


@pytest.mark.parametrize("name", [n for n in ZOO if n != "many"])
def test_pickled_likelihoods_give_the_same_bits(name):
    model, data, x = ZOO[name](300)
    nll = mf.Likelihood(model, data, backend=Cpu(threads=1))
    before = evaluated(nll, x)
    copy = pickle.loads(pickle.dumps(nll))
    assert evaluated(copy, x) == before
    assert copy.parameters == nll.parameters


def test_a_pickled_model_is_the_same_model():
    model, data, x = mass(300)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.log_intensity() is model.log_intensity()
    assert mf.Likelihood(copy, data).value(x) == mf.Likelihood(model, data).value(x)


def test_fit_results_survive_pickling():
    model, data, _ = mass(3000)
    result = mf.fit(model, data)
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result)
    np.testing.assert_array_equal(copy.covariance, result.covariance)


# -------------------------------------------------------------------------------------------- threads


def count_during(function):
    """Count what another thread does while a function runs."""
    counts, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counts[0] += 1
            time.sleep(1e-4)

    thread = threading.Thread(target=count)
    thread.start()
    before, began = counts[0], time.perf_counter()
    function()
    seconds, counted = time.perf_counter() - began, counts[0] - before
    stop.set()
    thread.join()
    return counted, seconds


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [10**6, pytest.param(10**7, marks=pytest.mark.exhaustive)])
def test_other_threads_run_during_an_evaluation(n, threads):
    model, data, x = gaussian(n)
    nll = mf.Likelihood(model, data, backend=Cpu(threads=threads))
    nll.hessian(x)
    sets = around(x, 3 * 10**8 // n)  # one call of a fraction of a second
    counted, seconds = count_during(lambda: nll.hessian(sets))
    assert counted > 50 * seconds  # about 5000 a second on an idle machine; none with the interpreter locked


def test_many_threads_may_call_one_likelihood():
    nll, x = mass_likelihood(20_000)
    sets = around(x, 40)
    expected = [evaluated(nll, row) for row in sets]
    fresh, _ = mass_likelihood(20_000)  # not compiled yet: threads race for that too
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda row: evaluated(fresh, row), sets)) == expected


def test_many_threads_may_call_one_likelihood_with_batches_of_different_sizes():
    nll, x = mass_likelihood(5_000)
    batches = [around(x, 1 + k % 13, seed=k) for k in range(60)]
    expected = [nll.value(batch).tobytes() for batch in batches]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda batch: nll.value(batch).tobytes(), batches)) == expected


def test_an_interrupt_waits_for_the_threads():
    """Memory must not go while a thread still writes to it; what comes after is right."""
    program = """
import signal, sys
sys.path.insert(0, sys.argv[1])
import morefit as mf
from morefit.targets.cpu import workspace
from zoo import around, mass
workspace.WORTH_THREADS = 0
model, data, x = mass(100_000)
nll = mf.Likelihood(model, data, backend=mf.Cpu(threads=4))
sets = around(x, 8)
expected = nll.value(sets).tobytes()
interrupted = 0
def stop(*args):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
for k in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + 5e-5 * (k % 40))
        found = nll.value(sets)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert found.tobytes() == expected
    except KeyboardInterrupt:
        interrupted += 1
assert interrupted > 10, interrupted
assert nll.value(sets).tobytes() == expected
"""
    subprocess.run([sys.executable, "-c", program, str(HERE)], check=True, timeout=100)


# ------------------------------------------------------------------------------- floating-point state


@pytest.mark.parametrize("threads", [1, 2])
def test_denormals_still_exist_after_an_evaluation(threads):
    nll, x = mass_likelihood(threads=threads)
    nll.hessian(x)
    nll.per_event(x)
    tiny = np.array([np.finfo(float).tiny])
    assert (tiny / 4 != 0).all()
    assert (tiny / 4 * 4 == tiny).all()
    assert 5e-324 * 1.0 == 5e-324


def test_denormals_still_exist_in_a_python_thread_that_evaluated():
    nll, x = mass_likelihood()

    def evaluate_and_halve():
        nll.value(x)
        return float(np.array([np.finfo(float).tiny])[0] / 2)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.submit(evaluate_and_halve).result() > 0 for _ in range(4))


# --------------------------------------------------------------------------------------------- memory


def growth(step, warm, count):
    """Return how much memory is gained by doing something many times more."""
    for k in range(warm):
        step(k)
    gc.collect()
    before = resident()
    for k in range(warm, warm + count):
        step(k)
    gc.collect()
    return resident() - before


def test_memory_is_flat_over_many_evaluations():
    nll, x = mass_likelihood(10_000)
    sets = around(x, 17)

    def step(k):
        nll.value(sets[: 1 + k % 17])
        nll.hessian(x)

    assert growth(step, 100, 700) < LEAK  # one column of 80 kB in each would be 56 MB


@pytest.mark.slow
def test_memory_is_flat_over_many_likelihoods_of_one_model():
    model, data, x = mass(10_000)

    def step(k):
        mf.Likelihood(model, data, backend=Cpu(threads=1)).value(x)

    assert growth(step, 200, 700) < LEAK


def test_a_likelihood_gives_its_memory_back_at_once():
    """No cycle may keep large columns until the collector comes around."""
    model, data, x = mass(10**6)
    gc.collect()
    gc.disable()
    try:
        mf.Likelihood(model, data, backend=Cpu(threads=1)).value(x)
        before = resident()
        for _ in range(5):
            mf.Likelihood(model, data, backend=Cpu(threads=1)).value(x)
        gained = resident() - before
    finally:
        gc.enable()
    assert gained < LEAK


@pytest.mark.exhaustive
def test_memory_is_flat_over_many_models():
    """Each is compiled; those beyond the bounds of the caches must go."""
    m = mf.Observable("m", 0.0, 10.0)
    data = {"m": np.linspace(0.1, 9.9, 1000)}

    def step(k):
        model = mf.Gaussian(m, mf.Parameter("mu", 5.0 + 1e-3 * k), 1.0 + 1e-3 * k)
        mf.Likelihood(model, data, backend=Cpu(threads=1)).gradient([5.0])

    assert growth(step, 300, 300) < LEAK


def test_the_reference_needs_no_threads():
    model, data, x = mass(100)
    before = threading.active_count()
    mf.Likelihood(model, data, backend=Reference()).value(x)
    assert threading.active_count() == before
