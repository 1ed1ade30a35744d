"""Figures of computation graphs: before and after optimisation, folded until they can be read."""

from morefit.inspect.graphs.draw import Drawing, draw

__all__ = ["Drawing", "draw"]
