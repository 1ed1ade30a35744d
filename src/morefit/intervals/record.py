"""Results of a construction in a file: what is saved, and how it is read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from morefit.errors import DataError
from morefit.jobs.facts import Facts
from morefit.records.archive import morefit_version, read_archive, write_archive
from morefit.records.json import portable

VERSION = 1
R = TypeVar("R")


class Layout(NamedTuple):
    """What a kind of file holds of a result."""

    kind: str
    entries: tuple[str, ...]  # of its header
    arrays: tuple[str, ...]


def save_record(record: object, path: str | Path, layout: Layout, facts: Facts | None) -> None:
    """Write an npz file with a header in JSON; it appears complete or not at all."""
    header = {name: getattr(record, name) for name in layout.entries}
    header |= {"format": layout.kind, "version": VERSION, "morefit": morefit_version(), "facts": facts}
    arrays = {name: getattr(record, name) for name in layout.arrays}
    write_archive(layout.kind, path, {name: portable(x) for name, x in header.items()}, arrays)


def read_record(path: str | Path, kind: str) -> tuple[Facts, dict[str, NDArray[Any]]]:
    """Return header and arrays of a file, if it holds this kind of result."""
    header, arrays = read_archive(kind, path)
    found = header.get("format"), header.get("version")
    if found != (kind, VERSION):
        raise DataError(
            f"{kind} '{path}': must be version {VERSION} of a {kind}, got {found[0]}, {found[1]};"
            " name another file"
        )
    return header, arrays


def load_record(make: Callable[..., R], path: str | Path, layout: Layout) -> R:
    """Make a result from what ``save_record`` wrote."""
    header, arrays = read_record(path, layout.kind)
    try:
        content = {name: header[name] for name in layout.entries}
        return make(**content, **{name: arrays[name] for name in layout.arrays})
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{layout.kind} '{path}': the file is damaged, {error}; restore it") from error


def pair(numbers: tuple[float, float]) -> tuple[float, float]:
    """Return two numbers as they were before a file held them as a list, or as text if infinite."""
    return float(numbers[0]), float(numbers[1])
