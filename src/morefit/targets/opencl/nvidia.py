"""Machine code for NVIDIA's devices, of several texts at the same time.

NVIDIA's OpenCL turns a text into PTX, and PTX into machine code; of one context it does the latter for one text after the other, and
lets nothing run meanwhile. The linker of the same driver's CUDA does it for as many texts at a time as there are threads, with the same
result, which OpenCL takes as a binary.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import warnings
from contextlib import suppress
from functools import cached_property
from typing import Any

from morefit.targets.ahead import compile_ahead

PLATFORM = "NVIDIA CUDA"
LIBRARY = "nvcuda" if os.name == "nt" else "libcuda.so.1"
MIN_MEMORY = 8 << 30  # bytes of a device on which CUDA may have some hundred million for a context of its own
MAJOR, MINOR = 75, 76  # attributes of a device: the version of its instructions
PTX = 1  # a kind of input
# A function that is declared only lets the driver stop after it has written PTX.
STOP = """
double never_defined(double x);
__kernel void never_run(__global double *x) { x[0] = never_defined(x[0]); }
"""
STOP_KERNEL = re.compile(r"^[^\n]*\.entry never_run\(.*?\n}", re.MULTILINE | re.DOTALL)
STOP_FUNCTION = re.compile(r"(?:\.extern )?\.func\s*\([^)]*\)\s*never_defined\s*\([^)]*\)\s*;")


def find_linker(device: Any) -> Linker | None:
    """Return the linker for an OpenCL device; None if that is not NVIDIA's, or has little memory for another context."""
    if device.platform.name != PLATFORM or device.global_mem_size < MIN_MEMORY:
        return None
    return Linker((device.compute_capability_major_nv, device.compute_capability_minor_nv))


class LinkError(Exception):
    """CUDA did not do what was asked."""


class Linker:
    """CUDA's linker for devices with some version of instructions."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability, self.lock = capability, threading.Lock()
        # of texts that are turned into PTX, which the driver does piece by piece for all at once: all would be ready late
        self.turn = threading.Lock()

    @cached_property
    def cuda(self) -> Any:
        """The library of the driver."""
        library = ctypes.CDLL(LIBRARY)
        check("cuInit", library.cuInit(0))
        return library

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of CUDA."""
        check(name, getattr(self.cuda, name)(*arguments))

    @cached_property
    def device(self) -> ctypes.c_int:
        """CUDA's number of a device with these instructions."""
        count, device = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for k in range(count.value):
            self.call("cuDeviceGet", ctypes.byref(device), k)
            if (self.attribute(MAJOR, device), self.attribute(MINOR, device)) == self.capability:
                return device
        raise LinkError(f"no device has the instructions {self.capability}")

    def attribute(self, attribute: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    @cached_property
    def context(self) -> ctypes.c_void_p:
        """The context that a linker needs; it takes a tenth of a second to open."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        return context

    def open(self) -> ctypes.c_void_p:
        """Return the context, which is opened once."""
        with self.lock:
            return self.context

    def machine_code(self, ptx: str) -> bytes:
        """Return the machine code of a text in PTX."""
        self.call("cuCtxPushCurrent_v2", self.open())
        state, code, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        try:
            self.call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
            try:
                text = ptx.encode() + b"\0"
                self.call(
                    "cuLinkAddData_v2",
                    state,
                    PTX,
                    text,
                    ctypes.c_size_t(len(text)),
                    b"morefit",
                    0,
                    None,
                    None,
                )
                self.call("cuLinkComplete", state, ctypes.byref(code), ctypes.byref(size))
                return ctypes.string_at(code, size.value)
            finally:
                self.call("cuLinkDestroy", state)
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def compile(self, cl: Any, context: Any, source: str) -> bytes | None:
        """Return the machine code of a text in OpenCL C; None if the driver refuses the text, or does not do as expected."""
        compile_ahead(self.open)
        with self.turn:
            ptx = written_ptx(cl, context, source)
        with suppress(LinkError, OSError, AttributeError):  # of a driver without CUDA, or with an older one
            return None if ptx is None else self.machine_code(ptx)
        return None


def check(name: str, code: int) -> None:
    if code:
        raise LinkError(f"{name} returned {code}")


def written_ptx(cl: Any, context: Any, source: str) -> str | None:
    """Return a text as PTX; None unless the driver writes it and then stops."""
    program = cl.Program(context, source + STOP)
    with warnings.catch_warnings(), suppress(cl.Error):
        warnings.simplefilter("ignore")
        program.get_info(
            cl.program_info.NUM_DEVICES
        )  # else pyopencl forgets a program that it could not build
        try:
            program.build(options=[], cache_dir=False)
        except cl.Error:
            return without_stop(*program.get_info(cl.program_info.BINARIES))
    return None


def without_stop(binary: bytes) -> str | None:
    """Return PTX without what stopped the driver; None if that is not there."""
    text = binary.rstrip(b"\0").decode(errors="replace")
    text, kernels = STOP_KERNEL.subn("", text)
    text, functions = STOP_FUNCTION.subn("", text)
    # textures are bound in OpenCL's way, and there are none
    return text.replace(", texmode_independent", "") if kernels == functions == 1 else None
