"""Quantities computed from fitted parameters, with errors propagated by the exact gradient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, evaluate, leaves, symbols, to_expr, to_text
from morefit.model.arguments import listing
from morefit.model.parameter import Parameter, blinded_in, check_blinding, phrase_digest, unblinded_value
from morefit.records.fields import matrix, words
from morefit.rewrite.derive import derivatives
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from morefit.minimise.result import FitResult
    from morefit.model.derived import Derived as Quantity

MAX_TEXT = 60  # characters of an expression


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
