"""Columns in the memory of the host: one array that vectors can read past the end of, or many arrays apart."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from morefit.arrays import Array, address
from morefit.kernel.ir import Precision
from morefit.resources import can_read_past, padded
from morefit.targets.base import HostColumn, Pieces


class CpuColumn(HostColumn):
    """A column in memory: aligned, and safe to read a vector past its end."""

    @classmethod
    def of(cls, column: Array, precision: Precision = Precision.DOUBLE) -> CpuColumn:
        """Copy numbers, unless they can be read where they are."""
        if precision is Precision.DOUBLE and can_read_past(column):
            return cls(column)
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            return cls(padded(len(column), lambda numbers: np.copyto(numbers, column), precision.kind))

    @property
    def address(self) -> int:
        return address(self.numbers)


class ScatteredColumn(CpuColumn):
    """A column whose numbers are where many arrays have them: whole fits read them there, others join them first."""

    def __init__(self, pieces: Pieces) -> None:
        vars(self)["pieces"] = pieces

    pieces: Pieces

    @property
    def count(self) -> int:
        return self.pieces.count

    @cached_property
    def numbers(self) -> Array:
        return self.pieces.joined()
