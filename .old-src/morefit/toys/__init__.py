"""What a study of many toys found: values, errors, pulls, coverage, and how it looks in print."""

from morefit.toys.results import ARRAYS, HOW, ToyResults
from morefit.toys.summary import Bias, Coverage, PullSummary, clopper_pearson

__all__ = ["ARRAYS", "HOW", "Bias", "Coverage", "PullSummary", "ToyResults", "clopper_pearson"]
