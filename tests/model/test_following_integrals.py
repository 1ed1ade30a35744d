"""Numerical integrals follow their parameters: boxes are made where they are used, and what cannot be done is said."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import erf

import morefit as mf
from morefit import pipeline
from morefit.expr import Op, column, domain_of, evaluate, integral_of, leaves, scalar, toposort
from morefit.expr.quadrature import Axis, Boxes, Domain
from morefit.integrals.boxes import SMALL_BOX, SharedBoxes
from morefit.integrals.follow import FollowedIntegral
from morefit.integrals.integral import Integral
from morefit.kernel.resolved import is_unresolved
from tolerances import INTEGRAL_PROMISE

X = mf.Observable("x", -5.0, 5.0)


def peak(sigma=1.0):
    m, s = mf.Parameter("m", 0.0, -2.0, 2.0), mf.Parameter("s", sigma, 0.001, 5.0)
    return mf.Density(np.exp(-0.5 * ((X - m) / s) ** 2), [X])


def with_background(sigma=1.0):
    return mf.Sum([peak(sigma), mf.Density(1 + 0 * X, [X])], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])


@pytest.fixture
def remakes(monkeypatch):
    """Count how often boxes are made."""
    made = []
    original = FollowedIntegral.remake

    def counted(self, rows, earlier):
        made.append(len(rows))
        return original(self, rows, earlier)

    monkeypatch.setattr(FollowedIntegral, "remake", counted)
    return made


# --------------------------------------------------------------------------- where they are used


def test_issue_a_component_drawn_far_from_its_start_gets_its_share():
    # this used to be 96 172 of 100 000 events, with an integral made for the start values
    events = mf.generate(with_background(), 100_000, truth={"s": 0.01}, seed=1)
    inside = np.sum(np.abs(events["x"]) < 0.05)
    assert abs(inside - 50_500) < 5 * np.sqrt(25_000)


def test_issue_a_plot_expects_all_events_at_other_values():
    # this used to expect 24 161 events of 1 000
    from morefit.likelihood.bins import Bins, bin_probabilities
    from morefit.targets.choose import choose_backend

    model = with_background()
    bins = Bins(X, np.linspace(-5.0, 5.0, 41), {})
    values = {"m": 0.375, "s": 0.01, "f": 0.7}
    (found,) = bin_probabilities([model], model.parameters, values, bins, choose_backend("cpu"))
    assert found.sum() == pytest.approx(1, rel=INTEGRAL_PROMISE)
    assert found[21] == pytest.approx(0.7 + 0.3 / 40, rel=1e-9)


def test_issue_a_fit_far_from_its_start_is_right():
    # this used to be refused, or off
    events = mf.generate(with_background(), 5_000, truth={"s": 0.01, "m": 0.7}, seed=2)
    result = mf.fit(with_background(), events, start={"m": 0.6, "s": 0.05})
    assert result.valid, result
    assert abs(result.values["s"] - 0.01) < 5 * result.errors["s"]
    assert abs(result.values["f"] - 0.5) < 5 * result.errors["f"]


def test_issue_toys_far_from_the_start_values_are_unbiased():
    toys = mf.toy_study(with_background(), toys=40, events=500, truth={"s": 0.02, "m": 1.1}, seed=3)
    assert toys.valid.mean() > 0.9
    k = toys.names.index("f")
    off = (toys.values[:, k] - 0.5) / toys.errors[:, k]
    assert abs(np.mean(off[toys.valid])) < 5 / np.sqrt(40)


def test_boxes_are_made_once_where_nothing_moves(remakes):
    likelihood = mf.Likelihood(peak(), {"x": np.linspace(-1, 1, 20)})
    for _ in range(5):
        likelihood.value([0.0, 1.0])
    likelihood.value(np.array([[0.001 * k, 1.0] for k in range(50)]))
    assert len(remakes) == 1


def test_boxes_of_a_start_serve_fits_of_other_data(monkeypatch):
    made, original = [], FollowedIntegral.make
    monkeypatch.setattr(FollowedIntegral, "make", lambda self, *rows: made.append(1) or original(self, *rows))
    for x in ([0.1, 0.4], [-0.3, 0.2]):
        mf.Likelihood(peak(), {"x": x}).value([0.5, 1.25])
    assert len(made) == 1


def test_issue_small_boxes_between_knots_are_not_those_of_a_peak():
    # a knot next to a tenth of the range used to make every fit look for peaks in Python: toys of acceptances took 0.2 s each
    h, tau = mf.Parameter("h", 0.8, 0.1, 2.0), mf.Parameter("tau", 1.5, 0.5, 5.0)
    curve = mf.spline(X, [-5.0, -4.5, -3.7, -1.0, 5.0], [0.3, h, 1.0, 1.0, 1.0])
    integral = mf.Density(np.exp(-(X + 5) / tau) * curve, [X]).integral()
    (node,) = [n for n in toposort(integral) if n.op is Op.INTEGRAL]
    subject = Integral(domain_of(node), node.args[1:], (h.expr, tau.expr))
    boxes = Boxes.first(domain_of(node))
    assert (boxes.high - boxes.low).min() < SMALL_BOX
    nothing = SharedBoxes()
    followed = FollowedIntegral(
        subject, (), bind=None, bind_trial=None, bind_alone=None, shared=nothing, known={}
    )
    assert not np.any(followed.scan(boxes, np.array([0.8, 1.5])) <= SMALL_BOX)


def test_boxes_for_an_integrand_alone_are_those_with_its_derivatives(monkeypatch):
    """Where there are many derivatives most boxes are tried without them; the Hessian is the same."""
    data, hessians = {"x": np.linspace(-1, 1, 20)}, []
    for most in (pipeline.MAX_BODIES, 0):
        monkeypatch.setattr(pipeline, "MAX_BODIES", most)
        likelihood = mf.Likelihood(peak(), data)
        hessians.append(likelihood.hessian([0.3, 0.4]))
        (integral,) = likelihood.compiled[2, False].integrals
        assert (integral.alone is integral.tried) is (most > 0)
        pipeline.compile_sums.cache_clear()
    np.testing.assert_allclose(*hessians, rtol=INTEGRAL_PROMISE)


def test_a_valley_below_zero_is_not_a_narrow_peak():
    edges, limits = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    for height, coarse in ((1e-3, True), (-1e-3, False)):
        out = np.array([1.0, 0.0, height, -np.sign(height), 0.5])  # curved towards zero
        assert bool(is_unresolved(out, limits, edges, 1, 1, 1)) is coarse


def test_what_adds_nothing_to_an_integral_is_no_narrow_peak():
    edges, limits = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    for height, curvature, coarse in (
        (1e-8, -1e20, False),
        (1e3, -1e11, True),
    ):  # rounding at the end of a root
        out = np.array([1.0, 0.0, height, curvature, 0.0])
        assert bool(is_unresolved(out, limits, edges, 1, 1, 1)) is coarse


def test_issue_toys_of_an_end_point_were_fitted_again_one_by_one():
    # the root at the end point has a height and a curvature by rounding: half of the toys used to be fitted step by step
    m = mf.Observable("m", 5.18, 5.30)
    end, c = mf.Parameter("end", 5.285, 5.27, 5.295), mf.Parameter("c", -25.0, -80.0, -2.0)
    slope, width = mf.Parameter("slope", -60.0, -200.0, -20.0), mf.Parameter("w", 0.003, 0.001, 0.01)
    f, g = mf.Parameter("f", 0.3, 0.0, 1.0), mf.Parameter("g", 0.6, 0.0, 1.0)
    inside = mf.where(m < end, 1 - (m / end) ** 2, 1e-3)
    bound = mf.Density(mf.where(m < end, m * np.sqrt(inside) * np.exp(c * (1 - (m / end) ** 2)), 0.0), [m])
    parts = [mf.Gaussian(m, 5.279, width), bound, mf.Exponential(m, slope)]
    toys = mf.toy_study(mf.Sum(parts, fractions=[f, g]), toys=40, events=1000, seed=1, progress=False)
    assert toys.fraction_by("newton, another start") == 0.0


def test_boxes_are_made_anew_where_they_no_longer_resolve_the_peak(remakes):
    likelihood = mf.Likelihood(peak(), {"x": np.linspace(-1, 1, 20)})
    for s in (1.0, 0.1, 0.01, 0.001):
        area = (
            s * np.sqrt(np.pi / 2) * (erf((5 - 0.3) / (s * np.sqrt(2))) + erf((5 + 0.3) / (s * np.sqrt(2))))
        )
        per_event = np.sum(0.5 * ((np.linspace(-1, 1, 20) - 0.3) / s) ** 2) + 20 * np.log(area)
        assert likelihood.value([0.3, s]) == pytest.approx(per_event, rel=INTEGRAL_PROMISE)
    assert 2 <= len(remakes) <= 8


def test_sets_of_parameters_that_need_different_boxes_are_all_right():
    likelihood = mf.Likelihood(peak(), {"x": np.linspace(-1, 1, 20)})
    sets = np.array([[m, s] for m in (-1.9, 0.0, 1.3) for s in (3.0, 0.05, 0.002)])
    together = likelihood.value(sets)
    alone = [mf.Likelihood(peak(), {"x": np.linspace(-1, 1, 20)}).value(row) for row in sets]
    np.testing.assert_allclose(together, alone, rtol=INTEGRAL_PROMISE)


@pytest.mark.parametrize("place", [0.2, 0.7, -0.613])
def test_issue_a_narrow_peak_in_two_dimensions_is_not_missed(place):
    # this used to be missed: the fit was "valid" with f = 0.990 +- 0.000 for a truth of 0.5
    x, y = mf.Observable("x", -1.0, 1.0), mf.Observable("y", -1.0, 1.0)
    m, f = mf.Parameter("m", 0.2, -0.9, 0.9), mf.Parameter("f", 0.5, 0.0, 1.0)
    narrow = mf.Density(np.exp(-0.5 * ((x - m) ** 2 + (y - m) ** 2) / 0.006**2), [x, y])
    model = mf.Sum([narrow, mf.Density(1 + 0 * x * y, [x, y])], fractions=[f])
    rng = np.random.default_rng(4)
    events = {n: np.concatenate([rng.normal(place, 0.006, 500), rng.uniform(-1, 1, 500)]) for n in ("x", "y")}
    result = mf.fit(model, events, start={"m": place + 0.002})
    assert result.valid, result
    assert abs(result.values["f"] - 0.5) < 5 * result.errors["f"]
    assert result.errors["f"] == pytest.approx(np.sqrt(0.25 / 1000), rel=0.05)


def narrow(place, sigma=1e-4):
    return np.exp(-0.5 * ((X - place) / sigma) ** 2)


NARROW = 1e-4 * np.sqrt(2 * np.pi)  # its area


def test_issue_a_narrow_peak_may_enter_the_range():
    # one that was outside at the start used to be missed inside: draws and likelihoods had none of its events
    model = mf.Density(narrow(mf.Parameter("m", -6.0, -8.0, 8.0)) + 1e-5, [X])
    likelihood, expected = mf.Likelihood(model, {"x": [4.0]}), np.log(NARROW + 1e-4) - np.log(1e-5)
    assert likelihood.value([-6.0]) == pytest.approx(np.log(10))
    assert likelihood.value([1.3]) == pytest.approx(expected, abs=1e-8)
    assert -np.log(model.pdf(4.0, {"m": 1.3})) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("count", [5, 12])
def test_issue_every_narrow_peak_of_a_formula_is_followed(count):
    # the fifth to move used to be lost, and the thirteenth to be missed
    means = [mf.Parameter(f"m{k}", -4.5 + 0.7 * k, -5, 5) for k in range(count)]
    model = mf.Density(sum(narrow(m) for m in means) + 1e-5, [X])
    likelihood, expected = mf.Likelihood(model, {"x": [4.9]}), np.log(count * NARROW + 1e-4) - np.log(1e-5)
    start = np.array([p.start for p in likelihood.parameters])
    for point in (start, *(start + 0.1 * np.eye(count)[k] for k in (0, count - 1))):
        assert likelihood.value(point) == pytest.approx(expected, abs=1e-8)


def test_issue_every_narrow_peak_on_a_plane_is_followed():
    # of five peaks, those that are not first used to be lost when they moved
    x, y = mf.Observable("x", 0.0, 1.0), mf.Observable("y", 0.0, 1.0)
    means = [
        (mf.Parameter(f"a{k}", 0.1 + 0.16 * k), mf.Parameter(f"b{k}", 0.9 - 0.16 * (2 * k % 5)))
        for k in range(5)
    ]
    peaks = [np.exp(-0.5 * (((x - a) / 1e-3) ** 2 + ((y - b) / 1e-3) ** 2)) for a, b in means]
    likelihood = mf.Likelihood(mf.Density(sum(peaks) + 1e-5, [x, y]), {"x": [0.97], "y": [0.5]})
    start = {p.name: p.start for p in likelihood.parameters}
    for moved in ({}, {"a4": 0.77, "b4": 0.45}):
        point = [{**start, **moved}[p.name] for p in likelihood.parameters]
        expected = np.log(5 * 2 * np.pi * 1e-6 + 1e-5) - np.log(1e-5)
        assert likelihood.value(point) == pytest.approx(expected, abs=1e-8)


def test_issue_many_narrow_peaks_at_numbers_are_seen():
    # all but the first used to be missed
    sigma, places = mf.Parameter("s", 1e-4, 1e-5, 1), np.linspace(-4.3, 4.4, 30)
    model = mf.Density(sum(narrow(place, sigma) for place in places.tolist()) + 1e-5, [X])
    assert model.pdf(4.9) == pytest.approx(1e-5 / (30 * NARROW + 1e-4), rel=1e-8)


def test_issue_narrow_peaks_and_windows_of_a_wave_are_seen():
    # the points where a sine has a value used not to be looked at, and two that are close together not to be noticed
    x, b = mf.Observable("x", 0.0, 1.0), mf.Parameter("b", 0.5, 0.1, 0.9)
    width = 2e-5 / (3 * np.sqrt(0.75))  # of two windows, at arcsin(0.5) / 3 and at (pi - arcsin(0.5)) / 3
    for half in (0.5, b):
        window = mf.Density(mf.where((np.sin(3 * x) - half) ** 2 < 1e-10, 1e5, 1.0), [x])
        assert window.pdf(0.5) == pytest.approx(1 / (1 + 2 * width * (1e5 - 1)), rel=1e-5)
    peaks = mf.Density(np.exp(-0.5 * ((np.sin(3 * x) - b) / 1e-5) ** 2) + 1e-4, [x])
    area = np.sqrt(2 * np.pi) * width + 1e-4
    assert peaks.pdf(0.5) == pytest.approx(1e-4 / area, rel=1e-5)


# --------------------------------------------------------------------------------- what is said


def test_results_say_how_far_integrals_may_be_off():
    result = mf.fit(peak(), {"x": np.random.default_rng(5).normal(0.3, 0.7, 300)})
    assert result.valid
    assert result.integral_errors["nll"] < 1e-6
    assert result.integral_errors["errors"] < 1e-6
    assert mf.FitResult.from_json(result.to_json()).integral_errors == result.integral_errors


def test_results_without_numerical_integrals_say_nothing_of_them():
    m, s = mf.Parameter("m", 0.0, -2.0, 2.0), mf.Parameter("s", 1.0, 0.1, 5.0)
    assert mf.fit(mf.Gaussian(X, m, s), {"x": np.linspace(-1, 1, 50)}).integral_errors == {}


def test_a_peak_that_a_formula_points_at_leaves_fits_compiled(monkeypatch):
    # the sum under the logarithm has zeros that cannot be solved for, next to the centre
    z = (X - mf.Parameter("m", 0.3, -2, 2)) / mf.Parameter("s", 0.005, 0.001, 1)
    model = mf.Density(np.exp(-0.5 * (0.3 + np.log(z + np.sqrt(1 + z**2))) ** 2) / np.sqrt(1 + z**2), [X])
    made = []
    original = FollowedIntegral.fix
    monkeypatch.setattr(
        FollowedIntegral, "fix", lambda self, *args: made.append(original(self, *args)) or made[-1]
    )
    mf.toy_study(model, toys=2, events=50, seed=1)
    assert [boxes.limits[0] > 0 for boxes in made] == [True]


@pytest.mark.parametrize("value", [1.0, 0.7])
def test_issue_a_narrow_peak_at_a_place_that_cannot_be_solved_for_is_drawn(value):
    # all of its events used to be missing, in silence
    p, x = mf.Parameter("p", 1.0, 0.5, 1.5), np.linspace(-5, 5, 2_000_001)
    model = mf.Density(1 + 1e5 * np.exp(-0.5 * ((2.0 * X + 0.3 * np.sin(3 * X) - p) / 1e-4) ** 2), [X])
    heights = 1 + 1e5 * np.exp(-0.5 * ((2.0 * x + 0.3 * np.sin(3 * x) - value) / 1e-4) ** 2)
    total = integrate.trapezoid(heights, x)
    assert model.pdf(4.0, {"p": value}) == pytest.approx(1 / total, rel=1e-8)
    likelihood = mf.Likelihood(model, {"x": [4.0]})
    likelihood.value([1.2])  # boxes are made where the peak is not
    assert likelihood.value([value]) == pytest.approx(np.log(total), rel=1e-8)
    events = mf.generate(model, 1000, truth={"p": value}, seed=1)["x"]
    near = np.sum(np.abs(events - x[np.argmax(heights)]) < 1e-2)
    assert abs(near - 1000 * (total - 10) / total) < 5 * np.sqrt(250)


def test_a_peak_that_no_formula_points_at_is_found_by_its_events():
    # the place of the peak cannot be solved for, and is far from every number in the formula
    p = mf.Parameter("p", 1.0, 0.5, 1.5)
    place = 2.0 * X + 0.3 * np.sin(3 * X) - p
    model = mf.Density(1 + 1e5 * np.exp(-0.5 * (place / 1e-4) ** 2), [X])
    from scipy.optimize import brentq

    centre = brentq(lambda t: 2 * t + 0.3 * np.sin(3 * t) - 1.0, -5, 5)
    rng = np.random.default_rng(6)
    events = {"x": np.concatenate([rng.normal(centre, 3e-5, 400), rng.uniform(-5, 5, 400)])}
    likelihood = mf.Likelihood(model, events)
    total, _ = integrate.quad(
        lambda t: 1 + 1e5 * np.exp(-0.5 * ((2 * t + 0.3 * np.sin(3 * t) - 1) / 1e-4) ** 2),
        -5, 5, points=[centre - 1e-3, centre, centre + 1e-3], epsabs=1e-9, limit=500,
    )  # fmt: skip
    right = -np.sum(np.log(np.asarray(evaluate(model.density(), {"x": events["x"], "p": 1.0})) / total))
    is_right = likelihood.value([1.0]) == pytest.approx(right, rel=1e-6)
    assert is_right or likelihood.integral_error([1.0]) > 1e-3


def test_issue_the_error_of_the_mean_of_a_laplace_density_is_known():
    # this used to have no errors: second derivatives of |x - m| are zero at every event
    m, b = mf.Parameter("m", 0.0, -2.0, 2.0), mf.Parameter("b", 1.0, 0.2, 3.0)
    events = np.random.default_rng(7).laplace(0.4, 0.8, 4000).clip(-4.99, 4.99)
    result = mf.fit(mf.Density(np.exp(-abs(X - m) / b), [X]), {"x": events})
    assert result.valid and result.errors_from == "gradients"
    assert result.errors["m"] == pytest.approx(0.8 / np.sqrt(4000), rel=0.05)
    assert result.errors["b"] == pytest.approx(0.8 / np.sqrt(4000), rel=0.05)
    assert "squared scores" in str(result)


def test_a_kink_that_cannot_be_solved_for_is_refused():
    p, x = mf.Parameter("p", 1.0, 0.8, 1.2), mf.Observable("x", 0.0, 1.0)
    hard = np.maximum(np.exp(-3 * p * x), 0.4 + 0.3 * np.sin(500 * x))  # too many crossings
    with pytest.raises(
        mf.ModelError, match="has a kink that moves with 'p', from a condition that cannot be solved"
    ):
        mf.Likelihood(mf.Density(hard, [x]), {"x": [0.1]}).gradient([1.0])


def test_a_guard_that_nothing_comes_near_does_no_harm():
    p = mf.Parameter("p", 0.1, -0.3, 0.3)
    guarded = np.maximum(1 + p * np.sin(X) * X / 5, 1e-12)
    free = 1 + p * np.sin(X) * X / 5
    both = [mf.Likelihood(mf.Density(f, [X]), {"x": np.linspace(-4, 4, 9)}) for f in (guarded, free)]
    assert both[0].hessian([0.2]) == pytest.approx(both[1].hessian([0.2]), rel=1e-9)


@pytest.mark.parametrize("power", [-1.0, -1.3])
def test_a_pole_that_moves_is_refused(power):
    # the density is zero next to the pole, within rounding, so that an integral seemed to be there
    p = mf.Parameter("p", 1.0, 0.5, 1.5)
    pole = mf.where(X > p, (X - p) ** power, 0.0)
    with pytest.raises(mf.ModelError, match=r"its numerical integral is (infinite|uncertain)"):
        mf.Likelihood(mf.Density(pole, [X]), {"x": [2.0]}).value([1.0])


# ------------------------------------------------------------------------------- what is bound


class ByRange(mf.Pdf):
    """A density whose integral is known between any two points."""

    def __init__(self, x, k):
        self.x, self.k = x, k

    def density(self):
        return np.exp(-self.k * self.x)

    def integral_between(self, low, high):
        return (np.exp(-self.k * low) - np.exp(-self.k * high)) / self.k


def test_issue_integral_between_alone_is_the_integral():
    # this used to be integrated numerically all the same
    model = ByRange(X, mf.Parameter("k", 0.5, 0.1, 1.0))
    assert not any(node.op is Op.INTEGRAL for node in [model.integral()])
    assert evaluate(model.integral(), {"k": 0.5}) == pytest.approx(2 * (np.exp(2.5) - np.exp(-2.5)))


def test_issue_a_column_that_an_integral_does_not_bind_stays_free():
    # this used to be dropped
    partly = integral_of(scalar("a") * column("m") * column("n"), Domain((Axis("m"),)))
    assert [leaf.name for leaf in leaves(Op.COLUMN, partly)] == ["n"]


def test_issue_a_density_integrated_over_too_few_observables_is_refused():
    from morefit.model.integrate import integral_over

    y = mf.Observable("y", 0.0, 1.0)
    with pytest.raises(mf.ModelError, match="depends on 'y', over which it is not integrated"):
        integral_over((X + y).expr, [X], [])


@pytest.mark.parametrize("height", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("width", [1e-3, 1e-4, 1e-6])
def test_issue_a_narrow_peak_on_a_high_background_is_not_missed(height, width):
    """A peak of a few per mille of the integral, and lower than the background, was left out of it."""
    x, mu, sigma = (
        mf.Observable("x", 0, 1),
        mf.Parameter("mu", 0.777, 0, 1),
        mf.Parameter("s", width, 1e-7, 1),
    )
    density = mf.Density(1 + x + height * np.exp(-0.5 * ((x - mu) / sigma) ** 2), [x])
    exact = 1.5 + height * np.sqrt(2 * np.pi) * width
    assert density.pdf(np.array([0.1]), {"mu": 0.777, "s": width})[0] == pytest.approx(1.1 / exact, rel=1e-9)


@pytest.mark.parametrize("first", [np.nan, np.inf, 0.5])
def test_rows_that_are_no_numbers_are_no_error_wherever_they_stand(first):
    # boxes were made for the first row, whatever it was: a batch with a fit that had gone astray was refused
    nll = mf.Likelihood(peak(), np.linspace(-2.0, 2.0, 9))
    values = nll.value({"m": np.array([first, 0.3]), "s": 1.0})
    alone = mf.Likelihood(peak(), np.linspace(-2.0, 2.0, 9)).value({"m": 0.3, "s": 1.0})
    np.testing.assert_allclose(values[1], alone, rtol=1e-12)
    assert np.isfinite(values[0]) == np.isfinite(first)
