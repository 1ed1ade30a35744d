"""Every kind of likelihood: toys of it are valid, their pulls are standard normal and their intervals cover."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import on_one_backend
from tolerances import PULL_SIGMAS

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from histfactory import workspace

ONE_SIGMA = 0.6827
BIAS = 0.06  # of pulls: what fits of some thousand events are off by, which 10^4 toys resolve
FEW, MANY = 400, 10_000  # toys: in every run, and by hand
X, Y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.2, 2.0)
EDGES = np.linspace(0, 10, 41)
MU, SIGMA = mf.Parameter("mu", 5.0, 4.0, 6.0), mf.Parameter("sigma", 0.6, 0.2, 2.0)
SLOPE, SHARE = mf.Parameter("slope", -0.2, -1.0, 1.0), mf.Parameter("share", 0.4, 0.0, 1.0)
S, B = mf.Parameter("s", 1200.0, 0.0, 1e7), mf.Parameter("b", 1800.0, 0.0, 1e7)
SHAPES = [mf.Gaussian(X, MU, SIGMA), mf.Exponential(X, SLOPE)]
SHAPE, YIELDS = mf.Sum(SHAPES, fractions=[SHARE]), mf.Sum(SHAPES, yields=[S, B])
OTHER = mf.Sum(
    [SHAPES[0], mf.Uniform(X)],
    yields=[mf.Parameter("s2", 400.0, 0.0, 1e5), mf.Parameter("b2", 900.0, 0.0, 1e5)],
)
COUNTS = np.round(3000 * np.diff(SHAPE.cdf(EDGES)))
POINTS = np.linspace(0, 6, 40)
A, C = mf.Parameter("a", 0.7, -5, 5), mf.Parameter("c", 1.0, -5, 5)
LINE = mf.LeastSquares(lambda x: A + C * x, POINTS, 0.7 + POINTS, 0.4, 0.02)
RELATED = mf.LeastSquares(
    lambda x: A + C * x,
    POINTS[::4],
    0.7 + POINTS[::4],
    covariance=0.4**2 * (np.eye(10) + np.exp(-np.abs(POINTS[::4, None] - POINTS[::4]))),
)
SIMULATED = {
    "s": np.round(4000 * np.diff(stats.norm.cdf(EDGES, 5, 0.6))),
    "b": np.round(6000 * np.diff(-np.exp(-0.2 * EDGES)) / (1 - np.exp(-2))),
}


@dataclass(frozen=True)
class Study:
    """Fits of toys: (toys, parameters) values and errors, and what is true."""

    truth: dict[str, float]
    names: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    valid: np.ndarray

    def only(self, *names):
        """Return the same of some parameters."""
        columns = [self.names.index(name) for name in names]
        return replace(self, names=names, values=self.values[:, columns], errors=self.errors[:, columns])


def studied(term, toys, backend, truth=None, **options):
    """Return toys that are drawn from the likelihood itself."""
    study = mf.toy_study(term, toys=toys, truth=truth, seed=11, backend=backend, progress=False, **options)
    return Study(dict(study.truth), study.names, study.values, study.errors, study.valid)


def weighted(model, toys, backend):
    """Return toys whose events have an efficiency that falls, and its inverse as their weights."""
    rng = np.random.default_rng(12)
    drawn = mf.generate(model, rng.poisson(3000, toys).tolist(), seed=13, backend=backend)
    kept = [toy[rng.random(len(toy)) < np.exp(-0.05 * toy["x"])] for toy in drawn]
    data = [mf.Dataset({"x": toy["x"]}, [X], weights=np.exp(0.05 * toy["x"])) for toy in kept]
    fits = mf.fit_many(model, data, backend=backend)
    return Study(
        {p.name: p.start for p in model.parameters}, fits.names, fits.values, fits.errors, fits.valid
    )


def in_files(toys, backend, folder):
    """Return toys that are written to files, and read in pieces."""
    path, fits = folder / "toy.parquet", []
    for toy in mf.generate(SHAPE, [1000] * (toys // 8), seed=14, backend=backend):
        toy.write(path)
        fits.append(mf.fit(SHAPE, mf.FileDataset(path, X), backend=backend))
    rows = [
        np.array([[getattr(f, what)[n] for n in fits[0].floating] for f in fits])
        for what in ("values", "errors")
    ]
    truth = {p.name: p.start for p in SHAPE.parameters}
    return Study(truth, fits[0].floating, *rows, np.array([f.valid for f in fits]))


def binned(model=YIELDS, scale=1, **options):
    nll = mf.BinnedLikelihood(model, (scale * COUNTS, EDGES), **options)
    truth = {"s": scale * 1200.0, "b": scale * 1800.0} if model is YIELDS else None
    return lambda toys, backend, _: studied(nll, toys, backend, truth)


def template(method, scale=1):
    """Return what draws and fits toys of templates; factors of bins with a few simulated events have no Gaussian pulls.

    Formulas for bins count the error of the total of a template, which cancels where templates are normalised.
    """
    simulated = {name: scale * counts for name, counts in SIMULATED.items()}
    nll = mf.TemplateLikelihood(COUNTS, simulated, method=method)
    totals = np.array([1200.0**2 / simulated["s"].sum(), 1800.0**2 / simulated["b"].sum()])

    def draw(toys, backend, _):
        study = studied(nll, toys, backend, {"s": 1200.0, "b": 1800.0}).only("s", "b")
        cancelled = 0.0 if method in ("barlow-beeston", "exact") else totals
        return replace(study, errors=np.sqrt(study.errors**2 - cancelled))

    return draw


def conditional(toys, backend, _):
    rows = {"y": np.random.default_rng(15).uniform(0.4, 0.8, 1000)}
    slope = mf.Parameter("rise", 1.0, -5.0, 5.0)
    model = mf.Gaussian(X, 4 + slope * Y, SIGMA, given=[Y])
    return studied(model, toys, backend, given=rows)


def constrained_joint():
    """Return two datasets with a width in common that is known from elsewhere about as well."""
    known = [mf.constraint(SIGMA, 0.6, 0.02)]
    one, other = mf.generate(YIELDS, seed=1), mf.generate(OTHER, seed=2)
    return mf.Likelihood(YIELDS, one, constraints=known) + mf.Likelihood(OTHER, other)


def mixed_joint():
    """Return a histogram and unbinned data with parameters in common."""
    return mf.BinnedLikelihood(YIELDS, (COUNTS, EDGES)) + mf.Likelihood(OTHER, mf.generate(OTHER, seed=2))


def histfactory(toys, backend, _):
    """Return toys of a workspace, with a signal that is far from its limit."""
    nll = mf.histfactory.read(workspace("small"))
    return studied(nll, toys, backend, dict(mf.fit(nll).values) | {"mu": 4.0})


KINDS = {
    "unbinned": lambda toys, backend, _: studied(SHAPE, toys, backend, events=3000),
    "extended": lambda toys, backend, _: studied(YIELDS, toys, backend),
    "weighted": lambda toys, backend, _: weighted(SHAPE, toys, backend),
    "weighted and extended": lambda toys, backend, _: weighted(YIELDS, toys, backend),
    "in files": in_files,
    "conditional": conditional,
    "binned, Poisson": binned(),
    "binned, multinomial": binned(SHAPE),
    # chi-squares are off by about the number of bins, in events; one that is combined is not
    "binned, Pearson": binned(statistic="pearson", scale=200),
    "binned, Neyman": binned(statistic="neyman", scale=200),
    "binned, combined": binned(statistic="combined"),
    "binned, weighted": binned(variances=1.5 * COUNTS),
    "binned, weighted combined": binned(variances=1.5 * COUNTS, statistic="combined"),
    "least squares": lambda toys, backend, _: studied(LINE, toys, backend, {"a": 0.7, "c": 1.0}),
    "correlated points": lambda toys, backend, _: studied(RELATED, toys, backend, {"a": 0.7, "c": 1.0}),
    "templates, Barlow-Beeston": template("barlow-beeston"),
    "templates, light": template("barlow-beeston-lite"),
    "templates, Dembinski": template("dembinski-abdelmotteleb"),
    # its prior counts as one simulated event in every bin
    "templates, Arguelles": template("arguelles-schneider-yuan", scale=20),
    "templates, exact": template("exact"),
    "HistFactory": histfactory,
    "simultaneous": lambda toys, backend, _: studied(
        mf.Simultaneous({"one": YIELDS, "other": OTHER}, "where"), toys, backend
    ),
    "joint and constrained": lambda toys, backend, _: studied(constrained_joint(), toys, backend),
    "binned and unbinned": lambda toys, backend, _: studied(mixed_joint(), toys, backend),
}


def check(study, least):
    """Compare pulls and coverage with those of standard normal numbers."""
    assert study.valid.mean() > 0.99
    assert len(study.valid) >= least
    truth = np.array([study.truth[name] for name in study.names])
    pulls = ((study.values - truth) / study.errors)[study.valid]
    count = len(pulls)
    for name, own in zip(study.names, pulls.T, strict=True):
        assert abs(own.mean()) < PULL_SIGMAS / np.sqrt(count) + BIAS, name
        assert abs(own.std() - 1) < PULL_SIGMAS / np.sqrt(2 * count) + 0.02, name
        covered = np.mean(np.abs(own) < 1)
        assert abs(covered - ONE_SIGMA) < PULL_SIGMAS * np.sqrt(ONE_SIGMA * (1 - ONE_SIGMA) / count) + 0.01, (
            name
        )


@pytest.mark.slow
@on_one_backend
@pytest.mark.parametrize("kind", KINDS)
def test_pulls_and_coverage_of_every_kind_of_likelihood_are_right(kind, backend, tmp_path):
    check(KINDS[kind](FEW, backend, tmp_path), FEW // 8)


@pytest.mark.exhaustive
@on_one_backend
@pytest.mark.parametrize("kind", KINDS)
def test_pulls_and_coverage_of_many_toys_are_right(kind, backend, tmp_path):
    check(KINDS[kind](MANY, backend, tmp_path), MANY // 8)
