"""Functions of events that are orthogonal to all densities of a sum but one: those that sWeights are values of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import FitError, ModelError, OptionError
from morefit.expr import Expr, Op, Operand, add_all, known_expr, leaves, symbols
from morefit.integrals.boxes import SharedBoxes
from morefit.likelihood import Likelihood
from morefit.likelihood.event_sums import BEST_ERROR
from morefit.likelihood.sums import triangle
from morefit.model import Pdf
from morefit.model.arguments import listing
from morefit.model.integrate import integral_over
from morefit.model.parameter import blinded_in
from morefit.model.parts import check_known
from morefit.model.region import boxes
from morefit.pipeline import Columns, compile_values
from morefit.targets.base import Events

SEPARATED = 1e-8  # of the information on a yield, what the others must leave
MAX_STEPS = 100  # of Newton's method for the yields
CONVERGED = 1e-13  # of the number of events


@dataclass(frozen=True, eq=False)
class Basis:
    """The densities whose weights are orthogonal, the function they are divided by, and the likelihood of the events.

    Classic weights have no ``variance``: it is the sum of the densities with their yields. The others have the integrals
    of products of two densities over it, the lower triangle of a matrix.
    """

    likelihood: Likelihood
    densities: tuple[Expr, ...]
    shares: tuple[Expr, ...]
    variance: Expr | None = None
    integrals: tuple[Expr, ...] = ()

    @property
    def counts(self) -> Array:
        """How often each event counts."""
        weights = self.likelihood.data.weights
        return np.ones(self.likelihood.events) if weights is None else weights

    @property
    def names(self) -> set[str]:
        """The parameters that weights depend on."""
        roots = self.densities if self.variance is None else (*self.densities, self.variance)
        return {symbol.name for symbol in symbols(Op.SCALAR, *roots)}

    def solve(self, full: Array) -> Solution:
        """Compute the weights of all events at one point in all parameters."""
        if self.variance is None:
            values = self.likelihood.event_values(full, *self.densities, *self.shares)[0]
            densities, shares = np.split(values, 2)
            yields = conditional_yields(densities, self.counts, shares[:, 0] * self.counts.sum())
            quotients = densities / (yields @ densities)
            matrix = (quotients * self.counts) @ quotients.T
        else:
            *densities, variance = self.likelihood.event_values(full, *self.densities, self.variance)[0]
            if not (variance > 0).all():
                raise ModelError(
                    f"sweights: variance must be positive at all events, got {variance.min():g}; choose another function"
                )
            quotients = np.array(densities) / variance
            matrix = self.integrated(full)
        return Solution(quotients, matrix, inverse_of(matrix))

    def integrated(self, full: Array) -> Array:
        """Return the matrix of integrals, (K, K), or one for each event if the model is given something."""
        likelihood = self.likelihood
        data = likelihood.data if leaves(Op.COLUMN, *self.integrals) else likelihood.data[:1]
        compiled = compile_values(self.integrals, likelihood.all_symbols, likelihood.settings)
        bound = compiled.bind(
            Columns(data.columns), Events.all_sets(len(data)), boxes=SharedBoxes(BEST_ERROR)
        )
        matrices = triangle(bound(full)[0].T, len(self.densities))
        return matrices[0] if len(data) < likelihood.events else matrices


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights of events: those of component i are the sum over j of inverse[i, j] times quotients[j]."""

    quotients: Array  # (K, events), densities over the variance function
    matrix: Array  # (K, K), or (events, K, K)
    inverse: Array

    @property
    def weights(self) -> Array:
        """The weight of each event for each component, without its own weight in the data, (K, events)."""
        if self.inverse.ndim == 2:
            return np.asarray(self.inverse @ self.quotients, np.float64)
        return np.asarray(np.einsum("eij,je->ie", self.inverse, self.quotients), np.float64)


