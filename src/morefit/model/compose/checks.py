"""Argument validation that compositions share."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.model.arguments import described, listed
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


def check_parts(kind: str, pdfs: Sequence[Pdf], minimum: int = 2) -> tuple[Pdf, ...]:
    """Return the densities of a sum or product, if they are ones that can be normalised on their own."""
    parts = (pdfs,) if isinstance(pdfs, Pdf) else listed(f"{kind}: densities", pdfs)
    if len(parts) < minimum:
        number = "two densities" if minimum == 2 else "one density"
        raise ModelError(f"{kind}: needs at least {number}, got {len(parts)}")
    for pdf in parts:
        if not isinstance(pdf, Pdf):
            raise ModelError(f"{kind}: takes densities, got {described(pdf)}; wrap a formula in mf.Density")
        if pdf.expected_events() is not None:
            role = "a factor" if kind == "product" else "a part of another"
            raise ModelError(
                f"{kind}: an extended sum cannot be {role}; use fractions in it instead of yields"
            )
    return parts


def given_to(kind: str, whole: Pdf, pdfs: Sequence[Pdf]) -> tuple[Observable, ...]:
    """Return the observables that are given to a composition: to its densities, unless one draws them."""
    drawn = {o.name for pdf in pdfs for o in pdf.drawn}
    if wrong := [o.name for o in whole.given if o.name in drawn]:
        raise ModelError(
            f"{kind}: observable '{wrong[0]}' must not be drawn by its densities if it is given; write given=[{wrong[0]}]"
            " in each of them, or leave its density out"
        )
    every = [*whole.given, *(o for pdf in pdfs for o in pdf.given if o.name not in drawn)]
    return tuple({o.name: o for o in every}.values())
