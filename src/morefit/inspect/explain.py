"""Show what becomes of a model: the graph, the cut, the kernels, and what each stage cost."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.expr import Expr, Op, price, toposort
from morefit.expr.show import to_dot, to_text
from morefit.kernel.ir import Kernel
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.simultaneous import Simultaneous
from morefit.likelihood.unbinned import likelihood_of
from morefit.minimise.problem import as_likelihood
from morefit.model import Pdf
from morefit.pipeline import Compiled
from morefit.rewrite.precompute import READ_PRICE, Precompute
from morefit.rewrite.simplify import simplify
from morefit.rewrite.stages import Stages
from morefit.targets.base import Backend, Events
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.tables import html_text
from morefit.toys.arguments import no_events
from morefit.validate import whole_number

HTML_SHOWN = 10_000  # characters of one part in a notebook
REPEATS = 5  # of an evaluation that is timed
SHOWN = 8  # lines of a kernel's per-call stage; all are in str(kernel)
ORDERS = ("value", "value and gradient", "value, gradient and Hessian")


@dataclass(frozen=True, eq=False)
class Listing:
    """What is shown of a kernel, without its machine code: that of another process is of no use."""

    stages: Stages
    kernel: Kernel
    source: str
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, compiled: Compiled | Listing) -> Listing:
        """Return the listing of a compiled kernel."""
        program = compiled.program
        return cls(compiled.stages, program.kernel, program.source, compiled.seconds)

    @property
    def program(self) -> Listing:
        """The same: kernel and source are read from it as from a program."""
        return self


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What became of a model; print it, or take its parts."""

    before: Expr  # the logarithm of the density as written
    after: Expr  # simplified
    compiled: tuple[Compiled | Listing, ...]  # value; value and gradient; value, gradient and Hessian
    run_seconds: tuple[float, ...]  # of one evaluation each, best of several; empty without data
    events: int

    def __reduce__(self) -> tuple[Any, ...]:
        listings = tuple(map(Listing.of, self.compiled))
        return Explanation, (self.before, self.after, listings, self.run_seconds, self.events)

    def __str__(self) -> str:
        parts = [self.graphs(), self.cut(), *map(self.kernel, range(len(self.compiled))), self.times()]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        nodes = " to ".join(str(len(toposort(expr))) for expr in (self.before, self.after))
        return f"Explanation: {nodes} nodes, {len(self.compiled)} kernels. Print it, or see kernel(), source(), times()"

    def _repr_html_(self) -> str:
        """Return the parts for a notebook, folded but for the times; a part that is too long is cut."""
        parts = [self.graphs(), self.cut(), *map(self.kernel, range(len(self.compiled)))]
        folded = (part.partition("\n") for part in parts)
        lines = [
            f"<details><summary>{html.escape(title)}</summary>{html_text(shortened(rest))}</details>"
            for title, _, rest in folded
        ]
        return f"<p>{html.escape(repr(self))}</p>{''.join(lines)}{html_text(self.times())}"

    def graphs(self) -> str:
        """Return the graph before and after simplification."""
        lines = ["graph"]
        for name, expr in (("as written", self.before), ("simplified", self.after)):
            lines += [f"  {name}: {len(toposort(expr))} nodes, price {price(expr)}", f"    {to_text(expr)}"]
        return "\n".join(lines)

    def cut(self) -> str:
        """Return what is computed per call, per dataset and per event for the value, with prices."""
        stages = self.compiled[0].stages
        lines = ["cut (of the value)"]
        lines += rows("per call", stages.per_call.items())
        lines += rows("per dataset", stages.per_dataset.items())
        lines += [f"  per event: {to_text(e)}" for e in stages.per_event if e.op is not Op.CONST]
        reads = len(self.compiled[0].program.kernel.columns)
        lines.append(
            f"  the loop costs {price(*stages.per_event)} and reads {reads} columns at {READ_PRICE} each,"
            " in additions on vectors"
        )
        return "\n".join(lines)

    def kernel(self, order: int) -> str:
        """Return the kernel of one order as text."""
        order = check_order(order)
        return f"kernel for {ORDERS[order]}\n{indent(self.compiled[order].program.kernel.to_text(SHOWN))}"

    def source(self, order: int = 0) -> str:
        """Return the text the backend compiled."""
        return self.compiled[check_order(order)].program.source

    def dot(self) -> str:
        """Return the simplified graph for Graphviz, coloured by what each node depends on."""
        return to_dot(self.after)

    def times(self) -> str:
        """Return what each stage cost, and one evaluation."""
        stages = list(dict.fromkeys(name for c in self.compiled for name in c.seconds))
        headings = (*stages, "run", "ns/event") if self.run_seconds else stages
        lines = ["time [ms]" + "".join(f"{s:>10}" for s in headings) + "   for"]
        for order, c in enumerate(self.compiled):
            cells = [c.seconds.get(s, 0.0) * 1e3 for s in stages]
            if self.run_seconds:
                cells += [self.run_seconds[order] * 1e3, self.run_seconds[order] / max(self.events, 1) * 1e9]
            lines.append(" " * 9 + "".join(f"{c:>10.3f}" for c in cells) + f"   {ORDERS[order]}")
        return "\n".join(lines)


