"""The command line: ``morefit demo``, ``fit``, ``toys``, ``fc``, ``explain`` and ``devices``."""

from morefit.cli.demo import mass_model
from morefit.cli.entry import main
from morefit.cli.options import BAD_INPUT, INTERRUPTED, NOT_VALID, VALID

__all__ = ["BAD_INPUT", "INTERRUPTED", "NOT_VALID", "VALID", "main", "mass_model"]
