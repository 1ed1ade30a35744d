"""Fits in one call of compiled code are the same whatever was fitted before them in this process."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import morefit as mf
from morefit.minimise import whole
from tolerances import SAME_MINIMUM

P = mf.Parameter
L, K, Q = mf.Observable("l", -1.0, 1.0), mf.Observable("k", -1.0, 1.0), mf.Observable("q", 0.5, 2.0)
F, S = P("f", 0.6, 0.0, 1.0), P("s", 0.3, 0.05, 2.0)
ANGLES = 9 / 16 * ((1 - F) / 2 * (1 - K**2) * (1 + L**2) + 2 * F * K**2 * (1 - L**2))
RNG = np.random.default_rng(4)
DATA = {"l": RNG.uniform(-1, 1, 300), "k": RNG.normal(0.1, 0.3, 3000), "q": RNG.uniform(0.5, 2.0, 300)}
DATA["k"] = DATA["k"][np.abs(DATA["k"]) < 1][:300]
WEIGHTS = np.linspace(0.5, 1.5, 300)


def of_given(*given: mf.Observable) -> mf.Pdf:
    """Return a density whose width grows with one observable that is given, and not with others."""
    return mf.Density(np.exp(-0.5 * (K / (S * Q)) ** 2), K, given=given)


def category(k: int) -> mf.Pdf:
    """Return the model of a category, which differs from that of others in a number."""
    return mf.Gaussian(K, P("mu", 0.0, -1, 1), P("width", 0.2, 0.05, 1) * (1 + 0.1 * k))


FITS = {
    "angles": lambda: mf.fit(mf.Density(ANGLES, [L, K]), DATA),
    "angles, the other way round": lambda: mf.fit(mf.Density(ANGLES, [K, L]), DATA),
    "weighted": lambda: mf.fit(mf.Density(ANGLES, [L, K]), DATA, weights=WEIGHTS),
    "weighted, the other way round": lambda: mf.fit(mf.Density(ANGLES, [K, L]), DATA, weights=WEIGHTS),
    "constrained": lambda: mf.fit(mf.Density(ANGLES, [K, L]), DATA, constraints=[mf.constraint(F, 0.5, 0.1)]),
    "two": lambda: mf.fit(
        mf.Likelihood(mf.Density(ANGLES, [L, K]), DATA) + mf.Likelihood(mf.Density(ANGLES, [K, L]), DATA)
    ),
    "given": lambda: mf.fit(of_given(Q, L), DATA),
    "given, the other way round": lambda: mf.fit(of_given(L, Q), DATA),
    "given, no other": lambda: mf.fit(of_given(Q), DATA),
    "given, in no formula": lambda: mf.fit(mf.Gaussian(K, F, S, given=[Q]), DATA),
    "plain": lambda: mf.fit(mf.Gaussian(K, F, S), DATA),
}


@pytest.fixture
def alone(monkeypatch):
    """Return the results of all fits, each with nothing fitted before."""
    found = {}
    for name, fit in FITS.items():
        monkeypatch.setattr(whole, "_plans", type(whole._plans)())
        found[name] = fit()
    monkeypatch.setattr(whole, "_plans", type(whole._plans)())
    return found


@pytest.mark.parametrize("step", [1, 3, -1, -4])
def test_issue_a_fit_does_not_depend_on_those_before(alone, step):
    # this used to read the columns of the first of two models that list their observables in another order
    names = list(FITS)
    for name in (names[k * step % len(names)] for k in range(len(names))):
        result = FITS[name]()
        assert result.values == alone[name].values
        assert result.nll == alone[name].nll
        assert result.minimiser == "newton"


def test_the_order_of_observables_does_not_matter():
    first, other = (mf.fit(mf.Density(ANGLES, order), DATA) for order in permutations([L, K]))
    assert other.values["f"] == pytest.approx(first.values["f"], rel=1e-9)
    assert other.nll == pytest.approx(
        mf.Likelihood(mf.Density(ANGLES, [L, K]), DATA).value([other.values["f"]])
    )


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("constrained", [False, True])
def test_issue_categories_that_differ_in_a_number_are_fitted_at_once(count, constrained):
    # three and more share one form, whose numbers were left out: an error of numpy's
    terms = [mf.Likelihood(category(k), {"k": DATA["k"] * (1 + 0.1 * k) / 1.5}) for k in range(count)]
    own = (mf.constraint(P("mu", 0.0, -1, 1), 0.02, 0.01),) if constrained else ()
    usual, other = (
        mf.fit(sum(terms[1:], terms[0]), constraints=own, minimiser=minimiser)
        for minimiser in ("auto", "minuit")
    )
    assert usual.minimiser == "newton"
    assert usual.nll == pytest.approx(other.nll, abs=SAME_MINIMUM**2)
    for name, value in usual.values.items():
        assert value == pytest.approx(other.values[name], abs=SAME_MINIMUM * usual.errors[name])
