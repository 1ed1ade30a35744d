"""Sums in OpenCL C: what an item carries from event to event, and how the words of items and blocks are added.

Every sum is taken in a fixed order: over the events of an item, over the items of a group in a tree, and over the
blocks of a set with compensation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

from morefit.dataclass import dataclass
from morefit.kernel.ir import (
    BIAS,
    COUNT,
    EXPONENT_ONE,
    LN2_HIGH,
    LN2_LOW,
    MANTISSA,
    RANGE,
    SCALED,
    SMALLEST,
    WORDS,
    Kernel,
    Reduce,
    Sample,
)
from morefit.targets.opencl.dialect import (
    Dialect,
    Names,
    body_lines,
    indented,
    number_text,
)
from morefit.targets.opencl.functions import outlined

WORD_TABLE = "output_of_word"  # a table of a text
SHARED_SCALARS = "shared_scalars"  # the scalars of a loop, where they are in shared memory
SCRATCH = 2048  # doubles of shared memory: every device has 16 KB
SCALED_IN_TABLES = (
    32  # scaled sums from which on tables say where they go: compilers take long for a line each
)
MAX_SHARED_SCALARS = 3072  # devices with shared memory have 48 KB of it: half, beside what sums are added in
MAX_EVENTS = 512  # of an item: a product of that many mantissas stays below 2**512
TOGETHER = 64  # sums of an item in one loop over the events, which find room in registers
MANY_RESULTS = 64  # of an event: from there on compilers take long to copy the sum over items to each place that needs it
FLUSH = 256  # events after which an item without such a bound takes the logarithm of its products


def words_of(kernel: Kernel) -> int:
    """How many words a block leaves for ``combine``."""
    return sum(WORDS[r.reduce] for r in kernel.sums.results) + pairs_of(kernel)


def pairs_of(kernel: Kernel) -> int:
    count = kernel.pairs.count if kernel.pairs else 0
    return count * (count + 1) // 2


# what an item carries from event to event, and the words it becomes
STATE: dict[Reduce, Callable[[int], list[str]]] = {
    Reduce.ADD: lambda k: [f"double sum{k} = 0.0;"],
    Reduce.EXACT: lambda k: [f"double sum{k} = 0.0, lost{k} = 0.0;"],
    Reduce.LOG: lambda k: [f"double product{k} = 1.0;", f"int exponent{k} = 0;", f"ulong worst{k} = 0;"],
}
FINISHED: dict[Reduce, Callable[[int], list[str]]] = {
    Reduce.ADD: lambda k: [f"sum{k}"],
    Reduce.EXACT: lambda k: [f"sum{k}", f"lost{k}"],
    Reduce.LOG: lambda k: [f"log(product{k})", f"exponent{k}", f"worst{k} >= {RANGE:#x}UL ? 1.0 : 0.0"],
}


def state_lines(kernel: Kernel, sums: Sequence[int]) -> list[str]:
    """Begin some sums of an item."""
    return [line for k in sums for line in STATE[kernel.sums.results[k].reduce](k)]


def update_lines(kernel: Kernel, sums: Sequence[int], names: Names, d: Dialect) -> list[str]:
    """Add the results of one event to some sums of an item."""
    results, atoms = kernel.sums.results, kernel.per_event.results
    return [line for k in sums for line in update(k, results[k].reduce, names.atom(atoms[k]), d)]


def words_left(kernel: Kernel, sums: Sequence[int]) -> list[str]:
    """Return the words that some sums of an item become."""
    return [w for k in sums for w in FINISHED[kernel.sums.results[k].reduce](k)]


def update(k: int, reduce: Reduce, x: str, d: Dialect) -> list[str]:
    if reduce is Reduce.ADD:
        return [f"sum{k} += {x};"]
    if reduce is Reduce.EXACT:
        # what the addition lost, by Knuth's two-sum
        return [
            f"const double new{k} = sum{k} + {x}, part{k} = new{k} - sum{k};",
            f"lost{k} += (sum{k} - (new{k} - part{k})) + ({x} - part{k});",
            f"sum{k} = new{k};",
        ]
    mantissa = d.from_bits.format(f"(bits{k} & {MANTISSA:#x}UL) | {EXPONENT_ONE:#x}UL")
    return [
        f"const {d.word} bits{k} = {d.bits.format(f'(double){x}')}, above{k} = bits{k} - {SMALLEST:#x}UL;",
        f"product{k} *= {mantissa};",
        f"exponent{k} += (int)(above{k} >> 52);",
        f"worst{k} = max(worst{k}, above{k});",
    ]


def turns_of(kernel: Kernel) -> list[Sequence[int]]:
    """Return the sums that items take in each loop over the events; in the last one they add the products of pairs as well.

    Sums that find no room in registers go through memory with every event. To compute an event again takes less.
    """
    count = len(kernel.sums.results)
    turns = max(-(-count // TOGETHER), 1)
    ends = [count * turn // turns for turn in range(turns + 1)]
    own: list[Sequence[int]] = [range(*pair) for pair in pairwise(ends)]
    return [*own, ()] if kernel.pairs and turns > 1 else own


def max_words(group: int) -> int:
    """How many words of every item shared memory holds at a time."""
    return max(SCRATCH // group, 1)


def scratch_line(words: int, group: int, d: Dialect, least: int = 0) -> str:
    """Declare the shared memory that the words of items are added in, with room for at least so many numbers."""
    room = max(min(max_words(group), words) * group, least, group)
    return f"{d.shared}double scratch[{room}], *own_scratch = scratch + item;"


def tree_lines(words: Sequence[str], group: int, leave: str, d: Dialect, before: int = 0) -> list[str]:
    """Add the words of all items, as many at a time as shared memory holds; ``leave`` says where they go, after those before."""
    limit, lines = max_words(group), []
    for begin in range(0, len(words), limit):
        chunk, first = words[begin : begin + limit], before + begin
        lines += [f"own_scratch[{k} * GROUP] = {word};" for k, word in enumerate(chunk)]
        lines += [
            f"add_items(scratch, {len(chunk)}, item);",
            f"for (int k = item; k < {len(chunk)}; k += GROUP) {leave.format(place=f'{first} + k' if first else 'k')}",
            d.wait,
        ]
    return lines


TREE = """\
// add scratch[word][item] over the items of a group, always in the same order, into scratch[word][0]
{inline}void add_items({shared}double *scratch, const int words, const int item)
{{
    {wait}
    for (int half_way = GROUP / 2, bits = 30 - clz(GROUP); half_way > 0; half_way /= 2, bits--) {{
        for (int k = item; k < words * half_way; k += GROUP) {{
            {shared}double *row = scratch + (k >> bits) * GROUP + (k & (half_way - 1));
            row[0] += row[half_way];
        }}
        {wait}
    }}
}}
"""

TWO_SUM = """\
// add a number, and to the correction what the addition loses (Knuth's two-sum)
void add(double *sum, double *correction, const double x)
{
    const double total = *sum + x, part = total - *sum;
    *correction += (*sum - (total - part)) + (x - part);
    *sum = total;
}
"""
LOGARITHM = f"""\
// the logarithm of a product from that of its mantissas and its exponent; log(2) in two parts, so that it is exact
double logarithm(const double high, const double low, const double exponent)
{{
    double sum = exponent * {number_text(LN2_HIGH)}, lost = 0.0;
    add(&sum, &lost, high);
    return sum + (lost + exponent * {number_text(LN2_LOW)} + low);
}}
"""


def sum_functions(kernels: Sequence[Kernel], d: Dialect) -> list[str]:
    """Return the functions that the sums of kernels need."""
    if not kernels:
        return []
    often = max(len(kernel.sums.results) for kernel in kernels) > MANY_RESULTS
    inline = "__attribute__((noinline)) " if often else ""
    texts = [TREE.format(inline=inline, shared=d.shared, wait=d.wait), TWO_SUM]
    if any(r.reduce is Reduce.LOG for kernel in kernels for r in kernel.sums.results):
        texts.append(LOGARITHM)
    return [line for text in texts for line in (*text.splitlines(), "")]


def int_table(name: str, numbers: Sequence[int]) -> str:
    """Write a table of a text."""
    return f"__constant int {name}[] = {{{', '.join(map(str, numbers))}}};"


@dataclass(frozen=True)
class Outputs:
    """How the words of a set, ``high`` and ``low``, become its outputs: lines before, and an expression for each."""

    before: list[str]
    terms: dict[int, list[str]]
    plain: dict[int, int]  # the words of outputs that are nothing but one
    low: bool  # whether words have a part ``low``
    scaled: dict[int, list[tuple[int, int]]]  # outputs that words are added to by tables, each times a scalar

    def word(self, w: int | str) -> str:
        return f"(high[{w}] + low[{w}])" if self.low else f"high[{w}]"

    @property
    def expressions(self) -> dict[int, str]:
        """The expressions of outputs that are more than one word."""
        return {k: " + ".join(terms) for k, terms in self.terms.items() if terms and k not in self.plain}

    def tables(self, label: str, places: Sequence[int]) -> list[str]:
        """Write the tables of scaled sums, if there are any: where outputs are, and words and scalars of each."""
        terms = [term for own in self.scaled.values() for term in own]
        numbers = {
            "outputs": [places[output] for output in self.scaled],
            "ends": accumulate(map(len, self.scaled.values())),
            "words": [word for word, _ in terms],
            "scalars": [scalar for _, scalar in terms],
        }
        return [int_table(f"scaled_{name}{label}", [*n]) for name, n in numbers.items()] if terms else []

    def scaled_line(self, label: str, scalar: str, record: str, sign: str = "+") -> str:
        """Add the scaled sums of the k-th output of the tables to it."""
        begin, place = f"k > 0 ? scaled_ends{label}[k - 1] : 0", f"{record}[scaled_outputs{label}[k]]"
        product = f"{self.word(f'scaled_words{label}[t]')} * {scalar.format(f'scaled_scalars{label}[t]')}"
        loop = f"for (int t = {begin}; t < scaled_ends{label}[k]; t++) sum += {product};"
        return f"{{ double sum = 0.0; {loop} {place} {sign}= sum; }}"

    def store(self, wait: str, scalar: str) -> list[str]:
        """Let the items of a group store all outputs of a set in ``row``; a line for each would take compilers long."""
        zeros = [f"for (int k = item; k < {len(self.terms)}; k += GROUP) row[k] = 0.0;", wait]
        loop = [
            f"for (int k = item; k < {len(self.words)}; k += GROUP)",
            f"    if ({WORD_TABLE}[k] >= 0) row[{WORD_TABLE}[k]] = {self.word('k')};",
        ]
        own = indented([*self.before, *(f"row[{k}] = {text};" for k, text in self.expressions.items())])
        scaled = [
            wait,
            f"for (int k = item; k < {len(self.scaled)}; k += GROUP) {self.scaled_line('', scalar, 'row')}",
        ]
        return [
            *([] if all(self.terms.values()) else zeros),
            *(loop if self.plain else []),
            *(["if (item == 0) {", *own, "}"] if self.expressions else []),
            *(scaled if self.scaled else []),
        ]

    @property
    def words(self) -> list[int]:
        """The outputs that are one word each, by words; -1 for a word that is something else."""
        outputs = {word: output for output, word in self.plain.items()}
        return [outputs.get(word, -1) for word in range(max(outputs, default=-1) + 1)]


def outputs_of(kernel: Kernel, scalar: str, events: str, *, low: bool = True) -> Outputs:
    """Return the outputs of a set; the last one counts what was bad."""
    terms: dict[int, list[str]] = {k: [] for k in range(kernel.outputs + 1)}
    outputs = Outputs([], terms, {}, low, {})
    bad, word, count, words = list[str](), 0, "events", list[int]()
    if kernel.sums.per_count or any(r.reduce is Reduce.LOG for r in kernel.sums.results):
        outputs.before.append(f"const double events = {events};")

    for result in kernel.sums.results:
        w = word
        word += WORDS[result.reduce]
        if result.reduce is Reduce.LOG:
            rest = f"low[{w}]" if low else "0.0"
            exponent = f"high[{w + 1}] - events * {number_text(float(BIAS))}"
            terms[result.output].append(f"logarithm(high[{w}], {rest}, {exponent})")
            bad.append(f"high[{w + 2}]")
        elif result.reduce is Reduce.EXACT:
            inner = f"low[{w}] + {outputs.word(w + 1)}" if low else outputs.word(w + 1)
            exact = f"(high[{w}] + ({inner}))"
            if result.output == COUNT:
                count = exact
            else:
                terms[result.output].append(exact)
        elif result.output != SCALED:
            terms[result.output].append(outputs.word(w))
            if result.output < kernel.outputs:
                outputs.plain[result.output] = w
        words.append(w)
    for added in kernel.sums.per_set:
        terms[added.output].append(scalar.format(added.result))
    for added in kernel.sums.per_count:
        terms[added.output].append(f"{count} * {scalar.format(added.result)}")
    few = len(kernel.sums.scaled) < SCALED_IN_TABLES
    for one in kernel.sums.scaled:
        if few:
            terms[one.output].append(f"{outputs.word(words[one.row])} * {scalar.format(one.result)}")
        else:
            outputs.scaled.setdefault(one.output, []).append((words[one.row], one.result))
    terms[kernel.outputs] = bad + terms[kernel.outputs]
    for k in [k for k in outputs.plain if len(terms[k]) > 1]:
        del outputs.plain[k]
    return outputs


def scalar_lines(
    kernel: Kernel, parameter: Callable[[int], str], store: str, tables: Mapping[str, str]
) -> list[str]:
    """Compute the scalars of a kernel from its parameters; ``store`` says where number {} of them goes."""
    names, used = Names(known=dict(tables)), kernel.per_call.reads
    parameters = [
        f"const double {names.add(name, 'p')} = {parameter(k)};"
        for k, name in enumerate(kernel.parameters)
        if name in used
    ]
    lines = body_lines(kernel.per_call, names, "double", outlined(kernel.per_call))
    stores = [f"{store.format(k)} = {names.atom(a)};" for k, a in enumerate(kernel.per_call.results)]
    return [*parameters, *lines, *stores]


def shares_scalars(kernel: Kernel, d: Dialect) -> bool:
    """Return whether the loop of a kernel reads its scalars from shared memory."""
    few = len(kernel.scalars) <= MAX_SHARED_SCALARS
    return d.shared_scalars and few and not isinstance(kernel.frame, Sample)


def read_scalars(kernel: Kernel, names: Names, place: str, d: Dialect) -> list[str]:
    """Read the scalars of a loop; ``place`` says where number {} of them is."""
    count, used = len(kernel.scalars), kernel.per_event.reads
    if count and shares_scalars(kernel, d):
        # volatile: compilers would read all of them into registers before the loop, and spill those
        return [
            f"volatile {d.shared}real {SHARED_SCALARS}[{count}];",
            f"for (int k = item; k < {count}; k += GROUP) {SHARED_SCALARS}[k] = (real){place.format('k')};",
            d.wait,
        ]
    return [
        f"const real {names.known[name]} = (real){place.format(k)};"
        for k, name in enumerate(kernel.scalars)
        if name in used
    ]


def plain_loop(inside: Sequence[str]) -> list[str]:
    """Let each item take every GROUP-th event."""
    return ["for (int k = item; k < count; k += GROUP) {", *indented(inside), "}"]


@dataclass(frozen=True)
class GroupSum:
    """Writes what a group does that sums over all events of a set on its own; its scalars are in shared memory."""

    kernel: Kernel
    group: int
    dialect: Dialect

    @property
    def words(self) -> int:
        return max(words_of(self.kernel), 1)

    @property
    def scalars(self) -> int:
        return max(len(self.kernel.per_call.results), 1)

    def room(self) -> list[str]:
        d = self.dialect
        return [
            f"{d.shared}double scalars[{self.scalars}], high[{self.words}];",
            scratch_line(self.words, self.group, d),
        ]

    def prepare(self, parameter: Callable[[int], str], tables: Mapping[str, str]) -> list[str]:
        """Let one item compute the per-call scalars."""
        if not self.kernel.per_call.results:
            return []
        lines = scalar_lines(self.kernel, parameter, "scalars[{}]", tables)
        return ["if (item == 0) {", *indented(lines), "}", self.dialect.wait]

    def sum_up(self, names: Names, columns: Sequence[str]) -> list[str]:
        """Sum over the events of the set, then over the items; ``high`` has the words afterwards."""
        kernel, d = self.kernel, self.dialect
        scalars = read_scalars(kernel, names, "scalars[{}]", d)
        lines = body_lines(kernel.per_event, names, "real")
        logs = [k for k, r in enumerate(kernel.sums.results) if r.reduce is Reduce.LOG]
        carried = [f"double logs{k} = 0.0;" for k in logs] + (["int taken = 0;"] if logs else [])
        flush = [f"logs{k} += log(product{k}), product{k} = 1.0;" for k in logs]
        often = [f"if (++taken % {FLUSH} == 0) {{", *indented(flush), "}"] if logs else []
        sums = range(len(kernel.sums.results))
        words = [
            f"logs{k} + {w}" if w.startswith("log(") else w for k in sums for w in words_left(kernel, [k])
        ]
        return [
            *scalars, *state_lines(kernel, sums), *carried,
            *plain_loop([*columns, *lines, *update_lines(kernel, sums, names, d), *often]),
            *tree_lines(words, self.group, "high[{place}] = scratch[k * GROUP];", d),
        ]  # fmt: skip
