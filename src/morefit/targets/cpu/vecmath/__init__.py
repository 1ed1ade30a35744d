"""Write elementary and special functions of whole vectors as LLVM IR: those of every file in this folder."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from morefit.targets.cpu.vecmath.function import REGISTERED, VectorFunction
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer, function_name

__all__ = ["CALLED", "FAR", "FUNCTIONS", "INLINE", "define"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

INLINE, CALLED = "alwaysinline", "noinline"
FUNCTIONS = {name: f for name, f in sorted(REGISTERED.items()) if not (f.flushed or f.far)}
FAR = {name: f for name, f in sorted(REGISTERED.items()) if f.far}


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
            texts[name, kind] = _definition(name, REGISTERED[name], writer)
            declarations |= writer.intrinsics
            waiting += writer.functions
    return list(texts.values()), dict(sorted(declarations.items()))


def _definition(name: str, function: VectorFunction, w: Writer) -> str:
    """Return the text of one function."""
    arguments = [f"%x{i}" for i in range(function.arity)]
    result = function.write(w, *arguments)
    parameters = ", ".join(f"{w.vector.type} {a}" for a in arguments)
    full = function_name(name, w.vector, w.out_of_line)
    head = f"define internal {w.vector.type} {full}({parameters}) {_attributes(function, w.out_of_line)} {{"
    return "\n".join([head, "entry:", *w.lines, f"  ret {w.vector.type} {result}", "}"]) + "\n"


def _attributes(function: VectorFunction, out_of_line: bool) -> str:
    called = out_of_line or function.out_of_line
    place = f"{CALLED} cold" if function.far else CALLED if called else INLINE
    return f"{place} nounwind willreturn memory(none) {ANY_DENORMALS}"
