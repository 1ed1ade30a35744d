"""Densities as users write them in a notebook: plain formulas without an integral, with values near and far.

A row is a function: its arguments are observables (named in ``ranges``) and parameters, whose defaults are
(start, low, high). ``part`` is a second set of ranges, ``far`` a point far from the start values, ``truth`` the point
that events for a fit are drawn at, ``edges`` says where the formula bends, breaks or has a peak: a judge may know.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from scipy.special import erfc

import morefit as mf

Ranges = Mapping[str, tuple[float, float]]
ROWS: dict[str, "Row"] = {}


@dataclass(frozen=True)
class Row:
    """A formula, where it is used, and what a judge must know of it."""

    formula: Callable
    ranges: Ranges
    part: Ranges
    far: Mapping[str, float]
    truth: Mapping[str, float]
    edges: Callable[[SimpleNamespace], list] = lambda p: []
    fixed: tuple[str, ...] = ()  # parameters that do not float
    loose: tuple[
        str, ...
    ] = ()  # parameters whose errors no parabola describes, such as a moving end: fixed in fits
    as_class: bool = False  # written as a class of the user's own
    order: int = 2  # of the derivatives that are looked at
    singular: bool = False  # a root or a pole, or too many panels, for plain quadrature with many digits

    @property
    def name(self) -> str:
        return self.formula.__name__

    @cached_property
    def parameters(self) -> dict[str, tuple[float, float, float]]:
        """Start value and limits by name."""
        arguments = inspect.signature(self.formula).parameters
        return {n: a.default for n, a in arguments.items() if n not in self.ranges}

    @property
    def floating(self) -> list[str]:
        return [n for n in self.parameters if n not in self.fixed]

    def point(self, which: str) -> dict[str, float]:
        """Return all parameter values at the start, far from it, or at the truth of a fit."""
        start = {n: float(v[0]) for n, v in self.parameters.items()}
        return start | {"start": {}, "far": dict(self.far), "truth": dict(self.truth)}[which]

    def box(self, which: str) -> Ranges:
        return {"full": self.ranges, "part": self.part}[which]

    def model(
        self, which: str = "full", fixed: tuple[str, ...] = (), start: Mapping[str, float] = {}
    ) -> mf.Pdf:
        """Return the density over its full or partial ranges; its integral is the library's to find."""
        observables = [mf.Observable(n, *r) for n, r in self.box(which).items()]
        parameters = [
            mf.Parameter(n, start.get(n, v[0]), v[1], v[2], fixed=n in self.fixed or n in fixed)
            for n, v in self.parameters.items()
        ]
        if self.as_class:
            return Own(self.formula, observables, parameters)
        return mf.Density(self.formula(*observables, *parameters), observables)

    def known(self, which: str = "full") -> mf.Pdf:
        """Return the same density with an integral of one: what is left of a likelihood are its events."""
        model = self.model(which)
        return mf.Density(model.density(), model.observables, integral=1.0)


class Own(mf.Pdf):
    """A formula as a class of the user's own."""

    def __init__(self, formula, observables, parameters):
        self.formula, self.given, self.needed = formula, tuple(observables), tuple(parameters)

    def density(self):
        return self.formula(*self.given, *self.needed)


def row(ranges, part, far, truth, **options):
    """Enter a formula into the table; ranges of a single observable ``x`` are a pair."""

    def enter(formula):
        boxes = [r if isinstance(r, dict) else {"x": r} for r in (ranges, part)]
        ROWS[formula.__name__] = Row(formula, *boxes, far, truth, **options)
        return formula

    return enter


def around(place, width):
    """Return break points about a peak, ever farther apart."""
    return [place + s * width * 4**k for k in range(-1, 9) for s in (-1, 1)] + [place]


def peak(p):
    return around(p.mu, p.sigma)


# ------------------------------------------------------------------------- smooth peaks


@row(
    (-10.0, 10.0), (-2.0, 7.0), dict(mu=6.1, sigma=0.05, nu=1.1), dict(mu=-1.0, sigma=0.6, nu=2.5), edges=peak
)
def student_t(x, mu=(0.5, -9, 9), sigma=(1.0, 0.01, 20), nu=(3.0, 0.5, 50)):
    return (1 + ((x - mu) / sigma) ** 2 / nu) ** (-(nu + 1) / 2)


@row(
    (-10.0, 10.0), (-9.0, 3.0), dict(xi=-6.0, lam=0.3, gamma=-2.0, delta=3.0),
    dict(xi=1.5, lam=1.5, gamma=0.7, delta=1.3), edges=lambda p: around(p.xi, p.lam / p.delta),
)  # fmt: skip
def johnson_su(x, xi=(0.0, -9, 9), lam=(1.0, 0.05, 20), gamma=(0.3, -5, 5), delta=(1.2, 0.2, 10)):
    z = (x - xi) / lam
    return np.exp(-0.5 * (gamma + delta * np.log(z + np.sqrt(z**2 + 1))) ** 2) / np.sqrt(z**2 + 1)


