"""Likelihoods of data that stay in files: the numbers of data in memory, from one pass for each evaluation."""

import pickle
import threading

import numpy as np
import pytest

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.data import files
from morefit.likelihood import in_pieces
from morefit.likelihood.in_pieces import LikelihoodInPieces
from tolerances import REORDERED

pytest.importorskip("pyarrow", reason="needs the extra 'io'")

M = mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
ALPHA, FSIG = mf.Parameter("alpha", -1.0, -10.0, 10.0), mf.Parameter("fsig", 0.3, 0.0, 1.0)
SIGNAL, BACKGROUND = mf.Parameter("signal", 300, 0, 1e5), mf.Parameter("background", 700, 0, 1e5)
SHAPES = [mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)]
MODEL = mf.Sum(SHAPES, fractions=[FSIG])
YIELDS = mf.Sum(SHAPES, yields=[SIGNAL, BACKGROUND])
SAME_FIT = 1e-3  # of an error: both fits end closer to the minimum than that


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 1000)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of 4500 events with weights, 45 of them outside the range."""
    rng = np.random.default_rng(2)
    m = mf.generate(MODEL, 4500, seed=3)["m"].copy()
    m[::100] = 8.0
    name = tmp_path_factory.mktemp("events") / "events.parquet"
    pt = rng.uniform(0, 5, len(m))
    mf.Dataset({"m": m, "pt": pt}, weights=rng.uniform(0.5, 1.5, len(m))).write(name)
    return name


def close(found, expected):
    """Compare numbers in units of the largest of them."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * REORDERED * np.abs(expected).max())


@pytest.mark.parametrize("name", ["cpu", "two-threads", "reference"])
@pytest.mark.parametrize(
    ("model", "options"),
    [(MODEL, {}), (YIELDS, {"cut": "pt > 1", "weights": "weight"})],
    ids=["fractions", "yields of selected events"],
)
def test_values_and_derivatives_are_those_in_memory(name, options, model, path):
    backend = {**COMPILED, **JUDGE}[name]
    constraints = [mf.constraint(MU, 5.28, 0.001)]
    here = mf.Likelihood(model, mf.read(path, M, **options), backend=backend, constraints=constraints)
    data = mf.FileDataset(path, M, **options)
    nll = mf.Likelihood(model, data, backend=backend, constraints=constraints)
    x = np.array([[p.start for p in here.parameters], [p.start * 1.01 for p in here.parameters]])
    close(nll.value(x), here.value(x))
    close(nll.gradient(x), here.gradient(x))
    close(nll.hessian(x), here.hessian(x))
    close(nll.fisher(x), here.fisher(x))
    assert nll.passes == 4  # one for both points each time
    assert nll.entries == here.entries


def test_pieces_are_summed_by_opencl(path):
    options = {"cut": "pt > 1", "weights": "weight"}
    here = mf.Likelihood(YIELDS, mf.read(path, M, **options))
    nll = mf.Likelihood(YIELDS, mf.FileDataset(path, M, **options), backend=there(COMPILED["opencl"]))
    x = [p.start for p in here.parameters]
    close(nll.hessian(x), here.hessian(x))
    close(nll.value(x), here.value(x))
    close(nll.gradient(x), here.gradient(x))
    assert nll.passes == 1  # the Hessian comes with the others


@pytest.mark.parametrize("size", [999, 4096, 1 << 20])
def test_the_size_of_pieces_changes_roundings_only(size, path, monkeypatch):
    expected = mf.Likelihood(MODEL, mf.read(path, M)).value([5.28, 0.06, -1.0, 0.3])
    monkeypatch.setattr(files, "MAX_ROWS", size)
    value = mf.Likelihood(MODEL, mf.FileDataset(path, M)).value([5.28, 0.06, -1.0, 0.3])
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"weights": "weight"}], ids=["plain", "weighted"])
def test_a_fit_takes_few_passes_and_ends_where_it_does_in_memory(options, path):
    expected = mf.fit(YIELDS, mf.read(path, M, **options))
    found = mf.fit(YIELDS, mf.FileDataset(path, M, **options))
    assert found.valid
    assert found.errors_from == expected.errors_from
    for n in found.names:
        assert found.values[n] == pytest.approx(expected.values[n], abs=SAME_FIT * expected.errors[n])
        assert found.errors[n] == pytest.approx(expected.errors[n], rel=SAME_FIT)
    passes = (
        found.calls["hessian"] - 1 + len(options)
    )  # the last one is remembered; weights need squared scores
    assert passes <= 9
    assert f"events stay in files: {passes} passes over them" in found.notes
    assert "events stay in files" in str(found)


