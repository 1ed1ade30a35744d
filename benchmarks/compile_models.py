"""Models whose first use is timed: from the paper's two to amplitudes with 62 couplings. Data need not follow them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import morefit as mf
from models import kstar_model
from morefit.cli import mass_model

Data = dict[str, np.ndarray]
M = mf.Observable("m", 5.0, 7.0)


def crystal_balls(count: int, free_tails: bool) -> mf.Pdf:
    """Return Crystal Balls with a common mean on an exponential, extended; tails fixed or their turns floating."""
    mean, slope = mf.Parameter("mu", 5.28, 5.2, 5.4), mf.Parameter("slope", -1.0, -5.0, 5.0)
    parts: list[mf.Pdf] = []
    yields = [mf.Parameter(f"n{k}", 500.0, 0.0, 1e5) for k in range(count + 1)]
    for k in range(count):
        width = mf.Parameter(f"sigma{k}", 0.02 * (k + 1), 0.005, 0.2)
        turn = mf.Parameter(f"alpha{k}", 1.5, 0.5, 4.0) if free_tails else 1.5 - 0.1 * k
        shift = 0.0 if k == 0 or not free_tails else mf.Parameter(f"shift{k}", 0.0, -0.1, 0.1)
        parts.append(mf.CrystalBall(M, mean + shift, width, turn if k != 1 else -turn, 3.0 + k))
    return mf.Sum([*parts, mf.Exponential(M, slope)], yields=yields)


def johnson_threshold() -> mf.Pdf:
    """Return a Johnson S_U and a threshold, both integrated by quadrature."""
    x = mf.Observable("x", 0.0, 10.0)
    mu, width = mf.Parameter("mu", 5.0, 4.0, 6.0), mf.Parameter("width", 0.5, 0.1, 2.0)
    gamma, delta = mf.Parameter("gamma", 0.1, -2.0, 2.0), mf.Parameter("delta", 1.5, 0.5, 4.0)
    power, slope = mf.Parameter("power", 0.8, 0.2, 3.0), mf.Parameter("slope", -0.3, -2.0, 0.0)
    z = (x - mu) / width
    w = gamma + delta * np.log(z + np.sqrt(z**2 + 1))
    signal = mf.Density(np.exp(-0.5 * w**2) / np.sqrt(z**2 + 1), x)
    threshold = mf.Density((x + 0.1) ** power * np.exp(slope * x), x)
    return mf.Sum([signal, threshold], fractions=[mf.Parameter("fsig", 0.4, 0.0, 1.0)])


def gaussian_fractions(count: int) -> mf.Pdf:
    """Return fixed Gaussians whose fractions float."""
    x = mf.Observable("x", 0.0, 10.0)
    parts = [mf.Gaussian(x, 10 * (k + 0.5) / count, 0.4) for k in range(count)]
    return mf.Sum(parts, fractions=[mf.Parameter(f"f{k}", 1 / count, 0.0, 1.0) for k in range(count - 1)])


def gaussian_sum(count: int, free: bool) -> mf.Pdf:
    """Return Gaussians with yields, and with means and widths too if free; common ones otherwise."""
    x = mf.Observable("x", 0.0, 10.0)
    scale = mf.Parameter("scale", 1.0, 0.5, 2.0)
    shift = mf.Parameter("shift", 0.0, -0.5, 0.5)
    parts = []
    for k in range(count):
        place = 10 * (k + 0.5) / count
        mean = mf.Parameter(f"mu{k}", place, place - 0.3, place + 0.3) if free else place + shift
        width = mf.Parameter(f"sigma{k}", 0.3, 0.05, 1.0) if free else 0.3 * scale
        parts.append(mf.Gaussian(x, mean, width))
    if free:
        parts.append(mf.Exponential(x, mf.Parameter("slope", -0.2, -2.0, 1.0)))
    yields = [mf.Parameter(f"n{k}", 100.0, 0.0, 1e5) for k in range(len(parts))]
    return mf.Sum(parts, yields=yields)


def forty_terms() -> mf.Pdf:
    """Return a sum of forty terms in one formula: products of powers of two observables."""
    x, y = mf.Observable("x", 0.0, 1.0), mf.Observable("y", 0.0, 1.0)
    powers = [(i, j) for i in range(9) for j in range(9) if i + j < 9][1:41]
    terms = [mf.Parameter(f"c{i}{j}", 0.1, 0.0, 5.0) * x**i * y**j for i, j in powers]
    integral = [mf.Parameter(f"c{i}{j}", 0.1, 0.0, 5.0) / ((i + 1) * (j + 1)) for i, j in powers]
    return mf.Density(1 + sum(terms), [x, y], integral=1 + sum(integral))


def resonance(x: object, y: object, k: int) -> tuple[object, object]:
    """Return the real and the imaginary part of a Breit-Wigner in one of two observables, times a polynomial."""
    s, other = (x, y) if k % 2 else (y, x)
    mass, width = 0.15 + 0.7 * ((0.37 * k) % 1.0), 0.05 + 0.02 * (k % 3)
    gap = mass**2 - s * s
    angle = 1 - 2 * other if k % 3 == 1 else 1.0
    size = angle / (gap * gap + (mass * width) ** 2) * (mass * width)
    return gap * size, mass * width * size


def amplitudes(count: int) -> mf.Pdf:
    """Return the square of a sum of amplitudes with complex couplings, the first of them fixed."""
    x, y = mf.Observable("x", 0.0, 1.0), mf.Observable("y", 0.0, 1.0)
    couplings: list[tuple[object, object]] = [(1.0, 0.0)]
    for k in range(1, count):
        phase = 2.4 * k
        couplings.append(
            (
                mf.Parameter(f"re{k}", np.cos(phase), -5.0, 5.0),
                mf.Parameter(f"im{k}", np.sin(phase), -5.0, 5.0),
            )
        )
    shapes = [resonance(x, y, k) for k in range(count)]
    pairs = list(zip(couplings, shapes, strict=True))
    re = sum(c[0] * a[0] - c[1] * a[1] for c, a in pairs)
    im = sum(c[0] * a[1] + c[1] * a[0] for c, a in pairs)
    return mf.Density(re * re + im * im, [x, y], integral=quadratic_form(couplings, overlaps(count)))


def overlaps(count: int) -> np.ndarray:
    """Return the integrals of the products of amplitudes, by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u, w = (nodes + 1) / 2, weights / 2
    x, y = (g.ravel() for g in np.meshgrid(u, u))
    a = np.array(
        [np.broadcast_to(re + 1j * im, x.shape) for re, im in (resonance(x, y, k) for k in range(count))]
    )
    return (a * np.outer(w, w).ravel()) @ a.conj().T


