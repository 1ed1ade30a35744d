"""The results of many toys: pulls, biases, coverages, tables and files of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from math import isnan, nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, frozen_copy
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.records.fields import arrays, data_frame, floats, words
from morefit.records.named_arrays import FrozenByName
from morefit.records.results import Layout, built, concatenate, read_result, save_result, split_result
from morefit.text import elsewhere
from morefit.text.arguments import methods_in_sentences, no_attribute
from morefit.text.suggest import suggest
from morefit.toys.text import (
    LEVELS,
    Bias,
    Compared,
    Coverage,
    PullSummary,
    Report,
    Row,
    as_html,
    as_text,
    clopper_pearson,
    headline,
    moments,
)
from morefit.validate import check_level, name_of

HOW = ("newton", "newton, another start", "minuit", "failed", "undetermined", "negative density")
ARRAYS = ("values", "errors", "nll", "edm", "valid", "how", "events")
LAYOUT = Layout(
    "morefit toy results",
    ("names", "truth", "seed", "first", "seconds", "backend", "unit"),
    ARRAYS,
    "statistics",
)


def frozen(kind: type[np.generic]) -> Callable[[Any], NDArray[Any]]:
    """Return a converter to read-only arrays of one kind."""
    return lambda items: frozen_copy(items, kind)


# how each field is converted, whether it comes from a study or from a file
CONVERT: dict[str, Callable[[Any], Any]] = {
    "names": words,
    "truth": floats,
    "values": frozen(np.float64),
    "errors": frozen(np.float64),
    "nll": frozen(np.float64),
    "edm": frozen(np.float64),
    "valid": frozen(np.bool_),
    "how": frozen(np.uint8),
    "events": frozen(np.int64),
    "seed": int,
    "first": int,
    "statistics": arrays,
    "seconds": floats,
    "backend": str,
    "unit": str,
}


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class ToyResults(FrozenByName):
    """The results of T toys, fitted with P floating parameters; toys that are not valid are included.

    ``truth`` has the generated values; a parameter that only the fitted model has is absent or nan. ``how``
    indexes ``HOW``: how each result was obtained, or that its density is negative between events, where the first
    2 000 toys of a study are looked at. ``first`` is the number of the first toy in the study. Parameters
    are named, or passed as the parameter itself: ``values[mu]`` is the column of one.
    """

    names: tuple[str, ...]
    truth: Mapping[Any, float]
    values: Array  # (T, P)
    errors: Array  # (T, P)
    nll: Array  # (T,)
    edm: Array  # (T,)
    valid: NDArray[np.bool_]  # (T,)
    how: NDArray[np.uint8]  # (T,)
    events: NDArray[np.int64]  # (T,): how many events, bins or points each toy has, as ``unit`` says
    seed: int
    first: int = 0
    statistics: Mapping[Any, NDArray[Any]] = field(default_factory=dict)
    seconds: Mapping[Any, float] = field(default_factory=dict)
    backend: str = ""  # where the toys were fitted
    unit: str = "events"

    converted = CONVERT
    named = {"values": ("names", 1), "errors": ("names", 1)}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return no_attribute(self, name, elsewhere.TOYS)

    def __post_init__(self) -> None:
        super().__post_init__()
        problems = [*wrong_shapes(self), *wrong_entries(self)]
        if problems:
            raise DataError(f"toy results: {'; '.join(problems)}")

    def __len__(self) -> int:
        return len(self.values)

    def pulls(self, name: Any, *, valid_only: bool = True) -> Array:
        """Return (value - truth) / error of the valid toys, or of all, in the order of the toys.

        Valid toys in which the parameter is undetermined, another one being at its limit, have no pull.
        """
        k, truth = self._column(name)
        chosen = self._chosen(valid_only) & ~(self.valid & np.isnan(self.errors[:, k]))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.values[chosen, k] - truth) / self.errors[chosen, k], np.float64)

    def pull_summary(self, name: Any, *, valid_only: bool = True) -> PullSummary:
        """Return mean and width of the pulls with their errors; nan for fewer than two toys."""
        mean, width, count = moments(self.pulls(name, valid_only=valid_only))
        if count < 2:
            return PullSummary(mean, nan, nan, nan)
        return PullSummary(mean, width / sqrt(count), width, width / sqrt(2 * (count - 1)))

    def bias(self, name: Any, *, valid_only: bool = True) -> Bias:
        """Return the mean of value - truth and its error."""
        k, truth = self._column(name)
        mean, width, count = moments(self.values[self._chosen(valid_only), k] - truth)
        return Bias(mean, width / sqrt(count) if count > 1 else nan)

    def coverage(self, name: Any, level: float = 0.6827, *, valid_only: bool = True) -> Coverage:
        """Return how often value +- z error contains the truth, z being the two-sided quantile of ``level``."""
        from statistics import NormalDist

        z = NormalDist().inv_cdf((1 + check_level("toy results", level)) / 2)
        pulls = self.pulls(name, valid_only=valid_only)
        return clopper_pearson(int(np.sum(np.abs(pulls) <= z)), len(pulls))

    def derived(self, formula: Any) -> Array:
        """Return a formula of parameters for each toy, valid or not; parameters that were not fitted have their true values."""
        from morefit.expr import evaluate, to_expr
        from morefit.minimise.derived import check_symbols

        known = {**self.truth, **{name: self.values[:, k] for k, name in enumerate(self.names)}}
        check_symbols(to_expr(formula), known, "")
        return np.broadcast_to(np.asarray(evaluate(to_expr(formula), known), np.float64), len(self))

    def fraction_by(self, how: str) -> float:
        """Return the fraction of all toys that were obtained in this way, one of ``HOW``."""
        if how not in HOW:
            raise OptionError(f"toy results: no way '{how}'; {suggest(how, HOW)}")
        return float(np.mean(self.how == HOW.index(how))) if len(self) else nan

    @classmethod
    def join(cls, parts: Iterable[ToyResults]) -> ToyResults:
        """Return the pieces of one study, in any order, as one; gaps, overlaps and other studies are errors."""
        pieces = sorted(parts, key=lambda part: (part.first, len(part)))
        if not pieces:
            raise DataError("toy results: nothing to join")
        problems = [*mismatches(pieces), *gaps(pieces)]
        if problems:
            raise DataError(f"toy results: cannot be joined: {'; '.join(problems)}")
        return concatenate(LAYOUT, pieces)

    def save(self, path: str | Path) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        save_result("toy results", path, LAYOUT, self)

    @classmethod
    def load(cls, path: str | Path) -> ToyResults:
        """Read back what ``save`` wrote, to the last bit.

        Of a study with ``save=`` that was stopped, it is the longest stretch of toys without gaps.
        """
        content = read_result("toy results", path, LAYOUT)
        toys, runs = built("toy results", path, cls, content), content.header.get("runs") or ()
        if len(runs) <= 1:
            return toys
        parts = split_result("toy results", path, LAYOUT, toys, runs)
        longest = max(parts, key=lambda part: part.stop - part.first)
        return replace(longest.result, first=longest.first, seconds=toys.seconds)

    def _column(self, parameter: Any) -> tuple[int, float]:
        """Return the column and the truth of a parameter that has both."""
        name = name_of(parameter)
        if not isinstance(name, str) or name not in self.names:
            raise ModelError(f"parameter {name!r}: not fitted; {suggest(name, self.names)}")
        truth = self.truth.get(name, nan)
        if isnan(truth):
            raise ModelError(
                f"parameter '{name}': was not generated, so there is no truth to compare it with"
            )
        return self.names.index(name), truth

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per toy, whose index is the number of the toy in the study.

        Columns are the values, the errors (``mu_error``), nll, edm, valid, how, events, and statistics of one number.
        """
        columns: list[tuple[str, Any]] = []
        for k, name in enumerate(self.names):
            columns += [(name, self.values[:, k]), (f"{name}_error", self.errors[:, k])]
        columns += [(name, getattr(self, name)) for name in ("nll", "edm", "valid", "events")]
        columns.append(("how", np.array(HOW, object)[self.how]))
        columns += [(name, column) for name, column in self.statistics.items() if column.ndim == 1]
        names = [name for name, _ in columns]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise DataError(
                f"toy results: two columns are called {', '.join(map(repr, twice))}; rename parameter or statistic"
            )
        return data_frame(dict(columns), range(self.first, self.first + len(self)))

    def _chosen(self, valid_only: bool) -> NDArray[np.bool_]:
        return self.valid if valid_only else np.ones(len(self), bool)

    def __str__(self) -> str:
        return as_text(report(self))

    def __repr__(self) -> str:
        shown = report(self)
        verdict = headline(shown).partition(": ")[2]
        numbers = f", seed {self.seed}, first toy {self.first}" * shown.drawn
        return f"ToyResults({verdict}, {len(self.names)} parameters{numbers})"

    def _repr_html_(self) -> str:
        return as_html(report(self))


