"""Find densities by listing the folder of a package, so that a new density is a new file and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from morefit.model.pdf import Pdf

LISTED = ("shapes", "physics")  # folders of densities in this room


def listed_density(package: str, name: str, also: Iterable[str] = ()) -> Any:
    """Import all densities of a package into it, list them in its ``__all__``, and return what has a name there.

    ``also`` are other packages whose densities are listed with its own.
    """
    module = sys.modules[package]
    folders = {one: import_module(one).__path__ for one in (package, *also)}
    densities = dict(sorted(kv for one, path in folders.items() for kv in densities_in(one, path).items()))
    vars(module).update(densities, __all__=list(densities))
    if name not in vars(module):
        raise AttributeError(
            f"{package.rpartition('.')[2]}: no density '{name}'; {elsewhere(name, densities)}"
        )
    return vars(module)[name]


def elsewhere(name: str, densities: Iterable[str]) -> str:
    """Return where a density is that a package does not have, or which names are like its name."""
    from morefit.text.elsewhere import NAMES
    from morefit.text.suggest import suggest

    for room in LISTED:
        if name in dir(import_module(f"morefit.model.{room}")):
            return f"it is mf.{room}.{name}"
    return NAMES.get(name) or suggest(name, densities)


def densities_in(package: str, folders: Iterable[str]) -> dict[str, type[Pdf]]:
    """Return the public densities that the modules of a package define, by name."""
    from pkgutil import iter_modules

    modules = [import_module(f"{package}.{one.name}") for one in iter_modules(folders)]
    return dict(sorted((kind.__name__, kind) for module in modules for kind in defined_in(module)))


def defined_in(module: ModuleType) -> list[type[Pdf]]:
    """Return the public densities that a module defines itself."""
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Pdf)]
    return [
        kind for kind in kinds if kind.__module__ == module.__name__ and not kind.__name__.startswith("_")
    ]
