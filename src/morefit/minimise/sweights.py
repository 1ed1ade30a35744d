"""``mf.sweights``: weights of events that leave one component of a fitted sum, classic or by custom orthogonal functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, Frozen
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import DataError, FitError, ModelError, OptionError
from morefit.expr import Operand
from morefit.likelihood import Likelihood, Term
from morefit.minimise.result import FitResult
from morefit.minimise.weight_functions import Basis, make_basis
from morefit.model import Pdf
from morefit.model.arguments import listed
from morefit.model.compose.restricted import in_ranges
from morefit.model.parts import check_model
from morefit.model.region import Region
from morefit.records.fields import arrays, words
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table

SAME_NLL = 1e-3  # absolute, and
SAME_NLL_RELATIVE = 1e-6  # of its size: further apart, a likelihood is not the one of a result


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class SWeights(Frozen):
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

    converted = {"components": words, "weights": arrays}

    @property
    def yields(self) -> dict[str, float]:
        """The sum of the weights of each component."""
        return {name: float(weights.sum()) for name, weights in self.weights.items()}

    @property
    def covariance(self) -> Array:
        """The covariance of the yields for known shapes: sums of products of weights."""
        rows = np.array([self.weights[name] for name in self.components])
        return np.asarray(rows @ rows.T, np.float64)

    def __getitem__(self, component: str | int) -> Array:
        """Return the weights of a component, by label or index."""
        return self.weights[self._name(component)]

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


@in_sentences
def sweights(
    model: Pdf | Term,
    data: Any = None,
    result: FitResult | None = None,
    *,
    variance: Pdf | Operand | str | None = None,
    expansion: Sequence[Pdf] = (),
    backend: str | Backend = "auto",
) -> SWeights:
    """Return weights of events that leave one component of a sum, by the result of its fit to the same events.

    ``model`` is the sum in the discriminating observables, or its likelihood if that has constraints. Classic weights
    (sPlot) take the sample's own sums and yields; these are the ones of highest likelihood for the shapes of the result, so
    that the weights of an event add up to one, and those of a component to its yield. With ``variance``, weights are
    custom orthogonal weight functions (arXiv:2112.04574): densities over this function, which may be a density, a formula,
    a number or "total" for that of the model, are made orthogonal by integrals. ``expansion`` are further densities that
    they are orthogonal to, for a background that one density does not describe. A model with given columns has
    ``variance="total"`` unless another one is passed, as its weights must be orthogonal for each value of them.

    Example: ``mf.sweights(model, data, result).data_for("signal")``
    """
    if not isinstance(result, FitResult):
        raise OptionError(
            f"sweights: result must be that of mf.fit, got {type(result).__name__}; call sweights(model, data, result)"
        )
    likelihood, events, fitted = fitted_events(model, data, result, backend)
    if variance is None and likelihood.model.given:
        variance = "total"
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
    model: Pdf | Term, data: Any, result: FitResult, backend: str | Backend
) -> tuple[Likelihood, Dataset, Flags]:
    """Return the likelihood that a result is of, all events, and which of them were fitted."""
    if not result.valid:
        raise FitError(f"sweights: the result must be valid, got one where {'; '.join(result.reasons)}")
    if isinstance(model, Term):
        likelihood = model.parts[0]
        if len(model.parts) > 1 or type(likelihood) is not Likelihood:
            raise ModelError(
                f"sweights: takes the likelihood of one sample of events, got {model!r}; fit the events of each sample,"
                " with shapes fixed"
            )
        events = likelihood.data if data is None else all_columns(likelihood.model, data)
    else:
        check_model(model)
        if data is None:
            raise DataError("sweights: a model needs data; pass those of the fit, or the likelihood")
        decided = model.choose(result.choices) if result.choices else model
        check_names(decided, result)
        events = all_columns(decided, data)
        if len(result.ranges) == 1 and dict(result.ranges[0]) != dict(decided.region()):
            decided = in_ranges(decided, result.ranges[0], result.yields_in[0])
        likelihood = Likelihood(decided, events, backend=backend)
    fitted = is_inside(events, likelihood.model.region())
    check_same(likelihood, result)
    if fitted.sum() != likelihood.events:
        raise DataError(f"sweights: data must be the {likelihood.events} events of the likelihood")
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
        inside &= np.logical_or.reduce(
            [(events[name] >= low) & (events[name] <= high) for low, high in ranges]
        )
    return inside


def check_names(model: Pdf, result: FitResult) -> None:
    """Refuse a result without a value for each parameter of a model."""
    if missing := [p.name for p in model.parameters if p.name not in result.values]:
        raise ModelError(
            f"sweights: parameter '{missing[0]}': not in the fit result; pass the result of a fit of this model"
        )


def check_same(likelihood: Likelihood, result: FitResult) -> None:
    """Refuse a result that is not one of this likelihood."""
    check_names(likelihood.model, result)
    if not likelihood.events:
        raise DataError("sweights: needs events, got none")
    nll = float(likelihood.evaluate_full(full_point(likelihood, result), 0).value[0])
    if result.events != likelihood.events:
        difference = f"events of the fit {result.events}, of the data {likelihood.events}"
    elif abs(nll - result.nll) > SAME_NLL + SAME_NLL_RELATIVE * abs(nll):
        difference = f"nll of the fit {result.nll:.3f}, of these {nll:.3f}"
    else:
        return
    raise FitError(
        f"sweights: the result must be that of a fit of this model to these data, got {difference}; weights belong"
        " into the dataset, and a fit with constraints needs its mf.Likelihood in the place of the model"
    )


def full_point(likelihood: Likelihood, result: FitResult) -> Array:
    """Return the values of a result for all parameters of a likelihood, as one set."""
    return np.array([[result.values[p.name] for p in likelihood.all_parameters]])
