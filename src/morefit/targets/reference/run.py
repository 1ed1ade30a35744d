"""Run kernels line by line in numpy: the reference implementation that all others are tested against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.counts_program import sum_counts
from morefit.kernel.fit_layout import MAX_SHIFTS, FitLayout
from morefit.kernel.ir import COUNT, MAX_DRAWS, SCALED, Atom, Body, Kernel, NodeLoop, Precision, Reduce, Store
from morefit.kernel.program import Driver
from morefit.kernel.sums import TILES_FROM
from morefit.kernel.symbols import EVENT
from morefit.random.philox import Counted
from morefit.random.xoshiro import Streams
from morefit.targets.base import Buffer, Drawn, Events, HostColumn, Pieces, ToyBatch, WholeFit


def run_body(body: Body, names: Mapping[str, Any]) -> list[Any]:
    """Compute the results of straight lines."""
    known = dict(names)

    def atom(value: Atom) -> Any:
        return known[value] if isinstance(value, str) else np.float64(value)

    with np.errstate(all="ignore"):
        for line in body.lines:
            if isinstance(line, NodeLoop):
                known |= zip(line.targets, sum_over_nodes(line, known), strict=True)
                continue
            known[line.target] = line.op.numpy(*(atom(a) for a in line.args))
    return [atom(r) for r in body.results]


def sum_over_nodes(loop: NodeLoop, names: Mapping[str, Any]) -> list[Any]:
    """Compute the sums of a loop over the nodes of a rule, node by node."""
    totals: list[Any] = [0.0 for _ in loop.targets]
    for node, weight in zip(*(names[table] for table in loop.tables), strict=True):
        results = run_body(loop.body, {**names, loop.node: node})
        totals = [total + weight * result for total, result in zip(totals, results, strict=True)]
    return totals


@dataclass(frozen=True)
class Reference:
    """The numpy reference."""

    name: ClassVar[str] = "reference"
    label: ClassVar[str] = name
    tiles_from: ClassVar[int] = TILES_FROM
    toys_together: ClassVar[int] = 1
    draws_measured: ClassVar[bool] = False
    sent_together: ClassVar[int | None] = None

    def max_shifts(self, parameters: int) -> int:
        """Return the number with which the reference takes the same steps as the CPU."""
        return MAX_SHIFTS

    def expect_kernels(self) -> None:
        """Do nothing: nothing is compiled."""

    def compile(self, kernel: Kernel, identity: str | None = None) -> ReferenceProgram:
        return ReferenceProgram(kernel)

    def sum_counts(self, table: CountsTable, points: Array) -> Array:
        """Run the program of counts as Python."""
        out, work = np.empty((len(points), table.outputs)), np.empty(table.work_size)
        for point, row in zip(points, out, strict=True):
            sum_counts(table.words, table.numbers, point, work, row)
        return out

    def expect_fits(self, driver: Driver, layout: FitLayout, toys: int = 1) -> bool:
        """Nothing is compiled ahead."""
        return False

    def prepare_fits(self, job: WholeFit, toys: ToyBatch) -> None:
        """Nothing is waited for."""

    def fit_whole(self, job: WholeFit, toys: ToyBatch, width: int) -> Array | None:
        """Not supported; the caller falls back to the batched fit."""
        return None

    def fit_whole_together(self, fits: Sequence[tuple[WholeFit, ToyBatch]], width: int) -> list[Array | None]:
        """Not supported."""
        return [None] * len(fits)

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> HostColumn:
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            return HostColumn(np.array(column, precision.kind).astype(np.float64))

    def upload_pieces(self, pieces: Pieces) -> HostColumn:
        return HostColumn(pieces.joined())


@dataclass(frozen=True, eq=False)
class ReferenceProgram:
    """A kernel to be read line by line."""

    kernel: Kernel
    compile_seconds: float = 0.0

    @property
    def source(self) -> str:
        return str(self.kernel)

    def expect(self, events: Events | None) -> None:
        """Do nothing: nothing is built."""

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> ReferenceLaunch:
        return ReferenceLaunch(self.kernel, tuple(columns), events, tuple(steps) or (0,) * len(columns))  # type: ignore[arg-type]

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw toy after toy, all events of one at a time."""
        toys = [
            self.one_toy(row, int(stop - start), seed, first_toy + k)
            for k, (row, start, stop) in enumerate(zip(parameters, events.starts, events.stops, strict=True))
        ]
        columns = np.concatenate([out for out, _, _ in toys], axis=1)
        return Drawn(tuple(HostColumn(c) for c in columns), sum(t[1] for t in toys), sum(t[2] for t in toys))

    def one_toy(self, parameters: Array, size: int, seed: int, toy: int) -> tuple[Array, int, int]:
        kernel, frame = self.kernel, self.kernel.draws
        tables, per_call = per_call_of(kernel, parameters)
        names = dict(zip(kernel.scalars, per_call, strict=False)) | tables
        source = (Streams if frame.streams else Counted)(seed, toy, size)
        out, above, abandoned = np.zeros((kernel.outputs, size)), 0, 0
        for waiting in source.together():
            for draw in range(MAX_DRAWS):
                if not len(waiting):
                    break
                numbers = source.numbers(waiting, draw, frame.calls)
                columns = zip(kernel.columns, frame.numbers, strict=True)
                known = names | {n: waiting if k == EVENT else numbers[k] for n, k in columns}
                *drawn, accept, over = (
                    np.broadcast_to(r, waiting.shape) for r in run_body(kernel.per_event, known)
                )
                good = accept != 0
                out[:, waiting[good]] = np.array(drawn)[:, good]
                above += int(np.count_nonzero(over))
                waiting = waiting[~good]
            abandoned += len(waiting)
        return out, above, abandoned


