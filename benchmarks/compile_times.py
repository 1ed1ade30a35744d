"""Time the first use of a model: ``python benchmarks/compile_times.py`` writes JSON and a table.

Each model is used in fresh processes, first with an empty cache on disk, then with what the first left there. Times are
CPU seconds of the process: those of the import, of the model with its checks, and of the first value, gradient and
Hessian of a few events.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKER = "--worker"  # run by a fresh process: print the seconds of one model as JSON
EVENTS = 1_000
STEPS = ("import", "model", "value", "gradient", "hessian")


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its CPU time."""
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def work(name: str, backend: str) -> dict[str, Any]:
    """Use a model for the first time in this process."""

    def load() -> Any:
        import compile_models

        return compile_models

    models, imported = clocked(load)
    import morefit as mf

    chosen = mf.OpenCL() if backend == "opencl" else mf.Cpu(threads=1)
    model = models.COMPILE_MODELS[name]()
    data = models.flat_data(model, EVENTS)
    nll, built = clocked(lambda: mf.Likelihood(model, data, backend=chosen))
    point = [p.start for p in nll.parameters]
    row = {"import": imported, "model": built}
    for step in STEPS[2:]:
        _, row[step] = clocked(lambda step=step: getattr(nll, step)(point))
    compiled = nll.compiled[2, False]
    begin = time.perf_counter()
    calls = 0
    while time.perf_counter() - begin < 0.3:
        nll.hessian(point)
        calls += 1
    once = (time.perf_counter() - begin) / calls
    return {
        "parameters": len(point),
        "first use": sum(row[step] for step in STEPS[1:]),
        **row,
        "passes of the Hessian": compiled.seconds,
        "Hessian of the data [us]": once * 1e6,
    }


def start(name: str, backend: str, cache: Path) -> dict[str, Any]:
    """Use a model in a process of its own."""
    command = [sys.executable, __file__, WORKER, name, "--backend", backend]
    environment = os.environ | {"MOREFIT_CACHE_DIR": str(cache)}
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    row: dict[str, Any] = json.loads(answer.stdout)
    return row


def time_model(name: str, backend: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Return the best of some rounds, each with a cold and then a warm cache."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "warm"):
                row = start(name, backend, Path(cache))
                if state not in best or row["first use"] < best[state]["first use"]:
                    best[state] = row
    return best


def print_row(name: str, row: dict[str, dict[str, Any]]) -> None:
    cells = [f"{row[state][step]:8.2f}" for state in ("cold", "warm") for step in ("first use", *STEPS[2:])]
    print(f"{name:22s} {row['cold']['parameters']:4d} {' '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", help="names of models (default: all)")
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument(WORKER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker, options.backend)))
        return
    from compile_models import COMPILE_MODELS

    steps = " ".join(f"{step:>8s}" for step in ("total", *STEPS[2:]))
    print(f"{'CPU seconds':22s} {'par':>4s} {'cold':>8s}{'':27s} {'warm':>8s}")
    print(f"{'':27s} {steps} {steps}")
    table = {}
    for name in options.models or COMPILE_MODELS:
        table[name] = time_model(name, options.backend, options.rounds)
        print_row(name, table[name])
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
