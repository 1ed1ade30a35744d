"""Processes that compile LLVM IR beside this one, since llvmlite lets one thread of a process into LLVM at a time."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf
from pathlib import Path

from morefit.resources import available_cores
from morefit.targets.builders import Builders, spare_cores
from morefit.targets.cpu.host import Host

MODULE = "morefit.targets.cpu.builder"
MOST = 3  # processes: a model has its driver, what draws events, its sums, and integrals


def builders_for(host: Host, level: int, count: int | None = None) -> Builders:
    """Return the processes that compile for a processor, which start when they are asked to; none where it is not optimised."""
    if count is None:
        count = min(MOST, spare_cores()) if level else 0
    found = find_spec("llvmlite") if count else None
    place = Path(found.origin).parents[1] if found and found.origin else None
    return Builders(
        MODULE,
        (host.text, str(level)),
        count=count if place else 0,
        places=[str(place)],
        at_once=max(available_cores() - 1, 1) if place else inf,
    )
