"""Points at which backgrounds are tested."""

import mpmath as mp

import morefit as mf
from shape_rows import Point, around, quadrature_row
from tolerances import NUMERICAL


def named(label, low, high, at, units, scale=1.0, **values):
    return Point(label, low, high, values, at, units, scale)


def argus(x, end, c, power):
    u = 1 - (x / end) ** 2
    return mp.log(x) + power * mp.log(u) + c * u if u > 0 else -mp.inf


def phase_space(x, lower, upper):
    return mp.log(x - lower) / 2 + 2 * mp.log(upper - x) if lower < x < upper else -mp.inf


def threshold(x, start, a, b, c):
    if x <= start:
        return -mp.inf
    return mp.log((1 - mp.exp(-(x - start) / c)) * (x / start) ** a + b * (x / start - 1))


def q_gaussian(x, mu, sigma, q):
    half = ((x - mu) / sigma) ** 2 / 2
    inside = 1 + (q - 1) * half
    if q == 1:
        return -half
    return -mp.log(inside) / (q - 1) if inside > 0 else -mp.inf


def tsallis(x, mass, temperature, n):
    return mp.log(x) - n * mp.log(1 + (mp.sqrt(x**2 + mass**2) - mass) / (n * temperature))


def series(basis, low, high, start=-1):
    """Return the logarithm of a series on a fixed range, which the reference of a part of it shares."""

    def log_density(x, *c):
        t = (x - low) / (high - low) * (1 - start) + start
        return mp.log(basis(t, c))

    return log_density


def bernstein(t, c):
    n = len(c) - 1
    return mp.fsum(ck * mp.binomial(n, k) * t**k * (1 - t) ** (n - k) for k, ck in enumerate(c))


def coefficients(label, at, *c, scale=1.0):
    return Point(label, 5.0, 7.0, {f"c{k}": ck for k, ck in enumerate(c, 1)}, at, (1.0,) * len(c), scale)


