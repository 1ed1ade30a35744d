"""Plot scans of a likelihood and constructions with toys: profiles, contours, belts, p-values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import OptionError
from morefit.intervals import Contour, FeldmanCousins, Interval, NeymanBelt, Profile
from morefit.intervals.interval import two_sided
from morefit.intervals.profile import local_cubic
from morefit.plots.canvas import (
    COLOURS,
    DASHES,
    DATA,
    MODEL,
    AnyAxes,
    Labels,
    LegendRoom,
    Plot,
    check_made,
    label_of,
    one_panel,
    place_legends,
    two_panels,
)
from morefit.plots.style import Style, styled
from morefit.text.arguments import in_sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.6827, 0.9545)
STEPS = 16  # of a curve between two points
SHADES = (0.30, 0.16, 0.08)  # opacities of regions, that of the first level strongest
P_HEIGHT = 1.2  # of the panel of likelihood ratios, in heights of that of p-values


@in_sentences
def profile(
    scan: Profile,
    *,
    levels: Sequence[float] = LEVELS,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
) -> Plot[Profile]:
    """Plot how the nll rises from its minimum, with the intervals of some levels; points without a minimum are crosses.

    ``labels`` of parameters are those of a model, or texts by name.

    Example: ``mf.plots.profile(mf.intervals.profile(nll, mu, progress=False))``
    """
    check_made("profile", scan, Profile, "mf.intervals.profile")
    check_some("plots.profile", levels)
    x, delta = scan.curve()
    with styled(style):
        main = one_panel("plots.profile", ax)
        artists: dict[str, Any] = {}
        (artists["curve"],) = main.plot(*smooth(x, delta), color=MODEL)
        (artists["points"],) = main.plot(x, delta, "o", color=MODEL)
        (artists["best"],) = main.plot([scan.best], [0.0], "o", color=DATA, zorder=4)
        bad = ~scan.valid & np.isfinite(scan.nll)
        if bad.any():
            (artists["invalid"],) = main.plot(
                scan.values[bad], scan.delta[bad], "x", color=COLOURS[0], label="no minimum found"
            )
        for level, colour, dashes in zip(levels, COLOURS, DASHES, strict=False):
            draw_level(main, scan, level, colour, dashes, artists=artists)
        main.set_xlim(x[0], x[-1])
        main.set_ylim(bottom=0)
        main.set_xlabel(label_of(scan.name, labels))
        main.set_ylabel(r"$-\Delta\ln L$")
        artists["legend"] = main.legend(loc="upper center")
        return Plot((main,), artists, scan)


def smooth(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a curve through points: the cubics that intervals are computed with."""
    places, heights = [x[:1]], [y[:1]]
    for one, other in pairwise(x):
        cubic = local_cubic(x, y, float(one), float(other))
        steps = np.linspace(one, other, STEPS + 1)[1:]
        places.append(steps)
        heights.append(np.array([cubic(float(step)) for step in steps]))
    return np.concatenate(places), np.concatenate(heights)


def draw_level(
    ax: Axes, scan: Profile, level: float, colour: str, dashes: object, artists: dict[str, Any]
) -> None:
    """Draw the height of a level, and the ends of its interval."""
    height = 0.5 * two_sided(level) ** 2
    look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.2}
    artists[percent(level)] = ax.axhline(height, label=percent(level), **look)
    ends = [end for end in scan.interval(level) if not isnan(end)]
    artists[f"{percent(level)} ends"] = ax.vlines(ends, 0, height, **look)


@in_sentences
def contour(
    scan: Contour,
    *,
    levels: Sequence[float] | None = None,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
) -> Plot[Contour]:
    """Plot the lines on which regions of some probabilities in two dimensions end, and the best fit.

    ``labels`` of parameters are those of a model, or texts by name.
    """
    check_made("contour", scan, Contour, "mf.intervals.contour")
    chosen = scan.levels if levels is None else tuple(levels)
    check_some("plots.contour", chosen)
    with styled(style):
        main = one_panel("plots.contour", ax)
        artists: dict[str, Any] = {}
        for level, colour, dashes in zip(chosen, (MODEL, *COLOURS), ("-", *DASHES), strict=False):
            lines = [
                main.plot(*line.T, color=colour, linestyle=dashes, label="" if k else percent(level))[0]
                for k, line in enumerate(scan.lines(level))
            ]
            artists[percent(level)] = tuple(lines)
        (artists["best"],) = main.plot(*scan.best, "P", color=DATA, markersize=7, label="best fit")
        bad = np.argwhere(~scan.valid)
        if len(bad):
            places = scan.x[bad[:, 0]], scan.y[bad[:, 1]]
            (artists["invalid"],) = main.plot(*places, "x", color="0.6", label="no minimum found")
        main.set_xlim(scan.x[0], scan.x[-1])
        main.set_ylim(scan.y[0], scan.y[-1])
        main.set_xlabel(label_of(scan.x_name, labels))
        main.set_ylabel(label_of(scan.y_name, labels))
        points = np.concatenate(
            [np.array([scan.best]), *(line for level in chosen for line in scan.lines(level))]
        )
        handles = main.get_legend_handles_labels()[0]
        (artists["legend"],) = place_legends([LegendRoom(main, handles, *points.T)])
        return Plot((main,), artists, scan)


