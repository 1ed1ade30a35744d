"""How large may a small signal be? ``python examples/feldman_cousins_scan.py --events 1000 --toys 1000``.

A peak of known place and width over an exponential background. The number of background events and its slope are not
known: they are fitted to every toy. A profile of the likelihood says which numbers of signal events to test.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import numpy as np

import morefit as mf

REACH = 6  # errors that the profile goes beyond the best fit


def make_model(events: int) -> mf.Pdf:
    m = mf.Observable("m", 5.0, 7.0, label=r"$m$ [GeV/$c^2$]")
    peak = mf.Gaussian(m, mf.Parameter("mu", 5.8, fixed=True), mf.Parameter("sigma", 0.06, fixed=True))
    background = mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))
    signals = mf.Parameter("signals", 0.02 * events, 0.0, float(events))
    backgrounds = mf.Parameter("backgrounds", 0.98 * events, 0.0, 3.0 * events)
    return mf.Sum([peak, background], yields=[signals, backgrounds])


def choose_values(likelihood: mf.Likelihood, points: int, level: float) -> np.ndarray:
    """Return numbers of signal events to test: from none to what a profile excludes ten times more surely."""
    best = mf.fit(likelihood)
    top = best.values["signals"] + REACH * best.errors["signals"]
    bounds = (0.0, min(top, best.limits["signals"][1]))
    profile = mf.intervals.profile(likelihood, "signals", bounds=bounds, best=best)
    print(profile, end="\n\n")
    return np.linspace(0.0, profile.interval(1 - (1 - level) / 10)[1], points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000, help="expected events (default: %(default)s)")
    parser.add_argument("--toys", type=int, default=300, help="at each value (default: %(default)s)")
    parser.add_argument("--points", type=int, default=11, help="values to test (default: %(default)s)")
    parser.add_argument(
        "--level", type=float, default=0.9, help="of the interval printed (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of data and toys (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=0, help="processes to spread the values over")
    parser.add_argument("--save", help="file to keep finished values in; run again to go on")
    parser.add_argument("--plot", help="file to save a figure to, such as scan.pdf (needs morefit[plot])")
    options = parser.parse_args()

    model = make_model(options.events)
    data = mf.generate(model, seed=options.seed)
    values = choose_values(mf.Likelihood(model, data), options.points, options.level)
    spawned = get_context("spawn")
    with ProcessPoolExecutor(options.workers, spawned) if options.workers else nullcontext() as executor:
        found = mf.intervals.feldman_cousins(
            mf.Likelihood(model, data), "signals", values, toys=options.toys, level=options.level, seed=options.seed + 1,
            executor=executor, save=options.save,
        )  # fmt: skip
    print(found)
    if options.plot:
        mf.plots.p_values(found).figure.savefig(options.plot)
        print(f"saved {options.plot}")


if __name__ == "__main__":
    main()
