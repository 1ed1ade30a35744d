"""Plot the correlation matrix of a fit."""

from __future__ import annotations

from typing import Any

from morefit.arrays import Array
from morefit.errors import DataError
from morefit.minimise import FitResult
from morefit.plots.canvas import AnyAxes, Labels, Plot, Style, label_of, one_panel, styled

MAX_WRITTEN = 12  # parameters; numbers of more do not fit into their squares
STRONG = 0.6  # correlation, on whose dark square numbers are white


def correlation(
    result: FitResult, *, labels: Labels = None, ax: AnyAxes = None, style: Style = None
) -> Plot[Array]:
    """Plot the correlations of the floating parameters, written into their squares unless there are many.

    ``labels`` of parameters are those of a model, or texts by name; those of the result by default.
    """
    names, matrix = result.floating, result.correlation
    if not names:
        raise DataError("plots.correlation: no parameter floats in this result; free one and fit again")
    with styled(style):
        main = one_panel("plots.correlation", ax)
        image = main.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        artists: dict[str, Any] = {"image": image}
        ticks, texts = range(len(names)), [label_of(name, labels or result.labels) for name in names]
        main.set_xticks(ticks, texts, rotation=45 if len(names) > 4 else 0)
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
