"""Fits from several starts find the lowest minimum, and list the others."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.minimise.batch import Fits
from morefit.minimise.problem import make_problem
from morefit.minimise.search import distinct, start_points

X = mf.Observable("x", -5.0, 5.0)
A = mf.Parameter("a", 0.9, -3.0, 3.0)
TWO_WELLS = mf.Gaussian(X, A**4 - 2 * A**2 + 0.3 * A + 1.2, 0.5)  # the lower one on the other side


def two_peaks(count=300):
    """Two Gaussians that may change places."""
    rng = np.random.default_rng(1)
    peaks = [
        mf.Gaussian(X, mf.Parameter(f"m{k}", -1.0 + k, -4, 4), mf.Parameter(f"s{k}", 0.6, 0.1, 2))
        for k in (0, 1)
    ]
    model = mf.Sum(peaks, fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])
    return model, {"x": np.concatenate([rng.normal(-1.5, 0.5, count), rng.normal(1.5, 0.8, count)])}


def test_the_lowest_minimum_is_the_result():
    plain, found = mf.fit(TWO_WELLS, {"x": [0.0, 0.1]}), mf.fit(TWO_WELLS, {"x": [0.0, 0.1]}, starts=10)
    assert plain.values["a"] > 0 > found.values["a"]
    assert found.valid and found.nll < plain.nll
    assert len(found.minima) >= 2
    heights = [nll for nll, _ in found.minima]
    assert heights == sorted(heights) and heights[0] == pytest.approx(found.nll, abs=1e-4)
    assert any(nll == pytest.approx(plain.nll, abs=1e-4) for nll in heights)
    others = [values["a"] for nll, values in found.minima if nll == pytest.approx(plain.nll, abs=1e-4)]
    assert others[0] == pytest.approx(plain.values["a"], abs=0.01 * plain.errors["a"])
    first = mf.fit(TWO_WELLS, {"x": [0.0, 0.1]}, start=found.minima[0][1])
    assert first.nll == pytest.approx(found.nll, abs=1e-4)


def test_minima_are_told_and_written():
    found = mf.fit(TWO_WELLS, {"x": [0.0, 0.1]}, starts=10)
    (note,) = found.notes
    assert note.startswith(f"starts: {len(found.minima)} minima from 10 starts: nll {found.nll:.3f} (")
    assert note in str(found)
    again = mf.FitResult.from_json(found.to_json())
    assert again.minima == found.minima and again.notes == found.notes


def test_components_that_change_places_are_two_minima_of_one_height():
    model, data = two_peaks()
    found = mf.fit(model, data, starts=40)
    (one, first), (other, second) = found.minima[:2]
    assert one == pytest.approx(other, abs=1e-4)
    assert first["m0"] == pytest.approx(second["m1"], abs=1e-2)
    assert found.nll == pytest.approx(mf.fit(model, data).nll, abs=1e-3)


@pytest.mark.parametrize("backend", [*JUDGE, "opencl"])
def test_every_backend_finds_the_same_minima(backend):
    data, place = {"x": [0.0, 0.1]}, there({**COMPILED, **JUDGE}[backend])
    expected, found = mf.fit(TWO_WELLS, data, starts=8), mf.fit(TWO_WELLS, data, starts=8, backend=place)
    assert [nll for nll, _ in found.minima] == pytest.approx([nll for nll, _ in expected.minima], abs=1e-5)


def test_all_starts_are_evaluated_together(monkeypatch):
    calls, plain = [], mf.Likelihood.evaluate_many

    def counted(self, data, sets, *rest):
        calls.append(len(sets))
        return plain(self, data, sets, *rest)

    monkeypatch.setattr(mf.Likelihood, "evaluate_many", counted)
    mf.fit(*two_peaks(50), starts=20)
    assert calls[0] == 20


def test_one_minimum_is_said_to_be_one():
    model = mf.Gaussian(X, mf.Parameter("mu", 0.0, -4.0, 4.0), mf.Parameter("sigma", 1.0, 0.1, 5.0))
    data = {"x": np.random.default_rng(1).normal(0, 1, 100)}
    found, plain = mf.fit(model, data, starts=5, fixed=["sigma"]), mf.fit(model, data, fixed=["sigma"])
    assert found.values == plain.values
    assert found.notes == (f"starts: 1 minimum from 5 starts: nll {plain.nll:.3f} (5 starts)",)
    assert list(found.minima[0][1]) == ["mu"]


def test_a_joint_likelihood_with_a_constraint_and_minos_is_searched():
    first = mf.Likelihood(TWO_WELLS, {"x": [0.0]}, constraints=[mf.constraint(A, 0.0, 2.0)])
    found = mf.fit(first + mf.Likelihood(TWO_WELLS, {"x": [0.1, -0.2]}), starts=10, minos=True)
    assert found.valid and found.values["a"] < 0
    assert found.minos["a"][0] < 0 < found.minos["a"][1]


def test_starts_where_no_minimum_is_are_said_to_lead_to_none():
    product = mf.Parameter("a", 1.0, 0.01, 9.0) * mf.Parameter("b", 1.0, 0.01, 9.0)
    found = mf.fit(mf.Gaussian(X, 0.0, product), {"x": [0.1, -0.3, 1.0]}, starts=3)
    assert not found.valid and found.minima == ()
    assert found.notes == ("starts: none of 3 led to a minimum",)


def test_starts_lie_within_limits_and_near_the_minimum_where_these_are_wide():
    parameters = [mf.Parameter("a", 1.0), mf.Parameter("n", 10.0, 0.0, 1e9), mf.Parameter("f", 0.1, 0.0, 1.0)]
    formula = parameters[0] + parameters[1] * 1e-3 + parameters[2] + 0 * X
    likelihood = mf.Likelihood(
        mf.Density(np.exp(-((X - formula) ** 2)), [X], integral=1.77, check=False), {"x": [1.0, 2.0]}
    )
    problem = make_problem(likelihood, None, (), None)
    result = mf.fit(likelihood, fixed=["n", "f"])
    points = start_points(problem, result, 200)
    assert list(points[0]) == list(problem.start)
    low, high = problem.floating_limits.T
    assert np.all((points >= low) & (points <= high))
    columns = dict(zip(problem.floating, points.T, strict=True))
    assert columns["n"].max() <= 20 and np.abs(columns["a"]).max() < 50
    assert columns["f"].min() < 0.1 and columns["f"].max() > 0.9


def test_minima_without_errors_are_told_apart_by_their_height():
    fits = Fits.none(np.array([[0.0], [1.0], [2.0], [3.0]]))
    fits.nll[:], fits.valid[:] = [1.0, 1.0, 2.0, 0.5], [True, True, True, False]
    assert distinct(fits) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (0, "fit: starts must be at least 1, got 0"),
        (2.5, "fit: starts must be a whole number, got 2.5"),
        ("many", "fit: starts must be a whole number, got 'many'"),
    ],
)
def test_starts_that_are_no_number_are_refused(starts, message):
    with pytest.raises(mf.OptionError, match=message):
        mf.fit(TWO_WELLS, {"x": [0.0]}, starts=starts)


def test_more_starts_than_there_is_memory_for_are_refused():
    with pytest.raises(mf.DataError, match=r"fit: 1e[+]15 starts need about"):
        mf.fit(TWO_WELLS, {"x": [0.0]}, starts=10**15)


def test_a_start_without_probability_is_left_for_another():
    slope = mf.Parameter("b", 0.0, -2.0, 2.0)
    line = mf.Density(1 + slope * X / 5, X)
    data = mf.generate(line, 200, truth={"b": 0.5}, seed=1)
    plain, found = mf.fit(line, data), mf.fit(line, data, start={"b": 2.0}, starts=8)
    assert found.valid and found.values["b"] == pytest.approx(plain.values["b"], abs=0.01 * plain.errors["b"])
    # this used to be the end of a fit from several starts, too
    with pytest.raises(mf.FitError, match=r"at the start values .* events have no positive density"):
        mf.fit(line, data, start={"b": 2.0})
    with pytest.raises(mf.FitError, match=r"at the start values .* events have no positive density"):
        mf.fit(line, data, start={"b": 2.0}, limits={"b": (1.5, 2.0)}, starts=3)
