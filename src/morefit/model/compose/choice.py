"""A choice between densities, which a fit decides: the discrete profiling of arXiv:1408.6865."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any, NoReturn

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.model.compose.checks import check_parts
from morefit.model.in_use import once_per_model
from morefit.model.observable import Observable, check_name, check_number
from morefit.model.parts import parts_of
from morefit.model.pdf import Branches, Change, Pdf
from morefit.text.suggest import suggest

PENALTY = 0.5  # of the nll, for each floating parameter


@dataclass(frozen=True, init=False, eq=False)
class Choice(Pdf):
    """One of several densities in the same observables, by label: ``mf.fit`` and ``profile`` try all and take the lowest nll.

    Each floating parameter of a density adds ``penalty`` to its nll before they are compared: 0.5 is half of the bias
    of the likelihood (arXiv:1408.6865), 1 the information criterion of Akaike, 0 none. ``model.choose`` decides by hand.

    Example: ``mf.Choice("shape", {"falling": background, "flat": mf.Uniform(m)})``
    """

    name: str
    labels: tuple[str, ...]
    pdfs: tuple[Pdf, ...]
    penalty: float

    def __init__(self, name: str, pdfs: Mapping[str, Pdf] | Any, *, penalty: float = PENALTY) -> None:
        check_name("choice", name)
        if not isinstance(pdfs, Mapping) or not all(isinstance(label, str) and label for label in pdfs):
            raise ModelError(
                f"choice '{name}': takes densities by label, as in {{'linear': pdf, ...}}, got {pdfs!r}"
            )
        number = check_number("choice", name, "penalty", penalty)
        if not 0 <= number < math.inf:
            raise ModelError(f"choice '{name}': penalty must be zero or positive, got {penalty}")
        parts = check_parts(f"choice '{name}'", tuple(pdfs.values()))
        for pdf in parts:
            if {id(o) for o in pdf.observables} != {id(o) for o in parts[0].observables}:
                raise ModelError(
                    f"choice '{name}': its densities must share their observables, got"
                    f" {list(parts[0].observables)} and {list(pdf.observables)}"
                )
        values = {"name": name, "labels": tuple(pdfs), "pdfs": parts, "penalty": number}
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return self.pdfs[0].observables

    def branches(self) -> Branches:
        return tuple(
            (f"{self.name} = {label}", None, p) for label, p in zip(self.labels, self.pdfs, strict=True)
        )

    def density(self) -> NoReturn:
        """Refuse: which density it is has to be decided first."""
        raise ModelError(
            f"choice '{self.name}': is not decided; pass the model to mf.fit or mf.intervals.profile with its data, or"
            f" decide with model.choose({{{self.name!r}: {self.labels[0]!r}}})"
        )

    def replaced(self, change: Change) -> Pdf:
        return Choice(self.name, dict(zip(self.labels, change(self.pdfs), strict=True)), penalty=self.penalty)

    def labelled(self, label: Any) -> Pdf:
        """Return the density of a label."""
        if label not in self.labels:
            raise ModelError(f"choice '{self.name}': has no density {label!r}; {suggest(label, self.labels)}")
        return self.pdfs[self.labels.index(label)]


@dataclass(frozen=True, eq=False)
class Decision:
    """A model with a density for each choice, and what its nll is increased by before it is compared with others."""

    labels: Mapping[str, str]
    model: Any  # a density, or densities of categories
    penalties: tuple[tuple[float, frozenset[str]], ...]  # for each choice: of a parameter, and their names

    def penalty(self, floating: tuple[str, ...]) -> float:
        return math.fsum(each * len(names.intersection(floating)) for each, names in self.penalties)

    @property
    def label(self) -> str:
        return ", ".join(self.labels.values())


@once_per_model("its choices")
def choices_in(model: Pdf) -> dict[str, Choice]:
    """Return the choices of a model by name."""
    # the last come first
    return by_name(part for part in reversed([*parts_of(model)]) if isinstance(part, Choice))


def by_name(each: Iterable[Choice]) -> dict[str, Choice]:
    """Return choices by name, each of which must be one choice."""
    choices: dict[str, Choice] = {}
    for choice in each:
        if choices.setdefault(choice.name, choice) is not choice:
            raise ModelError(f"choice '{choice.name}': two different ones share this name; rename one")
    return choices


def choose(model: Pdf, labels: Mapping[str, str]) -> Pdf:
    """Return a model with the densities of some labels in the places of choices, by their names."""
    from morefit.model.replace import Replacement  # which goes through the decisions of a model

    choices = choices_in(model)
    if unknown := [name for name in labels if name not in choices]:
        raise ModelError(f"choice {unknown[0]!r}: not in the model; {suggest(unknown[0], choices)}")
    chosen: Pdf = Replacement([(choices[n], choices[n].labelled(label)) for n, label in labels.items()])(
        model
    )
    return chosen


def decisions(model: Pdf) -> Iterator[Decision]:
    """Go through all ways to decide the choices of a model, which is one way if there are none."""
    return decide(choices_in(model), lambda labels: choose(model, labels))


def decide(choices: Mapping[str, Choice], chosen: Callable[[Mapping[str, str]], Any]) -> Iterator[Decision]:
    """Go through all ways to decide some choices; ``chosen`` returns the model with some labels."""
    for labels in product(*(choice.labels for choice in choices.values())):
        pdfs = [choice.labelled(label) for choice, label in zip(choices.values(), labels, strict=True)]
        penalties = [
            (choice.penalty, frozenset(p.name for p in pdf.parameters))
            for choice, pdf in zip(choices.values(), pdfs, strict=True)
        ]
        decided = dict(zip(choices, labels, strict=True))
        yield Decision(decided, chosen(decided), tuple(penalties))
