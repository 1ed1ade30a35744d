"""How densities become numbers: by the compiler, which lies above this room and is imported when first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from morefit.arrays import Array

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
