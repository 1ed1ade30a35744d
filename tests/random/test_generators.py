"""Random numbers: published words, streams that begin where they should, the same numbers on every backend."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

import morefit as mf
from morefit.expr import ONE, ZERO
from morefit.intervals import neyman_belt
from morefit.kernel.symbols import stream_uniform, uniform
from morefit.pipeline import compile_sampler
from morefit.random.host import Xoshiro256PlusPlus, stream_key
from morefit.random.philox import philox, toy_uniforms, uniforms
from morefit.random.xoshiro import BLOCK, STREAMS, apply, jump_tables, seeded, splitmix64, start, stream_of
from morefit.targets.base import Events
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference

SEED = 0x1234_5678_9ABC_DEF0
SIGMAS = 5.0  # of the few statistical statements here; the thorough ones are in statistics/
WIDTHS = (1, 2, 4, 8)
# as the authors of xoshiro128++ publish them: 2**64 and 2**96 steps as polynomials of one step
JUMP = (0x8764000B, 0xF542D2D3, 0x6FA035C3, 0x77F2DB5B)
LONG_JUMP = (0xB523952E, 0x0B6F099F, 0xCCF5A0EF, 0x1C580662)


def numbers_of(number, count, backend, events, seed=SEED, toy=0):
    """Let a compiled kernel return its random numbers."""
    columns = tuple(number(k) for k in range(count))
    program = compile_sampler(columns, ONE, ZERO, backend).program
    return np.array(
        [c.values for c in program.sample(np.empty((1, 0)), Events.slices([events]), seed, toy).columns]
    )


# ------------------------------------------------------------------------------------------- Philox

# Random123, kat_vectors: counter, key, answer
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_words(counter, key, answer):
    words = philox(tuple(np.array([c], np.uint64) for c in counter), key)
    assert tuple(int(w[0]) for w in words) == answer


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("toy", [0, 7, (1 << 32) + 5])
def test_compiled_philox_is_the_reference(width, toy):
    found = numbers_of(uniform, 4, Cpu(threads=1, width=width), 1003, toy=toy)
    events = np.arange(1003)
    expected = [u for call in (0, 1) for u in uniforms(SEED, toy, events, call)]
    np.testing.assert_array_equal(found, expected)


def test_the_first_uniform_of_all_is_made_of_the_published_words():
    ((first,), (second,)) = numbers_of(uniform, 2, Cpu(threads=1), 1, seed=0)
    a, b, c, d = KNOWN[0][2]
    assert (first, second) == (((a << 21) | (b >> 11)) / 2**53, ((c << 21) | (d >> 11)) / 2**53)


@pytest.mark.parametrize("number", [uniform, stream_uniform])
def test_uniforms_have_53_bits_and_stay_below_one(number):
    scaled = numbers_of(number, 4, Cpu(threads=1), 100_000) * 2.0**53
    np.testing.assert_array_equal(scaled, np.floor(scaled))
    assert scaled.min() >= 0
    assert scaled.max() < 2.0**53
    ones = [np.mean(np.floor(scaled / 2.0**bit) % 2) for bit in range(53)]
    assert np.all(np.abs(np.array(ones) - 0.5) < SIGMAS * 0.5 / np.sqrt(scaled.size))


def test_toys_have_a_number_whichever_are_drawn_together():
    # a word of 64 bits for each toy, of which the number has the upper 53
    words = np.random.Philox(key=SEED).random_raw(40)
    every = toy_uniforms(SEED, np.arange(40))
    assert every.tolist() == [int(w >> np.uint64(11)) / 2**53 for w in words]
    for toys in ([], [7], [3, 4, 5, 6, 7, 8], [39, 0, 1, 2, 17, 18, 5], [6, 6, 7]):
        assert toy_uniforms(SEED, np.array(toys, np.int64)).tolist() == every[toys].tolist()
    far = (1 << 62) + 3  # toys have numbers of up to 63 bits
    ahead = np.random.Philox(key=SEED).advance(1 << 60).random_raw(4)
    assert toy_uniforms(SEED, np.array([far])).tolist() == [int(ahead[3] >> np.uint64(11)) / 2**53]


# ------------------------------------------------------------------------------------- xoshiro128++


def next_word(s):
    """One step of xoshiro128++ as its authors define it, in whole numbers of Python; ``s`` moves on."""
    mask = 0xFFFFFFFF

    def rotate(w, by):
        return (w << by | w >> (32 - by)) & mask

    word = (rotate((s[0] + s[3]) & mask, 7) + s[0]) & mask
    shifted = s[1] << 9 & mask
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = rotate(s[3], 11)
    return word


def jumped(state, polynomial):
    """Go ahead as the authors do: add up the states that the bits of a polynomial name."""
    s, ahead = list(state), [0, 0, 0, 0]
    for word in polynomial:
        for bit in range(32):
            if word >> bit & 1:
                ahead = [a ^ b for a, b in zip(ahead, s, strict=True)]
            next_word(s)
    return ahead


def stream_starts(seed, toy, count):
    """Return the first states of a toy: so many long jumps from the seed, then a jump for each."""
    state = [
        int(half) for w in splitmix64(seed, 0, 2) for half in (w & np.uint64(0xFFFFFFFF), w >> np.uint64(32))
    ]
    for _ in range(toy):
        state = jumped(state, LONG_JUMP)
    states = [state]
    for _ in range(count - 1):
        states.append(jumped(states[-1], JUMP))
    return states


def drawn_by_definition(toy, events, calls, accept=lambda numbers: True):
    """Return the numbers of the accepted candidate of each event; streams take the events of a block in turn."""
    states = stream_starts(SEED, toy, -(-events // BLOCK) * STREAMS)
    rows = []
    for event in range(events):
        s = states[event // BLOCK * STREAMS + event % STREAMS]
        while True:
            pairs = [(next_word(s), next_word(s)) for _ in range(2 * calls)]
            numbers = [((a << 21) | (b >> 11)) / 2**53 for a, b in pairs]
            if accept(numbers):
                break
        rows.append(numbers)
    return np.array(rows)


def test_xoshiro128_gives_the_published_words():
    """The first words from the state 1, 2, 3, 4, as the test of Rust's rand_xoshiro has them."""
    expected = [641, 1573767, 3222811527, 3517856514, 836907274, 4247214768, 3867114732, 1355841295, 495546011, 621204420]  # fmt: skip
    state = [1, 2, 3, 4]
    assert [next_word(state) for _ in range(10)] == expected