@row(
    (5.0, 5.6), (5.1, 5.5), dict(m=5.45, sl=0.002, sr=0.004, al=0.3, ar=0.05),
    dict(m=5.29, sl=0.025, sr=0.015, al=0.12, ar=0.16), edges=lambda p: around(p.m, p.sl) + around(p.m, p.sr),
)  # fmt: skip
def cruijff(
    x, m=(5.28, 5.0, 5.6), sl=(0.02, 0.001, 0.2), sr=(0.02, 0.001, 0.2), al=(0.1, 0, 1), ar=(0.1, 0, 1)
):
    s = mf.where(x < m, sl, sr)
    a = mf.where(x < m, al, ar)
    return np.exp(-((x - m) ** 2) / (2 * s**2 + a * (x - m) ** 2))


@row(
    (-10.0, 10.0), (-8.0, 4.0), dict(mu=3.0, sl=0.05, sr=4.0), dict(mu=-0.7, sl=1.4, sr=0.6),
    edges=lambda p: around(p.mu, p.sl) + around(p.mu, p.sr), as_class=True,
)  # fmt: skip
def bifurcated_gaussian(x, mu=(0.0, -9, 9), sl=(1.0, 0.01, 20), sr=(1.5, 0.01, 20)):
    return np.exp(-0.5 * ((x - mu) / mf.where(x < mu, sl, sr)) ** 2)


@row(
    (0.0, 10.0),
    (2.0, 9.0),
    dict(m=7.9, gamma=0.03),
    dict(m=4.0, gamma=0.8),
    edges=lambda p: around(p.m, p.gamma),
)
def breit_wigner(x, m=(5.0, 0, 10), gamma=(1.0, 0.001, 20)):
    return 1 / ((x - m) ** 2 + gamma**2 / 4)


@row(
    (0.0, 10.0), (2.0, 9.0), dict(m=8.12345, gamma=0.0001, f=0.2), dict(m=5.003, gamma=0.002, f=0.6),
    edges=lambda p: around(p.m, p.gamma),
)  # fmt: skip
def needle_breit_wigner(x, m=(5.0, 4.9, 9), gamma=(0.001, 0.00005, 0.1), f=(0.5, 0, 1)):
    return f * gamma / 2 / np.pi / ((x - m) ** 2 + gamma**2 / 4) + (1 - f) / 10


@row(
    (0.3, 3.0), (0.5, 2.0), dict(m=1.27, gamma=0.004), dict(m=0.8, gamma=0.17),
    edges=lambda p: around(p.m, p.gamma), as_class=True,
)  # fmt: skip
def relativistic_breit_wigner(x, m=(0.77, 0.3, 3), gamma=(0.15, 0.001, 1)):
    return x * m * gamma / ((x**2 - m**2) ** 2 + m**2 * gamma**2)


HERMITE = np.polynomial.hermite.hermgauss(12)


@row(
    (-10.0, 10.0), (-5.0, 8.0), dict(mu=3.0, sigma=2.5, gamma=0.05), dict(mu=1.0, sigma=0.6, gamma=1.4),
    edges=lambda p: [e for t in HERMITE[0] for e in around(p.mu + 2**0.5 * p.sigma * float(t), p.gamma)],
)  # fmt: skip
def voigt(x, mu=(0.0, -5, 5), sigma=(0.8, 0.1, 5), gamma=(1.0, 0.02, 5)):
    nodes, weights = HERMITE
    return sum(
        w * gamma / ((x - mu - np.sqrt(2) * sigma * t) ** 2 + gamma**2 / 4)
        for t, w in zip(nodes, weights, strict=True)
    )


@row(
    (-5.0, 15.0), (-2.0, 9.0), dict(mu=6.0, sigma=0.1, lam=4.0), dict(mu=1.0, sigma=0.8, lam=0.7),
    edges=lambda p: around(p.mu, p.sigma),
)  # fmt: skip
def exponentially_modified_gaussian(x, mu=(0.0, -5, 15), sigma=(1.0, 0.05, 5), lam=(0.5, 0.05, 5)):
    return np.exp(lam / 2 * (2 * mu + lam * sigma**2 - 2 * x)) * erfc(
        (mu + lam * sigma**2 - x) / (np.sqrt(2) * sigma)
    )


@row((-3.0, 20.0), (-1.0, 9.0), dict(mu=7.5, sigma=0.06), dict(mu=2.5, sigma=0.7), edges=peak)
def moyal(x, mu=(2.0, -3, 20), sigma=(1.0, 0.01, 10)):
    t = (x - mu) / sigma
    return np.exp(-0.5 * (t + np.exp(-t)))


