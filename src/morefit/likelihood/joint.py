"""The sum of likelihoods of several datasets; parameters of one name are one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from morefit.arrays import Array, Integers
from morefit.expr import ZERO, Expr, OwnSymbol, scalar, substitute_all
from morefit.likelihood.base import Point, Term
from morefit.likelihood.evaluation import Evaluation, PartData
from morefit.likelihood.parameters import one_of_each
from morefit.likelihood.repeated import without
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Pdf
from morefit.targets.base import Backend


class JointLikelihood(Term):
    """The sum of likelihoods; a constraint that several of them have is one measurement and counts once."""

    def __init__(self, terms: Sequence[Term], labels: tuple[str, ...] = ()) -> None:
        self.labels = labels
        self._parts = tuple(without_repeated([part for term in terms for part in term.parts]))
        self.all_parameters = one_of_each(p for part in self.parts for p in part.all_parameters)
        self.fixed_names = frozenset().union(*(part.fixed_names for part in self.parts))
        place = {p.name: k for k, p in enumerate(self.all_parameters)}
        floating = {p.name: k for k, p in enumerate(self.parameters)}
        self.columns = [[place[p.name] for p in part.all_parameters] for part in self.parts]
        self.rows = [[floating[p.name] for p in part.parameters] for part in self.parts]

    @property
    def parts(self) -> tuple[Likelihood, ...]:
        return self._parts

    def with_parts(self, parts: Sequence[Likelihood]) -> JointLikelihood:
        return JointLikelihood(parts, self.labels)

    @property
    def events(self) -> int:
        return sum(part.events for part in self.parts)

    @property
    def backend(self) -> Backend:
        return self.parts[0].backend

    def add_parts(
        self, full: Array, order: int, evaluate: Callable[[int, Likelihood, Array], Evaluation]
    ) -> Evaluation:
        """Add up evaluations of the parts, each at its own parameters."""
        total = Evaluation.zero(len(full), len(self.parameters))
        for k, (part, columns, rows) in enumerate(zip(self.parts, self.columns, self.rows, strict=True)):
            total.add(evaluate(k, part, np.ascontiguousarray(full[:, columns])), rows, order)
        return total

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        return self.add_parts(full, order, lambda _, part, own: part.evaluate_full(own, order))

    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        return self.add_parts(
            full, order, lambda k, part, own: part.evaluate_many((data[k],), sets, own, order)
        )

    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        return self.add_matrices(full, lambda k, part, own: part.many_scores((data[k],), sets, own))

    def evaluate_again(self, full: Array) -> Evaluation:
        return self.add_parts(full, 2, lambda _, part, own: part.evaluate_again(own))

    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        return self.add_matrices(full, lambda _, part, own: matrix(part, own))

    def add_matrices(self, full: Array, matrix: Callable[[int, Likelihood, Array], Array]) -> Array:
        """Add up matrices of the parts, each at its own parameters."""
        count = len(self.parameters)
        total = np.zeros((len(full), count, count))
        for k, (part, columns, rows) in enumerate(zip(self.parts, self.columns, self.rows, strict=True)):
            own = np.ascontiguousarray(full[:, columns])
            total[np.ix_(range(len(full)), rows, rows)] += matrix(k, part, own)
        return total

    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        full, _ = self.points(x)
        for part, columns in zip(self.parts, self.columns, strict=True):
            yield part, full[0, [columns[k] for k in part.floating_columns]]

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        return f"JointLikelihood({len(self.parts)} parts, {self.events} {self.unit}, parameters: {names})"


def without_repeated(parts: Sequence[Likelihood]) -> Iterator[Likelihood]:
    """Take constraints away from parts that an earlier part has already."""
    seen: set[int] = set()
    for part in parts:
        new = without(part.constraints, seen)
        yield part if len(new) == len(part.constraints) else part.replaced(constraints=new)
        seen.update(map(id, part.constraints))


def share_kernels(parts: Sequence[Likelihood]) -> list[Likelihood]:
    """Let parts whose formulas are equal but for the names of parameters share one program, with the names of the first."""
    groups: dict[tuple[Expr, ...], list[int]] = {}
    for k, part in enumerate(parts):
        if isinstance(part.model, Pdf):
            groups.setdefault(nameless(part.model), []).append(k)
    shared = list(parts)
    for members in groups.values():
        named = {tuple(p.name for p in parts[k].model.parameters) for k in members}
        names = [scalar(OwnSymbol(p.name)) for p in parts[members[0]].model.parameters]
        for k in members if len(named) > 1 else ():
            own = (p.symbol for p in parts[k].model.parameters)
            shared[k] = parts[k].replaced(names=dict(zip(own, names, strict=True)))
            shared[k].renamed = parts[k].origin
    return shared


@lru_cache(maxsize=256)
def nameless(model: Pdf) -> tuple[Expr, ...]:
    """Return the formulas of a density and of the number of events it expects, without the names of its parameters."""
    expected = model.expected_events()
    places = {p.symbol: scalar(OwnSymbol(f"parameter {i}")) for i, p in enumerate(model.parameters)}
    return tuple(substitute_all((model.summed, ZERO if expected is None else expected), places))


def join(terms: Sequence[Term]) -> JointLikelihood:
    """Return the sum of likelihoods."""
    return JointLikelihood(share_kernels([part for term in terms for part in term.parts]))


Term.join = join
