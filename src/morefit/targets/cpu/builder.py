"""A process that compiles texts in LLVM IR for another one, for the processor that it is told of."""

from __future__ import annotations

import sys

from morefit.errors import CompileError
from morefit.targets.build_process import Build, serve
from morefit.targets.cpu.host import Host

WAYS = "driver", "loops"  # to compile a text: words of its first line


def with_ways(source: str, *, driver: bool, loops: bool) -> str:
    """Return what is sent for a text: the ways to compile it before it."""
    chosen = [way for way, wanted in zip(WAYS, (driver, loops), strict=True) if wanted]
    return f"{' '.join(chosen)}\n{source}"


def main() -> None:
    """Arguments: the text of a host, and the level of optimisation."""
    from morefit.targets.cpu.codegen import build_object, start  # imports LLVM

    host, level = Host.of(sys.argv[1]), int(sys.argv[2])

    def build(text: bytes) -> bytes | None:
        ways, _, source = text.decode().partition("\n")
        driver, loops = (way in ways.split() for way in WAYS)
        try:
            return build_object(source, host, driver=driver, loops=loops, level=level)
        except CompileError:  # which the other process finds as well
            return None

    def begin() -> Build:
        start()
        return build

    serve(begin)