@row(
    (-3.0, 20.0),
    (-1.0, 9.0),
    dict(mu=7.5, beta=0.06),
    dict(mu=2.5, beta=0.7),
    edges=lambda p: around(p.mu, p.beta),
)
def gumbel(x, mu=(2.0, -3, 20), beta=(1.0, 0.01, 10)):
    t = (x - mu) / beta
    return np.exp(-t - np.exp(-t))


@row(
    (-np.pi, np.pi),
    (-1.0, 3.0),
    dict(mu=2.5, kappa=400.0),
    dict(mu=-1.0, kappa=3.0),
    edges=lambda p: around(p.mu, p.kappa**-0.5),
)
def von_mises(x, mu=(0.5, -4, 4), kappa=(2.0, 0.01, 1000)):
    return np.exp(kappa * (np.cos(x - mu) - 1))


@row((-10.0, 10.0), (-3.0, 9.0), dict(mu=7.0, sigma=0.03), dict(mu=-1.0, sigma=0.7), edges=peak)
def hyperbolic_secant(x, mu=(0.0, -9, 9), sigma=(1.0, 0.01, 20)):
    return 1 / np.cosh(np.pi / 2 * (x - mu) / sigma)


@row((-10.0, 10.0), (-3.0, 9.0), dict(mu=7.0, sigma=0.03), dict(mu=-1.0, sigma=0.7), edges=peak)
def logistic(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 20)):
    e = np.exp(-abs(x - mu) / sigma)
    return e / (1 + e) ** 2


@row(
    (0.0, 10.0), (3.0, 9.0), dict(p=4.0, f=0.2), dict(p=2.5005, f=0.6),
    edges=lambda p: around(2 * p.p + 0.013, 0.002),
)  # fmt: skip
def needle_at_an_expression(x, p=(2.5, 0, 5), f=(0.5, 0, 1)):
    place = 2 * p + 0.013
    return f * np.exp(-0.5 * ((x - place) / 0.002) ** 2) / (0.002 * np.sqrt(2 * np.pi)) + (1 - f) / 10


@row((0.0, 10.0), (3.0, 9.0), dict(mu=8.1, sigma=0.004, f=0.1), dict(mu=5.5, sigma=0.7, f=0.6), edges=peak)
def peak_on_a_slope(x, mu=(5.0, 0, 10), sigma=(1.0, 0.001, 5), f=(0.5, 0, 1)):
    return f * np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)) + (1 - f) * (10 - x) / 50


# ------------------------------------------------------------------------- peaks with joints


@row(
    (5.0, 5.6), (5.1, 5.5), dict(mu=5.42, sigma=0.001, alpha=2.5, n=1.3),
    dict(mu=5.285, sigma=0.024, alpha=1.0, n=3.0), edges=lambda p: [*peak(p), p.mu - p.alpha * p.sigma],
)  # fmt: skip
def crystal_ball(x, mu=(5.28, 5, 5.6), sigma=(0.02, 0.0005, 0.3), alpha=(1.2, 0.1, 5), n=(2.5, 1.01, 20)):
    t = (x - mu) / sigma
    tail = np.exp(-0.5 * alpha**2) * (n / alpha) ** n * (n / alpha - alpha - t) ** (-n)
    return mf.where(t > -alpha, np.exp(-0.5 * t**2), tail)


@row(
    (5.0, 5.6), (5.1, 5.5), dict(mu=5.45, sigma=0.001, al=2.5, nl=1.3, ar=0.5, nr=6.0),
    dict(mu=5.285, sigma=0.024, al=1.0, nl=3.0, ar=1.2, nr=3.0),
    edges=lambda p: [*peak(p), p.mu - p.al * p.sigma, p.mu + p.ar * p.sigma],
)  # fmt: skip
def double_crystal_ball(
    x, mu=(5.28, 5, 5.6), sigma=(0.02, 0.0005, 0.3), al=(1.2, 0.1, 5), nl=(2.5, 1.01, 20), ar=(1.5, 0.1, 5), nr=(3.5, 1.01, 20)
):  # fmt: skip
    t = (x - mu) / sigma
    left = np.exp(-0.5 * al**2) * (al / nl * (nl / al - al - t)) ** (-nl)
    right = np.exp(-0.5 * ar**2) * (ar / nr * (nr / ar - ar + t)) ** (-nr)
    return mf.where(t < -al, left, mf.where(t > ar, right, np.exp(-0.5 * t**2)))


