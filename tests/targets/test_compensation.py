"""What additions of the sums of blocks lose is kept: a sum over millions of events is right to the last digits."""

from math import fsum, log

import numpy as np

import morefit as mf
from tolerances import TOTAL

BLOCK = 4096
BLOCKS = 600


def test_small_logarithms_of_many_blocks_are_not_lost_next_to_a_large_one(fast):
    """Each block after the first adds less than half a unit in the last place of the first."""
    x = mf.Observable("x", 0.5, 2.0)
    large, small = 1.99, 1.0 + 2.0**-52
    columns = np.ones((BLOCKS, BLOCK))
    columns[0] = large
    columns[1:, :900] = small
    likelihood = mf.Likelihood(
        mf.Density(x * mf.Parameter("k", 1.0), [x], integral=1, check=False), columns.ravel(), backend=fast
    )
    first, rest = BLOCK * log(large), (BLOCKS - 1) * 900 * log(small)
    assert 900 * log(small) < 0.5 * np.spacing(first) < rest
    expected = fsum([BLOCK * log(large), rest])
    assert abs(likelihood.value([1.0]) + expected) < 20 * TOTAL * expected
    assert rest > 20 * 2 * TOTAL * expected  # or the test would see nothing
