"""Likelihood-ratio tests: of values of parameters by Wilks' theorem or toys, and of one model against another by toys."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError
from morefit.intervals.data_fits import minimised, start_test, without_effect
from morefit.intervals.free_fits import ToyPValue
from morefit.intervals.scan import Hypotheses, draw_ratios
from morefit.jobs.run import DaskClient
from morefit.likelihood import BinnedLikelihood, Likelihood, Simultaneous, TemplateLikelihood, Term
from morefit.likelihood.table import TableLikelihood
from morefit.minimise import FitResult
from morefit.minimise.conditional import check_floating, check_points
from morefit.model import Pdf
from morefit.records.fields import floats
from morefit.sampling.generate import check_seed
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.toys.study import toy_study
from morefit.validate import numbers_by_name, whole_number

NAME = "likelihood_ratio"


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class LikelihoodRatio(ToyPValue):
    """t = 2 (nll of the null hypothesis - nll of the alternative) of data, and of toys of the null hypothesis.

    ``p_value`` is that of a chi-square with ``ndf`` degrees of freedom, one for each fixed parameter; nan (``ndf`` 0)
    where models are not nested, or where fixed values leave other parameters without effect. It does not hold for values
    at limits. ``toy_p_value`` is the fraction of toys with
    a t at least as large; those whose fits failed count as such.
    """

    t: float
    ndf: int
    null: Mapping[str, float]  # all parameters where the null hypothesis fits best,
    alternative: Mapping[str, float]  # and where the alternative does
    toys: Array  # their t, (T,), nan where a fit failed; empty if none were drawn

    converted = {"null": floats, "alternative": floats}

    @property
    def p_value(self) -> float:
        """The probability of so large a t for many events, by Wilks' theorem; nan if that does not hold."""
        from scipy.special import chdtrc  # type: ignore[import-untyped]  # slow

        return float(chdtrc(self.ndf, self.t)) if self.ndf else nan

    @property
    def observed(self) -> float:
        return self.t

    def __str__(self) -> str:
        line = f"likelihood ratio: t {self.t:.6g}"
        if self.ndf:
            line += f" with {self.ndf} degrees of freedom, p-value {self.p_value:.4g}"
        return "\n".join([line, *self.toy_lines()])


@in_sentences
def likelihood_ratio(
    likelihood: Term | Pdf | Simultaneous,
    fixed: Any = None,
    *,
    data: Any = None,
    alternative: Term | None = None,
    toys: int | None = None,
    seed: int = 0,
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    progress: bool = True,
) -> LikelihoodRatio:
    """Test values of some parameters, fixed={"mu": 0.0}, or a likelihood against an alternative one of the same data.

    The null hypothesis is the likelihood with these parameters fixed, or the likelihood against its ``alternative``.
    A model needs its ``data``. ``toys`` are drawn where the null hypothesis fits the data best, and fitted with both.

    Example: ``mf.intervals.likelihood_ratio(nll, {"mu": 5.8}).p_value``
    """
    if (fixed is None) == (alternative is None):
        raise OptionError(
            f"{NAME}: takes values of parameters as fixed, or an alternative likelihood, and not both"
        )
    count = None if toys is None else whole_number(f"{NAME}: toys", toys, 1)
    seed = check_seed(seed)
    likelihood, best = start_test(NAME, likelihood, data, best)
    where: dict[str, Any] = {"seed": seed, "backend": backend, "executor": executor, "progress": progress}
    if alternative is not None:
        return against(likelihood, best, alternative, count, where)
    values = numbers_by_name(f"{NAME}: fixed", fixed)
    if not values:
        raise OptionError(f"{NAME}: fixed must be numbers by name, as in {{'mu': 1.0}}, got {fixed!r}")
    check_floating(NAME, best, *values)
    for name, value in values.items():
        check_points(NAME, best, name, np.array([value]))
    name, *others = values
    tested = replace(best, values={**best.values, **values})
    (idle,) = without_effect(likelihood, tested, name, np.array([values[name]]))
    also = tuple(dict.fromkeys([*others, *(n for n in idle if n in best.floating)]))
    point = np.array([[tested.values[n] for n in (name, *also)]])
    full, nll = minimised(NAME, likelihood, best, (name, *also), point)
    null = dict(zip((p.name for p in likelihood.all_parameters), full[0].tolist(), strict=True))
    t, drawn = max(2 * (float(nll[0]) - best.nll), 0.0), np.empty(0)
    if count is not None:
        start = dict(best.values) if idle else null
        hypotheses = Hypotheses(name, np.array([values[name]]), (null,), (start,), (also,))
        ratios = draw_ratios(
            NAME, likelihood, hypotheses, toys=count, t_data=np.array([t]), save=None, **where
        )
        drawn = ratios.t.ravel().astype(np.float64)
    return LikelihoodRatio(t, 0 if idle else len(values), null, best.values, drawn)


