"""Plot least squares: points with errors, the fitted function, and pulls, residuals or ratios below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.expr import evaluate
from morefit.intervals import GoodnessOfFit
from morefit.likelihood import LeastSquares
from morefit.likelihood.evaluate import values_of
from morefit.likelihood.points import Y_ERROR, X, Y, x_error
from morefit.minimise import FitResult
from morefit.plots.canvas import DATA, MODEL, LegendRoom, Plot, drawable, place_legends, root, two_panels
from morefit.plots.components import band as band_of
from morefit.plots.components import slopes
from morefit.plots.panels import LOWER_LABELS, Lower, draw_band, without_handle
from morefit.plots.projection import at_start
from morefit.plots.style import styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from morefit.plots.fitted import Drawing

MARGIN = 0.04  # of the span of the points, on each side
STEPS = 400  # of the curve


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Points(Frozen):
    """Measured points, the function at them, and a fine curve; ``pulls`` are (y - function) / error.

    Of correlated errors, the chi-square has the correlations, and pulls do not.
    """

    label: str
    x: Array  # (N,)
    y: Array  # (N,)
    x_errors: Array | None  # (N,)
    y_errors: Array  # (N,)
    expected: Array  # (N,)
    pulls: Array  # (N,)
    curve_x: Array
    curve: Array
    band: Array | None
    chi2: GoodnessOfFit


def plot_points(drawing: Drawing, part: LeastSquares, values: Any) -> Plot[Points]:
    """Draw points and the function."""
    from morefit.plots.fitted import MAIN_HEIGHT, box_lines

    if drawing.bins is not None or drawing.ranges or len(drawing.blind):
        raise OptionError("plot: least squares have their points already; give no bins, ranges or blind")
    numbers = points_of(part, values, band=drawing.band)
    lines = box_lines(drawing.box, part.model.parameters, values, numbers.chi2 if drawing.box else None)
    with styled(drawing.style):
        main, below = two_panels("plot", drawing.ax, MAIN_HEIGHT, lower=drawing.lower is not None)
        name = "function at start values" if at_start(values, part.model.parameters) else "function"
        artists = draw_points(main, numbers, name, lines)
        if drawing.look.log:
            main.set_yscale("log")
        if below is None:
            main.set_xlabel(numbers.label)
            return Plot((main,), artists, numbers)
        artists[drawing.lower or "pulls"] = draw_below(below, numbers, drawing.lower or "pulls")
        main.set_xlim(numbers.curve_x[0], numbers.curve_x[-1])
        main.tick_params(axis="x", labelbottom=False)
        root(main).align_ylabels([main, below])
        return Plot((main, below), artists, numbers)


def points_of(part: LeastSquares, values: Any, *, band: bool) -> Points:
    """Return the points of least squares in one observable, and the function at values of its parameters."""
    model, columns = part.model, part.points_in_order
    known, errors = values_of(model, values), [Y_ERROR.name, *(x_error(n).name for n in model.with_errors)]
    names = [name for name in columns if name not in (Y.name, *errors)]
    if len(names) != 1:
        raise OptionError(f"plot: draws points in one observable, got {names}; use matplotlib's errorbar")
    (name,) = names
    x, y = columns[name], columns[Y.name]
    reach = MARGIN * (float(np.ptp(x)) or 1.0)
    places = np.linspace(float(x.min()) - reach, float(x.max()) + reach, STEPS)

    def at(known: Any) -> Array:
        heights = evaluate(model.expected, {**known, name: places})
        return np.array(np.broadcast_to(heights, places.shape), np.float64)

    expected = np.array(np.broadcast_to(evaluate(model.expected, {**known, name: x}), x.shape), np.float64)
    squares = -2 * evaluate(model.formula, {**part.data.columns, **known})
    pulls = (
        (y - expected) / columns[Y_ERROR.name]
        if part.correlated
        else np.sign(y - expected) * np.sqrt(squares)
    )
    derivatives = slopes(at, known, values) if band else {}
    floating = [n for n in values.floating if n in known] if isinstance(values, FitResult) else []
    label = "$x$" if name == X.name else next(o.label or o.name for o in model.table if o.name == name)
    return Points(
        label=drawable(label),
        x=x,
        y=y,
        x_errors=columns[errors[1]] if errors[1:] else None,
        y_errors=columns[Y_ERROR.name],
        expected=expected,
        pulls=pulls,
        curve_x=places,
        curve=at(known),
        band=band_of(derivatives, values),
        chi2=GoodnessOfFit("chi2", float(np.sum(squares)), max(len(x) - len(floating), 0), np.empty(0)),
    )


def draw_points(ax: Axes, numbers: Points, name: str, lines: tuple[str, ...]) -> dict[str, Any]:
    """Draw points with errors and the function."""
    artists: dict[str, Any] = {
        "data": ax.errorbar(
            numbers.x, numbers.y, numbers.y_errors, numbers.x_errors, fmt="o", color=DATA, label="data", elinewidth=0.9, zorder=4
        )
    }  # fmt: skip
    (artists["model"],) = ax.plot(
        numbers.curve_x, numbers.curve, color=MODEL, marker="", label=name, zorder=3
    )
    if numbers.band is not None:
        artists["band"] = draw_band(ax, numbers.curve_x, numbers.curve, numbers.band)
    ax.set_ylabel("$y$")
    ax.set_xlim(numbers.curve_x[0], numbers.curve_x[-1])
    places = np.concatenate([numbers.x, numbers.curve_x])
    tops = np.concatenate([numbers.y + numbers.y_errors, numbers.curve])
    room = LegendRoom(ax, [*artists.values(), *without_handle(ax, lines)], places, tops)
    (artists["legend"],) = place_legends([room])
    return artists


def draw_below(ax: Axes, numbers: Points, kind: Lower) -> Any:
    """Draw pulls, residuals or ratios of the points."""
    middle = 1.0 if kind == "ratio" else 0.0
    if kind == "pulls":
        values, errors = numbers.pulls, np.ones_like(numbers.x)
    elif kind == "residuals":
        values, errors = numbers.y - numbers.expected, numbers.y_errors
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            values, errors = numbers.y / numbers.expected, np.abs(numbers.y_errors / numbers.expected)
    ax.axhline(middle, color=DATA, linewidth=0.8)
    ax.set_ylabel(LOWER_LABELS[kind], loc="center")
    ax.set_xlabel(numbers.label)
    return ax.errorbar(numbers.x, values, errors, fmt="o", color=DATA, elinewidth=0.9)
