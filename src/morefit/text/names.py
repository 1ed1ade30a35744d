"""What a name may mean that a package does not have: a word of another package, a function of NumPy, or a name like it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import NoReturn

from morefit.text.elsewhere import NAMES
from morefit.text.suggest import nearest

CUTOFF = 0.75  # similarity of names, of which there are hundreds


def hint_at_name(name: str, places: Mapping[str, str]) -> str:
    """Return what does the same as a name that is not known, or the place of the most similar one; empty if nothing is.

    ``places`` has what to write for each name that there is, such as ``{"Landau": "mf.shapes.Landau"}``.
    """
    import numpy  # which only a wrong name needs here

    if name in NAMES:
        return NAMES[name]
    bare = name.removeprefix("Roo").removesuffix("PDF").removesuffix("Pdf") or name
    if isinstance(getattr(numpy, name, None), numpy.ufunc):
        return f"write np.{name}, which takes observables and parameters too"
    # a class is meant by a capital letter, a function without one
    alike = [one for one in places if one[:1].isupper() == bare[:1].isupper()]
    near = bare if bare in places else nearest(bare, alike, CUTOFF) or nearest(bare, places, CUTOFF)
    return f"did you mean {places[near]}?" if near else ""


def refuse_names(package: str) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a package whose public names are imported with it: an error with the name that is meant."""

    def refuse(name: str) -> NoReturn:
        from importlib.util import find_spec  # only errors need it

        own = sys.modules[package]
        short = package.replace("morefit.", "mf.")
        # Python looks for a module by this before it imports it
        internal = name.startswith("_") or find_spec(f"{package}.{name}") is not None
        hint = "" if internal else hint_at_name(name, {one: f"{short}.{one}" for one in own.__all__})
        raise AttributeError(f"module '{package}' has no attribute '{name}'" + (f"; {hint}" if hint else ""))

    return refuse
