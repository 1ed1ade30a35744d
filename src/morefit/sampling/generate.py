"""Draw events from a model: random numbers, density and acceptance all in one compiled kernel.

Event i of toy t depends on the seed, t and i only. The one exception: where the density of a toy exceeds its
envelope, the envelope is raised and this toy drawn anew, so that its number of events matters too.
"""

from __future__ import annotations

import operator
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset, build_drawn
from morefit.dataclass import dataclass
from morefit.errors import ModelError, OptionError
from morefit.expr import Expr, Op, evaluate, leaves, substitute
from morefit.kernel.ir import MAX_DRAWS
from morefit.kernel.symbols import EVENT, random_number, stream_uniform
from morefit.model import Pdf
from morefit.model.parameter import check_blinding
from morefit.model.parts import check_model
from morefit.model.replace import within_limits
from morefit.pipeline import Columns, Compiled, Settings, able_backend, compile_sampler, compile_values
from morefit.random.host import COMPILED, Generator, Source, check_generator, source_for
from morefit.random.philox import toy_uniforms
from morefit.resources import check_memory
from morefit.rewrite.simplify import normalise
from morefit.sampling.conditional_rows import ConditionalRows, check_rows, conditional_rows
from morefit.sampling.envelope import MARGIN, Numbers, Recipe
from morefit.sampling.recipe import recipe
from morefit.targets.base import Backend, CompiledDraw, Drawn, Events
from morefit.targets.choose import choose_backend
from morefit.text.suggest import suggest
from morefit.validate import as_number, numbers_by_name

REPAIRS = 6  # times the margin of an envelope may be doubled
FAR = 9.0  # tail cut-off in standard deviations; the probability beyond it is below 2**-53
MAX_EXPECTED = 1e11  # events: more than fit into any memory
MAX_PREPARED = 64  # cached in this process: preparing one takes longer than drawing a few thousand events
MAX_CANDIDATES = 1 << 18  # candidates from numbers made on the host
CELLS = 1 << 14  # of equal probability, in which Poisson numbers are looked for
Sizes = NDArray[np.int64]


class ToySampler(Protocol):
    """Something that draws toys; ``compiled`` is None if it does not draw them in compiled code."""

    @property
    def margin(self) -> float: ...

    @property
    def compiled(self) -> CompiledDraw | None: ...

    def draw(self, sizes: Sizes, seed: int, first_toy: int = 0) -> Drawn: ...

    def repair(self, above: int, abandoned: int) -> bool: ...


_prepared: OrderedDict[tuple[Any, ...], tuple[Any, tuple[Recipe, Compiled]]] = OrderedDict()


@dataclass
class Sampler:
    """Draws from a model at fixed values; an envelope that a density exceeds is raised, and the draw repeated."""

    model: Pdf
    values: Mapping[str, float]
    backend: Backend
    margin: float = MARGIN
    generator: Generator = COMPILED[0]
    given: ConditionalRows | None = None  # what a conditional model draws its events for

    def __post_init__(self) -> None:
        self.model = within_limits(self.model, self.values)
        self.backend = able_backend(self.model, self.backend)
        self.recipe, self.compiled = self.prepare()

    def prepare(self) -> tuple[Recipe, Compiled]:
        """Find the recipe and compile it, or take what was prepared for the same draw before."""
        kind = self.generator if self.generator in COMPILED else None
        values = tuple(sorted(self.values.items()))
        key = (id(self.model), id(self.given), values, self.margin, kind, self.backend)
        if key not in _prepared:
            # the model and the rows are stored with it, so that no others can have their addresses
            _prepared[key] = (self.model, self.given), self.make_ready()
            if len(_prepared) > MAX_PREPARED:
                _prepared.popitem(last=False)
        return _prepared[key][1]

    def make_ready(self) -> tuple[Recipe, Compiled]:
        if self.given is not None:
            check_rows(self.model, self.values, self.given, self.backend)
        prepared = recipe(self.model, self.values, Numbers(0, self.margin), self.given, self.backend)
        if prepared.efficiency * MAX_DRAWS < 1:  # most events would be given up, after as many candidates
            raise cannot_draw()
        drawn = [prepared.drawn[o.name] for o in self.model.observables]
        outputs = normalise(*drawn, prepared.accept, prepared.above)
        if self.on_host:
            if self.given is not None and not self.given.resample:
                raise OptionError(
                    f"generate: one event for each row of given data needs a compiled generator, got {self.generator!r};"
                    f" use {' or '.join(map(repr, COMPILED))}, or events, for which rows are resampled"
                )
            return prepared, compile_values(outputs, (), Settings(self.backend, precompute="none"))
        *columns, accept, above = outputs if self.generator == COMPILED[0] else by_xoshiro(outputs)
        return prepared, compile_sampler(tuple(columns), accept, above, self.backend)

    @property
    def on_host(self) -> bool:
        """Whether the random numbers are made in numpy; the rest of the recipe is compiled all the same."""
        return self.generator not in COMPILED

    def draw(self, sizes: Sizes, seed: int, first_toy: int = 0) -> Drawn:
        """Draw toys ``first_toy``, ``first_toy + 1``, ... of these sizes, one after the other."""
        for _ in range(REPAIRS):
            drawn = self.launch(sizes, seed, first_toy)
            if not self.repair(drawn.above, drawn.abandoned):
                return drawn
        raise envelope_error()

    def draw_apart(self, sizes: Sizes, seed: int, first_toy: int = 0) -> Iterator[tuple[Sizes, Drawn]]:
        """Draw toys so that none depends on which others are drawn with it; they come in pieces, in order.

        Halves are drawn again until a toy above its envelope is alone, so that only its own number decides how it is
        drawn.
        """
        drawn = self.launch(sizes, seed, first_toy)
        if not drawn.above:
            self.repair(0, drawn.abandoned)
            yield sizes, drawn
        elif len(sizes) == 1:
            yield sizes, replace(self, margin=self.raised()).draw(sizes, seed, first_toy)
        else:
            half = len(sizes) // 2
            yield from self.draw_apart(sizes[:half], seed, first_toy)
            yield from self.draw_apart(sizes[half:], seed, first_toy + half)

    def launch(self, sizes: Sizes, seed: int, first_toy: int) -> Drawn:
        if not self.on_host:
            none = np.empty((len(sizes), 0))
            return self.compiled.program.sample(none, Events.slices(sizes), seed, first_toy)
        toys = [
            draw_on_host(
                self.compiled, int(size), source_for(self.generator, seed, first_toy + k), self.recipe
            )
            for k, size in enumerate(sizes)
        ]
        columns = np.concatenate([rows for rows, _, _ in toys], axis=1)
        buffers = tuple(self.backend.upload(c) for c in columns)
        return Drawn(buffers, sum(t[1] for t in toys), sum(t[2] for t in toys))

    def repair(self, above: int, abandoned: int) -> bool:
        """Raise the envelope if a density exceeded it; return whether the draw must be repeated."""
        if abandoned:
            raise cannot_draw()
        if above:
            self.margin = self.raised()
            self.recipe, self.compiled = self.prepare()
        return above > 0

    def raised(self) -> float:
        """Return the next margin to try."""
        return 2 * max(self.margin, MARGIN)


