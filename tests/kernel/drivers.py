"""Drivers that use every construct of their language: each reads a record and two whole numbers, and writes into it."""

import math
from math import inf, isfinite, nan, sqrt

from morefit.kernel.program import Layout, Record, Vector, parallel

SIZE = 6
OUTPUTS = 16
QUARTER = 0.25
TURNS = 3
NEVER = False


class Box(Record):
    """Numbers to work on, and space for results."""

    a: float
    b: float
    v: Vector  # (SIZE,)
    out: Vector  # (OUTPUTS,)


LAYOUT = Layout((("a", None), ("b", None), ("v", SIZE), ("out", OUTPUTS)))


def arithmetic(box: Box, i: int, j: int) -> None:
    a, b = box.a, box.b
    box.out[0] = a + b
    box.out[1] = a - b
    box.out[2] = a * b
    box.out[3] = a / b
    box.out[4] = -a
    box.out[5] = 2 * a - 3
    box.out[6] = 1 / (a * a + 1)
    box.out[7] = a - (b - box.v[0]) / (2 * b)
    box.out[8] = a + i - j * b
    box.out[9] = a * math.pi


def whole_numbers(box: Box, i: int, j: int) -> None:
    box.out[0] = i + j
    box.out[1] = i - j
    box.out[2] = -i * j
    box.out[3] = i // j
    box.out[4] = i % j
    box.out[5] = i / j
    box.out[6] = abs(i)
    box.out[7] = min(i, j)
    box.out[8] = max(i, j)
    box.out[9] = int(i / j)
    box.out[10] = int(-0.5 * i)
    box.out[11] = float(i) / 3
    box.out[12] = int(i) * 2 * 3
    box.out[13] = (i + 3) // 2 % 5


def comparisons(box: Box, i: int, j: int) -> None:
    a, b = box.a, box.b
    box.out[0] = 1.0 if a < b else 0.0
    box.out[1] = 1.0 if a <= b else 0.0
    box.out[2] = 1.0 if a > b else 0.0
    box.out[3] = 1.0 if a >= b else 0.0
    box.out[4] = 1.0 if a == b else 0.0
    box.out[5] = 1.0 if a != b else 0.0
    box.out[6] = 1.0 if a < b <= box.v[0] < box.v[1] else 0.0
    box.out[7] = 1.0 if -1 < i < j else 0.0
    box.out[8] = 1.0 if i == j else 0.0
    box.out[9] = 1.0 if i < a else 0.0
    box.out[10] = 1.0 if (i < j) == (a < b) else 0.0
    box.out[11] = 1.0 if (i < j) != (a < b) else 0.0


def conditions(box: Box, i: int, j: int) -> None:
    up = box.a < box.b
    even = i % 2 == 0
    box.out[0] = 1.0 if up and even else 0.0
    box.out[1] = 1.0 if up or even else 0.0
    box.out[2] = 1.0 if not up else 0.0
    box.out[3] = 1.0 if not (up and not even) or (j > 0 and i > 0 and even) else 0.0
    box.out[4] = 1.0 if bool(up) else 0.0
    up = up and isfinite(box.a)
    up = NEVER or up
    box.out[5] = 1.0 if up else 0.0


def functions(box: Box, i: int, j: int) -> None:
    a, b = box.a, box.b
    box.out[0] = sqrt(abs(a))
    box.out[1] = abs(b)
    box.out[2] = min(a, b)
    box.out[3] = max(a, b)
    box.out[4] = min(b, a)
    box.out[5] = max(b, i)
    box.out[6] = 1.0 if isfinite(a / b) else 0.0
    box.out[7] = float(a)
    box.out[8] = sqrt(abs(i))
    box.out[9] = min(max(a, -QUARTER), QUARTER)


def choices(box: Box, i: int, j: int) -> None:
    a = box.a if i > 0 else box.b
    k = i if i > j else j
    mixed = i if i > j else 0.5
    up = i > j if a > 0 else i < j
    box.out[0] = a
    box.out[1] = k // 2
    box.out[2] = mixed
    box.out[3] = 1.0 if up else -1.0 if i == j else 0.0
    v = box.v if i > 0 else box.out
    box.out[4] = v[0]


