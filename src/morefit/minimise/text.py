"""A fit result as text, HTML and LaTeX: headline, tables of parameters and correlations, notes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from morefit.minimise.result import ERRORS, FitResult
from morefit.model.region import region_text
from morefit.text.rounding import duration, round_pdg
from morefit.text.tables import Column, html_page, latex_measurement, latex_table, latex_text, text_table

if TYPE_CHECKING:
    from morefit.records.fields import Interval

MAX_CORRELATED = 8  # floating parameters; a larger correlation matrix is not printed
COUNTED = {"full": "the full ranges", "range": "the fitted ranges"}
MAX_HEADING = 8  # characters of a name above a column of correlations


def as_text(result: FitResult) -> str:
    """Return a result as text for a terminal."""
    head = "\n".join([headline(result), *(f"  {reason}" for reason in result.reasons)])
    return "\n\n".join([head, *map(text_table, tables(result)), "\n".join(footlines(result))])


def as_html(result: FitResult) -> str:
    """Return a result as HTML for a notebook, with the labels of the parameters."""
    return html_page(
        headline(result),
        result.reasons,
        tables(result, lambda name: result.labels.get(name, name)),
        footlines(result),
        good=result.valid,
    )


def as_latex(result: FitResult) -> str:
    """Return values and errors as a tabular, with the labels of the parameters; why a fit is not valid as comments."""
    labels = [result.labels.get(name) or latex_text(name) for name in (*result.names, *result.quantities)]
    cells = [latex_cell(result, name) for name in result.names]
    cells += [
        latex_measurement(shown, error, None)
        for shown, error in (round_pdg(*pair) for pair in result.quantities.values())
    ]
    table = latex_table([Column("parameter", labels, numeric=False), Column("value", cells, numeric=False)])
    problems = [headline(result), *result.reasons] if not result.valid else []
    return "\n".join([*(f"% {' '.join(line.split())}" for line in problems), table])


def latex_cell(result: FitResult, name: str) -> str:
    """Return value and errors of a parameter, MINOS errors where there are some, and a remark in brackets."""
    value, error, lower, upper = rounded(result, name)
    minos = (lower, upper) if lower and "nan" not in (lower, upper) else None
    unknown = error == "UNDETERMINED"
    remarks = ["undetermined"] if unknown else []
    remarks += [flag(result, name).lower()] if flag(result, name) else []
    measured = latex_measurement(value, "" if unknown else error, minos)
    return f"{measured} ({', '.join(remarks)})" if remarks else measured


def short(result: FitResult) -> str:
    """Return a result in one line."""
    verdict = "valid" if result.valid else "NOT VALID"
    numbers = f"nll {likelihood_text(result.nll)}, edm {result.edm:.2g}"
    return (
        f"FitResult({verdict}, {numbers}, {len(result.floating)} floating parameters, {result.events} events)"
    )


def headline(result: FitResult) -> str:
    """Return validity, minimum and numbers of calls in one line."""
    verdict = "fit valid" if result.valid else "fit NOT VALID"
    if result.valid and result.undetermined:
        verdict += f" but for {', '.join(result.undetermined)}, UNDETERMINED with {', '.join(result.at_limit)} at the limit"
    calls = ", ".join(f"{count} {kind}" for kind, count in result.calls.items())
    numbers = f"nll {likelihood_text(result.nll)}, edm {result.edm:.2g}, {result.events} events"
    if result.ndf:
        numbers += f", chi2/ndf {result.chi2:.1f}/{result.ndf}"
    return f"{verdict}: {numbers}{f', calls: {calls}' if calls else ''}"


def likelihood_text(number: float) -> str:
    """Return a likelihood with three decimals, as its differences matter, or shorter if it is huge."""
    return f"{number:.3f}" if abs(number) < 1e12 else f"{number:.12g}"


def footlines(result: FitResult) -> list[str]:
    """Return the notes, what was chosen, where errors come from if they are not naive, the minimiser, the backend and the times of all stages."""
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in result.seconds.items())
    work = f"{result.minimiser} on {result.backend}{f': {times}' if times else ''}"
    errors = ERRORS[result.errors_from]
    lines = [f"choice '{name}': {label}" for name, label in result.choices.items()]
    if result.alternatives:
        each = [f"{label} {likelihood_text(nll)}" for label, nll in result.alternatives.items()]
        lines.append(f"nll with penalties: {', '.join(each)}")
    if result.simulation_errors:
        each = [f"{name} {error:.2g}" for name, error in result.simulation_errors.items()]
        lines.append(f"errors include those of the simulated samples: {', '.join(each)}")
    return [*result.notes, *range_lines(result), *lines, *[f"errors: {errors}"] * bool(errors), work]


def range_lines(result: FitResult) -> list[str]:
    """Return the ranges of the fit, a line for each part that has any, and what its yields and fractions count."""
    parts = zip(result.ranges, result.yields_in, strict=True)
    return [
        f"fitted {region_text(region)}; yields and fractions are those of {COUNTED[yields_in]}"
        for region, yields_in in parts
        if region
    ]


def tables(result: FitResult, label: Callable[[str], str] = str) -> list[list[Column]]:
    """Return the tables to print: parameters, and correlations if they are known and few."""
    few = 1 < len(result.floating) <= MAX_CORRELATED
    known = bool(np.isfinite(result.covariance).any())
    return [parameter_table(result, label), *([correlation_table(result, label)] if few and known else [])]


def parameter_table(result: FitResult, label: Callable[[str], str]) -> list[Column]:
    """Return one row per parameter and derived quantity: value, errors, limits, and a remark."""
    rows = [rounded(result, name) for name in result.names]
    rows += [
        (shown, error, "", "") for shown, error in (round_pdg(*pair) for pair in result.quantities.values())
    ]
    names, numbers = (*result.names, *result.quantities), zip(*rows, strict=True)
    headings = ("value", "error", "minos -", "minos +")
    columns = [Column(heading, cells) for heading, cells in zip(headings, numbers, strict=False)]
    columns.append(Column("limits", [limits(result, name) for name in names], numeric=False))
    columns.append(Column("", [flag(result, name) for name in names], numeric=False))
    return [
        Column("parameter", [*map(label, names)], numeric=False),
        *(c for c in columns if any(c.cells)),
    ]


def rounded(result: FitResult, name: str) -> tuple[str, str, str, str]:
    """Return value, error and MINOS errors of a parameter as text, empty where there are none."""
    value, error, *minos = round_pdg(
        result.values[name],
        result.errors[name],
        *result.minos.get(name, ()),
        limits=shown_limits(result, name),
    )
    error = "UNDETERMINED" if name in result.undetermined else error
    lower, upper = minos or ("", "")
    signed = upper if upper in ("", "nan") else f"+{upper}"
    return value, error if name in result.floating else "", lower, signed


def shown_limits(result: FitResult, name: str) -> Interval:
    """Return the limits of a floating parameter; a fixed one has none."""
    return result.limits.get(name, (-inf, inf)) if name in result.floating else (-inf, inf)


def limits(result: FitResult, name: str) -> str:
    """Return the limits of a floating parameter as text, empty if there are none."""
    low, high = shown_limits(result, name)
    if (low, high) == (-inf, inf):
        return ""
    return f"{'[' if isfinite(low) else '('}{low:.6g}, {high:.6g}{']' if isfinite(high) else ')'}"


def flag(result: FitResult, name: str) -> str:
    """Return whether something is derived, or a parameter that is blinded, fixed or at a limit; empty if nothing of that."""
    if name in result.quantities:
        return "derived"
    words = ["blinded"] * (name in result.blinded) + ["fixed"] * (name not in result.floating)
    return ", ".join([*words, *["AT LIMIT"] * (name in result.at_limit)])


def correlation_table(result: FitResult, label: Callable[[str], str]) -> list[Column]:
    """Return the lower triangle of the correlation matrix; long names are numbered in the headings."""
    names = [*map(label, result.floating)]
    long = max(map(len, names)) > MAX_HEADING
    rows = [f"{i} {name}" for i, name in enumerate(names, 1)] if long else names
    headings = [str(i) for i, _ in enumerate(names, 1)] if long else names
    lower = [
        [f"{round(x, 3) + 0.0:.3f}" if i >= j else "" for i, x in enumerate(row)]
        for j, row in enumerate(result.correlation.tolist())
    ]
    return [Column("correlation", rows, numeric=False), *map(Column, headings, lower)]
