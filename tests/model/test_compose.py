"""Sums and products are normalised, nest, extend, and say what is wrong with their parts."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.expr import evaluate
from tolerances import FEW_ROUNDINGS, NUMPY_SUM, SCIPY_DENSITY

X = mf.Observable("x", 0.0, 2.0)
Y = mf.Observable("y", -1.0, 1.0)
Z = mf.Observable("z", 0.0, 1.0)
POINTS = np.linspace(0.05, 1.95, 33)


def normal(x, mu, sigma, low=0.0, high=2.0):
    return stats.truncnorm((low - mu) / sigma, (high - mu) / sigma, mu, sigma).pdf(x)


def parts(count=2):
    return [mf.Gaussian(X, 0.4 * k + 0.3, 0.2 + 0.1 * k) for k in range(count)]


def truth(count=2):
    return [normal(POINTS, 0.4 * k + 0.3, 0.2 + 0.1 * k) for k in range(count)]


def at(model, **values):
    return evaluate(model.normalised(), {"x": POINTS, **values})


# ------------------------------------------------------------------------- fractions


def test_last_density_gets_what_is_left():
    a, b = mf.Parameter("a", 0.2), mf.Parameter("b", 0.3)
    p = truth(3)
    found = at(mf.Sum(parts(3), fractions=[a, b]), a=0.2, b=0.3)
    np.testing.assert_allclose(found, 0.2 * p[0] + 0.3 * p[1] + 0.5 * p[2], rtol=SCIPY_DENSITY)


def test_fractions_may_be_numbers():
    p = truth()
    np.testing.assert_allclose(
        at(mf.Sum(parts(), fractions=[0.25])), 0.25 * p[0] + 0.75 * p[1], SCIPY_DENSITY
    )


def test_fractions_may_be_expressions():
    a, b = mf.Parameter("a", 0.5), mf.Parameter("b", 0.5)
    model = mf.Sum(parts(), fractions=[a * b])
    assert {p.name for p in model.parameters} == {"a", "b"}
    p = truth()
    np.testing.assert_allclose(at(model, a=0.5, b=0.4), 0.2 * p[0] + 0.8 * p[1], SCIPY_DENSITY)


def test_sums_nest():
    a, b = mf.Parameter("a", 0.5), mf.Parameter("b", 0.5)
    inner = mf.Sum(parts(), fractions=[a])
    model = mf.Sum([inner, mf.Uniform(X)], fractions=[b])
    assert [p.name for p in model.parameters] == ["a", "b"]
    p = truth()
    expected = 0.4 * (0.3 * p[0] + 0.7 * p[1]) + 0.6 / 2
    np.testing.assert_allclose(at(model, a=0.3, b=0.4), expected, SCIPY_DENSITY)


def test_sum_of_fractions_is_normalised_already():
    model = mf.Sum(parts(), fractions=[mf.Parameter("a", 0.5)])
    assert evaluate(model.integral(), {}) == 1.0
    assert model.expected_events() is None


def test_sum_with_a_numerically_integrated_part_is_normalised():
    width = mf.Parameter("width", 0.5, 0.1, 2.0)
    lorentz = mf.Density(1 / ((X - 1) ** 2 + width**2), [X])
    found = at(mf.Sum([lorentz, mf.Uniform(X)], fractions=[0.5]), width=0.5)
    cauchy = stats.cauchy(1, 0.5)
    expected = 0.5 * cauchy.pdf(POINTS) / (cauchy.cdf(2) - cauchy.cdf(0)) + 0.25
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# ------------------------------------------------------------------------- yields


def test_yields_extend_the_likelihood():
    s, b = mf.Parameter("s", 20.0), mf.Parameter("b", 13.0)
    model = mf.Sum(parts(), yields=[s, b])
    assert evaluate(model.expected_events(), {"s": 20.0, "b": 13.0}) == 33.0
    p = truth()
    found = mf.Likelihood(model, {"x": POINTS}).value([21.0, 14.0])
    assert found == pytest.approx(35.0 - np.sum(np.log(21 * p[0] + 14 * p[1])), rel=NUMPY_SUM)


def test_normalised_density_of_an_extended_sum_integrates_to_one():
    model = mf.Sum(parts(), yields=[mf.Parameter("s", 20.0), mf.Parameter("b", 60.0)])
    p = truth()
    np.testing.assert_allclose(at(model, s=20.0, b=60.0), 0.25 * p[0] + 0.75 * p[1], SCIPY_DENSITY)


def test_yields_may_be_numbers_and_expressions():
    total, ratio = mf.Parameter("total", 50.0), mf.Parameter("ratio", 0.4)
    model = mf.Sum(parts(3), yields=[total * ratio, total * (1 - ratio), 7])
    assert {p.name for p in model.parameters} == {"total", "ratio"}
    assert evaluate(model.expected_events(), {"total": 50.0, "ratio": 0.4}) == pytest.approx(57)


def test_extended_sum_may_hold_a_sum_of_fractions():
    inner = mf.Sum(parts(), fractions=[mf.Parameter("a", 0.5)])
    model = mf.Sum([inner, mf.Uniform(X)], yields=[mf.Parameter("s", 10.0), mf.Parameter("b", 20.0)])
    p = truth()
    expected = 30 - np.sum(np.log(10 * (0.5 * p[0] + 0.5 * p[1]) + 20 / 2))
    likelihood = mf.Likelihood(model, {"x": POINTS})
    x = [{"a": 0.5, "s": 10.0, "b": 20.0}[q.name] for q in likelihood.parameters]
    assert likelihood.value(x) == pytest.approx(expected, rel=NUMPY_SUM)


# ------------------------------------------------------------------------- products


def test_product_of_different_observables_is_normalised():
    model = mf.Product([mf.Gaussian(X, 1.0, 0.3), mf.Exponential(Y, mf.Parameter("slope", -1.0))])
    assert [o.name for o in model.observables] == ["x", "y"]
    found = evaluate(model.normalised(), {"x": 0.8, "y": 0.2, "slope": -1.0})
    expected = normal(0.8, 1.0, 0.3) * stats.truncexpon(2, -1, 1).pdf(0.2)
    assert found == pytest.approx(expected, rel=SCIPY_DENSITY)
    logarithm = evaluate(model.log_normalised(), {"x": 0.8, "y": 0.2, "slope": -1.0})
    assert logarithm == pytest.approx(np.log(expected), rel=SCIPY_DENSITY)


def test_product_may_hold_a_sum_and_a_sum_products():
    signal = mf.Product([mf.Gaussian(X, 1.0, 0.3), mf.Uniform(Y)])
    background = mf.Product([mf.Uniform(X), mf.Exponential(Y, -1.0)])
    mixed = mf.Sum([signal, background], fractions=[0.3])
    model = mf.Product([mixed, mf.Exponential(Z, 0.5)])
    found = evaluate(model.normalised(), {"x": 0.8, "y": 0.2, "z": 0.5})
    inner = 0.3 * normal(0.8, 1.0, 0.3) / 2 + 0.7 / 2 * stats.truncexpon(2, -1, 1).pdf(0.2)
    expected = inner * 0.5 * np.exp(0.25) / np.expm1(0.5)
    assert found == pytest.approx(expected, rel=SCIPY_DENSITY)


def test_likelihood_of_a_product_is_the_sum_of_logarithms():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 2, 100), rng.uniform(-1, 1, 100)
    mu, slope = mf.Parameter("mu", 1.0), mf.Parameter("slope", -1.0)
    model = mf.Product([mf.Gaussian(X, mu, 0.3), mf.Exponential(Y, slope)])
    both = mf.Likelihood(model, {"x": x, "y": y}).value([1.1, -0.7])
    first = mf.Likelihood(mf.Gaussian(X, mu, 0.3), {"x": x}).value([1.1])
    second = mf.Likelihood(mf.Exponential(Y, slope), {"y": y}).value([-0.7])
    assert both == pytest.approx(first + second, rel=FEW_ROUNDINGS)


# ------------------------------------------------------------------------- messages


def test_sum_needs_fractions_or_yields():
    for options in ({}, {"fractions": [0.5], "yields": [1, 2]}):
        with pytest.raises(mf.ModelError, match="sum: give either fractions or yields"):
            mf.Sum(parts(), **options)


@pytest.mark.parametrize("fractions", [[], [0.2, 0.3], [0.1, 0.2, 0.3]])
def test_wrong_number_of_fractions_is_counted(fractions):
    with pytest.raises(mf.ModelError, match=rf"sum: 2 densities need 1 fractions .*got {len(fractions)}"):
        mf.Sum(parts(), fractions=fractions)


@pytest.mark.parametrize("yields", [[], [10], [10, 20, 30]])
def test_wrong_number_of_yields_is_counted(yields):
    with pytest.raises(mf.ModelError, match=f"sum: 2 densities need 2 yields, got {len(yields)}"):
        mf.Sum(parts(), yields=yields)


def test_densities_of_a_sum_must_share_their_observables():
    with pytest.raises(mf.ModelError, match=r"sum: its densities must share .*\['x'\] and \['y'\]"):
        mf.Sum([mf.Uniform(X), mf.Uniform(Y)], fractions=[0.5])


def test_order_of_observables_in_a_sum_does_not_matter():
    first = mf.Product([mf.Uniform(X), mf.Uniform(Y)])
    second = mf.Product([mf.Exponential(Y, -1.0), mf.Uniform(X)])
    assert [o.name for o in mf.Sum([first, second], fractions=[0.5]).observables] == ["x", "y"]


def test_product_refuses_one_observable_twice():
    with pytest.raises(mf.ModelError, match=r"product: observable 'x' stands in two .*use mf\.Density"):
        mf.Product([mf.Uniform(X), mf.Gaussian(X, 1.0, 0.3)])


def test_product_refuses_an_extended_factor():
    extended = mf.Sum(parts(), yields=[10, 20])
    with pytest.raises(mf.ModelError, match="product: an extended sum cannot be a factor; use fractions"):
        mf.Product([extended, mf.Uniform(Y)])


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda p: mf.Sum(p, fractions=[]), "sum"), (lambda p: mf.Product(p), "product")],
)
def test_one_density_is_not_enough(make, kind):
    with pytest.raises(mf.ModelError, match=f"{kind}: needs at least two densities, got 1"):
        make([mf.Uniform(X)])


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda p: mf.Sum(p, fractions=[0.5]), "sum"), (lambda p: mf.Product(p), "product")],
)
def test_formula_in_place_of_a_density_is_explained(make, kind):
    with pytest.raises(
        mf.ModelError,
        match=rf"{kind}: takes densities, got expression 'x\*\*2'; wrap a formula in mf\.Density",
    ):
        make([mf.Uniform(X), X**2])


# ------------------------------------------------------------------------- what compositions answer


def composed():
    x, y = mf.Observable("x", 0.0, 2.0), mf.Observable("y", -1.0, 1.0)
    f, slope = mf.Parameter("f", 0.3, 0.0, 1.0), mf.Parameter("slope", -0.7, -5.0, 5.0)
    peak, falling = mf.Gaussian(x, 1.0, 0.2), mf.Exponential(x, slope)
    mass, angle = mf.Sum([peak, falling], fractions=[f]), mf.Polynomial(y, [0.4])
    return mf.Product([angle, mass]), (x, y), (angle, mass, peak, falling)


def test_a_single_density_is_its_own_share_factor_and_marginal():
    _, (x, _), (_, _, peak, _) = composed()
    assert peak.factors() == (peak,)
    for ((weight, part),) in (peak.shares(), peak.marginals(x, {}, {})):
        assert (evaluate(weight, {}), part) == (1.0, peak)


def test_shares_are_those_of_the_sum_and_add_up_to_one():
    model, _, (angle, mass, peak, falling) = composed()
    values = {"f": 0.3, "slope": -0.7}
    assert [(evaluate(w, values), pdf) for w, pdf in mass.shares()] == [(0.3, peak), (0.7, falling)]
    yields = mf.Sum([peak, falling], yields=[30.0, 10.0])
    assert [float(evaluate(w, {})) for w, _ in yields.shares()] == [0.75, 0.25]
    assert [pdf.pdfs for _, pdf in model.shares()] == [(angle, peak), (angle, falling)]


def test_factors_of_nested_products_are_one_list():
    model, _, (angle, mass, *_) = composed()
    z = mf.Uniform(mf.Observable("z", 0.0, 1.0))
    assert mf.Product([z, model]).factors() == (z, angle, mass)


def test_marginals_weigh_components_by_what_the_other_factors_leave_in_the_box():
    model, (x, _), (_, _, peak, falling) = composed()
    values = {"f": 0.3, "slope": -0.7}
    half = (1 + 0.4 / 2) / 2  # of the polynomial between 0 and 1
    weighted = [(float(evaluate(w, values)), pdf) for w, pdf in model.marginals(x, {"y": (0.0, 1.0)}, values)]
    assert [pdf for _, pdf in weighted] == [peak, falling]
    assert np.allclose([w for w, _ in weighted], [0.3 * half, 0.7 * half], rtol=FEW_ROUNDINGS)


def test_probability_of_a_box_is_a_product_of_those_of_factors():
    model, _, (_, _, peak, falling) = composed()
    values = {"f": 0.3, "slope": -0.7}
    box = {"y": (0.0, 1.0), "x": (0.5, 1.0)}
    parts = [float(evaluate(pdf.probability(box, values), values)) for pdf in (peak, falling)]
    expected = (0.3 * parts[0] + 0.7 * parts[1]) * (1 + 0.4 / 2) / 2
    assert np.isclose(float(evaluate(model.probability(box, values), values)), expected, rtol=FEW_ROUNDINGS)
    assert float(evaluate(model.probability({}, values), {})) == 1.0


def test_only_the_rooms_of_models_know_their_compositions():
    source = Path(mf.__file__).parent
    names = {p.stem.title() for p in (source / "model" / "compose").glob("*.py")} - {"Checks", "__Init__"}
    assert {"Sum", "Product"} <= names
    tested = re.compile(rf"isinstance\([^)]*\b({'|'.join(names)})\b")
    others = [p for p in source.rglob("*.py") if "model" not in p.relative_to(source).parts]
    from_models = [
        p for p in others if "from morefit.model" in p.read_text()
    ]  # a frame of kernels is a Sum too
    assert [str(p) for p in from_models if tested.search(p.read_text())] == []
