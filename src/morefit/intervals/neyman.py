"""Intervals by construction with toys, for a parameter of any model: Feldman-Cousins, and Neyman's belt."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data import Dataset
from morefit.errors import DataError, FitError, ModelError, OptionError
from morefit.intervals.belt import KIND as BELT
from morefit.intervals.belt import NeymanBelt
from morefit.intervals.feldman import KIND as FELDMAN
from morefit.intervals.feldman import FeldmanCousins
from morefit.intervals.points import Job, saved_outcomes, total_seconds
from morefit.intervals.record import read_record
from morefit.intervals.toys_at_points import Estimator, Outcome, Tested
from morefit.jobs.executors import DaskClient, choose_place
from morefit.jobs.facts import Facts, function_facts, versions
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import (
    LOWER,
    Conditional,
    best_fit,
    check_floating,
    check_points,
    unseen,
)
from morefit.minimise.problem import as_likelihood
from morefit.model import Observable, Parameter, Pdf
from morefit.sampling.generate import check_seed, expected_events
from morefit.targets import Backend
from morefit.text.progress import Bar
from morefit.text.suggest import suggest
from morefit.toys.arguments import complete, template_of, without_events
from morefit.toys.saved import keeps_file
from morefit.toys.task import likelihood_facts
from morefit.validate import by_name, check_level, name_of, number_list, whole_number

TRIED = 256  # events, to see which parameters matter


class Minimised(NamedTuple):
    """The data fitted with the parameter held at each tested value."""

    truths: tuple[dict[str, float], ...]
    starts: tuple[dict[str, float], ...]  # for free fits of toys
    idle: tuple[tuple[str, ...], ...]  # parameters without effect
    t: Array
    best: float


@keeps_file
def feldman_cousins(
    likelihood: Term | Pdf,
    parameter: str | Parameter,
    points: ArrayLike,
    *,
    data: Any = None,
    constraints: Sequence[Any] | Any = (),
    fluctuate: bool = True,
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

    At each point the other parameters are minimised on the data, and toys drawn there: with as many events as the
    data, or a Poisson number if the model is extended. Constraints measure another value in each toy, unless
    ``fluctuate`` is False. Each toy is fitted freely and with the parameter held at the
    value. The same seed gives the same bits; toy i of value k (in ascending order) has the number k * toys + i.

    Parameters
    ----------
    likelihood : or a model, with its ``data`` and ``constraints``.
    points : values of the parameter to test; inside its limits, which are what an interval may end at.
    level : of the interval printed; others can be read from the same toys.
    nuisance : "plugin": toys are drawn with the other parameters where the data have their minimum.
    best : the fit of the data, if it is known already, with all parameters floating that float in the model.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; its workers use one thread each, unless
        a backend is given.
    save : a file to keep finished values in. The same call resumes a scan that was stopped, with the same bits.
        Ctrl-C returns what is finished.
    """
    level, toys = check_level("feldman_cousins", level), whole_number("feldman_cousins: toys", toys, 1)
    if nuisance != "plugin":
        raise OptionError(f"feldman_cousins: nuisance must be 'plugin', got {nuisance!r}")
    term, name = (
        as_likelihood("feldman_cousins", likelihood, data, constraints=constraints, backend=backend),
        name_of(parameter),
    )
    likelihood = term
    if likelihood.weighted:
        raise DataError("feldman_cousins: toys have no weights, so the data must not have any")
    best = best_fit("feldman_cousins", likelihood, best)
    silent = [name, *unseen(likelihood)]
    check_floating(
        "feldman_cousins", best, name, *(p.name for p in likelihood.parameters if p.name not in silent)
    )
    points = number_list("feldman_cousins: points", points)
    check_points("feldman_cousins", best, name, points)
    found = conditional(likelihood, best, name, points, progress)
    target = None if save is None else Path(save)
    header, arrays = read_record(target, FELDMAN) if target is not None and target.exists() else ({}, {})
    place = choose_place(backend, executor, 2 * likelihood.events * toys * len(points))
    tested = Tested(
        term=without_events(term),
        name=name,
        truths=found.truths,
        starts=found.starts,
        idle=found.idle,
        seed=pick_seed(seed, header),
        purpose=FELDMAN,
        toys=toys,
        events=tuple(p.events if p.model.expected_events() is None else None for p in term.parts),
        backend=place,
        fluctuate=fluctuate,
    )
    collect = partial(collected, tested, found, points, best.limits[name], level)
    facts = {} if target is None else facts_of(tested, points, found.t)
    job = Job(f"feldman_cousins of {name}", tested.ratios, len(points), toys, facts, collect, target)
    if header:
        job.resume(header.get("facts") or {}, saved_outcomes(header, arrays, "t", points))
    return collect(job.run(executor, progress))


