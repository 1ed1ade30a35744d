"""Extended densities, recursive fractions, and parts of models that are replaced."""

from dataclasses import dataclass

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.model.density import Density
from shape_rows import all_rows

X, Y = mf.Observable("x", 0, 10), mf.Observable("y", 0, 10)
MU, SIGMA, SLOPE, F = (
    mf.Parameter("mu", 5.0, 3, 7),
    mf.Parameter("sigma", 0.5, 0.1, 2),
    mf.Parameter("slope", -0.3, -2, 0),
    mf.Parameter("f", 0.4, 0, 1),
)
PEAK, TAIL = mf.Gaussian(X, MU, SIGMA), mf.Exponential(X, SLOPE)
MODEL = mf.Sum([PEAK, TAIL], fractions=[F], labels=["peak", "tail"])
POINTS = np.linspace(0.1, 9.9, 7)


def assert_same(one, other, values=None):
    np.testing.assert_allclose(one.pdf(POINTS, values), other.pdf(POINTS, values), rtol=1e-12)


# ------------------------------------------------------------------------------------ one density, extended


def test_one_density_with_a_yield_is_extended():
    data = mf.generate(PEAK, 400, seed=1)
    model = mf.Sum([PEAK], yields=[mf.Parameter("n", 100, 0, 1000)])
    result = mf.fit(model, data, tolerance=1e-6)
    assert result.values["n"] == pytest.approx(400, rel=1e-6)
    assert result.errors["n"] == pytest.approx(20, rel=1e-4)
    plain = mf.fit(PEAK, data, tolerance=1e-6)
    assert result.values["mu"] == pytest.approx(plain.values["mu"], rel=1e-6)
    assert_same(model, PEAK)
    assert "n = 100: Gaussian" in str(model)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_an_extended_density_is_drawn_with_a_poisson_number_of_events(backend):
    model = mf.Sum([PEAK], yields=[mf.Parameter("n", 300, 0, 1000)])
    toys = mf.toy_study(model, toys=20, seed=1, backend=backend, progress=False)
    assert toys.valid.all() and 10 < np.std(toys.events) < 30


def test_too_few_densities_are_refused():
    with pytest.raises(mf.ModelError, match="sum: needs at least two densities, got 1"):
        mf.Sum([PEAK], fractions=[])
    with pytest.raises(mf.ModelError, match="sum: needs at least one density, got 0"):
        mf.Sum([], yields=[])


# ------------------------------------------------------------------------------------ recursive fractions


def test_recursive_fractions_are_of_what_is_left():
    third = mf.Uniform(X)
    model = mf.Sum([PEAK, TAIL, third], fractions=[F, 0.5], recursive=True)
    assert_same(model, mf.Sum([PEAK, TAIL, third], fractions=[F, (1 - F) * 0.5]))
    flat = mf.Sum(
        [PEAK, TAIL, third], fractions=[0.9, 0.9], recursive=True
    )  # as plain fractions more than one
    assert flat.integrate({"x": (0, 10)}) == pytest.approx(1)
    assert_same(flat, mf.Sum([PEAK, TAIL, third], fractions=[0.9, 0.09]))


def test_recursive_yields_are_refused():
    with pytest.raises(mf.ModelError, match="sum: only fractions can be recursive, got yields"):
        mf.Sum([PEAK, TAIL], yields=[1, 2], recursive=True)


# ------------------------------------------------------------------------------------ replacing


def test_parameters_are_replaced_by_object_and_by_name():
    other = mf.Parameter("centre", 4.0, 3, 7)
    expected = mf.Sum([mf.Gaussian(X, other, SIGMA), TAIL], fractions=[F])
    for key in (MU, "mu"):
        model = MODEL.replace({key: other})
        assert [p.name for p in model.parameters] == ["centre", "sigma", "slope", "f"]
        assert_same(model, expected)
    assert_same(MODEL.replace({"mu": 4.0}), expected)
    assert_same(
        MODEL.replace({MU: other + 1}), mf.Sum([mf.Gaussian(X, other + 1, SIGMA), TAIL], fractions=[F])
    )
    assert [p.name for p in MODEL.parameters] == ["mu", "sigma", "slope", "f"]


def test_parameters_are_exchanged_at_once():
    assert_same(PEAK.replace({"mu": SIGMA, "sigma": MU}), mf.Gaussian(X, SIGMA, MU))


def test_observables_and_densities_are_replaced():
    assert_same(
        MODEL.replace({X: Y}), mf.Sum([mf.Gaussian(Y, MU, SIGMA), mf.Exponential(Y, SLOPE)], fractions=[F])
    )
    wide = mf.Observable("x", -5, 15)
    assert MODEL.replace({"x": wide}).observables == (wide,)
    lorentz = mf.shapes.BreitWigner(X, MU, SIGMA)
    for key in (PEAK, "peak"):
        model = MODEL.replace({key: lorentz})
        assert_same(model, mf.Sum([lorentz, TAIL], fractions=[F]))
        assert model.labels == ("peak", "tail") and model.pdfs[1] is not None


