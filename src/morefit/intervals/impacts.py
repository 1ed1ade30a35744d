"""Impacts: how far a parameter of interest moves where each of the others is moved by its error, and their pulls."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, evaluate, leaves, to_expr
from morefit.likelihood import Evaluation, Term
from morefit.likelihood.wider import unresolved_points
from morefit.minimise import FitResult
from morefit.minimise.conditional import (
    Conditional,
    batch_of,
    best_fit,
    check_floating,
    minimise_others,
    others_of,
)
from morefit.minimise.newton import minimise
from morefit.minimise.problem import as_likelihood
from morefit.minimise.replicas import GOAL
from morefit.minimise.trust_region import CONVERGED, FLAT
from morefit.model import Parameter, Pdf
from morefit.records.fields import words
from morefit.records.named_arrays import FrozenByName
from morefit.rewrite.derive import derivatives
from morefit.text.arguments import in_sentences
from morefit.text.progress import Bar
from morefit.text.rounding import round_pdg
from morefit.text.tables import Column, text_table
from morefit.validate import name_of

NAME = "impacts"


BY_PARAMETER = ("values", "errors", "nominal", "nominal_errors", "before", "after")  # arrays


@dataclass(frozen=True, eq=False, repr=False)
class Impacts(FrozenByName):
    """How the fitted value of a parameter changes where one of R others is fixed below and above its best value.

    The largest impacts come first. ``before`` are changes (down, up) where the other parameter is moved by the error that
    its constraints alone leave, ``after`` by its error in the fit. What has no constraint has no numbers before the fit,
    and a value outside limits or a fit that failed leaves no change: these are nan.
    """

    name: str
    value: float
    error: float
    names: tuple[str, ...]  # of the R other floating parameters
    values: Array  # (R,) where the data have their minimum,
    errors: Array  # (R,) and their errors
    nominal: Array  # (R,) where constraints alone have their minimum,
    nominal_errors: Array  # (R,) and their errors
    before: Array  # (R, 2)
    after: Array  # (R, 2)

    converted = {"names": words}
    named = dict.fromkeys(BY_PARAMETER, ("names", 1, 0))

    @property
    def pulls(self) -> Array:
        """How far the fit moved each parameter from its constraints, in errors of the constraints."""
        return (self.values - self.nominal) / self.nominal_errors

    @property
    def constrained(self) -> Array:
        """The error of each parameter in the fit, in units of that of its constraints: below 1, data determine it as well."""
        return self.errors / self.nominal_errors

    def __str__(self) -> str:
        value, error = round_pdg(self.value, self.error)
        columns = [Column("parameter", self.names, numeric=False)]
        columns += [
            Column(heading, [shown(x, ".2f") for x in numbers])
            for heading, numbers in (("pull", self.pulls), ("error / constraint", self.constrained))
        ]
        for heading, pairs in (("before the fit", self.before), ("after", self.after)):
            columns += [
                Column(f"{heading}, {side}", [shown(x, "+#.2g").rstrip(".") for x in pairs[:, k]])
                for k, side in enumerate(("down", "up"))
            ]
        return f"impacts on {self.name} = {value} +- {error}\n\n{text_table(columns)}"


def shown(number: float, style: str) -> str:
    """Return a number as text, a dash if there is none."""
    return format(number, style) if isfinite(number) else "-"


@in_sentences
def impacts(
    likelihood: Term | Pdf,
    parameter: str | Parameter,
    *,
    data: Any = None,
    best: FitResult | None = None,
) -> Impacts:
    """Return how a parameter of interest changes with each other floating one, fixed one error below and above.

    All fits with one parameter fixed are made together. Errors before the fit are those of the constraints, after it those
    of ``best``, which is the fit if it is known already.
    """
    term, name = as_likelihood(NAME, likelihood, data), name_of(parameter)
    best = best_fit(NAME, term, best)
    check_floating(NAME, best, name)
    names = [n for n in best.floating if n != name]
    values, errors = (np.array([known[n] for n in names]) for known in (best.values, best.errors))
    nominal = constraint_minimum(term, best)
    centres, widths = np.array([nominal.get(n, (np.nan, np.nan)) for n in names]).reshape(-1, 2).T
    moved = np.stack([values - widths, values + widths, values - errors, values + errors], axis=1)
    changes = changes_of(term, best, name, names, moved) - best.values[name]
    order = np.argsort(
        -np.nan_to_num(np.abs(changes[:, 2:]), nan=-1.0).max(axis=1, initial=-1.0), kind="stable"
    )
    return Impacts(
        name=name, value=best.values[name], error=best.errors[name], names=tuple(names[k] for k in order),
        values=values[order], errors=errors[order], nominal=centres[order], nominal_errors=widths[order],
        before=changes[order, :2], after=changes[order, 2:],
    )  # fmt: skip


def changes_of(term: Term, best: FitResult, name: str, names: list[str], moved: Array) -> Array:
    """Return the fitted values of a parameter with each of the others fixed at some values, as ``moved`` (R, K)."""
    rows = np.array([best.floating.index(n) for n in names], np.int64)
    low, high = np.array([best.limits[n] for n in names]).reshape(-1, 2).T
    result = np.full(moved.shape, np.nan)
    inside = (moved >= low[:, None]) & (moved <= high[:, None])
    which, points = rows[np.nonzero(inside)[0]], moved[inside]
    if not len(which):
        return result
    base = np.tile([best.values[p.name] for p in term.all_parameters], (len(which), 1))
    batch = batch_of(term, best, best.floating, base)
    own = best.floating.index(name)
    sets = np.arange(len(which))
    covariance = np.nan_to_num(best.covariance)
    away = points - batch.start[sets, which]
    with np.errstate(divide="ignore", invalid="ignore"):
        parabola = batch.start + covariance[which] * (away / covariance[which, which])[:, None]
    start = np.clip(np.where(np.isfinite(parabola), parabola, batch.start), *batch.limits.T)
    start[sets, which] = points
    minima = minimise_others(batch, sets, which, start)
    fitted = minima.x[sets, own - (which < own)]
    ends = batch.base.copy()
    ends[:, batch.columns] = start
    np.put_along_axis(ends, np.array(batch.columns)[others_of(which, len(best.floating))], minima.x, 1)
    known = np.isin(minima.status, (CONVERGED, FLAT)) & ~unresolved_points(batch.likelihood, ends)
    for k in np.flatnonzero(~known):
        fitted[k] = alone(term, best, name, best.floating[which[k]], points[k])
    result[inside] = fitted
    return result


def alone(term: Term, best: FitResult, name: str, other: str, point: float) -> float:
    """Return the fitted value of a parameter with another one fixed, by all means that there are; nan if all fail."""
    scan = Conditional(term, best, (other,), np.array([[point]]), Bar("", 1, False))
    scan.minimise()
    return float(scan.fits.values[0, scan.rest.index(name)]) if scan.fits.valid[0] else np.nan


def constraint_minimum(term: Term, best: FitResult) -> dict[str, tuple[float, float]]:
    """Return where constraints alone have their minimum, and the errors there, of the parameters that they determine."""
    pieces = [
        Piece.of(c.nll([to_expr(m) for m in c.measured]), best)
        for part in term.parts
        for c in part.constraints
    ]
    names = list(dict.fromkeys(n for piece in pieces for n in piece.names))
    if not names:
        return {}

    def add_up(sets: Integers, x: Array) -> Evaluation:
        total = Evaluation.zero(1, len(names))
        values = {**best.values, **dict(zip(names, x[0].tolist(), strict=True))}
        for piece in pieces:
            total.add(piece.at(values), [names.index(n) for n in piece.names], 2)
        return total

    start = np.array([[best.values[n] for n in names]])
    minimum = minimise(add_up, start, np.array([best.limits[n] for n in names]), GOAL)
    known = zip(names, minimum.x[0].tolist(), minimum.errors[0].tolist(), strict=True)
    return {n: (value, error) for n, value, error in known if isfinite(error)}


@dataclass(frozen=True, eq=False)
class Piece:
    """What one constraint adds to a likelihood, with its derivatives."""

    names: tuple[str, ...]
    value: Expr
    gradient: tuple[Expr, ...]
    hessian: tuple[tuple[Expr, ...], ...]

    @classmethod
    def of(cls, value: Expr, best: FitResult) -> Piece:
        own = [leaf for leaf in leaves(Op.SCALAR, value) if leaf.name in best.floating]
        slopes = derivatives(value, own)
        return cls(
            tuple(leaf.name for leaf in own),
            value,
            tuple(slopes),
            tuple(tuple(derivatives(s, own)) for s in slopes),
        )

    def at(self, values: dict[str, float]) -> Evaluation:
        numbers = [np.array([float(evaluate(self.value, values))])]
        numbers += [np.array([[float(evaluate(e, values)) for e in self.gradient]])]
        numbers += [np.array([[[float(evaluate(e, values)) for e in row] for row in self.hessian]])]
        bad = np.array([not all(np.isfinite(n).all() for n in numbers)], np.int64)
        return Evaluation(
            numbers[0], numbers[1], numbers[2].reshape(1, len(self.names), len(self.names)), bad
        )
