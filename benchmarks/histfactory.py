"""HistFactory workspaces of growing size: morefit beside pyhf with NumPy and JAX, in one run, each in its own process.

    python benchmarks/histfactory.py --pyhf PYTHON            # PYTHON has pyhf, jax and iminuit
    python benchmarks/histfactory.py --pyhf PYTHON --sizes tiny small --toys 10

It prints seconds of CPU time per fit, the best of several, and per toy, each system with one thread; pyhf fits few toys, which
take it as long as others. ``--save`` writes them as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from random import Random

import numpy as np

# channels, bins of each, samples, normsys, histosys; and whether all other kinds of modifiers are there
SIZES = {
    "tiny": (1, 2, 2, 1, 0, False),
    "small": (1, 5, 3, 3, 2, True),
    "medium": (3, 8, 5, 10, 6, True),
    "large": (6, 10, 10, 30, 20, True),
    "huge": (10, 10, 20, 60, 40, True),
}


def workspace(size: str, seed: int = 1) -> dict:
    """Return a workspace with a signal and several backgrounds, the same at every call."""
    channels, bins, samples, *_, every = SIZES[size]
    rng = Random(seed)  # whose numbers are the same everywhere
    specs, observations = [], []
    for c in range(channels):
        each, total = [], np.zeros(bins)
        for s in range(samples):
            slope = rng.uniform(-0.2, 0.1)
            nominal = rng.uniform(20, 60) * np.exp(slope * np.arange(bins))
            if s == 0:
                nominal = 12 * np.exp(-0.5 * ((np.arange(bins) - bins / 2) / 1.5) ** 2) + 0.5
            total += nominal
            modifiers = modifiers_of(rng, c, s, nominal, SIZES[size])
            each.append({"name": f"sample_{s}", "data": nominal.round(4).tolist(), "modifiers": modifiers})
        specs.append({"name": f"channel_{c}", "samples": each})
        counts = [float(round(n + n**0.5 * (sum(rng.random() for _ in range(12)) - 6))) for n in total]
        observations.append({"name": f"channel_{c}", "data": counts})
    parameters = [{"name": "mu", "bounds": [[0.0, 10.0]], "inits": [1.0]}]
    if every:
        parameters.append(
            {"name": "lumi", "auxdata": [1.0], "sigmas": [0.02], "bounds": [[0.5, 1.5]], "inits": [1.0]}
        )
    config = {"poi": "mu", "parameters": parameters}
    return {
        "channels": specs,
        "observations": observations,
        "measurements": [{"name": "measurement", "config": config}],
        "version": "1.0.0",
    }


def modifiers_of(rng: Random, channel: int, sample: int, nominal: np.ndarray, size: tuple) -> list[dict]:
    """Return the modifiers of a sample: all systematic variations, and one or two of the others."""
    bins, (*_, norms, shapes, every) = len(nominal), size
    some = [{"name": "mu", "type": "normfactor", "data": None}] if sample == 0 else []
    for k in range(norms):
        high, low = 1 + rng.uniform(0.005, 0.06), 1 - rng.uniform(0.005, 0.06)
        some.append({"name": f"norm_{k}", "type": "normsys", "data": {"hi": high, "lo": low}})
    for k in range(shapes):
        tilt = rng.uniform(-0.04, 0.04) * np.linspace(-1, 1, bins) + rng.uniform(-0.01, 0.01)
        bow = rng.uniform(-0.01, 0.01) * np.ones(bins)
        data = {"hi_data": (nominal * (1 + tilt + bow)).tolist(), "lo_data": (nominal * (1 - tilt)).tolist()}
        # some parameters change the size of a sample as well
        some.append(
            {"name": f"norm_{k}" if k < 2 and norms > 2 else f"shape_{k}", "type": "histosys", "data": data}
        )
    if not every:
        return (
            [*some, {"name": "shapesys", "type": "shapesys", "data": (0.1 * nominal).tolist()}]
            if sample
            else some
        )
    some.append({"name": "lumi", "type": "lumi", "data": None})
    errors = [0.02 * n * rng.uniform(0.5, 2.0) for n in nominal]
    if sample == 1:
        some.append({"name": f"shapesys_{channel}", "type": "shapesys", "data": errors})
    elif sample:
        some.append({"name": f"staterror_{channel}", "type": "staterror", "data": errors})
    if sample == 2:
        some.append({"name": "background", "type": "normfactor", "data": None})
    return some


def time_morefit(size: str, toys: int) -> dict[str, float]:
    """Return the seconds of a fit and of a toy, and the minimum."""
    import morefit as mf

    nll = mf.histfactory.read(workspace(size), backend=mf.Cpu(threads=1))
    result = mf.fit(nll)
    fit = best_of(lambda: mf.fit(nll), 10)
    mf.toy_study(nll, toys=2, truth=result, seed=1, backend=nll.backend, progress=False)
    begin = time.process_time()
    study = mf.toy_study(nll, toys=toys, truth=result, seed=2, backend=nll.backend, progress=False)
    seconds = time.process_time() - begin
    assert study.valid.mean() > 0.99
    return {"fit": fit, "toy": seconds / toys, "mu": result.values["mu"], "parameters": len(result.floating)}


def time_pyhf(size: str, toys: int, backend: str) -> dict[str, float]:
    """Return the same of pyhf with its default minimiser."""
    import pyhf

    if backend == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    pyhf.set_backend(backend)
    space = pyhf.Workspace(workspace(size))
    model = space.model()
    data = space.data(model)
    values = pyhf.infer.mle.fit(data, model)
    fit = best_of(lambda: pyhf.infer.mle.fit(data, model), 3)
    drawn = np.asarray(model.make_pdf(pyhf.tensorlib.astensor(values)).sample((toys,)))
    begin = time.process_time()
    for toy in drawn:
        pyhf.infer.mle.fit(pyhf.tensorlib.astensor(toy), model)
    seconds = time.process_time() - begin
    mu = float(values[model.config.poi_index])
    return {"fit": fit, "toy": seconds / toys, "mu": mu, "parameters": model.config.npars}


def best_of(work, repeats: int) -> float:
    """Return the shortest time of several runs."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def run(python: str, system: str, size: str, toys: int) -> dict[str, float]:
    """Time one system in a process of its own."""
    command = [python, __file__, "--worker", system, "--sizes", size, "--toys", str(toys)]
    one = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | one)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pyhf", help="a Python that has pyhf; without it only morefit is timed")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--toys", type=int, default=1000)
    parser.add_argument("--save", help="a file for the numbers")
    parser.add_argument("--worker", choices=["morefit", "numpy", "jax"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        (size,) = options.sizes
        own = () if options.worker == "morefit" else (options.worker,)
        print(json.dumps((time_pyhf if own else time_morefit)(size, options.toys, *own)))
        return
    print(f"{'workspace':10} {'parameters':>10} {'system':>12} {'s / fit':>10} {'s / toy':>10} {'mu':>10}")
    rows: list[dict[str, object]] = []
    for size in options.sizes:
        systems = [("morefit", sys.executable, options.toys)]
        if options.pyhf:
            systems += [(name, options.pyhf, max(1, options.toys // 100)) for name in ("jax", "numpy")]
        for system, python, toys in systems:
            row = run(python, system, size, toys)
            name = system if system == "morefit" else f"pyhf {system}"
            print(
                f"{size:10} {row['parameters']:10} {name:>12} {row['fit']:10.4f} {row['toy']:10.4f} {row['mu']:10.5f}",
                flush=True,
            )
            rows.append({"workspace": size, "system": name, "toys": toys} | row)
    if options.save:
        with open(options.save, "w") as file:
            file.write(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
