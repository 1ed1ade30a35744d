"""Peaks: smooth ones, and some made of pieces that are joined."""

import numpy as np
from scipy.special import erfc

import morefit as mf
from written.row import around, peak, row

# ------------------------------------------------------------------------- smooth peaks


@row(
    (-10.0, 10.0),
    (-2.0, 7.0),
    {"mu": 6.1, "sigma": 0.05, "nu": 1.1},
    {"mu": -1.0, "sigma": 0.6, "nu": 2.5},
    edges=peak,
)
def student_t(x, mu=(0.5, -9, 9), sigma=(1.0, 0.01, 20), nu=(3.0, 0.5, 50)):
    return (1 + ((x - mu) / sigma) ** 2 / nu) ** (-(nu + 1) / 2)


@row(
    (-10.0, 10.0), (-9.0, 3.0), {"xi": -6.0, "lam": 0.3, "gamma": -2.0, "delta": 3.0},
    {"xi": 1.5, "lam": 1.5, "gamma": 0.7, "delta": 1.3}, edges=lambda p: around(p.xi, p.lam / p.delta),
)  # fmt: skip
def johnson_su(x, xi=(0.0, -9, 9), lam=(1.0, 0.05, 20), gamma=(0.3, -5, 5), delta=(1.2, 0.2, 10)):
    z = (x - xi) / lam
    return np.exp(-0.5 * (gamma + delta * np.log(z + np.sqrt(z**2 + 1))) ** 2) / np.sqrt(z**2 + 1)


@row(
    (5.0, 5.6), (5.1, 5.5), {"m": 5.45, "sl": 0.002, "sr": 0.004, "al": 0.3, "ar": 0.05},
    {"m": 5.29, "sl": 0.025, "sr": 0.015, "al": 0.12, "ar": 0.16}, edges=lambda p: around(p.m, p.sl) + around(p.m, p.sr),
)  # fmt: skip
def cruijff(
    x, m=(5.28, 5.0, 5.6), sl=(0.02, 0.001, 0.2), sr=(0.02, 0.001, 0.2), al=(0.1, 0, 1), ar=(0.1, 0, 1)
):
    s = mf.where(x < m, sl, sr)
    a = mf.where(x < m, al, ar)
    return np.exp(-((x - m) ** 2) / (2 * s**2 + a * (x - m) ** 2))


@row(
    (-10.0, 10.0), (-8.0, 4.0), {"mu": 3.0, "sl": 0.05, "sr": 4.0}, {"mu": -0.7, "sl": 1.4, "sr": 0.6},
    edges=lambda p: around(p.mu, p.sl) + around(p.mu, p.sr), as_class=True,
)  # fmt: skip
def bifurcated_gaussian(x, mu=(0.0, -9, 9), sl=(1.0, 0.01, 20), sr=(1.5, 0.01, 20)):
    return np.exp(-0.5 * ((x - mu) / mf.where(x < mu, sl, sr)) ** 2)


@row(
    (0.0, 10.0),
    (2.0, 9.0),
    {"m": 7.9, "gamma": 0.03},
    {"m": 4.0, "gamma": 0.8},
    edges=lambda p: around(p.m, p.gamma),
)
def breit_wigner(x, m=(5.0, 0, 10), gamma=(1.0, 0.001, 20)):
    return 1 / ((x - m) ** 2 + gamma**2 / 4)


@row(
    (0.0, 10.0), (2.0, 9.0), {"m": 8.12345, "gamma": 0.0001, "f": 0.2}, {"m": 5.003, "gamma": 0.002, "f": 0.6},
    edges=lambda p: around(p.m, p.gamma),
)  # fmt: skip
def needle_breit_wigner(x, m=(5.0, 4.9, 9), gamma=(0.001, 0.00005, 0.1), f=(0.5, 0, 1)):
    return f * gamma / 2 / np.pi / ((x - m) ** 2 + gamma**2 / 4) + (1 - f) / 10


@row(
    (0.3, 3.0), (0.5, 2.0), {"m": 1.27, "gamma": 0.004}, {"m": 0.8, "gamma": 0.17},
    edges=lambda p: around(p.m, p.gamma), as_class=True,
)  # fmt: skip
def relativistic_breit_wigner(x, m=(0.77, 0.3, 3), gamma=(0.15, 0.001, 1)):
    return x * m * gamma / ((x**2 - m**2) ** 2 + m**2 * gamma**2)


HERMITE = np.polynomial.hermite.hermgauss(12)


