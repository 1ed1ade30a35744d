"""A survey of places: the value at places between the limits of a parameter that moves something along an observable.

A peak, an edge or a frequency has a minimum wherever events happen to be. Where a rough way led far from the start along such
a parameter, it is put at places between its limits, one evaluation each; the quadratic model of the others says how low each may
lead, and the fit is started at the lowest ones. Which parameters these are is known from the formula
(``Likelihood.edges``). In the language of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite

from morefit.kernel.fit_layout import ANGLE, END, FREQUENCY, STEP, SURVEYED, Fit
from morefit.minimise.components import ABSENT, GOLDEN, SCALE, is_width, little
from morefit.minimise.loose import MANY
from morefit.minimise.quadratic_model import UNKNOWN, find_free, measure, minimise_model, restrict
from morefit.minimise.starts import AGAIN
from morefit.minimise.trust_region import accept, begin, is_finite

MAX_SURVEYS = 4.0
# kinds of surveys: of one place, with those that are coupled with it, and with narrow widths
ALONE, COUPLED_ONES, NARROW = range(3)
KINDS = 3
EIGHTH = 0.7853981633974483  # of a turn
DIAGONAL = 0.7071067811865476  # its sine and cosine
# of a width: the errors of a place and of this width are larger than so much of it, where both are hardly known
BLURRED, UNKNOWN_PART = 0.3, 0.4
BLUR_PART = 1.0 / 12.0  # of the error of a place: widths that are smaller are not looked for
COUPLED = 0.3  # squared correlation of two places at least, if all others are fixed
ROAMS = 10.0  # starts from anywhere, where a survey showed several valleys,
# if not so many have led back to the best end, or, without any that has not, the first ones
ROAM_RETURNS, ONLY_RETURNS = 5.0, 3.0
# steps with negative curvature: where there are some, a component of which there is little may be elsewhere; where there are many, a survey tells nothing
SOME_SADDLES, MANY_SADDLES = 2.0, 4.0
AWAY = 12.0  # errors: a place that is so far from its start was only a guess;
PART = 0.03  # of the way between limits: an edge is also so far from it, since many events leave small errors
LOBE = 4.0  # errors, from a place of a frequency to the next
SURVEY_STARTS = 3.0  # from each survey
RISE = 10.0  # of the value: where it is higher than the best end by more, nothing is to be expected
PROBES, STRIDE = 4, 7  # places that are evaluated first, and how far apart they are
FAR_RISE = 80.0  # of the value, where the component has left what it describes
OVERLAP = 0.5  # of the distance between places: the least width of what is looked for
OWN = 0.75  # of the distance between places: so close to the best end they lead back to it


def may_survey(fit: Fit) -> bool:
    """Go on from a place of the last survey, begin the next one, or start anywhere; return whether there is a reason for any."""
    lowest = lowest_place(fit)
    if lowest < 0 and is_worth_it(fit) and begin_survey(fit):
        return True
    if lowest >= 0:
        start_at_lowest(fit)
    elif may_roam(fit):
        roam(fit)
    else:
        return False
    fit.starts = max(fit.starts, AGAIN)  # it is not the first one
    begin(fit)
    fit.tries = 0.0
    return True


def begin_survey(fit: Fit) -> bool:
    """Go to the first place of the next parameter to be surveyed; return whether there is one."""
    last = KINDS * len(fit.x)
    first = last
    for k in range(int(fit.surveyed), last):
        if first == last and survey_pays(fit, k // KINDS, k % KINDS):
            first = k
    if fit.surveys >= MAX_SURVEYS:
        first = last
    fit.surveyed = first + 1.0
    fit.survey_starts = 0.0
    if first == last:
        return False
    fit.surveys += 1.0
    fit.survey = 1.0
    for k in range(SURVEYED):
        fit.turns[k] = 0.0
    go_to(fit, turn_of(0))
    return True


def survey_pays(fit: Fit, i: int, kind: int) -> bool:
    """Return whether there is a reason for a kind of survey of a parameter."""
    if kind == NARROW:
        return is_blurred(fit, i)
    coupled = fit.edge[i] > 0.0 and isfinite(fit.high[i] - fit.low[i]) and has_partner(fit, i)
    return coupled or (kind == ALONE and is_uncertain(fit, i))


def is_worth_it(fit: Fit) -> bool:
    """Return whether places are worth a survey: at a minimum of few parameters, or where a component is nearly gone."""
    few = len(fit.x) <= MANY  # a number of the text: compilers warn of it among conditions
    return few and fit.max_starts > 0.0 and (fit.best_rank >= 1.0 or (fit.best_rank > 0.0 and is_scarce(fit)))


def may_roam(fit: Fit) -> bool:
    """Return whether a start from anywhere may lead lower, as surveys showed several valleys."""
    several = fit.valleys > 0.0 and fit.saddles >= SOME_SADDLES
    hard = several or (fit.surveys > 0.0 and fit.wandered > 0.0 and fit.saddles >= MANY_SADDLES)
    alone = fit.roam_returns >= ONLY_RETURNS and fit.roam_returns == fit.roams
    return bool(hard and not alone and fit.roams < ROAMS and fit.roam_returns < ROAM_RETURNS)


def roam(fit: Fit) -> None:
    """Start anywhere between the limits, with amounts where they are at the best end, unless that is a limit.

    Places follow from the fractional parts of the golden ratio times square numbers, which fill all dimensions evenly.
    """
    fit.roams += 1.0
    for i in range(len(fit.x)):
        number = fit.roams * len(fit.x) + i
        turns = GOLDEN * number * number
        width = fit.high[i] - fit.low[i]
        loose = isfinite(width) and (fit.low[i] != 0.0 or fit.edge[i] != 0.0)
        part = turns - int(turns)
        fit.x[i] = fit.low[i] + part * width if loose else kept(fit, i)


def kept(fit: Fit, i: int) -> float:
    """Return where a parameter is at the best end, or its start if that end is a limit: what is gone, or all there is, does not come back."""
    return float(fit.best[i] if fit.low[i] < fit.best[i] < fit.high[i] else fit.start[i])


def is_uncertain(fit: Fit, i: int) -> bool:
    """Return whether a parameter is a place that was only guessed, or one of a component that may be elsewhere, or a frequency."""
    if not (fit.edge[i] > 0.0 and isfinite(fit.high[i] - fit.low[i])):
        return False
    lost = fit.end_error[i] <= 0.0
    way = abs(fit.end[i] - fit.start[i])
    away = lost or way > AWAY * fit.end_error[i]
    if fit.edge[i] == END:
        far = away and way > PART * (fit.high[i] - fit.low[i])
        return not lost and (far or fit.doubtful_end >= 1.0)
    if 0.0 < fit.shapes < 1.0 and fit.shape[i] > 0.0:
        return True
    return fit.rough > 0.0 and (away or fit.edge[i] == FREQUENCY or is_scarce(fit))


def is_blurred(fit: Fit, i: int) -> bool:
    """Return whether a place is no better known than a width that may as well be much smaller, as that of a smeared step."""
    return fit.edge[i] == STEP and narrowest(fit, i) > 0.0


def narrowest(fit: Fit, i: int) -> float:
    """Return the least width that such a place may have, but for what would be missed between two of them; 0 if there is none."""
    least = 0.0
    for j in range(len(fit.x)):
        if is_blurred_width(fit, i, j):
            least = max(fit.low[j], BLUR_PART * fit.end_error[i])
    return least


def is_blurred_width(fit: Fit, i: int, j: int) -> bool:
    """Return whether a width is hardly known, and not much larger than the error of a place."""
    error = fit.end_error[j] if fit.end_error[j] >= 0.0 else UNKNOWN
    known = error < UNKNOWN_PART * fit.end[j] or fit.end_error[i] < BLURRED * fit.end[j]
    return is_width(fit, j, SCALE) and not known


def is_scarce(fit: Fit) -> bool:
    """Return whether there is little of such a component after a way over saddles."""
    return is_little(fit) and fit.saddles >= SOME_SADDLES


def is_little(fit: Fit) -> bool:
    """Return whether there is little of a component whose shape has no parameters of its own, so that it was not looked for elsewhere."""
    scarce = False
    for i in range(len(fit.x)):
        scarce = scarce or little(fit, i) <= ABSENT
    return scarce and fit.shapes == 0.0


def slope_of(fit: Fit, i: int, j: int) -> float:
    """Return how far another place follows one that moves so that their effect at the best end stays, 0 if they are not coupled."""
    n = len(fit.x)
    own = fit.best_hessian[j * n + j]
    mixed = fit.best_hessian[i * n + j]
    if i == j or fit.edge[j] == 0.0 or not mixed * mixed > COUPLED * own * abs(fit.best_hessian[i * n + i]):
        return 0.0
    return float(-mixed / own) if own > 0.0 else 0.0


def has_partner(fit: Fit, i: int) -> bool:
    """Return whether another place is coupled with one, such as the distance of a second peak, where there is little of a component."""
    coupled = False
    for j in range(len(fit.x)):
        coupled = coupled or slope_of(fit, i, j) != 0.0
    return coupled and is_little(fit)


def spacing(fit: Fit, i: int) -> float:
    """Return the distance between places of a parameter: all over its limits, or closer for a frequency, or for a narrow step."""
    whole = (fit.high[i] - fit.low[i]) / SURVEYED
    if survey_kind(fit) == NARROW:
        return float(min(whole, narrowest(fit, i) / OVERLAP))
    if fit.edge[i] == FREQUENCY and fit.end_error[i] > 0.0:
        whole = min(whole, LOBE * fit.end_error[i])
    return float(whole)


def place_at(fit: Fit, i: int, k: int) -> float:
    """Return a place of a parameter: evenly between its limits, or around the end of the first start as far as they go."""
    step = spacing(fit, i)
    half = 0.5 * SURVEYED * step
    low = min(max(fit.end[i] - half, fit.low[i]), fit.high[i] - 2.0 * half)
    return float(low + (k + 0.5) * step)


def go_to(fit: Fit, k: int) -> None:
    """Put the trial point at a place, with the others where the best end is.

    Widths are not narrower than they started, nor so narrow that a peak between two places is seen from neither. A second
    survey lets those follow that are coupled with it; a third one has widths that are hardly known as narrow as may be.
    """
    i = surveyed_one(fit)
    move = place_at(fit, i, k) - fit.best[i]
    for j in range(len(fit.x)):
        x = fit.best[j] if fit.low[j] != 0.0 else kept(fit, j)
        if survey_kind(fit) == NARROW:
            x = max(fit.low[j], OVERLAP * spacing(fit, i)) if is_blurred_width(fit, i, j) else x
        elif is_width(fit, j, SCALE):
            x = max(x, max(fit.start[j], OVERLAP * spacing(fit, i)))
        if survey_kind(fit) == COUPLED_ONES:
            x = fit.best[j] + slope_of(fit, i, j) * move
        if fit.edge[j] == ANGLE and int(fit.turns[k]) // 8 == j:
            x += EIGHTH * (int(fit.turns[k]) % 8)
            x = x - 8.0 * EIGHTH if x > fit.high[j] else x
        if j == i:
            x = fit.best[j] + move
        fit.x[j] = min(max(x, fit.low[j]), fit.high[j])
        fit.trial[j] = fit.x[j]


def surveyed_one(fit: Fit) -> int:
    """Return the parameter of the present survey."""
    return (int(fit.surveyed) - 1) // KINDS


def survey_kind(fit: Fit) -> int:
    """Return the kind of the present survey."""
    return (int(fit.surveyed) - 1) % KINDS


def survey(fit: Fit) -> None:
    """Note how low the fit may lead from the present place, and go to the next one; the survey ends after the last.

    It ends after a few places that are far higher than the best end: what is there is no chance, and nothing else will be as low.
    """
    k = int(fit.survey) - 1
    place = turn_of(k)
    fit.profile[place] = UNKNOWN
    if is_finite(fit):
        accept(fit)
        promised = promised_by_others(fit, surveyed_one(fit))
        fit.profile[place] = fit.value - max(promised, promised_by_turning(fit, place))
    fit.survey = fit.survey + 1.0 if k + 1 < SURVEYED else 0.0
    if k + 1 == PROBES and stands_out(fit):
        for other in range(SURVEYED):
            fit.profile[other] = UNKNOWN
        fit.survey = 0.0
        fit.roams = ROAMS
    elif fit.survey > 0.0:
        go_to(fit, turn_of(k + 1))
    else:
        keep_valleys(fit)


def turn_of(k: int) -> int:
    """Return which place is the k-th: the first ones are far apart."""
    return (STRIDE * k) % SURVEYED


def stands_out(fit: Fit) -> bool:
    """Return whether all of the first places but those next to the best end are far higher than that."""
    i = surveyed_one(fit)
    alone = True
    for k in range(PROBES):
        place = turn_of(k)
        near = abs(place_at(fit, i, place) - fit.best[i]) < OWN * spacing(fit, i)
        alone = alone and (near or fit.profile[place] > fit.best_value + FAR_RISE)
    return alone


def promised_by_others(fit: Fit, i: int) -> float:
    """Return how far below the present value the quadratic model of the other parameters promises its minimum; 0 if it has none."""
    measure(fit)
    size = 0
    for a in range(find_free(fit)):
        if int(fit.free[a]) != i:
            fit.free[size] = fit.free[a]
            size += 1
    for j in range(len(fit.x)):
        fit.move[j] = 0.0
    restrict(fit, size)
    minimise_model(fit, size, UNKNOWN)
    part = 1.0  # of the way, up to the first limit
    for a in range(size):
        j = int(fit.free[a])
        step = fit.part[a] * fit.unit[j]
        room = fit.high[j] - fit.x[j] if step > 0.0 else fit.low[j] - fit.x[j]
        if abs(step) > abs(room):
            part = min(part, room / step)
    return float(fit.model_edm * part * (2.0 - part)) if fit.bounded > 0.0 else 0.0


def promised_by_turning(fit: Fit, place: int) -> float:
    """Return how far below the present value an angle leads that is turned by some eighths of a turn, and note which and how far.

    The slope and the curvature along it are those of a wave.
    """
    most = 0.0
    for j in range(len(fit.x)):
        bend = fit.hessian[j * len(fit.x) + j]
        for eighths in range(1, 8):
            gain = bend * (cosine(eighths) - 1.0) - fit.gradient[j] * cosine(eighths + 6)
            if fit.edge[j] == ANGLE and gain > most:
                most = gain
                fit.turns[place] = 8.0 * j + eighths
    return most


def cosine(eighths: int) -> float:
    """Return the cosine of some eighths of a turn."""
    half = min(eighths % 8, 8 - eighths % 8)
    return (
        1.0
        if half == 0
        else DIAGONAL
        if half == 1
        else 0.0
        if half == 2
        else -DIAGONAL
        if half == 3
        else -1.0
    )


def keep_valleys(fit: Fit) -> None:
    """Forget places that are higher than a neighbour, much higher than the best end, or next to it."""
    i = surveyed_one(fit)
    before = UNKNOWN
    for k in range(SURVEYED):
        here = fit.profile[k]
        after = fit.profile[k + 1] if k + 1 < SURVEYED else UNKNOWN
        near = abs(place_at(fit, i, k) - fit.best[i]) < OWN * spacing(fit, i) and survey_kind(fit) != NARROW
        if here > before or here > after or near or here > fit.best_value + RISE:
            fit.profile[k] = UNKNOWN
        else:
            fit.valleys = 1.0
        before = here


def lowest_place(fit: Fit) -> int:
    """Return the lowest place that is left of the last survey, -1 if there is none, or enough have been tried."""
    best = -1
    if fit.surveys > 0.0 and fit.survey_starts < SURVEY_STARTS and fit.surveyed <= KINDS * len(fit.x):
        least = UNKNOWN
        for k in range(SURVEYED):
            if fit.profile[k] < least:
                best = k
                least = fit.profile[k]
    return best


def start_at_lowest(fit: Fit) -> None:
    """Start at the lowest place that is left."""
    k = lowest_place(fit)
    go_to(fit, k)
    fit.profile[k] = UNKNOWN
    fit.survey_starts += 1.0
