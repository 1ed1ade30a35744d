"""Plot simultaneous models over their data: a grid of categories, one of them, their sum, or the asymmetry of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.data.dataset import Dataset, dataset_of
from morefit.data.histogram import Histogram, choose_edges, poisson_errors
from morefit.data.sources import is_histogram
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.likelihood import BinnedLikelihood
from morefit.likelihood.simultaneous import Simultaneous
from morefit.minimise import FitResult
from morefit.model import Observable, Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.region import named_observable
from morefit.plots.canvas import DATA, GREY, MODEL, AnyAxes, LegendRoom, Plot, one_panel, place_legends
from morefit.plots.components import band
from morefit.plots.fitted import Drawing, own_values, the_observable
from morefit.plots.panels import middles, x_label
from morefit.plots.projection import Projection
from morefit.plots.style import Style, styled
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences


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
        own = projected(drawing, models, label, each[label], observable, values=values)
        return drawing.draw(own, models[label].parameters, values)
    if summed:
        total = sum_of(drawing, models, each, observable, values)
        return drawing.draw(total, models.parameters, values)
    if drawing.ax is not None:
        raise OptionError("plot: ax is for one plot; choose a category or summed=True")
    numbers = {
        label: projected(drawing, models, label, own, observable, values=values)
        for label, own in each.items()
    }
    return drawing.draw_grid(numbers, {label: models[label].parameters for label in numbers}, values)


def projected(
    drawing: Drawing,
    models: Simultaneous,
    label: str,
    data: tuple[Any, Any],
    observable: Observable | str | None,
    values: Any,
) -> Projection:
    """Return the data and the model of one category in bins, at its own values."""
    model = as_fitted(models[label], values, models.labels.index(label), len(models.labels))
    chosen, (source, weights) = own_values(models.parameters, model, values), data
    try:
        if not isinstance(source, Dataset) and is_histogram(source):
            return drawing.projection_of(BinnedLikelihood(model, source), observable, chosen)
        dataset = dataset_of(source, model.observables, weights)
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
    same = in_common_bins(drawing, models, data, observable)
    each = [projected(same, models, label, own, observable, values=values) for label, own in data.items()]
    return added(each, values)


def in_common_bins(
    drawing: Drawing,
    models: Simultaneous,
    data: Mapping[str, tuple[Any, Any]],
    observable: Observable | str | None,
) -> Drawing:
    """Return how to draw several categories in the same bins, which histograms must have already."""
    if any(is_histogram(own) for own, _ in data.values()):
        return drawing
    x, *others = (
        named_observable(models[k].observables, the_observable(models[k], observable)) for k in data
    )
    check_same(all((o.low, o.high) == (x.low, x.high) for o in others))
    events = sum(len(own) for own, _ in data.values() if isinstance(own, Dataset))
    return replace(drawing, bins=choose_edges(f"observable '{x.name}'", drawing.bins, x.low, x.high, events))


def added(each: Sequence[Projection], values: Any) -> Projection:
    """Return the sum of several projections in the same bins; components of one name are added."""
    first = each[0]
    check_bins(each)
    counts, weighted = np.sum([own.counts for own in each], axis=0), any(own.weighted for own in each)
    if weighted:
        low, high = np.sqrt(np.sum([own.errors**2 for own in each], axis=0))
    else:
        low, high = poisson_errors(counts)
    expected = np.sum([own.expected for own in each], axis=0)
    slopes = sum_by_name([own.slopes for own in each])
    return replace(
        first,
        counts=counts,
        errors=np.stack([low, high]),
        expected=expected,
        pulls=Histogram(first.edges, counts, low, high).pulls(expected),
        curve=np.sum([own.curve for own in each], axis=0),
        components=sum_by_name([own.components for own in each]),
        fitted=np.logical_and.reduce([own.fitted for own in each]),
        weighted=weighted,
        slopes=slopes,
        band=band(slopes, values),
        floating=tuple(dict.fromkeys(name for own in each for name in own.floating)),
        normalised=all(own.normalised for own in each),
    )


def sum_by_name(each: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Add arrays of the same name."""
    names = dict.fromkeys(name for own in each for name in own)
    return {name: np.sum([own[name] for own in each if name in own], axis=0) for name in names}


