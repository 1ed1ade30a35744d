"""Compare minimisers on models that are hard to fit: ``python benchmarks/minimisers.py`` writes JSON and a table.

Toys are drawn and fitted in compiled code from the start values of the model: with no other starts, with those that the
library tries by default, and thoroughly, as in ``toy_study(thorough=True)``. Some are fitted by Minuit with strategies
0, 1 and 2 as well, of which the lowest minimum counts: *above* and *below* are the shares of fits that end higher or lower
than that by more than the EDM goal.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import morefit as mf
from hard_models import MODELS, HardModel
from models import MODELS as PAPER
from morefit.kernel.fit_layout import FitRows
from morefit.minimise.newton import is_valid
from morefit.minimise.starts import STARTS, thorough_starts
from morefit.minimise.trust_region import DEGENERATE, FLAT
from morefit.toys.batch import GOAL, Toys
from morefit.toys.ensemble import Ensemble

WAYS = ("one start", "default", "thorough")
ALL = {name: (lambda make=make: HardModel(make(), 1000)) for name, (make, _) in PAPER.items()} | dict(MODELS)


def compare(name: str, toys: int, minuit: int, seed: int, minima: dict[str, Any]) -> dict[str, Any]:
    """Fit toys of one model, and some of them by Minuit, whose lowest minima are added to those that are known."""
    hard = ALL[name]()
    likelihood = mf.Likelihood(hard.model, {o.name: np.empty(0) for o in hard.model.observables})
    start = {p.name: p.start for p in likelihood.all_parameters}
    ensemble = Ensemble(
        drawn=likelihood,
        fitted=likelihood,
        truth=hard.all_values,
        start=start,
        seed=seed,
        backend=mf.Cpu(threads=1),
    )
    extended = hard.model.expected_events() is not None
    sizes = (
        np.random.default_rng(seed).poisson(hard.events, toys)
        if extended
        else np.full(toys, int(hard.events))
    )
    drawn = ensemble.draw(0, sizes)
    known = minima.get(name, np.empty(0))
    minima[name] = np.append(known, best_of_minuit(drawn, len(known), min(minuit, toys)))
    best = minima[name][:toys]
    result: dict[str, Any] = {
        "model": name,
        "parameters": len(ensemble.floating),
        "toys": toys,
        "by Minuit": len(best),
        "without a minimum by Minuit": float(np.mean(~np.isfinite(best))),
    }
    many = thorough_starts(len(ensemble.floating))
    for label, (starts, thorough) in zip(WAYS, ((0, False), (STARTS, False), (many, True)), strict=True):
        rows = fit(drawn, starts, thorough)
        lost = np.isin(rows.status, (FLAT, DEGENERATE))
        off = rows.value[: len(best)] - best
        some = np.isfinite(best)
        result[label] = {
            "valid or flagged": float(np.mean(is_valid(rows.status, rows.column("fixed")) | lost)),
            "undetermined": float(lost.mean()),
            "evaluations": float(rows.steps.mean()),
            "evaluations_99": float(np.quantile(rows.steps, 0.99)),
            "above": float(np.mean(off[some] > GOAL)) if some.any() else None,
            "below": float(np.mean(off[some] < -GOAL)) if some.any() else None,
        }
    return result


def fit(toys: Toys, starts: int, thorough: bool) -> FitRows:
    """Fit toys in compiled code, with a number of other starts; of all fits, if it is thorough."""
    ensemble = toys.ensemble
    job = ensemble.whole_fit()
    assert job is not None
    batch = toys.whole_batch(ensemble)
    record = batch.record.copy()
    record[job.layout.record.first("max_starts")] = starts
    record[job.layout.record.first("thorough")] = thorough
    rows = ensemble.backend.fit_whole(job, replace(batch, record=record), job.layout.width)
    assert rows is not None
    return FitRows(job.layout, rows)


def best_of_minuit(toys: Toys, begin: int, end: int) -> Any:
    """Return the lowest minimum of each of some toys, inf where Minuit finds none."""
    best = np.full(max(end - begin, 0), np.inf)
    for k, toy in enumerate(range(begin, end)):
        likelihood = toys.likelihood(toy, toys.ensemble.fitted)
        for strategy in (0, 1, 2):
            try:
                result = mf.fit(likelihood, strategy=strategy, minimiser="minuit")
            except mf.MorefitError:
                continue
            if result.valid or result.undetermined:
                best[k] = min(best[k], result.nll)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=1000)
    parser.add_argument("--minuit", type=int, default=100, help="toys that Minuit fits as well")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--models", nargs="*", default=list(ALL))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/minimisers.json"))
    parser.add_argument(
        "--minima", type=Path, help="file of Minuit's minima with this seed, read and written"
    )
    options = parser.parse_args()
    minima: dict[str, Any] = {}
    if options.minima and options.minima.exists():
        with np.load(options.minima) as stored:
            minima.update(stored)
    results = []
    for name in track(options.models):
        results.append(compare(name, options.toys, options.minuit, options.seed, minima))
        if options.minima:
            np.savez(options.minima, **minima)
    table = Table(
        "model", "par.", "starts", "valid or flagged", "undetermined", "evaluations", "99 %", "above", "below"
    )
    for result in results:
        for label in WAYS:
            r = result[label]
            share = ["-" if r[k] is None else f"{r[k]:.1%}" for k in ("above", "below")]
            table.add_row(result["model"], str(result["parameters"]), label, f"{r['valid or flagged']:.2%}",
                          f"{r['undetermined']:.1%}", f"{r['evaluations']:.1f}", f"{r['evaluations_99']:.0f}", *share)  # fmt: skip
    Console().print(table)
    content = {"toys": options.toys, "minuit": options.minuit, "seed": options.seed, "results": results}
    options.out.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
