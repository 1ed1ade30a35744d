"""The likelihood of a model for counts in bins: a bin is an event whose columns are its edges and its count."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset, build
from morefit.data.io.bins import BinContents, read_bins
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError
from morefit.expr import ONE, ZERO, Expr, Op, add_all, apply, where
from morefit.kernel.rows_layout import RowsDraw
from morefit.likelihood.accuracy import integral_error, is_numerical, moved_edges
from morefit.likelihood.base import Point
from morefit.likelihood.bin_integrals import BinIntegrals, edge_columns, edge_values
from morefit.likelihood.evaluation import BadBins
from morefit.likelihood.places import moved_places
from morefit.likelihood.signs import negative_place, negative_rows
from morefit.likelihood.table import COUNT, CountsLikelihood, TableColumn, TableModel
from morefit.model import Parameter, Pdf
from morefit.model.counts import check_halves
from morefit.model.parts import check_known, check_model
from morefit.model.replace import Replacement
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences

Statistic = Literal["likelihood", "neyman", "pearson", "combined"]
STATISTICS = ("likelihood", "neyman", "pearson", "combined")
MAX_AXES = 3
TOTAL = TableColumn("total count")  # of all bins, which a model without yields is scaled to
SCALE = TableColumn("events per weight")  # of a weighted histogram: count / variance
VARIANCE = TableColumn("variance of the count")  # of a weighted histogram
MAX_MODELS = 32  # of bins, cached in this process: making one takes longer than a fit


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

    def moved_edges(self, floating: tuple[str, ...]) -> frozenset[str]:
        """Return the floating parameters that move a point beyond which the density is zero: counts make minima there as events do."""
        return moved_edges(self.source, floating)

    def moved_places(self) -> tuple[frozenset[str], frozenset[str]]:
        return moved_places(self.source)

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

    def negative_place(self, values: Mapping[str, float]) -> str:
        return negative_place(self.model.source, values)

    def negative_rows(self, values: Mapping[str, Any]) -> Flags:
        return negative_rows(self.model.source, values)

    def model_error(self, x: Point) -> float:
        values = self.values_at(x)
        source, integrals = self.model.source, integrals_over(self.model.source, self.model.edges, values)
        columns = {o.name: [self.data[c.name] for c in edge_columns(o)] for o in source.observables}
        centres = {name: (low + high) / 2 for name, (low, high) in columns.items()}
        error = integral_error(source, values, centres)
        rules = (integrals.rule_error(pdf, area, values, relative=False) for pdf, area in self.model.rules)
        return max(error, *rules) if self.model.rules else error

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        bins = " x ".join(map(str, self.shape))
        return f"BinnedLikelihood({bins} bins, {self.entries:g} counts, parameters: {names})"


_models: OrderedDict[tuple[object, ...], tuple[BinnedModel, dict[str, Array]]] = OrderedDict()


@dataclass(frozen=True, eq=False, kw_only=True)
class BinnedModel(TableModel):
    """What is summed over the bins of a histogram, for a density of events."""

    source: Pdf
    edges: tuple[Array, ...]
    rules: tuple[tuple[Pdf, Expr], ...]  # densities, and their integrals by a rule
    statistic: Statistic
    weighted: bool
    flow: bool
    counted: ClassVar[str] = COUNT.name

    @classmethod
    def of(
        cls, source: Pdf, bins: BinContents, statistic: Statistic, flow: bool
    ) -> tuple[BinnedModel, dict[str, Array]]:
        """Return the model of some bins, and the columns of their table; one of the same bins is not made again."""
        lines = tuple(line.tobytes() for line in bins.edges)
        # the model knows its source, so the id stays its own
        key = (
            id(source),
            lines,
            statistic,
            bins.weighted,
            flow,
        )
        if key not in _models:
            _models[key] = cls.make(source, bins, statistic, flow)
            if len(_models) > MAX_MODELS:
                _models.popitem(last=False)
        _models.move_to_end(key)
        model, fixed = _models[key]
        return model, fixed | count_columns(bins, bins.weighted)

    @classmethod
    def make(
        cls, source: Pdf, bins: BinContents, statistic: Statistic, flow: bool
    ) -> tuple[BinnedModel, dict[str, Array]]:
        """Make the model of some bins, and the columns that do not depend on counts."""
        integrals = integrals_over(source, bins.edges, {p.name: p.start for p in source.parameters})
        expected, weighted = expected_counts(source, integrals), bins.weighted
        scale, variance = (SCALE.expr, VARIANCE.expr) if weighted else (ONE, COUNT.expr)
        poisson = weighted or source.expected_events() is not None
        fixed = edge_values(source.observables, integrals.edges) | integrals.columns
        counted = count_columns(bins, bins.weighted)
        unused = {TOTAL.name} if source.expected_events() is not None else set[str]()
        used = [
            *(c for o in source.observables for c in edge_columns(o)),
            *(c for c in (COUNT, TOTAL, SCALE, VARIANCE) if c.name in counted and c.name not in unused),
            *map(TableColumn, integrals.columns),
        ]
        model = cls(
            source=source,
            formula=summed(statistic, expected, scale, variance, poisson=poisson),
            table=tuple(used),
            expected=expected,
            edges=bins.edges,
            rules=tuple(integrals.rules),
            statistic=statistic,
            weighted=weighted,
            flow=flow,
        )
        return model, fixed

    def components(self) -> tuple[Pdf, ...]:
        return self.source.components()

    @cached_property
    def extended(self) -> bool:
        """Whether the number of all counts is predicted."""
        return self.source.expected_events() is not None

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.source.parameters


def integrals_over(source: Pdf, edges: Sequence[Array], values: Mapping[str, float]) -> BinIntegrals:
    """Return what makes integrals over bins."""
    by_name = {o.name: line for o, line in zip(source.observables, edges, strict=True)}
    return BinIntegrals(source.observables, by_name, values)


def count_columns(bins: BinContents, weighted: bool) -> dict[str, Array]:
    """Return the columns of a table that depend on the counts; an empty bin is worth as many events as the mean."""
    counts, variances = bins.counts.ravel(), bins.variances.ravel()
    columns = {COUNT.name: counts, TOTAL.name: np.full(len(counts), counts.sum())}
    if weighted:
        filled = (counts > 0) & (variances > 0)
        mean = np.abs(counts).sum() / variances.sum() or 1.0
        columns[SCALE.name] = np.where(filled, counts / np.where(filled, variances, 1.0), mean)
        columns[VARIANCE.name] = variances
    return columns


def expected_counts(model: Pdf, integrals: BinIntegrals) -> Expr:
    """Return the expected count of a bin: of a model without yields, scaled to all counts."""
    total = model.expected_events()
    if total is None:
        return TOTAL.expr * integrals.probability(model) / integrals.probability(model, whole=True)
    shares = [(total * share) * integrals.probability(part) for share, part in model.shares()]
    return add_all(*shares) if len(shares) > 1 else shares[0]


def summed(statistic: Statistic, mu: Expr, scale: Expr, variance: Expr, *, poisson: bool) -> Expr:
    """Return the logarithm of the likelihood of a bin; not a number where the expected count is negative."""
    n, possible = COUNT.expr, mu >= 0
    if statistic == "likelihood":
        ratio = apply(Op.LOG, mu / where(n > 0, n, ONE))
        value = where(n > 0, n * ratio, where(possible, ZERO, ratio))
        return scale * (value - (mu - n) if poisson else value)
    known = variance > 0
    away, error = (n - mu) ** 2, where(known, variance, ONE)
    chi2 = {
        "neyman": where(known, away / error, ZERO),
        "pearson": scale * where(abs(n) > 0, away / mu, mu),
        "combined": where(known, away * (1 / error + 2 * scale / mu) / 3, 2 * scale * mu),
    }[statistic]
    return where(possible, -0.5 * chi2, apply(Op.LOG, mu))
