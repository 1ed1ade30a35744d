"""Template fits: counts as a sum of simulated histograms with yields, and the errors of finite simulation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any, ClassVar, Literal

import numpy as np

from morefit.arrays import Array
from morefit.data.io.bins import as_numbers
from morefit.data.io.histogram import UNKNOWN_VARIANCES, check_histogram, check_same_bins, is_histogram
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import ONE, ZERO, Expr, Op, apply, where
from morefit.kernel.rows_layout import RowsDraw
from morefit.likelihood.auxiliary import AuxiliaryCount
from morefit.likelihood.base import Point
from morefit.likelihood.constraint import as_constraints
from morefit.likelihood.expected_counts import ExpectedCounts
from morefit.likelihood.histfactory import HistFactoryLikelihood, HistFactoryModel
from morefit.likelihood.table import COUNT, CountsLikelihood, TableColumn, TableModel
from morefit.model import Parameter
from morefit.model.arguments import ANY, check_operand, listed
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences

Method = Literal[
    "barlow-beeston", "barlow-beeston-lite", "dembinski-abdelmotteleb", "arguelles-schneider-yuan", "exact"
]
FULL = "barlow-beeston"
CHANNEL = "counts"  # the name of all bins
MAX_MODELS = 32  # cached in this process: making one takes longer than a fit


class TemplateLikelihood(CountsLikelihood):
    """Minus the logarithm of the likelihood of counts for a sum of simulated histograms, with the errors of these.

    ``histogram`` are counts, an array or a histogram of the UHI protocol. ``templates`` are histograms by name, of any
    size: counts, (sums of weights, sums of squared weights), or histograms of the UHI protocol. ``yields``, by default
    parameters with the names of the templates, are the expected numbers of events of each in all bins. ``method``:

    - "barlow-beeston": a parameter for each bin of each template, with the simulated count as its measurement;
    - "barlow-beeston-lite": one Gaussian factor for each bin, by a formula (Conway, arXiv:1103.0354);
    - "dembinski-abdelmotteleb": one factor with the likelihood of a count for each bin, by a formula (arXiv:2206.12346);
    - "arguelles-schneider-yuan": integrated over a prior instead (arXiv:1901.04645), so that the value is no chi-square;
    - "exact": templates without errors.

    Bins that no template has are left out if they have no count, and refused otherwise. Toys draw counts, and simulated ones.
    """

    model: TemplateModel

    def __new__(cls, *arguments: Any, method: Method = "dembinski-abdelmotteleb", **options: Any) -> Any:
        """Return the likelihood of HistFactory if every bin of every template has a parameter."""
        return full_likelihood(*arguments, **options) if method == FULL else object.__new__(cls)

    @in_sentences
    def __init__(
        self,
        histogram: Any,
        templates: Mapping[str, Any],
        yields: Sequence[Any] | None = None,
        *,
        method: Method = "dembinski-abdelmotteleb",
        constraints: Sequence[Any] | Any = (),
        backend: str | Backend = "auto",
    ) -> None:
        if method not in METHODS:
            choices = ", ".join(map(repr, (FULL, *METHODS)))
            raise OptionError(f"template likelihood: method must be one of {choices}, got {method!r}")
        counts, contents = read_templates(histogram, templates, exact=method == "exact")
        each = yields_of(contents, counts, yields)
        columns = {COUNT.name: counts}
        for name, (values, squares) in contents.items():
            total = values.sum()
            columns |= {f"template {name}": values / total, f"variance of {name}": squares / total**2}
        self.set_up_table(
            TemplateModel.of(method, tuple(contents), tuple(each)), columns, constraints, backend
        )

    @property
    def extended(self) -> bool:
        return True

    @property
    def channels(self) -> tuple[str, ...]:
        """The name of all bins, for plots."""
        return (CHANNEL,)

    def channel(self, name: str, values: Point) -> tuple[Array, dict[str, Array]]:
        """Return the counts, and what each template expects, by name."""
        if name != CHANNEL:
            raise DataError(f"channel '{name}': not in the model, which has '{CHANNEL}'")
        full, _ = self.points(values)
        parts = self.replaced(constraints=()).event_values(full, *self.model.parts)[0]
        return self.counts, dict(zip(self.model.names, parts, strict=True))

    @property
    def degrees(self) -> float:
        return float("inf") if self.model.method == "arguelles-schneider-yuan" else super().degrees

    def draws(self, expected: Array, places: Mapping[str, int]) -> list[RowsDraw]:
        """Return how counts are drawn, and templates from as many events of the same weights as they were made of."""
        draws = super().draws(expected, places)
        for name in self.model.names if self.model.method != "exact" else ():
            column, spread = f"template {name}", f"variance of {name}"
            values, squares = self.data[column], self.data[spread]
            weight = np.divide(squares, values, out=np.zeros_like(values), where=values > 0)
            mean = np.divide(values, weight, out=np.zeros_like(values), where=weight > 0)
            draws.append(
                RowsDraw(
                    column=places[column], means=mean, factors=weight, squares=weight**2,
                    offsets=np.where(weight > 0, 0.0, values), spread=places[spread], normalised=True,
                )
            )  # fmt: skip
        return draws

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        return f"TemplateLikelihood({self.events} bins, {self.entries:g} counts, parameters: {names})"


@dataclass(frozen=True, eq=False, kw_only=True)
class TemplateModel(TableModel):
    """What is summed over the bins of a template fit."""

    names: tuple[str, ...]
    parts: tuple[Expr, ...]  # what each template expects in a bin
    method: str
    counted: ClassVar[str] = COUNT.name

    @classmethod
    @lru_cache(maxsize=MAX_MODELS)
    def of(cls, method: str, names: tuple[str, ...], yields: tuple[Expr, ...]) -> TemplateModel:
        """Return the model of templates with these names and yields, which serves all of their contents."""
        pairs = [(TableColumn(f"template {n}"), TableColumn(f"variance of {n}")) for n in names]
        parts = [y * t.expr for y, (t, _) in zip(yields, pairs, strict=True)]
        mu = reduce(add, parts)
        variance = reduce(add, [y**2 * v.expr for y, (_, v) in zip(yields, pairs, strict=True)])
        return cls(
            formula=where(mu > 0, METHODS[method](COUNT.expr, mu, variance), apply(Op.LOG, mu)),
            table=(COUNT, *(column for pair in pairs for column in pair)),
            expected=mu,
            names=names,
            parts=tuple(parts),
            method=method,
        )


# ------------------------------------------------------------------------------------ the likelihood of a bin


def poisson(n: Expr, mu: Expr) -> Expr:
    """Return the logarithm of the probability of a count, relative to expecting it."""
    return n - mu + log_ratio(n, mu)


def log_ratio(n: Expr, mu: Expr) -> Expr:
    """Return n log(mu / n), 0 where n is."""
    return where(n > 0, n * apply(Op.LOG, mu / where(n > 0, n, ONE)), ZERO)


def exact(n: Expr, mu: Expr, variance: Expr) -> Expr:
    return poisson(n, mu)


def barlow_beeston_lite(n: Expr, mu: Expr, variance: Expr) -> Expr:
    known = variance > 0
    spread = where(known, variance, ONE) / mu**2
    half = 0.5 - 0.5 * mu * spread
    factor = half + apply(Op.SQRT, half**2 + n * spread)
    shifted = poisson(n, mu * where(factor > 0, factor, ONE))
    nothing = -0.5 / spread  # a factor of zero: nothing is expected, and nothing is counted
    return where(
        known, where(factor > 0, shifted - 0.5 * (factor - 1) ** 2 / spread, nothing), poisson(n, mu)
    )


def dembinski_abdelmotteleb(n: Expr, mu: Expr, variance: Expr) -> Expr:
    known = variance > 0
    k = mu**2 / where(known, variance, ONE)
    # both Poisson terms with their common factor (n + k) / (mu + k), without what cancels: where yields vanish, that is all
    spread = (n + k) * apply(Op.LOG1P, (mu - n) / (n + k))
    return where(known, log_ratio(n, mu) - spread, poisson(n, mu))


def arguelles_schneider_yuan(n: Expr, mu: Expr, variance: Expr) -> Expr:
    known = variance > 0
    safe = where(known, variance, ONE)
    alpha, beta = mu**2 / safe + 1, mu / safe
    gamma = Op.LGAMMA(n + alpha) - Op.LGAMMA(n + 1) - Op.LGAMMA(alpha)
    spread = gamma - alpha * apply(Op.LOG1P, 1 / beta) - n * apply(Op.LOG1P, beta)
    return where(known, spread, n * apply(Op.LOG, mu) - mu - Op.LGAMMA(n + 1))


METHODS = {
    "barlow-beeston-lite": barlow_beeston_lite,
    "dembinski-abdelmotteleb": dembinski_abdelmotteleb,
    "arguelles-schneider-yuan": arguelles_schneider_yuan,
    "exact": exact,
}


# ------------------------------------------------------------------------------------ arguments


def read_templates(
    histogram: Any, templates: Any, *, exact: bool = False
) -> tuple[Array, dict[str, tuple[Array, Array]]]:
    """Return counts, and contents and variances of templates, in the bins that some template has.

    The variances of ``exact`` templates play no role.
    """
    what = "template likelihood"
    if not isinstance(templates, Mapping) or not templates:
        raise DataError(f"{what}: templates must be histograms by name, got {templates!r:.60}")
    counts, variances = contents_of(f"{what}: counts", histogram)
    if np.any(counts < 0) or not np.array_equal(counts, variances):
        raise DataError(f"{what}: counts must be numbers of events, without weights")
    pairs = {}
    for name, template in templates.items():
        where_from = f"{what}: template '{name}'"
        values, squares = contents_of(where_from, template, whole=not exact)
        if values.shape != counts.shape:
            raise DataError(
                f"{where_from} must have {counts.shape} bins, as the counts have, got {values.shape}"
            )
        if np.any(values < 0) or np.any(squares < 0) or not values.any():
            raise DataError(f"{where_from} must have contents that are not negative, and not all zero")
        check_same_bins(where_from, template, histogram)
        pairs[str(name)] = (values.ravel(), squares.ravel())
    counts, used = counts.ravel(), np.any([values > 0 for values, _ in pairs.values()], axis=0)
    if np.any(lost := counts[~used]):
        raise DataError(
            f"{what}: {np.count_nonzero(lost)} bins have counts, but no template has contents there; merge bins"
        )
    return counts[used], {n: (values[used], squares[used]) for n, (values, squares) in pairs.items()}


def contents_of(what: str, source: Any, *, whole: bool = True) -> tuple[Array, Array]:
    """Return contents and variances of a histogram, of counts, or of a pair of arrays.

    Contents without variances must be ``whole`` numbers: the variance of one that is scaled cannot be known.
    """
    pair = isinstance(source, tuple) and len(source) == 2 and all(np.ndim(one) for one in source)
    if is_histogram(source):
        checked = check_histogram(source, len(source.axes))
        pair, source = True, (checked.values(), checked.variances())
        if source[1] is None:
            warnings.warn(UNKNOWN_VARIANCES, UserWarning, stacklevel=2)
    contents, variances = source if pair else (source, None)
    values = as_numbers(what, contents)
    squares = values if variances is None else as_numbers(what, variances)
    if values.shape != squares.shape:
        raise DataError(
            f"{what}: contents and squared weights must have one shape, got {values.shape} and {squares.shape}"
        )
    if not (np.isfinite(values).all() and np.isfinite(squares).all()):
        raise DataError(f"{what}: contents must be finite")
    if whole and variances is None and np.any(scaled := values != np.floor(values)):
        raise DataError(
            f"{what} must be whole numbers of events, got {values[scaled][0]:g}; pass (contents, variances), the sums of"
            " weights and of squared weights"
        )
    return values, squares


def yields_of(templates: Mapping[str, Any], counts: Array, yields: Any) -> list[Expr]:
    """Return the expected numbers of events of all templates."""
    if yields is None:
        start = max(float(counts.sum()), 1.0) / len(templates)
        return [Parameter(name, start, 0.0).expr for name in templates]
    each = [
        check_operand("template likelihood: yields", y, ANY)
        for y in listed("template likelihood: yields", yields)
    ]
    if len(each) != len(templates):
        raise ModelError(
            f"template likelihood: needs a yield for each of {len(templates)} templates, got {len(each)}"
        )
    return each


def full_likelihood(
    histogram: Any,
    templates: Any,
    yields: Any = None,
    *,
    constraints: Any = (),
    backend: str | Backend = "cpu",
) -> HistFactoryLikelihood:
    """Return the likelihood in which every bin of every template is a measurement of its own parameter."""
    counts, contents = read_templates(histogram, templates)
    totals = [y.value for y in yields_of(contents, counts, yields) if y.op is Op.SCALAR]
    own = [p for p in totals if isinstance(p, Parameter)]
    if len(own) < len(contents):
        raise ModelError(
            f"template likelihood: yields must be parameters for method '{FULL}', got expressions"
        )
    values, squares = (np.array([pair[k] for pair in contents.values()]) for k in (0, 1))
    template, bins = np.nonzero(squares > 0)
    seen = values[template, bins] ** 2 / squares[template, bins]
    names = list(contents)
    factors = [
        Parameter(f"{names[t]}[{b}]", 1.0, 1e-10, 1e3)
        for t, b in zip(template.tolist(), bins.tolist(), strict=True)
    ]
    count, size = len(own), len(names)
    model = HistFactoryModel(
        formula=ZERO,
        table=(COUNT,),
        expected=ZERO,
        all_parameters=(*own, *factors),
        channels={CHANNEL: tuple(names)},
        poi=own[0].name,
        counts=ExpectedCounts(
            parameters=count + len(factors),
            channels=(slice(0, len(counts)),),
            nominal=(values / values.sum(axis=1, keepdims=True)).T,
            factors=np.arange(count),
            factor_samples=np.eye(size, dtype=np.bool_),
            norms=np.empty(0, np.int64),
            norm_logs=np.empty((2, 0, size)),
            shapes=np.empty(0, np.int64),
            shape_shifts=np.empty((2, 0, len(counts), size)),
            group_parameters=count + np.arange(len(factors)),
            group_bins=bins,
            group_samples=np.eye(size, dtype=np.bool_)[template],
            smooth_norms=True,
            smooth_shapes=True,
        ),
    )
    measured = [AuxiliaryCount(p.symbol, (n,), n) for p, n in zip(factors, seen.tolist(), strict=True)]
    return HistFactoryLikelihood.of(model, counts, (*measured, *as_constraints(constraints)), backend)
