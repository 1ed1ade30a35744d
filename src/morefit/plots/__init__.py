"""Figures: models over data, pulls of toys, profiles, contours, belts, p-values, correlations."""

from morefit.plots.canvas import Plot
from morefit.plots.correlation import plot_correlation
from morefit.plots.data import plot
from morefit.plots.projection import Projection, project
from morefit.plots.pulls import PullFit, plot_pulls
from morefit.plots.scans import plot_belt, plot_contour, plot_p_values, plot_profile

__all__ = [
    "Plot", "Projection", "PullFit", "plot", "plot_belt", "plot_contour", "plot_correlation", "plot_p_values",
    "plot_profile", "plot_pulls", "project",
]  # fmt: skip
