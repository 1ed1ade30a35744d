"""Propose the nearest known name for one that is not known."""

from __future__ import annotations

from collections.abc import Iterable

# similarity from 0 to 1 (difflib's ratio) below which names have nothing in common; one letter of two is enough in 'nu' for 'mu'
CUTOFF, SHORT_CUTOFF, SHORT = 0.6, 0.5, 3
BEGINNING = 3  # letters that are enough to mean the only name that begins with them


def nearest(name: object, known: Iterable[str], cutoff: float = CUTOFF) -> str | None:
    """Return the known name most similar to another, upper and lower case being the same; None if none is.

    The shortest name that begins with the other one, as covariance does with cov, comes before all that are similar, and the
    longest one with which the other begins, as sigma_1 does with sigma, after them. Where many names are known, a higher
    ``cutoff`` leaves out what is similar by chance.
    """
    import difflib  # 2 ms, and needed for wrong names only

    folded = {one.casefold(): one for one in known}
    wrong = str(name).casefold()
    if wrong in folded:
        return folded[wrong]
    if len(wrong) >= BEGINNING and (longer := [one for one in folded if one.startswith(wrong)]):
        return folded[min(longer, key=len)]
    near = [one for one in folded if min(len(one), len(wrong)) <= SHORT]
    matches = difflib.get_close_matches(wrong, folded, 1, cutoff)
    if cutoff <= CUTOFF:
        matches = matches or difflib.get_close_matches(wrong, near, 1, SHORT_CUTOFF)
    shorter = [one for one in folded if len(one) >= BEGINNING and wrong.startswith(one)]
    match = matches[0] if matches else max(shorter, key=len, default=None)
    return None if match is None else folded[match]


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name is meant, or a list of all names if none is near."""
    names = list(known)
    match = nearest(name, names)
    return (
        f"there are {', '.join(map(repr, names)) or 'none'}" if match is None else f"did you mean '{match}'?"
    )
