"""Calls of public functions with wrong arguments, and missing attributes, answered in a sentence with the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from morefit.errors import MorefitError, OptionError
from morefit.text.elsewhere import ADVICE, SYNONYMS
from morefit.text.suggest import nearest, suggest

# errors of Python that a wrong argument may end in
BARE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")


def in_sentences(function: Callable[P, R]) -> Callable[P, R]:
    """Answer a call with arguments that a function, or the constructor of a class, does not have by an ``OptionError``."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except BARE as error:
            if isinstance(error, MorefitError):
                raise
            # where the function began there is a second frame, and the error is not about the call
            if isinstance(error, TypeError) and getattr(error.__traceback__, "tb_next", None) is None:
                raise OptionError(wrong_call(function, args, named) or str(error)) from None
            from morefit.text.declared import wrong_argument

            if problem := wrong_argument(function, args, named):
                raise OptionError(f"{public_name(function)}: {problem}") from error
            raise

    return call


def methods_in_sentences(kind: type[K]) -> type[K]:
    """Decorate the public methods that a class defines with ``in_sentences``."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            type.__setattr__(kind, name, in_sentences(member))
        elif isinstance(member, classmethod):
            type.__setattr__(kind, name, classmethod(in_sentences(member.__func__)))
    return kind


def constructor_in_sentences(kind: type[K]) -> type[K]:
    """Decorate the constructor of a class with ``in_sentences``."""
    type.__setattr__(kind, "__init__", in_sentences(kind.__init__))
    return kind


def public_name(function: Callable[..., Any]) -> str:
    """Return what a user calls: a function, a method, or the class of a constructor."""
    method = function.__name__ in ("__new__", "__init__")
    return function.__qualname__.split(".")[0] if method else function.__name__


def wrong_call(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Return what is wrong with a call: names that are not known, too many or missing arguments; empty if nothing is."""
    every = list(signature(function).parameters.values())
    own = [p for p in every if p.name not in ("self", "cls")]
    name, count = public_name(function), len(args) - (len(every) - len(own))
    known = [p.name for p in own]
    places = [p.name for p in own if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    order = f"; the order is {name}({', '.join(places)})"
    if unknown := [word for word in named if word not in known]:
        return f"{name}: has no argument '{unknown[0]}'; {hint_at_argument(unknown[0], known)}"
    if count > len(places):
        rest = f"write {known[len(places)]}=..." if len(known) > len(places) else "leave some out"
        return f"{name}: takes {', '.join(places)} by position, got {count} arguments; {rest}"
    taken = {*places[:count], *named}
    required = (p.name for p in own if p.default is Parameter.empty and p.kind is not Parameter.VAR_KEYWORD)
    if missing := [word for word in required if word not in taken]:
        keyword = missing[0] not in places
        return f"{name}: argument '{missing[0]}' is missing" + (
            f"; write {missing[0]}=..." if keyword else order
        )
    return ""


def hint_at_argument(word: str, known: Sequence[str]) -> str:
    """Return which argument is meant by one that there is not, what is written instead of it, or what there is."""
    meant = [other for other in SYNONYMS.get(word, ()) if other in known and other != word]
    return f"did you mean '{meant[0]}'?" if meant else ADVICE.get(word) or suggest(word, known)


def no_attribute(
    thing: object, name: str, hints: Mapping[str, str], item: str = "", items: Collection[str] = ()
) -> Any:
    """Raise the error of an attribute that a thing does not have, with a hint at what does the same, or the nearest name.

    ``item`` is the hint for the names of its ``items``.
    """
    kind = type(thing)
    if hasattr(kind, name):  # a property that failed, which raises its own error again
        return object.__getattribute__(thing, name)
    hint = item.format(name) if name in items else hints.get(name, "")
    if not hint and not name.startswith("_"):
        near = nearest(name, (word for word in dir(thing) if not word.startswith("_")))
        hint = f"did you mean '{near}'?" if near else ""
    # without name and obj, from which Python would propose another one
    raise AttributeError(
        f"'{kind.__name__}' object has no attribute '{name}'" + (f"; {hint}" if hint else "")
    )
