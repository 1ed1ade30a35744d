"""The two fits of the paper in plain numbers: ranges, truth, limits, first steps. Every system starts from these."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Free:
    """A parameter: the truth, where fits start as well, its limits, and Minuit's first step."""

    name: str
    truth: float
    low: float
    high: float
    step: float


@dataclass(frozen=True)
class Problem:
    """Ranges of observables by name, and parameters in the order of all values and errors."""

    observables: dict[str, tuple[float, float]]
    parameters: tuple[Free, ...]

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.parameters]

    @property
    def truth(self) -> list[float]:
        return [p.truth for p in self.parameters]

    @property
    def limits(self) -> list[tuple[float, float]]:
        return [(p.low, p.high) for p in self.parameters]

    @property
    def steps(self) -> list[float]:
        return [p.step for p in self.parameters]


MASS = Problem(
    {"m": (5.0, 7.0)},
    (
        Free("mu", 5.28, 5.0, 6.0, 0.01),
        Free("sigma", 0.06, 0.005, 0.13, 0.001),
        Free("alpha", -1.0, -10.0, 10.0, 0.01),
        Free("fsig", 0.3, 0.0, 1.0, 0.01),
    ),
)
KSTARMUMU = Problem(
    {"ctl": (-1.0, 1.0), "ctk": (-1.0, 1.0), "phi": (-math.pi, math.pi)},
    (
        Free("FL", 0.6, 0.0, 1.0, 0.01),
        *(Free(n, 0.0, -1.0, 1.0, 0.01) for n in ("S3", "S4", "S5", "AFB", "S7", "S8", "S9")),
    ),
)
PROBLEMS = {"mass": MASS, "kstarmumu": KSTARMUMU}
TITLES = {"mass": "mass fit, 4 parameters", "kstarmumu": "angular fit, 8 parameters"}
