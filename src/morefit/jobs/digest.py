"""A digest of a function, of a model and of all that their results depend on, to compare those of two jobs."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from math import isnan
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from morefit.digests import sha256
from morefit.errors import ModelError
from morefit.expr import Expr, Operation, Symbol, Table, to_text, toposort
from morefit.expr.opaque import Opaque
from morefit.minimise import FitResult
from morefit.model import Pdf
from morefit.sampling.inversion import PROBABILITY

SHOWN = 120  # characters of a formula in a message


def fingerprint(model: Pdf) -> dict[str, Any]:
    """Return everything in a model that results depend on but start values, in a form that a message can show."""
    density, expected = model.density(), model.expected_events()
    roots = [density, model.log_intensity(), *([] if expected is None else [expected]), *drawn_by(model)]
    return {
        "ranges": {o.name: f"[{float(o.low)!r}, {float(o.high)!r}]" for o in model.observables},
        "limits": {p.name: f"[{float(p.low)!r}, {float(p.high)!r}]" for p in model.parameters},
        "fixed": {p.name: p.fixed for p in model.parameters},
        "formula": to_text(density, SHOWN),
        **({"given": ", ".join(o.name for o in model.given)} if model.given else {}),
        "digest": sha256("\n".join(graph_lines(roots)).encode()).hexdigest(),
    }


def drawn_by(model: Pdf) -> Iterator[Expr]:
    """Go through the formulas that decide how events are drawn: each part's density, or how it is inverted."""
    for part in model.components():
        quantile = part.quantile(PROBABILITY)
        yield part.density() if quantile is None else quantile


def graph_lines(roots: Sequence[Expr]) -> Iterator[str]:
    """Write graphs with one node per line, to the last bit: nested text would repeat shared nodes."""
    number: dict[Expr, int] = {}
    for node in toposort(*roots):
        number[node] = len(number)
        yield f"{operation_text(node.op)} {leaf_text(node.value)} {[number[a] for a in node.args]}"
    yield str([number[root] for root in roots])


def operation_text(op: Operation) -> str:
    """Write an operation by its name, a function of Python by all that its results depend on."""
    if not isinstance(op, Opaque):
        return op.name
    from morefit.jobs.digest import function_digest  # which takes fingerprints of models

    return f"{op.name} {function_digest(op.name, op.function)} {op.steps}"


def leaf_text(value: object) -> str:
    if isinstance(value, Table):
        return f"{value.name} {value.digest}"
    if isinstance(value, Symbol):
        return value.name
    return value.hex() if isinstance(value, float) else str(value)


GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")  # instructions that look a name up in a module
INSTALLED = {"site-packages", "dist-packages"}  # folders of modules that are known by their version
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
ADVICE = "let it use numbers, text, arrays, models, datasets and functions, or leave out save="


def function_digest(what: str, function: Callable[..., Any]) -> str:
    """Return a digest of a function: its code, constants, defaults, and what it uses from outside of itself.

    Installed modules count by their version, other modules by their file. Two functions of one digest return the
    same numbers, unless they read files, clocks or random numbers.
    """
    return Digests(what).of(function)


class Digests:
    """Digests of anything, the same in every process; what cannot be compared is refused."""

    def __init__(self, what: str) -> None:
        self.what = what
        # with the things, so that no other can have their addresses
        self.known: dict[int, tuple[Any, str]] = {}
        self.open: list[int] = []  # those that are being looked into, for things that contain themselves

    def of(self, thing: Any) -> str:
        """Return the digest of one thing with all that belongs to it."""
        if (plain := plain_text(thing)) is not None:
            return plain
        if id(thing) in self.open:
            return f"above {len(self.open) - self.open.index(id(thing))}"
        if id(thing) not in self.known:
            self.open.append(id(thing))
            texts = [type(thing).__qualname__, *map(self.of, self.parts(thing))]
            self.open.pop()
            self.known[id(thing)] = thing, sha256("\n".join(texts).encode()).hexdigest()
        return self.known[id(thing)][1]

    def parts(self, thing: Any) -> Iterable[Any]:
        """Take a thing apart: by the table, or else as pickling does, how it is made, from what, and its state."""
        for kind, parts in PARTS.items():
            if isinstance(thing, kind):
                return parts(thing)
        try:
            if isinstance(thing, RANDOM):
                raise TypeError("random numbers are different in every run")
            reduced = thing.__reduce_ex__(4)
        except Exception as error:  # objects refuse to be taken apart in their own ways
            raise ModelError(
                f"{self.what}: uses an object of type {type(thing).__name__}, which cannot be compared with that of"
                f" another run ({error}); {ADVICE}"
            ) from error
        if isinstance(reduced, str):
            return [type(thing).__module__, reduced]
        return [*reduced[:3], *(list(more) for more in reduced[3:5] if more is not None)]