def test_what_is_shared_stays_shared():
    width = mf.Derived("width", SIGMA * 2)
    model = mf.Product(
        [
            mf.Sum([mf.Gaussian(X, MU, width), mf.Gaussian(X, MU + 1, width)], fractions=[F]),
            mf.Gaussian(Y, MU, width),
        ]
    )
    other = mf.Parameter("other", 0.3, 0.1, 2)
    changed = model.replace({SIGMA: other})
    assert [p.name for p in changed.parameters] == ["mu", "other", "f"]
    result = mf.fit(changed, mf.generate(changed, 500, seed=2))
    assert result.quantities["width"][0] == pytest.approx(2 * result.values["other"])
    assert [p.name for p in model.replace({"width": 1.0}).parameters] == ["mu", "f"]


def test_blinded_parameters_are_replaced_with_their_offsets():
    blind = mf.Gaussian(X, mf.Parameter("mu", 5.0, 3, 7, blind="a phrase"), SIGMA)
    assert_same(blind.replace({"mu": MU}), PEAK)


def test_densities_of_users_are_replaced():
    @dataclass(frozen=True, eq=False)
    class Own(mf.Pdf):
        x: mf.Observable
        scale: mf.Parameter

        def density(self):
            return np.exp(-self.x / self.scale)

    class Plain(mf.Pdf):
        def __init__(self, x, powers):
            self.x, self.powers = x, powers

        def density(self):
            return 1 + self.powers["a"][0] * self.x

    scale = mf.Parameter("scale", 2.0, 1, 9)
    assert_same(Own(X, scale).replace({"scale": 3.0}), Own(X, 3.0))
    assert_same(Plain(X, {"a": [F]}).replace({F: 0.7}), Plain(X, {"a": [0.7]}))
    written = Density(np.exp(-X / scale), X)
    assert_same(written.replace({scale: 3.0}), Density(np.exp(-X / 3.0), X))
    known = Density(1 + F * X, X, integral=10 + 50 * F)
    assert_same(known.replace({F: 0.7}), Density(1 + 0.7 * X, X))
    with pytest.raises(
        mf.ModelError, match="density: has an integral of its own for its old range; write the density anew"
    ):
        known.replace({X: mf.Observable("x", 0, 5)})


def test_wrong_replacements_are_refused():
    with pytest.raises(
        mf.ModelError, match=r"replace: 'mi' is not one part of the model; did you mean 'mu'\?"
    ):
        MODEL.replace({"mi": 1.0})
    with pytest.raises(
        mf.ModelError, match=r"replace: parameter 'mu' is not one part of the model; there are 'mu'"
    ):
        MODEL.replace({mf.Parameter("mu", 4.0): 1.0})
    with pytest.raises(mf.ModelError, match=r"replace: observable 'x' must become an observable, got 3"):
        MODEL.replace({X: 3})
    with pytest.raises(mf.ModelError, match=r"must become a density, got parameter 'mu'"):
        MODEL.replace({PEAK: MU})
    with pytest.raises(mf.ModelError, match=r"expression: takes numbers, observables"):
        MODEL.replace({MU: PEAK})
    with pytest.raises(mf.ModelError, match=r"replace: takes a mapping from old to new parts, got"):
        MODEL.replace([MU])
    with pytest.raises(mf.ModelError, match=r"several parts have this name"):
        mf.Sum([PEAK, TAIL], fractions=[F], labels=["mu", "tail"]).replace({"mu": 1.0})
    with pytest.raises(mf.ModelError, match=r"sum: its densities must share their observables"):
        MODEL.replace({PEAK: mf.Gaussian(Y, MU, SIGMA)})
    with pytest.raises(mf.ModelError, match=r"must not depend on observables"):
        MODEL.replace({MU: X * 2})


@pytest.mark.parametrize("name", [name for name, row in all_rows().items() if row.points[0].values])
def test_parameters_of_every_shape_are_replaced(name):
    row, point = all_rows()[name], all_rows()[name].points[0]
    x = mf.Observable("x", point.low, point.high)
    old = [mf.Parameter(f"old_{n}", v) for n, v in point.values.items()]
    new = [mf.Parameter(n, v) for n, v in point.values.items()]
    changed, expected = row.make(x, *old).replace(dict(zip(old, new, strict=True))), row.make(x, *new)
    assert [p.name for p in changed.parameters] == [p.name for p in expected.parameters]
    at = {"x": point.at, **point.values}
    assert evaluate(changed.density(), at) == evaluate(expected.density(), at)
