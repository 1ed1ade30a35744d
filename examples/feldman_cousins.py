"""A Feldman-Cousins interval for a small signal fraction, the other parameters profiled."""

from __future__ import annotations

import argparse

import numpy as np

import morefit as mf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--toys", type=int, default=300)
    options = parser.parse_args()
    m = mf.Observable("m", 5.0, 7.0)
    signal = mf.Gaussian(m, mf.Parameter("mu", 5.28, fixed=True), mf.Parameter("sigma", 0.06, fixed=True))
    background = mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))
    model = mf.Sum([signal, background], fractions=[mf.Parameter("fsig", 0.02, 0.0, 1.0)])
    data = mf.generate(model, options.events, seed=1)
    values = np.linspace(0.0, 0.08, 9)
    print(mf.intervals.feldman_cousins(model, data, "fsig", values, toys=options.toys, seed=2, level=0.9))


if __name__ == "__main__":
    main()
