"""A density is an expression or a class of the user's own; names, order and messages are what one expects."""

import gc
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.expr import ONE, Op, evaluate, toposort
from morefit.expr.node import alive
from morefit.model.parts import check_model
from tolerances import FEW_ROUNDINGS, NUMPY_SUM, SCIPY_DENSITY

X = mf.Observable("x", 0.0, 2.0)
Y = mf.Observable("y", -1.0, 1.0)


def has_integral_node(expr):
    return any(node.op is Op.INTEGRAL for node in toposort(expr))


# ------------------------------------------------------------------------- the bare expression


def test_given_integral_is_used_as_it_is():
    c = mf.Parameter("c", 0.5)
    norm = 2 + 2 * c
    pdf = mf.Density(1 + c * X, [X], integral=norm)
    assert pdf.integral() is norm


def test_given_integral_may_be_a_number():
    pdf = mf.Density(X**2, [X], integral=8 / 3)
    assert evaluate(pdf.normalised(), {"x": 2.0}) == pytest.approx(1.5, rel=FEW_ROUNDINGS)


def test_integral_in_an_observable_is_refused():
    with pytest.raises(mf.ModelError, match="density: the integral must not depend on observables"):
        mf.Density(X**2, [X], integral=X**3 / 3)


def test_observable_missing_from_the_list_is_named():
    with pytest.raises(
        mf.ModelError, match=r"density: its formula uses 'y', missing from observables \['x'\]"
    ):
        mf.Density(X + Y, [X])


def test_density_may_be_flat_in_one_of_its_observables():
    pdf = mf.Density(X, [X, Y])
    assert [o.name for o in pdf.observables] == ["x", "y"]
    assert evaluate(pdf.integral(), {}) == pytest.approx(4, rel=FEW_ROUNDINGS)


def test_density_accepts_numpy_functions():
    tau = mf.Parameter("tau", 0.7)
    pdf = mf.Density(np.exp(-X / tau), [X])
    expected = stats.truncexpon(2 / 0.7, 0, 0.7).pdf(0.3)
    assert evaluate(pdf.normalised(), {"x": 0.3, "tau": 0.7}) == pytest.approx(expected, rel=SCIPY_DENSITY)


# ------------------------------------------------------------------------- observables and parameters


def test_parameters_come_in_the_order_they_were_given_in():
    names = ["zeta", "alpha", "middle"]
    mu, sigma, fraction = (mf.Parameter(n, 0.5) for n in names)
    model = mf.Sum([mf.Gaussian(X, mu, sigma), mf.Uniform(X)], fractions=[fraction])
    assert [p.name for p in model.parameters] == names


def test_observables_come_in_the_order_they_were_given_in():
    assert [o.name for o in mf.Density(X + Y + 2, [Y, X]).observables] == ["y", "x"]


def test_fixed_parameters_are_listed():
    model = mf.Gaussian(X, mf.Parameter("mu", 1.0, fixed=True), mf.Parameter("sigma", 0.5))
    assert [(p.name, p.fixed) for p in model.parameters] == [("mu", True), ("sigma", False)]


def test_two_parameters_of_one_name_are_both_shown():
    model = mf.Gaussian(X, mf.Parameter("a", 1.0), mf.Parameter("a", 0.5))
    with pytest.raises(
        mf.ModelError, match=r"parameter 'a': two different .*'a', 1\.0\).*'a', 0\.5\).*rename one"
    ):
        _ = model.parameters


def test_two_parameters_of_one_name_in_two_densities_are_both_shown():
    parts = [mf.Gaussian(X, mf.Parameter("a", value), 0.3) for value in (1.0, 1.5)]
    model = mf.Sum(parts, fractions=[0.5])
    with pytest.raises(mf.ModelError, match=r"parameter 'a': two different .*'a', 1\.0\).*'a', 1\.5\)"):
        _ = model.parameters


def test_two_observables_of_one_name_are_both_shown():
    # a sum of densities without a formula in x used to take the first range for all of them
    with pytest.raises(mf.ModelError, match=r"observable 'x': two different .*0\.0, 2\.0\).*0\.0, 3\.0\)"):
        mf.Sum([mf.Uniform(X), mf.Uniform(mf.Observable("x", 0.0, 3.0))], fractions=[0.5])


def test_equal_parameters_made_twice_are_one():
    parts = [mf.Gaussian(X, mf.Parameter("a", 1.0), s) for s in (0.3, 0.5)]
    assert len(mf.Sum(parts, fractions=[0.5]).parameters) == 1


def test_observable_and_parameter_of_one_name_are_refused():
    model = mf.Gaussian(X, mf.Parameter("x", 1.0), 0.5)
    with pytest.raises(mf.ModelError, match="model: 'x' names an observable and a parameter; rename one"):
        check_model(model)


def test_model_without_observables_is_refused():
    with pytest.raises(mf.ModelError, match="model: its density depends on no observable"):
        mf.Likelihood(mf.Density(mf.Parameter("c", 1.0) + 0, [], integral=1), {"x": np.ones(3)})


