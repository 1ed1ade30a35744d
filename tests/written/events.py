"""Events of the written densities drawn without the library: by dense sums in one dimension, else by hand."""

import itertools
from functools import lru_cache

import numpy as np

from morefit.expr import evaluate
from written.precise import record
from written.row import ROWS

CELLS = 300  # between two break points
OFFSET = 0.37  # of quantiles, so that none is the middle, where some densities have a kink
REACH = 5.0  # of the change of variable: the outermost cells are 1e-100 of a panel wide
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)


class Dense:
    """The distribution of a density in one observable, from sums over many small cells between its break points."""

    def __init__(self, row, which, point):
        self.low, self.high = row.box(which)["x"]
        inside = [float(e) for e in row.edges(record(point)) if self.low < e < self.high]
        ends = np.unique([self.low, *inside, self.high])
        grid = np.unique(np.concatenate([graded(a, b) for a, b in itertools.pairwise(ends)]))
        half = np.diff(grid) / 2
        nodes = grid[:-1, None] + half[:, None] * (1 + NODES)
        nodes = np.clip(nodes, np.nextafter(self.low, np.inf), np.nextafter(self.high, -np.inf))
        with np.errstate(all="ignore"):
            density = evaluate(row.model(which).density(), {**point, "x": nodes})
        density = np.where(np.isfinite(density), density, 0.0)  # at a pole itself, whose cell is 1e-100 wide
        sums = half * np.sum(WEIGHTS * np.broadcast_to(density, nodes.shape), axis=1)
        self.grid, self.sums = grid, np.concatenate([[0.0], np.cumsum(sums)])

    @property
    def integral(self):
        return self.sums[-1]

    def cdf(self, x):
        return np.interp(x, self.grid, self.sums / self.sums[-1])

    def quantile(self, u):
        keep = np.concatenate([[True], np.diff(self.sums) > 0])  # no event where there is no density
        return np.interp(u, self.sums[keep] / self.sums[-1], self.grid[keep])


def graded(a, b):
    """Return points of a panel that lie ever closer towards its ends."""
    t = np.linspace(-REACH, REACH, CELLS)
    near = 1 / (1 + np.exp(np.pi * np.sinh(np.abs(t))))  # the distance from the closer end
    return np.concatenate([[a], np.where(t < 0, a + (b - a) * near, b - (b - a) * near), [b]])


def gaussian_plane(p, count, rng):
    u, v = rng.normal(size=(2, count))
    return {"x": p.mx + p.sx * u, "y": p.my + p.sy * (p.rho * u + np.sqrt(1 - p.rho**2) * v)}


def gaussian_space(p, count, rng):
    places = {"x": p.mu, "y": p.mu, "z": p.mu * p.c}
    return {n: m + p.s * rng.normal(size=count) for n, m in places.items()}


def needle(p, count, rng):
    peak = rng.random(count) < p.f
    flat = rng.uniform(0, 10, (2, count))
    return {
        n: np.where(peak, m + p.s * rng.normal(size=count), f)
        for n, m, f in zip("xy", (p.mx, p.my), flat, strict=True)
    }


BY_HAND = {
    "correlated_gaussian": gaussian_plane,
    "gaussian_in_three_dimensions": gaussian_space,
    "needle_on_a_plane": needle,
}


def rejected(row, which, point, count, rng):
    """Draw uniformly from a box and keep what lies below the density."""
    columns = {n: rng.uniform(*r, count) for n, r in row.box(which).items()}
    with np.errstate(all="ignore"):
        density = evaluate(row.model(which).density(), {**point, **columns})
    keep = rng.random(count) * density.max() < density
    return {n: c[keep] for n, c in columns.items()}


def draw(row, which, point, count, seed):
    """Draw so many events without the library."""
    rng = np.random.default_rng(seed)
    if len(row.ranges) == 1:
        return {"x": dense(row.name, which, tuple(point.items())).quantile(rng.random(count))}
    if row.name not in BY_HAND:
        return {n: c[:count] for n, c in rejected(row, which, point, 40 * count + 10**5, rng).items()}
    columns = BY_HAND[row.name](record(point), 40 * count, rng)
    inside = np.all([(columns[n] > a) & (columns[n] < b) for n, (a, b) in row.box(which).items()], axis=0)
    return {n: c[inside][:count] for n, c in columns.items()}


@lru_cache(maxsize=64)
def dense(name, which, point):
    return Dense(ROWS[name], which, dict(point))


def events_at(row, which, point, count):
    """Return events with few digits that never change: quantiles in one dimension, and a draw in more."""
    if len(row.ranges) == 1:
        columns = {
            "x": dense(row.name, which, tuple(point.items())).quantile((np.arange(count) + OFFSET) / count)
        }
    else:
        columns = draw(row, which, point, count, 1)
    assert all(len(c) == count for c in columns.values())
    return {n: [float(f"{x:.9g}") for x in c] for n, c in columns.items()}
