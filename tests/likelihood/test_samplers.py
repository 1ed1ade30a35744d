"""Samplers run on likelihoods: many walkers are evaluated together, and constraints are priors."""

import numpy as np
import pytest

import morefit as mf

X = mf.Observable("x", -10.0, 10.0)


def normal(constraints=(), events=400, low=-5.0):
    """Return a likelihood with a posterior that is known: that of the mean of a Gaussian of known width."""
    mean, width = mf.Parameter("mean", 0.1, low, 5.0), mf.Parameter("width", 1.0, 0.5, 2.0)
    data = np.random.default_rng(1).normal(0.5, 1.0, events)
    return mf.Likelihood(mf.Gaussian(X, mean, width), data, constraints=constraints)


def metropolis(nll, steps=2000, walkers=50, seed=1):
    """Draw from the posterior by the method of Metropolis, all walkers together."""
    rng, best = np.random.default_rng(seed), mf.fit(nll)
    root = np.linalg.cholesky(best.covariance)
    points = (
        np.array([best.values[p.name] for p in nll.parameters]) + 0.1 * rng.normal(size=(walkers, 2)) @ root.T
    )
    logs, chain = nll.log_probability(points), []
    for _ in range(steps):
        trials = points + 1.2 * rng.normal(size=points.shape) @ root.T
        trial_logs = nll.log_probability(trials)
        taken = np.log(rng.uniform(size=walkers)) < trial_logs - logs
        points, logs = np.where(taken[:, None], trials, points), np.where(taken, trial_logs, logs)
        chain.append(points)
    return np.concatenate(chain[steps // 5 :])


def check_posterior(nll, draws):
    """Compare draws with a fit: 400 events are many."""
    best = mf.fit(nll)
    for k, name in enumerate(best.floating):
        assert draws[:, k].mean() == pytest.approx(best.values[name], abs=0.2 * best.errors[name])
        assert draws[:, k].std() == pytest.approx(best.errors[name], rel=0.12)


def test_log_probabilities_are_minus_the_nll_inside_limits():
    nll = normal()
    points = np.array([[0.4, 1.0], [0.5, 1.1], [6.0, 1.0], [0.5, -1.0], [np.nan, 1.0]])
    logs = nll.log_probability(points)
    np.testing.assert_array_equal(logs[:2], -nll.value(points[:2]))
    assert np.all(np.isneginf(logs[2:]))
    assert nll.log_probability({"mean": 0.4, "width": 1.0}) == logs[0]
    assert nll.log_probability([0.4, 3.0]) == -np.inf
    with pytest.raises(mf.ModelError, match=r"x must have shape \(2,\)"):
        nll.log_probability([0.4])


def test_an_event_without_a_density_has_no_probability():
    c, x = mf.Parameter("c", 0.0, -5.0, 5.0), mf.Observable("x", 0.0, 1.0)
    nll = mf.Likelihood(mf.Polynomial(x, [c]), [0.9, 0.95])
    assert np.isfinite(nll.log_probability([1.0]))
    assert nll.log_probability([-1.5]) == -np.inf


def test_a_metropolis_chain_agrees_with_the_fit():
    nll = normal()
    check_posterior(nll, metropolis(nll))


def test_a_constraint_is_a_prior():
    free = normal()
    (mean, _) = free.parameters
    nll = free + mf.constraint(mean, 0.2, 0.05)
    draws = metropolis(nll)
    # the product of two Gaussians: the mean of the data and the prior
    data = free.data["x"]
    weights = np.array([len(data) / data.var(), 1 / 0.05**2])
    expected = (weights @ [data.mean(), 0.2]) / weights.sum()
    assert draws[:, 0].mean() == pytest.approx(expected, abs=0.2 / np.sqrt(weights.sum()))
    assert draws[:, 0].std() == pytest.approx(1 / np.sqrt(weights.sum()), rel=0.1)


def test_any_formula_is_a_prior():
    free = normal()
    _, width = free.parameters
    nll = free + np.log(width)  # 1 / width
    points = np.array([[0.4, 1.0], [0.4, 1.3]])
    np.testing.assert_allclose(nll.log_probability(points), free.log_probability(points) - np.log([1.0, 1.3]))


# ---------------------------------------------------------------------- where they are installed


def test_emcee_runs():
    emcee = pytest.importorskip("emcee", reason="emcee is not installed")
    nll = normal()
    sampler = emcee.EnsembleSampler(32, 2, nll.log_probability, vectorize=True)
    start = [0.5, 1.0] + 0.01 * np.random.default_rng(1).normal(size=(32, 2))
    sampler.run_mcmc(start, 800)
    check_posterior(nll, sampler.get_chain(discard=200, flat=True))


def test_zeus_runs():
    zeus = pytest.importorskip("zeus", reason="zeus is not installed")
    nll = normal()
    sampler = zeus.EnsembleSampler(16, 2, nll.log_probability, vectorize=True, verbose=False)
    start = [0.5, 1.0] + 0.01 * np.random.default_rng(1).normal(size=(16, 2))
    sampler.run_mcmc(start, 500, progress=False)
    check_posterior(nll, sampler.get_chain(discard=100, flat=True))


def test_dynesty_runs():
    dynesty = pytest.importorskip("dynesty", reason="dynesty is not installed")
    nll = normal()
    low, high = np.array([(p.low, p.high) for p in nll.parameters]).T
    sampler = dynesty.NestedSampler(
        nll.log_probability, lambda u: low + u * (high - low), 2, nlive=200, rstate=np.random.default_rng(1)
    )
    sampler.run_nested(print_progress=False)
    check_posterior(nll, sampler.results.samples_equal(rstate=np.random.default_rng(2)))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_arviz_summarises_a_chain():
    arviz = pytest.importorskip("arviz", reason="arviz is not installed")
    nll = normal()
    chain = metropolis(nll, steps=500).reshape(-1, 50, 2)
    posterior = {p.name: chain[:, :, k].T for k, p in enumerate(nll.parameters)}
    table = arviz.summary(arviz.from_dict(posterior))
    assert list(table.index) == ["mean", "width"]
    assert table.loc["mean", "mean"] == pytest.approx(mf.fit(nll).values["mean"], abs=0.02)