def test_density_of_zero_is_refused():
    with pytest.raises(mf.ModelError, match="model: its density is zero everywhere"):
        mf.Likelihood(mf.Density(0, [X], integral=1), {"x": np.ones(3)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda a: mf.Sum([a, a], [0.5]),
            "density 'Sum': takes pdfs by position, got 2 arguments; write fractions= or yields= or labels=",
        ),
        (
            lambda a: mf.Gaussian(X, 1.0, 2.0, 3.0),
            "density 'Gaussian': takes x, mu, sigma by position, got 4 arguments; leave one out",
        ),
        (
            lambda a: mf.Gaussian(X, mu=1.0, sgma=2.0),
            "density 'Gaussian': has no argument 'sgma'; did you mean 'sigma'",
        ),
        (
            lambda a: mf.Exponential(X, rate=1.0, given=[X]),
            "density 'Exponential': has no argument 'rate'; did you mean 'slope'",
        ),
    ],
)
def test_arguments_that_a_density_does_not_take_are_named(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make(mf.Gaussian(X, 1.0, 2.0))


def test_units_are_brackets_behind_the_label():
    assert mf.Observable("m", 5, 6, unit="GeV") is mf.Observable("m", 5, 6, "m [GeV]")
    assert mf.Observable("m", 5, 6, "$m$", unit="GeV").label == "$m$ [GeV]"
    with pytest.raises(
        mf.ModelError, match=r"observable 'm': the label '\$m\$ \[GeV\]' has a unit already, got unit 'MeV'"
    ):
        mf.Observable("m", 5, 6, "$m$ [GeV]", unit="MeV")
    for unit in (None, 3, " ", "[GeV]"):
        with pytest.raises(mf.ModelError, match="observable 'm': unit must be text without brackets, got"):
            mf.Observable("m", 5, 6, unit=unit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 0, 1), "observable '': name must be a word without spaces"),
        (("a b", 0, 1), "observable 'a b': name must be a word without spaces"),
        (("x", 1, 1), "observable 'x': low must be below high, got 1 and 1"),
        (("x", 0, np.inf), r"observable 'x': range must be finite, got \[0, inf\]"),
    ],
)
def test_odd_observables_are_refused(arguments, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.Observable(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a b", 0), "parameter 'a b': name must be a word without spaces"),
        (("a", np.nan), "parameter 'a': start must be finite, got nan"),
        (("a", 1, 2, 0), "parameter 'a': low must be below high, got 2 and 0"),
        (("a", 7.0, 5.0, 6.0), r"parameter 'a': start must lie in \[5.0, 6.0\], got 7.0"),
    ],
)
def test_odd_parameters_are_refused(arguments, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.Parameter(*arguments)


# ------------------------------------------------------------------------- notebooks


def build_everything(start=1.0):
    x = mf.Observable("x", 0.0, 2.0)
    mu, sigma = mf.Parameter("mu", start, 0.0, 2.0), mf.Parameter("sigma", 0.3, 0.01, 1.0)
    return mf.Sum(
        [mf.Gaussian(x, mu, sigma), mf.Exponential(x, mf.Parameter("slope", -1.0))],
        fractions=[mf.Parameter("f", 0.4, 0.0, 1.0)],
    )


def test_building_everything_twice_gives_the_same_expressions():
    first, second = build_everything(), build_everything()
    assert first.log_normalised() is second.log_normalised()
    assert first.parameters == second.parameters


def test_a_changed_start_value_is_another_parameter_without_a_clash():
    first, second = build_everything(1.0), build_everything(1.2)
    assert [p.start for p in (first.parameters[0], second.parameters[0])] == [1.0, 1.2]
    data = {"x": np.linspace(0.1, 1.9, 20)}
    values = {"mu": 1.0, "sigma": 0.3, "f": 0.4, "slope": -1.0}
    x = [values[p.name] for p in first.parameters]
    assert mf.Likelihood(first, data).value(x) == mf.Likelihood(second, data).value(x)


def test_nothing_is_registered_for_ever():
    name = "an_observable_that_is_forgotten"
    mf.Gaussian(mf.Observable(name, 0.0, 1.0), 0.5, 0.1).density()
    gc.collect()
    assert not any(
        name in repr(node)
        for known in list(alive.values())
        if (node := known()) is not None and node.op is Op.COLUMN
    )


def test_models_can_be_pickled():
    model = build_everything()
    again = pickle.loads(pickle.dumps(model))
    assert again.log_normalised() is model.log_normalised()


# ------------------------------------------------------------------------- arguments


def test_numbers_may_stand_for_parameters():
    found = evaluate(mf.Gaussian(X, 1, 0.5).normalised(), {"x": 1.2})
    assert found == pytest.approx(stats.truncnorm(-2, 2, 1, 0.5).pdf(1.2), rel=SCIPY_DENSITY)


def test_numpy_numbers_may_stand_for_parameters():
    pdf = mf.Gaussian(X, np.float32(1), np.int64(2))
    assert pdf.parameters == ()


def test_expressions_may_stand_for_parameters():
    mu, shift, scale = mf.Parameter("mu", 1.0), mf.Parameter("shift", 0.1), mf.Parameter("scale", 1.2)
    pdf = mf.Gaussian(X, mu + shift, 0.5 * scale)
    assert {p.name for p in pdf.parameters} == {"mu", "shift", "scale"}
    found = evaluate(pdf.normalised(), {"x": 0.7, "mu": 1.0, "shift": 0.1, "scale": 1.2})
    expected = stats.truncnorm(-1.1 / 0.6, 0.9 / 0.6, 1.1, 0.6).pdf(0.7)
    assert found == pytest.approx(expected, rel=SCIPY_DENSITY)


def test_expression_of_an_exponential_and_a_crystal_ball_may_stand_for_parameters():
    tau, ratio = mf.Parameter("tau", 0.7), mf.Parameter("ratio", 2.0)
    exponential = mf.Exponential(X, -1 / tau)
    ball = mf.CrystalBall(X, 1.0, tau / 2, ratio, ratio + 1)
    for pdf in (exponential, ball):
        nodes = np.polynomial.legendre.leggauss(200)
        values = evaluate(pdf.normalised(), {"x": 1 + nodes[0], "tau": 0.7, "ratio": 2.0})
        assert np.sum(nodes[1] * values) == pytest.approx(1, abs=1e-6)


# ------------------------------------------------------------------------- a user's own densities


class Triangle(mf.Pdf):
    """A plain class without an integral."""

    def __init__(self, x, peak):
        self.x, self.peak = x, peak

    def density(self):
        return mf.where(self.x < self.peak, self.x / self.peak, (2 - self.x) / (2 - self.peak))


@dataclass(frozen=True, eq=False)
class Power(mf.Pdf):
    """A dataclass with an integral."""

    x: mf.Observable
    n: mf.Parameter

    def density(self):
        return self.x**self.n

    def integral(self):
        return self.x.high ** (self.n + 1) / (self.n + 1)


@dataclass(frozen=True, eq=False)
class Cosine(mf.Pdf):
    """A dataclass without an integral, with parameters in a list."""

    x: mf.Observable
    waves: list

    def density(self):
        return 3 + sum(a * np.cos(k * self.x) for k, a in enumerate(self.waves, 1))


def test_plain_class_without_an_integral_is_normalised():
    pdf = Triangle(X, mf.Parameter("peak", 0.7, 0.1, 1.9))
    assert has_integral_node(pdf.integral())
    assert evaluate(pdf.integral(), {"peak": 0.7}) == pytest.approx(1, rel=1e-10)
    assert [p.name for p in pdf.parameters] == ["peak"]


def test_dataclass_with_an_integral_is_normalised():
    pdf = Power(X, mf.Parameter("n", 1.5))
    found = evaluate(pdf.normalised(), {"x": 1.1, "n": 1.5})
    assert found == pytest.approx(stats.powerlaw(2.5, 0, 2).pdf(1.1), rel=SCIPY_DENSITY)


def test_dataclass_without_an_integral_is_integrated_term_by_term():
    pdf = Cosine(X, [mf.Parameter("a", 0.5), mf.Parameter("b", -0.2)])
    assert not has_integral_node(pdf.integral())
    expected = 6 + 0.5 * np.sin(2) - 0.2 * np.sin(4) / 2
    assert evaluate(pdf.integral(), {"a": 0.5, "b": -0.2}) == pytest.approx(expected, rel=FEW_ROUNDINGS)
    assert [p.name for p in pdf.parameters] == ["a", "b"]


def test_own_density_fits_inside_a_sum():
    model = mf.Sum(
        [Power(X, mf.Parameter("n", 1.5, 0, 5)), mf.Uniform(X)], fractions=[mf.Parameter("f", 0.6, 0, 1)]
    )
    data = np.linspace(0.05, 1.95, 57)
    found = mf.Likelihood(model, {"x": data}).value([1.5, 0.6])
    expected = -np.sum(np.log(0.6 * stats.powerlaw(2.5, 0, 2).pdf(data) + 0.4 * 0.5))
    assert found == pytest.approx(expected, rel=NUMPY_SUM)


def test_own_density_that_forgets_its_formula_cannot_be_made():
    class Empty(mf.Pdf):
        pass

    with pytest.raises(mf.ModelError, match=r"density 'Empty': needs a method density\(self\)"):
        Empty()


def test_default_of_extended_and_intensity():
    pdf = Power(X, mf.Parameter("n", 1.5))
    assert pdf.expected_events() is None
    assert pdf.log_intensity() is pdf.log_normalised()
    assert mf.Uniform(X).density() is ONE


def test_what_other_programs_do_with_parameters_is_answered_in_a_sentence():
    mu = mf.Parameter("mu", 5.0, 0.0, 10.0)
    with pytest.raises(
        AttributeError, match=r"parameter 'mu': never changes, .* pass fixed=, start= or limits= to mf.fit"
    ):
        mu.start = 4.0
    with pytest.raises(
        AttributeError, match=r"parameter 'mu': has no 'value': a fit returns it, as in result.values\['mu'\]"
    ):
        print(mu.value)
    with pytest.raises(AttributeError, match=r"parameter 'mu': has no 'limts'$"):
        print(mu.limts)
