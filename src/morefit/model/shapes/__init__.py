"""Densities of one observable: one file per family, found by listing the folder when one is looked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from morefit.model.listing import densities_in
from morefit.model.pdf import Pdf
from morefit.text.suggest import suggest


@cache
def densities() -> dict[str, type[Pdf]]:
    """Import all files, which takes a while, and return their densities by name."""
    return densities_in(__name__, __path__)


def __getattr__(name: str) -> Any:
    """Return a density, or refuse a name that no file of the folder defines."""
    if name == "__all__":
        return list(densities())
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in densities():
        raise AttributeError(f"shapes: no density '{name}'; {suggest(name, densities())}")
    return densities()[name]


def __dir__() -> list[str]:
    return list(densities())
