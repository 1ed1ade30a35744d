"""Histograms, splines, kernel estimates and morphs: against scipy and sums written out, as densities and in fits."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, PchipInterpolator, RegularGridInterpolator

import morefit as mf
from morefit.expr import evaluate
from morefit.jobs.digest import fingerprint
from morefit.model.templates.kernel_density import Estimate
from morefit.rewrite.derive import gradient
from tolerances import FEW_ROUNDINGS

BACKENDS = ["cpu", "opencl", "reference"]
rng = np.random.default_rng(11)
X, Y, Z = mf.Observable("x", 0.0, 4.0), mf.Observable("y", -1.0, 1.0), mf.Observable("z", 0.0, 1.0)
EDGES = np.array([0.0, 0.5, 0.7, 1.6, 2.0, 3.1, 4.0])
COUNTS = np.array([3.0, 0.0, 7.0, 1.0, 4.0, 2.0])
KINDS = ["steps", "linear", "cubic"]
AT = np.linspace(0.0, 4.0, 201)
PLANE = rng.uniform(0, 5, (4, 3))
PLANE_EDGES = [np.array([0.0, 1.0, 1.5, 3.0, 4.0]), np.array([-1.0, -0.2, 0.1, 1.0])]


def curve(kind, counts=COUNTS, edges=EDGES):
    """Return the function between the contents of bins, as scipy has it."""
    heights = counts / np.diff(edges)
    if kind == "steps":
        return lambda v: heights[np.clip(np.searchsorted(edges, v, side="right") - 1, 0, len(heights) - 1)]
    points = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    padded = np.pad(heights, 1, mode="edge")
    return PchipInterpolator(points, padded) if kind == "cubic" else lambda v: np.interp(v, points, padded)


def area(function, low, high, edges=EDGES):
    cuts = np.unique(np.clip([low, *edges, *(edges[1:] + edges[:-1]) / 2, high], low, high))
    return sum(quad(function, a, b)[0] for a, b in pairwise(cuts))


def plane(x=X, y=Y, kind="steps"):
    return mf.Histogram([x, y], (PLANE, *PLANE_EDGES), kind)


def height(kind, x, y):
    """Return the function between the bins of the plane, before it is normalised."""
    volumes = np.multiply.outer(*(np.diff(e) for e in PLANE_EDGES))
    if kind == "steps":
        places = [np.searchsorted(e, v, side="right") - 1 for e, v in zip(PLANE_EDGES, (x, y), strict=True)]
        return (PLANE / volumes)[
            tuple(np.clip(p, 0, n - 1) for p, n in zip(places, PLANE.shape, strict=True))
        ]
    axes = [np.concatenate([e[:1], (e[1:] + e[:-1]) / 2, e[-1:]]) for e in PLANE_EDGES]
    return RegularGridInterpolator(axes, np.pad(PLANE / volumes, 1, mode="edge"))(np.stack([x, y], -1))


# ------------------------------------------------------------------------------------ histograms


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_histogram_is_a_normalised_density(kind, backend):
    function = curve(kind)
    expected = function(AT) / area(function, 0, 4)
    model = mf.Histogram(X, (COUNTS, EDGES), kind)
    np.testing.assert_allclose(model.pdf(AT, backend=backend), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("low", "high"), [(0.0, 4.0), (0.6, 3.4), (0.7, 1.6), (1.7, 1.9)])
def test_a_narrower_range_cuts_a_histogram(kind, low, high):
    x, function = mf.Observable("x", low, high), curve(kind)
    model = mf.Histogram(x, (COUNTS, EDGES), kind)
    at = np.linspace(low, high, 50)
    np.testing.assert_allclose(
        model.pdf(at), function(at - 1e-15 * (at == high)) / area(function, low, high), rtol=1e-9
    )
    middle = low + 0.3 * (high - low)
    share = area(function, low, middle) / area(function, low, high)
    assert model.cdf(middle) == pytest.approx(share, rel=1e-9)
    assert model.integrate({"x": (low, middle)}) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("kind", ["steps", "linear"])
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_histograms_of_several_observables_are_integrated_exactly(kind, backend):
    x, y = mf.Observable("x", 0.3, 3.7), mf.Observable("y", -0.9, 0.8)
    model = plane(x, y, kind)
    cuts_x, cuts_y = (
        np.unique(np.clip([o.low, o.high, 2.2, -0.5, *e, *(e[1:] + e[:-1]) / 2], o.low, o.high))
        for o, e in zip((x, y), PLANE_EDGES, strict=True)
    )
    nodes, weights = np.polynomial.legendre.leggauss(2)

    def points(cuts):
        middles, halves = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / 2
        return (middles[:, None] + halves[:, None] * nodes).ravel(), (halves[:, None] * weights).ravel()

    (px, wx), (py, wy) = points(cuts_x), points(cuts_y)
    heights = height(kind, *np.meshgrid(px, py, indexing="ij")) * wx[:, None] * wy
    inside = (px < 2.2)[:, None] & (py > -0.5)
    assert model.integrate({"x": (0.3, 2.2), "y": (-0.5, 0.8)}, backend=backend) == pytest.approx(
        heights[inside].sum() / heights.sum(), rel=1e-12
    )
    at = {"x": rng.uniform(0.3, 3.7, 100), "y": rng.uniform(-0.9, 0.8, 100)}
    expected = height(kind, at["x"], at["y"]) / heights.sum()
    np.testing.assert_allclose(model.pdf(at, backend=backend), expected, rtol=1e-12)


def test_three_observables_and_projections():
    contents = rng.uniform(0, 3, (4, 3, 5))
    edges = [*PLANE_EDGES, np.linspace(0, 1, 6)]
    model = mf.Histogram([X, Y, Z], (contents, edges))
    assert model.integrate({"x": (1.0, 1.5), "z": (0.2, 0.6)}) == pytest.approx(
        contents[1, :, 1:3].sum() / contents.sum(), rel=1e-12
    )
    numbers = mf.plots.project(model, mf.generate(model, 2000, seed=1), "y", bins=PLANE_EDGES[1])
    np.testing.assert_allclose(numbers.expected, 2000 * contents.sum((0, 2)) / contents.sum(), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_histogram_is_a_function_in_formulas(kind):
    function = mf.histogram_function(X, (COUNTS, EDGES), kind)
    expected = curve(kind, COUNTS * np.diff(EDGES))
    np.testing.assert_allclose(evaluate(function, {"x": AT}), expected(AT), rtol=1e-12, atol=1e-14)
    outside = evaluate(function, {"x": np.array([-9.0, 9.0])})
    np.testing.assert_array_equal(outside, COUNTS[[0, -1]])


def test_a_histogram_of_the_uhi_protocol():
    hist = pytest.importorskip("hist")
    filled = hist.Hist.new.Reg(20, 0, 4, name="x").Reg(10, -1, 1, name="y").Double()
    x, y = rng.normal(2, 1, 3000), rng.normal(0, 0.4, 3000)
    filled.fill(x=x, y=y)
    counts, *edges = np.histogram2d(x, y, (20, 10), ((0, 4), (-1, 1)))
    model = mf.Histogram([X, Y], filled)
    at = {"x": rng.uniform(0, 4, 50), "y": rng.uniform(-1, 1, 50)}
    np.testing.assert_allclose(model.pdf(at), mf.Histogram([X, Y], (counts, *edges)).pdf(at), rtol=1e-12)
    with pytest.raises(
        mf.ModelError, match="histogram: axis 0 is called 'x', got 'y' for it; list observables"
    ):
        mf.Histogram([Y, X], filled)
    profile = hist.Hist.new.Reg(4, 0, 4).Mean()
    profile.fill([0.5, 1.5, 2.5, 3.5], sample=[1.0, 2.0, 3.0, 4.0])
    assert evaluate(mf.histogram_function(X, profile), {"x": 2.2}) == 3.0
    with pytest.raises(mf.ModelError, match=r"histogram: a density needs counts, got one of kind .*MEAN"):
        mf.Histogram(X, profile)
    with pytest.raises(mf.ModelError, match=r"histogram: axes must have bins of numbers, got \[StrCategory"):
        mf.Histogram(X, hist.Hist.new.StrCat(["a", "b"]).Double())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, (COUNTS - 1, EDGES)), "histogram: contents of a density must be zero or positive, got -1 in bin 1; merge"),
        ((X, (COUNTS * np.nan, EDGES)), "histogram: contents must be finite, got 6 that are not"),
        ((X, (np.ma.array(COUNTS, mask=COUNTS > 2), EDGES)), "histogram: contents must not be masked, got .*; leave out what is"),
        ((X, (COUNTS * 0, EDGES)), r"density 'Histogram': must be positive somewhere, got zero in all of \[0, 4\] of 'x'"),
        ((mf.Observable("x", 0.5, 0.7), (COUNTS, EDGES)), r"got zero in all of \[0.5, 0.7\] of 'x'; choose another range"),
        ((X, (COUNTS[:5], EDGES[:-1])), r"histogram: must cover the range \[0, 4\] of observable 'x', got edges from 0 to 3.1"),
        ((X, (COUNTS, EDGES[::-1])), "histogram: edges of axis 0 must be two or more numbers that rise"),
        ((X, (COUNTS, EDGES[1:])), r"histogram: contents must have the shape \(5,\), got \(6,\)"),
        ((X, COUNTS), r"histogram: must be one of hist, boost-histogram or uproot, or \(contents, edges\) of NumPy, got"),
        (([X, Y], (COUNTS, EDGES)), "histogram: needs one observable for each of 1 to 3 axes, got 2 for 1"),
        ((X, (COUNTS, EDGES), "spline"), "histogram: interpolation must be one of 'steps', 'linear', 'cubic', got 'spline'"),
        (([X, Y], (PLANE, *PLANE_EDGES), "cubic"), "histogram: 'cubic' is for one observable, got 2; use 'linear'"),
        (((COUNTS, EDGES), X), "observables must be"),
    ],
)  # fmt: skip
def test_histograms_that_are_no_densities_are_refused(arguments, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.Histogram(*arguments)


def test_histograms_of_numpy_come_in_three_forms():
    counts, edges = np.histogramdd(rng.uniform(0, 4, (100, 1)), [EDGES])
    assert mf.Histogram(X, (counts, edges)).density() is mf.Histogram(X, (counts, *edges)).density()


def test_ends_that_only_rounding_sets_apart_are_the_same():
    x = mf.Observable("x", 0.0, 0.3)
    model = mf.Histogram(x, ([1.0, 2.0, 3.0], np.array([0.0, 0.1, 0.2, np.nextafter(0.3, 0)])))
    assert model.cdf(0.3) == pytest.approx(1, rel=FEW_ROUNDINGS)


# ------------------------------------------------------------------------------------ fits, toys, texts


def template_model():
    """Return two templates with a fraction: everything of the events is in tables."""
    signal = mf.Histogram(X, (np.array([1.0, 2.0, 8.0, 9.0, 2.0, 1.0]), EDGES), "linear")
    background = mf.Histogram(X, (np.array([9.0, 3.0, 5.0, 2.0, 3.0, 1.0]), EDGES))
    fraction = mf.Parameter("f", 0.4, 0.0, 1.0)
    return mf.Sum([signal, background], fractions=[fraction])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fraction_of_templates_is_fitted(backend):
    model = template_model()
    data = mf.generate(model, 4000, seed=3, backend=backend)
    result = mf.fit(model, data, backend=backend)
    assert result.valid
    assert abs(result.values["f"] - 0.4) < 4 * result.errors["f"]


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_toys_of_templates_are_whole_fits_in_compiled_code(backend):
    study = mf.toy_study(template_model(), toys=60, events=500, seed=4, backend=backend)
    assert study.valid.all()
    assert "draw and fit" in str(study)  # one call of compiled code
    assert abs(np.mean(study.pulls("f"))) < 0.6


@pytest.mark.parametrize("backend", ["cpu", pytest.param("opencl", marks=pytest.mark.exhaustive)])
def test_numerical_integrals_over_tables_are_part_of_whole_fits(backend):
    efficiency = mf.histogram_function(X, (np.linspace(0.2, 1.0, 6), EDGES), "linear")
    slope = mf.Parameter("slope", -0.4, -2.0, 2.0)
    model = mf.Density(np.exp(slope * X) * efficiency, X)
    study = mf.toy_study(model, toys=60, events=500, seed=4, backend=backend)
    assert study.valid.all()
    assert "draw and fit" in str(study)
    assert abs(np.mean(study.pulls("slope"))) < 0.6


def test_a_second_process_finds_the_kernels_of_tables(tmp_path):
    script = """
