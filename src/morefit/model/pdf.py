"""The base of every density: write ``density``, and ``integral`` where you know it; the rest follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operation, Quantity, add_all, const, leaves, toposort, where
from morefit.expr.node import known_expr
from morefit.model.arguments import (
    check_arguments,
    check_call,
    check_class,
    check_domain,
    check_observables,
    described,
    listed,
)
from morefit.model.conditional import accept_conditional, conditional_integral
from morefit.model.evaluation import Recipe, Recipes, Values, evaluator
from morefit.model.in_use import CACHED, freeze_attributes
from morefit.model.integrate import integral_over, integral_over_all
from morefit.model.observable import Box, Observable, Ranges, by_name
from morefit.model.parameter import Parameter
from morefit.model.printed import latex_text, short_text, tree_text
from morefit.model.region import Region, YieldsIn, named_observable, probability_of
from morefit.text.arguments import in_sentences, no_attribute
from morefit.text.elsewhere import MODEL

# methods of a density that return a formula
OF_FORMULAS = frozenset({"density", "integral", "integral_between"})
Leaf = TypeVar("Leaf", Observable, Parameter)
Change = Callable[[Any], Any]  # of an attribute of a density
Branches: TypeAlias = "tuple[tuple[str, Expr | None, Pdf], ...]"
Shares: TypeAlias = "tuple[tuple[Expr, Pdf], ...]"  # densities, each with the factor before it


def in_expressions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of somebody's density that may return a number in the place of an expression; anything else is refused."""

    @wraps(method)
    def call(self: Pdf, *args: Any, **named: Any) -> Expr | None:
        formula = method(self, *args, **named)
        if formula is None and method.__name__ != "density":  # there is none
            return None
        if (known := known_expr(formula)) is None:
            raise ModelError(
                f"density '{type(self).__name__}': {method.__name__}() must return an expression of observables and parameters, or a"
                f" number, got {described(formula)}"
            )
        return known

    return call


