"""All densities: one file per family, found by listing this folder and that of physics processes."""

from __future__ import annotations

from typing import Any

from morefit.model.listing import listed_density


def __getattr__(name: str) -> Any:
    """Import all densities when one is first used; refuse a name that no file defines."""
    return listed_density(__name__, name, also=["morefit.model.physics"])


def __dir__() -> list[str]:
    names: list[str] = __getattr__("__all__")
    return names
