"""Densities that are tables of numbers: histograms, splines, kernel estimates, and interpolation between densities."""

from morefit.model.templates.histogram import Histogram, histogram_function
from morefit.model.templates.kernel_density import KernelDensity
from morefit.model.templates.morph import MomentMorph, Morph
from morefit.model.templates.spline import Spline

__all__ = ["Histogram", "KernelDensity", "MomentMorph", "Morph", "Spline", "histogram_function"]
