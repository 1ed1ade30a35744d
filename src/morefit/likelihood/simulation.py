"""What the finite size of simulated samples adds to the covariance of a fit, by the delta method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from morefit.arrays import Array
from morefit.expr import Expr, OwnSymbol, scalar, substitute
from morefit.likelihood.base import Term
from morefit.likelihood.sums import unpack
from morefit.likelihood.unbinned import Likelihood
from morefit.model.acceptance import Simulation
from morefit.model.parts import parts_of
from morefit.pipeline import Columns, Settings, compile_sums, compile_values
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise
from morefit.targets.base import Events


def gradient_covariance(term: Term, full: Array) -> Array:
    """Return how much the gradient at a point varies with the simulated events, (P, P).

    Each event is a draw of its own: its weight times the derivative of the gradient by it is its score. All integrals by
    one sample, in whatever part of the likelihood, share its events.
    """
    names = [p.name for p in term.parameters]
    points: list[tuple[Likelihood, Array]] = []

    def remember(part: Likelihood, own: Array) -> Array:
        points.append((part, own))
        return np.zeros((1, len(part.parameters), len(part.parameters)))

    term.add_up(full, remember)
    scores: dict[Simulation, Array] = {}
    for part, own in points:
        rows = [names.index(p.name) for p in part.parameters]
        for simulation, score in event_scores(part, own):
            total = scores.setdefault(simulation, np.zeros((len(names), len(simulation.weights))))
            total[rows] += score
    return np.asarray(sum(s @ s.T for s in scores.values()), np.float64)


def event_scores(part: Likelihood, full: Array) -> Iterator[tuple[Simulation, Array]]:
    """Return for each integral by simulation what each event adds to the gradient, (P, events).

    The gradient depends on an integral I and on its slopes: an event that adds b to I changes it by
    d2(nll)/dp dI b + d(nll)/dI db/dp.
    """
    integrals = {node: known for one in parts_of(part.model) for node, known in one.integrals_by_events()}
    count, request = len(part.parameters), part.request(2)
    shifts = {node: scalar(OwnSymbol(f"shift of integral {k}")) for k, node in enumerate(integrals)}
    shifted = substitute(request.log_density, {node: node + shift for node, shift in shifts.items()})
    moved = tuple(shifts.values())
    request = replace(request, log_density=shifted, parameters=(*request.parameters, *moved))
    symbols = (*part.kernel_symbols, *moved)
    bound = compile_sums(request, symbols, part.settings).bind(
        part.columns, Events.all_sets(part.events), part.data.weights, part.boxes
    )
    point = np.concatenate([part.with_measured(full), np.zeros((1, len(moved)))], axis=1)
    nll = unpack(bound(point), count + len(moved), 2)
    for k, (simulation, body) in enumerate(integrals.values()):
        here, slopes = at_events(part, full, simulation, body)
        score = np.outer(nll.hessian[0, :count, count + k], here) + nll.gradient[0, count + k] * slopes
        yield simulation, score * simulation.weights


def at_events(part: Likelihood, full: Array, simulation: Simulation, body: Expr) -> tuple[Array, Array]:
    """Return an expression and its slopes by the floating parameters at simulated events, (events,) and (P, events)."""
    slopes = derivatives(normalise(body)[0], [p.symbol for p in part.parameters])
    compiled = compile_values((body, *slopes), part.all_symbols, Settings(part.backend, precompute="none"))
    events = Events.all_sets(len(simulation.weights))
    values = compiled.bind(Columns(simulation.columns), events, boxes=part.boxes)(full)[0]
    return values[0], values[1:]
