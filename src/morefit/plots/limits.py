"""Plot upper limits: p-values at tested values with expected bands, and limits side by side against a mass or by name."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError
from morefit.intervals import UpperLimit
from morefit.plots.canvas import (
    DATA,
    AnyAxes,
    Labels,
    LegendRoom,
    Plot,
    check_made,
    drawable,
    label_of,
    one_panel,
    place_legends,
)
from morefit.plots.style import Style, styled
from morefit.text.arguments import in_sentences
from morefit.validate import as_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = ((2, "#f5c211"), (1, "#33d17a"))  # standard deviations of the background, and their colours


@in_sentences
def limit(
    scan: UpperLimit, *, labels: Labels = None, ax: AnyAxes = None, style: Style = None
) -> Plot[UpperLimit]:
    """Plot the observed and expected p-values of an upper limit, and where they cross 1 - level ("Brazil plot").

    ``labels`` of parameters are those of a model, or texts by name.
    """
    check_made("limit", scan, UpperLimit, "mf.intervals.upper_limit")
    with styled(style):
        main = one_panel("plots.limit", ax)
        artists = draw_lines(main, LimitBands(tuple(scan.values), scan.p_values, scan.expected_p_values))
        artists["level"] = main.axhline(1 - scan.level, color="#c01c28", linewidth=1.2)
        if not isnan(scan.observed):
            artists["limit"] = main.vlines([scan.observed], 0, 1 - scan.level, color="#c01c28", linewidth=1.2)
        main.set_xlim(scan.values[0], scan.values[-1])
        main.set_ylim(0, 1.05)
        main.set_xlabel(label_of(scan.name, labels))
        main.set_ylabel(r"$\mathrm{CL_s}$" if scan.cls else r"$\mathrm{CL_{s+b}}$")
        artists["legend"] = main.legend(loc="upper right")
        return Plot((main,), artists, scan)


def band_name(sigmas: int) -> str:
    return rf"expected $\pm {sigmas}\,\sigma$"


FINE = 200  # places at which lines are kept clear of the legend
HALF_BOX = 0.36  # of the distance of two names


@dataclass(frozen=True, eq=False, repr=False)
class LimitBands(Frozen):
    """Observed and expected limits, one for each point; nan where the largest tested value is not excluded."""

    points: tuple[Any, ...]  # numbers in ascending order, or names
    observed: Array  # (N,)
    expected: Array  # (5, N), for a background that fluctuates by -2 to 2 standard deviations

    @property
    def numeric(self) -> bool:
        """Whether the points are numbers on an axis."""
        return not isinstance(self.points[0], str)


@in_sentences
def limits(
    by_point: Mapping[Any, UpperLimit],
    *,
    xlabel: str = "",
    scale: ArrayLike = 1.0,
    log: bool = False,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
) -> Plot[LimitBands]:
    """Plot upper limits against a number, such as a mass, or for each of several names ("Brazil plot").

    ``by_point`` has the limit of each point: ``{mass: mf.intervals.upper_limit(...), ...}``; points are numbers, or texts. Limits are
    multiplied by ``scale``, a number or one for each point in the order of ``by_point``, such as cross-sections where signal strengths were fitted.
    Where a limit is not reached, the line has a gap. ``labels`` of parameters are those of a model, or texts by name.
    """
    numbers, first = bands_of(by_point, scale)
    with styled(style):
        main = one_panel("plots.limits", ax)
        artists = (draw_lines if numbers.numeric else draw_boxes)(main, numbers)
        if log:
            main.set_yscale("log")
        else:
            main.set_ylim(bottom=min(0.0, 1.1 * float(np.nanmin([numbers.observed, *numbers.expected]))))
        main.set_xlabel(drawable(xlabel))
        same = all(limit.name == first.name for limit in by_point.values())
        of = f" on {label_of(first.name, labels)}" if same else ""
        main.set_ylabel(f"{100 * first.level:g} % CL upper limit{of}")
        tops = np.fmax(numbers.observed, numbers.expected[-1])
        rising = np.array(numbers.points, float) if numbers.numeric else np.arange(len(tops), dtype=float)
        if numbers.numeric:  # lines are in the way between the points as well
            between = np.linspace(rising[0], rising[-1], FINE)
            rising, tops = between, np.interp(between, rising, tops)
        order = ("observed", "expected", "1 sigma", "2 sigma")
        (artists["legend"],) = place_legends(
            [LegendRoom(main, [artists[name] for name in order], rising, tops)]
        )
        return Plot((main,), artists, numbers)


def bands_of(by_point: Any, scale: ArrayLike) -> tuple[LimitBands, UpperLimit]:
    """Return limits as arrays, numbers in ascending order, and one of them; refuse what cannot be compared."""
    if not isinstance(by_point, Mapping) or not by_point:
        raise OptionError(
            f"plots.limits: takes limits by their points, as in {{120.0: limit, 125.0: other}}, got {by_point!r:.60}"
        )
    for limit in by_point.values():
        check_made("limits", limit, UpperLimit, "mf.intervals.upper_limit")
    first, *others = by_point.values()
    if any((one.level, one.cls) != (first.level, first.cls) for one in others):
        raise OptionError("plots.limits: all limits must have one level, and all or none be those of CLs")
    points = [point if isinstance(point, str) else as_number(point) for point in by_point]
    if None in points or len({isinstance(point, str) for point in points}) > 1:
        raise OptionError(f"plots.limits: points must be numbers, or texts, got {list(by_point)!r:.60}")
    factors = factors_of(scale, len(points))
    order = range(len(points)) if isinstance(points[0], str) else np.argsort(np.array(points, float)).tolist()
    observed = factors * np.array([limit.observed for limit in by_point.values()])
    expected = factors * np.transpose([limit.expected for limit in by_point.values()])
    if np.isnan([observed, *expected]).all():
        raise DataError("plots.limits: no limit is reached; test larger values")
    chosen = list(order)
    return LimitBands(tuple(points[k] for k in chosen), observed[chosen], expected[:, chosen]), first


def factors_of(scale: ArrayLike, points: int) -> Array:
    """Return a positive factor for each point."""
    try:
        factors = np.asarray(scale, np.float64)
        wrong = factors.shape not in {(), (points,)} or not np.all((factors > 0) & np.isfinite(factors))
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise OptionError(
            f"plots.limits: scale must be a positive number, or one for each of {points} points, got {scale!r:.60}"
        )
    return np.broadcast_to(factors, (points,))


def draw_lines(ax: Axes, numbers: LimitBands) -> dict[str, Any]:
    """Draw limits against numbers."""
    x = np.array(numbers.points, float)
    artists: dict[str, Any] = {}
    for sigmas, colour in BANDS:
        low, high = numbers.expected[2 - sigmas], numbers.expected[2 + sigmas]
        artists[f"{sigmas} sigma"] = ax.fill_between(
            x, low, high, color=colour, linewidth=0, label=band_name(sigmas)
        )
    (artists["expected"],) = ax.plot(x, numbers.expected[2], "--", color=DATA, label="expected")
    (artists["observed"],) = ax.plot(x, numbers.observed, "o-", color=DATA, label="observed")
    if len(x) > 1:
        ax.set_xlim(x[0], x[-1])
    return artists


def draw_boxes(ax: Axes, numbers: LimitBands) -> dict[str, Any]:
    """Draw a box for each name."""
    x = np.arange(len(numbers.points), dtype=float)
    artists: dict[str, Any] = {}
    for sigmas, colour in BANDS:
        low, high = numbers.expected[2 - sigmas], numbers.expected[2 + sigmas]
        artists[f"{sigmas} sigma"] = ax.bar(
            x, high - low, 2 * HALF_BOX, bottom=low, color=colour, label=band_name(sigmas)
        )
    artists["expected"] = ax.hlines(
        numbers.expected[2], x - HALF_BOX, x + HALF_BOX, color=DATA, linestyle="--", label="expected"
    )
    (artists["observed"],) = ax.plot(x, numbers.observed, "o", color=DATA, label="observed")
    ax.set_xticks(x, [drawable(name) for name in numbers.points])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-0.6, len(x) - 0.4)
    return artists
