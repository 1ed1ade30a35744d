"""What the user writes: observables, parameters and densities."""

from typing import TYPE_CHECKING

from morefit.model.derived import Derived
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf

if TYPE_CHECKING:
    from morefit.model.compose import Choice, Product, Restricted, Sum
    from morefit.model.compose.convolution import Convolution
    from morefit.model.compose.efficiency import Efficiency
    from morefit.model.density import Density
    from morefit.model.shapes.crystal_ball import CrystalBall
    from morefit.model.shapes.exponential import Exponential
    from morefit.model.shapes.gaussian import Gaussian
    from morefit.model.shapes.polynomial import Polynomial, Uniform
    from morefit.model.templates import (
        Histogram,
        KernelDensity,
        MomentMorph,
        Morph,
        Spline,
        histogram_function,
    )
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.model.compose": ["Choice", "Product", "Restricted", "Sum"],
            "morefit.model.compose.convolution": ["Convolution"],
            "morefit.model.compose.efficiency": ["Efficiency"],
            "morefit.model.density": ["Density"],
            "morefit.model.shapes.crystal_ball": ["CrystalBall"],
            "morefit.model.shapes.exponential": ["Exponential"],
            "morefit.model.shapes.gaussian": ["Gaussian"],
            "morefit.model.shapes.polynomial": ["Polynomial", "Uniform"],
            "morefit.model.templates": [
                "Histogram", "KernelDensity", "MomentMorph", "Morph", "Spline", "histogram_function",
            ],
        },
    )  # fmt: skip

__all__ = [
    "Choice", "Convolution", "CrystalBall", "Density", "Derived", "Efficiency", "Exponential", "Gaussian", "Histogram", "KernelDensity", "MomentMorph", "Morph", "Observable", "Parameter", "Pdf", "Polynomial",
    "Product", "Restricted", "Spline", "Sum", "Uniform", "histogram_function",
]  # fmt: skip
