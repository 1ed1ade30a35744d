"""Axes to draw on, legends with room above the data, and what plots return."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.model import Pdf
from morefit.plots.style import load_pyplot
from morefit.records.fields import ByName
from morefit.text import elsewhere
from morefit.text.arguments import methods_in_sentences, no_attribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.legend import Legend

Numbers = TypeVar("Numbers")
Labels = Pdf | Mapping[str, str] | None  # of parameters: those of a model, or texts by name
AnyAxes = Any  # matplotlib's Axes, or a pair of them
Panels = tuple[Any, Any]  # Axes, and those below them or None

DATA, MODEL, GREY = "black", "#1a5fb4", "0.55"
COLOURS = ("#c01c28", "#26a269", "#e66100", "#813d9c", "#0f8f9f", "#986a44")  # of components
DASHES = ((0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1.5, 2)), (0, (1.2, 1.2)))
# backends of matplotlib without a screen
ONLY_FILES = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
SPARE = 0.04  # of the height of axes, between a legend and what is below it
LOWEST = 0.3  # end of a legend; one that is lower gets two columns, and then smaller text
SCALES = (1.0, 0.8, 0.65)  # of the text of a legend in two columns


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Plot(Generic[Numbers]):
    """What was drawn: the axes from top to bottom, the artists by name, and the numbers shown."""

    axes: tuple[Axes, ...]
    artists: Mapping[str, Any]
    numbers: Numbers

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return no_attribute(self, name, elsewhere.FIGURE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "artists", ByName(dict(self.artists)))

    @property
    def figure(self) -> Figure:
        """The figure that the axes are in; ``figure.savefig(path)`` writes it."""
        return root(self.axes[0])

    def __repr__(self) -> str:
        panels = "1 panel" if len(self.axes) == 1 else f"{len(self.axes)} panels"
        return f"Plot: {panels} with {', '.join(self.artists)}; figure.savefig('plot.pdf') writes it"

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook; None where matplotlib shows the figure itself."""
        if is_shown_anyway(self.figure):
            return None
        picture = BytesIO()
        self.figure.savefig(picture, format="png", dpi=self.figure.dpi)
        return picture.getvalue()


@dataclass(frozen=True, eq=False)
class LegendRoom:
    """Axes that get a legend, its entries, and what it must not hide: the heights ``tops`` at ``x``."""

    ax: Axes
    handles: Sequence[Any]
    x: Array
    tops: Array

    def add(self, *, columns: int = 1, scale: float = 1.0) -> Legend:
        """Put a legend into the upper corner with more room; its text has a part of the size of the style."""
        middle = sum(self.ax.get_xlim()) / 2
        left, right = (
            np.nanmax(self.tops[side], initial=-np.inf) for side in (self.x < middle, self.x >= middle)
        )
        look: dict[str, Any] = {"loc": "upper left" if left < right else "upper right", "ncols": columns}
        legend = self.ax.legend(handles=self.handles, **look)
        if scale < 1:
            size = scale * legend.prop.get_size_in_points()
            legend = self.ax.legend(handles=self.handles, fontsize=size, **look)
        legend.set_in_layout(False)  # one that is higher than the axes would make them smaller
        return legend

    def is_low(self, legend: Legend) -> bool:
        """Return whether a legend leaves too little room below it, or is wider than the axes."""
        box = legend.get_window_extent().transformed(self.ax.transAxes.inverted())
        return bool(box.y0 <= LOWEST or box.x0 < 0 or box.x1 > 1)

    def make(self, legend: Legend) -> None:
        """Raise the axis until everything is below the legend."""
        ax, box = self.ax, legend.get_window_extent()
        corners = box.transformed(ax.transData.inverted())
        covered = (self.x >= corners.x0) & (self.x <= corners.x1) & np.isfinite(self.tops)
        if covered.any():
            to, back = (np.log, np.exp) if ax.get_yscale() == "log" else (np.asarray, np.asarray)
            low, high = (float(to(end)) for end in ax.get_ylim())
            share = float(box.transformed(ax.transAxes.inverted()).y0) - SPARE
            needed = low + (float(to(np.max(self.tops[covered]))) - low) / max(share, 0.2)
            ax.set_ylim(top=float(back(max(high, needed))))


def is_shown_anyway(figure: Figure) -> bool:
    """Return whether matplotlib will show a figure, at the end of a cell or in a window of its own."""
    from matplotlib._pylab_helpers import Gcf  # the figures that pyplot has not closed

    plt = load_pyplot()
    open_figures = [manager.canvas.figure for manager in Gcf.get_all_fig_managers()]
    shows = plt.isinteractive() and plt.get_backend().lower() not in ONLY_FILES  # not after plt.ioff()
    return shows and any(one is figure for one in open_figures)


def root(ax: Axes) -> Figure:
    """Return the whole figure, also of axes in a part of one."""
    return ax.figure.figure


def check_made(name: str, thing: object, kind: type, made_by: str) -> None:
    """Refuse to plot anything but the result of a function."""
    if not isinstance(thing, kind):
        raise OptionError(f"plots.{name}: takes what {made_by} returns, got {type(thing).__name__}")


