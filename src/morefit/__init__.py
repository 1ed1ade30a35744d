"""Maximum-likelihood fits with densities compiled just in time."""

from morefit import intervals, physics
from morefit.data import CutReport, Dataset, read
from morefit.drawing import Drawing, draw
from morefit.errors import BackendError, CompileError, DataError, FitError, ModelError, MorefitError
from morefit.explain import Explanation, explain
from morefit.expr import where
from morefit.figures import (
    Plot,
    plot,
    plot_belt,
    plot_contour,
    plot_correlation,
    plot_p_values,
    plot_profile,
    plot_pulls,
)
from morefit.fit import FitResult, fit
from morefit.generate import generate
from morefit.information import FisherInformation, fisher_information
from morefit.likelihood import Likelihood, gaussian_constraint
from morefit.model import (
    CrystalBall,
    Density,
    Exponential,
    Gaussian,
    Observable,
    Parameter,
    Pdf,
    Polynomial,
    Product,
    Sum,
    Uniform,
)
from morefit.study import fit_many, toy_study
from morefit.targets import Cpu, OpenCL, devices
from morefit.toys import ToyResults

__all__ = [
    "BackendError", "CompileError", "Cpu", "CrystalBall", "CutReport", "DataError", "Dataset", "Density", "Drawing", "Explanation",
    "Exponential", "FisherInformation", "FitError", "FitResult", "Gaussian", "Likelihood", "ModelError", "MorefitError",
    "Observable", "OpenCL", "Parameter", "Pdf", "Plot", "Polynomial", "Product", "Sum", "ToyResults", "Uniform",
    "devices", "draw", "explain", "fisher_information", "fit", "fit_many", "gaussian_constraint", "generate", "intervals", "physics",
    "plot", "plot_belt", "plot_contour", "plot_correlation", "plot_p_values", "plot_profile", "plot_pulls", "read",
    "toy_study", "where",
]  # fmt: skip
__version__ = "0.1.0"
