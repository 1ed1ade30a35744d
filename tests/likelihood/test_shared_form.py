"""Formulas that differ in numbers share one program, which has the numbers of each as arguments."""

import pickle

import numpy as np
import pytest

import morefit as mf
from morefit.expr import const, evaluate, substitute
from morefit.likelihood import joint
from morefit.likelihood.shared_form import shared_form
from tolerances import REORDERED

M, X = mf.Observable("m", 0.0, 10.0), mf.Observable("x", 0.0, 1.0)
MU, SIGMA, RATE = (
    mf.Parameter("mu", 5.0, 4.0, 6.0),
    mf.Parameter("s", 0.5, 0.2, 1.5),
    mf.Parameter("r", 3.0, 0.0, 20.0),
)


def category(k, width=0.2):
    slope, events = mf.Parameter(f"slope{k}", -0.2, -2.0, 1.0), mf.Parameter(f"n{k}", 200.0, 0.0, 3000.0)
    peak = mf.Gaussian(M, MU + 0.1 * k, SIGMA * (1 + width * k))
    return mf.Sum([peak, mf.Exponential(M, slope)], yields=[(30.0 + 10.0 * k) * RATE, events])


def of_categories(count):
    rng = np.random.default_rng(1)
    constraint = mf.constraint(MU, 5.0, 0.05)
    parts = [
        mf.Likelihood(category(k), {"m": rng.uniform(0, 10, 50 + k)}, constraints=[constraint] * (k == 1))
        for k in range(count)
    ]
    return sum(parts[1:], parts[0])


def test_members_of_a_form_are_their_formulas_again():
    formulas = [
        [np.exp(-(((M - a) / (b * SIGMA)) ** 2)) + b * MU, a + MU] for a, b in ((1, 2), (7, 0.5), (3, 3))
    ]
    form = shared_form(formulas)
    values = {"m": np.linspace(0, 10, 5), "mu": 4.5, "s": 0.7}
    for own, numbers in zip(formulas, form.numbers, strict=True):
        known = dict(zip(form.symbols, map(const, numbers), strict=True))
        for root, formula in zip(form.roots, own, strict=True):
            expected = evaluate(formula, values)
            assert evaluate(substitute(root, known), values) == pytest.approx(expected, rel=REORDERED)


@pytest.mark.parametrize(
    "others",
    [
        [MU * (M - 2) ** 3, MU * (M - 2) ** 4],  # powers are written out
        [MU + np.exp(-2 * M), MU + np.exp(-3 * M)],  # of the event alone: computed once per dataset
        [MU * M, SIGMA * M],
        [MU * M, MU + M],
    ],
    ids=["power", "event", "parameter", "operation"],
)
def test_what_differs_in_more_than_numbers_has_no_form(others):
    assert shared_form([[one] for one in others]) is None


def test_categories_with_other_numbers_share_a_program_and_keep_their_values(monkeypatch):
    # ten categories, each with its resolution from simulation, took 8 s to their first toy
    shared = of_categories(3)
    assert len({id(part.sums(1)) for part in shared.parts}) == 2  # one has a constraint, and its own program
    monkeypatch.setattr(joint, "shared_forms", lambda formulas: ())
    apart = of_categories(3)
    assert len({id(part.sums(1)) for part in apart.parts}) == 3
    point = [4.9, 0.6, 2.5, *(0.9 * p.start for p in apart.parameters[3:])]
    assert [p.name for p in shared.parameters] == [p.name for p in apart.parameters]
    np.testing.assert_allclose(shared.gradient(point), apart.gradient(point), rtol=REORDERED)
    assert shared.value(point) == pytest.approx(apart.value(point), rel=REORDERED)
    assert pickle.loads(pickle.dumps(shared)).value(point) == shared.value(point)


def test_two_formulas_keep_their_numbers():
    assert [part.form for part in of_categories(2).parts] == [None, None]
