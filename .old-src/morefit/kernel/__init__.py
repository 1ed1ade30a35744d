"""A kernel: what to compute once per parameter set and once per event, as straight lines inside a frame."""

from morefit.kernel.ir import COUNT, Arith, Atom, Body, Frame, Kernel, Line, Precision, Reduce, Result
from morefit.kernel.lower import lower

__all__ = [
    "COUNT",
    "Arith",
    "Atom",
    "Body",
    "Frame",
    "Kernel",
    "Line",
    "Precision",
    "Reduce",
    "Result",
    "lower",
]
