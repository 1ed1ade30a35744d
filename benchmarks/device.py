"""Check and time the OpenCL backend on the device at hand: ``python benchmarks/device.py``; one JSON has it all.

The checks are the tests of the backends and the fit that the C++ system recorded; every timing is compared with the
CPU's result on the way.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import morefit as mf
from models import MODELS
from morefit import OpenCL, devices
from morefit.intervals import feldman_cousins
from morefit.minimise.trust_region import CONVERGED
from morefit.sampling.generate import Sampler
from toys import best, make_ensemble, whole_job

ROOT = Path(__file__).parents[1]


def time_sums(name: str, events: int, repeats: int) -> list[dict[str, Any]]:
    """Time value, gradient and Hessian, in ps an event, and compare them with the CPU's."""
    make_model, draw = MODELS[name]
    model, few = make_model(), draw(min(events, 1_000_000))
    data = {n: np.resize(c, events) for n, c in few.items()}
    ours, judge = mf.Likelihood(model, data, backend=OpenCL()), mf.Likelihood(model, data)
    point = ours.points([p.start for p in ours.parameters])[0]
    rows = []
    for order, what in enumerate(("value", "gradient", "hessian")):
        found, expected = ours.evaluate_full(point, order), judge.evaluate_full(point, order)
        off = abs(found.value[0] / expected.value[0] - 1)
        seconds = best(lambda o=order: ours.evaluate_full(point, o), repeats)
        rows.append({"model": name, "what": what, "events": events, "us": seconds * 1e6,
                     "ps_per_event": seconds / events * 1e12, "off": off})  # fmt: skip
    return rows


def time_draw(name: str, events: int, repeats: int) -> dict[str, Any]:
    model = MODELS[name][0]()
    sampler = Sampler(model, {p.name: p.start for p in model.parameters}, OpenCL())
    sizes = np.array([events])
    sampler.draw(sizes, 1)
    seconds = best(lambda: sampler.draw(sizes, 1), repeats)
    return {"model": name, "what": "draw", "events": events, "ps_per_event": seconds / events * 1e12}


def time_toys(name: str, events: int, toys: int, repeats: int) -> dict[str, Any]:
    """Time whole toys, in us each, and compare the first with the CPU's."""
    ours, judge = (make_ensemble(name, b) for b in (OpenCL(), mf.Cpu()))
    sizes = np.full(toys, events)
    begin = time.perf_counter()
    whole_job(ours, sizes[:2])()
    first = time.perf_counter() - begin
    run = whole_job(ours, sizes)
    fits, seconds = run(), best(run, repeats)
    expected = whole_job(judge, sizes[:32])()
    return {"model": name, "what": "toys", "events": events, "toys": toys, "us_per_toy": seconds / toys * 1e6,
            "first_s": first, "converged": float(np.mean(fits.status == CONVERGED)),
            "off": float(np.max(np.abs(fits.x[:32] - expected.x)))}  # fmt: skip


def time_study(name: str, events: int, toys: int) -> dict[str, Any]:
    """Time ``toy_study`` as users call it, in us a toy."""
    model = MODELS[name][0]()
    seeds = iter(range(4))

    def study() -> mf.ToyResults:
        return mf.toy_study(
            model, toys=toys, events=events, seed=next(seeds), backend=OpenCL(), progress=False
        )

    valid = float(np.mean(study().valid))
    return {"model": name, "what": "study", "events": events, "toys": toys,
            "us_per_toy": best(study, 3) / toys * 1e6, "valid": valid}  # fmt: skip


def time_one_toy(name: str, events: int, repeats: int) -> dict[str, Any]:
    """Time one toy at a time, generation and errors included, in us."""
    ensemble, sizes = make_ensemble(name, OpenCL()), np.array([events])
    fitted = ensemble.draw(0, sizes).fit()
    toys = iter(range(1, repeats + 1))
    seconds = best(lambda: ensemble.draw(next(toys), sizes).fit(), repeats)
    return {
        "model": name,
        "what": "one toy",
        "events": events,
        "us": seconds * 1e6,
        "valid": bool(fitted.valid[0]),
    }


