"""Time each function of the vector mathematics against numpy or scipy: python benchmarks/vecmath.py [names]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "render"))

from morefit.render.vecmath import FUNCTIONS
from morefit.render.writer import Vector
from vecmath_harness import TYPES, compiled

EVENTS = 4096  # stays in the first cache
REPEATS = 200
ROUNDS = 7
RANGES = {"exp": (-30.0, 1.0), "sin": (-10.0, 10.0), "cos": (-10.0, 10.0), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0)}
OTHERS: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "pow": np.power,
    "erf": special.erf,
    "erfc": special.erfc,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "trigamma": lambda x: special.zeta(2.0, x),
}


def best_width() -> int:
    """Return how many float64 the widest registers of this computer hold."""
    import llvmlite.binding as llvm

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


def main(names: list[str]) -> None:
    """Print a table of nanoseconds an element."""
    width, rng = best_width(), np.random.default_rng(1)
    print(f"{'':10} {'float64':>9} {'numpy':>9} {'float32':>9}   nanoseconds an element, width {width}")
    for name in names or FUNCTIONS:
        low, high = RANGES.get(name, (0.1, 4.0))
        x, y = rng.uniform(low, high, (2, EVENTS))
        arguments = (x, y) if name in ("pow", "atan2") else (x,)
        other = OTHERS.get(name) or getattr(np, name)
        times = []
        for vector in (Vector(width, 64), Vector(2 * width, 32)):
            run, typed = compiled(name, vector).raw, [a.astype(TYPES[vector.bits]) for a in arguments]
            result = np.empty_like(typed[0])
            pointers = [a.ctypes.data for a in (result, *typed)]
            times.append(nanoseconds(lambda run=run, p=pointers: run(*p, EVENTS), REPEATS))
        times.insert(1, nanoseconds(lambda: other(*arguments), REPEATS // 10))
        print(f"{name:10} " + " ".join(f"{t:9.3f}" for t in times))


if __name__ == "__main__":
    main(sys.argv[1:])
