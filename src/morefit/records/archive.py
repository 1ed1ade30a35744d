"""npz files with a header in JSON, written complete or not at all, and records as JSON text with every bit of their numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from morefit.errors import DataError
from morefit.records.output import complete_file, reason

Arrays = Mapping[str, NDArray[Any]]


def morefit_version() -> str:
    """Return the version of the installed package; a checkout may have none."""
    from importlib import metadata  # slow

    try:
        return metadata.version("morefit")
    except metadata.PackageNotFoundError:
        return "not installed"


def write_archive(what: str, path: str | PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write an npz file, which appears at its path when it is complete."""
    with complete_file(path, what) as part, part.open("wb") as file:
        pack(file, header, arrays)


def pack(file: IO[bytes], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write an npz file to a stream."""
    text = json.dumps(header, allow_nan=False)
    np.savez(file, header=np.array(text), **arrays)  # type: ignore[arg-type]


def read_archive(what: str, path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a file; other, incomplete and damaged files are errors."""
    with opened(what, path) as file:
        return unpack(f"{what} '{path}'", file)


def opened(what: str, path: str | PathLike[str]) -> IO[bytes]:
    """Open a plain file to read it."""
    if not isinstance(path, str | PathLike):
        raise DataError(f"{what}: takes the path of a file, got {type(path).__name__}")
    place = Path(path).expanduser()
    try:
        if place.exists() and not place.is_file():
            raise OSError("it is not a plain file")
        return place.open("rb")
    except (OSError, ValueError) as error:
        raise DataError(f"{what} '{path}': cannot be read, {reason(error)}; name another file") from error


def verify(file: IO[bytes]) -> None:
    """Compare all checksums of a zip file; reading arrays alone does not always reach their ends."""
    import zipfile  # which a study without files does not need

    with zipfile.ZipFile(file) as archive:
        bad = archive.testzip()
    if bad is not None:
        raise zipfile.BadZipFile(f"the checksum of '{bad}' is wrong")
    file.seek(0)


def unpack(name: str, file: IO[bytes]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of an npz file in a stream; ``name`` begins the message of errors."""
    try:
        verify(file)
        with np.load(file, allow_pickle=False) as archive:
            arrays = {one: archive[one] for one in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if not isinstance(header, dict):
            raise TypeError("its header is not a mapping")
        return header, arrays
    # numpy, zipfile, zlib and json raise whatever their decoders do
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(
            f"{name}: not a file of morefit or damaged, got {cause}; name another file, or restore this one"
        ) from error


def portable(item: Any) -> Any:
    """Return an entry of a record as JSON can represent it; "nan", "inf" and "-inf" become strings."""
    if isinstance(item, Mapping):
        return {name: portable(value) for name, value in item.items()}
    if isinstance(item, tuple | np.ndarray):
        return [portable(value) for value in item]
    if isinstance(item, float):
        return float(item) if isfinite(item) else str(float(item))
    return item


def to_json(content: Mapping[str, Any], *, format: str, version: int) -> str:
    """Return entries of a record as JSON text that begins with its format and version."""
    return json.dumps({"format": format, "version": version} | portable(content), indent=1, allow_nan=False)


def from_json(what: str, text: str | bytes, *, format: str, version: int, writer: str) -> dict[str, Any]:
    """Return the entries of JSON text of this format and version; ``writer`` is the function that writes it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what}: not JSON text, {error}; it may be cut short or of another kind") from None
    if not isinstance(content, dict) or content.get("format") != format:
        raise DataError(f"{what}: the JSON text was not written by {writer}")
    if content.get("version") != version:
        got = content.get("version")
        raise DataError(
            f"{what}: format version must be {version}, got {got!r}; use the morefit that wrote it"
        )
    return content
