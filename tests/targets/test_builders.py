"""Processes that build texts for this one: of LLVM, and of OpenCL with what driver there is, since they are the same for all."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend_rows import there
from morefit.errors import CompileError
from morefit.targets import builders as all_builders
from morefit.targets.ahead import compile_ahead, wait_for_all
from morefit.targets.builders import Builders, Helper, spare_cores
from morefit.targets.cpu import compile as machine
from morefit.targets.cpu.builder import with_ways
from morefit.targets.cpu.builders import builders_for as llvm_builders
from morefit.targets.opencl.builders import builders_for, helpful, opencl_library
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.discover import choose_device
from morefit.targets.opencl.programs import Programs
from morefit.targets.opencl.run import OpenCL
from pocl_processor import name_processor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="such processes are started on Linux only")
TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void twice(__global double *x) { x[get_global_id(0)] *= 2.0; }
"""
IR = "define double @twice(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}\n"
SOON = 30.0  # seconds


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    there(OpenCL())
    if name_processor():
        pytest.skip("PoCL does not know this processor, and another process cannot be told its name")
    info, driver = choose_device(None, None)
    opened = Device(info, driver)
    library = opencl_library()
    assert library is not None
    # the driver that comes with pyopencl is found by its extension module alone
    monkeypatch.setenv("LD_LIBRARY_PATH", str(Path(library).parent))
    return opened


@pytest.fixture(params=["llvm", "opencl"])
def kind(request: pytest.FixtureRequest) -> tuple[Builders, str]:
    """One process that could build, and a text for it."""
    if request.param == "llvm":
        return llvm_builders(machine.host(), machine.LEVEL, count=1), with_ways(IR, driver=False, loops=False)
    device = request.getfixturevalue("device")
    return builders_for(device.info, device.device.driver_version, count=1), TEXT


@pytest.fixture
def started(kind: tuple[Builders, str]) -> Iterator[tuple[Builders, Helper, str]]:
    """One process beside this one, which is ready, and a text for it."""
    builders, text = kind
    builders.start()
    (helper,) = builders.helpers
    wait_until(lambda: helper.is_ready() or helper.ended)
    assert helper.is_ready()
    yield builders, helper, text
    builders.end()


def wait_until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# ------------------------------------------------------------------------------------ any kind


def test_what_cannot_be_built_says_so(started: tuple[Builders, Helper, str]) -> None:
    _, helper, text = started
    assert helper.build("\nno text of a kernel") is None
    assert helper.build(text)  # it goes on


def test_a_process_that_has_ended_is_not_missed(started: tuple[Builders, Helper, str]) -> None:
    builders, helper, text = started
    with builders.turn() as taken:
        assert taken is helper
        os.kill(helper.process.pid, signal.SIGKILL)
        assert helper.build(text) is None
    wait_until(lambda: helper.ended)
    with builders.turn() as taken:
        assert taken is None
    assert builders.helpers == []
    builders.start()
    assert len(builders.helpers) == 1


def test_a_process_ends_with_this_one(started: tuple[Builders, Helper, str]) -> None:
    _, helper, _ = started
    helper.close()
    wait_until(lambda: helper.ended)
    assert helper.process.returncode == 0


def test_an_interrupted_build_ends_the_process(
    started: tuple[Builders, Helper, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(pipe: object) -> bytes:
        raise KeyboardInterrupt

    _, helper, text = started
    monkeypatch.setattr(all_builders, "read_piece", interrupted)
    with pytest.raises(KeyboardInterrupt):
        helper.build(text)
    wait_until(lambda: helper.ended)


def test_a_process_survives_what_interrupts_this_one(started: tuple[Builders, Helper, str]) -> None:
    _, helper, text = started
    os.kill(helper.process.pid, signal.SIGINT)
    assert helper.build(text)


def test_this_process_builds_one_text_while_others_build(started: tuple[Builders, Helper, str]) -> None:
    builders, helper, _ = started
    with ExitStack() as turns:
        assert turns.enter_context(builders.turn()) is helper
        assert turns.enter_context(builders.turn()) is None
        assert builders.builds_itself
        assert builders.building == 2
    assert not builders.builds_itself
    assert builders.idle == [helper]


def test_processes_are_started_until_some_have_no_text(started: tuple[Builders, Helper, str]) -> None:
    builders, helper, _ = started
    builders.count = 2
    builders.start(wanted=1)
    assert builders.helpers == [helper]
    with builders.turn():
        builders.start(wanted=1)
        assert len(builders.helpers) == 2
        builders.start(wanted=2)
        assert len(builders.helpers) == 2


@pytest.mark.parametrize("waits", [True, False])
def test_while_nobody_waits_python_has_a_core(started: tuple[Builders, Helper, str], waits: bool) -> None:
    builders, _, _ = started
    builders.at_once = 1
    taken = threading.Event()

    def take() -> None:
        with builders.turn():
            taken.set()

    with builders.turn():
        thread = compile_ahead(take)
        if thread is None:
            pytest.skip("needs two cores")
        if waits:
            with builders.waited_for():
                assert taken.wait(SOON)
        else:
            assert not taken.wait(0.2)
    assert taken.wait(SOON)
    wait_for_all()


def test_without_such_processes_all_threads_build(kind: tuple[Builders, str]) -> None:
    builders, _ = kind
    builders.count = 0
    builders.start()
    with builders.turn() as first, builders.turn() as second:
        assert first is second is None


def test_how_many_cores_are_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in all_builders.NUMBERS_OF_RANKS:
        monkeypatch.delenv(name, raising=False)
    for cores in (1, 2, 16):
        monkeypatch.setattr(all_builders, "available_cores", lambda n=cores: n)
        assert spare_cores() == cores - 1
    monkeypatch.setattr(sys, "executable", "/usr/bin/root.exe")
    assert spare_cores() == 0


def test_workers_start_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_builders, "available_cores", lambda: 16)
    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
    assert spare_cores() == 0


@pytest.mark.parametrize("name", all_builders.NUMBERS_OF_RANKS)
def test_ranks_of_one_job_start_no_processes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_builders, "available_cores", lambda: 16)
    for ranks, spare in (("1", 15), ("4", 0)):
        monkeypatch.setenv(name, ranks)
        assert spare_cores() == spare


