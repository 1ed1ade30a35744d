"""Show an expression: as a line of text, as LaTeX, as a graph for Graphviz."""

from morefit.expr.show.dot import COLOURS, to_dot
from morefit.expr.show.latex import to_latex
from morefit.expr.show.text import number_text, to_text

__all__ = [
    "COLOURS",
    "number_text",
    "to_dot",
    "to_latex",
    "to_text",
]
