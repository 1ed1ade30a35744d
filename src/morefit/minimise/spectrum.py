"""Directions of parameters with and without curvature: what data determine, what they do not, and how to say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.minimise.quadratic_model import OPEN, SUSPECT, WIDEST

NULL = 1e-11  # of a Hessian scaled to a unit diagonal: a smaller eigenvalue is zero but for rounding
UNTOUCHED = 1e-6  # of the largest component: what is smaller in a direction is rounding
FALLING = 0.01  # of the nll, for an error or the way between limits: a slope that is no rounding
SADDLE = 0.01  # of a mixed element, in errors and ways between limits: more, next to no curvature, is negative curvature
SETTLED = 0.1  # relative: an eigenvalue that changes by more from step to step is not one of the minimum

Direction = Mapping[str, float]  # how much each parameter changes along a line; the largest change is one


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The Hessian of the free ones of P parameters, in units that give it a unit diagonal: F eigenvalues."""

    scale: Array  # (P,) the units
    eigenvalues: Array  # (F,) in ascending order
    vectors: Array  # (P, F) in these units; zero for a parameter at a limit
    slopes: Array  # (F,) the gradient along each

    @property
    def null(self) -> Flags:
        """Which eigenvalues are zero but for rounding."""
        return np.asarray(np.abs(self.eigenvalues) < NULL, np.bool_)

    @property
    def falling(self) -> Flags:
        """Which directions have a slope but no curvature that could end it."""
        return np.asarray(self.null & (np.abs(self.slopes) > FALLING), np.bool_)

    @property
    def definite(self) -> bool:
        """Whether no eigenvalue is negative and nothing falls without end."""
        return bool(np.all(self.eigenvalues > -NULL) and not self.falling.any())

    @property
    def known(self) -> Flags:
        """Which directions have a minimum."""
        return np.asarray(self.eigenvalues >= NULL, np.bool_)

    @property
    def edm(self) -> float:
        """Half of g H^-1 g along the directions that have a minimum."""
        return float(0.5 * np.sum(self.slopes[self.known] ** 2 / self.eigenvalues[self.known]))

    @property
    def suspicious(self) -> bool:
        """Whether an eigenvalue is so small that the distance to the minimum may have made it."""
        return bool(np.any(np.abs(self.eigenvalues) < SUSPECT * sqrt(2 * self.edm))) or not self.definite

    @property
    def step(self) -> Array:
        """The way to the minimum along the directions that have one."""
        known = self.known
        move = self.vectors[:, known] @ (self.slopes[known] / self.eigenvalues[known])
        return np.asarray(-self.scale * move, np.float64)

    @property
    def inverse(self) -> Array:
        """The inverse Hessian along the directions that have curvature, (P, P)."""
        known = self.known
        roots = self.scale[:, None] * self.vectors[:, known] / np.sqrt(self.eigenvalues[known])
        return np.asarray(roots @ roots.T, np.float64)

    def agrees_with(self, other: Spectrum) -> bool:
        """Return whether two spectra have the same eigenvalues, so that these do not depend on the point."""
        if self.eigenvalues.shape != other.eigenvalues.shape:
            return False
        same = np.abs(self.eigenvalues - other.eigenvalues) <= SETTLED * np.abs(self.eigenvalues)
        return bool(np.all(same | (self.null & other.null)))

    def directions(self, names: Sequence[str], which: Flags) -> tuple[Direction, ...]:
        """Return some directions by name, each with as few parameters as possible."""
        directions = []
        for row in reduced(self.vectors[:, which].T):
            moved = np.where(np.abs(row) > UNTOUCHED, row * self.scale, 0.0)
            moved = moved / moved[np.argmax(np.abs(moved))]
            directions.append({n: float(c) for n, c in zip(names, moved, strict=True) if c != 0})
        return tuple(directions)


def least_curvature(sizes: Array, limits: Array) -> Array:
    """Return the curvature that a parameter needs: with less, its error is far wider than its limits, or its size."""
    low, high = limits.T
    way = np.minimum(high - low, OPEN * np.maximum(np.abs(sizes), 1.0))
    return np.asarray((WIDEST * way) ** -2, np.float64)


def decompose(hessian: Array, gradient: Array, sizes: Array, limits: Array, free: Flags) -> Spectrum | None:
    """Return the spectrum of the free parameters; None where the Hessian has no numbers.

    A parameter without curvature of its own is a direction of its own: what there is of it comes from rounding. But where
    it has a mixed derivative, as both factors of a * b at 0, there is a saddle.
    """
    if not (np.isfinite(hessian).all() and np.isfinite(gradient).all()):
        return None
    size, least = np.abs(np.diag(hessian)), least_curvature(sizes, limits)
    curved = size >= least
    scale = np.where(curved, np.maximum(size, least), WIDEST**2 * least) ** -0.5
    scaled = hessian * np.outer(scale, scale)
    mixed = (np.abs(scaled) > SADDLE) & ~np.eye(len(scale), dtype=np.bool_)
    matrix = np.where(np.outer(curved, curved) | mixed, scaled, 0.0)
    eigenvalues, some = np.linalg.eigh(matrix[np.ix_(free, free)])
    vectors = np.zeros((len(free), len(eigenvalues)))
    vectors[free] = some
    return Spectrum(scale, eigenvalues, vectors, (gradient * scale) @ vectors)


def reduced(rows: Array) -> Array:
    """Bring a basis to its reduced echelon form: the largest number of each row is one, and alone in its column."""
    rows = rows.copy()
    for k in range(len(rows)):
        i, j = (int(n) for n in np.unravel_index(np.argmax(np.abs(rows[k:])), rows[k:].shape))
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, j], rows[k])
    return rows


def in_words(direction: Direction) -> str:
    """Write a direction by the changes of its parameters."""
    names = sorted(direction, key=lambda name: -abs(direction[name]))
    return f"({', '.join(names)}) = ({', '.join(f'{direction[name]:.3g}' for name in names)})"
