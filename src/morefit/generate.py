"""Draw events from a model: random numbers, density and acceptance all in one compiled kernel."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Backend, Drawn, Events, choose_backend
from morefit.data import Dataset
from morefit.errors import ModelError
from morefit.expr import evaluate
from morefit.model import Pdf
from morefit.model.pdf import check_model
from morefit.pipeline import Compiled, compile_sampler
from morefit.rewrite.simplify import normalise
from morefit.sampling import MARGIN, Numbers, Recipe, recipe

REPAIRS = 6  # times the margin of an envelope may be doubled
COUNT_STREAM = 0x636F756E74  # keeps the numbers that draw sizes apart from those that draw events
Sizes = NDArray[np.int64]


@dataclass
class Sampler:
    """Draws from a model at fixed values; an envelope that a density exceeds is raised, and the draw repeated."""

    model: Pdf
    values: Mapping[str, float]
    backend: Backend
    margin: float = MARGIN

    def __post_init__(self) -> None:
        self.recipe, self.compiled = self.prepare()

    def prepare(self) -> tuple[Recipe, Compiled]:
        found = recipe(self.model, self.values, Numbers(0, self.margin))
        drawn = [found.drawn[o.name] for o in self.model.observables]
        *columns, accept, above = normalise(*drawn, found.accept, found.above)
        return found, compile_sampler(tuple(columns), accept, above, self.backend)

    def draw(self, sizes: Sizes, seed: int, first_toy: int = 0) -> Drawn:
        """Draw toys ``first_toy``, ``first_toy + 1``, ... of the given sizes, one after the other."""
        events = Events.slices(sizes)
        for _ in range(REPAIRS):
            none = np.empty((len(sizes), 0))
            drawn = self.compiled.program.sample(none, events, seed, first_toy)
            if not self.repair(drawn.above, drawn.given_up):
                return drawn
        raise self.hopeless()

    def repair(self, above: int, given_up: int) -> bool:
        """Raise the envelope if a draw found a density above it; say whether the draw must be repeated."""
        if given_up:
            raise ModelError(
                "model: could not be drawn from; its density is zero or nearly so where it was tried"
            )
        if above:
            self.margin *= 2
            self.recipe, self.compiled = self.prepare()
        return above > 0

    def hopeless(self) -> ModelError:
        return ModelError(
            "model: its density exceeds every envelope tried; is it bounded on the observables' ranges?"
        )


def all_values(model: Pdf, values: Mapping[str, float] | None) -> dict[str, float]:
    """Complete given values by the start values of the parameters."""
    known = {p.name: p.start for p in model.parameters}
    strangers = [name for name in values or {} if name not in known]
    if strangers and not all(name in known for name in known if name in (values or {})):
        raise ModelError(
            f"model: has no parameter {', '.join(map(repr, strangers))}; it has {', '.join(known)}"
        )
    return known | {name: float(v) for name, v in (values or {}).items() if name in known}


def poisson_sizes(mean: float, count: int, seed: int, first_toy: int = 0) -> Sizes:
    """Draw the number of events of each toy; each depends on the seed and its own number only."""
    sizes = [
        np.random.Generator(np.random.Philox(key=[seed, (COUNT_STREAM << 20) + toy])).poisson(mean)
        for toy in range(first_toy, first_toy + count)
    ]
    return np.array(sizes, np.int64)


def expected_events(model: Pdf, values: Mapping[str, float]) -> float:
    """Return how many events an extended model predicts."""
    expected = model.expected_events()
    if expected is None:
        raise ModelError(
            "generate: say how many events; the model predicts no number, as one with yields would"
        )
    return float(evaluate(expected, values))


@overload
def generate(
    model: Pdf, events: int | None = None, *, values: Mapping[str, float] | None = None, seed: int | None = None,
    backend: str | Backend = "auto",
) -> Dataset: ...  # fmt: skip
@overload
def generate(
    model: Pdf, events: Sequence[int], *, values: Mapping[str, float] | None = None, seed: int | None = None,
    backend: str | Backend = "auto",
) -> list[Dataset]: ...  # fmt: skip
def generate(
    model: Pdf,
    events: int | Sequence[int] | None = None,
    *,
    values: Mapping[str, float] | None = None,
    seed: int | None = None,
    backend: str | Backend = "auto",
) -> Dataset | list[Dataset]:
    """Draw a dataset from a model at the given values (default: its start values).

    A sequence of numbers of events gives as many datasets, drawn together. Without ``events`` an extended model
    draws a Poisson number of them. Event i of dataset t depends on the seed, t and i only.
    """
    check_model(model)
    seed = secrets.randbits(63) if seed is None else check_seed(seed)
    known = all_values(model, values)
    one = events is None or np.ndim(events) == 0
    if events is None:
        sizes = poisson_sizes(expected_events(model, known), 1, seed)
    else:
        sizes = np.atleast_1d(np.asarray(events, np.int64))
    if np.any(sizes < 0):
        raise ModelError(f"generate: the number of events must not be negative, got {sizes.min()}")
    drawn = Sampler(model, known, choose_backend(backend)).draw(sizes, seed)
    stops = np.cumsum(sizes)
    names = [o.name for o in model.observables]
    parts = [
        Dataset(
            {n: c.values[stop - size : stop] for n, c in zip(names, drawn.columns, strict=True)},
            model.observables,
        )
        for size, stop in zip(sizes, stops, strict=True)
    ]
    return parts[0] if one else parts


def check_seed(seed: int) -> int:
    if not 0 <= seed < 1 << 64:
        raise ModelError(f"seed: must be a whole number from 0 to 2**64 - 1, got {seed}")
    return int(seed)
