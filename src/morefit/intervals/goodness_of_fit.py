"""Goodness of fit: how often data that the fitted model draws would be described worse than these."""

from __future__ import annotations

from concurrent.futures import Executor
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError
from morefit.intervals.fit_statistics import BinnedChiSquare, ChiSquare, Total, part_statistic
from morefit.intervals.free_fits import ToyPValue
from morefit.jobs.run import DaskClient
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import best_fit
from morefit.minimise.problem import as_likelihood
from morefit.model import Pdf
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.toys.study import toy_study
from morefit.validate import whole_number

NAME = "goodness_of_fit"
Test = Literal["chi2", "saturated", "ks", "anderson", "energy"]
TESTS = ("chi2", "saturated", "ks", "anderson", "energy")


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit(ToyPValue):
    """A statistic of data and the fitted model, larger where they differ more, and that of toys which were fitted as well.

    ``p_value`` is that of a chi-square with ``ndf`` degrees of freedom, nan where the statistic is none (``ndf`` 0).
    ``toy_p_value`` is the fraction of toys with a statistic at least as large; those whose fits failed count as such.
    """

    test: str
    statistic: float
    ndf: int
    toys: Array  # their statistics, (T,), nan where the fit failed; empty if none were drawn

    @property
    def p_value(self) -> float:
        """The probability of a chi-square at least this large; nan if the statistic is none."""
        from scipy.special import chdtrc  # type: ignore[import-untyped]  # slow

        return float(chdtrc(self.ndf, self.statistic)) if self.ndf > 0 else nan

    @property
    def observed(self) -> float:
        return self.statistic

    @property
    def tie(self) -> float:
        # counts may be equal, but fits end at different places
        return super().tie if self.test == "saturated" else 0.0

    def __str__(self) -> str:
        line = f"goodness of fit, {self.test}: {self.statistic:.6g}"
        if self.ndf > 0:
            line += f" with {self.ndf} degrees of freedom, p-value {self.p_value:.4g}"
        return "\n".join([line, *self.toy_lines()])


@in_sentences
def goodness_of_fit(
    likelihood: Term | Pdf,
    test: Test = "chi2",
    *,
    data: Any = None,
    best: FitResult | None = None,
    bins: int = 50,
    toys: int | None = None,
    seed: int = 0,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> GoodnessOfFit:
    """Compare data with the fitted model by one of several tests, and with toys that are drawn there and fitted alike.

    Parameters
    ----------
    likelihood : or a model, with its ``data``; of a sum of likelihoods, the statistics of the parts add up.
    test : "chi2": Pearson's chi-square of ``bins`` of one observable, or of those of a binned likelihood, neighbours
        being merged until 5 events are expected; "saturated": twice the nll of bins or points, relative to a model that
        describes them exactly; "ks" and "anderson": Kolmogorov-Smirnov and Anderson-Darling, for events of one
        observable; "energy": point-to-point dissimilarity, for events of any number of observables.
    best : the fit, if it is known already.
    toys, seed, executor, save : as for ``toy_study``; without ``toys`` only chi-squares have a p-value.

    Example: ``mf.intervals.goodness_of_fit(nll).p_value``
    """
    if test not in TESTS:
        raise OptionError(f"{NAME}: test must be one of {', '.join(map(repr, TESTS))}, got {test!r}")
    bins = whole_number(f"{NAME}: bins", bins, 1)
    term = as_likelihood(NAME, likelihood, data, backend=backend)
    if term.weighted:
        raise DataError(
            f"{NAME}: toys have no weights, so the data must not have any; see the pulls of mf.plot, which have the errors"
            " of weighted events"
        )
    best = best_fit(NAME, term, best)
    fixed = [p.name for p in term.parameters if p.name not in best.floating]
    term = term.fixing(fixed) if fixed else term
    total, statistic, ndf = None, 2 * best.nll, 0
    if test == "saturated":
        ndf = saturated_terms(term) - len(best.floating)
    else:
        total = Total(tuple(part_statistic(test, p, best.values, bins, seed) for p in term.parts))
        statistic = total([part.data for part in term.parts], best.values)
        ndf = degrees_of(total, term, best)
    drawn = np.empty(0)
    if toys is not None:
        study = toy_study(
            term, toys=toys, truth=best.values, seed=seed, statistic=total, backend=backend, executor=executor, save=save,
            progress=progress,
        )  # fmt: skip
        values = 2 * study.nll if total is None else study.statistics["statistic"]
        drawn = np.where(study.valid, values, nan)
    return GoodnessOfFit(test, float(statistic), max(ndf, 0), drawn)


def saturated_terms(term: Term) -> int:
    """Return the number of terms in the chi-square that twice the value of a likelihood is, if it is one."""
    if not isfinite(term.ndata):
        raise DataError(f"{NAME}: 'saturated' takes bins or points, got events; use another test")
    if not isfinite(term.degrees):
        raise DataError(
            f"{NAME}: 'saturated' takes values that are relative to a perfect description, got a constraint or a method"
            " for which they are not; use 'chi2'"
        )
    return int(term.degrees)


def degrees_of(total: Total, term: Term, best: FitResult) -> int:
    """Return the degrees of freedom of a chi-square of bins; 0 for other statistics."""
    count = 0
    for statistic, part in zip(total.parts, term.parts, strict=True):
        if isinstance(statistic, BinnedChiSquare):
            count += len(statistic.starts)
        elif isinstance(statistic, ChiSquare):
            count += len(statistic.edges) - 1
        else:
            return 0
        count -= not part.extended
    return round(count - fitted_parameters(term, best))


def fitted_parameters(term: Term, best: FitResult) -> float:
    """Return how many parameters the data themselves determine: all, less the shares that constraints have in them."""
    if not any(part.constraints for part in term.parts):
        return len(best.floating)
    data = term.with_parts([part.replaced(constraints=()) for part in term.parts])
    names = [p.name for p in data.parameters]
    information = data.hessian({p.name: best.values[p.name] for p in data.all_parameters})
    count = float(np.trace(information @ best.covariance_of(*names)))
    return min(max(count, 0.0), len(names)) if isfinite(count) else len(names)