def pick_seed(seed: int | None, header: Facts) -> int:
    """Return the seed given, or else that of the file to resume, or else a new one."""
    if seed is not None:
        return check_seed(seed)
    return int(header["seed"]) if header else secrets.randbits(63)


def conditional(likelihood: Term, best: FitResult, name: str, points: Array, progress: bool) -> Minimised:
    """Minimise the data over the other parameters at all points together; those that have no effect stay."""
    idle = without_effect(likelihood, best, name, points)
    names = [p.name for p in likelihood.all_parameters]
    full, nll = np.empty((len(points), len(names))), np.empty(len(points))
    with Bar(f"profile of {name}", len(points), progress) as bar:
        for still in dict.fromkeys(idle):
            these = np.array([k for k, names_there in enumerate(idle) if names_there == still])
            held = [n for n in still if n in best.floating]
            where = np.column_stack([points[these], *(np.full(len(these), best.values[n]) for n in held)])
            full[these], nll[these] = minimised(likelihood, best, (name, *held), where, bar)
    lowest = int(np.argmin(nll))
    better = nll[lowest] < best.nll - LOWER
    centre, minimum = (points[lowest], nll[lowest]) if better else (best.values[name], best.nll)
    truths = tuple(dict(zip(names, row, strict=True)) for row in full.tolist())
    # where some parameters have no effect, a free fit would not know where to go
    starts = tuple(dict(best.values) if some else truth for some, truth in zip(idle, truths, strict=True))
    return Minimised(truths, starts, idle, np.maximum(2 * (nll - minimum), 0.0), float(centre))


def without_effect(
    likelihood: Term, best: FitResult, name: str, points: Array
) -> tuple[tuple[str, ...], ...]:
    """Return the parameters that the likelihood does not depend on, at each value of the one tested.

    Such are those of a signal that is not there: they cannot be fitted then. All their derivatives are zero. Where
    the data have no events, events all over the ranges take their place, for toys will have some.
    """
    likelihood = likelihood.with_parts(
        [
            part if part.events else part.replaced(data=Dataset(anywhere(part.model.observables)))
            for part in likelihood.parts
        ]
    )
    full = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(points), 1))
    full[:, [p.name for p in likelihood.all_parameters].index(name)] = points
    rows = [k for k, p in enumerate(likelihood.parameters) if p.name != name]
    found = likelihood.evaluate_full(full, 2).cut(rows)
    still = (found.gradient == 0) & np.all(found.hessian == 0, axis=2)
    names = np.array([likelihood.parameters[k].name for k in rows], object)
    return tuple(tuple(names[row]) for row in still)


def anywhere(observables: Sequence[Observable]) -> dict[str, Array]:
    """Return events spread evenly over the ranges of observables."""
    rng = np.random.default_rng(0)
    return {o.name: rng.uniform(o.low, o.high, TRIED) for o in observables}


def minimised(
    likelihood: Term, best: FitResult, names: tuple[str, ...], points: Array, bar: Bar
) -> tuple[Array, Array]:
    """Return all parameters and the nll with some fixed at each point; every minimum must be found."""
    scan = Conditional(likelihood, best, names, points, bar)
    scan.minimise()
    if len(scan.fits.failed):
        listed = ", ".join(f"{x:.6g}" for x in points[scan.fits.failed, 0])
        raise FitError(
            f"feldman_cousins: the data could not be fitted with '{names[0]}' at {listed};"
            " leave these values out, or narrow the limits of the other parameters"
        )
    return scan.full, scan.fits.nll


def facts_of(tested: Tested, points: Array, t_data: ArrayLike) -> Facts:
    """Return what results depend on; truths, starts and data only as a digest of what they come down to."""
    places = (*tested.truths, *tested.starts)
    numbers = np.concatenate([t_data, *([*place.values()] for place in places)])
    return {
        "model": likelihood_facts(tested.term),
        "fluctuate": tested.fluctuate,
        "parameter": tested.name,
        "values": points.tolist(),
        "events": list(tested.events),
        "data": sha256(numbers.tobytes() + repr(tested.idle).encode()).hexdigest()[:16],
        "estimator": function_facts("neyman_belt: estimator", tested.estimator),
        "toys": tested.toys,
        "seed": tested.seed,
        "versions": versions(),
    }


