"""Figures: models over data, in one or two observables, pulls of toys, scans, limits, impacts, correlations, goodness of fit."""

from typing import TYPE_CHECKING

from morefit.plots.canvas import Plot
from morefit.plots.categories import Asymmetry, asymmetry
from morefit.plots.fitted import plot as data
from morefit.plots.impacts import correlation, impacts
from morefit.plots.limits import LimitBands, limit, limits
from morefit.plots.plane import Plane, plane
from morefit.plots.points import Points
from morefit.plots.projection import Projection, project
from morefit.plots.scans import belt, contour, p_values, profile
from morefit.plots.toy_pulls import PullFit, goodness_of_fit, pulls
from morefit.text.names import refuse_names

__all__ = [
    "Asymmetry", "LimitBands", "Plane", "Plot", "Points", "Projection", "PullFit", "asymmetry", "belt", "contour", "correlation", "data",
    "goodness_of_fit", "impacts", "limit", "limits", "p_values", "plane", "profile", "project", "pulls",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # where it would hide what is misspelt
    __getattr__ = refuse_names(__name__)
