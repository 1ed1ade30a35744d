"""A cubic spline as a density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand
from morefit.functions import Boundary, check_points, spline, spline_integral
from morefit.model.arguments import ANY, check_operand, described, listed
from morefit.model.observable import Observable
from morefit.model.pdf import Change, Pdf


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Spline(Pdf):
    r"""$s(x)$, the cubic spline through values at knots, or $e^{s(x)}$ with ``exponential=True``.

    ``values`` are numbers, parameters or expressions, one for each of the ``knots``, which are numbers that cover the range
    of $x$. Only ratios of values matter (with ``exponential``: differences), so make one of them a number. ``boundary`` is
    "not-a-knot", or "natural" for a second derivative of zero at both ends. (CubicSpline of scipy)

    Example: ``mf.Spline(m, [5.0, 5.5, 6.0, 7.0], [1.0, 0.8, 0.5, 0.4], boundary="natural")``
    """

    extends = False
    x: Observable
    knots: Array
    values: tuple[Expr, ...]
    boundary: Boundary
    exponential: bool

    def __init__(
        self,
        x: Observable,
        knots: Sequence[float] | Array,
        values: Sequence[Operand],
        *,
        boundary: Boundary = "not-a-knot",
        exponential: bool = False,
    ) -> None:
        if not isinstance(x, Observable):
            raise ModelError(f"density 'Spline': argument 'x' must be an observable, got {described(x)}")
        heights = listed("density 'Spline': argument 'values'", values)
        checked = [
            check_operand(f"density 'Spline': argument 'values[{k}]'", v, ANY) for k, v in enumerate(heights)
        ]
        ends, _ = check_points(knots, checked, boundary)
        if x.low < ends[0] or x.high > ends[-1]:
            raise ModelError(
                f"density 'Spline': knots must cover the range [{x.low:g}, {x.high:g}] of observable '{x.name}', got"
                f" [{ends[0]:g}, {ends[-1]:g}]; add knots, or narrow the range"
            )
        for name, value in (("x", x), ("knots", ends), ("values", tuple(checked)), ("boundary", boundary),
                            ("exponential", exponential)):  # fmt: skip
            object.__setattr__(self, name, value)

    def replaced(self, change: Change) -> Pdf:
        options: dict[str, Any] = {
            "boundary": self.boundary,
            "exponential": self.exponential,
            **self.conditional_option(change),
        }
        return Spline(change(self.x), self.knots, change(self.values), **options)

    def density(self) -> Expr:
        curve = spline(self.x, self.knots, self.values, boundary=self.boundary)
        return Op.EXP(curve) if self.exponential else curve

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if self.exponential:
            return None
        below, above = (
            spline_integral(end, np.asarray(self.knots), self.values, self.boundary) for end in (low, high)
        )
        return above - below
