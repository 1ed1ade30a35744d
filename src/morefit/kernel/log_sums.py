"""A sum of logarithms as the logarithm of a product of mantissas and a sum of binary exponents: its constants."""

from __future__ import annotations

from morefit.kernel.ir import Reduce

MANTISSA, EXPONENT_ONE = (1 << 52) - 1, 1023 << 52
SMALLEST, RANGE = 1 << 52, 0x7FE0000000000000  # bits of the smallest normal number; how far up to infinity
BIAS = 1022  # (bits - SMALLEST) >> 52 is the exponent of a number with its mantissa in [1, 2), plus this
LN2_HIGH = float.fromhex("0x1.62e43p-1")  # 21 bits: its product with a whole number below 2**32 is exact
LN2_LOW = float.fromhex("-0x1.05c610ca86c39p-29")

# numbers that a block's partial result of each kind takes: ADD a sum; EXACT a sum and its correction; LOG a
# logarithm, a binary exponent and whether a density was bad
WORDS = {Reduce.ADD: 1, Reduce.EXACT: 2, Reduce.LOG: 3}
