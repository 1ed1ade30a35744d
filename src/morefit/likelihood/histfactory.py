"""The likelihood of a HistFactory model: counts of channels, expected as sums of samples with modifiers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.errors import DataError, ModelError
from morefit.expr import column
from morefit.kernel.counts_layout import CountsTable
from morefit.likelihood.auxiliary import Auxiliary
from morefit.likelihood.base import Point
from morefit.likelihood.eliminate import Elimination, remembered
from morefit.likelihood.evaluation import BadBins, Evaluation, PartData
from morefit.likelihood.expected_counts import ExpectedCounts, at_order, counts_table
from morefit.likelihood.sums import unpack
from morefit.likelihood.table import COUNT, CountsLikelihood, TableModel
from morefit.model import Parameter
from morefit.model.integrate.smooth import SmoothSum
from morefit.targets.base import Backend


class HistFactoryLikelihood(CountsLikelihood):
    """Minus the logarithm of the likelihood of a HistFactory model, relative to one that expects what was counted.

    ``mf.histfactory.read`` makes it. Its constraints are those of the model, and toys draw what they measured anew.
    Differences of twice its value are those of pyhf.
    """

    model: HistFactoryModel
    has_kernels: ClassVar[bool] = False
    one_minimum: ClassVar[bool] = True  # sums of templates with constraints

    @classmethod
    def of(
        cls, model: HistFactoryModel, counts: Array, constraints: Sequence[Any], backend: str | Backend
    ) -> HistFactoryLikelihood:
        """Return the likelihood of counts, one channel after the other."""
        likelihood: HistFactoryLikelihood = object.__new__(cls)
        likelihood.set_up_table(model, {COUNT.name: counts}, constraints, backend)
        return likelihood

    def replaced(self, **changes: Any) -> HistFactoryLikelihood:
        other = super().replaced(**changes)
        if changes.get("constraints") is None:  # what compiled code reads is the same
            shared = ("auxiliary", "table", *(("tables",) if other.backend == self.backend else ()))
            other.__dict__.update({name: getattr(self, name) for name in shared})
        return other

    @property
    def poi(self) -> str:
        """The name of the parameter of interest."""
        return self.model.poi

    @property
    def extended(self) -> bool:
        return True

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""
        return tuple(self.model.channels)

    def channel(self, name: str, values: Point) -> tuple[Array, dict[str, Array]]:
        """Return the counts of a channel, and what each of its samples expects, by name."""
        if name not in self.model.channels:
            known = ", ".join(map(repr, self.channels))
            raise DataError(f"channel '{name}': not in the model, which has {known}")
        bins = self.model.counts.channels[self.channels.index(name)]
        full, _ = self.points(values)
        parts = self.model.counts.samples(full)[0, bins].T
        return self.counts[bins], dict(zip(self.model.channels[name], parts, strict=False))

    def measuring(self, data: Any) -> Mapping[str, Array]:
        if isinstance(data, Mapping):
            if set(data) != set(self.channels):
                known = ", ".join(map(repr, self.channels))
                raise DataError(f"fit_many: counts by channel must have {known}, got {list(data)!r:.60}")
            data = np.concatenate([np.atleast_1d(data[name]) for name in self.channels])
        return super().measuring(data)

    # --------------------------------------------------------------------- evaluation

    @cached_property
    def auxiliary(self) -> Auxiliary:
        """The sum of the constraints."""
        names = [s.name for s in (*self.all_symbols, *self.measured_symbols)]
        return Auxiliary.of(self.constraints, self.constraint_terms, names)

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        counts = np.broadcast_to(self.counts, (len(full), self.events))
        measured = np.broadcast_to(self.measured, (len(full), len(self.measured)))
        return self.evaluate_counts(full, counts, measured, order)

    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        return self.evaluate_counts(full, *self.observed(data, sets), order)

    def observed(self, data: Sequence[PartData], sets: Integers) -> tuple[Array, Array]:
        """Return counts, and what constraints measured, in some of many datasets."""
        (own,) = data
        every = np.asarray(own.columns.buffer(column(COUNT.name), self.settings).values).reshape(
            -1, self.events
        )
        rows = np.zeros(len(sets), np.int64) if own.events.shared else own.events.starts[sets] // self.events
        measured = own.rows(sets)
        seen = self.measured if measured is None else measured
        return every[rows], np.broadcast_to(seen, (len(sets), len(self.measured)))

    @cached_property
    def table(self) -> CountsTable:
        """The model and its constraints as compiled code reads them."""
        return counts_table(self.model.counts, self.auxiliary, len(self.measured))

    @cached_property
    def tables(self) -> dict[Hashable, CountsTable]:
        """The same for sums with derivatives of an order by some of the parameters, and for profiles."""
        return {}

    def table_of(self, order: int, floating: Sequence[int]) -> CountsTable:
        """Return what compiled code reads for sums with derivatives of an order by some of the parameters."""
        return remembered(
            self.tables, (order, tuple(floating)), lambda: at_order(self.table, order, floating)
        )

    @property
    def fits_whole(self) -> bool:
        return not self.auxiliary.others

    def whole_sums(self, weighted: bool | None = None, smooth: Sequence[SmoothSum] = ()) -> CountsTable:
        return self.table_of(2, self.floating_columns)

    def evaluate_counts(self, full: Array, counts: Array, measured: Array, order: int) -> Evaluation:
        """Evaluate at all parameters for the counts of each set, with derivatives by the floating parameters."""
        return self.evaluate_by(self.floating_columns, full, counts, measured, order)

    def evaluate_all(self, full: Array, counts: Array, measured: Array, order: int) -> Evaluation:
        """Evaluate with derivatives by all parameters."""
        return self.evaluate_by(range(len(self.all_parameters)), full, counts, measured, order)

    def evaluate_by(
        self, floating: Sequence[int], full: Array, counts: Array, measured: Array, order: int
    ) -> Evaluation:
        points = np.concatenate([full, measured, counts], axis=1)
        sums = self.backend.sum_counts(self.table_of(order, floating), points)
        total = unpack(sums, len(floating), order)
        self.auxiliary.add_others(full, measured, total, floating)
        return total

    @cached_property
    def eliminations(self) -> dict[Hashable, Elimination | None]:
        """What eliminates parameters, for some that float in their limits."""
        return {}

    def elimination(self, floating: Sequence[str], limits: Array) -> Elimination | None:
        key = (tuple(floating), limits.tobytes())
        return remembered(self.eliminations, key, lambda: Elimination.of(self, floating, limits))

    def expected_rows(self, full: Array) -> Array:
        return self.model.counts.expected(full[:, : len(self.model.parameters)])

    def own_bad_events(self, x: Point) -> BadBins:
        """Return the bins whose counts have no probability."""
        expected = self.expected_rows(self.points(x)[0])[0]
        bad = np.flatnonzero((expected < 0) | ((expected == 0) & (self.counts > 0)))
        names = [
            f"{k - bins.start} of channel '{name}'"
            for name, bins in zip(self.channels, self.model.counts.channels, strict=True)
            for k in range(bins.start, bins.stop)
        ]
        return BadBins(bad, expected[bad], self.events, self.counts[bad], [names[k] for k in bad])

    def request(self, *_: Any, **__: Any) -> NoReturn:
        raise ModelError(
            "histfactory: expected counts are products of arrays, not a formula, so that there is no kernel to explain and"
            " no sum of squared gradients"
        )

    @property
    def facts(self) -> dict[str, Any]:
        return {"rows": self.model.counts_digest}

    def __repr__(self) -> str:
        floating, count = len(self.parameters), len(self.channels)
        return (
            f"HistFactoryLikelihood({count} channel{'s' * (count > 1)}, {self.events} bins, {self.entries:g} counts,"
            f" {floating} floating parameters, poi: {self.poi})"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class HistFactoryModel(TableModel):
    """What the bins of a HistFactory model expect."""

    all_parameters: tuple[Parameter, ...]
    channels: Mapping[str, tuple[str, ...]]  # the samples of each
    poi: str
    counts: ExpectedCounts
    counted: ClassVar[str] = COUNT.name

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.all_parameters

    def __repr__(self) -> str:
        count = len(self.channels)
        return f"HistFactoryModel({count} channel{'s' * (count > 1)}, {len(self.parameters)} parameters, poi: {self.poi})"

    def __str__(self) -> str:
        bins = [c.stop - c.start for c in self.counts.channels]
        each = zip(self.channels.items(), bins, strict=True)
        lines = [f"channel {name}, {count} bins: {', '.join(samples)}" for (name, samples), count in each]
        return "\n".join([repr(self), *lines])

    @cached_property
    def counts_digest(self) -> str:
        """A digest of all numbers of the model."""
        digest = sha256()
        for field in fields(ExpectedCounts):
            content = getattr(self.counts, field.name)
            digest.update(content.tobytes() if isinstance(content, np.ndarray) else repr(content).encode())
        return digest.hexdigest()