def quadratic_form(couplings: list[tuple[object, object]], matrix: np.ndarray) -> object:
    """Return the sum of c_i c_j* M_ij, which is real."""
    terms = []
    for i, (a, b) in enumerate(couplings):
        terms.append((a * a + b * b) * float(matrix[i, i].real))
        for j, (c, d) in enumerate(couplings[:i]):
            real, imaginary = 2 * float(matrix[i, j].real), 2 * float(matrix[i, j].imag)
            terms.append((a * c + b * d) * real - (b * c - a * d) * imaginary)
    return sum(terms)


def kstar_with_mass() -> mf.Pdf:
    """Return the angular density times a mass peak, and a background that is flat in the angles times a slope."""
    angular = kstar_model()
    mass = mf.Sum(
        [
            mf.CrystalBall(
                M, mf.Parameter("mu", 5.28, 5.2, 5.4), mf.Parameter("sigma", 0.03, 0.01, 0.1), 1.5, 3.0
            ),
            mf.Gaussian(M, mf.Parameter("mu", 5.28, 5.2, 5.4), mf.Parameter("sigma2", 0.06, 0.01, 0.2)),
        ],
        fractions=[mf.Parameter("core", 0.7, 0.0, 1.0)],
    )
    flat = mf.Product([mf.Uniform(o) for o in angular.observables])
    background = mf.Product([flat, mf.Exponential(M, mf.Parameter("slope", -1.0, -5.0, 5.0))])
    return mf.Sum([mf.Product([angular, mass]), background], fractions=[mf.Parameter("fsig", 0.6, 0.0, 1.0)])


COMPILE_MODELS: dict[str, Callable[[], mf.Pdf]] = {
    "mass": mass_model,
    "kstarmumu": kstar_model,
    "two Crystal Balls": lambda: crystal_balls(2, free_tails=False),
    "three Crystal Balls": lambda: crystal_balls(3, free_tails=True),
    "Johnson and threshold": johnson_threshold,
    "angles and mass": kstar_with_mass,
    "30 fractions": lambda: gaussian_fractions(30),
    "forty terms": forty_terms,
    "40 Gaussians": lambda: gaussian_sum(40, free=False),
    "62 parameters": lambda: gaussian_sum(20, free=True),
    "14 couplings": lambda: amplitudes(8),
    "30 couplings": lambda: amplitudes(16),
    "62 couplings": lambda: amplitudes(32),
}


def flat_data(model: mf.Pdf, events: int) -> Data:
    """Draw events that are uniform in every observable."""
    rng = np.random.default_rng(1)
    return {o.name: rng.uniform(o.low, o.high, events) for o in model.observables}
