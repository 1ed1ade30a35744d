"""The events of a weighted likelihood before they are weighted: they follow the model divided by the weight."""

from __future__ import annotations

from morefit.data.weights import observables_of
from morefit.errors import ModelError
from morefit.likelihood.base import Term
from morefit.likelihood.unbinned import Likelihood
from morefit.model.arguments import listing
from morefit.rewrite.simplify import normalise

ADVICE = "give the density that events follow as the model, and what is fitted as fit_model"


def observed(what: str, likelihood: Term) -> Term:
    """Return the likelihood of the events themselves, of which weights, where they are formulas, make those of a likelihood."""
    if all(part.weight is None for part in likelihood.parts):
        return likelihood
    return likelihood.with_parts([observed_part(what, part) for part in likelihood.parts])


def observed_part(what: str, part: Likelihood) -> Likelihood:
    if part.weight is None:
        return part
    known = {o.name for o in part.model.observables}
    if others := [o for o in observables_of(part.weight) if o.name not in known]:
        raise ModelError(
            f"{what}: the model does not draw {listing(others)}, which weights depend on; {ADVICE}"
        )
    from morefit.model.compose.accepted_part import accepted_part  # toys without weights do not need it

    try:
        (acceptance,) = normalise(1 / part.weight)  # the efficiency, of which weights are the inverse
        model = accepted_part(part.model, acceptance)
    except ModelError as error:
        raise ModelError(
            f"{what}: events follow the model divided by their weight, which must be a density; {ADVICE} ({error})"
        ) from None
    other = object.__new__(Likelihood)
    other.set_up(model, part.data.with_weights(None), part.constraints, part.settings, part.fixed_names)
    return other
