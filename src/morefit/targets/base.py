"""What every backend offers, and how events are laid out over parameter sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.ir import Kernel, Precision
from morefit.kernel.measured_program import MeasuredTable
from morefit.kernel.program import Driver
from morefit.kernel.rows_layout import RowsTable, check_rows
from morefit.validate import whole_number


@dataclass(frozen=True, eq=False)
class Events:
    """Which events belong to which parameter set: the same for every set, or a slice of its own for each."""

    starts: Integers
    stops: Integers
    shared: bool

    @classmethod
    def all_sets(cls, count: int) -> Events:
        """Give every set all events."""
        return cls(np.array([0]), np.array([count]), True)

    @classmethod
    def slices(cls, sizes: Sequence[int] | Integers) -> Events:
        """Give each set the next ``sizes[set]`` events."""
        counts = np.asarray(sizes, np.int64)
        stops = counts.cumsum()
        return cls(stops - counts, stops, False)

    @property
    def count(self) -> int:
        """How many events there are in all."""
        return int(self.stops[-1]) if len(self.stops) else 0

    def sizes(self, sets: int) -> Integers:
        """Return the number of events of each of ``sets`` sets."""
        sizes = self.stops - self.starts
        return np.broadcast_to(sizes, (sets,)) if self.shared and sets != 1 else sizes


class Pieces(Protocol):
    """Doubles of many arrays, one after the other as those of one column, where the arrays have them."""

    @property
    def places(self) -> Integers:
        """The first number of each array: its address in units of eight bytes."""
        ...

    @property
    def count(self) -> int: ...

    def copy(self, first: int, target: Array) -> None:
        """Copy as many numbers as there is room for, from one of them on; any number of threads may call it at once."""
        ...

    def joined(self) -> Array:
        """Return the numbers in one array."""
        ...


class Buffer(Protocol):
    """A column where the backend can read it."""

    @property
    def count(self) -> int: ...

    @property
    def values(self) -> Array:
        """The numbers, on the host."""
        ...


@dataclass(frozen=True, eq=False)
class HostColumn:
    """A column in the memory of the host."""

    numbers: NDArray[Any]

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def values(self) -> Array:
        return self.numbers.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Events that were drawn, set after set, and the numbers of failures."""

    columns: tuple[Buffer, ...]
    above: int  # vectors of events in which a density was above its envelope
    abandoned: int  # vectors of events for which no candidate was accepted


class Launch(Protocol):
    """A program bound to data, to be called with parameter sets."""

    def __call__(self, parameters: Array) -> Array:
        """Return (sets, outputs + 1) for a SUM and (sets, outputs, events) for a STORE kernel.

        The last output of a SUM counts the blocks in which a density was not a positive number.
        """
        ...

    def store(self) -> tuple[Buffer, ...]:
        """Compute the columns of a STORE kernel without parameters, and keep them where the backend can read them."""
        ...


class Program(Protocol):
    """A compiled kernel."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def source(self) -> str: ...

    @property
    def compile_seconds(self) -> float: ...

    def expect(self, events: Events | None) -> None:
        """Begin to build what these events need, or a few, if that has not begun yet."""
        ...

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> Launch:
        """Bind columns; ``steps`` says how far each moves from set to set (default: 0)."""
        ...

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, one toy each, from random numbers that the seed and its number determine."""
        ...


