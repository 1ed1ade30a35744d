"""Derivatives made of sums that they share: the same numbers from fewer operations, where there are fewer."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import morefit as mf
from derivatives import hessian
from morefit.expr import ONE, Op, add_all, apply, column, multiply_all, scalar, toposort
from morefit.kernel.ir import SCALED, Precision
from morefit.kernel.moments import (
    MAX_TERMS,
    NOTHING,
    find_moments,
    groups_of,
    multiplied,
    operations,
    polynomials,
)
from morefit.pipeline import Settings, compile_sums
from morefit.targets.cpu.run import Cpu
from morefit.targets.reference.run import Reference
from mp_evaluate import mp_evaluate
from tolerances import REORDERED

x, y = column("x"), column("y")
a, b = scalar("a"), scalar("b")
distance = x - a
share = apply(Op.EXP, b * x)  # of the density, that of one component


def numbers_of(expr, values):
    """Evaluate an expression, at values of its leaves, with NumPy alone."""
    known = {}
    for node in toposort(expr):
        below = [known[arg] for arg in node.args]
        if node in values:
            known[node] = values[node]
        elif node.op is Op.CONST:
            known[node] = node.value
        elif node.op is Op.ADD:
            known[node] = sum(below)
        elif node.op is Op.MUL:
            known[node] = math.prod(below)
        elif node.op is Op.POW:
            known[node] = below[0] ** below[1]
        else:
            assert node.op is Op.EXP
            known[node] = np.exp(below[0])
    return known[expr]


VALUES = {x: np.linspace(0.5, 2.0, 7), y: np.linspace(-1.0, 1.0, 7), a: 0.8, b: -0.4}


def value_of(polynomial):
    """Add up the terms of a polynomial."""
    terms = []
    for monomial, coefficient in polynomial.items():
        factors = [numbers_of(base, VALUES) ** power for base, power in monomial]
        terms.append(numbers_of(coefficient, VALUES) * math.prod(factors))
    return sum(terms)


atoms = st.sampled_from([a, b, distance, share, 1 / share, y * share, a * distance, 2 * ONE])
formulas = st.recursive(
    atoms,
    lambda below: st.one_of(
        st.lists(below, min_size=2, max_size=3).map(lambda each: add_all(*each)),
        st.lists(below, min_size=2, max_size=3).map(lambda each: multiply_all(*each)),
        below.map(lambda each: each**2),
    ),
    max_leaves=6,
)


@given(formulas)
def test_a_polynomial_has_the_value_of_its_expression(expr):
    for node, polynomial in polynomials([expr]).items():
        assert len(polynomial) <= MAX_TERMS
        expected = numbers_of(node, VALUES)
        size = np.abs(expected).max() + 1e3  # terms may cancel, of powers of numbers of about one
        np.testing.assert_allclose(
            value_of(polynomial) + 0 * expected, expected, rtol=1e-11, atol=1e-13 * size
        )
        assert all(part.op is not Op.COLUMN for each in polynomial.values() for part in toposort(each))


def test_a_distance_is_not_multiplied_out():
    """Of (x - a)**2 with x and a near 5, the digits would be lost in x**2 - 2 a x + a**2."""
    (monomial,) = polynomials([share * distance**2])[share * distance**2]
    assert dict(monomial) == {distance: 2.0, share: 1.0}


def test_sums_of_many_terms_stay_as_they_are():
    each = [share ** (k + 2) * scalar(f"c{k}") * y for k in range(MAX_TERMS + 1)]
    many, fewer = add_all(*each), add_all(*each[1:])
    (only,) = polynomials([many])[many]
    assert only == frozenset([(many, 1.0)])
    assert len(polynomials([fewer])[fewer]) == MAX_TERMS


def test_sums_are_multiplied_out_alone():
    """In the square of s x - a the terms are larger than it, as those of a distance are."""
    one, other = b * x - a, b * share + a * y * share
    product = multiply_all(share, one, other)
    (monomial,) = polynomials([product])[product]
    assert dict(monomial) == {share: 1.0, one: 1.0, other: 1.0}
    (square,) = polynomials([share * one**2])[share * one**2]
    assert dict(square) == {share: 1.0, one: 2.0}
    assert len(polynomials([share * one])[share * one]) == 2


def test_derivatives_are_grouped_by_the_terms_that_they_share():
    s, t, u = (frozenset([(column(name), 1.0)]) for name in "stu")
    made_of = {a: {s: ONE}, b: {t: ONE, u: ONE}, x: {s: ONE, t: ONE}, y: {NOTHING: ONE}}
    assert sorted(map(len, groups_of(made_of))) == [1, 3]


def test_products_are_made_of_those_before():
    """Four powers of a distance times a share take four multiplications."""
    wanted = [frozenset({(distance, float(k)), (share, 1.0)}) for k in range(1, 5)]
    products = multiplied(wanted, {})
    assert operations([products[m] for m in wanted], {share, distance}) == 4
    for power, monomial in enumerate(wanted, 1):
        expected = numbers_of(share, VALUES) * numbers_of(distance, VALUES) ** power
        np.testing.assert_allclose(numbers_of(products[monomial], VALUES), expected, rtol=1e-14)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([x, y, distance, share]), st.sampled_from([-2, -1, 1, 2, 3]), min_size=1
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_products_are_what_they_are_called(powers):
    wanted = [frozenset((base, float(power)) for base, power in each.items()) for each in powers]
    there = {frozenset([(share, 1.0)]): share, frozenset([(y, 1.0), (distance, 1.0)]): y * distance}
    products = multiplied(wanted, there)
    values = VALUES | {y: VALUES[y] + 2.0}
    for monomial in wanted:
        expected = math.prod(numbers_of(base, values) ** power for base, power in monomial)
        np.testing.assert_allclose(numbers_of(products[monomial], values), expected, rtol=1e-12)


def mixture():
    """Return a mass model: the derivatives of a Gaussian beside something are powers of a distance."""
    m = mf.Observable("m", 5.0, 5.6)
    peak = mf.Gaussian(m, mf.Parameter("mu", 5.28, 5.2, 5.4), mf.Parameter("sigma", 0.02, 0.005, 0.1))
    beside = mf.Exponential(m, mf.Parameter("slope", -2.0, -10, 10))
    return mf.Sum([peak, beside], fractions=[mf.Parameter("f", 0.3, 0, 1)])


def scaled_sums(order=2, precision=Precision.DOUBLE, backend=None, **how):
    model = mixture()
    request = mf.Likelihood(model, {"m": np.linspace(5.01, 5.59, 50)}).request(order, **how)
    settings = Settings(backend or Reference(), precision)
    compiled = compile_sums(request, tuple(p.expr for p in model.parameters), settings)
    frame = compiled.program.kernel.sums
    assert bool(frame.scaled) == any(result.output == SCALED for result in frame.results)
    return len(frame.scaled)


@pytest.mark.parametrize("backend", [Reference(), Cpu()], ids=str)
def test_the_derivatives_of_a_gaussian_in_a_mixture_share_sums(backend):
    assert scaled_sums(backend=backend)
    assert not scaled_sums(order=0, backend=backend)


@pytest.mark.parametrize("how", [{"careful": True}, {"fisher": True}], ids=["careful", "fisher"])
def test_sums_that_leave_out_events_or_square_scores_share_nothing(how):
    assert not scaled_sums(0 if "fisher" in how else 2, **how)


def test_single_precision_has_no_room_for_powers_of_a_distance():
    assert not scaled_sums(precision=Precision.SINGLE)


def test_nothing_is_shared_where_it_takes_longer():
    moments = find_moments([], [x * share, y * share], [])
    assert not moments.sums and not moments.made_of


def test_what_is_computed_in_any_case_costs_an_addition():
    rows = [a * share * distance, b * share * distance + a * share, a * b * share * distance]
    moments = find_moments([], rows, [share])
    assert len(moments.sums) == 2 and moments.sums[0] is share
    assert {k for k, _ in moments.made_of[rows[1]]} == {0, 1}


# ---------------------------------------------------------------------------- no digits are lost


def far_from_zero(scaled):
    """Return a peak at 91 187 of a width of 2.5, of energies as they are or times a scale, and its events."""
    energy = mf.Observable("energy", 91_000.0, 91_400.0)
    mu, sigma = mf.Parameter("mu", 91_187.3), mf.Parameter("sigma", 2.5)
    scale, f = mf.Parameter("scale", 1.0), mf.Parameter("f", 0.7)
    distance = (scale * energy if scaled else energy) - mu
    peak = np.exp(-0.5 * (distance / sigma) ** 2) / sigma
    model = mf.Density(f * peak + (1 - f) * 0.0025, [energy], integral=1, check=False)
    return model, {"energy": 91_187.0 + np.linspace(-9, 9, 41)}


@pytest.mark.parametrize("scaled", [False, True], ids=["a distance", "a scaled distance"])
def test_the_hessian_of_a_peak_far_from_zero_is_that_of_many_digits(scaled):
    model, data = far_from_zero(scaled)
    parameters = [p.expr for p in model.parameters]
    names, at = [p.name for p in parameters], np.array([p.start for p in model.parameters])
    found = mf.Likelihood(model, data, backend="cpu").hessian(at)
    log_density = model.summed
    name = model.observables[0].name
    for i, row in enumerate(hessian(log_density, parameters)):
        for j, derivative in enumerate(row):
            terms = [
                mp_evaluate(derivative, {**dict(zip(names, at, strict=True)), name: event})
                for event in data["energy"]
            ]
            size = float(sum(abs(term) for term in terms))
            rounding = 91_187 / 2.5 if scaled else 1  # of the scaled distance itself
            assert found[i, j] == pytest.approx(-float(sum(terms)), abs=REORDERED * rounding * size), (i, j)
