"""The likelihoods by hand: numpy, and numba-stats as its documents have it; fitted by iminuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf, exp, pi, sqrt
from typing import Any

import numpy as np
from iminuit import Minuit

Nll = Callable[[np.ndarray], float]


def mass_integrals(mu: float, sigma: float, alpha: float) -> tuple[float, float]:
    """Return the integrals over [5, 7] of the Gaussian's and the exponential's densities."""
    width = sqrt(2) * sigma
    signal = sqrt(pi / 2) * sigma * (erf((7 - mu) / width) - erf((5 - mu) / width))
    return signal, (exp(7 * alpha) - exp(5 * alpha)) / alpha if alpha != 0 else 2.0


def mass_numpy(data: dict[str, np.ndarray]) -> Nll:
    """Return -sum ln P of the mass model, parameters mu, sigma, alpha, fsig."""
    m = data["m"]

    def nll(x: np.ndarray) -> float:
        mu, sigma, alpha, fsig = x
        signal, background = mass_integrals(mu, sigma, alpha)
        d = (m - mu) / sigma
        density = fsig / signal * np.exp(-0.5 * d * d) + (1 - fsig) / background * np.exp(alpha * m)
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


def angular_terms(data: dict[str, Any], xp: Any = np) -> tuple[Any, Any]:
    """Return what depends on the event only: the density is rest + parameters @ terms. ``xp``: numpy or jax.numpy."""
    ctl, ctk, phi = data["ctl"], data["ctk"], data["phi"]
    sk2, sl2, sk, sl = 1 - ctk**2, 1 - ctl**2, xp.sqrt(1 - ctk**2), xp.sqrt(1 - ctl**2)
    c2l, s2k, s2l = 2 * ctl**2 - 1, 2 * sk * ctk, 2 * sl * ctl
    rest = 0.75 * sk2 + 0.25 * sk2 * c2l
    terms = xp.stack([
        ctk**2 - ctk**2 * c2l - rest, sk2 * sl2 * xp.cos(2 * phi), s2k * s2l * xp.cos(phi), s2k * sl * xp.cos(phi),
        4 / 3 * sk2 * ctl, s2k * sl * xp.sin(phi), s2k * s2l * xp.sin(phi), sk2 * sl2 * xp.sin(2 * phi),
    ])  # fmt: skip
    norm = 9 / (32 * pi)
    return norm * rest, norm * terms


def kstar_numpy(data: dict[str, np.ndarray]) -> Nll:
    """Return -sum ln P of the angular density, terms precomputed by hand."""
    rest, terms = angular_terms(data)

    def nll(x: np.ndarray) -> float:
        with np.errstate(invalid="ignore"):
            return -float(np.sum(np.log(rest + np.asarray(x) @ terms)))

    return nll


PEERS: dict[str, dict[str, Callable[[dict[str, np.ndarray]], Nll]]] = {
    "mass": {"numpy": mass_numpy, "numba-stats": mass_numba_stats},
    "kstarmumu": {"numpy": kstar_numpy},
}


def minuit_fit(
    nll: Nll,
    start: Sequence[float] | np.ndarray,
    limits: Sequence[tuple[float, float]],
    *,
    gradient: Callable[[np.ndarray], np.ndarray] | None = None,
    steps: Sequence[float] | None = None,
    strategy: int = 1,
    tolerance: float = 0.1,
    hesse: bool = True,
) -> Minuit:
    """Fit as users do: Migrad, and Hesse unless the Hessian comes from elsewhere; derivatives numeric if not given."""
    minuit = Minuit(nll, start, grad=gradient)
    minuit.errordef = Minuit.LIKELIHOOD
    minuit.strategy, minuit.tol = strategy, tolerance
    minuit.limits = limits
    if steps is not None:
        minuit.errors = steps
    minuit.migrad()
    if hesse:
        minuit.hesse()
    return minuit
