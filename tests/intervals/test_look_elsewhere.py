"""The look-elsewhere effect by toys: q of each point, global p-values, long jobs, refusals."""

import pickle
import sys

import numpy as np
import pytest

import morefit as mf
from morefit.intervals import look_elsewhere as function
from morefit.intervals.look_elsewhere import NAME, LookElsewhere

M = mf.Observable("m", 0.0, 10.0)
MEAN, SLOPE = mf.Parameter("mean", 4.0, 0.5, 9.5), mf.Parameter("slope", -0.2, -1.0, 1.0)
S, B = mf.Parameter("s", 10.0, -20.0, 200.0), mf.Parameter("b", 300.0, 0.0, 1000.0)
POINTS = np.linspace(1.0, 9.0, 17)


def bump(mean=MEAN):
    return mf.Sum([mf.Gaussian(M, mean, 0.3), mf.Exponential(M, SLOPE)], yields=[S, B])


DATA = mf.generate(bump(), truth={"s": 18.0}, seed=3)


def search(nll=None, **options):
    nll = mf.Likelihood(bump(), DATA) if nll is None else nll
    return function(
        nll, S, MEAN, options.pop("points", POINTS), progress=False, **{"seed": 1, "toys": 50, **options}
    )


def test_q_is_that_of_a_discovery_at_each_point():
    result = search(toys=0)
    for k in (0, 6, 16):
        local = mf.intervals.discovery(
            mf.Likelihood(bump(mf.Parameter("at", POINTS[k], fixed=True)), DATA), S
        )
        assert result.q[k] == pytest.approx(local.q, abs=1e-5)
        assert result.best[k] == pytest.approx(local.best, rel=1e-3)
    assert result.local_significance == pytest.approx(np.sqrt(result.q.max()))
    assert result.point == POINTS[np.argmax(result.q)]
    assert np.isnan(result.p_value)
    assert len(result.toys) == 0


def test_the_q_of_toys_is_half_a_chi_square_and_global_p_values_agree():
    result = search(toys=120, points=np.linspace(1.0, 9.0, 33))
    assert result.toy_q.shape == (120, 33)
    assert np.mean(result.toy_q > 0) == pytest.approx(0.5, abs=0.04)
    assert np.mean(result.toy_q) == pytest.approx(0.5, abs=0.06)
    weaker = LookElsewhere(
        "s", "mean", 0.0, result.points, np.minimum(result.q, 8.0), result.best, result.toy_q
    )
    # eight units of q are common: both ways to a global p-value agree there, far above the local one
    assert weaker.p_value == pytest.approx(weaker.toy_p_value, abs=4 * weaker.toy_p_error)
    assert weaker.p_value > 5 * weaker.local_p_value
    assert 0 < weaker.significance < weaker.local_significance


def test_toys_depend_on_the_seed_alone_and_a_job_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[LookElsewhere.__module__], "BLOCK", 10)
    first = search(toys=25, save=tmp_path / "toys.npz")
    again = search(toys=25, save=tmp_path / "toys.npz")
    assert first.toy_q.shape == (25, 17)
    np.testing.assert_array_equal(first.toy_q, again.toy_q)
    with pytest.raises(mf.MorefitError, match="data"):
        search(toys=25, save=tmp_path / "toys.npz", points=POINTS[1:])


@pytest.mark.parametrize("backend", ["reference", pytest.param("opencl", marks=pytest.mark.exhaustive)])
def test_toys_are_those_of_every_backend(backend):
    ours, others = search(toys=2, points=[3.0, 4.0]), search(toys=2, points=[3.0, 4.0], backend=backend)
    np.testing.assert_allclose(others.toy_q, ours.toy_q, atol=2e-3)


def test_bins_and_constraints_are_searched_as_well():
    edges = np.linspace(0, 10, 51)
    counts = np.histogram(DATA["m"], edges)[0]
    nll = mf.BinnedLikelihood(bump(), (counts, edges), constraints=[mf.constraint(SLOPE, -0.2, 0.05)])
    result = search(nll, points=[3.0, 4.0, 5.0])
    assert result.q[1] == pytest.approx(search(toys=0, points=[3.0, 4.0]).q[1], rel=0.3)
    assert np.isfinite(result.toy_q).all()


def test_a_scanned_parameter_with_an_effect_without_a_signal_has_a_null_hypothesis_at_each_point():
    # this used to have one at the best value, and a q of 0 far from it
    nll, points = mf.Likelihood(bump(), DATA, constraints=[mf.constraint(MEAN, 4.0, 0.1)]), [3.0, 4.0, 6.0]
    result = search(nll, points=points, toys=40)
    np.testing.assert_allclose(result.q, search(points=points, toys=0).q, atol=1e-4)
    np.testing.assert_allclose(result.toy_q.mean(), 0.5, atol=0.4)


def test_it_prints_itself_and_pickles():
    result = pickle.loads(pickle.dumps(search()))
    lines = str(result).splitlines()
    assert lines[0] == "look elsewhere: s = 0 against larger values at 17 values of mean"
    assert "local significance" in lines[1]
    assert lines[2].endswith("by upcrossings")
    assert lines[3].startswith("  50 toys: p-value")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": [4.0]}, "points must be two or more values of 'mean', got 1"),
        ({"points": [4.0, 12.0]}, r"values of 'mean' must be a list of numbers in \[0.5, 9.5\]"),
        ({"toys": -1}, "toys must be"),
        ({"value": -30.0}, r"values of 's' must be a list of numbers in \[-20.0, 200.0\]"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(mf.MorefitError, match=f"{NAME}: .*{message}"):
        search(**options)


def test_parameters_must_float_and_differ():
    with pytest.raises(mf.FitError, match="look_elsewhere: needs two different parameters, got 's' twice"):
        function(mf.Likelihood(bump(), DATA), S, S, POINTS)
    with pytest.raises(mf.FitError, match="look_elsewhere: needs floating parameters, got 'mass'"):
        function(mf.Likelihood(bump(), DATA), S, "mass", POINTS)
