"""A study in a file: the finished toys and the facts they belong to, written all or nothing."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from morefit.errors import DataError
from morefit.study.facts import Facts
from morefit.toys import ToyResults

MEMBER = "study.json"  # what a saved study has besides what ToyResults.save writes


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds: the facts of a study, and its finished toys in runs without gaps."""

    facts: Facts
    runs: Sequence[ToyResults]


def checked_path(path: Path) -> Path:
    """Refuse a place that nothing can be written to, before the work begins."""
    if not path.parent.is_dir():
        raise DataError(f"toy study '{path}': there is no folder '{path.parent}'; make it first")
    return path


def write_study(path: Path, saved: Saved) -> None:
    """Write what ToyResults.load can read, the first run, with the facts and further runs added; all or nothing."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        files = [Path(folder) / f"run_{k}.npz" for k in range(len(saved.runs))]
        for file, results in zip(files, saved.runs, strict=True):
            results.save(file)
        with files[0].open("r+b") as stream:
            with zipfile.ZipFile(stream, "a") as archive:
                archive.writestr(MEMBER, json.dumps(saved.facts))
                for file in files[1:]:
                    archive.write(file, file.name)
            stream.flush()
            os.fsync(stream.fileno())
        files[0].replace(path)


def read_study(path: Path) -> Saved:
    """Read back what ``write_study`` wrote."""
    try:
        with zipfile.ZipFile(path) as archive, TemporaryDirectory() as folder:
            facts = json.loads(archive.read(MEMBER))
            later = [name for name in archive.namelist() if name.startswith("run_")]
            files = [path, *(Path(archive.extract(name, folder)) for name in later)]
            return Saved(facts, [ToyResults.load(file) for file in files])
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"toy study '{path}': the file holds no study, {error}; name another file") from error
