"""Values outside of the limits of parameters: formulas that limits chose are chosen anew."""

import numpy as np
import pytest

import morefit as mf
from morefit.model.replace import around, for_limits

X = mf.Observable("x", 0.0, 10.0)


def models(wide):
    """Return densities with narrow or wide limits, and values outside of the narrow ones."""

    def p(name, start, low, high):
        return mf.Parameter(name, start, *((low, high) if wide else (0.95 * start, 1.05 * start)))

    mu, sigma = mf.Parameter("mu", 5.0, 0.0, 10.0), p("s", 0.5, 1e-9, 1e5)
    yield mf.Gaussian(X, mu, sigma), {"mu": 5.0, "s": 5e4}
    yield (
        mf.shapes.ExponentiallyModifiedGaussian(X, mu, sigma, p("t", 0.5, 1e-9, 9.0)),
        {"mu": 5.0, "s": 1, "t": 1e-9},
    )
    slope = mf.Parameter("a", -1.0, -2.0, 500.0 if wide else 0.0)
    yield mf.Exponential(X, slope), {"a": 300.0}
    a, b = p("a", 3.0, 0.0, 10.0), p("b", 6.0, 0.0, 10.0)
    yield mf.Density(mf.where(X < a, 1.0, mf.where(X < b, 2.0, 0.5 * X)), X), {"a": 7.0, "b": 4.0}


CASES = list(zip(models(False), models(True), strict=True))
NAMES = [type(narrow).__name__ for (narrow, _), _ in CASES]


@pytest.mark.parametrize(("narrow", "wide"), CASES, ids=NAMES)
def test_values_outside_of_limits_are_those_of_wider_limits(narrow, wide):
    # this used to have derivatives of noise, or no value
    (narrow, values), (wide, _) = narrow, wide
    data = {"x": np.linspace(0.5, 9.5, 20)}
    assert narrow.pdf(data, values) == pytest.approx(wide.pdf(data, values), rel=1e-12)
    first, second = mf.Likelihood(narrow, data), mf.Likelihood(wide, data)
    assert first.value(values) == pytest.approx(second.value(values), rel=1e-12)
    expected = second.hessian(values)
    assert first.hessian(values) == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.abs(expected).max())


def test_a_model_whose_formulas_do_not_depend_on_limits_stays_itself():
    model = mf.Gaussian(X, mf.Parameter("mu", 5.0, 4.0, 6.0), 0.1)
    assert for_limits(model, {"mu": (-50.0, 50.0)}) is model
    nll = mf.Likelihood(model, {"x": [5.0, 5.1]})
    assert mf.fit(nll, limits={"mu": (0, 10)}).likelihood.model is model


def test_a_fit_with_wider_limits_is_that_of_a_model_with_these():
    data = {"x": 10 - np.linspace(0.001, 0.04, 20)}
    results = []
    for high in (0.0, 500.0):
        slope = mf.Parameter("a", -1.0, -2.0, high)
        nll = mf.Likelihood(mf.Exponential(X, slope), data, constraints=[mf.constraint(slope, 60.0, 20.0)])
        results.append(mf.fit(nll, limits={"a": (-2, 500)}))
    first, second = results
    assert first.valid
    assert first.values["a"] > 40
    assert (first.values["a"], first.errors["a"]) == pytest.approx((second.values["a"], second.errors["a"]))


def test_bins_have_the_formulas_of_wider_limits():
    def binned(high):
        model = mf.Gaussian(X, 5.0, mf.Parameter("s", 0.1, 0.05, high))
        return mf.BinnedLikelihood(model, (np.ones(5), np.linspace(0, 10, 6)))

    assert binned(0.2).hessian([3e4]) == pytest.approx(binned(1e5).hessian([3e4]), rel=1e-9)


def test_events_are_drawn_at_values_outside_of_limits():
    model = mf.Density(
        mf.where(X < mf.Parameter("a", 3.0, 2.9, 3.1), 1.0, mf.where(X < mf.Parameter("b", 6.0, 5.9, 6.1), 2.0, 4.0)), X
    )  # fmt: skip
    data = mf.generate(model, 20_000, truth={"a": 7.0, "b": 4.0}, seed=1)["x"]
    assert np.mean(data < 7.0) == pytest.approx(7 / 19, abs=0.02)


def test_a_profile_around_a_fit_with_wider_limits_has_its_formulas():
    a, b = mf.Parameter("a", 3.0, 2.9, 3.1), mf.Parameter("b", 6.0, 5.9, 6.1)
    model = mf.Density(mf.where(X < a, 1.0, mf.where(X < b, 2.0, 4.0)) + 0 * X, X)
    nll = mf.Likelihood(model, {"x": np.linspace(0.5, 9.5, 20)})
    best = mf.fit(nll, fixed={"b": 4.0}, start={"a": 7.0}, limits={"a": (0, 10), "b": (4, 6.1)})
    scan = mf.intervals.profile(nll, "a", np.array([5.0, 8.0]), best=best, progress=False)
    assert np.isfinite(scan.nll).all()


def test_a_morph_is_refused_where_it_has_no_densities():
    mass = mf.Parameter("mass", 0.5, 0.0, 1.0)
    model = mf.Morph(mass, {0.0: mf.Uniform(X), 1.0: mf.Gaussian(X, 5.0, 1.0)})
    with pytest.raises(mf.ModelError, match="'mass' must have limits in"):
        mf.fit(model, {"x": [4.0, 5.0]}, limits={"mass": (-1, 2)})


def test_powers_of_two_around_values():
    assert [around(v, v) for v in (3.0, -3.0, 0.3, 0.0, 4.0)] == [
        (2, 4), (-4, -2), (0.25, 0.5), (0, 0), (4, 4),
    ]  # fmt: skip


