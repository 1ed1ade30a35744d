"""What a study of many toys found: values, errors, pulls, coverage, and how it looks in print."""

from __future__ import annotations

import html
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib import metadata
from itertools import pairwise
from math import isfinite, isnan, nan, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Array
from morefit.errors import DataError, ModelError
from morefit.fit.result import (
    BAD,
    GOOD,
    Column,
    Frozen,
    duration,
    floats,
    html_table,
    portable,
    suggest,
    text_table,
    words,
)
from morefit.fit.rounding import round_pdg

HOW = ("newton", "newton, another start", "minuit", "failed")
FORMAT = "morefit toy results"
VERSION = 1
LEVELS = (0.6827, 0.9545)  # of the coverages printed
SUSPICIOUS = 4.0  # standard deviations: further off is said in words
ARRAYS = ("values", "errors", "nll", "edm", "valid", "how", "events")


class PullSummary(NamedTuple):
    """Mean and width of pulls, each with its error: 0 and 1 for honest errors and no bias."""

    mean: float
    mean_error: float
    width: float
    width_error: float


class Bias(NamedTuple):
    """How far the mean of the fitted values is from the truth."""

    value: float
    error: float


class Coverage(NamedTuple):
    """The fraction of toys whose interval holds the truth, and the Clopper-Pearson interval of it (68.27 %)."""

    fraction: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class ToyResults:
    """The outcome of T toys, fitted with P floating parameters; none is left out, whatever became of it.

    ``truth`` holds the generated values; a parameter that only the fitted model has is absent or nan. ``how``
    indexes ``HOW``: how each result was obtained. ``first`` is the number of the first toy in the study.
    """

    names: tuple[str, ...]
    truth: Mapping[str, float]
    values: Array  # (T, P)
    errors: Array  # (T, P)
    nll: Array  # (T,)
    edm: Array  # (T,)
    valid: NDArray[np.bool_]  # (T,)
    how: NDArray[np.uint8]  # (T,)
    events: NDArray[np.int64]  # (T,)
    seed: int
    first: int = 0
    statistics: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, CONVERT[one.name](getattr(self, one.name)))
        problems = [*wrong_shapes(self), *wrong_entries(self)]
        if problems:
            raise DataError(f"toy results: {'; '.join(problems)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return ToyResults, tuple(getattr(self, one.name) for one in fields(self))

    def __len__(self) -> int:
        return len(self.values)

    def pulls(self, name: str, *, valid_only: bool = True) -> Array:
        """Return (value - truth) / error of the valid toys, or of all, in the order of the toys."""
        k, truth = self._known(name)
        chosen = self._chosen(valid_only)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.values[chosen, k] - truth) / self.errors[chosen, k], np.float64)

    def pull_summary(self, name: str, *, valid_only: bool = True) -> PullSummary:
        """Return mean and width of the pulls with their errors; nan for fewer than two toys."""
        mean, width, count = moments(self.pulls(name, valid_only=valid_only))
        if count < 2:
            return PullSummary(mean, nan, nan, nan)
        return PullSummary(mean, width / sqrt(count), width, width / sqrt(2 * (count - 1)))

    def bias(self, name: str, *, valid_only: bool = True) -> Bias:
        """Return the mean of value - truth and its error."""
        k, truth = self._known(name)
        mean, width, count = moments(self.values[self._chosen(valid_only), k] - truth)
        return Bias(mean, width / sqrt(count) if count > 1 else nan)

    def coverage(self, name: str, level: float = 0.6827, *, valid_only: bool = True) -> Coverage:
        """Return how often value +- z error holds the truth, z being the two-sided quantile of ``level``."""
        if not 0 < level < 1:
            raise DataError(f"toy results: level must lie between 0 and 1, got {level}")
        pulls = self.pulls(name, valid_only=valid_only)
        return clopper_pearson(
            int(np.sum(np.abs(pulls) <= NormalDist().inv_cdf((1 + level) / 2))), len(pulls)
        )

    def fraction_by(self, how: str) -> float:
        """Return the fraction of all toys that were obtained in this way, one of ``HOW``."""
        if how not in HOW:
            raise DataError(f"toy results: no way '{how}'; {suggest(how, HOW)}")
        return float(np.mean(self.how == HOW.index(how))) if len(self) else nan

    @classmethod
    def join(cls, parts: Iterable[ToyResults]) -> ToyResults:
        """Put together the pieces of one study, in any order; gaps, overlaps and other studies are refused."""
        pieces = sorted(parts, key=lambda part: (part.first, len(part)))
        if not pieces:
            raise DataError("toy results: nothing to join")
        problems = [*mismatches(pieces), *gaps(pieces)]
        if problems:
            raise DataError(f"toy results: cannot be joined: {'; '.join(problems)}")
        one = pieces[0]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in ARRAYS
        }
        statistics = {
            name: np.concatenate([piece.statistics[name] for piece in pieces]) for name in one.statistics
        }
        stages = dict.fromkeys(stage for piece in pieces for stage in piece.seconds)
        seconds = {stage: sum(piece.seconds.get(stage, 0.0) for piece in pieces) for stage in stages}
        return cls(
            one.names,
            one.truth,
            **joined,
            seed=one.seed,
            first=one.first,
            statistics=statistics,
            seconds=seconds,
        )

    def save(self, path: str | Path) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        header = {
            "format": FORMAT, "version": VERSION, "morefit": morefit_version(), "names": list(self.names),
            "truth": portable(self.truth), "seed": self.seed, "first": self.first,
            "statistics": list(self.statistics), "seconds": portable(self.seconds), "how": list(HOW),
        }  # fmt: skip
        arrays = {name: getattr(self, name) for name in ARRAYS}
        arrays |= {f"statistic_{k}": column for k, column in enumerate(self.statistics.values())}
        write_whole(Path(path), {"header": np.array(json.dumps(header, allow_nan=False)), **arrays})

    @classmethod
    def load(cls, path: str | Path) -> ToyResults:
        """Read back what ``save`` wrote, to the last bit."""
        header, arrays = read_whole(Path(path))
        try:
            statistics = {name: arrays[f"statistic_{k}"] for k, name in enumerate(header["statistics"])}
            content: dict[str, Any] = {n: header[n] for n in ("names", "truth", "seed", "first", "seconds")}
            content |= {name: arrays[name] for name in ARRAYS}
            return cls(**content, statistics=statistics)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"toy results '{path}': the file is damaged, {error}") from error

    def _known(self, name: str) -> tuple[int, float]:
        """Return the column and the truth of a parameter that has both."""
        if name not in self.names:
            raise ModelError(f"parameter '{name}': not fitted; {suggest(name, self.names)}")
        truth = self.truth.get(name, nan)
        if isnan(truth):
            raise ModelError(
                f"parameter '{name}': was not generated, so there is no truth to compare it with"
            )
        return self.names.index(name), truth

    def _chosen(self, valid_only: bool) -> NDArray[np.bool_]:
        return self.valid if valid_only else np.ones(len(self), bool)

    def __str__(self) -> str:
        head = "\n".join([headline(self), *(f"  {line}" for line in details(self))])
        return "\n\n".join([head, *map(text_table, tables(self)), *footlines(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        good = bool(self.valid.all()) and not any(remark(self, name) for name in self.names)
        style = f"background:{GOOD if good else BAD};padding:4px"
        lines = "".join(f"<br>{html.escape(line)}" for line in details(self))
        head = f'<p style="{style}"><b>{html.escape(headline(self))}</b>{lines}</p>'
        feet = "".join(f"<p>{html.escape(line)}</p>" for line in footlines(self))
        return f"{head}{''.join(map(html_table, tables(self)))}{feet}"


# ------------------------------------------------------------------------------------ fields


def frozen(kind: type[np.generic] | None) -> Callable[[Any], NDArray[Any]]:
    """Return what makes a read-only copy of one kind, or of whatever kind it is."""

    def convert(items: Any) -> NDArray[Any]:
        array = np.array(items, dtype=kind)
        array.flags.writeable = False
        return array

    return convert


def columns(items: Mapping[str, Any]) -> Frozen[NDArray[Any]]:
    """Return a frozen mapping to read-only arrays."""
    return Frozen({str(name): frozen(None)(column) for name, column in items.items()})


# What each field is made of, whether it comes from a study or from a file.
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
    "statistics": columns,
    "seconds": floats,
}


def wrong_shapes(toys: ToyResults) -> Iterator[str]:
    """Say which arrays do not have one row for each toy, or one column for each parameter."""
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
    """Say what else does not make sense."""
    if toys.how.size and toys.how.max() >= len(HOW):
        yield f"how must be below {len(HOW)}, got {toys.how.max()}"
    if len(set(toys.names)) < len(toys.names):
        yield f"names must differ, got {', '.join(toys.names)}"
    for name, column in toys.statistics.items():
        if column.dtype.hasobject:
            yield f"statistic '{name}' must be numbers or text, got dtype {column.dtype}"


# ------------------------------------------------------------------------------------ joining


def mismatches(pieces: Sequence[ToyResults]) -> Iterator[str]:
    """Say in what the pieces differ that must be the same in one study."""
    for what, of in SAME.items():
        found = list(dict.fromkeys(of(piece) for piece in pieces))
        if len(found) > 1:
            yield f"{what} differ, {found[0]} and {found[1]}"


# What one study has only once, as text to compare and to show.
SAME: dict[str, Callable[[ToyResults], str]] = {
    "parameters": lambda toys: ", ".join(toys.names),
    "truths": lambda toys: repr(dict(toys.truth)),
    "seeds": lambda toys: str(toys.seed),
    "statistics": lambda toys: repr({n: (str(c.dtype), c.shape[1:]) for n, c in toys.statistics.items()}),
}


def gaps(pieces: Sequence[ToyResults]) -> Iterator[str]:
    """Say where toys are missing or come twice."""
    for one, other in pairwise(pieces):
        end = one.first + len(one)
        if other.first > end:
            yield f"toys {end} to {other.first - 1} are missing"
        if other.first < end:
            yield f"toys from {other.first} to {min(end, other.first + len(other)) - 1} come twice"


# ------------------------------------------------------------------------------------ numbers


def moments(numbers: Array) -> tuple[float, float, int]:
    """Return mean, standard deviation and count; nan where there are too few numbers."""
    count = len(numbers)
    with np.errstate(invalid="ignore"):
        mean = float(np.mean(numbers)) if count else nan
        return mean, float(np.std(numbers, ddof=1)) if count > 1 else nan, count


def clopper_pearson(hits: int, total: int, level: float = 0.6827) -> Coverage:
    """Return a fraction with its exact central interval; all of [0, 1] if there was no trial."""
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # slow, and only coverages need it

    if not total:
        return Coverage(nan, 0.0, 1.0)
    tail = (1 - level) / 2
    low = float(betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1 - tail)) if hits < total else 1.0
    return Coverage(hits / total, low, high)


# ------------------------------------------------------------------------------------ files


def morefit_version() -> str:
    """Return the version of the package installed; a checkout may have none."""
    try:
        return metadata.version("morefit")
    except metadata.PackageNotFoundError:
        return "not installed"


def write_whole(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file beside its place and move it there when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:  # also Ctrl-C: leave nothing half-written behind
        with suppress(OSError):
            part.unlink()
        raise


def read_whole(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a file, if it holds toy results of this version."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
    except (KeyError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f"toy results '{path}': not written by ToyResults.save(), {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"toy results '{path}': not written by ToyResults.save()")
    if header.get("version") != VERSION:
        rule = f"format version must be {VERSION}, got {header.get('version')!r}"
        raise DataError(f"toy results '{path}': {rule}; use the morefit that wrote it")
    return header, arrays


# ------------------------------------------------------------------------------------ print


def headline(toys: ToyResults) -> str:
    """Return the one line to read first."""
    bad = len(toys) - int(toys.valid.sum())
    verdict = "all valid" if not bad else f"{bad} NOT VALID ({100 * bad / len(toys):.2g} %)"
    return f"toy study: {len(toys)} toys, {verdict}" if len(toys) else "toy study: no toys"


def details(toys: ToyResults) -> list[str]:
    """Return how the results were obtained, and from what."""
    counts = np.bincount(toys.how, minlength=len(HOW))
    ways = "; ".join(f"{way}: {count}" for way, count in zip(HOW, counts, strict=True) if count)
    numbers = f"toys {toys.first} to {toys.first + len(toys) - 1}" if len(toys) else "none"
    lines = [f"obtained by {ways}", event_counts(toys)] if len(toys) else []
    return [*lines, f"seed {toys.seed}, {numbers}"]


def event_counts(toys: ToyResults) -> str:
    least, most = int(toys.events.min()), int(toys.events.max())
    if least == most:
        return f"{least} events each"
    return f"{least} to {most} events, {toys.events.mean():.6g} on average"


def tables(toys: ToyResults) -> list[list[Column]]:
    """Return the table of the parameters, and that of the user's own numbers if there are any."""
    own = [
        name for name, column in toys.statistics.items() if column.ndim == 1 and column.dtype.kind in "biuf"
    ]
    return [parameter_table(toys), *([statistics_table(toys, own)] if own and len(toys) else [])]


def parameter_table(toys: ToyResults) -> list[Column]:
    """Return one row per parameter; what concerns the truth is left empty where there is none."""
    rows = [parameter_row(toys, name) for name in toys.names]
    headings = (
        "truth", "mean value", "bias", "+-", "pull mean", "+-", "pull width", "+-",
        *(f"coverage {100 * level:g} %" for level in LEVELS),
    )  # fmt: skip
    cells = list(zip(*rows, strict=True)) or [()] * (len(headings) + 1)
    numeric = [Column(heading, column) for heading, column in zip(headings, cells[:-1], strict=True)]
    remarks = [Column("", cells[-1], numeric=False)] if any(cells[-1]) else []
    first = Column("parameter", toys.names, numeric=False)
    return [first, *(numeric if toys.names else []), *remarks]


def parameter_row(toys: ToyResults, name: str) -> list[str]:
    """Return the cells of one parameter, the last of them a remark."""
    mean, width, count = moments(toys.values[toys.valid, toys.names.index(name)])
    if isnan(toys.truth.get(name, nan)):
        value, _ = round_pdg(mean, width / sqrt(count) if count > 1 else nan)
        return ["", value, *[""] * 6, *[""] * len(LEVELS), remark(toys, name)]
    bias, pulls = toys.bias(name), toys.pull_summary(name)
    shown = round_pdg(bias.value, bias.error)
    value, _ = round_pdg(mean, bias.error)
    pull_cells = [*round_pdg(pulls.mean, pulls.mean_error), *round_pdg(pulls.width, pulls.width_error)]
    covered = [coverage_cell(toys.coverage(name, level)) for level in LEVELS]
    return [f"{toys.truth[name]:.8g}", value, *shown, *pull_cells, *covered, remark(toys, name)]


def coverage_cell(coverage: Coverage) -> str:
    """Write a coverage with digits enough for its interval."""
    digits = 3 if coverage.high - coverage.low > 0.003 else 4
    fraction, low, high = (f"{x:.{digits}f}" for x in coverage)
    return f"{fraction} [{low}, {high}]"


def remark(toys: ToyResults, name: str) -> str:
    """Say in words what is off with a parameter, or nothing."""
    if isnan(toys.truth.get(name, nan)):
        return "not generated"
    mean, mean_error, width, width_error = toys.pull_summary(name)
    found = []
    for what, off, error in (("PULL MEAN", mean, mean_error), ("PULL WIDTH", width - 1, width_error)):
        if not isfinite(off) or not isfinite(error):
            found.append(f"{what} UNKNOWN")
        elif abs(off) > SUSPICIOUS * error:
            found.append(f"{what} OFF" + (f" BY {abs(off) / error:.1f} SIGMA" if error else ""))
    return ", ".join(found)


def statistics_table(toys: ToyResults, names: Sequence[str]) -> list[Column]:
    """Return mean, standard deviation and range of the user's own numbers, over all toys."""
    found = [toys.statistics[name].astype(np.float64) for name in names]
    return [
        Column("statistic", names, numeric=False),
        Column("mean", [f"{moments(column)[0]:.6g}" for column in found]),
        Column("deviation", [f"{moments(column)[1]:.6g}" for column in found]),
        Column("least", [f"{column.min():.6g}" for column in found]),
        Column("most", [f"{column.max():.6g}" for column in found]),
    ]


def footlines(toys: ToyResults) -> list[str]:
    """Return how long each stage took."""
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in toys.seconds.items())
    bad = len(toys) - int(toys.valid.sum())
    note = [f"the table is of the {len(toys) - bad} valid toys"] if bad else []
    return [*note, *([times] if times else [])]
