"""Likelihoods that are summed over the rows of a table, such as bins or points, in the place of events."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data import Dataset
from morefit.data.dataset import build
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, apply
from morefit.likelihood.base import Point
from morefit.likelihood.constraint import as_constraints
from morefit.likelihood.datasets import PartData
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Observable, Pdf
from morefit.pipeline import Columns, Settings
from morefit.random.host import stream_key
from morefit.targets import Backend, Drawn, Events, choose_backend

LARGEST = float(np.finfo(np.float64).max)


class TableColumn(Observable):
    """A column of a table; its name has spaces, as no name of a user has."""

    def __new__(cls, name: str, low: Any = -LARGEST, high: Any = LARGEST, label: str = "") -> TableColumn:
        return cls.interned(name, low, high, label)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableModel(Pdf):
    """What is summed over the rows of a table, in the place of the logarithm of a density.

    ``expected`` is what a row is expected to have in the column ``drawn``.
    """

    formula: Expr
    table: tuple[TableColumn, ...]
    expected: Expr
    drawn: ClassVar[str]

    def __post_init__(self) -> None:
        """Check nothing: the arguments are made by this package."""

    def density(self) -> Expr:
        return apply(Op.EXP, self.formula)

    def integral(self) -> Expr:
        return ONE

    def log_intensity(self) -> Expr:
        return self.formula

    def components(self) -> tuple[Pdf, ...]:
        return ()

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return self.table


class TableLikelihood(Likelihood):
    """A likelihood whose data are a table; toys have the same rows, in which one column is drawn anew."""

    model: TableModel

    def set_up_table(
        self, model: TableModel, columns: Mapping[str, Array], constraints: Any, backend: str | Backend
    ) -> None:
        """Set what the likelihood is made of, and where it is computed."""
        data = build({c.name: np.asarray(columns[c.name], np.float64) for c in model.table}, None, None)
        settings = Settings(choose_backend(backend, len(data)))
        self.set_up(model, data, as_constraints(constraints), settings)

    @abstractmethod
    def draw_rows(self, expected: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        """Draw what a toy has in the place of some columns."""

    def expected(self, x: Point) -> Array:
        """Return what each row is expected to have, (rows,) or (B, rows)."""
        points, one = self.points(x)
        rows = self.event_values(points, self.model.expected)[:, 0, :]
        return rows[0] if one else rows

    def expected_at(self, values: Mapping[str, float]) -> Array:
        """Return what each row is expected to have at values of all parameters by name."""
        full = np.array([[values[p.name] for p in self.all_parameters]])
        expected = self.event_values(full, self.model.expected)[0, 0]
        if not np.isfinite(expected).all():
            raise ModelError(f"toys: what is expected must be finite, got {expected[~np.isfinite(expected)][0]}")
        return expected

    def with_columns(self, columns: Mapping[str, Array]) -> TableLikelihood:
        """Return the same likelihood with other numbers in some columns."""
        return self.replaced(data=build({**self.data.columns, **columns}, None, None))

    def sampler(self, truth: Mapping[str, float], backend: Backend) -> TableSampler:
        return TableSampler(self, self.expected_at({**self.start_values, **truth}), backend)

    @property
    def start_values(self) -> dict[str, float]:
        return {p.name: p.start for p in self.all_parameters}

    def generated(
        self, values: Mapping[str, float], seed: int, *, backend: Any, generator: Any
    ) -> Dataset:
        """Draw the table of a toy; random numbers are NumPy's, whatever the generator of events."""
        return build({**self.data.columns, **self.draw_toy(self.expected_at(values), seed, 0)}, None, None)

    def draw_toy(self, expected: Array, seed: int, toy: int) -> Mapping[str, Array]:
        """Draw one toy, which depends on the seed and its number only."""
        key = stream_key(seed, "table")
        return self.draw_rows(expected, np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, toy])))

    def replicas(self, weights: Callable[[], Array], seed: int, numbers: Integers) -> PartData:
        tables = [
            {**self.data.columns, **self.resampled(np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, k])))}
            for k in numbers.tolist()
        ]
        columns = Columns({c.name: np.concatenate([t[c.name] for t in tables]) for c in self.model.table})
        return PartData(columns, Events.slices([self.events] * len(tables)), boxes=self.boxes)

    def replica(self, data: PartData, k: int) -> Dataset:
        own = slice(k * self.events, (k + 1) * self.events)
        return build({name: column[own] for name, column in data.columns.arrays.items()}, None, None)

    @abstractmethod
    def resampled(self, rng: np.random.Generator) -> Mapping[str, Array]:
        """Draw what a replica of the data has in the place of some columns."""

    def without_events(self) -> TableLikelihood:
        """Return the likelihood itself: its rows are part of it."""
        return self

    def has_kinks(self, floating: tuple[str, ...]) -> bool:
        return False

    @property
    def facts(self) -> dict[str, Any]:
        """What toys depend on besides the model."""
        fixed = [column for name, column in self.data.columns.items() if name != self.model.drawn]
        return {"rows": sha256(np.concatenate(fixed).tobytes()).hexdigest()}


@dataclass(eq=False)
class TableSampler:
    """Draws toys of a table, in NumPy."""

    likelihood: TableLikelihood
    expected: Array
    backend: Backend
    margin: ClassVar[float] = 0.0
    compiled: ClassVar[None] = None

    def draw(self, sizes: Integers, seed: int, first_toy: int = 0) -> Drawn:
        """Draw toys ``first_toy``, ``first_toy + 1``, ..., one after the other."""
        part = self.likelihood
        toys = [part.draw_toy(self.expected, seed, first_toy + k) for k in range(len(sizes))]
        columns = part.data.columns
        if any(size != part.events for size in sizes.tolist()):
            raise ModelError(
                f"toys: a table has {part.events} rows in every toy, got {sizes.tolist()[:3]}; leave events out"
            )
        arrays = [
            np.concatenate([toy[c.name] for toy in toys])
            if toys and c.name in toys[0]
            else np.tile(columns[c.name], len(sizes))
            for c in part.model.table
        ]
        return Drawn(tuple(self.backend.upload(a) for a in arrays), 0, 0)

    def repair(self, above: int, given_up: int) -> bool:
        """Return that nothing has to be drawn again."""
        return False
