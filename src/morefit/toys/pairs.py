"""Which likelihood may be fitted to toys of another: the same observables, ranges, bins, weights and blinding."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.data.weights import observables_of
from morefit.errors import FitError
from morefit.expr import Expr
from morefit.likelihood import Likelihood
from morefit.likelihood.observed import ADVICE
from morefit.minimise.problem import check_ranges
from morefit.model import Pdf


def check_pairs(drawn: Sequence[Likelihood], fitted: Sequence[Likelihood]) -> None:
    """Refuse to fit a likelihood to toys of one that does not draw its observables in the same ranges."""
    if len(drawn) != len(fitted):
        raise FitError(
            f"toys: the fitted likelihood must have as many parts as the one drawn from, {len(drawn)}, got {len(fitted)}"
        )
    for one, other in zip(drawn, fitted, strict=True):
        names = {o.name for o in other.model.observables}
        missing = names - {o.name for o in one.model.observables}
        if missing:
            raise FitError(
                f"toys: the fitted model needs {sorted(missing)}, which the generating model does not draw"
            )
        if not other.has_kernels and one.events != other.events:
            raise FitError(
                f"toys: the fitted likelihood must have as many bins as the one drawn from, {one.events}, got {other.events}"
            )
        check_ranges(one.model, other.model)
        check_weights(one.model, other.weight)
        true = {p.name: p.blinding for p in one.all_parameters}
        for p in other.all_parameters:
            if p.name in true and not p.is_blinded_as(true[p.name]):
                raise FitError(
                    f"toys: parameter '{p.name}': must be blinded in the fitted model as in the generating one"
                )


def check_weights(drawn: Pdf, weight: Expr | None) -> None:
    """Refuse weights that depend on what is not drawn, or is drawn in wider ranges."""
    known = {o.name: o for o in drawn.observables}
    for o in observables_of(weight):
        own = known.get(o.name)
        if own is None:
            raise FitError(
                f"toys: weights depend on '{o.name}', which the generating model does not draw; {ADVICE}"
            )
        if own.low < o.low or own.high > o.high:
            raise FitError(
                f"toys: observable '{o.name}': that of the weights must span the range that is drawn, [{own.low},"
                f" {own.high}], got [{o.low}, {o.high}]"
            )
