"""Compare minimisers on models that are hard to fit: ``python benchmarks/minimisers.py`` writes JSON and a table.

Toys are drawn and fitted in compiled code from the start values of the model: with the other starts that the library tries by
default, and if asked with none of them, or thoroughly, as in ``toy_study(thorough=True)``. Some are fitted by Minuit with
strategies 0, 1 and 2 as well, of which the lowest minimum counts: *above* and *below* are the shares of fits that end higher
or lower than that by more than the EDM goal. The JSON names the toys that end above.

Toys are computed in blocks, by ``--workers`` processes: the first block of every model, then the second, and so on. After
``--seconds`` no block is begun, and models have fewer toys than ``--toys``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import morefit as mf
from hard_models import MODELS, HardModel
from models import MODELS as PAPER
from morefit.kernel.fit_layout import FitRows
from morefit.minimise.newton import is_valid
from morefit.minimise.starts import STARTS, thorough_starts
from morefit.minimise.trust_region import DEGENERATE, FLAT
from morefit.toys.batch import GOAL
from morefit.toys.ensemble import Ensemble
from morefit.toys.stored import StoredToys
from morefit.toys.whole_fits import whole_batch

ALL = {name: (lambda make=make: HardModel(make(), 1000)) for name, (make, _) in PAPER.items()} | dict(MODELS)
WAYS = ("one start", "default", "thorough")


@dataclass(frozen=True)
class Block:
    """Some toys of a model, from ``first`` on; the first ``by_minuit`` of the model are fitted by Minuit as well."""

    model: str
    first: int
    toys: int
    by_minuit: int
    seed: int
    ways: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ends:
    """Where the fits of some toys ended, one way."""

    value: Any  # (toys,)
    valid: Any  # (toys,)
    flagged: Any  # (toys,) not valid, since parameters are undetermined
    evaluations: Any  # (toys,)

    @classmethod
    def joined(cls, parts: Sequence[Ends]) -> Ends:
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a block: Minuit's lowest minimum of each toy (inf: none, nan: not fitted), and the ends of all ways."""

    block: Block
    parameters: int
    best: Any  # (toys,)
    ends: Mapping[str, Ends]


def compute(block: Block, known: Any) -> Outcome:
    """Draw the toys of a block, fit them, and find Minuit's minima where they are not known."""
    hard = ALL[block.model]()
    likelihood = mf.Likelihood(hard.model, {o.name: np.empty(0) for o in hard.model.observables})
    ensemble = Ensemble(
        drawn=likelihood,
        fitted=likelihood,
        truth=hard.all_values,
        start={p.name: p.start for p in likelihood.all_parameters},
        seed=block.seed,
        backend=mf.Cpu(threads=1),
    )
    sizes = np.full(block.toys, int(hard.events))
    if hard.model.expected_events() is not None:
        last = block.first + block.toys
        sizes = np.random.default_rng(block.seed).poisson(hard.events, last)[block.first :]
    toys = ensemble.draw(block.first, sizes).stored()
    best = known.copy()
    for toy in np.flatnonzero(np.isnan(known)):
        if block.first + toy < block.by_minuit:
            best[toy] = best_of_minuit(toys, toy)
    return Outcome(block, len(ensemble.floating), best, {way: fit(toys, way) for way in block.ways})


def fit(toys: StoredToys, way: str) -> Ends:
    """Fit toys in compiled code, with the other starts of a way."""
    ensemble = toys.ensemble
    assert ensemble.has_whole_fit
    job = ensemble.whole_fit_of(ensemble.whole_parts)
    batch = whole_batch(toys, ensemble)
    record = batch.record.copy()
    others = {"one start": 0, "default": STARTS, "thorough": thorough_starts(len(ensemble.floating))}
    record[job.layout.record.first("max_starts")] = others[way]
    record[job.layout.record.first("thorough")] = way == "thorough"
    rows = ensemble.backend.fit_whole(job, replace(batch, record=record), job.layout.width)
    assert rows is not None
    ends = FitRows(job.layout, rows)
    valid = is_valid(ends.status, ends.column("fixed"))
    flagged = np.isin(ends.status, (FLAT, DEGENERATE)) & ~valid
    return Ends(ends.value.copy(), valid, flagged, ends.steps.copy())


def best_of_minuit(toys: StoredToys, toy: int) -> float:
    """Return the lowest minimum of a toy, inf where Minuit finds none."""
    best = np.inf
    likelihood = toys.likelihood(toy, toys.ensemble.fitted)
    for strategy in (0, 1, 2):
        try:
            result = mf.fit(likelihood, strategy=strategy, minimiser="minuit")
        except mf.MorefitError:
            continue
        if result.valid or result.undetermined:
            best = min(best, result.nll)
    return best


def blocks(options: argparse.Namespace) -> Iterator[Block]:
    """Yield the blocks of all models in turns."""
    for first in range(0, options.toys, options.block):
        for name in options.models:
            toys = min(options.block, options.toys - first)
            by_minuit = options.toys if options.minuit is None else options.minuit
            yield Block(name, first, toys, by_minuit, options.seed, tuple(options.ways))