def check_order(order: Any) -> int:
    """Return the order of derivatives of a kernel."""
    number = whole_number("explanation: order", order)
    if number >= len(ORDERS):
        raise OptionError(f"explanation: order must be 0, 1 or 2, for {', '.join(ORDERS)}, got {number}")
    return number


def shortened(text: str) -> str:
    """Return the beginning of a text that is too long for a notebook."""
    return text if len(text) <= HTML_SHOWN else f"{text[:HTML_SHOWN]} ...\nprint the explanation to see all"


def rows(kind: str, terms: Iterable[tuple[str, Expr]]) -> list[str]:
    return [f"  {kind}: {name} = {to_text(expr)}   (price {price(expr)})" for name, expr in terms]


def indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class JointExplanation:
    """What became of each part of a sum of likelihoods."""

    parts: tuple[Explanation, ...]

    def __str__(self) -> str:
        return self.of_each(str)

    def of_each(self, what: Callable[[Explanation], str]) -> str:
        """Return one text of each part, below its number."""
        return "\n\n".join(f"part {k}\n{indent(what(part))}" for k, part in enumerate(self.parts))

    def graphs(self) -> str:
        """Return the graphs of all parts before and after simplification."""
        return self.of_each(Explanation.graphs)

    def cut(self) -> str:
        """Return what is computed per call, per dataset and per event in each part."""
        return self.of_each(Explanation.cut)

    def kernel(self, order: int) -> str:
        """Return the kernels of one order as text."""
        return self.of_each(lambda part: part.kernel(order))

    def source(self, order: int = 0) -> str:
        """Return the texts the backend compiled, one after the other."""
        return "\n".join(part.source(order) for part in self.parts)

    def dot(self) -> str:
        """Return the simplified graphs for Graphviz, one after the other."""
        return "\n".join(part.dot() for part in self.parts)

    def times(self) -> str:
        """Return what each stage cost, and one evaluation of each part."""
        return self.of_each(Explanation.times)

    def __repr__(self) -> str:
        return f"JointExplanation: {len(self.parts)} parts. Print it, or see parts[0] ..."

    def _repr_html_(self) -> str:
        return "".join(f"<h4>part {k}</h4>{part._repr_html_()}" for k, part in enumerate(self.parts))


@overload
def explain(
    model: Pdf | Likelihood, data: Any = None, *, constraints: Sequence[Any] | Any = (),
    backend: str | Backend = "auto", precompute: Precompute = "auto",
) -> Explanation: ...  # fmt: skip
@overload
def explain(
    model: Simultaneous, data: Any = None, *, constraints: Sequence[Any] | Any = (),
    backend: str | Backend = "auto", precompute: Precompute = "auto",
) -> Explanation | JointExplanation: ...  # fmt: skip
@overload
def explain(model: Term) -> Explanation | JointExplanation: ...
@in_sentences
def explain(
    model: Pdf | Simultaneous | Term,
    data: Any = None,
    *,
    constraints: Sequence[Any] | Any = (),
    backend: str | Backend = "auto",
    precompute: Precompute = "auto",
) -> Explanation | JointExplanation:
    """Show the graph of a model before and after, the cut with prices, the kernels and the time of each stage.

    Of a likelihood, or of a model with ``data`` and ``constraints``, the kernels are those that its fit uses.

    Example: ``mf.explain(model).cut()``
    """
    if isinstance(model, Term):
        term = as_likelihood("explain", model, data, constraints=constraints)
    else:
        events = no_events(model) if data is None else data
        term = likelihood_of(model, events, constraints=constraints, backend=backend, precompute=precompute)
    parts = tuple(map(explain_part, term.parts))
    return parts[0] if len(parts) == 1 else JointExplanation(parts)


def explain_part(part: Likelihood) -> Explanation:
    """Explain the likelihood of one dataset; without events in memory nothing is timed."""
    compiled = tuple(part.compile_request(part.request(order)) for order in (0, 1, 2))
    seconds = tuple(best_of(c, part) for c in compiled) if part.events and part.data.in_memory else ()
    return Explanation(
        before=part.model.summed,
        after=simplify(part.model.summed),
        compiled=compiled,
        run_seconds=seconds,
        events=part.events,
    )


def best_of(compiled: Compiled, part: Likelihood) -> float:
    """Time one evaluation, best of several."""
    bound = compiled.bind(part.columns, Events.all_sets(part.events), part.data.weights, part.boxes)
    point = part.with_measured(np.array([[p.start for p in part.all_parameters]]))
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        bound(point)
        times.append(time.perf_counter() - begin)
    return min(times)
