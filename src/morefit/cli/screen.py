"""The terminal that tables go to: it falls silent when nobody reads any more, and the work goes on."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from rich.console import Console

from morefit.cli.streams import silence


class Screen(Console):
    """A console that notes in the options when its reader is gone, instead of ending the process."""

    def __init__(self, options: Namespace, **settings: Any) -> None:
        super().__init__(**settings)
        self.asked = options

    def print(self, *objects: Any, **settings: Any) -> None:
        try:
            super().print(*objects, **settings)
        except BrokenPipeError:  # rich calls on_broken_pipe since 13.8
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Write nothing more: files that are asked for are still to be written."""
        self.quiet = self.asked.reader_gone = True
        silence(self.file)
