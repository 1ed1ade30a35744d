"""Plot toys: their pulls, with a Gaussian fitted to them, and statistics of goodness of fit, with where that of the data lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.histogram import choose_edges
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.intervals import GoodnessOfFit
from morefit.minimise import FitResult, fit
from morefit.model import Gaussian, Observable, Parameter
from morefit.plots.canvas import (
    COLOURS,
    DATA,
    MODEL,
    AnyAxes,
    Labels,
    Plot,
    check_made,
    label_of,
    one_panel,
    place_legends,
)
from morefit.plots.panels import Look, draw_main, x_label
from morefit.plots.projection import Projection, project
from morefit.plots.style import Style, styled
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.text.rounding import round_pdg
from morefit.toys.results import ToyResults

FURTHEST = 5.0  # pull that is drawn and fitted
NARROWEST, WIDEST = 1e-3, 10.0
MIN_PULLS = 5


@dataclass(frozen=True, eq=False)
class PullFit:
    """A Gaussian fitted to the pulls between -5 and 5, and how many toys lie outside or have no pull."""

    result: FitResult  # of "mean" and "width"
    projection: Projection
    outside: int
    missing: int


@in_sentences
def pulls(
    toys: ToyResults,
    parameter: Parameter | str,
    *,
    bins: int | Array | None = None,
    valid_only: bool = True,
    labels: Labels = None,
    ax: AnyAxes = None,
    style: Style = None,
    backend: str | Backend = "auto",
) -> Plot[PullFit]:
    """Plot the pulls of one parameter and a Gaussian fitted to them: mean 0 and width 1 are good.

    Its label is that of the ``Parameter``, or that of ``labels``: a model, or texts by name.
    """
    check_made("pulls", toys, ToyResults, "mf.toy_study")
    name = parameter.name if isinstance(parameter, Parameter) else parameter
    label = (parameter.label if isinstance(parameter, Parameter) else "") or label_of(name, labels)
    every = toys.pulls(name, valid_only=valid_only)
    known = every[np.isfinite(every)]
    inside = known[np.abs(known) <= FURTHEST]
    if len(inside) < MIN_PULLS:
        rule = f"needs at least {MIN_PULLS} pulls between -{FURTHEST:g} and {FURTHEST:g}"
        raise DataError(f"plots.pulls: {rule}, got {len(inside)} of {len(every)} toys for '{name}'")
    model = pull_model(label, inside)
    data = {model.x.name: inside}
    result = fit(model, data, backend=backend)
    numbers = project(model, data, model.x, values=result, bins=bins, backend=backend)
    fitted = PullFit(result, numbers, len(known) - len(inside), len(every) - len(known))
    with styled(style):
        main = one_panel("plots.pulls", ax)
        artists, room = draw_main(main, numbers, Look(events="Toys", data="toys", model=summary(fitted)))
        (artists["legend"],) = place_legends([room])
        main.set_xlabel(x_label(numbers))
        return Plot((main,), artists, fitted)


def pull_model(label: str, pulls: Array) -> Gaussian:
    """Return a Gaussian on the range of the plot, which starts at the moments of the pulls."""
    x = Observable("pull", -FURTHEST, FURTHEST, label=f"pull of {label}")
    mean = Parameter("mean", float(np.mean(pulls)), -FURTHEST, FURTHEST)
    width = float(np.clip(np.std(pulls), NARROWEST, WIDEST))
    return Gaussian(x, mean, Parameter("width", width, NARROWEST, WIDEST))


def summary(fitted: PullFit) -> str:
    """Write mean and width, and what a reader must know besides."""
    result, lines = fitted.result, ["Gaussian"]
    for name in ("mean", "width"):
        value, error = round_pdg(result.values[name], result.errors[name])
        lines.append(rf"{name} ${value} \pm {error}$")
    lines += [f"{n} {what}" for n, what in ((fitted.outside, "outside"), (fitted.missing, "without")) if n]
    return "\n".join(lines if result.valid else [*lines, "fit NOT VALID"])


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
