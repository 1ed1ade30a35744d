"""Blind ranges of plots: bins whose data are not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.data.histogram import Histogram
from morefit.errors import OptionError
from morefit.model import Observable
from morefit.model.region import Range, check_range, listed_ranges
from morefit.validate import name_of

SAME_WIDTH = 1e-9  # relative: bins that differ less in width are equal


def check_blind(x: Observable, blind: Any) -> list[Range]:
    """Return the ranges of an observable in which no data are shown."""
    if isinstance(blind, Mapping):  # by observable, as ranges are
        if other := [key for key in map(name_of, blind) if key != x.name]:
            raise OptionError(f"plot: blind names {other[0]!r}, but '{x.name}' is plotted; leave it out")
        return [one for ends in blind.values() for one in check_blind(x, ends)]
    none = isinstance(blind, Sequence) and not len(blind)
    return [] if none else [check_range(x, ends) for ends in listed_ranges(x.name, blind)]


def gaps(x: Observable, ranges: Sequence[Range]) -> list[Range]:
    """Return what some ranges leave out of that of an observable: data that were cut to them show nothing there."""
    ends = [x.low, *(end for pair in ranges for end in pair), x.high]
    return list(zip(ends[::2], ends[1::2], strict=True))


def blinded(data: Histogram, ranges: Sequence[Range]) -> Histogram:
    """Return a histogram without the counts of bins that reach into some ranges."""
    near = SAME_WIDTH * (data.edges[-1] - data.edges[0])
    shown = np.ones(len(data.counts), bool)
    for low, high in ranges:
        shown &= (data.edges[1:] <= low + near) | (data.edges[:-1] >= high - near)
    return Histogram(
        data.edges, *(np.where(shown, own, np.nan) for own in (data.counts, data.low, data.high))
    )
