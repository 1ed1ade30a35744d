"""Which densities may be infinite: not those of resonances, however their squares are written."""

import numpy as np
import pytest

import morefit as mf
from morefit.model.integrate.cube import sample_points
from morefit.model.integrate.poles import has_poles

X, Y = mf.Observable("x", 0.0, 2.0), mf.Observable("y", 0.0, 2.0)
MASS = mf.Parameter("m", 1.0, 0.5, 1.5)
GAP = X.expr - MASS**2
NONE = {
    "square": GAP**2 + 0.01,
    "product": GAP * GAP + 0.01,
    "scaled product": 3.0 * GAP * GAP + 2.0 * Y.expr**4 + MASS**2,
    "squares of two": GAP * GAP * Y.expr**2 + 0.01,
}
SOME = {
    "difference": GAP + 0.01,
    "two factors": GAP * Y.expr + 0.01,
    "negative": -2.0 * GAP * GAP + 0.01,
    "cube": GAP**3 + 0.01,
    "nothing positive": GAP * GAP + Y.expr**2,
}


def poles_of(base):
    return has_poles(1 / base, sample_points((X, Y), (MASS,)))


@pytest.mark.parametrize("name", NONE)
def test_squares_and_something_positive_do_not_vanish(name):
    assert not poles_of(NONE[name])


@pytest.mark.parametrize("name", SOME)
def test_what_may_vanish_is_a_pole(name):
    assert poles_of(SOME[name])


def test_squares_written_as_products_are_integrated_like_squares():
    """They used to be taken for poles, and every panel between the ridges of resonances had a copy of the density."""
    numbers = []
    for square in (lambda v: v**2, lambda v: v * v):
        width = square(X.expr - 0.7) + 0.002, square(Y.expr - 1.1) + 0.003
        bounded = np.where(X + Y < 3.0, 1 / width[0] + 1 / (width[0] * width[1]), 0.0)
        numbers.append(float(mf.Density(bounded, [X, Y]).integral().number))
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-12)
