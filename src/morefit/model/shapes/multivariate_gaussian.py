"""The Gaussian in several correlated observables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operand, add_all, const, evaluate, multiply_all, where
from morefit.model.arguments import Matrix, Numbers, Observables, described
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.formulas import normal_area, share_of
from morefit.model.integrate import integral_over
from morefit.model.observable import Box, Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

NUMERICAL = (2, 3)  # numbers of observables in which integrals over ranges are done numerically
OUTSIDE = 1e-6  # probability outside the ranges that is neglected, where there are more


@dataclass(frozen=True, init=False, eq=False)
class MultivariateGaussian(Pdf):
    r"""$e^{-\frac12(x-\mu)^T C^{-1}(x-\mu)}$ on the ranges of observables $x$, with a covariance matrix $C$.

    ``observables`` and ``means`` are lists of one length, ``covariance`` a list of rows, whose elements are numbers,
    parameters or formulas of them: ``[[s**2, r * s * w], [r * s * w, w**2]]``. Two and three observables are integrated by
    quadrature; of more, the ranges must hold all but 1e-6 of the events.

    Example: ``MultivariateGaussian([m, u], means=[5.8, 0.5], covariance=[[0.04, 0.01], [0.01, 0.01]])``
    """

    domain: Observables
    means: Numbers
    covariance: Matrix

    def __init__(
        self,
        observables: Sequence[Observable],
        means: Sequence[Operand],
        covariance: Sequence[Sequence[Operand]],
    ) -> None:
        for name, value in (("domain", observables), ("means", means), ("covariance", covariance)):
            object.__setattr__(self, name, value)
        super().__post_init__()
        whose, rows = "density 'MultivariateGaussian':", self.covariance
        if not self.domain or {len(self.domain)} != {len(self.means), len(rows), *map(len, rows)}:
            raise ModelError(
                f"{whose} observables, means, and rows and columns of the covariance must be equally many, got"
                f" {len(self.domain)}, {len(self.means)}, {len(rows)} and {[len(row) for row in rows]}"
            )
        for i, row in enumerate(rows):
            for j, element in enumerate(row[:i]):
                if element is not rows[j][i]:
                    raise ModelError(
                        f"{whose} covariance[{i}][{j}] must be covariance[{j}][{i}], got {described(element)} and"
                        f" {described(rows[j][i])}"
                    )
        if not self.given:
            self.check_start(whose)

    def check_start(self, whose: str) -> None:
        """Refuse a matrix that is not a covariance, or ranges that are too narrow for this number of observables."""
        starts = {p.name: p.start for p in self.parameters}
        if not float(evaluate(self.total_area(), starts)) > 0:
            raise ModelError(
                f"{whose} the covariance must be positive definite at the start of its parameters"
            )
        if (
            len(self.domain) > max(NUMERICAL)
            and not (outside := float(evaluate(self.outside(), starts))) < OUTSIDE
        ):
            raise ModelError(
                f"{whose} the ranges of more than {max(NUMERICAL)} observables must hold all but {OUTSIDE:g} of the"
                f" events, got {outside:.2g} outside; widen the ranges"
            )

    def cholesky(self, order: Sequence[int] | None = None) -> list[list[Expr]]:
        """Return the lower triangular matrix L with L L^T = C; not a number where C is not positive definite.

        Rows and columns of C may be taken in another order.
        """
        lower: list[list[Expr]] = []
        rows = range(len(self.covariance)) if order is None else order
        for i, row in enumerate(rows):
            new: list[Expr] = []
            for j, value in enumerate(self.covariance[row][k] for k in rows[: i + 1]):
                others = new if i == j else lower[j]
                left = value - add_all(const(0), *(a * b for a, b in zip(new[:j], others[:j], strict=True)))
                new.append(Op.SQRT(left) if i == j else left / lower[j][j])
            lower.append(new)
        return lower

    def density(self) -> Expr:
        pulls: list[Expr] = []
        for x, mean, row in zip(self.domain, self.means, self.cholesky(), strict=True):
            pulls.append((x - mean - weighted(row, pulls)) / row[-1])
        return Op.EXP(-0.5 * add_all(const(0), *(z**2 for z in pulls)))

    def total_area(self) -> Expr:
        """Return the integral over all of space."""
        norm = math.sqrt(2 * math.pi) ** len(self.domain)
        return multiply_all(const(norm), *(row[-1] for row in self.cholesky()))

    def box_area(self, box: Sequence[Observable], parameters: Sequence[Parameter]) -> Expr:
        """Return the integral over a box, with the last observable in closed form, and the others over shares of their events.

        In these the density is as smooth as a distribution function, however narrow the peak and however large its
        correlations are (A. Genz, J. Comput. Graph. Stat. 1 (1992) 141).
        """
        pulls: list[Expr] = []
        shares = [share_of(o) for o in box[:-1]]
        body = multiply_all(*(row[-1] for row in self.cholesky()))
        for k, (o, mean, row) in enumerate(zip(box, self.means, self.cholesky(), strict=True)):
            ends = (const(end) - mean - weighted(row, pulls) for end in (o.low, o.high))
            part = Core(ONE, *(end / row[-1] for end in ends))
            body = body * part.area
            pulls += [part.point(share.expr * part.area) for share in shares[k : k + 1]]
        return integral_over(body, shares, parameters)

    def partly_integrated(
        self, x: Observable, others: tuple[Observable, ...]
    ) -> tuple[Expr, tuple[Observable, ...]]:
        if self.given or not others:
            return super().partly_integrated(x, others)
        names = [o.name for o in self.domain]
        order, last = [names.index(o.name) for o in (x, *others)], others[-1]
        pulls: list[Expr] = []
        for k, row in zip(order[:-1], self.cholesky(order), strict=False):
            pulls.append((self.domain[k] - self.means[k] - weighted(row, pulls)) / row[-1])
        *_, row = self.cholesky(order)
        centre = self.means[order[-1]] + weighted(row, pulls)
        area = normal_area(const(last.low) - centre, const(last.high) - centre, row[-1])
        return Op.EXP(-0.5 * add_all(const(0), *(z**2 for z in pulls))) * area, others[:-1]

    def integral_inside(self, box: tuple[Observable, ...], parameters: Sequence[Parameter]) -> Expr:
        return super().integral_inside(box, parameters) if self.given else self.box_area(box, parameters)

    def area(self, boxes: Sequence[Box], values: Mapping[str, float] | None) -> Expr:
        if self.given or len(self.domain) not in NUMERICAL:
            return super().area(boxes, values)
        fixed = [Parameter(p.name, values[p.name], fixed=True) for p in self.parameters] if values else []
        inside = ([o.within(box) for o in self.domain] for box in boxes)
        return add_all(const(0), *(self.box_area(box, fixed or self.parameters) for box in inside))

    def integral(self) -> Expr:
        if len(self.domain) == 1 or len(self.domain) in NUMERICAL:
            return super().integral()
        # a density that is refused
        return where(self.outside() < OUTSIDE, self.total_area(), -self.total_area())

    def known_integral(self) -> Expr | None:
        return self.integral() if len(self.domain) not in NUMERICAL else None

    def inside(self, k: int, low: Expr, high: Expr) -> Expr:
        """Return the probability that one observable lies in a range, whatever the others are."""
        sigma = Op.SQRT(self.covariance[k][k])
        area = normal_area(low - self.means[k], high - self.means[k], sigma)
        return area / (math.sqrt(2 * math.pi) * sigma)

    def outside(self) -> Expr:
        """Return what the probability outside the ranges does not exceed."""
        return add_all(*(1 - self.inside(k, const(o.low), const(o.high)) for k, o in enumerate(self.domain)))

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        return self.inside(0, low, high) * self.total_area() if len(self.domain) == 1 else None

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        if self.given:
            return super().recipe(recipes)

        def points(numbers: Sequence[Expr]) -> list[Expr]:
            normal = [Op.NDTRI(u) for u in numbers]
            return [
                mean + add_all(*(a * z for a, z in zip(row, normal, strict=False)))
                for mean, row in zip(self.means, self.cholesky(), strict=True)
            ]

        return recipes.transformed(self, len(self.domain), points, self.total_area())


def weighted(row: Sequence[Expr], pulls: Sequence[Expr]) -> Expr:
    """Return what a row of the Cholesky matrix adds to a mean, the pulls of the observables before being known."""
    return add_all(const(0), *(a * z for a, z in zip(row[:-1], pulls, strict=True)))
