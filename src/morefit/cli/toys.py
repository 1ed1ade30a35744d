"""``morefit toys``: draw toys from a model, fit each, and show biases, pulls and coverage."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from math import ceil, isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

import morefit as mf
from morefit.cli.files import check_targets, write_figures, write_json
from morefit.cli.model_file import ModelFile, finished_shown, processes
from morefit.cli.options import (
    INTERRUPTED,
    NOT_VALID,
    VALID,
    Command,
    add_model,
    add_output,
    add_place,
    add_study,
    assignments,
    backend_of,
    count,
    merged,
)
from morefit.cli.printing import MINOR, headline, open_console, say, show_tables
from morefit.errors import DataError
from morefit.plots.style import load_pyplot, styled
from morefit.toys.results import HOW, report
from morefit.toys.text import LEVELS, details, footlines, tables
from morefit.toys.text import headline as first_line

if TYPE_CHECKING:
    from rich.console import Console

    from morefit.plots.canvas import Figure

FORMAT, VERSION = "morefit toy summary", 1
PANEL = (6.4, 4.8)  # inches


def add_options(parser: ArgumentParser) -> None:
    add_model(parser)
    add_study(parser, toys=1000, what="how many")
    parser.add_argument(
        "--events", type=count, metavar="N",
        help="of every toy (default: Poisson numbers around what a model with yields expects)",
    )  # fmt: skip
    parser.add_argument(
        "--value", type=assignments, action="append", metavar="NAME=VALUE",
        help="truth, several with commas (default: the start values of the model)",
    )  # fmt: skip
    parser.add_argument(
        "--start", type=assignments, action="append", metavar="NAME=VALUE",
        help="where fits start, several with commas (default: at the truth)",
    )  # fmt: skip
    parser.add_argument(
        "--fit-model", metavar="MODEL.py", help="fit another model than the toys are drawn from"
    )
    add_place(parser, workers=True)
    add_output(parser, json="a summary", plot="the pulls of all parameters")


def run(options: Namespace) -> int:
    """Draw and fit toys, and show the results."""
    check_targets(options)
    console, backend = open_console(options), backend_of(options)
    file = ModelFile.named(options.model)
    other = None if options.fit_model is None else ModelFile.named(options.fit_model)
    model, fit_model = file.load(), None if other is None else other.load()
    files = tuple(dict.fromkeys(one.path for one in (file, other) if one is not None))
    with processes(options.workers, files) as executor, finished_shown(partial(show_toys, console)):
        toys = mf.toy_study(
            model, toys=options.toys, events=options.events, truth=merged(options.value), fit_model=fit_model,
            start=merged(options.start), seed=options.seed, backend=backend, executor=executor,
            save=options.save, progress=not options.quiet,
        )  # fmt: skip
    show_toys(console, toys)
    write_json(summary(toys), options, console)
    write_figures(lambda _: draw_pulls(toys), ["pulls"], options, console)
    if len(toys) < options.toys:
        return INTERRUPTED
    return NOT_VALID if np.mean(~toys.valid) > options.allow_invalid else VALID


def show_toys(console: Console, toys: mf.ToyResults) -> None:
    """Show the results of toys."""
    summed = report(toys)
    headline(console, first_line(summed), good=not summed.bad)
    for line in details(summed):
        say(console, f"  {line}")
    show_tables(console, *tables(summed))
    for line in footlines(summed):
        say(console, line, MINOR)


def summary(toys: mf.ToyResults) -> dict[str, Any]:
    """Return few numbers that sum up a study, for JSON."""
    events = toys.events
    return {
        "format": FORMAT, "version": VERSION, "toys": len(toys), "first": toys.first, "seed": toys.seed,
        "valid": int(toys.valid.sum()),
        "how": {how: int(np.sum(toys.how == k)) for k, how in enumerate(HOW)},
        "events": {"least": int(events.min()), "most": int(events.max()), "mean": float(events.mean())},
        "parameters": {name: parameter_summary(toys, name) for name in toys.names},
        "seconds": toys.seconds,
    }  # fmt: skip


def parameter_summary(toys: mf.ToyResults, name: str) -> dict[str, Any]:
    """Sum up the valid toys for one parameter; what needs a truth is left out where there is none."""
    column = toys.names.index(name)
    values, errors = toys.values[toys.valid, column], toys.errors[toys.valid, column]
    known = {
        "mean": float(np.mean(values)) if len(values) else nan,
        "spread": float(np.std(values, ddof=1)) if len(values) > 1 else nan,
        "mean error": float(np.mean(errors)) if len(errors) else nan,
    }
    truth = toys.truth.get(name, nan)
    if isnan(truth):
        return known
    return known | {
        "truth": truth,
        "bias": toys.bias(name)._asdict(),
        "pulls": toys.pull_summary(name)._asdict(),
        "coverage": {str(level): toys.coverage(name, level)._asdict() for level in LEVELS},
    }


def draw_pulls(toys: mf.ToyResults) -> Figure:
    """Draw the pulls of all parameters that have a truth, in a grid."""
    names = [name for name in toys.names if not isnan(toys.truth.get(name, nan))]
    if not names:
        raise DataError(
            "--plot: pulls need a truth, but no parameter that is fitted was generated; leave it out"
        )
    across = ceil(sqrt(len(names)))
    down = ceil(len(names) / across)
    with styled(None):
        figure: Figure = load_pyplot().figure(
            figsize=(PANEL[0] * across, PANEL[1] * down), layout="constrained"
        )
        for k, name in enumerate(names):
            mf.plots.pulls(toys, name, ax=figure.add_subplot(down, across, k + 1))
    return figure


TOYS = Command(
    "toys",
    "draw toys from a model, fit each, and show biases, pulls and coverage",
    """
morefit toys model.py --events 1000
morefit toys model.py --toys 1e5 --events 1000 --seed 1 --save study.npz --plot pulls.pdf
morefit toys model.py --toys 1000 --events 500 --value fsig=0.1,mu=5.3 --json summary.json
morefit toys with_tail.py --fit-model model.py --events 2000     (a bias by a wrong model)
morefit toys extended.py --toys 1e4 --workers 4
""",
    add_options,
    run,
)
