"""A candidate event as expressions of random numbers, and what its density must fulfil."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr
from morefit.kernel.symbols import uniform

MARGIN = 0.25  # of what a density varies inside a cell of an envelope, added to its maximum there
NEGATIVE = 1e-9  # of the largest value; a density below minus that is no density, above it is rounded


@dataclass(frozen=True)
class Recipe:
    """Expressions of random numbers: the observables of a candidate, whether to accept it, if it was too high."""

    drawn: Mapping[str, Expr]
    accept: Expr
    above: Expr
    efficiency: float  # expected


class Numbers:
    """Random numbers of one candidate; component densities of a sum may use the same ones.

    ``exact`` asks for efficiencies that are not estimated: those of components decide how often each is tried.
    """

    def __init__(self, first: int = 0, margin: float = MARGIN, *, exact: bool = False) -> None:
        self.next, self.margin, self.exact = first, margin, exact

    def take(self) -> Expr:
        self.next += 1
        return uniform(self.next - 1)


def check_values(density: Array, points: Mapping[str, Array]) -> None:
    """Refuse a density that is infinite, negative or nowhere positive at the values of the parameters."""
    largest = np.nanmax(density, initial=0.0)
    if largest == np.inf:
        raise ModelError(
            f"density: infinite at {point_text(points, int(np.nanargmax(density)))}; cannot draw from a density"
            " without a bound, change the ranges of its observables"
        )
    if not largest > 0:
        raise ModelError(
            "density: zero, negative or not a number wherever it was tried, at the given values; are they"
            " too far from the range?"
        )
    if np.nanmin(density) < -NEGATIVE * largest:
        lowest = int(np.nanargmin(density))
        raise ModelError(
            f"density: negative at {point_text(points, lowest)}, got {float(density[lowest]):.3g} where its largest"
            f" value is {largest:.3g}; draw at values where it is positive everywhere"
        )


def point_text(points: Mapping[str, Array], index: int) -> str:
    return ", ".join(f"{name} = {float(numbers[index]):.6g}" for name, numbers in points.items())