@row(
    (-10.0, 10.0), (-8.0, 4.0), dict(mu=3.0, sigma=0.05, k=0.4), dict(mu=-0.5, sigma=0.8, k=1.0),
    edges=lambda p: [*peak(p), p.mu - p.k * p.sigma],
)  # fmt: skip
def gaussian_with_a_tail(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 10), k=(1.3, 0.1, 5)):
    t = (x - mu) / sigma
    return mf.where(t > -k, np.exp(-0.5 * t**2), np.exp(0.5 * k**2 + k * t))


@row(
    (-10.0, 10.0), (-8.0, 4.0), dict(mu=3.0, sigma=0.05, kl=0.4, kr=2.0), dict(mu=-0.5, sigma=0.8, kl=1.0, kr=1.0),
    edges=lambda p: [*peak(p), p.mu - p.kl * p.sigma, p.mu + p.kr * p.sigma], as_class=True,
)  # fmt: skip
def gaussian_with_two_tails(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 10), kl=(1.3, 0.1, 5), kr=(0.8, 0.1, 5)):
    t = (x - mu) / sigma
    left, right = np.exp(0.5 * kl**2 + kl * t), np.exp(0.5 * kr**2 - kr * t)
    return mf.where(t < -kl, left, mf.where(t > kr, right, np.exp(-0.5 * t**2)))


@row(
    (-10.0, 10.0), (-8.0, 4.0), dict(mu=3.0, alpha=0.1, beta=0.7), dict(mu=0.4, alpha=1.5, beta=2.5),
    edges=lambda p: around(p.mu, p.alpha),
    singular=True,
)  # fmt: skip
def generalised_normal(x, mu=(0.0, -9, 9), alpha=(1.0, 0.02, 20), beta=(3.0, 0.3, 20)):
    return np.exp(-((abs(x - mu) / alpha) ** beta))


@row(
    (-5.0, 5.0), (-4.0, 3.0), dict(m=2.7, b=0.03), dict(m=0.4, b=0.8),
    edges=lambda p: around(p.m, p.b), loose=("m",),
)  # fmt: skip
def laplace(x, m=(0.0, -4, 4), b=(1.0, 0.01, 10)):
    return np.exp(-abs(x - m) / b)


@row(
    (-5.0, 5.0), (-4.0, 3.0), dict(m=-2.2, b=0.1, kappa=3.0), dict(m=0.4, b=0.8, kappa=1.4),
    edges=lambda p: around(p.m, p.b), loose=("m",), as_class=True,
)  # fmt: skip
def asymmetric_laplace(x, m=(0.0, -4, 4), b=(1.0, 0.01, 10), kappa=(0.7, 0.1, 10)):
    return mf.where(x < m, np.exp((x - m) / (b * kappa)), np.exp(-(x - m) * kappa / b))


@row(
    (5.0, 5.6), (5.1, 5.5), dict(mu=5.4, sigma=0.003, tau=-0.5), dict(mu=5.285, sigma=0.024, tau=0.3),
    edges=lambda p: [*peak(p), p.mu - p.sigma / p.tau],
    singular=True,
)  # fmt: skip
def novosibirsk(x, mu=(5.28, 5, 5.6), sigma=(0.02, 0.001, 0.3), tau=(0.2, -2, 2)):
    inside = 1 + tau * (x - mu) / sigma
    return mf.where(inside > 0, np.exp(-0.5 * ((np.log(inside) / tau) ** 2 + tau**2)), 0.0)


def bukin_joints(p):
    """The two points at half of the height."""
    r = (p.xi**2 + 1) ** 0.5
    return [p.mu + p.sigma * (2 * np.log(2.0)) ** 0.5 * (p.xi / r + s) for s in (-1, 1)]


@row(
    (4.8, 5.8), (5.1, 5.5), dict(mu=5.5, sigma=0.004, xi=0.4, rl=-0.3, rr=0.15),
    dict(mu=5.29, sigma=0.034, xi=-0.1, rl=0.06, rr=0.1), edges=lambda p: [*peak(p), *bukin_joints(p)],
)  # fmt: skip
def bukin(
    x, mu=(5.28, 5, 5.6), sigma=(0.03, 0.001, 0.3), xi=(-0.2, -0.9, 0.9), rl=(0.1, -1, 1), rr=(0.2, -1, 1)
):
    c, r = np.sqrt(2 * np.log(2)), np.sqrt(xi**2 + 1)
    low, high = mu + sigma * c * (xi / r - 1), mu + sigma * c * (xi / r + 1)
    centre = (
        -np.log(2) * (np.log(1 + 2 * xi * r * (x - mu) / (c * sigma)) / np.log(1 + 2 * xi * (xi - r))) ** 2
    )
    left = (
        xi * r * c * (x - low) / (sigma * (r - xi) ** 2 * np.log(r + xi))
        - abs(rl) * ((x - low) / (mu - low)) ** 2
    )
    right = (
        xi * r * c * (high - x) / (sigma * (r + xi) ** 2 * np.log(r + xi))
        - abs(rr) * ((x - high) / (mu - high)) ** 2
    )
    tails = mf.where(x < low, left, right) - np.log(2)
    return np.exp(mf.where((x >= low) & (x < high), centre, tails))


