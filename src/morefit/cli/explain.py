"""``morefit explain``: show what becomes of a model, from its graph to the text that is compiled."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import morefit as mf
from morefit.cli.files import check_targets, write_json, wrote
from morefit.cli.fit import read_data
from morefit.cli.model_file import load_model
from morefit.cli.options import VALID, Command, add_data, add_model, add_output, add_place, backend_of
from morefit.cli.printing import open_console, say, show_tables
from morefit.expr import price, toposort
from morefit.inspect.explain import ORDERS
from morefit.text.tables import Column

if TYPE_CHECKING:
    from rich.console import Console

FORMAT, VERSION = "morefit explanation", 1


def add_options(parser: ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--data", metavar="DATA", nargs="+", help="files of events, to time an evaluation with"
    )
    add_data(parser, weight=False)
    parser.add_argument(
        "--order", type=int, choices=(0, 1, 2),
        help="only the kernel for the value (0), also the gradient (1), also the Hessian (2)",
    )  # fmt: skip
    add_place(parser)
    output = add_output(parser, json="numbers and sources")
    output.add_argument(
        "--source", action="store_true", help="show only the text that is compiled, of --order (default: 0)"
    )
    output.add_argument(
        "--draw", metavar="FILE", help="draw the graph: .dot, or with Graphviz .svg, .png, .pdf"
    )
    output.add_argument(
        "--stage", choices=("before", "after"), default="before",
        help="of the drawing: as written, or as computed (default: %(default)s)",
    )  # fmt: skip


def run(options: Namespace) -> int:
    """Compile the model, and show what became of it."""
    check_targets(options)
    console, model, backend = open_console(options), load_model(options.model), backend_of(options)
    data = None if options.data is None else read_data(options, console, model)
    explanation = mf.explain(model, data, backend=backend)
    if options.source:
        say(console, explanation.source(options.order or 0))
    else:
        show(console, explanation, range(len(ORDERS)) if options.order is None else [options.order])
    write_json(summary(explanation), options, console)
    if options.draw:
        path = Path(options.draw).expanduser()
        mf.draw(model, stage=options.stage).save(path)
        wrote(console, path)
    return VALID


def show(console: Console, explanation: mf.Explanation, orders: range | list[int]) -> None:
    """Show the graph, the cut, the kernels and the times."""
    for part in (explanation.graphs(), explanation.cut(), *map(explanation.kernel, orders)):
        title, _, rest = part.partition("\n")
        say(console, title, "bold")
        say(console, f"{rest}\n")
    show_tables(console, times(explanation, orders))


def times(explanation: mf.Explanation, orders: range | list[int]) -> list[Column]:
    """Return a table of what each stage cost."""
    compiled = [explanation.compiled[order] for order in orders]
    stages = dict.fromkeys(stage for c in compiled for stage in c.seconds)
    columns = [Column("time [ms] for", [ORDERS[order] for order in orders], numeric=False)]
    columns += [
        Column(stage, [f"{c.seconds.get(stage, 0.0) * 1e3:.3f}" for c in compiled]) for stage in stages
    ]
    if not explanation.run_seconds:
        return columns
    seconds = [explanation.run_seconds[order] for order in orders]
    each = [f"{s / max(explanation.events, 1) * 1e9:.3f}" for s in seconds]
    return [*columns, Column("run", [f"{s * 1e3:.3f}" for s in seconds]), Column("ns/event", each)]


def summary(explanation: mf.Explanation) -> dict[str, Any]:
    """Return numbers and sources, for JSON."""
    graphs = {"as written": explanation.before, "simplified": explanation.after}
    return {
        "format": FORMAT, "version": VERSION,
        "graphs": {name: {"nodes": len(toposort(e)), "price": price(e)} for name, e in graphs.items()},
        "events": explanation.events,
        "kernels": tuple(
            {
                "for": ORDERS[order], "seconds": c.seconds, "source": explanation.source(order),
                **({"run seconds": explanation.run_seconds[order]} if explanation.run_seconds else {}),
            }
            for order, c in enumerate(explanation.compiled)
        ),
    }  # fmt: skip


EXPLAIN = Command(
    "explain",
    "show the graph of a model, what is computed when, the kernels and what each stage costs",
    """
morefit explain model.py
morefit explain model.py --data data.root --order 2
morefit explain model.py --source --backend opencl > kernel.cl
morefit explain model.py --draw graph.svg --stage after
""",
    add_options,
    run,
)
