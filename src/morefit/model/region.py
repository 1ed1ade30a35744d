"""Regions: one or several ranges of each observable, as users write them, as boxes, and as conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from morefit.errors import DataError, ModelError
from morefit.expr import ONE, Expr, add_all, as_double, multiply_all
from morefit.model.evaluation import HasValues
from morefit.model.observable import Box, Observable, Ranges
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

YieldsIn = Literal["full", "range"]  # in which ranges yields and fractions count events
Range = tuple[float, float]
# apart and in order; observables that it does not name are not restricted
Region = Mapping[str, tuple[Range, ...]]


def check_region(observables: Sequence[Observable], ranges: Ranges) -> dict[str, tuple[Range, ...]]:
    """Return ranges as numbers, if they lie apart inside those of the observables; ranges that touch are joined."""
    if not isinstance(ranges, Mapping):
        raise DataError(f"ranges: must be (low, high) by name, as in {{'x': (0, 1)}}, got {ranges!r}")
    region: dict[str, tuple[Range, ...]] = {}
    for key, value in ranges.items():
        o = named_observable(observables, key)
        if o.name in region:
            raise DataError(f"observable '{o.name}': ranges are given twice; give all of them in one list")
        region[o.name] = joined(o, sorted(check_range(o, ends) for ends in listed_ranges(o.name, value)))
    return region


def named_observable(observables: Sequence[Observable], key: Observable | str) -> Observable:
    """Return the one of some observables that is meant."""
    name: Any = key.name if isinstance(key, Observable) else key
    known = {o.name: o for o in observables}
    if isinstance(name, HasValues):
        kind = type(name).__name__
        raise ModelError(
            f"observable: must be one of the model or its name, got {kind}; pass that as values="
        )
    if not (isinstance(name, str) and name in known):
        raise ModelError(f"observable {name!r}: not in the model; {suggest(str(name), known)}")
    return known[name]


def pair(value: Any) -> Range | None:
    """Return two numbers, or None if a value is something else."""
    ends = [as_double(end) for end in value] if isinstance(value, Sequence | np.ndarray) else []
    numbers = [end for end in ends if end is not None]
    return (numbers[0], numbers[1]) if len(ends) == len(numbers) == 2 else None


def listed_ranges(name: str, value: Any) -> list[Range]:
    """Return a list of ranges; one alone is a list of one."""
    if (alone := pair(value)) is not None:
        return [alone]
    pairs = [pair(one) for one in value] if isinstance(value, Sequence | np.ndarray) else []
    ranges = [one for one in pairs if one is not None]
    if not ranges or len(ranges) < len(pairs):
        raise DataError(
            f"observable '{name}': a sub-range must be (low, high), got {value!r}; several are a list of such pairs"
        )
    return ranges


def check_order(name: str, ends: Range) -> Range:
    """Return a range that is not empty."""
    if not ends[0] < ends[1]:
        raise DataError(f"observable '{name}': a sub-range must not be empty, got {ends}; low comes first")
    return ends


def check_range(o: Observable, ends: Range) -> Range:
    """Return a range, if it lies in that of an observable and is not empty."""
    low, high = check_order(o.name, ends)
    if low < o.low or high > o.high:
        rule = f"a sub-range must lie in [{o.low}, {o.high}]"
        raise DataError(f"observable '{o.name}': {rule}, got {ends}; the model is not defined outside")
    return ends


def joined(o: Observable, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Join ranges that touch; refuse those that overlap."""
    for before, after in pairwise(ranges):
        if after[0] < before[1]:
            raise DataError(
                f"observable '{o.name}': ranges must not overlap, got {before} and {after}; join them"
            )
    apart: list[Range] = []
    for low, high in ranges:
        if apart and apart[-1][1] == low:
            low = apart.pop()[0]
        apart.append((low, high))
    return tuple(apart)


def boxes(region: Region) -> Iterator[Box]:
    """Return the boxes that a region is made of."""
    for ends in product(*region.values()):
        yield dict(zip(region, ends, strict=True))


def intersection(first: Region, second: Region) -> dict[str, tuple[Range, ...]]:
    """Return the region that two have in common; observables without any range in common have none."""
    both = {**first, **second}
    for name in first.keys() & second.keys():
        pairs = [(max(a[0], b[0]), min(a[1], b[1])) for a in first[name] for b in second[name]]
        both[name] = tuple(sorted(ends for ends in pairs if ends[0] < ends[1]))
    return both


def part_of(region: Region, observables: Sequence[Observable]) -> dict[str, tuple[Range, ...]]:
    """Return the ranges of some observables."""
    return {o.name: region[o.name] for o in observables if o.name in region}


def contains(outer: Region, inner: Region, observables: Sequence[Observable]) -> bool:
    """Return whether a region has every point of another one."""
    return all(
        any(low <= a and b <= high for low, high in outer[o.name])
        for o in observables
        if o.name in outer
        for a, b in inner.get(o.name, ((o.low, o.high),))
    )


def inside(region: Region, observables: Sequence[Observable]) -> Expr:
    """Return the condition that an event lies in a region."""
    condition = ONE
    for o in observables:
        if o.name in region:
            each = [(o.expr >= low) & (o.expr <= high) for low, high in region[o.name]]
            own = each[0]
            for other in each[1:]:
                own = own | other
            condition = condition & own
    return condition


def probability_of(pdf: Pdf, region: Region, values: Mapping[str, float] | None = None) -> Expr:
    """Return the probability that an event lies in a region, by formula where there is one."""
    if len(shares := pdf.shares()) > 1:
        return add_all(*(share * probability_of(part, region, values) for share, part in shares))
    if len(factors := pdf.factors()) > 1:
        return multiply_all(*(probability_of(factor, region, values) for factor in factors))
    return pdf.probability_of_any(list(boxes(part_of(region, pdf.observables))), values)


def region_text(region: Region) -> str:
    """Return a region in words."""
    return ", ".join(
        f"{name} in {' or '.join(f'[{low:g}, {high:g}]' for low, high in ranges)}"
        for name, ranges in region.items()
    )
