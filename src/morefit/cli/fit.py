"""``morefit fit``: fit a model to the data of files."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import morefit as mf
from morefit.cli.files import check_figures, check_targets, write_figures, write_json, wrote
from morefit.cli.model_file import load_model
from morefit.cli.options import (
    MAX_CALLS,
    NOT_VALID,
    VALID,
    Command,
    add_data,
    add_drawing,
    add_model,
    add_output,
    add_place,
    assignments,
    backend_of,
    fixed_parameters,
    limited,
    limits,
    merged,
    names,
    positive,
)
from morefit.cli.printing import MINOR, headline, open_console, say, show_tables
from morefit.minimise.covariance import Errors
from morefit.minimise.text import footlines, tables
from morefit.minimise.text import headline as first_line

if TYPE_CHECKING:
    from rich.console import Console

    from morefit.plots.canvas import Figure, Plot


def add_options(parser: ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="ROOT, parquet, CSV or npz files, or patterns"
    )
    add_data(parser, weight=True)
    group = parser.add_argument_group("parameters")
    group.add_argument(
        "--start", type=assignments, action="append", metavar="NAME=VALUE", help="where to start; several with commas"
    )  # fmt: skip
    group.add_argument(
        "--fix", type=fixed_parameters, action="append", metavar="NAME[=VALUE]", help="hold a parameter, at its start or at a value"
    )  # fmt: skip
    group.add_argument(
        "--limits", type=limits, action="append", metavar="NAME=LOW:HIGH", help="limits instead of those of the model"
    )  # fmt: skip
    add_fitting(parser)
    add_place(parser)
    add_drawing(add_output(parser, json="the result", plot="data and fit in each observable"))


def add_fitting(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("fitting")
    group.add_argument(
        "--errors", choices=get_args(Errors), default="auto",
        help="where errors come from; auto is sandwich with weights, else naive (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--minos", nargs="?", type=names, const=True, default=False, metavar="NAMES",
        help="MINOS errors of all parameters, or of those named: --minos=mu,sigma",
    )  # fmt: skip
    group.add_argument(
        "--minimiser",
        choices=("auto", "minuit", "newton"),
        default="auto",
        help="what looks for the minimum; auto is Newton's method, and Minuit where it fails (default: %(default)s)",
    )
    group.add_argument(
        "--strategy", type=int, choices=(0, 1, 2),
        help="fit with Minuit, and this strategy; the exact Hessian checks the minimum anyway",
    )  # fmt: skip
    group.add_argument(
        "--tolerance", type=positive, default=0.1, metavar="X",
        help="fit until the distance to the minimum is below 0.001 X (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--max-calls", type=partial(limited, most=MAX_CALLS), metavar="N", help="of the likelihood by Minuit"
    )


def run(options: Namespace) -> int:
    """Read, fit, and show the result."""
    check_targets(options)
    console, model, backend = open_console(options), load_model(options.model), backend_of(options)
    check_figures([observable.name for observable in model.observables], options)
    data = read_data(options, console, model)
    fixed = merged(options.fix)
    start = merged(options.start) | {name: value for name, value in fixed.items() if value is not None}
    result = mf.fit(
        model, data, start=start, fixed=list(fixed), limits=merged(options.limits), strategy=options.strategy,
        tolerance=options.tolerance, max_calls=options.max_calls, minos=options.minos, errors=options.errors,
        minimiser=options.minimiser, backend=backend,
    )  # fmt: skip
    show_result(console, result)
    write_result(options, console, model, data, result)
    return exit_code(result)


def read_data(options: Namespace, console: Console, model: mf.Pdf) -> mf.Dataset:
    """Read the files, and report what was left out."""
    data = mf.read(
        options.data, model.observables, cut=options.cut, weights=options.weight, tree=options.tree,
        progress=not options.quiet,
    )  # fmt: skip
    say(console, f"data: {data.report}", MINOR)
    return data


def show_result(console: Console, result: mf.FitResult) -> None:
    """Show a fit: whether it is valid, the tables, and the backend and minimiser."""
    lines = [first_line(result), *(f"  {reason}" for reason in result.reasons)]
    headline(console, "\n".join(lines), good=result.valid)
    show_tables(console, *tables(result))
    for line in footlines(result):
        say(console, line, MINOR)


def write_result(
    options: Namespace, console: Console, model: mf.Pdf, data: mf.Dataset, result: mf.FitResult
) -> None:
    """Write the files of the options."""

    write_json(json.loads(result.to_json()), options, console)

    def draw(name: str) -> Figure:
        backend = backend_of(options)
        drawn: Plot[Any] = mf.plot(
            model, data, name, values=result, bins=options.bins, log=options.log, backend=backend
        )
        return drawn.figure

    write_figures(draw, [observable.name for observable in model.observables], options, console)
    if options.report is not None:
        path = Path(options.report).expanduser()
        result.report(path)
        wrote(console, path)


def exit_code(result: mf.FitResult) -> int:
    return VALID if result.valid else NOT_VALID


FIT = Command(
    "fit",
    "fit a model to data, and show values, errors and correlations",
    """
morefit fit model.py data.root
morefit fit model.py 'run*.root' --tree events --cut 'pt > 2 & abs(eta) < 2.5' --plot fit.pdf
morefit fit model.py data.root --minos --report fit.html
morefit fit model.py data.csv --weight sw --errors sumw2 --json -
morefit fit model.py data.npz --fix alpha=-1 --start mu=5.3,sigma=0.05 --minos=mu
morefit fit model.py:signal data.parquet --threads 2 --quiet --json fit.json
""",
    add_options,
    run,
)
