"""What is drawn of a model and of data: components with their shares of the events, error bands of curves by differences, and blind ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.histogram import Histogram
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import Expr
from morefit.minimise import FitResult
from morefit.model import Observable, Pdf
from morefit.model.region import Range, check_range, listed_ranges
from morefit.validate import name_of

# names of artists that are no components
TAKEN = ("data", "model", "extrapolation", "band", "legend", "pulls", "residuals", "ratio")


def split(model: Pdf, labels: Sequence[str] | None, nested: bool = False) -> dict[str, tuple[Expr, Pdf]]:
    """Return the components of a model by name, each with its share of the events; a model without any is one."""
    names, parts = components_of(model, nested)
    names = names if labels is None else list(labels)
    if len(names) != len(parts) or len({*names, *TAKEN}) < len(names) + len(TAKEN):
        rule = f"labels must name the {len(parts)} components of the model, each differently"
        raise ModelError(f"plot: {rule} and not {', '.join(map(repr, TAKEN))}, got {names}")
    return dict(zip(names, parts, strict=True))


def components_of(model: Pdf, nested: bool) -> tuple[list[str], list[tuple[Expr, Pdf]]]:
    """Return the components of a model and their names; nested ones down to those that have no components."""
    names: list[str] = []
    parts: list[tuple[Expr, Pdf]] = []
    for name, (share, part) in zip(model.share_names(), model.shares(), strict=True):
        inner, own = components_of(part, nested) if nested and part is not model else ([], [])
        if len(own) > 1:
            names += [f"{name}: {one}" for one in inner]
            parts += [(share * weight, one) for weight, one in own]
        else:
            names.append(name)
            parts.append((share, part))
    return names, parts


STEP = 0.1  # standard deviations on each side of a value


def slopes(
    curve: Callable[[dict[str, float]], Array], values: dict[str, float], fit: Any
) -> dict[str, Array]:
    """Return the derivatives of a curve by the floating parameters among its values, by differences inside their limits."""
    if not isinstance(fit, FitResult):
        raise OptionError("plot: band needs the result of a fit, with its covariance; pass values=result")
    own = [name for name in fit.floating if name in values]
    if unknown := [name for name in own if not np.isfinite(fit.errors[name])]:
        raise DataError(
            f"plot: band needs the covariance of the fit, which is not known for '{unknown[0]}'; leave band out"
        )
    result = {}
    for name in own:
        (low, high), reach = fit.limits.get(name, (-inf, inf)), STEP * fit.errors[name]
        ends = max(values[name] - reach, low), min(values[name] + reach, high)
        below, above = (curve({**values, name: end}) for end in ends)
        result[name] = (above - below) / ((ends[1] - ends[0]) or 1.0)
    return result


def band(derivatives: Mapping[str, Array], fit: Any) -> Array | None:
    """Return the standard deviation of a curve by the covariance of a fit; None without derivatives."""
    if not derivatives:
        return None
    rows = np.array(list(derivatives.values()))
    squares = np.einsum("ik,ij,jk->k", rows, fit.covariance_of(*derivatives), rows)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), np.float64)


SAME_WIDTH = 1e-9  # relative: bins that differ less in width are equal


def check_blind(x: Observable, blind: Any) -> list[Range]:
    """Return the ranges of an observable in which no data are shown."""
    if isinstance(blind, Mapping):  # by observable, as ranges are
        if other := [key for key in map(name_of, blind) if key != x.name]:
            raise OptionError(f"plot: blind names {other[0]!r}, but '{x.name}' is plotted; leave it out")
        return [one for ends in blind.values() for one in check_blind(x, ends)]
    none = isinstance(blind, Sequence) and not len(blind)
    return [] if none else [check_range(x, ends) for ends in listed_ranges(x.name, blind)]


def gaps(x: Observable, ranges: Sequence[Range]) -> list[Range]:
    """Return what some ranges leave out of that of an observable: data that were cut to them show nothing there."""
    ends = [x.low, *(end for pair in ranges for end in pair), x.high]
    return list(zip(ends[::2], ends[1::2], strict=True))


def blinded(data: Histogram, ranges: Sequence[Range]) -> Histogram:
    """Return a histogram without the counts of bins that reach into some ranges."""
    near = SAME_WIDTH * (data.edges[-1] - data.edges[0])
    shown = np.ones(len(data.counts), bool)
    for low, high in ranges:
        shown &= (data.edges[1:] <= low + near) | (data.edges[:-1] >= high - near)
    return Histogram(
        data.edges, *(np.where(shown, own, np.nan) for own in (data.counts, data.low, data.high))
    )
