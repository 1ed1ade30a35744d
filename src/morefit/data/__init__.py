"""Datasets: named columns with one number per event and optional weights, read from files or objects and checked."""

from morefit.data.dataset import Dataset
from morefit.data.reading import read
from morefit.data.report import CutReport

__all__ = ["CutReport", "Dataset", "read"]
