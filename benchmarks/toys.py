"""Time pseudo-experiments, generation and fit and errors each: ``python benchmarks/toys.py`` writes JSON and a table.

The split comes from runs of the parts: generation alone, and one pass over the events for value, gradient and Hessian,
with the events in memory rather than in the cache. The last pass of a fit gives the errors: it counts as the Hessian, the
rest as minimisation. Best of several; compare ratios, not runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import morefit as mf
from models import MODELS
from morefit.arrays import Integers
from morefit.kernel.fit_layout import FitRows
from morefit.minimise.trust_region import CONVERGED
from morefit.resources import available_cores
from morefit.targets.base import Backend
from morefit.targets.cpu.compile import host
from morefit.toys.arguments import template_of
from morefit.toys.ensemble import Ensemble
from morefit.toys.whole_fits import whole_batch

TARGETS = {  # microseconds a toy on one AVX-512 core
    "mass": {1_000: 30, 10_000: 250, 100_000: 2_500, 1_000_000: 25_000},
    "kstarmumu": {1_000: 60, 10_000: 550, 100_000: 6_000, 1_000_000: 60_000},
}


def make_ensemble(name: str, backend: Backend) -> Ensemble:
    """Return toys of a model, drawn and fitted at its start values."""
    likelihood = template_of("toys", MODELS[name][0]())
    start = {p.name: p.start for p in likelihood.all_parameters}
    return Ensemble(drawn=likelihood, fitted=likelihood, truth=start, start=start, seed=1, backend=backend)


def whole_job(ensemble: Ensemble, sizes: Integers) -> Callable[[], FitRows]:
    """Return what draws and fits toys in compiled code alone."""
    job = ensemble.whole_fit()
    assert job is not None
    toys = whole_batch(ensemble.draw(0, sizes), ensemble)

    def run() -> FitRows:
        rows = ensemble.backend.fit_whole(job, toys, job.layout.width)
        assert rows is not None
        return FitRows(job.layout, rows)

    return run


def best(function: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def time_toys(name: str, events: int, threads: int, repeats: int) -> dict[str, Any]:
    """Time toys of one size: the whole, and its parts."""
    ensemble = make_ensemble(name, mf.Cpu(threads=threads))
    count = max(20_000_000 // events // 10, 16)  # the same toys for any number of threads
    sizes = np.full(count, events)
    run = whole_job(ensemble, sizes)
    results = run()
    converged = float(np.mean(results.status == CONVERGED))
    whole = best(run, repeats) / count
    draw = best(lambda: ensemble.sampler(0).draw(sizes, 1, 0), repeats) / count
    steps = float(results.steps.mean())
    hessian = best(one_pass(ensemble, sizes), repeats) / count
    return {
        "model": name, "events": events, "threads": threads, "toys": count, "toy_us": whole * 1e6,
        "draw_us": draw * 1e6, "minimise_us": (whole - draw - hessian) * 1e6, "hessian_us": hessian * 1e6,
        "draw_ns_per_event": draw / events * 1e9, "steps": steps, "converged": converged,
        "target_us": TARGETS[name].get(events),
    }  # fmt: skip


def one_pass(ensemble: Ensemble, sizes: Integers) -> Callable[[], Any]:
    """Return what sums value, gradient and Hessian over the events of each toy once."""
    batch = ensemble.draw(0, sizes).batch(ensemble)
    return lambda: batch.evaluate(np.arange(len(sizes)), batch.start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default="benchmarks/toys.json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=int, default=6, help="largest number of events, as a power of ten")
    options = parser.parse_args()
    jobs = [
        (n, 10**k, t)
        for n in MODELS
        for k in range(3, options.most + 1)
        for t in sorted({1, available_cores()})
    ]
    rows = [time_toys(*job, options.repeats) for job in track(jobs, "timing")]
    report = {"processor": host().cpu, "cores": available_cores(), "rows": rows}
    Path(options.json).write_text(json.dumps(report, indent=1))
    table = Table(title=f"{host().cpu}: microseconds for one toy, generation and fit and errors")
    for heading in (
        "model",
        "events",
        "threads",
        "toy",
        "target (1 thread)",
        "drawing",
        "minimising",
        "Hessian",
        "steps",
        "converged",
    ):
        table.add_column(heading, justify="right")
    for r in rows:
        table.add_row(
            r["model"], f"{r['events']:.0e}", str(r["threads"]), f"{r['toy_us']:.1f}", str(r["target_us"]),
            f"{r['draw_us']:.1f}", f"{r['minimise_us']:.1f}", f"{r['hessian_us']:.1f}", f"{r['steps']:.2f}",
            f"{r['converged']:.5f}",
        )  # fmt: skip
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
