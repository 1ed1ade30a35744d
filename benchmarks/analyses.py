"""Time toys of models of real analyses: ``python benchmarks/analyses.py`` writes JSON and a table.

For each model: nanoseconds per event of one fused pass (value, gradient and Hessian summed over the events of a toy),
microseconds per toy (draw, fit, errors), evaluations per toy, the same in passes, how much a toy costs beyond its draw
and its evaluations, and how many fits ended by which method. On one core (``--backend cpu``) or on a device (``--backend opencl``). Best of several; compare ratios, not runs.
``--peers roofit numba`` fits some of the same toys with RooFit and with iminuit + numba-stats, from the truth and on one core,
each in an environment of its own; what cannot be installed is left out. *Agree* is the share of toys in which all parameters
are within a tenth of an error of ours. ``--large`` times one pass over a million events of shapes that cost more than a
Gaussian (``large.py``) in their place, and the values of peers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import morefit as mf
from hard_models import (
    constant,
    fourteen_parameters,
    johnson_and_threshold,
    thirty_fractions,
    two_crystal_balls,
)
from large import LARGE, time_pass
from models import kstar_model, mass_model
from morefit.kernel.fit_layout import FitRows
from morefit.likelihood import Term
from morefit.likelihood.observed import observed
from morefit.minimise.batch import ANOTHER_START, FAILED, MINUIT, NEWTON, UNDETERMINED, Batch, Fits
from morefit.toys.ensemble import Ensemble
from morefit.toys.many import fit_stored, with_data
from morefit.toys.stored import StoredToys
from morefit.toys.whole_fits import whole_batch
from peers.analyses.worker import WEIGHT
from peers.environments import ROOT, SetupError, prepare, variables
from peers.systems import ENVIRONMENTS

P = mf.Parameter
METHODS = {
    "newton": NEWTON,
    "another start": ANOTHER_START,
    "minuit": MINUIT,
    "failed": FAILED,
    "undetermined": UNDETERMINED,
}


@dataclass(frozen=True, eq=False)
class Analysis:
    """A likelihood without events, and the events of a toy in each of its parts."""

    likelihood: Term
    events: tuple[int, ...]
    given: bool = False  # events are given, with weights, not drawn


def of_model(model: mf.Pdf, events: int) -> Analysis:
    return Analysis(empty(model), (events,))


def empty(model: mf.Pdf, constraints: tuple[Any, ...] = (), weights: Any = None) -> Term:
    """Return the likelihood of a model without events."""
    columns = {o.name: np.empty(0) for o in model.observables}
    return mf.Likelihood(model, columns, constraints=constraints, weights=weights)


def weighted_mass() -> Analysis:
    """The paper's mass model, of events that are seen with an efficiency and weighted by its inverse."""
    model = mass_model()
    (m,) = model.observables
    return Analysis(empty(model, weights=1 / (0.9 - 0.6 * np.exp(-(m - 5.0) / 0.4))), (1000,))


def mass_and_lifetime() -> Analysis:
    """Signal and background in mass and decay time, extended."""
    m, t = mf.Observable("m", 5.0, 5.6), mf.Observable("t", 0.3, 12.0)
    signal = mf.Product([
        mf.Gaussian(m, P("mu", 5.28, 5.2, 5.36), P("sigma", 0.02, 0.005, 0.1)),
        mf.Exponential(t, P("gamma", -0.66, -5.0, -0.05)),
    ])  # fmt: skip
    background = mf.Product([
        mf.Exponential(m, P("c", -2.0, -20.0, 5.0)),
        mf.Sum([mf.Exponential(t, P("short", -3.0, -20.0, -1.0)), mf.Exponential(t, P("long", -0.5, -1.0, -0.05))],
               fractions=[P("f", 0.7, 0.0, 1.0)]),
    ])  # fmt: skip
    return of_model(
        mf.Sum([signal, background], yields=[P("Ns", 400.0, 0, 1e6), P("Nb", 600.0, 0, 1e6)]), 1000
    )


