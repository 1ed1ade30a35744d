"""The two models of the paper and data drawn from them with numpy, the same for every benchmark."""

from __future__ import annotations

import numpy as np

import morefit as mf
from morefit.cli import mass_model
from peers.draw import draw_angles, draw_masses

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
    return mf.physics.KstarMuMu(*angles, *parameters)


MODELS = {"mass": (mass_model, draw_masses), "kstarmumu": (kstar_model, draw_angles)}
