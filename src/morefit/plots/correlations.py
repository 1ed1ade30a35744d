"""Plot the correlation matrix of a fit."""

from __future__ import annotations

from typing import Any

from morefit.arrays import Array
from morefit.errors import DataError
from morefit.minimise import FitResult
from morefit.plots.canvas import AnyAxes, Labels, Plot, Style, check_made, label_of, one_panel, root, styled
from morefit.text.arguments import in_sentences

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
