"""A process that builds texts in OpenCL C for another one, in a context of its own, by the library of OpenCL that it is told of."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from contextlib import suppress

from morefit.targets.build_process import Build, serve

# a driver loads its compilers for the first text, which takes longer than to build it; this one comes before the first that is
# asked for, and is not in the driver's cache
FIRST = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void first(__global double *x) {{ x[0] = exp(x[0]) / ({0}.0 + x[1]) + {1}.0; }}
"""
ALL_DEVICES, CONTEXT_PLATFORM = ctypes.c_uint64(0xFFFFFFFF), 0x1084
DEVICE_NAME, DRIVER_VERSION = 0x102B, 0x102D
BINARY_SIZES, BINARIES = 0x1165, 0x1166
Pointer, UInt = ctypes.c_void_p, ctypes.c_uint


class Builder:
    """Builds texts in a context of its own."""

    def __init__(self, library: str, name: str, version: str, number: int) -> None:
        self.cl = ctypes.CDLL(library)
        platforms = self.listed("clGetPlatformIDs")
        choices = [(platform, self.listed("clGetDeviceIDs", platform, ALL_DEVICES)) for platform in platforms]
        # platforms may have other numbers than in a process that knows where more drivers are
        platform, self.device = next(
            (platform, (Pointer * 1)(devices[number].value))
            for platform, devices in choices
            if number < len(devices) and self.texts(devices[number]) == (name, version)
        )
        wish = (Pointer * 3)(CONTEXT_PLATFORM, platform.value, None)
        self.context = self.made("clCreateContext", wish, UInt(1), self.device, None, None)

    def listed(self, name: str, *arguments: object) -> list[ctypes.c_void_p]:
        """Call a function that lists something; nothing is no error."""
        found, count = (Pointer * 64)(), UInt()
        with suppress(OSError):
            self.call(name, *arguments, UInt(len(found)), found, ctypes.byref(count))
        return [Pointer(one) for one in found[: count.value]]

    def texts(self, device: ctypes.c_void_p) -> tuple[str, str]:
        """Return the name of a device and the version of its driver."""
        texts = [ctypes.create_string_buffer(1024) for _ in range(2)]
        for which, text in zip((DEVICE_NAME, DRIVER_VERSION), texts, strict=True):
            self.call("clGetDeviceInfo", device, UInt(which), ctypes.c_size_t(len(text)), text, None)
        name, version = (text.value.decode().strip() for text in texts)
        return name, version

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that returns its error."""
        error = getattr(self.cl, name)(*arguments)
        if error:
            raise OSError(name, error)

    def made(self, name: str, *arguments: object) -> ctypes.c_void_p:
        """Call a function that makes something, and stores its error."""
        function, error = getattr(self.cl, name), ctypes.c_int()
        function.restype = Pointer
        thing = Pointer(function(*arguments, ctypes.byref(error)))
        if error.value:
            raise OSError(name, error.value)
        return thing

    def build(self, source: bytes) -> bytes | None:
        """Return the binary of a text; None if it cannot be built."""
        try:
            return self.binary(source)
        except OSError:
            return None

    def binary(self, source: bytes) -> bytes:
        texts = (ctypes.c_char_p * 1)(source)
        program = self.made("clCreateProgramWithSource", self.context, UInt(1), texts, None)
        try:
            self.call("clBuildProgram", program, UInt(1), self.device, b"", None, None)
            size, word = ctypes.c_size_t(), ctypes.c_size_t(ctypes.sizeof(Pointer))
            self.call("clGetProgramInfo", program, UInt(BINARY_SIZES), word, ctypes.byref(size), None)
            binary = ctypes.create_string_buffer(size.value)
            places = (Pointer * 1)(ctypes.addressof(binary))
            self.call("clGetProgramInfo", program, UInt(BINARIES), word, places, None)
            return binary.raw
        finally:
            self.call("clReleaseProgram", program)


def main() -> None:
    """Arguments: the library of OpenCL, the name of a device, the version of its driver, and which of the devices of a platform it is."""
    library, name, version, number = sys.argv[1:]

    def begin() -> Build:
        return Builder(library, name, version, int(number)).build

    serve(begin, FIRST.format(os.getpid(), time.time_ns()).encode())
