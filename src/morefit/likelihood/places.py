"""Which parameters move something along an observable, so that the likelihood has several minima: places, and frequencies."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite

from morefit.expr import Expr, Op, leaves, toposort
from morefit.likelihood.angles import factor_in
from morefit.model import Pdf


@lru_cache(maxsize=256)  # every fit asks
def moved_places(model: Pdf) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters of a model that are subtracted from an observable, and those that multiply one in a sine or a cosine."""
    places: set[str] = set()
    frequencies: set[str] = set()
    for pdf in model.components():
        for node in toposort(pdf.density(), enter_integrals=False, enter_sums=False):
            if not any(leaves(Op.COLUMN, arg) for arg in node.args):
                continue
            if node.op in (Op.SIN, Op.COS):
                angle = node.args[0]
                for leaf in leaves(Op.SCALAR, angle):
                    (places if isfinite(factor_in(angle, leaf)) else frequencies).add(leaf.name)
            elif node.op is Op.ADD and any(is_observed(arg) for arg in node.args):
                alone = [arg for arg in node.args if not leaves(Op.COLUMN, arg)]
                places |= {leaf.name for leaf in leaves(Op.SCALAR, *alone)}
    return frozenset(places - frequencies), frozenset(frequencies)


def is_observed(term: Expr) -> bool:
    """Return whether a term depends on observables alone."""
    return bool(leaves(Op.COLUMN, term)) and not leaves(Op.SCALAR, term)
