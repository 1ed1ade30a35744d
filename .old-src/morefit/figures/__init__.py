"""Figures: models over data, pulls of toys, profiles, contours, belts, p-values, correlations."""

from morefit.figures.canvas import Plot
from morefit.figures.fitted import plot
from morefit.figures.matrix import plot_correlation
from morefit.figures.projection import Projection, project
from morefit.figures.scans import plot_belt, plot_contour, plot_p_values, plot_profile
from morefit.figures.toys import PullFit, plot_pulls

__all__ = [
    "Plot", "Projection", "PullFit", "plot", "plot_belt", "plot_contour", "plot_correlation", "plot_p_values",
    "plot_profile", "plot_pulls", "project",
]  # fmt: skip