def tuples(box: Box, i: int, j: int) -> None:
    a, b, k = box.a, box.b, i
    a, b = b, a
    box.out[0], box.out[1] = a, b
    box.out[0], box.out[1], k = box.out[1], box.out[0], k + 1
    box.a, box.b = box.b, box.a
    box.out[2] = k
    new, a = a * 2, a + 1
    box.out[3] = new + a


def augmented(box: Box, i: int, j: int) -> None:
    a = box.a
    a += 1
    a -= box.b
    a *= a
    a /= 3
    box.out[0] = a
    k = i
    k += 7
    k //= 2
    k %= 5
    k *= j
    box.out[1] = k
    box.v[1] += box.v[2] * a
    box.v[k - k + 2] *= 2
    box.b -= 0.5
    box.b /= 1.5


def counted(box: Box, i: int, j: int) -> None:
    for k in range(SIZE):
        box.out[k] = box.v[k] * k
    for k in range(1, SIZE - 1):
        box.out[k] += box.v[k - 1] + box.v[k + 1]
    for k in range(SIZE - 1, -1, -1):
        box.out[6] = box.out[6] / 2 + box.v[k]
    for k in range(0, SIZE, 2):
        box.out[7] += box.v[k]
    for k in range(5, 0, -TURNS):
        box.out[8] += box.v[k]
    for k in range(i, j):
        box.out[9] += k
    for k in range(j, i, -2):
        box.out[10] += k * 0.5
    total = 0
    for first in range(4):
        for second in range(first + 1):
            total += first * second
    box.out[11] = total


def moving_ends(box: Box, i: int, j: int) -> None:
    end = SIZE
    for k in range(end):  # runs to the end that it began with
        end -= 1
        box.out[k] = box.v[k] + end
    k = 2
    for second in range(k, SIZE):
        k += second
    box.out[7] = k


def waiting(box: Box, i: int, j: int) -> None:
    x = abs(box.a)
    turns = 0
    while x > QUARTER and turns < 40:
        x /= 2
        turns += 1
        if x < 1:
            continue
        box.out[0] += x
    box.out[1] = turns
    while True:
        turns -= 1
        if turns < 0:
            break
        box.out[2] += turns
    k = 0
    while k < SIZE and box.v[k] > 0:
        k += 1
    box.out[3] = k


def leaving_loops(box: Box, i: int, j: int) -> None:
    for k in range(SIZE):
        if box.v[k] < -1:
            break
        if box.v[k] < 0:
            continue
        for m in range(k, SIZE):
            if box.v[m] > 1:
                break
            box.out[k] += 1
        box.out[6] += box.v[k]


def early_return(box: Box, i: int, j: int) -> None:
    box.out[0] = 1.0
    if i > j:
        return
    box.out[0] = 2.0
    for k in range(SIZE):
        while box.v[k] > 0:
            box.out[1] = k
            if k > 1:
                return
            box.v[k] -= 1
    box.out[2] = 3.0


def sign(x: float) -> float:
    if x > 0:
        value = 1
    elif x < 0:
        value = -1
    else:
        return 0
    return value


def larger(i: int, j: int) -> int:
    return max(i, j)


def first_above(v: Vector, size: int, limit: float) -> int:
    for k in range(size):
        if v[k] > limit:
            return k
    return -1


def between(x: float, low: float, high: float) -> bool:
    return low <= x <= high


def scale(v: Vector, size: int, by: float) -> None:
    for k in range(size):
        v[k] *= by


def shift(box: Box, by: float) -> None:
    box.a += by
    for k in range(len(box.v)):
        box.v[k] += by


def entry_of(r1: float, entry: float, then1: int) -> float:
    return r1 - entry * then1


def calls(box: Box, i: int, j: int) -> None:
    box.out[0] = sign(box.a) + sign(i)
    box.out[1] = larger(larger(i, 2), j)
    box.out[2] = 1.0 if between(box.a, low=-1, high=box.b) and not between(i, 0, 3) else 0.0
    scale(box.v, SIZE, 2)
    scale(by=box.b, v=box.v, size=larger(1, 2))
    shift(box, by=i)
    sign(box.b)
    box.out[3] = entry_of(box.a, box.b, j)
    box.out[4] = first_above(box.v, len(box.v), 1)