@dataclass(frozen=True, eq=False)
class ReferenceLaunch:
    """A kernel and the columns it reads."""

    kernel: Kernel
    columns: tuple[HostColumn, ...]
    events: Events
    steps: tuple[int, ...]

    def __call__(self, parameters: Array) -> Array:
        rows = [self.one_set(i, row) for i, row in enumerate(parameters)]
        return np.array(rows).reshape(self.kernel.shape(len(rows), self.events.count))

    def store(self) -> tuple[HostColumn, ...]:
        """Compute the columns of a kernel without parameters."""
        return tuple(HostColumn(row) for row in self(np.empty((1, 0)))[0])

    def one_set(self, index: int, parameters: Array) -> Array:
        kernel = self.kernel
        tables, per_call = per_call_of(kernel, parameters)
        at = 0 if self.events.shared else index
        low, high = int(self.events.starts[at]), int(self.events.stops[at])
        names: dict[str, Any] = dict(zip(kernel.scalars, per_call, strict=False)) | tables
        for name, column, step in zip(kernel.columns, self.columns, self.steps, strict=True):
            names[name] = column.numbers[index * step + low : index * step + high]
        results = [np.broadcast_to(r, (high - low,)) for r in run_body(kernel.per_event, names)]
        if isinstance(kernel.frame, Store):
            out = np.full((kernel.outputs, self.events.count), np.nan)
            out[:, low:high] = results
            return out
        return self.reduce(results, per_call, float(high - low))

    def reduce(self, results: list[Array], per_call: list[Any], count: float) -> Array:
        frame = self.kernel.sums
        out, sums = np.zeros(self.kernel.outputs + 1), list[float]()
        for values, result in zip(results, frame.results, strict=False):
            if result.reduce is Reduce.LOG:
                good = (values >= np.finfo(float).tiny) & np.isfinite(values)
                out[-1] += np.count_nonzero(~good)
                values = np.log(np.where(good, values, 1.0))
            sums.append(total(values))
            if result.output == COUNT:
                count = sums[-1]
            elif result.output != SCALED:
                out[result.output] += sums[-1]
        if frame.pairs:
            factors = results[len(frame.results) :]
            left = factors[: len(frame.pairs.left)]
            right = factors[len(left) :] or left
            n = frame.pairs.count
            triangle = [(i, j) for i in range(n) for j in range(i + 1)]
            for place, (i, j) in enumerate(triangle, frame.pairs.output):
                for g in range(0, len(left), n):
                    out[place] += frame.pairs.sign * total(left[g + i] * right[g + j])
        for added in frame.per_set:
            out[added.output] += per_call[added.result]
        for added in frame.per_count:
            out[added.output] += count * per_call[added.result]
        for one in frame.scaled:
            out[one.output] += sums[one.row] * per_call[one.result]
        return out


def per_call_of(kernel: Kernel, parameters: Array) -> tuple[dict[str, Any], list[Any]]:
    """Return the tables of a kernel by name, and the results of its per-call stage."""
    tables: dict[str, Any] = {table.name: table.array for table in kernel.tables}
    return tables, run_body(kernel.per_call, tables | dict(zip(kernel.parameters, parameters, strict=True)))


def total(values: Array) -> float:
    """Add numbers exactly, or say that they are not all numbers."""
    return math.fsum(values) if np.all(np.isfinite(values)) else float(np.sum(values))
