"""Argument validation that compositions share."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.model.arguments import described, listed
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
