"""The expected information agrees with closed forms, scipy and toys, and says when it does not converge."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate as scipy_integrate
from scipy import stats

import morefit as mf
import zoo
from morefit.expr.quadrature import Axis, Boxes, Domain
from morefit.intervals import information
from tolerances import FEW_ROUNDINGS, QUADRATURE

X = mf.Observable("x", -10.0, 12.0)
M = mf.Observable("m", 5, 7)
TOLERANCE = 1e-8  # the default of fisher_information
MU, SIGMA = mf.Parameter("mu", 5.28, 5, 6), mf.Parameter("sigma", 0.06, 0.005, 0.13)
FSIG, ALPHA = mf.Parameter("fsig", 0.3, 0, 1), mf.Parameter("alpha", -1.0, -10, 10)
S, B = mf.Parameter("s", 300.0, 0, 1e5), mf.Parameter("b", 700.0, 0, 1e5)


def mass(fsig=FSIG):
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], fractions=[fsig])


def extended():
    return mf.Sum([mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)], yields=[S, B])


# ------------------------------------------------------------------------- closed forms and scipy


def test_a_gaussian_has_one_and_two_over_its_variance():
    model = mf.Gaussian(X, mf.Parameter("mean", 0.5), mf.Parameter("width", 0.4))
    found = mf.fisher_information(model, 50)
    assert found.valid
    assert found.names == ("mean", "width")
    np.testing.assert_allclose(found.matrix, 50 * np.diag([1, 2]) / 0.4**2, rtol=QUADRATURE, atol=1e-10)
    assert found.errors["mean"] == pytest.approx(0.4 / np.sqrt(50), rel=QUADRATURE)


@pytest.mark.parametrize("slope", [-3.0, -0.5, 0.7])
def test_an_exponential_on_a_range(slope):
    t = mf.Observable("t", 0.0, 4.0)
    found = mf.fisher_information(mf.Exponential(t, mf.Parameter("slope", slope)), 1)
    edge = np.exp(4 * slope)
    expected = 1 / slope**2 - 16 * edge / (edge - 1) ** 2  # the variance of t
    np.testing.assert_allclose(found.matrix, [[expected]], rtol=QUADRATURE)


def test_a_fraction_of_two_densities_as_scipy_integrates_it():
    low, high = -3.0, 2.0
    x = mf.Observable("x", low, high)
    model = mf.Sum([mf.Gaussian(x, 0.3, 0.2), mf.Uniform(x)], fractions=[mf.Parameter("f", 0.4, 0, 1)])
    norm = scipy_integrate.quad(lambda v: np.exp(-0.5 * ((v - 0.3) / 0.2) ** 2), low, high, points=[0.3])[0]

    def integrand(v):
        peak, flat = np.exp(-0.5 * ((v - 0.3) / 0.2) ** 2) / norm, 0.2
        return (peak - flat) ** 2 / (0.4 * peak + 0.6 * flat)

    expected = scipy_integrate.quad(integrand, low, high, points=[0.3], epsabs=1e-13, limit=200)[0]
    found = mf.fisher_information(model, 10)
    assert found.matrix[0, 0] == pytest.approx(10 * expected, rel=TOLERANCE)


def test_an_extended_model_knows_its_number_of_events():
    found = mf.fisher_information(extended())
    assert found.events == 1000
    total = found.covariance[np.ix_(k := [found.names.index(n) for n in "sb"], k)].sum()
    assert total == pytest.approx(1000, rel=TOLERANCE)  # the variance of a Poisson count
    shape = mf.fisher_information(mass(), 1000)
    both = [shape.names.index("mu"), shape.names.index("sigma")]
    rows = [found.names.index("mu"), found.names.index("sigma")]
    np.testing.assert_allclose(
        found.covariance[np.ix_(rows, rows)], shape.covariance[np.ix_(both, both)], rtol=1e-7
    )


def nodes_of(model, full, panels):
    """Return nodes over the ranges of a model as a dataset, weighted by the density there."""
    axes = [Axis(o.name, tuple(np.linspace(o.low, o.high, panels + 1))) for o in model.observables]
    found = Boxes.first(Domain(tuple(axes))).nodes()
    nodes, weights = found.columns, found.weights
    expected = model.expected_events()
    count = 1.0 if expected is None else 1000.0
    density = mf.Likelihood(model, nodes).per_event(full)
    return mf.Dataset(nodes, model.observables, weights=count * weights * density)


@pytest.mark.parametrize("model", [mass(), extended()], ids=["fractions", "yields"])
def test_with_weights_of_one_the_expected_sandwich_is_the_expected_inverse_hessian(model):
    """The mean of the Hessian and that of the squared scores are one matrix, so that H^-1 C H^-1 = H^-1."""
    start = [p.start for p in model.parameters]
    likelihood = mf.Likelihood(model, nodes_of(model, start, 64))
    mean_hessian = likelihood.hessian(start)
    mean_scores = mf.fisher_information(model, 1 if model.expected_events() is None else None).matrix
    sandwich = np.linalg.inv(mean_hessian) @ mean_scores @ np.linalg.inv(mean_hessian)
    errors = np.sqrt(np.diag(np.linalg.inv(mean_hessian)))
    away = (sandwich - np.linalg.inv(mean_hessian)) / np.outer(errors, errors)
    np.testing.assert_allclose(away, 0, atol=TOLERANCE)


# ------------------------------------------------------------------------- more dimensions, hard integrals


def flat_and_peak(sigma):
    y = mf.Observable("y", 0.0, 1.0)
    c = mf.Parameter("c", 0.5)
    peak = mf.Product([mf.Gaussian(M, 5.3, mf.Parameter("sigma", sigma)), mf.Polynomial(y, [c])])
    return mf.Sum([peak, mf.Product([mf.Uniform(M), mf.Uniform(y)])], fractions=[FSIG])


@pytest.mark.parametrize("sigma", [0.1, 0.001])
def test_a_peak_in_two_dimensions_as_scipy_integrates_it(sigma):
    found = mf.fisher_information(flat_and_peak(sigma), 1)
    assert found.valid

    norm = np.sqrt(2 * np.pi) * sigma * np.diff(stats.norm.cdf([-0.3 / sigma, 1.7 / sigma]))[0]

    def integrand(y, m):
        line = (1 + 0.5 * y) / 1.25
        peak, flat = np.exp(-0.5 * ((m - 5.3) / sigma) ** 2) / norm * line, 0.5
        return (peak - flat) ** 2 / (0.3 * peak + 0.7 * flat)

    edges = np.clip([5, *(5.3 + sigma * np.array([-8, -3, 0, 3, 8])), 7], 5, 7)
    expected = sum(
        scipy_integrate.dblquad(integrand, low, high, 0, 1, epsabs=1e-9)[0]
        for low, high in pairwise(edges)
        if high > low
    )
    k = found.names.index("fsig")
    assert found.matrix[k, k] == pytest.approx(expected, rel=TOLERANCE)


def test_a_product_is_the_sum_of_its_factors():
    y = mf.Observable("y", 0.0, 1.0)
    line = mf.Polynomial(y, [mf.Parameter("c", 0.5)])
    product = mf.fisher_information(mf.Product([mass(), line]), 10)
    alone = [mf.fisher_information(factor, 10) for factor in (mass(), line)]
    expected = np.zeros((5, 5))
    for part in alone:
        rows = [product.names.index(n) for n in part.names]
        expected[np.ix_(rows, rows)] = part.matrix
    np.testing.assert_allclose(product.matrix, expected, rtol=FEW_ROUNDINGS)


def test_a_parameter_of_two_factors_gets_information_from_both():
    a, b = mf.Observable("a", -9.0, 9.0), mf.Observable("b", -9.0, 9.0)
    mean = mf.Parameter("mean", 0.1)
    both = mf.fisher_information(mf.Product([mf.Gaussian(a, mean, 1.0), mf.Gaussian(b, mean, 0.5)]), 1)
    np.testing.assert_allclose(both.matrix, [[1 + 4]], rtol=QUADRATURE)


def test_angles_in_three_dimensions():
    model, _, _ = zoo.kstarmumu(1000)
    found = mf.fisher_information(model, 1000, tolerance=1e-4)
    assert found.valid
    likelihood = mf.Likelihood(model, mf.generate(model, 200_000, seed=1))
    start = [p.start for p in likelihood.parameters]
    np.testing.assert_allclose(np.diag(likelihood.fisher(start)) / 200, np.diag(found.matrix), rtol=0.02)
    assert found.names == tuple(p.name for p in likelihood.parameters)


def test_a_kink_needs_more_cuts_and_gets_them():
    x = mf.Observable("x", 0.0, 1.0)
    level = mf.Parameter("level", 2.0, 0.1, 10)
    model = mf.Density(mf.where(x < 0.3071, level, 1.0), observables=[x])
    found = mf.fisher_information(model, 1)
    low = 0.3071 * 2 / (0.3071 * 2 + 0.6929)  # the probability to be below
    assert found.valid
    assert found.matrix[0, 0] == pytest.approx(low * (1 - low) / 4, rel=1e-7)


# ------------------------------------------------------------------------- choices, print, errors


def test_fixed_parameters_are_left_out_and_values_are_taken():
    held = mf.Parameter("fsig", 0.3, 0, 1, fixed=True)
    found = mf.fisher_information(mass(held), 100, truth={"mu": 5.5, "fsig": 0.5})
    assert found.names == ("mu", "sigma", "alpha")
    moved = mf.fisher_information(mass(mf.Parameter("fsig", 0.5, 0, 1)), 100, truth={"mu": 5.5})
    rows = [moved.names.index(n) for n in found.names]
    np.testing.assert_allclose(found.matrix, moved.matrix[np.ix_(rows, rows)], rtol=TOLERANCE)
    assert found.values["fsig"] == 0.5


def test_information_grows_with_events():
    one, many = (mf.fisher_information(mass(), n) for n in (1, 400))
    np.testing.assert_allclose(many.matrix, 400 * one.matrix, rtol=FEW_ROUNDINGS)
    assert many.errors["mu"] == pytest.approx(one.errors["mu"] / 20, rel=1e-12)


def test_information_prints_as_a_table():
    found = mf.fisher_information(mass(), 2000)
    text = str(found)
    assert text.startswith("expected information of 2000 events, accurate to ")
    assert "NOT" not in text
    assert all(name in text for name in found.names)


def test_information_is_frozen_and_can_be_pickled():
    found = mf.fisher_information(mass(), 2000)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.matrix, found.matrix)
    assert str(again) == str(found)
    with pytest.raises(ValueError, match="read-only"):
        again.matrix[0, 0] = 1.0
    with pytest.raises(TypeError):
        found.errors["mu"] = 1.0


def test_what_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(information, "MAX_NODES", 0)
    found = mf.fisher_information(flat_and_peak(0.01), 1)
    assert not found.valid
    assert "NOT CONVERGED: the integral should be accurate to 1e-08" in str(found)


def test_a_density_that_does_not_integrate_to_one_is_seen(monkeypatch):
    monkeypatch.setattr(information, "MAX_NODES", 1 << 16)

    class Wrong(mf.Pdf):
        x, c, integral_checked = X, mf.Parameter("c", 0.1), False

        def density(self):
            return np.exp(-self.c * self.x**2)

        def integral(self):
            return 3.0 + 0 * self.c.expr

    found = mf.fisher_information(Wrong(), 1)
    assert not found.valid
    assert found.accuracy > 0.1


def test_parameters_that_cannot_be_told_apart_have_no_errors():
    a, b = mf.Parameter("a", 0.2), mf.Parameter("b", 0.3)
    found = mf.fisher_information(mf.Gaussian(X, a + b, 1.0), 10)
    assert not found.valid
    assert np.isnan(found.covariance).all()
    assert "NOT POSITIVE DEFINITE: these parameters cannot be told apart" in str(found)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: mf.fisher_information(mass()), "events is missing; the model predicts no number"),
        (lambda: mf.fisher_information(extended(), 10), "predicts the number of events, got events=10; change its"),
        (lambda: mf.fisher_information(mass(), -1), r"the number of events must be positive, got -1\.0"),
        (lambda: mf.fisher_information(mass(), 10, truth={"m": 1}), "parameter 'm': not in the model, but in truth"),
        (lambda: mf.fisher_information(mf.Gaussian(X, 0.0, 1.0), 10), "no floating parameter; free one"),
        (
            lambda: mf.fisher_information(mf.Polynomial(mf.Observable("y", 0, 1), [mf.Parameter("c", -2.0)]), 1),
            "the density is negative or not a number at these values",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(ask, message):
    with pytest.raises(mf.ModelError, match=message):
        ask()


@pytest.mark.parametrize("wrong", [{"tolerance": 0}, {"events": "many"}])
def test_options_are_checked(wrong):
    with pytest.raises(mf.OptionError, match=r"fisher information: .* must be "):
        mf.fisher_information(mass(), **({"events": 10} | wrong))


def test_too_many_dimensions_are_refused():
    class Wide(mf.Pdf):
        def __init__(self):
            self.xs = [mf.Observable(f"x{k}", 0.0, 1.0) for k in range(5)]
            self.c = mf.Parameter("c", 1.0)

        def density(self):
            return self.c + sum(x.expr for x in self.xs[1:]) * self.xs[0]

        def integral(self):
            return self.c + 1.0

    with pytest.raises(mf.ModelError, match="in up to 4 dimensions, got 5; write the model as a product"):
        mf.fisher_information(Wide(), 1)
