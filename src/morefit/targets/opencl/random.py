"""Random numbers in OpenCL C: Philox4x32-10 and xoshiro128++, drawn two at a time."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.random.philox import BUMPS, MULTIPLIERS, ROUNDS
from morefit.random.xoshiro import GOLDEN, HALF_BYTES
from morefit.targets.opencl.dialect import Dialect


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
