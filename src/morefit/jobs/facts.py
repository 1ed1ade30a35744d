"""What the results of a job depend on: models, functions, numbers, versions, compared with those of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from morefit.jobs.digest import function_digest
from morefit.workers import versions as versions  # one of the facts

DIGEST = "digest"
Facts = dict[str, Any]


def function_facts(what: str, function: Callable[..., Any] | None) -> Facts | None:
    """Return name and digest of a function; other versions of Python compile it to another code."""
    if function is None:
        return None
    name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return {
        "name": name,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        DIGEST: function_digest(what, function),
    }


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """Return in what a file and a job differ, one sentence each."""
    for name in dict.fromkeys([*new, *old]):
        saved, requested = old.get(name), new.get(name)
        if saved == requested:
            continue
        if isinstance(saved, Mapping) and isinstance(requested, Mapping):
            inside = list(differences(inner(name, saved), inner(name, requested)))
            why = "numbers in it, its code, or values that it uses or fills in, are different"
            yield from inside or [f"{name} looks like that of the file but is not the same: {why}"]
        elif not name.endswith(DIGEST):
            yield f"{name} is {printed(saved)} in the file, {printed(requested)} requested"


def inner(name: str, facts: Mapping[str, Any]) -> Facts:
    """Return the entries inside an entry, by their full names."""
    return {f"{name} {n}": value for n, value in facts.items()}


def printed(fact: Any) -> str:
    """Return a fact as text; of a model or a function only its formula or name."""
    shown = (
        next((fact[n] for n in ("formula", "name") if n in fact), fact) if isinstance(fact, Mapping) else fact
    )
    return repr(shown)