def angles_and_mass() -> Analysis:
    """B0 -> K*0 mu mu in three angles and the mass, with a background that is flat in the angles."""
    m = mf.Observable("m", 5.17, 5.7)
    angles = kstar_model()
    flat = mf.Product([mf.Uniform(o) for o in angles.observables])
    signal = mf.Product([angles, mf.CrystalBall(m, P("mu", 5.28, 5.25, 5.31), P("sigma", 0.018, 0.005, 0.05),
                                                constant("alpha", 1.6), constant("n", 3.0))])  # fmt: skip
    background = mf.Product([flat, mf.Exponential(m, P("c", -3.0, -20.0, 5.0))])
    return of_model(mf.Sum([signal, background], fractions=[P("fsig", 0.6, 0.0, 1.0)]), 2000)


def four_categories() -> Analysis:
    """Four categories with a common signal and constrained efficiencies, each with a yield and a background."""
    mu, sigma, total = P("mu", 5.28, 5.2, 5.36), P("sigma", 0.02, 0.005, 0.1), P("N", 1000.0, 0.0, 1e6)
    terms = []
    for k in range(4):
        x = mf.Observable("x", 5.0, 5.6)
        share = P(f"eff{k}", 0.2 + 0.05 * k, 0.01, 1.0)
        model = mf.Sum(
            [mf.Gaussian(x, mu, sigma), mf.Exponential(x, P(f"c{k}", -2.0, -20.0, 5.0))],
            yields=[total * share, P(f"Nb{k}", 300.0, 0.0, 1e6)],
        )
        terms.append(empty(model, (mf.constraint(share, 0.2 + 0.05 * k, 0.01),)))
    likelihood = terms[0] + terms[1] + terms[2] + terms[3]
    return Analysis(likelihood, tuple(round(1000 * (0.2 + 0.05 * k)) + 300 for k in range(4)))


def sixty_one_parameters() -> Analysis:
    """Twenty peaks with floating means, widths and yields on an exponential."""
    x = mf.Observable("x", 0.0, 21.0)
    peaks = [
        mf.Gaussian(x, P(f"m{k}", k + 1.0, k + 0.7, k + 1.3), P(f"s{k}", 0.15, 0.05, 0.4)) for k in range(20)
    ]
    yields = [P(f"N{k}", 400.0, 0.0, 1e5) for k in range(20)]
    model = mf.Sum(
        [*peaks, mf.Exponential(x, constant("c", -0.05))], yields=[*yields, P("Nb", 4000.0, 0.0, 1e6)]
    )
    return of_model(model, 12_000)


def decay_with_errors() -> Analysis:
    """Decay times with an estimated error in every event, whose scale floats."""
    t, sigma_t = mf.Observable("t", -1.0, 12.0), mf.Observable("sigma_t", 0.005, 0.2)
    width = P("scale", 1.2, 0.5, 2.0) * sigma_t
    model = mf.shapes.Decay(t, P("tau", 1.5, 0.5, 4.0), sigma=[width], given=[sigma_t])
    errors = np.clip(np.random.default_rng(1).gamma(4.0, 0.01, 1000), 0.005, 0.2)
    return Analysis(
        mf.Likelihood(model, mf.generate(model, given={"sigma_t": errors}, seed=1)), (len(errors),)
    )


ANALYSES: Mapping[str, Callable[[], Analysis]] = {
    "the paper's mass model": lambda: of_model(mass_model(), 1000),
    "two Crystal Balls + exponential": lambda: of_model(two_crystal_balls().model, 1000),
    "Johnson + threshold, by quadrature": lambda: of_model(johnson_and_threshold().model, 1000),
    "14 parameters": lambda: of_model(fourteen_parameters().model, 5400),
    "30 fractions": lambda: of_model(thirty_fractions().model, 10_000),
    "mass x lifetime": mass_and_lifetime,
    "angles x mass, with background": angles_and_mass,
    "four categories, constrained": four_categories,
    "61 parameters": sixty_one_parameters,
    "weighted mass fit": weighted_mass,
    "weighted mass fit, datasets given": lambda: Analysis(empty(mass_model()), (1000,), given=True),
    "decay, per-event resolution": decay_with_errors,
}
# events of the toys that are passed over together: memory for more is new for each pass, which costs up to a third; toys, and how often
CACHED, FEWEST, PASSES = 250_000, 20, 10
MOST_TOYS = 1 << 20  # that are drawn and fitted in one measurement
AGREE = 0.1  # errors: fits of peers that are closer agree with ours
PATIENCE = 10.0  # times the seconds for a peer's toys of one model: two of them may take longer than that


