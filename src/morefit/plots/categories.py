"""Plot simultaneous models over their data: a grid with one plot for each category, one of them, or their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.data import Dataset
from morefit.data.histogram import Histogram, choose_edges, poisson_errors
from morefit.data.sources import is_histogram
from morefit.errors import DataError, OptionError
from morefit.likelihood import BinnedLikelihood
from morefit.likelihood.simultaneous import Simultaneous
from morefit.minimise import FitResult
from morefit.model import Observable, Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.region import named_observable
from morefit.plots.canvas import panel_grid, styled
from morefit.plots.projection import Projection
from morefit.validate import numbers_by_name

if TYPE_CHECKING:
    from morefit.plots.fitted import Drawing


def plot_categories(
    drawing: Drawing,
    models: Simultaneous,
    data: tuple[Any, Any],
    observable: Observable | str | None,
    values: Any,
    category: str | int | None,
    summed: bool,
) -> Any:
    """Return plots by label, in a grid; or that of one label or of the sum."""
    each = models.split(*data)
    if category is not None:
        if summed:
            raise OptionError("plot: draws one category or the sum of all; leave category or summed out")
        label = models.known(category)
        return drawing.draw(projected(drawing, models, label, each[label], observable, values))
    if summed:
        return drawing.draw(sum_of(drawing, models, each, observable, values))
    if drawing.ax is not None:
        raise OptionError("plot: ax is for one plot; choose a category or summed=True")
    numbers = {
        label: projected(drawing, models, label, own, observable, values) for label, own in each.items()
    }
    with styled(drawing.style):
        panels = panel_grid(len(numbers), drawing.heights, lower=drawing.pulls)
        plots = {}
        for (label, own), ax in zip(numbers.items(), panels, strict=True):
            plots[label] = replace(drawing, ax=ax).draw(own)
            plots[label].axes[0].set_title(label)
    return plots


def projected(
    drawing: Drawing,
    models: Simultaneous,
    label: str,
    data: tuple[Any, Any],
    observable: Observable | str | None,
    values: Any,
) -> Projection:
    """Return the data and the model of one category in bins, at its own values."""
    named = numbers_by_name("values", values)
    known, model = {p.name for p in models.parameters}, models[label]
    own = {p.name for p in model.parameters}
    chosen = {name: value for name, value in named.items() if name in own or name not in known}
    model = as_fitted(model, values, models.labels.index(label), len(models.labels))
    source, weights = data
    try:
        if not isinstance(source, Dataset) and is_histogram(source):
            return drawing.projection_of(BinnedLikelihood(model, source), observable, chosen)
        dataset = Dataset(source, model.observables, weights=weights)
        return drawing.projection(model, dataset, observable, chosen)
    except DataError as error:
        raise DataError(f"category '{label}': {error}") from None


def as_fitted(model: Pdf, values: Any, place: int, count: int) -> Pdf:
    """Return the model of one category in the ranges of the fit."""
    if not isinstance(values, FitResult) or len(values.ranges) != count:
        return model
    return in_ranges(model, values.ranges[place] or None, values.yields_in[place])


def sum_of(
    drawing: Drawing,
    models: Simultaneous,
    data: Mapping[str, tuple[Any, Any]],
    observable: Observable | str | None,
    values: Any,
) -> Projection:
    """Return the sum over categories, in bins that all of them have."""
    events = sum(len(own) for own, _ in data.values() if isinstance(own, Dataset))
    first = models[models.labels[0]].observables
    x = named_observable(first, first[0] if observable is None else observable)
    edges = choose_edges(f"observable '{x.name}'", drawing.bins, x.low, x.high, events)
    same = drawing if any(is_histogram(own) for own, _ in data.values()) else replace(drawing, bins=edges)
    return added([projected(same, models, label, own, observable, values) for label, own in data.items()])


def added(each: Sequence[Projection]) -> Projection:
    """Return the sum of several projections in the same bins; components of one name are added."""
    first = each[0]
    if not all(np.array_equal(own.curve_edges, first.curve_edges) for own in each):
        raise OptionError("plot: a sum of categories needs the same bins in all; give ranges or bins")
    counts, weighted = np.sum([own.counts for own in each], axis=0), any(own.weighted for own in each)
    if weighted:
        low, high = np.sqrt(np.sum([own.errors**2 for own in each], axis=0))
    else:
        low, high = poisson_errors(counts)
    expected = np.sum([own.expected for own in each], axis=0)
    names = dict.fromkeys(name for own in each for name in own.components)
    nothing = np.zeros_like(first.curve)
    return replace(
        first,
        counts=counts,
        errors=np.stack([low, high]),
        expected=expected,
        pulls=Histogram(first.edges, counts, low, high).pulls(expected),
        curve=np.sum([own.curve for own in each], axis=0),
        components={
            name: np.sum([own.components.get(name, nothing) for own in each], axis=0) for name in names
        },
        fitted=np.logical_and.reduce([own.fitted for own in each]),
        weighted=weighted,
    )
