"""The likelihood of a model for counts in bins: a bin is an event whose columns are its edges and its count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset, build
from morefit.data.io.bins import BinContents, read_bins
from morefit.errors import DataError, OptionError
from morefit.kernel.rows_layout import RowsDraw
from morefit.likelihood.accuracy import Moved, integral_error, is_numerical, moved_edges
from morefit.likelihood.base import Point
from morefit.likelihood.bin_rules import are_near, edge_columns
from morefit.likelihood.binned_model import (
    SCALE,
    STATISTICS,
    TOTAL,
    VARIANCE,
    BinnedModel,
    Statistic,
    count_columns,
    integrals_over,
)
from morefit.likelihood.coarse import NLL_ERROR, some_events
from morefit.likelihood.evaluation import BadBins
from morefit.likelihood.table import COUNT, CountsLikelihood
from morefit.model import Pdf
from morefit.model.counts import check_halves
from morefit.model.parts import check_known, check_model
from morefit.model.replace import Changed, Replacement
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences

MAX_AXES = 3
ERROR_NEAR = 1e-6  # of a rule near the start values, where it was tried


class BinnedLikelihood(CountsLikelihood):
    """Minus the logarithm of the likelihood of counts in bins, relative to one that expects what was counted.

    That is sum of mu - n - n ln(mu / n) over bins, so that twice the minimum is the chi-square of Baker and Cousins;
    without yields, mu is scaled to all counts and the likelihood is multinomial. The expected number mu is the
    integral of the density over the bin. ``histogram`` is one of the UHI protocol (hist, boost-histogram, uproot), or
    (counts, edges) with the edges of each axis and, for weighted counts, their ``variances``; weighted ones give the scaled
    Poisson likelihood of Bohm and Zech. Bins may cover a part of the ranges of the observables: yields are those of the whole ranges.
    ``flow`` adds under- and overflow as bins. ``statistic`` "neyman", "pearson" or "combined" is half a chi-square, with
    variances from counts (empty bins are left out), from mu, or (1 / n + 2 / mu) / 3 as their inverse (arXiv:1903.07185).

    Example: ``mf.BinnedLikelihood(model, np.histogram(data["m"], 50, (5.0, 7.0)))``
    """

    model: BinnedModel

    @in_sentences
    def __init__(
        self,
        model: Pdf,
        histogram: Any,
        *,
        variances: ArrayLike | None = None,
        flow: bool = False,
        statistic: Statistic = "likelihood",
        constraints: Sequence[Any] | Any = (),
        backend: str | Backend = "auto",
    ) -> None:
        check_model(model)
        check_known(model, "a binned likelihood")
        if statistic not in STATISTICS:
            choices = ", ".join(map(repr, STATISTICS))
            raise OptionError(f"binned likelihood: statistic must be one of {choices}, got {statistic!r}")
        if len(model.observables) > MAX_AXES:
            raise DataError(
                f"binned likelihood: takes up to {MAX_AXES} observables, got {len(model.observables)}"
            )
        bins = read_bins(histogram, model.observables, variances=variances, flow=flow)
        for o, line in zip(model.observables, bins.edges, strict=True):
            check_halves(model, o.name, line.tolist())
        if statistic == "likelihood" and np.any(bins.counts < 0):
            raise DataError(
                "binned likelihood: counts must not be negative, as no number of events is, got"
                f" {bins.counts.min():g}; use statistic='neyman'"
            )
        own, columns = BinnedModel.of(model, bins, statistic, flow)
        self.set_up_table(own, columns, constraints, backend)

    @property
    def source(self) -> Pdf:
        return self.model.source

    def own_moving(self, moved: Moved, floating: tuple[str, ...]) -> frozenset[str]:
        """Return those that move an edge: counts make minima there as events do, and pass no kink or step."""
        return moved(self.source, floating) if moved is moved_edges else frozenset()

    def changed_model(self, change: Replacement) -> tuple[BinnedModel, Dataset]:
        old = self.model
        bins = BinContents(old.edges, self.counts, self.variances)
        model, columns = BinnedModel.of(change(old.source), bins, old.statistic, old.flow)
        return model, build(
            {c.name: np.asarray(columns[c.name], np.float64) for c in model.table}, None, None
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of bins along each observable."""
        return tuple(len(line) - 1 for line in self.model.edges)

    @property
    def counts(self) -> Array:
        """The count of each bin, in the shape of the histogram."""
        return self.data[COUNT.name].reshape(self.shape)

    @property
    def variances(self) -> Array:
        """The variance of the count of each bin, in the shape of the histogram."""
        return self.data[(VARIANCE if self.model.weighted else COUNT).name].reshape(self.shape)

    def to_hist(self) -> Any:
        """Return the counts as a hist.Hist, whose axes have the names of the observables; with weights, also variances.

        Expected counts are those of ``mf.intervals.asimov(likelihood, values)``.
        """
        from morefit.data.io.histogram import filled_histogram  # seldom needed

        edges = {
            o.name: line for o, line in zip(self.model.source.observables, self.model.edges, strict=True)
        }
        return filled_histogram(edges, self.counts, self.variances if self.model.weighted else None)

    @property
    def extended(self) -> bool:
        return self.model.extended

    @property
    def degrees(self) -> float:
        """The number of bins that count, less one where the sum of the expected counts is that of the counts."""
        left_out = np.sum(self.variances == 0) if self.model.statistic == "neyman" else 0
        return super().degrees - int(left_out) - (not self.extended)

    @property
    def numerical(self) -> bool:
        return bool(self.model.rules) or is_numerical(self.model)

    @cached_property
    def scale(self) -> Array:
        """The number of unweighted events that a count of one in each bin is worth."""
        return self.data[SCALE.name] if self.model.weighted else np.ones(self.events)

    def read(self, data: Any) -> Dataset:
        """Return the table of another histogram in the same bins, or of a toy."""
        if isinstance(data, Dataset):
            return super().read(data)
        bins = read_bins(data, self.model.source.observables, flow=self.model.flow)
        if len(bins.edges) != len(self.model.edges) or not all(
            map(np.array_equal, bins.edges, self.model.edges)
        ):
            raise DataError("fit_many: histograms must have the bins of the likelihood, got other edges")
        if bins.weighted and not self.model.weighted:
            raise DataError(
                "fit_many: histograms must be weighted as that of the likelihood is, got variances"
            )
        known = {c.name for c in self.model.table}
        columns = {
            name: column for name, column in count_columns(bins, self.model.weighted).items() if name in known
        }
        return build({**self.data.columns, **columns}, None, None)

    def counting(self, counts: Array | Integers) -> dict[str, Array]:
        columns = super().counting(counts)
        if not self.extended:
            columns[TOTAL.name] = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
        if self.model.weighted:
            columns[VARIANCE.name] = counts / self.scale
        return columns

    def draws(self, expected: Array, places: Mapping[str, int]) -> list[RowsDraw]:
        column = places[COUNT.name]
        if self.model.weighted:
            scale, total = self.scale, -1 if self.extended else places[TOTAL.name]
            return [
                RowsDraw(
                    column=column, means=expected * scale, factors=1 / scale, squares=1 / scale**2,
                    spread=places[VARIANCE.name], total=total,
                )
            ]  # fmt: skip
        if self.extended:
            return [RowsDraw(column=column, means=expected)]
        return [
            RowsDraw(
                column=column, means=expected, events=float(round(self.entries)), total=places[TOTAL.name],
                factors=np.ones(self.events),
            )
        ]  # fmt: skip

    def resampled(self, rng: np.random.Generator) -> Mapping[str, Array]:
        if np.any(self.counts < 0):
            raise DataError("bootstrap: bins with negative counts cannot be drawn anew")
        return self.counting(rng.poisson(self.data[COUNT.name] * self.scale) / self.scale)

    def own_bad_events(self, x: Point) -> BadBins:
        """Return the bins whose counts have no probability."""
        points, _ = self.points(x)
        expected, terms = self.event_values(points[:1], self.model.expected, self.model.formula)[0]
        bad = np.flatnonzero(~np.isfinite(terms))
        return BadBins(bad, expected[bad], self.events, self.data[COUNT.name][bad], self.bin_names(bad))

    def bin_names(self, bins: Integers) -> list[str]:
        """Name bins by their edges."""
        columns = [[self.data[c.name] for c in edge_columns(o)] for o in self.model.source.observables]
        names = [o.name for o in self.model.source.observables]
        return [
            ", ".join(
                f"{n} in [{low[k]:g}, {high[k]:g}]" for n, (low, high) in zip(names, columns, strict=True)
            )
            for k in bins
        ]

    @property
    def centres(self) -> dict[str, Array]:
        """The centres of all bins along each observable."""
        columns = {o.name: [self.data[c.name] for c in edge_columns(o)] for o in self.source.observables}
        return {name: (low + high) / 2 for name, (low, high) in columns.items()}

    def events_to_check(self, columns: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return the centres of some bins, which are those of all data."""
        return some_events(self.centres, self.source)

    def is_unresolved(self, moved: Changed, values: Mapping[str, float]) -> bool:
        return super().is_unresolved(moved, values) or bool(self.unresolved_rows(values).any())

    @property
    def has_unjudged_integrals(self) -> bool:
        return bool(self.model.rules)

    def unresolved_rows(self, values: Mapping[str, Any]) -> Flags:
        integrals, wrong = integrals_over(self.model.source, self.model.edges, {}), np.zeros(1, np.bool_)
        for pdf, area in self.model.rules:
            if not (self.entries * ERROR_NEAR <= NLL_ERROR and are_near(pdf, values)):
                wrong = wrong | ~(integrals.errors_of_rows(pdf, area, values) * self.entries <= NLL_ERROR)
        return wrong

    def model_error(self, x: Point) -> float:
        values = self.values_at(x)
        source, integrals = self.model.source, integrals_over(self.model.source, self.model.edges, values)
        error = integral_error(source, values, self.centres)
        rules = (integrals.rule_error(pdf, area, values, relative=False) for pdf, area in self.model.rules)
        return max(error, *rules) if self.model.rules else error

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        bins = " x ".join(map(str, self.shape))
        return f"BinnedLikelihood({bins} bins, {self.entries:g} counts, parameters: {names})"
