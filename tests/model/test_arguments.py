"""Arguments of densities are what their fields declare; errors name the argument."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import morefit as mf
from morefit.expr import evaluate
from morefit.model import shapes
from morefit.model.arguments import Number, Positive, declared_arguments
from tolerances import FEW_ROUNDINGS

X, Y = mf.Observable("x", 0.0, 2.0), mf.Observable("y", -1.0, 1.0)
MU, SIGMA = mf.Parameter("mu", 1.0, 0.0, 2.0), mf.Parameter("sigma", 0.3, 0.01, 1.0)


@pytest.mark.parametrize("name", shapes.__all__)
def test_every_shape_declares_all_its_arguments(name):
    kind = getattr(shapes, name)
    assert set(declared_arguments(kind)) == set(kind.__dataclass_fields__)


WRONG = [
    (lambda: mf.Gaussian(MU, X, SIGMA), "'Gaussian': argument 'x' must be an observable, got parameter 'mu'; the order is Gaussian"),
    (lambda: mf.Gaussian(X, Y, SIGMA), "argument 'mu' must be a number, a parameter or .*, got observable 'y'; the order is"),
    (lambda: mf.Gaussian(X, MU, X), "argument 'sigma' must be a number, .*, got observable 'x'"),
    (lambda: mf.Gaussian(X, MU, "sigma"), "argument 'sigma' must be a number, .*, got 'sigma'"),
    (lambda: mf.Gaussian("x", MU, SIGMA), "argument 'x' must be an observable, got 'x'"),
    (lambda: mf.Gaussian(X + 1, MU, SIGMA), r"argument 'x' must be an observable, got expression '1 \+ x'"),
    (lambda: mf.Gaussian(X, MU, -1), "'Gaussian': argument 'sigma' must be positive, got -1"),
    (lambda: mf.Gaussian(X, MU, 0.0), "argument 'sigma' must be positive, got 0"),
    (lambda: mf.Gaussian(X, np.nan, SIGMA), "argument 'mu' must be finite, got nan"),
    (lambda: mf.Gaussian(X, MU, mf.Parameter("s", -0.1)), "'sigma' must be positive, got 's', which is -0.1 at its start; choose"),
    (lambda: mf.Gaussian(X, MU, MU - 1), "got 'mu - 1', which is 0 at the start of 'mu'; choose another start"),
    (lambda: mf.Gaussian(X, MU + SIGMA * Y, SIGMA), "'mu' must not depend on observables, got .* with 'y'; .*conditional"),
    (lambda: mf.CrystalBall(X, MU, SIGMA, 0, 2), "'CrystalBall': argument 'alpha' must be different from zero, got 0"),
    (lambda: mf.CrystalBall(X, MU, SIGMA, mf.Parameter("a", 0.0), 2), "argument 'alpha' must be different from zero, got 'a'"),
    (lambda: mf.CrystalBall(X, MU, SIGMA, 1, 0), "argument 'n' must be positive, got 0"),
    (lambda: mf.CrystalBall(X, MU, 0.0, 1, 2), "argument 'sigma' must be positive, got 0"),
    (lambda: mf.Exponential(MU, X), "'Exponential': argument 'x' must be an observable, got parameter 'mu'"),
    (lambda: mf.Polynomial(X, [MU, Y]), r"'Polynomial': argument 'coefficients\[1\]' must be a number, .*, got observable 'y'"),
    (lambda: mf.Polynomial(X, "abc"), "argument 'coefficients' must be a list, got 'abc'"),
    (lambda: mf.shapes.PowerLaw(X, MU), r"density 'PowerLaw': observable 'x' must lie in \[1e-300, inf\], got the range \[0, 2\]; choose"),
    (lambda: mf.shapes.LogNormal(Y, MU, SIGMA), r"'LogNormal': observable 'y' must lie in \[0, inf\], got the range \[-1, 1\]; choose"),
    (lambda: mf.shapes.Gamma(Y, MU, SIGMA), r"'Gamma': observable 'y' must lie in \[0, inf\]"),
    (lambda: mf.shapes.ChiSquare(Y, MU), r"'ChiSquare': observable 'y' must lie in \[0, inf\]"),
    (lambda: mf.shapes.Weibull(Y, MU, SIGMA), r"'Weibull': observable 'y' must lie in \[0, inf\]"),
    (lambda: mf.shapes.Beta(X, MU, SIGMA), r"'Beta': observable 'x' must lie in \[0, 1\], got the range \[0, 2\]; choose"),
    (lambda: mf.shapes.Bernstein(X, [1, MU], positive=1), "density 'Bernstein': argument 'positive' must be True or False, got 1"),
    (lambda: mf.shapes.Bernstein(X, [1]), "density 'Bernstein': needs at least 2 coefficients, got 1; use mf.Uniform for none"),
    (lambda: mf.shapes.Chebyshev(X, []), "density 'Chebyshev': needs at least 1 coefficient, got 0; use mf.Uniform"),
    (lambda: mf.shapes.Legendre(X, []), "density 'Legendre': needs at least 1 coefficient, got 0; use mf.Uniform"),
    (lambda: mf.shapes.ExponentialOfPolynomial(X, []), "'ExponentialOfPolynomial': needs at least 1 coefficient, got 0; use"),
    (lambda: mf.shapes.Tsallis(Y, 1, MU, SIGMA), r"'Tsallis': observable 'y' must lie in \[0, inf\]"),
    (lambda: mf.shapes.Cruijff(X, MU, 1, 1, -0.1, 0), "'Cruijff': argument 'alpha_left' must be zero or positive, got -0.1"),
    (lambda: mf.shapes.Decay(X, 1, [0.1, -1]), r"'Decay': argument 'sigma\[1\]' must be positive, got -1"),
    (lambda: mf.shapes.Decay(X, 1, [0.1, 0.2]), "density 'Decay': 2 widths need 1 fraction, got 0; give a fraction for each but the last"),
    (lambda: mf.shapes.Decay(X, 1, 0.1, fractions=0.5), "'Decay': 1 width needs 0 fractions, got 1; give a fraction for each but"),
    (lambda: mf.shapes.BDecay(X, 1, sigma=0.1, mean=[0, 1]), "'BDecay': 1 width needs 0 or 1 means, got 2; give one for all, or one for each"),
    (lambda: mf.shapes.PhaseSpace(X, 1, 2, 2.5, 4), "'PhaseSpace': argument 'particles' must be a whole number from 2 on, got 2.5"),
    (lambda: mf.shapes.PhaseSpace(X, 1, 2, 3, 3), "density 'PhaseSpace': particles must be numbers, fewer than in total, got 3 of 3; use a"),
    (lambda: mf.Uniform(MU), "'Uniform': argument 'x' must be an observable, got parameter 'mu'"),
    (lambda: mf.physics.KstarMuMu(X, Y, mf.Observable("z", 0, 1), 1.2, *[0.0] * 7), "argument 'FL' must be between 0 and 1, got 1.2"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_an_argument_that_does_not_belong_is_named(make, message):
    # these used to be accepted and to fit "valid" with wrong numbers
    with pytest.raises(mf.ModelError, match=message):
        make()


@pytest.mark.parametrize(
    "number", [1, np.int8(1), np.float32(1), Fraction(1), Decimal(1), np.array(1.0), True]
)
def test_numbers_of_any_kind_are_arguments(number):
    model = mf.Gaussian(X, number, 0.5)
    assert evaluate(model.density(), {"x": 1.0}) == 1.0


def test_a_polynomial_may_have_one_coefficient_alone():
    assert mf.Polynomial(X, MU).coefficients == (MU.expr,)


def test_a_polynomial_that_overflows_is_refused():
    # this used to be a bare OverflowError
    with pytest.raises(
        mf.ModelError, match=r"polynomial: big\*\*2 is too large for a number on .*; use other units"
    ):
        mf.Polynomial(mf.Observable("big", 0.0, 1e200), [MU])


@dataclass(frozen=True, eq=False)
class Decay(mf.Pdf):
    """A density of a user, declared as those of the library are."""

    t: mf.Observable
    tau: Positive
    shift: Number = 0.0

    def density(self):
        return np.exp(-(self.t - self.shift) / self.tau)


def test_own_densities_are_checked_by_declaring():
    with pytest.raises(mf.ModelError, match="'Decay': argument 'tau' must be positive, got -2"):
        Decay(X, -2)
    with pytest.raises(
        mf.ModelError, match="argument 't' must be an observable, got parameter 'mu'; the order is Decay"
    ):
        Decay(MU, X)
    assert [p.name for p in Decay(X, MU).parameters] == ["mu"]


class Sliding(mf.Pdf):
    """A density whose integral leaves out an observable."""

    def __init__(self, x, mean):
        self.x, self.mean = x, mean

    def density(self):
        return np.exp(-((self.x - self.mean) ** 2))

    def integral(self):
        return 1 + self.mean**2


@pytest.mark.parametrize("build", [lambda pdf: pdf, lambda pdf: mf.Sum([pdf, pdf], fractions=[0.5])])
def test_an_integral_must_not_depend_on_an_observable(build):
    # generate and plot used to die of it in ValueError and KeyError
    with pytest.raises(
        mf.ModelError, match="'Sliding': its integral must not depend on observables, got one with 'y'"
    ):
        mf.Likelihood(build(Sliding(X, 2 * Y)), {"x": np.ones(3), "y": np.zeros(3)})


# ------------------------------------------------------------------------- sums, products, formulas

PARTS = [mf.Gaussian(X, MU, SIGMA), mf.Uniform(X)]
WRONG_SUMS = [
    (lambda: mf.Sum(PARTS, fractions=[1.2]), r"sum: fractions\[0\] must be between 0 and 1, got 1.2"),
    (lambda: mf.Sum(PARTS, fractions=[-0.1]), r"sum: fractions\[0\] must be between 0 and 1, got -0.1"),
    (lambda: mf.Sum(PARTS, fractions=[mf.Parameter("f", 2.0)]), r"fractions\[0\] must be between 0 and 1, got 'f', which is 2 at its start"),
    (lambda: mf.Sum(PARTS, fractions=["f"]), r"sum: fractions\[0\] must be a number, .*, got 'f'"),
    (lambda: mf.Sum(PARTS, fractions="f"), "sum: fractions must be a list, got 'f'"),
    (lambda: mf.Sum(PARTS, fractions=[X / 2]), r"sum: fractions\[0\] must not depend on observables, got .* with 'x'"),
    (lambda: mf.Sum([*PARTS, PARTS[1]], fractions=[0.6, 0.6]), "sum: fractions must add up to 1 at most, got 1.2"),
    (lambda: mf.Sum(PARTS, yields=[10, -1]), r"sum: yields\[1\] must be zero or positive, got -1"),
    (lambda: mf.Sum(PARTS[0], fractions=[0.5]), "sum: needs at least two densities, got 1"),
    (lambda: mf.Sum(5.0, fractions=[0.5]), "sum: needs at least two densities, got 1"),
    (lambda: mf.Sum([mf.Sum(PARTS, yields=[1, 2]), PARTS[1]], fractions=[0.5]), "sum: an extended sum cannot be a part of another; use fractions in it"),
    (lambda: mf.Sum([mf.Sum(PARTS, yields=[1, 2]), PARTS[1]], yields=[5, 5]), "sum: an extended sum cannot be a part of another; use fractions in it"),
    (lambda: mf.Density(X, "x"), "density: observables must be a list, got 'x'"),
    (lambda: mf.Density(X, [X, MU]), "density: observables must be observables, got parameter 'mu'"),
    (lambda: mf.Density(X, [X, X]), "density: observables 'x' given twice"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG_SUMS)
def test_parts_that_do_not_belong_are_named(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make()


def test_one_fraction_and_one_observable_need_no_list():
    # a lone observable used to be a bare TypeError
    model = mf.Sum([mf.Density(1 + X, X), mf.Uniform(X)], fractions=mf.Parameter("f", 0.5))
    assert [o.name for o in model.observables] == ["x"]


def test_fractions_that_are_rounded_may_add_up_to_one():
    mf.Sum([mf.Uniform(X)] * 11, fractions=[0.1] * 10)


# ------------------------------------------------------------------------- numbers, names, limits


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.float32, Fraction, Decimal])
def test_ranges_limits_and_starts_are_doubles_whatever_they_were(kind):
    # integers of NumPy used to wrap around: an nll of -1.0 instead of 7.1
    x, p = mf.Observable("x", kind(0), kind(100)), mf.Parameter("p", kind(3), kind(1), kind(200))
    assert {type(v) for v in (x.low, x.high, p.start, p.low, p.high)} == {float}
    model = mf.Polynomial(x, [p] * 11)
    exact = 100 + sum(3 * 100 ** (k + 1) / (k + 1) for k in range(1, 12))
    assert evaluate(model.integral(), {"p": 3.0}) == pytest.approx(exact, rel=FEW_ROUNDINGS)


@pytest.mark.parametrize("wrong", [None, "1", True, 1j, [1.0], X])
def test_what_is_no_number_is_no_range_or_start(wrong):
    with pytest.raises(mf.ModelError, match="observable 'a': low must be a number, got"):
        mf.Observable("a", wrong, 5)
    with pytest.raises(mf.ModelError, match="parameter 'a': start must be a number, got"):
        mf.Parameter("a", wrong)


def test_fixed_is_true_or_false():
    with pytest.raises(mf.ModelError, match=r"parameter 'a': fixed must be True or False, got 5\.0"):
        mf.Parameter("a", 1.0, 0.0, 2.0, 5.0)


def test_none_is_no_limit():
    p = mf.Parameter("p", 1.0, None, 5)
    assert (p.low, p.high) == (-np.inf, 5.0)
    model = mf.Gaussian(X, mf.Parameter("m", 1.0, 0.0, 2.0), 0.3)
    data = {"x": np.linspace(0.5, 1.7, 50)}
    # this used to be a bare TypeError
    assert mf.fit(model, data, limits={"m": (None, 5)}).limits["m"] == (-np.inf, 5.0)
    with pytest.raises(mf.OptionError, match=r"parameter 'm': limits must be \(low, high\), got 3"):
        mf.fit(model, data, limits={"m": 3})


@pytest.mark.parametrize("name", ["a b", "a\tb", "", 5, "a\x00b"])
def test_names_that_are_no_words_are_refused(name):
    for make in (lambda: mf.Observable(name, 0, 1), lambda: mf.Parameter(name, 0)):
        with pytest.raises(mf.ModelError, match="name must be a word without spaces and control signs"):
            make()


@pytest.mark.parametrize(
    "name", ["a;b", "a=b", "a,b", "m[GeV/c^2]", "μ", "%x", "a'b", 'a"b', "1", "a\\b", "{a}", "-"]
)
def test_other_names_work_everywhere(name):
    x, p = mf.Observable(name, 0.0, 3.0), mf.Parameter(f"p{name}", 1.0, 0.5, 2.0)
    model = mf.Density(np.exp(-(x**2) / p) * (1 + 0.3 * np.sin(3 * x * p)), x)
    data = mf.generate(model, 500, seed=1)
    result = mf.fit(model, data)
    assert result.valid
    assert model._repr_latex_() and repr(result) and mf.draw(model).dot


# ------------------------------------------------------------------------- constraints


def test_a_constraint_must_not_depend_on_an_observable():
    with pytest.raises(
        mf.ModelError, match=r"constraint: quantity must be a number, a parameter or .* got observable 'x'"
    ):
        mf.constraint(X, 1.0, 0.1)
    with pytest.raises(
        mf.ModelError, match=r"constraint: quantity must not depend on observables, got .* with 'x'"
    ):
        mf.constraint(X * MU, 1.0, 0.1)
    with pytest.raises(mf.ModelError, match=r"constraint 1: must not depend on observables, got .* with 'x'"):
        mf.Likelihood(PARTS[0], {"x": np.ones(3)}, constraints=[MU * X])
    with pytest.raises(mf.ModelError, match="likelihood: constraints must be a list, got 'mu'"):
        mf.Likelihood(PARTS[0], {"x": np.ones(3)}, constraints="mu")


def test_one_constraint_needs_no_list():
    # this used to be a bare TypeError
    one = mf.constraint(MU, 1.0, 0.1)
    data = {"x": np.linspace(0.5, 1.5, 9)}
    alone, inside = (mf.Likelihood(PARTS[0], data, constraints=c) for c in (one, [one]))
    assert alone.value([1.1, 0.3]) == inside.value([1.1, 0.3])


def test_a_density_without_its_observable_is_refused_in_a_sentence():
    with pytest.raises(
        mf.ModelError, match=r"'Gaussian': argument 'x' is missing; the order is Gaussian\(x, mu, sigma\)"
    ):
        mf.Gaussian(mu=1.0, sigma=2.0)


def test_coefficients_of_a_series_must_be_listed():
    with pytest.raises(mf.ModelError, match="polynomial: coefficients must be a list, got 3"):
        mf.functions.legendre_series(3, mf.Observable("x", -1.0, 1.0))
