"""A kernel: what to compute once per parameter set and once per event, as straight lines inside a frame."""

from morefit.kernel.ir import (
    COUNT,
    MAX_DRAWS,
    Added,
    Arith,
    Atom,
    Body,
    Frame,
    Kernel,
    Line,
    NodeLoop,
    Pairs,
    Precision,
    Reduce,
    Result,
    Sample,
    Store,
    Sum,
)
from morefit.kernel.lower import lower

__all__ = [
    "COUNT",
    "MAX_DRAWS",
    "Added",
    "Arith",
    "Atom",
    "Body",
    "Frame",
    "Kernel",
    "Line",
    "NodeLoop",
    "Pairs",
    "Precision",
    "Reduce",
    "Result",
    "Sample",
    "Store",
    "Sum",
    "lower",
]