# ------------------------------------------------------------------------------------ fields


def wrong_shapes(toys: ToyResults) -> Iterator[str]:
    """Name the arrays that do not have one row per toy and one column per parameter."""
    rows = len(toys.values) if toys.values.ndim else 0
    table = (rows, len(toys.names))
    expected = {name: table if name in ("values", "errors") else (rows,) for name in ARRAYS}
    for name, shape in expected.items():
        if getattr(toys, name).shape != shape:
            yield f"{name} must have shape {shape}, got {getattr(toys, name).shape}"
    for name, column in toys.statistics.items():
        if column.shape[:1] != (rows,):
            yield f"statistic '{name}' must have {rows} rows, got shape {column.shape}"


def wrong_entries(toys: ToyResults) -> Iterator[str]:
    """Name entries that contradict each other or cannot be saved."""
    if toys.how.size and toys.how.max() >= len(HOW):
        yield f"how must be below {len(HOW)}, got {toys.how.max()}"
    if len(set(toys.names)) < len(toys.names):
        yield f"names must differ, got {', '.join(toys.names)}"
    for name, column in toys.statistics.items():
        if column.dtype.hasobject:
            yield f"statistic '{name}' must be numbers or text, got dtype {column.dtype}"


# ------------------------------------------------------------------------------------ joining


