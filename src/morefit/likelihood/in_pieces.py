"""The likelihood of data that stay in files: sums over pieces that are read at every evaluation, added in their order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset
from morefit.data.files import FileDataset, Group
from morefit.errors import DataError
from morefit.expr import ZERO, Expr
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.sums import Request, set_terms
from morefit.likelihood.base import Point
from morefit.likelihood.evaluation import BadEvents, Evaluation, PartData
from morefit.likelihood.sums import unpack
from morefit.likelihood.unbinned import Likelihood
from morefit.pipeline import Columns, Compiled, Settings, compile_sums
from morefit.targets.base import Events
from morefit.targets.cpu.run import Cpu

Arguments = tuple[Request, tuple[Expr, ...], Settings]  # of what is compiled
MAX_BOUND = 4  # kernels that a worker binds to its pieces
REMEMBERED = 4  # evaluations: a minimum is looked at again by those who check it


class LikelihoodInPieces(Likelihood):
    """The likelihood of a ``mf.FileDataset``; every evaluation, of one point or of many, is one pass over the files."""

    data: FileDataset

    def set_up(
        self, model: Any, data: Dataset, constraints: Any, settings: Settings, *others: Any, **named: Any
    ) -> None:
        if settings.precompute == "auto":  # a column that is read once is not worth its memory
            settings = replace(settings, precompute="none")
        assert isinstance(data, FileDataset)
        if data.spread is not None and settings.backend == Cpu():  # a worker has one thread for each group
            settings = replace(settings, backend=Cpu(threads=1))
        super().set_up(model, data, constraints, settings, *others, **named)
        self.read_passes = 0
        self.evaluated: list[tuple[bytes, int, Evaluation]] = []

    def kind(self, data: Dataset | None) -> type[Any]:
        return Likelihood if data is not None and data.in_memory else type(self)

    @property
    def passes(self) -> int:
        return self.read_passes

    @cached_property
    def own(self) -> PartData:
        """What stands for the events in the files; of as many as there are one launch is."""
        return PartData(Columns({}), Events.all_sets(min(self.events, self.data.rows_of_piece)))

    def own_data(self) -> tuple[PartData, ...]:
        return (self.own,)

    def replicas(self, weights: Callable[[], Array], seed: int, numbers: Integers) -> PartData:
        raise in_files("replicas")

    def by_piece(self) -> Generator[Likelihood, None, None]:
        with closing(self.data.pieces()) as pieces:
            for piece in pieces:
                yield self.replaced(data=piece)

    # --------------------------------------------------------------------- sums

    def arguments(self, request: Request) -> Arguments:
        """Return what the sums of a piece are compiled of: without what is added once."""
        own = self.kernel_symbols
        names = tuple(self.kernel_names.get(s, s) for s in own)
        each = replace(request, per_set=ZERO)
        renamed = each.renamed(dict(zip(own, names, strict=True))) if self.kernel_names else each
        return renamed, names, self.settings

    def program(
        self, order: int, careful: bool = False, fisher: bool = False, full: Array | None = None
    ) -> Callable[[Array], Array]:
        self.check_derivatives(order)
        request = self.request(order, careful=careful, fisher=fisher)
        compile_sums(*self.arguments(request))
        return partial(self.sum_pieces, request, self.boxes)

    def sum_pieces(self, request: Request, boxes: SharedBoxes, points: Array) -> Array:
        """Sum over the events of all pieces, in their order, at points with measured values."""
        out = np.zeros((len(points), request.outputs + 1))
        if not len(points):
            return out
        compiled = compile_sums(*self.arguments(request))
        integrals = [one.at_run_time(boxes)(points) for one in compiled.integrals]
        rows = np.concatenate([points, *integrals], axis=1)
        with np.errstate(all="ignore"):
            once = self.values_of(set_terms(request), points)
        out[:, : once.shape[1]] = once
        self.read_passes += 1
        with closing(self.piece_sums(request, rows)) as each:
            for sums in each:
                out += sums
        return out

    def piece_sums(self, request: Request, rows: Array) -> Generator[Array, None, None]:
        """Yield the sums of each piece at points with measured values and integrals."""
        what = f"pass {self.read_passes} over the events"
        if self.data.spread is not None:
            function = partial(group_sums, self.arguments(request), rows)
            with closing(self.data.spread.results(what, function)) as groups:
                for group in groups:
                    yield from group
            return
        compiled = compile_sums(*self.arguments(request))
        with closing(self.data.read(what)) as pieces:
            for piece in pieces:
                if len(piece):
                    yield bind_piece(compiled, piece)(rows)

    # --------------------------------------------------------------------- evaluation

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        point = full.tobytes()
        known = [e for p, o, e in self.evaluated if p == point and o >= order]
        if not known:
            known = [super().evaluate_full(full, order)]
            self.evaluated = [*self.evaluated, (point, order, known[0])][-REMEMBERED:]
        own = known[0]
        return Evaluation(own.value.copy(), own.gradient.copy(), own.hessian.copy(), own.bad.copy())

    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        if data[0] is self.own:
            return self.evaluate_full(full, order)
        return super().evaluate_many(data, sets, full, order)

    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        if data[0] is self.own:
            return self.squared_scores(full)
        return super().many_scores(data, sets, full)

    def evaluate_again(self, full: Array) -> Evaluation:
        out = self.sum_pieces(self.request(2), self.boxes.with_more_points(), self.with_measured(full))
        return unpack(out, len(self.parameters), 2)

    def event_values(self, full: Array, *wanted: Expr) -> Array:
        raise in_files("values of each event")

    def own_bad_events(self, x: Point) -> BadEvents:
        """Return the bad events of the first piece that has any."""
        before = 0
        with closing(self.by_piece()) as pieces:
            for piece in pieces:
                bad = piece.own_bad_events(x)
                before += bad.total
                if len(bad):
                    return BadEvents(bad.indices + (before - bad.total), bad.densities, before)
        return BadEvents(np.empty(0, np.int64), np.empty(0), before)


def bind_piece(compiled: Compiled, piece: Dataset) -> Callable[[Array], Array]:
    """Return the sums over the events of a piece, as a function of rows that have the integrals already."""
    return compiled.bind(Columns(piece.columns), Events.all_sets(len(piece)), piece.weights).launch


def group_sums(arguments: Arguments, rows: Array, group: Group) -> list[Array]:
    """Return the sums of each piece that a worker has; what is bound to them stays there for the next call."""
    if arguments not in group.computed:
        compiled = compile_sums(*arguments)
        while len(group.computed) >= MAX_BOUND:
            group.computed.pop(next(iter(group.computed)))
        group.computed[arguments] = [bind_piece(compiled, piece) for piece in group.datasets if len(piece)]
    return [bound(rows) for bound in group.computed[arguments]]


def in_files(what: str) -> DataError:
    """Return the error for what needs all events."""
    return DataError(
        f"likelihood: {what} need all events in memory, got events that stay in files; read those that are needed with"
        " mf.read(path, observables, cut=...)"
    )
