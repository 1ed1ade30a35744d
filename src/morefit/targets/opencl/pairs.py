"""Sums of products of all pairs out of many factors in OpenCL C: squares of products, added by the whole group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from morefit.dataclass import dataclass
from morefit.kernel.ir import Pairs
from morefit.targets.opencl.dialect import Dialect, Names, indented

SMALL_TILE, LARGE_TILE = 4, 8  # products of pairs are added in squares of this many factors:
FACTORS = 2560  # doubles of shared memory
# up to this number of factors, there are more squares than with large ones, for the items to share
SMALL = 16
BANKS = 16  # of shared memory, in doubles, from which as many items read at the same time


@dataclass(frozen=True)
class PairSum:
    """Writes the sums of products of all pairs out of many factors.

    The factors of some events at a time go to shared memory; each item adds squares of products of its own, in
    registers. Where there are fewer squares than items, several items share a square and take every n-th event.
    """

    pairs: Pairs
    group: int
    dialect: Dialect

    @property
    def tile(self) -> int:
        return SMALL_TILE if self.pairs.count <= SMALL else LARGE_TILE

    @property
    def squares(self) -> int:
        """How many squares there are along a side."""
        return -(-self.pairs.count // self.tile)

    @property
    def count(self) -> int:
        return self.squares * (self.squares + 1) // 2

    @property
    def each(self) -> int:
        """How many squares an item adds."""
        return -(-self.count // self.group)

    @property
    def slices(self) -> int:
        """How many items share a square."""
        return max(self.group // self.count, 1)

    @property
    def sides(self) -> dict[str, tuple[str | float, ...]]:
        right = self.pairs.right
        return {"left": self.pairs.left} | ({"right": right} if right else {})

    @property
    def steps(self) -> tuple[int, int]:
        """How far apart factors of one square are, and those of neighbouring squares: items have large squares in different banks."""
        return (self.squares, 1) if self.tile == LARGE_TILE else (1, self.tile)

    @property
    def row(self) -> int:
        """Places that one group of an event takes."""
        return self.tile * self.squares * len(self.sides)

    @property
    def events(self) -> int:
        """How many events are in shared memory at a time."""
        return self.events_at(self.row * self.pairs.groups + 1)

    def events_at(self, pitch: int) -> int:
        return min(self.group, max(1 << ((FACTORS // pitch).bit_length() - 1), 1))

    @cached_property
    def pitch(self) -> int:
        """Leave places free between events, so that items write to and read from different banks of shared memory."""
        least = self.row * self.pairs.groups + 1
        pitches = (p for p in range(least, least + BANKS) if self.events_at(p) == self.events)
        return min(pitches, key=self.bank_turns)

    def bank_turns(self, pitch: int) -> int:
        """Count the turns that the items take at shared memory for the events that it holds."""
        (_, step), groups, squares = self.steps, self.pairs.groups, [place_of(k) for k in range(self.count)]
        stores = [e * pitch for e in range(self.events)]
        loads: tuple[list[int], list[int]] = ([], [])
        for item in range(min(self.count * self.slices, self.group)):
            e = item // self.count
            event = e // groups * pitch + e % groups * self.row
            for places, square in zip(loads, squares[item % self.count], strict=True):
                places.append(event + step * square)
        times = self.each * -(-self.events * groups // self.slices) * self.tile
        return times * sum(map(turns_at_banks, loads)) + self.row * groups * turns_at_banks(stores)

    @property
    def room(self) -> int:
        """How many numbers are in shared memory."""
        return max(self.events * self.pitch, self.count * self.joined)

    @property
    def joined(self) -> int:
        """How many products of a square its items add together at a time."""
        if self.slices == 1:
            return 0
        return min(self.tile**2, 1 << ((FACTORS // self.count).bit_length() - 1))

    def begin(self) -> list[str]:
        """Begin the sums of an item."""
        area = self.tile**2
        return [
            f"double squares[{self.each}][{area}];",
            f"for (int s = 0; s < {self.each}; s++)",
            f"    for (int k = 0; k < {area}; k++) squares[s][k] = 0.0;",
        ]

    def loop(self, inside: Sequence[str], names: Names) -> list[str]:
        """Loop over the events, one per item; ``inside`` loads and computes one."""
        d = self.dialect
        groups = [slice(g * self.pairs.count, (g + 1) * self.pairs.count) for g in range(self.pairs.groups)]
        atoms = [
            names.atom(a)
            for group in groups
            for side in self.sides.values()
            for a in self.in_places(side[group])
        ]
        private = [f"f[{k}] = {atom};" for k, atom in enumerate(atoms)]
        return [
            f"{d.shared}double *own_factors = factors + item % {self.events} * {self.pitch};",
            "for (int from_event = 0; from_event < count; from_event += GROUP) {",
            f"    double f[{len(atoms)}];",
            "    const int k = from_event + item;",
            "    if (k < count) {", *indented([*inside, *private], 2),
            "    } else {", f"        for (int k = 0; k < {len(atoms)}; k++) f[k] = 0.0;", "    }",
            f"    for (int part = 0; part < GROUP / {self.events}; part++) {{",
            f"        if (item / {self.events} == part)",
            f"            for (int k = 0; k < {len(atoms)}; k++) own_factors[k] = f[k];",
            f"        {d.wait}",
            *indented(self.add_squares(), 2),
            f"        {d.wait}",
            "    }",
            "}",
        ]  # fmt: skip

    def in_places(self, side: Sequence[str | float]) -> list[str | float]:
        """Return the factors of one side as they lie in shared memory; squares are filled up with zeros."""
        within, between = self.steps
        places: list[str | float] = [0.0] * (self.tile * self.squares)
        for k, factor in enumerate(side):
            places[k % self.tile * within + k // self.tile * between] = factor
        return places

    def add_squares(self) -> list[str]:
        tile, slices, groups = self.tile, self.slices, self.pairs.groups
        right = tile * self.squares if len(self.sides) > 1 else 0
        within, between = self.steps
        place = f"e * {self.pitch}"
        if groups > 1:
            place = f"(e / {groups}) * {self.pitch} + (e % {groups}) * {self.row}"
        first = "0" if slices == 1 else f"item / {self.count}"
        inside = [
            f"for (int e = {first}; e < {self.events * groups}; e += {slices}) {{",
            f"    {self.dialect.shared}const double *a = factors + {place} + {between} * row;",
            f"    {self.dialect.shared}const double *b = factors + {place} + {right} + {between} * column;",
            f"    for (int i = 0; i < {tile}; i++)",
            f"        for (int j = 0; j < {tile}; j++) squares[s][i * {tile} + j] += a[{within} * i] * b[{within} * j];",
            "}",
        ]
        return self.each_square(inside)

    def each_square(self, inside: Sequence[str]) -> list[str]:
        """Let an item go through its squares in the lower triangle, and find the row and column of each."""
        if self.slices > 1:
            which, mine = f"item % {self.count}", f"item < {self.count * self.slices}"
        else:
            which, mine = "item + s * GROUP", f"square < {self.count}"
        return [
            f"for (int s = 0; s < {self.each}; s++) {{",
            f"    const int square = {which};",
            "    int row = (int)((sqrt(8.0 * square + 1.0) - 1.0) / 2.0);",
            "    row += (row + 1) * (row + 2) / 2 <= square;",
            "    const int column = square - row * (row + 1) / 2;",
            f"    if ({mine}) {{",
            *indented(inside, 2),
            "    }",
            "}",
        ]

    def join_slices(self) -> list[str]:
        """Add the squares that several items share, in their order."""
        if self.slices == 1:
            return []
        area, wait, some = self.tile**2, self.dialect.wait, f"for (int k = 0; k < {self.joined}; k++)"
        place = f"joined[k * {self.count}]"
        inside = [
            f"if (item / {self.count} == slice) {some} {place} = squares[0][first + k];",
            wait,
            f"if (item < {self.count}) {some} squares[0][first + k] += {place};",
            wait,
        ]
        return [
            f"{self.dialect.shared}double *joined = factors + item % {self.count};",
            f"for (int slice = 1; slice < {self.slices}; slice++)",
            f"    for (int first = 0; first < {area}; first += {self.joined}) {{",
            *indented(inside, 2),
            "    }",
        ]

    def leave(self, target: str) -> list[str]:
        """Write the products that are in the lower triangle."""
        tile = self.tile
        first = f"if (item < {self.count}) " if self.slices > 1 else ""
        inside = [
            f"{first}for (int k = 0; k < {tile}; k++) {{",
            f"    const int i = {tile} * row + k, last = i < {self.pairs.count} ? i - {tile} * column : -1;",
            f"    {self.dialect.memory}double *products = {target} + i * (i + 1) / 2 + {tile} * column;",
            f"    for (int j = 0; j < {tile}; j++)",
            f"        if (j <= last) products[j] = squares[s][k * {tile} + j];",
            "}",
        ]
        return [*self.join_slices(), *self.each_square(inside)]


def place_of(square: int) -> tuple[int, int]:
    """Return the row and the column of a square in the lower triangle."""
    row = (math.isqrt(8 * square + 1) - 1) // 2
    return row, square - row * (row + 1) // 2


def turns_at_banks(places: Sequence[int]) -> int:
    """Count the turns that items take at shared memory, as many at a time as there are banks: different places in one bank take one each."""
    together = (set(places[k : k + BANKS]) for k in range(0, len(places), BANKS))
    return sum(max(Counter(place % BANKS for place in each).values()) for each in together)