def mismatches(pieces: Sequence[ToyResults]) -> Iterator[str]:
    """Name what differs between pieces although it must be the same in one study."""
    for what, of in SAME.items():
        different = list(dict.fromkeys(of(piece) for piece in pieces))
        if len(different) > 1:
            yield f"{what} differ, {different[0]} and {different[1]}"


# What is the same in all pieces of one study, as text to compare and to print.
SAME: dict[str, Callable[[ToyResults], str]] = {
    "parameters": lambda toys: ", ".join(toys.names),
    "truths": lambda toys: repr(dict(toys.truth)),
    "seeds": lambda toys: str(toys.seed),
    "statistics": lambda toys: repr({n: (str(c.dtype), c.shape[1:]) for n, c in toys.statistics.items()}),
}


def gaps(pieces: Sequence[ToyResults]) -> Iterator[str]:
    """Name the toys that are missing or come twice."""
    for one, other in pairwise(pieces):
        end = one.first + len(one)
        if other.first > end:
            yield f"toys {end} to {other.first - 1} are missing"
        if other.first < end:
            yield f"toys from {other.first} to {min(end, other.first + len(other)) - 1} come twice"


# ------------------------------------------------------------------------------------ print


def report(toys: ToyResults) -> Report:
    """Return what is printed of toys."""
    counts = np.bincount(toys.how, minlength=len(HOW)).tolist()
    return Report(
        toys=len(toys),
        valid=int(toys.valid.sum()),
        ways=dict(zip(HOW, counts, strict=True)),
        events=toys.events,
        seed=toys.seed,
        first=toys.first,
        rows=[row(toys, name) for name in toys.names],
        statistics=toys.statistics,
        seconds=toys.seconds,
        backend=toys.backend,
        unit=toys.unit,
        drawn=bool(toys.truth) or not toys.names,
    )


def row(toys: ToyResults, name: str) -> Row:
    """Return mean, bias, pulls and coverages of one parameter over the valid toys."""
    k = toys.names.index(name)
    mean, width, count = moments(toys.values[toys.valid, k])
    truth, lost = toys.truth.get(name, nan), int(np.isnan(toys.errors[toys.valid, k]).sum())
    if isnan(truth):
        return Row(name, mean, width / sqrt(count) if count > 1 else nan, width, None, lost)
    bias, coverages = toys.bias(name), tuple(toys.coverage(name, level) for level in LEVELS)
    return Row(name, mean, bias.error, width, Compared(truth, bias, toys.pull_summary(name), coverages), lost)
