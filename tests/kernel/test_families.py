"""Families of parameters: fewer sums, the same Hessian."""

import numpy as np
import pytest

import morefit as mf
from morefit.expr import Op, column, const, scalar
from morefit.kernel.families import Finder, Product
from morefit.kernel.sums import Request, event_terms
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import simplifier
from tolerances import REORDERED

P = mf.Parameter
M = mf.Observable("m", 5.0, 5.6)


def tailed():
    signal = mf.shapes.DoubleCrystalBall(
        M, P("mu", 5.28, 5.2, 5.36), P("sigma", 0.02, 0.005, 0.1), P("alpha_left", 1.5, 0.5, 4.0),
        P("n_left", 3.0, 1.1, 20.0), P("alpha_right", 1.8, 0.5, 4.0), P("n_right", 4.0, 1.1, 20.0),
    )  # fmt: skip
    background = mf.shapes.Chebyshev(M, [P("c1", -0.3, -1.0, 1.0)])
    return mf.Sum([signal, background], fractions=[P("f", 0.5, 0.0, 1.0)])


def test_the_second_derivatives_of_a_tailed_peak_are_made_of_sixteen_sums():
    model = tailed()
    request = Request(model.log_intensity(), tuple(p.expr for p in model.parameters), 2)
    (family,) = event_terms(request).structure.members
    assert len(family.slopes) == 6
    assert len(family.pairs) == 21
    assert len(family.sums) == 16  # of 76 terms
    assert {other for _, other in family.crossed} == {7}  # the fraction


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_hessian_of_a_family_is_the_slope_of_its_gradient(weighted, backend):
    rng = np.random.default_rng(1)
    data = {"m": np.r_[rng.normal(5.28, 0.04, 300), rng.uniform(5.0, 5.6, 201)].clip(5.0, 5.6)}
    weights = rng.uniform(0.5, 1.5, 501) if weighted else None
    nll = mf.Likelihood(tailed(), mf.Dataset(data, weights=weights), backend=backend)
    at = np.array([p.start for p in nll.parameters])
    steps = np.diag([1e-6 * (p.high - p.low) for p in nll.parameters])
    slopes = np.array([(nll.gradient(at + s) - nll.gradient(at - s)) / (2 * s.sum()) for s in steps])
    hessian = nll.hessian(at)
    scale = np.sqrt(np.outer(np.diag(hessian), np.diag(hessian)))
    np.testing.assert_allclose((hessian - slopes) / scale, 0.0, atol=1e-5)


def test_events_with_bad_densities_are_left_out_of_all_sums():
    model, good = tailed(), np.linspace(5.1, 5.45, 40)
    at = np.array([p.start if p.name != "c1" else -1.5 for p in model.parameters])
    at[[p.name for p in model.parameters].index("f")] = 0.0
    nll = mf.Likelihood(model, {"m": np.r_[good, 5.6]}, backend="cpu")  # the last has a negative density
    np.testing.assert_allclose(
        nll.evaluate_full(at[None], 2).hessian[0],
        mf.Likelihood(model, {"m": good}, backend="cpu").hessian(at),
        rtol=REORDERED,
    )


def test_differences_of_observables_and_parameters_are_not_multiplied_out():
    x, mu, s = column("x"), scalar("mu"), scalar("s")
    new = simplifier()
    distance = x - mu
    density = Op.EXP(-s * distance**2)
    first = derivatives(density, [mu, s], new)
    second = [d for i, slope in enumerate(first) for d in derivatives(slope, [mu, s][: i + 1], new)]
    finder = Finder(first, second, new)
    ((_, (region, powers)),) = finder.opened(Product.of(new(Op.MUL, (const(3.0), distance))))
    assert region == ()
    assert [power for _, power in powers] == [1.0]


def test_several_loops_give_the_sums_of_one():
    model, data = tailed(), {"m": np.linspace(5.0, 5.6, 1003)}
    at = np.array([p.start for p in model.parameters])
    several = mf.Likelihood(model, data, backend="cpu").hessian(at)
    one = mf.Likelihood(model, data, backend="reference").hessian(at)
    np.testing.assert_allclose(several, one, rtol=REORDERED, atol=REORDERED * np.abs(one).max())
