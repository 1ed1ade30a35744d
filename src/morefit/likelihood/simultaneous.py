"""``mf.Simultaneous``: a model for each label of a category, fitted together; parameters of one name are shared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from textwrap import indent
from typing import Any

from morefit.data.dataset import Dataset
from morefit.data.labels import Category, label_text, shown
from morefit.data.sources import is_histogram
from morefit.data.weights import observables_of, weight_formula
from morefit.errors import DataError, ModelError, OptionError, errors_of
from morefit.expr import OwnSymbol, Quantity, scalar
from morefit.likelihood.constraint import Constraint, as_constraints
from morefit.likelihood.joint import JointLikelihood, share_kernels
from morefit.likelihood.parameters import one_of_each
from morefit.likelihood.sums import terms_of, with_constrained
from morefit.likelihood.unbinned import Likelihood, likelihood_of
from morefit.model import Observable, Parameter, Pdf
from morefit.model.compose.choice import Choice, Decision, by_name, choices_in, decide, decisions
from morefit.model.compose.restricted import in_ranges
from morefit.model.observable import Ranges
from morefit.model.parts import check_model
from morefit.model.region import YieldsIn
from morefit.rewrite.precompute import Precompute
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences
from morefit.text.suggest import suggest
from morefit.validate import whole_number


class Simultaneous:
    """Models by the label of a category: ``mf.Simultaneous({"2016": model, "2017": other}, "year")``.

    Fits, toys, plots and ``mf.generate`` take it in the place of a model, with one dataset that has the column of
    labels, or with a dataset or histogram for each label by name. Its likelihood is the sum of those of the
    categories. The category is the name of the column, or a ``mf.Category`` with the labels of the models.

    Example: ``mf.Simultaneous({"2016": model, "2017": model.replace({"mu": 5.81})}, "year")``
    """

    models: Mapping[str, Pdf]
    category: Category

    @in_sentences
    def __init__(self, models: Mapping[Any, Pdf], category: str | Category) -> None:
        named: object = models
        if not isinstance(named, Mapping) or not named:
            raise ModelError(
                f"simultaneous: needs models by label, as in {{'2016': model}}, got {named!r:.60}"
            )
        own = category if isinstance(category, Category) else Category(category, list(models))
        labels = Category(own.name, list(models)).labels
        if set(own.labels) != set(labels):
            raise ModelError(
                f"simultaneous: the category '{own.name}' must have the labels of the models, {shown(labels)}, got"
                f" {shown(own.labels)}"
            )
        self.models = dict(zip(labels, models.values(), strict=True))
        self.category = own
        for model in self.models.values():
            self._check(model)
        one_of_each(p for m in self.models.values() for way in decisions(m) for p in way.model.parameters)

    def __getattr__(self, name: str) -> Any:
        """Name the models as those that have an attribute of densities."""
        if name.startswith("_") or name not in dir(Pdf):
            raise AttributeError(f"'Simultaneous' object has no attribute '{name}'")
        raise AttributeError(
            f"simultaneous: has no '{name}', which its models have; take that of a label, as in"
            f" models[{next(iter(self.models))!r}].{name}"
        )

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all models, one of each name."""
        return one_of_each(p for model in self.models.values() for p in model.parameters)

    @cached_property
    def choices(self) -> dict[str, Choice]:
        """The choices of all models by name, which may have one in common."""
        return by_name(c for model in self.models.values() for c in choices_in(model).values())

    def replace(self, replacements: Mapping[Any, Any]) -> Simultaneous:
        """Return the same with parts replaced in all models that have them, as ``Pdf.replace`` does."""
        from morefit.model.replace import replace_in_all

        return Simultaneous(replace_in_all(self.models, replacements), self.category)

    def choose(self, labels: Mapping[str, str]) -> Simultaneous:
        """Return the same with choices decided in all models that have them, as ``Pdf.choose`` does."""
        if unknown := [name for name in labels if name not in self.choices]:
            raise ModelError(f"choice {unknown[0]!r}: in no category; {suggest(unknown[0], self.choices)}")
        models = {
            label: model.choose({n: own for n, own in labels.items() if n in choices_in(model)})
            for label, model in self.models.items()
        }
        return Simultaneous(models, self.category)

    def _check(self, model: Any) -> None:
        """Refuse what is no model, and names that could mean two things."""
        if not isinstance(model, Pdf):
            check_model(model)
        for way in decisions(model):
            check_model(way.model)
        names = {o.name for o in model.observables}
        if self.category.name in names:
            raise ModelError(
                f"simultaneous: '{self.category.name}' names an observable and the category; rename one"
            )
        if both := {self.category.name, *names} & set(self.models):
            raise ModelError(f"simultaneous: {min(both)!r} names a column and a label; rename one")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the models."""
        return tuple(self.models)

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The observables of all models, one of each name."""
        return tuple({o.name: o for model in self.models.values() for o in model.observables}.values())

    def __getitem__(self, label: str | int) -> Pdf:
        """Return the model of one label."""
        return self.models[self.known(label)]

    def known(self, label: object) -> str:
        """Return a label as text, or raise an error if no model has it."""
        text = label_text(label)
        if text is None or text not in self.models:
            raise OptionError(
                f"category '{self.category.name}': has no label {label!r}; {suggest(text, self.labels)}"
            )
        return text

    def by_label(self, what: str, values: Mapping[Any, Any], *, complete: bool = True) -> dict[str, Any]:
        """Return what a mapping has for each label; all must have something if it is to be complete."""
        named = {self.known(label): value for label, value in values.items()}
        if complete and (missing := [label for label in self.models if label not in named]):
            raise DataError(f"simultaneous: {what} must have every label, got none for {shown(missing)}")
        return named

    def split(
        self, data: Any, weights: Any = None, columns: Callable[[Pdf], Sequence[Observable]] | None = None
    ) -> dict[str, tuple[Any, Any]]:
        """Return the data and weights of each label: of a table with the labels, or of a mapping by label."""
        if is_histogram(data):
            raise DataError("simultaneous: a histogram has no labels; give a mapping with one for each label")
        if isinstance(data, Mapping) and self.category.name not in data:
            if weights is not None and not isinstance(weights, str | Mapping | Quantity):
                raise DataError("simultaneous: data by label need their weights by label as well")
            if not any(label_text(key) in self.models for key in data):
                raise DataError(
                    f"simultaneous: data must have the column '{self.category.name}' of labels, or a dataset for each of"
                    f" {shown(self.labels)}, got {shown(list(map(str, data)))}"
                )
            each = self.by_label("data", data)
            own = self.by_label("weights", weights) if isinstance(weights, Mapping) else {}
            return {label: (each[label], own.get(label, weights)) for label in self.models}
        wanted = [
            o.name for m in self.models.values() for o in (m.observables if columns is None else columns(m))
        ]
        # ranges may differ between categories: each model checks its own
        formula = weights if isinstance(weights, Quantity) else None  # computed by each model
        wanted += [o.name for o in observables_of(weight_formula(formula))]
        every = [Observable(name, -sys.float_info.max, sys.float_info.max) for name in dict.fromkeys(wanted)]
        table = Dataset(data, [self.category, *every], weights=None if formula is not None else weights)
        own_data = table.by_label(self.category)
        return {label: (own_data[label], formula) for label in self.models}

    def ranges_of(self, label: str, ranges: Any) -> Ranges | None:
        """Return the ranges of one category: those of all, or of a mapping by label."""
        if not isinstance(ranges, Mapping) or not any(
            label_text(key) in self.models or isinstance(each, Mapping) for key, each in ranges.items()
        ):
            return ranges  # type: ignore[no-any-return]
        return self.by_label("ranges", ranges, complete=False).get(label)

    def restricted(self, ranges: Any) -> Simultaneous:
        """Return the models in some ranges."""
        models = {
            label: in_ranges(model, self.ranges_of(label, ranges)) for label, model in self.models.items()
        }
        return self if ranges is None else Simultaneous(models, self.category)

    def numbers(self, what: str, events: Any, given: Any = None) -> tuple[int | None, ...]:
        """Return how many events to draw for each label; None for what the model expects, or the rows that it is given."""
        if events is not None and not isinstance(events, Mapping):
            raise ModelError(
                f"{what}: events must be numbers by label, as in {{{self.labels[0]!r}: 1000}}, got {events!r}"
            )
        chosen = self.by_label("events", events or {}, complete=False)
        silent = [
            label
            for label, model in self.models.items()
            if label not in chosen and model.expected_events() is None and (given is None or not model.given)
        ]
        if silent:
            raise ModelError(
                f"{what}: events is missing for {shown(silent)}; the model predicts no number, as one with yields would"
            )
        whole = {
            label: whole_number(f"{what}: events of '{label}'", number) for label, number in chosen.items()
        }
        return tuple(whole.get(label) for label in self.models)

    def in_order_of(self, other: object) -> Simultaneous:
        """Return the same models in the order of others, which must have the same labels."""
        if not isinstance(other, Simultaneous) or set(other.labels) != set(self.labels):
            raise ModelError(
                f"simultaneous: both models must have the labels {shown(self.labels)}, got {other!r}"
            )
        return Simultaneous({label: self.models[label] for label in other.labels}, self.category)

    def __repr__(self) -> str:
        return f"Simultaneous({self.category.name!r}: {', '.join(self.models)})"

    def __str__(self) -> str:
        parts = [f"{label}:\n{indent(str(model), '  ')}" for label, model in self.models.items()]
        return "\n".join([f"Simultaneous in {len(parts)} categories of '{self.category.name}'", *parts])


