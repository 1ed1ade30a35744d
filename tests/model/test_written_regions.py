"""Regions whose edges cross, and conditions that cannot be solved: integrals are right, derivatives are right or refused."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import integrate, optimize

import morefit as mf
from morefit.expr import Op, domain_of, evaluate, toposort
from morefit.model.integrate import integral_over
from tolerances import INTEGRAL_PROMISE

X, Y = mf.Observable("x", -1, 1), mf.Observable("y", 0, 1)
A, B = mf.Parameter("a", 0.35, -0.1, 1.1), mf.Parameter("b", 0.28, -0.1, 1.1)
REGIONS = {
    "two slanted edges": (lambda x, a: a - 0.47 * x, lambda x, b: b - 0.31 * x),
    "a slanted and a curved edge": (lambda x, a: a - 0.47 * x, lambda x, b: b + 0.6 * (x - 0.2) ** 2),
}
STEP = 1e-3


def log_area(region, values):
    """Return ln of the integral of 1.5 above both edges and 0.3 elsewhere, by the heights of both along x."""
    one, other = REGIONS[region]

    def above(x):
        return 1 - np.clip(max(one(x, values["a"]), other(x, values["b"])), 0, 1)

    grid = np.linspace(-1, 1, 4001)
    heights = [one(grid, values["a"]), other(grid, values["b"])]
    edges = [heights[0] - heights[1], *heights, heights[0] - 1, heights[1] - 1]
    kinks = [grid[k] - e[k] * (grid[k + 1] - grid[k]) / (e[k + 1] - e[k]) for e in edges
             for k in np.flatnonzero(e[:-1] * e[1:] < 0)]  # fmt: skip
    cuts = [-1, *sorted(kinks), 1]
    parts = [integrate.quad(above, *cut, epsabs=1e-13)[0] for cut in pairwise(cuts)]
    return np.log(0.6 + 1.2 * sum(parts))


@pytest.mark.parametrize("values", [{"a": 0.35, "b": 0.28}, {"a": 0.6, "b": 0.15}])
@pytest.mark.parametrize("region", REGIONS)
def test_edges_of_a_region_may_cross(region, values):
    # they used to be refused, as a kink that cannot be solved
    one, other = REGIONS[region]
    model = mf.Density(mf.where((Y > one(X, A)) & (Y > other(X, B)), 1.5, 0.3), [X, Y])
    nll = mf.Likelihood(model, {"x": np.array([-0.9]), "y": np.array([0.01])})  # far from both edges
    point = [values[p.name] for p in nll.parameters]
    first = -np.log(0.3)
    assert nll.value(point) == pytest.approx(first + log_area(region, values), abs=1e-9)
    gradient, hessian = nll.gradient(point), nll.hessian(point)
    for k, p in enumerate(nll.parameters):
        moved = [values | {p.name: values[p.name] + s * STEP} for s in (-1, 0, 1)]
        low, here, high = (log_area(region, v) for v in moved)
        assert gradient[k] == pytest.approx((high - low) / (2 * STEP), abs=1e-5)
        assert hessian[k, k] == pytest.approx((high - 2 * here + low) / STEP**2, abs=2e-2)


def test_a_condition_that_cannot_be_solved_is_not_decided_by_the_middle_of_a_panel():
    # the integral used to be 16.5: the middle of the panel beyond t was taken for all of it
    x, a, t = mf.Observable("x", 0, 3), mf.Parameter("a", 1, 0.9, 1.1), mf.Parameter("t", 0.5, 0.2, 0.9)
    model = mf.Density(mf.where(x > t, 2, 1) * mf.where(x * np.exp(a * x) + np.sin(x) > 30, 1, 3), [x])
    grid = (np.arange(1_000_000) + 0.5) * 3e-6
    for values in ({"a": 1.0, "t": 0.5}, {"a": 1.08, "t": 0.8}):
        heights = np.where(grid > values["t"], 2, 1) * np.where(
            grid * np.exp(values["a"] * grid) + np.sin(grid) > 30, 1, 3
        )
        assert evaluate(model.integral(), values) == pytest.approx(3 * heights.mean(), rel=1e-5)


def test_derivatives_where_a_condition_that_cannot_be_solved_matters_are_refused():
    # at the start it does not, and a Hessian far away used to be wrong by a factor three
    x = mf.Observable("x", 0, 6)
    a, b = mf.Parameter("a", 0.2, -1.5, 1.5), mf.Parameter("b", 0.1, -1.5, 1.5)
    model = mf.Density(np.maximum(1 + a * np.cos(40 * x) + b * np.sin(63 * x), 0.05), [x])
    nll = mf.Likelihood(model, {"x": np.array([1.0, 2.0, 5.0])})
    assert np.isfinite(nll.hessian([0.2, 0.1])).all()
    for derivative in (nll.gradient, nll.hessian, (nll + mf.Likelihood(model, [1.0])).hessian):
        with pytest.raises(mf.ModelError, match="its integral has a kink that moves with 'a'"):
            derivative([1.2, 0.8])
        with pytest.raises(mf.ModelError, match="its integral has a kink that moves with 'a'"):
            derivative([[0.2, 0.1], [1.2, 0.8]])


def test_functions_that_no_formula_solves_may_cross():
    # they used to be refused
    x = mf.Observable("x", 0, 6)
    a, b = mf.Parameter("a", 1.2, 0.5, 3), mf.Parameter("b", 0.3, 0.05, 1)
    nll = mf.Likelihood(mf.Density(np.maximum(np.exp(-a * x), b * (0.2 + x)), [x]), {"x": [0.01]})

    def exact(a, b):
        place = optimize.brentq(lambda u: np.exp(-a * u) - b * (0.2 + u), 0, 6, xtol=1e-15)
        line = b * (0.2 * (6 - place) + (36 - place**2) / 2)
        return np.log((1 - np.exp(-a * place)) / a + line) + 0.01 * a

    for point in ([1.2, 0.3], [2.1, 0.6]):
        hessian, steps = nll.hessian(point), np.eye(2) * 1e-3
        assert nll.value(point) == pytest.approx(exact(*point), abs=1e-12)
        for k, step in enumerate(steps):
            low, high = exact(*(point - step)), exact(*(point + step))
            assert nll.gradient(point)[k] == pytest.approx((high - low) / 2e-3, abs=1e-5)
            assert hessian[k, k] == pytest.approx((high - 2 * exact(*point) + low) / 1e-6, abs=1e-4)


def test_a_derivative_that_is_zero_is_not_refused():
    # whole waves have the same area at any phase; what rounding left of that was taken for a kink
    x, phase = mf.Observable("x", 0, 10), mf.Parameter("phase", -1.757, -3, 3)
    a = mf.Parameter("a", 0.974, 0, 2)
    wave = np.maximum(0.3, 1 + a * np.cos(phase + 0.4 * np.pi * x)) * (
        1 + 0.32 * np.cos(0.44 + 0.2 * np.pi * x)
    )
    nll = mf.Likelihood(mf.Density(0.3 + 0.05 * wave, [x]), {"x": [7.0]})
    known = mf.Likelihood(mf.Density(0.3 + 0.05 * wave, [x], integral=1.0, check=False), {"x": [7.0]})
    point = [{"phase": -1.757, "a": 0.974}[p.name] for p in nll.parameters]
    k = [p.name for p in nll.parameters].index("phase")
    assert nll.gradient(point)[k] == pytest.approx(known.gradient(point)[k], abs=1e-10)


def area(p):
    """Return the area of a disc below a slanted line, times three, and of the rest of a square."""
    line = np.clip(p["c"] / np.sqrt(2) / p["r"], -1, 1)  # its distance from the middle, in radii
    below = p["r"] ** 2 * (np.pi - np.arccos(line) + line * np.sqrt(1 - line**2))
    return 4 + 2 * below


@pytest.mark.parametrize("values", [{"r": 0.8, "c": 0.3}, {"r": 0.6, "c": -0.45}])
def test_a_disc_may_be_cut_by_a_slanted_line(values):
    # it used to be refused: where a root and a line cross was not solved for
    x, y = mf.Observable("x", -1, 1), mf.Observable("y", -1, 1)
    r, c = mf.Parameter("r", 0.8, 0.1, 0.95), mf.Parameter("c", 0.3, -1.5, 1.5)
    model = mf.Density(mf.where((x**2 + y**2 < r**2) & (x + y < c), 3.0, 1.0), [x, y])
    nll = mf.Likelihood(model, {"x": [-0.99], "y": [-0.99]})
    point = [values[p.name] for p in nll.parameters]
    gradient, step = nll.gradient(point), 1e-4
    assert nll.value(point) == pytest.approx(np.log(area(values)), abs=1e-10)
    for k, p in enumerate(nll.parameters):
        low, high = (np.log(area(values | {p.name: values[p.name] + s * step})) for s in (-1, 1))
        assert gradient[k] == pytest.approx((high - low) / (2 * step), abs=1e-6)


def test_a_ball_has_edges_in_all_orders():
    # two roots that cross were not solved for, so that each derivative was compared with differences for seconds
    x, y, z = (mf.Observable(name, -1, 1) for name in "xyz")
    r = mf.Parameter("r", 0.8, 0.1, 1.4)
    density = mf.where(x**2 + y**2 + z**2 < r**2, 1.0, 0.1)
    (integral,) = (n for n in toposort(integral_over(density, [x, y, z], [r])) if n.op is Op.INTEGRAL)
    assert len(integral.args) == 2 + len(domain_of(integral).places)  # nothing was left unsolved


def test_ridges_of_resonances_in_a_region_share_one_copy_of_the_density():
    # this used to be copied for every panel, as if a resonance and the root in a condition were poles: amplitudes in a Dalitz
    # plot took minutes to compile
    x, y, width = mf.Observable("x", -1, 1), mf.Observable("y", -1, 1), mf.Parameter("width", 0.2, 0.05, 0.3)
    edge = np.sqrt(np.maximum(1 - x**2, 0))
    resonances = 1 / ((x - y - 0.1) ** 2 + width**2) + 1 / ((x - 0.2) ** 2 + 0.04)
    total = mf.Density(mf.where((y < edge) & (y > -edge), resonances, 0.0), [x, y]).integral()
    assert len(toposort(total)) < 500
    u, w = leggauss(200)
    across, up = np.sin(np.pi / 2 * u)[:, None], np.cos(np.pi / 2 * u)[:, None]
    heights = 1 / ((across - up * u - 0.1) ** 2 + 0.04) + 1 / ((across - 0.2) ** 2 + 0.04)
    expected = np.pi / 2 * w @ (up[:, 0] ** 2 * (heights @ w))
    assert evaluate(total, {"width": 0.2}) == pytest.approx(expected, rel=INTEGRAL_PROMISE)
