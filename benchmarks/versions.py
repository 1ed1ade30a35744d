"""Time another checkout of morefit and this one in turns: ``python benchmarks/versions.py PATH`` prints ratios.

Only public names are used that both know. Each round starts a fresh process for either, first one, then the other;
a task's time is the best of its calls, and the best and the median of the rounds are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
WORKER = "--worker"  # run by a fresh process: print the seconds of each task as JSON


def tasks(name: str, backend: Any) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Return what is timed for a model: a label, how often it is called, and the call."""
    import morefit as mf
    from models import MODELS

    make_model, draw = MODELS[name]
    model = make_model()
    point = [p.start for p in model.parameters]
    small, large = draw(1_000, 1), draw(1_000_000, 1)
    yield "fit, 10^3 events", 300, lambda: mf.fit(model, small, backend=backend)
    yield "fit, 10^6 events", 5, lambda: mf.fit(model, large, backend=backend)
    nll = mf.Likelihood(model, large, backend=backend)
    yield "value, 10^6 events", 50, lambda: nll.value(point)
    yield "gradient, 10^6 events", 50, lambda: nll.gradient(point)
    yield "Hessian, 10^6 events", 50, lambda: nll.hessian(point)
    yield "generate, 10^6 events", 10, lambda: mf.generate(model, 1_000_000, seed=1, backend=backend)
    for events, toys in ((1_000, 4_000), (100_000, 40)):
        yield (
            f"{toys} toys of {events} events", 5,
            lambda e=events, t=toys: mf.toy_study(model, toys=t, events=e, seed=1, backend=backend, progress=False),
        )  # fmt: skip


def work(backend: str) -> dict[str, float]:
    """Return the best time of each task, in seconds; the import and the first fit of a process among them."""
    begin = time.perf_counter()
    import morefit as mf

    seconds = {"import": time.perf_counter() - begin}
    chosen = mf.OpenCL() if backend == "opencl" else mf.Cpu(threads=1)
    for name in ("mass", "kstarmumu"):
        for label, calls, call in tasks(name, chosen):
            begin = time.perf_counter()
            call()
            if label == "fit, 10^3 events":
                seconds[f"{name}: first fit"] = time.perf_counter() - begin
            times = []
            for _ in range(calls):
                begin = time.perf_counter()
                call()
                times.append(time.perf_counter() - begin)
            seconds[f"{name}: {label}"] = min(times)
    return seconds


def start(checkout: Path, backend: str) -> dict[str, float]:
    """Run the tasks with the morefit of a checkout, in a process of its own."""
    paths = [str(checkout / "src"), str(HERE / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, __file__, WORKER, "--backend", backend]
    answer = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, stdout=subprocess.PIPE, check=True
    )
    times: dict[str, float] = json.loads(answer.stdout)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument(WORKER, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.backend)))
        return
    rounds: dict[str, list[dict[str, float]]] = {"other": [], "this": []}
    for k in range(options.rounds):
        for who in sorted(rounds, reverse=bool(k % 2)):
            rounds[who].append(start(options.other if who == "other" else HERE, options.backend))
    table = {}
    print(f"{'task':36s} {'other':>12s} {'this':>12s} {'best':>7s} {'median':>7s}")
    for task in rounds["this"][0]:
        other, this = ([one[task] for one in rounds[who]] for who in ("other", "this"))
        ratio, middle = min(this) / min(other), statistics.median(this) / statistics.median(other)
        table[task] = {"other": other, "this": this, "ratio": ratio, "median_ratio": middle}
        print(f"{task:36s} {min(other) * 1e6:9.1f} us {min(this) * 1e6:9.1f} us {ratio:7.3f} {middle:7.3f}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