@row(
    (-10.0, 10.0), (-5.0, 8.0), {"mu": 3.0, "sigma": 2.5, "gamma": 0.05}, {"mu": 1.0, "sigma": 0.6, "gamma": 1.4},
    edges=lambda p: [e for t in HERMITE[0] for e in around(p.mu + 2**0.5 * p.sigma * float(t), p.gamma)],
)  # fmt: skip
def voigt(x, mu=(0.0, -5, 5), sigma=(0.8, 0.1, 5), gamma=(1.0, 0.02, 5)):
    nodes, weights = HERMITE
    return sum(
        w * gamma / ((x - mu - np.sqrt(2) * sigma * t) ** 2 + gamma**2 / 4)
        for t, w in zip(nodes, weights, strict=True)
    )


@row(
    (-5.0, 15.0), (-2.0, 9.0), {"mu": 6.0, "sigma": 0.1, "lam": 4.0}, {"mu": 1.0, "sigma": 0.8, "lam": 0.7},
    edges=lambda p: around(p.mu, p.sigma),
)  # fmt: skip
def exponentially_modified_gaussian(x, mu=(0.0, -5, 15), sigma=(1.0, 0.05, 5), lam=(0.5, 0.05, 5)):
    return np.exp(lam / 2 * (2 * mu + lam * sigma**2 - 2 * x)) * erfc(
        (mu + lam * sigma**2 - x) / (np.sqrt(2) * sigma)
    )


@row((-3.0, 20.0), (-1.0, 9.0), {"mu": 7.5, "sigma": 0.06}, {"mu": 2.5, "sigma": 0.7}, edges=peak)
def moyal(x, mu=(2.0, -3, 20), sigma=(1.0, 0.01, 10)):
    t = (x - mu) / sigma
    return np.exp(-0.5 * (t + np.exp(-t)))


@row(
    (-3.0, 20.0),
    (-1.0, 9.0),
    {"mu": 7.5, "beta": 0.06},
    {"mu": 2.5, "beta": 0.7},
    edges=lambda p: around(p.mu, p.beta),
)
def gumbel(x, mu=(2.0, -3, 20), beta=(1.0, 0.01, 10)):
    t = (x - mu) / beta
    return np.exp(-t - np.exp(-t))


@row(
    (-np.pi, np.pi),
    (-1.0, 3.0),
    {"mu": 2.5, "kappa": 400.0},
    {"mu": -1.0, "kappa": 3.0},
    edges=lambda p: around(p.mu, p.kappa**-0.5),
)
def von_mises(x, mu=(0.5, -4, 4), kappa=(2.0, 0.01, 1000)):
    return np.exp(kappa * (np.cos(x - mu) - 1))


@row((-10.0, 10.0), (-3.0, 9.0), {"mu": 7.0, "sigma": 0.03}, {"mu": -1.0, "sigma": 0.7}, edges=peak)
def hyperbolic_secant(x, mu=(0.0, -9, 9), sigma=(1.0, 0.01, 20)):
    return 1 / np.cosh(np.pi / 2 * (x - mu) / sigma)


@row((-10.0, 10.0), (-3.0, 9.0), {"mu": 7.0, "sigma": 0.03}, {"mu": -1.0, "sigma": 0.7}, edges=peak)
def logistic(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 20)):
    e = np.exp(-abs(x - mu) / sigma)
    return e / (1 + e) ** 2


@row(
    (0.0, 10.0), (3.0, 9.0), {"p": 4.0, "f": 0.2}, {"p": 2.5005, "f": 0.6},
    edges=lambda p: around(2 * p.p + 0.013, 0.002),
)  # fmt: skip
def needle_at_an_expression(x, p=(2.5, 0, 5), f=(0.5, 0, 1)):
    place = 2 * p + 0.013
    return f * np.exp(-0.5 * ((x - place) / 0.002) ** 2) / (0.002 * np.sqrt(2 * np.pi)) + (1 - f) / 10


@row(
    (0.0, 10.0),
    (3.0, 9.0),
    {"mu": 8.1, "sigma": 0.004, "f": 0.1},
    {"mu": 5.5, "sigma": 0.7, "f": 0.6},
    edges=peak,
)
def peak_on_a_slope(x, mu=(5.0, 0, 10), sigma=(1.0, 0.001, 5), f=(0.5, 0, 1)):
    return f * np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)) + (1 - f) * (10 - x) / 50


# ------------------------------------------------------------------------- peaks with joints


@row(
    (5.0, 5.6), (5.1, 5.5), {"mu": 5.42, "sigma": 0.001, "alpha": 2.5, "n": 1.3},
    {"mu": 5.285, "sigma": 0.024, "alpha": 1.0, "n": 3.0}, edges=lambda p: [*peak(p), p.mu - p.alpha * p.sigma],
)  # fmt: skip
def crystal_ball(x, mu=(5.28, 5, 5.6), sigma=(0.02, 0.0005, 0.3), alpha=(1.2, 0.1, 5), n=(2.5, 1.01, 20)):
    t = (x - mu) / sigma
    tail = np.exp(-0.5 * alpha**2) * (n / alpha) ** n * (n / alpha - alpha - t) ** (-n)
    return mf.where(t > -alpha, np.exp(-0.5 * t**2), tail)