class CompiledDraw(Protocol):
    """What draws events, or the rows of a table, in compiled code."""

    @property
    def program(self) -> Program | RowsTable: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeIntegral:
    """Numerical integrals that a part needs before its sums: a kernel over nodes that all toys share."""

    program: Program
    nodes: tuple[Array, ...]  # a column for each of the kernel's
    bodies: int  # integrals, followed by what tells how accurate they are
    limits: Array  # bounds of the contrast, and of the coarseness at each place of a peak
    edges: Array  # (boxes, axes, 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeScores:
    """The squared scores of a part, which are summed once, at the end of a fit of weighted events.

    The parameters of their kernel are those of the sums, up to the first integral.
    """

    program: Program
    columns: tuple[str, ...]  # of the part, one for each of the kernel's
    integrals: tuple[WholeIntegral, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class WholePart:
    """One part of a likelihood: what draws its events, what depends on them alone, and what is summed over them."""

    sampler: Program | RowsTable | None  # None: the events are there
    derive: Program | None  # computes event-only columns
    sums: Program
    observables: tuple[str, ...]  # that the sampler draws, or that are there
    derived: tuple[str, ...]  # columns that ``derive`` computes
    parameters: int  # of the sums, up to the first integral
    floating: tuple[int, ...]  # indices of those among them that the sums have derivatives by
    places: tuple[int, ...]  # which parameter of the fit each of those is, -1 if it is fixed
    measured: int  # index of the first one that a constraint measured,
    fluctuating: int  # how many of those each toy has values of its own for: all, or none
    integrals: tuple[WholeIntegral, ...] = ()
    scores: WholeScores | None = None  # None: errors come from the Hessian
    measuring: MeasuredTable | None = None  # None: what constraints measured in toys is there

    def drawn_by(self, sampler: Program | RowsTable | None, measuring: MeasuredTable | None) -> WholePart:
        return replace(self, sampler=sampler, measuring=measuring)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsPart:
    """One part of a likelihood that is a model of counts, drawn or there; the fields are those of a ``WholePart``."""

    table: CountsTable
    parameters: int
    floating: tuple[int, ...]
    places: tuple[int, ...]
    measured: int
    fluctuating: int
    sampler: RowsTable | None = None
    measuring: MeasuredTable | None = None

    def drawn_by(self, sampler: Program | RowsTable | None, measuring: MeasuredTable | None) -> CountsPart:
        assert sampler is None or isinstance(sampler, RowsTable)  # counts are rows of a table
        return replace(self, sampler=sampler, measuring=measuring)


class Steps(Protocol):
    """Fits whose steps the host takes: their records, one in each row."""

    states: Array

    def columns(self, name: str) -> Array:
        """Return the numbers of a field."""
        ...

    @property
    def running(self) -> Flags: ...

    def advance(self) -> None:
        """Take a step of each fit after the sums at its trial point."""
        ...

    def correct(self) -> None:
        """Correct the errors of each fit after its squared scores."""
        ...

    def take(self, chosen: Flags) -> Array:
        """Remove some fits; return their records."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeFit:
    """What a backend needs to draw and fit toys on its own."""

    driver: Driver
    layout: FitLayout
    parts: tuple[WholePart | CountsPart, ...]
    # begins fits on the host from their first records, for a device that takes longer to have code for steps than the host to take them
    begin_steps: Callable[[Array], Steps] | None = None
    # begins to compile those of the host; called when the device's compiler has what it needs
    expect_steps: Callable[[], object] | None = None
    spare: list[object] = field(default_factory=list)  # what the backend keeps from one call to the next

    def checked(self, sizes: Integers) -> WholeFit:
        """Refuse toys, (toys, parts), that have not the rows of the tables they are drawn from."""
        for part, own in zip(self.parts, sizes.T, strict=True):
            if isinstance(part.sampler, RowsTable):
                check_rows(part.sampler.rows, own)
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class PartBatch:
    """The events of one part in all toys of a batch, drawn or stored."""

    parameters: Array  # of the sums, fixed ones at their values
    measured: Array | None = None  # what constraints measured in each toy, (toys, values)
    seed: int = 0  # of the random numbers
    events: tuple[Buffer, ...] = ()  # concatenated columns, one for each observable ...
    starts: Integers | None = None  # ... and the offset of each toy in them


@dataclass(frozen=True, eq=False, kw_only=True)
class ToyBatch:
    """Toys that are fitted in one call."""

    sizes: Integers  # (toys, parts) numbers of events
    first: int  # the number of the first toy
    record: Array  # with which each fit begins
    parts: tuple[PartBatch, ...]
    offsets: Integers | None = None  # of toys' numbers from the first; None: one after the other

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def largest(self) -> list[int]:
        """The largest number of events of each part."""
        sizes: list[int] = (self.sizes[0] if len(self) == 1 else self.sizes.max(axis=0, initial=0)).tolist()
        return sizes

    @property
    def own_offsets(self) -> Integers:
        return np.arange(len(self)) if self.offsets is None else self.offsets

    def each(self) -> Iterator[ToyBatch]:
        """Go through the toys, each as a batch of its own."""
        for k, offset in enumerate(self.own_offsets.tolist()):
            own = slice(k, k + 1)
            parts = tuple(
                replace(
                    part,
                    measured=None if part.measured is None else part.measured[own],
                    starts=None if part.starts is None else part.starts[own],
                )
                for part in self.parts
            )
            yield replace(self, sizes=self.sizes[own], first=self.first + offset, parts=parts, offsets=None)


class Backend(Protocol):
    """A place where kernels run."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str:
        """Where kernels ran, as results name it."""
        ...

    @property
    def tiles_from(self) -> int:
        """From how many parameters on products of first derivatives are summed in tiles, not one by one."""
        ...

    def max_shifts(self, parameters: int) -> int:
        """Return how many factorisations a step of a whole fit may take before eigenvalues are computed; 0: eigenvalues at once."""
        ...

    @property
    def toys_together(self) -> int:
        """How many toys should be drawn and fitted together, for it not to be idle."""
        ...

    @property
    def draws_measured(self) -> bool:
        """Whether whole fits draw what constraints measure themselves."""
        ...

    def __hash__(self) -> int: ...

    def expect_kernels(self) -> None:
        """Begin to prepare for kernels that have not been compiled before."""
        ...

    def compile(self, kernel: Kernel, identity: str | None = None) -> Program:
        """Compile a kernel; ``identity`` is a text that no other kernel has in any process, so that its code can be found by it."""
        ...

    @property
    def sent_together(self) -> int | None:
        """How many bytes of stored toys are sent while those before them are fitted; None: nothing is sent."""
        ...

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> Buffer: ...

    def upload_pieces(self, pieces: Pieces) -> Buffer:
        """Return the column of many arrays, which must stay as they are; they are joined at most once."""
        ...

    def sum_counts(self, table: CountsTable, points: Array) -> Array:
        """Return the sums of a model of counts at points, (sets, outputs), as ``kernel/counts_program.py`` defines them."""
        ...

    def expect_fits(self, driver: Driver, layout: FitLayout, toys: int = 1) -> bool:
        """Begin to compile what whole fits of a layout need besides kernels, if that can go on beside other work.

        Return whether this backend leaves the steps of so many toys to the host, which needs code of its own for them.
        """
        ...

    def prepare_fits(self, job: WholeFit, toys: ToyBatch) -> None:
        """Wait for machine code that ``fit_whole`` needs, so that its time does not count as that of a fit."""
        ...

    def fit_whole(self, job: WholeFit, toys: ToyBatch, width: int) -> Array | None:
        """Draw and fit toys; return the first ``width`` numbers of the record of each, None if this backend cannot."""
        ...

    def fit_whole_together(self, fits: Sequence[tuple[WholeFit, ToyBatch]], width: int) -> list[Array | None]:
        """Do the same for several jobs."""
        ...


def shows_source() -> bool:
    """Return whether MOREFIT_SHOW says "source"."""
    return os.environ.get("MOREFIT_SHOW") == "source"


def show_source(source: str) -> None:
    """Print a source to the standard error if the environment asks for it."""
    if shows_source():
        print(source, file=sys.stderr)


def check_whole_numbers(backend: object, name: str, options: Sequence[str]) -> None:
    """Refuse options of a backend that are not whole numbers; None, where it is the default, leaves the choice to it."""
    for option in options:
        value = getattr(backend, option)
        if value is not None or getattr(type(backend), option) is not None:
            number = whole_number(f"backend '{name}': {option}", value, -sys.maxsize, BackendError)
            object.__setattr__(backend, option, number)