@row(
    (-3.0, 20.0), (-1.0, 12.0), dict(mu=5.0, sigma=0.1, k=6.0), dict(mu=2.5, sigma=0.7, k=2.0),
    edges=lambda p: [*peak(p), p.mu + p.k * p.sigma], loose=("k",),
)  # fmt: skip
def landau_with_a_power_tail(x, mu=(2.0, -3, 20), sigma=(1.0, 0.01, 10), k=(3.0, 0.5, 20)):
    t = (x - mu) / sigma
    return mf.where(t < k, np.exp(-0.5 * (t + np.exp(-t))), np.exp(-0.5 * (k + np.exp(-k))) * (k / t) ** 2)


# ------------------------------------------------------------------------- ends, steps, kinks


@row(
    (-5.0, 5.0),
    (-1.0, 4.0),
    dict(c=3.5, w=0.2),
    dict(c=0.4, w=2.5),
    edges=lambda p: [p.c - p.w, p.c, p.c + p.w],
    loose=("c", "w"),
)
def triangle(x, c=(0.2, -4, 4), w=(2.0, 0.05, 10)):
    return np.maximum(0, 1 - abs(x - c) / w)


@row(
    (-5.0, 5.0), (-1.0, 4.0), dict(c=2.5, w=0.3, s=0.05), dict(c=0.4, w=1.5, s=1.1),
    edges=lambda p: [p.c + k * p.w + j * p.s for k in (-1, 1) for j in (0, k)], loose=("c", "w", "s"),
)  # fmt: skip
def trapezoid(x, c=(0.2, -4, 4), w=(1.0, 0.05, 4), s=(0.8, 0.01, 4)):
    return np.minimum(1, np.maximum(0, (w + s - abs(x - c)) / s))


@row(
    (5.2, 5.3), (5.24, 5.295), dict(e=5.265, c=-2.0), dict(e=5.289, c=-25.0), edges=lambda p: [p.e], loose=("e",),
    singular=True,
)  # fmt: skip
def argus(x, e=(5.29, 5.25, 5.32), c=(-20.0, -100, -0.1)):
    z = 1 - (x / e) ** 2
    return mf.where(x < e, x * np.sqrt(np.maximum(z, 0)) * np.exp(c * z), 0.0)


@row(
    (5.2, 5.3), (5.24, 5.295), dict(e=5.315, c=-60.0, p=0.2), dict(e=5.289, c=-25.0, p=0.7),
    edges=lambda p: [p.e], loose=("e",), as_class=True,
    singular=True,
)  # fmt: skip
def argus_with_a_power(x, e=(5.29, 5.25, 5.32), c=(-20.0, -100, -0.1), p=(0.5, 0.1, 2)):
    z = np.maximum(1 - (x / e) ** 2, 0)
    return x * z**p * np.exp(c * z)


@row((0.0, 10.0), (0.5, 8.0), dict(k=0.15, theta=0.3), dict(k=0.7, theta=1.6), singular=True)
def gamma_below_one(x, k=(0.5, 0.05, 5), theta=(2.0, 0.05, 20)):
    return x ** (k - 1) * np.exp(-x / theta)


@row((0.0, 1.0), (0.0, 0.7), dict(a=0.15, b=2.5), dict(a=0.6, b=0.8), singular=True)
def beta_below_one(x, a=(0.5, 0.1, 5), b=(0.7, 0.1, 5)):
    return x ** (a - 1) * (1 - x) ** (b - 1)


@row((-1.0, 1.0), (-0.5, 1.0), dict(a=-0.9), dict(a=0.5), singular=True)
def arcsine(x, a=(0.2, -1, 1)):
    return (1 + a * x) / np.sqrt(1 - x**2)


@row(
    (-2.0, 2.0),
    (-0.5, 1.5),
    dict(r=0.3, a=-2.0),
    dict(r=1.2, a=0.8),
    edges=lambda p: [-p.r, p.r],
    loose=("r",),
    singular=True,
)
def arcsine_with_a_radius(x, r=(1.0, 0.1, 1.9), a=(0.5, -3, 3)):
    return mf.where(abs(x) < r, np.exp(a * x) / np.sqrt(r**2 - x**2), 0.0)


@row((0.0, 10.0), (0.0, 4.0), dict(k=0.25, lam=0.1), dict(k=0.7, lam=2.0), singular=True)
def weibull_below_one(x, k=(0.6, 0.1, 5), lam=(1.5, 0.02, 20)):
    return (x / lam) ** (k - 1) * np.exp(-((x / lam) ** k))


