"""Which argument of a call is not what its function declares: looked at where the call has failed, and nowhere else."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

LINE = 60  # characters of a value in a message
WORDS: dict[Any, str] = {
    type(None): "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Mapping: "a mapping",
    Callable: "a function",
    Path: "a path",
    PathLike: "a path",
}
NUMBERS: dict[Any, Any] = {
    int: (Integral, np.integer),
    float: (Real, np.number),
    complex: (complex, np.number),
}


class Names(dict[str, Any]):
    """Names of a module, of which those that it imports for type checkers alone stand for anything."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        self.known = known

    def __missing__(self, name: str) -> Any:
        return self.known.get(name, getattr(builtins, name, Any))


def wrong_argument(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Return which argument of a call is not what its function declares, in words; empty if all are, as far as is known."""
    try:
        values = signature(function).bind(*args, **named).arguments
    except TypeError:
        return ""
    for name, value in values.items():
        kind = declared_type(function, name)
        if not fits(value, kind):
            return f"argument '{name}' must be {in_words(kind)}, got {shown(value)}"
    return ""


def declared_type(function: Callable[..., Any], name: str) -> Any:
    """Return what a function declares an argument to be; anything where that cannot be read."""
    if name not in function.__annotations__:
        return Any
    one = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    try:
        return get_type_hints(one, {}, Names(function.__globals__))[name]
    except TypeError:  # of names for type checkers alone
        return Any


def in_words(kind: Any) -> str:
    """Return a declared type in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if getattr(kind, "__module__", "").startswith("numpy"):
        return "numbers"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(in_words, parts)))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin in (list, tuple, Sequence, Iterable):
        return (
            f"a list of {in_words(parts[0]).removeprefix('a ')}"
            if parts and parts[0] is not Any
            else "a list"
        )
    if origin is not None:
        return in_words(origin)
    return WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}")


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value may be of a declared type; True where that is not known."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in parts)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in parts)
    if kind is None or kind is type(None):
        return value is None
    if kind in (Any, object) or isinstance(kind, TypeVar):
        return True
    if getattr(kind, "__module__", "").startswith("numpy"):
        return is_array(value)
    if origin is not None:
        return fits(value, origin) and elements_fit(value, origin, parts)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    if kind in (Sequence, Iterable) and isinstance(value, np.ndarray):
        return True
    try:
        return not isinstance(kind, type) or isinstance(value, kind)
    except TypeError:  # a protocol that is not to be asked
        return True


def elements_fit(value: Any, origin: Any, parts: Sequence[Any]) -> bool:
    """Return whether the elements of a list may be what is declared."""
    if origin not in (list, Sequence, Iterable) or len(parts) != 1:
        return True
    known = isinstance(value, list | tuple | str | bytes | Mapping)
    some = value.flat[:1] if isinstance(value, np.ndarray) else value if known else ()
    return all(fits(one, parts[0]) for one in some)


def is_array(value: Any) -> bool:
    """Return whether numpy makes an array of numbers or text of a value; what numpy declares is known to it alone."""
    try:
        return np.asarray(value).dtype.kind != "O"
    except (TypeError, ValueError):
        return False


def shown(value: object) -> str:
    """Return a value in one short line, of an array its shape."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= LINE else f"{text[:LINE]} ..."
