"""The command line: ``morefit demo``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from morefit.backend import Cpu
from morefit.errors import MorefitError
from morefit.fit import FitResult, fit
from morefit.generate import generate
from morefit.likelihood import Likelihood
from morefit.model import Exponential, Gaussian, Observable, Parameter, Pdf, Sum

VALID, BAD_INPUT, NOT_VALID = 0, 2, 3  # exit codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = make_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except MorefitError as error:
        print(f"morefit: {error}", file=sys.stderr)
        return BAD_INPUT


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="morefit", description="Maximum-likelihood fits with densities compiled just in time."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="generate data, fit the mass model, print the result and the time of each stage",
        epilog="example: morefit demo --events 1000000 --threads 2",
    )
    demo.add_argument(
        "--events", type=int, default=100_000, help="how many events to generate (default: %(default)s)"
    )
    demo.add_argument("--seed", type=int, default=1, help="seed of the generator (default: %(default)s)")
    demo.add_argument("--threads", type=int, default=None, help="threads to use (default: all cores)")
    demo.add_argument("--json", metavar="FILE", help="also write the result to a file")
    demo.set_defaults(run=run_demo)
    return parser


def mass_model() -> Pdf:
    """Return the mass model of the README: a Gaussian signal on an exponential background."""
    m = Observable("m", 5.0, 7.0, label=r"$m$ [GeV/$c^2$]")
    mu = Parameter("mu", 5.28, 5.0, 6.0)
    sigma = Parameter("sigma", 0.06, 0.005, 0.13)
    fsig = Parameter("fsig", 0.3, 0.0, 1.0)
    alpha = Parameter("alpha", -1.0, -10.0, 10.0)
    return Sum([Gaussian(m, mu, sigma), Exponential(m, alpha)], fractions=[fsig])


def run_demo(options: argparse.Namespace) -> int:
    """Generate data, fit the mass model, print the result and the time of each stage."""
    backend, model = Cpu(threads=options.threads), mass_model()
    begin = time.perf_counter()
    data = generate(model, options.events, seed=options.seed, backend=backend)
    generated = time.perf_counter()
    likelihood = Likelihood(model, data, backend=backend)
    result = fit(likelihood)
    print(result)
    compiling = likelihood.compile_seconds()
    after = {name: seconds for name, seconds in result.seconds.items() if name != "compile"}
    stages = {"generate, with compiling": generated - begin, **compiling, **after}
    show_times(stages, result)
    if options.json:
        result.to_json(options.json)
    return VALID if result.valid else NOT_VALID


def show_times(stages: dict[str, float], result: FitResult) -> None:
    table = Table(title=f"time of each stage, {result.events} events")
    table.add_column("stage")
    table.add_column("ms", justify="right")
    for name, seconds in stages.items():
        table.add_row(name, f"{seconds * 1e3:.3f}")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
