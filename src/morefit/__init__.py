"""Maximum-likelihood fits with densities compiled just in time."""

from morefit import intervals, physics
from morefit.backend import Cpu, OpenCL, devices
from morefit.data import Dataset
from morefit.errors import BackendError, CompileError, DataError, FitError, ModelError, MorefitError
from morefit.explain import Explanation, explain
from morefit.expr import where
from morefit.fit import FitResult, fit
from morefit.generate import generate
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
from morefit.toys import ToyResults

__all__ = [
    "BackendError", "CompileError", "Cpu", "CrystalBall", "DataError", "Dataset", "Density", "Explanation",
    "Exponential", "FitError", "FitResult", "Gaussian", "Likelihood", "ModelError", "MorefitError",
    "Observable", "OpenCL", "Parameter", "Pdf", "Polynomial", "Product", "Sum", "ToyResults", "Uniform",
    "devices", "explain", "fit", "fit_many", "gaussian_constraint", "generate", "intervals", "physics",
    "toy_study", "where",
]  # fmt: skip
__version__ = "0.1.0"
