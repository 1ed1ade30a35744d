"""What is drawn: the graph of a likelihood, of a derivative or of generation, before or after optimisation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from morefit.errors import ModelError, OptionError
from morefit.expr import Expr, Op, Quantity, const, leaves, substitute
from morefit.model import Pdf
from morefit.model.parts import check_model
from morefit.rewrite.bind import bind
from morefit.rewrite.derive import derivatives
from morefit.rewrite.precompute import Precompute
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import normalise
from morefit.rewrite.stages import regroup, split
from morefit.sampling.generate import all_values
from morefit.text.suggest import suggest

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
    derivative: str | None,
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
        return likelihood_graph(model, stage, derivative)
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
