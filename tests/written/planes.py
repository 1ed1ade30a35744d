"""Densities in two and three dimensions."""

import numpy as np

import morefit as mf
from written.row import row

SQUARE = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
PART_OF_SQUARE = {"x": (-0.7, 1.0), "y": (-1.0, 0.4)}


@row(
    {"x": (0.0, 10.0), "y": (0.0, 10.0)},
    {"x": (2.0, 9.0), "y": (3.0, 10.0)},
    {"mx": 7.7, "my": 8.3, "s": 0.005, "f": 0.2},
    {"mx": 5.01, "my": 4.01, "s": 0.032, "f": 0.45},
)
def needle_on_a_plane(x, y, mx=(5.0, 0, 10), my=(4.0, 0, 10), s=(0.03, 0.002, 2), f=(0.5, 0, 1)):
    r2 = ((x - mx) ** 2 + (y - my) ** 2) / s**2
    return f * np.exp(-0.5 * r2) / (2 * np.pi * s**2) + (1 - f) / 100


@row(
    {"x": (-5.0, 5.0), "y": (-5.0, 5.0)},
    {"x": (-2.0, 5.0), "y": (-3.0, 4.0)},
    {"mx": 1.5, "my": 1.0, "sx": 0.1, "sy": 0.5, "rho": -0.9},
    {"mx": 0.4, "my": -0.3, "sx": 0.8, "sy": 1.2, "rho": 0.4},
)
def correlated_gaussian(
    x, y, mx=(0.0, -4, 4), my=(0.0, -4, 4), sx=(1.0, 0.02, 10), sy=(1.5, 0.02, 10), rho=(0.6, -0.98, 0.98)
):
    u, v = (x - mx) / sx, (y - my) / sy
    return np.exp(-0.5 / (1 - rho**2) * (u**2 - 2 * rho * u * v + v**2))


@row(SQUARE, PART_OF_SQUARE, {"r": 1.2, "a": -3.0}, {"r": 0.75, "a": 0.8}, loose=("r",))
def disc(x, y, r=(0.8, 0.1, 1.4), a=(0.5, -5, 5)):
    return mf.where(x**2 + y**2 < r**2, np.exp(a * x), 0.0)


@row(SQUARE, PART_OF_SQUARE, {"c": -0.7, "a": 3.0}, {"c": 0.4, "a": 0.7}, loose=("c",))
def slanted_edge(x, y, c=(0.3, -1.5, 1.5), a=(0.5, -5, 5)):
    return mf.where(x + y < c, np.exp(-a * (x + 2 * y)), 0.0)


@row(SQUARE, PART_OF_SQUARE, {"a": -3.0, "h": 20.0}, {"a": 0.8, "h": 2.5})
def edge_at_three_tenths(x, y, a=(0.5, -5, 5), h=(2.0, 0, 50)):
    return mf.where(x < 0.3, np.exp(a * x * y), h * np.exp(-a * y))


@row(
    {"x": (-3.0, 3.0), "y": (-3.0, 3.0), "z": (-3.0, 3.0)}, {"x": (-1.0, 3.0), "y": (-3.0, 2.0), "z": (-2.0, 3.0)},
    {"mu": 1.2, "s": 0.06, "c": 0.3}, {"mu": 0.3, "s": 0.8, "c": 0.25},
)  # fmt: skip
def gaussian_in_three_dimensions(x, y, z, mu=(0.2, -2, 2), s=(1.0, 0.03, 5), c=(0.2, -0.4, 0.9)):
    r2 = (x - mu) ** 2 + (y - mu) ** 2 + (z - mu * c) ** 2
    return np.exp(-0.5 * r2 / s**2)


@row(
    {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}, {"x": (0.1, 1.0), "y": (0.0, 0.8), "z": (0.2, 1.0)},
    {"c": 0.7, "a": -4.0}, {"c": 1.7, "a": 1.0}, loose=("c",),
)  # fmt: skip
def corner_in_three_dimensions(x, y, z, c=(1.5, 0.4, 2.9), a=(0.5, -5, 5)):
    return mf.where(x + y + z < c, np.exp(-a * z), 0.0)
