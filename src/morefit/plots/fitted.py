"""Plot a fitted model over the data, with its components and a panel of pulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data import Dataset
from morefit.data.sources import is_histogram
from morefit.errors import OptionError
from morefit.likelihood import (
    BinnedLikelihood,
    HistFactoryLikelihood,
    LeastSquares,
    Likelihood,
    Simultaneous,
    TemplateLikelihood,
    Term,
)
from morefit.model import Observable, Pdf
from morefit.model.observable import Ranges
from morefit.model.pdf import check_model
from morefit.plots.canvas import (
    DATA,
    GREY,
    MODEL,
    AnyAxes,
    Plot,
    Style,
    component_styles,
    marker_size,
    place_legend,
    root,
    split_label,
    styled,
    two_panels,
)
from morefit.plots.projection import OVERSAMPLING, Projection, project, project_bins, project_channel
from morefit.targets import Backend
from morefit.validate import numbers_by_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAIN_HEIGHT = 3.6  # of the main panel, in heights of that of the pulls
FURTHEST = 5.0  # pull that the panel shows; those beyond are marked at its edge


def plot(
    model: Pdf | Simultaneous | Term,
    data: Any = None,
    observable: Observable | str | None = None,
    *,
    values: Any = None,
    bins: int | Sequence[float] | Array | None = None,
    ranges: Ranges | None = None,
    weights: ArrayLike | None = None,
    components: bool = True,
    labels: Sequence[str] | None = None,
    pulls: bool = True,
    log: bool = False,
    empty_bins: bool = False,
    blind: Any = (),
    oversampling: int = OVERSAMPLING,
    ax: AnyAxes = None,
    style: Style = None,
    backend: str | Backend = "auto",
    category: str | int | None = None,
    summed: bool = False,
) -> Any:
    """Plot data and a model in one observable, the others integrated over their ranges; nothing is shown or saved.

    A conditional model is averaged over what it is given in the data.

    A likelihood has its data: ``mf.plot(nll, "m", values=result)``, of HistFactory with the name of a channel; a sum of likelihoods gives a tuple of
    plots, one for each part. ``mf.Simultaneous`` gives plots by label, in the grid of one figure.

    Parameters
    ----------
    observable : or its name; may be left out if the model has only one.
    values : a fit result, or numbers by name; None, and parameters that are not named, stand for start values. The
        model of a fit in ranges is normalised in them, and dashed outside.
    bins : how many, or their edges; None chooses by the number of events.
    ranges : sub-ranges by name, such as ``{"ctl": (0, 1)}``: only events in them are drawn, and the model is integrated
        over them. That of the plotted observable is the range of the plot. The model is normalised to all events:
        to its yields, or to the (weighted) number in the whole dataset.
    labels : names of the components of a sum, in its order.
    pulls : draw (data - model) / error below; the error is that of the data on the side of the model.
    empty_bins : draw bins without events, with the upper end of their Poisson interval.
    blind : ranges of the plotted observable, one or a list: bins that reach into them have no data and no pull.
    oversampling : how many times finer than the data's the bins of the curve are.
    ax : axes for the main panel alone, or a pair (main, pulls); None makes a new figure.
    style : None for morefit's own, the name of one of mplhep's ("LHCb2"), or settings of matplotlib.
    category : the label of the one to plot of ``mf.Simultaneous``; ``summed=True`` plots the sum of all.
    """
    drawing = Drawing(
        bins=bins, ranges=ranges, labels=labels, pulls=pulls, oversampling=oversampling, blind=blind, ax=ax, style=style,
        backend=backend, look=Look(components, log, empty_bins),
    )  # fmt: skip
    if isinstance(model, Simultaneous):
        from morefit.plots.categories import plot_categories

        return plot_categories(drawing, model, (data, weights), observable, values, category, summed)
    if category is not None or summed:
        raise OptionError("plot: only mf.Simultaneous has categories; leave category and summed out")
    if not isinstance(model, Term):
        check_model(model)
        if is_histogram(data) and weights is None:
            return drawing.plot_part(BinnedLikelihood(model, data), observable, values)
        return drawing.plot(model, Dataset(data, model.observables, weights=weights), observable, values)
    if observable is None and isinstance(data, Observable | str):
        data, observable = None, data
    if data is not None or weights is not None:
        raise OptionError("plot: a likelihood has its data already; give no data and no weights")
    if len(model.parts) > 1 and ax is not None:
        raise OptionError("plot: ax is for one plot; a sum of likelihoods has several, so plot its parts")
    named = numbers_by_name("values", values)
    plots = tuple(drawing.plot_part(part, observable, own_values(model, part, named)) for part in model.parts)
    return plots[0] if isinstance(model, Likelihood) else plots


def own_values(term: Term, part: Likelihood, values: dict[str, float]) -> dict[str, float]:
    """Return the values of the parameters of one part; names that no part has are left to be refused."""
    own, known = {p.name for p in part.model.parameters}, {p.name for p in term.all_parameters}
    return {name: value for name, value in values.items() if name in own or name not in known}


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """How models are drawn over their data."""

    bins: int | Sequence[float] | Array | None
    ranges: Ranges | None
    labels: Sequence[str] | None
    pulls: bool
    oversampling: int
    blind: Any
    ax: AnyAxes
    style: Style
    backend: str | Backend
    look: Look
    heights: ClassVar[float] = MAIN_HEIGHT

    def plot(
        self, model: Pdf, data: Dataset, observable: Observable | str | None, values: Any
    ) -> Plot[Projection]:
        """Plot one model over its data."""
        return self.draw(self.projection(model, data, observable, values))

    def projection(
        self, model: Pdf, data: Dataset, observable: Observable | str | None, values: Any
    ) -> Projection:
        """Return a model and its data in bins."""
        return project(
            model, data, the_observable(model, observable), values=values,
            bins=self.bins, ranges=self.ranges, labels=self.labels, oversampling=self.oversampling,
            blind=self.blind, backend=self.backend,
        )  # fmt: skip

    def plot_part(
        self, part: Likelihood, observable: Observable | str | None, values: Any
    ) -> Plot[Projection]:
        """Plot the likelihood of one dataset, or of one histogram in its own bins."""
        return self.draw(self.projection_of(part, observable, values))

    def projection_of(self, part: Likelihood, observable: Observable | str | None, values: Any) -> Projection:
        """Return the model of a likelihood and its data in bins; those of a histogram are its own."""
        if isinstance(part, LeastSquares):
            raise OptionError(
                "plot: draws events and bins, got points of least squares; use matplotlib's errorbar"
            )
        if isinstance(part, HistFactoryLikelihood | TemplateLikelihood):
            channel = observable.name if isinstance(observable, Observable) else observable
            return project_channel(part, channel, values=values, oversampling=self.oversampling)
        if not isinstance(part, BinnedLikelihood):
            return self.projection(part.model, part.data, observable, values)
        if self.bins is not None or self.ranges:
            raise OptionError("plot: a binned likelihood has its bins already; give no bins and no ranges")
        return project_bins(
            part, the_observable(part.model.source, observable), values=values, labels=self.labels,
            oversampling=self.oversampling, backend=self.backend,
        )  # fmt: skip

    def draw(self, numbers: Projection) -> Plot[Projection]:
        """Draw data and curves."""
        with styled(self.style):
            main, below = two_panels("plot", self.ax, MAIN_HEIGHT, lower=self.pulls)
            names = ("Weighted events", "weighted data") if numbers.weighted else ("Events", "data")
            artists = draw_main(main, numbers, replace(self.look, events=names[0], data=names[1]))
            if below is None:
                main.set_xlabel(x_label(numbers))
                return Plot((main,), artists, numbers)
            artists |= draw_pulls(below, numbers)
            main.tick_params(axis="x", labelbottom=False)
            root(main).align_ylabels([main, below])
            return Plot((main, below), artists, numbers)


def the_observable(model: Pdf, observable: Observable | str | None) -> Observable | str:
    """Return the observable to plot: that of a model in one observable need not be named."""
    if observable is None and len(model.drawn) > 1:
        known = ", ".join(repr(o.name) for o in model.drawn)
        raise OptionError(f"plot: observable is missing; the model has {known}")
    return model.observables[0] if observable is None else observable


@dataclass(frozen=True)
class Look:
    """What is drawn in the main panel, and how it is called."""

    components: bool = True
    log: bool = False
    empty_bins: bool = False
    events: str = "Events"
    data: str = "data"
    model: str = "model"


def draw_main(ax: Axes, numbers: Projection, look: Look) -> dict[str, Any]:
    """Draw data, model and components; return the artists by name."""
    scale = heights_per_event(numbers)
    shown = np.isfinite(numbers.counts) & (look.empty_bins | (numbers.counts != 0))
    centres, counts, errors = middles(numbers.edges), numbers.counts * scale, numbers.errors * scale
    sideways = None if numbers.equal_bins else np.diff(numbers.edges)[shown] / 2
    artists: dict[str, Any] = {
        "data": ax.errorbar(
            centres[shown], counts[shown], errors[:, shown], sideways, fmt="o", color=DATA, label=look.data,
            markersize=marker_size(ax, len(centres)), elinewidth=0.9, capsize=0, zorder=4,
        )
    }  # fmt: skip
    fine = np.repeat(scale, numbers.oversampling) * numbers.oversampling
    places = np.concatenate([numbers.edges[:1], middles(numbers.curve_edges), numbers.edges[-1:]])
    curve, fitted = to_ends(numbers.curve * fine), np.pad(numbers.fitted, 1, mode="edge")
    solid = np.where(fitted, curve, np.nan)
    (artists["model"],) = ax.plot(places, solid, color=MODEL, label=look.model, zorder=3)
    if not fitted.all():
        (artists["extrapolation"],) = ax.plot(
            places, curve, color=MODEL, label="extrapolation", zorder=2.9, linestyle=(0, (2, 2))
        )
    parts = numbers.components if look.components else {}
    for (label, part), dashes in zip(parts.items(), component_styles(), strict=False):
        (artists[label],) = ax.plot(places, to_ends(part * fine), label=label, zorder=2, **dashes)
    ax.set_ylabel(y_label(numbers, look.events))
    ax.set_xlim(numbers.edges[0], numbers.edges[-1])
    set_heights(ax, counts, errors, curve, look.log)
    tops = np.concatenate([np.where(shown, counts + errors[1], np.nan), curve])
    artists["legend"] = place_legend(ax, list(artists.values()), np.concatenate([centres, places]), tops)
    return artists


def set_heights(ax: Axes, counts: Array, errors: Array, curve: Array, log: bool) -> None:
    """Choose the range of the vertical axis."""
    tops, bottoms = counts + np.where(counts != 0, errors[1], 0.0), counts - errors[0]
    top = float(np.nanmax(tops, initial=np.max(curve))) or 1.0
    if log:
        ax.set_yscale("log")
        positive = np.concatenate([counts[counts > 0], [top]])
        ax.set_ylim(0.5 * float(np.min(positive)), 2 * top)
    else:
        ax.set_ylim(min(0.0, 1.1 * float(np.nanmin(bottoms, initial=0.0))), 1.08 * top)


def draw_pulls(ax: Axes, numbers: Projection) -> dict[str, Any]:
    """Draw the panel of pulls; those that it does not reach are arrowheads at its edge."""
    centres, widths = middles(numbers.edges), np.diff(numbers.edges)
    known = np.isfinite(numbers.pulls)
    inside = np.clip(np.where(known, numbers.pulls, 0.0), -FURTHEST, FURTHEST)
    artists: dict[str, Any] = {"pulls": ax.bar(centres, inside, widths, color=GREY, linewidth=0, zorder=2)}
    beyond = known & (np.abs(numbers.pulls) > FURTHEST)
    for name, marker, which in (("above", "^", numbers.pulls > 0), ("below", "v", numbers.pulls < 0)):
        far = beyond & which
        if far.any():
            edge = np.sign(inside[far]) * 0.9 * FURTHEST
            (artists[f"pulls {name}"],) = ax.plot(
                centres[far], edge, marker, color="#c01c28", markersize=5, zorder=3
            )
    ax.axhline(0, color=DATA, linewidth=0.8, zorder=3)
    for height in (-3, 3):
        ax.axhline(height, color=DATA, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    ax.set_ylim(-FURTHEST, FURTHEST)
    ax.set_yticks([-3, 0, 3])
    ax.set_yticks([], minor=True)
    ax.set_ylabel("pull", loc="center")
    ax.set_xlabel(x_label(numbers))
    ax.set_xlim(numbers.edges[0], numbers.edges[-1])
    return artists


def heights_per_event(numbers: Projection) -> Array:
    """Return what turns numbers of events into heights: one, or densities if the bins differ in width."""
    widths = np.diff(numbers.edges)
    return np.ones(len(widths)) if numbers.equal_bins else 1 / widths


def y_label(numbers: Projection, events: str) -> str:
    """Return what the heights are, in the unit that stands in brackets behind the label of the observable."""
    name, unit = split_label(x_label(numbers))
    width = f"{float(np.mean(np.diff(numbers.edges))):.3g}"
    if numbers.equal_bins:
        return f"{events} / ({width} {unit})" if unit else f"{events} / {width}"
    return f"{events} / ({unit})" if unit else f"{events} per unit of {name}"


def x_label(numbers: Projection) -> str:
    return numbers.observable.label or numbers.observable.name


def middles(edges: Array) -> Array:
    return np.asarray((edges[:-1] + edges[1:]) / 2, np.float64)


def to_ends(heights: Array) -> Array:
    """Continue a curve from the middles of its first and last bin to their ends, straight on but not below zero."""
    if len(heights) < 2:
        return np.concatenate([heights, heights, heights])
    ends = np.array([1.5 * heights[0] - 0.5 * heights[1], 1.5 * heights[-1] - 0.5 * heights[-2]])
    ends = np.where((ends > 0) | (heights[[0, -1]] < 0), ends, heights[[0, -1]])
    return np.concatenate([ends[:1], heights, ends[1:]])
