"""Argument validation of convolutions: a density and a resolution of one observable each, and the ends of true values."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.model.arguments import described, listed, listing
from morefit.model.counts import counted_in
from morefit.model.observable import Observable, check_number
from morefit.model.parts import check_known
from morefit.model.pdf import Pdf


def check_parts(pdf: Pdf, resolution: Pdf) -> tuple[Observable, Observable]:
    """Return the observable of a density and that of its resolution, if each has one."""
    for role, part in (("density", pdf), ("resolution", resolution)):
        if not isinstance(part, Pdf):
            raise ModelError(
                f"convolution: the {role} must be a density, got {described(part)}; wrap a formula in mf.Density"
            )
        if part.given and part is pdf:
            raise ModelError(
                f"convolution: the {role} must not be conditional, got one with {listing(part.given)} given; write a width"
                " for each event into a shape, such as mf.shapes.Decay(t, tau, sigma=[s], given=[s]) or Voigt"
            )
        check_known(part, "a convolution")
        if counted := sorted(counted_in(part)):
            raise ModelError(
                f"convolution: the {role} must not be one of whole numbers, got '{counted[0]}', whose steps would be smeared in the"
                " place of the numbers; write mf.Sum of the resolution at each of them"
            )
        if len(part.drawn) != 1:
            names = ", ".join(repr(o.name) for o in part.observables)
            raise ModelError(
                f"convolution: the {role} must have one observable, got {names}; convolve the factors of a product"
            )
    if resolution.expected_events() is not None:
        raise ModelError("convolution: the resolution cannot be an extended sum; use fractions in it")
    (x,), (difference,) = pdf.drawn, resolution.drawn
    if difference is not x and difference.name in {x.name, *(p.name for p in pdf.parameters)}:
        raise ModelError(
            f"convolution: '{difference.name}' names the difference of measured and true value and something else;"
            " rename it"
        )
    return x, difference


def check_truth(truth: Sequence[float] | None) -> tuple[float, float] | None:
    """Return the ends of the range of true values as doubles."""
    if truth is None:
        return None
    ends = listed("convolution: truth", truth)
    if len(ends) != 2:
        raise ModelError(f"convolution: truth must be (low, high), got {truth!r}")
    low, high = (
        check_number("convolution", "truth", name, end)
        for name, end in zip(("low", "high"), ends, strict=True)
    )
    if not low < high:
        raise ModelError(f"convolution: truth must have low below high, got {truth!r}")
    return low, high
