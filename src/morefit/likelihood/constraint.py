"""Constraints: independent measurements of parameters, with the values that were measured and how toys draw them anew."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import ModelError, OptionError
from morefit.expr import Expr, Op, Operand, add_all, apply, evaluate, substitute, to_expr, to_text
from morefit.kernel.measured_program import COUNTED, LINEAR, LOGARITHMIC, MeasuredValue
from morefit.likelihood.measured_result import Measurement, measured_by
from morefit.likelihood.measured_values import covariance_of, expected_values, finite_values, in_order
from morefit.model import Parameter
from morefit.model.arguments import ANY, NOT_NEGATIVE, POSITIVE, check_formula, listed
from morefit.random.host import stream_key
from morefit.random.philox import toy_normals
from morefit.sampling.generate import poisson_counts, poisson_distribution
from morefit.text.arguments import in_sentences

QUANTITY = "constraint: quantity"  # for messages
SHOWN = 40  # characters of a quantity in print
Kind = Literal["gaussian", "poisson", "lognormal"]
Sample: TypeAlias = "Callable[[np.random.Generator, Mapping[str, float]], ArrayLike | Mapping[str, float]]"


class Constraint(ABC):
    """A measurement of quantities that are not in the data: ``nll`` is the term that it adds to a likelihood."""

    measured: tuple[float, ...]  # values
    is_square: ClassVar[bool] = False  # whether twice its nll is a chi-square

    @abstractmethod
    def nll(self, measured: Sequence[Expr]) -> Expr:
        """Return minus the logarithm of the probability of measured values, up to a constant."""

    @abstractmethod
    def draw(self, values: Mapping[str, float], seed: int, toys: Integers, *, around_data: bool) -> Array:
        """Draw measured values, (toys, values): around the quantities at these values of parameters, or around the data.

        Those of a toy depend on the seed and its number only.
        """

    def compiled_draw(self, values: Mapping[str, float], seed: int) -> list[MeasuredValue] | None:
        """Return how compiled code draws the same around the quantities at these values; None if it cannot."""
        return None

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """Return what is measured on average where parameters have these values; by default what was measured."""
        return self.measured

    def measuring(self, values: Sequence[float]) -> Self:
        """Return the same constraint, each of which is a dataclass, with other measured values."""
        constraint: Any = self
        return replace(constraint, measured=tuple(values))  # type: ignore[no-any-return]

    def changed(self, change: Callable[[Any], Any]) -> Self:
        """Return the same constraint, each of which is a dataclass, with other parameters in it."""
        constraint: Any = self
        return replace(constraint, **{f.name: change(getattr(self, f.name)) for f in fields(constraint)})  # type: ignore[no-any-return]

    def check_drawable(self) -> None:  # noqa: B027  most can
        """Refuse a constraint that toys cannot draw anew."""


@dataclass(frozen=True, eq=False)
class GaussianConstraint(Constraint):
    """Measured values with Gaussian errors, correlated or not."""

    is_square: ClassVar[bool] = True
    quantities: tuple[Expr, ...]
    measured: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]

    def nll(self, measured: Sequence[Expr]) -> Expr:
        away = [q - m for q, m in zip(self.quantities, measured, strict=True)]
        if len(away) == 1:
            return 0.5 * (away[0] / math.sqrt(self.covariance[0][0])) ** 2
        # with C = L L^T, half the squared length of L^-1 (q - m)
        whiten = np.linalg.inv(np.linalg.cholesky(np.array(self.covariance)))
        rows = [[float(w) * d for w, d in zip(row, away, strict=True) if w != 0] for row in whiten]
        return 0.5 * add_all(*((add_all(*row) if len(row) > 1 else row[0]) ** 2 for row in rows))

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(float(evaluate(q, values)) for q in self.quantities)

    def draw(self, values: Mapping[str, float], seed: int, toys: Integers, *, around_data: bool) -> Array:
        centre = self.measured if around_data else self.expected(values)
        deviations = np.stack([toy_normals(key, toys) for key in self.keys(seed)], axis=1)
        return np.asarray(centre + deviations @ np.linalg.cholesky(np.array(self.covariance)).T, np.float64)

    def keys(self, seed: int) -> list[int]:
        """Return the keys of the streams of normal numbers."""
        return [stream_key(seed, f"normal {k}") for k in range(len(self.measured))]

    def compiled_draw(self, values: Mapping[str, float], seed: int) -> list[MeasuredValue]:
        rows, keys = np.linalg.cholesky(np.array(self.covariance)), self.keys(seed)
        return [
            MeasuredValue(kind=LINEAR, numbers=[centre, *rows[k, : k + 1]], keys=keys[: k + 1])
            for k, centre in enumerate(self.expected(values))
        ]

    def __repr__(self) -> str:
        if len(self.measured) == 1:
            error = math.sqrt(self.covariance[0][0])
            return f"constraint({shown(self.quantities[0])} = {self.measured[0]:g} +- {error:g})"
        names = ", ".join(map(shown, self.quantities))
        return f"constraint({names} = {', '.join(f'{m:g}' for m in self.measured)}, correlated)"


@dataclass(frozen=True, eq=False)
class LogNormalConstraint(Constraint):
    """A measured value whose logarithm has a Gaussian error of ln(1 + error / value)."""

    is_square: ClassVar[bool] = True
    quantity: Expr
    measured: tuple[float, ...]
    width: float

    def nll(self, measured: Sequence[Expr]) -> Expr:
        return 0.5 * ((apply(Op.LOG, self.quantity) - apply(Op.LOG, measured[0])) / self.width) ** 2

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return (float(evaluate(self.quantity, values)),)

    def draw(self, values: Mapping[str, float], seed: int, toys: Integers, *, around_data: bool) -> Array:
        (centre,) = self.measured if around_data else self.expected(values)
        return np.asarray(
            centre * np.exp(self.width * toy_normals(stream_key(seed, "normal 0"), toys))[:, None], np.float64
        )

    def compiled_draw(self, values: Mapping[str, float], seed: int) -> list[MeasuredValue]:
        numbers, keys = [*self.expected(values), self.width], [stream_key(seed, "normal 0")]
        return [MeasuredValue(kind=LOGARITHMIC, numbers=numbers, keys=keys)]

    def __repr__(self) -> str:
        factor = math.exp(self.width)
        return f"constraint({shown(self.quantity)} = {self.measured[0]:g} times or divided by {factor:g})"


@dataclass(frozen=True, eq=False)
class PoissonConstraint(Constraint):
    """A count whose mean is the quantity, as in a control region."""

    quantity: Expr
    measured: tuple[float, ...]

    def nll(self, measured: Sequence[Expr]) -> Expr:
        return self.quantity - measured[0] * apply(Op.LOG, self.quantity)

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return (float(evaluate(self.quantity, values)),)

    def draw(self, values: Mapping[str, float], seed: int, toys: Integers, *, around_data: bool) -> Array:
        (mean,) = self.measured if around_data else self.expected(values)
        return poisson_counts(mean, stream_key(seed, "count"), toys)[:, None].astype(np.float64)

    def compiled_draw(self, values: Mapping[str, float], seed: int) -> list[MeasuredValue]:
        first, cumulative = poisson_distribution(self.expected(values)[0])
        # as many for means nearby, so that toys at several truths can be drawn together
        spare = (1 << len(cumulative).bit_length()) - len(cumulative)
        numbers = [float(first), *cumulative.tolist(), *[2.0] * spare]
        return [MeasuredValue(kind=COUNTED, numbers=numbers, keys=[stream_key(seed, "count")])]

    def __repr__(self) -> str:
        return f"constraint({shown(self.quantity)} = {self.measured[0]:g}, a count)"


@dataclass(frozen=True, eq=False)
class FormulaConstraint(Constraint):
    """Any term; toys draw the parameters ``seen`` that stand for measured values with ``sample``."""

    formula: Expr
    seen: tuple[Parameter, ...] = ()
    sample: Sample | None = None
    measured: tuple[float, ...] = ()

    def nll(self, measured: Sequence[Expr]) -> Expr:
        return substitute(self.formula, {p.expr: m for p, m in zip(self.seen, measured, strict=True)})

    def check_drawable(self) -> None:
        if self.sample is None:
            raise ModelError(
                f"constraint '{shown(self.formula)}': has no measured value that toys could draw anew; use"
                " mf.constraint(quantity, value, error), give measured= and sample=, or pass fluctuate=False where"
                " toys have that option"
            )

    def draw(self, values: Mapping[str, float], seed: int, toys: Integers, *, around_data: bool) -> Array:
        assert self.sample is not None
        rows, names = np.empty((len(toys), len(self.seen))), [p.name for p in self.seen]
        for row, toy in zip(rows, toys.tolist(), strict=True):
            rng = np.random.Generator(
                np.random.Philox(key=stream_key(seed, "formula"), counter=[0, 0, 0, toy])
            )
            drawn = self.sample(rng, dict(values))
            if (numbers := in_order(names, drawn)) is None:
                raise ModelError(
                    f"constraint '{shown(self.formula)}': sample must return {len(names)} finite numbers, those of"
                    f" {', '.join(map(repr, names))} in this order or by name, got {drawn!r}"
                )
            row[:] = numbers
        return rows

    def expected(self, values: Mapping[str, float]) -> tuple[float, ...]:
        solved = (
            expected_values(self.formula, [p.expr for p in self.seen], self.measured, values)
            if self.seen
            else ()
        )
        if solved is None:
            raise ModelError(
                f"constraint '{shown(self.formula)}': has no measured values with which it is lowest at the true parameters,"
                " so that nothing is expected of it; use mf.constraint(quantity, value, error), or toys"
            )
        return tuple(map(float, solved))

    def __repr__(self) -> str:
        return f"constraint({shown(self.formula)})"


@in_sentences
def constraint(
    quantity: Operand | Sequence[Operand],
    value: ArrayLike | Measurement | None = None,
    error: ArrayLike | None = None,
    *,
    kind: Kind = "gaussian",
    measured: Parameter | Sequence[Parameter] = (),
    sample: Sample | None = None,
) -> Constraint:
    """Return an independent measurement, to be passed as ``constraints=[...]``; toys draw its value anew.

    Parameters
    ----------
    quantity : what was measured: a parameter or an expression of parameters, or a list of them; or, without a value,
        a formula to add to minus the log likelihood as it is.
    value : what was found; one number for each quantity, or the result of another fit that measured these parameters.
    error : its standard deviation, or the covariance matrix of several.
    kind : "gaussian"; "lognormal", the logarithm having the Gaussian error ln(1 + error / value); "poisson", the value
        being a count whose mean is the quantity.
    measured : for a formula, the parameters in it that stand for measured values, which are their start values.
    sample : for a formula, a function of a numpy Generator and the true values by name that draws measured values, in order or
        by name.

    >>> import morefit as mf
    >>> mf.constraint(mf.Parameter("sigma", 0.02), 0.016, 0.001)
    constraint(sigma = 0.016 +- 0.001)

    Example: ``mf.constraint(sigma, 0.1, 0.01)``
    """
    if value is None:
        return formula_constraint(quantity, error, measured, sample)
    if sample is not None or isinstance(measured, Parameter) or len(measured):
        raise ModelError(
            "constraint: measured and sample belong to a formula; a value says what was measured"
        )
    if kind not in ("gaussian", "poisson", "lognormal"):
        raise OptionError(f"constraint: kind must be 'gaussian', 'lognormal' or 'poisson', got {kind!r}")
    if isinstance(quantity, str):
        raise ModelError(
            f"constraint: quantity must be a parameter or a formula, not a name, got {quantity!r}; pass the parameter"
        )
    quantities = listed(QUANTITY, quantity)
    if isinstance(value, Measurement):
        value, error = measured_by(value, quantities, plain=kind == "gaussian" and error is None)
    values = finite_values(value)
    if len(values) != len(quantities):
        raise ModelError(
            f"constraint: needs one value for each of {len(quantities)} quantities, got {len(values)}"
        )
    if kind == "gaussian":
        checked = tuple(check_formula(QUANTITY, q, ANY) for q in quantities)
        return GaussianConstraint(checked, tuple(values), covariance_of(error, len(values)))
    if len(values) > 1:
        raise ModelError(
            f"constraint: kind '{kind}' takes one quantity, got {len(values)}; make one constraint of each"
        )
    make = poisson_constraint if kind == "poisson" else lognormal_constraint
    return make(quantities[0], values[0], error)


def poisson_constraint(quantity: Operand, count: float, error: Any) -> Constraint:
    if error is not None:
        raise ModelError("constraint: a count has no error of its own; leave error out")
    if count < 0 or count != int(count):
        raise ModelError(f"constraint: a count must be a whole number from 0 on, got {count:g}")
    return PoissonConstraint(check_formula(QUANTITY, quantity, NOT_NEGATIVE), (count,))


def lognormal_constraint(quantity: Operand, value: float, error: Any) -> Constraint:
    positive = check_formula(QUANTITY, quantity, POSITIVE)
    if not value > 0:
        raise ModelError(f"constraint: a lognormal value must be positive, got {value:g}")
    return LogNormalConstraint(
        positive, (value,), math.log1p(math.sqrt(covariance_of(error, 1)[0][0]) / value)
    )


def formula_constraint(formula: Any, error: Any, measured: Any, sample: Sample | None) -> Constraint:
    if error is not None:
        raise ModelError("constraint: value is missing; write mf.constraint(quantity, value, error)")
    seen = (measured,) if isinstance(measured, Parameter) else tuple(measured)
    if wrong := [p for p in seen if not isinstance(p, Parameter)]:
        raise ModelError(f"constraint: measured must be parameters of the formula, got {wrong[0]!r}")
    if not (sample is None or callable(sample)):
        raise ModelError(f"constraint: sample must be a function of a generator and values, got {sample!r}")
    if (sample is None) != (not seen):
        raise ModelError("constraint: measured and sample go together: what is drawn anew, and how")
    return FormulaConstraint(
        check_formula("constraint:", formula, ANY), seen, sample, tuple(p.start for p in seen)
    )


def as_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """Return a list of constraints, or one alone; a formula becomes one, and one that is listed twice counts once."""
    if isinstance(constraints, tuple) and all(isinstance(c, Constraint) for c in constraints):
        return tuple(dict.fromkeys(constraints))
    each = (
        (constraints,)
        if isinstance(constraints, Constraint)
        else listed("likelihood: constraints", constraints)
    )
    return tuple(
        dict.fromkeys(
            c if isinstance(c, Constraint) else of_formula(check_formula(f"constraint {k}:", c, ANY))
            for k, c in enumerate(each, 1)
        )
    )


@lru_cache(maxsize=256)
def of_formula(formula: Expr) -> FormulaConstraint:
    """Return a formula as a constraint: the same one each time, as a formula that is added twice counts once."""
    return FormulaConstraint(formula)


def shown(expr: Expr) -> str:
    return to_text(to_expr(expr), SHOWN)
