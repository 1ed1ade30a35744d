"""Densities with ends, steps and kinks that move with parameters, poles at edges, and some without any of it."""

import inspect

import numpy as np
from scipy.special import erfc

import morefit as mf
from written.row import around, row

LAST_BIT = 2.0**-52  # an inverse root holds the root of it between a pole and the number next to it

# ------------------------------------------------------------------------- ends, steps, kinks


@row(
    (-5.0, 5.0),
    (-1.0, 4.0),
    {"c": 3.5, "w": 0.2},
    {"c": 0.4, "w": 2.5},
    edges=lambda p: [p.c - p.w, p.c, p.c + p.w],
    loose=("c", "w"),
)
def triangle(x, c=(0.2, -4, 4), w=(2.0, 0.05, 10)):
    return np.maximum(0, 1 - abs(x - c) / w)


@row(
    (-5.0, 5.0), (-1.0, 4.0), {"c": 2.5, "w": 0.3, "s": 0.05}, {"c": 0.4, "w": 1.5, "s": 1.1},
    edges=lambda p: [p.c + k * p.w + j * p.s for k in (-1, 1) for j in (0, k)], loose=("c", "w", "s"),
)  # fmt: skip
def trapezoid(x, c=(0.2, -4, 4), w=(1.0, 0.05, 4), s=(0.8, 0.01, 4)):
    return np.minimum(1, np.maximum(0, (w + s - abs(x - c)) / s))


@row(
    (5.2, 5.3), (5.24, 5.295), {"e": 5.265, "c": -2.0}, {"e": 5.289, "c": -25.0}, edges=lambda p: [p.e], singular=True,
)  # fmt: skip
def argus(x, e=(5.29, 5.25, 5.32), c=(-20.0, -100, -0.1)):
    z = 1 - (x / e) ** 2
    return mf.where(x < e, x * np.sqrt(np.maximum(z, 0)) * np.exp(c * z), 0.0)


@row(
    (5.2, 5.3), (5.24, 5.295), {"e": 5.315, "c": -60.0, "p": 0.2}, {"e": 5.289, "c": -25.0, "p": 0.7},
    edges=lambda p: [p.e], loose=("e",), as_class=True,
    singular=True,
)  # fmt: skip
def argus_with_a_power(x, e=(5.29, 5.25, 5.32), c=(-20.0, -100, -0.1), p=(0.5, 0.1, 2)):
    z = np.maximum(1 - (x / e) ** 2, 0)
    return x * z**p * np.exp(c * z)


@row((0.0, 10.0), (0.5, 8.0), {"k": 0.15, "theta": 0.3}, {"k": 0.7, "theta": 1.6}, singular=True)
def gamma_below_one(x, k=(0.5, 0.05, 5), theta=(2.0, 0.05, 20)):
    return x ** (k - 1) * np.exp(-x / theta)


@row((0.0, 1.0), (0.0, 0.7), {"a": 0.15, "b": 2.5}, {"a": 0.6, "b": 0.8}, singular=True)
def beta_below_one(x, a=(0.5, 0.1, 5), b=(0.7, 0.1, 5)):
    return x ** (a - 1) * (1 - x) ** (b - 1)


@row((-1.0, 1.0), (-0.5, 1.0), {"a": -0.9}, {"a": 0.5}, blur=LAST_BIT**0.5, singular=True)
def arcsine(x, a=(0.2, -1, 1)):
    return (1 + a * x) / np.sqrt(1 - x**2)


@row(
    (-2.0, 2.0),
    (-0.5, 1.5),
    {"r": 0.3, "a": -2.0},
    {"r": 1.2, "a": 0.8},
    edges=lambda p: [-p.r, p.r],
    loose=("r",),
    blur=LAST_BIT**0.5,
    singular=True,
)
def arcsine_with_a_radius(x, r=(1.0, 0.1, 1.9), a=(0.5, -3, 3)):
    return mf.where(abs(x) < r, np.exp(a * x) / np.sqrt(r**2 - x**2), 0.0)


@row((0.0, 10.0), (0.0, 4.0), {"k": 0.25, "lam": 0.1}, {"k": 0.7, "lam": 2.0}, singular=True)
def weibull_below_one(x, k=(0.6, 0.1, 5), lam=(1.5, 0.02, 20)):
    return (x / lam) ** (k - 1) * np.exp(-((x / lam) ** k))


