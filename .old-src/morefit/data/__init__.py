"""Named columns of numbers, one number per event, with optional weights: read, checked and kept unchanged."""

from morefit.data.dataset import Dataset
from morefit.data.reading import read
from morefit.data.report import CutReport

__all__ = ["CutReport", "Dataset", "read"]
