"""Run drivers in tests: as Python, with records that are arrays, and compiled by LLVM."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from morefit.kernel.program import Kind, Layout
from morefit.kernel.read_program import read_program
from morefit.targets.cpu.compile import build_object, find_by_key
from morefit.targets.cpu.program import DECLARATIONS, program_text

TYPES = {Kind.FLOAT: ctypes.c_double, Kind.INT: ctypes.c_int64, Kind.BOOL: ctypes.c_bool}


class PythonRecord:
    """The numbers of a record in one array, by name."""

    def __init__(self, layout: Layout, numbers: np.ndarray) -> None:
        self.__dict__.update(layout=layout, numbers=numbers)

    def __getattr__(self, name: str) -> Any:
        layout = self.__dict__["layout"]
        part = self.__dict__["numbers"][layout.slice(name)]
        return part if name in layout.arrays else part[0]

    def __setattr__(self, name: str, value: float) -> None:
        assert name not in self.layout.arrays
        self.numbers[self.layout.first(name)] = value


def compile_driver(
    function: Callable[..., Any], layouts: Mapping[str, Layout] | None = None
) -> Callable[..., Any]:
    """Compile a driver; it takes arrays for vectors and for records."""
    program = read_program(function, layouts or {})
    main = program.main
    text = "\n".join([*DECLARATIONS, *program_text(program)])
    code = find_by_key((text,), lambda: build_object(text, driver=True), [main.name])
    returned = TYPES[main.kind] if main.kind else None
    kinds = [TYPES.get(kind, ctypes.c_void_p) for _, kind in main.arguments]
    compiled = ctypes.CFUNCTYPE(returned, *kinds)(code.addresses[main.name])

    def run(*args: Any) -> Any:
        assert code.addresses  # lives as long as this function
        return compiled(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))

    return run
