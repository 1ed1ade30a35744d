"""What the user writes: observables, parameters and densities."""

from typing import TYPE_CHECKING

from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf

if TYPE_CHECKING:
    from morefit.model.compose import Product, Sum
    from morefit.model.compose.convolution import Convolution
    from morefit.model.density import Density
    from morefit.model.shapes.crystal_ball import CrystalBall
    from morefit.model.shapes.exponential import Exponential
    from morefit.model.shapes.gaussian import Gaussian
    from morefit.model.shapes.polynomial import Polynomial, Uniform
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.model.compose": ["Product", "Sum"],
            "morefit.model.compose.convolution": ["Convolution"],
            "morefit.model.density": ["Density"],
            "morefit.model.shapes.crystal_ball": ["CrystalBall"],
            "morefit.model.shapes.exponential": ["Exponential"],
            "morefit.model.shapes.gaussian": ["Gaussian"],
            "morefit.model.shapes.polynomial": ["Polynomial", "Uniform"],
        },
    )

__all__ = [
    "Convolution", "CrystalBall", "Density", "Exponential", "Gaussian", "Observable", "Parameter", "Pdf", "Polynomial",
    "Product", "Sum", "Uniform",
]  # fmt: skip
