"""Discovery tests: how unlikely the data are without a signal, from the ratio of likelihoods or from toys."""

from __future__ import annotations

from concurrent.futures import Executor
from math import nan, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.intervals.data_fits import fit_data, start_test
from morefit.intervals.free_fits import ToyPValue
from morefit.intervals.interval import tail_probability
from morefit.intervals.scan import Hypotheses, draw_ratios
from morefit.jobs.checkpoint import locks_file
from morefit.jobs.run import DaskClient
from morefit.likelihood import Simultaneous, Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import check_floating, check_points
from morefit.model import Parameter, Pdf
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.validate import finite_number, name_of, whole_number

NAME = "discovery"
BLOCK = 5000  # toys that are saved together


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Discovery(ToyPValue):
    """The test of a parameter being ``value``, its other values being larger, as the yield of a signal is.

    ``q`` = 2 (nll with the parameter fixed - nll), 0 if the best fit is below the value. ``p_value`` and
    ``significance`` are those of many events (arXiv:1007.1727); ``toy_p_value`` is the fraction of toys, drawn with the
    parameter at the value, whose q is at least as large. Toys whose fits failed count as such.
    """

    name: str
    value: float
    best: float  # fit
    q: float
    toys: Array  # their q, (T,); empty if none were drawn

    @property
    def significance(self) -> float:
        """The square root of q: how many standard deviations of a Gaussian the p-value is worth."""
        return sqrt(self.q)

    @property
    def p_value(self) -> float:
        """The probability of so large a q without a signal, for many events."""
        return tail_probability(self.significance)

    @property
    def observed(self) -> float:
        return self.q

    @property
    def toy_significance(self) -> float:
        """The significance of the fraction of toys; nan if there are none, or none so large."""
        return -NormalDist().inv_cdf(self.toy_p_value) if 0 < self.toy_p_value < 1 else nan

    def __str__(self) -> str:
        lines = [
            f"discovery: {self.name} = {self.value:g} against larger values, best fit {self.best:.6g}",
            f"  q {self.q:.4f}, significance {self.significance:.3f}, p-value {self.p_value:.4g}",
        ]
        return "\n".join([*lines, *self.toy_lines()])


@locks_file(NAME)
@in_sentences
def discovery(
    likelihood: Term | Pdf | Simultaneous,
    parameter: str | Parameter,
    value: float = 0.0,
    *,
    data: Any = None,
    toys: int | None = None,
    seed: int | None = None,
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> Discovery:
    """Test that a parameter, such as the yield of a signal, has a value and not a larger one.

    A model needs its ``data``. ``toys`` are drawn with the parameter at the value and the others where the data then have their minimum; where
    the mass of the signal floats, their p-value is the global one, with the look-elsewhere effect: parameters that have no
    effect without a signal are started all over their limits, in the data and in toys, so that the highest of several
    bumps is found unless it is much narrower than a twentieth of them (``look_elsewhere`` scans). ``best``,
    ``executor`` and ``save`` are as for ``feldman_cousins``.

    Example: ``mf.intervals.discovery(nll, n_signal).significance``
    """
    name, value = name_of(parameter), finite_number(f"{NAME}: value", value)
    likelihood, best = start_test(NAME, likelihood, data, best, name, least=value)
    check_floating(NAME, best, name)
    point = np.array([value])
    check_points(NAME, best, name, point)
    fits = fit_data(NAME, likelihood, best, name, point, progress=False)
    q = float(fits.t[0]) if fits.best > value else 0.0
    drawn = np.empty(0)
    if toys is not None:
        blocks = -(-whole_number(f"{NAME}: toys", toys, 1) // BLOCK)
        hypotheses = Hypotheses(
            name,
            np.tile(point, blocks),
            fits.truths * blocks,
            fits.starts * blocks,
            fits.idle * blocks,
            side="above",
        )
        ratios = draw_ratios(
            NAME, likelihood, hypotheses, toys=-(-toys // blocks), seed=seed, t_data=fits.t, backend=backend,
            executor=executor, save=save, progress=progress,
        )  # fmt: skip
        drawn = ratios.above.ravel()[:toys]
    return Discovery(name, value, fits.best, q, drawn)
