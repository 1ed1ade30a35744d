"""Minimisation, and what it finds."""

from morefit.minimise.fit import fit
from morefit.minimise.result import FitResult

__all__ = ["FitResult", "fit"]
