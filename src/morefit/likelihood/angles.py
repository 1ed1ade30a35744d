"""Which parameters are angles whose two limits are one point, so that a fit goes on at the other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite, pi
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array
from morefit.expr import ZERO, Expr, Op, const, evaluate, leaves, substitute_all, toposort
from morefit.expr.walk import BINDING
from morefit.model import Pdf

if TYPE_CHECKING:
    from morefit.likelihood.unbinned import Likelihood

ROUNDING = 1e-9  # of a turn
# of what else is in an angle: numbers from 0.5 to 1.5 that are spread evenly; numpy.random takes 10 ms to load
SAMPLES = 0.5 + np.mod(0.6180339887498949 * np.arange(1.0, 129.0), 1.0).reshape(2, 64)


def turning(parts: Sequence[Likelihood], floating: Sequence[str], limits: Array) -> frozenset[str]:
    """Return the floating parameters whose limits, (P, 2), are whole turns apart in all sines and cosines, where they occur alone."""
    if not any(turns_of(part.model) for part in parts):
        return frozenset()
    ends = dict(zip(floating, limits.tolist(), strict=True))
    each = [
        {name for name, turns in turns_of(part.model).items() if name in ends and whole(turns, *ends[name])}
        for part in parts
    ]
    constraints = (c.nll([const(m) for m in c.measured]) for part in parts for c in part.constraints)
    elsewhere = {leaf.name for leaf in leaves(Op.SCALAR, *constraints)}
    for part, names in zip(parts, each, strict=True):
        elsewhere |= {p.name for p in part.model.parameters} - names
    return frozenset().union(*each) - elsewhere


def whole(turns: frozenset[float], low: float, high: float) -> bool:
    """Return whether limits are a whole number of periods apart in all angles."""
    if not isfinite(high - low):
        return False
    periods = [factor * (high - low) / (2 * pi) for factor in turns]
    return all(abs(p - round(p)) < ROUNDING and round(p) != 0 for p in periods)


@lru_cache(maxsize=256)  # every fit asks
def turns_of(model: Pdf) -> Mapping[str, frozenset[float]]:
    """Return the parameters of a model that are in sines and cosines alone, and how many times their angles contain each."""
    expected = model.expected_events()
    roots = (model.summed,) if expected is None else (model.summed, expected)
    nodes = toposort(*roots)
    if not any(node.op in (Op.SIN, Op.COS) for node in nodes):
        return {}
    # of an integral what is integrated; its other arguments are only where it is cut into boxes
    integrals = [node for node in nodes if node.op is Op.INTEGRAL]
    bodies = substitute_all((*roots, *(node.args[0] for node in integrals)), dict.fromkeys(integrals, ZERO))
    waves = [node for node in toposort(*bodies) if node.op in (Op.SIN, Op.COS)]
    outside = set(leaves(Op.SCALAR, *substitute_all(bodies, dict.fromkeys(waves, ZERO))))
    turns: dict[str, set[float]] = {}
    for angle in {wave.args[0]: None for wave in waves}:
        for leaf in leaves(Op.SCALAR, angle):
            if leaf not in outside:
                turns.setdefault(leaf.name, set()).add(factor_in(angle, leaf))
    return {name: frozenset(factors) for name, factors in turns.items() if all(map(isfinite, factors))}


def factor_in(angle: Expr, leaf: Expr) -> float:
    """Return how many times an angle contains a parameter; nan if that depends on anything."""
    nodes = toposort(angle)
    names = dict.fromkeys(node.name for node in nodes if node.op in (Op.SCALAR, Op.COLUMN))
    if any(node.op in BINDING for node in nodes) or len(names) > SAMPLES.shape[1]:
        return float("nan")
    slopes = []
    for sample in SAMPLES:
        values = dict(zip(names, sample, strict=False)) | {leaf.name: np.array([0.0, 1.0, 2.5])}
        slopes += (np.diff(np.broadcast_to(evaluate(angle, values), 3)) / (1.0, 1.5)).tolist()
    return slopes[0] if np.ptp(slopes) <= ROUNDING * abs(slopes[0]) else float("nan")
