"""The base of every density: what it finds out about itself, and when it may be changed."""

import pickle

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


class Waves(mf.Pdf):
    """A density that keeps lists, mappings and arrays."""

    def __init__(self, x, waves, more, table):
        self.x, self.waves, self.more, self.table = x, waves, more, table

    def density(self):
        return 3 + sum(a * np.cos(k * self.x) for k, a in enumerate([*self.waves, 0.1], 1)) * self.table[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.waves.append(0.3),
        lambda m: m.waves.__setitem__(0, 0.3),
        lambda m: m.waves.clear(),
        lambda m: m.more.update(a=1),
        lambda m: m.more.pop("k"),
    ],
)
def test_lists_of_a_used_model_cannot_be_changed(change):
    # this used to change the model under the feet of its likelihoods
    waves, table = [mf.Parameter("a", 0.5), mf.Parameter("b", 0.2)], np.ones(3)
    model = Waves(mf.Observable("x", 0, 2), waves, {"k": [1.0]}, table)
    model.waves.append(0.1)  # not used yet
    before = model.density()
    assert [p.name for p in model.parameters] == ["a", "b"]
    with pytest.raises(
        ModelError, match="model: its lists cannot be changed once it has been used; make a new one"
    ):
        change(model)
    with pytest.raises(ValueError, match="read-only"):
        model.table[0] = 5.0
    waves.append(mf.Parameter("c", 1.0))
    table[:] = 7.0
    assert model.density() is before
    assert pickle.loads(pickle.dumps(model)).density() is before


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda pdf, f: pdf + pdf, r"density 'Gaussian': is not added by \+; write mf\.Sum"),
        (lambda pdf, f: sum([pdf, pdf]), r"is not added by \+"),
        (
            lambda pdf, f: f * pdf + (1 - f) * pdf,
            r"is not multiplied by \*; write mf\.Product.*fractions=\[f\]",
        ),
        (lambda pdf, f: pdf * 0.5, r"is not multiplied by \*"),
    ],
)
def test_issue_operators_between_densities_say_what_to_write(how, message):
    # this used to be a TypeError about operands, for those who know f * pdf + other from elsewhere
    x = mf.Observable("x", 0.0, 1.0)
    with pytest.raises(mf.ModelError, match=message):
        how(mf.Gaussian(x, 0.5, 0.1), mf.Parameter("f", 0.5, 0.0, 1.0))


class Written(mf.Pdf):
    """A density of somebody, with whatever its methods return."""

    def __init__(self, x, formula, area):
        self.x, self.formula, self.area = x, formula, area

    def density(self):
        return self.formula

    def integral(self):
        return self.area


def test_issue_methods_of_written_densities_may_return_numbers():
    """An integral that is a number used to be an error of Python inside the compiler."""
    x = mf.Observable("x", 0.0, 1.0)
    np.testing.assert_allclose(Written(x, 2 * x, np.float64(1.0)).pdf([0.25, 0.5]), [0.5, 1.0])
    with pytest.raises(
        mf.ModelError, match=r"density 'Written': density\(\) must return an expression .*, got None"
    ):
        Written(x, None, 1.0).pdf([0.5])