@row(
    (5.0, 5.6), (5.1, 5.5), {"mu": 5.45, "sigma": 0.001, "al": 2.5, "nl": 1.3, "ar": 0.5, "nr": 6.0},
    {"mu": 5.285, "sigma": 0.024, "al": 1.0, "nl": 3.0, "ar": 1.2, "nr": 3.0},
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
    (-10.0, 10.0), (-8.0, 4.0), {"mu": 3.0, "sigma": 0.05, "k": 0.4}, {"mu": -0.5, "sigma": 0.8, "k": 1.0},
    edges=lambda p: [*peak(p), p.mu - p.k * p.sigma],
)  # fmt: skip
def gaussian_with_a_tail(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 10), k=(1.3, 0.1, 5)):
    t = (x - mu) / sigma
    return mf.where(t > -k, np.exp(-0.5 * t**2), np.exp(0.5 * k**2 + k * t))


@row(
    (-10.0, 10.0), (-8.0, 4.0), {"mu": 3.0, "sigma": 0.05, "kl": 0.4, "kr": 2.0}, {"mu": -0.5, "sigma": 0.8, "kl": 1.0, "kr": 1.0},
    edges=lambda p: [*peak(p), p.mu - p.kl * p.sigma, p.mu + p.kr * p.sigma], as_class=True,
)  # fmt: skip
def gaussian_with_two_tails(x, mu=(0.0, -9, 9), sigma=(1.0, 0.02, 10), kl=(1.3, 0.1, 5), kr=(0.8, 0.1, 5)):
    t = (x - mu) / sigma
    left, right = np.exp(0.5 * kl**2 + kl * t), np.exp(0.5 * kr**2 - kr * t)
    return mf.where(t < -kl, left, mf.where(t > kr, right, np.exp(-0.5 * t**2)))


@row(
    (-10.0, 10.0), (-8.0, 4.0), {"mu": 3.0, "alpha": 0.1, "beta": 0.7}, {"mu": 0.4, "alpha": 1.5, "beta": 2.5},
    edges=lambda p: around(p.mu, p.alpha),
    singular=True,
)  # fmt: skip
def generalised_normal(x, mu=(0.0, -9, 9), alpha=(1.0, 0.02, 20), beta=(3.0, 0.3, 20)):
    return np.exp(-((abs(x - mu) / alpha) ** beta))


@row(
    (-5.0, 5.0), (-4.0, 3.0), {"m": 2.7, "b": 0.03}, {"m": 0.4, "b": 0.8},
    edges=lambda p: around(p.m, p.b), loose=("m",),
)  # fmt: skip
def laplace(x, m=(0.0, -4, 4), b=(1.0, 0.01, 10)):
    return np.exp(-abs(x - m) / b)


@row(
    (-5.0, 5.0), (-4.0, 3.0), {"m": -2.2, "b": 0.1, "kappa": 3.0}, {"m": 0.4, "b": 0.8, "kappa": 1.4},
    edges=lambda p: around(p.m, p.b), loose=("m",), as_class=True,
)  # fmt: skip
def asymmetric_laplace(x, m=(0.0, -4, 4), b=(1.0, 0.01, 10), kappa=(0.7, 0.1, 10)):
    return mf.where(x < m, np.exp((x - m) / (b * kappa)), np.exp(-(x - m) * kappa / b))


@row(
    (5.0, 5.6), (5.1, 5.5), {"mu": 5.4, "sigma": 0.003, "tau": -0.5}, {"mu": 5.285, "sigma": 0.024, "tau": 0.3},
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
    (4.8, 5.8), (5.1, 5.5), {"mu": 5.5, "sigma": 0.004, "xi": 0.4, "rl": -0.3, "rr": 0.15},
    {"mu": 5.29, "sigma": 0.034, "xi": -0.1, "rl": 0.06, "rr": 0.1}, edges=lambda p: [*peak(p), *bukin_joints(p)],
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
    (-3.0, 20.0), (-1.0, 12.0), {"mu": 5.0, "sigma": 0.1, "k": 6.0}, {"mu": 2.5, "sigma": 0.7, "k": 2.0},
    edges=lambda p: [*peak(p), p.mu + p.k * p.sigma], loose=("k",),
)  # fmt: skip
def landau_with_a_power_tail(x, mu=(2.0, -3, 20), sigma=(1.0, 0.01, 10), k=(3.0, 0.5, 20)):
    t = (x - mu) / sigma
    return mf.where(t < k, np.exp(-0.5 * (t + np.exp(-t))), np.exp(-0.5 * (k + np.exp(-k))) * (k / t) ** 2)
