"""Three ways to write a density of your own: ``python examples/own_density.py --events 50000``.

The data are a resonance, seen with an efficiency that rises with the mass.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import morefit as mf

MASS, WIDTH, SLOPE = 91.2, 2.5, 0.04
LOW, HIGH = 80.0, 102.0


@dataclass(frozen=True, eq=False)
class BreitWigner(mf.Pdf):
    r"""$1 / ((x - m)^2 + \Gamma^2 / 4)$ on the range of x: a class, with the integral known."""

    x: mf.Observable
    mass: mf.Parameter
    width: mf.Parameter

    def density(self):
        return 1 / ((self.x - self.mass) ** 2 + self.width**2 / 4)

    def integral(self):
        low, high = (2 * (edge - self.mass) / self.width for edge in (self.x.low, self.x.high))
        return 2 / self.width * (np.arctan(high) - np.arctan(low))


def draw_resonance(events: int, rng: np.random.Generator) -> np.ndarray:
    """Draw by inverting the distribution, and keep each event with the efficiency it has."""
    edges = np.arctan(2 * (np.array([LOW, HIGH]) - MASS) / WIDTH)
    x = MASS + WIDTH / 2 * np.tan(rng.uniform(*edges, 4 * events))
    seen = rng.random(len(x)) < efficiency(x) / efficiency(HIGH)
    return x[seen][:events]


def efficiency(x):
    """Return the efficiency up to a factor: of numbers, or of an observable."""
    return 1 + SLOPE * (x - LOW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000, help="events to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    options = parser.parse_args()

    x = mf.Observable("x", LOW, HIGH)
    mass = mf.Parameter("mass", 91.0, 85.0, 97.0)
    width = mf.Parameter("width", 2.0, 0.1, 10.0)
    slope = mf.Parameter("slope", 0.0, 0.0, 1.0)
    resonance = BreitWigner(x, mass, width)
    models = {
        "a class with its integral, efficiency ignored": resonance,
        "a formula, efficiency known, integral by quadrature": mf.Density(
            resonance.density() * efficiency(x), observables=[x]
        ),
        "a formula, efficiency fitted as well": mf.Density(
            resonance.density() * (1 + slope * (x - LOW)), observables=[x]
        ),
    }
    data = mf.Dataset({"x": draw_resonance(options.events, np.random.default_rng(options.seed))}, [x])
    for title, model in models.items():
        print(f"{title}\n{'-' * len(title)}\n{mf.fit(model, data)}\n")


if __name__ == "__main__":
    main()
