"""Kernels as OpenCL C: a work-group takes a block of the events of a set, its items stride through it.

The text of a kernel has a function ``prepare`` (an item a set) and one for its frame. ``sums`` leaves the partial
results of each block, which ``combine`` (a group a set) adds in a fixed order and turns into outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from morefit.kernel import Frame, Kernel, Precision, Reduce
from morefit.render.combine import BIAS, LN2_HIGH, LN2_LOW
from morefit.render.cstyle import (
    OPENCL,
    Dialect,
    Names,
    body_lines,
    helpers,
    indented,
    number_text,
    used_names,
)
from morefit.render.launch import BLOCK
from morefit.render.philox import BUMPS, MULTIPLIERS, ROUNDS
from morefit.render.reduce import EXPONENT_ONE, MANTISSA, RANGE, SMALLEST, WORDS
from morefit.render.sample import MOST_DRAWS, calls_needed, place_of, takes_streams
from morefit.render.streams import GOLDEN, HALF_BYTES, STREAMS, TABLE

SCRATCH = 2048  # doubles of shared memory: every device has 16 KB
MOST_EVENTS = 512  # of an item: a product of that many mantissas stays below 2**512


@dataclass(frozen=True)
class Shape:
    """How work is divided: items in a work-group."""

    group: int


FUNCTIONS = {Frame.SUM: ("sums", "combine"), Frame.STORE: ("store",), Frame.SAMPLE: ("sample",)}


def functions_of(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of the functions in a kernel's text."""
    return ("prepare",) * bool(kernel.per_call.results) + FUNCTIONS[kernel.frame]


def render(kernel: Kernel, shape: Shape, dialect: Dialect = OPENCL) -> str:
    """Write a kernel as text."""
    return Source(kernel, shape, dialect).text()


