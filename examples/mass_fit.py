"""Fit a Gaussian signal on an exponential background: ``python examples/mass_fit.py --events 100000``."""

from __future__ import annotations

import argparse

import numpy as np

import morefit as mf

TRUTH = {"mu": 5.28, "sigma": 0.06, "alpha": -1.0, "fsig": 0.3}
LOW, HIGH = 5.0, 7.0


def make_model() -> mf.Pdf:
    m = mf.Observable("m", LOW, HIGH, label=r"$m$ [GeV/$c^2$]")
    mu = mf.Parameter("mu", 5.3, 5.0, 6.0)
    sigma = mf.Parameter("sigma", 0.05, 0.005, 0.13)
    alpha = mf.Parameter("alpha", -0.5, -10.0, 10.0)
    fsig = mf.Parameter("fsig", 0.5, 0.0, 1.0)
    return mf.Sum([mf.Gaussian(m, mu, sigma), mf.Exponential(m, alpha)], fractions=[fsig])


def draw_masses(events: int, rng: np.random.Generator) -> np.ndarray:
    """Draw each event from the signal or the background."""
    signal = rng.normal(TRUTH["mu"], TRUTH["sigma"], events)  # the range is four standard deviations away
    reach = np.expm1(TRUTH["alpha"] * (HIGH - LOW))
    background = LOW + np.log1p(rng.random(events) * reach) / TRUTH["alpha"]
    is_signal = rng.random(events) < TRUTH["fsig"]
    print(f"drew {is_signal.sum()} signal events of {events}")
    return np.where(is_signal, signal, background)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    parser.add_argument("--plot", help="file to save a figure to, such as mass.pdf (needs morefit[plot])")
    options = parser.parse_args()

    model = make_model()
    masses = draw_masses(options.events, np.random.default_rng(options.seed))
    data = mf.Dataset.cut({"m": masses}, model.observables)
    print(data.report)

    result = mf.fit(model, data, minos=["fsig"])
    print(result)
    for name, true in TRUTH.items():
        pull = (result.values[name] - true) / result.errors[name]
        print(f"{name:>6}: true {true:7.3f}, pull {pull:+.2f}")
    if options.plot:
        drawn = mf.plot(model, data, "m", values=result, labels=["signal", "background"])
        drawn.figure.savefig(options.plot)
        print(f"saved {options.plot}")


if __name__ == "__main__":
    main()