def count_up(box: Box, by: float) -> bool:
    box.out[0] += by
    return by > 2


def only_where_needed(box: Box, i: int, j: int) -> None:
    if i > 0 and count_up(box, 1):
        box.out[1] = 1
    if i > 0 or count_up(box, 10):
        box.out[2] = 1
    box.out[3] = 1.0 if count_up(box, 100) else 0.0
    box.out[4] = sign(box.a) if i > 3 and count_up(box, 1000) and j > 0 else box.b
    zero = i - i
    box.out[5] = 1.0 if zero != 0 and j // zero > 0 else 0.0
    box.out[6] = j % zero if zero != 0 else j
    for k in range(SIZE):
        if box.v[k] > 0 and count_up(box, box.v[k]):
            break


def lengths(box: Box, i: int, j: int) -> None:
    n = len(box.v)
    box.out[0] = n + len(box.out)
    for k in range(len(box.v)):
        box.out[1] += box.v[k] / n


def constants(box: Box, i: int, j: int) -> None:
    box.out[0] = QUARTER
    box.out[1] = TURNS * 2 - 1
    box.out[2] = inf
    box.out[3] = -inf
    box.out[4] = nan
    box.out[5] = 1e-300
    box.out[6] = 0.1 + 1e300
    box.out[7] = 1.0 if NEVER else -0.0
    box.out[8] = 1.0 if box.a < inf else 2.0


def aliases(box: Box, i: int, j: int) -> None:
    v = box.v
    w = box.out
    for k in range(SIZE):
        w[k] = v[SIZE - 1 - k]
    v = box.out
    v[0] = v[1] + v[int(box.v[0] - box.v[0]) + 2]


def names_of_other_languages(box: Box, i: int, j: int) -> None:
    half, double, kernel = 0.5 * box.a, 2 * box.b, i
    if kernel > 0:
        half = double
    local = half * double
    box.out[0] = local
    box.out[1] = half


def changed_on_some_ways(box: Box, i: int, j: int) -> None:
    """Variables and arguments that branches, loops and sides of conditions change or read first."""
    x = box.a
    last = 0
    if i > 0:
        i += 1
        x = 2.0
    else:
        box.out[4] = x
    box.out[0] = i + x
    for k in range(SIZE):
        if box.v[k] > 0:
            last = k
            continue
        x += last
        if k > 3:
            break
        last = j
    box.out[1] = x + last
    while j > 0:
        y = x
        j -= 3
        x = 0.5 * y
    box.out[5] = x if i > 0 and larger(j, i) > 2 else last
    box.out[2] = x + j + last
    if i < 0 or larger(last, i) > 2:
        last += 1
    box.out[3] = last + (x if i > 3 and larger(j, i) > 4 else i)


def parallel_turns(box: Box, i: int, j: int) -> None:
    n = len(box.v)
    for k in parallel(n):
        total = box.a
        for m in range(k + 1):
            total += sign(box.v[m])
        box.out[k] = total
    box.a += 1.0
    for k in parallel(1, n):
        if box.v[k] > 0.0:
            continue
        box.v[k] -= box.out[k - 1] * box.a
    for k in range(n):
        box.b += box.v[k]


def parallel_turns_inside(box: Box, i: int, j: int) -> None:
    n = len(box.v)
    for k in parallel(n):
        scale = 1.0 + k
        for m in parallel(2):
            part = scale * box.v[k] + m
            box.out[2 * k + m] = part
    for k in parallel(1 + abs(i) % 3, n):  # of another number of turns
        part = box.a + k
        if box.v[k] > 0.0:
            for m in parallel(1):
                box.v[k] = sqrt(box.v[k]) * part + m


DRIVERS = (
    arithmetic, whole_numbers, comparisons, conditions, functions, choices, tuples, augmented, counted, moving_ends,
    waiting, leaving_loops, early_return, calls, only_where_needed, lengths, constants, aliases, names_of_other_languages,
    parallel_turns, parallel_turns_inside, changed_on_some_ways,
)  # fmt: skip