@pytest.mark.parametrize(("bit", "polynomial"), [(0, JUMP), (32, LONG_JUMP)], ids=["jump", "long jump"])
@pytest.mark.parametrize("seed", [0, 1, SEED])
def test_jumps_are_those_of_the_authors(bit, polynomial, seed):
    state = seeded(seed)
    assert apply(jump_tables()[bit], state).tolist() == jumped(state.tolist(), polynomial)


def bits_of(states):
    """States of xoshiro128++ as columns of bits."""
    bytes_of = np.ascontiguousarray(states, "<u4").view(np.uint8)
    return np.unpackbits(bytes_of, axis=-1, bitorder="little").T.astype(np.float64)


def test_the_jumps_of_every_bit_are_so_many_steps():
    """A step is linear in the bits of the state, so 2**n of them are a matrix squared n times."""
    ones = [[1 << k % 32 if k // 32 == word else 0 for word in range(4)] for k in range(128)]
    for state in ones:
        next_word(state)
    power, states = bits_of(np.array(ones)), np.stack([seeded(s) for s in range(5)])
    for _ in range(64):
        power = power @ power % 2
    for table in jump_tables():
        np.testing.assert_array_equal(bits_of(apply(table, states)), power @ bits_of(states) % 2)
        power = power @ power % 2


@pytest.mark.parametrize("toy", [0, 1, 6])
def test_streams_begin_a_jump_apart_and_toys_a_long_jump(toy):
    assert start(SEED, toy, 70).tolist() == stream_starts(SEED, toy, 70)


@pytest.mark.parametrize("toy", [2**32 - 2, 2**32 + 5])
def test_streams_of_high_toys_begin_a_long_jump_apart_too(toy):
    here, there = (start(SEED, t, 1)[0].tolist() for t in (toy, toy + 1))
    assert jumped(here, LONG_JUMP) == there


def test_after_as_many_toys_as_there_are_long_jumps_the_seed_gives_its_next_words():
    """2**32 long jumps lead back, up to one step: the same numbers would come again."""
    here, again = start(SEED, 0, 1)[0].tolist(), start(SEED, 2**32, 1)[0].tolist()
    next_word(here)
    assert here != again
    words = splitmix64(SEED, 2, 2)
    assert again == [int(h) for w in words for h in (w & np.uint64(0xFFFFFFFF), w >> np.uint64(32))]


def test_streams_take_the_events_of_a_block_in_turn():
    events = np.arange(3 * BLOCK)
    streams = stream_of(events)
    assert np.bincount(streams).tolist() == [BLOCK // STREAMS] * 3 * STREAMS
    np.testing.assert_array_equal(streams // STREAMS, events // BLOCK)
    np.testing.assert_array_equal(streams[:STREAMS], np.arange(STREAMS))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("events", [1, 19, BLOCK + 100])
def test_compiled_xoshiro_follows_its_definition(width, events):
    found = numbers_of(stream_uniform, 5, Cpu(threads=1, width=width), events, toy=3)
    np.testing.assert_array_equal(found.T, drawn_by_definition(3, events, 3)[:, :5])


@pytest.mark.parametrize("backend", [*(Cpu(threads=1, width=w) for w in WIDTHS), Reference()], ids=str)
def test_an_event_goes_on_in_its_stream_after_the_candidates_of_the_one_before(backend):
    number = stream_uniform(0)
    program = compile_sampler((number,), number < 0.3, ZERO, backend).program
    (found,) = program.sample(np.empty((1, 0)), Events.slices([500]), SEED, 0).columns
    expected = drawn_by_definition(0, 500, 1, lambda numbers: numbers[0] < 0.3)
    np.testing.assert_array_equal(found.values, expected[:, 0])


@pytest.mark.parametrize("number", [uniform, stream_uniform])
@pytest.mark.parametrize("toy", [0, 7, 2**31 + 3, 2**33 + 5])
def test_the_reference_draws_the_same_numbers(number, toy):
    fast, plain = (numbers_of(number, 3, b, 2 * BLOCK + 77, toy=toy) for b in (Cpu(), Reference()))
    np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("toys", [1, 40])
def test_no_two_events_have_a_number_of_xoshiro_in_common(toys):
    program = compile_sampler((stream_uniform(0), stream_uniform(1)), ONE, ZERO, Cpu()).program
    drawn = program.sample(np.empty((toys, 0)), Events.slices([BLOCK + 500] * toys), SEED, 0)
    numbers = np.concatenate([c.values for c in drawn.columns])
    assert len(np.unique(numbers)) == len(numbers)


# ------------------------------------------------------------------------------------- xoshiro256++


def test_xoshiro256_gives_the_published_words():
    """The first words from the state 1, 2, 3, 4, as the test of Rust's rand_xoshiro has them."""
    streams = Xoshiro256PlusPlus(np.array([1, 2, 3, 4], np.uint64))
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
                9973669472204895162, 14011001112246962877, 12406186145184390807]  # fmt: skip
    assert [int(streams.words()[0]) for _ in range(8)] == expected


def test_splitmix_gives_the_published_words():
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(w) for w in splitmix64(1234567, 0, 4)] == expected
    assert [int(w) for w in splitmix64(1234567, 2, 2)] == expected[2:]


def step_matrix():
    """One step of xoshiro256 on each of the 256 unit states, as a matrix of bits."""
    unit = np.zeros((4, 256), np.uint64)
    for k in range(256):
        unit[k // 64, k] = np.uint64(1) << np.uint64(k % 64)
    streams = Xoshiro256PlusPlus(unit)
    streams.words()
    return state_bits(streams.state)


def state_bits(state):
    places = np.arange(64, dtype=np.uint64)
    return ((state[:, None, :] >> places[:, None]) & np.uint64(1)).reshape(256, -1).astype(np.float64)


def test_a_jump_is_so_many_steps():
    """A step is linear in the bits of the state, so 2**128 of them are a matrix squared 128 times."""
    power = step_matrix()
    for _ in range(128):
        power = power @ power % 2
    streams = Xoshiro256PlusPlus(splitmix64(5, 0, 12).reshape(4, 3))
    before = state_bits(streams.state)
    streams.jump()
    np.testing.assert_array_equal(state_bits(streams.state), power @ before % 2)


def test_streams_of_toys_do_not_share_their_seeds():
    states = [Xoshiro256PlusPlus.seeded(3, toy).state for toy in range(4)]
    assert len(np.unique(np.concatenate(states, axis=1))) == 4 * states[0].size


# ------------------------------------------------------------------------------------ streams


def drawn_with(seed):
    """Return the sums of x of the first toy of everything that draws toys with a seed, and of ``generate``."""
    x = mf.Observable("x", -5.0, 5.0)
    model = mf.Gaussian(x, mf.Parameter("mu", 0.0, -1.0, 1.0), 1.0)

    def total(data, values=None):
        return float(np.sum(data["x"]))

    options = {"toys": 1, "events": 100, "seed": seed, "progress": False}
    belt = neyman_belt(model, "mu", [0.0], estimator=total, **options)
    return {
        "generate": total(mf.generate(model, 100, seed=seed)),
        "toy study": float(mf.toy_study(model, statistic=total, **options).statistics["statistic"][0]),
        "belt": float(belt.estimates[0, 0]),
    }


def test_everything_that_draws_toys_has_a_stream_of_its_own():
    # toy 0 of a study used to be what generate draws with the same seed
    found = drawn_with(1)
    assert len(set(found.values())) == len(found)
    assert found == drawn_with(1)


def test_the_number_of_events_of_a_toy_has_a_stream_of_its_own():
    x = mf.Observable("x", -5.0, 5.0)
    yields = [mf.Parameter(name, 1e4, 0.0, 1e5) for name in ("narrow", "wide")]
    model = mf.Sum([mf.Gaussian(x, 0.0, 1.0), mf.Gaussian(x, 0.0, 3.0)], yields=yields)
    toys = mf.toy_study(model, toys=2, seed=1, progress=False)
    assert toys.events[0] != len(mf.generate(model, seed=1))


def test_keys_of_streams_are_those_recorded():
    # studies of one version must not change with the machine: SHA-256 of "toy study 1" begins with these bytes
    assert (
        stream_key(1, "toy study")
        == 0xF32F29D539C87A96
        == int.from_bytes(sha256(b"toy study 1").digest()[:8], "little")
    )
    keys = {stream_key(seed, purpose) for seed in (0, 1, 2**64 - 1) for purpose in ("toy study", "bootstrap")}
    assert len(keys) == 6
    assert all(0 <= key < 2**64 for key in keys)