def one_panel(what: str, ax: AnyAxes) -> Axes:
    """Return axes to draw on: those passed, or the only ones of a new figure."""
    if ax is None:
        return plain(load_pyplot().figure(layout="constrained").add_subplot())
    if not is_axes(ax):
        raise OptionError(f"{what}: ax must be the Axes of matplotlib, got {type(ax).__name__}")
    return cast("Axes", ax)


def two_panels(what: str, ax: AnyAxes, ratio: float, *, lower: bool) -> Panels:
    """Return axes to draw on and others below them: a pair, one without another, or those of a new figure."""
    if ax is None and lower:
        figure = load_pyplot().figure(layout="constrained")
        figure.get_layout_engine().set(h_pad=0.03, hspace=0.0)
        main, below = figure.subplots(2, 1, sharex=True, height_ratios=(ratio, 1))
        return plain(main), plain(below)
    if ax is None or is_axes(ax):
        return one_panel(what, ax), None
    pair = tuple(ax) if isinstance(ax, (tuple, list, np.ndarray)) else ()
    if len(pair) != 2 or not all(map(is_axes, pair)):
        kinds = ", ".join(type(a).__name__ for a in pair) or type(ax).__name__
        raise OptionError(f"{what}: ax must be Axes or a pair (main, lower) of them, got {kinds}")
    return pair


def panel_grid(count: int, ratio: float, *, lower: bool) -> list[Panels]:
    """Return axes for several plots in one new figure, row by row."""
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    plt = load_pyplot()
    width, height = plt.rcParams["figure.figsize"]
    figure = plt.figure(layout="constrained", figsize=(width * columns, height * rows))
    cells = figure.subfigures(rows, columns, squeeze=False).ravel()[:count]
    if lower:
        pairs = [cell.subplots(2, 1, sharex=True, height_ratios=(ratio, 1)) for cell in cells]
        return [(plain(main), plain(below)) for main, below in pairs]
    return [(plain(cell.subplots()), None) for cell in cells]


def plain(ax: Axes) -> Axes:
    """Return new axes whose numbers are plain text: as mathematics they take a fifth of the time of a plot."""
    from morefit.plots.ticks import TickNumbers

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(TickNumbers())
    return ax


def is_axes(ax: object) -> bool:
    load_pyplot()
    from matplotlib.axes import Axes

    return isinstance(ax, Axes)


def label_of(name: str, labels: Labels) -> str:
    """Return the label of a parameter, as a model or a mapping has it; the name if there is none."""
    if isinstance(labels, Pdf):
        labels = {p.name: p.label for p in labels.parameters}
    return drawable((labels or {}).get(name) or name)


def drawable(label: str) -> str:
    """Return a label as matplotlib can draw it: one whose mathematics it does not know is shown as it is written."""
    return label if is_drawable(label) else label.replace("$", r"\$")


def is_drawable(label: str) -> bool:
    """Return whether matplotlib knows the mathematics of a label."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(label)
    except ValueError:
        return False
    return True


def marker_size(ax: Axes, bins: int) -> float:
    """Return the size of markers in points: that of the style, smaller if bins are narrow."""
    plt = load_pyplot()
    width = ax.get_window_extent().width / root(ax).dpi * 72 / bins
    return min(float(plt.rcParams["lines.markersize"]), max(2.0, 0.85 * width))


def component_styles() -> Iterator[dict[str, Any]]:
    """Return the styles of components, over and over again."""
    for colour, dashes in zip(cycle(COLOURS), cycle(DASHES), strict=False):
        yield {"color": colour, "linestyle": dashes}


def split_label(label: str) -> tuple[str, str]:
    """Return a label and the unit in brackets at its end, if there is one."""
    match = re.fullmatch(r"(.*\S)\s*\[([^\]]+)\]\s*", label)
    return (match[1], match[2]) if match else (label, "")


def lay_out(figure: Figure) -> None:
    """Find the places of axes in a figure, which need not be drawn for that."""
    engine = figure.get_layout_engine()
    with no_minor_ticks(figure):
        if engine is None:
            figure.draw_without_rendering()
        else:
            engine.execute(figure)


@contextmanager
def no_minor_ticks(figure: Figure) -> Iterator[None]:
    """Leave out minor ticks of linear axes, which have no text: to make them takes half of the time of a layout."""
    from matplotlib.ticker import NullLocator

    every = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) if axis.get_scale() == "linear"]
    before = [axis.get_minor_locator() for axis in every]
    for axis in every:
        axis.minor.locator = NullLocator()
    try:
        yield
    finally:
        for axis, locator in zip(every, before, strict=True):
            axis.minor.locator = locator


def place_legends(rooms: Sequence[LegendRoom]) -> list[Legend]:
    """Put a legend into each of the axes, and raise them until what reaches up to ``tops`` is below it.

    The whole figure is laid out once for all legends, as that takes as long as drawing it.
    """
    legends = [room.add(columns=1) for room in rooms]
    for place, room in enumerate(rooms):
        if place == 0:
            lay_out(root(room.ax))
        for scale in SCALES:
            if room.is_low(legends[place]):
                legends[place] = room.add(columns=2, scale=scale)
    for room, legend in zip(rooms, legends, strict=True):
        room.make(legend)
    return legends
