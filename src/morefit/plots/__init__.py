"""Figures: models over data, pulls of toys, profiles, contours, belts, p-values, limits, impacts, correlations."""

from morefit.plots.canvas import Plot
from morefit.plots.categories import Asymmetry, asymmetry
from morefit.plots.correlations import correlation
from morefit.plots.fitted import plot as data
from morefit.plots.impacts import impacts
from morefit.plots.limits import limit
from morefit.plots.projection import Projection, project
from morefit.plots.scans import belt, contour, p_values, profile
from morefit.plots.toy_pulls import PullFit, pulls

__all__ = [
    "Asymmetry", "Plot", "Projection", "PullFit", "asymmetry", "belt", "contour", "correlation", "data", "impacts", "limit", "p_values", "profile",
    "project", "pulls",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
