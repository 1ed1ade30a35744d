"""Densities that are infinite at an end, at both, or at one that moves: fits are valid where numbers have digits, else refused."""

import numpy as np
import pytest
from scipy import integrate

import morefit as mf
from tolerances import PULL_SIGMAS

U, V = np.random.default_rng(4).uniform(size=(2, 4000))
K = mf.Parameter("k", 0.4, 0.01, 5)


def power(exponent, low=0.0, width=1.0):
    """Return events of (x - low)**(exponent - 1) on a range."""
    return low + width * U ** (1 / exponent)


POLES = {
    "low end": (lambda x, k: x ** (k - 1), (0, 1), power(0.11), 0.11),
    "far below one": (lambda x, k: x ** (k - 1), (0, 1), power(0.05), 0.05),
    "both ends": (lambda x, k: x ** (k - 1) * (1 - x) ** (2 * k - 1), (0, 1), None, 0.15),
    "with a tail": (lambda x, k: x ** (k - 1) * np.exp(-x / 2), (0, 40), None, 0.11),
    "with a logarithm": (lambda x, k: -(x ** (k - 1)) * np.log(x), (0, 1), (U * V) ** (1 / 0.2), 0.2),
    "logarithms alone": (lambda x, k: k - np.log(x), (0, 1), None, 1.0),
    "an end that is a parameter": (
        lambda x, k: mf.where(x > mf.Parameter("t", 0.5, 0, 1, fixed=True), (x - mf.Parameter("t", 0.5, 0, 1, fixed=True)) ** (k - 1), 0),
        (0, 2), power(0.35, 0.5, 1.5), 0.35,
    ),
    "in the middle": (lambda x, k: abs(x - 0.3) ** (k - 1), (0, 0.6), 0.3 + 0.3 * np.sign(V - 0.5) * U ** (1 / 0.4), 0.4),
}  # fmt: skip


# The pole that is nearer to the end of what can be integrated tells more than the other of its kind; that with a tail is one
# of "both ends".
ALIKE = {"low end", "with a tail"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in ALIKE)) for n in POLES]
)
def test_a_fit_next_to_a_pole_is_valid_and_checked(name):
    # the check after a fit used to miss what lies next to a pole, so that right fits were called invalid
    formula, ends, events, truth = POLES[name]
    x = mf.Observable("x", *ends)
    model = mf.Density(formula(x, K), [x])
    if events is None:
        events = mf.generate(model, 4000, truth={"k": truth}, seed=1).columns["x"]
    result = mf.fit(model, {"x": events}, errors="naive")
    assert result.valid, result.reasons
    assert abs(result.values["k"] - truth) < PULL_SIGMAS * result.errors["k"]
    assert result.integral_errors.get("nll", 0.0) < 1e-6


def test_a_pole_along_a_line_of_two_observables_is_checked():
    x, y = mf.Observable("x", 0, 1), mf.Observable("y", 0, 1)
    model = mf.Density(abs(x - y) ** (K - 1), [x, y])
    data = mf.generate(mf.Density(1 + 0 * x * y, [x, y]), 500, seed=2)
    result = mf.fit(model, data)
    assert result.valid, result.reasons
    assert result.values["k"] == pytest.approx(1, abs=0.2)


def test_events_that_numbers_cannot_tell_from_a_pole_make_a_fit_invalid():
    # it used to be valid, with k = 0.0775 +- 0.0011 for a truth of 0.05
    x = mf.Observable("x", 2, 3)
    events = np.maximum(power(0.05, 2.0), np.nextafter(2, 3))
    result = mf.fit(mf.Density((x - 2) ** (K - 1), [x]), {"x": events})
    assert not result.valid
    assert "events are so close to where it is infinite that rounding of 'x' changes it" in result.reasons[0]


@pytest.mark.parametrize("end", [2, 3])
def test_events_that_numbers_cannot_tell_from_a_pole_are_not_drawn(end):
    x = mf.Observable("x", 2, 3)
    model = mf.Density(abs(x - end) ** (K - 1), [x])
    with pytest.raises(
        mf.ModelError, match=f"observable 'x': 0.0.* lies within rounding of {end}, where it is inf"
    ):
        mf.generate(model, 10, truth={"k": 0.1}, seed=1)
    assert len(mf.generate(model, 10, truth={"k": 0.3}, seed=1)) == 10


@pytest.mark.parametrize("threshold", [0.9, 1.5, 2.99, 3.05])
@pytest.mark.parametrize("power_law", [lambda d, k: np.maximum(d, 0) ** k, lambda d, k: np.sqrt(np.maximum(d, 0)) * k,
                                       lambda d, k: abs(d) ** (0.3 * k - 0.3)])  # fmt: skip
def test_a_threshold_may_leave_the_range(threshold, power_law):
    # the empty panel beyond the range used to make the integral not a number
    x, t, k = mf.Observable("x", 1, 3), mf.Parameter("t", 1.2, 0.8, 3.2), mf.Parameter("k", 2.1, 0.3, 4)
    model = mf.Density(power_law(x - t, k) + 0.1, [x])
    values, data = {"t": threshold, "k": 2.1}, np.array([1.31, 2.6])

    def judge(move):
        area, _ = integrate.quad(
            lambda v: power_law(v - threshold - move, 2.1) + 0.1,
            1,
            3,
            points=[np.clip(threshold + move, 1, 3)],
            epsabs=1e-12,
        )
        return 2 * np.log(area) - np.sum(np.log(power_law(data - threshold - move, 2.1) + 0.1))  # fmt: skip

    nll = mf.Likelihood(model, {"x": data})
    point = [values[p.name] for p in nll.parameters]
    assert nll.value(point) == pytest.approx(judge(0), abs=1e-7)
    slope = nll.gradient(point)[[p.name for p in nll.parameters].index("t")]
    assert slope == pytest.approx((judge(1e-4) - judge(-1e-4)) / 2e-4, rel=1e-4, abs=1e-4)
    assert np.diff(model.cdf([1, 2, 3], values)).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "formula", [lambda d, w: np.maximum(d, 0) ** 1.3 + w, lambda d, w: mf.where(d > 0, np.exp(-d / w), 0.3)]
)
def test_issue_an_edge_that_starts_beyond_the_range_leaves_an_empty_panel(formula):
    # the branch beyond the edge, a power of a negative number or an exponential that overflows, used to be multiplied by zero
    x, t, w = mf.Observable("x", 0, 1), mf.Parameter("t", 1.5, 0, 3), mf.Parameter("w", 1e-3, 1e-4, 1)
    model = mf.Density(formula(x - t, w), [x])
    assert model.integrate({"x": (0, 0.25)}, {"t": 2.5, "w": 1e-3}) == pytest.approx(0.25, rel=1e-12)
    assert model.cdf(0.25) == pytest.approx(0.25, rel=1e-12)