def envelope_error() -> ModelError:
    """Return the error of a density that exceeds every envelope tried."""
    return ModelError(
        "model: its density exceeds every envelope tried; is it bounded on the observables' ranges?"
    )


def cannot_draw() -> ModelError:
    """Return the error of a density whose candidates are hardly ever accepted."""
    return ModelError(
        "model: could not be drawn from; its density is zero or nearly so where it was tried, or has a pole"
    )


def by_xoshiro(outputs: Sequence[Expr]) -> tuple[Expr, ...]:
    """Take the random numbers from the other compiled generator."""
    numbers = [u for u in leaves(Op.COLUMN, *outputs) if random_number(u).index != EVENT]
    taken = {u: stream_uniform(random_number(u).index) for u in numbers}
    return tuple(substitute(e, taken) for e in outputs)


def draw_on_host(compiled: Compiled, size: int, source: Source, recipe: Recipe) -> tuple[Array, int, int]:
    """Draw candidates from a source until enough are accepted; also count those above the envelope, and the missing."""
    names, width = compiled.program.kernel.columns, compiled.program.kernel.outputs - 2
    parts, missing, above, vain = [np.empty((width, 0))], size, 0, 0
    while missing and vain < MAX_DRAWS:
        count = min(int(1.05 * missing / recipe.efficiency) + 16, MAX_CANDIDATES)
        columns = Columns({name: source.random(count) for name in names})
        *rows, accept, over = compiled.bind(columns, Events.all_sets(count))(np.empty((1, 0)))[0]
        parts.append(np.array(rows)[:, accept != 0][:, :missing])
        missing, above = missing - parts[-1].shape[1], above + int(np.count_nonzero(over))
        vain = 0 if parts[-1].size else vain + 1
    return np.concatenate(parts, axis=1), above, missing


def all_values(model: Pdf, truth: Any, what: str = "truth") -> dict[str, float]:
    """Complete values, by default true ones, by the start values of the parameters."""
    check_model(model)
    known = {p.name: p.start for p in model.parameters}
    check_blinding(model.parameters, truth)
    chosen = numbers_by_name(what, truth)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        hint = suggest(unknown[0], known)
        raise ModelError(f"model: has no parameter {', '.join(map(repr, unknown))}; {hint}")
    return known | chosen


def poisson_sizes(mean: float, count: int, seed: int, first_toy: int = 0) -> Sizes:
    """Draw the number of events of each toy; each depends on the seed and its own number only."""
    return poisson_counts(mean, seed, np.arange(first_toy, first_toy + count))


