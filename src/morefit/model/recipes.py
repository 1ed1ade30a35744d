"""How to draw from a density, as densities see it; ``sampling/recipe.py`` implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from morefit.arrays import Array
from morefit.expr import Expr
from morefit.model.observable import Observable

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

Recipe = TypeVar("Recipe")
Recipe_co = TypeVar("Recipe_co", covariant=True)


class Recipes(Protocol[Recipe_co]):
    """What draws can be made of, so that densities need not know how."""

    def single(self, pdf: Pdf, /) -> Recipe_co:
        """Draw from one density by its quantile, or under an envelope."""

    def cells(
        self,
        weights: Array,
        observables: Sequence[Observable],
        point: Callable[[int, Expr, Expr], Expr],
        /,
    ) -> Recipe_co:
        """Choose a cell of a grid, with probabilities proportional to the weights, and a point on each axis of it.

        ``point`` returns it from the number of the axis, the index of the cell along it, and a random number.
        """

    def mixture(self, weights: Sequence[Expr], pdfs: Sequence[Pdf], /) -> Recipe_co:
        """Choose one density, with probabilities proportional to the weights, and draw from it."""

    def product(self, pdfs: Sequence[Pdf], /) -> Recipe_co:
        """Draw from every density, each after those that draw what it is given."""

    def transformed(
        self, pdf: Pdf, count: int, points: Callable[[Sequence[Expr]], Sequence[Expr]], area: Expr, /
    ) -> Recipe_co:
        """Draw observables as functions of uniform numbers, and accept them in their ranges.

        The functions follow the density on all of space, where its integral is ``area``.
        """

    def thinned(self, efficiency: Any, /) -> Recipe_co:
        """Draw from the density of an ``Efficiency``, and accept by its acceptance."""

    def resampled(self, efficiency: Any, /) -> Recipe_co:
        """Choose one of the simulated events of an ``Efficiency``."""

    def shifted(self, pdf: Pdf, true: Pdf, shift: Pdf, /) -> Recipe_co:
        """Draw the observable of a density as a true value plus a shift, each from its density, if it is in its range."""
