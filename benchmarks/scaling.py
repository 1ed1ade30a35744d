"""Time likelihoods and toys on 1, 2, 4, ... threads: ``python benchmarks/scaling.py`` writes JSON and a table.

All numbers of threads take turns, and the best of each counts: what else runs on the machine hits them alike. What the
machine has to do with it say two more rows, loops that need nothing but a core (``cores.py``), and two more columns: the
same for medians, and the best that as many processes as cores reach together, one thread and its share of the events
each, none of which waits for another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import morefit as mf
from cores import LENGTH, TURNS, loop_job
from models import MODELS
from morefit.resources import available_cores
from morefit.targets.cpu.compile import host
from toys import make_ensemble, whole_job

SECONDS = 1.0  # for each time to be taken
ROUNDS = 8  # of all numbers of threads


@lru_cache(maxsize=1)
def data_of(name: str, events: int) -> Any:
    return MODELS[name][1](events)


def likelihood_job(name: str, events: int, threads: int) -> Callable[[], Any]:
    """Make a pass over so many events for value, gradient and Hessian."""
    likelihood = mf.Likelihood(MODELS[name][0](), data_of(name, events), backend=mf.Cpu(threads=threads))
    point = likelihood.points([p.start for p in likelihood.parameters])[0]
    return lambda: likelihood.evaluate_full(point, 2)


def toys_job(name: str, events: int, threads: int, toys: int) -> Callable[[], Any]:
    """Make toys: drawn, fitted, with errors."""
    return whole_job(make_ensemble(name, mf.Cpu(threads=threads)), np.full(toys, events))


def times_of_each(jobs: list[Callable[[], Any]]) -> list[list[float]]:
    """Time jobs in turns."""
    for job in jobs:
        job()
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(ROUNDS):
        for job, mine in zip(jobs, times, strict=True):
            until = time.perf_counter() + SECONDS / ROUNDS
            while True:
                begin = time.perf_counter()
                job()
                mine.append(time.perf_counter() - begin)
                if time.perf_counter() > until:
                    break
    return times


def work_apart(
    make: Callable[..., Callable[[], Any]], given: tuple[Any, ...], start: Any, rates: Any
) -> None:
    job = make(*given)
    job()
    start.wait()
    mine = []
    for _ in range(ROUNDS):
        begin, count = time.perf_counter(), 0
        while time.perf_counter() < begin + 3 * SECONDS / ROUNDS:
            job()
            count += 1
        mine.append(count / (time.perf_counter() - begin))
    rates.put(mine)


def seconds_apart(make: Callable[..., Callable[[], Any]], *given: Any) -> float:
    """Return the time of a job when every core does its own in a process, divided by the number of cores."""
    context = multiprocessing.get_context("spawn")
    cores = available_cores()
    start, rates = context.Barrier(cores), context.Queue()
    processes = [context.Process(target=work_apart, args=(make, given, start, rates)) for _ in range(cores)]
    for process in processes:
        process.start()
    together = np.sum([rates.get() for _ in processes], axis=0)
    for process in processes:
        process.join()
    return 1.0 / float(together.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default="benchmarks/scaling.json")
    options = parser.parse_args()
    cores = available_cores()
    counts = [t for t in (1, 2, 4, 8, 16, 32, 64) if t <= cores]
    rows: list[dict[str, Any]] = []

    def keep(what: str, events: int, total: int, apart: float | None, jobs: list[Callable[[], Any]]) -> None:
        found = times_of_each(jobs)
        times, medians = (list(map(how, found)) for how in (min, median))
        rows.append({"what": what, "events": events, "apart_ns": apart and apart * 1e9,
                     "ns": {t: s / total * 1e9 for t, s in zip(counts, times, strict=True)},
                     "median_ns": {t: s / total * 1e9 for t, s in zip(counts, medians, strict=True)}})  # fmt: skip
        print(
            what,
            events,
            *(f"{t}: {times[0] / s:.2f}x" for t, s in zip(counts, times, strict=True)),
            flush=True,
        )

    for name, length in LENGTH.items():
        done = 4 * cores * TURNS[name] * length
        keep(f"{name} alone", done, done, None, [loop_job(name, t, 4 * cores) for t in counts])
    for name in MODELS:
        for events in (10**6, 10**7):
            share = events // cores
            apart = seconds_apart(likelihood_job, name, share, 1) / share
            keep(f"{name} Hessian", events, events, apart, [likelihood_job(name, events, t) for t in counts])
        for events in (1_000, 10_000, 100_000):
            toys = max(2_000_000 // events, 8) * cores
            few = toys // cores
            apart = seconds_apart(toys_job, name, events, 1, few) / (events * few)
            jobs = [toys_job(name, events, t, toys) for t in counts]
            keep(f"{name} toys", events, events * toys, apart, jobs)
    Path(options.json).write_text(json.dumps({"processor": host().cpu, "rows": rows}, indent=1))
    table = Table(title=f"{host().cpu}: ns per event, and how many times faster than one thread")
    for heading in ("what", "events", *map(str, counts), f"{counts[-1]} by medians", f"{cores} processes"):
        table.add_column(heading, justify="right")
    for row in rows:
        times, medians = list(row["ns"].values()), list(row["median_ns"].values())
        one = [(t, times[0] / t) for t in times]
        one += [(medians[-1], medians[0] / medians[-1])]
        if row["apart_ns"] is not None:
            one += [(row["apart_ns"], times[0] / row["apart_ns"])]
        table.add_row(row["what"], f"{row['events']:.0e}", *(f"{t:.3g} ({x:.2f}x)" for t, x in one))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
