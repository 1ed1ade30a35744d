"""How the rows of a table are drawn for a toy: which columns are copied, and which are made of random numbers of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import ModelError

SMALL = 10.0  # means below it are inverted, larger ones drawn by rejection
INVERSES = 64  # of whole numbers, for the inversion
TAILS = 10  # of Stirling's series: exact ones of small numbers
POISSON, MULTINOMIAL = range(2)
CONSTANTS = 5  # for each row of a Poisson draw: its mean, and those of the method
SHARES = 2  # for each row of a multinomial draw: its part of what is left, and the logarithm of the rest

# sizes, and where the lists of columns and draws begin among the words
(ROWS, COPIED, DRAWS, FIRST_COPIED, FIRST_DRAW, FIRST_TAIL) = range(6)
# the words of a draw: its columns (-1: none), and where its numbers begin
(
    KIND, COLUMN, SPREAD, TOTAL, PLAIN, NORMALISED,
    NUMBERS, FACTORS, OFFSETS, SQUARES, EVENTS,
) = range(11)  # fmt: skip
DRAW_WORDS = 11


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsDraw:
    """A number of events for each row, from which columns of the table follow.

    ``column`` has ``offsets + factors * events``, ``spread`` has ``squares * events``; where these are
    ``normalised``, they are divided by the sum of the first over all rows, and by its square. ``total`` has that sum.
    """

    column: int
    means: Array  # expected numbers of events
    events: float | None = None  # in all rows; None: each row has a Poisson number
    factors: Array | None = None
    offsets: Array | None = None
    squares: Array | None = None
    spread: int = -1
    total: int = -1
    normalised: bool = False


@dataclass(frozen=True, eq=False)
class RowsTable:
    """A draw as the program of ``rows_program.py`` reads it."""

    words: Integers
    numbers: Array
    spare: list[object] = field(default_factory=list)  # what a backend keeps from one call to the next

    @classmethod
    def of(cls, copied: Mapping[int, Array], draws: Sequence[RowsDraw]) -> RowsTable:
        """Return the table of columns that all toys have, by their places, and of those that are drawn."""
        rows = len(draws[0].means)
        numbers = Numbers([1.0 / np.arange(1.0, INVERSES + 1), exact_tails()])
        header = np.array([rows, len(copied), len(draws), 6, 6 + 2 * len(copied), INVERSES])
        words = [header]
        words += [np.array([column, numbers.add(values)]) for column, values in copied.items()]
        for one in draws:
            plain = one.factors is None
            kind = POISSON if one.events is None else MULTINOMIAL
            first = numbers.add(poisson_constants(one.means) if one.events is None else shares(one.means))
            arrays = [] if plain else [one.factors, one.offsets, one.squares]
            places = [numbers.add(np.zeros(rows) if a is None else a) for a in arrays] or [0, 0, 0]
            events = numbers.add(np.array([one.events or 0.0]))
            words.append(
                np.array(
                    [kind, one.column, one.spread, one.total, plain, one.normalised, first, *places, events]
                )
            )
        return cls(np.concatenate(words).astype(np.int64), np.concatenate(numbers.arrays))

    @property
    def key(self) -> bytes:
        """What tells draws apart besides their numbers."""
        return self.words.tobytes()

    @property
    def rows(self) -> int:
        return int(self.words[ROWS])

    @property
    def columns(self) -> int:
        """How many columns are written."""
        first, each = int(self.words[FIRST_COPIED]), int(self.words[FIRST_DRAW])
        drawn = self.words[each:].reshape(-1, DRAW_WORDS)[:, [COLUMN, SPREAD, TOTAL]]
        return 1 + int(max(self.words[first:each:2].max(initial=-1), drawn.max()))


def check_rows(rows: int, sizes: Integers) -> None:
    """Refuse toys of a table with other numbers of rows."""
    if np.any(sizes != rows):
        raise ModelError(
            f"toys: a table has {rows} rows in every toy, got {sizes.tolist()[:3]}; leave events out"
        )


class Numbers:
    """Arrays of numbers, one after the other."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays, self.size = arrays, sum(map(len, arrays))

    def add(self, array: Array) -> int:
        """Append an array; return where it begins."""
        first = self.size
        self.arrays.append(np.asarray(array, np.float64).ravel())
        self.size += len(self.arrays[-1])
        return first


def exact_tails() -> Array:
    """Return what Stirling's formula for the logarithm of the factorial lacks, for the smallest numbers."""
    k = np.arange(TAILS)
    factorials = np.cumsum(np.log(np.maximum(k, 1)))
    return np.asarray(factorials - (k + 0.5) * np.log(k + 1.0) + k + 1 - 0.5 * np.log(2 * np.pi), np.float64)


def poisson_constants(means: Array) -> Array:
    """Return the mean of each row, and what the method for it needs.

    Small ones need the probability of nothing, others the constants of the transformed rejection PTRS (Hoermann,
    Insurance: Mathematics and Economics 12, 1993).
    """
    safe = np.maximum(means, SMALL)
    width = 0.931 + 2.53 * np.sqrt(safe)
    edge = -0.059 + 0.02483 * width
    inverse, sure = 1.1239 + 1.1328 / (width - 3.4), 0.9277 - 3.6224 / (width - 2)
    first = np.where(means < SMALL, np.exp(-np.minimum(means, SMALL)), width)
    return np.stack([means, first, edge, inverse, sure], axis=-1)


def shares(means: Array) -> Array:
    """Return the probability of each row among itself and those after it, and the logarithm of the larger side's."""
    left = np.cumsum(means[::-1])[::-1]
    share = np.divide(means, left, out=np.zeros_like(means), where=left > 0)
    return np.stack([share, np.log1p(-np.minimum(share, 1 - share))], axis=-1)
