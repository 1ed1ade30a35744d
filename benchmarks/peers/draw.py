"""Data of the two models drawn with numpy at the truth: for peers that have no generator, and for common datasets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Columns = dict[str, np.ndarray]


def draw_angles(events: int, seed: int = 1) -> Columns:
    """Draw events with F_L = 0.6 and all else 0 by accept and reject."""
    rng = np.random.default_rng(seed)
    kept: list[np.ndarray] = []
    while sum(len(k) for k in kept) < events:
        ctl, ctk = rng.uniform(-1, 1, (2, 2 * events + 1000))
        c2l = 2 * ctl**2 - 1
        shape = 0.3 * (1 - ctk**2) + 0.6 * ctk**2 + 0.1 * (1 - ctk**2) * c2l - 0.6 * ctk**2 * c2l
        kept.append(np.array([ctl, ctk]).T[rng.random(len(ctl)) * 1.2 < shape])
    ctl, ctk = np.concatenate(kept)[:events].T
    return {"ctl": ctl, "ctk": ctk, "phi": rng.uniform(-np.pi, np.pi, events)}


def draw_masses(events: int, seed: int = 1) -> Columns:
    """Draw events of the mass model at its start values, by inverting each component's distribution."""
    rng = np.random.default_rng(seed)
    background = 5.0 - np.log1p(-rng.random(events) * -np.expm1(-2.0))
    signal = rng.normal(5.28, 0.06, events)
    while np.any(outside := (signal < 5.0) | (signal > 7.0)):
        signal[outside] = rng.normal(5.28, 0.06, np.count_nonzero(outside))
    return {"m": np.where(rng.random(events) < 0.3, signal, background)}


DRAW: dict[str, Callable[[int, int], Columns]] = {"mass": draw_masses, "kstarmumu": draw_angles}
