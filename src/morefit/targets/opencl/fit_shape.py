"""What the text of whole fits in OpenCL C depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.ir import Kernel
from morefit.targets.base import Program, WholeIntegral, WholePart
from morefit.targets.opencl.dialect import Dialect, indented
from morefit.targets.opencl.fit_phase import TILE, Runs
from morefit.targets.opencl.lift import Lifted, LiftedProgram


@dataclass(frozen=True)
class IntegralShape:
    """Numerical integrals of a part: their kernel, and how many of everything."""

    kernel: Kernel
    bodies: int
    peaks: int
    axes: int


@dataclass(frozen=True, kw_only=True)
class SumShape:
    """What is summed over the events of a part: the kernel, from which columns of the part, and its integrals."""

    kernel: Kernel
    columns: tuple[str, ...]
    integrals: tuple[IntegralShape, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        integrals = tuple((id(i.kernel), i.bodies, i.peaks, i.axes) for i in self.integrals)
        return (id(self.kernel), self.columns, integrals)

    @classmethod
    def of(cls, program: Program, columns: Sequence[str], integrals: Sequence[WholeIntegral]) -> SumShape:
        shapes = [
            IntegralShape(one.program.kernel, one.bodies, len(one.limits) - 1, one.edges.shape[1])
            for one in integrals
        ]
        return cls(kernel=program.kernel, columns=tuple(columns), integrals=tuple(shapes))


@dataclass(frozen=True, kw_only=True)
class PartShape:
    """What the text depends on in one part of the likelihood. Without a sampler the events are arguments."""

    sampler: Lifted | None
    derive: Kernel | None
    sums: SumShape
    scores: SumShape | None  # squared ones, where events have weights
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    parameters: int  # before the integrals
    floating: tuple[int, ...]  # indices of the floating parameters among all
    places: tuple[int, ...]  # which parameter of the fit each of those is
    measured: tuple[int, int]  # indices of what constraints measured in each toy: from, and up to

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.observables, *self.derived)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells the text of one part from another."""
        sampler = self.sampler and (self.sampler.kernel, len(self.sampler.numbers))
        scores = self.scores and self.scores.key
        return (sampler, id(self.derive), self.sums.key, scores, self.places, self.floating, self.measured)

    @property
    def all_sums(self) -> list[SumShape]:
        return [self.sums, *([self.scores] if self.scores else [])]


@dataclass(frozen=True, kw_only=True)
class StepShape:
    """What the text of a step of the minimiser depends on."""

    wide: bool  # whether the items of a group take the step of a toy together
    layout: FitLayout

    @property
    def pitch(self) -> int:
        """How far the numbers of a record are apart."""
        return 1 if self.wide else TILE

    @property
    def record(self) -> str:
        """Where the record of a toy begins."""
        size = self.layout.size
        if self.wide:
            return f"records + (long)index * {size}"
        return f"records + (long)(index / {TILE}) * {size * TILE} + index % {TILE}"

    def number(self, place: int) -> str:
        """Return a number of the record of a toy."""
        return f"fit[{place * self.pitch}]"

    @property
    def runs(self) -> Runs:
        """What takes the steps."""
        return Runs.TILES if self.wide else Runs.ITEMS

    def each(self, first: int, last: int | str, line: str) -> str:
        """Do something for numbers of the record, k."""
        begin, step = (f"{first} + item", TILE) if self.wide else (f"{first}", 1)
        return f"for (int k = {begin}; k < {last}; k += {step}) {line}"

    def wait(self, d: Dialect) -> list[str]:
        return [d.wait_memory] if self.wide else []

    def once(self, d: Dialect, *lines: str) -> list[str]:
        """Let one item do something for a toy."""
        return ["if (item == 0) {", *indented(lines), "}", d.wait_memory] if self.wide else [*lines]


@dataclass(frozen=True, kw_only=True)
class FitShape(StepShape):
    """What the text of whole fits depends on."""

    group: int
    parts: tuple[PartShape, ...]

    @property
    def weighted(self) -> bool:
        """Whether errors come from squared scores."""
        return any(part.scores for part in self.parts)


RECORDS = "{m}double *records"
ROWS = "{m}const int *rows"  # of each toy: where it is drawn, where its fit starts, and what is fixed


def record_line(shape: StepShape, d: Dialect) -> str:
    """Find the record of a toy."""
    return f"{d.memory}double *fit = {shape.record};"


def shape_of(part: WholePart) -> PartShape:
    """Return what the text of a part depends on."""
    scores = part.scores
    return PartShape(
        sampler=cast("LiftedProgram", part.sampler).lifted if part.sampler else None,
        derive=part.derive.kernel if part.derive else None,
        sums=SumShape.of(part.sums, part.sums.kernel.columns, part.integrals),
        scores=SumShape.of(scores.program, scores.columns, scores.integrals) if scores else None,
        observables=part.observables,
        derived=part.derived,
        parameters=part.parameters,
        floating=part.floating,
        places=part.places,
        measured=(part.measured, part.measured + part.fluctuating),
    )
