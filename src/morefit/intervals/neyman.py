"""The construction of Feldman and Cousins with toys, for a parameter of any model."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from math import ceil, inf, sqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.backend import Array, Backend, Cpu, choose_backend
from morefit.errors import DataError, FitError
from morefit.fit import FitResult
from morefit.fit.newton import Flags
from morefit.fit.result import Column, duration, floats, text_table, words
from morefit.generate import check_seed
from morefit.intervals.classic import check_level
from morefit.intervals.crossing import Region, hull, regions
from morefit.intervals.held import LOWER, Held, best_fit, check_floating, check_points, freeze, rebuilt
from morefit.intervals.points import Facts, Job, read_record, saved_outcomes, total_seconds, write_record
from morefit.intervals.tested import TIE, Outcome, Tested, without_effect
from morefit.likelihood import Likelihood
from morefit.model import Pdf
from morefit.progress import Bar
from morefit.study import DaskClient, checked_path, fingerprint, versions

KIND = "morefit feldman-cousins"
NEAR = 1e-6  # of the spacing: a tested value so close to the best fit is the best fit
MOST_ROWS = 60  # of a table that somebody reads
Failed = Literal["above", "below"]  # where t of toys whose fits failed is taken to be


@dataclass(frozen=True, eq=False, repr=False)
class FeldmanCousins:
    """Tested values of a parameter, each with the t of the data and of T toys drawn there.

    t = 2 (nll with the parameter held - nll) is at least 0. A value is in the interval if its p-value, the fraction
    of toys with a t at least that of the data, is at least 1 - level. Toys whose fits failed are never left out:
    their t is nan, and as nobody knows it, it counts as above that of the data (``p_values``, which makes intervals
    long rather than short) and below it (``least_p_values``); the truth lies in between.
    """

    name: str
    values: Array  # (K,), ascending: those that are finished
    t_data: Array  # (K,)
    t: NDArray[np.float32]  # (K, T), nan where a fit failed
    names: tuple[str, ...]  # all parameters of the model
    truths: Array  # (K, parameters), where the toys were drawn
    clipped: NDArray[np.int64]  # (K,) toys with a t below 0 by less than fits can tell, set to 0
    best: float
    limits: tuple[float, float]
    level: float
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage, added up over workers

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", words(self.names))
        object.__setattr__(self, "seconds", floats(self.seconds))
        object.__setattr__(self, "limits", (float(self.limits[0]), float(self.limits[1])))
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def toys(self) -> int:
        """How many toys were drawn at each value."""
        return int(self.t.shape[1])

    @property
    def invalid(self) -> NDArray[np.int64]:
        """How many toys have no t at each value, as one of their fits failed, (K,)."""
        return np.count_nonzero(np.isnan(self.t), axis=1).astype(np.int64)

    @property
    def p_values(self) -> Array:
        """The fraction of toys with a t at least that of the data, (K,); failed ones count."""
        return (self.above + self.invalid) / self.toys

    @property
    def least_p_values(self) -> Array:
        """The same where failed toys do not count, (K,)."""
        return self.above / self.toys

    @property
    def above(self) -> NDArray[np.int64]:
        """How many toys are known to have a t at least that of the data, (K,)."""
        return np.count_nonzero(self.t >= (self.t_data - TIE)[:, None], axis=1).astype(np.int64)

    @property
    def p_errors(self) -> Array:
        """The binomial errors of the p-values, (K,); never zero, as one toy more and one less is added."""
        fraction = (self.p_values * self.toys + 1) / (self.toys + 2)
        return np.asarray(np.sqrt(fraction * (1 - fraction) / self.toys), np.float64)

    @property
    def critical(self) -> Array:
        """The largest t that is accepted at the level, (K,); inf if too many fits failed."""
        return self.critical_at(self.level)[0]

    @property
    def critical_errors(self) -> Array:
        """The Monte-Carlo errors of the critical values, (K,)."""
        return self.critical_at(self.level)[1]

    def critical_at(self, level: float, failed: Failed = "above") -> tuple[Array, Array]:
        """Return the critical values of t at any level and their errors, from the order of the toys."""
        filled = np.where(np.isnan(self.t), inf if failed == "above" else -inf, self.t)
        largest = -np.sort(-filled, axis=1).astype(np.float64)
        place = min(max(ceil((1 - level) * self.toys - 1e-9), 1), self.toys) - 1
        spread = sqrt(self.toys * level * (1 - level))
        few, many = max(floor_of(place - spread), 0), min(ceil(place + spread), self.toys - 1)
        with np.errstate(invalid="ignore"):
            errors = (largest[:, few] - largest[:, many]) * spread / max(many - few, 1)
        return np.maximum(largest[:, place], 0.0), np.where(np.isfinite(errors), errors, inf)

    def accepted(self, level: float | None = None, failed: Failed = "above") -> Flags:
        """Say which values have a p-value of at least 1 - level, (K,)."""
        p = self.p_values if failed == "above" else self.least_p_values
        return np.asarray(p >= 1 - self.checked(level) - 1e-12, np.bool_)

    def regions(self, level: float | None = None, *, failed: Failed = "above") -> list[Region]:
        """Return all intervals of accepted values, in order.

        Ends lie where the roots of the t of the data and of the critical t cross, on a line between a value that is
        accepted and one that is not. The best fit always is accepted.
        """
        level = self.checked(level)
        critical, errors = self.critical_at(level, failed)
        with np.errstate(divide="ignore", invalid="ignore"):
            heights = np.sqrt(self.t_data) - np.sqrt(critical)
            spreads = errors / np.maximum(2 * np.sqrt(critical), np.sqrt(errors))
        spreads = np.where(np.isnan(spreads), 0.0 if not len(spreads) else inf, spreads)
        curve = self.with_best(heights, spreads, critical, self.accepted(level, failed))
        return regions(*curve, self.limits)

    def with_best(
        self, heights: Array, spreads: Array, critical: Array, accepted: Flags
    ) -> tuple[Array, Array, Array, Flags]:
        """Put the best fit, where t is 0, among the tested values, unless it is one of them."""
        near = NEAR * np.ptp(self.values) / max(len(self.values) - 1, 1)
        k = int(np.searchsorted(self.values, self.best))
        if np.min(np.abs(self.values - self.best)) <= near:
            return self.values, heights[None], spreads[None], accepted
        height = -sqrt(float(np.interp(self.best, self.values, np.minimum(critical, 1e300))))
        spread = float(np.interp(self.best, self.values, np.minimum(spreads, 1e300)))
        return (
            np.insert(self.values, k, self.best), np.insert(heights, k, height)[None],
            np.insert(spreads, k, spread)[None], np.insert(accepted, k, True),
        )  # fmt: skip

    def interval(self, level: float | None = None, *, failed: Failed = "above") -> Region:
        """Return the interval from the lowest to the highest accepted value; ``regions`` may have gaps in it."""
        return hull(self.regions(level, failed=failed))

    def checked(self, level: float | None) -> float:
        if level is None:
            return self.level
        check_level("feldman_cousins", level)
        return level

    def save(self, path: str | Path, facts: Facts | None = None) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        header = {
            "name": self.name, "names": list(self.names), "best": self.best, "limits": self.limits,
            "level": self.level, "seed": self.seed, "seconds": dict(self.seconds),
        }  # fmt: skip
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_record(path, KIND, header, arrays, facts)

    @classmethod
    def load(cls, path: str | Path) -> FeldmanCousins:
        """Read back what ``save`` wrote, to the last bit; also what ``feldman_cousins(save=...)`` left."""
        header, arrays = read_record(path, KIND)
        try:
            content = {n: header[n] for n in ("name", "names", "best", "limits", "level", "seed", "seconds")}
            return cls(**content, **{name: arrays[name] for name in ARRAYS})
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{KIND} '{path}': the file is damaged, {error}") from error

    def __str__(self) -> str:
        parts = [headline(self), text_table(table(self)) if len(self) <= MOST_ROWS else "", footline(self)]
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__


ARRAYS = ("values", "t_data", "t", "truths", "clipped")


def floor_of(x: float) -> int:
    return int(np.floor(x))


# ------------------------------------------------------------------------------------ print


def headline(found: FeldmanCousins) -> str:
    """Return what was done, the interval, and what is wrong with it."""
    bad = int(found.invalid.sum())
    verdict = "all fits valid" if not bad else f"{bad} TOYS WITH FAILED FITS"
    lines = [f"feldman-cousins of {found.name}: {len(found)} values of {found.toys} toys, {verdict}"]
    lines.append(f"  {100 * found.level:g} %: {written(found.regions())}")
    if bad:
        lines.append(f"  if t of failed toys is small: {written(found.regions(failed='below'))}")
    clipped = int(found.clipped.sum())
    note = f", t of {clipped} toys below 0 by less than {TIE:.1g} set to 0" if clipped else ""
    return "\n".join([*lines, f"  best fit {found.best:.6g}, seed {found.seed}{note}"])


def written(found: Sequence[Region]) -> str:
    """Write regions one after the other."""
    return " and ".join(map(str, found)) if found else "NOTHING ACCEPTED"


def table(found: FeldmanCousins) -> list[Column]:
    """Return one row for each tested value."""
    bad = found.invalid
    failed = [
        Column("least p", [f"{p:.4f}" for p in found.least_p_values]),
        Column("failed", [str(n) for n in bad]),
    ]
    return [
        Column(found.name, [f"{x:.6g}" for x in found.values]),
        Column("t data", [f"{t:.3f}" for t in found.t_data]),
        Column("critical", [f"{t:.3f}" for t in found.critical]),
        Column("+-", [f"{e:.3f}" for e in found.critical_errors]),
        Column("p", [f"{p:.4f}" for p in found.p_values]),
        Column("+-", [f"{e:.4f}" for e in found.p_errors]),
        *(failed if bad.any() else []),
        Column("", ["" if a else "excluded" for a in found.accepted()], numeric=False),
    ]


def footline(found: FeldmanCousins) -> str:
    return ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in found.seconds.items())


# ------------------------------------------------------------------------------------ the construction


class Conditional(NamedTuple):
    """The data fitted with the parameter held at each tested value."""

    truths: tuple[dict[str, float], ...]
    starts: tuple[dict[str, float], ...]  # for free fits of toys
    t: Array
    best: float


def feldman_cousins(
    model: Pdf,
    data: Any,
    name: str,
    values: ArrayLike,
    *,
    toys: int = 5000,
    level: float = 0.9,
    seed: int | None = None,
    nuisance: Literal["plugin"] = "plugin",
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> FeldmanCousins:
    """Test values of a parameter with toys, by the ratio of likelihoods of Feldman and Cousins (physics/9711021).

    At each value the other parameters are minimised on the data, and toys drawn there: with as many events as the
    data, or a Poisson number if the model is extended. Each toy is fitted freely and with the parameter held at the
    value. The same seed gives the same bits; toy i of value k (in ascending order) has the number k * toys + i.

    Parameters
    ----------
    values : to test; inside the limits of the parameter, which are what an interval may end at.
    level : of the interval printed; others can be read from the same toys.
    nuisance : "plugin": toys are drawn with the other parameters where the data have their minimum.
    best : the fit of the data, if it is known already; parameters that are fixed in it must be so in the model.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; its workers use one thread each, unless
        a backend is given.
    save : a file to keep finished values in. The same call resumes a scan that was stopped, with the same bits.
        Ctrl-C returns what is finished.
    """
    check_options("feldman_cousins", toys, level, nuisance)
    likelihood = Likelihood(model, data, backend=backend)
    if likelihood.weighted:
        raise DataError("feldman_cousins: toys have no weights, so the data must not have any")
    best = best_fit("feldman_cousins", likelihood, best)
    check_floating("feldman_cousins", best, name)
    points = np.unique(np.asarray(values, np.float64))
    check_points("feldman_cousins", best, name, points)
    found = conditional(likelihood, best, name, points, progress)
    target = None if save is None else checked_path(Path(save))
    header, arrays = read_record(target, KIND) if target is not None and target.exists() else ({}, {})
    tested = Tested(
        model, name, found.truths, found.starts, pick_seed(seed, header), toys,
        likelihood.events if model.expected_events() is None else None,
        choose_place(backend, executor), best.errors,
    )  # fmt: skip
    collect = partial(collected, tested, found, points, best.limits[name], level)
    facts = facts_of(tested, points, found)
    job = Job(f"feldman_cousins of {name}", tested.ratios, len(points), toys, facts, collect, target)
    if header:
        job.resume(header.get("facts") or {}, saved_outcomes(header, arrays, "t", points))
    return collect(job.run(executor, progress))


def check_options(what: str, toys: int, level: float, nuisance: str) -> None:
    check_level(what, level)
    if not (isinstance(toys, int | np.integer) and toys >= 1):
        raise DataError(f"{what}: toys must be a whole number from 1, got {toys}")
    if nuisance != "plugin":
        raise DataError(f"{what}: nuisance must be 'plugin', got {nuisance!r}")


def pick_seed(seed: int | None, header: Facts) -> int:
    """Return the seed given, or else that of the file to resume, or else a new one."""
    if seed is not None:
        return check_seed(seed)
    return int(header["seed"]) if header else secrets.randbits(63)


def choose_place(backend: str | Backend, executor: object) -> Backend:
    return Cpu(threads=1) if executor is not None and backend == "auto" else choose_backend(backend)


def conditional(
    likelihood: Likelihood, best: FitResult, name: str, points: Array, progress: bool
) -> Conditional:
    """Minimise the data over the other parameters at all points together; those that have no effect stay."""
    gone = [without_effect(likelihood.model, name, float(x)) for x in points]
    names = [p.name for p in likelihood.all_parameters]
    full, nll = np.empty((len(points), len(names))), np.empty(len(points))
    with Bar(f"profile of {name}", len(points), progress) as bar:
        for still in dict.fromkeys(gone):
            these = np.array([k for k, g in enumerate(gone) if g == still])
            where = np.column_stack([points[these], *(np.full(len(these), best.values[n]) for n in still)])
            full[these], nll[these] = minimised(likelihood, best, (name, *still), where, bar)
    lowest = int(np.argmin(nll))
    better = nll[lowest] < best.nll - LOWER
    centre, minimum = (points[lowest], nll[lowest]) if better else (best.values[name], best.nll)
    truths = tuple(dict(zip(names, row, strict=True)) for row in full.tolist())
    # where some parameters have no effect, a free fit would not know where to go
    starts = tuple(dict(best.values) if g else truth for g, truth in zip(gone, truths, strict=True))
    return Conditional(truths, starts, np.maximum(2 * (nll - minimum), 0.0), float(centre))


def minimised(
    likelihood: Likelihood, best: FitResult, names: tuple[str, ...], points: Array, bar: Bar
) -> tuple[Array, Array]:
    """Return all parameters and the nll with some held at each point; every minimum must be found."""
    held = Held(likelihood, best, names, points, bar)
    held.minimise()
    if len(held.failed):
        listed = ", ".join(f"{x:.6g}" for x in points[held.failed, 0])
        raise FitError(
            f"feldman_cousins: the data could not be fitted with '{names[0]}' at {listed};"
            " leave these values out, or narrow the limits of the other parameters"
        )
    full = held.full.copy()
    full[:, held.columns] = held.others
    return full, held.nll


def facts_of(tested: Tested, points: Array, found: Conditional) -> Facts:
    """Return what results depend on; toys and data only as far as they matter."""
    numbers = np.concatenate([found.t, *([*truth.values()] for truth in found.truths)])
    return {
        "model": fingerprint(tested.model),
        "parameter": tested.name,
        "values": points.tolist(),
        "data": sha256(numbers.tobytes()).hexdigest()[:16],
        "toys": tested.toys,
        "seed": tested.seed,
        "backend": tested.backend.name,
        "versions": versions(),
    }


def collected(
    tested: Tested, found: Conditional, points: Array, limits: tuple[float, float], level: float,
    outcomes: Mapping[int, Outcome],
) -> FeldmanCousins:  # fmt: skip
    """Put finished points together."""
    done = list(outcomes)
    t = np.stack([outcomes[k].numbers for k in done]) if done else np.empty((0, tested.toys), np.float32)
    return FeldmanCousins(
        tested.name, points[done], found.t[done], t, tuple(p.name for p in tested.model.parameters),
        np.array([list(found.truths[k].values()) for k in done]),
        np.array([outcomes[k].clipped for k in done], np.int64), found.best, limits, level, tested.seed,
        total_seconds(outcomes),
    )  # fmt: skip