def time_scan(points: int, toys: int) -> dict[str, Any]:
    """Time a Feldman-Cousins scan of the mass model, first and once compiled."""
    model = MODELS["mass"][0]()
    data = mf.generate(model, 1000, seed=1)
    values = np.linspace(0.2, 0.4, points)
    seconds = []
    for seed in range(4):
        begin = time.perf_counter()
        found = feldman_cousins(
            mf.Likelihood(model, data), "fsig", values, toys=toys, seed=seed, backend=OpenCL(), progress=False
        )
        seconds.append(time.perf_counter() - begin)
    judge = feldman_cousins(mf.Likelihood(model, data), "fsig", values, toys=toys, seed=3, progress=False)
    off = float(np.nanmax(np.abs(found.p_values - judge.p_values)))
    return {"model": "mass", "what": "scan", "points": points, "toys": toys, "first_s": seconds[0],
            "s": min(seconds[1:]), "off": off, "failed": int(found.invalid.sum())}  # fmt: skip


def check_reference() -> dict[str, Any]:
    """Fit the data that the C++ system fitted, and compare, in units of its errors."""
    folder = ROOT / "tests" / "reference"
    expected = json.loads((folder / "mass_10k.json").read_text())["results"]["ana"]
    data = np.loadtxt(folder / "mass_10k.csv", skiprows=1)
    result = mf.fit(MODELS["mass"][0](), {"m": data}, backend=OpenCL(), tolerance=0.01)
    names = ["mu" if n == "mb" else n for n in expected["names"]]
    values, errors = np.array(expected["values"]), np.array(expected["errors"])
    off = float(np.max(np.abs([result.values[n] for n in names] - values) / errors))
    return {"what": "recorded fit", "off": off, "valid": result.valid, "on": result.backend}


def run_tests() -> dict[str, Any]:
    """Run the tests of the backends on this device."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "xdist", "-n", "auto", "-k", "opencl"]
    command = [sys.executable, "-m", "pytest", "tests/targets", *options]
    path = os.pathsep.join(str(Path(p).resolve()) for p in sys.path if p)
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    lines = done.stdout.strip().splitlines()
    return {"what": "tests", "passed": done.returncode == 0, "summary": lines[-1] if lines else done.stderr[-500:],
            "failed": [line for line in lines if line.startswith(("FAILED", "ERROR"))]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default="benchmarks/device.json")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests of the backends")
    options = parser.parse_args()
    print(*devices(), sep="\n")
    rows: list[dict[str, Any]] = []

    def keep(*found: dict[str, Any]) -> None:
        rows.extend(found)
        for row in found:
            print(
                {k: round(v, 4) if isinstance(v, float) and v > 1e-3 else v for k, v in row.items()},
                flush=True,
            )

    scale = 1000 if options.small else 1
    time_sums("mass", 1_000, 5_000)  # wakes the device up
    keep(check_reference())
    for name in MODELS:
        for events in (1_000, 1_000_000 // scale, 100_000_000 // scale):
            keep(*time_sums(name, events, 200 if events < 10**6 else 20))
        keep(time_draw(name, 100_000_000 // scale, 10))
        for events, toys in ((1_000, 200_000), (10_000, 20_000), (100_000, 2_000)):
            keep(time_toys(name, events // (10 if options.small else 1), max(toys // scale, 4), 3))
        keep(time_study(name, 1_000, 1_000_000 // scale))
        for events in (1_000, 10_000, 100_000, 1_000_000):
            keep(time_one_toy(name, events, 3 if options.small else 30))
    keep(time_scan(20, 5000 // (100 if options.small else 1)))
    write(Path(options.json), rows)
    if not options.no_tests:
        keep(run_tests())
        write(Path(options.json), rows)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"devices": [str(d) for d in devices()], "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
