"""Results in a file: kept when the same versions are run again, and judged: a fit that is wrong must not be timed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VALUE = 1e-3  # of an error, between a system's fit of the common dataset and the judge's
ERROR = 1e-3  # relative, of errors
BIAS = 0.1  # pulls of few events are a little off
SIGMAS = 5  # of statistical fluctuation beyond that
INVALID = 0.05  # share of fits that may fail, and one

Place = tuple[str, str, int]  # system, model, threads


@dataclass
class Results:
    """What is in the file: machine, environments, judge, checks and cells."""

    path: Path
    data: dict[str, Any]

    @classmethod
    def load(cls, path: Path, machine: dict[str, Any], fresh: bool) -> Results:
        """Read a file to go on with, unless a fresh start is wanted; one from another machine is refused."""
        empty: dict[str, Any] = {
            "machine": machine,
            "environments": {},
            "judge": {},
            "checks": [],
            "cells": [],
        }
        if fresh or not path.exists():
            return cls(path, empty)
        data = json.loads(path.read_text())
        if data["machine"] != machine:
            raise SystemExit(
                f"results '{path}': must be of this machine, got {data['machine']}; use --fresh or another --output"
            )
        return cls(path, data)

    def put(self, kind: str, row: dict[str, Any]) -> None:
        """Add a row, in place of the one with the same name if there is one, and write the file."""
        names = (
            ("system", "model", "threads", "events") if kind == "cells" else ("system", "model", "threads")
        )
        same = [r for r in self.data[kind] if all(r[n] == row[n] for n in names)]
        self.data[kind] = [r for r in self.data[kind] if r not in same] + [row]
        self.data[kind].sort(key=lambda r: tuple(r[n] for n in names))
        self.save()

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(self.data, indent=1) + "\n")
        os.replace(draft, self.path)

    def cell(self, place: Place, events: int) -> dict[str, Any] | None:
        for row in self.data["cells"]:
            if (row["system"], row["model"], row["threads"], row["events"]) == (*place, events):
                return dict(row)
        return None

    def missing(self, place: Place, sizes: list[int], key: str, budget: float) -> list[int]:
        """Return the sizes that have not been run with these versions, or failed, or that there is more time for now."""
        return [n for n in sizes if not kept(self.cell(place, n), key, budget)]


def kept(cell: dict[str, Any] | None, key: str, budget: float) -> bool:
    if cell is None or cell["key"] != key or "error" in cell:
        return False
    return "not_run" not in cell or budget <= cell["budget"]


def problems(data: dict[str, Any]) -> list[str]:
    """Return what is wrong with the fits that were timed, a sentence each."""
    return [*wrong_minima(data), *wrong_toys(data)]


def wrong_minima(data: dict[str, Any]) -> Iterator[str]:
    """Compare fits of the common datasets with the judge's; whatever was timed must have fitted them."""
    checked = {(r["system"], r["model"], r["threads"], r["key"]) for r in data["checks"]}
    timed = {(c["system"], c["model"], c["threads"], c["key"]) for c in data["cells"] if "fits" in c}
    for system, model, threads, _ in sorted(timed - checked):
        yield f"{system}, {model}, {threads} threads: timed, but not compared with the judge"
    for row in data["checks"]:
        judge, name = (
            data["judge"][row["model"]],
            f"{row['system']}, {row['model']}, {row['threads']} threads",
        )
        rows = list(zip(row["values"], row["errors"], judge["values"], judge["errors"], strict=True))
        value = max(abs(v - expected) / sigma for v, _, expected, sigma in rows)
        error = max(abs(e / sigma - 1) for _, e, _, sigma in rows)
        row["off_value"], row["off_error"] = value, error
        if not (value <= VALUE and error <= ERROR):
            yield f"{name}: the common dataset's minimum is {value:.2g} of an error off, errors {error:.2g}"
        if not row["valid"]:
            yield f"{name}: the fit of the common dataset is not valid"


def wrong_toys(data: dict[str, Any]) -> Iterator[str]:
    """Look at pulls and validity of the toys that were timed."""
    for row in data["cells"]:
        name = f"{row['system']}, {row['model']}, {row['events']} events, {row['threads']} threads"
        if "error" in row:
            yield f"{name}: {row['error']}"
        if "fits" not in row:
            continue
        fits = row["fits"]
        if fits * (1 - row["valid"]) > 1 + INVALID * fits:
            yield f"{name}: {1 - row['valid']:.1%} of {fits} fits are not valid"
        means, widths = row["pull_mean"], row["pull_rms"]
        if any(abs(m) > BIAS + SIGMAS / math.sqrt(fits) for m in means):
            yield f"{name}: pulls have means {', '.join(f'{m:.2f}' for m in means)} in {fits} fits"
        if any(abs(w - 1) > BIAS + SIGMAS / math.sqrt(2 * fits) for w in widths):
            yield f"{name}: pulls have widths {', '.join(f'{w:.2f}' for w in widths)} in {fits} fits"
