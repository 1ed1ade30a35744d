"""Draw the rows of a table for a toy, such as the counts of bins, in the language of drivers.

Row r of toy t depends on the seed, t, r and what is expected there only, but for numbers of events that add up to a fixed one: there
rows follow one another.
"""

from __future__ import annotations

from math import exp, floor, log, sqrt

from morefit.arrays import Integers
from morefit.kernel import rows_layout as at
from morefit.kernel.program import Kind, Stage, Vector, parallel

STRIDE = 1048576  # numbers of attempts of one draw, and of all before: two draws never have the same
HALF_LOG_TWO_PI = 0.9189385332046727
TINY = 1e-100  # in the place of a random number of zero
NEVER = 1e-18  # a probability that no random number of 53 bits resolves
FIRST, SECOND = 0, 1  # of the two random numbers that a counter gives

# a number in [0, 1) of the counted generator: halves of the seed and of the toy's number, row, attempt, which of two
uniform = Stage("uniform", Kind.FLOAT, stores=False)


def draw_rows(
    words: Integers,
    numbers: Vector,
    out: Vector,
    step: int,
    seed_low: int,
    seed_high: int,
    toy_low: int,
    toy_high: int,
) -> None:
    """Write all columns of a toy, which are ``step`` numbers apart."""
    rows = words[at.ROWS]
    for c in range(words[at.COPIED]):
        goal = words[words[at.FIRST_COPIED] + 2 * c] * step
        source = words[words[at.FIRST_COPIED] + 2 * c + 1]
        for row in parallel(rows):
            out[goal + row] = numbers[source + row]
    for d in range(words[at.DRAWS]):
        own = words[at.FIRST_DRAW] + d * at.DRAW_WORDS
        column = words[own + at.COLUMN] * step
        first = words[own + at.NUMBERS]
        if words[own + at.KIND] == at.POISSON:
            for row in parallel(rows):
                out[column + row] = poisson(
                    numbers, first + at.CONSTANTS * row, row, d * STRIDE,
                    tails=words[at.FIRST_TAIL], seed_low=seed_low, seed_high=seed_high, toy_low=toy_low, toy_high=toy_high,
                )  # fmt: skip
        else:
            left = numbers[words[own + at.EVENTS]]
            for row in range(rows):
                events = binomial(
                    numbers, first + at.SHARES * row, row, d * STRIDE, left,
                    tails=words[at.FIRST_TAIL], seed_low=seed_low, seed_high=seed_high, toy_low=toy_low, toy_high=toy_high,
                )  # fmt: skip
                out[column + row] = events
                left -= events
        if words[own + at.PLAIN] == 0:
            weigh_rows(words, numbers, out, step, own)


def weigh_rows(words: Integers, numbers: Vector, out: Vector, step: int, own: int) -> None:
    """Turn numbers of events into contents and their variances, relative to all contents where that is needed."""
    rows = words[at.ROWS]
    column = words[own + at.COLUMN] * step
    spread = words[own + at.SPREAD] * step
    for row in parallel(rows):
        events = out[column + row]
        out[column + row] = (
            numbers[words[own + at.OFFSETS] + row] + numbers[words[own + at.FACTORS] + row] * events
        )
        if spread >= 0:
            out[spread + row] = numbers[words[own + at.SQUARES] + row] * events
    if words[own + at.NORMALISED] == 0 and words[own + at.TOTAL] < 0:
        return
    total = 0.0
    for r in range(rows):
        total += out[column + r]
    if words[own + at.NORMALISED] == 0:
        goal = words[own + at.TOTAL] * step
        for row in parallel(rows):
            out[goal + row] = total
    elif total > 0.0:
        for row in parallel(rows):
            out[column + row] /= total
            if spread >= 0:
                out[spread + row] /= total * total


def poisson(
    numbers: Vector,
    first: int,
    row: int,
    draw: int,
    tails: int,
    seed_low: int,
    seed_high: int,
    toy_low: int,
    toy_high: int,
) -> float:
    """Return a Poisson number; what depends on its mean begins at ``first``."""
    mean = numbers[first]
    if mean < at.SMALL:
        left = uniform(seed_low, seed_high, toy_low, toy_high, row, draw, FIRST)
        return inverted(numbers, mean, numbers[first + 1], left)
    width = numbers[first + 1]
    edge = numbers[first + 2]
    attempt = draw
    k = 0.0
    accepted = False
    while not accepted:
        u = uniform(seed_low, seed_high, toy_low, toy_high, row, attempt, FIRST) - 0.5
        v = uniform(seed_low, seed_high, toy_low, toy_high, row, attempt, SECOND)
        room = max(0.5 - abs(u), TINY)
        k = floor((2.0 * edge / room + width) * u + mean + 0.43)
        if room >= 0.07 and v <= numbers[first + 4]:
            accepted = True
        elif k >= 0.0 and (room >= 0.013 or v <= room):
            height = log(max(v, TINY) * numbers[first + 3] / (edge / (room * room) + width))
            accepted = height <= log_poisson(numbers, mean, k, tails)
        attempt += 1
    return k


