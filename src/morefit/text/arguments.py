"""Calls with wrong arguments and missing attributes, answered in a sentence with the nearest name, or what is the same here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from morefit.errors import OptionError

"""What arguments and attributes are called in other packages, and what is the same here: tables for messages."""

# words for arguments, and those that may be meant; the first that a function has is proposed
SYNONYMS: dict[str, tuple[str, ...]] = {
    "cl": ("level",),
    "confidence_level": ("level",),
    "n": ("events", "toys"),
    "size": ("events",),
    "ntoys": ("toys",),
    "values": ("truth", "start"),
    "params": ("truth", "start", "values"),
    "sigma": ("error",),
    "covariance": ("error",),
    "uncertainty": ("error",),
    "result": ("values", "best"),
    "pulls": ("lower",),
    "value": ("start",),
    "method": ("minimiser",),
    "bounds": ("limits", "low"),
    "limits": ("low",),
    "range": ("ranges", "low"),
    "const": ("fixed",),
}

BINNING = "counts in bins are data as np.histogram returns them, (counts, edges), or a histogram"
SAVING = "the figure of what is returned writes files, plot.figure.savefig(path)"
# arguments that something else replaces
ADVICE = {
    "extended": "a sum with yields is extended",
    "binned": BINNING,
    "bins": BINNING,
    "nbins": BINNING,
    "filename": SAVING,
    "path": SAVING,
    "savefig": SAVING,
}

FIT = "write mf.fit(model, data)"
DRAW, PLOT = "write mf.generate(model, events, seed=1)", "write mf.plot(model, data, values=result)"
VALUE = "pdf(x, values) is the normalised density"
# of densities and of results; likelihoods and parameters have no such table, as looking it up slows every attribute down
MODEL = {
    "fit": FIT,
    "fitTo": FIT,
    "generate": DRAW,
    "sample": DRAW,
    "plot": PLOT,
    "plotOn": PLOT,
    "eval": VALUE,
    "getVal": VALUE,
}
NUMBERS = "values[name] and errors[name] are those of a parameter"
MINIMUM = "the minimum is nll, minus the logarithm of the likelihood"
VALID = "valid says whether there is a minimum, and reasons why not"
RESULT = {
    "value": NUMBERS,
    "error": NUMBERS,
    "params": NUMBERS,
    "parameters": NUMBERS,
    "fcn": MINIMUM,
    "fval": MINIMUM,
    "status": VALID,
    "success": VALID,
    "hesse": "errors are those of the exact Hessian",
    "summary": "print it, or write report(path)",
    "plot": PLOT,
}


CUTOFF = 0.5  # similarity from 0 to 1 (difflib's ratio) below which names have nothing in common


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name most similar to another, upper and lower case being the same; None if none is."""
    import difflib  # 2 ms, and needed for wrong names only

    folded = {one.casefold(): one for one in known}
    matches = difflib.get_close_matches(str(name).casefold(), folded, 1, CUTOFF)
    return folded[matches[0]] if matches else None


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name is meant, or a list of all names if none is near."""
    names = list(known)
    match = nearest(name, names)
    return (
        f"there are {', '.join(map(repr, names)) or 'none'}" if match is None else f"did you mean '{match}'?"
    )


P = ParamSpec("P")
R = TypeVar("R")


def in_sentences(function: Callable[P, R]) -> Callable[P, R]:
    """Answer a call with arguments that a function, or the constructor of a class, does not have by an ``OptionError``."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except TypeError as error:
            # where the function began there is a second frame, and the error is not about the call
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise OptionError(wrong_call(function, args, named) or str(error)) from None

    return call


def wrong_call(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Return what is wrong with a call: names that are not known, too many or missing arguments; empty if nothing is."""
    own = [p for p in signature(function).parameters.values() if p.name not in ("self", "cls")]
    method = function.__name__ in ("__new__", "__init__")
    name, count = function.__qualname__.split(".")[0] if method else function.__name__, len(args) - method
    known = [p.name for p in own]
    places = [p.name for p in own if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    order = f"; the order is {name}({', '.join(places)})"
    if unknown := [word for word in named if word not in known]:
        meant = [word for word in SYNONYMS.get(unknown[0], ()) if word in known and word != unknown[0]]
        near = ADVICE.get(unknown[0]) or suggest(unknown[0], known)
        return f"{name}: has no argument '{unknown[0]}'; " + (
            f"did you mean '{meant[0]}'?" if meant else near
        )
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


def no_attribute(thing: object, name: str, hints: Mapping[str, str]) -> Any:
    """Raise the error of an attribute that a thing does not have, with a hint at what does the same, or the nearest name."""
    kind = type(thing)
    if hasattr(kind, name):  # a property that failed, which raises its own error again
        return object.__getattribute__(thing, name)
    hint = hints.get(name, "")
    if not hint and not name.startswith("_"):
        near = nearest(name, (word for word in dir(thing) if not word.startswith("_")))
        hint = f"did you mean '{near}'?" if near else ""
    # without name and obj, from which Python would propose another one
    raise AttributeError(
        f"'{kind.__name__}' object has no attribute '{name}'" + (f"; {hint}" if hint else "")
    )
