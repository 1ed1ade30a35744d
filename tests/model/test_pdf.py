"""The base of every density: what it finds out about itself, and when it may be changed."""

import numpy as np
import pytest

import morefit as mf
from morefit.errors import ModelError


class Bump(mf.Pdf):
    """A density that can be changed, as users may write one."""

    def __init__(self, x, width):
        self.x, self.width = x, width

    def density(self):
        return np.exp(-((self.x / self.width) ** 2))


def test_a_density_may_be_changed_until_it_is_used():
    bump = Bump(mf.Observable("x", -1, 1), 0.5)
    bump.width = mf.Parameter("w", 0.4, 0.1, 1.0)
    assert [p.name for p in bump.parameters] == ["w"]
    with pytest.raises(
        ModelError, match="model: cannot be changed once it has been used, tried to set 'width'; make"
    ):
        bump.width = 0.7


def test_a_density_may_keep_things_for_itself():
    class Counting(Bump):
        def density(self):
            self._calls = getattr(self, "_calls", 0) + 1
            return super().density()

    model = Counting(mf.Observable("x", -1, 1), mf.Parameter("w", 0.4, 0.1, 1.0))
    assert mf.fit(model, mf.generate(model, 500, seed=1)).valid
    assert model._calls > 0
