"""Plot a fitted model over the data, with its components and a panel of pulls, residuals or ratios."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data.dataset import Dataset, dataset_of
from morefit.data.sources import is_histogram
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.intervals import GoodnessOfFit
from morefit.likelihood import (
    BinnedLikelihood,
    HistFactoryLikelihood,
    LeastSquares,
    Likelihood,
    Simultaneous,
    TemplateLikelihood,
    Term,
)
from morefit.minimise import FitResult
from morefit.minimise.text import latex_cell
from morefit.model import Observable, Parameter, Pdf
from morefit.model.observable import Ranges
from morefit.model.parts import check_model
from morefit.plots.canvas import AnyAxes, Panels, Plot, label_of, panel_grid, place_legends, root, two_panels
from morefit.plots.panels import Look, Lower, draw_lower, draw_main, x_label
from morefit.plots.projection import OVERSAMPLING, Projection, project, project_bins, project_channel
from morefit.plots.style import Style, styled
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.text.suggest import suggest
from morefit.validate import name_of, numbers_by_name

OF_WEIGHTS = ("sumw2", "sandwich", "sweights")  # errors that only fits with weights have
MAIN_HEIGHT = 3.6  # of the main panel, in heights of the lower one
MAX_LISTED = 12  # parameters below the legend
LOOK = Look()
Contents = tuple[Panels, Projection, Sequence[Parameter]]  # of one plot: axes, numbers, parameters


@in_sentences
def plot(
    model: Pdf | Simultaneous | Term,
    data: Any = None,
    observable: Observable | str | None = None,
    *,
    values: Any = None,
    bins: int | Sequence[float] | Array | None = None,
    ranges: Ranges | None = None,
    weights: ArrayLike | None = None,
    components: bool | Literal["stacked"] = True,
    nested: bool = False,
    labels: Sequence[str] | None = None,
    band: bool = False,
    lower: Lower | None = "pulls",
    box: bool | str | Parameter | Sequence[str | Parameter] = (),
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

    A conditional model is averaged over what it is given in the data. A likelihood has its data: ``mf.plot(nll, "m",
    values=result)``, of HistFactory with the name of a channel; a sum of likelihoods gives a tuple of plots, one for each
    part. ``mf.Simultaneous`` gives plots by label, in the grid of one figure. Least squares are points and the function.

    Parameters
    ----------
    observable : or its name; may be left out if the model has only one.
    values : a fit result, or numbers by name; others are start values. Outside the ranges of the fit the model is dashed.
    bins : how many, or their edges; None chooses by the number of events.
    ranges : sub-ranges by name, such as ``{"ctl": (0, 1)}``, of events and model, which is normalised to all events: to
        its yields, or to the (weighted) number in the whole dataset. That of the observable is the range of the plot.
    weights : of the events, if the data have none of their own.
    components : draw those of a sum as lines, or "stacked" on each other, the last one lowest.
    nested : draw the components of components in the place of these.
    labels : names of the components that are drawn, in the order of the model.
    band : shade one standard deviation of the model, by the covariance of the fit.
    lower : what is drawn below: "pulls", "residuals" (data - model), "ratio" (data / model), or None.
    box : lines below the legend: "chi2" and parameters; True for the chi-square and all fitted parameters.
    log : draw the axis of the counts logarithmically.
    empty_bins : draw bins without events, with the upper end of their Poisson interval.
    blind : ranges of the plotted observable, one or a list, or by its name: bins that reach into them have no data and no pull.
    oversampling : how many times finer than the data's the bins of the curve are.
    ax : axes for the main panel alone, or a pair (main, lower); None makes a new figure.
    style : None for morefit's own, the name of one of mplhep's ("LHCb2"), or settings of matplotlib.
    category : the label of the one to plot of ``mf.Simultaneous``; ``summed=True`` plots the sum of all.

    Example: ``mf.plot(model, data, m, values=result)``
    """
    drawing = Drawing(
        bins=bins, ranges=ranges, labels=labels, nested=nested, band=band, lower=lower, blind=blind, oversampling=oversampling,
        ax=ax, style=style, backend=backend, look=Look(components, log, empty_bins), box=[box] if isinstance(box, Parameter) else box,
    )  # fmt: skip
    return plot_any(drawing, model, (data, weights), observable, values, chosen=(category, summed))


def check_switches(**switches: object) -> None:
    """Refuse what is not True or False: a number would be read as True."""
    for name, value in switches.items():
        if not isinstance(value, bool | np.bool_):
            raise OptionError(f"plot: {name} must be True or False, got {value!r}")


