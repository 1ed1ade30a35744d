"""Points at which the polynomials are tested."""

import mpmath as mp
import numpy as np
from scipy import stats

import morefit as mf
from shape_rows import Point, Row


def mp_polynomial(x, low, high, *c):
    terms = [1, *c]
    total = mp.fsum(ck * (high ** (k + 1) - low ** (k + 1)) / (k + 1) for k, ck in enumerate(terms))
    return mp.log(mp.fsum(ck * x**k for k, ck in enumerate(terms)) / total)


def scipy_polynomial(x, low, high, *c):
    whole = np.polynomial.Polynomial([1, *c])
    area = whole.integ()
    return whole(x) / (area(high) - area(low))


ROWS = {
    "Polynomial": Row(
        lambda x, c1, c2: mf.Polynomial(x, [c1, c2]),
        mp_polynomial,
        [
            Point("ordinary", -1.0, 1.0, {"c1": 0.3, "c2": -0.2}, 0.4, (1.0, 1.0)),
            Point("zero", -1.0, 1.0, {"c1": 0.0, "c2": 0.0}, 0.4, (1.0, 1.0)),
            Point("far from zero", 5.0, 7.0, {"c1": -0.1, "c2": 0.005}, 5.7, (0.2, 0.03), 20.0),
            Point("almost nothing at an edge", 0.0, 1.0, {"c1": -1 + 1e-9, "c2": 0.0}, 0.9, (0.1, 0.1), 100.0),
        ],
        scipy_polynomial,
    ),
    "Uniform": Row(
        mf.Uniform,
        lambda x, low, high: -mp.log(high - low),
        [Point("ordinary", 5.0, 7.0, {}, 5.5, ()), Point("wide", -1e6, 1e6, {}, 3.0, ())],
        lambda x, low, high: stats.uniform(low, high - low).pdf(x),
    ),
}  # fmt: skip