@in_sentences
def belt(
    construction: NeymanBelt,
    observed: float | None = None,
    *,
    levels: Sequence[float] | None = None,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
) -> Plot[NeymanBelt]:
    """Plot where estimates fall for each true value, and shade the interval of an observed estimate.

    That interval is the one at the first of the levels, which are that of the belt by default. ``labels`` of
    parameters are those of a model, or texts by name.
    """
    check_made("belt", construction, NeymanBelt, "mf.intervals.neyman_belt")
    chosen = (construction.level,) if levels is None else tuple(levels)
    check_some("plots.belt", chosen)
    with styled(style):
        main = one_panel("plots.belt", ax)
        artists: dict[str, Any] = {}
        for level, shade in sorted(zip(chosen, SHADES, strict=False), reverse=True):
            low, high = construction.edges(level)[:2]
            artists[percent(level)] = main.fill_betweenx(
                construction.values, low, high, color=MODEL, alpha=shade, linewidth=0, label=percent(level)
            )
            artists[f"{percent(level)} edges"] = tuple(
                main.plot(edge, construction.values, color=MODEL, linewidth=1.0)[0] for edge in (low, high)
            )
        if observed is not None:
            artists["observed"] = main.axvline(observed, color=DATA, label="observed")
            artists["interval"] = draw_ends(main, construction.interval(observed, chosen[0]), vertical=True)
        main.set_ylim(construction.values[0], construction.values[-1])
        main.set_xlabel(f"estimate of {label_of(construction.name, labels)}")
        main.set_ylabel(f"true {label_of(construction.name, labels)}")
        artists["legend"] = main.legend(loc="best")
        return Plot((main,), artists, construction)


@in_sentences
def p_values(
    construction: FeldmanCousins,
    *,
    level: float | None = None,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
) -> Plot[FeldmanCousins]:
    """Plot a Feldman-Cousins construction: t of the data and its critical value, and the p-values below.

    Single ``ax`` gets the p-values alone. Regions that are accepted are shaded. ``labels`` of parameters are those of
    a model, or texts by name.
    """
    check_made("p_values", construction, FeldmanCousins, "mf.intervals.feldman_cousins")
    chosen = construction.checked(level)
    with styled(style):
        main, below = two_panels("plots.p_values", ax, P_HEIGHT, lower=True)
        bottom = main if below is None else below
        artists: dict[str, Any] = {} if below is None else draw_ratios(main, construction, chosen)
        artists["p"] = bottom.errorbar(
            construction.values,
            construction.p_values,
            construction.p_errors,
            fmt="o-",
            color=DATA,
            linewidth=1.0,
        )
        artists["level"] = bottom.axhline(
            1 - chosen, color=COLOURS[0], linestyle=DASHES[0], label=f"$p = {1 - chosen:.4g}$"
        )
        interval = construction.interval(chosen)
        artists["accepted"] = tuple(
            draw_ends(axis, interval, vertical=False) for axis in dict.fromkeys((main, bottom))
        )
        bottom.set_ylim(0, 1.05)
        bottom.set_xlim(construction.values[0], construction.values[-1])
        bottom.set_xlabel(label_of(construction.name, labels))
        bottom.set_ylabel(r"$p$-value")
        bottom.legend(loc="upper right")
        return Plot((main,) if below is None else (main, below), artists, construction)


def draw_ratios(ax: Axes, construction: FeldmanCousins, level: float) -> dict[str, Any]:
    """Draw t of the data, and its critical values with their Monte-Carlo errors."""
    critical, errors = construction.critical_at(level)
    artists: dict[str, Any] = {}
    (artists["t"],) = ax.plot(
        construction.values, construction.t_data, "o-", color=DATA, linewidth=1.0, label="data"
    )
    (artists["critical"],) = ax.plot(
        construction.values, critical, color=MODEL, label=f"critical value, {percent(level)}"
    )
    artists["critical errors"] = ax.fill_between(
        construction.values, critical - errors, critical + errors, color=MODEL, alpha=SHADES[0], linewidth=0
    )
    ax.set_ylim(bottom=0)
    ax.set_ylabel(r"$t = -2\Delta\ln L$")
    ax.tick_params(axis="x", labelbottom=False)
    artists["legend"] = ax.legend(loc="best")
    return artists


def draw_ends(ax: Axes, interval: Interval, *, vertical: bool) -> tuple[Any, ...]:
    """Shade the pieces of an interval, up to the edge of the axes where an end is not reached."""
    low, high = ax.get_ylim() if vertical else ax.get_xlim()
    span = ax.axhspan if vertical else ax.axvspan
    return tuple(
        span(low if isnan(one.low) else one.low, high if isnan(one.high) else one.high, color="0.5", alpha=0.2, zorder=0,
             linewidth=0)
        for one in interval.pieces
    )  # fmt: skip


def check_some(what: str, levels: Sequence[float]) -> None:
    if not levels or len(levels) > len(SHADES):
        raise OptionError(f"{what}: takes one to {len(SHADES)} levels, got {len(levels)}")


def percent(level: float) -> str:
    return f"{100 * level:.4g} %"
