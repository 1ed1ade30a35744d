"""Datasets: named columns with one number per event and optional weights, read from files or objects and checked."""

from typing import TYPE_CHECKING

from morefit.data.dataset import Dataset
from morefit.data.labels import Category

if TYPE_CHECKING:
    from morefit.data.files import FileDataset
    from morefit.data.reading import read
    from morefit.data.report import CutReport
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.data.files": ["FileDataset"],
            "morefit.data.reading": ["read"],
            "morefit.data.report": ["CutReport"],
        },
    )

__all__ = ["Category", "CutReport", "Dataset", "FileDataset", "read"]