def test_minuit_and_minos_take_pieces(path):
    data = mf.FileDataset(path, M)
    newton = mf.fit(MODEL, data, minos=["mu"])
    minuit = mf.fit(MODEL, data, minimiser="minuit")
    assert newton.minos["mu"] == pytest.approx(
        mf.fit(MODEL, mf.read(path, M), minos=["mu"]).minos["mu"], rel=1e-3
    )
    assert minuit.values["mu"] == pytest.approx(newton.values["mu"], abs=0.1 * newton.errors["mu"])


def test_ranges_leave_the_same_events_out(path):
    options = {"ranges": {"m": [(5.0, 5.2), (5.4, 7.0)]}, "fixed": ["mu", "sigma"]}
    found, expected = (
        mf.fit(YIELDS, mf.FileDataset(path, M), **options),
        mf.fit(YIELDS, mf.read(path, M), **options),
    )
    assert found.events == expected.events
    assert found.values["background"] == pytest.approx(expected.values["background"], rel=1e-6)


def test_a_profile_evaluates_all_points_in_each_pass(path):
    nll = mf.Likelihood(MODEL, mf.FileDataset(path, M))
    best = mf.fit(nll)
    before = nll.passes
    found = mf.intervals.profile(nll, "mu", best=best, size=15)
    assert nll.passes - before < 15
    here = mf.Likelihood(MODEL, mf.read(path, M))
    expected = mf.intervals.profile(here, "mu", points=found.values, best=mf.fit(here))
    np.testing.assert_allclose(found.nll, expected.nll, rtol=1e-9)


def test_numerical_integrals_are_computed_once_for_all_pieces(path):
    x = M.expr
    model = mf.Density(MODEL.density() * (1 + 0.1 * np.sin(3 * x)), [M])
    here, nll = mf.Likelihood(model, mf.read(path, M)), mf.Likelihood(model, mf.FileDataset(path, M))
    start = [p.start for p in here.parameters]
    assert nll.value(start) == pytest.approx(here.value(start), rel=1e-12)
    found = mf.fit(nll)
    assert found.valid
    assert found.integral_errors["nll"] < 0.01


def test_likelihoods_of_files_add_to_others(path):
    both = mf.Likelihood(MODEL, mf.FileDataset(path, M)) + mf.Likelihood(
        MODEL, mf.generate(MODEL, 500, seed=1)
    )
    found = mf.fit(both)
    assert found.valid
    assert found.events == 4455 + 500
    category = mf.Simultaneous({"a": MODEL, "b": MODEL}, "sample")
    data = {label: mf.FileDataset(path, M, cut=cut) for label, cut in (("a", "pt < 2"), ("b", "pt >= 2"))}
    assert mf.fit(category, data).events == 4455


def test_toys_and_explanations_need_no_events(path):
    nll = mf.Likelihood(YIELDS, mf.FileDataset(path, M))
    truth = {"signal": 100, "background": 200}
    found = mf.toy_study(nll, toys=5, truth=truth, seed=1, progress=False)
    expected = mf.toy_study(YIELDS, toys=5, truth=truth, seed=1, progress=False)
    assert np.array_equal(found.values, expected.values)
    assert nll.passes == 0
    assert "value, gradient and Hessian" in str(mf.explain(nll))


def test_other_data_are_fitted_with_what_is_added_once(path):
    """This used to leave out the expected number of events."""
    data = [mf.generate(YIELDS, seed=k) for k in (1, 2)]
    found = mf.fit_many(mf.Likelihood(YIELDS, mf.FileDataset(path, M)), data)
    assert np.array_equal(found.values, mf.fit_many(YIELDS, data).values)


def test_tests_and_limits_take_pieces(path):
    here, nll = mf.Likelihood(YIELDS, mf.read(path, M)), mf.Likelihood(YIELDS, mf.FileDataset(path, M))
    expected = mf.intervals.discovery(here, "signal").significance
    assert mf.intervals.discovery(nll, "signal").significance == pytest.approx(expected, rel=1e-6)
    expected = mf.intervals.goodness_of_fit(here, "chi2").statistic
    assert mf.intervals.goodness_of_fit(nll, "chi2").statistic == pytest.approx(expected, rel=1e-4)


