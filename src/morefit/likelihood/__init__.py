"""Likelihoods: what is minimised, for one dataset, several, bins, points, and constraints."""

from typing import TYPE_CHECKING

from morefit.likelihood.base import Term
from morefit.likelihood.constraint import Constraint, constraint
from morefit.likelihood.evaluation import BadEvents, Evaluation
from morefit.likelihood.generate import generate
from morefit.likelihood.joint import JointLikelihood
from morefit.likelihood.unbinned import Likelihood

if TYPE_CHECKING:
    from morefit.likelihood.binned import BinnedLikelihood
    from morefit.likelihood.histfactory import HistFactoryLikelihood
    from morefit.likelihood.least_squares import LeastSquares
    from morefit.likelihood.simultaneous import Simultaneous
    from morefit.likelihood.templates import TemplateLikelihood
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.likelihood.binned": ["BinnedLikelihood"],
            "morefit.likelihood.histfactory": ["HistFactoryLikelihood"],
            "morefit.likelihood.least_squares": ["LeastSquares"],
            "morefit.likelihood.simultaneous": ["Simultaneous"],
            "morefit.likelihood.templates": ["TemplateLikelihood"],
        },
    )

__all__ = [
    "BadEvents",
    "BinnedLikelihood",
    "Constraint",
    "Evaluation",
    "HistFactoryLikelihood",
    "JointLikelihood",
    "LeastSquares",
    "Likelihood",
    "Simultaneous",
    "TemplateLikelihood",
    "Term",
    "constraint",
    "generate",
]
