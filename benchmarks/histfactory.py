"""HistFactory workspaces of growing size: morefit beside pyhf with NumPy and JAX, in one run; needs pyhf, from its own environment.

python benchmarks/histfactory.py            # times per fit and per toy
python benchmarks/histfactory.py --toys 100 --sizes tiny small
"""

from __future__ import annotations

from random import Random

import numpy as np

# channels, bins of each, samples, normsys, histosys; and whether all other kinds of modifiers are there
SIZES = {
    "tiny": (1, 2, 2, 1, 0, False),
    "small": (1, 5, 3, 3, 2, True),
    "medium": (3, 8, 5, 10, 6, True),
    "large": (6, 10, 10, 30, 20, True),
    "huge": (10, 10, 20, 60, 40, True),
}


def workspace(size: str, seed: int = 1) -> dict:
    """Return a workspace with a signal and several backgrounds, the same at every call."""
    channels, bins, samples, *_, every = SIZES[size]
    rng = Random(seed)  # whose numbers are the same everywhere
    specs, observations = [], []
    for c in range(channels):
        each, total = [], np.zeros(bins)
        for s in range(samples):
            slope = rng.uniform(-0.2, 0.1)
            nominal = rng.uniform(20, 60) * np.exp(slope * np.arange(bins))
            if s == 0:
                nominal = 12 * np.exp(-0.5 * ((np.arange(bins) - bins / 2) / 1.5) ** 2) + 0.5
            total += nominal
            modifiers = modifiers_of(rng, c, s, nominal, SIZES[size])
            each.append({"name": f"sample_{s}", "data": nominal.round(4).tolist(), "modifiers": modifiers})
        specs.append({"name": f"channel_{c}", "samples": each})
        counts = [float(round(n + n**0.5 * (sum(rng.random() for _ in range(12)) - 6))) for n in total]
        observations.append({"name": f"channel_{c}", "data": counts})
    parameters = [{"name": "mu", "bounds": [[0.0, 10.0]], "inits": [1.0]}]
    if every:
        parameters.append(
            {"name": "lumi", "auxdata": [1.0], "sigmas": [0.02], "bounds": [[0.5, 1.5]], "inits": [1.0]}
        )
    config = {"poi": "mu", "parameters": parameters}
    return {
        "channels": specs,
        "observations": observations,
        "measurements": [{"name": "measurement", "config": config}],
        "version": "1.0.0",
    }


def modifiers_of(rng: Random, channel: int, sample: int, nominal: np.ndarray, size: tuple) -> list[dict]:
    """Return the modifiers of a sample: all systematic variations, and one or two of the others."""
    bins, (*_, norms, shapes, every) = len(nominal), size
    some = [{"name": "mu", "type": "normfactor", "data": None}] if sample == 0 else []
    for k in range(norms):
        high, low = 1 + rng.uniform(0.005, 0.06), 1 - rng.uniform(0.005, 0.06)
        some.append({"name": f"norm_{k}", "type": "normsys", "data": {"hi": high, "lo": low}})
    for k in range(shapes):
        tilt = rng.uniform(-0.04, 0.04) * np.linspace(-1, 1, bins) + rng.uniform(-0.01, 0.01)
        bow = rng.uniform(-0.01, 0.01) * np.ones(bins)
        data = {"hi_data": (nominal * (1 + tilt + bow)).tolist(), "lo_data": (nominal * (1 - tilt)).tolist()}
        # some parameters change the size of a sample as well
        some.append(
            {"name": f"norm_{k}" if k < 2 and norms > 2 else f"shape_{k}", "type": "histosys", "data": data}
        )
    if not every:
        return (
            [*some, {"name": "shapesys", "type": "shapesys", "data": (0.1 * nominal).tolist()}]
            if sample
            else some
        )
    some.append({"name": "lumi", "type": "lumi", "data": None})
    errors = [0.02 * n * rng.uniform(0.5, 2.0) for n in nominal]
    if sample == 1:
        some.append({"name": f"shapesys_{channel}", "type": "shapesys", "data": errors})
    elif sample:
        some.append({"name": f"staterror_{channel}", "type": "staterror", "data": errors})
    if sample == 2:
        some.append({"name": "background", "type": "normfactor", "data": None})
    return some
