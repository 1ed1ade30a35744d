"""Points at which densities of positive numbers, and the triangle, are tested."""

import mpmath as mp
import numpy as np
from scipy import stats

import morefit as mf
from shape_rows import Point, Row, around, quadrature_row, truncated
from tolerances import NUMERICAL


def shape_scale_point(label, shape, scale, at, low, high, conditioning=10.0):
    return Point(label, low, high, {"shape": shape, "scale": scale}, at, (shape, scale), conditioning)


def mp_gamma(x, low, high, shape, scale):
    area = mp.gammainc(shape, low / scale, high / scale)
    return (shape - 1) * mp.log(x / scale) - x / scale - mp.log(scale * area)


def weibull(x, shape, scale):
    return (shape - 1) * mp.log(x) - (x / scale) ** shape


def triangle(x, mu, left, right):
    inside = 1 - (mu - x) / left if x < mu else 1 - (x - mu) / right
    return mp.log(inside) if inside > 0 else -mp.inf


def exp_breaks(mu, sigma):
    return tuple(mp.exp(b) for b in around(mu, sigma))


ROWS = {
    "LogNormal": quadrature_row(
        mf.shapes.LogNormal,
        lambda x, mu, sigma: -(((mp.log(x) - mu) / sigma) ** 2) / 2 - mp.log(x),
        [
            Point("from zero", 0.0, 20.0, {"mu": 1.5, "sigma": 0.3}, 3.0, (0.3, 0.3), 10.0),
            Point("a part", 2.0, 9.0, {"mu": 1.5, "sigma": 0.7}, 3.0, (0.7, 0.7), 10.0),
            Point("a tail", 30.0, 50.0, {"mu": 1.5, "sigma": 0.3}, 33.0, (0.3, 0.3), 1e4),
            Point("small numbers", 1e-7, 1e-5, {"mu": -13.0, "sigma": 0.5}, 2e-6, (0.5, 0.5), 100.0),
        ],
        exp_breaks,
        scipy=truncated(lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu))),
    ),
    "Gamma": Row(
        mf.shapes.Gamma,
        mp_gamma,
        [
            shape_scale_point("from zero", 3.0, 1.5, 2.5, 0.0, 20.0),
            shape_scale_point("a part", 3.0, 1.5, 2.5, 1.0, 7.0),
            shape_scale_point("a tail", 3.0, 1.5, 41.0, 40.0, 60.0, 1e3),
            shape_scale_point("infinite at zero", 0.5, 1.5, 2.5, 0.0, 20.0),
            shape_scale_point("too large for a number", 400.0, 1.5, 590.0, 300.0, 900.0, 1e4),
        ],
        lengths=("scale",),
        scipy=truncated(lambda shape, scale: stats.gamma(shape, scale=scale)),
    ),
    "ChiSquare": Row(
        mf.shapes.ChiSquare,
        lambda x, low, high, degrees: mp_gamma(x, low, high, degrees / 2, 2),
        [
            Point("from zero", 0.0, 20.0, {"degrees": 4.0}, 3.0, (1.0,), 10.0),
            Point("a part", 2.0, 9.0, {"degrees": 1.0}, 3.0, (1.0,), 10.0),
            Point("a tail", 30.0, 60.0, {"degrees": 3.0}, 33.0, (1.0,), 100.0),
        ],
        scipy=truncated(stats.chi2),
    ),
    "Beta": quadrature_row(
        mf.shapes.Beta,
        lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x),
        [
            Point("whole", 0.0, 1.0, {"a": 2.0, "b": 3.5}, 0.3, (2.0, 3.5), 10.0),
            Point("a part", 0.2, 0.9, {"a": 2.0, "b": 3.5}, 0.3, (2.0, 3.5), 10.0),
            Point("to one end", 0.2, 1.0, {"a": 2.0, "b": 0.7}, 0.3, (2.0, 0.7), 1e4),
            Point("infinite at both ends", 0.0, 1.0, {"a": 0.6, "b": 0.8}, 0.3, (0.6, 0.8), 10.0),
            Point("narrow", 0.0, 1.0, {"a": 300.0, "b": 500.0}, 0.36, (300.0, 500.0), 1e6),
        ],
        lambda a, b: around(a / (a + b), mp.sqrt(a * b / (a + b) ** 3)),
        tolerance=NUMERICAL,
        scipy=truncated(stats.beta),
    ),
    "Weibull": quadrature_row(
        mf.shapes.Weibull,
        weibull,
        [
            shape_scale_point("from zero", 1.7, 4.0, 3.0, 0.0, 20.0),
            shape_scale_point("a part", 1.7, 4.0, 3.0, 2.0, 7.0),
            shape_scale_point("infinite at zero", 0.7, 4.0, 3.0, 0.0, 20.0),
            shape_scale_point("a tail", 1.7, 4.0, 31.0, 30.0, 40.0, 1e3),
            shape_scale_point("narrow", 50.0, 4.0, 3.9, 0.0, 20.0, 1e3),
        ],
        lambda shape, scale: around(scale, scale / shape),
        lengths=("scale",),
        scipy=truncated(lambda shape, scale: stats.weibull_min(shape, scale=scale)),
    ),
    "PowerLaw": quadrature_row(
        mf.shapes.PowerLaw,
        lambda x, exponent: exponent * mp.log(x),
        [
            Point("falling", 1.0, 20.0, {"exponent": -2.5}, 3.0, (1.0,), 10.0),
            Point("rising", 1.0, 20.0, {"exponent": 1.5}, 3.0, (1.0,), 10.0),
            Point("an exponent of minus one", 1.0, 20.0, {"exponent": -1.0}, 3.0, (1.0,), 10.0),
            Point("next to minus one", 1.0, 20.0, {"exponent": -1.0 + 1e-9}, 3.0, (1.0,), 10.0),
            Point("steep", 1.0, 20.0, {"exponent": -60.0}, 1.1, (1.0,), 1e3),
        ],
        lambda exponent: (1.01, 1.1, 2, 4, 7, 8),
        lengths=(),
    ),
    "Triangle": quadrature_row(
        mf.shapes.Triangle,
        triangle,
        [
            Point("a part, on the left", 5.0, 7.0, {"mu": 5.8, "width_left": 1.5, "width_right": 2.5}, 5.6, (1.0, 1.5, 2.5), 10.0),
            Point("a part, on the right", 5.0, 7.0, {"mu": 5.8, "width_left": 1.5, "width_right": 2.5}, 6.6, (1.0, 1.5, 2.5), 10.0),
            Point("ends inside", 5.0, 7.0, {"mu": 5.8, "width_left": 0.5, "width_right": 0.6}, 5.6, (1.0, 0.5, 0.6), 100.0),
        ],
        lambda mu, left, right: (mu - left, mu, mu + right),
        smooth=False,
        lengths=("mu", "width_left", "width_right"),
    ),
}  # fmt: skip