class Pdf(ABC):
    """A density in one or more observables, up to a factor that does not depend on the event.

    Subclass it, keep what the formula needs as attributes, and write ``density`` with observables, parameters
    and NumPy functions. Without an ``integral`` it is integrated term by term or by quadrature.

    With ``given=[y]``, which every density takes, it is conditional: data have y, but it is not drawn, and the integral is
    that over the other observables at the y of each event.
    """

    whole_numbers: ClassVar[bool] = False  # whether its events are whole numbers
    extends: ClassVar[bool] = True  # whether its formula holds outside of the ranges of its observables
    defined_on: ClassVar[tuple[float, float] | None] = None  # where the range of its observable x must lie
    integral_checked: bool = True  # whether its own integral is compared with a numerical one
    given: tuple[Observable, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return no_attribute(self, name, MODEL)

    def __new__(cls, *args: Any, given: Any = None, **named: Any) -> Self:
        """Read what is given, so that the arguments can be checked with it."""
        check_class(cls)
        check_call(cls, args, named)
        pdf = super().__new__(cls)
        if given is not None:
            accept_conditional(cls)
            vars(pdf)["given"] = check_observables(f"density '{cls.__name__}': given observables", given)
        return pdf

    def __post_init__(self) -> None:
        """Check the arguments of a density that is a dataclass, as the types of its fields declare them."""
        check_arguments(self)
        if self.defined_on is not None:
            check_domain(self, *self.defined_on)

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        """Refuse: a density has parameters, whose values a call would not show."""
        raise ModelError(
            f"density '{type(self).__name__}': is not called; write model.pdf(x), with values= a result or numbers by name, for"
            " its normalised height at x"
        )

    def __add__(self, other: object) -> NoReturn:
        """Refuse: a sum of densities needs weights."""
        raise ModelError(
            f"density '{type(self).__name__}': is not added by +; write mf.Sum([a, b], fractions=[f]) or"
            " mf.Sum([a, b], yields=[n, m])"
        )

    def __mul__(self, other: object) -> NoReturn:
        """Refuse: what a product means depends on its other factor."""
        raise ModelError(
            f"density '{type(self).__name__}': is not multiplied by *; write mf.Product([a, b]) for densities of different"
            " observables, mf.Efficiency(a, formula) for an acceptance, or mf.Sum([a, b], fractions=[f]) for a fraction"
        )

    __radd__, __rmul__ = __add__, __mul__

    @abstractmethod
    def density(self) -> Expr:
        """Return the density, up to a factor that does not depend on the event."""

    def integral(self) -> Expr:
        """Return the integral of ``density`` over the ranges of the observables that are drawn."""
        if len(self.drawn) == 1:
            (x,) = self.drawn
            between = self.integral_between(const(x.low), const(x.high))
            if between is not None:
                return between
        return self.integral_inside(self.drawn, self.parameters)

    def integral_inside(self, box: tuple[Observable, ...], parameters: Sequence[Parameter]) -> Expr:
        """Return the integral over what is drawn, on these ranges: term by term or numerically."""
        return (
            conditional_integral(self, box) if self.given else integral_over(self.density(), box, parameters)
        )

    def known_integral(self) -> Expr | None:
        """Return the integral if the density has a formula of its own for it, or None; compositions have those of their parts."""
        return None if type(self).integral is Pdf.integral or self.branches() else self.integral()

    @property
    def has_own_integral(self) -> bool:
        """Whether a user wrote a formula for the integral, or for the density of a class that inherits one."""
        kind = type(self)
        known = kind.integral is not Pdf.integral or kind.integral_between is not Pdf.integral_between
        return known and not kind.__module__.startswith("morefit.")

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        """Return the integral of a density in one observable from ``low`` to ``high``, or None if there is no formula."""
        return None

    def integral_times(self, function: Expr) -> Expr | None:
        """Return the integral of the density times a function of its observables, such as an acceptance, if there is a formula."""
        return None

    def components(self) -> tuple[Pdf, ...]:
        """Return the densities that this one is made of: itself, or those of a sum or product."""
        return (self,)

    def factors(self) -> tuple[Pdf, ...]:
        """Return the densities of independent observables that this one multiplies: itself, or those of a product."""
        return (self,)

    def branches(self) -> Branches:
        """Return the densities that this one is directly made of, each with a title and the weight before it."""
        return ()

    def integrands(self) -> tuple[Expr, ...]:
        """Return functions whose product, or its integral, is the density: where none is negative, it is not."""
        return (self.density(),)

    def shares(self) -> Shares:
        """Return the densities that this one adds up, each with its share of the events; the shares add up to one."""
        return ((ONE, self),)

    def share_names(self) -> tuple[str, ...]:
        """Return the names of the densities of ``shares``, all different."""
        return (type(self).__name__,)

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        """Return how to draw from this density."""
        return recipes.single(self)

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        """Return densities that contain ``x`` and are no compositions, each with its weight.

        Weighted, their probabilities that ``x`` is in a bin and the other observables are in the box add up to that
        of this density. Numerical integrals are made for ``values``.
        """
        return ((ONE, self),)

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        """Return the probability that an event lies inside a box; numerical integrals are made for ``values``, if given."""
        return ONE if self.fits_into(box) else self.area([box], values) / self.integral()

    def probability_of_any(self, boxes: Sequence[Box], values: Mapping[str, float] | None) -> Expr:
        """Return the probability that an event lies in one of several boxes, none of which overlaps with another."""
        if len(boxes) > 1 and type(self).probability is Pdf.probability:
            return self.area(boxes, values) / self.integral()
        each = [self.probability(box, values) for box in boxes]
        return each[0] if len(each) == 1 else add_all(*each)

    def area(self, boxes: Sequence[Box], values: Mapping[str, float] | None) -> Expr:
        """Return the integral of ``density`` over boxes: by formula, or numerically over all of them together."""
        inside = [tuple(o.within(box) for o in self.drawn) for box in boxes]
        ends = [(const(x.low), const(x.high)) for x, *others in inside if not others]
        known = [area for pair in ends if (area := self.integral_between(*pair)) is not None]
        if len(known) == len(boxes):
            return known[0] if len(known) == 1 else add_all(*known)
        if self.given:
            return add_all(*(conditional_integral(self, box) for box in inside))
        fixed = [Parameter(p.name, values[p.name], fixed=True) for p in self.parameters] if values else []
        return integral_over_all(self.density(), inside, fixed or self.parameters)

    def partly_integrated(
        self, x: Observable, others: tuple[Observable, ...]
    ) -> tuple[Expr, tuple[Observable, ...]]:
        """Return the density integrated over some other observables than x, if there is a formula, and those that are left."""
        return self.density(), others

    def region(self) -> Region:
        """Return the ranges that the density is restricted to, by observable; others have their whole range."""
        return {}

    def yields_meaning(self) -> YieldsIn:
        """Return whether yields and fractions count events in the "full" ranges, or in the "range" of a restriction."""
        return "full"

    def beyond(self, x: Observable) -> Pdf:
        """Return the same density over the whole range of an observable, if it is restricted in it."""
        return self

    def with_yields_in(self, region: Region) -> Pdf:
        """Return the same model with yields and fractions of the events in a region in the place of all events."""
        return self

    def binned(self, x: Observable, edges: Array, box: Box, values: Mapping[str, float]) -> Array | None:
        """Return the probabilities of bins of ``x`` inside a box, if a sample knows them; None for formula or quadrature."""
        return None

    def simulation(self) -> object | None:
        """Return the simulation that alone knows a factor of this density, or None."""
        return None

    def integrals_by_events(self) -> list[tuple[Expr, tuple[Any, Expr]]]:
        """Return the integrals by simulation in this density, each with the sample and what is summed over it."""
        return []

    def fits_into(self, box: Box) -> bool:
        """Return whether a box leaves every observable that is drawn its whole range."""
        return all(o.within(box) is o for o in self.drawn)

    @in_sentences
    def marginal(self, observables: Iterable[Observable | str] | Observable | str) -> Pdf:
        """Return the model of some of the observables, by name or object, the others integrated over."""
        some = (
            (observables,) if isinstance(observables, str) else listed("marginal: observables", observables)
        )
        if not some:
            raise ModelError("marginal: needs at least one observable, got none")
        names = {named_observable(self.observables, one).name for one in some}
        remaining = tuple(o for o in self.observables if o.name in names)
        return self if len(remaining) == len(self.observables) else self.projected(remaining, {})

    def projected(self, remaining: tuple[Observable, ...], region: Region) -> Pdf:
        """Return the density of some observables, of events whose other observables lie in a region."""
        from morefit.model.density import projected_density

        return self if len(remaining) == len(self.observables) else projected_density(self, remaining, region)

    def normalised(self) -> Expr:
        """Return the density divided by its integral.

        From the exponent of a density in pieces the logarithm is subtracted, once per call: products of its first
        derivatives then have one form in all second derivatives.
        """
        density, integral = self.density(), self.integral()
        if density.op is not Op.EXP or density.args[0].op is not Op.WHERE or leaves(Op.COLUMN, integral):
            numerical = any(node.op is Op.INTEGRAL for node in toposort(integral, enter_integrals=False))
            # no node may have met a density: it is not a number then, not infinite
            return density / (
                where(abs(integral) > 0, integral, Op.LOG(const(-1))) if numerical else integral
            )
        return Op.EXP(density.args[0] - Op.LOG(where(integral > 0, integral, -1)))

    def log_normalised(self) -> Expr:
        """Return the logarithm of the normalised density."""
        return Op.LOG(self.density()) - Op.LOG(self.integral())

    def quantile(self, probability: Expr) -> Expr | None:
        """Return the inverse of the distribution of a density in one observable, or None if there is no formula."""
        return None

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf] | None:
        """Return the convolution with a normalised Gaussian as a factor and a density, or None if there is no formula.

        True values may lie outside of the range of the observable.
        """
        return None

    def pieces(self) -> tuple[Array, Array] | None:
        """Return the edges of a density of one observable that is a polynomial in each cell, and rows of coefficients.

        A row has the coefficients of one power of the distance from the lower edge, a number for each cell.
        """
        return None

    def expected_events(self) -> Expr | None:
        """Return the expected number of events, or None if the model does not predict it."""
        return None

    def log_intensity(self) -> Expr:
        """Return the logarithm of what a likelihood sums: for an extended model the density of events."""
        return self.log_normalised()

    @in_sentences
    def replace(self, replacements: Mapping[Any, Any]) -> Pdf:
        """Return this model with new things in the places of old ones, such as ``{mu: other, "x": y, signal: shape}``.

        Keys are parameters, observables, derived quantities and densities of the model, or their names; those of
        densities are the labels of sums. A parameter may become a number or a formula. What is shared stays shared.
        """
        from morefit.model.replace import replace_parts

        return replace_parts(self, replacements)

    @in_sentences
    def choose(self, labels: Mapping[str, str]) -> Pdf:
        """Return this model with choices decided, such as ``{"background": "linear"}``, or ``result.choices``."""
        from morefit.model.compose.choice import choose

        return choose(self, labels)

    def replaced(self, change: Change) -> Pdf:
        """Return this density with every attribute changed by a function."""
        kind: Any = type(self)
        made = getattr(kind, "__dataclass_params__", None)
        if made is not None and made.init:
            own = {one.name: change(getattr(self, one.name)) for one in fields(kind) if one.init}
            return kind(**own, **self.conditional_option(change))  # type: ignore[no-any-return]
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            if name not in CACHED:
                object.__setattr__(other, name, change(value))
        return other

    def conditional_option(self, change: Change) -> dict[str, Any]:
        """Return the argument that makes another density conditional on what this one is given, changed."""
        return {"given": change(self.given)} if self.given else {}

    @in_sentences
    def pdf(self, data: object, values: Values = None, *, backend: Any = "auto") -> Array:
        """Return the normalised density of each event, computed by a compiled kernel; zero outside the ranges.

        ``data`` are columns by name or whatever else a dataset can be made of; of one observable also numbers, as an
        array of any shape, and of several numbers and arrays by name that broadcast, such as a grid. ``values`` are numbers
        by name or a fit result; other parameters have their start values.
        """
        return evaluator().pdf(self, data, values, backend)

    @in_sentences
    def derivative(
        self, data: object, by: Any, order: int = 1, values: Values = None, *, backend: Any = "auto"
    ) -> Array:
        """Return the derivative of what ``pdf`` returns by an observable or a parameter, exactly."""
        return evaluator().derivative(self, data, by, order, values, backend=backend)

    @in_sentences
    def cdf(self, x: ArrayLike, values: Values = None, *, given: Any = None, backend: Any = "auto") -> Array:
        """Return the probability that the observable of a density in one observable is at most ``x``.

        A conditional density needs ``given``: a number by name, or one for each x.
        """
        return evaluator().cdf(self, x, values, backend, given)

    @in_sentences
    def probability_in(self, ranges: Ranges) -> Expr:
        """Return the probability that observables lie in ranges, as an expression of the parameters.

        ``result.derived(n_background * background.probability_in({"m": (5.2, 5.4)}))`` has its propagated error.
        """
        from morefit.model.counts import region_in  # which knows this class

        return probability_of(self, region_in(self, ranges))

    @in_sentences
    def expected_in(self, ranges: Ranges) -> Expr:
        """Return how many events an extended model expects in ranges, as an expression for ``result.derived``."""
        from morefit.model.counts import region_in

        total, region = self.expected_events(), region_in(self, ranges)
        if total is None:
            raise ModelError(
                "model: expects no number of events, as it has no yields; give mf.Sum yields, or use probability_in"
            )
        return add_all(*(total * share * probability_of(part, region) for share, part in self.shares()))

    @in_sentences
    def integrate(
        self,
        ranges: Ranges,
        values: Values = None,
        *,
        given: Any = None,
        backend: Any = "auto",
    ) -> float:
        """Return the probability that observables lie in ranges, such as ``{"m": (5.2, 5.4)}`` or a list of them.

        A conditional density needs ``given``: numbers by name, or columns, over whose rows it is averaged.
        """
        return evaluator().integrate(self, ranges, values, backend, given)

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        """The observables, in the order of the arguments; those that are given come last."""
        every, given = collect(Observable, Op.COLUMN, self, self.density()), {o.name for o in self.given}
        return (*(o for o in every if o.name not in given), *self.given)

    @property
    def drawn(self) -> tuple[Observable, ...]:
        """The observables without those that are given."""
        return self.observables[: len(self.observables) - len(self.given)]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, fixed ones included, in the order of the arguments; those of a formula by name."""
        return collect(Parameter, Op.SCALAR, self, self.density())

    @cached_property
    def summed(self) -> Expr:
        """What a likelihood sums, ``log_intensity``, computed once."""
        return self.log_intensity()

    def __setattr__(self, name: str, value: object) -> None:
        if name == "given":
            raise ModelError(
                "density: 'given' are the observables that it does not draw; pass given=[...], or rename the attribute"
            )
        private = name.startswith("_")  # what a density keeps for itself
        if not private and not vars(self).keys().isdisjoint(CACHED):
            raise ModelError(
                f"model: cannot be changed once it has been used, tried to set '{name}'; make a new one"
            )
        super().__setattr__(name, value)

    def __init_subclass__(cls) -> None:
        """Keep the short text of densities, in the place of the long one that a dataclass would write."""
        super().__init_subclass__()
        if "__repr__" not in vars(cls):
            type.__setattr__(cls, "__repr__", cls.__repr__)
        if not cls.__module__.startswith("morefit."):
            own = {name: vars(cls)[name] for name in OF_FORMULAS & vars(cls).keys()}
            for name, method in own.items():
                if isinstance(method, FunctionType):
                    type.__setattr__(cls, name, in_expressions(method))

    def __repr__(self) -> str:
        return short_text(self)

    def __str__(self) -> str:
        return tree_text(self)

    def _repr_latex_(self) -> str:
        return latex_text(self)


def collect(kind: type[Leaf], op: Operation, pdf: Pdf, density: Expr) -> tuple[Leaf, ...]:
    """List the observables or parameters of a density: as its attributes name them, then as its formula does."""
    leaves: dict[str, Leaf] = {}
    freeze_attributes(pdf)
    own: list[object] = [v for name, v in vars(pdf).items() if name not in CACHED and name != "given"]
    for symbol in [*declared(kind, op, own), *by_name(op, density), *pdf.given]:
        if not isinstance(symbol, kind):
            continue
        known = leaves.setdefault(symbol.name, symbol)
        if known is not symbol:
            raise ModelError(
                f"{kind.__name__.lower()} '{symbol.name}': two different ones share this name in one model,"
                f" {known!r} and {symbol!r}; rename one or use the same object"
            )
    return tuple(leaves.values())


def declared(kind: type, op: Operation, attributes: Iterable[object]) -> Iterator[object]:
    """Go through attributes in order, into lists and other densities."""
    for value in attributes:
        if isinstance(value, Quantity):
            yield from by_name(op, value.expr)
        elif isinstance(value, Pdf):
            yield from value.observables if kind is Observable else value.parameters
        elif isinstance(value, (list, tuple)):
            yield from declared(kind, op, value)
