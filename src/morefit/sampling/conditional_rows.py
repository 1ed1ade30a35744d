"""Given columns of a draw: rows of a dataset, resampled or one for each event, and rows that stand for all."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr import Expr, Op, OwnSymbol, Table, column, evaluate, leaves, lookup, toposort
from morefit.kernel.symbols import event_number
from morefit.model import Observable, Pdf
from morefit.model.conditional import check_events
from morefit.model.integrate.smooth import smooth_sum
from morefit.model.parts import conditional_parts
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Backend, Events

ROW = column(OwnSymbol("row of the given columns"))
TRIED = 2048  # candidates, from which rows are chosen
MAX_TABULATED = 1 << 17  # rows: more may take longer than what is drawn
TYPICAL = 9  # rows, from the smallest to the largest value of a given column; of several fewer of each,
PER_COLUMN = 3  # at least


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """The given columns of a dataset; each event takes a row by chance, or the one with its own number."""

    columns: Mapping[str, Array]
    resample: bool = True

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def exprs(self) -> dict[str, Expr]:
        """Each column as an expression of the row."""
        return {
            name: lookup(Table(f"given {name}", np.ascontiguousarray(values, np.float64).tobytes()), ROW)
            for name, values in self.columns.items()
        }

    def row(self, number: Expr) -> Expr:
        """Return the row of an event; ``number`` is a random one."""
        index = Op.FLOOR(len(self) * number) if self.resample else event_number()
        return Op.MIN(index, len(self) - 1)  # rounding, or lanes past the last event

    def tabulated(self, nodes: Sequence[Expr], backend: Backend) -> dict[Expr, Expr]:
        """Return expressions of given columns alone as tables with a number for each row."""
        compiled = compile_values(tuple(nodes), (), Settings(backend, precompute="none"))
        numbers = compiled.bind(Columns(self.columns), Events.all_sets(len(self)))(np.empty((1, 0)))[0]
        return {
            node: lookup(
                Table(f"of rows {node.order[1]}", np.ascontiguousarray(row, np.float64).tobytes()), ROW
            )
            for node, row in zip(nodes, numbers, strict=True)
        }

    @cached_property
    def some(self) -> Array:
        """Rows to look at: all, or the smallest and largest of each column and others by chance."""
        if len(self) <= TRIED:
            return np.resize(np.arange(len(self)), TRIED)
        ends = [how(values) for values in self.columns.values() for how in (np.argmin, np.argmax)]
        others = np.random.default_rng(1).integers(0, len(self), TRIED - len(ends))
        return np.concatenate([ends, others])


def conditional_rows(what: str, model: Pdf, data: object, *, resample: bool = True) -> ConditionalRows | None:
    """Return the rows that a model draws its events for, if it is conditional; other columns are ignored."""
    if not model.given:
        if data is not None:
            raise ModelError(f"{what}: the model draws all its observables; leave given out")
        return None
    names = ", ".join(f"'{o.name}'" for o in model.given)
    dataset = None if data is None else Dataset(data, model.given)
    if dataset is None or not len(dataset):
        raise DataError(
            f"{what}: {names} must come from data, as the model has no density of it, got no events; pass given=data, or"
            " a likelihood of data, or multiply by its density"
        )
    if dataset.weights is not None:
        raise DataError(f"{what}: rows of given data count once each, so they must not have weights")
    return ConditionalRows(dataset.columns, resample)


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """Observables that are known when others are drawn, as expressions of random numbers and of the row."""

    exprs: Mapping[str, Expr]
    rows: ConditionalRows | None = None
    backend: Backend | None = None  # which computes what depends on a row alone

    def with_drawn(self, drawn: Mapping[str, Expr]) -> KnownColumns:
        """Return the same with observables that were drawn."""
        return replace(self, exprs={**self.exprs, **drawn})

    def columns(self, given: tuple[Observable, ...]) -> dict[Expr, Expr]:
        """Return what stands for the columns that a density is given."""
        return {o.expr: self.exprs[o.name] for o in given}

    def integrals(self, density: Expr, given: tuple[Observable, ...]) -> dict[Expr, Expr]:
        """Return what stands for integrals for each event in a density: tables of those that depend on a row alone.

        Every candidate would compute them anew, over hundreds of nodes; there are as many rows as events, or fewer. What
        depends on columns that were drawn is a polynomial of them, if it is smooth.
        """
        if self.rows is None:
            ranges = {o.name: (o.low, o.high) for o in given}
            nodes = integrals_of(density, ranges)
            smooth = [smooth_sum(node, ranges, [{}]) for node in nodes]
            return {one.node: one.fixed({}) for one in smooth if one is not None}
        if self.backend is None or len(self.rows) > MAX_TABULATED:
            return {}
        own = {name for name, expr in self.rows.exprs.items() if self.exprs[name] is expr}
        nodes = integrals_of(density, own)
        return self.rows.tabulated(nodes, self.backend) if nodes else {}

    def tried(self, given: tuple[Observable, ...]) -> Array:
        """Return values of given observables at rows and random numbers that are tried, (observables, rows)."""
        rng, exprs = np.random.default_rng(0), [self.exprs[o.name] for o in given]
        numbers = {leaf.name: rng.random(TRIED) for leaf in leaves(Op.COLUMN, *exprs)}
        if self.rows is not None:
            numbers[ROW.name] = self.rows.some
        return np.array([np.broadcast_to(evaluate(e, numbers), TRIED) for e in exprs])

    def rows_by_chance(self, given: tuple[Observable, ...]) -> dict[str, Array]:
        """Return rows of given observables by name, in no order."""
        values = np.random.default_rng(2).permutation(self.tried(given), axis=1)
        return dict(zip([o.name for o in given], values, strict=True))

    def typical(self, given: tuple[Observable, ...]) -> Array:
        """Return rows of given observables, from the smallest to the largest value of each."""
        values = self.tried(given)
        each = max(math.ceil(TYPICAL / len(given)), PER_COLUMN)
        places = np.linspace(0, TRIED - 1, each).astype(int)
        chosen = np.unique(np.argsort(values, axis=1)[:, places])
        return np.unique(values[:, chosen], axis=1).T


NOTHING_KNOWN = KnownColumns({})


def integrals_of(density: Expr, names: Collection[str]) -> list[Expr]:
    """Return the integrals for each event in a density that depend on some columns alone."""
    nodes = toposort(density, enter_integrals=False, enter_sums=False)
    return [n for n in nodes if n.op is Op.NODE_SUM and {c.name for c in leaves(Op.COLUMN, n)} <= {*names}]


def check_rows(model: Pdf, values: Mapping[str, float], rows: ConditionalRows, backend: Backend) -> None:
    """Refuse rows at which a conditional density is none, as they would never be drawn: of bad arguments, or no integral."""
    parts = conditional_parts(model)
    check_events(parts, values, rows.columns)
    integrals = {pdf: pdf.integral() for pdf in parts}
    known = {
        pdf: area
        for pdf, area in integrals.items()
        if {c.name for c in leaves(Op.COLUMN, area)} <= {*rows.columns}
    }
    if not known:
        return
    compiled = compile_values(
        tuple(known.values()), tuple(p.symbol for p in model.parameters), Settings(backend, precompute="none")
    )
    point = np.array([[values[p.name] for p in model.parameters]])
    areas = compiled.bind(Columns(rows.columns), Events.all_sets(len(rows)))(point)[0]
    for pdf, area in zip(known, areas, strict=True):
        if len(wrong := np.flatnonzero(~((area > 0) & (area < np.inf)))):
            row = int(wrong[0])
            where = ", ".join(f"{name} = {column[row]:.6g}" for name, column in rows.columns.items())
            raise DataError(
                f"density '{type(pdf).__name__}': its integral must be positive in every row of given data, got"
                f" {area[row]:.6g} in row {row} with {where}; cut the data or change the values"
            )
