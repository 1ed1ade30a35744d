"""Figures of computation graphs: before and after optimisation, folded until they can be read."""

from morefit.drawing.draw import draw
from morefit.drawing.figure import Drawing

__all__ = ["Drawing", "draw"]
