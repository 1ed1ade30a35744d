"""The record of an upper limit, and the curves and ratios of probabilities that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import Literal, NamedTuple

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.intervals.nuisance import DataFits
from morefit.intervals.profile import local_cubic
from morefit.text.rounding import round_pdg

Statistic = Literal["q_tilde", "q"]
SIGMAS = (-2, -1, 0, 1, 2)  # of the background, for which limits are expected


@dataclass(frozen=True, eq=False, repr=False)
class UpperLimit(Frozen):
    """The upper limit of a parameter: its largest value with a p-value of at least 1 - level.

    ``p_signal`` (CLs+b) is the probability of data that fit the tested value as badly, if it is true; ``p_background``
    (CLb) is that if the parameter is 0. ``p_values`` is their ratio (CLs), or the first if ``cls`` is False. Limits are
    nan if the largest tested value is not excluded, and the smallest tested value if all are. ``expected`` limits are
    those of background that fluctuates by -2 to 2 standard deviations; -1 to 1 and -2 to 2 are the bands.
    """

    name: str
    observed: float
    expected: tuple[float, ...]  # (5,)
    values: Array  # (K,), tested
    q: Array  # (K,), of the data
    p_signal: Array  # (K,)
    p_background: Array  # (K,)
    expected_p_values: Array  # (5, K)
    level: float
    cls: bool
    statistic: str
    best: float
    errors: tuple[float, ...] = (
        0.0,
    ) * 6  # of the observed limit and the expected ones, by the number of toys
    toys: int = 0  # at each value for each hypothesis

    @property
    def p_values(self) -> Array:
        """CLs, or CLs+b, of the data, (K,)."""
        return ratio_of(self.p_signal, self.p_background, self.cls)

    def __str__(self) -> str:
        what = "CLs" if self.cls else "CLs+b"
        how = f"{self.toys} toys for each hypothesis" if self.toys else "asymptotic"
        lines = [f"upper limit of {self.name} at {100 * self.level:g} % by {what} of {self.statistic}, {how}"]
        labels = ["observed", *(f"expected, {n:+d} sigma" if n else "expected" for n in SIGMAS)]
        for label, limit, error in zip(labels, (self.observed, *self.expected), self.errors, strict=True):
            shown = " +- ".join(round_pdg(limit, error)) if error else f"{limit:.6g}"
            if isnan(error):
                shown = f"AT MOST {limit:.6g}, the smallest value that was tested"
            lines.append(f"  {label:<18} {'NOT REACHED' if isnan(limit) else shown}")
        return "\n".join([*lines, f"  best fit {self.best:.6g}"])

    __repr__ = __str__


class Options(NamedTuple):
    """What the p-values of a limit are made of."""

    level: float
    statistic: Statistic
    cls: bool


def ratio_of(signal: Array, background: Array, cls: bool) -> Array:
    """Return CLs, or CLs+b; a ratio to a probability of zero excludes nothing."""
    if not cls:
        return signal
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(background > 0, signal / background, 1.0)


class Curve(NamedTuple):
    """Twice the rise of the nll of data at values, from where they fit best; q is 0 below that."""

    values: Array
    t: Array
    centre: float

    @classmethod
    def of(cls, fits: DataFits, values: Array, statistic: Statistic) -> Curve:
        """Return that of fits at values, the first of which is 0; for q_tilde the centre is not below 0."""
        if statistic == "q_tilde" and fits.best < 0:
            return cls(values, fits.t - fits.t[0], 0.0)
        return cls(values, fits.t, fits.best)

    @property
    def q(self) -> Array:
        """The statistic at each value."""
        return np.where(self.values > self.centre, self.t, 0.0)

    def between(self, low: float, high: float) -> Callable[[float], float]:
        """Return the statistic between two neighbouring values, on a cubic through the points around them."""
        cubic = local_cubic(self.values, self.t, low, high)
        return lambda value: max(cubic(value), 0.0) if value > self.centre else 0.0
