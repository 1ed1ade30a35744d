"""What judges the written densities is judged itself: closed forms against dense sums, scipy.stats and quasi-random points."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from morefit.expr import evaluate
from tolerances import DENSE_CURVATURE, DENSE_SLOPE, DENSE_SUM, QUASI_RANDOM, SCIPY_CDF
from written import ROWS
from written.events import Dense
from written.exact import EXACT

pytestmark = pytest.mark.exhaustive
FILE = Path(__file__).parents[1] / "reference" / "written_densities.json"
REFERENCE = json.loads(FILE.read_text())
ONE = [n for n, r in ROWS.items() if len(r.ranges) == 1]
CASES = [(which, place) for which in ("full", "part") for place in ("start", "far")]
# a peak of a few thousandths of the range needs more points than there are; its integral is two error functions
SPREAD = [n for n in ROWS if n not in ONE and n != "needle_on_a_plane"]
STEP = 1e-3  # of what a parameter must move to matter

SCIPY = {
    "student_t": lambda p: stats.t(p["nu"], p["mu"], p["sigma"]),
    "johnson_su": lambda p: stats.johnsonsu(p["gamma"], p["delta"], p["xi"], p["lam"]),
    "breit_wigner": lambda p: stats.cauchy(p["m"], p["gamma"] / 2),
    "exponentially_modified_gaussian": lambda p: stats.exponnorm(1 / (p["lam"] * p["sigma"]), p["mu"], p["sigma"]),
    "moyal": lambda p: stats.moyal(p["mu"], p["sigma"]),
    "gumbel": lambda p: stats.gumbel_r(p["mu"], p["beta"]),
    "hyperbolic_secant": lambda p: stats.hypsecant(p["mu"], 2 / np.pi * p["sigma"]),
    "logistic": lambda p: stats.logistic(p["mu"], p["sigma"]),
    "crystal_ball": lambda p: stats.crystalball(p["alpha"], p["n"], p["mu"], p["sigma"]),
    "generalised_normal": lambda p: stats.gennorm(p["beta"], p["mu"], p["alpha"]),
    "laplace": lambda p: stats.laplace(p["m"], p["b"]),
    "asymmetric_laplace": lambda p: stats.laplace_asymmetric(p["kappa"], p["m"], p["b"]),
    "triangle": lambda p: stats.triang(0.5, p["c"] - p["w"], 2 * p["w"]),
    "gamma_below_one": lambda p: stats.gamma(p["k"], 0, p["theta"]),
    "beta_below_one": lambda p: stats.beta(p["a"], p["b"]),
    "weibull_below_one": lambda p: stats.weibull_min(p["k"], 0, p["lam"]),
    "log_normal_with_a_threshold": lambda p: stats.lognorm(p["s"], p["theta"], p["m"]),
    "power_law_above_a_threshold": lambda p: stats.gamma(p["p"] + 1, p["t"], p["s"]),
    "pareto": lambda p: stats.pareto(p["a"], 0, p["m"]),
    "box": lambda p: stats.uniform(p["a"], p["b"] - p["a"]),
    "levy": lambda p: stats.levy(0, p["c"]),
    "von_mises": lambda p: stats.vonmises(p["kappa"], p["mu"]),
}  # fmt: skip


def entry(name, which, place):
    found = REFERENCE[f"{name}/{which}/{place}"]
    return found["events"], found["sum"], found["integral"]


@pytest.mark.parametrize(("which", "place"), CASES)
@pytest.mark.parametrize("name", ONE)
def test_integral_agrees_with_a_dense_sum(name, which, place):
    row = ROWS[name]
    _, _, (value, *_) = entry(name, which, place)
    assert np.log(Dense(row, which, row.point(place)).integral) == pytest.approx(value[0], abs=DENSE_SUM)


SLOPES = [(n, "full", "start") for n in ONE if ROWS[n].order > 1]
SLOPES += [(n, *case) for n in ONE if n not in EXACT for case in CASES[1:]]  # by quadrature with many digits


@pytest.mark.parametrize(("name", "which", "place"), SLOPES)
def test_slopes_and_curvatures_agree_with_differences_of_dense_sums(name, which, place):
    row = ROWS[name]
    events, sums, (_, gradient, hessian) = entry(name, which, place)
    point = row.point(place)
    for k, parameter in enumerate(row.floating):
        bends = abs(hessian[k][k]), abs(sums[2][k][k]) / len(events["x"]), gradient[k] ** 2
        size = np.sqrt(max(bends)) or 1.0
        moved = (point | {parameter: point[parameter] + s * STEP / size} for s in (1, 0, -1))
        up, here, down = (np.log(Dense(row, which, values).integral) for values in moved)
        assert (up - down) / (2 * STEP) == pytest.approx(gradient[k] / size, abs=DENSE_SLOPE)
        if not row.blur:
            assert (up - 2 * here + down) / STEP**2 == pytest.approx(
                hessian[k][k] / size**2, abs=DENSE_CURVATURE
            )


@pytest.mark.parametrize(("which", "place"), CASES)
@pytest.mark.parametrize("name", SCIPY)
def test_normalised_densities_agree_with_scipy(name, which, place):
    row = ROWS[name]
    events, sums, integral = entry(name, which, place)
    known = SCIPY[name](row.point(place))
    low, high = row.box(which)["x"]
    inside = known.cdf(high) - known.cdf(low) if known.cdf(low) < 0.5 else known.sf(low) - known.sf(high)
    expected = np.mean(known.logpdf(events["x"])) - np.log(inside)
    assert sums[0][0] / len(events["x"]) - integral[0][0] == pytest.approx(expected, abs=SCIPY_CDF)


@pytest.mark.parametrize("which", ["full", "part"])
@pytest.mark.parametrize("name", SPREAD)
def test_integral_in_more_dimensions_agrees_with_quasi_random_points(name, which):
    row = ROWS[name]
    _, _, (value, *_) = entry(name, which, "start")
    low, high = np.array(list(row.box(which).values())).T
    points = qmc.scale(qmc.Sobol(len(low), seed=1).random_base2(17), low, high)
    columns = dict(zip(row.ranges, points.T, strict=True))
    density = evaluate(row.model(which).density(), {**row.point("start"), **columns})
    assert np.log(np.mean(density) * np.prod(high - low)) == pytest.approx(value[0], abs=QUASI_RANDOM)