def undecided(model: object) -> list[Decision]:
    """Return all ways to decide the choices of a model; nothing if it has none."""
    if isinstance(model, Simultaneous):
        return list(decide(model.choices, model.choose)) if model.choices else []
    return list(decisions(model)) if isinstance(model, Pdf) and choices_in(model) else []


def simultaneous_likelihood(
    simultaneous: Simultaneous,
    data: Any,
    *,
    weights: Any = None,
    constraints: Sequence[Any] | Any = (),
    ranges: Any = None,
    yields_in: YieldsIn = "full",
    backend: str | Backend = "auto",
    precision: str = "double",
    precompute: Precompute = "auto",
) -> JointLikelihood:
    """Return the sum of the likelihoods of all categories; a constraint is in the first that has its parameters."""
    each = simultaneous.split(data, weights)
    total = sum(len(own) for own, _ in each.values() if isinstance(own, Dataset))
    place = choose_backend(backend, total)
    parts: list[Likelihood] = []
    for label, (own, own_weights) in each.items():
        model = simultaneous.models[label]
        with errors_of(f"category '{label}'"):
            part = likelihood_of(
                model, own, weights=own_weights, ranges=simultaneous.ranges_of(label, ranges), yields_in=yields_in,
                backend=place, precision=precision, precompute=precompute,
            )  # fmt: skip
        parts.append(part)
    shared = share_kernels(constrained(parts, as_constraints(constraints)))
    return JointLikelihood(shared, simultaneous.labels)


def constrained(parts: Sequence[Likelihood], constraints: Sequence[Constraint]) -> list[Likelihood]:
    """Return the parts with constraints, each in the first part that has one of its parameters."""
    own: list[list[Constraint]] = [[] for _ in parts]
    for c in constraints:
        symbols = [scalar(OwnSymbol(f"measured {k}")) for k in range(len(c.measured))]
        names = {p.name for p in with_constrained((), tuple(terms_of([c], symbols)))}
        having = [k for k, part in enumerate(parts) if names & {p.name for p in part.model.parameters}]
        own[having[0] if having else 0].append(c)
    return [part.replaced(constraints=tuple(c)) if c else part for part, c in zip(parts, own, strict=True)]
