"""Results with one row per item (toy, tested value, replica): npz files of them, cuts and concatenations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, read_only
from morefit.errors import DataError
from morefit.records.archive import morefit_version, portable, read_archive, write_archive
from morefit.records.named_arrays import FrozenByName
from morefit.resources import on_all_cores

VERSION = 2  # of all these files
PIECE = 1 << 16  # rows that a thread copies
R = TypeVar("R", bound="Result")


class Result(Protocol):
    """A record with one row per item."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seconds(self) -> Mapping[str, float]:
        """The time of each stage."""

    @property
    def backend(self) -> str:
        """Where it was computed."""

    def __len__(self) -> int: ...


class Layout(NamedTuple):
    """Which fields of a result are entries of the header, arrays of one row per item, or such arrays by name."""

    format: str
    entries: tuple[str, ...]
    arrays: tuple[str, ...]
    mapping: str | None = None  # a field with arrays by name


class Part(NamedTuple, Generic[R]):
    """The result of consecutive items: from number ``first`` up to ``stop``."""

    first: int
    stop: int
    result: R


class Content(NamedTuple):
    """What a file holds: the fields of a result, and the header with what else was written."""

    fields: dict[str, Any]
    header: dict[str, Any]


def save_result(
    what: str,
    path: str | PathLike[str],
    layout: Layout,
    result: Result,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a result, with ``more`` in its header, to an npz file; it appears complete or not at all."""
    entries = {name: getattr(result, name) for name in layout.entries}
    arrays = {name: getattr(result, name) for name in layout.arrays}
    header = {
        "format": layout.format,
        "version": VERSION,
        "morefit": morefit_version(),
        **entries,
        **(more or {}),
    }
    if layout.mapping is not None:
        mapping: Mapping[str, NDArray[Any]] = getattr(result, layout.mapping)
        header[layout.mapping] = list(mapping)  # names may be any text, those of files may not
        arrays |= {f"{layout.mapping}_{k}": array for k, array in enumerate(mapping.values())}
    write_archive(what, path, portable(header), arrays)


def read_result(what: str, path: str | PathLike[str], layout: Layout) -> Content:
    """Return what ``save_result`` wrote; files of another format or version are refused."""
    header, arrays = read_archive(what, path)
    if header.get("format") != layout.format:
        rule = f"the file must have the format '{layout.format}', got {header.get('format')!r}"
        raise DataError(f"{what} '{path}': {rule}; name another file")
    if header.get("version") != VERSION:
        rule = f"format version must be {VERSION}, got {header.get('version')!r}"
        raise DataError(f"{what} '{path}': {rule}; use the morefit that wrote it")
    try:
        # later fields have defaults
        fields = {name: header[name] for name in layout.entries if name in header}
        fields |= {name: arrays[name] for name in layout.arrays}
        if layout.mapping is not None:
            names = enumerate(header[layout.mapping])
            fields[layout.mapping] = {name: arrays[f"{layout.mapping}_{k}"] for k, name in names}
    except (KeyError, TypeError) as error:
        raise damaged(what, path, error) from error
    return Content(fields, header)


def load_result(what: str, path: str | PathLike[str], layout: Layout, kind: type[R]) -> R:
    """Return the result that ``save_result`` wrote, to the last bit."""
    return built(what, path, kind, read_result(what, path, layout))


def built(what: str, path: str | PathLike[str], kind: type[R], content: Content) -> R:
    """Return a result made of the fields of a file."""
    try:
        return kind(**content.fields)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise damaged(what, path, error) from error


def damaged(what: str, path: str | PathLike[str], error: Exception) -> DataError:
    return DataError(f"{what} '{path}': the file is damaged, {error}; restore it")


def cut_result(layout: Layout, result: R, first: int, stop: int) -> R:
    """Return the rows from ``first`` up to ``stop``."""
    changes: dict[str, Any] = {name: getattr(result, name)[first:stop] for name in layout.arrays}
    if layout.mapping is not None:
        mapping = getattr(result, layout.mapping)
        changes[layout.mapping] = {name: array[first:stop] for name, array in mapping.items()}
    return replace(result, **changes)


def split_result(
    what: str, path: str | PathLike[str], layout: Layout, result: R, runs: Sequence[Sequence[int]]
) -> list[Part[R]]:
    """Return the parts that a file holds one after the other; the times of all are with the first."""
    parts: list[Part[R]] = []
    row = 0
    try:
        for first, stop in runs:
            part = cut_result(layout, result, row, row + stop - first)
            parts.append(Part(first, stop, replace(part, seconds={}) if row else part))
            row += stop - first
        if row != len(result) or any(part.stop <= part.first for part in parts):
            raise ValueError(f"it has {len(result)} rows for items {runs}")
    except (TypeError, ValueError) as error:
        raise damaged(what, path, error) from error
    return parts


def concatenate(layout: Layout, results: Sequence[R]) -> R:
    """Return the rows of several results in one, with the entries of the first; times are added up."""
    one = results[0]
    if len(results) == 1:
        return one
    changes: dict[str, Any] = {name: joined([getattr(r, name) for r in results]) for name in layout.arrays}
    if layout.mapping is not None:
        mappings = [getattr(r, layout.mapping) for r in results]
        changes[layout.mapping] = {name: joined([m[name] for m in mappings]) for name in mappings[0]}
    stages = dict.fromkeys(stage for r in results for stage in r.seconds)
    changes["seconds"] = {stage: sum(r.seconds.get(stage, 0.0) for r in results) for stage in stages}
    changes["backend"] = " and ".join(dict.fromkeys(r.backend for r in results))
    return replace(one, **changes)


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays; all cores copy, since memory that is new to a process is slow for one."""
    rows, shape = sum(map(len, arrays)), arrays[0].shape[1:]
    whole = np.empty((rows, *shape), np.result_type(*arrays))
    first = 0
    for array in arrays:
        target, first = whole[first : first + len(array)], first + len(array)
        on_all_cores(partial(copy_rows, target, array), len(array), PIECE)
    return read_only(whole)


def copy_rows(target: NDArray[Any], source: NDArray[Any], cut: slice) -> None:
    target[cut] = source[cut]


class SavedResult(FrozenByName):
    """A result of a long job with one row for each of its values, in npz files."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    job: ClassVar[str]
    layout: ClassVar[Layout]
    values: Array
    seconds: Mapping[str, float]
    backend: str

    def __len__(self) -> int:
        return len(self.values)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        save_result(self.job, path, self.layout, self)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read back what ``save`` wrote, to the last bit; also what the job itself left with ``save=...``."""
        return load_result(cls.job, path, cls.layout, cls)


def pair(numbers: Sequence[float]) -> tuple[float, float]:
    """Return two numbers as they were before a file had them as a list, or as text if infinite."""
    return float(numbers[0]), float(numbers[1])
