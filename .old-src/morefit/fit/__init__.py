"""Minimisation, and what it finds."""

from morefit.fit.minuit import fit
from morefit.fit.result import FitResult

__all__ = ["FitResult", "fit"]
