"""A console for tables that stops writing when its reader is gone, so that the work goes on."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from rich.console import Console

from morefit.cli.printing import silence

WIDTH = 80  # of a terminal that does not know its own


class Screen(Console):
    """A console that sets ``reader_gone`` of the options when its reader is gone, instead of ending the process."""

    def __init__(self, options: Namespace, **settings: Any) -> None:
        super().__init__(**settings)
        if self.width < 1:  # COLUMNS=0, as some editors set it, would leave nothing of any line
            self.width = WIDTH
        self.options_of_command = options

    def print(self, *objects: Any, **settings: Any) -> None:
        try:
            super().print(*objects, **settings)
        except BrokenPipeError:  # rich calls on_broken_pipe since 13.8
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Write nothing more to the console; output files are still to be written."""
        self.quiet = self.options_of_command.reader_gone = True
        silence(self.file)
