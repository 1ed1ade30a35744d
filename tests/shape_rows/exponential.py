"""Points at which the exponential is tested."""

import mpmath as mp
from scipy import stats

import morefit as mf
from shape_rows import Point, Row


def mp_exponential(x, low, high, slope):
    if slope == 0:
        return -mp.log(high - low)
    return slope * (x - low) - mp.log(mp.expm1(slope * (high - low)) / slope)


def exponential_point(slope, low, high):
    width = high - low
    unit = 1 / max(1 / width, abs(slope))
    # the exponent is rounded to its own size, and each derivative by the slope brings a factor of the width
    scale = max(1.0, abs(slope) * width) ** 2
    return Point(
        f"slope {slope:g} on [{low:g}, {high:g}]",
        low,
        high,
        {"slope": slope},
        low + 0.3 * width,
        (unit,),
        scale,
    )


def scipy_exponential(x, low, high, slope):
    if slope == 0:
        return stats.uniform(low, high - low).pdf(x)
    rising = slope > 0
    scale = 1 / abs(slope)
    falling = stats.truncexpon((high - low) / scale, 0, scale)
    return falling.pdf(high - x if rising else x - low)


SLOPES = [0.0, *(s * 10.0**-k for k in (3, 5, 8, 10, 12) for s in (1, -1)), 1.0, -1.0, 0.5, -2.0]


ROWS = {
    "Exponential": Row(
        mf.Exponential,
        mp_exponential,
        [exponential_point(s, *r) for r in ((5.0, 7.0), (0.0, 1.0), (5000.0, 5600.0)) for s in SLOPES]
        + [exponential_point(s, 5000.0, 5600.0) for s in (30.0, -30.0)],
        scipy_exponential,
    ),
}  # fmt: skip
