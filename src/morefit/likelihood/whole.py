"""Whole fits of a likelihood in compiled code: what its parts are, and the data they are fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.integrals import SharedBoxes
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.ir import Precision
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood.unbinned import Likelihood
from morefit.pipeline import Compiled, Settings, compile_values
from morefit.targets.base import CountsPart, WholePart


def can_fit_whole(parts: Sequence[Likelihood], compiled: Sequence[Compiled | CountsTable]) -> bool:
    """Return whether a fit can run without Python: not with integrals inside integrals, in several places, or in single precision."""
    nested = any(one.compiled.integrals for own in compiled for one in own.integrals)
    one_place = len({part.backend.name for part in parts}) == 1
    return one_place and not nested and all(part.settings.precision is Precision.DOUBLE for part in parts)


def whole_part(
    part: Likelihood,
    compiled: Compiled | CountsTable,
    *,
    places: Mapping[str, int],
    columns: Sequence[str],
    fluctuating: bool,
    rows: Array,
    boxes: SharedBoxes,
    finer: int = 0,
) -> WholePart | CountsPart:
    """Return one part of a whole fit, without what draws its events.

    ``places`` are the parameters of the fit by name (others are fixed), ``columns`` what its events have, and ``rows``
    the parameters of the part at which its numerical integrals must be accurate; their boxes are halved ``finer`` more times.
    """
    common: Any = {
        "parameters": len(part.all_parameters) + len(part.measured),
        "floating": tuple(part.floating_columns),
        "places": tuple(places.get(p.name, -1) for p in part.parameters),
        "measured": len(part.all_parameters),
        "fluctuating": len(part.measured) if fluctuating else 0,
    }
    if isinstance(compiled, CountsTable):
        return CountsPart(table=compiled, **common)
    derived = tuple(compiled.per_dataset.values())
    plain = Settings(part.backend, precompute="none")
    return WholePart(
        sampler=None,
        derive=compile_values(derived, (), plain).program if derived else None,
        sums=compiled.program,
        observables=tuple(columns),
        derived=tuple(compiled.per_dataset),
        **common,
        integrals=tuple(
            one.fix(part.with_measured(np.unique(rows, axis=0)), boxes, finer) for one in compiled.integrals
        ),
    )


@dataclass(frozen=True, eq=False)
class Stored:
    """A column of a dataset."""

    values: Array

    @property
    def count(self) -> int:
        return len(self.values)


def stored_columns(part: Likelihood) -> dict[str, Stored]:
    """Return the columns that the data of a part have, with the weights last."""
    data = part.data
    columns = {o.name: data.columns[o.name] for o in part.model.observables}
    if data.weights is not None:
        columns[WEIGHT.name] = data.weights
    return {name: Stored(np.ascontiguousarray(values, np.float64)) for name, values in columns.items()}
