"""Runs inside a peer's environment: ``python -m peers.worker MODULE JSON`` prints a line of JSON for each result."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from peers.problem import PROBLEMS
from peers.system import Found, System, Task

LEAST = 2  # timed repeats


def main() -> None:
    module, order = sys.argv[1], json.loads(sys.argv[2])
    if order["threads"] == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    say = take_stdout()
    begin = time.perf_counter()
    make = importlib.import_module(f"peers.workers.{module}").make
    problem = PROBLEMS[order["model"]]
    task = Task(problem, order["model"], order["variant"], order["threads"], order["strategy"], order["edm"])
    system = make(task)
    import_s = time.perf_counter() - begin
    known = [tuple(pair) for pair in order["known"]]  # events and seconds of smaller cells
    for k, events in enumerate(order["sizes"]):
        expected = extrapolate(known, events)
        if (LEAST + 1) * expected > order["budget"]:
            say({"kind": "cell", "events": events, "not_run": f"over budget: about {expected:.0f} s a toy"})
            continue
        cell = time_cell(system, task, events, order, warm=k == 0)
        say({"kind": "cell", "events": events, **cell, **({"import_s": import_s} if k == 0 else {})})
        known.append((events, cell["median_ms"] / 1e3))
        if k == 0:
            say({"kind": "check", "about": system.about, **check(system, order["common"])})


def extrapolate(known: list[tuple[int, float]], events: int) -> float:
    """Return the seconds to expect of a toy: a straight line through the last two sizes, or the last one's."""
    if len(known) < 2:
        return known[-1][1] if known else 0.0
    (few, short), (many, long) = known[-2:]
    return long + max(long - short, 0.0) * (events - many) / (many - few)


def take_stdout() -> Any:
    """Keep standard output for results; what libraries print goes to standard error."""
    kept = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(result: dict[str, Any]) -> None:
        kept.write(json.dumps(result) + "\n")
        kept.flush()

    return say


@dataclass
class Tally:
    """Pulls and validity of the fits that were timed."""

    truth: list[float]
    pulls: list[list[float]] = field(default_factory=list)
    fits: int = 0

    def add(self, found: Found) -> None:
        self.fits += 1
        if found.valid:
            rows = zip(found.values, self.truth, found.errors, strict=True)
            self.pulls.append([(float(v) - t) / float(e) for v, t, e in rows])

    def summary(self) -> dict[str, Any]:
        columns = list(zip(*self.pulls, strict=True))
        return {
            "fits": self.fits,
            "valid": len(self.pulls) / self.fits,
            "pull_mean": [statistics.fmean(c) for c in columns],
            "pull_rms": [statistics.fmean([p * p for p in c]) ** 0.5 for c in columns],
        }


def time_cell(system: System, task: Task, events: int, order: dict[str, Any], warm: bool) -> dict[str, Any]:
    """Time the first toy alone, then as many as there is time for; never fewer than two."""
    begin = time.perf_counter()
    system.toys(events, 0, 1)
    first = time.perf_counter() - begin
    if warm:
        system.toys(events, 0, 1)  # in a new process some systems still trace in the second
    count, seed, tally = system.count(events), 1, Tally(task.problem.truth)
    seconds: list[float] = []
    drawing: list[float | None] = []
    end = time.perf_counter() + order["enough"]
    while len(seconds) < LEAST or (len(seconds) < order["repeats"] and time.perf_counter() < end):
        begin = time.perf_counter()
        toys = system.toys(events, seed, count)
        seconds.append((time.perf_counter() - begin) / count)
        drawing.append(None if toys.draw_s is None else toys.draw_s / count)
        for found in toys.found:
            tally.add(found)
        seed += count
    known = [d for d in drawing if d is not None]
    return {
        "first_s": first,
        "median_ms": statistics.median(seconds) * 1e3,
        "best_ms": min(seconds) * 1e3,
        "mean_ms": statistics.fmean(seconds) * 1e3,
        "draw_ms": statistics.median(known) * 1e3 if known else None,
        "repeats": len(seconds),
        "toys_a_repeat": count,
        **tally.summary(),
    }


def check(system: System, path: str) -> dict[str, Any]:
    """Fit the common dataset, so that the runner can compare."""
    import numpy as np

    with np.load(path) as columns:
        found = system.check({name: np.ascontiguousarray(columns[name]) for name in columns.files})
    return {
        "values": [float(v) for v in found.values],
        "errors": [float(e) for e in found.errors],
        "valid": bool(found.valid),
    }


if __name__ == "__main__":
    main()
