"""Likelihoods: what is minimised, for one dataset, several, bins, and constraints."""

from morefit.likelihood.base import BadEvents, Evaluation, Term
from morefit.likelihood.binned import BinnedLikelihood
from morefit.likelihood.constraint import Constraint, constraint
from morefit.likelihood.generate import generate
from morefit.likelihood.joint import JointLikelihood
from morefit.likelihood.least_squares import LeastSquares
from morefit.likelihood.unbinned import Likelihood

__all__ = [
    "BadEvents",
    "BinnedLikelihood",
    "Constraint",
    "Evaluation",
    "JointLikelihood",
    "LeastSquares",
    "Likelihood",
    "Term",
    "constraint",
    "generate",
]
