"""Plot data and a model in bins of two observables, side by side with their pulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Frozen
from morefit.data.dataset import Dataset
from morefit.data.histogram import Histogram, choose_edges, poisson_errors
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.likelihood.evaluate import checked_ranges, values_of
from morefit.model import Observable, Pdf
from morefit.model.evaluation import Values
from morefit.model.observable import Ranges
from morefit.model.region import named_observable
from morefit.plots.canvas import AnyAxes, Plot, drawable, is_axes
from morefit.plots.panels import FURTHEST
from morefit.plots.projection import as_fitted, at_start, cut, total
from morefit.plots.style import Style, load_pyplot, styled
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = (10, 20, 25, 40, 50)  # of bins of each observable
WIDTH = 2.4  # of the three panels together, in widths of a figure
Edges = int | Sequence[float] | Array | None


@dataclass(frozen=True, eq=False, repr=False)
class Plane(Frozen):
    """Numbers of events in bins of two observables: those of the data, those expected, and pulls."""

    x: Observable
    y: Observable
    x_edges: Array  # (X + 1,)
    y_edges: Array  # (Y + 1,)
    counts: Array  # (X, Y)
    expected: Array  # (X, Y)
    pulls: Array  # (X, Y)


@in_sentences
def plane(
    model: Pdf,
    data: Any,
    x: Observable | str,
    y: Observable | str,
    *,
    values: Values = None,
    bins: int | tuple[Edges, Edges] | None = None,
    ranges: Ranges | None = None,
    weights: ArrayLike | None = None,
    log: bool = False,
    ax: AnyAxes = None,
    style: Style = None,
    backend: str | Backend = "auto",
) -> Plot[Plane]:
    """Plot data, model and pulls in two observables, the others integrated over their ranges.

    Parameters
    ----------
    bins : how many of each observable, or those of x and y: numbers or edges.
    log : whether the colours of data and model are on a logarithmic scale.
    ax : three axes, for data, model and pulls; None makes a new figure.

    The other arguments are those of ``plot``.
    """
    numbers = project_plane(
        model, data, (x, y), values=values, bins=bins, ranges=ranges, weights=weights, backend=backend
    )
    with styled(style):
        panels = three_panels(ax)
        top = float(max(numbers.counts.max(), numbers.expected.max())) or 1.0
        known = numbers.counts[numbers.counts > 0]
        low = float(known.min()) if log and known.size else float(min(numbers.counts.min(), 0.0))
        scale = {"norm": "log" if log else "linear", "vmin": low, "vmax": top, "cmap": "viridis"}
        signed = {"vmin": -FURTHEST, "vmax": FURTHEST, "cmap": "RdBu_r"}
        model_name = "model at start values" if at_start(values, model.parameters) else "model"
        images = {
            "data": draw(panels[0], numbers, numbers.counts, "data", scale),
            "model": draw(panels[1], numbers, numbers.expected, model_name, scale),
            "pulls": draw(panels[2], numbers, numbers.pulls, "pull", signed),
        }
        return Plot(panels, images, numbers)


def draw(ax: Axes, numbers: Plane, heights: Array, title: str, settings: dict[str, Any]) -> Any:
    """Draw a map of colours."""
    heights = np.where(heights > 0, heights, np.nan) if settings.get("norm") == "log" else heights
    image = ax.pcolormesh(numbers.x_edges, numbers.y_edges, heights.T, rasterized=True, **settings)
    ax.figure.colorbar(image, ax=ax)
    ax.set_title(title)
    ax.locator_params(nbins=5)
    ax.set_xlabel(drawable(numbers.x.label or numbers.x.name))
    ax.set_ylabel(drawable(numbers.y.label or numbers.y.name))
    return image


def three_panels(ax: AnyAxes) -> tuple[Axes, ...]:
    """Return axes for data, model and pulls."""
    if ax is None:
        plt = load_pyplot()
        width, height = plt.rcParams["figure.figsize"]
        figure = plt.figure(layout="constrained", figsize=(WIDTH * width, height))
        return tuple(figure.subplots(1, 3))
    panels = tuple(ax) if isinstance(ax, (tuple, list, np.ndarray)) else ()
    if len(panels) != 3 or not all(map(is_axes, panels)):
        raise OptionError("plots.plane: ax must be three Axes of matplotlib, for data, model and pulls")
    return panels


def project_plane(
    model: Pdf,
    data: Any,
    observables: tuple[Observable | str, Observable | str],
    *,
    values: Values,
    bins: int | tuple[Edges, Edges] | None,
    ranges: Ranges | None,
    weights: ArrayLike | None,
    backend: str | Backend,
) -> Plane:
    """Count events and integrate a model in bins of two observables."""
    known, place = values_of(model, values), choose_backend(backend)
    x, y = (named_observable(model.observables, one) for one in observables)
    if x is y:
        raise OptionError(f"plots.plane: needs two observables, got '{x.name}' twice")
    if model.given or as_fitted(model, values).region():
        raise OptionError(
            "plots.plane: draws densities in their whole ranges, got a conditional one or one in ranges; use mf.plot"
        )
    box = checked_ranges(model, ranges or {})
    dataset = Dataset(data, model.observables, weights=weights)
    chosen = cut(dataset, box)
    pair = bins if isinstance(bins, tuple) else (bins, bins)
    if len(pair) != 2:
        raise OptionError(f"plots.plane: bins must be a number or those of x and y, got {len(pair)}")
    wanted = len(chosen) ** 0.25
    default = min(NUMBERS, key=lambda n: abs(n - 2 * wanted))
    edges = [
        choose_edges(f"observable '{o.name}'", default if n is None else n, *box.get(o.name, (o.low, o.high)), len(chosen))
        for o, n in zip((x, y), pair, strict=True)
    ]  # fmt: skip
    rest = {name: ends for name, ends in box.items() if name not in (x.name, y.name)}
    columns = []
    for low, high in zip(edges[1][:-1], edges[1][1:], strict=True):
        inside = Bins(x, edges[0], {**rest, y.name: (float(low), float(high))})
        columns.append(bin_probabilities([model], model.parameters, known, inside, place)[0])
    expected = total(model, known, dataset) * np.stack(columns, axis=1)
    counts = np.histogram2d(chosen[x.name], chosen[y.name], edges, weights=chosen.weights)[0]
    if chosen.weights is None:
        low_errors, high_errors = poisson_errors(counts)
    else:
        squares = np.histogram2d(chosen[x.name], chosen[y.name], edges, weights=chosen.weights**2)[0]
        low_errors = high_errors = np.sqrt(squares)
    flat = Histogram(np.arange(counts.size + 1.0), counts.ravel(), low_errors.ravel(), high_errors.ravel())
    pulls = flat.pulls(expected.ravel()).reshape(counts.shape)
    return Plane(x=x, y=y, x_edges=edges[0], y_edges=edges[1], counts=counts, expected=expected, pulls=pulls)
