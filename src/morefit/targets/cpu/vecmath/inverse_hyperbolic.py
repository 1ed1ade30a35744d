"""Write the inverse hyperbolic functions: asinh, acosh, atanh."""

from __future__ import annotations

from morefit.targets.cpu.vecmath.arithmetic import absolute, choose, copy_sign, widened
from morefit.targets.cpu.vecmath.function import vector_function
from morefit.targets.cpu.writer import Writer

LN2 = 0.6931471805599453
LARGE = 2.0**60  # asinh(x) and acosh(x) are log(2 x) from here on, and x^2 does not overflow before


def _log1p_or_double(w: Writer, size: str, argument: str) -> str:
    """Return log(1 + argument), or log(2 size) where the size is large."""
    large = w.compare("ogt", size, w.number(LARGE))
    result = w.call("log1p", w.select(large, size, argument))
    return w.add(result, w.select(large, w.number(LN2), w.number(0.0)))


@vector_function(out_of_line=True)
@widened
def asinh(w: Writer, x: str) -> str:
    """Return log(x + sqrt(x^2 + 1)), without loss for small x."""
    size = absolute(w, x)
    square = w.mul(x, x)
    root = w.intrinsic("sqrt", w.fma(x, x, w.number(1.0)))
    argument = w.add(size, w.div(square, w.add(root, w.number(1.0))))
    return copy_sign(w, _log1p_or_double(w, size, argument), x)


@vector_function(out_of_line=True)
@widened
def acosh(w: Writer, x: str) -> str:
    """Return log(x + sqrt(x^2 - 1)), without loss next to 1; NaN below."""
    above = w.sub(x, w.number(1.0))
    root = w.intrinsic("sqrt", w.mul(above, w.add(x, w.number(1.0))))
    result = _log1p_or_double(w, x, w.add(above, root))
    return choose(w, "olt", x, 1.0, float("nan"), result)


@vector_function(out_of_line=True)
@widened
def atanh(w: Writer, x: str) -> str:
    """Return log((1 + x) / (1 - x)) / 2; infinite at 1 and -1, NaN beyond."""
    size = absolute(w, x)
    ratio = w.div(w.add(size, size), w.sub(w.number(1.0), size))
    return copy_sign(w, w.mul(w.call("log1p", ratio), w.number(0.5)), x)
