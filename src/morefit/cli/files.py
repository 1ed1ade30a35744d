"""Files that a command writes: looked at before the work begins, written at its end."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import morefit as mf
from morefit.cli.printing import MINOR, say, silence
from morefit.errors import DataError
from morefit.plots.style import load_pyplot
from morefit.records.archive import portable
from morefit.records.output import complete_file, writable_place

if TYPE_CHECKING:
    from rich.console import Console

    from morefit.plots.canvas import Figure

PICTURES = (".pdf", ".png", ".svg", ".eps", ".jpg", ".jpeg", ".webp")
DOTS = 200  # an inch, of pictures made of dots
STANDARD_OUTPUT = "-"


def check_targets(options: Namespace) -> None:
    """Refuse files that cannot be written, and options of a plot without one, before anything else is done."""
    targets = {
        f"--{name}": path
        for name in ("json", "plot", "report", "save", "draw")
        if (path := vars(options).get(name))
    }
    problems = [
        problem
        for option, path in targets.items()
        if (problem := problem_with(Path(path).expanduser(), option))
    ]
    if "--plot" not in targets and any(vars(options).get(name) for name in ("log", "bins")):
        problems.append("--log and --bins: change the plot; pass --plot FILE too")
    paths = [Path(path).expanduser().absolute() for path in targets.values()]
    problems += [
        f"file '{path}': named by two options; each needs its own" for path in dict.fromkeys(paths) if paths.count(path) > 1
    ]  # fmt: skip
    if problems:
        raise DataError("; ".join(problems))
    if targets.keys() & {"--plot", "--report"}:
        load_pyplot()  # raises with a hint how to install it


def problem_with(path: Path, option: str) -> str:
    """Return what is wrong with the path of a file, empty if nothing is."""
    if str(path) == STANDARD_OUTPUT:
        return "" if option == "--json" else f"{option}: needs the name of a file, got '-'"
    if option == "--plot" and path.suffix.lower() not in PICTURES:
        return f"{option}: the name of a file must end in {', '.join(PICTURES)}, got '{path.name}'"
    try:
        writable_place(f"{option}: file", path)
    except DataError as error:
        return str(error)
    return ""


def check_figures(subjects: Sequence[str], options: Namespace) -> None:
    """Refuse figures that cannot be written, as soon as it is known which there will be."""
    for path in figure_paths(subjects, options):
        writable_place("--plot: file", path)


def figure_paths(subjects: Sequence[str], options: Namespace) -> list[Path]:
    """Return the file of each subject, if there is an option for figures; several have the names of the subjects in them."""
    if options.plot is None:
        return []
    target = Path(options.plot).expanduser()
    return [target if len(subjects) == 1 else beside(target, subject) for subject in subjects]


def write_json(content: Mapping[str, Any], options: Namespace, console: Console) -> None:
    """Write one document, if there is an option for it, with its origin; numbers that JSON lacks are texts such as "nan"."""
    if options.json is None:
        return
    origin = {"morefit": mf.__version__, "command": options.arguments}
    text = json.dumps(portable({**content, "origin": origin}), indent=1, allow_nan=False)
    if options.json == STANDARD_OUTPUT:
        print_document(text, options)
        return
    path = Path(options.json).expanduser()
    with complete_file(path) as part:
        part.write_text(f"{text}\n", encoding="utf-8")
    wrote(console, path)


def print_document(text: str, options: Namespace) -> None:
    """Write to standard output; if its reader is gone, other files are still written."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        options.reader_gone = True
        silence(sys.stdout)


def write_figures(
    draw: Callable[[str], Figure], subjects: Sequence[str], options: Namespace, console: Console
) -> None:
    """Draw a figure for each subject, if there is an option for it."""
    for subject, path in zip(subjects, figure_paths(subjects, options), strict=False):
        figure = draw(subject)
        with complete_file(path) as part:
            figure.savefig(part, dpi=DOTS, format=path.suffix[1:].lower())
        load_pyplot().close(figure)
        wrote(console, path)


def beside(path: Path, subject: str) -> Path:
    """Return "fit-ctl.pdf" for "fit.pdf" and the subject "ctl"."""
    word = re.sub(r"[^\w.+=-]", "_", subject)
    return path.with_name(f"{path.stem}-{word}{path.suffix}")


def wrote(console: Console, path: Path) -> None:
    say(console, f"wrote {path}", MINOR)
