"""Fit two samples at once that share a mass peak: ``python examples/simultaneous_fit.py --events 50000``.

A large control sample says where the peak is and how wide; the resolution in the small signal sample is larger by a
factor that is known from elsewhere to a few per cent.
"""

from __future__ import annotations

import argparse

import numpy as np

import morefit as mf

MU, SIGMA, SCALE = 5.28, 0.05, 1.10
SCALE_ERROR = 0.03
LOW, HIGH = 5.0, 6.0


def draw(signals: int, backgrounds: int, sigma: float, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([rng.normal(MU, sigma, signals), rng.uniform(LOW, HIGH, backgrounds)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000, help="events to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)

    m = mf.Observable("m", LOW, HIGH)
    mu = mf.Parameter("mu", 5.3, 5.1, 5.5)
    sigma = mf.Parameter("sigma", 0.04, 0.005, 0.2)
    scale = mf.Parameter("scale", 1.0, 0.5, 2.0)
    purity = mf.Parameter("purity", 0.9, 0.0, 1.0)
    slope = mf.Parameter("slope", 0.0, -10.0, 10.0)
    seen = mf.Parameter("seen", 0.01 * options.events, 0.0, float(options.events))
    rest = mf.Parameter("rest", 0.1 * options.events, 0.0, float(options.events))

    control = mf.Sum([mf.Gaussian(m, mu, sigma), mf.Exponential(m, slope)], fractions=[purity])
    signal = mf.Sum([mf.Gaussian(m, mu, sigma * scale), mf.Uniform(m)], yields=[seen, rest])

    most = int(0.9 * options.events)
    samples = {
        "control": draw(int(0.8 * most), most - int(0.8 * most), SIGMA, rng),
        "signal": draw(int(0.02 * options.events), int(0.08 * options.events), SIGMA * SCALE, rng),
    }
    data = {name: mf.Dataset.cut({"m": masses}, [m]) for name, masses in samples.items()}

    known = mf.constraint(scale, SCALE, SCALE_ERROR)
    likelihood = mf.Likelihood(control, data["control"]) + mf.Likelihood(
        signal, data["signal"], constraints=[known]
    )
    alone = mf.fit(signal, data["signal"], fixed={"scale": SCALE})
    both = mf.fit(likelihood)
    print(both)
    print(f"\nsignal events: {both.values['seen']:.0f} +- {both.errors['seen']:.0f}", end=" ")
    print(f"(from the signal sample alone {alone.values['seen']:.0f} +- {alone.errors['seen']:.0f})")


if __name__ == "__main__":
    main()
