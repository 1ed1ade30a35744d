"""numpy by hand and iminuit: the likelihood as an expert writes it, terms of the angles precomputed for each dataset."""

from __future__ import annotations

from peers.by_hand import PEERS, Nll, minuit_fit
from peers.draw import DRAW, Columns
from peers.system import Found, System, Task, one_by_one, tolerance


def make(task: Task) -> System:
    return one_by_one(DRAW[task.model], fit_with(task, PEERS[task.model]["numpy"]), lambda c: c, task.edm)


def fit_with(task: Task, make_nll):
    """Return a function that fits columns down to an edm with Minuit, numeric derivatives throughout."""
    problem = task.problem

    def fit(columns: Columns, edm: float) -> Found:
        nll: Nll = make_nll(columns)
        found = minuit_fit(
            nll, problem.truth, problem.limits,
            steps=problem.steps, strategy=task.strategy, tolerance=tolerance(edm),
        )  # fmt: skip
        return Found(list(found.values), list(found.errors), found.valid and found.accurate)

    return fit
