"""The columns that kernels read besides observables: weights, nodes of a quadrature, random numbers."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, OwnSymbol, column

WEIGHT = column(OwnSymbol("weight of the event"))
NODE_WEIGHT = column(OwnSymbol("weight of the node"))
NODE_CONTRAST = column(OwnSymbol("contrast of the node"))
EVENT = -1  # in the place of the index of a random number: the number of the event in its toy


@dataclass(frozen=True)
class RandomNumber(OwnSymbol):
    """A random number of a candidate, or the number of its event; ``streams`` says which generator it comes from."""

    index: int
    streams: bool


def uniform(index: int) -> Expr:
    """Return a random number of the counted generator, uniform between 0 and 1."""
    return column(RandomNumber(f"uniform {index}", index, streams=False))


def stream_uniform(index: int) -> Expr:
    """Return a random number of the generator with streams, uniform between 0 and 1."""
    return column(RandomNumber(f"xoshiro {index}", index, streams=True))


def event_number() -> Expr:
    """Return the number of the event that a candidate is drawn for, counted from 0 in each toy."""
    return column(RandomNumber("number of the event", EVENT, streams=False))


def random_number(leaf: Expr) -> RandomNumber:
    """Return which random number a column is."""
    assert isinstance(leaf.value, RandomNumber)
    return leaf.value
