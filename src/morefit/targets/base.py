"""What every backend offers, and how events are laid out over parameter sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from morefit.arrays import Array, Integers
from morefit.kernel import Kernel, Precision
from morefit.kernel.fit_layout import FitLayout


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


class Buffer(Protocol):
    """A column where the backend can read it."""

    @property
    def count(self) -> int: ...

    @property
    def values(self) -> Array:
        """The numbers, on the host."""
        ...


@dataclass(frozen=True, eq=False)
class Drawn:
    """Events that were drawn, set after set, and the numbers of failures."""

    columns: tuple[Buffer, ...]
    above: int  # vectors of events in which a density was above its envelope
    given_up: int  # vectors of events for which no candidate was accepted


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

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> Launch:
        """Bind columns; ``steps`` says how far each moves from set to set (default: 0)."""
        ...

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, one toy each, from random numbers that the seed and its number determine."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeFit:
    """What a backend needs to draw and fit toys on its own; one kernel each for drawing, summing, stepping."""

    sampler: Program | None  # None: the events are in ``events``
    derive: Program | None  # computes event-only columns
    sums: Program
    step: Program
    observables: tuple[str, ...]  # that the sampler draws
    derived: tuple[str, ...]  # columns that ``derive`` computes
    layout: FitLayout
    start: Array  # the rows that the first step reads
    parameters: Array  # all parameters of the sums, fixed ones at their values
    floating: tuple[int, ...]  # indices of the floating ones among them
    max_steps: int
    events: tuple[Buffer, ...] = ()  # concatenated columns, one for each observable ...
    starts: Integers | None = None  # ... and the offset of each toy in them
    spare: list[object] = field(default_factory=list)  # what the backend keeps from one call to the next


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

    def __hash__(self) -> int: ...

    def compile(self, kernel: Kernel) -> Program: ...

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> Buffer: ...

    def fit_whole(self, job: WholeFit, sizes: Integers, seed: int, first_toy: int) -> Array | None:
        """Draw and fit a toy for each size; return a row for each, laid out as in ``job.layout``.

        None if this backend cannot.
        """
        ...