def test_integrals_for_each_event_have_nodes_for_the_values_at_hand():
    # this used to be right to 1e-3 only, as the nodes were those of the start values
    difference = mf.Observable("d", -3.0, 3.0)

    def seen(start):
        sigma = mf.Parameter("s", start, 0.005, 2.0)
        return mf.Convolution(
            mf.shapes.Laplace(X, 5.0, 0.5), mf.CrystalBall(difference, 0.0, sigma, 1.5, 3.0)
        )

    points = np.linspace(4.0, 6.0, 21)
    assert seen(0.5).pdf(points, {"s": 0.01}) == pytest.approx(seen(0.01).pdf(points), rel=1e-8)


@pytest.mark.slow  # compiles three numerical convolutions
def test_a_fit_whose_integrals_are_wrong_at_its_minimum_is_done_again_with_nodes_for_it():
    # this used to be invalid: its integrals were wrong by 12 in the nll
    d = mf.Observable("d", -3.0, 3.0)

    def seen(start):
        scale, width = (mf.Parameter(name, start, 0.005, 3.0) for name in "sw")
        return mf.Convolution(mf.shapes.Laplace(X, 5.0, scale), mf.Density(1 / (1 + (d / width) ** 2), d))

    data = mf.generate(seen(0.02), 800, seed=1)
    first, second = mf.fit(seen(1.5), data), mf.fit(seen(0.02), data)
    assert first.valid
    assert first.values["s"] == pytest.approx(second.values["s"], abs=0.02 * second.errors["s"])


@pytest.fixture(scope="module")
def conditional():
    """Return a density that is integrated for each event, some widths, a narrow dataset, and minus its log likelihood."""
    e = mf.Observable("e", 0.5, 2.0)
    place, width = mf.Parameter("place", 5.0, 0.0, 10.0), mf.Parameter("width", 2.0, 0.02, 8.0)
    rng = np.random.default_rng(1)
    scale, at = rng.uniform(0.5, 2.0, 300), rng.random(300)
    narrow = scale * 0.1

    def angle(x, m, w):
        return np.arctan(2 * (x - m) / w)

    low, high = angle(0.0, 5.3, narrow), angle(10.0, 5.3, narrow)
    x = 5.3 + narrow / 2 * np.tan(low + at * (high - low))

    def nll(m, w):
        own = w * scale
        area = 2 / own * (angle(10.0, m, own) - angle(0.0, m, own))
        return np.sum(np.log((x - m) ** 2 + own**2 / 4) + np.log(area))

    return (
        mf.Density(1 / ((X - place) ** 2 + (width * e) ** 2 / 4), [X, e], given=[e]),
        {"x": x, "e": scale},
        nll,
    )


def test_issue_values_of_a_likelihood_have_nodes_for_them(conditional):
    # this used to be off by 138, in silence: nodes were those for the start values
    model, data, nll = conditional
    points = np.array([[5.0, 2.0], [5.3, 0.1], [9.7, 0.02]])
    found = mf.Likelihood(model, data)
    assert found.value(points) == pytest.approx([nll(*point) for point in points], rel=1e-9)
    step = np.array([0.0, 1e-5])
    slope = (nll(*(points[1] + step)) - nll(*(points[1] - step))) / 2e-5
    assert found.gradient(points[1])["width"] == pytest.approx(slope, rel=1e-5)


def test_issue_fits_of_many_datasets_have_nodes_for_their_minima(conditional):
    # this used to be valid at the limit of the width, with an nll of 250 too little
    model, data, nll = conditional
    many, alone = mf.fit_many(model, [data]), mf.fit(model, data)
    assert many.valid.all() and alone.valid
    assert many.nll[0] == pytest.approx(nll(*many.values[0]), rel=1e-9)
    assert many.values["width"][0] == pytest.approx(alone.values["width"], abs=0.02 * alone.errors["width"])


def test_issue_toys_that_start_far_from_the_truth_have_nodes_for_their_minima(conditional):
    # this used to have pulls of -340, all of them valid
    model, data, _ = conditional
    far = {"place": 5.0, "width": 2.0}
    toys = mf.toy_study(
        model, toys=3, given=data, truth={"place": 5.3, "width": 0.05}, start=far, seed=1, progress=False
    )
    assert toys.valid.all() and np.abs(toys.pulls("width")).max() < 4


@pytest.mark.slow  # compiles two numerical convolutions
def test_issue_bins_of_an_integral_for_each_event_have_nodes_for_the_values_at_hand():
    # this used to be off by a thousandth, and fit_many valid with an nll of 9 too little
    d, edges = mf.Observable("d", -1.0, 1.0), np.linspace(4.0, 6.0, 6)
    width = mf.Parameter("width", 0.3, 0.005, 1.0)
    tails = mf.Density(1 / (1 + (d / width) ** 2), d)
    nll = mf.BinnedLikelihood(mf.Convolution(mf.shapes.Laplace(X, 5.0, 0.5), tails), (np.ones(5), edges))
    offsets = np.sinh(np.linspace(-np.arcsinh(100.0), np.arcsinh(100.0), 20_001)) / 100
    at = (edges[:, None] - offsets - 5.0) / 0.5
    below = np.where(at < 0, 0.5 * np.exp(-np.abs(at)), 1 - 0.5 * np.exp(-np.abs(at)))
    expected = np.diff(np.trapezoid(below / (1 + (offsets / 0.01) ** 2), offsets, axis=1))
    assert nll.expected({"width": 0.01}) == pytest.approx(5 * expected / expected.sum(), rel=1e-5)
