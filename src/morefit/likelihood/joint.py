"""The sum of likelihoods of several datasets; parameters of one name are one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from morefit.arrays import Array, Integers
from morefit.expr import ZERO, Expr, OwnSymbol, scalar, substitute_all
from morefit.expr.walk import forms_of
from morefit.likelihood.accuracy import node_sums
from morefit.likelihood.base import Point, Term
from morefit.likelihood.evaluation import Evaluation, PartData
from morefit.likelihood.parameters import one_of_each, symbols_of
from morefit.likelihood.repeated import without
from morefit.likelihood.shared_form import OwnForm, SharedForm, shared_form
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Parameter, Pdf
from morefit.targets.base import Backend

MIN_FORMULAS = 3  # that differ in numbers alone: for fewer, numbers in the program save more than its second compilation takes


class JointLikelihood(Term):
    """The sum of likelihoods; a constraint that several of them have is one measurement and counts once."""

    def __init__(self, terms: Sequence[Term], labels: tuple[str, ...] = ()) -> None:
        self.labels = labels
        self._parts = tuple(without_repeated([part for term in terms for part in term.parts]))
        self.fixed_names = frozenset().union(*[part.fixed_names for part in self.parts])
        own = tuple([part.all_parameters for part in self.parts])
        self.all_parameters = joined(own)
        self.columns = places_among(self.all_parameters, own)
        self.rows = places_among(self.parameters, tuple([part.parameters for part in self.parts]))

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


@lru_cache(maxsize=256)  # every fit asks
def joined(each: tuple[tuple[Parameter, ...], ...]) -> tuple[Parameter, ...]:
    """Return the parameters of all parts, one of each name."""
    return one_of_each(p for own in each for p in own)


@lru_cache(maxsize=256)  # every fit asks
def places_among(
    parameters: tuple[Parameter, ...], each: tuple[tuple[Parameter, ...], ...]
) -> list[list[int]]:
    """Return where the parameters of each part are among some."""
    place = {p.name: k for k, p in enumerate(parameters)}
    return [[place[p.name] for p in own] for own in each]


def without_repeated(parts: Sequence[Likelihood]) -> Iterator[Likelihood]:
    """Take constraints away from parts that an earlier part has already."""
    seen: set[int] = set()
    for part in parts:
        new = without(part.constraints, seen)
        yield part if len(new) == len(part.constraints) else part.replaced(constraints=new)
        seen.update(map(id, part.constraints))


def share_kernels(parts: Sequence[Likelihood]) -> list[Likelihood]:
    """Let parts whose formulas are equal but for the names of parameters share one program, with the names of the first.

    So do several whose formulas differ in numbers as well, which become arguments of the program.
    """
    groups: dict[tuple[Expr, ...], list[int]] = {}
    for k, part in enumerate(parts):
        if isinstance(part.model, Pdf):
            groups.setdefault(nameless(part.model), []).append(k)
    shared = list(parts)
    for members in with_one_form(groups, shared):
        named = {tuple(p.name for p in parts[k].model.parameters) for k in members}
        by_numbers = shared[members[0]].form is not None
        for k in members if len(named) > 1 or by_numbers else ():
            shared[k] = shared[k].replaced(names=names_of_other(parts[k].model, parts[members[0]].model))
            shared[k].renamed = parts[k].origin
    return shared


@lru_cache(maxsize=256)  # every fit asks
def names_of_other(model: Pdf, other: Pdf) -> Mapping[Expr, Expr]:
    """Return what the parameters of a density are called in kernels that have the names of another one's."""
    names = [scalar(OwnSymbol(p.name)) for p in other.parameters]
    return dict(zip(symbols_of(model.parameters), names, strict=True))


def with_one_form(groups: Mapping[tuple[Expr, ...], list[int]], parts: list[Likelihood]) -> list[list[int]]:
    """Replace parts whose formulas differ in numbers by those with one form; return all that may share a program."""
    able = [
        roots
        for roots, members in groups.items()
        if all(type(parts[k]) is Likelihood for k in members) and not node_sums(parts[members[0]].model)
    ]
    sharing = list[list[int]]()
    for some, form in shared_forms(tuple(able)):
        for roots, numbers in zip(some, form.numbers, strict=True):
            for k in groups[roots]:
                other = parts[k].replaced(form=own_form(parts[k].model, form, numbers))
                other.renamed = parts[k].origin
                parts[k] = other
        sharing.append(sorted(k for roots in some for k in groups[roots]))
    together = {k for members in sharing for k in members}
    return [*sharing, *(members for members in groups.values() if members[0] not in together)]


@lru_cache(maxsize=64)  # every fit of a simultaneous model asks
def shared_forms(
    formulas: tuple[tuple[Expr, ...], ...],
) -> tuple[tuple[tuple[tuple[Expr, ...], ...], SharedForm], ...]:
    """Return which formulas differ in numbers alone, if they are enough, each time with the form that they share."""
    similar: dict[tuple[tuple[int, int], ...], list[tuple[Expr, ...]]] = {}
    for roots in formulas:
        own = forms_of(*roots)
        similar.setdefault(tuple(own[root].kind for root in roots), []).append(roots)
    forms = [(tuple(some), shared_form(some)) for some in similar.values() if len(some) >= MIN_FORMULAS]
    return tuple((some, form) for some, form in forms if form is not None)


@lru_cache(maxsize=256)
def own_form(model: Pdf, form: SharedForm, numbers: tuple[float, ...]) -> OwnForm:
    """Return a form in the parameters of one of those who share it."""
    own = {scalar(OwnSymbol(f"parameter {i}")): p.symbol for i, p in enumerate(model.parameters)}
    summed, expected = substitute_all(form.roots, own)
    known = None if model.expected_events() is None else expected
    return OwnForm(summed, known, form.symbols, numbers)


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
