"""Template fits: values against iminuit and scipy, every backend, coverage, and what is refused."""

import pickle

import hist
import matplotlib.pyplot as plt
import numpy as np
import pytest
from iminuit import cost
from scipy.optimize import brentq, minimize

import morefit as mf

EDGES = np.linspace(0, 1, 16)
RNG = np.random.default_rng(1)
SIGNAL = np.histogram(RNG.normal(0.5, 0.2, 400), EDGES)[0].astype(float)
BACKGROUND = np.histogram(RNG.exponential(0.4, 600), EDGES)[0].astype(float)
COUNTS = RNG.poisson(150 * SIGNAL / SIGNAL.sum() + 400 * BACKGROUND / BACKGROUND.sum())
WEIGHTED = (1.5 * BACKGROUND, 3.0 * BACKGROUND)  # sums of weights and of squared weights
TEMPLATES = {"signal": SIGNAL, "background": BACKGROUND}
TRUTH = {"signal": 150.0, "background": 400.0}
METHODS = {
    "barlow-beeston-lite": "jsc",
    "dembinski-abdelmotteleb": "da",
    "arguelles-schneider-yuan": "asy",
}
POINTS = [(150.0, 400.0), (120.0, 430.0), (10.0, 600.0)]
SAME_COST = 1e-10  # of values of a few hundred, against iminuit


def by_name(point):
    return dict(zip(TEMPLATES, point, strict=True))


@pytest.mark.parametrize("background", [BACKGROUND, WEIGHTED], ids=["counts", "weighted"])
@pytest.mark.parametrize("backend", ["cpu", "opencl", "reference"])
@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_iminuit(method, backend, background):
    nll = mf.TemplateLikelihood(
        COUNTS, {"signal": SIGNAL, "background": background}, method=method, backend=backend
    )
    other = np.stack(background, axis=1) if isinstance(background, tuple) else background
    judge = cost.Template(COUNTS, EDGES, [SIGNAL, other], method=METHODS[method])
    scale = 1.0 if method == "arguelles-schneider-yuan" else 2.0
    for point in POINTS:
        assert scale * nll.value(by_name(point)) == pytest.approx(judge(*point), abs=SAME_COST)


def test_bins_without_counts_are_those_of_iminuit():
    counts = np.where(np.arange(15) % 3, COUNTS, 0)
    sparse = np.where(np.arange(15) == 6, 1.0, SIGNAL)
    for method, short in METHODS.items():
        nll = mf.TemplateLikelihood(counts, {"signal": sparse, "background": BACKGROUND}, method=method)
        judge = cost.Template(counts, EDGES, [sparse, BACKGROUND], method=short)
        ours = nll.value(by_name(POINTS[0])) - nll.value(by_name(POINTS[2]))
        scale = 1.0 if short == "asy" else 2.0
        assert scale * ours == pytest.approx(judge(*POINTS[0]) - judge(*POINTS[2]), abs=SAME_COST)


def barlow_beeston(yields):
    """Return the likelihood of Barlow and Beeston, solved bin by bin for t (Comput. Phys. Commun. 77, 219), times two."""
    total = 0.0
    p = np.array(yields) / [SIGNAL.sum(), BACKGROUND.sum()]
    for n, simulated in zip(COUNTS, np.stack([SIGNAL, BACKGROUND], axis=1), strict=True):
        seen = simulated > 0
        a, q = simulated[seen], p[seen]
        t = (
            brentq(
                lambda t, a=a, q=q, n=n: n - (1 - t) * np.sum(q * a / (1 + q * t)), -1 / q.max() + 1e-12, 1
            )
            if n
            else 1.0
        )
        true = a / (1 + q * t)
        mu = np.sum(q * true)
        total += 2 * (mu - n + (n * np.log(n / mu) if n else 0.0))
        total += 2 * np.sum(true - a + a * np.log(a / true))
    return total