ROWS = {
    "Argus": quadrature_row(
        mf.shapes.Argus,
        argus,
        [
            named("end point outside", 5.0, 7.0, 6.0, (1.0, 10.0, 1.0), 10.0, end_point=7.5, c=-10.0, power=0.5),
            named("end point inside", 5.0, 7.0, 6.0, (1.0, 10.0, 1.0), 100.0, end_point=6.8, c=-10.0, power=0.5),
            named("rising", 5.0, 7.0, 6.0, (1.0, 10.0, 1.0), 10.0, end_point=7.2, c=3.0, power=1.5),
        ],
        lambda end, c, power: (end,),
        lengths=("end_point",),
        tolerance=NUMERICAL,
        fit=False,
    ),
    "PhaseSpace": quadrature_row(
        lambda x, lower, upper: mf.shapes.PhaseSpace(x, lower, upper, 2, 4),
        phase_space,
        [
            named("ends outside", 5.0, 7.0, 6.0, (1.0, 1.0), 10.0, lower=4.5, upper=7.5),
            named("ends inside", 5.0, 7.0, 6.0, (1.0, 1.0), 10.0, lower=5.2, upper=6.9),
        ],
        lambda lower, upper: (lower, upper),
        lengths=("lower", "upper"),
        tolerance=NUMERICAL,
        fit=False,
    ),
    "DstarThreshold": quadrature_row(
        mf.shapes.DstarThreshold,
        threshold,
        [
            named("outside", 5.0, 7.0, 6.0, (1.0, 1.0, 1.0, 1.0), 10.0, threshold=4.5, a=-2.0, b=0.1, c=0.7),
            named("inside", 5.0, 7.0, 6.0, (1.0, 1.0, 1.0, 1.0), 10.0, threshold=5.4, a=-2.0, b=0.1, c=0.7),
        ],
        lambda start, *_: (start,),
        lengths=("threshold", "c"),
        tolerance=NUMERICAL,
        fit=False,
    ),
    "CMSShape": quadrature_row(
        mf.shapes.CMSShape,
        lambda x, alpha, beta, gamma: mp.log(mp.erfc(beta * (alpha - x))) - gamma * x,
        [
            named("ordinary", 0.0, 10.0, 4.0, (1.0, 1.0, 1.0), 10.0, alpha=3.0, beta=0.8, gamma=0.3),
            named("rising", 0.0, 10.0, 4.0, (1.0, 1.0, 1.0), 10.0, alpha=3.0, beta=0.8, gamma=-0.3),
            named("a flat exponential", 0.0, 10.0, 4.0, (1.0, 1.0, 1.0), 10.0, alpha=3.0, beta=0.8, gamma=0.0),
            named("a steep threshold", 0.0, 10.0, 4.0, (0.1, 20.0, 1.0), 10.0, alpha=3.0, beta=20.0, gamma=0.3),
        ],
        lambda alpha, beta, gamma: around(alpha, 1 / beta),
        tolerance=NUMERICAL,
    ),
    "Fermi": quadrature_row(
        mf.shapes.Fermi,
        lambda x, mu, width: -mp.log(1 + mp.exp((x - mu) / width)),
        [
            named("down", 5.0, 7.0, 6.0, (0.2, 0.2), 10.0, mu=5.8, width=0.2),
            named("up", 5.0, 7.0, 6.0, (0.2, 0.2), 10.0, mu=5.8, width=-0.2),
            named("sharp", 5.0, 7.0, 5.79, (0.01, 0.01), 100.0, mu=5.8, width=1e-3),
            named("smooth", 5.0, 7.0, 5.79, (20.0, 20.0), 100.0, mu=5.8, width=20.0),
            named("all in the tail", 5.0, 7.0, 5.79, (0.1, 0.1), 1e3, mu=3.8, width=0.1),
            named("a step at the end of the range", 5.0, 7.0, 6.0, (0.1, 0.1), 10.0, mu=7.0, width=0.1),
            named("an event on the step", 5.0, 7.0, 5.8, (0.1, 0.1), 10.0, mu=5.8, width=0.2),
        ],
        lambda mu, width: around(mu, abs(width)),
        lengths=("mu", "width"),
    ),
    "QGaussian": quadrature_row(
        mf.shapes.QGaussian,
        q_gaussian,
        [
            named("heavy tails", 5.0, 7.0, 6.0, (0.1, 0.1, 1.0), 10.0, mu=5.8, sigma=0.1, q=1.5),
            named("a Gaussian", 5.0, 7.0, 6.0, (0.1, 0.1, 1.0), 100.0, mu=5.8, sigma=0.1, q=1.0 + 1e-4),
            named("with ends", 5.0, 7.0, 6.0, (0.3, 0.3, 1.0), 1e3, mu=5.8, sigma=0.3, q=0.2),
        ],
        lambda mu, sigma, q: (*around(mu, sigma), *(mu + s * sigma * mp.sqrt(2 / abs(1 - q)) for s in (-1, 1) if q != 1)),
        lengths=("mu", "sigma"),
        tolerance=NUMERICAL,
    ),
    "Tsallis": quadrature_row(
        mf.shapes.Tsallis,
        tsallis,
        [
            named("from zero", 0.0, 10.0, 1.0, (1.0, 1.0, 1.0), 100.0, mass=0.5, temperature=0.6, n=7.0),
            named("a part", 1.0, 3.0, 1.3, (1.0, 1.0, 1.0), 100.0, mass=0.5, temperature=0.6, n=2.0),
            named("steep", 0.0, 10.0, 1.0, (1.0, 1.0, 1.0), 1e3, mass=1.0, temperature=0.2, n=50.0),
        ],
        lambda mass, temperature, n: (temperature, 3 * temperature, 10 * temperature),
        lengths=("mass", "temperature"),
        fit=False,
    ),
    "Chebyshev": quadrature_row(
        lambda x, *c: mf.shapes.Chebyshev(x, c),
        series(lambda t, c: 1 + mp.fsum(ck * mp.chebyt(k, t) for k, ck in enumerate(c, 1)), 5, 7),
        [coefficients("two", 6.3, -0.3, 0.1), coefficients("four", 6.3, -0.3, 0.1, 0.05, -0.2)],
        lengths=(),
    ),
    "Legendre": quadrature_row(
        lambda x, *c: mf.shapes.Legendre(x, c),
        series(lambda t, c: 1 + mp.fsum(ck * mp.legendre(k, t) for k, ck in enumerate(c, 1)), 5, 7),
        [coefficients("two", 6.3, -0.3, 0.1), coefficients("four", 6.3, -0.3, 0.1, 0.05, -0.2)],
        lengths=(),
    ),
    "Bernstein": quadrature_row(
        lambda x, *c: mf.shapes.Bernstein(x, [1, *c]),
        series(lambda t, c: bernstein(t, (1, *c)), 5, 7, 0),
        [coefficients("one", 6.3, 0.6), coefficients("three", 6.3, 0.6, 2.0, 0.4)],
        lengths=(),
    ),
    "ExponentialOfPolynomial": quadrature_row(
        lambda x, *c: mf.shapes.ExponentialOfPolynomial(x, c),
        series(lambda t, c: mp.exp(mp.fsum(ck * t**k for k, ck in enumerate(c, 1))), 5, 7),
        [coefficients("two", 6.3, -1.0, 0.4), coefficients("steep", 6.3, -20.0, 10.0, 3.0, scale=100.0)],
        lambda *_: (5.1, 5.5, 6),
        lengths=(),
        tolerance=NUMERICAL,
    ),
}  # fmt: skip
