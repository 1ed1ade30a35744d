"""The result of a fit: values, errors, covariance, validity, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr import Operand
from morefit.records.fields import (
    ByName,
    Interval,
    counts,
    flag,
    floats,
    matrix,
    minos_errors,
    pairs,
    regions,
    texts,
    words,
)
from morefit.records.named_arrays import FrozenByName, by_names
from morefit.text import elsewhere
from morefit.text.arguments import methods_in_sentences, no_attribute
from morefit.text.suggest import suggest
from morefit.validate import name_of

if TYPE_CHECKING:
    from morefit.likelihood import Term
    from morefit.minimise.derived import Derived, ErrorBudget
    from morefit.model.region import YieldsIn

FORMAT = "morefit fit result"
VERSION = 1
# Where errors can come from, and the note on it below the tables.
ERRORS = {
    "naive": "",
    "gradients": "gradients, the inverse of the sum of squared scores, which a kink that moves with a parameter leaves right",
    "sumw2": "sumw2, H^-1 H2 H^-1 with the Hessian H2 of squared weights",
    "sandwich": "sandwich, H^-1 C H^-1 with the sum C of squared weighted scores",
    "bootstrap": "bootstrap, the spread of the fits of replicas",
    "sweights": "sweights, H^-1 C H^-1 with the sum C of squares of what events add to the gradient, also by the weights",
}
# How each field is converted, whether it comes from a fit or from JSON text.
CONVERT: dict[str, Callable[[Any], Any]] = {
    "names": words,
    "values": floats,
    "errors": floats,
    "floating": words,
    "covariance": matrix,
    "nll": float,
    "edm": float,
    "valid": flag,
    "reasons": words,
    "at_limit": words,
    "limits": pairs,
    "calls": counts,
    "seconds": floats,
    "minos": minos_errors,
    "events": int,
    "backend": str,
    "minimiser": str,
    "errors_from": str,
    "flat_directions": lambda items: tuple(map(floats, items)),
    "integral_errors": floats,
    "labels": texts,
    "notes": words,
    "minima": lambda items: tuple((float(nll), floats(values)) for nll, values in items),
    "quantities": pairs,
    "choices": texts,
    "alternatives": floats,
    "blinded": lambda items: ByName(
        {str(n): (str(d), str(by), *map(float, numbers)) for n, (d, by, *numbers) in items.items()}
    ),
    "ranges": lambda parts: tuple(regions(part) for part in parts),
    "yields_in": words,
    "ndf": int,
    "simulation_errors": floats,
}


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class FitResult(FrozenByName):
    """The result of one fit; ``valid`` is False for a fit that did not converge, with the causes in ``reasons``.

    ``names`` are all parameters in the order of the model, ``floating`` those that were fitted, in the order
    of the rows of ``covariance``. Mappings such as ``values`` take a parameter or its name, and so does ``covariance[mu, sigma]``. Errors are 0 for fixed
    parameters and NaN without a covariance. ``nll`` is minus the logarithm of the likelihood. ``minos`` has
    (lower, upper) errors (lower < 0) of the parameters for which MINOS was run. ``errors_from`` is the kind of errors
    and covariance: "naive", "gradients", "sumw2", "sandwich", "bootstrap" or "sweights". ``flat_directions`` are those along which
    the likelihood does not change, each as changes of parameters by name; such parameters are ``undetermined`` and
    have no errors, those of the others are right. ``integral_errors`` estimates the errors that numerical integrals
    of the model cause: absolute in "nll", relative in "errors". ``labels`` are those of the parameters that have one.
    ``notes`` says what else is worth knowing, such as a side on which MINOS finds no error. ``minima`` are those of
    a fit from several starts, the lowest first: the nll of each, and where its floating parameters are.
    ``quantities`` are the value and the error of each ``mf.Derived`` of the model that no blinded parameter enters. ``blinded`` says for each
    blinded parameter, of which all numbers are those of the shown value, what its offset or scale is computed from, but for the
    phrase. ``choices`` are the labels that a fit of a model with choices decided for, ``alternatives`` the nll with
    penalties of each way to decide.
    ``ranges`` are those of a fit in ranges: for each part of the likelihood, (low, high) pairs by observable; and
    ``yields_in`` says for each part whether its yields and fractions count events in the "full" ranges or in the "range"
    of the fit.
    ``ndf`` is the number of degrees of freedom of a fit of bins or points, 0 for one of events.
    ``simulation_errors`` is the part of the errors that comes from simulated samples which normalise the model.
    ``likelihood`` is what was minimised, with its data; None for a result that was copied, pickled or read from a file.
    """

    names: tuple[str, ...]
    values: Mapping[Any, float]
    errors: Mapping[Any, float]
    floating: tuple[str, ...]
    covariance: Array
    nll: float
    edm: float
    valid: bool
    reasons: tuple[str, ...]
    at_limit: tuple[str, ...]
    limits: Mapping[Any, Interval]
    calls: Mapping[Any, int]
    seconds: Mapping[Any, float]
    minos: Mapping[Any, Interval]
    events: int
    backend: str
    minimiser: str
    errors_from: str = "naive"
    flat_directions: tuple[Mapping[Any, float], ...] = ()
    integral_errors: Mapping[Any, float] = field(default_factory=dict)
    labels: Mapping[Any, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    minima: tuple[tuple[float, Mapping[Any, float]], ...] = ()
    quantities: Mapping[Any, Interval] = field(default_factory=dict)
    blinded: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)
    choices: Mapping[Any, str] = field(default_factory=dict)
    alternatives: Mapping[Any, float] = field(default_factory=dict)
    ranges: tuple[Mapping[Any, tuple[Interval, ...]], ...] = ()
    yields_in: tuple[YieldsIn, ...] = ()
    ndf: int = 0
    simulation_errors: Mapping[Any, float] = field(default_factory=dict)
    likelihood: ClassVar[Term | None] = None  # of each result that comes from a fit

    converted = CONVERT
    named = {"covariance": ("floating", 2)}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return no_attribute(self, name, elsewhere.RESULT, elsewhere.VALUE_OF, vars(self).get("names", ()))

        def __getitem__(self, name: object) -> NoReturn:
            raise TypeError(f"fit result: has no items, got {name_of(name)!r}; {elsewhere.NUMBERS}")

    def __post_init__(self) -> None:
        super().__post_init__()
        size = len(self.floating)
        if self.covariance.shape != (size, size):
            raise DataError(
                f"fit result: covariance must have shape {(size, size)}, got {self.covariance.shape}"
            )
        if self.errors_from not in ERRORS:
            raise DataError(
                f"fit result: errors_from must be one of {', '.join(map(repr, ERRORS))}, got {self.errors_from!r}"
            )
        if not set(self.floating) <= set(self.names) == set(self.values) == set(self.errors):
            raise DataError("fit result: names, floating, values and errors must name the same parameters")

    def fitted_to(self, likelihood: Term) -> FitResult:
        """Set the likelihood that was minimised, without its kernels and what backends hold of its data."""
        light = likelihood.with_parts([part.replaced() for part in likelihood.parts])
        object.__setattr__(self, "likelihood", light)
        return self

    @property
    def chi2(self) -> float:
        """The chi-square of a fit of bins or points, twice the nll; NaN for one of events, whose nll has no scale."""
        return 2 * self.nll if self.ndf else nan

    @property
    def p_value(self) -> float:
        """The probability of a larger chi-square, by its asymptotic distribution."""
        from scipy.special import chdtrc  # type: ignore[import-untyped]  # slow, and only few ask for it

        return float(chdtrc(self.ndf, self.chi2)) if self.ndf else nan

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The parameters that the data do not determine, in the order of ``floating``."""
        return tuple(n for n in self.floating if any(n in direction for direction in self.flat_directions))

    @property
    def correlation(self) -> Array:
        """The correlation matrix of the floating parameters, NaN where a variance is not positive."""
        variances = self.covariance.diagonal()
        deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Array = self.covariance / deviations / deviations[:, None]
        np.fill_diagonal(scaled, np.where(np.isnan(deviations), np.nan, 1.0))
        return by_names(scaled, self.floating, 2)

    def covariance_of(self, *parameters: Any) -> Array:
        """Return the covariance matrix of some floating parameters, which may be named, in that order."""
        rows = self._rows(parameters)
        return np.asarray(self.covariance[np.ix_(rows, rows)], np.float64)

    def correlation_of(self, one: Any, other: Any) -> float:
        """Return the correlation of two floating parameters, which may be named."""
        first, second = self._rows((one, other))
        return float(self.correlation[first, second])

    def _rows(self, parameters: tuple[Any, ...]) -> list[int]:
        """Return the rows of parameters in the covariance matrix."""
        names = [name_of(one) for one in parameters]
        if unknown := [name for name in names if not isinstance(name, str) or name not in self.floating]:
            each = (f"{name!r}: {self._why_no_covariance(name)}" for name in unknown)
            raise ModelError(f"parameter {'; parameter '.join(each)}")
        return [self.floating.index(name) for name in names]

    def _why_no_covariance(self, name: object) -> str:
        if isinstance(name, str) and name in self.names:
            return "was fixed and has no covariance"
        return f"not in the model; {suggest(name, self.floating)}"

    def derived(self, *expressions: Operand, unblind: str = "") -> Derived:
        """Compute expressions of the parameters at the minimum, with errors propagated by the whole covariance.

        Parameters in the expressions are identified by name; fixed ones are exact. Those of blinded parameters need
        their phrase.
        """
        from morefit.minimise.derived import propagate

        return propagate(expressions, self, unblind)

    def error_budget(self, parameter: Any, groups: Mapping[str, Any]) -> ErrorBudget:
        """Return how much of the error of a parameter comes from groups of others, by the covariance.

        ``groups`` are parameters, or lists of them, by name, as in {"luminosity": "lumi", "shape": [c1, c2]}. What is left
        where all of them are fixed is the statistical error.
        """
        from morefit.minimise.derived import budget_of

        return budget_of(self, parameter, groups)

    def unblind(self, phrase: str) -> Derived:
        """Return the true values of the parameters that are blinded with a phrase, and their covariance."""
        from morefit.minimise.derived import unblinded

        return unblinded(self, phrase)

    def to_latex(self) -> str:
        """Return values and errors as a tabular of LaTeX, rounded as in print, with the labels of the parameters."""
        from morefit.minimise.text import as_latex

        return as_latex(self)

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per parameter: value, errors, limits, and whether it was fixed or is at a limit.

        ``lower`` and ``upper`` are the errors of MINOS, NaN where it was not run.
        """
        from morefit.records.fields import data_frame

        minos = [self.minos.get(name, (nan, nan)) for name in self.names]
        limits = [self.limits.get(name, (-inf, inf)) for name in self.names]
        columns = {
            "value": [self.values[name] for name in self.names],
            "error": [self.errors[name] for name in self.names],
            "lower": [lower for lower, _ in minos],
            "upper": [upper for _, upper in minos],
            "low": [low for low, _ in limits],
            "high": [high for _, high in limits],
            "fixed": [name not in self.floating for name in self.names],
            "at_limit": [name in self.at_limit for name in self.names],
        }
        return data_frame(columns, self.names)

    def report(self, path: str | Path, likelihood: Term | None = None) -> None:
        """Write a report of the fit: one HTML page with everything in it, which opens without a network.

        It has the model as formula and tree, checks of the data, the result, correlations, a plot of each observable,
        the goodness of fit and versions. A result that was read from a file needs the ``likelihood`` for model, data and
        plots.
        """
        from morefit.plots.report import write_report

        write_report(self, path, self.likelihood if likelihood is None else likelihood)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON text, and write it to a file at a path that is not None.

        Numbers keep every bit; those that JSON cannot represent are the strings "nan", "inf" and "-inf".
        """
        from morefit.records.archive import to_json
        from morefit.records.output import complete_file

        content = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        text = to_json(content, format=FORMAT, version=VERSION)
        if path is not None:
            with complete_file(path, "fit result") as part:
                part.write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> FitResult:
        """Return the result that JSON text, or the file at a path, contains."""
        from morefit.records.archive import opened

        if isinstance(source, str) and source.lstrip().startswith("{"):
            return cls._from_text("fit result", source)
        with opened("fit result", source) as file:
            return cls._from_text(f"fit result '{source}'", file.read())

    @classmethod
    def _from_text(cls, what: str, text: str | bytes) -> FitResult:
        """Return the result in JSON text; ``what`` begins the message if there is none. Later fields may be absent."""
        from morefit.records.archive import from_json

        content = from_json(what, text, format=FORMAT, version=VERSION, writer="FitResult.to_json()")
        if absent := [one.name for one in fields(cls) if one.name not in content and is_required(one)]:
            raise DataError(f"{what}: the JSON text lacks {', '.join(map(repr, absent))}")
        try:
            return cls(**{one.name: content[one.name] for one in fields(cls) if one.name in content})
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{what}: the JSON text is damaged, {error}") from error

    def __str__(self) -> str:
        from morefit.minimise.text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from morefit.minimise.text import short

        return short(self)

    def _repr_html_(self) -> str:
        from morefit.minimise.text import as_html

        return as_html(self)


def is_required(one: Field[Any]) -> bool:
    """Return whether a field of a record has no default."""
    return one.default is MISSING and one.default_factory is MISSING
