"""A density between numbers on a grid, in one to three observables: integrated and drawn from exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Table, const, lookup, where
from morefit.expr.interpolate import (
    Interpolation,
    antiderivative,
    coefficients,
    corners,
    cubic_cells,
    monotone_slopes,
    piecewise,
)
from morefit.model.arguments import listing
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.in_use import CACHED
from morefit.model.observable import Box, Observable
from morefit.model.pdf import Change, Pdf, Shares


@dataclass(frozen=True, eq=False)
class Grid:
    """Numbers in cells between edges ("steps"), or at points that reach from end to end of each axis."""

    axes: tuple[Array, ...]
    values: Array
    interpolation: Interpolation
    slopes: Array | None = None  # at the points of a cubic, which has one axis

    @classmethod
    def of_bins(cls, edges: Sequence[Array], heights: Array, interpolation: Interpolation) -> Grid:
        """Put numbers into bins, or at their centres; the function is constant between the outer centres and the ends."""
        if interpolation == "steps":
            return cls(tuple(edges), heights, interpolation)
        axes = tuple(np.concatenate([e[:1], (e[1:] + e[:-1]) / 2, e[-1:]]) for e in edges)
        values = np.pad(heights, 1, mode="edge")
        if interpolation == "linear":
            return cls(axes, values, interpolation)
        widths = np.diff(axes[0])
        return cls(axes, values, interpolation, monotone_slopes(widths, np.diff(values) / widths))

    @property
    def rows(self) -> Array:
        """The polynomials of the cells of the only axis."""
        (axis,) = self.axes
        if self.slopes is not None:
            return cubic_cells(axis, self.values, self.slopes)
        return coefficients(axis, self.values, self.interpolation)

    def function(self, points: Sequence[Expr]) -> Expr:
        """Return the function of some expressions."""
        if len(points) == 1:
            return piecewise(points[0], self.axes[0], self.rows)
        return corners(points, self.axes, self.values, self.interpolation == "linear")

    def cut(self, k: int, low: float, high: float) -> Grid:
        """Return the grid with one axis cut to a range."""
        axis, values = self.axes[k], np.moveaxis(self.values, k, 0)
        inner = (axis > low) & (axis < high)
        cells = np.searchsorted(axis, [low], "right")[0] - 1, np.searchsorted(axis, [high], "left")[0] - 1
        axes = (*self.axes[:k], np.concatenate([[low], axis[inner], [high]]), *self.axes[k + 1 :])
        if self.interpolation == "steps":
            return replace(self, axes=axes, values=self.values.take(np.arange(cells[0], cells[1] + 1), k))
        distances = np.array([low, high]) - axis[list(cells)]
        if self.slopes is not None:
            powers = np.arange(4)[:, None]
            ends = self.rows[:, list(cells)]
            steep = np.sum(powers[1:] * ends[1:] * distances ** powers[:-1], axis=0)
            slopes = np.concatenate([steep[:1], self.slopes[inner], steep[1:]])
            at_ends = np.sum(ends * distances**powers, axis=0)
        else:
            slopes = None
            shares = distances / (axis[1:] - axis[:-1])[list(cells)]
            at_ends = np.array(
                [(1 - t) * values[c] + t * values[c + 1] for t, c in zip(shares, cells, strict=True)]
            )
        values = np.concatenate([at_ends[:1], values[inner], at_ends[1:]])
        return replace(self, axes=axes, values=np.moveaxis(values, 0, k), slopes=slopes)

    def sizes(self, k: int) -> Array:
        """Return the integral of what each number of an axis multiplies: a box, or a hat between its neighbours."""
        widths = np.diff(self.axes[k])
        return (
            widths if self.interpolation == "steps" else (np.append(widths, 0) + np.insert(widths, 0, 0)) / 2
        )

    def without(self, k: int) -> Grid:
        """Return the grid integrated over one axis."""
        values = np.tensordot(self.values, self.sizes(k), (k, 0))
        return replace(self, axes=self.axes[:k] + self.axes[k + 1 :], values=values)

    @property
    def weights(self) -> Array:
        """The integral of the part of each number, of steps and lines."""
        weights = self.values
        for k in range(weights.ndim):
            weights = weights * self.sizes(k).reshape([-1 if j == k else 1 for j in range(weights.ndim)])
        return weights

    @property
    def total(self) -> float:
        if self.slopes is None:
            return float(np.sum(self.weights))
        powers = np.arange(1, 5)[:, None]
        return float(np.sum(self.rows / powers * np.diff(self.axes[0]) ** powers))

    def scaled(self, factor: float) -> Grid:
        """Return the grid times a number."""
        slopes = None if self.slopes is None else self.slopes * factor
        return replace(self, values=self.values * factor, slopes=slopes)

    def point(self, k: int, index: Expr, number: Expr) -> Expr:
        """Return a random place on an axis, in the box or under the hat of one of its numbers."""
        axis = self.axes[k]
        widths = np.diff(axis)
        if self.interpolation == "steps":
            table = Table.of(np.column_stack([axis[:-1], widths]))
            return lookup(table, 2 * index) + lookup(table, 2 * index + 1) * number
        table = Table.of(np.column_stack([axis, np.insert(widths, 0, 0), np.append(widths, 0)]))
        centre, left, right = (lookup(table, 3 * index + j) for j in range(3))
        place = number * (left + right) - left
        below = Op.SQRT(Op.MAX(left * (place + left), const(0))) - left
        above = right - Op.SQRT(Op.MAX(right * (right - place), const(0)))
        return centre + where(place < 0, below, above)


class GridDensity(Pdf):
    """A density that is a grid; ``domain`` are its observables, to whose ranges ``_grid`` is cut."""

    extends = False
    domain: tuple[Observable, ...]
    _grid: Grid
    _density: Expr

    def take(self, observables: Sequence[Observable], grid: Grid) -> None:
        """Cut a grid to the ranges of observables, and normalise it."""
        if self.given:
            raise ModelError(
                f"density '{type(self).__name__}': cannot be conditional, got given {listing(self.given)}; write"
                " mf.Density(mf.histogram_function(...), observables, given=[...], integral=...)"
            )
        for k, o in enumerate(observables):
            grid = grid.cut(k, o.low, o.high)
        if not grid.total > 0:
            ranges = ", ".join(f"[{o.low:g}, {o.high:g}] of '{o.name}'" for o in observables)
            raise ModelError(
                f"density '{type(self).__name__}': must be positive somewhere, got zero in all of {ranges};"
                " choose another range"
            )
        object.__setattr__(self, "domain", tuple(observables))
        object.__setattr__(self, "_grid", grid.scaled(1 / grid.total))
        object.__setattr__(self, "_density", self._grid.function([o.expr for o in observables]))

    def density(self) -> Expr:
        return self._density

    def integral(self) -> Expr:
        return ONE

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if len(self.domain) > 1:
            return None
        (axis,), values = self._grid.axes, self._grid.values
        areas = antiderivative(axis, self._grid.rows)

        def area(end: Expr) -> Expr:
            before = float(values[0]) * Op.MIN(end - float(axis[0]), const(0))
            after = float(values[-1]) * Op.MAX(end - float(axis[-1]), const(0))
            return piecewise(end, axis, areas) + before + after

        return area(high) - area(low)

    def pieces(self) -> tuple[Array, Array] | None:
        return (self._grid.axes[0], self._grid.rows) if len(self.domain) == 1 else None

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        if self._grid.slopes is not None:
            return recipes.single(self)
        return recipes.cells(self._grid.weights, self.domain, self._grid.point)

    def inside(self, box: Box, without: str = "") -> Grid:
        """Return the grid cut to a box, and integrated over all axes but one."""
        grid, k = self._grid, 0
        for o in (o.within(box) for o in self.domain):
            grid = grid.cut(k, o.low, o.high) if o.name in box else grid
            if o.name == without:
                k += 1
            else:
                grid = grid.without(k)
        return grid

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        if len(self.domain) == 1:
            return ((ONE, self),)
        grid = self.inside({name: ends for name, ends in box.items() if name != x.name}, x.name)
        part = object.__new__(GridDensity)
        part.take((x,), grid)
        return ((const(grid.total), part),)

    def replaced(self, change: Change) -> Pdf:
        domain = change(self.domain)
        for old, new in zip(self.domain, domain, strict=True):
            if new.low < old.low or new.high > old.high:
                raise ModelError(
                    f"density '{type(self).__name__}': knows nothing outside [{old.low:g}, {old.high:g}] of '{old.name}',"
                    f" got [{new.low:g}, {new.high:g}]; make it anew"
                )
        other = object.__new__(type(self))
        vars(other).update({name: value for name, value in vars(self).items() if name not in CACHED})
        other.take(domain, self._grid)
        return other

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        if len(self.domain) == 1 or self.fits_into(box):
            return super().probability(box, values)
        return const(float(self.inside(box).values))
