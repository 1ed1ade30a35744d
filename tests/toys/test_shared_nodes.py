"""Toys whose integrals for each event lack nodes where their fits ended are fitted again together, with nodes that they share."""

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood.wider import beyond
from morefit.toys import nodes
from tolerances import SAME_MINIMUM

X = mf.Observable("x", 0.6, 1.3)
MASS, WIDTH = mf.Parameter("mass", 0.895, 0.85, 0.95), mf.Parameter("width", 0.05, 0.02, 0.1)
BLUR, SHARE = mf.Parameter("blur", 0.01, 0.002, 0.05), mf.Parameter("share", 0.6, 0.0, 1.0)
PEAK = mf.Convolution(mf.shapes.RelativisticBreitWigner(X, MASS, WIDTH), mf.Gaussian(X, 0, BLUR))
MODEL = mf.Sum([PEAK, mf.Uniform(X)], fractions=[SHARE])
TRUTH = {"mass": 0.895, "width": 0.03, "blur": 0.028, "share": 0.6}
ARGUMENTS = {"toys": 8, "events": 1500, "seed": 3, "truth": TRUTH, "start": {"blur": 0.01, "width": 0.05}}


def study(**others):
    return mf.toy_study(MODEL, progress=False, backend=mf.Cpu(threads=1), **(ARGUMENTS | others))


def test_they_end_where_single_fits_do():
    start, backend = ARGUMENTS["start"], mf.Cpu(threads=1)
    data = [mf.generate(MODEL, 1500, truth=TRUTH, seed=seed) for seed in range(3)]
    many = mf.fit_many(MODEL, data, start=start, backend=backend)
    assert many.valid.all()
    for values, events in zip(many.values, data, strict=True):
        one = mf.fit(MODEL, events, start=start, backend=backend)
        errors = np.array([one.errors[name] for name in one.floating])
        np.testing.assert_array_less(
            abs(values - [one.values[name] for name in one.floating]), SAME_MINIMUM * errors
        )


def test_they_are_fitted_together_and_no_result_depends_on_which_others_are_there(monkeypatch):
    """Each was fitted alone and took a second: its model was compiled anew."""
    toys, groups, together = study(), [], nodes.fit_together

    def counted(toys, fits, ensemble, wrong):
        left = together(toys, fits, ensemble, wrong)
        groups.append((len(wrong), len(left), len(ensemble.with_other_nodes)))
        return left

    monkeypatch.setattr(nodes, "fit_together", counted)
    np.testing.assert_array_equal(study(toys=5).values, toys.values[:5])
    wrong, left, ensembles = np.sum(groups, axis=0)
    assert toys.valid.all()
    assert wrong >= 2
    assert left == 0
    assert ensembles <= 2


def test_values_that_many_ends_share_are_powers_of_three_farther_and_within_limits():
    nll = mf.Likelihood(MODEL, {"x": np.linspace(0.7, 1.2, 50)})
    start = {"mass": 0.895, "width": 0.05, "blur": 0.01, "share": 0.6}
    assert beyond(nll, start, start | {"blur": 0.014, "mass": 0.9}) == start
    assert beyond(nll, start, start | {"blur": 0.02}) == start | {"blur": pytest.approx(0.03)}
    assert beyond(nll, start, start | {"blur": 0.04}) == start | {"blur": 0.05}
    assert beyond(nll, start, start | {"blur": 0.0022}) == start | {"blur": 0.002}
    assert beyond(nll, start, start | {"share": 0.0}) == start
