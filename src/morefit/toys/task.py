"""Compute one block of toys: draw them, fit them, and call the user's own function for each."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import read_only
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.jobs.checkpoint import Facts, function_facts, versions
from morefit.likelihood import Likelihood, Term
from morefit.minimise.batch import Fits
from morefit.random.host import stream_key
from morefit.records.fields import arrays, floats
from morefit.records.named_arrays import by_names
from morefit.sampling.generate import Sizes
from morefit.targets.base import Backend
from morefit.toys.batch import Toys
from morefit.toys.ensemble import Ensemble
from morefit.toys.negative import how_obtained
from morefit.toys.results import ToyResults
from morefit.validate import as_number

STREAM = "toy study"  # of random numbers: events and numbers of events
# of the dataset of a toy, or of those of the parts of a sum of likelihoods, and the fitted values
Statistic = Callable[[Any, Mapping[str, float]], float | Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Task:
    """A study as every worker needs it. It pickles."""

    drawn: Term
    fitted: Term
    truth: Mapping[str, float]
    start: Mapping[str, float]
    seed: int
    backend: Backend
    statistic: Statistic | None
    fluctuate: bool = True  # toys draw what constraints measured anew
    thorough: bool = False  # every fit is started again elsewhere
    resample: bool = True  # toys draw rows of what a conditional model is given
    toys: int = 1
    key: str = field(default_factory=lambda: os.urandom(8).hex())  # of this study in this process's memory

    def ensemble(self) -> Ensemble:
        return Ensemble(
            drawn=self.drawn,
            fitted=self.fitted,
            truth=self.truth,
            start=self.start,
            seed=stream_key(self.seed, STREAM),
            backend=self.backend,
            fluctuate=self.fluctuate,
            thorough=self.thorough,
            resample=self.resample,
            expected=self.toys,
        )


memory = threading.local()  # the ensemble of the study that this thread computes


def last_ensemble(task: Task) -> Ensemble:
    """Return the ensemble of the last block, if it is of this study."""
    if getattr(memory, "key", None) != task.key:
        memory.ensemble, memory.key = task.ensemble(), task.key
    ensemble: Ensemble = memory.ensemble
    return ensemble


def compute_block(task: Task, first: int, sizes: Sizes) -> ToyResults:
    """Draw and fit toys ``first``, ``first + 1``, ..."""
    return ToyResults.join(compute_independent(task, last_ensemble(task), first, sizes))


def compute_independent(task: Task, ensemble: Ensemble, first: int, sizes: Sizes) -> Iterator[ToyResults]:
    """Draw and fit toys so that none depends on its neighbours.

    A toy that exceeds the envelope makes the ensemble raise it, which changes every toy drawn with it. Halves are
    drawn again until that toy is alone, so that only its own number decides how it is drawn.
    """
    before = ensemble.margins
    piece = fit_toys(task, ensemble.draw(first, sizes))
    raised = ensemble.margins != before
    if raised:
        memory.key = None  # the next block begins as the first did
    if not raised or len(sizes) == 1:
        yield piece
        return
    half = len(sizes) // 2
    for low, high in ((0, half), (half, len(sizes))):
        yield from compute_independent(task, task.ensemble(), first + low, sizes[low:high])


def fit_toys(task: Task, toys: Toys) -> ToyResults:
    """Fit toys, and call the user's own function for each."""
    begin = time.perf_counter()
    names = toys.ensemble.floating
    fitted = toys.fit()
    how = how_obtained(toys.ensemble, fitted, toys.first)
    end = time.perf_counter()
    statistics = own_statistics(task, toys, names, fitted)
    seconds = {"draw and fit": end - begin}
    if task.statistic is not None:
        seconds["statistic"] = time.perf_counter() - end
    # no copies: what whole fits return is copied once, when the results of all blocks are joined
    return ToyResults.converted_from(
        names=tuple(names), truth=floats(task.truth), values=by_names(read_only(fitted.values), names),
        errors=by_names(read_only(fitted.errors), names),
        nll=read_only(fitted.nll), edm=read_only(fitted.edm), valid=read_only(fitted.valid),
        how=read_only(how),
        events=read_only(toys.events.copy()), seed=task.seed, first=toys.first, statistics=arrays(statistics),
        seconds=floats(seconds), backend=task.backend.label, unit=toys.ensemble.fitted.unit,
    )  # fmt: skip


def own_statistics(
    task: Task, toys: Toys, names: Sequence[str], fitted: Fits
) -> dict[str, NDArray[np.float64]]:
    """Call the user's function for each toy."""
    if task.statistic is None:
        return {}
    rows = []
    for toy, row in enumerate(fitted.values.tolist()):
        try:
            values = {**task.start, **dict(zip(names, row, strict=True))}
            data = toys.datasets(toy)
            rows.append(as_row(task.statistic(data[0] if len(data) == 1 else data, values)))
        except Exception as error:
            error.add_note(f"toy study: this came from the statistic of toy {toys.first + toy}")
            raise
        if rows[-1].keys() != rows[0].keys():
            raise other_names(rows[0], rows[-1], toys.first + toy)
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def other_names(expected: Iterable[str], names: Iterable[str], toy: int) -> ModelError:
    """Return the error of a statistic that has other names from some toy on."""
    rule = f"the statistic must return the same names for every toy, {', '.join(expected)}"
    return ModelError(f"toy study: {rule}, got {', '.join(names)} for toy {toy}")


def as_row(answer: float | Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of a statistic by name; a number alone is called 'statistic'."""
    named = answer if isinstance(answer, Mapping) else {"statistic": answer}
    numbers = {str(name): as_number(number) for name, number in named.items()}
    known = {name: number for name, number in numbers.items() if number is not None}
    if not known or len(known) < len(numbers):
        raise ModelError(f"toy study: the statistic must return a number, or numbers by name, got {answer!r}")
    return known


def likelihood_facts(term: Term) -> Facts:
    """Return what makes a likelihood this one: the models and constraints of its parts, and what these are given."""
    from morefit.jobs.digest import fingerprint  # only studies with files need it

    parts = [
        fingerprint(part.model)
        | part.facts
        | ({"constraints": constraint_facts(part)} if part.constraints else {})
        for part in term.parts
    ]
    return parts[0] if len(parts) == 1 else {f"part {k}": part for k, part in enumerate(parts)}


def constraint_facts(part: Likelihood) -> list[Any]:
    """Return what constraints add to a likelihood, what they measured, and how toys draw that."""
    terms = zip(part.constraints, part.constraint_terms, strict=True)
    return [
        [repr(term), list(c.measured), function_facts("constraint: sample", getattr(c, "sample", None))]
        for c, term in terms
    ]


def facts_of(task: Task) -> Facts:
    """Return what the results of a study depend on."""
    return {
        "model": likelihood_facts(task.drawn),
        "fitted model": likelihood_facts(task.fitted),
        "fluctuate": task.fluctuate,
        "thorough": task.thorough,
        **({} if task.resample else {"resample": False}),
        "truth": dict(task.truth),
        "start": dict(task.start),
        "seed": task.seed,
        "statistic": function_facts("toy study: statistic", task.statistic),
        "versions": versions(),
    }
