"""Plot upper limits: p-values at tested values, with the bands that are expected without a signal."""

from __future__ import annotations

from math import isnan
from typing import Any

from morefit.intervals import UpperLimit
from morefit.plots.canvas import DATA, AnyAxes, Labels, Plot, Style, check_made, label_of, one_panel, styled
from morefit.text.arguments import in_sentences

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
        artists: dict[str, Any] = {}
        middle = len(scan.expected_p_values) // 2
        for sigmas, colour in BANDS:
            low, high = scan.expected_p_values[middle - sigmas], scan.expected_p_values[middle + sigmas]
            artists[f"{sigmas} sigma"] = main.fill_between(
                scan.values, low, high, color=colour, linewidth=0, label=band_name(sigmas)
            )
        (artists["expected"],) = main.plot(
            scan.values, scan.expected_p_values[middle], "--", color=DATA, label="expected"
        )
        (artists["observed"],) = main.plot(scan.values, scan.p_values, "o-", color=DATA, label="observed")
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
