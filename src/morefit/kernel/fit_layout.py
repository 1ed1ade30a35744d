"""The record of a whole fit, laid out once: its result, its state, the sums at the trial point, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import log2

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.kernel.program import Layout, Record, Vector


class Fit(Record):
    """What is known of one fit, of n floating parameters; matrices are stored row by row."""

    # the result
    status: float
    x: Vector  # (n,) the best point so far, and what is known there:
    value: float
    edm: float  # half of g H^-1 g
    error: Vector  # (n,) negative where there are none
    steps: float  # evaluations
    above: Vector  # (parts,) how often a density was above its envelope
    abandoned: Vector  # (parts,) how often no candidate was accepted
    unresolved: float  # how many numerical integrals are not accurate enough there
    fixed: float  # how many parameters are at a limit
    running: float  # 1 until the fit has ended
    covariance: Vector  # (n, n)
    # the state
    trial: Vector  # (n,) the point to be evaluated next
    gradient: Vector  # (n,) at x
    hessian: Vector  # (n, n) at x
    unit: Vector  # (n,) in which the last step was measured: about the error of each parameter alone
    radius: float  # no step is longer, in errors; large: Newton's step has not failed yet
    length: float  # of the step to the trial point, in errors
    doubts: float  # how often the EDM was below the goal, but the curvature not to be believed
    slows: float  # steps in succession that were as slow as towards a point of inflection
    tries: float  # steps from the present start
    starts: float  # other starts that were tried, or left out
    returns: float  # how many of them led back to the best end, one after the other
    rough: float  # 1 if a step failed or the curvature was negative on the way
    saddles: float  # steps from where it was
    # 0.5, 1 or 2 if the first start led near a limit or to no minimum, where others may lead lower, 0.25 if its way was long, over saddles
    doubtful_end: float
    narrow: float  # 1 if it led far away, into a valley that is much narrower than where it came from
    wandered: float  # 1 if it led far away over rough ground, so that a component may be in a chance place
    lost: float  # 1 if it led over many saddles
    first_bend: Vector  # (n,) the diagonal of the Hessian at the start
    rounds: float  # how often the search for lower ends began anew from a much lower one
    end: Vector  # (n,) where the first start led, or the end that a round begins with
    end_value: float
    end_error: Vector  # (n,) there, negative where there are none
    end_covariance: Vector  # (n, n) there
    widest: float  # the parameter that the others widen most
    scan: float  # 0: none; 1: the end without a component is evaluated, then the places of its shape, from 2
    shapes: float  # how many parameters have no effect without it; 0.5 if it is not looked for elsewhere
    absent: float  # which parameter is its amount
    refitted: float  # 1 if the others have moved since it is gone
    without: Vector  # (n,) where they are
    shape: Vector  # (n,) 1 for parameters that have no effect without it
    score: Vector  # (places,) what it promises at each place,
    amount: Vector  # (places,) with so much of it
    place: float  # 0: none; else the number of the value of a loose parameter that is evaluated, from 1
    loose: Vector  # (n,) 1 for parameters that are looked at
    promise: Vector  # (n,) what another value of each loose parameter promises,
    promised: Vector  # (n,) and which value
    side: float  # the number of the next place beside an edge, from 0
    recentred: float  # how often one led lower, so that others are tried around there
    shallow: float  # 1 if the value rises so little beside one that other valleys may be anywhere
    survey: float  # 0: none; else the number of the place of a parameter that is evaluated, from 1
    surveyed: float  # the number of the parameter that was surveyed last, from 1
    surveys: float  # how many were
    survey_starts: float  # from the last one
    valleys: float  # 1 if one showed several
    roams: float  # starts from anywhere
    roam_returns: float  # of them that led back to the best end
    profile: Vector  # (surveyed,) how low each place may lead,
    turns: (
        Vector  # (surveyed,) with an angle turned: eight times which one, and by how many eighths of a turn
    )
    best: Vector  # (n,) the best end so far,
    best_rank: float  # how much of a minimum it is, and what is known there:
    best_status: float
    best_value: float
    best_edm: float
    best_unresolved: float
    best_gradient: Vector  # (n,)
    best_hessian: Vector  # (n, n)
    # the sums at the trial point
    new_value: float
    new_gradient: Vector  # (n,)
    new_hessian: Vector  # (n, n), its lower triangle
    new_unresolved: float
    bad: float  # events without a positive density
    # constants
    start: Vector  # (n,)
    low: Vector  # (n,)
    high: Vector  # (n,)
    # (n,) END for parameters that move a point beyond which there is no density, where each event makes minima; PLACE for what moves something else along an
    # observable, STEP if that is no peak; FREQUENCY; ANGLE where the limits are one point; 0 for others
    edge: Vector
    goal: float  # of the edm
    value_unit: float  # sums are divided by it until the fit has ended: about the mean weight, where that is far from one
    max_steps: float  # from each start
    max_starts: float  # other starts of a fit that may have ended in the wrong valley
    max_shifts: float  # factorisations of a step before its eigenvalues are computed
    thorough: float  # 1: other starts of every fit
    # scratch: the quadratic model of the free parameters, in their units, and what it says
    free: Vector  # (n,) which parameters no limit stops
    steepness: float  # the smallest slope of the others
    move: Vector  # (n,)
    slopes: Vector  # (n,)
    part: Vector  # (n,)
    along: Vector  # (n,)
    values: Vector  # (n,)
    matrix: Vector  # (n, n)
    lower: Vector  # (n, n)
    vectors: Vector  # (n, n)
    pivot: float  # of its factorisation: the smallest, or the one at which it stopped
    bend: float  # the curvature that this is along a direction; zero if there is none
    lowest: float  # the smallest curvature that was seen without eigenvalues
    model_edm: float
    model_radius: float
    bounded: float
    doubtful: float
    flats: float


MATRICES = frozenset(
    {"covariance", "hessian", "end_covariance", "best_hessian", "new_hessian", "matrix", "lower", "vectors"}
)

MAX_STEPS = 100
MAX_SHIFTS = 10  # as much work as eigenvalues; three are needed
FAR_FROM_ONE = 2.0**10  # a unit that is closer to one makes no difference
PLACES = 14  # at which a component that seems to be absent is looked for
ANGLE, PLACE, STEP, FREQUENCY, END = -1.0, 0.5, 0.6, 0.75, 1.0  # what a parameter moves, as the formula says
SURVEYED = 24  # places of a parameter that are looked at
REPORTS = frozenset({"above", "abandoned"})
SCANS = frozenset({"score", "amount"})
PROFILES = frozenset({"profile", "turns"})


def value_unit(weight: float) -> float:
    """Return what rises of an nll are measured in: one, or a power of two near a mean weight that is far from one."""
    return 1.0 if 1 / FAR_FROM_ONE < weight < FAR_FROM_ONE else 2.0 ** round(log2(weight))


@lru_cache
def lay_out(count: int, parts: int) -> Layout:
    """Return where the fields of a record are, for a number of floating parameters and of parts."""

    def size(name: str, kind: str) -> int | None:
        if kind == "float":
            return None
        if name in SCANS:
            return PLACES
        if name in PROFILES:
            return SURVEYED
        return parts if name in REPORTS else count * count if name in MATRICES else count

    return Layout(tuple((name, size(name, kind)) for name, kind in Fit.__annotations__.items()))


@dataclass(frozen=True)
class FitLayout:
    """The record of a fit for a number of floating parameters and of parts of a likelihood."""

    count: int
    parts: int = 1

    @cached_property
    def record(self) -> Layout:
        return lay_out(self.count, self.parts)

    @property
    def size(self) -> int:
        return self.record.size

    @property
    def derivatives_width(self) -> int:
        """How many numbers a fit returns with its covariance and the derivatives at the minimum."""
        return self.record.first("unit")

    @property
    def state_size(self) -> int:
        """How many numbers must be kept from step to step: all but the scratch."""
        return self.record.first("free")

    @property
    def width(self) -> int:
        """How many numbers a fit returns; the covariance follows them."""
        return self.record.first("covariance")

    def first_records(
        self,
        start: Array,
        limits: Array,
        goal: float,
        max_starts: int,
        thorough: bool = False,
        *,
        edges: Sequence[float] = (),
        weight: float = 1.0,
        shifts: int = MAX_SHIFTS,
    ) -> Array:
        """Return the records with which fits begin, (T, size), from starts (T, P): their constants, and zeros.

        ``edges``: what each parameter moves, END, PLACE, STEP, FREQUENCY or ANGLE, 0 for others; empty: none move any. ``weight`` is the mean one of events,
        ``shifts`` how many factorisations of a step there may be before its eigenvalues are computed.
        """
        low, high = limits[..., 0], limits[..., 1]
        rows = np.zeros((len(start), self.size))
        for name, values in (("start", np.clip(start, low, high)), ("low", low), ("high", high)):
            rows[:, self.record.slice(name)] = values
        if any(edges):
            rows[:, self.record.slice("edge")] = edges
        unit = value_unit(weight)
        rows[:, self.record.first("goal")] = goal / unit
        rows[:, self.record.first("value_unit")] = unit
        rows[:, self.record.first("max_steps")] = MAX_STEPS
        rows[:, self.record.first("max_starts")] = max_starts
        rows[:, self.record.first("max_shifts")] = shifts
        rows[:, self.record.first("thorough")] = thorough
        return rows


@dataclass(frozen=True, eq=False)
class FitRows:
    """What whole fits returned, by name: T of them, P floating parameters."""

    layout: FitLayout
    rows: Array  # (T, layout.width), or with the covariance

    def column(self, name: str) -> Array:
        return self.rows[:, self.layout.record.first(name)]

    def of_first(self, name: str) -> float:
        """Return the number of a field in the first fit."""
        return float(self.rows.item(0, self.layout.record.first(name)))

    def columns(self, name: str) -> Array:
        return self.rows[:, self.layout.record.slice(name)]

    @property
    def has_covariance(self) -> bool:
        return bool(self.rows.shape[1] > self.layout.width)

    @property
    def status(self) -> Array:
        return self.column("status")

    @property
    def x(self) -> Array:
        return self.columns("x")

    @property
    def errors(self) -> Array:
        """(T, P), negative where there are none."""
        return self.columns("error")

    @property
    def value(self) -> Array:
        return self.column("value")

    @property
    def edm(self) -> Array:
        return self.column("edm")

    @property
    def steps(self) -> Array:
        return self.column("steps")

    @property
    def running(self) -> Array:
        return self.column("running")

    @property
    def above(self) -> list[int]:
        """How often a density was above its envelope, in all fits together, for each part."""
        return [int(total) for total in self.columns("above").sum(axis=0)]

    @property
    def abandoned(self) -> list[int]:
        """How often no candidate was accepted, in all fits together, for each part."""
        return [int(total) for total in self.columns("abandoned").sum(axis=0)]