@row(
    (0.0, 10.0),
    (1.0, 6.0),
    dict(theta=3.0, m=0.2, s=1.4),
    dict(theta=0.8, m=1.3, s=0.7),
    edges=lambda p: [p.theta, *around(p.theta + p.m, p.m * p.s)],
    loose=("theta",),
    singular=True,
)
def log_normal_with_a_threshold(x, theta=(0.5, 0.0, 5.0), m=(1.0, 0.05, 5), s=(0.6, 0.1, 3)):
    return mf.where(x > theta, np.exp(-0.5 * (np.log((x - theta) / m) / s) ** 2) / (x - theta), 0.0)


@row(
    (0.0, 10.0),
    (1.0, 9.0),
    dict(t=4.0, p=0.3, s=0.1),
    dict(t=1.2, p=1.4, s=1.2),
    edges=lambda p: around(p.t, p.s),
    loose=("t",),
    singular=True,
)
def power_law_above_a_threshold(x, t=(1.5, 0, 8), p=(0.7, 0.1, 4), s=(1.5, 0.05, 10)):
    return mf.where(x > t, (x - t) ** p * np.exp(-(x - t) / s), 0.0)


@row((0.5, 10.0), (1.5, 9.0), dict(m=3.0, a=9.0), dict(m=0.9, a=1.8), edges=lambda p: [p.m], loose=("m",))
def pareto(x, m=(0.8, 0.5, 5), a=(1.2, 0.1, 20)):
    return mf.where(x >= m, (m / x) ** (a + 1), 0.0)


@row(
    (135.0, 170.0), (138.0, 165.0), dict(t=143.0, a=-3.0, b=0.2, c=0.3), dict(t=139.57, a=1.0, b=0.5, c=3.0),
    edges=lambda p: around(p.t, p.c), fixed=(), loose=("t", "b"),
)  # fmt: skip
def d_star_threshold(x, t=(139.5, 135, 150), a=(0.5, -20, 20), b=(0.3, -5, 5), c=(2.0, 0.05, 50)):
    return mf.where(x > t, (1 - np.exp(-(x - t) / c)) * (x / t) ** a + b * (x / t - 1), 0.0)


@row(
    (60.0, 120.0),
    (65.0, 110.0),
    dict(alpha=75.0, beta=1.2, gamma=0.4),
    dict(alpha=71.0, beta=0.1, gamma=0.07),
    edges=lambda p: around(p.alpha, 1 / p.beta),
)
def erf_times_exponential(x, alpha=(70.0, 50, 120), beta=(0.08, 0.01, 5), gamma=(0.06, 0.001, 2)):
    return erfc((alpha - x) * beta) * np.exp(-gamma * (x - 90))


@row(
    (0.0, 50.0),
    (5.0, 45.0),
    dict(t=32.0, w=0.05, s=3.0),
    dict(t=12.0, w=1.5, s=12.0),
    edges=lambda p: around(p.t, p.w),
)
def turn_on(x, t=(10.0, 0, 50), w=(2.0, 0.02, 10), s=(10.0, 1, 100)):
    return np.exp(-x / s) / (1 + np.exp(-(x - t) / w))


@row((0.0, 10.0), (1.0, 9.0), dict(p=6.5, s=0.7), dict(p=2.5, s=3.5), edges=lambda p: [p.p], loose=("p",))
def linear_turn_on(x, p=(2.0, 0.1, 9.5), s=(3.0, 0.1, 50)):
    return np.exp(-x / s) * np.minimum(1, x / p)


@row(
    (-5.0, 5.0),
    (-1.0, 4.0),
    dict(mu=2.5, s=0.1, q=0.75),
    dict(mu=0.3, s=1.2, q=0.6),
    edges=lambda p: [p.mu + k * p.s * (1 - p.q) ** -0.5 for k in (-1, 1)],
    loose=("mu", "s", "q"),
    singular=True,
)
def q_gaussian_with_a_cut_off(x, mu=(0.0, -4, 4), s=(1.0, 0.02, 5), q=(0.7, 0.3, 0.95)):
    return np.maximum(1 - (1 - q) * ((x - mu) / s) ** 2, 0) ** (1 / (1 - q))


@row((0.0, 20.0), (0.5, 10.0), dict(n=30.0, t=0.05), dict(n=6.0, t=0.6), edges=lambda p: around(0, p.t))
def tsallis(x, n=(8.0, 3, 100), t=(0.5, 0.01, 5)):
    return x * (1 + x / (n * t)) ** (-n)


@row(
    (0.0, 10.0),
    (1.0, 9.0),
    dict(a=6.0, b=6.3),
    dict(a=2.2, b=5.5),
    edges=lambda p: [p.a, p.b],
    loose=("a", "b"),
)
def box(x, a=(2.0, 0, 9), b=(6.0, 1, 10)):
    return mf.where((x > a) & (x < b), 1.0, 0.0)


