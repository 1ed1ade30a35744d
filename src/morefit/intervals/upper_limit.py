"""Upper limits by CLs and CLs+b, observed and expected, from formulas for many events or from toys."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.errors import FitError, OptionError
from morefit.intervals.data_fits import fit_data, start_test
from morefit.intervals.limit_methods import (
    NAME,
    Asymptotic,
    Options,
    Statistic,
    UpperLimit,
    both_hypotheses,
    from_toys,
)
from morefit.intervals.scan import draw_ratios
from morefit.jobs.checkpoint import locks_file
from morefit.jobs.run import DaskClient
from morefit.likelihood import Simultaneous, Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import check_floating, check_points
from morefit.model import Parameter, Pdf
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.validate import check_level, name_of, number_list, whole_number

Method = Literal["asymptotic", "toys"]
TOYS = 5000  # at each value, unless the user says how many


@locks_file(NAME)
@in_sentences
def upper_limit(
    likelihood: Term | Pdf | Simultaneous,
    parameter: str | Parameter,
    points: ArrayLike | None = None,
    *,
    data: Any = None,
    level: float = 0.95,
    statistic: Statistic = "q_tilde",
    method: Method | None = None,
    cls: bool = True,
    toys: int | None = None,
    seed: int | None = None,
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> UpperLimit:
    """Return the upper limit of a parameter that is 0 without a signal, observed and expected.

    Parameters
    ----------
    likelihood : or a model, with its ``data``.
    points : values to test, in addition to 0; by default as many as are needed, and with toys 12 around the limits.
    statistic : "q_tilde": best fits below 0 count as 0; "q": they do not, so that the parameter must be allowed
        below 0. Both are 0 where the best fit is above the tested value (arXiv:1007.1727).
    method : "asymptotic": formulas for many events, and Asimov data of the background; "toys": drawn at each value
        and for the background, with the other parameters where the data have their minimum. By default "toys" if
        their number is given.
    toys : how many are drawn at each value, 5000 by default.
    level : the confidence level.
    cls : False for the limit by CLs+b, which may exclude what the data are not sensitive to.
    best : the fit of the data, if it is known already; what is fixed in it, such as the mass of the signal, stays fixed.
    executor, save : as for ``feldman_cousins``.

    Example: ``mf.intervals.upper_limit(nll, n_signal).observed``
    """
    level, name = check_level(NAME, level), name_of(parameter)
    if statistic not in ("q_tilde", "q"):
        raise OptionError(f"{NAME}: statistic must be 'q_tilde' or 'q', got {statistic!r}")
    method = choose_method(method, toys, {"seed": seed, "executor": executor, "save": save})
    least = 0.0 if statistic == "q_tilde" else None
    likelihood, best = start_test(NAME, likelihood, data, best, name, least=least)
    check_floating(NAME, best, name)
    check_limits(best, name, statistic)
    wanted = None if points is None else check_tested(best, name, points)
    options = Options(level, statistic, cls)
    if method == "asymptotic":
        return Asymptotic(likelihood, best, name, options).run(wanted)
    count = whole_number(f"{NAME}: toys", TOYS if toys is None else toys, 1)
    tested = (Asymptotic(likelihood, best, name, options).around() if wanted is None else wanted)[1:]
    fits = fit_data(NAME, likelihood, best, name, np.append(0.0, tested), progress=False)
    below_zero = best.limits[name][0] < 0
    ratios = draw_ratios(
        NAME, likelihood, both_hypotheses(fits, name, tested, 0.0 if statistic == "q_tilde" and below_zero else None),
        toys=count, seed=seed, t_data=fits.t, backend=backend, executor=executor, save=save, progress=progress,
    )  # fmt: skip
    return from_toys(ratios, fits, tested, name, options)


def choose_method(method: Method | None, toys: int | None, others: Mapping[str, object]) -> Method:
    """Return how limits are computed; refuse options of toys where none are drawn."""
    if method not in (None, "asymptotic", "toys"):
        raise OptionError(f"{NAME}: method must be 'asymptotic' or 'toys', got {method!r}")
    if method == "toys" or (method is None and toys is not None):
        return "toys"
    for name, option in {"toys": toys, **others}.items():
        if option is not None:
            raise OptionError(
                f"{NAME}: {name} is an option of toys, which are not drawn here; use method='toys'"
            )
    return "asymptotic"


def check_limits(best: FitResult, name: str, statistic: Statistic) -> None:
    """Refuse a parameter that cannot have the values that are tested."""
    low, high = best.limits[name]
    if not low <= 0 < high:
        raise FitError(
            f"{NAME}: parameter '{name}': limits must allow 0 and positive values, got [{low}, {high}]"
        )
    if statistic == "q" and low == 0:
        raise FitError(
            f"{NAME}: parameter '{name}': statistic 'q' needs a lower limit below 0, got 0; use statistic='q_tilde'"
        )


def check_tested(best: FitResult, name: str, points: ArrayLike) -> Array:
    """Return the values to test in ascending order, the first of which is 0."""
    values = np.union1d(0.0, number_list(f"{NAME}: points", points))
    check_points(NAME, best, name, values)
    if values[0] < 0 or len(values) < 2:
        raise FitError(f"{NAME}: points must be positive values of '{name}', got {values.tolist()[:5]}")
    return values
