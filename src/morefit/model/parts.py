"""The densities that a model is made of, and whether it can be fitted at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from morefit.errors import ModelError
from morefit.expr import ZERO
from morefit.model.in_use import CACHED, CHECKED
from morefit.model.own_integral import check_integral
from morefit.model.pdf import Pdf


def check_model(model: Pdf) -> None:
    """Refuse a model whose names clash or that has nothing to fit to; a model is checked once."""
    if not isinstance(model, Pdf):
        raise ModelError(f"model: must be a density, such as mf.Gaussian(x, mu, sigma), got {model!r}")
    if CHECKED in vars(model):
        return
    observables, parameters = model.observables, model.parameters
    both = {o.name for o in observables} & {p.name for p in parameters}
    if both:
        raise ModelError(
            f"model: {', '.join(map(repr, sorted(both)))} names an observable and a parameter; rename one"
        )
    if not observables:
        raise ModelError("model: its density depends on no observable; write it with mf.Observable")
    if not model.drawn:
        raise ModelError(
            f"model: an observable must be left to draw, got given=[{', '.join(o.name for o in model.given)}]"
        )
    if model.density() is ZERO:
        raise ModelError("model: its density is zero everywhere")
    for pdf in parts_of(model):
        check_integral(pdf)
    vars(model)[CHECKED] = True


@lru_cache(maxsize=256)  # every likelihood asks
def conditional_parts(model: Pdf) -> tuple[Pdf, ...]:
    """Return the conditional densities that a model is made of, without compositions of them."""
    return tuple(pdf for pdf in parts_of(model) if pdf.given and not pdf.branches())


def parts_of(model: Pdf) -> Iterator[Pdf]:
    """Go through a density and those it is made of."""
    waiting: list[object] = [model]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Pdf):
            yield one
            waiting += [value for name, value in vars(one).items() if name not in CACHED]
        elif isinstance(one, (list, tuple)):
            waiting += one


def simulations(model: Pdf) -> set[object]:
    """Return the simulations that alone know factors of a model: where there are some, its density has no value."""
    return {part.simulation() for part in parts_of(model)} - {None}


@lru_cache(maxsize=256)  # every fit asks
def is_simulated(model: Pdf) -> bool:
    """Return whether simulated events normalise a density of a model."""
    return bool(simulations(model))


def check_known(model: Pdf, what: str) -> None:
    """Refuse what needs the value of a density of which a factor is known by simulation only."""
    if is_simulated(model):
        raise ModelError(
            f"model: {what} needs the efficiency as a function, which is known by simulation only; use integrate or a plot,"
            " or make an acceptance with mf.acceptance.from_sample"
        )


def check_same_simulations(what: str, pdfs: Sequence[Pdf]) -> None:
    """Refuse to add up densities with and without an efficiency that only a simulation knows, or with different ones."""
    if any(simulations(pdf) != simulations(pdfs[0]) for pdf in pdfs):
        raise ModelError(
            f"{what}: an efficiency that only a simulation knows must be that of all its densities;"
            f" write mf.Efficiency(mf.{what.capitalize()}(...), simulation)"
        )
