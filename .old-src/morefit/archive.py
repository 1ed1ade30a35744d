"""Files of arrays with a header in JSON, which appear complete or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
# What reading something else, or half of a file, raises.
UNREADABLE = (KeyError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile)


def morefit_version() -> str:
    """Return the version of the package installed; a checkout may have none."""
    try:
        return metadata.version("morefit")
    except metadata.PackageNotFoundError:
        return "not installed"


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Give a path beside the place of a file to write to; it is moved there when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:  # also Ctrl-C: leave nothing half-written behind
        with suppress(OSError):
            part.unlink()
        raise


def write_archive(path: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write an npz file beside its place and move it there when it is complete."""
    text = json.dumps(header, allow_nan=False)
    with complete_file(path) as part, part.open("wb") as file:
        np.savez(file, header=np.array(text), **arrays)  # type: ignore[arg-type]


def read_archive(path: Path) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return header and arrays of a file; raise one of ``UNREADABLE`` if it is none."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("header"))), arrays