def test_the_full_likelihood_is_that_of_barlow_and_beeston():
    nll = mf.TemplateLikelihood(COUNTS, TEMPLATES, method="barlow-beeston")
    result = mf.fit(nll, tolerance=1e-9)
    best = minimize(barlow_beeston, POINTS[0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    assert result.valid
    assert 2 * result.nll == pytest.approx(best.fun, abs=1e-8)
    assert [result.values[n] for n in TEMPLATES] == pytest.approx(best.x, rel=1e-5)
    profile = mf.intervals.profile(nll, "signal", [120.0, 180.0], progress=False)
    for value, nll_there, background in zip(profile.values, profile.nll, profile.others[:, 0], strict=True):
        assert 2 * nll_there == pytest.approx(barlow_beeston([value, background]), abs=1e-8)


def test_without_simulation_errors_it_is_a_plain_likelihood():
    nll = mf.TemplateLikelihood(COUNTS, TEMPLATES, method="exact")
    mu = 120 * SIGNAL / SIGNAL.sum() + 430 * BACKGROUND / BACKGROUND.sum()
    assert 2 * nll.value(by_name(POINTS[1])) == pytest.approx(cost.poisson_chi2(COUNTS, mu), abs=SAME_COST)
    larger = mf.fit(mf.TemplateLikelihood(COUNTS, TEMPLATES)).errors["signal"]
    assert mf.fit(nll).errors["signal"] < larger


def test_histograms_and_yields_can_be_given():
    filled = hist.Hist.new.Reg(15, 0, 1).Weight()
    filled.view().value, filled.view().variance = WEIGHTED
    strength = mf.Parameter("strength", 1.0, 0.0, 10.0)
    nll = mf.TemplateLikelihood(
        COUNTS, {"s": SIGNAL, "b": filled}, [150 * strength, mf.Parameter("b", 400.0, 0.0)]
    )
    plain = mf.TemplateLikelihood(COUNTS, {"s": SIGNAL, "b": WEIGHTED})
    assert nll.value({"strength": 1.2, "b": 390.0}) == pytest.approx(plain.value({"s": 180.0, "b": 390.0}))


def test_a_template_likelihood_can_be_pickled():
    nll = mf.TemplateLikelihood(COUNTS, TEMPLATES)
    assert pickle.loads(pickle.dumps(nll)).value(TRUTH) == nll.value(TRUTH)


@pytest.mark.parametrize("method", ["barlow-beeston", "dembinski-abdelmotteleb"])
def test_counts_are_plotted_with_their_templates(method):
    nll = mf.TemplateLikelihood(COUNTS, TEMPLATES, method=method)
    plot = mf.plot(nll, values=TRUTH)
    expected = 150 * SIGNAL / SIGNAL.sum() + 400 * BACKGROUND / BACKGROUND.sum()
    np.testing.assert_allclose(plot.numbers.expected, expected)
    assert list(plot.numbers.components) == ["signal", "background"]
    plt.close(plot.figure)
    with pytest.raises(mf.DataError, match="channel 'm': not in the model, which has 'counts'"):
        mf.plot(nll, "m")


def test_empty_bins_are_left_out():
    counts, templates = np.append(COUNTS, 0), {n: np.append(t, 0.0) for n, t in TEMPLATES.items()}
    nll = mf.TemplateLikelihood(counts, templates)
    assert nll.events == len(COUNTS)
    assert nll.value(TRUTH) == pytest.approx(mf.TemplateLikelihood(COUNTS, TEMPLATES).value(TRUTH))


@pytest.mark.parametrize("method", ["barlow-beeston", "barlow-beeston-lite", "dembinski-abdelmotteleb"])
def test_errors_of_simulation_make_errors_larger(method):
    known, exact = (
        mf.fit(mf.TemplateLikelihood(COUNTS, TEMPLATES, method=m)).errors["signal"] for m in (method, "exact")
    )
    assert exact < 0.9 * known


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((COUNTS, {}), {}, "templates must be histograms by name"),
        ((COUNTS, [SIGNAL]), {}, "templates must be histograms by name"),
        ((-COUNTS, TEMPLATES), {}, "counts must be numbers of events"),
        ((COUNTS, {"signal": SIGNAL[:5]}), {}, r"template 'signal' must have \(15,\) bins"),
        ((COUNTS, {"signal": 0 * SIGNAL}), {}, "template 'signal' must have contents that are not negative"),
        ((COUNTS, {"signal": (SIGNAL, SIGNAL[:3])}), {}, "contents and squared weights must have one shape"),
        ((COUNTS, {"signal": SIGNAL + np.nan}), {}, "contents must be finite"),
        (
            (COUNTS, {"signal": SIGNAL / 3}),
            {},
            r"template 'signal' must be whole numbers of events, got .*; pass \(contents, v",
        ),
        ((COUNTS / 3, TEMPLATES), {}, "counts must be whole numbers of events, got"),
        (
            (COUNTS, {"signal": np.ma.array(SIGNAL, mask=COUNTS > 5)}),
            {},
            "template 'signal' must be an array of numbers, got mask",
        ),
        ((COUNTS, {"signal": np.eye(15)[0]}), {}, "14 bins have counts, but no template has contents there"),
        ((COUNTS, TEMPLATES, [mf.Parameter("a", 1.0)]), {}, "needs a yield for each of 2 templates, got 1"),
        ((COUNTS, TEMPLATES), {"method": "bb"}, "method must be one of 'barlow-beeston', .* got 'bb'"),
        (
            (COUNTS, {"signal": SIGNAL + 1}, [2 * mf.Parameter("a", 1.0)]),
            {"method": "barlow-beeston"},
            "yields must be parameters for method 'barlow-beeston'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, options, message):
    with pytest.raises(mf.MorefitError, match=message):
        mf.TemplateLikelihood(*arguments, **options)


@pytest.mark.parametrize("method", [*METHODS, "exact", "barlow-beeston"])
def test_yields_of_no_counts_are_at_their_limits_with_the_error_of_a_slope(method):
    """This used to be 1e-8 +- 2e-7: rounding of what cancels, divided by the square of the yields."""
    result = mf.fit(mf.TemplateLikelihood(np.zeros(15), TEMPLATES, method=method))
    assert result.valid and set(result.at_limit) == set(TEMPLATES)
    for name in TEMPLATES:
        assert result.values[name] == pytest.approx(0, abs=1e-4)
        assert result.errors[name] == pytest.approx(0.5, rel=0.05)


def filled(*axes, storage=None):
    histogram = hist.Hist(*axes, storage=storage or hist.storage.Double())
    histogram.view()[...] = 5.0
    return histogram


def test_templates_with_other_edges_are_refused():
    # this used to take bins one by one, in silence
    counts = filled(hist.axis.Regular(4, 0.0, 1.0))
    mf.TemplateLikelihood(counts, {"n": filled(hist.axis.Variable([0, 0.25, 0.5, 0.75, 1.0]))})
    with pytest.raises(mf.DataError, match="template 'n' must have the bins of the counts, Regular"):
        mf.TemplateLikelihood(counts, {"n": filled(hist.axis.Regular(4, 0.0, 2.0))})
    by_label = filled(hist.axis.StrCategory(["a", "b"]))
    with pytest.raises(mf.DataError, match="template 'n' must have the bins of the counts, StrCategory"):
        mf.TemplateLikelihood(by_label, {"n": filled(hist.axis.StrCategory(["b", "a"]))})


def test_templates_of_means_are_refused_and_those_without_variances_come_with_a_warning():
    axis = hist.axis.Regular(2, 0.0, 1.0)
    means = hist.Hist(axis, storage=hist.storage.Mean()).fill([0.1, 0.9], sample=[3.0, 4.0])
    with pytest.raises(mf.DataError, match="must count events, got one of kind MEAN"):
        mf.TemplateLikelihood([3, 4], {"n": means})
    scaled = 2 * filled(axis)
    with pytest.warns(UserWarning, match="does not know its variances"):
        mf.TemplateLikelihood([3, 4], {"n": scaled})
