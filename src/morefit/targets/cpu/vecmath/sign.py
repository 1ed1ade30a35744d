"""Write the sign of a number."""

from __future__ import annotations

from morefit.targets.cpu.vecmath.arithmetic import choose
from morefit.targets.cpu.vecmath.function import vector_function
from morefit.targets.cpu.writer import Writer


@vector_function()
def sign(w: Writer, x: str) -> str:
    """Return 1, -1, or x itself where that is zero or NaN."""
    return choose(w, "ogt", x, 0.0, 1.0, choose(w, "olt", x, 0.0, -1.0, x))
