"""Constraints of hundreds of parameters, most of one parameter each: their sum and its derivatives, by arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, apply, evaluate, leaves, where
from morefit.kernel.counts_layout import COUNTED, GAUSSIAN
from morefit.kernel.sums import Request, set_terms
from morefit.likelihood.constraint import Constraint, GaussianConstraint, PoissonConstraint
from morefit.likelihood.evaluation import Evaluation

General = tuple[Callable[[Array, Array, Evaluation], None], Integers]


@dataclass(frozen=True, eq=False)
class AuxiliaryCount(PoissonConstraint):
    """A count, not necessarily whole, whose mean is a parameter times a number, relative to expecting the count."""

    is_square: ClassVar[bool] = True
    factor: float

    def nll(self, measured: Sequence[Expr]) -> Expr:
        mean, (n,) = self.factor * self.quantity, measured
        return mean - n - n * apply(Op.LOG, mean / where(n > 0, n, ONE))

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return (self.factor * super().expected(values)[0],)


@dataclass(frozen=True, eq=False)
class SingleTerms:
    """Constraints of one parameter each, sorted by it: T parameters, N constraints."""

    parameters: Integers  # (T,)
    starts: Integers  # (T + 1,) where the constraints of each begin
    kinds: Integers  # (N,) as ``kernel/counts_layout.py`` numbers them
    places: Integers  # (N,) of what was measured
    numbers: Array  # (N,) the inverse variance, or what multiplies the parameter


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """The sum of constraints as a function of all parameters and of what was measured."""

    parameters: int
    gaussian: Integers  # (N, 2): places of the parameter and of what was measured
    precisions: Array  # (N,)
    counted: Integers  # (M, 2)
    factors: Array  # (M,)
    others: tuple[General, ...]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], terms: Sequence[Expr], names: Sequence[str]) -> Auxiliary:
        """Sort constraints by their kinds; ``names`` are those of all parameters and measured values."""
        place = {name: k for k, name in enumerate(names)}
        gaussian, precisions, counted, factors, others, first = [], [], [], [], [], 0
        total = len(names) - sum(len(c.measured) for c in constraints)
        for constraint, term in zip(constraints, terms, strict=True):
            match constraint:
                case GaussianConstraint(quantities=(Expr(op=Op.SCALAR) as quantity,)):
                    gaussian.append((place[quantity.name], first))
                    precisions.append(1 / constraint.covariance[0][0])
                case AuxiliaryCount(quantity=quantity):
                    counted.append((place[quantity.name], first))
                    factors.append(constraint.factor)
                case _:
                    others.append(general_term(term, place, total))
            first += len(constraint.measured)
        return cls(
            parameters=total, gaussian=pairs(gaussian), precisions=np.array(precisions), counted=pairs(counted),
            factors=np.array(factors), others=tuple(others),
        )  # fmt: skip

    def add_others(self, full: Array, measured: Array, total: Evaluation, floating: Sequence[int]) -> None:
        """Add constraints that are any formulas, at all parameters (sets, P) and measured values (sets, values)."""
        if self.others:
            every = Evaluation.zero(len(full), self.parameters, 2)
            for add, _ in self.others:
                add(full, measured, every)
            columns = list(floating)
            total.value[:] += every.value
            if total.gradient.size:
                total.gradient[:] += every.gradient[:, columns]
            if total.hessian.size:
                total.hessian[:] += every.hessian[:, columns][:, :, columns]

    @cached_property
    def single_terms(self) -> SingleTerms:
        """All constraints of one parameter."""
        columns, places = np.concatenate([self.gaussian, self.counted]).T
        kinds = np.repeat([GAUSSIAN, COUNTED], [len(self.gaussian), len(self.counted)])
        order = np.argsort(columns, kind="stable")
        numbers = np.concatenate([self.precisions, self.factors])[order]
        parameters, starts = np.unique(columns[order], return_index=True)
        return SingleTerms(
            parameters, np.append(starts, len(order)), kinds[order], np.asarray(places[order]), numbers
        )

    @property
    def elsewhere(self) -> list[int]:
        """The parameters of the other constraints."""
        return [column for _, columns in self.others for column in columns.tolist()]


def general_term(term: Expr, place: Mapping[str, int], parameters: int) -> General:
    """Return what adds a constraint that is any formula, and the places of its parameters."""
    known = leaves(Op.SCALAR, term)
    own = tuple(leaf for leaf in known if place[leaf.name] < parameters)
    count = len(own)
    formulas = set_terms(Request(ZERO, own, 2, per_set=term))
    columns, (low, high) = np.array([place[leaf.name] for leaf in own], np.int64), np.tril_indices(count)

    def add(full: Array, measured: Array, total: Evaluation) -> None:
        row = np.concatenate([full, measured], axis=1)
        values = {leaf.name: row[:, place[leaf.name]] for leaf in known}
        numbers = np.array([np.broadcast_to(evaluate(f, values), len(full)) for f in formulas]).T
        total.value[:] += numbers[:, 0]
        total.gradient[:, columns] += numbers[:, 1 : 1 + count]
        matrix = np.zeros((len(full), count, count))
        matrix[:, low, high] = matrix[:, high, low] = numbers[:, 1 + count :]
        total.hessian[:, columns[:, None], columns] += matrix

    return add, columns


def pairs(places: Sequence[tuple[int, int]]) -> Integers:
    """Return the places of parameters and of what was measured as an array, (N, 2)."""
    return np.array(places, np.int64).reshape(-1, 2)