def run(options: argparse.Namespace, minima: Mapping[str, Any]) -> list[Outcome]:
    """Compute blocks in processes of their own, until all are done or time is over."""
    begin, outcomes = time.monotonic(), []
    waiting = list(blocks(options))
    running: set[Future[Outcome]] = set()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool, Progress() as progress:
        shown = progress.add_task("toys", total=sum(block.toys for block in waiting))
        while waiting or running:
            if options.seconds is not None and time.monotonic() - begin > options.seconds:
                waiting.clear()
            while waiting and len(running) < options.workers:
                block = waiting.pop(0)
                running.add(pool.submit(compute, block, known_minima(minima, block)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes.append(future.result())
                progress.advance(shown, outcomes[-1].block.toys)
    return outcomes


def known_minima(minima: Mapping[str, Any], block: Block) -> Any:
    """Return what is known of Minuit's minima of the toys of a block, nan for others."""
    stored = minima.get(block.model, np.empty(0))[block.first : block.first + block.toys]
    return np.append(stored, np.full(block.toys - len(stored), np.nan))


def merge(name: str, outcomes: Sequence[Outcome], minima: dict[str, Any]) -> dict[str, Any]:
    """Put together the blocks of a model: its numbers, and Minuit's minima, which are added to those that are known."""
    own = sorted((o for o in outcomes if o.block.model == name), key=lambda o: o.block.first)
    numbers = np.concatenate([o.block.first + np.arange(o.block.toys) for o in own])
    best = np.concatenate([o.best for o in own])
    stored = minima.get(name, np.empty(0))
    minima[name] = np.append(stored, np.full(max(int(numbers.max()) + 1 - len(stored), 0), np.nan))
    minima[name][numbers] = best
    tried = ~np.isnan(best)
    result: dict[str, Any] = {
        "model": name,
        "parameters": own[0].parameters,
        "toys": len(numbers),
        "by Minuit": int(tried.sum()),
        "without a minimum by Minuit": share(np.isinf(best[tried])),
    }
    for way in own[0].block.ways:
        result[way] = judge(Ends.joined([o.ends[way] for o in own]), best, numbers)
    return result


def judge(ends: Ends, best: Any, numbers: Any) -> dict[str, Any]:
    """Compare the ends of some toys with Minuit's minima."""
    known = np.isfinite(best)
    with np.errstate(invalid="ignore"):
        off = ends.value - best
    above = np.flatnonzero(known & (off > GOAL))
    return {
        "valid": share(ends.valid),
        "flagged": share(ends.flagged),
        "valid or flagged": share(ends.valid | ends.flagged),
        "evaluations": float(ends.evaluations.mean()),
        "evaluations_99": float(np.quantile(ends.evaluations, 0.99)),
        "above": share(off[known] > GOAL),
        "below": share(off[known] < -GOAL),
        "toys above": {int(numbers[k]): float(off[k]) for k in above},
        "toys without an end": [int(n) for n in numbers[~(ends.valid | ends.flagged)]],
    }


def share(flags: Any) -> float | None:
    return float(np.mean(flags)) if len(flags) else None


def show(results: Sequence[Mapping[str, Any]], ways: Sequence[str]) -> Table:
    """Return a table of all models."""
    table = Table("model", "par.", "starts", "toys", "valid", "flagged", "neither", "by Minuit",
                  "Minuit fails", "above", "below", "evaluations", "99 %")  # fmt: skip
    for result in results:
        for way in ways:
            r = result[way]
            failed, above, below = (
                "-" if s is None else f"{s:.2%}"
                for s in (result["without a minimum by Minuit"], r["above"], r["below"])
            )
            neither = str(len(r["toys without an end"]))
            table.add_row(result["model"], str(result["parameters"]), way, str(result["toys"]), f"{r['valid']:.2%}",
                          f"{r['flagged']:.2%}", neither, str(result["by Minuit"]), failed, above, below,
                          f"{r['evaluations']:.1f}", f"{r['evaluations_99']:.0f}")  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=1000, help="toys of each model")
    parser.add_argument("--minuit", type=int, help="toys that Minuit fits as well (all)")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--models", nargs="*", default=list(ALL))
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["default"])
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, help="no block of toys is begun after this time")
    parser.add_argument("--block", type=int, default=50, help="toys that a process fits together")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/minimisers.json"))
    parser.add_argument(
        "--minima", type=Path, help="file of Minuit's minima with this seed, read and written"
    )
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers
    minima: dict[str, Any] = {}
    if options.minima and options.minima.exists():
        with np.load(options.minima) as stored:
            minima.update(stored)
    outcomes = run(options, minima)
    names = [name for name in options.models if any(o.block.model == name for o in outcomes)]
    results = [merge(name, outcomes, minima) for name in names]
    if options.minima:
        np.savez(options.minima, **minima)
    Console(width=150).print(show(results, options.ways))
    content = {"toys": options.toys, "minuit": options.minuit, "seed": options.seed, "results": results}
    options.out.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
