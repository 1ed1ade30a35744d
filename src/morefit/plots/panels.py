"""The panels of a plot of data and a model: heights with curves and bands, and below pulls, residuals or ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.likelihood.table import TableColumn
from morefit.plots.canvas import (
    COLOURS,
    DATA,
    GREY,
    MODEL,
    LegendRoom,
    component_styles,
    drawable,
    marker_size,
    split_label,
)
from morefit.plots.projection import Projection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FURTHEST = 5.0  # pull that the panel shows; those beyond are marked at its edge
LARGEST_RATIO = 1.0  # by which ratios that are shown differ from one
NOTHING = 1e-6  # of the height of a plot: components that stay below need not be seen
FILL, SHADE = 0.55, 0.35  # opacities of stacked components and of bands
SAME_HEIGHT = 1e-9  # relative difference of heights that are those of one step
MAX_LISTED = 8  # components in the legend
MAX_BARS = 500  # of pulls; more are one line, which takes a thousandth of the time
Step = Literal["mid"] | None  # between two places of a curve, or lines that join them
Lower = Literal["pulls", "residuals", "ratio"]
LOWER_LABELS = {"pulls": "pull", "residuals": "data \N{MINUS SIGN} model", "ratio": "data / model"}


@dataclass(frozen=True)
class Look:
    """What is drawn in the main panel, and how it is called."""

    components: bool | Literal["stacked"] = True
    log: bool = False
    empty_bins: bool = False
    events: str = "Events"
    data: str = "data"
    model: str = "model"
    box: tuple[str, ...] = ()  # lines below the legend
    order: tuple[str, ...] = ()  # components of all panels of a figure, which have the same colour everywhere


def draw_main(ax: Axes, numbers: Projection, look: Look) -> tuple[dict[str, Any], LegendRoom]:
    """Draw data, model and components; return the artists by name, and what their legend needs."""
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
    name = f"{look.model} at start values" if numbers.at_start else look.model
    step: Step = "mid" if in_steps(numbers) else None
    style = f"steps-{step}" if step else "default"
    (artists["model"],) = ax.plot(
        places, solid, color=MODEL, marker="", label=name, zorder=3, drawstyle=style
    )
    if not fitted.all():
        (artists["extrapolation"],) = ax.plot(
            places,
            curve,
            color=MODEL,
            marker="",
            label="extrapolation",
            zorder=2.9,
            linestyle=(0, (2, 2)),
            drawstyle=style,
        )
    if numbers.band is not None:
        artists["band"] = draw_band(ax, places, curve, to_ends(numbers.band * fine), step)
    parts = {name: to_ends(part * fine) for name, part in numbers.components.items() if look.components}
    drawn = draw_components(ax, places, parts, step, look)
    listed = [*artists.values(), *list(drawn.values())[:MAX_LISTED]]
    more = (f"and {len(drawn) - MAX_LISTED} more",) if len(drawn) > MAX_LISTED else ()
    artists |= drawn
    ax.set_ylabel(y_label(numbers, look.events))
    ax.set_xlim(numbers.edges[0], numbers.edges[-1])
    set_heights(ax, counts, errors, [curve, *parts.values()], look.log)
    tops = np.concatenate([np.where(shown, counts + errors[1], np.nan), curve])
    handles = [*listed, *without_handle(ax, (*more, *look.box))]
    return artists, LegendRoom(ax, handles, np.concatenate([centres, places]), tops)


def in_steps(numbers: Projection) -> bool:
    """Return whether the curve is constant in each bin of the data, as that of templates is."""
    inside = numbers.curve.reshape(len(numbers.counts), -1)
    return bool(np.all(np.ptp(inside, axis=1) <= SAME_HEIGHT * np.max(np.abs(inside), axis=1)))


def draw_band(ax: Axes, places: Array, middle: Array, half: Array, step: Step = None) -> Any:
    """Shade one standard deviation around a curve."""
    return ax.fill_between(
        places, middle - half, middle + half, color=MODEL, alpha=SHADE, linewidth=0, zorder=1.5, label=r"$\pm 1\,\sigma$",
        step=step,
    )  # fmt: skip


def draw_components(
    ax: Axes, places: Array, parts: dict[str, Array], step: Step, look: Look
) -> dict[str, Any]:
    """Draw components as lines, or filled on top of each other, the last one lowest."""
    styles = dict(zip(look.order or parts, component_styles(), strict=False))
    artists: dict[str, Any] = {}
    below, drawn = np.zeros_like(places), f"steps-{step}" if step else "default"
    for label, part in reversed(parts.items()):
        style = styles[label]
        if look.components == "stacked":
            artists[label] = ax.fill_between(
                places, below, below + part, color=style["color"], alpha=FILL, linewidth=0, zorder=1, label=drawable(label),
                step=step,
            )  # fmt: skip
            below = below + part
        else:
            (artists[label],) = ax.plot(
                places, part, marker="", label=drawable(label), zorder=2, drawstyle=drawn, **style
            )
    return dict(reversed(artists.items()))


def without_handle(ax: Axes, lines: tuple[str, ...]) -> list[Any]:
    """Return lines of text as entries of a legend."""
    return [ax.plot([], [], linestyle="none", marker="", label=line)[0] for line in lines]


def set_heights(ax: Axes, counts: Array, errors: Array, curves: list[Array], log: bool) -> None:
    """Choose the range of the vertical axis; on a logarithmic one, such that every curve reaches into it."""
    tops, bottoms = counts + np.where(counts != 0, errors[1], 0.0), counts - errors[0]
    top = float(np.nanmax(tops, initial=np.max(curves[0]))) or 1.0
    if log:
        ax.set_yscale("log")
        peaks = [peak / 2 for curve in curves if (peak := float(np.max(curve))) > NOTHING * top]
        ax.set_ylim(0.5 * float(np.min([*counts[counts > 0], *peaks, top])), 2 * top)
    else:
        ax.set_ylim(min(0.0, 1.1 * float(np.nanmin(bottoms, initial=0.0))), 1.08 * top)


def draw_lower(ax: Axes, numbers: Projection, kind: Lower) -> dict[str, Any]:
    """Draw the panel below; what it does not reach are arrowheads at its edge."""
    centres = middles(numbers.edges)
    if kind == "pulls":
        values, errors, middle, reach = numbers.pulls, None, 0.0, FURTHEST
    else:
        values, errors, middle, reach = compared(numbers, kind)
    known = np.isfinite(values)
    inside = np.clip(np.where(known, values, middle), middle - reach, middle + reach)
    drawn: Any
    if errors is None and len(centres) > MAX_BARS:
        drawn = ax.stairs(inside, numbers.edges, fill=True, color=GREY, linewidth=0, zorder=2)
    elif errors is None:
        drawn = ax.bar(centres, inside, np.diff(numbers.edges), color=GREY, linewidth=0, zorder=2)
    else:
        shown = known & (np.abs(values - middle) <= reach)
        drawn = ax.errorbar(
            centres[shown], values[shown], errors[:, shown], fmt="o", color=DATA, elinewidth=0.9, capsize=0, zorder=4,
            markersize=marker_size(ax, len(centres)),
        )  # fmt: skip
    artists: dict[str, Any] = {kind: drawn}
    for name, marker, sign in (("above", "^", 1), ("below", "v", -1)):
        far = known & (sign * (values - middle) > reach)
        if far.any():
            edge = np.full(far.sum(), middle + sign * 0.9 * reach)
            (artists[f"{kind} {name}"],) = ax.plot(
                centres[far], edge, marker, color=COLOURS[0], markersize=5, zorder=5
            )
    if kind != "pulls" and numbers.band is not None:
        artists[f"band of {kind}"] = lower_band(ax, numbers, numbers.band, kind, middle)
    ax.axhline(middle, color=DATA, linewidth=0.8, zorder=3)
    ax.set_ylim(middle - reach, middle + reach)
    if kind == "pulls":
        for height in (-3, 3):
            ax.axhline(height, color=DATA, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        ax.set_yticks([-3, 0, 3])
        ax.set_yticks([], minor=True)
    ax.set_ylabel(LOWER_LABELS[kind], loc="center")
    ax.set_xlabel(x_label(numbers))
    ax.set_xlim(numbers.edges[0], numbers.edges[-1])
    return artists


def compared(numbers: Projection, kind: Lower) -> tuple[Array, Array, float, float]:
    """Return residuals or ratios in the units of the main panel, their errors, what they should be, and how far is shown."""
    if kind == "residuals":
        scale, middle, most = heights_per_event(numbers), 0.0, np.inf
        values = (numbers.counts - numbers.expected) * scale
    else:
        with np.errstate(divide="ignore"):
            scale = np.where(numbers.expected > 0, 1 / numbers.expected, np.nan)
        values, middle, most = numbers.counts * scale, 1.0, LARGEST_RATIO
    errors = numbers.errors * scale
    ends = np.abs(values - middle) + np.max(errors, axis=0)
    return values, errors, middle, min(1.1 * float(np.nanmax(ends, initial=0.0)) or 1.0, most)


def lower_band(ax: Axes, numbers: Projection, band: Array, kind: Lower, middle: float) -> Any:
    """Shade the errors of the model around what residuals or ratios should be."""
    fine = np.repeat(heights_per_event(numbers), numbers.oversampling) * numbers.oversampling
    with np.errstate(divide="ignore", invalid="ignore"):
        half = band * fine if kind == "residuals" else band / numbers.curve
    places = np.concatenate([numbers.edges[:1], middles(numbers.curve_edges), numbers.edges[-1:]])
    step: Step = "mid" if in_steps(numbers) else None
    return draw_band(ax, places, np.full(len(places), middle), to_ends(half), step)


def heights_per_event(numbers: Projection) -> Array:
    """Return what turns numbers of events into heights: one, or densities if the bins differ in width."""
    widths = np.diff(numbers.edges)
    return np.ones(len(widths)) if numbers.equal_bins else 1 / widths


def y_label(numbers: Projection, events: str) -> str:
    """Return what the heights are, in the unit that stands in brackets behind the label of the observable."""
    if isinstance(numbers.observable, TableColumn):
        return f"{events} / bin"
    name, unit = split_label(x_label(numbers))
    width = f"{float(np.mean(np.diff(numbers.edges))):.3g}"
    if numbers.equal_bins:
        return f"{events} / ({width} {unit})" if unit else f"{events} / {width}"
    return f"{events} / ({unit})" if unit else f"{events} per unit of {name}"


def x_label(numbers: Projection) -> str:
    return drawable(numbers.observable.label or numbers.observable.name)


def middles(edges: Array) -> Array:
    return np.asarray((edges[:-1] + edges[1:]) / 2, np.float64)


def to_ends(heights: Array) -> Array:
    """Continue a curve from the middles of its first and last bin to their ends, straight on but not below zero."""
    if len(heights) < 2:
        return np.concatenate([heights, heights, heights])
    ends = np.array([1.5 * heights[0] - 0.5 * heights[1], 1.5 * heights[-1] - 0.5 * heights[-2]])
    ends = np.where((ends > 0) | (heights[[0, -1]] < 0), ends, heights[[0, -1]])
    return np.concatenate([ends[:1], heights, ends[1:]])