def poisson_counts(mean: float, seed: int, toys: Integers) -> Integers:
    """Draw a number around a mean for each toy; each depends on the seed and its own number only."""
    first, cumulative = poisson_distribution(mean)
    numbers = toy_uniforms(seed, toys)
    if len(toys) < CELLS:
        return first + np.searchsorted(cumulative, numbers, "right")
    # most cells of equal probability have no edge of a count in them: only numbers in the others are searched for
    limits = np.searchsorted(cumulative, np.arange(CELLS + 1) / CELLS, "right")
    cell = (CELLS * numbers).astype(np.int32)
    counts = limits[cell]
    searched = np.flatnonzero((limits[1:] != limits[:-1])[cell])
    counts[searched] = np.searchsorted(cumulative, numbers[searched], "right")
    return np.asarray(first + counts, np.int64)


def poisson_distribution(mean: float) -> tuple[int, Array]:
    """Return the smallest number that can come up, and the probabilities up to and including each from it on."""
    mode, width = int(mean), int(FAR * np.sqrt(mean)) + 30
    below, above = np.arange(mode, max(mode - width, 0), -1.0), np.arange(mode + 1.0, mode + width)
    # relative to the most likely number
    down, up = np.cumprod(below / mean if mean else below)[::-1], np.cumprod(mean / above)
    cumulative = np.cumsum(np.concatenate([down, [1.0], up]))
    return mode - len(below), cumulative / cumulative[-1]


def expected_events(model: Pdf, values: Mapping[str, float]) -> float:
    """Return how many events an extended model predicts."""
    expected = model.expected_events()
    if expected is None:
        raise ModelError(
            "generate: events is missing; the model predicts no number, as one with yields would"
        )
    mean = float(evaluate(expected, values))
    if not 0 <= mean < np.inf:
        raise ModelError(f"generate: the expected number of events must not be negative, got {mean:g}")
    if mean > MAX_EXPECTED:
        raise ModelError(
            f"generate: the expected number of events must be at most {MAX_EXPECTED:g}, got {mean:g}; check the yields"
        )
    return mean


def generate_events(
    model: Pdf,
    events: int | Sequence[int] | None,
    *,
    truth: Any,
    seed: int | None,
    backend: str | Backend = "auto",
    generator: Generator = COMPILED[0],
    given: object = None,
) -> Dataset | list[Dataset]:
    """Draw a dataset, or a list of them where ``events`` is one, as ``mf.generate`` explains."""
    check_model(model)
    check_generator(generator, seed)
    seed = new_seed() if seed is None else check_seed(seed)
    known = all_values(model, truth)
    resample = events is not None or model.expected_events() is not None
    rows = conditional_rows("generate", model, given, resample=resample)
    if rows is not None and not resample:
        sizes = np.array([len(rows)], np.int64)
    elif events is None:
        if not isinstance(generator, str):  # then sizes too are the generator's to decide
            seed = int(source_for(generator, 0, 0).random(1)[0] * 2**53)
        expected = expected_events(model, known)
        check_room("generate", model, expected)
        sizes = poisson_sizes(expected, 1, seed)
    else:
        sizes = check_sizes(events)
    if not len(sizes):
        return []
    total = sum(sizes.tolist())
    check_room("generate", model, total)
    place = choose_backend(backend, total)
    pieces = Sampler(model, known, place, generator=generator, given=rows).draw_apart(sizes, seed)
    parts = [data for some, drawn in pieces for data in datasets(model, some, drawn)]
    return parts[0] if events is None or type(events) is int or np.ndim(events) == 0 else parts


def datasets(model: Pdf, sizes: Sizes, drawn: Drawn) -> list[Dataset]:
    """Cut what was drawn into a dataset for each size."""
    # read once: what lies on a device is copied from there each time
    columns = {o.name: c.values for o, c in zip(model.observables, drawn.columns, strict=True)}
    if len(sizes) == 1:  # these columns are not shared, so they need no copy
        return [build_drawn(columns, model.observables)]
    return [
        build_drawn({n: c[stop - size : stop].copy() for n, c in columns.items()}, model.observables)
        for size, stop in zip(sizes, np.cumsum(sizes), strict=True)
    ]


def check_room(what: str, model: Pdf, events: float) -> None:
    """Refuse more events than memory can hold."""
    check_memory(f"{what}: {events:.6g} events", 8.0 * len(model.observables) * events)


def check_sizes(events: int | Sequence[int]) -> Sizes:
    """Return numbers of events, whole and not negative."""
    number = as_number(events)
    if number is not None and 0 <= number <= MAX_EXPECTED and number.is_integer():  # 1e5 is whole, too
        return np.array([number], np.int64)
    sizes = np.atleast_1d(np.asarray(events))
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise OptionError(
            f"generate: the number of events must be a whole number or a list of them, got {events!r}"
        )
    if np.any(sizes < 0):
        raise OptionError(f"generate: the number of events must not be negative, got {sizes.min()}")
    return sizes.astype(np.int64)


def new_seed() -> int:
    """Return a seed that nobody can know."""
    return int.from_bytes(os.urandom(8), "big") >> 1


def check_seed(seed: int) -> int:
    """Return a seed as the compiled generators take it."""
    try:
        whole = operator.index(seed)
    except TypeError:
        whole = -1
    if not 0 <= whole < 1 << 64:
        raise OptionError(f"seed: must be a whole number from 0 to 2**64 - 1, got {seed!r}")
    return whole
