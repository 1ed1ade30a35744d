"""Make the common datasets and fit them independently of all systems: ``python -m peers.judge FOLDER`` prints JSON.

Newton's method on the likelihood written by hand, with derivatives by central differences a fiftieth of an error wide.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from peers.by_hand import PEERS, Nll
from peers.draw import DRAW
from peers.problem import PROBLEMS

EVENTS = 5_000  # not one of the sizes that are timed: a shape that a tracing system has not seen does no harm there
SEED = 20_260
WIDTH = 0.02  # of an error


def differences(nll: Nll, x: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and Hessian by central differences."""
    size = len(x)
    steps = np.diag(width)
    gradient = np.array([(nll(x + h) - nll(x - h)) for h in steps]) / (2 * width)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            a, b = steps[i], steps[j]
            corners = nll(x + a + b) - nll(x + a - b) - nll(x - a + b) + nll(x - a - b)
            hessian[i, j] = hessian[j, i] = corners / (4 * width[i] * width[j])
    return gradient, hessian


def minimise(nll: Nll, start: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and errors at the minimum."""
    x = start
    for _ in range(8):
        gradient, hessian = differences(nll, x, width)
        covariance = np.linalg.inv(hessian)
        x = x - covariance @ gradient
        width = WIDTH * np.sqrt(np.diag(covariance))
    return x, np.sqrt(np.diag(covariance))


def main() -> None:
    folder = Path(sys.argv[1])
    verdicts = {}
    for name, problem in PROBLEMS.items():
        data = DRAW[name](EVENTS, SEED)
        np.savez(folder / f"{name}.npz", **data)
        values, errors = minimise(
            PEERS[name]["numpy"](data), np.array(problem.truth), 0.1 * np.array(problem.steps)
        )
        verdicts[name] = {"events": EVENTS, "values": values.tolist(), "errors": errors.tolist()}
    print(json.dumps(verdicts))


if __name__ == "__main__":
    main()