def least_block(kernel: Kernel, group: int) -> int:
    """Return of how many events a block is a multiple: streams of random numbers begin and end with it."""
    return BLOCK * max(group // STREAMS, 1) if takes_streams(kernel.columns) else 1


def words_of(kernel: Kernel) -> int:
    """How many words a block leaves for ``combine``."""
    return sum(WORDS[r.reduce] for r in kernel.results) + pairs_of(kernel)


def pairs_of(kernel: Kernel) -> int:
    return len(kernel.outer) * (len(kernel.outer) + 1) // 2


@dataclass(frozen=True)
class Source:
    """Writes the functions of a kernel."""

    kernel: Kernel
    shape: Shape
    dialect: Dialect

    def text(self) -> str:
        kernel, d = self.kernel, self.dialect
        kind = "double" if kernel.precision is Precision.DOUBLE else "float"
        frame = {Frame.SUM: self.sums, Frame.STORE: self.store, Frame.SAMPLE: self.sample}[kernel.frame]
        parts = [
            f"// kernel {kernel.name} ({kernel.frame.name}, {kernel.precision.name}) in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group",
            f"typedef {kind} real;  // of the lines of an event",
            "",
            *helpers((kernel.per_call, kernel.per_event)),
            *(self.prepare() if kernel.per_call.results else []),
            *frame(),
        ]
        return "\n".join(parts)

    def prepare(self) -> list[str]:
        """Compute the scalars of each set."""
        kernel, d, names = self.kernel, self.dialect, Names()
        used, count = used_names(kernel.per_call), len(kernel.per_call.results)
        given = [
            f"const double {names.add(name, 'p')} = parameters[set * {len(kernel.parameters)} + {k}];"
            for k, name in enumerate(kernel.parameters)
            if name in used
        ]
        lines = body_lines(kernel.per_call, names, "double")
        kept = [
            f"scalars[set * {count} + {k}] = {names.atom(atom)};"
            for k, atom in enumerate(kernel.per_call.results)
        ]
        return [
            f"{d.free_kernel} prepare(const int sets, {d.memory}const double *parameters, {d.memory}double *scalars)",
            "{",
            *indented([f"const int set = {d.place};", "if (set >= sets) return;", *given, *lines, *kept]),
            "}",
            "",
        ]

    @property
    def names(self) -> Names:
        """Return a name for each scalar, column and table of the loop."""
        names = Names(self.kernel.precision)
        for role, group in (("s", self.kernel.scalars), ("c", self.kernel.columns)):
            for name in group:
                names.add(name, role)
        for table in self.kernel.tables:
            names.add(table.name, "t")
        return names

    def arguments(self, *others: str, columns: bool = True) -> str:
        """Write what every loop is given: scalars, tasks, bounds, columns and tables."""
        m, names = self.dialect.memory, self.names
        parts = [
            f"{m}const double *scalars",
            f"{m}const int *task_set, {m}const int *first_task, const int block",
            f"{m}const long *starts, {m}const long *stops, const int bounds_step",
            *others,
        ]
        if columns:
            for name in self.kernel.columns:
                c = names.known[name]
                parts.append(f"{m}const real *{c}_all, const long {c}_step")
        parts += [f"{m}const double *{names.known[t.name]}" for t in self.kernel.tables]
        return ",\n".join(indented(parts))

    def head(self) -> list[str]:
        """Find the block of a group, and the scalars of its set."""
        d, kernel, names = self.dialect, self.kernel, self.names
        used = used_names(kernel.per_event)
        count = len(kernel.per_call.results)
        return [
            f"const int task = {d.group}, item = {d.item}, set = task_set[task];",
            "const long first = starts[set * bounds_step];",
            "const long begin = first + (long)(task - first_task[set]) * block;",
            "const int count = (int)min(stops[set * bounds_step] - begin, (long)block);",
            *(
                f"const real {names.known[name]} = (real)scalars[set * {count} + {k}];"
                for k, name in enumerate(kernel.scalars)
                if name in used
            ),
        ]

    def loop(self, inside: Sequence[str]) -> list[str]:
        return ["for (int k = item; k < count; k += GROUP) {", *indented(inside), "}"]

    def load_columns(self) -> list[str]:
        names, used = self.names, used_names(self.kernel.per_event)
        lines = ["const long event = begin + k;"]
        for name in self.kernel.columns:
            c = names.known[name]
            if name in used:
                lines.append(f"const real {c} = {c}_all[{c}_step * set + event];")
        return lines

    def frame(self, name: str, arguments: str, lines: Sequence[str]) -> list[str]:
        return [f"{self.dialect.kernel} {name}(", f"{arguments})", "{", *indented(lines), "}", ""]

    def store(self) -> list[str]:
        """Keep every result of every event."""
        kernel, names = self.kernel, self.names
        lines = body_lines(kernel.per_event, names, "real")
        kept = [
            f"row[{k} * out_step + event] = {names.atom(atom)};"
            for k, atom in enumerate(kernel.per_event.results)
        ]
        m = self.dialect.memory
        row = f"{m}double *row = out + out_step * set * {len(kernel.per_event.results)};"
        return self.frame(
            "store",
            self.arguments(f"{m}double *out, const long out_step"),
            [*self.head(), row, *self.loop([*self.load_columns(), *lines, *kept])],
        )

    def sums(self) -> list[str]:
        """Reduce the results over the events of each block, then over blocks."""
        kernel, d, names = self.kernel, self.dialect, self.names
        lines = body_lines(kernel.per_event, names, "real")
        updates = self.updates(names)
        text = [
            *self.head(),
            self.scratch(),
            f"{d.memory}double *partial = partials + (long)task * {words_of(kernel)};",
            *self.state(),
            *self.loop([*self.load_columns(), *lines, *updates, *self.pair_lines(names)]),
            *self.leave_words("partial"),
        ]
        helper = TREE.format(memory=d.memory, shared=d.shared, wait=d.wait).splitlines()
        sums = self.frame("sums", self.arguments(f"{d.memory}double *partials"), text)
        return [*helper, "", *sums, *Combine(self.kernel, self.shape, d).lines()]

    def state(self) -> list[str]:
        """Begin the sums of an item."""
        kernel = self.kernel
        lines = [line for k, r in enumerate(kernel.results) for line in STATE[r.reduce](k)]
        return [*lines, f"double pairs[{pairs_of(kernel)}] = {{0.0}};"] if kernel.outer else lines

    def updates(self, names: Names) -> list[str]:
        """Add the results of one event to the sums of an item."""
        pairs = zip(self.kernel.results, self.kernel.per_event.results, strict=False)
        return [
            line
            for k, (result, atom) in enumerate(pairs)
            for line in self.update(k, result.reduce, names.atom(atom))
        ]

    def update(self, k: int, reduce: Reduce, x: str) -> list[str]:
        """Add one event to the sums of an item."""
        if reduce is Reduce.ADD:
            return [f"sum{k} += {x};"]
        if reduce is Reduce.EXACT:
            # what the addition lost, by Knuth's two-sum
            return [
                f"const double new{k} = sum{k} + {x}, part{k} = new{k} - sum{k};",
                f"lost{k} += (sum{k} - (new{k} - part{k})) + ({x} - part{k});",
                f"sum{k} = new{k};",
            ]
        d = self.dialect
        mantissa = d.from_bits.format(f"(bits{k} & {MANTISSA:#x}UL) | {EXPONENT_ONE:#x}UL")
        return [
            f"const {d.word} bits{k} = {d.bits.format(f'(double){x}')}, above{k} = bits{k} - {SMALLEST:#x}UL;",
            f"product{k} *= {mantissa};",
            f"exponent{k} += (int)(above{k} >> 52);",
            f"worst{k} = max(worst{k}, above{k});",
        ]

    def pair_lines(self, names: Names) -> list[str]:
        """Add the products of all pairs of factors."""
        kernel = self.kernel
        if not kernel.outer:
            return []
        rows = {"left": kernel.outer} | ({"right": kernel.outer_right} if kernel.outer_right else {})
        lines = [
            f"const double {side}[] = {{{', '.join(names.atom(a) for a in row)}}};"
            for side, row in rows.items()
        ]
        return [
            *lines,
            f"for (int i = 0, place = 0; i < {len(kernel.outer)}; i++)",
            f"    for (int j = 0; j <= i; j++, place++) pairs[place] += left[i] * {list(rows)[-1]}[j];",
        ]

    @property
    def most_words(self) -> int:
        """How many words of every item shared memory holds at a time."""
        return max(SCRATCH // self.shape.group, 1)

    def scratch(self) -> str:
        words = min(self.most_words, max(words_of(self.kernel), 1))
        return f"{self.dialect.shared}double scratch[{words} * GROUP];"

    def leave_words(self, target: str) -> list[str]:
        """Add the words of all items in a tree, as many at a time as shared memory holds."""
        kernel, most, lines = self.kernel, self.most_words, []
        words = [w for k, r in enumerate(kernel.results) for w in FINISHED[r.reduce](k)]
        for first in range(0, len(words), most):
            chunk = words[first : first + most]
            lines += [f"scratch[{k} * GROUP + item] = {word};" for k, word in enumerate(chunk)]
            lines.append(f"add_items(scratch, {len(chunk)}, item, {target} + {first});")
        if kernel.outer:
            count = pairs_of(kernel)
            lines += [
                f"for (int from = 0; from < {count}; from += {most}) {{",
                f"    const int some = min({count} - from, {most});",
                "    for (int k = 0; k < some; k++) scratch[k * GROUP + item] = pairs[from + k];",
                f"    add_items(scratch, some, item, {target} + {len(words)} + from);",
                "}",
            ]
        return lines

    @property
    def generator(self) -> Generator:
        """Choose the generator that the columns are named after."""
        return GENERATORS[takes_streams(self.kernel.columns)]

    def draw_lines(self) -> list[str]:
        """Draw candidates for an event until one is accepted: x0, x1, ..."""
        kernel, names = self.kernel, self.names
        calls, used = calls_needed(kernel), used_names(kernel.per_event)
        body = body_lines(kernel.per_event, names, "double")
        *found, accept, above = (names.atom(a) for a in kernel.per_event.results)
        uniforms = [
            f"const double {names.known[name]} = uniform[{place_of(name)}];"
            for name in kernel.columns
            if name in used
        ]
        draws = [self.generator.draw.format(k=k, calls=calls, place=2 * k) for k in range(calls)]
        attempt = [
            *([f"double uniform[{2 * calls}];"] if calls else []), *draws, *uniforms, *body,
            f"over |= {above} != 0;", f"accepted = {accept} != 0;",
            *(f"if (accepted) x{k} = {x};" for k, x in enumerate(found)),
        ]  # fmt: skip
        return [
            "int accepted = 0, over = 0;",
            *(f"double x{k} = 0.0;" for k in range(len(found))),
            f"for (int draw = 0; draw < {MOST_DRAWS} && !accepted; draw++) {{", *indented(attempt), "}",
        ]  # fmt: skip

    def generator_text(self) -> list[str]:
        return self.generator.text(self.dialect) if calls_needed(self.kernel) else []

    def draw_loop(self, inside: Sequence[str], streams_before: str = "0") -> list[str]:
        """Go through the events of a block; an item draws all events of a stream, one after the other."""
        if not takes_streams(self.kernel.columns):
            return self.loop(inside)
        jumps = f"({self.dialect.memory}const uint4 *){self.names.known[TABLE]}"
        return [
            f"for (int stream = item; stream < (count + {BLOCK - 1}) / {BLOCK} * {STREAMS}; stream += GROUP) {{",
            f"    const int from = stream / {STREAMS} * {BLOCK} + stream % {STREAMS};",
            f"    const int to = min(count, (stream / {STREAMS} + 1) * {BLOCK});",
            "    if (from >= to) continue;",
            f"    uint4 state = stream_start(seed, toy, {streams_before} + stream, {jumps});",
            f"    for (int k = from; k < to; k += {STREAMS}) {{",
            *indented(inside, 2),
            "    }",
            "}",
        ]

    def sample(self) -> list[str]:
        """Draw events: random numbers, straight lines, again until a candidate is accepted."""
        kernel, d = self.kernel, self.dialect
        loop = [
            "const long event = begin + k - first;",
            *self.draw_lines(),
            *(f"out{k}[begin + k] = x{k};" for k in range(kernel.outputs)),
            "overs += over;",
            "fails += !accepted;",
        ]
        others = [f"const {d.word} seed, const {d.word} first_toy, {d.memory}int *report"]
        others += [f"{d.memory}double *out{k}" for k in range(kernel.outputs)]
        lines = [
            *self.head(), f"const {d.word} toy = first_toy + set;", "int overs = 0, fails = 0;",
            *self.draw_loop(loop, f"(ulong)(begin - first) / {BLOCK} * {STREAMS}"), *self.report(),
        ]  # fmt: skip
        arguments = self.arguments(*others, columns=False)
        return [*self.generator_text(), *self.frame("sample", arguments, lines)]

    def report(self) -> list[str]:
        """Count what went wrong with the events of an item."""
        count = self.dialect.count_up.format
        return [f"if (overs) {count('report', 'overs')}", f"if (fails) {count('report + 1', 'fails')}"]


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

TREE = """\
// add scratch[word][item] over the items of a group, always in the same order
void add_items({shared}double *scratch, const int words, const int item, {memory}double *partial)
{{
    {wait}
    for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {{
        for (int k = item; k < words * half_way; k += GROUP) {{
            {shared}double *row = scratch + k / half_way * GROUP + k % half_way;
            row[0] += row[half_way];
        }}
        {wait}
    }}
    for (int k = item; k < words; k += GROUP) partial[k] = scratch[k * GROUP];
    {wait}
}}"""


@dataclass(frozen=True)
class Combine:
    """Writes ``combine``: a compensated sum of every word over the blocks of a set, then its outputs."""

    kernel: Kernel
    shape: Shape
    dialect: Dialect

    def lines(self) -> list[str]:
        d, kernel = self.dialect, self.kernel
        m = d.memory
        arguments = [
            f"{m}const int *first_task, {m}const double *partials, {m}double *totals",
            f"{m}const double *scalars, {m}const long *starts, {m}const long *stops, const int bounds_step",
            f"{m}double *out",
        ]
        words = words_of(kernel)
        body = [
            f"const int set = {d.group}, item = {d.item};",
            f"{m}double *high = totals + (long)set * {2 * words}, *low = high + {words};",
            f"{m}double *row = out + (long)set * {kernel.outputs + 1};",
            *self.add_blocks(words),
            "if (item == 0) {",
            *indented(self.outputs()),
            "}",
            *self.add_pairs(),
        ]
        begin = f"{d.kernel} combine("
        joined = ",\n".join(indented(arguments))
        return [*TWO_SUM.splitlines(), "", begin, f"{joined})", "{", *indented(body), "}", ""]

    def add_blocks(self, words: int) -> list[str]:
        """Let neighbouring items take neighbouring words; with items to spare, each takes every so many blocks."""
        if not words:
            return []
        d, group = self.dialect, self.shape.group
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
            f"        for (int task = first_task[set] + lane; task < first_task[set + 1]; task += {lanes})",
            f"            add(&sum, &correction, partials[(long)task * {words} + word]);",
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

    def outputs(self) -> list[str]:
        """Turn the words of a set into its outputs; the last one counts what was bad."""
        kernel = self.kernel
        terms: dict[int, list[str]] = {k: [] for k in range(kernel.outputs + 1)}
        lines, bad, word = [], [], 0
        if any(r.reduce is Reduce.LOG for r in kernel.results):
            lines.append("const double events = stops[set * bounds_step] - starts[set * bounds_step];")
        for result in kernel.results:
            w = word
            word += WORDS[result.reduce]
            if result.reduce is Reduce.LOG:
                bias = number_text(float(BIAS))
                terms[result.output].append(
                    f"logarithm(high[{w}], low[{w}], high[{w + 1}] - events * {bias})"
                )
                bad.append(f"high[{w + 2}]")
            elif result.reduce is Reduce.EXACT:
                terms[result.output].append(f"(high[{w}] + (low[{w}] + (high[{w + 1}] + low[{w + 1}])))")
            else:
                terms[result.output].append(f"(high[{w}] + low[{w}])")
        for index, output in kernel.per_set:
            terms[output].append(f"scalars[set * {len(kernel.per_call.results)} + {index}]")
        terms[kernel.outputs] = bad + terms[kernel.outputs]
        return lines + [f"row[{k}] = {' + '.join(parts) or '0.0'};" for k, parts in terms.items()]

    def add_pairs(self) -> list[str]:
        """Add the sums of pairs to their outputs, with the sign the kernel asks for."""
        count, kernel = pairs_of(self.kernel), self.kernel
        if not count:
            return []
        first = words_of(kernel) - count
        sign = number_text(kernel.outer_sign)
        return [
            self.dialect.wait_memory,
            f"for (int k = item; k < {count}; k += GROUP)",
            f"    row[{kernel.outer_output} + k] += {sign} * (high[{first} + k] + low[{first} + k]);",
        ]


TWO_SUM = f"""\
// add a number, and to the correction what the addition loses (Knuth's two-sum)
void add(double *sum, double *correction, const double x)
{{
    const double total = *sum + x, part = total - *sum;
    *correction += (*sum - (total - part)) + (x - part);
    *sum = total;
}}

// the logarithm of a product from that of its mantissas and its exponent; log(2) in two parts, so that it is exact
double logarithm(const double high, const double low, const double exponent)
{{
    double sum = exponent * {number_text(LN2_HIGH)}, lost = 0.0;
    add(&sum, &lost, high);
    return sum + (lost + exponent * {number_text(LN2_LOW)} + low);
}}"""


@dataclass(frozen=True)
class Generator:
    """How random numbers are drawn: for each candidate, two at a time."""

    functions: str
    draw: str

    def text(self, d: Dialect) -> list[str]:
        high = [d.high_product.format(f"{m:#x}u", c) for m, c in zip(MULTIPLIERS, ("c0", "c2"), strict=True)]
        text = (UNIFORM + self.functions).replace("HIGH0", high[0]).replace("HIGH1", high[1])
        text = text.replace("MEMORY ", d.memory)
        return [*text.splitlines(), ""]


UNIFORM = """\
// a number in [0, 1) of 53 bits
double uniform_of(const uint high, const uint low)
{
    return (double)(((ulong)high << 21) | (low >> 11)) * 0x1p-53;
}

"""
PHILOX = f"""\
// Philox4x32-10 (Salmon et al., SC11): two numbers from a key and a counter
void philox(uint c0, uint c1, uint c2, uint c3, const ulong seed, double *uniform)
{{
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
    for (int round = 0; round < {ROUNDS}; round++) {{
        const uint high0 = HIGH0, low0 = {MULTIPLIERS[0]:#x}u * c0;
        const uint high1 = HIGH1, low1 = {MULTIPLIERS[1]:#x}u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += {BUMPS[0]:#x}u, k1 += {BUMPS[1]:#x}u;
    }}
    uniform[0] = uniform_of(c0, c1);
    uniform[1] = uniform_of(c2, c3);
}}
"""
XOSHIRO = f"""\
// splitmix64 (Steele et al., OOPSLA 2014)
ulong mix(ulong z)
{{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
    return z ^ (z >> 31);
}}

// one jump of the state, or more: what each half-byte of it becomes, added up
uint4 jump(const uint4 s, MEMORY const uint4 *table)
{{
    uint4 sum;
    sum.x = sum.y = sum.z = sum.w = 0;
    for (int k = 0; k < 8; k++) {{
        const uint4 a = table[16 * k + (s.x >> 4 * k & 15)], b = table[128 + 16 * k + (s.y >> 4 * k & 15)];
        const uint4 c = table[256 + 16 * k + (s.z >> 4 * k & 15)], d = table[384 + 16 * k + (s.w >> 4 * k & 15)];
        sum.x ^= a.x ^ b.x ^ c.x ^ d.x, sum.y ^= a.y ^ b.y ^ c.y ^ d.y;
        sum.z ^= a.z ^ b.z ^ c.z ^ d.z, sum.w ^= a.w ^ b.w ^ c.w ^ d.w;
    }}
    return sum;
}}

// the state at the start of a stream: 2**32 jumps for each toy, one for each stream
uint4 stream_start(const ulong seed, const ulong toy, const ulong stream, MEMORY const uint4 *jumps)
{{
    const ulong place = seed + (toy >> 32) * {2 * GOLDEN % 2**64:#x}UL;
    const ulong a = mix(place + {GOLDEN:#x}UL), b = mix(place + {2 * GOLDEN % 2**64:#x}UL);
    uint4 state;
    state.x = (uint)a, state.y = (uint)(a >> 32), state.z = (uint)b, state.w = (uint)(b >> 32);
    for (ulong left = toy << 32 | stream; left; left >>= 1, jumps += {16 * HALF_BYTES})
        if (left & 1) state = jump(state, jumps);
    return state;
}}

// xoshiro128++ (Blackman and Vigna, ACM TOMS 47, 2021)
uint next(uint4 *s)
{{
    const uint word = rotate(s->x + s->w, 7u) + s->x, shifted = s->y << 9;
    s->z ^= s->x, s->w ^= s->y, s->y ^= s->z, s->x ^= s->w, s->z ^= shifted;
    s->w = rotate(s->w, 11u);
    return word;
}}

void xoshiro(uint4 *state, double *uniform)
{{
    for (int k = 0; k < 2; k++) {{
        const uint high = next(state), low = next(state);
        uniform[k] = uniform_of(high, low);
    }}
}}
"""
GENERATORS = {
    False: Generator(
        PHILOX,
        "philox((uint)event, (uint)toy, draw * {calls} + {k}, (uint)(toy >> 32), seed, uniform + {place});",
    ),
    True: Generator(XOSHIRO, "xoshiro(&state, uniform + {place});"),
}
