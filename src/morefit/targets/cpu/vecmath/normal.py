"""Write the inverse of the normal distribution: ndtri."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.targets.coefficients import (
    CENTRE,
    CENTRE_BOTTOM,
    CENTRE_TOP,
    FAR_BOTTOM,
    FAR_FROM,
    FAR_TOP,
    TAIL_BOTTOM,
    TAIL_FROM,
    TAIL_TOP,
)
from morefit.targets.cpu.vecmath.arithmetic import INFINITY, NAN, choose, lean_polynomial, widened
from morefit.targets.cpu.vecmath.function import vector_function
from morefit.targets.cpu.writer import Writer


@vector_function()
@widened
def ndtri(w: Writer, p: str) -> str:
    """Return x such that a standard normal number is below it with probability p; NaN outside [0, 1]."""
    q = w.sub(p, w.number(0.5))
    centre = w.fma(q, w.neg(q), w.number(CENTRE * CENTRE))
    central = w.compare("ogt", centre, w.number(0.0))
    upper = w.compare("ogt", q, w.number(0.0))
    small = w.select(upper, w.sub(w.number(1.0), p), p)
    root = w.intrinsic("sqrt", w.neg(w.call("log", small)))
    far = w.compare("ogt", root, w.number(FAR_FROM))
    shifted = w.sub(root, w.select(far, w.number(FAR_FROM), w.number(TAIL_FROM)))
    top = horner(w, blended(w, far, FAR_TOP, TAIL_TOP), shifted)
    bottom = horner(w, blended(w, far, FAR_BOTTOM, TAIL_BOTTOM), shifted)
    middle = w.mul(q, lean_polynomial(w, CENTRE_TOP, centre))
    top = w.select(central, middle, w.select(upper, top, w.neg(top)))
    bottom = w.select(central, lean_polynomial(w, CENTRE_BOTTOM, centre), bottom)
    result = w.div(top, bottom)
    end = w.select(upper, w.number(INFINITY), w.number(-INFINITY))
    result = w.select(w.compare("oeq", small, w.number(0.0)), end, result)
    return choose(w, "olt", small, 0.0, NAN, result)


def blended(w: Writer, mask: str, yes: Sequence[float], no: Sequence[float]) -> list[str]:
    """Choose one of two polynomials in each lane."""
    return [w.select(mask, w.number(a), w.number(b)) for a, b in zip(yes, no, strict=True)]


def horner(w: Writer, coefficients: Sequence[str], x: str) -> str:
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = w.fma(total, x, c)
    return total
