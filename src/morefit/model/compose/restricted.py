"""A density restricted to a region: ranges of its observables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import ONE, ZERO, Expr, Op, add_all, const, multiply_all, substitute, where
from morefit.model.arguments import listing
from morefit.model.compose.product import Product
from morefit.model.counts import counted_in, region_in
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.observable import Box, Observable, Ranges
from morefit.model.parts import check_model
from morefit.model.pdf import Branches, Pdf, Shares
from morefit.model.region import (
    Range,
    Region,
    YieldsIn,
    boxes,
    inside,
    intersection,
    part_of,
    probability_of,
    region_text,
)

MEANINGS = ("full", "range")


@dataclass(frozen=True, init=False, eq=False)
class Restricted(Pdf):
    r"""$p(x)/\int_R p(x')\,dx'$ inside a region $R$ and zero outside: one or several ranges of some observables.

    The yields and fractions of the model are those of its full ranges, so that an extended one expects
    $\sum_i n_i P_i(R)$ events. With ``yields_in="range"`` they count the events in the region, as do the fractions of
    sums inside of it.

    Example: ``mf.Restricted(model, {"m": [(5.0, 5.2), (5.4, 6.0)]})``
    """

    model: Pdf
    ranges: Mapping[str, tuple[Range, ...]]
    yields_in: YieldsIn

    def __init__(self, model: Pdf, ranges: Ranges, *, yields_in: YieldsIn = "full") -> None:
        if not isinstance(model, Pdf):
            raise ModelError(f"restricted: takes a density, got {model!r}; wrap a formula in mf.Density")
        check_meaning(yields_in)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "ranges", region_in(model, ranges))
        object.__setattr__(self, "yields_in", yields_in)
        vars(self)["given"] = model.given
        if not self.ranges:
            raise ModelError("restricted: needs ranges of at least one observable, got none")
        if self.given and model.expected_events() is not None:
            raise ModelError(
                f"restricted: with {listing(self.given)} given, how many events an extended model expects in ranges depends"
                " on each event; use fractions, or narrower observables and data that are cut"
            )

    @cached_property
    def whole(self) -> Pdf:
        """The model over its full ranges, with yields and fractions in the meaning that they have here."""
        return self.model if self.yields_in == "full" else self.model.with_yields_in(self.ranges)

    @cached_property
    def inner_shares(self) -> tuple[tuple[Expr, Pdf, Expr], ...]:
        """The densities that the whole model adds up: the share of each, and its probability of the region."""
        return tuple((w, pdf, probability_of(pdf, self.ranges)) for w, pdf in self.whole.shares())

    @property
    def conditional_ranges(self) -> Region:
        """The ranges of observables that are given."""
        return part_of(self.ranges, self.given)

    def inside_of(self, total: Expr) -> Expr:
        """Return which part of a number of events, or of an area, lies in the region."""
        return add_all(*(multiply_all(total, share, inner) for share, _, inner in self.inner_shares))

    def region(self) -> Region:
        return intersection(self.ranges, self.whole.region())

    def density(self) -> Expr:
        return where(inside(self.ranges, self.model.observables), self.whole.density(), ZERO)

    def integral(self) -> Expr:
        return self.inside_of(self.whole.integral())

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if len(self.observables) > 1:
            return None
        (ranges,) = self.ranges.values()
        clipped = [[Op.MIN(Op.MAX(end, const(a)), const(b)) for end in (low, high)] for a, b in ranges]
        areas = [area for ends in clipped if (area := self.whole.integral_between(*ends)) is not None]
        return add_all(*areas) if len(areas) == len(ranges) else None

    # what likelihoods sum has no condition: they leave out the events outside of the region

    def log_normalised(self) -> Expr:
        return self.whole.log_normalised() - Op.LOG(self.inside_of(ONE))

    def log_intensity(self) -> Expr:
        intensity = self.whole.log_intensity()
        return intensity if self.expected_events() is not None else intensity - Op.LOG(self.inside_of(ONE))

    def expected_events(self) -> Expr | None:
        total = self.whole.expected_events()
        return None if total is None else self.inside_of(total)

    def yields_meaning(self) -> YieldsIn:
        return self.yields_in

    def beyond(self, x: Observable) -> Pdf:
        others = {name: ranges for name, ranges in self.ranges.items() if name != x.name}
        return restricted(self.whole.beyond(x), others)

    def with_yields_in(self, region: Region) -> Pdf:
        return Restricted(self.whole.with_yields_in(intersection(self.ranges, region)), self.ranges)

    def projected(self, remaining: tuple[Observable, ...], region: Region) -> Pdf:
        both, inner = intersection(self.ranges, region), part_of(self.ranges, remaining)
        dropped = {name: ranges for name, ranges in both.items() if name not in {o.name for o in remaining}}
        return restricted(self.whole.projected(remaining, dropped), inner)

    # what it is made of

    def components(self) -> tuple[Pdf, ...]:
        return tuple(restricted(part, self.ranges) for part in self.whole.components())

    def factors(self) -> tuple[Pdf, ...]:
        factors = self.whole.factors()
        return (self,) if len(factors) == 1 else tuple(restricted(part, self.ranges) for part in factors)

    def branches(self) -> Branches:
        return ((region_text(self.ranges), None, self.model),)

    def shares(self) -> Shares:
        if len(self.inner_shares) == 1:
            return ((ONE, self),)
        total = self.inside_of(ONE)
        return tuple((w * p / total, restricted(pdf, self.ranges)) for w, pdf, p in self.inner_shares)

    def share_names(self) -> tuple[str, ...]:
        return self.whole.share_names()

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        if len(shares := self.shares()) > 1:
            return tuple((w * v, part) for w, pdf in shares for v, part in pdf.marginals(x, box, values))
        factors = self.factors()
        return ((ONE, self),) if len(factors) == 1 else Product(factors).marginals(x, box, values)

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        both = intersection(self.ranges, {name: (ends,) for name, ends in box.items()})
        return probability_of(self.whole, both, values) / probability_of(self.whole, self.ranges, values)

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        if self.conditional_ranges:
            raise ModelError(
                f"restricted: events with {listing(self.given)} given cannot be drawn in ranges of it, got"
                f" {region_text(self.conditional_ranges)}; cut the columns that are given, and draw in ranges of the others"
            )
        if self.given and (len(list(boxes(self.ranges))) > 1 or len(self.shares()) > 1):
            return recipes.single(self)  # as a whole: each row must be accepted equally often
        if len(shares := self.shares()) > 1:
            return recipes.mixture([share for share, _ in shares], [pdf for _, pdf in shares])
        if len(factors := self.factors()) > 1:
            return recipes.product(factors)
        pieces = [piece_of(self.whole, box) for box in boxes(self.ranges)]
        if len(pieces) == 1:
            return recipes.single(pieces[0])
        return recipes.mixture([piece.integral() for piece in pieces], pieces)


def piece_of(model: Pdf, box: Box) -> Pdf:
    """Return a density in one box; that of whole numbers is one of its own kind."""
    if model.whole_numbers:
        return model.replace({o: o.within(box) for o in model.drawn})
    if counted := sorted(counted_in(model)):
        raise ModelError(
            f"restricted: whole numbers of {counted} cannot be drawn from a composition in ranges; restrict its parts"
        )
    return Piece(model, box)


@dataclass(frozen=True, eq=False)
class Piece(Pdf):
    """A density in one box, whose observables have no other range: how events are drawn from it."""

    model: Pdf
    box: Box

    def __post_init__(self) -> None:
        vars(self)["given"] = tuple(o.within(self.box) for o in self.model.given)

    def density(self) -> Expr:
        inner = {o.expr: o.within(self.box).expr for o in self.model.observables}
        return substitute(self.model.density(), inner)

    def integral(self) -> Expr:
        return self.model.integral() * self.model.probability(self.box)

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return tuple(o.within(self.box) for o in self.model.observables)


def restricted(model: Pdf, region: Region, yields_in: YieldsIn = "full") -> Pdf:
    """Return a model restricted to what a region has of its observables; the same object for the same region."""
    own = part_of(region, model.observables)
    return cached(model, tuple(own.items()), yields_in) if own else model


@lru_cache(maxsize=256)
def cached(model: Pdf, ranges: tuple[tuple[str, tuple[Range, ...]], ...], yields_in: YieldsIn) -> Restricted:
    return Restricted(model, dict(ranges), yields_in=yields_in)


def in_ranges(model: Pdf, ranges: Ranges | None, yields_in: YieldsIn = "full") -> Pdf:
    """Return a model restricted to the ranges of a fit, or the model itself if there are none."""
    check_model(model)
    check_meaning(yields_in)
    if ranges is None:
        return model
    inside = restricted(model, region_in(model, ranges), yields_in)
    if outside := [name for name, some in inside.region().items() if not some]:
        raise DataError(
            f"observable '{outside[0]}': the model is zero in all of these ranges, got {ranges!r}"
        )
    return inside


def check_meaning(yields_in: str) -> None:
    if yields_in not in MEANINGS:
        raise OptionError(f"yields_in: must be 'full' or 'range', got {yields_in!r}")
