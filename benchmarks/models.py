"""The two models of the paper and data drawn from them with numpy, the same for every benchmark."""

from __future__ import annotations

import numpy as np

import morefit as mf
from morefit.cli import mass_model
from morefit.physics import KstarMuMu

KSTAR_NAMES = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")


def kstar_model() -> mf.Pdf:
    """Return the angular density with F_L = 0.6 and all else 0."""
    angles = [
        mf.Observable("ctl", -1.0, 1.0),
        mf.Observable("ctk", -1.0, 1.0),
        mf.Observable("phi", -np.pi, np.pi),
    ]
    parameters = [
        mf.Parameter(n, 0.6 if n == "FL" else 0.0, 0.0 if n == "FL" else -1.0, 1.0) for n in KSTAR_NAMES
    ]
    return KstarMuMu(*angles, *parameters)


def draw_angles(events: int, seed: int = 1) -> dict[str, np.ndarray]:
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


def draw_masses(events: int, seed: int) -> np.ndarray:
    """Draw events of the mass model at its start values, by inverting each component's distribution."""
    rng = np.random.default_rng(seed)
    background = 5.0 - np.log1p(-rng.random(events) * -np.expm1(-2.0))
    signal = rng.normal(5.28, 0.06, events)
    while np.any(outside := (signal < 5.0) | (signal > 7.0)):
        signal[outside] = rng.normal(5.28, 0.06, np.count_nonzero(outside))
    return np.where(rng.random(events) < 0.3, signal, background)


def mass_data(events: int, seed: int = 1) -> dict[str, np.ndarray]:
    return {"m": draw_masses(events, seed)}


MODELS = {"mass": (mass_model, mass_data), "kstarmumu": (kstar_model, draw_angles)}
