"""Names of a package that are imported when they are first used, so that importing the package costs next to nothing.

A package writes its imports twice: for type checkers as imports under ``if TYPE_CHECKING:``, for Python as a table in
the ``else:`` branch, ``__getattr__ = import_when_used(__name__, {module: names})``. ``tests/test_lazy.py`` compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def import_when_used(
    package: str, names: Mapping[str, Iterable[str]], rooms: Iterable[str] = ()
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``names`` lists by module what is imported from there.

    A name that is not listed, but public in one of the ``rooms``, which are listed, is said to be there.

    Names listed for the package itself are its own modules. A name must not be that of another module of the package:
    Python would put that module in its place.
    """
    module_of = {name: module for module, group in names.items() for name in group}

    def load(name: str) -> Any:
        """Import a name, and remember it in the package."""
        if name not in module_of:
            from importlib.util import find_spec  # only errors need it

            # Python asks for a module by this before it imports it
            own = name.startswith("_") or find_spec(f"{package}.{name}") is not None
            there = [room for room in (() if own else rooms) if name in load(room).__all__]
            hint = f"; it is {package}.{there[0]}.{name}" if there else ""
            message = f"module '{package}' has no attribute '{name}'{hint}"
            raise AttributeError(message, name=name, obj=sys.modules[package])
        place = module_of[name]
        if place == package:
            return import_module(f"{package}.{name}")
        # which imports modules of that package as well
        value = getattr(__import__(place, fromlist=[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