def inverted(numbers: Vector, mean: float, nothing: float, number: float) -> float:
    """Return a Poisson number of a small mean by inversion, from the probability of none and a number in [0, 1)."""
    left = number
    probability = nothing
    k = 0
    while left >= probability and (probability > NEVER or k < mean) and k < at.INVERSES:
        left -= probability
        probability *= mean * numbers[k]
        k += 1
    return float(k)


def log_poisson(numbers: Vector, mean: float, k: float, tails: int) -> float:
    """Return the logarithm of the probability of a Poisson number, by Stirling's formula."""
    away = k + 1.0 - mean
    logs = k * log(mean / (k + 1.0)) - 0.5 * log(k + 1.0)
    return logs + away - HALF_LOG_TWO_PI - tail(numbers, k, tails)


def tail(numbers: Vector, k: float, tails: int) -> float:
    """Return what Stirling's formula for the logarithm of the factorial lacks."""
    if k < at.TAILS:
        return float(numbers[tails + int(k)])
    x = 1.0 / (k + 1.0)
    square = x * x
    return x * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))


def binomial(
    numbers: Vector,
    first: int,
    row: int,
    draw: int,
    events: float,
    tails: int,
    seed_low: int,
    seed_high: int,
    toy_low: int,
    toy_high: int,
) -> float:
    """Return how many of some events are in a row, whose probability is at ``first``."""
    probability = numbers[first]
    if events == 0.0 or probability == 0.0:
        return 0.0
    if probability == 1.0:
        return events
    rare = min(probability, 1.0 - probability)
    if events * rare < at.SMALL:
        left = uniform(seed_low, seed_high, toy_low, toy_high, row, draw, FIRST)
        few = rare_events(events, rare, numbers[first + 1], left)
        return few if probability <= 0.5 else events - few
    few = 0.0
    attempt = draw
    spread = sqrt(events * rare * (1.0 - rare))
    width = 1.15 + 2.53 * spread
    edge = -0.0873 + 0.0248 * width + 0.01 * rare
    accepted = False
    while not accepted:
        u = uniform(seed_low, seed_high, toy_low, toy_high, row, attempt, FIRST) - 0.5
        v = uniform(seed_low, seed_high, toy_low, toy_high, row, attempt, SECOND)
        room = max(0.5 - abs(u), TINY)
        few = floor((2.0 * edge / room + width) * u + events * rare + 0.5)
        if room >= 0.07 and v <= 0.92 - 4.2 / width:
            accepted = True
        elif 0.0 <= few <= events:
            height = max(v, TINY) * (2.83 + 5.1 / width) * spread / (edge / (room * room) + width)
            accepted = log(height) <= log_binomial(numbers, events, rare, few, tails)
        attempt += 1
    return few if probability <= 0.5 else events - few


def rare_events(events: float, rare: float, log_rest: float, number: float) -> float:
    """Return a binomial number of a small mean by inversion, from a number in [0, 1)."""
    left = number
    probability = exp(events * log_rest)
    odds = rare / (1.0 - rare)
    k = 0.0
    while left >= probability and (probability > NEVER or k < events * rare) and k < events:
        left -= probability
        probability *= odds * (events - k) / (k + 1.0)
        k += 1.0
    return k


def log_binomial(numbers: Vector, events: float, rare: float, k: float, tails: int) -> float:
    """Return the logarithm of the probability of a binomial number, relative to that of the most likely one."""
    mode = floor((events + 1.0) * rare)
    odds = rare / (1.0 - rare)
    rest = events - mode + 1.0
    own = events - k + 1.0
    logs = (mode + 0.5) * log((mode + 1.0) / (odds * rest)) + (events + 1.0) * log(rest / own)
    logs += (k + 0.5) * log(odds * own / (k + 1.0))
    most = tail(numbers, mode, tails) + tail(numbers, events - mode, tails)
    return logs + most - tail(numbers, k, tails) - tail(numbers, events - k, tails)