def collected(
    tested: Tested, found: Minimised, points: Array, limits: tuple[float, float], level: float,
    outcomes: Mapping[int, Outcome],
) -> FeldmanCousins:  # fmt: skip
    """Put finished points together."""
    done = list(outcomes)
    t = np.stack([outcomes[k].numbers for k in done]) if done else np.empty((0, tested.toys), np.float32)
    return FeldmanCousins(
        tested.name, points[done], found.t[done], t, tuple(p.name for p in tested.term.all_parameters),
        np.array([list(found.truths[k].values()) for k in done]),
        np.array([outcomes[k].clipped for k in done], np.int64), found.best, limits, level, tested.seed,
        total_seconds(outcomes),
        tested.backend.label,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ the belt


@keeps_file
def neyman_belt(
    likelihood: Term | Pdf,
    parameter: str | Parameter,
    points: ArrayLike,
    *,
    events: int | None = None,
    truth: Any = None,
    constraints: Sequence[Any] | Any = (),
    fluctuate: bool = True,
    estimator: Estimator | None = None,
    toys: int = 5000,
    level: float = 0.9,
    seed: int | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> NeymanBelt:
    """Draw toys at true values of a parameter and see where estimates of it fall: Neyman's construction.

    ``NeymanBelt.interval`` then turns an estimate observed into an interval. Seeds, executors and files are as for
    ``feldman_cousins``.

    Parameters
    ----------
    events : of every toy; None draws Poisson numbers around what an extended model expects.
    likelihood : or a model.
    points : true values of the parameter.
    truth : those of the other parameters, by name or of the result of a fit; their start values where it says nothing.
    estimator : called with the dataset of each toy; None is the fitted value of the parameter.
    """
    level, toys = check_level("neyman_belt", level), whole_number("neyman_belt: toys", toys, 1)
    events = None if events is None else whole_number("neyman_belt: events", events)
    if not (estimator is None or callable(estimator)):
        raise OptionError(f"neyman_belt: the estimator must be a function of a dataset, got {estimator!r}")
    term, name = template_of("neyman_belt", likelihood, constraints), name_of(parameter)
    points = number_list("neyman_belt: points", points)
    tested_one = tested_parameter(term, name, points)
    if isinstance(truth, Mapping) and name in (by_name(truth) or {}):
        raise ModelError(
            f"neyman_belt: truth must be of other parameters than '{name}', whose values are tested"
        )
    values = complete(term, truth, "truth")
    numbers = events_of_toys(term, events)
    truths = tuple(values | {name: x} for x in points.tolist())
    target = None if save is None else Path(save)
    header, arrays = read_record(target, BELT) if target is not None and target.exists() else ({}, {})
    each = sum(
        expected_events(part.model, values) if number is None else number
        for part, number in zip(term.parts, numbers, strict=True)
    )
    place = choose_place(backend, executor, int(each * toys * len(points)))
    tested = Tested(
        term=without_events(term),
        name=name,
        truths=truths,
        starts=truths,
        idle=((),) * len(truths),
        seed=pick_seed(seed, header),
        purpose=BELT,
        toys=toys,
        events=numbers,
        backend=place,
        estimator=estimator,
        fluctuate=fluctuate,
    )
    collect = partial(collected_belt, tested, points, (tested_one.low, tested_one.high), level)
    facts = {} if target is None else facts_of(tested, points, [])
    job = Job(f"neyman_belt of {name}", tested.estimates, len(points), toys, facts, collect, target)
    if header:
        job.resume(header.get("facts") or {}, saved_outcomes(header, arrays, "estimates", points))
    return collect(job.run(executor, progress))


def events_of_toys(term: Term, events: int | None) -> tuple[int | None, ...]:
    """Return how many events toys have in each part; None for a Poisson number around what it expects."""
    if events is not None:
        if len(term.parts) > 1:
            raise ModelError(
                "neyman_belt: events must be left out for a sum of likelihoods: each part has as many as its data, or"
                " as it expects"
            )
        return (events,)
    if any(part.model.expected_events() is None and not part.events for part in term.parts):
        raise ModelError(
            "neyman_belt: events is missing; the model predicts no number, as one with yields would"
        )
    return tuple(part.events if part.model.expected_events() is None else None for part in term.parts)


def tested_parameter(term: Term, name: str, points: Array) -> Parameter:
    """Return the parameter of this name, if it floats and may have these values."""
    floating = {p.name: p for p in term.parameters}
    if not isinstance(name, str) or name not in floating:
        raise FitError(f"neyman_belt: needs a floating parameter, got {name!r}: {suggest(name, floating)}")
    parameter = floating[name]
    if (
        points.ndim != 1
        or not len(points)
        or not np.all((points >= parameter.low) & (points <= parameter.high))
    ):
        rule = f"points of '{name}' must be numbers in [{parameter.low}, {parameter.high}]"
        raise FitError(f"neyman_belt: {rule}, got {points.tolist()[:5]}")
    return parameter


def collected_belt(
    tested: Tested, points: Array, limits: tuple[float, float], level: float, outcomes: Mapping[int, Outcome]
) -> NeymanBelt:
    """Put finished points together."""
    done = list(outcomes)
    estimates = np.array([outcomes[k].numbers for k in done]).reshape(len(done), tested.toys)
    seconds = total_seconds(outcomes)
    return NeymanBelt(
        tested.name, points[done], estimates, limits, level, tested.seed, seconds, tested.backend.label
    )