def test_it_pickles(path):
    nll = mf.Likelihood(MODEL, mf.FileDataset(path, M))
    other = pickle.loads(pickle.dumps(nll))
    assert isinstance(other, LikelihoodInPieces)
    assert other.value([5.28, 0.06, -1.0, 0.3]) == nll.value([5.28, 0.06, -1.0, 0.3])


def test_bad_events_are_those_of_the_first_piece_with_any(path):
    x = M.expr
    model = mf.Density(MU * 0 + (x - 5.5) * mf.where(x > 5.5, 1, 0) + 1e-3 * mf.where(x < 5.4, 1, 0), [M])
    nll = mf.Likelihood(model, mf.FileDataset(path, M))
    bad = nll.bad_events([5.28])
    here = mf.Likelihood(model, mf.read(path, M)).bad_events([5.28])
    assert len(bad)
    assert np.array_equal(bad.indices, here.indices[: len(bad)])
    assert bad.total < here.total
    with pytest.raises(mf.FitError, match="events have no positive density: event"):
        mf.fit(model, mf.FileDataset(path, M))


def test_ctrl_c_ends_a_pass_and_its_reader(path, monkeypatch):
    nll = mf.Likelihood(MODEL, mf.FileDataset(path, M))

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(in_pieces, "bind_piece", interrupt)
    with pytest.raises(KeyboardInterrupt):
        nll.value([5.28, 0.06, -1.0, 0.3])
    assert not [t for t in threading.enumerate() if t.name.startswith("morefit-reader")]
    monkeypatch.undo()
    assert np.isfinite(nll.value([5.28, 0.06, -1.0, 0.3]))


def test_a_progress_bar_is_shown_on_a_terminal(path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "morefit.text.progress.Bar.done", lambda self, *what: shown.append((self.what, *what))
    )
    nll = mf.Likelihood(MODEL, mf.FileDataset(path, M))
    nll.value([5.28, 0.06, -1.0, 0.3])
    assert ("counting", 4500) in shown
    assert ("pass 1 over the events", 1000) in shown


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda data: mf.Likelihood(MODEL, data).per_event([5.28, 0.06, -1.0, 0.3]), "likelihood: values of each event need all events in memory, got events that stay in files; read those"),
        (lambda data: mf.sweights(YIELDS, data, mf.fit(YIELDS, data)), "all events in memory"),
        (lambda data: mf.fit(MODEL, data, weights=np.ones(3)), "weights: must be a column of the files"),
        (lambda data: mf.fit(MODEL, data, errors="bootstrap"), "fit: errors='bootstrap' needs all events in memory, got events that stay in files; use errors='sandwich'"),
        (lambda data: mf.fit(MODEL, data, errors="sumw2"), "fit: errors='sumw2' needs all events in memory"),
        (lambda data: mf.intervals.bootstrap(mf.Likelihood(MODEL, data), replicas=2), "all events in memory"),
        (lambda data: mf.intervals.goodness_of_fit(mf.Likelihood(MODEL, data), "ks"), "all events in memory"),
        (lambda data: mf.fit(mf.Simultaneous({"a": MODEL}, "sample"), data), "all events in memory"),
        (lambda data: mf.Likelihood(mf.Simultaneous({"a": MODEL}, "sample"), data), "all events in memory"),
        (lambda data: MODEL.pdf(data), "all events in memory"),
        (lambda data: mf.BinnedLikelihood(MODEL, data), "all events in memory|histogram"),
    ],
)  # fmt: skip
def test_what_needs_all_events_is_refused_in_a_sentence(call, rule, path):
    with pytest.raises(mf.MorefitError, match=rule):
        call(mf.FileDataset(path, M))


def test_a_plot_counts_in_one_pass(path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs the extra 'plot'")
    data, here = mf.FileDataset(path, M, weights="weight"), mf.read(path, M, weights="weight")
    found = mf.plots.project(MODEL, data, M, bins=20)
    expected = mf.plots.project(MODEL, here, M, bins=20)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-13)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-13)
    np.testing.assert_allclose(found.pulls, expected.pulls, rtol=1e-9)
    part = {"ranges": {"m": (5.2, 5.4)}, "bins": 10}
    assert np.array_equal(
        mf.plots.project(MODEL, mf.FileDataset(path, M), M, **part).counts,
        mf.plots.project(MODEL, mf.read(path, M), M, **part).counts,
    )
    assert set(mf.plot(MODEL, data).artists) >= {"data", "model"}
    category = mf.Simultaneous({"a": MODEL, "b": MODEL}, "sample")
    assert set(mf.plot(category, {"a": data, "b": here})) == {"a", "b"}
    pyplot.close("all")
