"""Print what is compiled, when the environment asks for it: MOREFIT_SHOW=source."""

from __future__ import annotations

import os
import sys


def shows_source() -> bool:
    """Return whether MOREFIT_SHOW says "source"."""
    return os.environ.get("MOREFIT_SHOW") == "source"


def show_source(source: str) -> None:
    """Print a source to the standard error if the environment asks for it."""
    if shows_source():
        print(source, file=sys.stderr)
