"""What a command is, its exit codes, options that several commands share, and what their texts mean."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

import morefit as mf
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend

MAX_BINS, MAX_POINTS, MAX_WORKERS = 1_000_000, 100_000, 10_000  # larger ones are mistakes
MAX_CALLS = 2**31 - 1
MAX_INVALID = 0.01  # of toys, before a study counts as not valid


class Group(Protocol):
    """A parser, or one of its groups of options."""

    def add_argument(self, *names: str, **settings: Any) -> Any: ...


# ------------------------------------------------------------------------------------ meanings


def count(text: str) -> int:
    """Read a whole number from 1 on; 1e6 is one."""
    number = to_number(text)
    if not number.is_integer() or number < 1:
        raise ArgumentTypeError(f"must be a whole number from 1 on, got '{text}'")
    return int(number)


def limited(text: str, most: int) -> int:
    """Read a whole number from 1 up to a largest one."""
    number = count(text)
    if number > most:
        raise ArgumentTypeError(f"must be at most {most}, got '{text}'")
    return number


def to_number(text: str) -> float:
    """Read a finite number."""
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number, got '{text}'") from None
    if not math.isfinite(number):
        raise ArgumentTypeError(f"must be finite, got '{text}'")
    return number


def positive(text: str) -> float:
    """Read a finite number above 0."""
    number = to_number(text)
    if not number > 0:
        raise ArgumentTypeError(f"must be above 0, got '{text}'")
    return number


def fraction(text: str) -> float:
    """Read a number from 0 to 1."""
    number = to_number(text)
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"must lie in [0, 1], got '{text}'")
    return number


def assignments(text: str) -> dict[str, float]:
    """Read "mu=5.28,sigma=0.06"."""
    return {name: to_number(number) for name, number in pairs(text, "NAME=VALUE")}


def fixed_parameters(text: str) -> dict[str, float | None]:
    """Read "mu=5.28,sigma", where a value may be missing."""
    words = text.split(",")
    return {
        name.strip(): to_number(number) if equals else None
        for name, equals, number in (word.partition("=") for word in words)
        if checked(name.strip(), text, "NAME or NAME=VALUE")
    }


def limits(text: str) -> dict[str, tuple[float, float]]:
    """Read "mu=5:6,sigma=0:1"; an end that is left out is infinite."""
    parsed = {}
    for name, ends in pairs(text, "NAME=LOW:HIGH"):
        low, colon, high = ends.partition(":")
        if not colon:
            raise ArgumentTypeError(f"must be NAME=LOW:HIGH, got '{text}'")
        parsed[name] = (to_number(low) if low else -math.inf, to_number(high) if high else math.inf)
    return parsed


def pairs(text: str, form: str) -> list[tuple[str, str]]:
    """Split "a=1,b=2" into names and the text of their values."""
    parsed = []
    for word in text.split(","):
        name, equals, rest = word.partition("=")
        checked(name.strip() if equals else "", text, form)
        parsed.append((name.strip(), rest))
    return parsed


def checked(name: str, text: str, form: str) -> str:
    if not name:
        raise ArgumentTypeError(f"must be {form}, several with commas, got '{text}'")
    return name


def names(text: str) -> tuple[str, ...]:
    """Read "mu,sigma"; a file there means that the option came right before the files."""
    parsed = tuple(name.strip() for name in text.split(","))
    if not all(parsed) or any("." in name or "/" in name for name in parsed):
        raise ArgumentTypeError(f"must be names of parameters, got '{text}'; write it after the files")
    return parsed


def points(text: str) -> tuple[float, ...]:
    """Read "0:1:11", eleven values from 0 to 1, or "0.1,0.2,0.4"."""
    if ":" not in text:
        return tuple(to_number(word) for word in text.split(","))
    words = text.split(":")
    if len(words) != 3:
        raise ArgumentTypeError(f"must be LOW:HIGH:POINTS or numbers with commas, got '{text}'")
    low, high, size = to_number(words[0]), to_number(words[1]), limited(words[2], MAX_POINTS)
    if not low < high or size < 2:
        raise ArgumentTypeError(f"LOW must be below HIGH, and POINTS at least 2, got '{text}'")
    return tuple(np.linspace(low, high, size).tolist())


def merged(several: list[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Merge the values of an option that may be repeated; the last one counts."""
    return {name: value for one in several or [] for name, value in one.items()}


