"""Quantities computed from fitted parameters with propagated errors, and error budgets: which groups of parameters an error comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import FitError, ModelError, OptionError
from morefit.expr import Expr, Op, Operand, evaluate, leaves, symbols, to_expr, to_text
from morefit.minimise.check import invert
from morefit.model.arguments import listing
from morefit.model.parameter import Parameter, blinded_in, check_blinding, phrase_digest, unblinded_value
from morefit.records.fields import floats, matrix, words
from morefit.rewrite.derive import derivatives
from morefit.text.arguments import methods_in_sentences
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table
from morefit.validate import name_of

if TYPE_CHECKING:
    from morefit.minimise.result import FitResult
    from morefit.model.derived import Derived as Quantity

MAX_TEXT = 60  # characters of an expression


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Derived(Frozen):
    """One or more quantities computed from fitted parameters: values, and their covariance to first order.

    Errors are NaN where an expression depends on a parameter that has no error.
    """

    expressions: tuple[str, ...]  # as text
    values: Array  # (N,)
    covariance: Array  # (N, N)

    converted = {"expressions": words, "covariance": matrix}

    @property
    def errors(self) -> Array:
        """The standard deviations, in the order of the expressions."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.covariance.diagonal())

    @property
    def value(self) -> float:
        """The value, if there is one expression only."""
        return float(self.values[self._single("value")])

    @property
    def error(self) -> float:
        """The error, if there is one expression only."""
        return float(self.errors[self._single("error")])

    def _single(self, what: str) -> int:
        if len(self.expressions) != 1:
            raise ModelError(
                f"derived: {what} needs a single expression, got {len(self.expressions)}; use {what}s"
            )
        return 0

    def __str__(self) -> str:
        numbers = [" +- ".join(round_pdg(*pair)) for pair in zip(self.values, self.errors, strict=True)]
        if len(numbers) == 1:
            return numbers[0]
        return "\n".join(f"{text}: {pair}" for text, pair in zip(self.expressions, numbers, strict=True))

    def __repr__(self) -> str:
        if len(self.expressions) == 1:
            return f"Derived({self.expressions[0]}: {self})"
        return f"Derived({len(self.expressions)} expressions)"


def propagate(expressions: Sequence[Operand], result: FitResult, unblind: str = "") -> Derived:
    """Compute expressions of parameters, which are identified by name, and the covariance J C J^T of the expressions."""
    if not expressions:
        raise ModelError("derived: needs at least one expression, got none")
    roots = [to_expr(one) for one in expressions]
    values = result.values
    for root in roots:
        check_symbols(root, values, unblind)
        check_blinding([p for p in symbols(Op.SCALAR, root) if isinstance(p, Parameter)], result)
    gradients = [gradient(root, values, result.floating) for root in roots]
    covariance = np.array([[sandwich(a, result.covariance, b) for b in gradients] for a in gradients])
    return Derived(
        tuple(to_text(root, MAX_TEXT) for root in roots),
        np.array([float(evaluate(root, values)) for root in roots]),
        covariance,
    )


def check_symbols(root: Expr, values: Mapping[str, Any], unblind: str) -> None:
    """Refuse observables, parameters that are not in the fit, and those that are blinded with another phrase."""
    what = f"derived: expression '{to_text(root, MAX_TEXT)}'"
    if observables := [one.name for one in symbols(Op.COLUMN, root)]:
        raise ModelError(
            f"{what}: must not depend on observables, got {', '.join(map(repr, observables))};"
            " integrate over them or put numbers in their places"
        )
    if blinded := [one for one in blinded_in(root) if one.blind != unblind]:
        raise ModelError(
            f"{what}: depends on the blinded {listing(blinded)}; give unblind= its phrase, or fit without blind="
        )
    if unknown := [one.name for one in symbols(Op.SCALAR, root) if one.name not in values]:
        each = [f"parameter '{name}' is not in the fit, {suggest(name, values)}" for name in unknown]
        raise ModelError(f"{what}: {'; '.join(each)}")


def with_quantities(result: FitResult, named: Iterable[Quantity]) -> FitResult:
    """Return a result with the derived quantities of its models, but for those that blinded parameters enter."""
    visible = [one for one in named if not blinded_in(one.formula)]
    if not visible:
        return result
    values = result.derived(*visible)
    numbers = zip(values.values.tolist(), values.errors.tolist(), strict=True)
    labels = dict(result.labels) | {one.name: one.label for one in visible if one.label}
    names = [one.name for one in visible]
    return replace(result, quantities=dict(zip(names, numbers, strict=True)), labels=labels)


def unblinded(result: FitResult, phrase: str) -> Derived:
    """Compute the true values of the parameters of a fit that are blinded with a phrase."""
    known = {
        name: (phrase, by, (start, low, high))
        for name, (digest, by, start, low, high) in result.blinded.items()
        if digest == phrase_digest(phrase)
    }
    if not known:
        raise ModelError(
            f"unblind: no parameter of this fit is blinded with this phrase; blinded are {[*result.blinded]}"
        )
    rows = [result.floating.index(name) if name in result.floating else None for name in known]
    shown = [[0.0 if i is None or j is None else result.covariance[i, j] for j in rows] for i in rows]
    values = [unblinded_value(result.values[name], *how) for name, how in known.items()]
    slopes = [1.0 if how[1] == "offset" else unblinded_value(1.0, *how) for how in known.values()]
    return Derived(tuple(known), np.array(values), np.array(shown) * np.outer(slopes, slopes))


def gradient(root: Expr, values: Mapping[str, float], floating: Sequence[str]) -> dict[int, float]:
    """Return the derivatives by the floating parameters that an expression depends on, by their row."""
    wrt = [leaf for leaf in leaves(Op.SCALAR, root) if leaf.name in floating]
    slopes: dict[int, float] = {}
    for leaf, slope in zip(wrt, derivatives(root, wrt), strict=True):
        row = floating.index(leaf.name)
        slopes[row] = slopes.get(row, 0.0) + float(evaluate(slope, values))
    return slopes


def sandwich(left: Mapping[int, float], covariance: Array, right: Mapping[int, float]) -> float:
    """Return the covariance of two expressions; parameters on which neither depends do not enter, NaN or not."""
    block = covariance[np.ix_(list(left), list(right))]
    return float(np.array([*left.values()]) @ block @ np.array([*right.values()])) if block.size else 0.0


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
    result.covariance_of(parameter)  # says what is wrong with it
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