def against(
    likelihood: Term, null: FitResult, other: Term, toys: int | None, where: dict[str, Any]
) -> LikelihoodRatio:
    """Test a likelihood against another one of the same data, which need not contain it."""
    other, alternative = start_test(NAME, other, None, None)
    pairs = list(zip(likelihood.parts, other.parts, strict=False))
    if (
        likelihood.entries != other.entries
        or len(likelihood.parts) != len(other.parts)
        or not all(same_data(one, another) for one, another in pairs)
    ):
        raise DataError(
            f"{NAME}: the alternative must have the same data, {likelihood.entries:g} entries, got {other.entries:g},"
            " or other events or bins; make both of one dataset or histogram"
        )
    if any(one.extended != another.extended for one, another in pairs):
        raise DataError(
            f"{NAME}: both likelihoods must have yields, or neither, as ratios of others mean nothing"
        )
    if any(statistic_of(one) != statistic_of(another) for one, another in pairs):
        raise DataError(
            f"{NAME}: both likelihoods must have the same statistic, as ratios of others mean nothing, got"
            f" {', '.join(sorted({repr(statistic_of(part)) for part in (*likelihood.parts, *other.parts)}))}"
        )
    drawn = np.empty(0)
    if toys is not None:
        studies = [
            toy_study(likelihood, toys=toys, truth=null.values, fit_model=fitted, start=start, **where)
            for fitted, start in ((None, None), (other, alternative.values))
        ]
        t = 2 * (studies[0].nll - studies[1].nll)
        drawn = np.where(studies[0].valid & studies[1].valid, t, nan)
    return LikelihoodRatio(2 * (null.nll - alternative.nll), 0, null.values, alternative.values, drawn)


def same_data(one: Likelihood, other: Likelihood) -> bool:
    """Return whether two parts are about the same events, counts or points, as far as these are in memory."""
    if not (one.data.in_memory and other.data.in_memory):
        return True
    columns = [measured_columns(part) for part in (one, other)]
    return columns[0].keys() == columns[1].keys() and all(
        np.array_equal(column, columns[1][name]) for name, column in columns[0].items()
    )


def statistic_of(part: Likelihood) -> str:
    """Return what is summed over bins: a likelihood, one of the chi-squares, or the formula of templates."""
    if isinstance(part, BinnedLikelihood):
        return part.model.statistic
    return part.model.method if isinstance(part, TemplateLikelihood) else "likelihood"


def measured_columns(part: Likelihood) -> dict[str, Array]:
    """Return what was measured: the observables of events, or counts with the edges of bins, or y of points."""
    if not isinstance(part, TableLikelihood):
        return {o.name: part.data[o.name] for o in part.model.observables}
    edges = part.model.edges if isinstance(part, BinnedLikelihood) else ()
    counted = part.model.counted
    return {counted: part.data[counted], **{f"edges {k}": line for k, line in enumerate(edges)}}
