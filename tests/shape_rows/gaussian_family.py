"""Points at which densities akin to the Gaussian are tested."""

import mpmath as mp
from scipy import stats

import morefit as mf
from shape_rows import Point, around, quadrature_row, truncated
from tolerances import NUMERICAL


def bifurcated_gaussian(x, mu, left, right):
    return -(((x - mu) / (left if x < mu else right)) ** 2) / 2


def bifurcated_point(label, mu, left, right, at, low=5.0, high=7.0, **options):
    values = {"mu": mu, "sigma_left": left, "sigma_right": right}
    return Point(label, low, high, values, at, (min(left, right), left, right), **options)


def gaussian_tails(x, mu, sigma, left, right=mp.inf):
    t = (x - mu) / sigma
    if t < -left:
        return left * left / 2 + left * t
    return right * right / 2 - right * t if t > right else -t * t / 2


def tails_point(label, mu, sigma, *k, at, low=5.0, high=7.0, **options):
    names = ("k",) if len(k) == 1 else ("k_left", "k_right")
    values = {"mu": mu, "sigma": sigma, **dict(zip(names, k, strict=True))}
    return Point(label, low, high, values, at, (sigma, sigma, *k), **options)


def tails_breaks(mu, sigma, *k):
    return around(mu, sigma) + tuple(mu + s * sigma * one for one, s in zip(k, (-1, 1), strict=False))


def generalised_normal(x, mu, alpha, beta):
    return -((abs(x - mu) / alpha) ** beta)


def johnson_su(x, mu, scale, gamma, delta):
    y = (x - mu) / scale
    return -((gamma + delta * mp.asinh(y)) ** 2) / 2 - mp.log(1 + y * y) / 2


def johnson_point(label, mu, width, gamma, delta, at, **options):
    values = {"mu": mu, "scale": width, "gamma": gamma, "delta": delta}
    return Point(label, 5.0, 7.0, values, at, (width, width, 1.0, delta), **options)


def student_t(x, mu, sigma, nu):
    return -(nu + 1) / 2 * mp.log(1 + ((x - mu) / sigma) ** 2 / nu)


def student_point(label, mu, sigma, nu, at, low=5.0, high=7.0, **options):
    return Point(label, low, high, {"mu": mu, "sigma": sigma, "nu": nu}, at, (sigma, sigma, nu), **options)


def laplace_point(label, mu, width, at, **options):
    return Point(label, 5.0, 7.0, {"mu": mu, "scale": width}, at, (width, width), **options)


ROWS = {
    "BifurcatedGaussian": quadrature_row(
        mf.shapes.BifurcatedGaussian,
        bifurcated_gaussian,
        [
            bifurcated_point("on the left", 5.8, 0.2, 0.3, 5.7),
            bifurcated_point("on the right", 5.8, 0.2, 0.3, 6.3),
            bifurcated_point("very different widths", 5.8, 1e-3, 3.0, 6.3, scale=100),
            bifurcated_point("all on the right", 4.8, 0.2, 0.3, 6.3, scale=100),
        ],
        lambda mu, left, right: around(mu, left, right),
        lengths=("mu", "sigma_left", "sigma_right"),
    ),
    "GaussianExponentialTail": quadrature_row(
        mf.shapes.GaussianExponentialTail,
        gaussian_tails,
        [
            tails_point("in the core", 5.8, 0.1, 1.2, at=5.75),
            tails_point("in the tail", 5.8, 0.1, 1.2, at=5.4),
            tails_point("almost no core", 5.8, 0.1, 1e-3, at=5.4, scale=1e3),
            tails_point("all in the tail", 8.8, 0.5, 1.2, at=5.4, scale=100),
        ],
        tails_breaks,
        lengths=("mu", "sigma"),
    ),
    "GaussianExponentialTails": quadrature_row(
        mf.shapes.GaussianExponentialTails,
        gaussian_tails,
        [
            tails_point("in the core", 5.8, 0.1, 1.2, 0.7, at=5.75),
            tails_point("on the left", 5.8, 0.1, 1.2, 0.7, at=5.4),
            tails_point("on the right", 5.8, 0.1, 1.2, 0.7, at=6.2),
            tails_point("all on the right", 4.8, 0.1, 1.2, 0.7, at=5.2, scale=100),
        ],
        tails_breaks,
        lengths=("mu", "sigma"),
    ),
    "GeneralisedNormal": quadrature_row(
        mf.shapes.GeneralisedNormal,
        generalised_normal,
        [
            Point("flat top", 5.0, 7.0, {"mu": 5.8, "alpha": 0.3, "beta": 3.0}, 5.7, (0.3, 0.3, 3.0), 10.0),
            Point("heavy tails", 5.0, 7.0, {"mu": 5.8, "alpha": 0.2, "beta": 1.3}, 6.3, (0.2, 0.2, 1.3), 10.0),
            Point("all on the right", 6.0, 7.0, {"mu": 5.8, "alpha": 0.2, "beta": 1.7}, 6.3, (0.2, 0.2, 1.7), 100.0),
            Point("all on the left", 5.0, 5.5, {"mu": 5.8, "alpha": 0.2, "beta": 2.2}, 5.3, (0.2, 0.2, 2.2), 1e3),
        ],
        lambda mu, alpha, beta: around(mu, alpha),
        lengths=("mu", "alpha"),
        scipy=truncated(lambda mu, alpha, beta: stats.gennorm(beta, mu, alpha)),
    ),
    "JohnsonSU": quadrature_row(
        mf.shapes.JohnsonSU,
        johnson_su,
        [
            johnson_point("ordinary", 5.8, 0.1, 0.3, 1.5, 5.7),
            johnson_point("far in a tail", 5.8, 0.1, 0.3, 1.5, 6.9, scale=10),
            johnson_point("skewed", 5.8, 0.02, -2.0, 0.8, 6.0, scale=10),
            johnson_point("all on the left", 8.0, 0.1, 0.3, 1.5, 5.7, scale=1e3),
        ],
        lambda mu, scale, gamma, delta: around(mu, scale),
        lengths=("mu", "scale"),
        scipy=truncated(lambda mu, scale, gamma, delta: stats.johnsonsu(gamma, delta, mu, scale)),
    ),
    "StudentT": quadrature_row(
        mf.shapes.StudentT,
        student_t,
        [
            student_point("ordinary", 5.8, 0.1, 3.0, 5.7),
            student_point("in a tail", 5.8, 0.1, 1.0, 6.9),
            student_point("almost a Gaussian", 5.8, 0.1, 200.0, 6.0, scale=100),
            student_point("narrow", 5.8, 1e-3, 0.5, 5.9, scale=100),
        ],
        lambda mu, sigma, nu: around(mu, sigma),
        lengths=("mu", "sigma"),
        tolerance=NUMERICAL,
        scipy=truncated(lambda mu, sigma, nu: stats.t(nu, mu, sigma)),
    ),
    "Laplace": quadrature_row(
        mf.shapes.Laplace,
        lambda x, mu, scale: -abs(x - mu) / scale,
        [
            laplace_point("on the left", 5.8, 0.3, 5.6),
            laplace_point("on the right", 5.8, 0.3, 6.1),
            laplace_point("narrow", 5.8, 1e-3, 5.801),
            laplace_point("wide", 5.8, 1e4, 5.5, scale=1e4),
            laplace_point("all on the left", 9.0, 0.1, 6.9, scale=1e3),
        ],
        lambda mu, scale: around(mu, scale),
        smooth=False,
        lengths=("mu", "scale"),
        scipy=truncated(lambda mu, scale: stats.laplace(mu, scale)),
    ),
}  # fmt: skip
