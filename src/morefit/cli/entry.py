"""Read the command line, run one command, and turn errors into messages and exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import NoReturn

import morefit as mf
from morefit.cli.demo import DEMO
from morefit.cli.devices import DEVICES
from morefit.cli.explain import EXPLAIN
from morefit.cli.feldman import FELDMAN
from morefit.cli.fit import FIT
from morefit.cli.options import BAD_INPUT, CODES, INTERRUPTED, PIPE_CLOSED, add_behaviour
from morefit.cli.printing import prepare_streams, silence
from morefit.cli.toys import TOYS
from morefit.records.output import reason
from morefit.text.progress import tell
from morefit.text.suggest import nearest

COMMANDS = (DEMO, FIT, TOYS, FELDMAN, EXPLAIN, DEVICES)
MAY_BE_NEGATIVE = ("--values",)  # argparse takes "-1:1:5" behind it for an option
HELP = "Fit models to data by maximum likelihood, and study fits with toys.\nDensities are compiled just in time."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if arguments is None:
        os.environ.setdefault("MPLBACKEND", "agg")  # figures go to files: no window, and no display needed
    prepare_streams()
    try:
        try:
            code = call(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # such as by "| head"
        silence(sys.stdout)
        return PIPE_CLOSED
    except OSError as error:  # such as of a full disk that the output goes to
        silence(sys.stdout)
        tell(f"morefit: error: standard output: {reason(error)}")
        return BAD_INPUT
    return code


def call(arguments: list[str]) -> int:
    """Read the arguments, and run the command they ask for."""
    parser = make_parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    options, unknown = parser.parse_known_args(
        join_negative(arguments), Namespace(arguments=arguments, reader_gone=False)
    )
    if unknown:
        refuse(options.command, unknown)
    return run(options)


def refuse(command: Parser, unknown: Sequence[str]) -> NoReturn:
    """Report arguments that a command does not have, with the option that is meant."""
    wrong = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
    near = nearest(wrong, command.options) if wrong else None
    hint = f"; did you mean '{near}'?" if near else ""
    command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


class Parser(ArgumentParser):
    """Reports an error in one line, without a list of all options."""

    @property
    def options(self) -> list[str]:
        """The options, by their long names."""
        return [word for word in self._option_string_actions if word.startswith("--")]

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"morefit: error: {message}; see '{self.prog} --help'\n")


def make_parser() -> Parser:
    """Declare all commands and their options."""
    parser = Parser(
        "morefit", description=HELP, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
        epilog=f"'morefit COMMAND --help' shows the options of a command, with examples.\n\n{CODES}",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"morefit {mf.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.summary, description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=command.epilog, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        command.add_options(sub)
        add_behaviour(sub)
        sub.set_defaults(run=command.run, command=sub)
    return parser


def join_negative(arguments: Sequence[str]) -> list[str]:
    """Write "--values -1:1:5" as "--values=-1:1:5"."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in MAY_BE_NEGATIVE and re.match(r"-\.?\d", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def run(options: Namespace) -> int:
    """Run a command; report wrong input in one line. Unexpected errors propagate."""
    try:
        code = int(options.run(options))
        return PIPE_CLOSED if options.reader_gone else code
    except KeyboardInterrupt:
        return report_error(options, "interrupted", INTERRUPTED)
    except mf.MorefitError as error:
        return report_error(options, f"error: {error}", BAD_INPUT)
    except MemoryError:
        return report_error(
            options, "error: there is not enough memory for this; ask for less at once", BAD_INPUT
        )
    except OSError as error:
        if error.filename is None:
            raise
        return report_error(options, f"error: file '{error.filename}': {error.strerror}", BAD_INPUT)


def report_error(options: Namespace, message: str, code: int) -> int:
    """Report an error on standard error, with a traceback on request; return the exit code."""
    if options.traceback or os.environ.get("MOREFIT_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exc()
    tell(f"morefit: {message}")
    return code