def backend_of(options: Namespace) -> str | Backend:
    """Return the backend of the options; "auto" stays, since workers choose later."""
    kind, _, device = options.backend.partition(":")
    if options.threads is not None:
        if kind not in ("auto", "cpu"):
            raise BackendError(
                f"backend '{options.backend}': --threads is for the CPU, got {options.threads}; leave one of them out"
            )
        return mf.Cpu(threads=options.threads)
    if device and kind != "opencl":
        raise BackendError(
            f"backend '{options.backend}': only opencl has several devices; see 'morefit devices'"
        )
    if device:
        return chosen_device(device)
    if kind == "cpu" and vars(options).get("workers"):
        # as for "auto": processes with all threads each would be in each other's way
        return mf.Cpu(threads=1)
    return "auto" if kind == "auto" else choose_backend(kind)


def chosen_device(text: str) -> mf.OpenCL:
    """Read "0:1", the numbers of platform and device, or part of the name of a device."""
    words = text.split(":")
    if len(words) == 2 and all(map(str.isdigit, words)):
        return mf.OpenCL(platform=int(words[0]), device=int(words[1]))
    return mf.OpenCL(device=int(text) if text.isdigit() else text)


# ------------------------------------------------------------------------------------ options


def add_model(parser: Group) -> None:
    parser.add_argument(
        "model", metavar="MODEL.py", help="file that defines 'model'; MODEL.py:NAME takes another name"
    )


def add_data(parser: ArgumentParser, *, weight: bool) -> None:
    group = parser.add_argument_group("data")
    group.add_argument(
        "--cut", metavar="TEXT", help="condition on any columns, such as 'pt > 2 & abs(eta) < 2.5'"
    )
    group.add_argument("--tree", metavar="NAME", help="tree of ROOT files that hold several")
    parser.set_defaults(weight=None)
    if weight:
        group.add_argument("--weight", metavar="NAME", help="column of the weights")


def add_place(parser: ArgumentParser, *, workers: bool = False) -> None:
    group = parser.add_argument_group("where it runs")
    group.add_argument(
        "--backend", default="auto", metavar="NAME",
        help="auto, cpu, opencl, reference, or a device such as opencl:0:1; see 'morefit devices' (default: auto)",
    )  # fmt: skip
    group.add_argument(
        "--threads", type=count, metavar="N", help="threads of the CPU to use (default: all cores)"
    )
    if workers:
        group.add_argument(
            "--workers", type=partial(limited, most=MAX_WORKERS), metavar="N",
            help="processes, of one thread each unless --threads is set (default: threads of this process)",
        )  # fmt: skip


def add_output(parser: ArgumentParser, *, json: str, plot: str = "") -> Group:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", metavar="FILE", help=f"write {json} to a file; '-' writes to standard output"
    )
    if plot:
        group.add_argument("--plot", metavar="FILE", help=f"draw {plot}: .pdf, .png, .svg, ...")
    return group


def add_drawing(group: Group) -> None:
    group.add_argument(
        "--bins",
        type=partial(limited, most=MAX_BINS),
        metavar="N",
        help="of the plot (default: by the number of events)",
    )
    group.add_argument("--log", action="store_true", help="plot on a logarithmic scale")
    group.add_argument(
        "--report", metavar="FILE", help="write a page of HTML: model, data, result, plots, goodness of fit"
    )


def add_study(parser: Group, *, toys: int, what: str) -> None:
    """Add what all studies with toys share."""
    parser.add_argument(
        "--toys", type=count, default=toys, metavar="N", help=f"{what} (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the random numbers (default: a new one)"
    )
    parser.add_argument(
        "--save", metavar="FILE",
        help="keep what is finished in a file (.npz); the same command goes on where it stopped",
    )  # fmt: skip
    parser.add_argument(
        "--allow-invalid", type=fraction, default=MAX_INVALID, metavar="FRACTION",
        help="of toys that may fail before the exit code is 3 (default: %(default)s)",
    )  # fmt: skip


def add_behaviour(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("behaviour")
    group.add_argument("-q", "--quiet", action="store_true", help="show no tables and no progress")
    group.add_argument(
        "--traceback", action="store_true",
        help="show where in the code an error was raised; so does MOREFIT_TRACEBACK=1",
    )  # fmt: skip


VALID, BAD_INPUT, NOT_VALID, INTERRUPTED, PIPE_CLOSED = 0, 2, 3, 130, 141  # the last two as shells have them
CODES = """\
exit codes:
  0    all went well, and fits are valid
  2    bad input: options, the model, the data or a file
  3    a fit is not valid
  130  interrupted by Ctrl-C; what was finished is shown, and saved with --save
  141  standard output has no reader any more, such as after "| head"; files are written all the same"""


@dataclass(frozen=True)
class Command:
    """One of the commands: how it is called, what it takes, and what it does; ``run`` returns the exit code."""

    name: str
    summary: str
    examples: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]

    @property
    def epilog(self) -> str:
        """The text below the options in ``--help``."""
        lines = "\n".join(f"  {line}" for line in self.examples.strip().splitlines())
        return f"examples:\n{lines}\n\n{CODES}"
