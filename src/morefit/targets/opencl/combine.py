"""The kernel that adds the words of all blocks of a set, with compensation, and writes its outputs, in OpenCL C."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.kernel.ir import Kernel
from morefit.targets.opencl.dialect import Dialect, indented, number_text
from morefit.targets.opencl.sums import outputs_of, pairs_of, words_of


@dataclass(frozen=True)
class Combine:
    """Writes ``combine``: a compensated sum of every word over the blocks of a set, then its outputs."""

    kernel: Kernel
    group: int
    dialect: Dialect

    def lines(self) -> list[str]:
        d, kernel = self.dialect, self.kernel
        m = d.memory
        arguments = [
            f"{m}const int *first_task, {m}const double *partials, {m}double *totals",
            f"{m}const double *scalars, {m}const long *sizes, const int sizes_step",
            f"{m}double *out",
        ]
        words = words_of(kernel)
        scalar = f"scalars[set * {len(kernel.per_call.results)} + {{}}]"
        outputs = outputs_of(kernel, scalar, "sizes[set * sizes_step]")
        body = [
            f"const int set = {d.group}, item = {d.item};",
            f"{m}double *high = totals + (long)set * {2 * words}, *low = high + {words};",
            f"{m}double *row = out + (long)set * {kernel.outputs + 1};",
            *self.add_blocks(words, "partials", "first_task[set]", "first_task[set + 1]"),
            *outputs.store(d.wait_memory, scalar),
            *self.add_pairs(),
        ]
        joined = ",\n".join(indented(arguments))
        return [f"{d.kernel} combine(", f"{joined})", "{", *indented(body), "}", ""]

    def add_blocks(self, words: int, partials: str, first: str, last: str) -> list[str]:
        """Let neighbouring items take neighbouring words; with items to spare, several share the blocks of a word."""
        if not words:
            return []
        d, group = self.dialect, self.group
        width = min(words, group)
        lanes = group // width
        return [
            f"{d.shared}double sums[GROUP], corrections[GROUP];",
            f"const int lane = item / {width}, column = item % {width};",
            f"for (int from = 0; from < {words}; from += {width}) {{",
            "    const int word = from + column;",
            f"    const int mine = lane < {lanes} && word < {words};",
            "    double sum = 0.0, correction = 0.0;",
            "    if (mine)",
            f"        for (int task = {first} + lane; task < {last}; task += {lanes})",
            f"            add(&sum, &correction, {partials}[(long)task * {words} + word]);",
            "    sums[item] = sum;",
            "    corrections[item] = correction;",
            f"    {d.wait}",
            "    if (mine && lane == 0) {",
            f"        for (int other = item + {width}; other < {lanes * width}; other += {width}) {{",
            "            add(&sum, &correction, sums[other]);",
            "            correction += corrections[other];",
            "        }",
            "        high[word] = sum;",
            "        low[word] = correction;",
            "    }",
            f"    {d.wait}",
            "}",
            d.wait_memory,
        ]

    def add_pairs(self) -> list[str]:
        """Add the sums of pairs to their outputs, with the sign the kernel asks for."""
        pairs, count = self.kernel.pairs, pairs_of(self.kernel)
        if not pairs:
            return []
        first = words_of(self.kernel) - count
        sign = number_text(pairs.sign)
        return [
            self.dialect.wait_memory,
            f"for (int k = item; k < {count}; k += GROUP)",
            f"    row[{pairs.output} + k] += {sign} * (high[{first} + k] + low[{first} + k]);",
        ]
