"""Slow truths about tests and limits: p-values are uniform where the model is true, and limits cover."""

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.intervals import goodness_of_fit, upper_limit
from tolerances import PULL_SIGMAS, UNIFORM

X = mf.Observable("x", 0.0, 2.0)
SLOPE = mf.Parameter("slope", -1.5, -6.0, 2.0)
SIGNAL, BACKGROUND = mf.Parameter("s", 6.0, 0.0, 100.0), mf.Parameter("b", 60.0, 1.0, 500.0)
PEAK = mf.Gaussian(X, mf.Parameter("m", 1.0, fixed=True), mf.Parameter("w", 0.1, fixed=True))
MODEL = mf.Sum([PEAK, mf.Exponential(X, SLOPE)], yields=[SIGNAL, BACKGROUND])
EXPERIMENTS, TOYS = 25, 20  # p-values in steps of a twentieth, of which so many see a quarter

pytestmark = pytest.mark.slow


# the energy takes longest; its toys are those of the others
@pytest.mark.parametrize("test", ["chi2", "anderson", pytest.param("energy", marks=pytest.mark.exhaustive)])
def test_p_values_of_a_right_model_are_uniform(test):
    model = mf.Exponential(X, SLOPE)
    p = [
        goodness_of_fit(
            model,
            test,
            data=mf.generate(model, 100, seed=seed),
            bins=15,
            toys=TOYS,
            seed=seed,
            progress=False,
        ).toy_p_value
        for seed in range(EXPERIMENTS)
    ]
    assert stats.kstest(p, "uniform").pvalue > UNIFORM


def test_limits_without_the_ratio_cover_as_often_as_they_say():
    data = [mf.generate(MODEL, truth={"s": 25.0}, seed=seed) for seed in range(50)]
    limits = [upper_limit(mf.Likelihood(MODEL, one), "s", level=0.9, cls=False).observed for one in data]
    assert abs(np.mean(np.array(limits) >= 25.0) - 0.9) < PULL_SIGMAS * np.sqrt(0.09 / len(data))
