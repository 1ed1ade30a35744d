"""Error budgets: how much of the error of a fitted parameter comes from groups of others, by the covariance of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Frozen
from morefit.errors import FitError, OptionError
from morefit.minimise.check import invert
from morefit.model import Parameter
from morefit.records.fields import floats
from morefit.text.rounding import round_pdg
from morefit.text.tables import Column, text_table
from morefit.validate import name_of

if TYPE_CHECKING:
    from morefit.minimise.result import FitResult

NAME = "error_budget"
STATISTICAL, TOTAL = "statistical", "total"


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBudget(Frozen):
    """The parts of the error of one parameter; squares of parts add up to that of the total where groups do not correlate.

    ``statistical`` is the error that is left where all groups are fixed. That of a group is what its fixing takes away,
    the root of the difference of the squared errors.
    """

    name: str
    value: float
    total: float
    statistical: float
    groups: Mapping[str, float]

    converted = {"groups": floats}

    @property
    def systematic(self) -> float:
        """What fixing all groups takes away."""
        return sqrt(max(self.total**2 - self.statistical**2, 0.0))

    def __str__(self) -> str:
        parts = {STATISTICAL: self.statistical, **self.groups, TOTAL: self.total}
        value = " +- ".join(round_pdg(self.value, self.total))
        errors = [f"{error:.3g}" for error in parts.values()]
        shares = [f"{100 * error**2 / self.total**2:.1f} %" for error in parts.values()]
        columns = [
            Column("part", [*parts], numeric=False),
            Column("error", errors),
            Column("of its square", shares),
        ]
        return f"error budget of {self.name} = {value}\n\n{text_table(columns)}"

    __repr__ = __str__


def budget_of(result: FitResult, parameter: Any, groups: Any) -> ErrorBudget:
    """Return the error budget of a floating parameter; ``groups`` are parameters, or lists of them, by name."""
    if not result.valid:
        raise FitError(f"{NAME}: needs a valid fit, got one that is not: {'; '.join(result.reasons)}")
    if result.errors_from != "naive":
        raise FitError(
            f"{NAME}: needs a covariance that is the inverse of a Hessian, got errors='{result.errors_from}'; take"
            " errors='naive', or the differences of fits with groups fixed"
        )
    if not isinstance(groups, Mapping) or not groups:
        raise OptionError(
            f"{NAME}: groups must be parameters by name of the group, as in {{'luminosity': ['lumi']}}, got {groups!r}"
        )
    name, members = name_of(parameter), {str(group): listed(group, some) for group, some in groups.items()}
    if reserved := [group for group in members if group in (STATISTICAL, TOTAL)]:
        raise OptionError(f"{NAME}: group '{reserved[0]}': this name is taken; choose another")
    every = [n for some in members.values() for n in some]
    if twice := [n for n in (name, *every) if (name, *every).count(n) > 1]:
        raise OptionError(
            f"{NAME}: parameter '{twice[0]}': must be in one group at most, and not be the one whose errors are split"
        )
    result.covariance_of(name, *every)  # says what is wrong with names
    if not np.isfinite(result.covariance).all():
        raise FitError(f"{NAME}: the fit has no complete covariance; fix what data do not determine")
    total = result.errors[name]
    left = {group: error_without(result, name, some) for group, some in members.items()}
    return ErrorBudget(
        name, result.values[name], total, error_without(result, name, every),
        {group: sqrt(max(total**2 - error**2, 0.0)) for group, error in left.items()},
    )  # fmt: skip


def listed(group: str, some: Any) -> list[str]:
    """Return the names of the parameters of a group."""
    names = [some] if isinstance(some, str | Parameter) else [*some] if isinstance(some, Sequence) else []
    if not names:
        raise OptionError(f"{NAME}: group '{group}': must be a parameter or a list of them, got {some!r}")
    return [name_of(one) for one in names]


def error_without(result: FitResult, name: str, fixed: Sequence[str]) -> float:
    """Return the error of a parameter where others are fixed: what is left of the covariance given these."""
    matrix = result.covariance_of(name, *fixed)
    away = matrix[0, 1:] @ invert(matrix[1:, 1:]) @ matrix[1:, 0]
    return sqrt(max(float(matrix[0, 0] - away), 0.0))