def plot_any(
    drawing: Drawing,
    model: Any,
    source: tuple[Any, Any],
    observable: Any,
    values: Any,
    chosen: tuple[str | int | None, bool],
) -> Any:
    """Plot a model over its data and their weights, the chosen categories, or every part of a likelihood over its own."""
    look = drawing.look
    check_switches(
        nested=drawing.nested, band=drawing.band, log=look.log, empty_bins=look.empty_bins, summed=chosen[1]
    )
    if isinstance(model, Simultaneous):
        from morefit.plots.categories import plot_categories

        return plot_categories(drawing, model, source, observable, values, *chosen)
    if chosen != (None, False):
        raise OptionError("plot: only mf.Simultaneous has categories; leave category and summed out")
    data, weights = source
    if not isinstance(model, Term):
        if not isinstance(model, Pdf):
            kind = type(model).__name__
            raise OptionError(
                f"plot: takes a model and its data, or a likelihood, got {kind}; write mf.plot(model, data, values=result)"
            )
        check_model(model)
        if data is None:
            raise OptionError(
                "plot: a model needs data; write mf.plot(model, data, values=result), and for the curve alone"
                " plt.plot(x, model.pdf(x, values))"
            )
        if is_histogram(data) and weights is None:
            return drawing.plot_part(BinnedLikelihood(model, data), observable, values)
        dataset = dataset_of(data, model.observables, weights)
        if isinstance(values, FitResult) and values.errors_from in OF_WEIGHTS and not dataset.weighted:
            warnings.warn("plot: the fit had weights, and these data have none; pass weights=", stacklevel=4)
        return drawing.plot(model, dataset, observable, values)
    if observable is None and isinstance(data, Observable | str):
        data, observable = None, data
    if data is not None or weights is not None:
        raise OptionError("plot: a likelihood has its data already; give no data and no weights")
    if len(model.parts) > 1 and drawing.ax is not None:
        raise OptionError("plot: ax is for one plot; a sum of likelihoods has several, so plot its parts")
    known = model.all_parameters
    plots = tuple(
        drawing.plot_part(part, observable, own_values(known, part.model, values)) for part in model.parts
    )
    return plots[0] if isinstance(model, Likelihood) else plots


def own_values(parameters: Sequence[Parameter], model: Pdf, values: Any) -> Any:
    """Return the values of a model that has some of the parameters; names that nothing has are left to be refused."""
    if values is None or isinstance(values, FitResult):
        return values
    own, known = {p.name for p in model.parameters}, {p.name for p in parameters}
    named = numbers_by_name("values", values)
    return {name: value for name, value in named.items() if name in own or name not in known}


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """How models are drawn over their data."""

    bins: int | Sequence[float] | Array | None = None
    ranges: Ranges | None = None
    labels: Sequence[str] | None = None
    nested: bool = False
    band: bool = False
    lower: Lower | None = None
    box: bool | str | Sequence[str | Parameter] = ()
    oversampling: int = OVERSAMPLING
    blind: Any = ()
    ax: AnyAxes = None
    style: Style = None
    backend: str | Backend = "auto"
    look: Look = LOOK

    def __post_init__(self) -> None:
        if self.lower not in (*get_args(Lower), None):
            raise OptionError(
                f"plot: lower must be 'pulls', 'residuals', 'ratio' or None, got {self.lower!r}"
            )
        if self.look.components not in (True, False, "stacked"):
            raise OptionError(
                f"plot: components must be True, False or 'stacked', got {self.look.components!r}"
            )
        if not isinstance(self.box, bool | str | tuple | list):
            raise OptionError(f"plot: box must be True, 'chi2' or a list of names, got {self.box!r}")

    def plot(
        self, model: Pdf, data: Dataset, observable: Observable | str | None, values: Any
    ) -> Plot[Projection]:
        """Plot one model over its data."""
        return self.draw(self.projection(model, data, observable, values), model.parameters, values)

    def projection(
        self, model: Pdf, data: Dataset, observable: Observable | str | None, values: Any
    ) -> Projection:
        """Return a model and its data in bins."""
        return project(
            model, data, the_observable(model, observable), values=values,
            bins=self.bins, ranges=self.ranges, labels=self.labels, nested=self.nested, band=self.band,
            oversampling=self.oversampling, blind=self.blind, backend=self.backend,
        )  # fmt: skip

    def plot_part(self, part: Likelihood, observable: Observable | str | None, values: Any) -> Any:
        """Plot the likelihood of one dataset, of one histogram in its own bins, of points, or of channels by name."""
        if isinstance(part, LeastSquares):
            from morefit.plots.points import plot_points

            return plot_points(self, part, values)
        if isinstance(part, HistFactoryLikelihood) and observable is None and len(part.channels) > 1:
            channels = {name: self.projection_of(part, name, values) for name in part.channels}
            return self.draw_grid(channels, dict.fromkeys(channels, part.model.parameters), values)
        return self.draw(self.projection_of(part, observable, values), part.model.parameters, values)

    def projection_of(self, part: Likelihood, observable: Observable | str | None, values: Any) -> Projection:
        """Return the model of a likelihood and its data in bins; those of a histogram are its own."""
        if isinstance(part, HistFactoryLikelihood | TemplateLikelihood):
            channel = observable.name if isinstance(observable, Observable) else observable
            return project_channel(
                part, channel, values=values, oversampling=self.oversampling, band=self.band
            )
        if not isinstance(part, BinnedLikelihood):
            return self.projection(part.model, part.data, observable, values)
        if self.bins is not None or self.ranges:
            raise OptionError("plot: a binned likelihood has its bins already; give no bins and no ranges")
        return project_bins(
            part, the_observable(part.model.source, observable), values=values, labels=self.labels,
            nested=self.nested, band=self.band, oversampling=self.oversampling, blind=self.blind, backend=self.backend,
        )  # fmt: skip

    def draw(self, numbers: Projection, parameters: Sequence[Parameter], values: Any) -> Plot[Projection]:
        """Draw data and curves."""
        with styled(self.style):
            panels = two_panels("plot", self.ax, MAIN_HEIGHT, lower=self.lower is not None)
            return self.draw_all([(panels, numbers, parameters)], values)[0]

    def draw_grid(
        self, numbers: Mapping[str, Projection], parameters: Mapping[str, Sequence[Parameter]], values: Any
    ) -> dict[str, Plot[Projection]]:
        """Draw several plots by name, in a grid."""
        if self.ax is not None:
            raise OptionError(f"plot: ax is for one plot; choose one of {', '.join(map(repr, numbers))}")
        with styled(self.style):
            panels = panel_grid(len(numbers), MAIN_HEIGHT, lower=self.lower is not None)
            for name, (main, _) in zip(numbers, panels, strict=True):
                main.set_title(name)
            contents = [
                (axes, numbers[name], parameters[name]) for axes, name in zip(panels, numbers, strict=True)
            ]
            return dict(zip(numbers, self.draw_all(contents, values), strict=True))

    def draw_all(self, each: Sequence[Contents], values: Any) -> list[Plot[Projection]]:
        """Draw data and curves of several plots, in panels of one figure."""
        order = tuple(dict.fromkeys(name for _, numbers, _ in each for name in numbers.components))
        drawn = [
            draw_main(panels[0], numbers, replace(self.look_of(numbers, parameters, values), order=order))
            for panels, numbers, parameters in each
        ]
        legends = place_legends([room for _, room in drawn])
        return [
            self.complete(panels, numbers, {**artists, "legend": legend})
            for (panels, numbers, _), (artists, _), legend in zip(each, drawn, legends, strict=True)
        ]

    def look_of(self, numbers: Projection, parameters: Sequence[Parameter], values: Any) -> Look:
        """Return what the main panel shows."""
        names = ("Weighted events", "weighted data") if numbers.weighted else ("Events", "data")
        lines = box_lines(self.box, parameters, values, numbers.chi2 if self.box else None)
        return replace(self.look, events=names[0], data=names[1], box=lines)

    def complete(self, panels: Panels, numbers: Projection, artists: dict[str, Any]) -> Plot[Projection]:
        """Draw the lower panel, if there is one, below a main one that is finished."""
        main, below = panels
        if below is None:
            main.set_xlabel(x_label(numbers))
            return Plot((main,), artists, numbers)
        artists |= draw_lower(below, numbers, self.lower or "pulls")
        main.tick_params(axis="x", labelbottom=False)
        root(main).align_ylabels([main, below])
        return Plot((main, below), artists, numbers)


