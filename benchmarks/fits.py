"""Time likelihoods and fits of the paper's two models: ``python benchmarks/fits.py`` writes JSON and a table.

Every figure is the best of several in one run; compare ratios, not runs. Peers (numpy, iminuit with numba-stats)
are timed in the same run on the same data.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import morefit as mf
from models import MODELS
from morefit.resources import available_cores
from morefit.targets.cpu.compile import build_object, host
from peers.by_hand import PEERS, minuit_fit

ORDERS = ("value", "gradient", "hessian")


def best(function: Callable[[], Any], seconds: float = 0.7, least: int = 3, most: int = 2000) -> float:
    """Return the shortest time of many calls, in seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < end and len(times) < most):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def time_model(name: str, events: int, threads: int) -> dict[str, Any]:
    """Time value, gradient and Hessian per event, and a fit, once compiled."""
    make_model, draw = MODELS[name]
    likelihood = mf.Likelihood(make_model(), draw(events), backend=mf.Cpu(threads=threads))
    point = likelihood.points([p.start for p in likelihood.parameters])[0]
    row: dict[str, Any] = {"model": name, "events": events, "threads": threads, "tool": "morefit"}
    for order, what in enumerate(ORDERS):
        likelihood.evaluate_full(point, order)
        row[f"{what}_ns"] = best(lambda order=order: likelihood.evaluate_full(point, order)) / events * 1e9
    result = mf.fit(likelihood)
    assert result.valid, result.reasons
    row["fit_ms"] = best(lambda: mf.fit(likelihood)) * 1e3
    row["calls"] = dict(result.calls)
    return row


def time_peers(name: str, events: int) -> list[dict[str, Any]]:
    """Time the same likelihood by hand, one thread."""
    make_model, draw = MODELS[name]
    parameters = make_model().parameters
    start = np.array([p.start for p in parameters])
    limits = [(p.low, p.high) for p in parameters]
    rows = []
    for tool, make in PEERS[name].items():
        try:
            nll = make(draw(events))
            nll(start)
        except ImportError:
            continue
        fit_ms = best(lambda nll=nll: minuit_fit(nll, start, limits), 0.5, 1, 20) * 1e3
        value = best(lambda nll=nll: nll(start)) / events * 1e9
        rows.append(
            {"model": name, "events": events, "threads": 1, "tool": tool, "value_ns": value, "fit_ms": fit_ms}
        )
    return rows


def time_compile(name: str) -> dict[str, float]:
    """Time LLVM on each kernel's text, in ms."""
    explained = mf.explain(MODELS[name][0]())
    return {
        what: best(lambda o=order: build_object(explained.source(o), driver=False), 0.3) * 1e3
        for order, what in enumerate(ORDERS)
    }


FIRST_FIT = """
import time; begin = time.perf_counter()
import morefit as mf
from morefit.cli import mass_model
import numpy as np
imported = time.perf_counter()
m = np.load({path!r})
result = mf.fit(mass_model(), {{"m": m}})
assert result.valid
print(imported - begin, time.perf_counter() - begin)
"""


