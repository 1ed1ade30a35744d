"""An integral to be computed at run time: its domain, its integrand, and the places where a peak may hide."""

from __future__ import annotations

from functools import cached_property
from itertools import product

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, column, const, substitute
from morefit.expr.quadrature import Domain
from morefit.kernel.resolved import MAX_PROBES
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise

NARROW = 1e-6  # width of further peaks that move, in whose units the boxes around them are counted


@dataclass(frozen=True)
class Integral:
    """A domain, the integrand that its boxes are made for, and places on it where a peak may hide."""

    domain: Domain
    subject: tuple[Expr, ...]  # the integrand, the places, and conditions that could not be solved
    parameters: tuple[Expr, ...]

    @property
    def integrand(self) -> Expr:
        return self.subject[0]

    @cached_property
    def probed(self) -> tuple[tuple[Expr, ...], ...]:
        """Some places, as expressions of parameters: a coordinate on each axis."""
        by_axis: list[list[Expr]] = [[] for _ in self.domain.axes]
        for place, k in zip(self.subject[1:], self.domain.places, strict=False):
            by_axis[k].append(place)
        middle = [const((axis.low + axis.high) / 2) for axis in self.domain.axes]
        choices = [list(enumerate(own or [middle[k]])) for k, own in enumerate(by_axis)]
        ranked = sorted(product(*choices), key=rank_of) if any(by_axis) else ()
        points = []
        for point in ranked[: max(MAX_PROBES, self.domain.tracked)]:
            outer: dict[Expr, Expr] = {}
            for axis, (_, coordinate) in zip(self.domain.axes, point, strict=True):
                outer[column(axis.name)] = substitute(coordinate, outer)
            points.append(tuple(outer.values()))
        return tuple(points)

    @cached_property
    def probes(self) -> tuple[Expr, ...]:
        """At each of those places: the integrand, its second derivative along each axis, and the coordinates."""
        names = [column(axis.name) for axis in self.domain.axes]
        (simple,) = normalise(self.integrand)
        bends = [
            derivatives(slope, [u])[0] for u, slope in zip(names, derivatives(simple, names), strict=True)
        ]
        here = [dict(zip(names, point, strict=True)) for point in self.probed]
        probes: list[Expr] = []
        for k, at in enumerate(here):
            peak = (simple, *bends) if k < MAX_PROBES else (ONE, *(const(-(NARROW**-2)) for _ in bends))
            probes += (*(substitute(e, at) for e in peak), *at.values())
        return tuple(probes)

    @property
    def is_scanned(self) -> bool:
        """Whether there may be peaks at places that no formula gives."""
        return self.domain.hidden and len(self.domain.axes) == 1

    def values(self, row: Array) -> dict[str, float]:
        return {leaf.name: float(x) for leaf, x in zip(self.parameters, row, strict=True)}


def rank_of(point: tuple[tuple[int, Expr], ...]) -> tuple[bool, int]:
    """Return how likely a peak is at a point made of numbered places on each axis: those of one number belong together."""
    ranks = [rank for rank, _ in point]
    return len(set(ranks)) > 1, sum(ranks)
