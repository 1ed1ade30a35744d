"""Time a Feldman-Cousins construction with toys: ``python benchmarks/feldman_cousins.py``; prints the split.

The signal fraction of the mass model is tested at 20 values with 5 000 toys of 1 000 events each, the other three
parameters profiled on the data: 200 000 fits. The goal is 10 seconds on two cores, compiling included.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import morefit as mf
from morefit.cli import mass_model
from morefit.intervals import FeldmanCousins, feldman_cousins
from morefit.resources import available_cores

GOAL = 10.0  # seconds


def main() -> None:
    options = make_parser().parse_args()
    model = mass_model()
    data = mf.generate(model, options.events, seed=1)
    values = np.linspace(0.2, 0.4, options.points)
    begin = time.perf_counter()
    found = feldman_cousins(mf.Likelihood(model, data), "fsig", values, toys=options.toys, seed=2)
    seconds = time.perf_counter() - begin
    print(found)
    show(found, seconds)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Time a Feldman-Cousins construction of the mass model.")
    parser.add_argument("--points", type=int, default=20, help="values to test (default: %(default)s)")
    parser.add_argument("--toys", type=int, default=5000, help="of each value (default: %(default)s)")
    parser.add_argument("--events", type=int, default=1000, help="of each toy (default: %(default)s)")
    return parser


def show(found: FeldmanCousins, seconds: float) -> None:
    """Print how long it took, and each stage."""
    fits = 2 * len(found) * found.toys
    table = Table(title=f"{seconds:.2f} s on {available_cores()} cores, {fits / seconds:,.0f} fits a second")
    table.add_column("stage")
    table.add_column("s", justify="right")
    rest = {"fits of the data and the rest": seconds - sum(found.seconds.values())}
    for stage, spent in {**found.seconds, **rest}.items():
        table.add_row(stage, f"{spent:.2f}")
    Console().print(table)
    print(f"goal of {GOAL:g} s {'met' if seconds <= GOAL else 'NOT MET'}")


if __name__ == "__main__":
    main()