@row(
    (0.0, 10.0),
    (1.0, 6.0),
    {"theta": 3.0, "m": 0.2, "s": 1.4},
    {"theta": 0.8, "m": 1.3, "s": 0.7},
    edges=lambda p: [p.theta, *around(p.theta + p.m, p.m * p.s)],
    loose=("theta",),
    singular=True,
)
def log_normal_with_a_threshold(x, theta=(0.5, 0.0, 5.0), m=(1.0, 0.05, 5), s=(0.6, 0.1, 3)):
    return mf.where(x > theta, np.exp(-0.5 * (np.log((x - theta) / m) / s) ** 2) / (x - theta), 0.0)


@row(
    (0.0, 10.0),
    (0.5, 9.0),
    {"t": 4.0, "p": 0.3, "s": 0.1},
    {"t": 1.2, "p": 1.4, "s": 1.2},
    edges=lambda p: around(p.t, p.s),
    singular=True,
)
def power_law_above_a_threshold(x, t=(1.0, 0, 8), p=(0.7, 0.1, 4), s=(1.5, 0.05, 10)):
    return mf.where(x > t, (x - t) ** p * np.exp(-(x - t) / s), 0.0)


@row((0.5, 10.0), (1.5, 9.0), {"m": 3.0, "a": 9.0}, {"m": 0.9, "a": 1.8}, edges=lambda p: [p.m], loose=("m",))
def pareto(x, m=(0.8, 0.5, 5), a=(1.2, 0.1, 20)):
    return mf.where(x >= m, (m / x) ** (a + 1), 0.0)


@row(
    (135.0, 170.0), (138.0, 165.0), {"t": 143.0, "a": -3.0, "b": 0.2, "c": 0.3}, {"t": 139.57, "a": 1.0, "b": 0.5, "c": 3.0},
    edges=lambda p: around(p.t, p.c), fixed=(), loose=("t", "b"),
)  # fmt: skip
def d_star_threshold(x, t=(139.5, 135, 150), a=(0.5, -20, 20), b=(0.3, -5, 5), c=(2.0, 0.05, 50)):
    return mf.where(x > t, (1 - np.exp(-(x - t) / c)) * (x / t) ** a + b * (x / t - 1), 0.0)


@row(
    (60.0, 120.0),
    (65.0, 110.0),
    {"alpha": 75.0, "beta": 1.2, "gamma": 0.4},
    {"alpha": 71.0, "beta": 0.1, "gamma": 0.07},
    edges=lambda p: around(p.alpha, 1 / p.beta),
)
def erf_times_exponential(x, alpha=(70.0, 50, 120), beta=(0.08, 0.01, 5), gamma=(0.06, 0.001, 2)):
    return erfc((alpha - x) * beta) * np.exp(-gamma * (x - 90))


@row(
    (0.0, 50.0),
    (5.0, 45.0),
    {"t": 32.0, "w": 0.05, "s": 3.0},
    {"t": 12.0, "w": 1.5, "s": 12.0},
    edges=lambda p: around(p.t, p.w),
)
def turn_on(x, t=(10.0, 0, 50), w=(2.0, 0.02, 10), s=(10.0, 1, 100)):
    return np.exp(-x / s) / (1 + np.exp(-(x - t) / w))


@row((0.0, 10.0), (1.0, 9.0), {"p": 6.5, "s": 0.7}, {"p": 2.5, "s": 3.5}, edges=lambda p: [p.p], loose=("p",))
def linear_turn_on(x, p=(2.0, 0.1, 9.5), s=(3.0, 0.1, 50)):
    return np.exp(-x / s) * np.minimum(1, x / p)


@row(
    (-5.0, 5.0),
    (-1.0, 4.0),
    {"mu": 2.5, "s": 0.1, "q": 0.75},
    {"mu": 0.3, "s": 1.2, "q": 0.6},
    edges=lambda p: [p.mu + k * p.s * (1 - p.q) ** -0.5 for k in (-1, 1)],
    loose=("mu", "s", "q"),
    singular=True,
)
def q_gaussian_with_a_cut_off(x, mu=(0.0, -4, 4), s=(1.0, 0.02, 5), q=(0.7, 0.3, 0.95)):
    return np.maximum(1 - (1 - q) * ((x - mu) / s) ** 2, 0) ** (1 / (1 - q))


@row((0.0, 20.0), (0.5, 10.0), {"n": 30.0, "t": 0.05}, {"n": 6.0, "t": 0.6}, edges=lambda p: around(0, p.t))
def tsallis(x, n=(8.0, 3, 100), t=(0.5, 0.01, 5)):
    return x * (1 + x / (n * t)) ** (-n)


@row(
    (0.0, 10.0),
    (1.0, 9.0),
    {"a": 6.0, "b": 6.3},
    {"a": 2.2, "b": 5.5},
    edges=lambda p: [p.a, p.b],
    loose=("a", "b"),
)
def box(x, a=(2.0, 0, 9), b=(6.0, 1, 10)):
    return mf.where((x > a) & (x < b), 1.0, 0.0)