def make_basis(
    likelihood: Likelihood, variance: Pdf | Operand | str | None, expansion: Sequence[Pdf]
) -> tuple[tuple[str, ...], Basis]:
    """Return the names of the components of a model, and what their weights are computed from."""
    model = likelihood.model
    check_known(model, "sweights")
    shares, pdfs = zip(*model.shares(), strict=True)
    if len(pdfs) < 2:
        raise ModelError(
            f"sweights: the model must be a sum of at least 2 densities, got {model!r}; write mf.Sum([...], yields=[...])"
        )
    counted = [one for one in (*shares, model.expected_events()) if one is not None]
    if blinded := [p for one in counted for p in blinded_in(one)]:
        raise ModelError(
            f"sweights: weights would show the yields, of which {listing(dict.fromkeys(blinded))} is blinded; blind shapes only"
        )
    if columns := symbols(Op.COLUMN, *shares):
        raise ModelError(
            f"sweights: shares of components must be the same for all events, but depend on {listing(columns)}; fit without ranges"
        )
    for pdf in expansion:
        if not isinstance(pdf, Pdf):
            raise ModelError(f"sweights: expansion must be densities, got {pdf!r}")
    densities = tuple(pdf.normalised() for pdf in (*pdfs, *expansion))
    if variance is None:
        return model.share_names(), Basis(likelihood, densities, shares)
    function = variance_of(model, variance)
    check_depends(model, *densities, function)
    inside = [tuple(o.within(box) for o in model.drawn) for box in boxes(model.region())]
    integrals = [
        add_all(*(integral_over(a * b / function, box, model.parameters, model.given) for box in inside))
        if len(inside) > 1
        else integral_over(a * b / function, inside[0], model.parameters, model.given)
        for k, a in enumerate(densities)
        for b in densities[: k + 1]
    ]
    return model.share_names(), Basis(likelihood, densities, shares, function, tuple(integrals))


def variance_of(model: Pdf, variance: Pdf | Operand | str) -> Expr:
    """Return a variance function as an expression."""
    if isinstance(variance, Pdf):
        return variance.normalised()
    if isinstance(variance, str):
        if variance == "total":
            return add_all(*(share * pdf.normalised() for share, pdf in model.shares()))
    elif (formula := known_expr(variance)) is not None:
        return formula
    raise OptionError(
        f"sweights: variance must be 'total', a density, a formula or a number, got {variance!r}"
    )


def check_depends(model: Pdf, *formulas: Expr) -> None:
    """Refuse observables and parameters that are not in the model."""
    known = {one.name for one in (*model.observables, *model.parameters)}
    if unknown := [s for op in (Op.COLUMN, Op.SCALAR) for s in symbols(op, *formulas) if s.name not in known]:
        raise ModelError(f"sweights: {listing(unknown)}: not in the model; use what was fitted, or numbers")


def conditional_yields(densities: Array, counts: Array, start: Array) -> Array:
    """Return the yields that maximise the extended likelihood of known densities, by Newton's method."""
    yields = start
    if not (yields @ densities > 0).all():
        raise FitError("sweights: events must have a positive density, got some with none; change the model")
    for _ in range(MAX_STEPS):
        quotients = densities / (yields @ densities)
        slope = quotients @ counts - 1
        step = inverse_of((quotients * counts) @ quotients.T) @ slope
        while not ((yields + step) @ densities > 0).all():
            step /= 2
        yields = yields + step
        if np.abs(step).max() <= CONVERGED * np.abs(yields).sum():
            return yields
    raise FitError("sweights: the yields of highest likelihood for these shapes were not found; fit again")


def inverse_of(matrix: Array) -> Array:
    """Return the inverse of a matrix, or of each of many, if it determines the yields."""
    with np.errstate(invalid="ignore", divide="ignore"):
        roots = np.sqrt(np.einsum("...ii->...i", matrix))
        scales = roots[..., :, None] * roots[..., None, :]
        try:
            unit = np.linalg.inv(matrix / scales)
        except np.linalg.LinAlgError:
            unit = np.full_like(matrix, np.nan)
        left = 1 / np.einsum("...ii->...i", unit)
    if not ((left > SEPARATED) & (left < 1 + SEPARATED)).all():
        raise ModelError(
            "sweights: the densities of the components must differ, got some that are too similar to distinguish"
        )
    return np.asarray(unit / scales, np.float64)
