"""What is summed over the bins of a histogram: a density becomes expected counts, these a likelihood or a chi-square."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from morefit.arrays import Array
from morefit.data.io.bins import BinContents
from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, add_all, apply, where
from morefit.likelihood.bin_integrals import BinIntegrals, edge_values
from morefit.likelihood.bin_rules import edge_columns
from morefit.likelihood.table import COUNT, TableColumn, TableModel
from morefit.model import Parameter, Pdf

Statistic = Literal["likelihood", "neyman", "pearson", "combined"]
STATISTICS = ("likelihood", "neyman", "pearson", "combined")
TOTAL = TableColumn("total count")  # of all bins, which a model without yields is scaled to
SCALE = TableColumn("events per weight")  # of a weighted histogram: count / variance
VARIANCE = TableColumn("variance of the count")  # of a weighted histogram
MAX_MODELS = 32  # of bins, cached in this process: making one takes longer than a fit

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
        key = (id(source), lines, statistic, bins.weighted, flow)
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
