"""Draw the graph of a model: coloured by what each part depends on, numbered where it is computed once."""

from __future__ import annotations

from collections.abc import Mapping

from morefit.errors import OptionError
from morefit.expr import Quantity
from morefit.expr.show.dot import dot_text
from morefit.inspect.graphs.figure import Drawing
from morefit.inspect.graphs.fold import numbers_in, readable
from morefit.inspect.graphs.subject import Stage, choose
from morefit.model import Pdf
from morefit.text.arguments import in_sentences

LEGEND = (
    "light red: parameters only, once per call; light blue: the event only; white: both, in the loop; grey: numbers\n"
    "framed: computed once, b per call, c per dataset"
)


@in_sentences
def draw(
    model: Pdf | Quantity,
    *,
    stage: Stage = "before",
    derivative: str | None = None,
    generation: bool = False,
    values: Mapping[str, float] | None = None,
    limit: int = 80,
) -> Drawing:
    """Draw the computation graph of a model, or of an expression.

    Parameters
    ----------
    stage : "before" draws the graph as written, "after" as it is computed: simplified, differentiated, regrouped
    derivative : the parameter by which the logarithm of the density is differentiated; None draws it itself
    generation : draw the density that events are drawn from, its parameters bound to ``values``
    values : of parameters, by name; the others have their start values
    limit : boxes of the picture; in a larger graph equivalent parts are drawn once, with their number beside the
        arrow, and what is still too much is dots

    Example: ``mf.draw(model)``
    """
    if limit < 1:
        raise OptionError(f"draw: limit must be positive, got {limit}")
    subject = choose(model, stage, derivative, generation, values)
    graph = readable(subject.root, subject.terms, limit)
    bundles = graph.nearest(limit)
    drawn = {node for bundle in bundles for member in bundle for node in (member, *numbers_in(member))}
    text = dot_text(graph.boxes(bundles), f"{subject.title}\n{LEGEND}")
    return Drawing(text, subject.title, len(bundles), len(graph.place) - len(drawn))
