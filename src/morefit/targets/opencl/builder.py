"""A process that builds texts for another one: reads them from its standard input, and writes binaries.

It is run as a script, with Python's own library alone, so that it is there in a few hundredths of a second. Arguments: the library
of OpenCL, the name of a device, the version of its driver, and which of the devices of a platform it is.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import IO

PATIENCE = 10.0  # seconds without a text, after which it ends: a context takes memory of the device
SIZE = 8  # bytes of a number that says how many follow
# a driver loads its compilers for the first text, which takes longer than to build it; this one comes before the first that is
# asked for, and is not in the driver's cache
FIRST = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void first(__global double *x) {{ x[0] = exp(x[0]) / ({0}.0 + x[1]) + {1}.0; }}
"""
READY = b"ready"  # what it writes first
FAILED = (1 << 8 * SIZE) - 1  # in the place of a size
ALL_DEVICES, CONTEXT_PLATFORM = ctypes.c_uint64(0xFFFFFFFF), 0x1084
DEVICE_NAME, DRIVER_VERSION = 0x102B, 0x102D
BINARY_SIZES, BINARIES = 0x1165, 0x1166
Pointer, UInt = ctypes.c_void_p, ctypes.c_uint


def write_piece(pipe: IO[bytes], piece: bytes | None) -> None:
    """Write how many bytes follow, and the bytes; None: that something failed."""
    size = FAILED if piece is None else len(piece)
    pipe.write(size.to_bytes(SIZE, "little") + (piece or b""))
    pipe.flush()


def read_piece(pipe: IO[bytes]) -> bytes | None:
    """Read what ``write_piece`` wrote; None if that was None; an error if the other side has ended."""
    size = int.from_bytes(read_exactly(pipe, SIZE), "little")
    return None if size == FAILED else read_exactly(pipe, size)


def read_exactly(pipe: IO[bytes], size: int) -> bytes:
    piece = pipe.read(size)
    if len(piece) < size:
        raise EOFError
    return piece


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

    def build(self, source: bytes) -> bytes:
        """Return the binary of a text."""
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


def serve(library: str, name: str, version: str, number: int) -> None:
    """Build until nothing more is asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides what an interrupt means
    texts = os.fdopen(os.dup(0), "rb")
    binaries = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # drivers may print
    builder = Builder(library, name, version, number)
    write_piece(binaries, READY)
    with suppress(OSError):
        builder.build(FIRST.format(os.getpid(), time.time_ns()).encode())
    while select.select([texts], [], [], PATIENCE)[0]:  # one text at a time: none is in the buffer
        source = read_piece(texts)
        assert source is not None
        try:
            binary: bytes | None = builder.build(source)
        except OSError:
            binary = None
        write_piece(binaries, binary)


if __name__ == "__main__":
    with suppress(EOFError):
        serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    os._exit(0)  # without what drivers do at the end, which takes as long as to begin
