"""Binned fits, fits of templates and simultaneous fits: morefit beside RooFit and iminuit with numba, in turns, one thread each.

    python benchmarks/likelihoods.py

Environments of the peers are made below ``.peers`` when they are first needed. Every system fits the same data from the same
start, with errors from the Hessian; times are the best and the median of single fits, after a first one that compiles. The
last columns are the largest difference from the values of morefit, relatively, and for templates the nll at the values.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peers.environments import prepare, variables
from peers.systems import ENVIRONMENTS

BINS, LOW, HIGH = 100, 5.0, 6.0
# of a peak over a slope: name, start, low, high
BINNED = (
    ("mu", 5.28, 5.2, 5.4), ("sigma", 0.03, 0.005, 0.2), ("slope", -2.0, -10.0, 5.0), ("ns", 4000.0, 0.0, 1e5),
    ("nb", 6000.0, 0.0, 1e5),
)  # fmt: skip
# of three histograms with yields
TEMPLATES = tuple((f"n{k}", 3000.0, 0.0, 1e5) for k in range(3))
LABELS = ("a", "b", "c", "d")
# of each category: a width, a slope, two yields and the mean, of which one is shared by two
JOINT = tuple(
    row
    for k, label in enumerate(LABELS)
    for row in (
        (f"mu_{label}", 5.28 + 0.01 * k, 5.2, 5.4), (f"sigma_{label}", 0.02 + 0.004 * k, 0.005, 0.2),
        (f"slope_{label}", -2.0 + 0.3 * k, -10.0, 5.0), (f"ns_{label}", 100_000.0, 0.0, 1e6), (f"nb_{label}", 150_000.0, 0.0, 1e6),
    )
)  # fmt: skip
Fit = Callable[[], dict[str, float]]
ALIVE: list[Any] = []  # RooFit does not own what models are made of


def best_values(result: Any, names: list[str]) -> dict[str, float]:
    return {name: float(result.values[name]) for name in names}


def morefit_fits(data: dict[str, Any]) -> dict[str, Fit]:
    """Return the fits of morefit by task."""
    import morefit as mf

    x = mf.Observable("x", LOW, HIGH)

    def peak(rows: Any) -> Any:
        mu, sigma, slope, ns, nb = (mf.Parameter(*row) for row in rows)
        return mf.Sum([mf.Gaussian(x, mu, sigma), mf.Exponential(x, slope)], yields=[ns, nb])

    one, cpu = peak(BINNED), mf.Cpu(threads=1)
    joint = mf.Simultaneous({n: peak(JOINT[5 * k : 5 * k + 5]) for k, n in enumerate(LABELS)}, "category")
    events = {n: mf.Dataset({"x": data[n]}) for n in LABELS}
    counts, edges = data["counts"], data["edges"]
    names = [[name for name, *_ in rows] for rows in (BINNED, JOINT, TEMPLATES)]
    templates = {name: data[f"template {name}"] for name in names[2]}
    yields = [mf.Parameter(*row) for row in TEMPLATES]

    def fit_templates() -> Any:
        return mf.fit(mf.TemplateLikelihood(data["mixture"], templates, yields, method="exact", backend=cpu))

    return {
        "binned": lambda: best_values(
            mf.fit(mf.BinnedLikelihood(one, (counts, edges), backend=cpu)), names[0]
        ),
        "templates": lambda: best_values(fit_templates(), names[2]),
        "simultaneous": lambda: best_values(mf.fit(joint, events, backend=cpu), names[1]),
    }


def roofit_fits(data: dict[str, Any]) -> dict[str, Fit]:
    """Return the fits of RooFit by task; bins are integrated, as they are by the others."""
    import ROOT

    ROOT.gErrorIgnoreLevel = ROOT.kWarning
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
    x, made = ROOT.RooRealVar("x", "", LOW, HIGH), []

    def peak(rows: Any, label: str) -> tuple[Any, list[Any]]:
        own = [ROOT.RooRealVar(name, "", start, low, high) for name, start, low, high in rows]
        mu, sigma, slope, ns, nb = own
        parts = [
            ROOT.RooGaussian(f"g{label}", "", x, mu, sigma),
            ROOT.RooExponential(f"e{label}", "", x, slope),
        ]
        pdf = ROOT.RooAddPdf(f"m{label}", "", ROOT.RooArgList(*parts), ROOT.RooArgList(ns, nb))
        made.append((own, parts, pdf))
        return pdf, own

    def fit_of(pdf: Any, sample: Any, own: list[Any], rows: Any, **options: Any) -> Fit:
        def fit() -> dict[str, float]:
            for variable, (_, start, low, high) in zip(own, rows, strict=True):
                variable.setVal(start)
                variable.setError(0.01 * (high - low))
            nll = pdf.createNLL(sample, EvalBackend="cpu", Extended=True, **options)
            minimiser = ROOT.RooMinimizer(nll)
            minimiser.setPrintLevel(-1)
            minimiser.setStrategy(0)
            minimiser.minimize("Minuit2", "Migrad")
            minimiser.hesse()
            return {v.GetName(): v.getVal() for v in own}

        return fit

    def histogram(name: str, counts: Any) -> Any:
        filled = ROOT.TH1D(f"h {name}", "", BINS, LOW, HIGH)
        for k, n in enumerate(counts):
            filled.SetBinContent(k + 1, float(n))
        made.append(filled)
        return ROOT.RooDataHist(name, "", ROOT.RooArgList(x), filled)

    binned, mixture = histogram("binned", data["counts"]), histogram("mixture", data["mixture"])
    pdf, own = peak(BINNED, "")
    yields = [ROOT.RooRealVar(*row[:1], "", *row[1:]) for row in TEMPLATES]
    simulated = [histogram(f"template {name}", data[f"template {name}"]) for name, *_ in TEMPLATES]
    x.setBins(BINS)
    shapes = [ROOT.RooHistPdf(f"s{k}", "", ROOT.RooArgSet(x), own) for k, own in enumerate(simulated)]
    total = ROOT.RooAddPdf("templates", "", ROOT.RooArgList(*shapes), ROOT.RooArgList(*yields))
    category = ROOT.RooCategory("category", "")
    for label in LABELS:
        category.defineType(label)
    joint, all_own = ROOT.RooSimultaneous("joint", "", category), []
    samples = {}
    for k, label in enumerate(LABELS):
        each, some = peak(JOINT[5 * k : 5 * k + 5], label)
        joint.addPdf(each, label)
        all_own += some
        samples[label] = ROOT.RooDataSet.from_numpy({"x": data[label]}, ROOT.RooArgSet(x))
    everything = ROOT.RooDataSet("all", "", ROOT.RooArgSet(x), Index=category, Import=samples)
    ALIVE.append((x, made, simulated, shapes, samples, category))
    return {
        "binned": fit_of(pdf, binned, own, BINNED, IntegrateBins=1e-3),
        "templates": fit_of(total, mixture, yields, TEMPLATES),
        "simultaneous": fit_of(joint, everything, all_own, JOINT),
    }


def numba_fits(data: dict[str, Any]) -> dict[str, Fit]:
    """Return the fits of iminuit with numba-stats by task."""
    from iminuit import Minuit, cost
    from numba_stats import truncexpon, truncnorm

    def cumulated(edges: Any, mu: float, sigma: float, slope: float, ns: float, nb: float) -> Any:
        signal = truncnorm.cdf(edges, LOW, HIGH, mu, sigma)
        return ns * signal + nb * truncexpon.cdf(edges, LOW, HIGH, 0.0, -1 / slope)

    def density(xs: Any, mu: float, sigma: float, slope: float, ns: float, nb: float) -> Any:
        signal = truncnorm.pdf(xs, LOW, HIGH, mu, sigma)
        return ns + nb, ns * signal + nb * truncexpon.pdf(xs, LOW, HIGH, 0.0, -1 / slope)

    def fit_of(likelihood: Any, rows: Any) -> Fit:
        def fit() -> dict[str, float]:
            minuit = Minuit(likelihood, *(start for _, start, *_ in rows))
            minuit.limits = [(low, high) for *_, low, high in rows]
            minuit.strategy = 0
            minuit.migrad()
            minuit.hesse()
            return {name: minuit.values[k] for k, (name, *_) in enumerate(rows)}

        return fit

    binned = cost.ExtendedBinnedNLL(data["counts"], data["edges"], cumulated)
    sums = [np.cumsum(data[f"template {name}"]) for name, *_ in TEMPLATES]
    below = [np.concatenate([[0.0], total]) / total[-1] for total in sums]

    def mixed(_: Any, n0: float, n1: float, n2: float) -> Any:
        return n0 * below[0] + n1 * below[1] + n2 * below[2]

    templates = cost.ExtendedBinnedNLL(data["mixture"], data["edges"], mixed)
    parts = []
    for k, label in enumerate(LABELS):
        names = ["x", *(name for name, *_ in JOINT[5 * k : 5 * k + 5])]
        parts.append(cost.ExtendedUnbinnedNLL(data[label], density, name=names[1:]))
    return {
        "binned": fit_of(binned, BINNED),
        "templates": fit_of(templates, TEMPLATES),
        "simultaneous": fit_of(sum(parts[1:], parts[0]), JOINT),
    }


SYSTEMS = {"morefit": morefit_fits, "roofit": roofit_fits, "numba": numba_fits}


def draw(events: int, seed: int = 1) -> dict[str, Any]:
    """Draw the data of all tasks, with numpy."""
    rng = np.random.default_rng(seed)

    def sample(rows: Any, scale: float = 1.0) -> Any:
        (_, mu, *_), (_, sigma, *_), (_, slope, *_), (_, ns, *_), (_, nb, *_) = rows
        peak = rng.normal(mu, sigma, rng.poisson(scale * ns))
        u = rng.uniform(size=rng.poisson(scale * nb))
        flat = LOW + np.log1p(u * np.expm1(slope * (HIGH - LOW))) / slope
        drawn = np.concatenate([peak, flat])
        return rng.permutation(drawn[(drawn >= LOW) & (drawn <= HIGH)])

    counts, edges = np.histogram(sample(BINNED), BINS, (LOW, HIGH))
    centres = (edges[:-1] + edges[1:]) / 2
    shapes = [np.exp(-2 * centres), np.exp(-0.5 * ((centres - 5.3) / 0.05) ** 2), np.ones(BINS)]
    templates = {
        f"template {name}": np.round(1e5 * shape / shape.sum()) + 1
        for (name, *_), shape in zip(TEMPLATES, shapes, strict=True)
    }
    mixture = rng.poisson(
        sum(n * t / t.sum() for n, t in zip((5000, 1500, 3000), templates.values(), strict=True))
    )
    scale = events / 1_000_000
    joint = {n: sample(JOINT[5 * k : 5 * k + 5], scale) for k, n in enumerate(LABELS)}
    other = {"mixture": mixture.astype(float), **templates}
    return {"counts": counts.astype(float), "edges": edges, **other, **joint}


def poisson_nll(data: dict[str, Any], values: dict[str, float]) -> float:
    """Return the nll of templates at fitted yields, relative to expecting the counts."""
    n = data["mixture"]
    mu = sum(y * (t := data[f"template {name}"]) / t.sum() for name, y in values.items())
    return float(np.sum(mu - n + np.where(n > 0, n * np.log(np.where(n > 0, n, 1) / mu), 0.0)))


def work(system: str, path: str, seconds: float) -> dict[str, Any]:
    """Time the fits of one system: repeated for some seconds each, after a first one."""
    with np.load(path) as file:
        data = dict(file)
    rows = {}
    for task, fit in SYSTEMS[system](data).items():
        begin = time.perf_counter()
        values = fit()
        first, times = time.perf_counter() - begin, []
        while sum(times) < seconds or len(times) < 3:
            begin = time.perf_counter()
            fit()
            times.append(time.perf_counter() - begin)
        rows[task] = {
            "first": first,
            "best": min(times),
            "median": statistics.median(times),
            "values": values,
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--events", type=int, default=1_000_000, help="of the simultaneous fit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each task of a round")
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(arguments.worker, arguments.data, arguments.seconds)))
        return
    best: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/data.npz"
        data = draw(arguments.events)
        np.savez(path, **data)
        for _ in range(arguments.rounds):
            for system in arguments.systems:
                environment = ENVIRONMENTS[system]
                python = (
                    Path(sys.executable)
                    if system == "morefit"
                    else prepare(system, environment, arguments.environments)
                )
                command = [
                    str(python),
                    __file__,
                    "--worker",
                    system,
                    "--data",
                    path,
                    "--seconds",
                    str(arguments.seconds),
                ]
                answer = subprocess.run(
                    command,
                    env=variables(python, environment, 1, scratch),
                    stdout=subprocess.PIPE,
                    check=True,
                )
                for task, row in json.loads(answer.stdout.splitlines()[-1]).items():
                    known = best.setdefault(task, {}).setdefault(system, row)
                    known |= {key: min(known[key], row[key]) for key in ("first", "best", "median")}
    for task, rows in best.items():
        ours = rows.get("morefit")
        for system, row in rows.items():
            ratio = f"{row['best'] / ours['best']:8.1f}" if ours else ""
            away = max(abs(v / ours["values"][n] - 1) for n, v in row["values"].items()) if ours else 0.0
            nll = f"  nll {poisson_nll(data, row['values']):.6f}" if task == "templates" else ""
            print(
                f"{task:14s} {system:8s} best {1e3 * row['best']:10.3f} ms, median {1e3 * row['median']:10.3f} ms {ratio}"
                f"  values off by {away:.1e}{nll}"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(best, indent=1) + "\n")


if __name__ == "__main__":
    main()
