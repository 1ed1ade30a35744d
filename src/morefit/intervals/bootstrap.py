"""The bootstrap: fit replicas of a dataset, in which each event counts a Poisson number of times, as a long job."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from functools import partial
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, frozen_copy
from morefit.dataclass import dataclass
from morefit.errors import FitError
from morefit.intervals.interval import Interval
from morefit.jobs.checkpoint import DIGEST, Facts, locks_file, read_saved, versions
from morefit.jobs.digest import Digests
from morefit.jobs.run import Block, DaskClient, Job, Report, Work, run_job, share
from morefit.likelihood import Term
from morefit.likelihood.wider import for_limits, resolved
from morefit.minimise import FitResult
from morefit.minimise.conditional import best_fit
from morefit.minimise.problem import as_likelihood
from morefit.minimise.replicas import Replicas
from morefit.model import Parameter, Pdf
from morefit.random.host import stream_key
from morefit.records.fields import floats, words
from morefit.records.named_arrays import by_names
from morefit.records.results import Layout, SavedResult
from morefit.resources import check_memory
from morefit.sampling.generate import check_seed
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table
from morefit.toys.task import likelihood_facts
from morefit.validate import check_level, name_of, whole_number

NAME = "bootstrap"
LAYOUT = Layout(
    "morefit bootstrap", ("names", "best", "seed", "seconds", "backend"), ("values", "nll", "valid")
)


def vector(numbers: Sequence[float]) -> Array:
    """Return numbers as a read-only array; a file has them as a list."""
    return frozen_copy(numbers, np.float64)


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(SavedResult):
    """The minima of B replicas of a dataset, each event of which counts a Poisson number of times (mean 1).

    ``errors`` and ``covariance`` are those of the valid replicas; nan if there are fewer than two. Weights of the
    dataset stay.
    """

    names: tuple[str, ...]
    best: Array  # (P,), of the data themselves
    values: Array  # (B, P)
    nll: Array  # (B,)
    valid: Flags  # (B,)
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage, added up over workers
    backend: str = ""  # where the replicas were fitted

    job, layout = NAME, LAYOUT
    converted = {"names": words, "best": vector, "seconds": floats}
    named = {"best": ("names", 1), "values": ("names", 1)}

    @property
    def covariance(self) -> Array:
        """The covariance of the values, (P, P)."""
        good, shape = self.values[self.valid], (len(self.names), len(self.names))
        spread = np.full(shape, nan) if len(good) < 2 else np.cov(good, rowvar=False).reshape(shape)
        return by_names(spread, self.names, 2)

    @property
    def errors(self) -> Array:
        """The standard deviations of the values, (P,)."""
        return by_names(np.sqrt(np.diag(np.asarray(self.covariance))), self.names)

    @property
    def bias(self) -> Array:
        """How far the mean of the values is from the fit of the data, (P,)."""
        good = self.values[self.valid]
        best = np.asarray(self.best)
        return by_names(good.mean(axis=0) - best if len(good) else np.full_like(best, nan), self.names)

    def interval(self, parameter: str | Parameter, level: float = 0.6827) -> Interval:
        """Return the central interval that holds this fraction of the valid replicas; nan if there are none."""
        level, name = check_level(NAME, level), name_of(parameter)
        if name not in self.names:
            raise FitError(f"bootstrap: parameter '{name}': was not fitted; {suggest(name, self.names)}")
        good = self.values[self.valid, self.names.index(name)]
        if not len(good):
            return Interval.spanning((), level)
        low, high = np.quantile(good, [0.5 * (1 - level), 0.5 * (1 + level)])
        return Interval(float(low), float(high), level)

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        means = self.errors / sqrt(max(len(self) - bad, 1))  # their errors
        rows = zip(self.best, self.errors, self.bias, means, strict=True)
        cells = [(*round_pdg(value, error), round_pdg(bias, mean)[0]) for value, error, bias, mean in rows]
        value, error, bias = zip(*cells, strict=True)
        columns = [Column("parameter", self.names, numeric=False), Column("value", value)]
        table = text_table([*columns, Column("error", error), Column("bias", bias)])
        return f"bootstrap: {len(self)} replicas, {verdict}, seed {self.seed}\n\n{table}"


@locks_file(NAME)
@in_sentences
def bootstrap(
    likelihood: Term | Pdf,
    *,
    data: Any = None,
    replicas: int = 1000,
    seed: int = 0,
    best: FitResult | None = None,
    fluctuate: bool = True,
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> Bootstrap:
    """Fit replicas of the data, in which each event counts a Poisson number of times, many together.

    Replica r with a seed has the same weights on every machine, however many replicas there are. ``best`` is as
    for ``profile``; every replica starts from it.

    Parameters
    ----------
    likelihood : or a model, with its ``data``.
    fluctuate : constraints measure another value in each replica, around the one they measured.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; the likelihood is sent to its workers.
    save : a file for finished replicas. The same call resumes a bootstrap that was stopped, with the same bits; more
        replicas extend it. Ctrl-C returns what is finished, and errors carry it (``BrokenJob``).

    Example: ``mf.intervals.bootstrap(nll, replicas=50, progress=False)``
    """
    replicas, seed = whole_number("bootstrap: replicas", replicas, 1), check_seed(seed)
    term = as_likelihood(NAME, likelihood, data)
    best = best_fit(NAME, term, best)
    term = resolved(for_limits(term, best.limits), best.values)
    check_memory(f"bootstrap: results of {replicas:.6g} replicas", 8.0 * replicas * (len(best.floating) + 2))

    def work(first: int, stop: int, report: Report) -> Work[Bootstrap]:
        return partial(
            fit_replicas, term, best, seed=seed, fluctuate=fluctuate, first=first, stop=stop, report=report
        )

    job = Job(
        name=NAME, noun="bootstrap", items="replicas", size=replicas, layout=LAYOUT, step="replicas",
        facts={} if save is None else facts_of(term, best, seed, fluctuate),
        cut=partial(cut, Replicas(term, best, seed, fluctuate).block, executor), work=work,
    )  # fmt: skip
    saved = read_saved(NAME, save, LAYOUT, Bootstrap)
    return run_job(job, save=save, saved=saved, executor=executor, progress=progress)


def fit_replicas(
    likelihood: Term, best: FitResult, *, seed: int, fluctuate: bool, first: int, stop: int, report: Report
) -> Bootstrap:
    """Fit a block of replicas, on any worker."""
    begin = time.perf_counter()
    replicas = Replicas(
        likelihood, best, stream_key(seed, NAME), fluctuate, lambda done: report(done - first)
    )
    fits = replicas.fit_block(first, stop)
    return Bootstrap(
        names=best.floating, best=np.array([best.values[n] for n in best.floating]), values=fits.values,
        nll=fits.nll, valid=fits.valid, seed=seed, seconds={"fit": time.perf_counter() - begin}, backend=likelihood.backend.label,
    )  # fmt: skip


def cut(block: int, executor: Executor | DaskClient | None, missing: Sequence[Block]) -> Iterator[Block]:
    """Cut replicas into blocks that are fitted together."""
    block = share(missing, executor, block)
    for first, stop in missing:
        yield from ((low, min(low + block, stop)) for low in range(first, stop, block))


def facts_of(likelihood: Term, best: FitResult, seed: int, fluctuate: bool) -> Facts:
    """Return what the results of a bootstrap depend on; the data as a digest."""
    parts = likelihood.parts
    data = [(dict(part.data.columns), part.data.weights) for part in parts]
    return {
        "model": likelihood_facts(likelihood),
        "fluctuate": fluctuate,
        "data": {DIGEST: Digests(NAME).of(data)},
        "best": {name: best.values[name] for name in best.names},
        "limits": {name: f"{best.limits[name]}" for name in best.floating},
        "seed": seed,
        "versions": versions(),
    }
