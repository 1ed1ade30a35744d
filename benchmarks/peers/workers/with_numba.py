"""iminuit with numba-stats, or with a loop by hand that numba compiles, over threads if there are several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import config
from numba_stats import truncexpon, truncnorm

from peers.by_hand import Nll, angular_terms, mass_integrals
from peers.draw import DRAW, Columns
from peers.system import System, Task, one_by_one
from peers.workers.with_numpy import fit_with


def make(task: Task) -> System:
    numba.set_num_threads(task.threads)
    compiled = numba.njit(parallel=task.threads > 1, fastmath=True, error_model="numpy")
    make_nll = NLLS[task.model, task.variant](compiled)
    about = f"SVML {'on' if config.USING_SVML else 'off'}"
    return one_by_one(DRAW[task.model], fit_with(task, make_nll), lambda c: c, task.edm, about)


def mass_by_library(compiled: Any) -> Callable[[Columns], Nll]:
    """Let numba compile the densities of numba-stats into one function, as its documents recommend."""

    @compiled
    def total(m: np.ndarray, mu: float, sigma: float, alpha: float, fsig: float) -> float:
        signal = truncnorm.pdf(m, 5.0, 7.0, mu, sigma)
        background = truncexpon.pdf(m, 5.0, 7.0, 0.0, -1 / alpha)
        return -np.sum(np.log(fsig * signal + (1 - fsig) * background))

    return lambda data: lambda x: total(data["m"], *x)


def mass_by_loop(compiled: Any) -> Callable[[Columns], Nll]:
    """Sum in one loop, integrals outside."""

    @compiled
    def total(
        m: np.ndarray, mu: float, scale: float, alpha: float, signal: float, background: float
    ) -> float:
        result = 0.0
        for i in numba.prange(len(m)):
            d = (m[i] - mu) * scale
            result -= np.log(signal * np.exp(-0.5 * d * d) + background * np.exp(alpha * m[i]))
        return result

    def make_nll(data: Columns) -> Nll:
        m = data["m"]

        def nll(x: np.ndarray) -> float:
            mu, sigma, alpha, fsig = x
            signal, background = mass_integrals(mu, sigma, alpha)
            return total(m, mu, 1 / sigma, alpha, fsig / signal, (1 - fsig) / background)

        return nll

    return make_nll


def angles_by_loop(compiled: Any) -> Callable[[Columns], Nll]:
    """Sum in one loop over precomputed terms."""

    @compiled
    def total(rest: np.ndarray, t: np.ndarray, x: np.ndarray) -> float:
        a, b, c, d, e, f, g, h = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
        result = 0.0
        for i in numba.prange(len(rest)):
            head = rest[i] + a * t[0, i] + b * t[1, i] + c * t[2, i] + d * t[3, i]
            result -= np.log(head + e * t[4, i] + f * t[5, i] + g * t[6, i] + h * t[7, i])
        return result

    def make_nll(data: Columns) -> Nll:
        rest, terms = angular_terms(data)
        return lambda x: total(rest, terms, np.asarray(x))

    return make_nll


NLLS: dict[tuple[str, str], Callable[[Any], Callable[[Columns], Nll]]] = {
    ("mass", "library"): mass_by_library,
    ("mass", "loop"): mass_by_loop,
    ("kstarmumu", "loop"): angles_by_loop,
}
