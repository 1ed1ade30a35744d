"""Draw what constraints measure in a toy, in the language of drivers: normal numbers and counts, one stream of random numbers each.

Toys have the numbers that ``Constraint.draw`` gives them in NumPy: counts the same, others but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.kernel.program import Kind, Stage, Vector
from morefit.random.philox import HALF_BIT

LINEAR, LOGARITHMIC, COUNTED = range(3)
VALUES = 0  # the first word: how many values there are
VALUE_WORDS = 4
# of a value; SIZE counts normal numbers, or cumulative probabilities
KIND, NUMBERS, SIZE, KEYS = range(VALUE_WORDS)
WORD = 32  # bits

# a number in [0, 1) of a whole toy: halves of the key of a stream and of the toy's number
toy_uniform = Stage("toy_uniform", Kind.FLOAT, stores=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasuredValue:
    """A value that a constraint measures.

    LINEAR: the first number, and the others times normal numbers of the streams; LOGARITHMIC: the first number times the exponential of
    the second times a normal one; COUNTED: the first number, and how many of the others, cumulative probabilities, are not above a number in
    [0, 1).
    """

    kind: int
    numbers: Sequence[float] | Array
    keys: Sequence[int]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """All values that a part of a likelihood draws, as ``draw_measured`` reads them."""

    words: Integers
    numbers: Array

    @classmethod
    def of(cls, values: Sequence[MeasuredValue]) -> MeasuredTable:
        words, keys = [len(values)], list[int]()
        first, numbers = 1 + VALUE_WORDS * len(values), list[Array]()
        for one in values:
            place, own = sum(map(len, numbers)), np.asarray(one.numbers, np.float64)
            size = len(own) - 1 if one.kind != LOGARITHMIC else 1
            words += [one.kind, place, size, first + len(keys)]
            keys += [half for key in one.keys for half in (key & 0xFFFFFFFF, key >> WORD)]
            numbers.append(own)
        return cls(np.array([*words, *keys], np.int64), np.concatenate(numbers))

    @property
    def key(self) -> bytes:
        """What tells tables apart besides their numbers."""
        return self.words.tobytes()


def draw_measured(words: Integers, numbers: Vector, out: Vector, toy_low: int, toy_high: int) -> None:
    """Write the values of a toy."""
    for i in range(words[VALUES]):
        own = 1 + VALUE_WORDS * i
        first = words[own + NUMBERS]
        keys = words[own + KEYS]
        if words[own + KIND] == COUNTED:
            number = toy_uniform(words[keys], words[keys + 1], toy_low, toy_high)
            out[i] = numbers[first] + count_below(numbers, first + 1, words[own + SIZE], number)
        elif words[own + KIND] == LOGARITHMIC:
            number = toy_uniform(words[keys], words[keys + 1], toy_low, toy_high)
            out[i] = numbers[first] * exp(numbers[first + 1] * normal_quantile(number + HALF_BIT))
        else:
            total = 0.0
            for j in range(words[own + SIZE]):
                number = toy_uniform(words[keys + 2 * j], words[keys + 2 * j + 1], toy_low, toy_high)
                total += numbers[first + 1 + j] * normal_quantile(number + HALF_BIT)
            out[i] = numbers[first] + total


def count_below(numbers: Vector, first: int, size: int, number: float) -> float:
    """Return how many of some numbers in rising order are not above one, by bisection."""
    low = 0
    high = size
    while low < high:
        middle = (low + high) // 2
        if numbers[first + middle] <= number:
            low = middle + 1
        else:
            high = middle
    return float(low)


def normal_quantile(p: float) -> float:
    """Return where a standard normal distribution function is p (Wichura, algorithm AS 241, Applied Statistics 37, 1988)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * centre_ratio(r)
    r = sqrt(-log(min(p, 1.0 - p)))
    x = middle_ratio(r - 1.6) if r <= 5.0 else tail_ratio(r - 5.0)
    return -x if q < 0.0 else x


def centre_ratio(r: float) -> float:
    a = 4.5921953931549871457e4 + r * (
        6.7265770927008700853e4 + r * (3.3430575583588128105e4 + r * 2.5090809287301226727e3)
    )
    a = 3.3871328727963666080 + r * (
        1.3314166789178437745e2 + r * (1.9715909503065514427e3 + r * (1.3731693765509461125e4 + r * a))
    )
    b = 2.1213794301586595867e4 + r * (
        3.9307895800092710610e4 + r * (2.8729085735721942674e4 + r * 5.2264952788528545610e3)
    )
    b = 1.0 + r * (
        4.2313330701600911252e1 + r * (6.8718700749205790830e2 + r * (5.3941960214247511077e3 + r * b))
    )
    return a / b


def middle_ratio(r: float) -> float:
    a = 1.27045825245236838258 + r * (
        2.41780725177450611770e-1 + r * (2.27238449892691845833e-2 + r * 7.74545014278341407640e-4)
    )
    a = 1.42343711074968357734 + r * (
        4.63033784615654529590 + r * (5.76949722146069140550 + r * (3.64784832476320460504 + r * a))
    )
    b = 1.48103976427480074590e-1 + r * (
        1.51986665636164571966e-2 + r * (5.47593808499534494600e-4 + r * 1.05075007164441684324e-9)
    )
    b = 1.0 + r * (
        2.05319162663775882187 + r * (1.67638483018380384940 + r * (6.89767334985100004550e-1 + r * b))
    )
    return a / b


def tail_ratio(r: float) -> float:
    a = 2.65321895265761230930e-2 + r * (
        1.24266094738807843860e-3 + r * (2.71155556874348757815e-5 + r * 2.01033439929228813265e-7)
    )
    a = 6.65790464350110377720 + r * (
        5.46378491116411436990 + r * (1.78482653991729133580 + r * (2.96560571828504891230e-1 + r * a))
    )
    b = 7.86869131145613259100e-4 + r * (
        1.84631831751005468180e-5 + r * (1.42151175831644588870e-7 + r * 2.04426310338993978564e-15)
    )
    b = 1.0 + r * (
        5.99832206555887937690e-1 + r * (1.36929880922735805310e-1 + r * (1.48753612908506148525e-2 + r * b))
    )
    return a / b
