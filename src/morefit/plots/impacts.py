"""Plot parameters of a fit: how each moves the one of interest, beside its pull, and the matrix of their correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError
from morefit.intervals import Impacts
from morefit.minimise import FitResult
from morefit.plots.canvas import (
    DATA,
    GREY,
    MODEL,
    AnyAxes,
    Labels,
    Plot,
    check_made,
    label_of,
    one_panel,
    root,
    two_panels,
)
from morefit.plots.style import Style, load_pyplot, styled
from morefit.text.arguments import in_sentences
from morefit.text.rounding import round_pdg
from morefit.validate import whole_number

SIDES = (("one error down", "#62a0ea"), ("one error up", "#f66151"))
ROW = 0.32  # inches of height for each parameter
WIDTHS = (1.0, 1.6)  # of the panels of pulls and impacts


@in_sentences
def impacts(
    result: Impacts, *, largest: int = 30, labels: Labels = None, ax: AnyAxes = None, style: Style = None
) -> Plot[Impacts]:
    """Plot the largest impacts on a parameter, filled after the fit and as outlines before it, beside the pulls.

    ``ax`` is a pair of axes, (pulls, impacts). ``labels`` of parameters are those of a model, or texts by name.
    """
    check_made("impacts", result, Impacts, "mf.intervals.impacts")
    if not result.names:
        raise DataError("plots.impacts: no other parameter floats in this fit; free one and fit again")
    count = min(whole_number("plots.impacts: largest", largest, 1), len(result.names))
    with styled(style):
        left, right = panels(ax, count)
        rows = np.arange(count)
        artists: dict[str, Any] = {}
        draw_pulls(left, result, rows, artists)
        draw_impacts(right, result, rows, artists)
        left.set_yticks(rows, [label_of(name, labels) for name in result.names[:count]])
        for axes in (left, right):
            axes.set_yticks([], minor=True)
            axes.tick_params(axis="y", which="both", length=0)
            axes.set_ylim(count + 0.5, -0.6)  # with a row for the legend
        right.set_yticks(rows, [""] * count)
        name, (value, error) = label_of(result.name, labels), round_pdg(result.value, result.error)
        right.set_xlabel(f"change of {name}")
        right.set_title(rf"{name} = ${value} \pm {error}$", loc="right", fontsize="medium")
        return Plot((left, right), artists, result)


def panels(ax: AnyAxes, count: int) -> tuple[Any, Any]:
    """Return a pair of axes side by side: those passed, or those of a new figure, as high as its rows need."""
    if ax is not None:
        left, right = two_panels("plots.impacts", ax, 1.0, lower=False)
        if right is None:
            raise DataError("plots.impacts: ax must be a pair of axes, (pulls, impacts), got one")
        return left, right
    plt = load_pyplot()
    width, height = plt.rcParams["figure.figsize"]
    figure = plt.figure(layout="constrained", figsize=(1.3 * width, max(0.45 * height, ROW * count + 1.6)))
    left, right = figure.subplots(1, 2, width_ratios=WIDTHS)
    return left, right


def draw_pulls(axes: Any, result: Impacts, rows: Any, artists: dict[str, Any]) -> None:
    """Draw pulls with the errors after the fit, both in errors of the constraints."""
    pulls, errors = result.pulls[: len(rows)], result.constrained[: len(rows)]
    artists["constraints"] = axes.axvspan(-1, 1, color="0.9", linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.8)
    artists["pulls"] = axes.errorbar(pulls, rows, xerr=errors, fmt="o", color=DATA, linewidth=1.4)
    reach = np.nanmax(np.abs(pulls) + errors, initial=1.0) if np.isfinite(pulls).any() else 1.0
    axes.set_xlim(-1.15 * max(reach, 1.2), 1.15 * max(reach, 1.2))
    axes.set_xlabel("pull")


def draw_impacts(axes: Any, result: Impacts, rows: Any, artists: dict[str, Any]) -> None:
    """Draw the changes of both sides, after the fit as bars and before it as outlines."""
    axes.axvline(0, color=GREY, linewidth=0.8)
    for k, (label, colour) in enumerate(SIDES):
        after, before = result.after[: len(rows), k], result.before[: len(rows), k]
        artists[f"after, {label}"] = axes.barh(rows, after, 0.7, color=colour, alpha=0.85, label=label)
        if np.isfinite(before).any():
            artists[f"before, {label}"] = axes.barh(
                rows, before, 0.7, fill=False, edgecolor=MODEL if k == 0 else "#a51d2d", linestyle="--", linewidth=1.1,
                label="before the fit" if k == 0 else None,
            )  # fmt: skip
    reach = np.nanmax(np.abs(np.concatenate([result.after, result.before])), initial=0.0)
    axes.set_xlim(-1.1 * reach or -1.0, 1.1 * reach or 1.0)
    artists["legend"] = axes.legend(
        loc="lower center", ncols=3, fontsize="small", columnspacing=0.8, handlelength=1.2, handletextpad=0.4
    )


MAX_WRITTEN = 12  # parameters; numbers of more do not fit into their squares
MAX_LEVEL = 12  # letters of a name that is not slanted,
MAX_LETTERS = 24  # and of one that is not shortened
INCHES, SMALL = 0.17, 8  # of the figure for each of many parameters, and the size of their names in points
STRONG = 0.6  # correlation, on whose dark square numbers are white


@in_sentences
def correlation(
    result: FitResult, *, labels: Labels = None, ax: AnyAxes = None, style: Style = None
) -> Plot[Array]:
    """Plot the correlations of the floating parameters, written into their squares unless there are many.

    ``labels`` of parameters are those of a model, or texts by name; those of the result by default.

    Example: ``mf.plots.correlation(result)``
    """
    check_made("correlation", result, FitResult, "mf.fit")
    names, matrix = result.floating, result.correlation
    if not names:
        raise DataError("plots.correlation: no parameter floats in this result; free one and fit again")
    with styled(style):
        main = one_panel("plots.correlation", ax)
        image = main.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        artists: dict[str, Any] = {"image": image}
        many, ticks = len(names) > MAX_WRITTEN, range(len(names))
        texts = [shortened(label_of(name, labels or result.labels)) for name in names]
        if many and ax is None:
            side = INCHES * len(names)
            root(main).set_size_inches(3.0 + side, 2.0 + side)
            main.tick_params(labelsize=SMALL)
        slanted = len(names) > 4 or max(map(len, texts)) > MAX_LEVEL
        main.set_xticks(ticks, texts, rotation=90 if many else 45 if slanted else 0)
        main.set_yticks(ticks, texts)
        main.tick_params(which="both", length=0)
        main.set_xticks([], minor=True)
        main.set_yticks([], minor=True)
        if len(names) <= MAX_WRITTEN:
            artists["texts"] = tuple(
                main.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center",
                          color="white" if abs(matrix[i, j]) > STRONG else "black")
                for i in ticks for j in ticks
            )  # fmt: skip
        artists["colours"] = main.figure.colorbar(image, ax=main, label="correlation")
        return Plot((main,), artists, matrix)


def shortened(label: str) -> str:
    """Return a label, or the ends of one that is long and has no mathematics."""
    if len(label) <= MAX_LETTERS or "$" in label:
        return label
    return f"{label[: MAX_LETTERS // 2]}\N{HORIZONTAL ELLIPSIS}{label[-MAX_LETTERS // 2 + 1 :]}"
