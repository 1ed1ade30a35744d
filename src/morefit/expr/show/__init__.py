"""Show an expression: as a line of text, as LaTeX, as a graph for Graphviz."""

from typing import TYPE_CHECKING

from morefit.expr.show.text import number_text, to_latex, to_text

if TYPE_CHECKING:
    from morefit.expr.show.dot import COLOURS, to_dot
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(__name__, {"morefit.expr.show.dot": ["COLOURS", "to_dot"]})

__all__ = [
    "COLOURS",
    "number_text",
    "to_dot",
    "to_latex",
    "to_text",
]