import json, numpy as np, morefit as mf
x, f = mf.Observable("x", 0.0, 4.0), mf.Parameter("f", 0.4, 0.0, 1.0)
edges = np.array([0.0, 0.5, 0.7, 1.6, 2.0, 3.1, 4.0])
parts = [mf.Histogram(x, (np.array(c), edges), "linear") for c in ([1., 2, 8, 9, 2, 1], [9., 3, 5, 2, 3, 1])]
model = mf.Sum(parts, fractions=[f])
data = {"x": np.random.default_rng(1).uniform(0, 4, 500)}
result = mf.fit(model, data)
print(json.dumps([result.values["f"], result.nll]))
"""
    environment = {"MOREFIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PATH": ""}
    answers, entries = [], []
    for _ in range(2):
        command = [sys.executable, "-c", script]
        answers.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )
        entries.append({path.name for path in tmp_path.iterdir()})
    assert json.loads(answers[0]) == json.loads(answers[1])
    assert entries[0] == entries[1]
    assert any(name.endswith(".kernel") for name in entries[0])


def test_every_number_of_a_template_is_in_its_fingerprint():
    changed = COUNTS.copy()
    changed[2] = np.nextafter(changed[2], 9)
    digests = {fingerprint(mf.Histogram(X, (c, EDGES)))["digest"] for c in (COUNTS, changed, 2 * COUNTS)}
    assert len(digests) == 2  # twice the contents are the same density


def test_templates_print_without_their_numbers():
    model = template_model()
    assert repr(mf.Histogram(X, (COUNTS, EDGES))) == "Histogram([x], 'steps', [6])"
    assert "Histogram in x; interpolation = 'linear', cells[0] = 6" in str(model)
    assert len(model._repr_latex_()) < 2000
    assert "lookup" in str(mf.explain(model, mf.generate(model, 100, seed=1)))


# ------------------------------------------------------------------------------------ splines


@pytest.mark.parametrize("boundary", ["not-a-knot", "natural"])
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_a_spline_agrees_with_scipy(boundary, backend):
    knots, heights = np.array([0.0, 0.7, 1.1, 2.5, 3.0, 4.0]), np.array([1.0, 2.0, 1.5, 2.5, 0.8, 1.2])
    exact = CubicSpline(knots, heights, bc_type=boundary)
    model = mf.Spline(X, knots, heights, boundary=boundary)
    np.testing.assert_allclose(model.pdf(AT, backend=backend), exact(AT) / exact.integrate(0, 4), rtol=1e-12)
    assert model.cdf(1.3) == pytest.approx(exact.integrate(0, 1.3) / exact.integrate(0, 4), rel=1e-12)


def test_the_heights_of_a_spline_are_fitted():
    knots = [0.0, 1.0, 2.0, 3.0, 4.0]
    heights = [mf.Parameter(f"h{k}", 1.0, 0.05, 5.0) for k in range(4)]
    model = mf.Spline(X, knots, [*heights, 1.0])
    truth = {"h0": 0.5, "h1": 2.0, "h2": 1.5, "h3": 0.7}
    result = mf.fit(model, mf.generate(model, 20_000, seed=2, truth=truth))
    assert result.valid
    for name, value in truth.items():
        assert abs(result.values[name] - value) < 4 * result.errors[name]


def test_the_exponential_of_a_spline_is_positive_for_any_heights():
    knots = np.linspace(0, 4, 6)
    heights = [0.0, -2.0, 1.0, -3.0, mf.Parameter("h", -1.0, -5.0, 5.0), 0.5]
    model = mf.Spline(X, knots, heights, exponential=True, boundary="natural")
    exact = CubicSpline(knots, [0.0, -2.0, 1.0, -3.0, -1.0, 0.5], bc_type="natural")
    total = quad(lambda v: np.exp(exact(v)), 0, 4, points=knots[1:-1], epsabs=1e-13)[0]
    np.testing.assert_allclose(model.pdf(AT), np.exp(exact(AT)) / total, rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X, [0, 1, 4], [1, 2, 3]), {}, "spline: boundary 'not-a-knot' needs 4 to 1000 knots, got 3; use mf.table"),
        ((X, [0, 1, 2, 4], 5.0), {}, "spline: needs one value for each of 4 knots, got 1"),
        ((X, [0, 1, 2, 4], [1, 2, 3]), {}, "spline: needs one value for each of 4 knots, got 3"),
        ((X, [0, 1, 2, 3], [1, 2, 3, 4]), {}, r"density 'Spline': knots must cover the range \[0, 4\] of observable 'x'"),
        ((X, [0, 1, 2, 4], [1, 2, X, 4]), {}, r"density 'Spline': argument 'values\[2\]' must be a number, a parameter"),
        ((X, [0, 1, 2, 4], [1, 2, 3, 4]), {"boundary": "periodic"}, "boundary must be 'not-a-knot' or 'natural', got 'per"),
        (([0, 1, 2, 4], [1, 2, 3, 4], X), {}, r"density 'Spline': argument 'x' must be an observable, got \[0, 1, 2, 4\]"),
        ((X, [0, 2, 1, 4], [1, 2, 3, 4]), {}, r"spline: knots must be two or more numbers that rise, got \[0, 2, 1, 4\]"),
    ],
)  # fmt: skip
def test_arguments_of_a_spline_are_checked(arguments, options, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.Spline(*arguments, **options)


# ------------------------------------------------------------------------------------ kernel estimates

WIDE = mf.Observable("x", -8.0, 8.0)
EVENTS = rng.normal(0, 1, 500)


def test_a_kernel_estimate_agrees_with_scipy():
    weights = rng.uniform(0, 1, 500)
    at = np.linspace(-3, 3, 101)
    for own in (None, weights):
        exact = stats.gaussian_kde(EVENTS, weights=own)
        model = mf.KernelDensity(WIDE, EVENTS, weights=own, adaptive=False, reflect=False)
        np.testing.assert_allclose(model.pdf(at), exact(at), rtol=1e-3)
        assert model.bandwidth[0] == pytest.approx(np.sqrt(exact.covariance[0, 0]), rel=1e-12)


def test_kernels_are_reflected_at_the_ends_of_a_range():
    x, at, h = mf.Observable("x", 0.0, 1.0), np.linspace(0, 1, 50), 0.08
    events = rng.uniform(0, 1, 300)
    kernels = sum(
        stats.norm.pdf(at[:, None], shift + sign * events, h) for shift in (-2, 0, 2) for sign in (1, -1)
    ).mean(axis=1)
    model = mf.KernelDensity(x, events, bandwidth=h, adaptive=False)
    np.testing.assert_allclose(model.pdf(at), kernels, rtol=1e-3)
    plain = mf.KernelDensity(x, events, bandwidth=h, adaptive=False, reflect=False)
    assert plain.pdf(0.0) < 0.7 * model.pdf(0.0)


def test_adaptive_kernels_are_wider_where_events_are_few():
    at = np.linspace(-2.5, 2.5, 61)
    model = mf.KernelDensity(WIDE, EVENTS, reflect=False)
    first = stats.gaussian_kde(EVENTS)
    density = first(EVENTS)
    widths = model.bandwidth[0] * np.sqrt(np.exp(np.mean(np.log(density))) / density)
    exact = stats.norm.pdf(at[:, None], EVENTS, widths).mean(axis=1)
    np.testing.assert_allclose(model.pdf(at), exact, rtol=2e-3)


def test_kernel_estimates_of_several_observables():
    x, y = mf.Observable("x", -6.0, 6.0), mf.Observable("y", -6.0, 6.0)
    events = rng.normal(0, 1, (400, 2))
    model = mf.KernelDensity([x, y], events, adaptive=False, bandwidth=[0.4, 0.5])
    at = rng.uniform(-2, 2, (60, 2))
    kernels = np.prod(stats.norm.pdf(at[:, None], events, [0.4, 0.5]), axis=2).mean(axis=1)
    np.testing.assert_allclose(model.pdf({"x": at[:, 0], "y": at[:, 1]}), kernels, rtol=3e-3)
    assert model.integrate({"x": (-6.0, 0.0)}) == pytest.approx(
        stats.norm.cdf(0, events[:, 0], 0.4).mean(), abs=1e-3
    )


def test_three_observables_are_smoothed_in_a_coarser_grid():
    observables = [mf.Observable(name, -4.0, 4.0) for name in "xyz"]
    events = np.clip(rng.normal(0, 1, (300, 3)), -4, 4)
    model = mf.KernelDensity(
        observables,
        {o.name: c for o, c in zip(observables, events.T, strict=True)},
        adaptive=False,
        bandwidth=[0.8] * 3,
    )
    kernels = np.prod(stats.norm.pdf(np.zeros(3), events, 0.8), axis=1).mean()
    assert model.pdf({"x": [0.0], "y": [0.0], "z": [0.0]})[0] == pytest.approx(kernels, rel=0.01)


def test_a_dataset_brings_its_weights():
    weights = rng.uniform(0, 1, 500)
    dataset = mf.Dataset({"x": EVENTS}, [WIDE], weights=weights)
    model, same = mf.KernelDensity(WIDE, dataset), mf.KernelDensity(WIDE, EVENTS, weights=weights)
    np.testing.assert_array_equal(model.pdf(AT), same.pdf(AT))


def test_columns_of_frames_and_records_are_taken_by_their_names():
    # this used to take them in their order, in silence
    x, y = mf.Observable("x", 0.0, 4.0), mf.Observable("y", 0.0, 8.0)
    columns = {"x": rng.uniform(0, 2, 50), "y": rng.uniform(1, 4, 50)}
    frame = pd.DataFrame(
        {"other": np.ones(50), "y": columns["y"], "x": columns["x"], "weights": columns["y"]}
    )
    at = {"x": [1.0], "y": [3.0]}
    expected = mf.KernelDensity([x, y], columns).pdf(at)
    for data in (frame, frame.to_records(index=False)):
        np.testing.assert_array_equal(mf.KernelDensity([x, y], data).pdf(at), expected)


def test_binning_keeps_the_mean_and_adds_a_known_variance():
    estimate = Estimate((np.linspace(0, 1, 11),), (0.1,))
    counts = estimate.binned([np.array([0.437])], np.ones(1))
    centres = np.linspace(0.05, 0.95, 10)
    assert counts @ centres == pytest.approx(0.437)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([1.0], {}, "kernel density: needs at least two events, got 1"),
        ([], {}, "kernel density: needs at least two events, got 0"),
        (pd.DataFrame({"y": [1.0, 2.0]}), {}, "kernel density: dataset: observable 'x': missing; there are 'y'"),
        ([1.0, 9.0], {}, r"kernel density: observable 'x': 1 of 2 events lie outside \[0, 4\]; cut the data or widen"),
        ([1.0, np.nan], {}, "kernel density: data must be finite, got 1 that are not"),
        ({"y": [1.0, 2.0]}, {}, r"kernel density: observable 'x' is not in the data, which have \['y'\]"),
        (np.ones((5, 2)), {}, "kernel density: needs a column for each of 1 observables, got"),
        ([1.0, 1.0], {}, "kernel density: all events are the same in one observable; give a bandwidth"),
        ([1.0, 2.0], {"bandwidth": -1.0}, "kernel density: bandwidth must be a positive number for each of 1 observables"),
        ([1.0, 2.0], {"bandwidth": 1e-5}, "kernel density: kernels must be wider than 0.000488 in 'x', a few of 32768 cells"),
        ([1.0, 2.0], {"weights": [1.0, -1.0]}, "kernel density: weights must be 2 numbers, zero or positive, got"),
    ],
)  # fmt: skip
def test_arguments_of_a_kernel_estimate_are_checked(data, options, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.KernelDensity(X, data, **options)


def test_a_kernel_estimate_takes_three_observables_at_most():
    with pytest.raises(mf.ModelError, match="kernel density: takes 1 to 3 observables, got 4"):
        mf.KernelDensity([mf.Observable(n, 0, 1) for n in "abcd"], np.ones((5, 4)))


# ------------------------------------------------------------------------------------ morphs

THETA = mf.Parameter("theta", 0.3, -1.0, 2.0)


def peak(mu, sigma):
    return stats.truncnorm(-mu / sigma, (4 - mu) / sigma, mu, sigma)


def test_a_morph_weights_the_two_nearest_densities():
    model = mf.Morph(
        THETA, {2.0: mf.Gaussian(X, 3.0, 0.5), -1.0: mf.Gaussian(X, 1.0, 0.5), 0.0: mf.Gaussian(X, 2.0, 0.3)}
    )
    parts = {-1: peak(1, 0.5), 0: peak(2, 0.3), 2: peak(3, 0.5)}
    for theta, weights in (
        (-1.0, (1, 0, 0)),
        (-0.4, (0.4, 0.6, 0)),
        (0.5, (0, 0.75, 0.25)),
        (2.0, (0, 0, 1)),
    ):
        exact = sum(w * p.pdf(AT) for w, p in zip(weights, parts.values(), strict=True))
        np.testing.assert_allclose(model.pdf(AT, {"theta": theta}), exact, rtol=1e-12, atol=1e-15)
    data = mf.generate(model, 5000, seed=5)
    result = mf.fit(model, data)
    assert result.valid
    assert abs(result.values["theta"] - 0.3) < 4 * result.errors["theta"]
    assert model.share_names() == ("theta = -1", "theta = 0", "theta = 2")


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_the_weights_of_a_morph_are_one_at_its_values_and_add_up_to_one(interpolation):
    values = np.array([-1.0, 0.0, 0.7, 2.0])
    pdfs = [mf.Gaussian(X, 2.0, s) for s in (0.5, 0.6, 0.7, 0.8)]
    model = mf.Morph(THETA, dict(zip(values, pdfs, strict=True)), interpolation)
    at = np.linspace(-1.5, 2.5, 101)
    np.testing.assert_allclose(sum(evaluate(w, {"theta": at}) for w in model.weights), 1.0, rtol=1e-12)
    np.testing.assert_allclose([evaluate(w, {"theta": values}) for w in model.weights], np.eye(4), atol=1e-14)
    slopes = [gradient(w, [THETA.expr])[0] for w in model.weights]
    for value in values:  # the weights are those of one segment, at its ends too
        assert sum(evaluate(s, {"theta": value}) for s in slopes) == pytest.approx(0.0, abs=1e-12)
    if interpolation == "cubic":
        spline = CubicSpline(values, [1.0, 0.0, 0.0, 0.0], bc_type="natural")
        np.testing.assert_allclose(evaluate(model.weights[0], {"theta": 0.3}), spline(0.3), rtol=1e-12)
    result = mf.fit(model, mf.generate(model, 4000, seed=8))
    assert result.valid
    assert abs(result.values["theta"] - 0.3) < 4 * result.errors["theta"]


def test_a_morph_has_the_same_shape_wherever_events_are_counted():
    # its weights used to be taken for fractions of the events in the ranges
    x = mf.Observable("x", -8.0, 8.0)
    morph = mf.Morph(THETA, {at: mf.Gaussian(x, 2 * at, 1.0) for at in (-1.0, 2.0)})
    points, inside = {"x": np.array([-1.5, 0.0, 2.5])}, {"x": (-2.0, 3.0)}
    expected = morph.pdf(points) / morph.integrate(inside)
    for counted in ("full", "range"):
        restricted = mf.Restricted(morph, inside, yields_in=counted)
        np.testing.assert_allclose(restricted.pdf(points), expected, rtol=1e-12)


def test_a_fit_may_end_at_a_value_of_a_smooth_morph():
    theta = mf.Parameter("theta", 0.0, -1.0, 1.0)
    templates = {
        k: mf.Histogram(X, ([4.0 - k, 5.0 + 2 * k, 4.0, 3.0], np.arange(5.0)), "linear") for k in (-1, 0, 1)
    }
    model = mf.Morph(theta, templates, "cubic")
    assert mf.fit(model, mf.generate(model, 2000, seed=9)).valid


def test_a_morph_that_ends_at_a_limit_is_valid():
    """This used to have no slope at the upper end."""
    theta = mf.Parameter("theta", 0.5, 0.0, 1.0)
    model = mf.Morph(theta, {0: mf.Gaussian(X, 2.0, 0.3), 1: mf.Uniform(X)})
    result = mf.fit(model, {"x": np.linspace(0, 4, 200)})
    assert result.valid
    assert result.values["theta"] == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["formula", "histogram"])
def test_a_moment_morph_moves_and_widens_a_peak(kind, backend):
    edges = np.linspace(0, 4, 41)
    made = {
        "formula": lambda mu, s: mf.Gaussian(X, mu, s),
        "histogram": lambda mu, s: mf.Histogram(X, (np.diff(stats.norm.cdf(edges, mu, s)), edges), "linear"),
    }[kind]
    model = mf.MomentMorph(THETA, {-1.0: made(1.5, 0.2), 2.0: made(2.5, 0.4)})
    exact = stats.norm.pdf(AT, 2.0, 0.3)
    found = model.pdf(AT, {"theta": 0.5}, backend=backend)
    np.testing.assert_allclose(found, exact, rtol=2e-3 if kind == "formula" else 0.1, atol=0.02)
    assert np.trapezoid(found, AT) == pytest.approx(1, rel=1e-3)
    assert model.integrate({"x": (0.0, 2.0)}, {"theta": 0.5}, backend=backend) == pytest.approx(0.5, abs=2e-3)


def test_the_parameter_of_a_moment_morph_is_fitted():
    edges = np.linspace(0, 4, 41)
    templates = {
        value: mf.Histogram(X, (np.diff(stats.norm.cdf(edges, mu, s)) + 0.002, edges), "linear")
        for value, mu, s in ((-1.0, 1.5, 0.2), (0.5, 2.0, 0.3), (2.0, 2.5, 0.4))
    }
    model = mf.MomentMorph(THETA, templates)
    result = mf.fit(model, mf.generate(model, 3000, seed=6))
    assert result.valid
    assert abs(result.values["theta"] - 0.3) < 4 * result.errors["theta"]


@pytest.mark.parametrize(
    ("kind", "parameter", "templates", "message"),
    [
        (mf.Morph, THETA, {0.0: mf.Uniform(X)}, "morph: needs at least two densities, got 1"),
        (mf.Morph, THETA, [mf.Uniform(X)] * 2, "morph: needs densities by value, as in {0.0: pdf, 1.0: other}, got"),
        (mf.Morph, THETA, {"a": mf.Uniform(X), 1.0: mf.Uniform(X)}, r"morph: values of densities must be finite numbers, got \['a'"),
        (mf.Morph, THETA, {0.0: mf.Uniform(X), 1.0: mf.Uniform(X)},
         r"morph: parameter 'theta' must have limits in \[0, 1\], where there are densities, got \[-1, 2\]; narrow"),
        (mf.Morph, THETA, {-1.0: mf.Uniform(X), 2.0: mf.Uniform(Y)}, r"morph: its densities must share their observables, got \['x'\]"),
        (mf.Morph, X, {-1.0: mf.Uniform(X), 2.0: mf.Uniform(X)}, "morph: the parameter must be a number, a parameter or an"),
        (mf.MomentMorph, THETA, {-1.0: plane(), 2.0: plane()}, "moment morph: takes densities of one observable, got 2; use mf.Morph"),
        (mf.MomentMorph, THETA, {-1.0: mf.Gaussian(X, mf.Parameter("mu", 1.0), 1.0), 2.0: mf.Uniform(X)},
         "moment morph: its densities must have no parameters, got 'mu'; use mf.Morph"),
    ],
)  # fmt: skip
def test_arguments_of_a_morph_are_checked(kind, parameter, templates, message):
    with pytest.raises(mf.ModelError, match=message):
        kind(parameter, templates)


@pytest.mark.parametrize("kind", [mf.Morph, mf.MomentMorph])
def test_a_morph_is_linear_or_cubic(kind):
    with pytest.raises(mf.ModelError, match="morph: interpolation must be 'linear' or 'cubic', got 'steps'"):
        kind(THETA, {-1.0: mf.Uniform(X), 2.0: mf.Gaussian(X, 1.0, 1.0)}, "steps")


@pytest.mark.parametrize("reflect", [True, False])
def test_issue_the_grid_of_kernels_has_the_ends_of_the_range_to_the_last_bit(reflect):
    # this used to end a rounding before one range in a hundred, and to raise an IndexError
    x = mf.Observable("x", -5.0, 10.0)
    for width in np.linspace(0.1, 0.5, 200):
        (edges,) = Estimate.of([x], [width], reflect, True).edges
        assert {x.low, x.high} <= set(edges)
