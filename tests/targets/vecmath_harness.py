"""Compile a function of the vector mathematics into a loop over arrays, to test or time it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.targets.cpu.compile import Code, build_object, host, link
from morefit.targets.cpu.vecmath import FUNCTIONS, define
from morefit.targets.cpu.writer import Vector

Array = NDArray[Any]
TYPES: dict[int, type[np.floating[Any]]] = {64: np.float64, 32: np.float32}
ARITY = {name: f.arity for name, f in FUNCTIONS.items() if f.arity > 1}

LOOP = """
define void @loop(ptr noalias %y, {pointers}, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
{loads}
  %r = call {type} @mf_{name}_{suffix}({arguments})
  %q = getelementptr {scalar}, ptr %y, i64 %i
  store {type} %r, ptr %q, align {align}
  %next = add i64 %i, {width}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""
LOAD = """  %p{i} = getelementptr {scalar}, ptr %x{i}, i64 %i
  %v{i} = load {type}, ptr %p{i}, align {align}"""


def source(name: str, vector: Vector) -> str:
    """Return the whole module: the function, what it calls, and a loop."""
    texts, declarations = define([name], vector)
    numbers = range(ARITY.get(name, 1))
    shape = {
        "type": vector.type,
        "scalar": vector.scalar,
        "align": vector.bits // 8,
        "width": vector.width,
        "suffix": vector.suffix,
        "name": name,
    }
    loop = LOOP.format(
        pointers=", ".join(f"ptr noalias %x{i}" for i in numbers),
        loads="\n".join(LOAD.format(i=i, **shape) for i in numbers),
        arguments=", ".join(f"{vector.type} %v{i}" for i in numbers),
        **shape,
    )
    return "\n".join([*declarations.values(), *texts, loop])


@dataclass(frozen=True)
class Compiled:
    """A loop in memory, and the code that it is part of."""

    raw: Callable[..., None]  # (address of the result, address of each argument, length)
    vector: Vector
    code: Code

    def __call__(self, *arguments: Array) -> Array:
        """Apply the function; the length need not be a multiple of the width."""
        padded = [_padded(a, self.vector) for a in arguments]
        result = np.empty_like(padded[0])
        self.raw(result.ctypes.data, *[a.ctypes.data for a in padded], len(result))
        return result[: len(arguments[0])]


@cache
def compiled(name: str, vector: Vector) -> Compiled:
    """Return a function of arrays, compiled as kernels are."""
    host()  # makes LLVM ready
    code = link(build_object(source(name, vector), driver=False), ["loop"])
    assert code is not None
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (ARITY.get(name, 1) + 1), ctypes.c_int64)
    return Compiled(signature(code.addresses["loop"]), vector, code)


def _padded(x: Array, vector: Vector) -> Array:
    """Return a copy as long as a multiple of the width."""
    x = np.asarray(x, TYPES[vector.bits])
    return np.ascontiguousarray(np.pad(x, (0, -len(x) % vector.width), mode="edge"))
