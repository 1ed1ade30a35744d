"""Records of drivers as Python sees them: numbers and arrays with names, in one array."""

from __future__ import annotations

import numpy as np

from morefit.kernel.program import Layout


class PythonRecord:
    """The numbers of a record, by name."""

    def __init__(self, layout: Layout, numbers: np.ndarray) -> None:
        self.__dict__.update(layout=layout, numbers=numbers)

    def __getattr__(self, name: str):
        layout = self.__dict__["layout"]
        part = self.__dict__["numbers"][layout.slice(name)]
        return part if name in layout.arrays else part[0]

    def __setattr__(self, name: str, value: float) -> None:
        assert name not in self.layout.arrays
        self.numbers[self.layout.first(name)] = value
