"""How the events of a block or a toy are drawn in OpenCL C: random numbers, and candidates until each event has one that is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from morefit.dataclass import dataclass
from morefit.kernel.ir import MAX_DRAWS, Kernel
from morefit.kernel.symbols import EVENT
from morefit.random.philox import BUMPS, MULTIPLIERS, ROUNDS
from morefit.random.xoshiro import BLOCK, GOLDEN, HALF_BYTES, STREAMS, TABLE
from morefit.targets.opencl.dialect import Dialect, Names, body_lines, indented


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


STREAMS_BEFORE = f"(ulong)block.event / {BLOCK} * {STREAMS}"  # those of the events of a set before a block
NUMBER = "number "  # what the names of the numeric arguments of a text begin with
TOGETHER = 8  # events of each item that wait together for an accepted candidate


class Candidate(NamedTuple):
    """Lines that draw one for an event, and their results."""

    lines: list[str]
    drawn: list[str]
    accept: str
    above: str


@dataclass(frozen=True)
class Draw:
    """Writes the loop over the events of a block, which has ``count`` of them."""

    kernel: Kernel
    names: Names
    dialect: Dialect
    numbers: int  # arguments, to draw with
    suffix: str = ""  # of their names
    rows: bool = False  # whether there is an array of them, of which the toy takes one row

    @property
    def sure(self) -> bool:
        """Whether every candidate is accepted, as where a density is drawn by inversion."""
        *_, accept, above = self.kernel.per_event.results
        return isinstance(accept, float) and accept != 0.0 and above == 0.0

    @property
    def streams(self) -> bool:
        """Whether random numbers come one after the other, so that an item draws all events of a stream."""
        return self.kernel.draws.streams

    @property
    def moves(self) -> bool:
        """Whether an event may be drawn by another item than the one whose turn it is."""
        return self.streams or not self.sure

    @property
    def generator(self) -> Generator:
        return GENERATORS[self.streams]

    def number_type(self) -> list[str]:
        """Return the type of the numbers to draw with."""
        kind = (
            f"typedef struct {{ double number[{self.numbers}]; }} all_numbers{self.suffix};  // to draw with"
        )
        return [kind] if self.numbers else []

    def number_arguments(self) -> list[str]:
        if not self.numbers:
            return []
        kind, name = f"all_numbers{self.suffix}", f"numbers{self.suffix}"
        return [f"{self.dialect.constant}{kind} *{name}" if self.rows else f"const {kind} {name}"]

    @property
    def rounds(self) -> bool:
        """Whether items share the events that are left after each round of candidates."""
        return not (self.sure or self.streams)

    def room(self) -> list[str]:
        """Declare the shared memory of rounds, which a kernel must do at its outermost level."""
        d = self.dialect
        return [
            f"{d.shared}ushort again[2][{TOGETHER} * GROUP];  // events to draw again, in this turn and in the next",
            f"{d.shared}int counts[3];  // how many, in the last turn, in this one and in the next",
        ]

    def generator_text(self) -> list[str]:
        return self.generator.text(self.dialect) if self.kernel.draws.calls else []

    def lines(
        self, event: str, keep: Sequence[str], report: tuple[str, str], streams_before: str = "0"
    ) -> list[str]:
        """Draw all events and count failures, if there can be any.

        ``event`` is the number of event k in its toy, ``keep`` takes its x0, x1, ...
        """
        if self.sure:
            return self.sure_loop(event, keep, streams_before)
        loop = self.stream_loop(event, keep, streams_before) if self.streams else self.round_loop(event, keep)
        return [
            "int overs = 0, fails = 0;",
            *loop,
            f"if (overs) {self.dialect.count_up.format(report[0], 'overs')};",
            f"if (fails) {self.dialect.count_up.format(report[1], 'fails')};",
        ]

    def candidate(self) -> Candidate:
        kernel, names = self.kernel, self.names
        numbers = f"numbers{self.suffix}{'[row]' if self.rows else ''}.number"
        names.know({f"{NUMBER}{k}": f"{numbers}[{k}]" for k in range(self.numbers)})
        calls, used = kernel.draws.calls, kernel.per_event.reads
        body = body_lines(kernel.per_event, names, "double")
        *drawn, accept, above = (names.atom(a) for a in kernel.per_event.results)
        uniforms = [
            f"const double {names.known[name]} = {'event' if number == EVENT else f'uniform[{number}]'};"
            for name, number in zip(kernel.columns, kernel.draws.numbers, strict=True)
            if name in used
        ]
        draws = [self.generator.draw.format(k=k, calls=calls, place=2 * k) for k in range(calls)]
        room = [f"double uniform[{2 * calls}];"] if calls else []
        return Candidate([*room, *draws, *uniforms, *body], drawn, accept, above)

    def sure_loop(self, event: str, keep: Sequence[str], streams_before: str) -> list[str]:
        """Draw each event once."""
        lines, drawn, *_ = self.candidate()
        inside = [
            f"const long event = {event};", *([] if self.streams else ["const int draw = 0;"]), *lines,
            *(f"const double x{k} = {x};" for k, x in enumerate(drawn)), *keep,
        ]  # fmt: skip
        if self.streams:
            return self.each_stream(inside, streams_before)
        return ["for (int k = item; k < count; k += GROUP) {", *indented(inside), "}"]

    def stream_loop(self, event: str, keep: Sequence[str], streams_before: str) -> list[str]:
        """Draw the events of each stream, one after the other."""
        lines, drawn, accept, above = self.candidate()
        attempt = [
            *lines, f"over |= {above} != 0;", f"accepted = {accept} != 0;",
            *(f"if (accepted) x{k} = {x};" for k, x in enumerate(drawn)),
        ]  # fmt: skip
        inside = [
            f"const long event = {event};",
            "int accepted = 0, over = 0;",
            *(f"double x{k} = 0.0;" for k in range(len(drawn))),
            f"for (int draw = 0; draw < {MAX_DRAWS} && !accepted; draw++) {{", *indented(attempt), "}",
            *keep, "overs += over, fails += !accepted;",
        ]  # fmt: skip
        return self.each_stream(inside, streams_before)

    def each_stream(self, inside: Sequence[str], streams_before: str) -> list[str]:
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

    def round_loop(self, event: str, keep: Sequence[str]) -> list[str]:
        """Draw a candidate for each of some events, then again for those without an accepted one, until all have.

        Items share the events that are left, so that none waits while its neighbours draw again. What is stored of a
        rejected candidate is overwritten: conditional stores cost more.
        """
        d = self.dialect
        lines, drawn, accept, above = self.candidate()
        inside = [
            "const int place = draw ? again[turn % 2][n] : n, k = begin + place;",
            f"const long event = {event};",
            *lines,
            *(f"const double x{k} = {x};" for k, x in enumerate(drawn)),
            *keep,
            f"overs += {above} != 0;",
            f"if ({accept} == 0) {{",
            f"    if (draw + 1 < {MAX_DRAWS}) again[(turn + 1) % 2][{d.count_up.format('rejected', '1')}] = place;",
            "    else fails++;",
            "}",
        ]
        return [
            "for (int n = item; n < 3; n += GROUP) counts[n] = 0;",
            d.wait,
            f"for (int begin = 0, turn = 0; begin < count; begin += {TOGETHER} * GROUP) {{",
            f"    int left = min(count - begin, {TOGETHER} * GROUP);",
            "    for (int draw = 0; left > 0; draw++, turn++) {",
            f"        {d.shared}int *rejected = counts + (turn + 1) % 3;",
            "        if (item == 0) counts[(turn + 2) % 3] = 0;",
            "        for (int n = item; n < left; n += GROUP) {",
            *indented(inside, 3),
            "        }",
            f"        {d.wait_memory}",
            "        left = *rejected;",
            "    }",
            "}",
        ]