@row(
    (0.0, 10.0),
    (3.0, 9.0),
    dict(a=7.3, h=40.0, s=0.5),
    dict(a=4.2, h=2.5, s=4.0),
    edges=lambda p: [p.a],
    loose=("a",),
)
def step_on_an_exponential(x, a=(4.0, 0, 10), h=(2.0, 0, 100), s=(5.0, 0.1, 50)):
    return np.exp(-x / s) * (1 + h * (x > a))


def boxes(x, heights):
    """Return a sum of boxes next to each other, one for each height."""
    edges = np.linspace(0.0, 1.0, len(heights) + 1)
    return sum(h * ((x >= a) & (x < b)) for h, a, b in zip(heights, edges, edges[1:], strict=False))


def hundred_boxes(x, *heights):
    return boxes(x, heights)


def three_of_a_hundred_boxes(x, *heights):
    return boxes(x, heights)


HEIGHTS = {f"h{k}": (1.0 + k % 7, 0.0, 100.0) for k in range(100)}
for formula, fixed, order in (
    (hundred_boxes, (), 1),
    (three_of_a_hundred_boxes, tuple(set(HEIGHTS) - {"h10", "h50", "h99"}), 2),
):
    named = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in HEIGHTS.items()
    ]
    formula.__signature__ = inspect.Signature(
        [inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD), *named]
    )
    row(
        (0.0, 1.0), (0.105, 0.87), dict(h10=90.0, h50=0.01, h99=50.0), dict(h10=7.0, h50=1.5, h99=3.0),
        edges=lambda p: [k / 100 for k in range(1, 100)], fixed=fixed, order=order, singular=True,
    )(formula)  # fmt: skip


@row(
    (0.0, 10.0), (2.0, 9.0), dict(c=36.0, a=5.0), dict(c=6.0, a=1.5), edges=lambda p: [p.c**0.5], loose=("c",)
)
def kink_of_a_square(x, c=(5.0, 1, 80), a=(2.0, 0.1, 20)):
    return a + abs(x**2 - c)


@row(
    (0.0, 10.0),
    (2.0, 9.0),
    dict(l=0.01, r=30.0, m=9.0),
    dict(l=1.5, r=0.5, m=2.0),
    edges=lambda p: [2.5, 5.0, 7.5],
)
def hats_between_knots(x, l=(1.0, 0, 50), m=(2.0, 0, 50), r=(1.0, 0, 50)):  # noqa: E741
    hats = [np.maximum(0, 1 - abs(x - knot) / 2.5) for knot in (2.5, 5.0, 7.5)]
    return 0.2 + l * hats[0] + m * hats[1] + r * hats[2]


# ------------------------------------------------------------------------- without a peak


@row(
    (5000.0, 6000.0),
    (5200.0, 5800.0),
    dict(c1=-2e-4, c5=4e-19),
    dict(c1=1.2e-4, c5=1.5e-19),
    loose=("c2", "c3"),
)
def polynomial_in_mev(
    x, c1=(1e-4, -1e-3, 1e-2), c2=(2e-8, -1e-6, 1e-6), c3=(1e-12, -1e-8, 1e-8), c5=(1e-19, -1e-17, 1e-17)
):
    return 1 + c1 * x + c2 * x**2 + c3 * x**3 + 1e-16 * x**4 + c5 * x**5


@row(
    (-1.0, 2.0),
    (-0.5, 1.5),
    dict(a=-4.0, b=30.0, c=-25.0),
    dict(a=0.5, b=-0.8, c=0.4),
    edges=lambda p: [-0.5, 0, 0.5, 1, 1.5],
)
def exponential_of_a_polynomial(x, a=(0.3, -50, 50), b=(-0.5, -50, 50), c=(0.2, -50, 50)):
    return np.exp(a * x + b * x**2 + c * x**3)


@row(
    (-np.pi, np.pi),
    (-1.0, 3.0),
    dict(a=-0.45, b=0.4, phi=2.5),
    dict(a=0.3, b=0.2, phi=0.6),
    edges=lambda p: [-2, -1, 0, 1, 2],
)
def cosine_series(x, a=(0.2, -0.5, 0.5), b=(0.3, -0.5, 0.5), phi=(0.4, -3, 3)):
    return 1 + a * np.cos(x) + b * np.cos(2 * x + phi)


@row(
    (0.0, 10.0),
    (0.5, 8.0),
    dict(tau=0.1, dm=17.7, d=0.9),
    dict(tau=1.3, dm=0.6, d=0.6),
    edges=lambda p: list(range(1, 10)),
)
def decay_with_oscillation(x, tau=(1.5, 0.05, 20), dm=(0.5, 0, 30), d=(0.7, 0, 1)):
    return np.exp(-x / tau) * (1 + d * np.cos(dm * x))


