"""HistFactory workspaces of growing size: morefit beside pyhf with NumPy and JAX, and RooFit, in turns, each in its own process.

    python benchmarks/histfactory.py --pyhf PYTHON --roofit PYTHON      # which have pyhf, jax and iminuit, or ROOT
    python benchmarks/histfactory.py --pyhf PYTHON --sizes tiny small --toys 10

It prints seconds of CPU time per fit, the best of several, and per toy, each system with one thread; the peers fit few toys, which
take them as long as others. morefit's time has the errors, and that of toys their drawing; that of RooFit is its likelihood and
Migrad with strategy 0, without Hesse, and pyhf's its default minimiser. ``--save`` writes them as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from random import Random
from typing import Any

import numpy as np

# channels, bins of each, samples, normsys, histosys; and whether all other kinds of modifiers are there
SIZES = {
    "tiny": (1, 2, 2, 1, 0, False),
    "small": (1, 5, 3, 3, 2, True),
    "medium": (3, 8, 5, 10, 6, True),
    "large": (6, 10, 10, 30, 20, True),
    "huge": (10, 10, 20, 60, 40, True),
}

ALIVE: list[Any] = []  # RooFit does not own what models are made of


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
    fit = best_of(lambda: pyhf.infer.mle.fit(data, model), 1 if size == "huge" else 3)
    drawn = np.asarray(model.make_pdf(pyhf.tensorlib.astensor(values)).sample((toys,)))
    begin = time.process_time()
    for toy in drawn:
        pyhf.infer.mle.fit(pyhf.tensorlib.astensor(toy), model)
    seconds = time.process_time() - begin
    mu = float(values[model.config.poi_index])
    return {"fit": fit, "toy": seconds / toys, "mu": mu, "parameters": model.config.npars}


def roofit_sample(parts: Any, spec: dict, histogram: Any) -> Any:
    """Return a sample for RooFit; errors of simulations are those of its histogram."""
    kinds = {m["type"]: m for m in spec["modifiers"]}
    nominal = np.array(spec["data"])
    sample = parts.Sample(spec["name"])
    sample.SetHisto(histogram(nominal, kinds.get("staterror", {}).get("data")))
    sample.SetNormalizeByTheory("lumi" in kinds)
    if "staterror" in kinds:
        sample.ActivateStatError()
    for m in spec["modifiers"]:
        kind, name, data = m["type"], m["name"], m["data"]
        if kind == "normfactor":
            sample.AddNormFactor(name, 1, 0, 10)
        elif kind == "normsys":
            sample.AddOverallSys(name, data["lo"], data["hi"])
        elif kind == "histosys":
            made = parts.HistoSys()
            made.SetName(name)
            made.SetHistoHigh(histogram(data["hi_data"]))
            made.SetHistoLow(histogram(data["lo_data"]))
            sample.AddHistoSys(made)
        elif kind == "shapesys":
            made = parts.ShapeSys()
            made.SetName(name)
            made.SetErrorHist(histogram(np.array(data) / nominal))
            made.SetConstraintType(parts.Constraint.Poisson)
            sample.AddShapeSys(made)
    return sample


def roofit_space(size: str) -> Any:
    """Return a workspace of RooFit with the same likelihood."""
    import ROOT

    ROOT.gErrorIgnoreLevel = ROOT.kError
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
    parts, content = ROOT.RooStats.HistFactory, workspace(size)

    def histogram(contents: Any, errors: Any = None) -> Any:
        made = ROOT.TH1D(f"h{len(ALIVE)}", "", len(contents), 0, len(contents))
        made.SetDirectory(0)
        for k, x in enumerate(contents):
            made.SetBinContent(k + 1, x)
            made.SetBinError(k + 1, 0.0 if errors is None else errors[k])
        ALIVE.append(made)
        return made

    measurement = parts.Measurement("measured", "measured")
    measurement.SetPOI("mu")
    measurement.SetLumi(1.0)
    measurement.SetLumiRelErr(0.02)
    if not SIZES[size][-1]:
        measurement.AddConstantParam("Lumi")
    for spec, seen in zip(content["channels"], content["observations"], strict=True):
        channel = parts.Channel(spec["name"])
        channel.SetData(histogram(seen["data"]))
        channel.SetStatErrorConfig(0.0, "Gaussian")
        for sample in spec["samples"]:
            channel.AddSample(roofit_sample(parts, sample, histogram))
        measurement.AddChannel(channel)
    os.chdir(tempfile.mkdtemp())  # where RooFit writes files that nobody wants
    ALIVE.append(measurement)
    return parts.MakeModelAndMeasurementFast(measurement)


def time_roofit(size: str, toys: int) -> dict[str, float]:
    """Return the same of RooFit: the likelihood made and minimised by Migrad."""
    import ROOT

    space = roofit_space(size)
    config, data = space.obj("ModelConfig"), space.data("obsData")
    pdf, measured = config.GetPdf(), config.GetGlobalObservables()
    parameters = pdf.getParameters(data)
    start = parameters.snapshot()

    def fit(counts: Any) -> None:
        parameters.assign(start)
        nll = pdf.createNLL(counts, ROOT.RooFit.GlobalObservables(measured), EvalBackend="cpu")
        minimiser = ROOT.RooMinimizer(nll)
        minimiser.setPrintLevel(-1)
        minimiser.setStrategy(0)
        minimiser.minimize("Minuit2", "Migrad")

    fit(data)  # which loads and compiles
    best = best_of(lambda: fit(data), 1 if size == "huge" else 3)
    mu, count = space.var("mu").getVal(), sum(not p.isConstant() for p in parameters)
    fitted, seconds = parameters.snapshot(), 0.0
    for _ in range(toys):
        parameters.assign(fitted)
        parameters.assign(pdf.generateSimGlobal(measured, 1).get(0))
        counts = pdf.generate(config.GetObservables(), ROOT.RooFit.Extended(), ROOT.RooFit.AllBinned())
        start.assign(measured)  # what constraints measured stays that of the toy
        begin = time.process_time()
        fit(counts)
        seconds += time.process_time() - begin
    return {"fit": best, "toy": seconds / toys, "mu": mu, "parameters": count}


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


def time_worker(system: str, size: str, toys: int) -> dict[str, float]:
    """Return the seconds of a system."""
    if system == "roofit":
        return time_roofit(size, toys)
    return time_morefit(size, toys) if system == "morefit" else time_pyhf(size, toys, system)


def timed_systems(options: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Return systems with their Python and their number of toys."""
    few = max(1, options.toys // 500)
    systems = [("morefit", sys.executable, options.toys)]
    systems += [("jax", options.pyhf, few), ("numpy", options.pyhf, few)] if options.pyhf else []
    return systems + ([("roofit", options.roofit, few)] if options.roofit else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pyhf", help="a Python that has pyhf")
    parser.add_argument("--roofit", help="a Python that has ROOT")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--toys", type=int, default=1000)
    parser.add_argument(
        "--rounds", type=int, default=1, help="of all systems in turns, the best of which counts"
    )
    parser.add_argument(
        "--skip", nargs="*", default=[], help="systems that are not timed, such as huge:numpy"
    )
    parser.add_argument("--save", help="a file for the numbers")
    parser.add_argument("--worker", choices=["morefit", "numpy", "jax", "roofit"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        (size,) = options.sizes
        print(json.dumps(time_worker(options.worker, size, options.toys)), flush=True)
        os._exit(0)  # ROOT and Python disagree on who frees histograms
    print(f"{'workspace':10} {'parameters':>10} {'system':>12} {'s / fit':>10} {'s / toy':>10} {'mu':>10}")
    rows: list[dict[str, object]] = []
    for size in options.sizes:
        systems = [one for one in timed_systems(options) if f"{size}:{one[0]}" not in options.skip]
        rounds = [
            {name: run(python, name, size, toys) for name, python, toys in systems}
            for _ in range(options.rounds)
        ]
        for system, _, toys in systems:
            row = rounds[0][system] | {key: min(one[system][key] for one in rounds) for key in ("fit", "toy")}
            name = f"pyhf {system}" if system in ("jax", "numpy") else system
            print(
                f"{size:10} {row['parameters']:10} {name:>12} {row['fit']:10.6f} {row['toy']:10.6f} {row['mu']:10.5f}",
                flush=True,
            )
            rows.append({"workspace": size, "system": name, "toys": toys} | row)
    if options.save:
        with open(options.save, "w") as file:
            file.write(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
