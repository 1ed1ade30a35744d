"""Processes that build texts for this one: with what driver there is, since they are the same for all."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend_rows import there
from morefit.errors import CompileError
from morefit.targets.opencl import builders as opencl_builders
from morefit.targets.opencl.builders import Builders, Helper, helpful, opencl_library
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.discover import choose_device
from morefit.targets.opencl.programs import Programs

pytestmark = pytest.mark.skipif(
    not there("opencl") or sys.platform != "linux", reason="needs OpenCL on Linux"
)
TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void twice(__global double *x) { x[get_global_id(0)] *= 2.0; }
"""
SOON = 30.0  # seconds


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    info, driver = choose_device(None, None)
    opened = Device(info, driver)
    library = opencl_library()
    assert library is not None
    # the driver that comes with pyopencl is found by its extension module alone
    monkeypatch.setenv("LD_LIBRARY_PATH", str(Path(library).parent))
    return opened


@pytest.fixture
def helped(device: Device) -> Iterator[Programs]:
    """Programs with one process beside this one, which is ready."""
    programs = device.programs
    programs.builders = Builders(device.info, device.device.driver_version, count=1)
    programs.builders.start()
    (helper,) = programs.builders.helpers
    wait_until(lambda: helper.is_ready() or helper.ended)
    assert helper.is_ready()
    yield programs
    programs.builders.end()


def wait_until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def doubled(device: Device, program: object) -> list[float]:
    buffer, numbers = device.send(np.array([1.5, -2.0])), np.empty(2)
    kernel = device.cl.Kernel(program, "twice")
    kernel.set_arg(0, buffer)
    device.run(kernel, 2, 1)
    device.read(buffer, numbers)
    return numbers.tolist()


def test_another_process_builds(device: Device, helped: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Programs, "from_text", None)  # this process does not
    assert doubled(device, helped.build(TEXT)) == [3.0, -4.0]
    assert doubled(device, helped.build(TEXT + "// once more")) == [3.0, -4.0]


def test_what_cannot_be_built_says_so(helped: Programs) -> None:
    with pytest.raises(CompileError, match="refused the text"):
        helped.build("no text of a kernel")
    (helper,) = helped.builders.helpers
    assert helper.build(TEXT)  # it goes on


def test_a_process_that_has_ended_is_not_missed(device: Device, helped: Programs) -> None:
    (helper,) = helped.builders.helpers
    with helped.builders.turn() as taken:
        assert taken is helper
        os.kill(helper.process.pid, signal.SIGKILL)
        assert helper.build(TEXT) is None
    wait_until(lambda: helper.ended)
    assert doubled(device, helped.build(TEXT)) == [3.0, -4.0]
    assert helped.builders.helpers == []
    helped.builders.start()
    assert len(helped.builders.helpers) == 1


def test_a_process_ends_with_this_one(device: Device) -> None:
    helper = Helper(str(opencl_library()), device.info, device.device.driver_version.strip())
    wait_until(helper.is_ready)
    helper.close()
    wait_until(lambda: helper.ended)
    assert helper.process.returncode == 0


def test_an_interrupted_build_ends_the_process(helped: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(pipe: object) -> bytes:
        raise KeyboardInterrupt

    (helper,) = helped.builders.helpers
    monkeypatch.setattr(opencl_builders, "read_piece", interrupted)
    with pytest.raises(KeyboardInterrupt):
        helper.build(TEXT)
    wait_until(lambda: helper.ended)


def test_a_process_survives_what_interrupts_this_one(helped: Programs) -> None:
    (helper,) = helped.builders.helpers
    os.kill(helper.process.pid, signal.SIGINT)
    assert helper.build(TEXT)


def test_this_process_builds_one_text_while_others_build(helped: Programs) -> None:
    (helper,) = helped.builders.helpers
    with ExitStack() as turns:
        assert turns.enter_context(helped.builders.turn()) is helper
        assert turns.enter_context(helped.builders.turn()) is None
        assert helped.builders.builds_itself
    assert not helped.builders.builds_itself
    assert helped.builders.idle == [helper]


@pytest.mark.parametrize("wrong", ["name", "version", "number"])
def test_another_device_is_not_built_for(device: Device, wrong: str) -> None:
    info = {
        "name": replace(device.info, name="another"),
        "version": device.info,
        "number": replace(device.info, device=63),
    }[wrong]
    version = "another" if wrong == "version" else device.device.driver_version
    builders = Builders(info, version, count=2)
    builders.start()
    wait_until(lambda: all(helper.ended for helper in builders.helpers))
    with builders.turn() as helper:
        assert helper is None
    assert builders.helpers == builders.idle == []


def test_without_such_processes_all_threads_build(device: Device) -> None:
    builders = Builders(device.info, device.device.driver_version, count=0)
    builders.start()
    with builders.turn() as first, builders.turn() as second:
        assert first is second is None


def test_how_many_help(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia = replace(device.info, platform_name="NVIDIA CUDA", memory=80 << 30)
    monkeypatch.setattr(opencl_builders, "available_cores", lambda: 16)
    assert helpful(nvidia) == 3
    assert helpful(replace(nvidia, memory=6 << 30)) == 1
    assert helpful(replace(nvidia, platform_name="AMD Accelerated Parallel Processing")) == 0
    monkeypatch.setattr(opencl_builders, "available_cores", lambda: 2)
    assert helpful(nvidia) == 1
    monkeypatch.setattr(opencl_builders, "available_cores", lambda: 1)
    assert helpful(nvidia) == 0
    monkeypatch.setattr(opencl_builders, "available_cores", lambda: 16)
    monkeypatch.setattr(sys, "executable", "/usr/bin/root.exe")
    assert helpful(nvidia) == 0


def test_workers_start_no_processes(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia = replace(device.info, platform_name="NVIDIA CUDA", memory=80 << 30)
    monkeypatch.setattr(opencl_builders, "available_cores", lambda: 16)
    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
    assert helpful(nvidia) == 0