@row(
    (0.0, 10.0),
    (3.0, 9.0),
    {"a": 7.3, "h": 40.0, "s": 0.5},
    {"a": 4.2, "h": 2.5, "s": 4.0},
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
        (0.0, 1.0), (0.105, 0.87), {"h10": 90.0, "h50": 0.01, "h99": 50.0}, {"h10": 7.0, "h50": 6.0, "h99": 3.0},
        edges=lambda p: [k / 100 for k in range(1, 100)], fixed=fixed, order=order, singular=True,
    )(formula)  # fmt: skip


@row(
    (0.0, 10.0),
    (2.0, 9.0),
    {"c": 36.0, "a": 5.0},
    {"c": 6.0, "a": 1.5},
    edges=lambda p: [p.c**0.5],
    loose=("c",),
)
def kink_of_a_square(x, c=(5.0, 1, 80), a=(2.0, 0.1, 20)):
    return a + abs(x**2 - c)


@row(
    (0.0, 10.0),
    (2.0, 9.0),
    {"l": 0.01, "r": 30.0, "m": 9.0},
    {"l": 1.5, "r": 0.5, "m": 2.0},
    edges=lambda p: [2.5, 5.0, 7.5],
)
def hats_between_knots(x, l=(1.0, 0, 50), m=(2.0, 0, 50), r=(1.0, 0, 50)):  # noqa: E741
    hats = [np.maximum(0, 1 - abs(x - knot) / 2.5) for knot in (2.5, 5.0, 7.5)]
    return 0.2 + l * hats[0] + m * hats[1] + r * hats[2]


# ------------------------------------------------------------------------- without a peak


@row(
    (5000.0, 6000.0),
    (5200.0, 5800.0),
    {"c1": -2e-4, "c5": 4e-19},
    {"c1": 1.2e-4, "c5": 1.5e-19},
    loose=("c1", "c2", "c3"),
)
def polynomial_in_mev(
    x, c1=(1e-4, -1e-3, 1e-2), c2=(2e-8, -1e-6, 1e-6), c3=(1e-12, -1e-8, 1e-8), c5=(1e-19, -1e-17, 1e-17)
):
    return 1 + c1 * x + c2 * x**2 + c3 * x**3 + 1e-16 * x**4 + c5 * x**5


@row(
    (-1.0, 2.0),
    (-0.5, 1.5),
    {"a": -4.0, "b": 30.0, "c": -25.0},
    {"a": 0.5, "b": -0.8, "c": 0.4},
    edges=lambda p: [-0.5, 0, 0.5, 1, 1.5],
)
def exponential_of_a_polynomial(x, a=(0.3, -50, 50), b=(-0.5, -50, 50), c=(0.2, -50, 50)):
    return np.exp(a * x + b * x**2 + c * x**3)


@row(
    (-np.pi, np.pi),
    (-1.0, 3.0),
    {"a": -0.45, "b": 0.4, "phi": 2.5},
    {"a": 0.3, "b": 0.2, "phi": 0.6},
    edges=lambda p: [-2, -1, 0, 1, 2],
)
def cosine_series(x, a=(0.2, -0.5, 0.5), b=(0.3, -0.5, 0.5), phi=(0.4, -3, 3)):
    return 1 + a * np.cos(x) + b * np.cos(2 * x + phi)


@row(
    (0.0, 10.0),
    (0.5, 8.0),
    {"tau": 0.1, "dm": 17.7, "d": 0.9},
    {"tau": 1.3, "dm": 0.6, "d": 0.6},
    edges=lambda p: list(range(1, 10)),
)
def decay_with_oscillation(x, tau=(1.5, 0.05, 20), dm=(0.5, 0, 30), d=(0.7, 0, 1)):
    return np.exp(-x / tau) * (1 + d * np.cos(dm * x))


@row((0.001, 10.0), (0.1, 5.0), {"c": 0.02}, {"c": 1.3}, edges=lambda p: around(0.0, p.c))
def levy(x, c=(1.0, 0.01, 50)):
    return x**-1.5 * np.exp(-c / (2 * x))


@row(
    (0.0, 10.0),
    (0.5, 8.0),
    {"s": 0.07, "p": 0.3},
    {"s": 1.4, "p": 2.0},
    edges=lambda p: around(0.0, p.s),
    singular=True,
)
def rayleigh_with_a_power(x, s=(1.5, 0.05, 10), p=(1.5, 0.1, 5)):
    return x**p * np.exp(-0.5 * (x / s) ** 2)
