"""Time likelihoods and toys on 1, 2, 4, ... threads: ``python benchmarks/scaling.py`` writes JSON and a table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import morefit as mf
from fits import best
from models import MODELS
from morefit.backend.machine import host
from morefit.backend.workers import available_cores
from toys import make_ensemble


def time_likelihood(name: str, events: int, threads: int) -> dict[str, Any]:
    """Time one pass for value, gradient and Hessian, in ns an event."""
    make_model, draw = MODELS[name]
    likelihood = mf.Likelihood(make_model(), draw(events), backend=mf.Cpu(threads=threads))
    point = likelihood.points([p.start for p in likelihood.parameters])[0]
    likelihood.evaluate_full(point, 2)
    seconds = best(lambda: likelihood.evaluate_full(point, 2), 1.0)
    return {"what": f"{name} Hessian", "events": events, "threads": threads, "ns": seconds / events * 1e9}


def time_toys(name: str, events: int, threads: int) -> dict[str, Any]:
    """Time whole toys, in ns an event."""
    ensemble = make_ensemble(name, threads)
    sizes = np.full(max(8_000_000 // events, 4 * threads), events)
    job = ensemble.whole_fit()
    assert job is not None
    seconds = best(lambda: ensemble.backend.fit_whole(job, sizes, 1, 0), 1.0, 3, 20)
    return {"what": f"{name} toys", "events": events, "threads": threads, "ns": seconds / sizes.sum() * 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default="benchmarks/scaling.json")
    options = parser.parse_args()
    counts = [t for t in (1, 2, 4, 8, 16, 32, 64) if t <= available_cores()]
    rows = []
    for name in MODELS:
        for events in (10**6, 10**7):
            rows += [time_likelihood(name, events, t) for t in counts]
        for events in (1_000, 10_000, 100_000):
            rows += [time_toys(name, events, t) for t in counts]
    Path(options.json).write_text(json.dumps({"processor": host().cpu, "rows": rows}, indent=1))
    table = Table(title=f"{host().cpu}: ns per event, and how many times faster than one thread")
    for heading in ("what", "events", *map(str, counts)):
        table.add_column(heading, justify="right")
    for what, events in dict.fromkeys((r["what"], r["events"]) for r in rows):
        times = [r["ns"] for r in rows if (r["what"], r["events"]) == (what, events)]
        table.add_row(what, f"{events:.0e}", *(f"{t:.3g} ({times[0] / t:.2f}x)" for t in times))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
