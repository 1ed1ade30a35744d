"""Print what is compiled, when the environment asks for it: MOREFIT_SHOW=source."""

from __future__ import annotations

import os
import sys


def show_source(source: str) -> None:
    """Print a source to the standard error if MOREFIT_SHOW says "source"."""
    if os.environ.get("MOREFIT_SHOW") == "source":
        print(source, file=sys.stderr)
