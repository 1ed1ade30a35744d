"""Fit the angles of the decay B0 -> K*0 mu+ mu-: ``python examples/kstarmumu_fit.py --events 100000``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import morefit as mf
from morefit.model.physics import KstarMuMu

TRUTH = {"FL": 0.6, "S3": -0.1, "S4": -0.2, "S5": -0.2, "AFB": 0.1, "S7": 0.03, "S8": -0.02, "S9": 0.05}
MARGIN = 1.2  # by how much the largest density may lie above the largest one drawn


def make_model() -> KstarMuMu:
    angles = [
        mf.Observable("ctl", -1.0, 1.0, label=r"$\cos\theta_l$"),
        mf.Observable("ctk", -1.0, 1.0, label=r"$\cos\theta_K$"),
        mf.Observable("phi", -np.pi, np.pi, label=r"$\phi$"),
    ]
    FL = mf.Parameter("FL", 0.6, 0.0, 1.0)
    others = [mf.Parameter(name, 0.0, -1.0, 1.0) for name in TRUTH if name != "FL"]
    return KstarMuMu(*angles, FL, *others)


def draw_angles(model: KstarMuMu, events: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw by accept and reject: uniform angles, each kept with a probability in proportion to its density."""
    kept = {o.name: np.empty(0) for o in model.observables}
    highest = 0.0
    while len(kept["phi"]) < events:
        tried = {o.name: rng.uniform(o.low, o.high, 4 * events + 10_000) for o in model.observables}
        density = mf.Likelihood(model, tried).per_event([TRUTH[p.name] for p in model.parameters])
        highest = highest or MARGIN * density.max()
        chosen = rng.random(len(density)) * highest < density
        kept = {name: np.concatenate([kept[name], column[chosen]]) for name, column in tried.items()}
    return {name: column[:events] for name, column in kept.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    parser.add_argument("--plot", help="folder to save three projections in (needs morefit[plot])")
    options = parser.parse_args()

    model = make_model()
    data = draw_angles(model, options.events, np.random.default_rng(options.seed))
    result = mf.fit(model, data)
    print(result)
    for name, true in TRUTH.items():
        pull = (result.values[name] - true) / result.errors[name]
        print(f"{name:>4}: true {true:6.3f}, pull {pull:+.2f}")
    if options.plot:
        save_projections(model, data, result, Path(options.plot))


def save_projections(
    model: KstarMuMu, data: dict[str, np.ndarray], result: mf.FitResult, folder: Path
) -> None:
    """Save a figure for each angle, the others integrated out."""
    folder.mkdir(parents=True, exist_ok=True)
    for angle in model.observables:
        path = folder / f"kstarmumu_{angle.name}.pdf"
        mf.plot(model, data, angle, values=result, bins=50).figure.savefig(path)
        print(f"saved {path}")


if __name__ == "__main__":
    main()
