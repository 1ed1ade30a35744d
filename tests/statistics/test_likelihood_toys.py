"""Toys of constrained, of joint, and of constrained joint fits: pulls, coverage and p-values are right."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import STATISTICS, on_one_backend
from morefit.intervals import feldman_cousins
from tolerances import PULL_SIGMAS

EVENTS = 2_000  # of the mass model; half as many of its neighbour
ONE_SIGMA = 0.6827

pytestmark = pytest.mark.slow

M = mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.01, 0.3)


def peak_on_slope(fraction, slope):
    """Return the mass model; its mean and width are those of every such model."""
    share = mf.Parameter(fraction, 0.3, 0.0, 1.0)
    return mf.Sum(
        [mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, mf.Parameter(slope, -1.0, -10.0, 10.0))],
        fractions=[share],
    )


def likelihood(constrained, joint):
    """Return a likelihood of one dataset or two, whose width may be known from elsewhere about as well as from them."""
    known = [mf.constraint(SIGMA, 0.06, 0.003)] if constrained else []
    one, other = peak_on_slope("f1", "a1"), peak_on_slope("f2", "a2")
    first = mf.Likelihood(one, mf.generate(one, EVENTS, seed=1), constraints=known)
    return (
        first + mf.Likelihood(other, mf.generate(other, EVENTS // 2, seed=2), constraints=known)
        if joint
        else first
    )


KINDS = {"constrained": (True, False), "joint": (False, True), "constrained and joint": (True, True)}


# whole fits of these on other backends are compared toy by toy in tests/targets/test_whole_fits.py
on_backends = pytest.mark.parametrize(
    ("backend", "toys"),
    [
        pytest.param(
            backend,
            kind,
            id=f"{kind}-{backend}",
            marks=[pytest.mark.exhaustive] * (backend != "cpu"),
        )
        for backend in STATISTICS
        for kind in KINDS
    ],
    indirect=True,
    scope="module",
)


@pytest.fixture(scope="module")
def toys(request, backend, sizes):
    return mf.toy_study(
        likelihood(*KINDS[request.param]), toys=sizes.study // 2, seed=11, backend=backend, progress=False
    )


@on_backends
def test_every_toy_of_a_likelihood_is_valid(toys, sizes):
    assert len(toys) == sizes.study // 2
    assert toys.valid.all()
    assert toys.fraction_by("minuit") == 0


@on_backends
def test_pulls_of_the_toys_of_a_likelihood_are_standard_normal(toys):
    for name in toys.names:
        mean, mean_error, width, width_error = toys.pull_summary(name)
        # the pull of a width is off by -5/4 sqrt(2 / n) for n = 600 signals, of others by less
        shift = 0.08 if name == "sigma" else 0.04
        assert abs(mean) < PULL_SIGMAS * mean_error + shift, name
        assert abs(width - 1) < PULL_SIGMAS * width_error, name


@on_backends
def test_intervals_of_the_toys_of_a_likelihood_cover(toys):
    for name in toys.names:
        covered = toys.coverage(name, ONE_SIGMA).fraction
        error = np.sqrt(ONE_SIGMA * (1 - ONE_SIGMA) / len(toys))
        assert abs(covered - ONE_SIGMA) < PULL_SIGMAS * error + 0.01, name


@on_one_backend
def test_a_constraint_that_does_not_fluctuate_leaves_pulls_too_narrow(backend):
    """The other convention: this used to be the only one, "PULL WIDTH OFF BY 6.5 SIGMA"."""
    tight = mf.constraint(SIGMA, 0.06, 0.001)
    model = peak_on_slope("f1", "a1")
    options = {
        "toys": 300,
        "events": 500,
        "seed": 1,
        "constraints": [tight],
        "backend": backend,
        "progress": False,
    }
    still, anew = (mf.toy_study(model, fluctuate=f, **options).pull_summary("sigma") for f in (False, True))
    assert still.width < 0.3
    assert abs(anew.width - 1) < PULL_SIGMAS * anew.width_error


@on_one_backend
def test_p_values_with_a_constrained_background_are_uniform(backend, sizes):
    """A signal over a background that is known to 20 % from elsewhere: both the data and that knowledge fluctuate."""
    x = mf.Observable("x", 0.0, 1.0)
    s, b = mf.Parameter("s", 12.0, 0.0, 60.0), mf.Parameter("b", 30.0, 1.0, 90.0)
    model = mf.Sum([mf.Gaussian(x, 0.5, 0.08), mf.Uniform(x)], yields=[s, b])
    nll = mf.Likelihood(model, mf.generate(model, seed=1), constraints=[mf.constraint(b, 30.0, 6.0)])
    p = [
        float(
            feldman_cousins(
                mf.generate(nll, seed=100 + k),
                s,
                [12.0],
                toys=sizes.judged,
                seed=k,
                backend=backend,
                progress=False,
            ).p_values[0]
        )
        for k in range(sizes.uniform)
    ]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


# sockets and tasks that Dask leaves to the garbage collector are not ours to judge
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_the_toys_of_a_likelihood_are_the_same_everywhere():
    dask = pytest.importorskip("dask.distributed")
    nll = likelihood(constrained=True, joint=True)
    options = {"toys": 24, "seed": 5, "block": 7, "backend": mf.Cpu(threads=1), "progress": False}
    here = mf.toy_study(nll, **options)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, get_context("spawn")) as processes:
        elsewhere = [mf.toy_study(nll, executor=e, **options) for e in (threads, processes)]
    with (
        dask.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        elsewhere.append(mf.toy_study(nll, executor=client, **options))
    for there in elsewhere:
        for name in ("values", "errors", "nll"):
            assert getattr(there, name).tobytes() == getattr(here, name).tobytes()
