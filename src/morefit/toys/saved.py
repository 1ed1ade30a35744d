"""A study in a file: the finished toys and the facts they belong to, written all or nothing."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from morefit.errors import DataError
from morefit.jobs.facts import Facts
from morefit.records.archive import opened
from morefit.records.output import complete_file, only_writer, writable_place
from morefit.toys.results import ToyResults

MEMBER = "study.json"  # what a saved study has besides what ToyResults.save writes
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds: the facts of a study, and its finished toys in runs without gaps."""

    facts: Facts
    runs: Sequence[ToyResults]


def keeps_file(study: Callable[P, R]) -> Callable[P, R]:
    """Let a study have the file ``save=`` to itself; one that cannot be written is refused before the work begins."""
    what = study.__name__.replace("_study", " study")

    @wraps(study)
    def with_file(*args: P.args, **options: P.kwargs) -> R:
        save = options.get("save")
        if save is None:
            return study(*args, **options)
        place = writable_place(what, save)  # type: ignore[arg-type]
        options["save"] = place
        with only_writer(what, place):
            return study(*args, **options)

    return with_file


def write_study(path: Path, saved: Saved) -> None:
    """Write what ToyResults.load can read, the first run, with the facts and further runs added; all or nothing."""
    with complete_file(path, "toy study") as part, part.open("w+b") as file:
        saved.runs[0].pack(file)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(MEMBER, json.dumps(saved.facts))
            for k, results in enumerate(saved.runs[1:], 1):
                with archive.open(f"run_{k}.npz", "w", force_zip64=True) as member:
                    results.pack(member)


def read_study(path: Path) -> Saved:
    """Read back what ``write_study`` wrote."""
    with opened("toy study", path) as file:
        try:
            return read_members(path, file)
        # zipfile, zlib and json raise whatever their decoders do
        except Exception as error:
            cause = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(
                f"toy study '{path}': the file holds no study or is damaged, {cause}; name another file"
            ) from error


def read_members(path: Path, file: IO[bytes]) -> Saved:
    with zipfile.ZipFile(file) as archive:
        facts = json.loads(archive.read(MEMBER))
        later = [archive.read(name) for name in archive.namelist() if name.startswith("run_")]
    file.seek(0)
    runs = [ToyResults.unpack(stream, path) for stream in (file, *map(BytesIO, later))]
    if not isinstance(facts, dict):
        raise TypeError("its facts are no mapping")
    return Saved(facts, runs)
