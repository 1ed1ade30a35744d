"""``mf.combine``: the best linear unbiased estimate of parameters that several results measure, with correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError
from morefit.minimise.check import invert
from morefit.minimise.result import FitResult
from morefit.records.fields import floats, matrix, words
from morefit.records.named_arrays import FrozenByName
from morefit.text.arguments import in_sentences
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table
from morefit.validate import as_number, name_of

NAME = "combine"
Measured = tuple[int, str]  # the number of a result, and one of its parameters


@dataclass(frozen=True, eq=False, repr=False)
class Combination(FrozenByName):
    """Values of P parameters combined from N measured ones, their covariance, and the weight of each in each.

    ``chi2`` with ``ndf`` degrees of freedom says how well the results agree.
    """

    names: tuple[str, ...]
    values: Mapping[str, float]
    errors: Mapping[str, float]
    covariance: Array  # (P, P)
    weights: (
        Array  # (P, N), the measured values being those of the first result, then those of the second, ...
    )
    chi2: float
    ndf: int

    converted = {"names": words, "values": floats, "errors": floats, "covariance": matrix}
    named = {"covariance": ("names", 2)}

    @property
    def p_value(self) -> float:
        """The probability of a larger chi-square; nan where every parameter was measured once."""
        from scipy.special import chdtrc  # type: ignore[import-untyped]  # slow

        return float(chdtrc(self.ndf, self.chi2)) if self.ndf else nan

    def __str__(self) -> str:
        cells = [round_pdg(self.values[n], self.errors[n]) for n in self.names]
        value, error = zip(*cells, strict=True)
        columns = [
            Column("parameter", self.names, numeric=False),
            Column("value", value),
            Column("error", error),
        ]
        agreement = (
            f", chi2 / ndf {self.chi2:.4g} / {self.ndf}, p-value {self.p_value:.3g}" if self.ndf else ""
        )
        return f"combination of {self.weights.shape[1]} values{agreement}\n\n{text_table(columns)}"

    __repr__ = __str__


@in_sentences
def combine(
    results: Any,
    parameters: Sequence[Any] | None = None,
    *,
    correlations: Mapping[Any, Any] | None = None,
) -> Combination:
    """Combine results by the best linear unbiased estimate (Lyons, Gibaut, Clifford; Valassi).

    Parameters
    ----------
    results : a list of fits, or of published numbers: (value, error) by name. Parameters of one name are one quantity.
    parameters : to combine; by default all that float in a fit.
    correlations : of different results, by parameter, or by (parameter, parameter) for two of them: a number for all
        pairs of results, or a matrix with a row and a column for each result. Those inside a fit are in its covariance.

    >>> import morefit as mf
    >>> mf.combine([{"mu": (9.5, 0.5)}, {"mu": (10.5, 0.5)}], correlations={"mu": 0.3}).values
    {'mu': 10.0}
    """
    if not isinstance(results, list | tuple) or len(results) < 2:
        raise OptionError(f"{NAME}: needs a list of two results or more, got {results!r}")
    wanted = None if parameters is None else [name_of(p) for p in parameters]
    if wrong := [one for one in wanted or () if not isinstance(one, str)]:
        raise OptionError(
            f"{NAME}: parameters must be a list of parameters or their names, got {wrong[0]!r:.60}"
        )
    measured, values, covariance = blocks_of(results, wanted)
    fill_correlations(covariance, measured, len(results), correlations or {})
    inverse = invert(covariance)
    if np.isnan(inverse).any():
        raise DataError(
            f"{NAME}: the correlations are not possible together: their matrix is not positive definite; lower them"
        )
    names = list(dict.fromkeys(name for _, name in measured))
    design = np.array([[float(name == one) for one in names] for _, name in measured])
    combined = invert(design.T @ inverse @ design)
    weights = combined @ design.T @ inverse
    best = weights @ values
    away = values - design @ best
    return Combination(
        names=tuple(names), values=dict(zip(names, best.tolist(), strict=True)),
        errors=dict(zip(names, np.sqrt(np.diag(combined)).tolist(), strict=True)), covariance=combined,
        weights=weights, chi2=float(away @ inverse @ away), ndf=len(values) - len(names),
    )  # fmt: skip


def blocks_of(results: Sequence[Any], wanted: Sequence[str] | None) -> tuple[list[Measured], Array, Array]:
    """Return what each result measures, the values, and their covariance without correlations of different results."""
    blocks = [block_of(k, result, wanted) for k, result in enumerate(results)]
    measured = [(k, name) for k, (names, _, _) in enumerate(blocks) for name in names]
    known = {name for _, name in measured}
    if unknown := [n for n in wanted or () if n not in known]:
        raise OptionError(
            f"{NAME}: parameter '{unknown[0]}': no result has measured it; {suggest(unknown[0], known)}"
        )
    if not measured:
        raise OptionError(f"{NAME}: no parameter floats in any of the results")
    values, total = np.concatenate([v for _, v, _ in blocks]), np.zeros((len(measured), len(measured)))
    first = 0
    for names, _, own in blocks:
        total[first : first + len(names), first : first + len(names)] = own
        first += len(names)
    return measured, values, total


def block_of(k: int, result: Any, wanted: Sequence[str] | None) -> tuple[list[str], Array, Array]:
    """Return the parameters that one result measures, their values and covariance."""
    if isinstance(result, FitResult):
        if not result.valid:
            raise DataError(
                f"{NAME}: result {k + 1} must be a valid fit, got one that is not: {'; '.join(result.reasons)}"
            )
        names = [n for n in result.floating if wanted is None or n in wanted]
        if edge := [n for n in names if n in result.at_limit]:
            raise DataError(
                f"{NAME}: parameter '{edge[0]}': is at its limit in result {k + 1}, where its error is not Gaussian; leave it out"
            )
        values, covariance = np.array([result.values[n] for n in names]), result.covariance_of(*names)
        if result.blinded and (hidden := [n for n in names if n in result.blinded]):
            raise DataError(
                f"{NAME}: parameter '{hidden[0]}': is blinded in result {k + 1}; unblind it, or leave it out"
            )
    elif isinstance(result, Mapping):
        pairs = {name_of(n): pair for n, pair in result.items() if wanted is None or name_of(n) in wanted}
        names = [*pairs]
        values = np.array([number(k, n, pairs[n], 0) for n in names])
        covariance = np.diag([number(k, n, pairs[n], 1) ** 2 for n in names])
    else:
        raise OptionError(
            f"{NAME}: result {k + 1} must be a fit result or (value, error) by name, got {result!r}"
        )
    for name, value, variance in zip(names, values, np.diag(covariance), strict=True):
        if not (isfinite(value) and 0 < variance < np.inf):
            raise DataError(
                f"{NAME}: parameter '{name}': needs a value and a positive error in result {k + 1}, got {value:g} and {np.sqrt(max(variance, 0.0)):g}"
            )
    return names, values, covariance.reshape(len(names), len(names))


def number(k: int, name: str, pair: Any, which: int) -> float:
    """Return the value or the error of published numbers."""
    numbers = [as_number(x) for x in pair] if isinstance(pair, Sequence) and len(pair) == 2 else []
    chosen = numbers[which] if numbers else None
    if chosen is None or (which and chosen < 0):
        raise OptionError(
            f"{NAME}: parameter '{name}': result {k + 1} must have (value, error), got {pair!r}"
        )
    return chosen


def fill_correlations(
    covariance: Array, measured: list[Measured], count: int, correlations: Mapping[Any, Any]
) -> None:
    """Write the covariances of values of different results."""
    errors, known = np.sqrt(np.diag(covariance)), {name for _, name in measured}
    for key, correlation in correlations.items():
        pair = tuple(name_of(one) for one in key) if isinstance(key, tuple) else (name_of(key),) * 2
        if len(pair) != 2 or (unknown := [n for n in pair if n not in known]):
            text = suggest(str(unknown[0]), known) if len(pair) == 2 else "write one parameter, or a pair"
            raise OptionError(f"{NAME}: correlations: {key!r} is not among the combined parameters; {text}")
        table = correlation_table(key, correlation, count)
        for i, (one, name) in enumerate(measured):
            for j, (other, second) in enumerate(measured):
                if one != other and (name, second) in (pair, pair[::-1]):
                    covariance[i, j] = table[one, other] * errors[i] * errors[j]


def correlation_table(key: Any, correlation: Any, count: int) -> Array:
    """Return the correlation of each pair of results."""
    single = as_number(correlation)
    table = np.full((count, count), single) if single is not None else np.array(correlation, object)
    try:
        table = table.astype(np.float64)
        if (
            table.shape != (count, count)
            or not np.all(np.abs(table) <= 1)
            or not np.array_equal(table, table.T)
        ):
            raise ValueError
    except (TypeError, ValueError):
        raise OptionError(
            f"{NAME}: correlations of {key!r} must be a number in [-1, 1] or a symmetric matrix of shape"
            f" ({count}, {count}), got {correlation!r}"
        ) from None
    return table
