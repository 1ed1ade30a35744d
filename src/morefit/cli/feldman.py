"""``morefit fc``: test values of a parameter with toys, by the ratio of likelihoods of Feldman and Cousins."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import morefit as mf
from morefit.cli.files import check_targets, write_figures, write_json
from morefit.cli.fit import read_data, show_result
from morefit.cli.model_file import ModelFile, finished_shown, processes
from morefit.cli.options import (
    INTERRUPTED,
    NOT_VALID,
    VALID,
    Command,
    add_data,
    add_model,
    add_output,
    add_place,
    add_study,
    backend_of,
    points,
    to_number,
)
from morefit.cli.printing import MINOR, headline, open_console, say, show_tables
from morefit.errors import FitError
from morefit.intervals.feldman_cousins import footline, table
from morefit.intervals.feldman_cousins import headline as first_lines
from morefit.minimise.conditional import span
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from rich.console import Console

FORMAT, VERSION = "morefit feldman-cousins summary", 1
ERRORS_AROUND, POINTS = 4.0, 17  # of the values that are tested by default


def add_options(parser: ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="ROOT, parquet, CSV or npz files, or patterns"
    )
    add_data(parser, weight=False)
    group = parser.add_argument_group("construction")
    group.add_argument("--parameter", required=True, metavar="NAME", help="whose values are tested")
    group.add_argument(
        "--values", type=points, metavar="LOW:HIGH:POINTS",
        help=f"to test, or a list with commas (default: {POINTS}, up to {ERRORS_AROUND:g} errors around the best fit)",
    )  # fmt: skip
    group.add_argument(
        "--level", type=to_number, default=0.9, metavar="X",
        help="probability that an interval holds the truth (default: %(default)s)",
    )  # fmt: skip
    add_study(group, toys=5000, what="at each value")
    add_place(parser, workers=True)
    add_output(parser, json="a summary", plot="likelihood ratios and p-values")


def run(options: Namespace) -> int:
    """Fit the data, test the values, and show the interval."""
    check_targets(options)
    console, backend, file = open_console(options), backend_of(options), ModelFile.named(options.model)
    model = file.load()
    check_parameter(model, options.parameter)
    data = read_data(options, console, model)
    best = mf.fit(model, data, backend=backend)
    if not best.valid:
        show_result(console, best)
        say(console, "nothing was tested, as the fit to start from is not valid", MINOR)
        return NOT_VALID
    name = options.parameter
    values = np.unique(options.values or span("fc", best, name, ERRORS_AROUND, POINTS))
    with processes(options.workers, (file.path,)) as executor, finished_shown(partial(show_scan, console)):
        scan = mf.intervals.feldman_cousins(
            mf.Likelihood(model, data, backend=backend), name, values, toys=options.toys, level=options.level, seed=options.seed, best=best,
            backend=backend, executor=executor, save=options.save, progress=not options.quiet,
        )  # fmt: skip
    show_scan(console, scan)
    write_json(summary(scan), options, console)
    write_figures(lambda _: mf.plots.p_values(scan).figure, [name], options, console)
    if len(scan) < len(values):
        return INTERRUPTED
    return NOT_VALID if np.mean(np.isnan(scan.t)) > options.allow_invalid else VALID


def check_parameter(model: mf.Pdf, name: str) -> None:
    """Refuse a parameter that does not float, before any data are read."""
    floating = [p.name for p in model.parameters if not p.fixed]
    if name not in floating:
        fixed = any(p.name == name for p in model.parameters)
        why = (
            "is fixed in the model; let it float" if fixed else f"not in the model; {suggest(name, floating)}"
        )
        raise FitError(f"parameter '{name}': {why}")


def show_scan(console: Console, scan: mf.intervals.FeldmanCousins) -> None:
    """Show the interval, and every value that was tested."""
    headline(console, first_lines(scan), good=not scan.invalid.any())
    show_tables(console, table(scan))
    say(console, footline(scan), MINOR)


def summary(scan: mf.intervals.FeldmanCousins) -> dict[str, Any]:
    """Return a scan without the toys themselves, for JSON."""
    interval = scan.interval()
    return {
        "format": FORMAT, "version": VERSION, "parameter": scan.name, "level": scan.level, "best": scan.best,
        "limits": scan.limits, "interval": ends(interval),
        "pieces": tuple(map(ends, interval.pieces)), "toys": scan.toys, "seed": scan.seed,
        "values": scan.values, "t": scan.t_data, "critical": scan.critical,
        "critical errors": scan.critical_errors, "p": scan.p_values, "p errors": scan.p_errors,
        "failed": tuple(map(int, scan.invalid)), "accepted": tuple(map(bool, scan.accepted())),
        "seconds": scan.seconds,
    }  # fmt: skip


def ends(interval: mf.intervals.Interval) -> dict[str, Any]:
    """Return the two ends of an interval, for JSON."""
    names = ("low", "high", "low_error", "high_error", "low_end", "high_end")
    return {name: getattr(interval, name) for name in names}


FELDMAN = Command(
    "fc",
    "find an interval for a parameter with toys, as Feldman and Cousins do",
    """
morefit fc model.py data.root --parameter fsig
morefit fc model.py data.csv --parameter fsig --values 0:0.2:21 --toys 1e4 --level 0.95 --save scan.npz
morefit fc model.py data.npz --parameter mu --values -0.5,0,0.5,1 --seed 1 --plot scan.pdf --json scan.json
""",
    add_options,
    run,
)
