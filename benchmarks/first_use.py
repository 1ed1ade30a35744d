"""Time new processes to their first toy and their first fit of models of real analyses: ``python benchmarks/first_use.py`` prints a table.

Each is a process of its own, first with empty caches (morefit's and the driver's), then with what the first left there. Seconds
are those of the import, of opening the device, and from there to the end of the toy or of the fit. The median of several. Python
has its bytecode, as pip leaves it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

BEGIN = time.perf_counter()
WORKER = "--worker"  # run by a fresh process: print the seconds of one model as JSON
STEPS = ("import", "open", "first")


def work(what: str, name: str, backend_name: str, events_file: Path) -> dict[str, float]:
    """Draw and fit a toy, or fit data, for the first time in this process."""
    import morefit as mf
    from analyses import ANALYSES, backend_of, make_ensemble, np, with_data

    imported = time.perf_counter()
    backend = backend_of(backend_name)
    assert backend.label
    opened = time.perf_counter()
    if what == "toy":
        ensemble, events = make_ensemble(name, backend)
        ensemble.draw(0, events[None]).fit()
    else:
        likelihood, data = ANALYSES[name]().likelihood, list[Any]()
        with np.load(events_file) as columns:
            for k, part in enumerate(likelihood.parts):
                own = {column.partition(" ")[2]: column for column in columns if column.startswith(f"{k} ")}
                data.append(part.read({column: columns[stored] for column, stored in own.items()}))
        mf.fit(with_data(likelihood, data), backend=backend)
    return dict(zip(STEPS, (imported - BEGIN, opened - imported, time.perf_counter() - opened), strict=True))


def start(command: list[str], cache: str) -> dict[str, float]:
    """Use a model in a process of its own."""
    environment = os.environ | {"MOREFIT_CACHE_DIR": cache, "CUDA_CACHE_PATH": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    answer = subprocess.run(
        [sys.executable, __file__, *command], env=environment, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def drawn_models() -> list[str]:
    from analyses import ANALYSES

    return [name for name, make in ANALYSES.items() if not make().given]


def save_events(name: str, path: Path) -> None:
    """Write the events of one toy, for fits; names are part and observable."""
    from analyses import datasets, make_ensemble, mf, np

    (toy,) = datasets(name, make_ensemble(name, mf.Cpu(threads=1))[0], 1)
    np.savez(path, **{f"{k} {column}": part[column] for k, part in enumerate(toy) for column in part.names})


def time_model(what: str, name: str, backend: str, rounds: int, events: Path) -> dict[str, Any]:
    """Return the seconds of all rounds, each with empty caches and then with what it left there."""
    command = [WORKER, what, "--models", name, "--backend", backend, "--events", str(events)]
    rows: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for found in rows.values():
                found.append(start(command, cache))
    return {state: {step: [r[step] for r in found] for step in STEPS} for state, found in rows.items()}


def print_row(name: str, row: dict[str, Any]) -> None:
    first = [f"{median(row[state]['first']):.2f} ({max(row[state]['first']):.2f})" for state in row]
    before = [f"{median(row['warm'][step]):7.2f}" for step in STEPS[:2]]
    print(f"{name:40s} {' '.join(before)} {first[0]:>14s} {first[1]:>14s}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", nargs="*", help="as benchmarks/analyses.py names them (default: all that are drawn)"
    )
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument(WORKER, choices=("toy", "fit"), help=argparse.SUPPRESS)
    parser.add_argument("--events", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker, options.models[0], options.backend, options.events)))
        return
    models = options.models or drawn_models()
    print(f"{'median (largest), seconds':40s} {'import':>7s} {'open':>7s} {'cold':>14s} {'warm':>14s}")
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(models):
            events = Path(folder) / f"{number}.npz"
            save_events(name, events)
            for what in ("toy", "fit"):
                if number == 0:  # writes bytecode
                    time_model(what, name, options.backend, 1, events)
                row = time_model(what, name, options.backend, options.rounds, events)
                table[f"{name}: {what}"] = row
                print_row(f"{name}: {what}", row)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
