"""Toys with their free fits, compared with fits at tested values: ratios of their likelihoods, and p-values of tests by toys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Flags, Frozen
from morefit.dataclass import dataclass
from morefit.minimise.batch import Fits
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.text.rounding import round_pdg
from morefit.toys.batch import GOAL, Toys
from morefit.toys.stored import StoredToys

if TYPE_CHECKING:
    from morefit.intervals.toys_at_points import Point

TIE = 4 * GOAL  # fits stop above their minima, so t may be off by this much: closer is equal


@dataclass(eq=False)
class FreeFits:
    """Toys of a point with their free fits, to be compared with fits at any tested values."""

    point: Point
    toys: Toys
    lowest: Array  # nll, nan where a fit failed
    estimates: Array

    @classmethod
    def of(cls, point: Point, drawn: Toys) -> FreeFits:
        """Fit every toy freely; its events are stored for the other fits, unless these are made already."""
        toys = drawn if point.fits else drawn.stored()
        fits = point.timed("free fits", point.fit, toys, point.free)
        column = point.free.floating.index(point.tested.name)
        return cls(point, toys, np.where(reached(fits), fits.nll, np.nan), fits.values[:, column].copy())

    def ratios(self, fixed: Mapping[str, float]) -> tuple[Array, Array]:
        """Return t of each toy, nan where one of the fits failed, and the value that its free fit has."""
        point, lowest, estimates = self.point, self.lowest.copy(), self.estimates.copy()
        column = point.free.floating.index(point.tested.name)
        wanted = self.wanted(fixed[point.tested.name])
        fixed_nll, x, known = point.timed("conditional fits", self.conditional, wanted, fixed)
        for toy in np.flatnonzero(known & (lowest > fixed_nll + 0.5 * TIE)):
            minimum = point.again(self.toys.one(int(toy)), x[toy])
            if minimum.nll[0] < lowest[toy]:
                lowest[toy], estimates[toy] = minimum.nll[0], minimum.values[0, column]
        if point.tested.bound is not None:
            below = estimates < point.tested.bound
            lowest = np.where(below, self.at_bound(below), lowest)
        t = np.where(wanted, np.where(known, 2 * (fixed_nll - lowest), np.nan), 0.0)
        return np.asarray(t, np.float64), estimates

    def wanted(self, value: float) -> Flags:
        """Return which toys have to be fitted at a tested value; others count as 0, if they have but one minimum."""
        tested = self.point.tested
        if tested.side == "both" or not tested.term.one_minimum:
            return np.ones(len(self.toys), np.bool_)
        beyond = self.estimates > value if tested.side == "below" else self.estimates < value
        return np.asarray(~beyond | np.isnan(self.lowest), np.bool_)

    def conditional(self, wanted: Flags, fixed: Mapping[str, float]) -> tuple[Array, Array, Flags]:
        """Return ``Point.conditional`` of some toys, in the places that these have among all."""
        if self.point.are_fitted_at(fixed):
            return self.point.conditional(self.toys, fixed)
        count = len(self.toys)
        some = self.point.conditional(self.stored.some(np.flatnonzero(wanted)), fixed)
        nll = np.full(count, np.nan)
        x = np.full((count, some[1].shape[1]), np.nan)
        known = np.zeros(count, np.bool_)
        nll[wanted], x[wanted], known[wanted] = some
        return nll, x, known

    def at_bound(self, below: Flags) -> Array:
        """Return the nll with the parameter at its bound, of the toys that are below it and of any fitted before."""
        new = np.flatnonzero(below & ~self.bounded)
        if len(new):
            assert self.point.tested.bound is not None
            fixed = self.point.fixed_at(self.point.tested.bound, self.point.number)
            nll, _, known = self.point.timed(
                "conditional fits", self.point.conditional, self.stored.some(new), fixed
            )
            self.nll_at_bound[new] = np.where(known, nll, np.nan)
            self.bounded[new] = True
        return self.nll_at_bound

    @cached_property
    def stored(self) -> StoredToys:
        """The same toys, stored."""
        return self.toys if isinstance(self.toys, StoredToys) else self.toys.stored()

    @cached_property
    def bounded(self) -> Flags:
        """Which toys were fitted at the bound."""
        return np.zeros(len(self.toys), np.bool_)

    @cached_property
    def nll_at_bound(self) -> Array:
        return np.full(len(self.toys), np.nan)


def reached(fits: Fits) -> Flags:
    """Return which minima are known; at a limit one may be, although there are no errors."""
    there = (fits.edm <= GOAL) & np.isfinite(fits.nll) & (fits.nll < UNKNOWN)
    return np.asarray(fits.valid | there, np.bool_)


class ToyPValue(Frozen):
    """What records of tests say of their toys; those whose fits failed count as having a larger statistic."""

    toys: Array  # their statistics, (T,), nan where a fit failed; empty if none were drawn

    @property
    @abstractmethod
    def observed(self) -> float:
        """The statistic of the data."""

    @property
    def tie(self) -> float:
        """How much statistics may differ by the precision of fits: such ones are equal."""
        return TIE

    @property
    def toy_p_value(self) -> float:
        """The fraction of toys with a statistic at least as large; nan without toys."""
        return self.toys_above / len(self.toys) if len(self.toys) else nan

    @property
    def toy_p_error(self) -> float:
        """The binomial error of that fraction; never zero, as one toy more and one less is added."""
        count = len(self.toys)
        smoothed = (self.toys_above + 1) / (count + 2)
        return sqrt(smoothed * (1 - smoothed) / count) if count else nan

    @property
    def toys_above(self) -> int:
        """The number of toys with a statistic at least as large."""
        return int(np.count_nonzero(~(self.toys < self.observed - self.tie)))

    def toy_lines(self) -> list[str]:
        """Return the p-value in print, and how many fits failed; nothing without toys."""
        if not (count := len(self.toys)):
            return []
        failed = int(np.isnan(self.toys).sum())
        verdict = f", FITS OF {failed} FAILED" if failed else ""
        shown = " +- ".join(round_pdg(self.toy_p_value, self.toy_p_error))
        return [f"  {count} toys: p-value {shown}{verdict}"]