def check_bins(each: Sequence[Projection]) -> None:
    """Refuse to combine categories whose bins differ."""
    check_same(all(np.array_equal(own.curve_edges, each[0].curve_edges) for own in each))


def check_same(same: bool) -> None:
    if not same:
        raise OptionError(
            "plot: categories that are combined need the same range and the same bins; draw them one by one"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Asymmetry(Frozen):
    """(a - b) / (a + b) of two categories in bins of an observable; nan in bins without events."""

    edges: Array  # (N + 1,)
    values: Array  # (N,)
    errors: Array  # (N,)
    curve_edges: Array  # of finer bins
    curve: Array  # of the models


@in_sentences
def asymmetry(
    models: Simultaneous,
    data: Any,
    labels: Sequence[str | int],
    observable: Observable | str | None = None,
    *,
    values: Any = None,
    bins: int | Sequence[float] | Array | None = None,
    weights: Any = None,
    ax: AnyAxes = None,
    style: Style = None,
    backend: str | Backend = "auto",
) -> Plot[Asymmetry]:
    """Plot the asymmetry (a - b) / (a + b) of the events of two labels a and b, and that of their models.

    The other arguments are those of ``plot``.
    """
    if not isinstance(models, Simultaneous):
        raise ModelError(
            f"asymmetry: takes mf.Simultaneous, whose labels are compared, got {type(models).__name__}"
        )
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise OptionError(f"asymmetry: labels must be two, got {labels!r}")
    drawing = Drawing(bins=bins, ax=ax, style=style, backend=backend)
    each = models.split(data, weights)
    pair = {label: each[label] for label in map(models.known, labels)}
    if len(pair) < 2:
        raise OptionError(f"asymmetry: labels must differ, got {labels!r}")
    same = in_common_bins(drawing, models, pair, observable)
    a, b = (projected(same, models, label, own, observable, values=values) for label, own in pair.items())
    check_bins([a, b])
    numbers = asymmetry_of(a, b)
    with styled(style):
        main = one_panel("asymmetry", ax)
        known, centres = np.isfinite(numbers.values), middles(numbers.edges)
        artists: dict[str, Any] = {
            "data": main.errorbar(
                centres[known],
                numbers.values[known],
                numbers.errors[known],
                fmt="o",
                color=DATA,
                label="data",
            )
        }
        (artists["model"],) = main.plot(
            middles(numbers.curve_edges), numbers.curve, color=MODEL, label="model"
        )
        main.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        first, second = pair
        main.set_ylabel(f"asymmetry of {first} and {second}")
        main.set_xlabel(x_label(a))
        main.set_xlim(numbers.edges[0], numbers.edges[-1])
        places = np.concatenate([centres[known], middles(numbers.curve_edges)])
        tops = np.concatenate([(numbers.values + numbers.errors)[known], numbers.curve])
        (artists["legend"],) = place_legends([LegendRoom(main, list(artists.values()), places, tops)])
    return Plot((main,), artists, numbers)


def asymmetry_of(a: Projection, b: Projection) -> Asymmetry:
    """Return the asymmetry of two categories with its errors, by the variances of both counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total = a.counts + b.counts
        variances = [own.errors[0] ** 2 if own.weighted else own.counts for own in (a, b)]
        errors = 2 * np.sqrt(b.counts**2 * variances[0] + a.counts**2 * variances[1]) / total**2
        curve = (a.curve - b.curve) / (a.curve + b.curve)
        return Asymmetry(a.edges, (a.counts - b.counts) / total, errors, a.curve_edges, curve)
