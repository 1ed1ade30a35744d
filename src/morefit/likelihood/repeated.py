"""Constraints that several likelihoods of a sum have: one object is one measurement, and copies of it are not."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from morefit.expr import const
from morefit.likelihood.constraint import Constraint, GaussianConstraint, LogNormalConstraint


def without(constraints: Iterable[Constraint], known: set[int]) -> tuple[Constraint, ...]:
    """Return the constraints that are not known, by their identity."""
    return tuple(c for c in constraints if id(c) not in known)


def warn_of_copies(ones: Sequence[Constraint], others: Sequence[Constraint]) -> None:
    """Warn of a measurement that is in a sum as two objects, which count twice; two counts may be the same by chance."""
    terms = {term(c): c for c in ones if isinstance(c, GaussianConstraint | LogNormalConstraint)}
    for c in others:
        if isinstance(c, GaussianConstraint | LogNormalConstraint) and terms.get(term(c), c) is not c:
            warnings.warn(
                f"likelihood: {c} is there twice, as two objects, and counts as two measurements; if it is one, make it once"
                " and pass that to both likelihoods, or to their sum as nll + constraint",
                UserWarning,
                stacklevel=3,
            )


def term(constraint: Constraint) -> object:
    """Return what a constraint adds to a likelihood; equal expressions are one object."""
    return constraint.nll([const(value) for value in constraint.measured])
