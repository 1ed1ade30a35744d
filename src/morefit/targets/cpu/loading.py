"""Object files put into memory as LLVM would: those of Linux on x86, which need nothing but addresses filled in.

To load LLVM takes longer than all else that code on disk needs. Any other object file is left to it.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Sequence
from functools import cache
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.targets.cpu.abi import Code, code_at

HEAD = b"\x7fELF\x02\x01\x01"  # 64 bits, the lowest byte first
RELOCATABLE = b"\x01\x00\x3e\x00"  # for x86-64, at byte 16
SECTION = np.dtype([
    ("name", "<u4"), ("kind", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"), ("size", "<u8"),
    ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8"),
])  # fmt: skip
SYMBOL = np.dtype([
    ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8"),
])  # fmt: skip
RELOCATION = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<u8")])
CONTENT, SYMBOLS, RELOCATIONS, ZEROS = 1, 2, 4, 8  # kinds of sections
WRITABLE, IN_MEMORY = 1, 2  # flags of sections
ADDRESS = 1  # a kind of relocation: a whole address, as in all code for LLVM's own linker
LINE = 64  # bytes: sections begin where lines of the cache do
FAILED = 2**64 - 1

Words = NDArray[np.uint64]


def load_object(obj: bytes, names: Sequence[str]) -> Code | None:
    """Put an object file into memory; None if it is of another kind, or memory cannot be made executable."""
    if sys.platform != "linux" or not (obj.startswith(HEAD) and obj[16:20] == RELOCATABLE):
        return None
    file = ObjectFile(obj)
    base = reserve(len(file.image)) if file.simple else 0
    if not base:
        return None
    content = file.at(base)
    ctypes.memmove(base, content, len(content))
    code = None
    if c_library().mprotect(base, len(content), PROT_READ | PROT_EXEC) == 0:
        code = code_at({name: base + file.functions[name] if name in file.functions else 0 for name in names})
    if code is None:
        c_library().munmap(base, len(content))
    else:  # not at exit, when other threads may still run it
        weakref.finalize(code, c_library().munmap, base, len(content)).atexit = False
    return code


class ObjectFile:
    """What an object file has to be in memory: its ``image``, relocations, and where its functions begin."""

    def __init__(self, obj: bytes) -> None:
        first, count = int.from_bytes(obj[40:48], "little"), int.from_bytes(obj[60:62], "little")
        self.obj, self.sections = obj, np.frombuffer(obj, SECTION, count, first)
        kinds, sizes = self.sections["kind"], self.sections["size"]
        in_memory = self.sections["flags"] & IN_MEMORY != 0
        self.loaded = in_memory & (kinds == CONTENT)
        lines = np.where(self.loaded, (sizes + LINE - 1) // LINE * LINE, 0)
        self.starts: Words = np.cumsum(lines) - lines
        self.image = np.zeros(int(lines.sum()), np.uint8)
        for k in np.flatnonzero(self.loaded & (sizes > 0)):
            self.image[int(self.starts[k]) :][: int(sizes[k])] = self.entries(k, np.dtype(np.uint8))
        (table,) = np.flatnonzero(kinds == SYMBOLS)
        self.symbols = self.entries(table, SYMBOL)
        self.strings = int(self.sections["offset"][self.sections["link"][table]])
        self.relocations = [
            (self.starts[section], self.entries(k, RELOCATION))
            for k in np.flatnonzero(kinds == RELOCATIONS)
            if self.loaded[section := self.sections["info"][k]]
        ]
        changes = (kinds == ZEROS) | (self.sections["flags"] & WRITABLE != 0)
        self.simple = not (in_memory & changes & (sizes > 0)).any() and self.find_names()

    def entries(self, section: np.intp, kind: np.dtype[Any]) -> NDArray[Any]:
        """Read a section."""
        size, offset = (int(self.sections[name][section]) for name in ("size", "offset"))
        return np.frombuffer(self.obj, kind, size // kind.itemsize, offset)

    def find_names(self) -> bool:
        """Find the functions in this file and those of C that it calls; return whether that is all it needs."""
        sections = self.symbols["section"]
        inside = (0 < sections) & (sections < len(self.sections))
        inside[inside] = self.loaded[sections[inside]]
        self.places: Words = self.symbols["value"] + self.starts[np.where(inside, sections, 0)]
        self.functions: dict[str, int] = {}
        for k in np.flatnonzero(self.symbols["info"] >> 4):  # names that other files see
            begin = self.strings + int(self.symbols["name"][k])
            name = self.obj[begin : self.obj.index(0, begin)].decode()
            if inside[k]:
                self.functions[name] = int(self.places[k])
            elif sections[k] == 0 and (function := getattr(c_library(), name, None)):
                self.places[k] = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.movable = inside
        used = [one for _, one in self.relocations]
        return all(
            (one["kind"] == ADDRESS).all() and self.places[one["symbol"]][~inside[one["symbol"]]].all()
            for one in used
        )

    def at(self, base: int) -> bytes:
        """Return the content of memory from this address on."""
        addresses = self.places + np.where(self.movable, np.uint64(base), np.uint64(0))
        for start, one in self.relocations:
            to = (start + one["offset"])[:, None] + np.arange(8, dtype=np.uint64)
            self.image[to] = (addresses[one["symbol"]] + one["addend"]).view(np.uint8).reshape(-1, 8)
        return self.image.tobytes()


@cache
def c_library() -> ctypes.CDLL:
    """Return the functions of C that this process has."""
    library = ctypes.CDLL(None)
    number, size = ctypes.c_int, ctypes.c_size_t
    library.mmap.argtypes = (ctypes.c_void_p, size, number, number, number, ctypes.c_long)
    library.mmap.restype = ctypes.c_void_p
    library.mprotect.argtypes = (ctypes.c_void_p, size, number)
    library.munmap.argtypes = (ctypes.c_void_p, size)
    return library


def reserve(size: int) -> int:
    """Return the address of new memory, 0 if there is none."""
    address = c_library().mmap(None, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return 0 if address in (None, FAILED) else int(address)
