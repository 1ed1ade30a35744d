"""What the text of a whole fit in OpenCL C depends on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from morefit.kernel import Kernel
from morefit.kernel.fit_layout import FitLayout
from morefit.targets.base import WholePart
from morefit.targets.opencl.lift import Lifted, lift_numbers

MAX_LOCAL_RECORD = 1024  # numbers: a larger record of a fit is in the memory of the device


class Home(Enum):
    """Where the events of a toy are, which decides the work-groups that process them."""

    LOCAL = "in the shared memory of its group"
    GLOBAL = "in the memory of the device, for one group"
    SPREAD = "in the memory of the device, for many groups"


@dataclass(frozen=True)
class IntegralShape:
    """Numerical integrals of a part: their kernel, and how many of everything."""

    kernel: Kernel
    bodies: int
    peaks: int
    axes: int


@dataclass(frozen=True, kw_only=True)
class PartShape:
    """What the text depends on in one part of the likelihood. Without a sampler the events are arguments."""

    sampler: Lifted | None
    derive: Kernel | None
    sums: Kernel
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    parameters: int  # before the integrals
    floating: tuple[int, ...]  # indices of the floating parameters among all
    places: tuple[int, ...]  # which parameter of the fit each of those is
    measured: tuple[int, int]  # indices of what constraints measured in each toy: from, and up to
    integrals: tuple[IntegralShape, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.observables, *self.derived)


@dataclass(frozen=True, kw_only=True)
class FitShape:
    """What the text of a whole fit depends on."""

    group: int
    home: Home
    layout: FitLayout
    parts: tuple[PartShape, ...]


def fit_functions(home: Home) -> tuple[str, ...]:
    """Return the names of the functions in a text."""
    return ("draw", "sums", "advance") if home is Home.SPREAD else ("fit",)


def record_is_local(layout: FitLayout) -> bool:
    """Return whether the record of a fit is in the shared memory of its group."""
    return layout.size <= MAX_LOCAL_RECORD


def part_key(part: PartShape) -> tuple[Any, ...]:
    """Return what tells the text of one part from another."""
    sampler = part.sampler and (part.sampler.kernel, len(part.sampler.numbers))
    integrals = tuple((id(i.kernel), i.bodies, i.peaks, i.axes) for i in part.integrals)
    return (sampler, id(part.derive), id(part.sums), part.places, part.floating, part.measured, integrals)


def shape_of(part: WholePart, measured: int, max_numbers: int) -> PartShape:
    """Return what the text of a part depends on."""
    return PartShape(
        sampler=lift_numbers(part.sampler.kernel, max_numbers) if part.sampler else None,
        derive=part.derive.kernel if part.derive else None,
        sums=part.sums.kernel,
        observables=part.observables,
        derived=part.derived,
        parameters=part.parameters,
        floating=part.floating,
        places=part.places,
        measured=(part.measured, part.measured + measured),
        integrals=tuple(
            IntegralShape(one.program.kernel, one.bodies, len(one.limits) - 1, one.edges.shape[1])
            for one in part.integrals
        ),
    )
