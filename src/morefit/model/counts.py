"""Densities of whole numbers: a step of width one around each, so that sums over numbers are integrals over ranges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from math import floor

from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr import ZERO, Expr, Op, add_all, const, where
from morefit.model.in_use import once_per_model
from morefit.model.observable import Observable, Ranges
from morefit.model.parts import parts_of
from morefit.model.pdf import Pdf
from morefit.model.region import Range, check_region

MAX_NUMBERS = 1000  # in the range of an observable: drawing compares with the sum up to each


@dataclass(frozen=True, eq=False)
class Counts(Pdf):
    """The probability of each whole number; the range of ``x`` ends halfway between numbers, as in ``Observable("n", -0.5, 9.5)``."""

    x: Observable
    whole_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.x.low, self.x.high
        if low < -0.5 or any((end + 0.5) != floor(end + 0.5) for end in (low, high)):
            near = f"mf.Observable({self.x.name!r}, {max(floor(low), 0) - 0.5}, {floor(high) + 0.5})"
            raise ModelError(
                f"density '{type(self).__name__}': the range of '{self.x.name}' must begin and end halfway between whole"
                f" numbers from -0.5 on, got [{low:g}, {high:g}]; write {near}"
            )
        if high - low > MAX_NUMBERS:
            raise ModelError(
                f"density '{type(self).__name__}': the range of '{self.x.name}' must have at most {MAX_NUMBERS} whole"
                f" numbers, got {high - low:g}; narrow it, or use mf.Gaussian"
            )

    @abstractmethod
    def chance(self, number: Expr) -> Expr:
        """Return the probability of a number."""

    @abstractmethod
    def chance_below(self, number: Expr) -> Expr:
        """Return the probability of all smaller numbers."""

    @abstractmethod
    def chance_from(self, number: Expr) -> Expr:
        """Return the probability of a number and all larger ones."""

    @abstractmethod
    def expected(self) -> Expr:
        """Return the mean of all numbers."""

    def chance_between(self, first: Expr, end: Expr) -> Expr:
        """Return the probability of the numbers from the first to that before the end, by the smaller tail."""
        upper = self.chance_from(first) - self.chance_from(end)
        return where(self.expected() < first, upper, self.chance_below(end) - self.chance_below(first))

    def density(self) -> Expr:
        return self.chance(Op.FLOOR(self.x + 0.5))

    def integral(self) -> Expr:
        return self.chance_between(const(self.x.low + 0.5), const(self.x.high + 0.5))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        first, end = Op.FLOOR(low + 0.5), Op.FLOOR(high + 0.5)
        parts = [(number, edge + 0.5 - number) for number, edge in ((first, low), (end, high))]
        cut, more = (where(part > 0, part * self.chance(number), ZERO) for number, part in parts)
        return self.chance_between(first, end) + more - cut

    def quantile(self, probability: Expr) -> Expr:
        first, end = int(self.x.low + 0.5), int(self.x.high + 0.5)
        level = probability * self.integral()
        passed = [self.chance_between(const(first), const(n)) < level for n in range(first + 1, end)]
        return add_all(const(first), *passed) if passed else const(first)


@once_per_model("its counts")
def counted_in(model: Pdf) -> frozenset[str]:
    """Return the names of the observables of a model that are whole numbers."""
    return frozenset(o.name for part in parts_of(model) if part.whole_numbers for o in part.drawn)


def check_halves(model: Pdf, name: str, ends: Iterable[float]) -> None:
    """Refuse ends of ranges or bins that cut whole numbers: those that do not lie halfway between two."""
    if name not in counted_in(model):
        return
    if cut := [end for end in ends if end + 0.5 != floor(end + 0.5)]:
        raise DataError(
            f"observable '{name}': ends of ranges and bins of whole numbers must lie halfway between them, as {floor(cut[0])}.5,"
            f" got {cut[0]:g}"
        )


def region_in(model: Pdf, ranges: Ranges) -> dict[str, tuple[Range, ...]]:
    """Return ranges of the observables of a model as numbers; none may cut a whole number."""
    region = check_region(model.observables, ranges)
    for name, several in region.items():
        check_halves(model, name, (end for pair in several for end in pair))
    return region
