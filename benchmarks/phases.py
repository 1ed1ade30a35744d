"""Time the phases of whole fits on a device: ``python benchmarks/phases.py`` prints microseconds per toy of each.

The device is waited for before and after each phase, so that their sum is more than a toy takes; launches of all, of some and of
few toys are told apart, since a phase of few toys leaves a device idle.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from typing import Any
from unittest.mock import patch

import numpy as np

import morefit as mf
from analyses import ANALYSES, make_ensemble
from morefit.targets.opencl.fit_space import FitSpace
from morefit.toys.whole_fits import whole_batch

MANY, SOME = 0.5, 0.02  # of the toys of a launch

run = FitSpace.run
seconds: dict[tuple[str, str], list[float]] = defaultdict(list)


def timed(space: FitSpace, phase: Any) -> Any:
    """Run a phase alone."""
    space.device.finish()
    begin = time.perf_counter()
    done = run(space, phase)
    space.device.finish()
    share = space.lists.counts[0] / space.count
    size = "many" if share > MANY else "some" if share > SOME else "few"
    seconds[phase.name, size].append(time.perf_counter() - begin)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(ANALYSES))
    parser.add_argument("--events", type=float, default=1.5e8, help="drawn together, of all toys")
    options = parser.parse_args()
    backend = mf.OpenCL()
    for name in options.models:
        if ANALYSES[name]().given:
            continue
        ensemble, events = make_ensemble(name, backend)
        job, toys = ensemble.whole_fit(), min(int(options.events / events.sum()), 1 << 18)
        assert job is not None
        backend.expect_fits(job.driver, job.layout, 1 << 18)
        sizes = np.tile(events, (toys, 1))

        def fit(job: Any = job, ensemble: Any = ensemble, sizes: Any = sizes) -> float:
            begin = time.perf_counter()
            batch = whole_batch(ensemble.draw(0, sizes), ensemble)
            backend.fit_whole(job, batch, job.layout.width)
            return time.perf_counter() - begin

        fit()
        alone = min(fit() for _ in range(3))
        seconds.clear()
        with patch.object(FitSpace, "run", timed):
            fit()
        total = sum(map(sum, seconds.values()))
        print(
            f"{name}: {toys} toys, {alone / toys * 1e6:.3g} us each; the sum of phases {total / toys * 1e6:.3g}"
        )
        phases = dict.fromkeys(phase for phase, _ in seconds)
        for phase in phases:
            cells = [
                f"{size} {len(own)} x {sum(own) / len(own) / toys * 1e6:.4f}"
                for size in ("many", "some", "few")
                if (own := seconds.get((phase, size)))
            ]
            print(
                f"    {phase:14s} {sum(sum(v) for (p, _), v in seconds.items() if p == phase) / toys * 1e6:.4f}   {'   '.join(cells)}"
            )


if __name__ == "__main__":
    main()
