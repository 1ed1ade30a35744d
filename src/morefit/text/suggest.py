"""Propose the nearest known name for one that is not known."""

from __future__ import annotations

from collections.abc import Iterable

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
