"""What a command is, and the exit codes that scripts can rely on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

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
