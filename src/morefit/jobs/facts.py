"""What makes a study this one, to tell whether a file holds the same: models, functions, numbers, versions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any

from morefit.jobs.digest import function_digest
from morefit.records.archive import morefit_version

DIGEST = "digest"
Facts = dict[str, Any]


def function_facts(what: str, function: Callable[..., Any] | None) -> Facts | None:
    """Return what makes a function this one; other versions of Python compile it to another code."""
    if function is None:
        return None
    name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return {
        "name": name,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        DIGEST: function_digest(what, function),
    }


def versions() -> dict[str, str]:
    """Return the versions of what the last bits depend on."""
    return {"morefit": morefit_version()} | {n: metadata.version(n) for n in ("numpy", "llvmlite", "iminuit")}


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """Say in what two studies differ."""
    for name in dict.fromkeys([*new, *old]):
        found, asked = old.get(name), new.get(name)
        if found == asked:
            continue
        if isinstance(found, Mapping) and isinstance(asked, Mapping):
            shown = list(differences(inner(name, found), inner(name, asked)))
            why = "numbers in it, its code, or values that it uses or fills in, are different"
            yield from shown or [f"{name}: looks like that of the file but is not: {why}"]
        elif not name.endswith(DIGEST):
            yield f"{name}: {printed(found)} in the file, {printed(asked)} asked for"


def inner(name: str, facts: Mapping[str, Any]) -> Facts:
    """Name what is inside of an entry."""
    return {f"{name} {n}": value for n, value in facts.items()}


def printed(fact: Any) -> str:
    """Write a fact; of a model or a function only what it is called."""
    shown = (
        next((fact[n] for n in ("formula", "name") if n in fact), fact) if isinstance(fact, Mapping) else fact
    )
    return repr(shown)
