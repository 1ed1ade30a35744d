"""A density seen with a resolution: by formula where there is one, else by an integral for each event."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, add_all, substitute, to_expr
from morefit.model.arguments import described, listed, listing
from morefit.model.compose.convolved import Convolved
from morefit.model.compose.sum import Sum
from morefit.model.counts import counted_in
from morefit.model.observable import Observable, check_number
from morefit.model.parameter import Parameter
from morefit.model.parts import check_known
from morefit.model.pdf import Pdf
from morefit.model.replace import Replacement
from morefit.model.shapes.gaussian import Gaussian
from morefit.text.arguments import in_sentences

Ends = tuple[float, float]  # the lowest and the highest value


@in_sentences
def Convolution(  # it stands where a density is made
    pdf: Pdf, resolution: Pdf, *, truth: tuple[float, float] | None = None
) -> Pdf:
    r"""Return the density of a measured value $x=t+d$: $\int p(t)\,R(x-t)\,dt$, normalised on the range of $x$.

    ``pdf`` is the density of the true value $t$, written in the observable $x$ that is measured. The range of $x$ is
    that of measured values: true values may lie outside of it, anywhere ``pdf`` is defined and positive (a ``Gamma`` begins at 0), or, with
    ``truth=(low, high)``, anywhere between these; those of a table, such as a histogram, in its range. ``resolution`` is the density of the difference $d$ of measured and
    true value, in an observable of its own whose range is that of differences; written in $x$, differences reach from
    ``x.low - x.high`` to ``x.high - x.low``.

    A Gaussian may have a width for each event: ``Gaussian(t, 0, sigma_t, given=[sigma_t])``.
    A Gaussian resolution, or a sum of some, has a formula for many densities, and is not cut at the ends of its range;
    the result is then a density of another kind, such as ``Voigt``. All others are integrated for each event, to
    1e-8 of the density or better. The convolution of a ``Sum`` is the sum of convolutions: its fractions and yields are
    those of measured events in the range of $x$.

    Example: ``mf.Convolution(mf.shapes.BreitWigner(m, 5.8, 0.1), mf.Gaussian(d, 0.0, sigma))``
    """
    result = convolved(pdf, resolution, truth)
    if result is pdf or (resolution.given and unaffected(pdf, resolution, truth)):
        warnings.warn(
            f"convolution: {type(pdf).__name__} over all true values has the same shape with any Gaussian, so that the resolution"
            " has no effect; where true values begin or end, pass truth=(low, high), and for a decay from 0 on take"
            " mf.shapes.Decay",
            UserWarning,
            stacklevel=2,
        )
    return result


def convolved(pdf: Pdf, resolution: Pdf, truth: tuple[float, float] | None) -> Pdf:
    """Return the convolution, by formula if there is one."""
    x, difference = check_parts(pdf, resolution)
    if difference is x:
        width = x.high - x.low
        difference = Observable.interned(f"smear {x.name}", -width, width, "")
    reached = x.low - difference.high, x.high - difference.low
    ends = true_ends(pdf, check_truth(truth) or (None if holds_outside(pdf) else (x.low, x.high)), reached)
    if isinstance(pdf, Sum):
        parts = [convolved(part, resolution, truth) for part in pdf.pdfs]
        weights: dict[str, Any] = {"yields": pdf.yields} if pdf.yields else {"fractions": pdf.fractions}
        return Sum(parts, labels=pdf.labels or None, **weights)
    exact = None if ends else by_formula(pdf, resolution)
    if exact is not None:
        return exact
    by_event = {"given": resolution.given} if resolution.given else {}
    seen = Convolved(x, difference, pdf, resolution, ends, **by_event)
    if resolution.given and seen.pieces_of_source() is None:
        raise ModelError(
            f"convolution: a resolution with {listing(resolution.given)} given needs a formula, which Gaussians have for many"
            " densities on their whole range of true values, and for templates; this pair has none; a decay from 0 on is"
            " mf.shapes.Decay"
        )
    return seen


def unaffected(pdf: Pdf, resolution: Pdf, truth: tuple[float, float] | None) -> bool:
    """Return whether a density that holds everywhere has the same shape with a Gaussian resolution."""
    if truth is not None or isinstance(pdf, Sum) or not isinstance(resolution, Gaussian):
        return False
    known = pdf.smeared(ZERO, ONE)
    return known is not None and known[1] is pdf


def holds_outside(pdf: Pdf) -> bool:
    """Return whether the formula of a density means something outside of the range of its observable."""
    return pdf.extends and all(holds_outside(part) for *_, part in pdf.branches())


def true_ends(pdf: Pdf, ends: Ends | None, reached: Ends) -> Ends | None:
    """Return the range of true values, inside of where a density is defined if others can be reached; None for all numbers."""
    if pdf.defined_on is None or (pdf.defined_on[0] <= reached[0] and reached[1] <= pdf.defined_on[1]):
        return ends
    (low, high), (first, last) = pdf.defined_on, ends or (-math.inf, math.inf)
    if not max(low, first) < min(high, last):
        raise ModelError(
            f"convolution: truth must reach into [{low:g}, {high:g}], where {type(pdf).__name__} is defined, got {ends!r}"
        )
    return float(max(low, first)), float(min(high, last))


def by_formula(pdf: Pdf, resolution: Pdf) -> Pdf | None:
    """Return the convolution with a Gaussian or a sum of Gaussians, if there is a formula."""
    numbers = {o: Parameter(f"{o.name}_given", (o.low + o.high) / 2, o.low, o.high) for o in resolution.given}
    columns = {o.expr: number.expr for o, number in numbers.items()}
    parts: list[tuple[Expr, Pdf]] = []
    for share, gaussian in resolution.shares():
        if not isinstance(gaussian, Gaussian):
            return None
        mean, sigma = (substitute(to_expr(one), columns) for one in (gaussian.mu, gaussian.sigma))
        known = pdf.smeared(mean, sigma)
        if known is None:
            return None
        factor, part = known
        parts.append((share * factor, part))
    if len(parts) == 1:
        return conditional_on(numbers, parts[0][1]) if numbers else parts[0][1]
    if numbers:
        raise ModelError(
            f"convolution: of a sum of Gaussians none may depend on {listing(numbers)}, which is given: the shares of events in"
            " the range would depend on it; use one Gaussian, or a shape with such a resolution, as mf.shapes.Decay"
        )
    if all(part is pdf for _, part in parts):  # so that their fractions mean nothing
        return pdf
    # each Gaussian has its share of all events; of those in the range it has what its integral says
    areas = [weight * part.integral() for weight, part in parts]
    return Sum([part for _, part in parts], fractions=[area / add_all(*areas) for area in areas[:-1]])


def conditional_on(numbers: Mapping[Observable, Parameter], pdf: Pdf) -> Pdf:
    """Return a new density with observables that are given in the place of parameters."""
    own = pdf.replaced(lambda attribute: attribute)  # one that is the user's must not change
    vars(own)["given"] = tuple(numbers)
    return own.replaced(Replacement([(number, o) for o, number in numbers.items()]))


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