def time_first_fit() -> dict[str, float]:
    """Time import and first fit of 10 000 mass events in new processes, with a cold and a warm cache."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.npy")
        np.save(path, MODELS["mass"][1](10_000)["m"])
        found: dict[str, list[float]] = {"import": [], "cold": [], "warm": []}
        for k in range(4):
            env = os.environ | {"MOREFIT_CACHE_DIR": str(Path(folder) / f"cache{k}")}
            for kind in ("cold", "warm"):
                command = [sys.executable, "-c", FIRST_FIT.format(path=path)]
                out = subprocess.run(
                    command, env=env, capture_output=True, text=True, check=True
                ).stdout.split()
                found["import"].append(float(out[0]))
                found[kind].append(float(out[1]))
    return {kind: min(times) for kind, times in found.items()}


def time_many_parameters(events: int = 100_000) -> dict[str, Any]:
    """Time a fit with 61 free parameters: 20 Gaussians and an exponential."""
    rng = np.random.default_rng(3)
    x = mf.Observable("x", 0.0, 21.0)
    peaks = [
        mf.Gaussian(
            x, mf.Parameter(f"mu{k}", k + 1.02, k + 0.5, k + 1.5), mf.Parameter(f"sigma{k}", 0.21, 0.05, 0.5)
        )
        for k in range(20)
    ]
    tail = mf.Exponential(x, mf.Parameter("slope", -0.055, -1.0, 1.0))
    model = mf.Sum([*peaks, tail], fractions=[mf.Parameter(f"f{k}", 0.031, 0.0, 1.0) for k in range(20)])
    which = rng.choice(21, events, p=[0.03] * 20 + [0.4])
    data = np.where(which == 20, -np.log1p(rng.random(events) * np.expm1(-0.05 * 21)) / 0.05,
                    rng.normal(which + 1.0, 0.2))  # fmt: skip
    data = data[(data > 0) & (data < 21)]
    begin = time.perf_counter()
    result = mf.fit(model, {"x": data})
    first = time.perf_counter() - begin
    assert result.valid, result.reasons
    again = best(lambda: mf.fit(model, {"x": data}), 1.0, 2)
    return {"parameters": len(result.floating), "events": len(data), "first_s": first, "again_s": again,
            "calls": dict(result.calls)}  # fmt: skip


def time_series(parameters: int, events: int = 100_000) -> dict[str, float]:
    """Time passes over a series of cosines, linear in its coefficients; one thread, ns an event."""
    x = mf.Observable("x", 0.0, 1.0)
    waves = [mf.Parameter(f"a{k}", 0.01, -1.0, 1.0) * np.cos(3.0 * (k + 1) * x) for k in range(parameters)]
    data = {"x": np.random.default_rng(4).uniform(size=events)}
    likelihood = mf.Likelihood(mf.Density(1.0 + sum(waves), [x]), data, backend=mf.Cpu(threads=1))
    point = likelihood.points([p.start for p in likelihood.parameters])[0]
    names = ("value_ns", "gradient_ns", "hessian_ns")
    times = [best(lambda o=order: likelihood.evaluate_full(point, o), 0.5, 3) for order in range(3)]
    return {"parameters": parameters} | {n: t / events * 1e9 for n, t in zip(names, times, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=7, help="largest number of events, as a power of ten")
    parser.add_argument("--json", default="benchmarks/fits.json", help="where to write the figures")
    options = parser.parse_args()
    cores = sorted({1, available_cores()})
    jobs = [(n, 10**k) for n in MODELS for k in range(3, options.most + 1)]
    rows: list[dict[str, Any]] = []
    for name, events in track(jobs, "timing"):
        rows += [time_model(name, events, t) for t in cores]
        if events <= 10**6:
            rows += time_peers(name, events)
    report = {
        "machine": {"processor": host().cpu, "vector": host().width, "cores": available_cores(),
                    "python": platform.python_version(), "system": platform.system()},
        "versions": {"morefit": mf.__version__} | {p: version(p) for p in ("numpy", "iminuit", "llvmlite")},
        "rows": rows,
        "compile_ms": {name: time_compile(name) for name in MODELS},
        "first_fit_s": time_first_fit(),
        "many_parameters": time_many_parameters(),
        "series": [time_series(p) for p in (8, 10, 12, 16, 20, 32, 61)],
    }  # fmt: skip
    Path(options.json).write_text(json.dumps(report, indent=1))
    show(report)


def show(report: dict[str, Any]) -> None:
    table = Table(title=f"{report['machine']['processor']}, vectors of {report['machine']['vector']} doubles")
    for heading in (
        "model",
        "events",
        "tool",
        "threads",
        "value ns/event",
        "+ gradient",
        "+ Hessian",
        "fit ms",
    ):
        table.add_column(heading, justify="right")
    for r in report["rows"]:
        cells = [f"{r[k]:.3g}" if k in r else "" for k in ("value_ns", "gradient_ns", "hessian_ns", "fit_ms")]
        table.add_row(r["model"], f"{r['events']:.0e}", r["tool"], str(r["threads"]), *cells)
    console = Console(width=120)
    console.print(table)
    console.print("compile, ms:", report["compile_ms"])
    console.print("import and first fit in a new process, s:", report["first_fit_s"])
    console.print("61 parameters:", report["many_parameters"])
    for row in report["series"]:
        console.print("series of cosines:", row)


if __name__ == "__main__":
    main()
