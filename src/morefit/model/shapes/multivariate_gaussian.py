"""The Gaussian in several correlated observables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, const, evaluate, multiply_all, where
from morefit.model.arguments import ANY, check_operand, described, listed
from morefit.model.conditional import check_observables
from morefit.model.formulas import normal_area
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf, Recipe, Recipes

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

    domain: tuple[Observable, ...]
    means: tuple[Expr, ...]
    covariance: tuple[tuple[Expr, ...], ...]

    def __init__(
        self,
        observables: Sequence[Observable],
        means: Sequence[Operand],
        covariance: Sequence[Sequence[Operand]],
    ) -> None:
        whose, given = "density 'MultivariateGaussian':", frozenset(o.name for o in self.given)
        domain = check_observables(f"{whose} observables", observables)
        rows = [
            listed(f"{whose} covariance[{k}]", row)
            for k, row in enumerate(listed(f"{whose} covariance", covariance))
        ]
        centres = listed(f"{whose} means", means)
        if not domain or {len(domain)} != {len(centres), len(rows), *map(len, rows)}:
            raise ModelError(
                f"{whose} observables, means, and rows and columns of the covariance must be equally many, got"
                f" {len(domain)}, {len(centres)}, {len(rows)} and {[len(row) for row in rows]}"
            )

        def checked(what: str, value: Operand) -> Expr:
            return check_operand(f"{whose} {what}", value, ANY, "give numbers or formulas", given)

        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "means", tuple(checked(f"means[{k}]", m) for k, m in enumerate(centres)))
        matrix = tuple(
            tuple(checked(f"covariance[{i}][{j}]", value) for j, value in enumerate(row))
            for i, row in enumerate(rows)
        )
        object.__setattr__(self, "covariance", matrix)
        for i, row in enumerate(matrix):
            for j, value in enumerate(row[:i]):
                if value is not matrix[j][i]:
                    raise ModelError(
                        f"{whose} covariance[{i}][{j}] must be covariance[{j}][{i}], got {described(value)} and"
                        f" {described(matrix[j][i])}"
                    )

        if not given:
            self.check_start(whose)

    def check_start(self, whose: str) -> None:
        """Refuse a covariance that is none, or ranges that are too narrow for so many observables."""
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

    def cholesky(self) -> list[list[Expr]]:
        """Return the lower triangular matrix L with L L^T = C; not a number where C is not positive definite."""
        lower: list[list[Expr]] = []
        for i, row in enumerate(self.covariance):
            new: list[Expr] = []
            for j, value in enumerate(row[: i + 1]):
                others = new if i == j else lower[j]
                left = value - add_all(const(0), *(a * b for a, b in zip(new[:j], others[:j], strict=True)))
                new.append(Op.SQRT(left) if i == j else left / lower[j][j])
            lower.append(new)
        return lower

    def density(self) -> Expr:
        pulls: list[Expr] = []
        for x, mean, row in zip(self.domain, self.means, self.cholesky(), strict=True):
            known = add_all(const(0), *(a * z for a, z in zip(row[:-1], pulls, strict=True)))
            pulls.append((x - mean - known) / row[-1])
        return Op.EXP(-0.5 * add_all(const(0), *(z**2 for z in pulls)))

    def total_area(self) -> Expr:
        """Return the integral over all of space."""
        norm = math.sqrt(2 * math.pi) ** len(self.domain)
        return multiply_all(const(norm), *(row[-1] for row in self.cholesky()))

    def integral(self) -> Expr:
        if len(self.domain) == 1 or len(self.domain) in NUMERICAL:
            return super().integral()
        return where(
            self.outside() < OUTSIDE, self.total_area(), -self.total_area()
        )  # a density that is refused

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
