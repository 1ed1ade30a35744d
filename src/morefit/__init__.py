"""Maximum-likelihood fits with densities compiled just in time."""

from morefit import intervals
from morefit.data import CutReport, Dataset, read
from morefit.errors import (
    BackendError,
    BrokenJob,
    CompileError,
    DataError,
    FitError,
    ModelError,
    MorefitError,
)
from morefit.expr import where
from morefit.inspect.explain import Explanation, explain
from morefit.inspect.graphs import Drawing, draw
from morefit.intervals.information import FisherInformation, fisher_information
from morefit.likelihood.unbinned import Likelihood, gaussian_constraint
from morefit.minimise import FitResult, fit
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
    physics,
)
from morefit.plots import (
    Plot,
    plot,
    plot_belt,
    plot_contour,
    plot_correlation,
    plot_p_values,
    plot_profile,
    plot_pulls,
)
from morefit.sampling.generate import generate
from morefit.targets import Cpu, OpenCL, devices
from morefit.toys import ToyResults, fit_many, toy_study

__all__ = [
    "BackendError", "BrokenJob", "CompileError", "Cpu", "CrystalBall", "CutReport", "DataError", "Dataset", "Density", "Drawing", "Explanation",
    "Exponential", "FisherInformation", "FitError", "FitResult", "Gaussian", "Likelihood", "ModelError", "MorefitError",
    "Observable", "OpenCL", "Parameter", "Pdf", "Plot", "Polynomial", "Product", "Sum", "ToyResults", "Uniform",
    "devices", "draw", "explain", "fisher_information", "fit", "fit_many", "gaussian_constraint", "generate", "intervals", "physics",
    "plot", "plot_belt", "plot_contour", "plot_correlation", "plot_p_values", "plot_profile", "plot_pulls", "read",
    "toy_study", "where",
]  # fmt: skip
__version__ = "0.1.0"
