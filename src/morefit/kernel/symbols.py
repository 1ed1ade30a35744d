"""The columns that kernels read besides observables: weights, nodes of a quadrature, random numbers."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, OwnSymbol, column

WEIGHT = column(OwnSymbol("weight of the event"))
NODE_WEIGHT = column(OwnSymbol("weight of the node"))
NODE_CONTRAST = column(OwnSymbol("contrast of the node"))


@dataclass(frozen=True)
class RandomNumber(OwnSymbol):
    """A random number of a candidate; ``streams`` says which generator it comes from."""

    index: int
    streams: bool


def uniform(index: int) -> Expr:
    """Return a random number of the counted generator, uniform between 0 and 1."""
    return column(RandomNumber(f"uniform {index}", index, streams=False))


def stream_uniform(index: int) -> Expr:
    """Return a random number of the generator with streams, uniform between 0 and 1."""
    return column(RandomNumber(f"xoshiro {index}", index, streams=True))


def random_number(leaf: Expr) -> RandomNumber:
    """Return which random number a column is."""
    assert isinstance(leaf.value, RandomNumber)
    return leaf.value
