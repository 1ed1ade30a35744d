"""Named models that every backend is tried on, each with data and parameter values that never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import morefit as mf

Columns = dict[str, np.ndarray[Any, Any]]
Entry = tuple[mf.Pdf, Columns, np.ndarray[Any, Any]]
MANY_GAUSSIANS = 20


def around(values: np.ndarray[Any, Any], count: int, seed: int = 3) -> np.ndarray[Any, Any]:
    """Return so many parameter sets, the values themselves and others within two per cent of them."""
    moved = values * (1 + 0.02 * np.random.default_rng(seed).uniform(-1, 1, (count, len(values))))
    moved[0] = values
    return moved


def truncated(draw: Callable[[int], np.ndarray[Any, Any]], low: float, high: float, n: int) -> np.ndarray:
    """Draw until n numbers lie in the range."""
    found = np.empty(0)
    while len(found) < n:
        drawn = draw(2 * n + 16)
        found = np.concatenate([found, drawn[(drawn > low) & (drawn < high)]])
    return found[:n]


def at(model: mf.Pdf, **values: float) -> np.ndarray[Any, Any]:
    """Put values given by name into the order of the parameters."""
    assert set(values) == {p.name for p in model.parameters}
    return np.array([values[p.name] for p in model.parameters])


def mass(n: int = 1000, seed: int = 1) -> Entry:
    """A Gaussian signal over an exponential background: four parameters."""
    rng = np.random.default_rng(seed)
    m = mf.Observable("m", 5.0, 7.0)
    mu, sigma = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
    fsig, alpha = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
    model = mf.Sum([mf.Gaussian(m, mu, sigma), mf.Exponential(m, alpha)], fractions=[fsig])
    signal = truncated(lambda k: rng.normal(5.28, 0.06, k), 5.0, 7.0, n)
    background = truncated(lambda k: 5.0 + rng.exponential(1.0, k), 5.0, 7.0, n)
    data = {"m": np.where(rng.random(n) < 0.3, signal, background)}
    return model, data, at(model, mu=5.29, sigma=0.063, fsig=0.32, alpha=-0.93)


def kstarmumu(n: int = 1000, seed: int = 2) -> Entry:
    """The angular density of B0 -> K*0 mu+ mu-: eight parameters, polynomial in all of them."""
    rng = np.random.default_rng(seed)
    ctl, ctk = mf.Observable("ctl", -1.0, 1.0), mf.Observable("ctk", -1.0, 1.0)
    phi = mf.Observable("phi", -np.pi, np.pi)
    names = ("FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9")
    values = np.array([0.6, -0.02, 0.12, -0.15, 0.1, 0.03, -0.04, 0.05])
    parameters = [mf.Parameter(name, value, -1.0, 1.0) for name, value in zip(names, values, strict=True)]
    data = {
        "ctl": rng.uniform(-0.98, 0.98, n),
        "ctk": rng.uniform(-0.98, 0.98, n),
        "phi": rng.uniform(-np.pi, np.pi, n),
    }
    return mf.physics.KstarMuMu(ctl, ctk, phi, *parameters), data, values


def gaussian(n: int = 1000, seed: int = 3) -> Entry:
    """One Gaussian: its logarithm needs no logarithm."""
    rng = np.random.default_rng(seed)
    x = mf.Observable("x", -5.0, 5.0)
    model = mf.Gaussian(x, mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.0, 0.1, 3.0))
    return model, {"x": truncated(lambda k: rng.normal(0.1, 1.0, k), -5, 5, n)}, np.array([0.15, 1.1])


def crystal_ball(n: int = 1000, seed: int = 4) -> Entry:
    """A Crystal Ball over an exponential: a choice between two branches in every event."""
    rng = np.random.default_rng(seed)
    m = mf.Observable("m", 5.0, 6.0)
    mu, sigma = mf.Parameter("mu", 5.5, 5.0, 6.0), mf.Parameter("sigma", 0.05, 0.01, 0.2)
    tail, power = mf.Parameter("tail", 1.5, 0.5, 5.0), mf.Parameter("power", 3.0, 1.1, 10.0)
    fraction, slope = mf.Parameter("fraction", 0.6, 0.0, 1.0), mf.Parameter("slope", -1.0, -5.0, 5.0)
    model = mf.Sum(
        [mf.CrystalBall(m, mu, sigma, tail, power), mf.Exponential(m, slope)], fractions=[fraction]
    )
    peak = truncated(lambda k: 5.5 + 0.05 * rng.standard_t(3, k), 5.0, 6.0, n)
    flat = rng.uniform(5.0, 6.0, n)
    data = {"m": np.where(rng.random(n) < 0.6, peak, flat)}
    return model, data, at(model, mu=5.49, sigma=0.052, tail=1.4, power=3.2, fraction=0.55, slope=-0.8)


def extended(n: int = 1000, seed: int = 5) -> Entry:
    """The mass model with yields: a term is added once for each set."""
    model, data, _ = mass(n, seed)
    yields = [mf.Parameter("signal", 300.0, 0.0, 1e6), mf.Parameter("background", 700.0, 0.0, 1e6)]
    model = mf.Sum(model.pdfs, yields=yields)
    return model, data, at(model, mu=5.29, sigma=0.063, alpha=-0.93, signal=310.0, background=680.0)


def product(n: int = 1000, seed: int = 6) -> Entry:
    """Two densities in two observables: two logarithms in every event."""
    rng = np.random.default_rng(seed)
    model, data, values = mass(n, seed)
    c = mf.Observable("c", -1.0, 1.0)
    angle = mf.Polynomial(c, [mf.Parameter("c1", 0.2, -1.0, 1.0), mf.Parameter("c2", -0.3, -1.0, 1.0)])
    data |= {"c": rng.uniform(-1, 1, n)}
    return mf.Product([model, angle]), data, np.array([*values, 0.25, -0.35])


def numerical(n: int = 1000, seed: int = 7) -> Entry:
    """A density whose integral has no formula here, so that a rule is summed for every set first."""
    rng = np.random.default_rng(seed)
    x = mf.Observable("x", 0.0, 3.0)
    width, depth = mf.Parameter("width", 1.0, 0.5, 2.0), mf.Parameter("depth", 0.4, 0.0, 0.9)
    formula = np.exp(-(x**2) / width) * (1 + depth * np.sin(3 * x * width))
    return mf.Density(formula, [x]), {"x": rng.uniform(0, 3, n)}, np.array([1.1, 0.35])


def many(n: int = 1000, seed: int = 8, gaussians: int = MANY_GAUSSIANS) -> Entry:
    """Gaussians over an exponential, sixty-one parameters if there are twenty: pairs are summed in tiles."""
    rng = np.random.default_rng(seed)
    x = mf.Observable("x", 0.0, 10.0)
    places = np.linspace(0.5, 9.5, gaussians)
    peaks = [
        mf.Gaussian(x, mf.Parameter(f"mu{k}", place, 0.0, 10.0), mf.Parameter(f"sigma{k}", 0.2, 0.05, 1.0))
        for k, place in enumerate(places)
    ]
    fractions = [mf.Parameter(f"f{k}", 0.02, 0.0, 1.0) for k in range(gaussians)]
    model = mf.Sum([*peaks, mf.Exponential(x, mf.Parameter("slope", -0.1, -1.0, 1.0))], fractions=fractions)
    values = np.array([p.start for p in model.parameters]) * rng.uniform(0.98, 1.02, 3 * gaussians + 1)
    return model, {"x": rng.uniform(0, 10, n)}, values


def squares(n: int = 1000, seed: int = 9) -> Entry:
    """A sum of two squares over a floor, fifteen parameters: the Hessian is three outer products and a few terms."""
    rng = np.random.default_rng(seed)
    x = mf.Observable("x", 0.0, 1.0)
    size = mf.Parameter("size", 0.3, -1.0, 1.0)
    real = [np.exp(size), *(mf.Parameter(f"re{k}", 0.2 * (-1) ** k, -2.0, 2.0) for k in range(1, 8))]
    imaginary = [mf.Parameter(f"im{k}", 0.3 * (-1) ** (k // 2), -2.0, 2.0) for k in range(7)]
    sums = [sum(c * x**k for k, c in enumerate(side)) for side in (real, imaginary)]
    integrals = [
        c * d / (j + k + 1)
        for side in (real, imaginary)
        for j, c in enumerate(side)
        for k, d in enumerate(side)
    ]
    formula = 0.5 * (sums[0] * sums[0] + sums[1] ** 2) + 0.1
    model = mf.Density(formula, x, integral=0.5 * sum(integrals) + 0.1)
    values = np.array([p.start for p in model.parameters]) * rng.uniform(0.9, 1.1, 15)
    return model, {"x": rng.uniform(0, 1, n)}, values


ZOO: dict[str, Callable[..., Entry]] = {
    "mass": mass,
    "kstarmumu": kstarmumu,
    "gaussian": gaussian,
    "crystal ball": crystal_ball,
    "extended": extended,
    "product": product,
    "numerical": numerical,
    "many": many,
    "squares": squares,
}
