"""Where a fit that may have ended in the wrong valley is started again.

A fit of a mixture may end in a minimum that is not the lowest, such as one without one of its components. In the language
of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.fit_layout import Fit
from morefit.minimise.components import best_place, start_at_place
from morefit.minimise.loose import (
    MANY,
    find_loose,
    has_edge,
    most_promising,
    remember_valley,
    start_aside,
    start_beside_edge,
)
from morefit.minimise.quadratic_model import UNKNOWN

# in the order in which they are tried, where they pay (next_start); from BESIDE on two for each parameter
EARLY, BEYOND, HALF_WAY, ASIDE = range(4)
ASIDES = 2  # values of loose parameters that promise most
EDGE, MIRROR, SWAP, OPPOSITE, MIDDLE, PEAK = range(ASIDE + ASIDES, ASIDE + ASIDES + 6)
AGAIN = 0.5  # added to EDGE: it comes again until events on all sides have been tried
PEAKS = 4  # places where a component promises most
SOMEWHERE, UP, DOWN, ELSEWHERE, BESIDE = range(PEAK + PEAKS, PEAK + PEAKS + 5)
STARTS = BESIDE  # how many of them are tried by default, where there is a reason
SPREAD = 20  # how many come after these where every fit is started again
RETURNS = 2.0  # starts that lead back to the best end, one after the other, are enough; one more if it is very doubtful
# along the parameter that the others widen most, and after a way over so many saddles that it was led by chance
ERRORS, MANY_ERRORS, LOST = 3.0, 5.0, 6.0
STEP = 2.0  # errors of one parameter, to the next kink
VERY_LOOSE = 0.1  # of the way between its limits: a parameter with a larger error is hardly determined
LOOSE = 0.01  # of the way between its limits: a parameter with a larger error may have minima all over
NEAR, VERY_NEAR = 2.0, 0.5  # errors: a parameter so close to a limit may be one of an absent component
FAR = 2.2  # errors: a start so far from its end may have led over others
# errors, and of the way between limits: a rough way that leads so far was led by chance
ASTRAY, PART = 5.0, 0.1
# its start: an amount so large was only guessed, and the other side of the start has none of it
MANY_TIMES = 3.0
SHORT = 8.0  # steps: a start that needs more was only a guess, and its curvature says nothing
NARROW = 3.0  # times the curvature at the start, or as many times as there are errors between: the valley of a kink
BENT, VERY_BENT = 2.5, 8.0  # the ratio of curvatures at the start and the end, of a rough way and of any
LONG_WAY, SADDLES = 8.0, 3.0  # steps, and those with negative curvature: another valley may have been as near
STRAYED = 0.25  # the doubt of an end after such a way
CLOSE = 10.0  # errors: components that are not more different may exchange their parameters
GOLDEN = 0.6180339887498949
ONE_PLACE, ANOTHER_PLACE = 106, 102  # of those that fill the space between limits: they paid most often


def thorough_starts(count: int) -> int:
    """Return the number of other starts of a thorough fit with this number of parameters."""
    return BESIDE + 2 * count + SPREAD


def remember_end(fit: Fit, minimum: bool) -> None:
    """Remember where the first start led, the valley there, and the doubts about it; the covariance is known."""
    n = len(fit.x)
    fit.end_value = fit.value
    remember_valley(fit)
    fit.widest = 0.0
    most = 0.0
    for i in range(n):
        widened = fit.end_covariance[i * n + i] * abs(fit.hessian[i * n + i])
        if widened > most:
            fit.widest = i
            most = widened
    find_loose(fit)
    doubt(fit, minimum)


def doubt(fit: Fit, minimum: bool) -> None:
    """Judge the end of the first start by how much its curvature differs from that at the start, and how near a limit is."""
    n = len(fit.x)
    nearest = UNKNOWN
    bent = 1.0
    fit.narrow = 0.0
    fit.wandered = 0.0
    for i in range(n):
        before = fit.first_bend[i]
        after = fit.hessian[i * n + i]
        if min(before, after) > 0.0:
            bent = max(bent, max(before, after) / min(before, after))
        elif max(before, after) > 0.0:
            bent = UNKNOWN
        room = min(fit.x[i] - fit.low[i], fit.high[i] - fit.x[i])
        if room <= NEAR * fit.error[i] and fit.edge[i] >= 0.0:
            nearest = min(nearest, room / fit.error[i] if room > 0.0 else 0.0)
        far = abs(fit.x[i] - fit.start[i]) / fit.error[i] if fit.error[i] > 0.0 else 0.0
        if fit.rough > 0.0 and is_astray(fit, i):
            fit.wandered = 1.0
        if far > FAR and after > min(far, NARROW) * abs(before) and fit.steps <= SHORT:
            fit.narrow = 1.0
    fit.lost = 1.0 if fit.saddles >= LOST else 0.0
    fit.doubtful_end = 0.0
    if fit.value == UNKNOWN:
        return  # nothing is known at the start: that is for its user to see
    if not minimum or (nearest <= NEAR and bent > VERY_BENT):
        fit.doubtful_end = 2.0
    elif nearest <= NEAR and bent > BENT and fit.rough > 0.0:
        fit.doubtful_end = 1.0 if nearest <= VERY_NEAR else 0.5
    elif fit.saddles >= SADDLES and fit.narrow == 0.0 and fit.steps >= LONG_WAY:
        fit.doubtful_end = STRAYED


def is_astray(fit: Fit, i: int) -> bool:
    """Return whether a parameter ended many errors from its start, and a part of the way between its limits."""
    far = abs(fit.end[i] - fit.start[i])
    return bool(0.0 < ASTRAY * fit.end_error[i] < far and far > PART * (fit.high[i] - fit.low[i]))


def may_look(fit: Fit) -> bool:
    """Return whether values of loose parameters are worth a look, at the end of the first start."""
    many = len(fit.x) > MANY  # a number of the text: compilers warn of it among conditions
    pays = fit.thorough > 0.0 or (many and fit.shapes < 1.0)
    return pays and fit.starts == 0.0 and fit.max_starts > 0.0 and fit.value < UNKNOWN


def next_start(fit: Fit) -> int:
    """Return the next kind of start for which there is a reason, or that comes next in a thorough fit; their number if none does."""
    kind = int(fit.starts)
    thorough = fit.thorough > 0.0
    many = len(fit.x) > MANY
    doubt = fit.doubtful_end
    last = ELSEWHERE if many or doubt < 2.0 else BESIDE
    if thorough:
        last = int(fit.max_starts)
    elif many and fit.wandered > 0.0 and fit.shapes < 1.0 and kind == EARLY:
        last = BEYOND
    elif (kind < EDGE and most_promising(fit) >= 0) or (kind <= EDGE and has_edge(fit)):
        between = fit.narrow > 0.0 and not many and fit.returns < 1.0 + fit.rough
        kind = kind if between else max(kind, ASIDE)
    elif fit.shapes > 1.0:
        kind = max(kind, MIRROR if doubt >= 1.0 else PEAK)
        last = SOMEWHERE
    elif doubt >= 1.0 or (doubt == STRAYED and not many and fit.shapes < 1.0):
        kind = max(kind, MIRROR)
        last = last if fit.returns < RETURNS + max(doubt, 1.0) - 1.0 else 0
    elif doubt == 0.5 and kind <= SWAP and closest(fit) >= 0:
        kind = SWAP
    elif fit.shapes > 0.0:
        kind = max(kind, PEAK)
        last = SOMEWHERE
    else:
        last = ASIDE if fit.narrow > 0.0 and fit.returns < 1.0 + fit.rough else 0
        if last == ASIDE and BEYOND <= kind <= SWAP and closest(fit) >= 0:
            kind = SWAP
            last = SWAP + 1
    if fit.shapes > 0.0 and not thorough:
        last = min(last, SOMEWHERE if fit.shapes >= 1.0 else ELSEWHERE)
    while kind < last and not pays(fit, kind):
        kind += 1
    return kind if kind < last else int(fit.max_starts)


def pays(fit: Fit, kind: int) -> bool:
    """Return whether there is a reason for a kind of start."""
    thorough = fit.thorough > 0.0
    few = thorough or len(fit.x) <= MANY
    strayed = fit.doubtful_end == STRAYED and not thorough
    there = 0.0 < fit.shapes < 1.0 and not thorough  # a component that is not looked for elsewhere
    reason = True
    if ASIDE <= kind < EDGE:
        reason = most_promising(fit) >= 0
    elif kind == EDGE:
        reason = has_edge(fit)
    elif kind == MIRROR:
        reason = not strayed
    elif kind == SWAP:
        reason = closest(fit) >= 0 and not (there and fit.doubtful_end >= 2.0)
    elif kind == OPPOSITE:
        reason = few and not strayed and is_another(fit, OPPOSITE) and (turned(fit) or not there)
    elif kind == MIDDLE:
        reason = (thorough or not few) and is_another(fit, MIDDLE)
    elif PEAK <= kind < SOMEWHERE:
        reason = best_place(fit) >= 0
    elif kind == SOMEWHERE:
        reason = few and not strayed and not there
    elif kind == DOWN:
        reason = few
    return reason


def other_start(fit: Fit, kind: int) -> None:
    """Choose another start.

    EARLY and HALF_WAY are on the way from the first start to its end, BEYOND as far behind it; after a rough way that led far
    away EARLY is its end with the parameters that went astray where they started. From ASIDE on a loose parameter
    is put where another value promises most; EDGE puts an end of a density on the other side of some events. MIRROR is half as far from the first start, on its other side, or
    the first start with amounts that were only guessed where they ended. SWAP is the end,
    where two parameters with the same limits exchange their values, as widths of two components. OPPOSITE is the end with
    parameters that are at one limit at the other one, MIDDLE with those that are hardly determined half-way between. From PEAK
    on an absent component is put where it promises most. UP and DOWN are some errors away from the end, to both sides along
    the valley, with undetermined parameters of a minimum on the other side between their limits. From BESIDE on each parameter
    alone is moved up, and down. SOMEWHERE, ELSEWHERE and all others have loosely determined parameters anywhere between their limits.
    """
    if ASIDE <= kind < EDGE:
        start_aside(fit)
        return
    if kind == EDGE:
        start_beside_edge(fit)
        return
    if PEAK <= kind < SOMEWHERE:
        start_at_place(fit)
        return
    way = 0.25 if kind == EARLY else 2.0 if kind == BEYOND else 0.5 if kind == HALF_WAY else -0.5
    place = ONE_PLACE if kind == SOMEWHERE else ANOTHER_PLACE if kind == ELSEWHERE else kind - ASIDES - 2
    if kind == SWAP:
        fit.returns -= 1.0  # if it leads back, others may not
    guessed = amounts_were_guessed(fit)
    first = closest(fit) if kind == SWAP else -1
    second = partner(fit, first) if first >= 0 else -1
    for i in range(len(fit.x)):
        x = fit.end[i]
        if kind == EARLY and fit.wandered > 0.0:
            x = fit.start[i] if is_astray(fit, i) else fit.end[i]
        elif kind == MIRROR and guessed:
            x = fit.end[i] if fit.low[i] == 0.0 else fit.start[i]
        elif kind <= MIRROR:
            x = (1.0 - way) * fit.start[i] + way * fit.end[i]
        elif OPPOSITE <= kind <= MIDDLE:
            x = another(fit, kind, i)
        elif i == first:
            x = fit.end[second]
        elif i == second:
            x = fit.end[first]
        elif UP <= kind <= DOWN:
            x = along(fit, i, errors_along(fit, kind))
        elif kind == BESIDE + 2 * i:
            x = fit.end[i] + STEP * max(fit.end_error[i], 0.0)
        elif kind == BESIDE + 2 * i + 1:
            x = fit.end[i] - STEP * max(fit.end_error[i], 0.0)
        elif SOMEWHERE <= kind < BESIDE or kind >= BESIDE + 2 * len(fit.x):
            x = anywhere(fit, i, place)
        fit.x[i] = min(max(x, fit.low[i]), fit.high[i])


def amounts_were_guessed(fit: Fit) -> bool:
    """Return whether an amount ended many errors above its start, and at many times as much."""
    guessed = False
    for i in range(len(fit.x)):
        far = fit.end[i] - fit.start[i] > ASTRAY * fit.end_error[i] > 0.0
        guessed = guessed or (far and fit.low[i] == 0.0 and fit.end[i] > MANY_TIMES * fit.start[i])
    return guessed


def errors_along(fit: Fit, kind: int) -> float:
    """Return how far along the valley UP and DOWN are: farther after a way that was led by chance, on the side with more room."""
    k = int(fit.widest)
    roomy = fit.high[k] - fit.end[k] > fit.end[k] - fit.low[k]
    errors = MANY_ERRORS if fit.lost > 0.0 and (roomy == (kind == UP)) else ERRORS
    return errors if kind == UP else -errors


def along(fit: Fit, i: int, errors: float) -> float:
    """Return where a parameter is some errors along the valley, or on the other side if it is undetermined at a minimum."""
    if fit.best_rank >= 1.0 and fit.end_error[i] < 0.0 and isfinite(fit.high[i] - fit.low[i]):
        return float(fit.low[i] + fit.high[i] - fit.end[i])
    k = int(fit.widest)
    n = len(fit.x)
    variance = fit.end_covariance[k * n + k]
    valley = fit.end_covariance[k * n + i] / sqrt(variance) if variance > 0.0 else 0.0
    return float(fit.end[i] + errors * valley)


def is_another(fit: Fit, kind: int) -> bool:
    """Return whether OPPOSITE or MIDDLE is not where the first start led."""
    some = False
    for i in range(len(fit.x)):
        some = some or another(fit, kind, i) != fit.end[i]
    return some


def turned(fit: Fit) -> bool:
    """Return whether a parameter of both signs is at a limit, as a phase that goes on at the other one."""
    some = False
    for i in range(len(fit.x)):
        at_limit = fit.end[i] <= fit.low[i] or fit.end[i] >= fit.high[i]
        some = some or (at_limit and fit.low[i] < 0.0 < fit.high[i])
    return some


def another(fit: Fit, kind: int, i: int) -> float:
    """Return where a parameter that OPPOSITE or MIDDLE moves starts; others start at their end.

    Amounts, which begin at zero, stay where they are.
    """
    width = fit.high[i] - fit.low[i]
    if fit.low[i] == 0.0 or not isfinite(width):
        return float(fit.end[i])
    if kind == MIDDLE:
        hardly = fit.end_error[i] < 0.0 or fit.end_error[i] > VERY_LOOSE * width
        return float(fit.low[i] + 0.5 * width) if hardly else float(fit.end[i])
    if fit.end[i] <= fit.low[i]:
        return float(fit.high[i])
    return float(fit.low[i]) if fit.end[i] >= fit.high[i] else float(fit.end[i])


def closest(fit: Fit) -> int:
    """Return the first of the two parameters that are most alike among those that may exchange their values, -1 if there are none."""
    first = -1
    least = CLOSE
    for i in range(len(fit.x)):
        j = partner(fit, i)
        error = max(fit.end_error[i], fit.end_error[j])
        if (
            j > i
            and fit.low[i] != 0.0
            and abs(fit.end[i] - fit.end[j]) < least * error
            and fit.end[i] != fit.end[j]
        ):
            first = i
            least = abs(fit.end[i] - fit.end[j]) / error
    return first


def anywhere(fit: Fit, i: int, place: int) -> float:
    """Return a place between the limits of a parameter if it is loosely determined; else its end, or its start if that is a limit.

    Places follow from the fractional parts of the golden ratio times square numbers, which fill all dimensions evenly.
    """
    width = fit.high[i] - fit.low[i]
    if isfinite(width) and not 0.0 < fit.end_error[i] < LOOSE * width:
        number = 1.0 * (place * len(fit.x) + i)
        turns = GOLDEN * number * number
        return float(fit.low[i] + (turns - int(turns)) * width)
    if fit.low[i] < fit.end[i] < fit.high[i]:
        return float(fit.end[i])
    return float(fit.start[i])


def partner(fit: Fit, k: int) -> int:
    """Return the only other parameter with the same finite limits, or this one if there are none or several."""
    other = k
    same = 0
    for i in range(len(fit.x)):
        if i != k and fit.low[i] == fit.low[k] and fit.high[i] == fit.high[k]:
            other = i
            same += 1
    return other if same == 1 and isfinite(fit.high[k] - fit.low[k]) else k
