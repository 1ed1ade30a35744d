"""Run pseudo-experiments of the mass model and look at pulls and coverage."""

from __future__ import annotations

import argparse

import morefit as mf


def mass_model() -> mf.Pdf:
    m = mf.Observable("m", 5.0, 7.0)
    signal = mf.Gaussian(m, mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13))
    background = mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))
    return mf.Sum([signal, background], fractions=[mf.Parameter("fsig", 0.3, 0.0, 1.0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--toys", type=int, default=1_000)
    options = parser.parse_args()
    print(mf.toy_study(mass_model(), toys=options.toys, events=options.events, seed=1))


if __name__ == "__main__":
    main()
