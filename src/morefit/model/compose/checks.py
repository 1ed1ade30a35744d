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


def conditional_on(kind: str, whole: Pdf, pdfs: Sequence[Pdf]) -> tuple[Observable, ...]:
    """Return the observables that are given to a composition: to its densities, unless one draws them."""
    drawn = {o.name for pdf in pdfs for o in pdf.drawn}
    if wrong := [o.name for o in whole.given if o.name in drawn]:
        raise ModelError(
            f"{kind}: observable '{wrong[0]}' must not be drawn by its densities if it is given; write given=[{wrong[0]}]"
            " in each of them, or leave its density out"
        )
    every = [*whole.given, *(o for pdf in pdfs for o in pdf.given if o.name not in drawn)]
    return tuple({o.name: o for o in every}.values())


def check_observables_of(kind: str, pdfs: Sequence[Pdf]) -> None:
    """Refuse densities that do not draw the same observables, or with different ones of the same name."""
    for pdf in pdfs:
        if {o.name for o in pdf.drawn} != {o.name for o in pdfs[0].drawn}:
            raise ModelError(
                f"{kind}: its densities must share their observables, got {text_of(pdfs[0])} and {text_of(pdf)}"
            )
    known: dict[str, Observable] = {}
    for o in (o for pdf in pdfs for o in pdf.observables):
        if o is not known.setdefault(o.name, o):
            raise ModelError(
                f"observable '{o.name}': two different ones share this name in one model,"
                f" {known[o.name]!r} and {o!r}; rename one or use the same object"
            )


def text_of(pdf: Pdf) -> str:
    given = f" with {sorted(o.name for o in pdf.given)} given" * bool(pdf.given)
    return f"{sorted(o.name for o in pdf.drawn)}{given}"
