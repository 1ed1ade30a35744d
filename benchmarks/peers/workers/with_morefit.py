"""morefit: one fit after the other, with numeric derivatives or with Minuit if these are wanted; or a study, in batches."""

from __future__ import annotations

from typing import Any

import numpy as np

import morefit as mf
from models import MODELS
from peers.system import Columns, Found, System, Task, Toys, one_by_one, tolerance

EVENTS_A_CALL = 10_000_000  # of a study: about a tenth of a second


def make(task: Task) -> System:
    model, backend = MODELS[task.model][0](), mf.Cpu(threads=task.threads)
    order = task.problem.names
    if task.variant == "batched":
        return batched(model, backend, order)

    options: dict[str, Any] = {
        "single": {},
        "numeric": {"derivatives": "numeric"},
        "minuit": {"minimiser": "minuit", "strategy": task.strategy},
    }[task.variant]

    def fit(data: mf.Dataset | Columns, edm: float) -> Found:
        found = mf.fit(model, data, tolerance=tolerance(edm), backend=backend, **options)
        return Found([found.values[n] for n in order], [found.errors[n] for n in order], found.valid)

    def draw(events: int, seed: int) -> mf.Dataset:
        return mf.generate(model, events, seed=seed, backend=backend)

    return one_by_one(draw, fit, lambda columns: columns, task.edm)


def batched(model: mf.Pdf, backend: mf.Cpu, order: list[str]) -> System:
    """Draw and fit many toys with one call, as studies do."""

    def toys(events: int, seed: int, count: int) -> Toys:
        study = mf.toy_study(model, toys=count, events=events, seed=seed, backend=backend, progress=False)
        return Toys(listed(study, order), None)

    def check(columns: Columns) -> Found:
        return listed(mf.fit_many(model, [columns], backend=backend), order)[0]

    return System(toys, lambda events: max(EVENTS_A_CALL // events, 1), check)


def listed(study: mf.ToyResults, order: list[str]) -> list[Found]:
    columns = [study.names.index(n) for n in order]
    rows = zip(study.values[:, columns], study.errors[:, columns], np.asarray(study.valid), strict=True)
    return [Found(v, e, bool(ok)) for v, e, ok in rows]
