"""The processor: what LLVM knows of it, and how it looks without LLVM, so that what is known can be found again."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

INFORMATION = "/proc/cpuinfo"
IDENTITY = ("vendor_id", "cpu family", "model", "stepping", "flags")  # beginnings of lines there


class Host(NamedTuple):
    """The processor as LLVM knows it."""

    cpu: str
    features: str
    width: int
    machine: str

    @property
    def text(self) -> str:
        return "\n".join([self.cpu, self.features, str(self.width), self.machine])

    @classmethod
    def of(cls, text: str) -> Host:
        """Read what ``text`` wrote."""
        cpu, features, width, machine = text.split("\n")
        return cls(cpu, features, int(width), machine)


def appearance() -> list[str] | None:
    """Return what two processors with the same instructions have in common; None if it cannot be seen here.

    The system says what there is, and NumPy what the processor itself says, which is less in an emulator such as Valgrind.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return None
    try:
        from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]

        with open(INFORMATION, encoding="utf-8") as file:
            lines = [*iter(file.readline, "\n")]  # of the first core
    except (ImportError, OSError):  # NumPy 1, or no such file
        return None
    known = [line for line in lines if line.startswith(IDENTITY)]
    return [*known, *sorted(name for name, there in __cpu_features__.items() if there)] if known else None