def make_ensemble(name: str, backend: Any) -> tuple[Ensemble, np.ndarray[Any, Any]]:
    analysis = ANALYSES[name]()
    values = {p.name: p.start for p in analysis.likelihood.all_parameters}
    ensemble = Ensemble(
        drawn=observed("analyses", analysis.likelihood),
        fitted=analysis.likelihood,
        truth=values,
        start=values,
        seed=1,
        backend=backend,
    )
    return ensemble, np.array(analysis.events)


def best(function: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def datasets(name: str, ensemble: Ensemble, count: int) -> list[tuple[mf.Dataset, ...]]:
    """Return the data of the first toys of a model, part by part, with weights where it has some."""
    analysis, rng = ANALYSES[name](), np.random.default_rng(1)
    toys = ensemble.draw(0, np.tile(analysis.events, (count, 1)))
    drawn = [toys.datasets(k) for k in range(count)]
    if analysis.given:
        return [tuple(d.with_weights(rng.uniform(0.2, 1.8, len(d))) for d in toy) for toy in drawn]
    parts = analysis.likelihood.parts
    return [tuple(part.read(d) for part, d in zip(parts, toy, strict=True)) for toy in drawn]


def time_given(name: str, backend: Any, repeats: int) -> dict[str, Any]:
    """Time fits of weighted datasets that are in memory, with sandwich errors."""
    begin = time.perf_counter()
    drawn, events = make_ensemble(name, backend)
    ensemble = replace(drawn, weighted=True)
    fit_stored(ensemble, datasets(name, drawn, 1))
    first, count = time.perf_counter() - begin, 4000 if backend.name == "cpu" else 40_000
    data = datasets(name, drawn, count)
    fits = fit_stored(ensemble, data)
    toy = best(lambda: fit_stored(ensemble, data), repeats) / count
    toys = StoredToys.of_datasets(ensemble, data)
    batch, job = toys.batch(ensemble), ensemble.whole_fit_of(ensemble.whole_parts)
    rows = FitRows(job.layout, backend.fit_whole(job, whole_batch(toys, ensemble), job.layout.width))
    one_pass = time_one_pass(batch, events, backend, repeats)
    return summary(
        name, ensemble, events, fits, one_pass=one_pass, draw=0.0, toy=toy, steps=float(rows.steps.mean()), toys=count
    ) | {"first_toy_s": first}  # fmt: skip


def time_analysis(name: str, backend: Any, seconds: float, repeats: int) -> dict[str, Any]:
    """Time toys of one model, and the parts of a toy."""
    if ANALYSES[name]().given:
        return time_given(name, backend, repeats)
    begin = time.perf_counter()
    ensemble, events = make_ensemble(name, backend)
    one = ensemble.draw(0, events[None])
    one.fit()
    first = time.perf_counter() - begin
    job = ensemble.whole_fit()
    assert job is not None

    def whole(toys: int) -> Any:
        batch = whole_batch(ensemble.draw(0, np.tile(events, (toys, 1))), ensemble)
        rows = backend.fit_whole(job, batch, job.layout.width)
        assert rows is not None
        return rows

    count = 64
    # else the host takes the steps of the first few thousand
    backend.expect_fits(job.driver, job.layout, 1 << 18)
    while (spent := best(partial(whole, count), 2)) < seconds / 4 and count < MOST_TOYS:
        most = min(4 * count, MOST_TOYS)
        count = min(most, max(count + 1, int(count * seconds / max(spent, 1e-6))))
    toy = best(lambda: whole(count), repeats) / count
    rows = FitRows(job.layout, whole(count))
    few = min(count, 2000)
    toys = ensemble.draw(0, np.tile(events, (few, 1)))
    draw = best(lambda: draw_all(ensemble, events, few), repeats) / few
    one_pass = time_one_pass(toys.batch(ensemble), events, backend, repeats)
    fits = ensemble.draw(0, np.tile(events, (few, 1))).fit()
    return summary(
        name, ensemble, events, fits, one_pass=one_pass, draw=draw, toy=toy, steps=float(rows.steps.mean()), toys=count
    ) | {"first_toy_s": first}  # fmt: skip


def time_one_pass(batch: Batch, events: np.ndarray[Any, Any], backend: Any, repeats: int) -> float:
    """Time a pass over the events of a toy at full speed: of as many toys as a core has in its cache, or of all on a device."""
    count = len(batch.start)
    if backend.name == "cpu":
        count = min(count, max(CACHED // int(events.sum()), FEWEST))
    sets, start = np.arange(count), batch.start[:count]
    batch.evaluate(sets, start)
    return best(lambda: batch.evaluate(sets, start), PASSES * repeats) / count


def summary(
    name: str, ensemble: Ensemble, events: Any, fits: Fits, *,
    one_pass: float, draw: float, toy: float, steps: float, toys: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the numbers of one model by name; times are seconds per toy."""
    return {
        "model": name, "parameters": len(ensemble.floating), "events": int(events.sum()), "toys": toys,
        "pass_ns_per_event": one_pass / events.sum() * 1e9, "draw_us": draw * 1e6, "toy_us": toy * 1e6,
        "evaluations": steps, "passes": toy / one_pass, "over_ideal": toy / (draw + steps * one_pass),
        "methods": {n: float(np.mean(fits.method == m)) for n, m in METHODS.items()},
        "valid": float(fits.valid.mean()),
    }  # fmt: skip


def time_peers(name: str, pythons: Mapping[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Let peers fit toys of one model, each in its own environment; what fails there is said."""
    ensemble, _ = make_ensemble(name, mf.Cpu(threads=1))
    data, parameters = datasets(name, ensemble, options.peer_toys), ensemble.fitted.parameters
    ours = [mf.fit(with_data(ensemble.fitted, toy), errors="naive") for toy in data]
    values = np.array([[r.values[p.name] for p in parameters] for r in ours])
    errors = np.array([[r.errors[p.name] for p in parameters] for r in ours])
    steps = np.nanmedian(errors, axis=0).tolist()
    floating = [(p.name, p.start, p.low, p.high, step) for p, step in zip(parameters, steps, strict=True)]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toys.npz"
        save_toys(path, data)
        order = {
            "model": name, "floating": floating, "toys": str(path), "strategy": options.strategy,
            "seconds": options.peer_seconds,
        }  # fmt: skip
        for peer, python in pythons.items():
            found[peer] = said = run_peer(peer, python, order, folder)
            if "values" in said:
                there = np.array(said.pop("values"))
                away = (
                    np.abs(there - values[: len(there)]) / np.where(errors > 0, errors, np.inf)[: len(there)]
                )
                said["agree"] = float(np.mean(np.all(away < AGREE, axis=1)))
    return found


def save_toys(path: Path, data: Sequence[Sequence[mf.Dataset]]) -> None:
    """Write the columns of toys for peers; names are toy, part and observable."""
    columns = {}
    for toy, parts in enumerate(data):
        for k, part in enumerate(parts):
            columns |= {f"{toy} {k} {name}": part[name] for name in part.names}
            if part.weights is not None:
                columns[f"{toy} {k} {WEIGHT}"] = part.weights
    np.savez(path, **columns)


def run_peer(peer: str, python: Path, order: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Run the worker of a peer; it is ended where even two toys take very long."""
    command = [str(python), "-W", "ignore", "-m", "peers.analyses.worker", f"with_{peer}", json.dumps(order)]
    environment = variables(python, ENVIRONMENTS[peer], 1, folder)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE * order["seconds"]
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer after {PATIENCE * order['seconds']:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return dict(json.loads(done.stdout))


def peer_pythons(names: Sequence[str], folder: Path) -> dict[str, Path]:
    """Return the interpreters of peers, installed if they are not; what cannot be installed is said and left out."""
    pythons = {}
    for name in names:
        try:
            pythons[name] = prepare(name, ENVIRONMENTS[name], folder)
        except SetupError as error:
            print(f"environment {name}: cannot be installed here: {error}", file=sys.stderr)
    return pythons


def draw_all(ensemble: Ensemble, events: np.ndarray[Any, Any], count: int) -> None:
    """Draw toys alone."""
    toys = ensemble.draw(0, np.tile(events, (count, 1)))
    for drawn in toys.drawn:
        assert drawn.columns


def backend_of(name: str) -> Any:
    return mf.Cpu(threads=1) if name == "cpu" else mf.OpenCL()


def peer_text(found: Mapping[str, Any]) -> str:
    """Return what a peer achieved in a cell of the table."""
    if "toy_us" not in found:
        return "-" if "skipped" in found else "failed"
    return f"{found['toy_us']:.4g} ({found['valid']:.0%}, {found['agree']:.0%})"


def time_large(backend: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Print nanoseconds per event of shapes at a million events, beside the values of peers that have them."""
    pythons = peer_pythons(options.peers, options.envs.resolve())
    table = Table(
        "model",
        "par.",
        "pass ns/event",
        "value",
        "first pass s",
        *(f"{p}: value, agrees to" for p in pythons),
    )
    results = []
    for name in LARGE:
        nll, r = time_pass(name, backend, options.repeats)
        r["peers"] = time_large_peers(name, nll, pythons, options)
        cells = (
            f"{r['pass_ns_per_event']:.3g}",
            f"{r['value_ns_per_event']:.3g}",
            f"{r['first_pass_s']:.2f}",
        )
        table.add_row(name, str(r["parameters"]), *cells, *(value_text(r["peers"][p]) for p in pythons))
        results.append(r)
    Console().print(table)
    return results


def time_large_peers(
    name: str, nll: mf.Likelihood, pythons: Mapping[str, Path], options: argparse.Namespace
) -> dict[str, Any]:
    """Let peers compute the value of a likelihood at its start, and of its events."""
    floating, found = [(p.name, p.start, p.low, p.high, 0.0) for p in nll.parameters], {}
    ours = nll.value([p.start for p in nll.parameters])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toys.npz"
        save_toys(path, [(nll.data,)] if pythons else [])
        order = {
            "model": name, "floating": floating, "toys": str(path), "repeats": options.repeats,
            "seconds": options.peer_seconds,
        }  # fmt: skip
        for peer, python in pythons.items():
            found[peer] = answer = run_peer(peer, python, order, folder)
            if "value_s" in answer:
                answer["value_ns_per_event"] = answer.pop("value_s") / len(nll.data) * 1e9
                answer["agrees"] = abs(answer["nll"] - ours) / len(nll.data)
    return found


def value_text(found: Mapping[str, Any]) -> str:
    """Return what a peer's value costs, and by how much per event it differs from ours."""
    if "agrees" not in found:
        return "-" if "skipped" in found else "failed"
    return f"{found['value_ns_per_event']:.3g}, {found['agrees']:.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu")
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long each measurement takes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(ANALYSES))
    parser.add_argument("--peers", nargs="*", choices=("roofit", "numba"), default=())
    parser.add_argument("--peer-toys", type=int, default=30, help="toys of each model that peers fit")
    parser.add_argument(
        "--peer-seconds", type=float, default=30.0, help="about how long they may take for it"
    )
    parser.add_argument("--strategy", type=int, choices=(0, 1, 2), default=1, help="of the Minuit of peers")
    parser.add_argument("--envs", type=Path, default=ROOT / ".peers", help="folder of their environments")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/analyses.json"))
    parser.add_argument("--large", action="store_true", help="time shapes at a million events instead")
    options = parser.parse_args()
    backend = backend_of(options.backend)
    if options.large:
        results = time_large(backend, options)
        options.out.with_name("large.json").write_text(json.dumps(results, indent=1) + "\n")
        return
    console, results = Console(), []
    pythons = peer_pythons(options.peers, options.envs.resolve())
    for name in options.models:
        result = time_analysis(name, backend, options.seconds, options.repeats)
        if pythons:
            result["peers"] = time_peers(name, pythons, options)
        results.append(result)
        console.print(f"{name}: {result['toy_us']:.3g} us", highlight=False)
    table = Table("model", "par.", "events", "pass ns/event", "draw us", "toy us", "evaluations", "passes", "over ideal",
                  "valid", "newton", "first s", *(f"{peer} us (valid, agree)" for peer in pythons))  # fmt: skip
    for r in results:
        numbers = (
            r["pass_ns_per_event"],
            r["draw_us"],
            r["toy_us"],
            r["evaluations"],
            r["passes"],
            r["over_ideal"],
        )
        table.add_row(r["model"], str(r["parameters"]), str(r["events"]), *(f"{x:.3g}" for x in numbers),
                      f"{r['valid']:.2%}", f"{r['methods']['newton']:.2%}", f"{r['first_toy_s']:.2f}", *(peer_text(r["peers"][peer]) for peer in pythons))  # fmt: skip
    console.print(table)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(
        json.dumps({"backend": backend.label, "results": results}, indent=1), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