@row((0.001, 10.0), (0.1, 5.0), dict(c=0.02), dict(c=1.3), edges=lambda p: around(0.0, p.c))
def levy(x, c=(1.0, 0.01, 50)):
    return x**-1.5 * np.exp(-c / (2 * x))


@row(
    (0.0, 10.0),
    (0.5, 8.0),
    dict(s=0.07, p=0.3),
    dict(s=1.4, p=2.0),
    edges=lambda p: around(0.0, p.s),
    singular=True,
)
def rayleigh_with_a_power(x, s=(1.5, 0.05, 10), p=(1.5, 0.1, 5)):
    return x**p * np.exp(-0.5 * (x / s) ** 2)


# ------------------------------------------------------------------------- two and three dimensions

SQUARE = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
PART_OF_SQUARE = {"x": (-0.7, 1.0), "y": (-1.0, 0.4)}


@row(
    {"x": (0.0, 10.0), "y": (0.0, 10.0)},
    {"x": (2.0, 9.0), "y": (3.0, 10.0)},
    dict(mx=7.7, my=8.3, s=0.005, f=0.2),
    dict(mx=5.01, my=4.01, s=0.032, f=0.45),
)
def needle_on_a_plane(x, y, mx=(5.0, 0, 10), my=(4.0, 0, 10), s=(0.03, 0.002, 2), f=(0.5, 0, 1)):
    r2 = ((x - mx) ** 2 + (y - my) ** 2) / s**2
    return f * np.exp(-0.5 * r2) / (2 * np.pi * s**2) + (1 - f) / 100


@row(
    {"x": (-5.0, 5.0), "y": (-5.0, 5.0)},
    {"x": (-2.0, 5.0), "y": (-3.0, 4.0)},
    dict(mx=1.5, my=1.0, sx=0.1, sy=0.5, rho=-0.9),
    dict(mx=0.4, my=-0.3, sx=0.8, sy=1.2, rho=0.4),
)
def correlated_gaussian(
    x, y, mx=(0.0, -4, 4), my=(0.0, -4, 4), sx=(1.0, 0.02, 10), sy=(1.5, 0.02, 10), rho=(0.6, -0.98, 0.98)
):
    u, v = (x - mx) / sx, (y - my) / sy
    return np.exp(-0.5 / (1 - rho**2) * (u**2 - 2 * rho * u * v + v**2))


@row(SQUARE, PART_OF_SQUARE, dict(r=1.2, a=-3.0), dict(r=0.75, a=0.8), loose=("r",))
def disc(x, y, r=(0.8, 0.1, 1.4), a=(0.5, -5, 5)):
    return mf.where(x**2 + y**2 < r**2, np.exp(a * x), 0.0)


@row(SQUARE, PART_OF_SQUARE, dict(c=-0.7, a=3.0), dict(c=0.4, a=0.7), loose=("c",))
def slanted_edge(x, y, c=(0.3, -1.5, 1.5), a=(0.5, -5, 5)):
    return mf.where(x + y < c, np.exp(-a * (x + 2 * y)), 0.0)


@row(SQUARE, PART_OF_SQUARE, dict(a=-3.0, h=20.0), dict(a=0.8, h=2.5))
def edge_at_three_tenths(x, y, a=(0.5, -5, 5), h=(2.0, 0, 50)):
    return mf.where(x < 0.3, np.exp(a * x * y), h * np.exp(-a * y))


@row(
    {"x": (-3.0, 3.0), "y": (-3.0, 3.0), "z": (-3.0, 3.0)}, {"x": (-1.0, 3.0), "y": (-3.0, 2.0), "z": (-2.0, 3.0)},
    dict(mu=1.2, s=0.06, c=0.3), dict(mu=0.3, s=0.8, c=0.25),
)  # fmt: skip
def gaussian_in_three_dimensions(x, y, z, mu=(0.2, -2, 2), s=(1.0, 0.03, 5), c=(0.2, -0.4, 0.9)):
    r2 = (x - mu) ** 2 + (y - mu) ** 2 + (z - mu * c) ** 2
    return np.exp(-0.5 * r2 / s**2)


@row(
    {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}, {"x": (0.1, 1.0), "y": (0.0, 0.8), "z": (0.2, 1.0)},
    dict(c=0.7, a=-4.0), dict(c=1.7, a=1.0), loose=("c",),
)  # fmt: skip
def corner_in_three_dimensions(x, y, z, c=(1.5, 0.4, 2.9), a=(0.5, -5, 5)):
    return mf.where(x + y + z < c, np.exp(-a * z), 0.0)
