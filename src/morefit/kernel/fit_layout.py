"""The rows of a whole fit, laid out once: what a step reads and writes, and what a fit returns.

A step reads all rows: the state that the last step wrote, the sums at the trial point, and constants. It writes the
state anew. A fit returns the rows of the result, and three numbers about how it went.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from morefit.arrays import Array


@dataclass(frozen=True)
class FitLayout:
    """The names of all rows for a number of floating parameters, in order."""

    count: int

    @cached_property
    def trial(self) -> tuple[str, ...]:
        """The point to be evaluated next: the first rows of all."""
        return self.vector("trial")

    @cached_property
    def result(self) -> tuple[str, ...]:
        """What a fit returns; these follow the trial point."""
        return ("status", *self.vector("x"), "value", "edm", *self.vector("error"))

    @cached_property
    def state(self) -> tuple[str, ...]:
        """What a step writes, and the next one reads."""
        return (*self.trial, *self.result, *self.vector("g"), *self.triangle("h"), "damping")

    @cached_property
    def sums(self) -> tuple[str, ...]:
        """The sums at the trial point, as the kernel that sums returns them."""
        return ("new_value", *self.vector("new_g"), *self.triangle("new_h"), "bad")

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """All rows that a step reads."""
        return (*self.state, *self.sums, *self.vector("low"), *self.vector("high"), "goal")

    def vector(self, prefix: str) -> tuple[str, ...]:
        return tuple(f"{prefix}{i}" for i in range(self.count))

    def triangle(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the lower triangle of a matrix, row by row."""
        return tuple(f"{prefix}{i}_{j}" for i in range(self.count) for j in range(i + 1))

    # where they are among all rows

    @property
    def status(self) -> int:
        return self.rows.index("status")

    @property
    def first_result(self) -> int:
        return len(self.trial)

    @property
    def first_sum(self) -> int:
        return len(self.state)

    # where they are among the numbers that a fit returns

    @property
    def steps(self) -> int:
        """The number of steps follows the result."""
        return len(self.result)

    @property
    def above(self) -> int:
        """How often a density was above its envelope."""
        return self.steps + 1

    @property
    def given_up(self) -> int:
        """How often no candidate was accepted."""
        return self.above + 1

    @property
    def width(self) -> int:
        """How many numbers a fit returns."""
        return self.given_up + 1


@dataclass(frozen=True, eq=False)
class FitRows:
    """What whole fits returned, by name: T of them, P floating parameters."""

    layout: FitLayout
    rows: Array  # (T, layout.width)

    def column(self, name: str) -> Array:
        return self.rows[:, self.layout.result.index(name)]

    def columns(self, prefix: str) -> Array:
        first = self.layout.result.index(f"{prefix}0")
        return self.rows[:, first : first + self.layout.count]

    @property
    def status(self) -> Array:
        return self.column("status")

    @property
    def x(self) -> Array:
        return self.columns("x")

    @property
    def errors(self) -> Array:
        """(T, P), negative where there are none."""
        return self.columns("error")

    @property
    def value(self) -> Array:
        return self.column("value")

    @property
    def edm(self) -> Array:
        return self.column("edm")

    @property
    def steps(self) -> Array:
        return self.rows[:, self.layout.steps]

    @property
    def above(self) -> int:
        """How often a density was above its envelope, in all fits together."""
        return int(self.rows[:, self.layout.above].sum())

    @property
    def given_up(self) -> int:
        """How often no candidate was accepted, in all fits together."""
        return int(self.rows[:, self.layout.given_up].sum())
