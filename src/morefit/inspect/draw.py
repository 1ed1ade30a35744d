"""Draw the graph of a likelihood, a derivative or generation: coloured by what each part depends on, numbered where it is computed once."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal

from morefit.dataclass import dataclass
from morefit.errors import BackendError, ModelError, OptionError
from morefit.expr import Expr, Op, Quantity, const, leaves, substitute
from morefit.expr.show.dot import dot_text
from morefit.inspect.fold import numbers_in, readable
from morefit.model import Parameter, Pdf
from morefit.model.parts import check_model
from morefit.records.output import complete_file
from morefit.rewrite.derive import derivatives
from morefit.rewrite.precompute import Precompute
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import bind, normalise
from morefit.rewrite.stages import regroup, split
from morefit.sampling.generate import all_values
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.suggest import suggest
from morefit.validate import name_of

Stage = Literal["before", "after"]
STAGES: dict[Stage, str] = {"before": "as written", "after": "optimised"}


@dataclass(frozen=True)
class Subject:
    """An expression to draw, and the terms of it that are computed once: per call b0, ..., per dataset c0, ..."""

    root: Expr
    terms: Mapping[Expr, str]
    title: str


def likelihood_graph(model: Pdf | Quantity, stage: Stage, derivative: str | None) -> Subject:
    """Return what is summed over events, the logarithm of the density, or its slope in one parameter."""
    root = model.log_intensity() if isinstance(model, Pdf) else model.expr
    what = "logarithm of the density" if isinstance(model, Pdf) else "expression"
    if derivative is not None:
        what = f"derivative of the {what} by {derivative}"
        leaf = find_parameter(derivative, leaves(Op.SCALAR, root))
        if stage == "before":
            (root,) = derivatives(root, (leaf,), Rewriter(()))  # the chain rule without any algebra
        else:
            (root,) = derivatives(normalise(root)[0], (leaf,))
    return numbered(root, stage, what)


def generation_graph(model: Pdf, stage: Stage, values: Mapping[str, float] | None) -> Subject:
    """Return the density that events are drawn from, its parameters being numbers."""
    known = all_values(model, values, "values")
    density = model.density()
    if stage == "after":
        (root,) = bind([density], known)
    else:
        root = substitute(density, {leaf: const(known[leaf.name]) for leaf in leaves(Op.SCALAR, density)})
    return numbered(root, stage, "density that events are drawn from", "none")


def numbered(root: Expr, stage: Stage, what: str, precompute: Precompute = "auto") -> Subject:
    """Cut a graph as a kernel is cut, and number what is computed once."""
    if stage == "after":
        (root,) = regroup(normalise(root))
    stages = split([root], precompute)
    terms = {term: name for name, term in (*stages.per_call.items(), *stages.per_dataset.items())}
    return Subject(root, terms, f"{what}, {STAGES[stage]}")


def choose(
    model: Pdf | Quantity,
    stage: Stage,
    derivative: str | Parameter | None,
    generation: bool,
    values: Mapping[str, float] | None,
) -> Subject:
    """Check the arguments of ``draw``, and return what they describe."""
    if not isinstance(model, (Pdf, Quantity)):
        raise ModelError(f"draw: takes a model or an expression, got {type(model).__name__}")
    if stage not in STAGES:
        raise OptionError(f"draw: stage must be 'before' or 'after', got {stage!r}")
    if isinstance(model, Pdf):
        check_model(model)
    if not generation:
        if values is not None:
            raise OptionError("draw: values are for generation; add generation=True or leave them out")
        return likelihood_graph(model, stage, name_of(derivative))
    if derivative is not None:
        raise OptionError(
            f"draw: generation has no derivatives, got derivative={derivative!r}; leave one out"
        )
    if not isinstance(model, Pdf):
        raise ModelError("draw: generation needs a model, got an expression; wrap it in mf.Density")
    return generation_graph(model, stage, values)


def find_parameter(name: str, known: Iterable[Expr]) -> Expr:
    """Return the leaf of this name."""
    names = {leaf.name: leaf for leaf in known}
    if name not in names:
        raise ModelError(f"model: has no parameter {name!r}; {suggest(name, names)}")
    return names[name]


TEXTS = (".dot", ".gv")
PICTURES = (".svg", ".png", ".pdf")
SECONDS = 60  # a graph that can be read is laid out in less than one


@methods_in_sentences
@dataclass(frozen=True)
class Drawing:
    """A graph as text for Graphviz; where its program ``dot`` is installed, also as a picture."""

    dot: str
    title: str
    boxes: int
    hidden: int  # nodes of the graph that no box stands for

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .dot file, or with Graphviz a .svg, .png or .pdf file."""
        target = Path(path).expanduser()
        kind = target.suffix.lower()
        if kind not in (*TEXTS, *PICTURES):
            known = ", ".join((*TEXTS, *PICTURES))
            raise ModelError(
                f"drawing: the name of a file must end in {known}, got '{target.name}'; rename it"
            )
        content = self.dot.encode() if kind in TEXTS else picture(self.dot, kind[1:])
        with complete_file(target) as part:
            part.write_bytes(content)

    def __str__(self) -> str:
        return self.dot

    def __repr__(self) -> str:
        hidden = f", {self.hidden} nodes not drawn" if self.hidden else ""
        return f"Drawing: {self.title}; {self.boxes} boxes{hidden}. Print it, or save('graph.svg')"

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook; None, where it cannot be made, leaves the text."""
        try:
            return picture(self.dot, "svg").decode()
        except BackendError:
            return None


def picture(dot: str, kind: str) -> bytes:
    """Let Graphviz draw."""
    program = shutil.which("dot")
    if program is None:
        raise BackendError(
            f"drawing: a .{kind} file is made by Graphviz, whose program 'dot' was not found; install Graphviz"
            " (graphviz.org), or save a .dot file and draw that elsewhere"
        )
    try:
        done = subprocess.run(
            [program, f"-T{kind}"], input=dot.encode(), capture_output=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"drawing: '{program}' did not draw, got {error}; save a .dot file") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[0] if lines else f"status {done.returncode}"
        raise BackendError(
            f"drawing: '{program}' did not draw a .{kind} file, got {reason}; save a .dot file"
        )
    return done.stdout


LEGEND = (
    "light red: parameters only, once per call; light blue: the event only; white: both, in the loop; grey: numbers\n"
    "framed: computed once, b per call, c per dataset"
)


@in_sentences
def draw(
    model: Pdf | Quantity,
    *,
    stage: Stage = "before",
    derivative: str | Parameter | None = None,
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
