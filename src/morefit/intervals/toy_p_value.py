"""The p-value of a test by toys: which fraction of them has a statistic at least as large as the data have."""

from __future__ import annotations

from abc import abstractmethod
from math import nan, sqrt

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.intervals.free_fits import TIE
from morefit.text.rounding import round_pdg


class ToyPValue(Frozen):
    """What records of tests say of their toys; those whose fits failed count as having a larger statistic."""

    toys: Array  # their statistics, (T,), nan where a fit failed; empty if none were drawn

    @property
    @abstractmethod
    def observed(self) -> float:
        """The statistic of the data."""

    @property
    def tie(self) -> float:
        """How much statistics may differ by the precision of fits: such ones are equal."""
        return TIE

    @property
    def toy_p_value(self) -> float:
        """The fraction of toys with a statistic at least as large; nan without toys."""
        return self.toys_above / len(self.toys) if len(self.toys) else nan

    @property
    def toy_p_error(self) -> float:
        """The binomial error of that fraction; never zero, as one toy more and one less is added."""
        count = len(self.toys)
        smoothed = (self.toys_above + 1) / (count + 2)
        return sqrt(smoothed * (1 - smoothed) / count) if count else nan

    @property
    def toys_above(self) -> int:
        """The number of toys with a statistic at least as large."""
        return int(np.count_nonzero(~(self.toys < self.observed - self.tie)))

    def toy_lines(self) -> list[str]:
        """Return the p-value in print, and how many fits failed; nothing without toys."""
        if not (count := len(self.toys)):
            return []
        failed = int(np.isnan(self.toys).sum())
        verdict = f", FITS OF {failed} FAILED" if failed else ""
        shown = " +- ".join(round_pdg(self.toy_p_value, self.toy_p_error))
        return [f"  {count} toys: p-value {shown}{verdict}"]
