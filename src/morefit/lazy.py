"""Names of a package that are imported when they are first used, so that importing the package costs next to nothing.

A package writes its imports twice: for type checkers as imports under ``if TYPE_CHECKING:``, for Python as a table in
the ``else:`` branch, ``__getattr__ = import_when_used(__name__, {module: names})``. ``tests/test_lazy.py`` compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from morefit.garbage import without_collection


def import_when_used(
    package: str, names: Mapping[str, Iterable[str]], rooms: Iterable[str] = (), *, hints: str = ""
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``names`` lists by module what is imported from there.

    A name that is not listed, but public in one of the ``rooms``, which are listed, is said to be there. For any other one, the
    module ``hints`` has a function ``hint_at_name``, which is called with it and the places of all public names.

    Names listed for the package itself are its own modules. A name must not be that of another module of the package:
    Python would put that module in its place.
    """
    module_of = {name: module for module, group in names.items() for name in group}

    def where_else(name: str) -> str:
        """Return the room that has a name, or what else may be meant."""
        public = {room: load(room).__all__ for room in rooms}
        if there := [room for room, known in public.items() if name in known]:
            return f"it is {package}.{there[0]}.{name}"
        # names of the package itself come last, and win
        places = {one: f"mf.{room}.{one}" for room, known in public.items() for one in known}
        places |= {one: f"mf.{one}" for one in module_of}
        return str(import_module(hints).hint_at_name(name, places)) if hints else ""

    def load(name: str) -> Any:
        """Import a name, and remember it in the package."""
        if name not in module_of:
            from importlib.util import find_spec  # only errors need it

            # Python asks for a module by this before it imports it
            own = name.startswith("_") or find_spec(f"{package}.{name}") is not None
            hint = "" if own else where_else(name)
            raise AttributeError(
                f"module '{package}' has no attribute '{name}'" + (f"; {hint}" if hint else "")
            )
        place = module_of[name]
        with without_collection():
            if place == package:
                return import_module(f"{package}.{name}")
            # which imports modules of that package as well
            value = getattr(__import__(place, fromlist=[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
