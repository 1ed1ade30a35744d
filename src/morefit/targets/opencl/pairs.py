"""Sums of products of all pairs out of many factors in OpenCL C: squares of products, added by the whole group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morefit.kernel import Pairs
from morefit.targets.opencl.dialect import Dialect, Names, indented
from morefit.targets.opencl.sums import SCRATCH

TILE = 4  # products of pairs are added in squares of this many factors


@dataclass(frozen=True)
class PairSum:
    """Writes the sums of products of all pairs out of many factors.

    The factors of some events at a time go to shared memory; each item adds squares of products of its own, in
    registers, so that nothing has to be added over items in the end.
    """

    pairs: Pairs
    group: int
    dialect: Dialect

    @property
    def squares(self) -> int:
        """How many squares there are along a side."""
        return -(-self.pairs.count // TILE)

    @property
    def count(self) -> int:
        return self.squares * (self.squares + 1) // 2

    @property
    def each(self) -> int:
        """How many squares an item adds."""
        return -(-self.count // self.group)

    @property
    def sides(self) -> dict[str, tuple[str | float, ...]]:
        right = self.pairs.right
        return {"left": self.pairs.left} | ({"right": right} if right else {})

    @property
    def pitch(self) -> int:
        """Leave one place free, so that items write to different banks of shared memory."""
        return self.row * self.pairs.groups + 1

    @property
    def row(self) -> int:
        """Places that one group of an event takes."""
        return TILE * self.squares * len(self.sides)

    @property
    def events(self) -> int:
        """How many events are in shared memory at a time."""
        return min(self.group, max(1 << ((SCRATCH // self.pitch).bit_length() - 1), 1))

    @property
    def room(self) -> int:
        """How many numbers are in shared memory."""
        return self.events * self.pitch

    def begin(self) -> list[str]:
        """Begin the sums of an item."""
        return [
            f"double squares[{self.each}][{TILE * TILE}];",
            f"for (int s = 0; s < {self.each}; s++)",
            f"    for (int k = 0; k < {TILE * TILE}; k++) squares[s][k] = 0.0;",
        ]

    def loop(self, inside: Sequence[str], names: Names) -> list[str]:
        """Loop over the events, one per item; ``inside`` loads and computes one."""
        d = self.dialect
        groups = [slice(g * self.pairs.count, (g + 1) * self.pairs.count) for g in range(self.pairs.groups)]
        atoms = [
            names.atom(a)
            for group in groups
            for side in self.sides.values()
            for a in self.padded(side[group])
        ]
        private = [f"f[{k}] = {atom};" for k, atom in enumerate(atoms)]
        keep = f"for (int k = 0; k < {len(atoms)}; k++) factors[(item % {self.events}) * {self.pitch} + k] = f[k];"
        return [
            "for (int from_event = 0; from_event < count; from_event += GROUP) {",
            f"    double f[{len(atoms)}];",
            "    const int k = from_event + item;",
            "    if (k < count) {", *indented([*inside, *private], 2),
            "    } else {", f"        for (int k = 0; k < {len(atoms)}; k++) f[k] = 0.0;", "    }",
            f"    for (int part = 0; part < GROUP / {self.events}; part++) {{",
            f"        if (item / {self.events} == part)",
            f"            {keep}",
            f"        {d.wait}",
            *indented(self.add_squares(), 2),
            f"        {d.wait}",
            "    }",
            "}",
        ]  # fmt: skip

    def padded(self, side: Sequence[str | float]) -> list[str | float]:
        return [*side, *[0.0] * (TILE * self.squares - len(side))]

    def add_squares(self) -> list[str]:
        right = TILE * self.squares if len(self.sides) > 1 else 0
        place, rows = f"e * {self.pitch}", f"int e = 0; e < {self.events}; e++"
        if self.pairs.groups > 1:
            groups = self.pairs.groups
            place, rows = (
                f"(e / {groups}) * {self.pitch} + (e % {groups}) * {self.row}",
                f"int e = 0; e < {self.events * groups}; e++",
            )
        return [
            f"for (int s = 0; s < {self.each}; s++) {{",
            "    const int square = item + s * GROUP;",
            *indented(self.row_and_column()),
            f"    if (square < {self.count})",
            f"        for ({rows}) {{",
            f"            {self.dialect.shared}const double *a = factors + {place} + {TILE} * row;",
            f"            {self.dialect.shared}const double *b = factors + {place} + {right} + {TILE} * column;",
            f"            for (int i = 0; i < {TILE}; i++)",
            f"                for (int j = 0; j < {TILE}; j++) squares[s][i * {TILE} + j] += a[i] * b[j];",
            "        }",
            "}",
        ]

    def row_and_column(self) -> list[str]:
        """Find the row and column of a square in the lower triangle."""
        return [
            "int row = (int)((sqrt(8.0 * square + 1.0) - 1.0) / 2.0);",
            "row += (row + 1) * (row + 2) / 2 <= square;",
            "const int column = square - row * (row + 1) / 2;",
        ]

    def leave(self, target: str) -> list[str]:
        """Write the products that are in the lower triangle."""
        return [
            f"for (int s = 0; s < {self.each}; s++) {{",
            "    const int square = item + s * GROUP;",
            *indented(self.row_and_column()),
            f"    if (square < {self.count})",
            f"        for (int k = 0; k < {TILE * TILE}; k++) {{",
            f"            const int i = {TILE} * row + k / {TILE}, j = {TILE} * column + k % {TILE};",
            f"            if (i < {self.pairs.count} && j <= i) ({target})[i * (i + 1) / 2 + j] = squares[s][k];",
            "        }",
            "}",
        ]
