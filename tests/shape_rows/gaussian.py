"""Points at which the Gaussian is tested."""

import mpmath as mp
from scipy import stats

import morefit as mf
from shape_rows import Point, Row


def mp_normal(low, high):
    """The integral of exp(-t**2/2), from the side where nothing cancels."""
    if low + high < 0:
        low, high = -high, -low
    root = mp.sqrt(2)
    return mp.sqrt(mp.pi / 2) * (mp.erfc(low / root) - mp.erfc(high / root))


def mp_gaussian(x, low, high, mu, sigma):
    return -(((x - mu) / sigma) ** 2) / 2 - mp.log(sigma * mp_normal((low - mu) / sigma, (high - mu) / sigma))


def gaussian_point(label, mu, sigma, at, low=5.0, high=7.0, **options):
    return Point(label, low, high, {"mu": mu, "sigma": sigma}, at, (sigma, sigma), peaks=(mu,), **options)


def scipy_gaussian(x, low, high, mu, sigma):
    if sigma > 1e3 * (high - low):
        return None
    return stats.truncnorm((low - mu) / sigma, (high - mu) / sigma, mu, sigma).pdf(x)


ROWS = {
    "Gaussian": Row(
        mf.Gaussian,
        mp_gaussian,
        [
            gaussian_point("ordinary", 5.28, 0.06, 5.3),
            gaussian_point("mean in the middle", 6.0, 0.3, 5.3),
            gaussian_point("mean in the middle, wide", 6.0, 3.0, 5.3),
            gaussian_point("mean next to the middle", 6.0 + 1e-9, 0.3, 5.3),
            gaussian_point("mean at the lower edge", 5.0, 0.1, 5.05),
            gaussian_point("mean at the upper edge", 7.0, 0.1, 6.8),
            gaussian_point("narrow", 5.28, 1e-4, 5.2801),
            gaussian_point("20 times wider than the range", 5.5, 40.0, 5.3, scale=20),
            gaussian_point("1000 times wider than the range", 5.5, 2000.0, 5.3, scale=1000),
            gaussian_point("10**4 times wider than the range", 5.5, 2e4, 5.3),
            gaussian_point("10**8 times wider than the range", 6.5, 2e8, 5.3),
            gaussian_point("wide and far away", -1e5, 1e4, 5.3, scale=1e4),
            gaussian_point("10 sigma below", 4.0, 0.1, 5.02, scale=1e4),
            gaussian_point("10 sigma above", 8.0, 0.1, 6.98, scale=1e4),
            gaussian_point("20 sigma below", 3.0, 0.1, 5.02, scale=2e5),
            gaussian_point("20 sigma above", 9.0, 0.1, 6.98, scale=2e5),
            gaussian_point("30 sigma below", 2.0, 0.1, 5.02, scale=1e6, second=False),
            gaussian_point("30 sigma above", 10.0, 0.1, 6.98, scale=1e6, second=False),
            gaussian_point("far off and wide", -15.0, 2.0, 5.3, scale=1e4),
        ],
        scipy_gaussian,
    ),
    "MultivariateGaussian": Row(  # of one observable; of more in test_multivariate_gaussian.py
        lambda x, mu, sigma: mf.shapes.MultivariateGaussian([x], [mu], [[sigma**2]]),
        mp_gaussian,
        [gaussian_point("ordinary", 5.28, 0.06, 5.3), gaussian_point("wide", 6.0, 3.0, 5.3)],
        scipy_gaussian,
    ),
}  # fmt: skip
