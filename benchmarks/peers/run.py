"""Time morefit and its peers on the paper's two fits: ``python benchmarks/peers/run.py``.

Sets up an environment for each peer, times toys (generate, fit from the truth, Hesse) in it, checks that all systems
find the same minimum, and writes JSON, two figures and a table. What is in the JSON with the same versions is kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.environments import (
    ROOT,
    SetupError,
    available_cores,
    call,
    digest,
    machine,
    prepare,
    variables,
    versions,
)
from peers.problem import PROBLEMS
from peers.results import Place, Results, problems
from peers.systems import DRAWING, ENVIRONMENTS, PEERS
from peers.table import tables, thread_text

HERE = Path(__file__).parent
EDM = 1e-4  # where Minuit stops by default, for everyone
PATIENCE = 180.0  # seconds beyond the budget that a worker may be silent: imports, tracing, the first toy


def main() -> int:
    options = make_parser().parse_args()
    folder, output = Path(options.envs).resolve(), Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    results = Results.load(output, machine(), options.fresh)
    results.data["settings"] = {"strategy": options.strategy, "edm": EDM, "budget_s": options.budget}
    pythons = set_up(results, folder, options.systems)
    results.data["judge"] = make_common(folder)
    for place in places(options.systems, options.models, options.threads):
        environment = PEERS[place[0]].environment
        if environment in pythons:
            Runner(results, folder, pythons[environment], options).run(place)
    found = problems(results.data)
    results.data["problems"] = found
    results.save()
    draw_figures(folder, output)
    print(tables(results.data))
    print(*(f"PROBLEM: {p}" for p in found), sep="\n")
    return 1 if found else 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", choices=PEERS, default=list(PEERS), metavar="SYSTEM",
                        help=f"of {', '.join(PEERS)}")  # fmt: skip
    parser.add_argument("--models", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--threads", nargs="+", type=int, default=sorted({1, available_cores()}), help="default: 1 and all"
    )
    parser.add_argument(
        "--strategy", type=int, choices=(0, 1, 2), default=1, help="Minuit's, for all (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=100, help="most of a cell (default: %(default)s)")
    parser.add_argument("--enough", type=float, default=1.5,
                        help="seconds after which a cell's repeats end, if there are two (default: %(default)s)")  # fmt: skip
    parser.add_argument("--budget", type=float, default=150.0,
                        help="most seconds of a cell: others are left out, and said so (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--envs", default=str(ROOT / ".peers"), help="folder of the environments (default: %(default)s)"
    )
    parser.add_argument("--output", default=str(ROOT / "benchmarks" / "results" / "peers.json"))
    parser.add_argument("--fresh", action="store_true", help="keep nothing of earlier runs")
    return parser


def set_up(results: Results, folder: Path, systems: list[str]) -> dict[str, Path]:
    """Prepare the environments of these systems; what cannot be installed is noted, and left out."""
    pythons = {}
    for name in dict.fromkeys(["numpy", *(PEERS[s].environment for s in systems)]):
        environment = ENVIRONMENTS[name]
        try:
            pythons[name] = prepare(name, environment, folder)
            results.data["environments"][name] = versions(pythons[name], environment)
        except SetupError as error:
            print(f"environment {name}: cannot be installed here: {error}", file=sys.stderr)
            results.data["environments"][name] = {"cannot be installed": str(error)}
    if "numpy" not in pythons:
        raise SystemExit("environment 'numpy': must be there to judge the others; see the message above")
    return pythons


def make_common(folder: Path) -> Any:
    """Draw the common datasets and let the judge fit them."""
    place = folder / "common"
    place.mkdir(exist_ok=True)
    python = prepare("numpy", ENVIRONMENTS["numpy"], folder)
    where = variables(python, ENVIRONMENTS["numpy"], 1, str(place))
    return json.loads(call(str(python), "-m", "peers.judge", str(place), env=where))


def places(systems: list[str], models: list[str], threads: list[int]) -> Iterator[Place]:
    for model in models:
        for system in systems:
            peer = PEERS[system]
            for count in threads if peer.threaded else [1]:
                if model in peer.models:
                    yield system, model, count


@dataclass
class Runner:
    """Runs the cells of one system, model and number of threads that are missing, in one process."""

    results: Results
    folder: Path
    python: Path
    options: argparse.Namespace

    def run(self, place: Place) -> None:
        peer, (system, model, threads) = PEERS[place[0]], place
        key = self.key(place)
        sizes = self.results.missing(place, sorted(self.options.sizes), key, self.options.budget)
        if not sizes:
            return
        print(f"{peer.label}, {model}, {thread_text(threads)}: ", end="", flush=True)
        begin, left = time.perf_counter(), list(sizes)
        common = {"system": system, "model": model, "threads": threads, "key": key}
        for line in self.lines(place, sizes):
            kind = line.pop("kind")
            if kind == "failed":
                for events in left:
                    self.results.put("cells", {**common, "events": events, **line})
                print(f"FAILED: {line['error']}", end="  ")
            elif kind == "check":
                self.results.put("checks", {**common, **line})
            else:
                left.remove(line["events"])
                self.results.put("cells", {**common, "budget": self.options.budget, **line})
                said = f"{line['median_ms']:.3g} ms" if "median_ms" in line else line["not_run"]
                print(said, end="  ", flush=True)
        print(f"({time.perf_counter() - begin:.0f} s)", flush=True)

    def key(self, place: Place) -> str:
        """Tell by versions, settings and the worker's text whether a result is still good."""
        peer = PEERS[place[0]]
        shared = [HERE / f"{name}.py" for name in ("problem", "draw", "by_hand", "system", "worker")]
        files = [HERE / "workers" / f"{peer.worker}.py", HERE / "workers" / "RooKstarMuMu.h", *shared]
        known = [
            self.results.data["environments"][peer.environment],
            digest(*files),
            self.options.strategy,
            EDM,
        ]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:12]

    def order(self, place: Place, sizes: list[int]) -> str:
        """Return what the worker is told, the times of smaller cells included."""
        cells = [self.results.cell(place, n) for n in sorted(self.options.sizes) if n < sizes[0]]
        known = [(c["events"], c["median_ms"] / 1e3) for c in cells if c is not None and "median_ms" in c]
        return json.dumps({
            "model": place[1], "variant": PEERS[place[0]].variant, "threads": place[2], "sizes": sizes,
            "strategy": self.options.strategy, "edm": EDM, "repeats": self.options.repeats, "enough": self.options.enough,
            "budget": self.options.budget, "common": str(self.folder / "common" / f"{place[1]}.npz"),
            "known": known,
        })  # fmt: skip

    def lines(self, place: Place, sizes: list[int]) -> Iterator[dict[str, Any]]:
        """Yield what the worker says; a last line of kind "failed" if it dies or is silent for too long."""
        peer = PEERS[place[0]]
        script = ["-W", "ignore", "-m", "peers.worker", peer.worker, self.order(place, sizes)]
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+") as errors:
            where = variables(self.python, ENVIRONMENTS[peer.environment], place[2], scratch)
            process = subprocess.Popen(
                [str(self.python), *script],
                env=where,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            patience = self.options.budget + PATIENCE
            try:
                yield from (json.loads(line) for line in impatient(process, patience))
            except queue.Empty:
                stop(process)
                yield {"kind": "failed", "error": f"not run: nothing heard for {patience:.0f} s"}
                return
            except BaseException:
                stop(process)
                raise
            if process.wait():
                errors.seek(0)
                said = [line for line in errors.read().splitlines() if line.strip()]
                yield {"kind": "failed", "error": said[-1] if said else f"exit code {process.returncode}"}


def impatient(process: subprocess.Popen[str], patience: float) -> Iterator[str]:
    """Yield lines of a process; raise queue.Empty if none comes for long."""
    heard: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            heard.put(line)
        heard.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while (line := heard.get(timeout=patience)) is not None:
        yield line


def stop(process: subprocess.Popen[str]) -> None:
    """End a worker and the processes that it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def draw_figures(folder: Path, output: Path) -> None:
    """Draw in an environment of its own; without it there is the JSON, and no figure."""
    try:
        call(str(prepare("figures", DRAWING, folder)), str(HERE / "figures.py"), str(output))
    except SetupError as error:
        print(f"figures: not drawn: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