def plain_text(thing: Any) -> str | None:
    """Write what is known by its text alone: numbers to the last bit, names, and what installed modules define."""
    if thing is None or thing is Ellipsis or isinstance(thing, bool | int | str | bytes):
        return repr(thing)
    if isinstance(thing, float):
        return "nan" if isnan(thing) else thing.hex()
    if isinstance(thing, ModuleType):
        return f"module {thing.__name__} {version_of(thing.__name__) or file_digest(thing)}"
    if isinstance(thing, type | FunctionType | BuiltinFunctionType | np.ufunc):
        module = getattr(thing, "__module__", None) or "builtins"
        name = getattr(thing, "__qualname__", thing.__name__)
        version = version_of(module)
        # a function made inside of another one is not known by its name
        return f"{module}.{name} {version}" if version is not None and "<" not in name else None
    module = type(thing).__module__
    version = version_of(module)
    names = [] if version is None else [n for n, x in vars(sys.modules[module]).items() if x is thing]
    return f"{module}.{names[0]} {version}" if names else None


def version_of(module: str) -> str | None:
    """Return the version that a module belongs to, or None if it is the user's own."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    owner = sys.modules.get(top)
    file = getattr(owner, "__file__", None)
    installed = top == "morefit" or (file is not None and INSTALLED.intersection(Path(file).parts))
    return f"{top} {getattr(owner, '__version__', '')}" if installed else None


def file_digest(module: ModuleType) -> str:
    """Return a digest of the file of a user's own module."""
    file = getattr(module, "__file__", None)
    return "" if file is None else sha256(Path(file).read_bytes()).hexdigest()


def function_parts(function: FunctionType) -> list[Any]:
    """Return what makes a function: its code, its defaults, and the values it takes from outside."""
    code, known = function.__code__, function.__globals__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    inside = {name: cell.cell_contents for name, cell in cells if not is_empty(cell)}
    outside = {name: known[name] for name in sorted(set(global_names(code))) if name in known}
    return [code, function.__defaults__, function.__kwdefaults__, inside, outside]


def is_empty(cell: CellType) -> bool:
    """Return whether a variable of an enclosing function has no value yet."""
    try:
        cell.cell_contents  # noqa: B018  raises if there is none
    except ValueError:
        return True
    return False


def global_names(code: CodeType) -> Iterator[str]:
    """List the names that a code and the functions inside it look up in their module."""
    yield from (str(i.argval) for i in dis.get_instructions(code) if i.opname in GLOBAL)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from global_names(constant)


def code_parts(code: CodeType) -> list[Any]:
    """Return what a code does; names of files and numbers of lines are no part of it."""
    return [
        code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_flags,
        code.co_exceptiontable,
    ]  # fmt: skip


def class_parts(cls: type) -> list[Any]:
    """Return the name of a user's own class, what it is derived from, and its text."""
    try:
        return [cls.__qualname__, list(cls.__bases__), inspect.getsource(cls)]
    except (OSError, TypeError):
        raise ModelError(
            f"class '{cls.__qualname__}': its text is in no file, so it cannot be compared with that of another run;"
            f" define it in a module, or leave out save="
        ) from None


def array_parts(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return kind, shape and numbers of an array, objects one by one."""
    content = array.ravel().tolist() if array.dtype.hasobject else np.ascontiguousarray(array).tobytes()
    return [str(array.dtype), array.shape, content, np.ma.getmaskarray(array).tobytes()]


# How each kind of thing is taken apart, the first row that fits.
PARTS: dict[Any, Callable[[Any], Iterable[Any]]] = {
    FunctionType: function_parts,
    CodeType: code_parts,
    type: class_parts,
    np.ndarray: array_parts,
    np.generic: lambda number: [str(number.dtype), number.tobytes()],
    Expr: lambda expr: graph_lines([expr]),
    Pdf: lambda model: [fingerprint(model), {p.name: p.start for p in model.parameters}],
    FitResult: lambda fit: [getattr(fit, one.name) for one in fields(fit) if one.name != "seconds"],
    Mapping: lambda items: [part for pair in items.items() for part in pair],
    tuple | list: list,
    set | frozenset: lambda items: sorted(items, key=lambda item: (type(item).__qualname__, repr(item))),
}
