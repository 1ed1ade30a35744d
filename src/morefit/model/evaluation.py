"""How densities become numbers and events: by rooms above this one, of which they know the interfaces here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.expr import Expr
from morefit.model.observable import Observable

if TYPE_CHECKING:
    from morefit.model.observable import Ranges
    from morefit.model.pdf import Pdf


@runtime_checkable
class HasValues(Protocol):
    """What knows values of parameters by name, as a fit result does."""

    @property
    def values(self) -> Mapping[str, float]: ...


Values = Mapping[str, float] | HasValues | None


class Evaluator(Protocol):
    """Computes what the methods of the same names of a density return."""

    def pdf(self, model: Pdf, data: object, values: Values, backend: Any) -> Array: ...

    def derivative(
        self, model: Pdf, data: object, by: object, order: int, values: Values, backend: Any
    ) -> Array: ...

    def cdf(self, model: Pdf, x: ArrayLike, values: Values, backend: Any, given: object) -> Array: ...

    def integrate(self, model: Pdf, ranges: Ranges, values: Values, backend: Any, given: object) -> float: ...


def evaluator() -> Evaluator:
    """Return what computes the numbers of densities."""
    computes: Evaluator = import_module("morefit.likelihood.evaluate").EVALUATOR
    return computes


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
