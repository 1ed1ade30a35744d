"""``mf.generate``: draw datasets of a model, or pseudo-data of a whole likelihood, constraints included."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from morefit.data.dataset import Dataset, build
from morefit.data.labels import shown
from morefit.errors import ModelError
from morefit.likelihood.base import Term
from morefit.likelihood.simultaneous import Simultaneous
from morefit.likelihood.unbinned import Likelihood
from morefit.model import Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.observable import Ranges
from morefit.model.parameter import check_blinding
from morefit.random.host import COMPILED, Generator, check_generator, part_key, stream_key
from morefit.sampling.generate import check_seed, generate_events, new_seed
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.validate import numbers_by_name


@overload
def generate(
    model: Pdf, events: int | None = None, *, truth: Any = None, seed: int | None = None,
    fluctuate: bool = True, ranges: Ranges | None = None, backend: str | Backend = "auto",
    generator: Generator = ..., given: Any = None,
) -> Dataset: ...  # fmt: skip
@overload
def generate(
    model: Simultaneous, events: Mapping[str, int] | None = None, *, truth: Any = None, seed: int | None = None,
    fluctuate: bool = True, ranges: Ranges | None = None, backend: str | Backend = "auto",
    generator: Generator = ..., given: Any = None,
) -> Dataset: ...  # fmt: skip
@overload
def generate(
    model: Pdf, events: Sequence[int], *, truth: Any = None, seed: int | None = None,
    fluctuate: bool = True, ranges: Ranges | None = None, backend: str | Backend = "auto",
    generator: Generator = ..., given: Any = None,
) -> list[Dataset]: ...  # fmt: skip
@overload
def generate(
    model: Term, events: None = None, *, truth: Any = None, seed: int | None = None,
    fluctuate: bool = True, ranges: Ranges | None = None, backend: str | Backend = "auto",
    generator: Generator = ..., given: Any = None,
) -> Term: ...  # fmt: skip
@in_sentences
def generate(
    model: Pdf | Simultaneous | Term,
    events: int | Sequence[int] | Mapping[str, int] | None = None,
    *,
    truth: Any = None,
    seed: int | None = None,
    fluctuate: bool = True,
    ranges: Ranges | None = None,
    backend: str | Backend = "auto",
    generator: Generator = COMPILED[0],
    given: Any = None,
) -> Dataset | list[Dataset] | Term:
    """Draw a dataset from a model at true values, by name or of the result of a fit (default: its start values).

    A sequence of numbers of events gives as many datasets, drawn together, each with the same events as when drawn alone. Without
    ``events`` an extended model draws a Poisson number of them. Event i of dataset t depends on the seed, t and i only:
    two models that are drawn with one seed have the same random numbers, so give columns of one sample seeds of their own.
    A density that is negative or infinite somewhere at these values is refused. With ``ranges``, such as
    ``{"m": (5.0, 5.2)}``, only events in them are drawn.

    A conditional model takes the columns that it is given from the data ``given``: one event for each row; with ``events``,
    or if it is extended, each event is drawn for a row by chance. A likelihood takes them from its own data, by chance.

    Of ``mf.Simultaneous``, the events of all categories are one dataset with the column of labels; ``events`` are numbers by
    label.

    Of a likelihood, the same likelihood of pseudo-data is returned: each part has as many events as its data, or a
    Poisson number around what it expects, and constraints measure another value, unless ``fluctuate`` is False. Where
    weights are a formula, events follow the model divided by their weight, and have it.

    ``generator`` is "philox" or "xoshiro128++", both compiled with the rest; or, with the numbers made on the host,
    "xoshiro256++", the name of one of NumPy's ("PCG64DXSM", "MT19937", ...), or an object to be drawn from as it is.

    Example: ``mf.generate(model, 1_000, seed=2)``
    """
    if isinstance(model, Simultaneous):
        return generate_simultaneous(
            model.restricted(ranges), events, truth=truth, seed=seed, backend=backend, generator=generator, given=given
        )  # fmt: skip
    if not isinstance(model, Term):
        model = in_ranges(model, ranges)
        if isinstance(events, Mapping):
            raise ModelError("generate: a model has one number of events, got numbers by name")
        return generate_events(
            model, events, truth=truth, seed=seed, backend=backend, generator=generator, given=given
        )
    for name, what, value in (
        ("ranges", "ranges", ranges), ("events", "numbers of events", events), ("given", "given columns", given),
    ):  # fmt: skip
        if value is not None:
            raise ModelError(f"generate: a likelihood has its {what} already; leave {name} out")
    key = new_seed() if seed is None else check_seed(seed)
    return generate_likelihood(model, truth, key, fluctuate, backend=backend, generator=generator)


def generate_likelihood(
    model: Term, truth: Any, seed: int, fluctuate: bool, *, backend: str | Backend, generator: Generator
) -> Term:
    """Return a likelihood of pseudo-data in the place of its data."""
    if any(part.has_weights and part.weight is None for part in model.parts):
        warn_of_lost_weights("generate", model)
    values = {p.name: p.start for p in model.all_parameters}
    check_blinding(model.all_parameters, truth)
    chosen = numbers_by_name("truth", truth)
    if unknown := [name for name in chosen if name not in values]:
        raise ModelError(
            f"generate: the likelihood has no parameter {', '.join(map(repr, unknown))}; it has {', '.join(values)}"
        )
    values |= chosen
    parts, drawn = [], model.parts
    if any(part.weight is not None for part in model.parts):
        from morefit.likelihood.observed import observed  # which few need

        drawn = observed("generate", model).parts
    for k, part in enumerate(model.parts):
        own = part_key(seed, k)
        data = drawn[k].generated(values, own, backend=backend, generator=generator)
        if part.weight is not None:
            data = part.read(data)
        parts.append(part.replaced(data=data, constraints=drawn_constraints(part, values, own, fluctuate)))
    return model.with_parts(parts)


def warn_of_lost_weights(what: str, likelihood: Term) -> None:
    """Warn that pseudo-data in the place of events with weights have none."""
    if likelihood.weighted:
        warnings.warn(
            f"{what}: events have weights, and those in their place have none, so that fits of them have the errors of events"
            " that count once; use mf.intervals.bootstrap for those of weighted events",
            UserWarning,
            stacklevel=4,
        )


def drawn_constraints(part: Likelihood, values: dict[str, float], seed: int, fluctuate: bool) -> Any:
    """Return the constraints of a part with what they measure in pseudo-data."""
    if not fluctuate:
        return part.constraints
    for c in part.constraints:
        c.check_drawable()
    toy = np.array([0])
    return tuple(
        c.measuring(c.draw(values, stream_key(seed, f"constraint {k}"), toy, around_data=False)[0].tolist())
        for k, c in enumerate(part.constraints)
    )


def generate_simultaneous(
    simultaneous: Simultaneous,
    events: Any,
    *,
    truth: Any,
    seed: int | None,
    backend: str | Backend,
    generator: Generator,
    given: Any,
) -> Dataset:
    """Draw the events of all categories into one dataset with the column of labels."""
    columns = [{o.name for o in model.observables} for model in simultaneous.models.values()]
    if any(own != columns[0] for own in columns):
        raise ModelError(
            "generate: one dataset needs the same observables in all categories; draw each, as in"
            f" mf.generate(models[{simultaneous.labels[0]!r}])"
        )
    check_blinding(simultaneous.parameters, truth)
    values = numbers_by_name("truth", truth)
    unknown = [name for name in values if name not in {p.name for p in simultaneous.parameters}]
    if unknown:
        raise ModelError(f"generate: no category has a parameter {shown(unknown)}")
    numbers = simultaneous.numbers("generate", events, given)
    if given is not None and not any(model.given for model in simultaneous.models.values()):
        raise ModelError("generate: no category is given anything; leave given out")
    rows = None if given is None else simultaneous.split(given, columns=lambda model: model.given)
    check_generator(generator, seed)
    key = new_seed() if seed is None else check_seed(seed)
    drawn = []
    for k, (label, model) in enumerate(simultaneous.models.items()):
        data = generate_events(
            model,
            numbers[k],
            truth={p.name: values[p.name] for p in model.parameters if p.name in values},
            seed=part_key(key, k) if isinstance(generator, str) else None,
            backend=backend,
            generator=generator,
            given=None if rows is None or not model.given else rows[label][0],
        )
        assert isinstance(data, Dataset)
        own = {o.name: data[o.name] for o in simultaneous.observables}
        code = float(simultaneous.category.labels.index(label))
        own[simultaneous.category.name] = np.full(len(data), code)
        drawn.append(build(own, None, None, {simultaneous.category.name: simultaneous.category.labels}))
    return Dataset.concatenate(drawn)