# ------------------------------------------------------------------------------------ LLVM


@pytest.mark.parametrize("driver", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_another_process_writes_the_same_machine_code(driver: bool, loops: bool) -> None:
    builders = llvm_builders(machine.host(), 2, count=1)
    builders.start()
    (helper,) = builders.helpers
    wait_until(helper.is_ready)
    there = helper.build(with_ways(IR, driver=driver, loops=loops))
    builders.end()
    from morefit.targets.cpu import codegen

    assert there == codegen.build_object(IR, machine.host(), driver=driver, loops=loops, level=2)


def test_code_is_found_that_another_process_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from morefit.targets.cpu import codegen

    builders = llvm_builders(machine.host(), machine.LEVEL, count=1)
    monkeypatch.setattr(machine, "own_builders", lambda: builders)
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(codegen, "build_object", None)  # not here
    machine.expect_text()
    wait_until(builders.helpers[0].is_ready)
    code = machine.find_code(IR + f"; {tmp_path}", ["twice"])
    builders.end()
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.addresses["twice"])
    assert function(1.5) == 3.0


def test_no_process_compiles_what_is_not_optimised() -> None:
    assert llvm_builders(machine.host(), 0).count == 0


def test_a_first_fit_and_its_child_leave_no_process_behind() -> None:
    """The child of a process that forks has no part in what builds for its parent."""
    program = """
import os, sys, warnings
warnings.simplefilter("ignore")
import morefit as mf
from morefit.targets import builders
from morefit.targets.cpu import compile as machine
builders.available_cores = lambda: 2
def fit(name):
    x, k = mf.Observable(name, 0.0, 1.0), mf.Parameter("k", -1.0, -5.0, 5.0)
    return mf.fit(mf.Exponential(x, k), {name: [0.1, 0.2, 0.5, 0.7]}).valid
assert fit("x")
helpers = machine.own_builders().helpers
assert len(helpers) == 1
child = os.fork()
if child == 0:
    inherited = machine.own_builders().helpers
    os._exit(0 if inherited == [] and fit("y") else 1)
assert os.waitpid(child, 0)[1] == 0
print(helpers[0].process.pid)
"""
    environment = {k: v for k, v in os.environ.items() if k != "MOREFIT_LLVM_LEVEL"} | {
        "MOREFIT_CACHE_DIR": ""
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert not Path(f"/proc/{done.stdout.strip()}").exists()


# ------------------------------------------------------------------------------------ OpenCL


def doubled(device: Device, program: object) -> list[float]:
    buffer, numbers = device.send(np.array([1.5, -2.0])), np.empty(2)
    kernel = device.cl.Kernel(program, "twice")
    kernel.set_arg(0, buffer)
    device.run(kernel, 2, 1)
    device.read(buffer, numbers)
    return numbers.tolist()


@pytest.fixture
def helped(device: Device) -> Iterator[Programs]:
    """Programs with one process beside this one, which is ready."""
    programs = device.programs
    programs.builders = builders_for(device.info, device.device.driver_version, count=1)
    programs.builders.start()
    (helper,) = programs.builders.helpers
    wait_until(lambda: helper.is_ready() or helper.ended)
    assert helper.is_ready()
    yield programs
    programs.builders.end()


def test_another_process_builds(device: Device, helped: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Programs, "from_text", None)  # this process does not
    assert doubled(device, helped.build(TEXT)) == [3.0, -4.0]
    assert doubled(device, helped.build(TEXT + "// once more")) == [3.0, -4.0]


def test_a_text_that_no_process_builds_is_refused(helped: Programs) -> None:
    with pytest.raises(CompileError, match="refused the text"):
        helped.build("no text of a kernel")


@pytest.mark.parametrize("wrong", ["name", "version", "number"])
def test_another_device_is_not_built_for(device: Device, wrong: str) -> None:
    info = {
        "name": replace(device.info, name="another"),
        "version": device.info,
        "number": replace(device.info, device=63),
    }[wrong]
    version = "another" if wrong == "version" else device.device.driver_version
    builders = builders_for(info, version, count=2)
    builders.start()
    wait_until(lambda: all(helper.ended for helper in builders.helpers))
    with builders.turn() as helper:
        assert helper is None
    assert builders.helpers == builders.idle == []


def test_how_many_help(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia = replace(device.info, platform_name="NVIDIA CUDA", memory=80 << 30)
    monkeypatch.setattr(all_builders, "available_cores", lambda: 16)
    assert helpful(nvidia) == 3
    assert helpful(replace(nvidia, memory=6 << 30)) == 1
    assert helpful(replace(nvidia, platform_name="AMD Accelerated Parallel Processing")) == 0
    monkeypatch.setattr(all_builders, "available_cores", lambda: 2)
    assert helpful(nvidia) == 1
