"""``morefit demo``: draw data, fit the mass model, and show the time of each stage."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import morefit as mf
from morefit.cli.files import check_targets
from morefit.cli.fit import exit_code, show_result, write_result
from morefit.cli.options import Command, add_drawing, add_output, add_place, backend_of, count
from morefit.cli.printing import open_console, show_tables
from morefit.text.tables import Column

if TYPE_CHECKING:
    from rich.console import Console


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--events", type=count, default=100_000, metavar="N", help="to draw (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the random numbers (default: %(default)s)"
    )
    add_place(parser)
    add_drawing(add_output(parser, json="the result", plot="data and fit"))


def mass_model() -> mf.Pdf:
    """Return the mass model of the README: a Gaussian signal on an exponential background."""
    m = mf.Observable("m", 5.0, 7.0, label=r"$m$ [GeV/$c^2$]")
    mu = mf.Parameter("mu", 5.28, 5.0, 6.0)
    sigma = mf.Parameter("sigma", 0.06, 0.005, 0.13)
    fsig = mf.Parameter("fsig", 0.3, 0.0, 1.0)
    alpha = mf.Parameter("alpha", -1.0, -10.0, 10.0)
    return mf.Sum([mf.Gaussian(m, mu, sigma), mf.Exponential(m, alpha)], fractions=[fsig])


def run(options: Namespace) -> int:
    """Draw data, fit the mass model, show the result and the time of each stage."""
    check_targets(options)
    console, backend, model = open_console(options), backend_of(options), mass_model()
    begin = time.perf_counter()
    data = mf.generate(model, options.events, seed=options.seed, backend=backend)
    generated = time.perf_counter()
    likelihood = mf.Likelihood(model, data, backend=backend)
    result = mf.fit(likelihood)
    show_result(console, result)
    after = {name: seconds for name, seconds in result.seconds.items() if name != "compile"}
    show_times(
        console, {"generate, with compiling": generated - begin, **likelihood.compile_seconds(), **after}
    )
    write_result(options, console, model, data, result)
    return exit_code(result)


def show_times(console: Console, stages: dict[str, float]) -> None:
    """Show how long each stage took."""
    cells = [f"{seconds * 1e3:.3f}" for seconds in stages.values()]
    show_tables(console, [Column("stage", list(stages), numeric=False), Column("time [ms]", cells)])


DEMO = Command(
    "demo",
    "draw data, fit a mass peak, and show the result and the time of each stage",
    """
morefit demo
morefit demo --events 1e6 --threads 2
morefit demo --plot mass.pdf --json mass.json
""",
    add_options,
    run,
)
