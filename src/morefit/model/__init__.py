"""What the user writes: observables, parameters and densities."""

from morefit.model.compose import Product, Sum
from morefit.model.density import Density
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.shapes.crystal_ball import CrystalBall
from morefit.model.shapes.exponential import Exponential
from morefit.model.shapes.gaussian import Gaussian
from morefit.model.shapes.polynomial import Polynomial, Uniform

__all__ = [
    "CrystalBall", "Density", "Exponential", "Gaussian", "Observable", "Parameter", "Pdf", "Polynomial",
    "Product", "Sum", "Uniform",
]  # fmt: skip
