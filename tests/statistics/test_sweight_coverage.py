"""Errors of a lifetime in events with sWeights are right if they include those of the weights, and only then."""

import numpy as np
import pytest

import morefit as mf

M, T = mf.Observable("m", 5.0, 6.0), mf.Observable("t", 0.0, 10.0)
TRUTH = {"mu": 5.5, "sigma": 0.2, "alpha": -1.0, "ns": 4000.0, "nb": 4000.0}
TAU, OTHER = 1.5, 0.3  # lifetimes of signal and background


def mass_model():
    """A peak so wide that its yield depends much on shapes, which float: their errors matter."""
    mu, sigma = mf.Parameter("mu", TRUTH["mu"], 5.2, 5.8), mf.Parameter("sigma", TRUTH["sigma"], 0.01, 0.6)
    pdfs = [mf.Gaussian(M, mu, sigma), mf.Exponential(M, mf.Parameter("alpha", TRUTH["alpha"], -10, 10))]
    yields = [mf.Parameter(name, TRUTH[name], 0, 1e5) for name in ("ns", "nb")]
    return mf.Sum(pdfs, yields=yields, labels=["signal", "background"])


def lifetime_model(start):
    return mf.Exponential(T, -1 / mf.Parameter("tau", start, 0.1, 10.0))


def drawn(toys, seed):
    """Draw mass and time of each component by itself, so that they are independent in it."""
    parts = []
    for k, (pdf, name, tau) in enumerate(zip(mass_model().pdfs, ("ns", "nb"), (TAU, OTHER), strict=True)):
        sizes = np.random.default_rng(seed + k).poisson(TRUTH[name], toys).tolist()
        masses = mf.generate(pdf, sizes, seed=seed + 10 + k)
        times = mf.generate(lifetime_model(tau), sizes, seed=seed + 20 + k)
        parts.append([mf.Dataset({"m": m["m"], "t": t["t"]}) for m, t in zip(masses, times, strict=True)])
    return [mf.Dataset.concatenate(both) for both in zip(*parts, strict=True)]


def pulls(toys, variance, seed=1):
    """Return the pulls of the lifetime with errors of the sandwich, and with corrected ones."""
    model, decay, rows = mass_model(), lifetime_model(TAU), []
    for data in drawn(toys, seed):
        result = mf.fit(model, data)
        weights = mf.sweights(model, data, result, variance=variance)
        plain = mf.fit(decay, weights.data_for("signal"))
        complete = weights.corrected("signal", decay, plain)
        assert result.valid and complete.valid
        rows.append([(one.values["tau"] - TAU) / one.errors["tau"] for one in (plain, complete)])
    return np.array(rows).T


def check(plain, complete):
    allowed = 4 / np.sqrt(2 * len(plain))
    assert np.std(complete) == pytest.approx(1, abs=allowed)
    assert np.mean(np.abs(complete) < 1) == pytest.approx(0.6827, abs=4 * np.sqrt(0.22 / len(plain)))
    assert np.std(plain) > 1.1  # it takes the weights as known


@pytest.mark.slow
def test_corrected_errors_of_a_lifetime_cover():
    check(*pulls(100, None))


@pytest.mark.exhaustive
@pytest.mark.parametrize("variance", [None, "total", 1], ids=["classic", "total", "uniform"])
def test_corrected_errors_of_a_lifetime_cover_in_many_toys(variance):
    check(*pulls(1000, variance, seed=100))
