"""``mf.sweights``: weights of events that leave one component of a fitted sum, classic or by custom orthogonal functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, freeze, rebuilt
from morefit.data import Dataset
from morefit.errors import DataError, FitError, ModelError, OptionError
from morefit.expr import Expr, Op, Operand, add_all, known_expr, leaves, symbols
from morefit.integrals import SharedBoxes
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.evaluate import check_known
from morefit.likelihood.sums import triangle
from morefit.likelihood.unbinned import BEST_ERROR
from morefit.minimise.check import invert
from morefit.minimise.result import FitResult
from morefit.model import Pdf
from morefit.model.arguments import listed, listing
from morefit.model.integrate import integral_over
from morefit.model.parameter import blinded_in
from morefit.model.pdf import check_model
from morefit.model.region import Region, boxes
from morefit.pipeline import Columns, compile_values
from morefit.records.fields import arrays, words
from morefit.targets import Events
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table

SAME_NLL = 1e-3  # absolute, and
SAME_NLL_RELATIVE = 1e-6  # of its size: further apart, a likelihood is not the one of a result
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
        return np.einsum("eij,je->ie", self.inverse, self.quotients)


@dataclass(frozen=True, eq=False, repr=False)
class SWeights:
    """Weights of events for each component of a sum; those of the data are included, and events outside of a fit have 0.

    ``weights`` are arrays by component. ``matrix`` is W, of which weights contain the inverse: sums over the events for
    classic weights, else integrals, for each event if the model is given something.
    """

    components: tuple[str, ...]
    weights: Mapping[Any, Array]
    matrix: Array
    data: Dataset  # all events, with all their columns
    fitted: Flags  # which of them were fitted
    basis: Basis
    result: FitResult

    def __post_init__(self) -> None:
        freeze(self, components=words, weights=arrays)

    __reduce__ = rebuilt

    @property
    def yields(self) -> dict[str, float]:
        """The sum of the weights of each component."""
        return {name: float(weights.sum()) for name, weights in self.weights.items()}

    @property
    def covariance(self) -> Array:
        """The covariance of the yields for known shapes: sums of products of weights."""
        rows = np.array([self.weights[name] for name in self.components])
        return np.asarray(rows @ rows.T, np.float64)

    def data_for(self, component: str | int, data: Any = None) -> Dataset:
        """Return the events with the weights of a component, by label or index; ``data`` has other columns of the same events."""
        name = self._name(component)
        events = self.data if data is None else data if isinstance(data, Dataset) else Dataset(data)
        if len(events) != len(self.fitted):
            raise DataError(
                f"sweights: data must have the {len(self.fitted)} events that were weighted, got {len(events)}"
            )
        return events.with_weights(self.weights[name])

    def corrected(
        self, component: str | int, model: Pdf | Term, result: FitResult, data: Any = None
    ) -> FitResult:
        """Return the result of a fit to ``data_for(component, data)`` with errors that include those of the weights.

        ``model`` is what was fitted, or its likelihood if that has constraints.
        """
        from morefit.minimise.sweights_errors import correct

        return correct(self, self._name(component), model, result, data)

    def _name(self, component: str | int) -> str:
        if isinstance(component, int) and not isinstance(component, bool):
            if -len(self.components) <= component < len(self.components):
                return self.components[component]
        elif component in self.components:
            return component
        raise ModelError(f"sweights: no component {component!r}; {suggest(component, self.components)}")

    def __str__(self) -> str:
        errors = np.sqrt(self.covariance.diagonal())
        cells = [round_pdg(y, e)[:2] for y, e in zip(self.yields.values(), errors, strict=True)]
        values, deviations = zip(*cells, strict=True)
        kind = "classic" if self.basis.variance is None else "custom orthogonal functions"
        columns = [
            Column("component", self.components, numeric=False),
            Column("sum of weights", values),
            Column("error for known shapes", deviations),
        ]
        return f"sWeights of {int(self.fitted.sum())} events, {kind}\n\n{text_table(columns)}"

    def __repr__(self) -> str:
        return f"SWeights({int(self.fitted.sum())} events, components: {', '.join(self.components)})"


def sweights(
    model: Pdf | Term,
    data: Any = None,
    result: FitResult | None = None,
    *,
    variance: Pdf | Operand | str | None = None,
    expansion: Sequence[Pdf] = (),
) -> SWeights:
    """Return weights of events that leave one component of a sum, by the result of its fit to the same events.

    ``model`` is the sum in the discriminating observables, or its likelihood if that has constraints. Classic weights
    (sPlot) take the sample's own sums and yields; these are the ones of highest likelihood for the shapes of the result, so
    that the weights of an event add up to one, and those of a component to its yield. With ``variance``, weights are
    custom orthogonal weight functions (arXiv:2112.04574): densities over this function, which may be a density, a formula,
    a number or "total" for that of the model, are made orthogonal by integrals. ``expansion`` are further densities that
    they are orthogonal to, for a background that one density does not describe.
    """
    if not isinstance(result, FitResult):
        raise OptionError(
            f"sweights: result must be that of mf.fit, got {type(result).__name__}; call sweights(model, data, result)"
        )
    likelihood, events, fitted = fitted_events("sweights", model, data, result)
    extra = listed("sweights: expansion", expansion)
    if extra and variance is None:
        raise OptionError(
            "sweights: an expansion is for custom orthogonal functions; give variance='total', or another function"
        )
    names, basis = make_basis(likelihood, variance, extra)
    solution = basis.solve(full_point(likelihood, result))
    weights = np.zeros((len(names), len(fitted)))
    weights[:, fitted] = solution.weights[: len(names)] * basis.counts
    return SWeights(
        components=names,
        weights=dict(zip(names, weights, strict=True)),
        matrix=solution.matrix,
        data=events,
        fitted=fitted,
        basis=basis,
        result=result,
    )


def fitted_events(
    what: str, model: Pdf | Term, data: Any, result: FitResult
) -> tuple[Likelihood, Dataset, Flags]:
    """Return the likelihood that a result is of, all events, and which of them were fitted."""
    if not result.valid:
        raise FitError(f"{what}: the result must be valid, got one where {'; '.join(result.reasons)}")
    if isinstance(model, Term):
        likelihood = model.parts[0]
        if len(model.parts) > 1 or type(likelihood) is not Likelihood:
            raise ModelError(
                f"{what}: takes the likelihood of one sample of events, got {model!r}; fit the events of each sample,"
                " with shapes fixed"
            )
        events = likelihood.data if data is None else all_columns(likelihood.model, data)
    else:
        check_model(model)
        if data is None:
            raise DataError(f"{what}: a model needs data; pass those of the fit, or the likelihood")
        decided = model.choose(result.choices) if result.choices else model
        check_names(what, decided, result)
        events = all_columns(decided, data)
        apart = len(result.ranges) == 1 and dict(result.ranges[0]) != dict(decided.region())
        likelihood = (
            Likelihood(decided, events, ranges=result.ranges[0], yields_in=result.yields_in[0])
            if apart
            else Likelihood(decided, events)
        )
    fitted = is_inside(events, likelihood.model.region())
    check_same(what, likelihood, result)
    if fitted.sum() != likelihood.events:
        raise DataError(f"{what}: data must be the {likelihood.events} events of the likelihood")
    return likelihood, events, fitted


def all_columns(model: Pdf, data: Any) -> Dataset:
    """Return data with all their columns, or with the observables alone where others cannot be read."""
    if isinstance(data, Dataset):
        return data
    try:
        return Dataset(data)
    except DataError:
        return Dataset(data, model.observables)


def is_inside(events: Dataset, region: Region) -> Flags:
    """Return which events lie in a region."""
    inside = np.ones(len(events), np.bool_)
    for name, ranges in region.items():
        inside &= np.logical_or.reduce([(events[name] >= low) & (events[name] <= high) for low, high in ranges])
    return inside


def check_names(what: str, model: Pdf, result: FitResult) -> None:
    """Refuse a result without a value for each parameter of a model."""
    if missing := [p.name for p in model.parameters if p.name not in result.values]:
        raise ModelError(
            f"{what}: parameter '{missing[0]}': not in the fit result; pass the result of a fit of this model"
        )


def check_same(what: str, likelihood: Likelihood, result: FitResult) -> None:
    """Refuse a result that is not one of this likelihood."""
    check_names(what, likelihood.model, result)
    if not likelihood.events:
        raise DataError(f"{what}: needs events, got none")
    nll = float(likelihood.evaluate_full(full_point(likelihood, result), 0).value[0])
    if result.events != likelihood.events:
        difference = f"events of the fit {result.events}, of the data {likelihood.events}"
    elif abs(nll - result.nll) > SAME_NLL + SAME_NLL_RELATIVE * abs(nll):
        difference = f"nll of the fit {result.nll:.3f}, of these {nll:.3f}"
    else:
        return
    raise FitError(
        f"{what}: the result must be that of a fit of this model to these data, got {difference}; weights belong"
        " into the dataset, and a fit with constraints needs its mf.Likelihood in the place of the model"
    )


def full_point(likelihood: Likelihood, result: FitResult) -> Array:
    """Return the values of a result for all parameters of a likelihood, as one set."""
    return np.array([[result.values[p.name] for p in likelihood.all_parameters]])


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
    inverse = np.array([invert(one) for one in matrix]) if matrix.ndim > 2 else invert(matrix)
    left = 1 / np.einsum("...ii,...ii->...i", inverse, matrix)
    if not (left > SEPARATED).all():
        raise ModelError(
            "sweights: the densities of the components must differ, got some that are too much alike to be told apart"
        )
    return inverse
