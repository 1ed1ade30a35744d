"""Time each function of the vector mathematics against numpy or scipy: python benchmarks/vecmath.py [names]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "targets"))

from vecmath_harness import TYPES, compiled

from morefit.expr import OPERATIONS
from morefit.targets.cpu.vecmath import FUNCTIONS
from morefit.targets.cpu.writer import Vector

EVENTS = 4096  # stays in the first cache
REPEATS = 200
ROUNDS = 7
RANGES = {
    "exp": (-30.0, 1.0),
    "sin": (-10.0, 10.0),
    "cos": (-10.0, 10.0),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "atanh": (-1.0, 1.0),
    "acosh": (1.0, 4.0),
    **{
        name: (0.1, 1.0)
        for name, function in FUNCTIONS.items()
        if name.startswith("beta") and function.arity == 3
    },
}
OTHERS: dict[str, Callable[..., Any]] = {
    op.llvm.name: op.numpy for op in OPERATIONS if op.llvm is not None and op.ufuncs
}


def best_width() -> int:
    """Return how many float64 the widest registers of this computer hold."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


def nanoseconds(function: Callable[[], Any], calls: int) -> float:
    """Return the best time an element takes."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(calls):
            function()
        times.append(perf_counter() - start)
    return min(times) / (calls * EVENTS) * 1e9


def compare(name: str, width: int) -> list[float]:
    """Return the times of one function: float64, numpy's float64, float32."""
    shape = (FUNCTIONS[name].arity, EVENTS)
    arguments = tuple(np.random.default_rng(1).uniform(*RANGES.get(name, (0.1, 4.0)), shape))
    other = OTHERS.get(name)
    return [
        time_loop(name, Vector(width, 64), arguments),
        nanoseconds(lambda: other(*arguments), REPEATS // 10) if other else float("nan"),
        time_loop(name, Vector(2 * width, 32), arguments),
    ]


def time_loop(name: str, vector: Vector, arguments: tuple[Any, ...]) -> float:
    """Return the time an element takes in compiled code."""
    typed = [a.astype(TYPES[vector.bits]) for a in arguments]
    result = np.empty_like(typed[0])
    pointers = [a.ctypes.data for a in (result, *typed)]
    run = compiled(name, vector).raw
    return nanoseconds(lambda: run(*pointers, EVENTS), REPEATS)


def main(names: list[str]) -> None:
    """Print a table of nanoseconds an element."""
    width = best_width()
    print(f"{'':24} {'float64':>9} {'numpy':>9} {'float32':>9}   nanoseconds an element, width {width}")
    for name in names or FUNCTIONS:
        print(f"{name:24} " + " ".join(f"{t:9.3f}" for t in compare(name, width)))


if __name__ == "__main__":
    main(sys.argv[1:])
