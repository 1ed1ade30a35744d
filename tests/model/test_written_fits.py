"""Fits of written densities find what events were drawn with, with the errors of the exact Hessian."""

import numpy as np
import pytest
from mpmath import mp, mpf

import morefit as mf
from tolerances import PULL_SIGMAS, WRITTEN_ERRORS
from written import ROWS
from written.events import Dense, draw
from written.exact import EXACT
from written.precise import DIGITS, derivatives, record

EVENTS = 2000
STEP = 0.05  # of an error, for differences of dense sums
# One or two of each way to integrate: kinks, ends and poles that move, boxes, needles, tails, waves, several observables.
# What a fit joins, values and derivatives near the start and far away, test_written_densities.py looks at for all.
ALWAYS = {
    "triangle", "argus", "gamma_below_one", "power_law_above_a_threshold", "erf_times_exponential", "step_on_an_exponential",
    "three_of_a_hundred_boxes", "hats_between_knots", "polynomial_in_mev", "cosine_series", "student_t", "needle_breit_wigner",
    "voigt", "needle_at_an_expression", "crystal_ball", "generalised_normal", "asymmetric_laplace", "novosibirsk",
    "landau_with_a_power_tail", "needle_on_a_plane", "slanted_edge", "gaussian_in_three_dimensions",
}  # fmt: skip
FITTED = [n for n, r in ROWS.items() if set(r.floating) - set(r.loose) and r.order > 1]


def integral_hessian(row, values, names, errors):
    """Return the second derivatives of ln of the integral, from a closed form or from dense sums."""
    if row.name not in EXACT:
        return by_differences(lambda v: np.log(Dense(row, "full", v).integral), values, names, errors)
    with mp.workdps(DIGITS):
        ranges = [tuple(map(mpf, r)) for r in row.ranges.values()]
        arguments = ranges[0] if len(ranges) == 1 else ranges
        point = {n: mpf(v) for n, v in values.items()}
        found = derivatives(lambda v: mp.log(EXACT[row.name](record(v), *arguments)), point, names)
        return np.array([[float(v) for v in line] for line in found[2]])


def by_differences(function, values, names, errors):
    """Return second derivatives by central differences over a part of the errors."""
    step = {n: STEP * errors[n] for n in names}

    def at(**moves):
        return function({n: v + moves.get(n, 0) * step.get(n, 0.0) for n, v in values.items()})

    hessian = np.zeros((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i == j:
                second = at(**{a: 1}) - 2 * at() + at(**{a: -1})
            else:
                second = (
                    at(**{a: 1, b: 1}) - at(**{a: 1, b: -1}) - at(**{a: -1, b: 1}) + at(**{a: -1, b: -1})
                ) / 4
            hessian[i, j] = second / (step[a] * step[b])
    return hessian


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n not in ALWAYS)) for n in FITTED]
)
def test_fit_finds_the_truth_with_the_errors_of_the_exact_hessian(name):
    row = ROWS[name]
    truth = row.point("truth")
    data = draw(row, "full", truth, EVENTS, 21)
    model = row.model(fixed=row.loose, start={n: truth[n] for n in row.loose})
    result = mf.fit(model, data, errors="naive")
    assert result.valid, result.reasons
    names = list(result.floating)
    assert not result.at_limit
    pulls = {n: (result.values[n] - truth[n]) / result.errors[n] for n in names}
    assert all(abs(p) < PULL_SIGMAS for p in pulls.values()), pulls
    values = {n: float(result.values[n]) for n in row.parameters}
    events = mf.Likelihood(row.known(), data)
    rows = [[p.name for p in events.parameters].index(n) for n in names]
    hessian = events.hessian([values[p.name] for p in events.parameters])[np.ix_(rows, rows)]
    hessian += EVENTS * integral_hessian(row, values, names, result.errors)
    expected = np.sqrt(np.diag(np.linalg.inv(hessian)))
    np.testing.assert_allclose([result.errors[n] for n in names], expected, rtol=WRITTEN_ERRORS)