def box_lines(
    wanted: bool | str | Sequence[str | Parameter],
    parameters: Sequence[Parameter],
    values: Any,
    chi2: GoodnessOfFit | None,
) -> tuple[str, ...]:
    """Return what is written below the legend: the chi-square, and parameters with their errors."""
    if chi2 is None:
        return ()
    labels = {p.name: p.label for p in parameters}
    fit = values if isinstance(values, FitResult) else None
    floating = [name for name in labels if fit and name in fit.floating]
    some = ["chi2", *floating] if wanted is True else [wanted] if isinstance(wanted, str) else wanted or ()
    names = [name_of(one) for one in some]
    if unknown := [name for name in names if name != "chi2" and name not in labels]:
        raise OptionError(
            f"plot: box names {unknown[0]!r}, which is no parameter; {suggest(unknown[0], ['chi2', *labels])}"
        )
    if fit is None and names != ["chi2"]:
        raise OptionError(
            "plot: box with parameters needs the result of a fit; pass values=result, or box='chi2'"
        )
    lines = [rf"$\chi^2/\mathrm{{ndf}} = {chi2.statistic:.1f}/{chi2.ndf}$"] * ("chi2" in names)
    named = [name for name in names if name != "chi2"]
    lines += [f"{label_of(n, labels)} = {latex_cell(fit, n)}" for n in named[:MAX_LISTED] if fit]
    return tuple([*lines, f"and {len(named) - MAX_LISTED} more"] if len(named) > MAX_LISTED else lines)


def the_observable(model: Pdf, observable: Observable | str | None) -> Observable | str:
    """Return the observable to plot: that of a model in one observable need not be named."""
    if observable is None and len(model.drawn) > 1:
        known = ", ".join(repr(o.name) for o in model.drawn)
        raise OptionError(f"plot: observable is missing; the model has {known}")
    return model.observables[0] if observable is None else observable
