"""Likelihoods that are summed over the rows of a table, such as bins or points, in the place of events."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset, build
from morefit.data.io.bins import as_numbers
from morefit.data.io.histogram import is_histogram
from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.errors import DataError, ModelError
from morefit.expr import ONE, Expr, Op, apply
from morefit.kernel.rows_layout import RowsDraw, RowsTable, check_rows
from morefit.likelihood.base import Point
from morefit.likelihood.constraint import as_constraints
from morefit.likelihood.evaluation import PartData
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Observable, Pdf
from morefit.model.opaque import opaque_names
from morefit.pipeline import Columns, Settings, able_backend
from morefit.random.host import source_for, stream_key
from morefit.targets.base import Backend, Drawn, Events
from morefit.targets.choose import choose_backend

LARGEST = float(np.finfo(np.float64).max)
GROUP = 256  # toys that share a stream of random numbers
Streams = Iterator[np.random.Generator]


class TableColumn(Observable):
    """A column of a table; its name has spaces, as no name of a user has."""

    def __new__(cls, name: str, low: Any = -LARGEST, high: Any = LARGEST, label: str = "") -> TableColumn:
        return cls.interned(name, low, high, label)


COUNT = TableColumn("count of the bin")


@dataclass(frozen=True, eq=False, kw_only=True)
class TableModel(Pdf):
    """What is summed over the rows of a table, in the place of the logarithm of a density.

    ``expected`` is what a row is expected to have in the column ``counted``.
    """

    formula: Expr
    table: tuple[Observable, ...]
    expected: Expr
    counted: ClassVar[str]

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

    @cached_property
    def calls_python(self) -> bool:
        """Whether there are functions of Python in it, which NumPy evaluates."""
        return bool(opaque_names(self))

    @property
    def measurements(self) -> tuple[str, ...]:
        """The columns of the table that a measurement fills in, as no other may depend on it."""
        return (self.counted,)


class TableLikelihood(Likelihood):
    """A likelihood whose data are a table; toys have the same rows, in which one column is drawn anew."""

    model: TableModel
    has_scores: ClassVar[bool] = False

    @property
    def source(self) -> Pdf | None:
        return None

    def set_up_table(
        self, model: TableModel, columns: Mapping[str, Array], constraints: Any, backend: str | Backend
    ) -> None:
        """Set what the likelihood is made of, and where it is computed."""
        data = build({c.name: np.asarray(columns[c.name], np.float64) for c in model.table}, None, None)
        place = choose_backend(backend, 0 if model.calls_python else len(data))
        settings = Settings(able_backend(model, place) if model.calls_python else place)
        self.set_up(model, data, as_constraints(constraints), settings)

    @property
    def unit(self) -> str:
        return "bins"

    @abstractmethod
    def rows_table(self, expected: Array) -> RowsTable | None:
        """Return how compiled code draws toys where rows are expected to have this; None if it cannot."""

    def draw_rows(self, expected: Array, streams: Streams, toys: int) -> Mapping[str, Array]:
        """Draw what toys have in the place of some columns, (toys, rows), where compiled code cannot; each column from a stream of its own."""
        raise NotImplementedError

    def expected(self, x: Point) -> Array:
        """Return what each row is expected to have, (rows,) or (B, rows)."""
        points, one = self.points(x)
        rows = self.expected_rows(points)
        return np.asarray(rows[0] if one else rows, np.float64)

    def expected_rows(self, full: Array) -> Array:
        """Return what each row is expected to have at all parameters, (B, rows)."""
        return np.asarray(self.event_values(full, self.model.expected)[:, 0, :], np.float64)

    def per_event(self, x: Point) -> Array:
        raise ModelError("likelihood: rows of a table have no density; use expected")

    def expected_at(self, values: Mapping[str, float]) -> Array:
        """Return what each row is expected to have at values of all parameters by name."""
        full = np.array([[values[p.name] for p in self.all_parameters]])
        (expected,) = self.expected_rows(full)
        if not np.isfinite(expected).all():
            raise ModelError(
                f"toys: what is expected must be finite, got {expected[~np.isfinite(expected)][0]}"
            )
        return np.asarray(expected, np.float64)

    def with_columns(self, columns: Mapping[str, Array]) -> Self:
        """Return the same likelihood with other numbers in some columns."""
        return self.replaced(data=build({**self.data.columns, **columns}, None, None))

    def sampler(self, truth: Mapping[str, float], backend: Backend, resample: bool = True) -> TableSampler:
        return TableSampler(self, self.expected_at({**self.start_values, **truth}), backend)

    @property
    def start_values(self) -> dict[str, float]:
        return {p.name: p.start for p in self.all_parameters}

    def generated(self, values: Mapping[str, float], seed: int, *, backend: Any, generator: Any) -> Dataset:
        """Draw the table of a toy; a generator object decides the seed."""
        if not isinstance(generator, str):
            seed = int(source_for(generator, 0, 0).random(1)[0] * 2**53)
        drawn = self.sampler(values, self.backend).columns(seed, 0, 1)
        return build({n: rows[0].copy() for n, rows in drawn.items()}, None, None)

    def draw_toys(self, expected: Array, seed: int, first: int, count: int) -> Mapping[str, Array]:
        """Draw toys ``first``, ``first + 1``, ... in NumPy; each depends on the seed and its number only.

        Groups of toys have a stream, so that most of the time goes into numbers; a toy needs those before it in its group.
        """
        key, pieces = stream_key(seed, "table"), []
        for group in range(first // GROUP, (first + max(count, 1) - 1) // GROUP + 1):
            rows = slice(max(first - group * GROUP, 0), min(first + count - group * GROUP, GROUP))
            streams = (numbered_generator(key, group, column) for column in itertools.count())
            drawn = self.draw_rows(expected, streams, rows.stop)
            pieces.append({name: column[rows] for name, column in drawn.items()})
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    @abstractmethod
    def asimov(self, values: Mapping[str, float]) -> Self:
        """Return the same likelihood of what is expected at values of all parameters."""

    @property
    def ndata(self) -> float:
        return float(self.events)

    @property
    def degrees(self) -> float:
        return self.ndata + len(self.measured) if all(c.is_square for c in self.constraints) else math.inf

    def negative_place(self, values: Mapping[str, float]) -> str:
        return ""  # what rows expect is all that there is

    def negative_rows(self, values: Mapping[str, Any]) -> Flags:
        return np.zeros(1, np.bool_)

    def squared_scores(self, full: Array) -> Array:
        """Return the Hessian: counts and points have variances of their own, which few rows would estimate badly."""
        return self.evaluate_full(full, 2).hessian

    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        return self.evaluate_many(data, sets, full, 2).hessian

    def read(self, data: Any) -> Dataset:
        """Return the table of a toy, or of other numbers that are measured in the same rows."""
        if not isinstance(data, Dataset):
            return build({**self.data.columns, **self.measuring(data)}, None, None)
        if set(data.names) != set(self.data.names):
            raise DataError(
                f"fit_many: takes tables with the columns {list(self.data.names)}, got {data!r:.60}"
            )
        return data

    @abstractmethod
    def measuring(self, data: Any) -> Mapping[str, Array]:
        """Return what other numbers that are measured, as a user passes them, change in the table."""

    def without_events(self) -> TableLikelihood:
        """Return the likelihood itself: its rows are part of it."""
        return self

    def moved_kinks(self, floating: tuple[str, ...]) -> frozenset[str]:
        return frozenset()

    def moved_edges(self, floating: tuple[str, ...]) -> frozenset[str]:
        return frozenset()

    def moved_places(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset()

    def moved_steps(self, floating: tuple[str, ...]) -> frozenset[str]:
        return frozenset()

    @property
    def facts(self) -> dict[str, Any]:
        """What toys depend on besides the model."""
        fixed = [column for name, column in self.data.columns.items() if name not in self.model.measurements]
        return {"rows": sha256(np.concatenate(fixed).tobytes()).hexdigest()}


class CountsLikelihood(TableLikelihood):
    """A likelihood of counts in bins, which are the rows of its table."""

    @property
    def counts(self) -> Array:
        """The count of each bin."""
        return self.data[COUNT.name]

    @cached_property
    def entries(self) -> float:
        return self.entries_of(self.data)

    def entries_of(self, data: Dataset) -> float:
        return float(data[COUNT.name].sum())

    def measuring(self, data: Any) -> Mapping[str, Array]:
        counts = as_numbers("fit_many: counts", data.values() if is_histogram(data) else data).ravel()
        if len(counts) != self.events:
            raise DataError(
                f"fit_many: takes the counts of {self.events} bins, one for each that is fitted, got {len(counts)}"
            )
        if not (np.isfinite(counts).all() and np.all(counts >= 0)):
            raise DataError(f"fit_many: counts must be finite and not negative, got {counts.min():g}")
        return self.counting(counts)

    def counting(self, counts: Array | Integers) -> dict[str, Array]:
        """Return what other counts, one bin after the other and (toys, bins) of toys, change in the table."""
        return {COUNT.name: np.asarray(counts, np.float64)}

    def rows_table(self, expected: Array) -> RowsTable:
        draws = self.draws(not_negative(expected), {c.name: k for k, c in enumerate(self.model.table)})
        drawn = {place for one in draws for place in (one.column, one.spread, one.total)}
        columns = [self.data[c.name] for c in self.model.table]
        return RowsTable.of({k: column for k, column in enumerate(columns) if k not in drawn}, draws)

    def draws(self, expected: Array, places: Mapping[str, int]) -> list[RowsDraw]:
        """Return what toys draw anew, for columns by their names."""
        return [RowsDraw(column=places[COUNT.name], means=expected)]

    def resampled(self, rng: np.random.Generator) -> Mapping[str, Array]:
        """Draw counts around those of the data, as if each event counted a Poisson number of times."""
        return self.counting(rng.poisson(self.counts))

    def replicas(self, weights: Callable[[], Array], seed: int, numbers: Integers) -> PartData:
        tables = [
            {**self.data.columns, **self.resampled(numbered_generator(seed, k))} for k in numbers.tolist()
        ]
        columns = Columns({c.name: np.concatenate([t[c.name] for t in tables]) for c in self.model.table})
        return PartData(columns, Events.slices([self.events] * len(tables)), boxes=self.boxes)

    def replica(self, data: PartData, k: int) -> Dataset:
        own = slice(k * self.events, (k + 1) * self.events)
        return build({name: column[own] for name, column in data.columns.arrays.items()}, None, None)

    def asimov(self, values: Mapping[str, float]) -> Self:
        return self.with_columns(self.counting(not_negative(self.expected_at(values), "asimov")))


def not_negative(expected: Array, what: str = "toys") -> Array:
    """Refuse counts where fewer than none are expected."""
    if np.any(expected < 0):
        raise DataError(
            f"{what}: expected counts must not be negative, got {expected.min():g}; change the true values"
        )
    return expected


def numbered_generator(key: int, number: int, column: int = 0) -> np.random.Generator:
    """Return the random numbers of a replica or a group of toys, which depend on the key and its number only."""
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, column, number]))


@dataclass(frozen=True)
class CompiledRows:
    """Draws the rows of toys in compiled code."""

    program: RowsTable


@dataclass(eq=False)
class TableSampler:
    """Draws toys of a table: in compiled code, or in NumPy."""

    likelihood: TableLikelihood
    expected: Array
    backend: Backend
    margin: ClassVar[float] = 0.0

    @cached_property
    def compiled(self) -> CompiledRows | None:
        """What draws toys in compiled code, if that can be done."""
        table = self.likelihood.rows_table(self.expected)
        return None if table is None else CompiledRows(table)

    def draw(self, sizes: Integers, seed: int, first_toy: int = 0) -> Drawn:
        """Draw toys ``first_toy``, ``first_toy + 1``, ..., one after the other."""
        check_rows(self.likelihood.events, sizes)
        columns = self.columns(seed, first_toy, len(sizes)).values()
        return Drawn(tuple(self.backend.upload(np.ravel(column)) for column in columns), 0, 0)

    def columns(self, seed: int, first: int, count: int) -> dict[str, Array]:
        """Return all columns of toys, (toys, rows)."""
        part = self.likelihood
        names = [c.name for c in part.model.table]
        if self.compiled is not None:
            from morefit.targets.cpu.rows import run_rows  # what draws where it fits needs none

            return dict(zip(names, run_rows(self.compiled.program, count, seed, first), strict=True))
        toys = part.draw_toys(self.expected, seed, first, count)
        shape = (count, part.events)
        return {n: toys[n] if n in toys else np.broadcast_to(part.data[n], shape) for n in names}

    def repair(self, above: int, abandoned: int) -> bool:
        """Return that nothing has to be drawn again."""
        return False
