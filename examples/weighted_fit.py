"""Fit a lifetime to weighted events: ``python examples/weighted_fit.py --events 20000``.

A background is subtracted with events of a sideband, which count negatively, and every event is corrected for an
efficiency that falls with the decay time. Naive errors of such a fit are wrong; those shown are not.
"""

from __future__ import annotations

import argparse

import numpy as np

import morefit as mf

SLOPE, BACKGROUND_SLOPE = -0.6, -0.1
RATIO = 2.0  # sideband events for each background event in the signal region


def efficiency(t: np.ndarray) -> np.ndarray:
    return 0.3 + 0.6 * np.exp(-0.5 * t)


def seen(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return t[rng.random(len(t)) < efficiency(t)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="signal events (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)

    t = mf.Observable("t", 0.0, 6.0)
    signal = mf.Exponential(t, mf.Parameter("slope", -0.5, -5.0, 5.0))
    background = mf.Exponential(t, mf.Parameter("slope", BACKGROUND_SLOPE))
    counts = [options.events, options.events // 2, int(RATIO * (options.events // 2))]
    models, slopes = (signal, background, background), (SLOPE, BACKGROUND_SLOPE, BACKGROUND_SLOPE)
    samples = [
        seen(mf.generate(model, count, seed=options.seed + k, truth={"slope": value})["t"], rng)
        for k, (model, count, value) in enumerate(zip(models, counts, slopes, strict=True))
    ]
    times = np.concatenate(samples)
    signs = np.repeat([1.0, 1.0, -1 / RATIO], [len(sample) for sample in samples])
    data = mf.Dataset({"t": times}, [t], weights=signs / efficiency(times))
    print(data, end="\n\n")

    result = mf.fit(signal, data)
    print(result)
    print(f"\nslope: drawn with {SLOPE}; its error by other means:")
    for errors in ("naive", "sumw2", "sandwich", "bootstrap"):
        print(f"  {errors:9s} {mf.fit(signal, data, errors=errors).errors['slope']:.4f}")
    best = mf.fisher_information(signal, options.events, truth={"slope": SLOPE}).errors["slope"]
    print(f"  {best:.4f} if there were no background and every event were seen")


if __name__ == "__main__":
    main()
