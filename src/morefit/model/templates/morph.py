"""Interpolation between densities with a parameter: of their heights, or of their means and widths as well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, as_double, const, evaluate, substitute, to_text
from morefit.expr.interpolate import clip, interp
from morefit.model.arguments import ANY, check_operand, described
from morefit.model.compose.checks import check_observables_of, check_parts
from morefit.model.compose.sum import Sum
from morefit.model.integrate import integral_over
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf

LABEL = 30  # characters of the parameter in a label


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Morph(Sum):
    r"""$\sum_iw_i(\theta)\,p_i$: between two values of $\theta$ that have a density, both, weighted by the distances.

    Parameters
    ----------
    parameter : a parameter whose limits lie between the outer values, or an expression
    templates : normalised densities in the same observables, by the value of the parameter they belong to

    The likelihood has a kink where the parameter passes a value. Beyond the outer values the density does not change.
    """

    parameter: Expr
    points: tuple[float, ...]

    def __init__(self, parameter: Operand, templates: Mapping[float, Pdf]) -> None:
        theta, points, pdfs = check_templates("morph", parameter, templates)
        weights = hats(theta, points)
        object.__setattr__(self, "parameter", theta)
        object.__setattr__(self, "points", points)
        labels = [f"{to_text(theta, LABEL)} = {point:g}" for point in points]
        super().__init__(pdfs, fractions=weights[:-1], labels=labels)

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The factor of each density; that of the last is never negative by rounding."""
        return hats(self.parameter, self.points)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MomentMorph(Pdf):
    r"""$\sum_iw_i(\theta)\,a_i\,p_i(a_ix+b_i)$ with $a_i,b_i$ such that all have the same mean and standard deviation.

    Means and standard deviations of the densities are interpolated linearly in $\theta$, so that peaks move and widen.
    Densities have one observable and no parameters of their own; they are taken beyond its range as their formulas go on.
    The arguments are those of ``Morph``. (M. Baak et al., NIM A 771 (2015) 39)
    """

    parameter: Expr
    points: tuple[float, ...]
    pdfs: tuple[Pdf, ...]

    def __init__(self, parameter: Operand, templates: Mapping[float, Pdf]) -> None:
        theta, points, pdfs = check_templates("moment morph", parameter, templates)
        if len(pdfs[0].observables) != 1:
            raise ModelError(
                f"moment morph: takes densities of one observable, got {len(pdfs[0].observables)}; use mf.Morph"
            )
        if free := sorted({p.name for pdf in pdfs for p in pdf.parameters}):
            raise ModelError(
                f"moment morph: its densities must have no parameters, got '{free[0]}'; use mf.Morph"
            )
        object.__setattr__(self, "parameter", theta)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "pdfs", pdfs)
        object.__setattr__(self, "_moments", np.array([moments(pdf) for pdf in pdfs]))

    def maps(self) -> list[tuple[Expr, Expr, Expr, Pdf]]:
        """Return the weight, scale and shift of each density."""
        means, widths = vars(self)["_moments"][:, 1:].T
        mean, width = (interp(self.parameter, self.points, numbers) for numbers in (means, widths))
        scales = [float(w) / width for w in widths]
        return [
            (weight / integral, scale, float(m) - mean * scale, pdf)
            for weight, scale, m, integral, pdf in zip(
                hats(self.parameter, self.points),
                scales,
                means,
                vars(self)["_moments"][:, 0],
                self.pdfs,
                strict=True,
            )
        ]

    def density(self) -> Expr:
        (x,) = self.pdfs[0].observables
        return add_all(*(
            weight * scale * substitute(pdf.density(), {x.expr: scale * x + shift})
            for weight, scale, shift, pdf in self.maps()
        ))  # fmt: skip

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        areas = [
            (weight, pdf.integral_between(scale * low + shift, scale * high + shift))
            for weight, scale, shift, pdf in self.maps()
        ]
        terms = [weight * area for weight, area in areas if area is not None]
        return add_all(*terms) if len(terms) == len(areas) else None


def hats(theta: Expr, points: tuple[float, ...]) -> tuple[Expr, ...]:
    """Return the weight of each point: one there, and falling to zero at the next ones."""
    rising = [(clip(theta, points[0], points[-1]) - low) / (high - low) for low, high in pairwise(points)]
    weights = []
    for k in range(len(points)):
        sides = [*rising[k - 1 : k], *(1 - share for share in rising[k : k + 1])]
        weights.append(Op.MAX(sides[0] if len(sides) == 1 else Op.MIN(*sides), const(0)))
    return tuple(weights)


def moments(pdf: Pdf) -> tuple[float, float, float]:
    """Return the integral, the mean and the standard deviation of a density without parameters."""
    (x,) = pdf.observables
    total = float(evaluate(pdf.integral(), {}))

    def mean_of(factor: Expr) -> float:
        return float(evaluate(integral_over(factor * pdf.density(), (x,), ()), {})) / total

    mean = mean_of(x.expr)
    return total, mean, math.sqrt(mean_of((x - mean) ** 2))


def check_templates(
    kind: str, parameter: Any, templates: Any
) -> tuple[Expr, tuple[float, ...], tuple[Pdf, ...]]:
    """Return the parameter, the values it has densities at, in rising order, and the densities."""
    if not isinstance(templates, Mapping):
        raise ModelError(
            f"{kind}: needs densities by value, as in {{0.0: pdf, 1.0: other}}, got {described(templates)}"
        )
    values = {as_double(value): pdf for value, pdf in templates.items()}
    if None in values or not all(math.isfinite(value) for value in values if value is not None):
        raise ModelError(f"{kind}: values of densities must be finite numbers, got {list(templates)}")
    pdfs = check_parts(kind, [pdf for _, pdf in sorted(values.items())])
    points = tuple(sorted(value for value in values if value is not None))
    check_observables_of(kind, pdfs)
    theta = check_operand(f"{kind}: the parameter", parameter, ANY)
    symbol = theta.value
    if theta.op is Op.SCALAR and isinstance(symbol, Parameter) and not symbol.fixed:
        low, high = symbol.low, symbol.high
        if low < points[0] or high > points[-1]:
            raise ModelError(
                f"{kind}: parameter '{symbol.name}' must have limits in [{points[0]:g}, {points[-1]:g}], where there are"
                f" densities, got [{low:g}, {high:g}]; narrow its limits"
            )
    return theta, points, pdfs
