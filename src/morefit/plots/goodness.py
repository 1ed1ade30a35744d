"""Plot the goodness of a fit: the statistics of toys, and where that of the data lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.data.histogram import choose_edges
from morefit.errors import DataError
from morefit.intervals import GoodnessOfFit
from morefit.plots.canvas import COLOURS, DATA, MODEL, AnyAxes, Plot, Style, check_made, one_panel, styled
from morefit.text.arguments import in_sentences

NAMES = {"chi2": r"$\chi^2$", "saturated": r"$-2\ln\lambda$", "ks": "Kolmogorov-Smirnov", "anderson": "Anderson-Darling", "energy": "energy"}  # fmt: skip
STEPS = 400  # of the curve


@in_sentences
def goodness_of_fit(
    test: GoodnessOfFit, *, bins: int | None = None, ax: AnyAxes = None, style: Style = None
) -> Plot[GoodnessOfFit]:
    """Plot a histogram of the statistics of toys, that of the data, and the chi-square distribution if it follows one."""
    check_made("goodness_of_fit", test, GoodnessOfFit, "mf.intervals.goodness_of_fit")
    known = test.toys[np.isfinite(test.toys)]
    if not len(known):
        raise DataError("plots.goodness_of_fit: needs statistics of toys, got none; pass toys= to the test")
    with styled(style):
        main = one_panel("plots.goodness_of_fit", ax)
        low, high = float(min(known.min(), test.statistic)), float(max(known.max(), test.statistic))
        reach = 0.05 * ((high - low) or 1.0)
        edges = choose_edges("plots.goodness_of_fit", bins, max(low - reach, 0.0) if low >= 0 else low - reach, high + reach, len(known))  # fmt: skip
        artists: dict[str, Any] = {}
        counts = np.histogram(known, edges)[0]
        artists["toys"] = main.stairs(counts, edges, fill=True, color="0.8", label=f"{len(known)} toys")
        top = float(counts.max())
        if test.ndf > 0:
            from scipy.stats import chi2  # type: ignore[import-untyped]  # slow

            places = np.linspace(edges[0], edges[-1], STEPS)
            curve = len(known) * (edges[1] - edges[0]) * chi2.pdf(places, test.ndf)
            name = rf"$\chi^2$ with {test.ndf} degrees of freedom"
            (artists["chi2"],) = main.plot(places, curve, color=MODEL, label=name)
            top = max(top, float(curve.max()))
        name = f"data, $p = {test.toy_p_value:.3g}$"
        artists["data"] = main.vlines([test.statistic], 0, 1.05 * top, color=COLOURS[0], label=name)
        missing = len(test.toys) - len(known)
        if missing:
            main.plot([], [], " ", color=DATA, label=f"{missing} toys without a fit")
        main.set_xlim(edges[0], edges[-1])
        main.set_ylim(0, 1.45 * top)
        main.set_xlabel(NAMES[test.test])
        main.set_ylabel("Toys")
        artists["legend"] = main.legend(loc="upper right")
        return Plot((main,), artists, test)
