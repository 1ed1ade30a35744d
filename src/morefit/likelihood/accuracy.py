"""Check the numerical integrals of a model by other means than those that computed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, Op, const, domain_of, evaluate, leaves, substitute, toposort, with_finer_rules
from morefit.expr.evaluate import adapt_around, adapted_to, places_at
from morefit.expr.quadrature import Domain, NodeDomain
from morefit.model import Observable, Parameter, Pdf
from morefit.model.integrate import find_breaks, integral_to_check, still_integral
from morefit.model.integrate.per_event import relative_error
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise

MAX_AXES = 3  # of a quadrature
MAX_EVENTS = 20_000  # at which the density is looked at for peaks that were missed
MAX_CHECKED = 100  # events at which integrals for each event are compared
PEAKS = 8  # of them around which boxes are cut closely
JUMP_STEP = 1e-5  # of a range, to both sides of a kink
STEPS = tuple(part * JUMP_STEP for part in (-1.0, -0.1, 0.1, 1.0))
FAR_STEP = 0.05  # of a range, to both sides of an end
NEXT_TO_NOTHING = 1e-4  # of the density on the other side
JUMP = 1e-2  # of the slope of a log density over the range
GRID = 65  # points of a range, at which it is looked how high a density is
UNSEEN = 1e-9  # of the largest height of a density: no event is where it is lower
STEEPEST = 1e-7  # of a density at a distance from its end is left at a tenth of it: less than of any power that is met
NO_FALL = 0.9  # of a density at a distance from its end is left at a tenth of it: more than of any root
PARTS = (0.0, 0.25, 0.5, 0.75)  # of the way from the start to a limit
STEP = 1e-4  # of a parameter, for differences;
MIN_VALUE = 1e-3  # one that is smaller counts as this
UNSMOOTH = 1e-3  # relative difference between a derivative and a difference
ROUNDING = 1e-9  # of an integral

# which floating parameters move some points of a density
Moved = Callable[[Pdf, tuple[str, ...]], frozenset[str]]


def integral_error(model: Pdf, values: Mapping[str, float], events: Mapping[str, Array]) -> float:
    """Return how far, relatively, the worst numerical integral of a model is from an independent one.

    That is made in the observables themselves, without the map onto panels but for those that start at a pole, its boxes
    cut closely around the events where the density is largest: a peak that has events is not missed. Integrals for each event are computed with twice as
    many nodes, at some of the events.
    """
    errors = [density_error(pdf, values, events) for pdf in numerical(model) if not node_sums(pdf)]
    count = len(next(iter(events.values())))
    some = {name: numbers[:: max(1, count // MAX_CHECKED)] for name, numbers in events.items()}
    for node, finer in node_rules(model) if count else ():
        with np.errstate(all="ignore"):
            here = [evaluate(one, {**values, **some}) for one in (node, finer)]
        errors.append(relative_error(*here))
    return max(errors, default=0.0)


def is_numerical(model: Pdf) -> bool:
    """Return whether a density of a model is integrated numerically, or computed by an integral for each event."""
    return bool(numerical(model) or node_sums(model))


@lru_cache(maxsize=256)
def node_sums(model: Pdf) -> tuple[Expr, ...]:
    """Return the integrals for each event in what a likelihood sums."""
    nodes = toposort(model.summed, enter_integrals=False, enter_sums=False)
    return tuple(node for node in nodes if node.op is Op.NODE_SUM)


@lru_cache(maxsize=256)  # every fit asks
def node_rules(model: Pdf) -> tuple[tuple[Expr, Expr], ...]:
    """Return the integrals for each event, and the same with twice as many nodes; sums of terms have no more."""
    both = ((node, with_finer_rules(node)) for node in node_sums(model))
    return tuple((node, finer) for node, finer in both if finer is not node)


@lru_cache(maxsize=256)  # every fit asks
def numerical(model: Pdf) -> tuple[Pdf, ...]:
    """Return the densities of a model that are integrated numerically."""
    return tuple(pdf for pdf in model.components() if integrals(pdf))


@lru_cache(maxsize=256)
def moved_kinks(model: Pdf, floating: tuple[str, ...]) -> frozenset[str]:
    """Return the floating parameters that move a point where the slope of a log density jumps, at the start values.

    Sums over events of second derivatives lack what such a jump contributes, as a Laplace density shows.
    """
    each = (jumps(pdf, x, floating) for pdf in model.components() for x in pdf.observables)
    return frozenset[str]().union(*(moving for some in each for moving in some))


def jumps(pdf: Pdf, x: Observable, floating: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """Go through the jumps of the slope of a log density along an observable; return which parameters move each."""
    density, step = pdf.density(), JUMP_STEP * (x.high - x.low)
    for moving, edge, known in moving_points(pdf, x, floating):
        around = edge + np.outer([step, step / 10], [-2.0, -1.0, 1.0, 2.0])
        with np.errstate(all="ignore"):
            left, across, right = np.diff(np.log(evaluate(density, {**known, x.name: around})), axis=1).T
            continuous = abs(across[0]) <= 2 * (abs(left[0]) + abs(right[0])) + JUMP_STEP
            change = np.abs(
                right - left
            )  # by a jump of the slope a tenth with a tenth of the step, else a hundredth
            if continuous and change[0] > JUMP * JUMP_STEP and change[1] > 0.05 * change[0]:
                yield moving


@lru_cache(maxsize=256)  # every fit asks
def moved_edges(model: Pdf, floating: tuple[str, ...]) -> frozenset[str]:
    """Return the floating parameters that move a point beyond which a density is zero, and towards which it falls as a power.

    The likelihood of a mixture has a minimum between any two events there; without other components no event lies beyond.
    """
    components = tuple(model.components())
    each = around_moving_points(components if len(components) > 1 else (), floating)
    return frozenset[str]().union(
        *(
            moving
            for moving, (sides, _), _ in each
            if (ends_at(sides) and not fades(sides)) or nearly_ends_at(sides)
        )
    )


@lru_cache(maxsize=256)  # every fit asks
def moved_steps(model: Pdf, floating: tuple[str, ...]) -> frozenset[str]:
    """Return the floating parameters that move a step of a density, as of a floor: the likelihood jumps where it passes an event.

    In a mixture that is also where a component is cut off, as events of the others lie beyond. What is next
    to nothing is nothing: Novosibirsk's density falls to it before its end, where there is no step.
    """
    names: set[str] = set()
    for moving, (around, heights), points in around_moving_points(tuple(model.components()), floating):
        unseen = UNSEEN * np.max(heights[np.isfinite(heights)], initial=0.0)
        sides = np.where(around < unseen, 0.0, around)
        if is_cut_off(sides):
            starts = {p.name: p.start for p in model.parameters}
            centres = {o.name: 0.5 * (o.low + o.high) for o in model.observables}
            sides = heights_at(model.normalised(), {**starts, **centres, **points})
        if steps_at(sides):
            names |= moving
    return frozenset(names)


def around_moving_points(
    components: Sequence[Pdf], floating: tuple[str, ...]
) -> Iterator[tuple[frozenset[str], tuple[Array, Array], dict[str, Any]]]:
    """Go through the kinks and steps of densities that floating parameters move; return these, the density on both sides and all over, and where.

    They are looked at where the point is inside of the range: at the start values, or at others between the limits.
    """
    for pdf in components:
        for x in pdf.observables:
            around = (x.high - x.low) * np.array([-FAR_STEP, *STEPS, FAR_STEP])
            for moving, edge, known in moving_points(pdf, x, floating, PARTS):
                points = {**known, x.name: edge + around}
                all_over = {**known, x.name: np.linspace(x.low, x.high, GRID)}
                heights = heights_at(pdf.density(), all_over, GRID)
                yield moving, (heights_at(pdf.density(), points), heights), points


@np.errstate(all="ignore")
def heights_at(density: Expr, points: Mapping[str, Any], count: int = 6) -> Array:
    """Return a density at some points, by default three distances on both sides of one."""
    return np.broadcast_to(evaluate(density, points), count)


def between_limits(p: Parameter, part: float) -> float:
    """Return the start of a parameter, or a place that is a part of the way to the farther one of its limits."""
    if p.fixed or not np.isfinite(p.high - p.low):
        return p.start
    return p.start + part * (p.high - p.start if p.high - p.start > p.start - p.low else p.low - p.start)


def ends_at(sides: Array) -> bool:
    """Return whether a density is zero on one side of a point."""
    return bool((sides[1] > 0) != (sides[-2] > 0))


def fades(sides: Array) -> bool:
    """Return whether a density that ends at a point falls faster than any power before it, so that no event is near."""
    here = sides[1:3] if sides[1] > 0 else sides[-2:2:-1]  # from far to near
    return bool(here[1] < STEEPEST * here[0])


def nearly_ends_at(sides: Array) -> bool:
    """Return whether a density is next to nothing all over one side of a point, as where a small number keeps it from zero."""
    (near, far), high = (sides[1::-1], sides[-1]) if sides[0] < sides[-1] else (sides[-2:], sides[0])
    return bool(far < NEXT_TO_NOTHING * high and 0 < near < 2 * far < 4 * near)


def is_cut_off(sides: Array) -> bool:
    """Return whether a density is zero on one side of a point, and does not fall towards it on the other."""
    left, right = sides[1:3], sides[-2:2:-1]  # from far to near
    here, there = (left, right) if left[0] > 0 else (right, left)
    return bool(ends_at(sides) and not there.any() and here[1] > NO_FALL * here[0])


def steps_at(sides: Array) -> bool:
    """Return whether a density has a step, between values above zero: it changes as much however near both sides are."""
    if not np.all(sides[1:-1] > 0):
        return False
    far, near = (abs(float(np.log(sides[-k - 1] / sides[k]))) for k in (1, 2))
    return near > JUMP and near > 0.5 * far


def moving_points(
    pdf: Pdf, x: Observable, floating: tuple[str, ...], parts: Sequence[float] = PARTS[:1]
) -> Iterator[tuple[frozenset[str], float, dict[str, Any]]]:
    """Go through the kinks and steps of a density along an observable that floating parameters move, inside its range.

    Return the parameters, where it is at their start values or parts of the way to their limits, and all values.
    """
    centres = {o.name: 0.5 * (o.low + o.high) for o in pdf.observables}
    first, *others = ({p.name: between_limits(p, part) for p in pdf.parameters} | centres for part in parts)
    step = JUMP_STEP * (x.high - x.low)
    for kink in find_breaks(pdf.density(), x.expr, (x.low, x.high), set(), first).kinks:
        moving = frozenset(leaf.name for leaf in leaves(Op.SCALAR, kink)) & frozenset(floating)
        for known in (first, *others) if moving else ():
            edge = float(evaluate(kink, known))
            if x.low + 3 * step < edge < x.high - 3 * step:
                yield moving, edge, known


def density_error(pdf: Pdf, values: Mapping[str, float], events: Mapping[str, Array]) -> float:
    """Return how far the integral of a density is from one with boxes that are cut closely around its highest events."""
    if len(pdf.observables) > MAX_AXES:  # an acceptance of factors, whose integrals are over fewer
        return 0.0
    columns = {o.name: events[o.name] for o in pdf.observables}
    some = slice(None, None, max(1, len(next(iter(columns.values()))) // MAX_EVENTS))
    columns = {name: numbers[some] for name, numbers in columns.items()}
    known = {leaf.name: values[leaf.name] for leaf in leaves(Op.SCALAR, pdf.density())}
    heights = evaluate(pdf.density(), {**known, **columns})
    heights = np.broadcast_to(heights, next(iter(columns.values())).shape)
    highest = np.argsort(-np.nan_to_num(heights))[:PEAKS]
    points = np.column_stack([columns[o.name][highest] for o in pdf.observables])
    check = prepared_check(pdf)
    if check is None:
        density = substitute(
            pdf.density(), {leaf: const(known[leaf.name]) for leaf in leaves(Op.SCALAR, pdf.density())}
        )
        integral, points = integral_to_check(density, pdf.observables, points)
        check, known = Check.of(integral), {}
    points = np.concatenate([points, places_at(check.subject, check.domain, known)])
    other = adapt_around(check.integrand, check.domain, tuple(known.items()), points)
    total = float(evaluate(normalised_integral(pdf), values))
    off = abs(float(other.totals[0]) / total - 1)
    return max(0.0, off - other.error)


@dataclass(frozen=True)
class Check:
    """An integral to compare with: what is integrated, as written with the places of its peaks, and as it is computed."""

    subject: tuple[Expr, ...]
    integrand: tuple[Expr, ...]
    domain: Domain

    @classmethod
    def of(cls, integral: Expr) -> Check:
        return cls(integral.args[1:], normalise(integral.args[1]), domain_of(integral))


@lru_cache(maxsize=256)  # every fit asks
def prepared_check(pdf: Pdf) -> Check | None:
    """Return the integral to compare with at any values of the parameters, if none of them moves an edge."""
    integral = still_integral(pdf.density(), pdf.observables, pdf.parameters)
    return None if integral is None else Check.of(integral)


@lru_cache(maxsize=256)
def normalised_integral(pdf: Pdf) -> Expr:
    """Return the integral of a density as kernels have it: 1 - (1 - u) would be rounded, next to a singularity at 1."""
    return normalise(pdf.integral())[0]


def integrals(pdf: Pdf) -> list[Expr]:
    """Return the numerical integrals in the integral of a density; those by a sample are exact for it."""
    nodes = (node for node in toposort(pdf.integral(), enter_integrals=False) if node.op is Op.INTEGRAL)
    return [node for node in nodes if not isinstance(domain_of(node), NodeDomain)]


def check_smooth(model: Pdf, values: Mapping[str, float]) -> None:
    """Refuse a model whose integral has a kink that moves with a parameter but was not identified as an edge.

    Derivatives by that parameter would lack what the kink contributes; differences of integrals have it.
    """
    for pdf, integral in with_unsolved(model):
        check_integral(pdf, integral, values)


@lru_cache(maxsize=256)  # every derivative asks
def with_unsolved(model: Pdf) -> tuple[tuple[Pdf, Expr], ...]:
    """Return the numerical integrals of a model with kinks that could not be solved for an observable."""
    nodes = ((pdf, node) for pdf in numerical(model) for node in integrals(pdf))
    return tuple((pdf, node) for pdf, node in nodes if len(node.args) > 2 + len(domain_of(node).places))


def check_integral(pdf: Pdf, integral: Expr, values: Mapping[str, float]) -> None:
    domain = domain_of(integral)
    conditions = integral.args[2 + len(domain.places) :]
    own = {leaf.name: values[leaf.name] for leaf in leaves(Op.SCALAR, integral)}
    nodes = adapted_to(integral.args[1:], domain, tuple(own.items())).boxes.nodes()
    crossed = [c for c in conditions if np.ptp(np.sign(evaluate(c, {**own, **nodes.columns}))) > 0]
    for parameter in sorted(
        {leaf for c in crossed for leaf in leaves(Op.SCALAR, c)}, key=lambda leaf: leaf.name
    ):
        first = derivatives(normalise(integral)[0], [parameter])[0]
        second = derivatives(first, [parameter])[0]
        area = abs(float(evaluate(integral, own)))
        sizes = (
            area,
            area / max(abs(own[parameter.name]), MIN_VALUE),
        )  # a derivative that is zero is rounded as others
        for expr, slope, size in ((integral, first, sizes[0]), (first, second, sizes[1])):
            if not agrees_with_differences(expr, slope, own, parameter.name, size):
                raise ModelError(
                    f"density '{pdf.density()!r}': its integral has a kink that moves with '{parameter.name}', from a"
                    " condition that cannot be solved for an observable, so that derivatives would be wrong; write the"
                    " condition with the observable alone on one side, or give an integral"
                )


def agrees_with_differences(
    expr: Expr, slope: Expr, values: Mapping[str, float], name: str, size: float
) -> bool:
    """Return whether a derivative of an integral is what its differences say; those are rounded as numbers of a size."""
    step = STEP * max(abs(values[name]), MIN_VALUE)
    above, below = (float(evaluate(expr, {**values, name: values[name] + s * step})) for s in (1, -1))
    change = float(evaluate(slope, values)) * step
    return (
        abs((above - below) / 2 - change) <= UNSMOOTH * max(abs(above - below), abs(change)) + ROUNDING * size
    )
