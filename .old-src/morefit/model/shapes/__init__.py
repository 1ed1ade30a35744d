"""Densities of one observable, a file a family."""

from morefit.model.shapes.crystal_ball import CrystalBall
from morefit.model.shapes.exponential import Exponential
from morefit.model.shapes.gaussian import Gaussian
from morefit.model.shapes.polynomial import Polynomial, Uniform

__all__ = ["CrystalBall", "Exponential", "Gaussian", "Polynomial", "Uniform"]
