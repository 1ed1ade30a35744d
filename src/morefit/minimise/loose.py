"""Where a parameter that is loosely determined may have another minimum: a look at two of its values, one evaluation each.

The onset of a tail, say, has a minimum wherever an event leaves the tail. The other parameters follow along the valley of the
first end. The fit is started at values where the quadratic model promises less than the best end. In the language of drivers
(``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite

from morefit.kernel.fit_layout import END, Fit
from morefit.kernel.program import parallel
from morefit.minimise.quadratic_model import UNKNOWN, find_free, measure, minimise_model, restrict
from morefit.minimise.trust_region import accept, is_finite

RATHER_LOOSE = 0.06  # of the way between its limits: a parameter with a larger error
RATHER_BENT = 1.3  # the ratio of curvatures at the start and the end
MAX_LOOSE = 12  # parameters that are looked at
FAR_ASIDE = 0.35  # of the way to a limit, if that is less than one error: where it is looked at
MIN_PROMISE = 2e-4  # of the value
MANY = 8  # parameters: fits with more are looked at
RINGS = 5  # distances from an edge, on each side of it: errors over events, each farther than the one before
NEAREST, FARTHER = 1.1, 1.8
CLOSER, MUCH_FARTHER = 0.55, 2.1  # around a second end
SHALLOW = 0.25  # times the squared errors: where the value beside an edge rises by less, another valley may be anywhere
NEAR_RINGS = 3  # those that are tried also after a smooth way; farther ones, where the value rises little
MAX_RECENTRED = 8.0
TELLING = 1.9  # errors, at least: how the value rises so far away tells about what is farther
ONE_VALLEY = 0.25  # times the squared errors, half of a parabola: where the value rises by more, no other valley is near
FLAT_RISE = 0.4  # times the errors: where it rises by less, another valley may be there


def find_loose(fit: Fit) -> None:
    """Mark the parameters that are loosely determined at the first end, where the curvature differs from that at the start."""
    n = len(fit.x)
    count = 0
    for i in range(n):
        width = fit.high[i] - fit.low[i]
        before = fit.first_bend[i]
        after = fit.hessian[i * n + i]
        bent = max(before, after) > RATHER_BENT * min(before, after)
        wide = isfinite(width) and not 0.0 <= fit.error[i] <= RATHER_LOOSE * width
        fit.loose[i] = 1.0 if bent and wide and count < MAX_LOOSE else 0.0
        fit.promise[i] = 0.0
        count += int(fit.loose[i])


def next_value(fit: Fit) -> None:
    """Go to the next value of a loose parameter, first below and then above its end; the look ends after the last."""
    n = len(fit.x)
    place = 0
    for k in range(int(fit.place), 2 * n):
        if place == 0 and fit.loose[k // 2] > 0.0 and value_of(fit, k) != fit.end[k // 2]:
            place = k + 1
    fit.place = place
    if place > 0:
        follow(fit, (place - 1) // 2, value_of(fit, place - 1))
        for j in range(n):
            fit.trial[j] = fit.x[j]


def value_of(fit: Fit, k: int) -> float:
    """Return a value of a loose parameter: one error from the first end, or on the way to a limit."""
    i = k // 2
    way = FAR_ASIDE * ((fit.low[i] if k % 2 == 0 else fit.high[i]) - fit.end[i])
    if fit.end_error[i] >= 0.0:
        way = min(max(way, -fit.end_error[i]), fit.end_error[i])
    return float(fit.end[i] + way)


def follow(fit: Fit, i: int, value: float) -> None:
    """Go from the best end to a value of a parameter, with the others where the valley leads."""
    n = len(fit.x)
    variance = fit.end_covariance[i * n + i]
    for j in range(n):
        slope = fit.end_covariance[i * n + j] / variance if variance > 0.0 else 0.0
        x = value if j == i else fit.best[j] + slope * (value - fit.best[i])
        fit.x[j] = min(max(x, fit.low[j]), fit.high[j])


def look(fit: Fit) -> None:
    """Compute what the model promises at the present value, and go to the next one."""
    i = (int(fit.place) - 1) // 2
    if is_finite(fit):
        accept(fit)
        promise = fit.best_value - fit.value + promised_below(fit)
        if fit.promise[i] < promise < UNKNOWN:
            fit.promise[i] = promise
            fit.promised[i] = fit.x[i]
    next_value(fit)


def promised_below(fit: Fit) -> float:
    """Return how far below the present value the quadratic model promises its minimum."""
    measure(fit)
    size = find_free(fit)
    for j in range(len(fit.x)):
        fit.move[j] = 0.0
    restrict(fit, size)
    minimise_model(fit, size, UNKNOWN)
    return float(fit.model_edm)


def most_promising(fit: Fit) -> int:
    """Return the parameter that promises most, -1 if none does."""
    best = -1
    most = MIN_PROMISE
    for i in range(len(fit.x)):
        if fit.promise[i] > most:
            best = i
            most = fit.promise[i]
    return best


def start_aside(fit: Fit) -> None:
    """Start at the value that promises most; that is not a start again, and if it leads back, others may not."""
    i = most_promising(fit)
    follow(fit, i, fit.promised[i])
    fit.promise[i] = 0.0
    fit.returns = 0.0


def has_edge(fit: Fit) -> bool:
    """Return whether there is an edge that events have not been tried around yet."""
    return next_edge(fit) >= 0


def next_edge(fit: Fit) -> int:
    """Return the next place beside an edge, -1 after the last: rings around it, first below and then above."""
    first = -1
    for i in range(len(fit.x)):
        k = max(int(fit.side), 2 * RINGS * i)
        if first < 0 and k < 2 * RINGS * (i + 1) and fit.edge[i] == END and fit.end_error[i] > 0.0:
            first = k
    return first


def start_beside_edge(fit: Fit) -> None:
    """Start at the next place beside an edge, with the others where the valley leads; that is not a start again."""
    k = next_edge(fit)
    i = k // (2 * RINGS)
    errors = errors_of(fit, k)
    value = fit.end[i] + (errors if k // RINGS % 2 == 1 else -errors) * fit.end_error[i]
    follow(fit, i, value)
    fit.side = k + 1.0
    fit.returns = 0.0


def errors_of(fit: Fit, k: int) -> float:
    """Return how many errors a place is beside its edge; those around a second end are closer, as there are several."""
    errors = NEAREST if fit.recentred == 0.0 else CLOSER
    for _ in range(k % RINGS):
        errors *= FARTHER if fit.recentred == 0.0 else MUCH_FARTHER
    return errors


def is_steep(fit: Fit) -> bool:
    """Return whether the value beside an edge is too high for another valley; as high as in one, the rest of that side is left out.

    Where it rises much less than a parabola, nothing is left out, on both sides.
    """
    k = int(fit.side) - 1
    errors = errors_of(fit, k)
    rise = fit.value - fit.best_value
    steep = rise > FLAT_RISE * (errors if k % RINGS > 0 else 0.5 * errors)
    if errors > TELLING and rise < SHALLOW * errors * errors:
        fit.shallow = 1.0
    one_valley = errors > TELLING and rise > ONE_VALLEY * errors * errors
    enough = steep and fit.rough == 0.0 and k % RINGS + 1 >= NEAR_RINGS
    if fit.shallow == 0.0 and (enough or one_valley):
        fit.side = 1.0 * RINGS * (k // RINGS + 1)
    return bool(steep)


def recentre(fit: Fit) -> None:
    """Go on around a lower end that a place beside an edge has led to; its covariance is known."""
    if fit.recentred < MAX_RECENTRED:
        fit.recentred += 1.0
        fit.end_value = fit.value
        remember_valley(fit)
        fit.side = 2.0 * RINGS * ((int(fit.side) - 1) // (2 * RINGS))


def remember_valley(fit: Fit) -> None:
    """Remember the present end, its errors and its covariance: other starts are chosen from these."""
    n = len(fit.x)
    for i in parallel(n):
        fit.end[i] = fit.x[i]
        fit.end_error[i] = fit.error[i]
        for j in parallel(n):
            known = fit.error[i] >= 0.0 and fit.error[j] >= 0.0
            fit.end_covariance[i * n + j] = fit.covariance[i * n + j] if known else 0.0
