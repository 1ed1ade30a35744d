"""The same likelihoods by hand: numpy, and iminuit with numba-stats, the usual recipe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from iminuit import Minuit

Nll = Callable[[np.ndarray], float]


def mass_numpy(data: dict[str, np.ndarray]) -> Nll:
    """Return -sum ln P of the mass model, parameters mu, sigma, alpha, fsig."""
    from math import erf, exp, sqrt

    m = data["m"]

    def nll(x: np.ndarray) -> float:
        mu, sigma, alpha, fsig = x
        norm = (
            0.5
            * (erf((7 - mu) / (sqrt(2) * sigma)) - erf((5 - mu) / (sqrt(2) * sigma)))
            * sqrt(2 * np.pi)
            * sigma
        )
        background = (exp(7 * alpha) - exp(5 * alpha)) / alpha if alpha != 0 else 2.0
        d = (m - mu) / sigma
        density = fsig / norm * np.exp(-0.5 * d * d) + (1 - fsig) / background * np.exp(alpha * m)
        return -float(np.sum(np.log(density)))

    return nll


def mass_numba_stats(data: dict[str, np.ndarray]) -> Nll:
    """Return the same with truncated densities of numba-stats."""
    from numba_stats import truncexpon, truncnorm

    m = data["m"]

    def nll(x: np.ndarray) -> float:
        mu, sigma, alpha, fsig = x
        signal = truncnorm.pdf(m, 5.0, 7.0, mu, sigma)
        background = truncexpon.pdf(m, 5.0, 7.0, 0.0, -1 / alpha)
        return -float(np.sum(np.log(fsig * signal + (1 - fsig) * background)))

    return nll


def kstar_numpy(data: dict[str, np.ndarray]) -> Nll:
    """Return -sum ln P of the angular density, terms precomputed by hand."""
    ctl, ctk, phi = data["ctl"], data["ctk"], data["phi"]
    sk2, sl2, sk, sl = 1 - ctk**2, 1 - ctl**2, np.sqrt(1 - ctk**2), np.sqrt(1 - ctl**2)
    c2l, s2k, s2l = 2 * ctl**2 - 1, 2 * sk * ctk, 2 * sl * ctl
    rest = 0.75 * sk2 + 0.25 * sk2 * c2l
    terms = np.array([
        ctk**2 - ctk**2 * c2l - rest, sk2 * sl2 * np.cos(2 * phi), s2k * s2l * np.cos(phi), s2k * sl * np.cos(phi),
        4 / 3 * sk2 * ctl, s2k * sl * np.sin(phi), s2k * s2l * np.sin(phi), sk2 * sl2 * np.sin(2 * phi),
    ])  # fmt: skip

    def nll(x: np.ndarray) -> float:
        with np.errstate(invalid="ignore"):
            return -float(np.sum(np.log(9 / (32 * np.pi) * (rest + x @ terms))))

    return nll


PEERS: dict[str, dict[str, Callable[[dict[str, np.ndarray]], Nll]]] = {
    "mass": {"numpy": mass_numpy, "numba-stats": mass_numba_stats},
    "kstarmumu": {"numpy": kstar_numpy},
}


def minuit_fit(nll: Nll, start: np.ndarray, limits: list[tuple[float, float]]) -> Minuit:
    """Fit as users do: Migrad and Hesse with numeric derivatives."""
    minuit = Minuit(nll, start)
    minuit.errordef = Minuit.LIKELIHOOD
    minuit.limits = limits
    minuit.migrad()
    minuit.hesse()
    return minuit
