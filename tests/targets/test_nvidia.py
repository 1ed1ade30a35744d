"""Machine code for NVIDIA's devices by CUDA's linker: what is written for it, and that anything unexpected is left to OpenCL."""

from __future__ import annotations

import ctypes
import types

import pytest

from morefit.targets.opencl import nvidia
from morefit.targets.opencl.nvidia import STOP, Linker, find_linker, without_stop, written_ptx

KERNEL = ".entry mine(\n\t.param .u64 mine_param_0\n)\n{\n\tret;\n\n}\n"
STOPPING = (
    "\t// .globl\tnever_run\n.entry never_run(\n\t.param .u64 never_run_param_0\n)\n{\n\t{ // callseq 0\n\tcall.uni (retval0),"
    "\n\tnever_defined,\n\t(param0);\n\t} // callseq 0\n\tret;\n\n}\n"
)
DECLARED = ".func  (.param .b64 func_retval0) never_defined\n(\n\t.param .b64 never_defined_param_0\n)\n;\n"
HEAD = ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n"


class DriverError(Exception):
    pass


class Program:
    """Is written as PTX, and built if all of it is there."""

    binaries = [(HEAD + DECLARED + KERNEL + STOPPING).encode() + b"\0\0"]
    builds = False

    def __init__(self, context, source):
        assert source.endswith(STOP)
        self.source = source

    def get_info(self, what):
        return self.binaries if what == "binaries" else 1

    def build(self, **options):
        if not self.builds:
            raise DriverError


def driver(**changes):
    infos = types.SimpleNamespace(NUM_DEVICES="devices", BINARIES="binaries")
    return types.SimpleNamespace(
        Program=type("Changed", (Program,), changes), Error=DriverError, program_info=infos
    )


class Cuda:
    """Counts what is called, and makes machine code of any text but one that has a mistake."""

    def __init__(self, capability=(9, 0)):
        self.capability, self.calls = capability, []
        self.made = ctypes.create_string_buffer(b"machine code", 12)

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: self.run(name, arguments)

    def run(self, name, arguments):
        self.calls.append(name)
        if name == "cuDeviceGetCount":
            arguments[0]._obj.value = 1
        elif name == "cuDeviceGetAttribute":
            arguments[0]._obj.value = self.capability[arguments[1] - nvidia.MAJOR]
        elif name == "cuLinkAddData_v2" and b"mistake" in arguments[2]:
            return 218
        elif name == "cuLinkComplete":
            arguments[1]._obj.value, arguments[2]._obj.value = ctypes.addressof(self.made), 12
        return 0


@pytest.fixture
def cuda(monkeypatch):
    library = Cuda()
    monkeypatch.setattr(nvidia.ctypes, "CDLL", lambda name: library)
    return library


@pytest.mark.parametrize("order", [HEAD + DECLARED + KERNEL + STOPPING, HEAD + DECLARED + STOPPING + KERNEL])
def test_what_stops_the_driver_is_not_part_of_the_text(order):
    text = without_stop(order.encode() + b"\0")
    assert "never" not in text.replace(".globl\tnever_run", "")
    assert KERNEL in text
    assert ".target sm_90\n" in text


@pytest.mark.parametrize("text", [HEAD + KERNEL, HEAD + DECLARED + KERNEL, "", "\x7fELF"])
def test_other_texts_are_not_taken_for_ptx(text):
    assert without_stop(text.encode()) is None


def test_a_text_is_compiled_by_the_linker(cuda):
    assert Linker((9, 0)).compile(driver(), None, "kernel") == b"machine code"
    assert cuda.calls.count("cuLinkDestroy") == cuda.calls.count("cuCtxPopCurrent_v2") == 1


def test_the_context_is_opened_once(cuda):
    linker = Linker((9, 0))
    for _ in range(3):
        linker.machine_code(KERNEL)
    assert cuda.calls.count("cuDevicePrimaryCtxRetain") == cuda.calls.count("cuInit") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"builds": True},
        {"binaries": [b""]},
        {"binaries": [(HEAD + DECLARED + KERNEL + "mistake" + STOPPING).encode()]},
    ],
    ids=["a driver that does not stop", "a driver without PTX", "PTX that is refused"],
)
def test_what_is_not_expected_is_left_to_opencl(cuda, changes):
    assert Linker((9, 0)).compile(driver(**changes), None, "kernel") is None


def test_a_device_with_other_instructions_is_left_to_opencl(cuda):
    assert Linker((8, 6)).compile(driver(), None, "kernel") is None
    assert "cuDevicePrimaryCtxRetain" not in cuda.calls


def test_a_driver_without_cuda_is_left_to_opencl(monkeypatch):
    monkeypatch.setattr(nvidia, "LIBRARY", "no such library")
    assert written_ptx(driver(), None, "kernel") is not None
    assert Linker((9, 0)).compile(driver(), None, "kernel") is None


@pytest.mark.parametrize(
    ("platform", "memory", "linked"),
    [("NVIDIA CUDA", 1 << 36, True), ("NVIDIA CUDA", 1 << 32, False), ("PoCL", 1 << 36, False)],
)
def test_only_devices_of_nvidia_with_memory_for_it_have_a_linker(platform, memory, linked):
    device = types.SimpleNamespace(
        platform=types.SimpleNamespace(name=platform),
        global_mem_size=memory,
        compute_capability_major_nv=9,
        compute_capability_minor_nv=0,
    )
    assert (find_linker(device) is not None) == linked
