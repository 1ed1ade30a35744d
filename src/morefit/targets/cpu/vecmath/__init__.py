"""Write elementary and special functions of whole vectors as LLVM IR."""

from __future__ import annotations

from collections.abc import Iterable

from morefit.targets.cpu.vecmath.arithmetic import Body
from morefit.targets.cpu.vecmath.error import erf, erfc
from morefit.targets.cpu.vecmath.exponential import (
    cosh,
    exp,
    exp2,
    exp2_flushed,
    exp_flushed,
    expm1,
    sinh,
    tanh,
)
from morefit.targets.cpu.vecmath.gamma import digamma, lgamma, tetragamma, trigamma
from morefit.targets.cpu.vecmath.inverse import acos, asin, atan, atan2
from morefit.targets.cpu.vecmath.logarithm import log, log1p, log2, log10, log_far, pow
from morefit.targets.cpu.vecmath.normal import ndtri
from morefit.targets.cpu.vecmath.trigonometric import cos, cos_far, sin, sin_far, tan
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer, function_name

__all__ = ["FUNCTIONS", "Body", "define"]

FUNCTIONS: dict[str, Body] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "erf": erf,
    "erfc": erfc,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "expm1": expm1,
    "pow": pow,
    "lgamma": lgamma,
    "digamma": digamma,
    "trigamma": trigamma,
    "tetragamma": tetragamma,
    "ndtri": ndtri,
}
FLUSHED: dict[str, Body] = {
    "exp_flushed": exp_flushed,
    "exp2_flushed": exp2_flushed,
}  # for loops that flush denormals to zero
FAR: dict[str, Body] = {
    "log_far": log_far,
    "sin_far": sin_far,
    "cos_far": cos_far,
}  # rarely called, and only by the others
OUT_OF_LINE = {
    "tan",
    "atan2",
    "pow",
    "log2",
    "log10",
    "lgamma",
    "digamma",
    "trigamma",
    "tetragamma",
}  # too large to repeat at each use
TWO_ARGUMENTS = {"pow", "atan2"}


def define(
    names: Iterable[str], vector: Vector, *, out_of_line: bool = False
) -> tuple[list[str], dict[str, str]]:
    """Return the definitions of functions and of those they call, and the declarations they need by name."""
    texts: dict[tuple[str, Vector], str] = {}
    declarations: dict[str, str] = {}
    waiting = [(name, vector) for name in sorted(set(names))]
    while waiting:
        name, kind = waiting.pop(0)
        if (name, kind) not in texts:
            writer = Writer(kind, out_of_line=out_of_line)
            texts[name, kind] = _definition(name, writer)
            declarations |= writer.intrinsics
            waiting += writer.functions
    return list(texts.values()), dict(sorted(declarations.items()))


def _definition(name: str, w: Writer) -> str:
    """Return the text of one function."""
    arguments = [f"%x{i}" for i in range(2 if name in TWO_ARGUMENTS else 1)]
    result = (FUNCTIONS | FLUSHED | FAR)[name](w, *arguments)
    parameters = ", ".join(f"{w.vector.type} {a}" for a in arguments)
    full = function_name(name, w.vector, w.out_of_line)
    head = f"define internal {w.vector.type} {full}({parameters}) {_attributes(name, w.out_of_line)} {{"
    return "\n".join([head, "entry:", *w.lines, f"  ret {w.vector.type} {result}", "}"]) + "\n"


def _attributes(name: str, out_of_line: bool) -> str:
    called = out_of_line or name in OUT_OF_LINE
    place = "noinline cold" if name in FAR else "noinline" if called else "alwaysinline"
    return f"{place} nounwind willreturn memory(none) {ANY_DENORMALS}"
