"""Argument validation that compositions share."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.model.arguments import described, listed
from morefit.model.pdf import Pdf


def check_parts(kind: str, pdfs: Sequence[Pdf]) -> tuple[Pdf, ...]:
    """Return the densities of a sum or product, if they are ones that can be normalised on their own."""
    parts = (pdfs,) if isinstance(pdfs, Pdf) else listed(f"{kind}: densities", pdfs)
    if len(parts) < 2:
        raise ModelError(f"{kind}: needs at least two densities, got {len(parts)}")
    for pdf in parts:
        if not isinstance(pdf, Pdf):
            raise ModelError(f"{kind}: takes densities, got {described(pdf)}; wrap a formula in mf.Density")
        if pdf.expected_events() is not None:
            role = "a factor" if kind == "product" else "a part of another"
            raise ModelError(
                f"{kind}: an extended sum cannot be {role}; use fractions in it instead of yields"
            )
    return parts


def check_observables_of(kind: str, pdfs: Sequence[Pdf]) -> None:
    """Refuse densities that do not have all their observables in common."""
    first = {o.name: o for o in pdfs[0].observables}
    for pdf in pdfs:
        if {o.name for o in pdf.observables} != set(first):
            raise ModelError(
                f"{kind}: its densities must share their observables, got {sorted(first)}"
                f" and {sorted(o.name for o in pdf.observables)}"
            )
        for o in pdf.observables:
            if o is not first[o.name]:
                raise ModelError(
                    f"observable '{o.name}': two different ones share this name in one model,"
                    f" {first[o.name]!r} and {o!r}; rename one or use the same object"
                )
