"""Densities of one observable: one file per family, found by listing the folder."""

from __future__ import annotations

from typing import Any

from morefit.model.listing import densities_in
from morefit.text.suggest import suggest

DENSITIES = densities_in(__name__, __path__)
__all__ = list(DENSITIES)
globals().update(DENSITIES)


def __getattr__(name: str) -> Any:
    """Refuse a name that no file of the folder defines."""
    raise AttributeError(f"shapes: no density '{name}'; {suggest(name, DENSITIES)}")


def __dir__() -> list[str]:
    return __all__
