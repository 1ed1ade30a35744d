"""Fit the toys of one model with one system and print JSON: ``python -m peers.analyses.worker with_numba ORDER``.

ORDER is JSON: the model, its floating parameters (name, start, low, high, step), a file of toys, Minuit's strategy,
and after how many seconds no other toy is begun, if there are two. With a number of ``repeats`` it is the value of the nll
of the first dataset that is timed, of one of the larger shapes.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.worker import take_stdout

WEIGHT = "w"  # the column of weights
Part = dict[str, Any]  # columns of one dataset by name


@dataclass(frozen=True)
class Floating:
    """A floating parameter: where fits start, its limits, and the first step."""

    name: str
    start: float
    low: float
    high: float
    step: float


@dataclass(frozen=True)
class Found:
    """Where a fit ended, and whether Minuit and Hesse were content."""

    values: dict[str, float]
    valid: bool


def read_toys(path: str) -> list[list[Part]]:
    """Return the datasets of each toy, part by part; names of columns in the file are toy, part and observable."""
    toys: dict[int, dict[int, Part]] = {}
    with np.load(path) as file:
        for name in file.files:
            toy, part, column = name.split(" ", 2)
            toys.setdefault(int(toy), {}).setdefault(int(part), {})[column] = file[name]
    return [[parts[k] for k in sorted(parts)] for _, parts in sorted(toys.items())]


def time_value(
    value: Callable[[dict[str, float]], float], floating: list[Floating], repeats: int
) -> dict[str, Any]:
    """Time the nll at points that differ in all parameters, in CPU time, best of several; the first call compiles."""
    start, times = {p.name: p.start for p in floating}, []
    nll = value(start)
    for k in range(1, repeats + 1):
        begin = time.process_time()
        value({p.name: p.start + 1e-6 * k * (p.high - p.low) for p in floating})
        times.append(time.process_time() - begin)
    return {"value_s": min(times), "nll": nll}


def main() -> None:
    say = take_stdout()
    system, order = importlib.import_module(f"peers.analyses.{sys.argv[1]}"), json.loads(sys.argv[2])
    if order["model"] not in (system.LARGE if "repeats" in order else system.MODELS):
        say({"skipped": "not written"})
        return
    floating = [Floating(*row) for row in order["floating"]]
    if "repeats" in order:
        ((part,),) = read_toys(order["toys"])
        say(time_value(system.LARGE[order["model"]](floating, part), floating, order["repeats"]))
        return
    fit = system.MODELS[order["model"]](floating, order["strategy"])
    times, found = [], []
    for parts in read_toys(order["toys"]):
        if sum(times) > order["seconds"] and len(times) > 1:
            break
        begin = time.perf_counter()
        found.append(fit(parts))
        times.append(time.perf_counter() - begin)
    say({
        "toys": len(times),
        "toy_us": 1e6 * float(np.median(times[1:] or times)),  # the first one compiles
        "valid": float(np.mean([f.valid for f in found])),
        "values": [[f.values[p.name] for p in floating] for f in found],
    })  # fmt: skip


if __name__ == "__main__":
    main()
