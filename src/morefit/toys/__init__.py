"""Studies of many toys: draw them, fit each, and sum up values, errors, pulls and coverage."""

from morefit.toys.many import fit_many
from morefit.toys.results import ARRAYS, HOW, ToyResults
from morefit.toys.study import toy_study
from morefit.toys.summary import Bias, Coverage, PullSummary, clopper_pearson

__all__ = [
    "ARRAYS", "HOW", "Bias", "Coverage", "PullSummary", "ToyResults", "clopper_pearson", "fit_many",
    "toy_study",
]  # fmt: skip
