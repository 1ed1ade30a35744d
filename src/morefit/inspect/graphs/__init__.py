"""Figures of computation graphs: before and after optimisation, folded until they can be read."""

from morefit.inspect.graphs.draw import draw
from morefit.inspect.graphs.figure import Drawing

__all__ = ["Drawing", "draw"]
