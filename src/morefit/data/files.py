"""A dataset that stays in files: its events are read in pieces, at every pass over them, or by the workers of Dask."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from morefit.data.columns import raise_if, ranges_of_columns, suggest_column
from morefit.data.dataset import Dataset
from morefit.data.io.formats import check_tree
from morefit.data.io.histogram import Bins
from morefit.data.io.table import Ranged, Source, find_files
from morefit.data.labels import Category
from morefit.data.pieces import MAX_NUMBERS, MAX_ROWS, Pieces, StoredFile, Summary, read_ahead
from morefit.data.reading import check_filled, check_names, wanted_of
from morefit.data.report import CutReport, add_reports
from morefit.data.weights import Weights
from morefit.errors import BackendError, DataError
from morefit.expr import Quantity
from morefit.model.observable import Ranges
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.progress import Bar
from morefit.workers import DaskClient, explained, on_worker, origin

R = TypeVar("R")
GROUPS_PER_THREAD = 4  # of a worker, so that none waits long for the last


class Group:
    """Consecutive pieces in the memory of a worker; where Dask moves or stores them, they are read again."""

    def __init__(self, pieces: Pieces, first: int, stop: int) -> None:
        self.source = pieces, first, stop
        self.datasets = list(pieces.read(first, stop))
        # what others made of the pieces, such as kernels bound to them
        self.computed: dict[Hashable, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Group, self.source

    def __sizeof__(self) -> int:
        """Return how much memory the numbers need, and their copies for kernels."""
        pieces, *_ = self.source
        return 16 * len(pieces.wanted.columns) * sum(map(len, self.datasets))


def apply(group: Group, function: Callable[[Group], R]) -> R:
    """Call a function with a group, on the worker that has it."""
    return function(group)


class Spread:
    """All pieces, in groups on the workers of a client."""

    def __init__(self, pieces: Pieces, client: Any, progress: bool) -> None:
        if not isinstance(client, DaskClient):
            rule = "executor must be a dask.distributed.Client, whose workers hold the events"
            raise BackendError(f"files: {rule}, got {type(client).__name__}")
        groups = min(len(pieces), GROUPS_PER_THREAD * max(sum(client.nthreads().values()), 1))
        edges = [len(pieces) * k // groups for k in range(groups + 1)] if groups else [0]
        versions = origin()
        self.client, self.progress = client, progress
        self.groups = [
            client.submit(on_worker, versions, partial(Group, pieces, first, stop), pure=False)
            for first, stop in pairwise(edges)
        ]

    def results(self, what: str, function: Callable[[Group], R]) -> Generator[R, None, None]:
        """Yield what a function returns for each group, in their order."""
        pending = [self.client.submit(apply, group, function, pure=False) for group in self.groups]
        try:
            with Bar(what, len(pending), self.progress, unit="groups") as bar:
                for k, future in enumerate(pending):
                    yield result_of(future)
                    bar.done(k + 1)
        finally:
            for future in pending:
                if not future.done():
                    future.cancel()


def result_of(future: Any) -> Any:
    """Wait for a result, or raise an error that says what to do."""
    try:
        return future.result()
    except Exception as error:
        failure = explained("files", error)
        if isinstance(failure, BrokenExecutor):
            raise BackendError(
                f"files: workers were lost while they worked on the events ({failure}); give them more memory or start more"
                " of them, and make the mf.FileDataset anew"
            ) from error
        raise failure from None


ARRAYS = ("_columns", "_weights")  # that a dataset in files does not have


@methods_in_sentences
class FileDataset(Dataset):
    """Events that stay in parquet or ROOT files, for more of them than fit into memory.

    The arguments are those of ``mf.read``, and the same events are selected. The first pass over the files counts and
    checks them; every evaluation of a likelihood is another one. ``mf.fit``, ``mf.Likelihood``, ``mf.plot`` and what
    evaluates likelihoods, such as ``mf.intervals.profile``, take it in the place of a dataset. The files must not change.
    With a ``dask.distributed.Client`` as ``executor`` its workers read the files once and have the events in memory.
    """

    in_memory = False
    _pieces: Pieces
    _kept: tuple[int, ...]  # events of each piece
    _summary: Summary  # of all
    _progress: bool
    _spread: Spread | None  # where workers have the pieces

    @in_sentences
    def __init__(
        self,
        path: Source | Iterable[Source],
        observables: Ranged | Iterable[Ranged],
        *,
        cut: str | Callable[..., Any] | None = None,
        weights: str | Quantity | None = None,
        tree: str | None = None,
        executor: DaskClient | None = None,
        progress: bool = True,
    ) -> None:
        wanted = wanted_of(observables, cut, weights)
        raise_if(
            [
                f"category '{o.name}': data that stay in files cannot have labels; select each label with cut="
                for o in wanted.ranges
                if isinstance(o, Category)
            ]
        )
        files = find_files(path)
        check_tree(files, tree)
        stored = tuple(StoredFile.of(file, tree) for file in files)
        check_names(files, wanted, tree)
        rows = min(MAX_ROWS, MAX_NUMBERS // len(wanted.names))
        self._fill(Pieces(stored, wanted, tree, rows), executor, progress)

    def _fill(self, pieces: Pieces, executor: DaskClient | None, progress: bool) -> None:
        """Read all events once, to count and to check them."""
        put = object.__setattr__
        put(self, "_pieces", pieces)
        put(self, "_kept", ())
        put(self, "_progress", progress)
        put(self, "_spread", None if executor is None else Spread(pieces, executor, progress))
        with closing(self._count()) as counted:
            summaries = list(counted)
        report = self._report_of(summaries)
        check_filled(report)
        put(self, "_kept", tuple(one.report.kept for one in summaries))
        put(self, "_summary", total(report, summaries))
        put(self, "_report", report)
        put(self, "_checked", pieces.wanted.ranges)
        put(self, "_labels", {})
        if pieces.wanted.weight is None:
            put(self, "_weights", None)

    def _report_of(self, summaries: Sequence[Summary]) -> CutReport:
        """Return the report of all pieces, file by file."""
        pieces, reports = self._pieces, {}
        first = summaries[0].report if summaries else CutReport(0, 0, {})
        empty = replace(first, total=0, kept=0, failed=0, outside=dict.fromkeys(first.outside, 0))
        for k, file in enumerate(pieces.files):
            own = summaries[pieces.starts[k] : pieces.starts[k + 1]]
            each = {str(j): one.report for j, one in enumerate(own)}
            reports[str(file.path)] = replace(add_reports(each), files={}) if each else empty
        return add_reports(reports)

    def _count(self) -> Generator[Summary, None, None]:
        """Yield the summaries of all pieces, from here or from the workers."""
        if self._spread is not None:
            for several in self._spread.results("counting", summarise):
                yield from several
            return
        with closing(self.read("counting")) as pieces:
            yield from map(Summary.of, pieces)

    def read(self, what: str) -> Generator[Dataset, None, None]:
        """Yield all events in pieces, the next one being read while one is used; a bar shows what is done."""
        pieces, done = self._pieces, 0
        rows = sum(file.rows for file in pieces.files)
        with (
            Bar(what, rows, self._progress) as bar,
            closing(read_ahead(pieces.read(0, len(pieces), self._kept))) as read,
        ):
            for piece in read:
                yield piece
                done += pieces.rows
                bar.done(min(done, rows))

    def pieces(self) -> Generator[Dataset, None, None]:
        """Yield all events in pieces that fit into memory."""
        return self.read("reading")

    def inside(self, region: Ranges) -> FileDataset:
        """Return the events in one or several ranges of each of some columns, with their numbers in ``report``."""
        ranges = ranges_of_columns(region, self.names)
        return self._read_anew(replace(self._pieces, regions=(*self._pieces.regions, ranges)))

    def to_hist(self, observables: Ranged | Iterable[Ranged], bins: Bins = 100) -> Any:
        """Count the events in bins over the ranges of observables, as ``mf.Dataset.to_hist`` does, in one pass."""
        with closing(self.pieces()) as pieces:
            histogram = next(pieces).to_hist(observables, bins)
            for piece in pieces:
                histogram += piece.to_hist(observables, bins)
        return histogram

    def _for_observables(self, observables: tuple[Ranged, ...], weights: Weights = None) -> FileDataset:
        """Return the dataset itself if it has the observables, and all events lie in their ranges."""
        low, high = self._summary.low, self._summary.high
        if weights is not None:
            return self._weighted_by(weights)._for_observables(observables)
        raise_if(
            [
                f"observable '{o.name}': missing; {suggest_column(o.name, self.names)}"
                for o in observables
                if o.name not in low
            ]
        )
        raise_if(
            [
                f"observable '{o.name}': events must lie in [{float(o.low)}, {float(o.high)}], got {low[o.name]:.6g} to"
                f" {high[o.name]:.6g}; pass this observable to mf.FileDataset, which leaves others out"
                for o in observables
                if len(self) and not (low[o.name] >= o.low and high[o.name] <= o.high)
            ]
        )
        return self

    def _weighted_by(self, weights: Weights) -> FileDataset:
        """Return the same events with weights that are a column or a formula."""
        raise_if(
            [
                "weights: must be a column of the files, or a formula of observables, for events that stay in files"
            ]
            * (not isinstance(weights, str | Quantity))
        )
        assert isinstance(weights, str | Quantity)
        pieces = self._pieces
        wanted = pieces.wanted.with_weights(weights)
        if wanted.weight == pieces.wanted.weight and wanted.formula is pieces.wanted.formula:
            return self
        check_names([file.path for file in pieces.files], wanted, pieces.tree)
        return self._read_anew(replace(pieces, wanted=wanted))

    def _read_anew(self, pieces: Pieces) -> FileDataset:
        """Return a dataset of the same files of which something else is selected or read."""
        other = object.__new__(FileDataset)
        other._fill(pieces, None if self._spread is None else self._spread.client, self._progress)
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(o.name for o in self._pieces.wanted.ranges)

    @property
    def spread(self) -> Spread | None:
        """The pieces in the memory of workers; None if they are read here."""
        return self._spread

    @property
    def rows_of_piece(self) -> int:
        """How many rows of a file a piece has at most."""
        return self._pieces.rows

    @property
    def weighted(self) -> bool:
        """Whether events have weights."""
        return self._pieces.wanted.weight is not None

    @property
    def sum_of_weights(self) -> float:
        """The sum of the weights, or the number of events if there are none."""
        return self._summary.sum_of_weights

    @property
    def sample(self) -> Dataset:
        """Some of the events, in memory, for checks of a model."""
        return self._summary.sample

    def __len__(self) -> int:
        return self._summary.report.kept

    def __getattr__(self, name: str) -> Any:
        if name not in ARRAYS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise DataError(
            "dataset: this needs all events in memory, got events that stay in files; read those that it needs with"
            " mf.read(path, observables, cut=...)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        known = ("_pieces", "_kept", "_summary", "_progress", "_report", "_checked", "_labels")
        state = {name: getattr(self, name) for name in known}
        weights = {} if self.weighted else {"_weights": None}
        return restored, ({**state, **weights, "_spread": None},)  # clients of Dask do not pickle

    def __str__(self) -> str:
        return f"{self!r}\n  {self._summary.report.summary}"

    def __repr__(self) -> str:
        files = self._pieces.files
        size = sum(file.size for file in files) / 1e9
        weights = f" of the weight {self.sum_of_weights:.6g}" if self.weighted else ""
        columns = ", ".join(self.names)
        return f"FileDataset({len(self)} events{weights} in {len(files)} files of {size:.3g} GB: {columns})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def summarise(group: Group) -> list[Summary]:
    """Return the summaries of the pieces of a worker."""
    return [Summary.of(piece) for piece in group.datasets]


def restored(state: Mapping[str, Any]) -> FileDataset:
    """Return a dataset as it was pickled."""
    dataset = object.__new__(FileDataset)
    for name, value in state.items():
        object.__setattr__(dataset, name, value)
    return dataset


def total(report: CutReport, summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all pieces, added in their order."""
    names = summaries[0].low
    return Summary(
        report,
        {name: min(one.low[name] for one in summaries) for name in names},
        {name: max(one.high[name] for one in summaries) for name in names},
        sum(one.sum_of_weights for one in summaries),
        Dataset.concatenate([one.sample for one in summaries]),
    )
