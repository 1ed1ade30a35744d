"""Interpolation between densities with a parameter: of their heights, or of their means and widths as well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ZERO, Expr, Op, Operand, add_all, as_double, evaluate, substitute, to_text, where
from morefit.expr.interpolate import inside
from morefit.functions import spline
from morefit.model.arguments import ANY, check_operand, described
from morefit.model.compose.checks import check_observables_of, check_parts, conditional_on
from morefit.model.compose.sum import Sum
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.integrate import integral_over
from morefit.model.parameter import Parameter
from morefit.model.parts import check_known, check_same_simulations
from morefit.model.pdf import Change, Pdf
from morefit.model.region import Region

Weights = Literal["linear", "cubic"]
LABEL = 30  # characters of the parameter in a label


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Morph(Sum):
    r"""$\sum_iw_i(\theta)\,p_i$ with weights that add up to one, and $w_i=1$ where $\theta$ is the value of $p_i$.

    Parameters
    ----------
    parameter : a parameter whose limits lie between the outer values, or an expression; beyond, nothing changes any more
    templates : densities in the same observables, by the value of the parameter they belong to
    interpolation : "linear" takes the two next to the parameter, weighted by the distances: never negative, but the
        likelihood has a kink at each value, where a fit may end without a valid minimum. "cubic" takes natural splines:
        smooth, with weights that may be a little negative

    Example: ``mf.Morph(mu, {5.5: mf.Gaussian(m, 5.5, 0.1), 6.1: mf.Gaussian(m, 6.1, 0.1)})``
    """

    parameter: Expr
    points: tuple[float, ...]
    interpolation: Weights

    def __init__(
        self, parameter: Operand, templates: Mapping[float, Pdf], interpolation: Weights = "linear"
    ) -> None:
        theta, points, pdfs = check_templates("morph", parameter, templates)
        weights = weights_of("morph", theta, points, interpolation)
        labels = tuple(f"{to_text(theta, LABEL)} = {point:g}" for point in points)
        for name, value in (("pdfs", pdfs), ("fractions", weights[:-1]), ("yields", ()), ("labels", labels),
                            ("parameter", theta), ("points", points), ("interpolation", interpolation)):  # fmt: skip
            object.__setattr__(self, name, value)
        vars(self)["given"] = conditional_on("morph", self, pdfs)

    def replaced(self, change: Change) -> Pdf:
        return replaced_templates(self, change)

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The factor of each density."""
        return weights_of("morph", self.parameter, self.points, self.interpolation)

    def with_yields_in(self, region: Region) -> Pdf:
        """Return it with the fractions of its densities counted in a region; its own weights count no events."""
        pdfs = [pdf.with_yields_in(region) for pdf in self.pdfs]
        if all(new is old for new, old in zip(pdfs, self.pdfs, strict=True)):
            return self
        return Morph(self.parameter, dict(zip(self.points, pdfs, strict=True)), self.interpolation)

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        return super().recipe(recipes) if self.interpolation == "linear" else recipes.single(self)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MomentMorph(Pdf):
    r"""$\sum_iw_i(\theta)\,a_i\,p_i(a_ix+b_i)$ with $a_i,b_i$ such that all have the same mean and standard deviation.

    These are interpolated with the same weights, so that peaks move and widen. Densities have one observable and no
    parameters of their own; they are taken beyond its range as their formulas go on. The arguments are those of ``Morph``.
    (M. Baak et al., NIM A 771 (2015) 39)
    """

    parameter: Expr
    points: tuple[float, ...]
    pdfs: tuple[Pdf, ...]
    interpolation: Weights

    def __init__(
        self, parameter: Operand, templates: Mapping[float, Pdf], interpolation: Weights = "linear"
    ) -> None:
        theta, points, pdfs = check_templates("moment morph", parameter, templates)
        for pdf in pdfs:
            check_known(pdf, "a moment morph")
        if len(pdfs[0].observables) != 1:
            raise ModelError(
                f"moment morph: takes densities of one observable, got {len(pdfs[0].observables)}; use mf.Morph"
            )
        if free := sorted({p.name for pdf in pdfs for p in pdf.parameters}):
            raise ModelError(
                f"moment morph: its densities must have no parameters, got '{free[0]}'; use mf.Morph"
            )
        weights_of("moment morph", theta, points, interpolation)
        for name, value in (("parameter", theta), ("points", points), ("pdfs", pdfs), ("interpolation", interpolation),
                            ("_moments", tuple(moments(pdf) for pdf in pdfs))):  # fmt: skip
            object.__setattr__(self, name, value)

    def replaced(self, change: Change) -> Pdf:
        return replaced_templates(self, change)

    def maps(self) -> list[tuple[Expr, Expr, Expr, Pdf]]:
        """Return the weight, scale and shift of each density."""
        totals, means, widths = zip(*vars(self)["_moments"], strict=True)
        weights = weights_of("moment morph", self.parameter, self.points, self.interpolation)
        mean, width = (
            add_all(*(w * number for w, number in zip(weights, numbers, strict=True)))
            for numbers in (means, widths)
        )
        scales = [own / width for own in widths]
        return [
            (weight / total, scale, own - mean * scale, pdf)
            for weight, total, scale, own, pdf in zip(weights, totals, scales, means, self.pdfs, strict=True)
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


def weights_of(kind: str, theta: Expr, points: tuple[float, ...], interpolation: str) -> tuple[Expr, ...]:
    """Return the weight of the density of each point."""
    if interpolation == "linear":
        return hats(theta, points)
    if interpolation != "cubic":
        raise ModelError(f"{kind}: interpolation must be 'linear' or 'cubic', got {interpolation!r}")
    return tuple(spline(theta, points, row, boundary="natural") for row in np.eye(len(points)).tolist())


def hats(theta: Expr, points: tuple[float, ...]) -> tuple[Expr, ...]:
    """Return functions that are one at a point each, and fall to zero at the next ones.

    All are lines of the same segment everywhere, at its ends too, so that their derivatives add up to zero.
    """
    rising = [(inside(theta, points) - low) / (high - low) for low, high in pairwise(points)]
    weights = []
    for k in range(len(points)):
        values = {k - 1: rising[k - 1]} if k else {}
        values |= {k: 1 - rising[k]} if k < len(rising) else {}
        total = values.get(len(rising) - 1, ZERO)
        for segment in reversed(range(len(rising) - 1)):
            here = values.get(segment, ZERO)
            total = total if here is total else where(theta < points[segment + 1], here, total)
        weights.append(total)
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
    check_same_simulations("morph", pdfs)
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


def replaced_templates(morph: Morph | MomentMorph, change: Change) -> Pdf:
    """Return a morph with its parameter and templates changed by a function."""
    templates = dict(zip(morph.points, change(morph.pdfs), strict=True))
    return type(morph)(change(morph.parameter), templates, morph.interpolation)
