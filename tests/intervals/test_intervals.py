"""Belts reproduce the published tables, profiles agree with MINOS, and no point or replica is lost."""

import io
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from importlib import import_module

import numpy as np
import pytest
from scipy import stats

import morefit as mf
import zoo
from morefit.errors import DataError, FitError, OptionError
from morefit.intervals import (
    Bootstrap,
    Contour,
    Interval,
    Profile,
    bootstrap,
    contour,
    feldman_cousins_gaussian,
    feldman_cousins_poisson,
    profile,
)
from morefit.intervals.contour import crossings, segments
from morefit.minimise.conditional import LOWER
from morefit.minimise.replicas import Replicas, poisson_weights
from morefit.minimise.trust_region import GIVEN_UP
from morefit.random.host import stream_key
from morefit.text import progress
from tolerances import (
    BELT_EDGE,
    ELLIPSE,
    FEW_ROUNDINGS,
    MINOS,
    NUMPY_SUM,
    POLYGON,
    PUBLISHED_CELL,
    PULL_SIGMAS,
    REPEATED,
    TOTAL_YIELD,
    WHOLE_COUNTS,
)

# functions of these names hide their modules
conditional, batched = (
    import_module(f"morefit.{name}") for name in ("minimise.conditional", "minimise.batch")
)

# ------------------------------------------------------------------------- Feldman and Cousins

# physics/9711021, table IV: (n, background) -> 90 % interval
POISSON_90 = {
    (0, 0.0): (0.00, 2.44), (0, 0.5): (0.00, 1.94), (0, 1.0): (0.00, 1.61), (0, 1.5): (0.00, 1.33),
    (0, 2.0): (0.00, 1.26), (0, 2.5): (0.00, 1.18), (0, 3.0): (0.00, 1.08), (0, 4.0): (0.00, 1.01),
    (1, 0.0): (0.11, 4.36), (1, 1.0): (0.00, 3.36), (1, 3.0): (0.00, 1.88), (1, 4.0): (0.00, 1.39),
    (2, 0.0): (0.53, 5.91), (2, 0.5): (0.03, 5.41), (2, 3.0): (0.00, 3.04), (3, 0.0): (1.10, 7.42),
    (3, 1.0): (0.10, 6.42), (4, 0.0): (1.47, 8.60), (6, 0.0): (2.21, 11.47), (6, 3.0): (0.15, 8.47),
    (10, 0.0): (5.50, 16.50), (10, 0.5): (5.00, 16.00),
}  # fmt: skip
# the same, table X: measured mean -> 90 % interval
GAUSSIAN_90 = {-3.0: (0.0, 0.26), 0.0: (0.0, 1.64), 1.0: (0.0, 2.64), 1.3: (0.02, 2.94), 2.6: (1.02, 4.24)}


@pytest.mark.parametrize(("n", "background"), POISSON_90)
def test_poisson_intervals_are_those_published(n, background):
    found = feldman_cousins_poisson(n, background)
    assert found == pytest.approx(POISSON_90[n, background], abs=PUBLISHED_CELL)


@pytest.mark.parametrize("x", GAUSSIAN_90)
def test_gaussian_intervals_are_those_published(x):
    assert feldman_cousins_gaussian(x) == pytest.approx(GAUSSIAN_90[x], abs=PUBLISHED_CELL)


def accepted(mu, background, level):
    """Return the counts that are accepted for a signal, by the definition: add counts in order of their ratio."""
    counts = np.arange(200)
    found = stats.poisson.pmf(counts, mu + background)
    ratio = found / stats.poisson.pmf(counts, np.maximum(counts, background))
    order = np.argsort(-ratio, kind="stable")
    needed = int(np.searchsorted(np.cumsum(found[order]), level)) + 1
    return set(order[:needed].tolist())


@pytest.mark.parametrize("level", [0.6827, 0.9, 0.99])
@pytest.mark.parametrize(("n", "background"), [(0, 0.3), (2, 0.0), (3, 5.2), (7, 3.1), (20, 2.5)])
def test_a_poisson_interval_ends_where_its_count_is_no_longer_accepted(n, background, level):
    low, high = feldman_cousins_poisson(n, background, level, non_increasing=False)
    assert n in accepted(low + BELT_EDGE, background, level)
    assert n in accepted(high - BELT_EDGE, background, level)
    beyond = high + np.geomspace(BELT_EDGE, 30, 40)
    assert not any(n in accepted(mu, background, level) for mu in beyond)
    below = np.linspace(0, low, 40, endpoint=False)[1:] - BELT_EDGE
    assert not any(n in accepted(mu, background, level) for mu in below if low > 0)


@pytest.mark.parametrize(("background", "level"), [(0.0, 0.9), (3.0, 0.6827)])
def test_poisson_intervals_cover_every_signal(background, level):
    counts = np.arange(22)
    low, high = np.array([feldman_cousins_poisson(n, background, level) for n in counts]).T
    for mu in (0.0, 0.5, 2.0, 3.7, 6.1):
        held = (low <= mu) & (mu <= high)
        assert np.sum(stats.poisson.pmf(counts, mu + background)[held]) >= level - BELT_EDGE


def test_upper_ends_do_not_grow_with_the_background():
    backgrounds = np.linspace(0, 6, 16)
    for n in (0, 3):
        ends = [feldman_cousins_poisson(n, b)[1] for b in backgrounds]
        assert np.all(np.diff(ends) < PUBLISHED_CELL / 10)


def test_without_lengthening_upper_ends_jump():
    assert (
        feldman_cousins_poisson(0, 2.0, non_increasing=False)[1]
        < feldman_cousins_poisson(0, 2.5, non_increasing=False)[1]
    )


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.7, 1.5, 4.0])
def test_gaussian_intervals_cover_exactly(mu):
    x = np.linspace(mu - 6, mu + 6, 2401)
    held = np.array([low <= mu <= high for low, high in map(feldman_cousins_gaussian, x)])
    edges = [-np.inf, *(x[1:] + x[:-1]) / 2, np.inf]
    covered = np.diff(stats.norm.cdf(edges, mu))[held].sum()
    grain = 0.4 * (x[1] - x[0])  # of probability at an end, to each side half a step
    expected = 0.9 if mu > 0 else stats.norm.cdf(stats.norm.ppf(0.9))
    assert covered == pytest.approx(expected, abs=grain)


def test_a_bound_elsewhere_shifts_the_interval():
    low, high = feldman_cousins_gaussian(1.7, low=-0.9)
    assert (low + 0.9, high + 0.9) == pytest.approx(feldman_cousins_gaussian(2.6), rel=FEW_ROUNDINGS)


def test_a_weak_level_leaves_no_signal_for_few_counts():
    assert feldman_cousins_poisson(0, 15.0, 0.1, non_increasing=False) == pytest.approx((0, 0), abs=BELT_EDGE)
    assert feldman_cousins_gaussian(-0.2, 0.3)[0] == 0.0


def test_many_counts_give_about_the_interval_of_a_gaussian():
    low, high = feldman_cousins_poisson(1000, 100.0, 0.6827)
    assert (low, high) == pytest.approx((900 - np.sqrt(1000), 900 + np.sqrt(1000)), abs=WHOLE_COUNTS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: feldman_cousins_poisson(-1, 0.0), "n must be at least 0, got -1"),
        (lambda: feldman_cousins_poisson(1.5, 0.0), "n must be a whole number, got 1.5"),
        (lambda: feldman_cousins_poisson(1, -0.1), "background must be at least 0, got -0.1"),
        (lambda: feldman_cousins_poisson(1, 0.1, 90), "level must lie between 0 and 1, got 90"),
        (lambda: feldman_cousins_gaussian(np.nan), "x must be a finite number, got nan"),
        (lambda: feldman_cousins_gaussian(1.0, 0.0), "level must lie between 0 and 1, got 0.0"),
    ],
)
def test_questions_without_an_answer_are_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()


# ------------------------------------------------------------------------- profiles


@pytest.fixture(scope="module")
def likelihood():
    model, data, _ = zoo.mass(2000)
    return mf.Likelihood(model, data)


@pytest.fixture(scope="module")
def best(likelihood):
    return mf.fit(likelihood, minos=True, tolerance=1e-3)


@pytest.fixture(scope="module")
def mu_profile(likelihood, best):
    return profile(likelihood, "mu", best=best)


def reporting(original, wrong):
    """Return a minimiser that calls some of its sets invalid; ``wrong(call, sets)`` says which."""
    calls = []

    def pretend(evaluate, start, limits, goal, **options):
        minima = original(evaluate, start, limits, goal, **options)
        calls.append(len(start))
        return replace(minima, status=np.where(wrong(len(calls), len(start)), GIVEN_UP, minima.status))

    return pretend


@pytest.mark.parametrize("name", ["mu", "sigma", "alpha", "fsig"])
def test_intervals_of_a_profile_agree_with_minos(likelihood, best, name):
    low, high = profile(likelihood, name, best=best).interval()
    value, error = best.values[name], best.errors[name]
    expected = (value + best.minos[name][0], value + best.minos[name][1])
    assert (low, high) == pytest.approx(expected, abs=MINOS * error)


def test_each_point_is_the_minimum_over_the_others(likelihood, best, mu_profile):
    for k in (0, 7, 30):
        expected = mf.fit(likelihood, fixed={"mu": mu_profile.values[k]}, tolerance=1e-3)
        assert mu_profile.nll[k] == pytest.approx(expected.nll, abs=LOWER)
        others = [expected.values[n] for n in mu_profile.names]
        errors = np.array([best.errors[n] for n in mu_profile.names])
        np.testing.assert_allclose((mu_profile.others[k] - others) / errors, 0, atol=10 * MINOS)


def test_the_scan_spans_three_errors_around_the_best_value(best, mu_profile):
    assert len(mu_profile.values) == 31
    assert mu_profile.valid.all()
    ends = (mu_profile.values[[0, -1]] - best.values["mu"]) / best.errors["mu"]
    assert ends == pytest.approx([-3, 3], abs=MINOS)
    assert np.argmin(mu_profile.delta) == 15


def test_values_come_in_order_and_once(likelihood, best):
    found = profile(likelihood, "mu", [5.29, 5.28, 5.285, 5.28], best=best)
    assert found.values.tolist() == [5.28, 5.285, 5.29]


def test_a_coarse_scan_gives_the_same_interval(likelihood, best, mu_profile):
    coarse = profile(
        likelihood, "mu", bounds=(mu_profile.values[0], mu_profile.values[-1]), size=6, best=best
    )
    assert coarse.interval() == pytest.approx(mu_profile.interval(), abs=10 * MINOS * best.errors["mu"])


def test_a_profile_makes_its_own_fit(likelihood, mu_profile, best):
    found = profile(likelihood, "mu", progress=False)
    assert found.interval() == pytest.approx(mu_profile.interval(), abs=MINOS * best.errors["mu"])


def test_a_side_that_the_scan_does_not_reach_is_not_a_number(likelihood, best):
    value, error = best.values["mu"], best.errors["mu"]
    found = profile(likelihood, "mu", bounds=(value - 0.5 * error, value + 2 * error), best=best)
    low, high = found.interval()
    assert np.isnan(low)
    assert high == pytest.approx(value + error, abs=0.1 * error)
    assert "[NOT REACHED, " in str(found)


def test_an_interval_ends_at_a_limit_that_the_scan_goes_up_to(likelihood, best):
    value, error = best.values["mu"], best.errors["mu"]
    limited = replace(best, limits={**best.limits, "mu": (value - 0.5 * error, 6.0)})
    found = profile(likelihood, "mu", best=limited)
    assert found.interval()[0] == value - 0.5 * error
    assert "(limit)" in str(found)


def test_points_that_are_not_valid_are_left_out_of_the_interval(mu_profile):
    valid, nll = mu_profile.valid.copy(), mu_profile.nll.copy()
    valid[[9, 22]], nll[[9, 22]] = False, np.nan
    found = replace(mu_profile, valid=valid, nll=nll)
    assert found.interval() == pytest.approx(mu_profile.interval(), rel=MINOS)
    assert "31 points, 2 NOT VALID" in str(found)


def test_parameters_fixed_in_the_best_fit_stay_fixed(likelihood):
    best = mf.fit(likelihood, fixed={"alpha": -0.9})
    found = profile(likelihood, "mu", best=best, size=5)
    assert found.names == ("sigma", "fsig")
    expected = mf.fit(likelihood, fixed={"alpha": -0.9, "mu": found.values[0]}, tolerance=1e-3)
    assert found.nll[0] == pytest.approx(expected.nll, abs=LOWER)


def test_a_model_with_one_parameter_needs_no_minimising(likelihood):
    best = mf.fit(likelihood, fixed=["sigma", "alpha", "fsig"])
    found = profile(likelihood, "mu", best=best)
    assert found.others.shape == (31, 0)
    x = [[v, *(best.values[n] for n in ("sigma", "fsig", "alpha"))] for v in found.values]
    order = [["mu", "sigma", "fsig", "alpha"].index(p.name) for p in likelihood.parameters]
    np.testing.assert_allclose(found.nll, likelihood.value(np.array(x)[:, order]), rtol=NUMPY_SUM)


def test_a_sum_of_likelihoods_has_a_profile():
    model, data, _ = zoo.mass(2000)
    halves = [mf.Likelihood(model, {"m": data["m"][k::2]}) for k in (0, 1)]
    whole = profile(mf.Likelihood(model, data), "mu", [5.27, 5.28])
    np.testing.assert_allclose(profile(halves[0] + halves[1], "mu", [5.27, 5.28]).nll, whole.nll, atol=LOWER)


def test_large_scans_are_evaluated_in_parts_with_the_same_result(likelihood, best, mu_profile, monkeypatch):
    monkeypatch.setattr(batched, "MAX_LAUNCH", 3 * likelihood.events)
    np.testing.assert_array_equal(profile(likelihood, "mu", best=best).nll, mu_profile.nll)


def test_points_that_fail_are_tried_again_from_elsewhere(likelihood, best, mu_profile, monkeypatch):
    # the first call is the best fit's, the second all points, the third starts from the best fit
    pretend = reporting(batched.minimise, lambda call, n: (np.arange(n) < 4) & (call in (2, 3)))
    monkeypatch.setattr(batched, "minimise", pretend)
    found = profile(likelihood, "mu", best=best)
    assert found.valid.all()
    np.testing.assert_allclose(found.nll, mu_profile.nll, atol=LOWER)


def test_points_that_never_converge_go_to_minuit(likelihood, best, mu_profile, monkeypatch):
    monkeypatch.setattr(
        batched, "minimise", reporting(batched.minimise, lambda _, n: (np.arange(n) < 4) & (n > 1))
    )
    found = profile(likelihood, "mu", best=best)
    assert found.valid.all()
    np.testing.assert_allclose(found.nll, mu_profile.nll, atol=10 * LOWER)


def test_points_that_nobody_minimises_are_flagged(likelihood, best, mu_profile, monkeypatch):
    monkeypatch.setattr(
        batched, "minimise", reporting(batched.minimise, lambda _, n: (np.arange(n) < 4) & (n > 1))
    )
    monkeypatch.setattr(batched.Batch, "try_minuit", lambda *_: None)
    found = profile(likelihood, "mu", best=best)
    assert found.valid.tolist() == [False] * 4 + [True] * 27
    assert (found.nll[:4] > mu_profile.nll[:4] - LOWER).all()  # the lowest seen
    assert np.isfinite(found.interval()).all()


def test_a_lower_minimum_than_the_best_fit_is_taken(likelihood, best, mu_profile):
    worse = {n: best.values[n] + 0.5 * best.errors[n] * (n == "mu") for n in best.names}
    held = mf.fit(likelihood, fixed={"mu": worse["mu"]})
    stuck = replace(best, values=dict(held.values), nll=held.nll)
    found = profile(likelihood, "mu", mu_profile.values, best=stuck)
    assert found.minimum == pytest.approx(mu_profile.minimum, abs=LOWER)
    assert found.interval() == pytest.approx(mu_profile.interval(), abs=MINOS * best.errors["mu"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda nll, b: profile(nll, "sigm", best=b),
            "needs floating parameters, got 'sigm': did you mean 'sigma'",
        ),
        (
            lambda nll, b: profile(nll, "ratio", best=replace(b, quantities={"ratio": (1.0, 0.1)})),
            "got 'ratio', which is derived; write the model with it as a parameter",
        ),
        (
            lambda nll, b: profile(nll, "mu", [4.0, 5.2], best=b),
            r"values of 'mu' must .* in \[5.0, 6.0\], got 4 to 5.2",
        ),
        (lambda nll, b: profile(nll, "mu", [], best=b), "must be a list of numbers .* got none"),
        (
            lambda nll, b: profile(nll, "mu", best=replace(b, errors={**b.errors, "mu": np.nan})),
            "parameter 'mu' has no error to scale the range by; pass values or bounds",
        ),
        (
            lambda _, b: profile(mf.Likelihood(zoo.gaussian(50)[0], zoo.gaussian(50)[1]), "mu", best=b),
            "best must be a fit of this likelihood, got one of mu, ",
        ),
        (lambda nll, b: contour(nll, "mu", "mu", best=b), "needs two different parameters, got 'mu' twice"),
    ],
)
def test_scans_that_make_no_sense_are_refused(likelihood, best, call, message):
    with pytest.raises(FitError, match=message):
        call(likelihood, best)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda nll, b: profile(nll, "mu", [5.2], bounds=(5.2, 5.3), best=b),
            "takes points or bounds, not both",
        ),
        (
            lambda nll, b: profile(nll, "mu", bounds=(5.3, 5.2), best=b),
            r"bounds must be two numbers, \(low, high\), got \(5.3, 5.2\)",
        ),
        (lambda nll, b: profile(nll, "mu", size=1, best=b), "size must be at least 2, got 1"),
        (
            lambda nll, b: contour(nll, "mu", "sigma", best=b, bounds=((5.2, 5.3), (0.07, 0.06))),
            r"contour: bounds must be two numbers, \(low, high\), got",
        ),
    ],
)
def test_options_of_scans_are_checked(likelihood, best, call, message):
    with pytest.raises(OptionError, match=message):
        call(likelihood, best)


def test_a_profile_refuses_a_fit_that_is_not_valid(likelihood, monkeypatch, best):
    bad = replace(best, valid=False, reasons=("the call limit was reached",))
    monkeypatch.setattr(conditional, "fit", lambda _, fixed: bad)
    with pytest.raises(
        FitError, match=r"is not valid \(the call limit was reached\); pass a better one as best"
    ):
        profile(likelihood, "mu")


def test_scans_cannot_be_changed_and_can_be_pickled(mu_profile):
    with pytest.raises(FrozenInstanceError):
        mu_profile.best = 1.0
    again = pickle.loads(pickle.dumps(mu_profile))
    assert isinstance(again, Profile)
    np.testing.assert_array_equal(again.nll, mu_profile.nll)
    with pytest.raises(ValueError, match="read-only"):
        again.nll[0] = 0.0


# ------------------------------------------------------------------------- contours


@pytest.fixture(scope="module")
def mu_sigma(likelihood, best):
    return contour(likelihood, "mu", "sigma", best=best)


def paraboloid(size=31):
    """Return the contour of a parabola with errors 1 and 2 and its centre at (0.3, -0.2)."""
    x, y = np.linspace(-3, 3, size), np.linspace(-6, 6, size)
    delta = 0.5 * ((x[:, None] - 0.3) ** 2 + ((y[None, :] + 0.2) / 2) ** 2)
    return grid(x, y, delta)


def grid(x, y, delta, valid=None):
    valid = np.ones(delta.shape, bool) if valid is None else valid
    others = np.empty((*delta.shape, 0))
    return Contour("x", "y", x, y, delta + 100.0, (), others, valid, (0.3, -0.2), 100.0, (0.6827,))


def test_the_line_of_a_parabola_is_an_ellipse():
    (line,) = paraboloid().lines(0.6827)
    radius = np.hypot(line[:, 0] - 0.3, (line[:, 1] + 0.2) / 2)
    assert radius == pytest.approx(np.sqrt(-2 * np.log(1 - 0.6827)), abs=ELLIPSE)
    np.testing.assert_array_equal(line[0], line[-1])


def test_issue_the_line_of_a_narrow_valley_is_one_ellipse():
    # this used to be many pieces, as the valley is narrower than a cell of the grid
    x, y, correlation = np.linspace(-3, 3, 31), np.linspace(-3.1, 3.1, 31), 0.98

    def delta(u, v):
        return (u**2 - 2 * correlation * u * v + v**2) / (2 - 2 * correlation**2)

    (line,) = grid(x, y, delta(x[:, None], y)).lines(0.6827)
    np.testing.assert_allclose(delta(*line.T), -np.log(1 - 0.6827), rtol=0.05)


def test_a_line_that_leaves_the_grid_is_open():
    whole = paraboloid()
    half = grid(whole.x[15:], whole.y, whole.delta[15:])
    (line,) = half.lines(0.6827)
    assert line[[0, -1], 0] == pytest.approx(whole.x[15], abs=FEW_ROUNDINGS)
    assert "1 line, 1 OPEN" in str(half)


def test_separate_regions_have_separate_lines():
    x = np.linspace(-4, 4, 41)
    wells = [0.5 * ((x[:, None] - c) ** 2 + x[None, :] ** 2) * 8 for c in (-2, 2)]
    lines = grid(x, x, np.minimum(*wells)).lines(0.6827)
    assert sorted(round(line[:, 0].mean()) for line in lines) == [-2, 2]
    assert all(np.array_equal(line[0], line[-1]) for line in lines)


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1)])
@pytest.mark.parametrize("middle", [0.5, -0.5])
def test_saddles_are_decided_by_their_middle(signs, middle):
    a, b = signs
    height = np.array([[a, b], [b, a]]) + middle
    pairs = list(crossings(height))
    corners = {frozenset(pair) for pair in pairs}
    left_bottom = frozenset({(0, 0, True), (0, 0, False)})
    assert len(pairs) == 2
    assert (left_bottom in corners) == ((a > 0) != (middle > 0))


def test_every_kind_of_cell_connects_the_edges_that_are_crossed():
    for kind in range(1, 15):
        above = [bool(kind >> k & 1) for k in range(4)]
        crossed = {k for k in range(4) if above[k] != above[(k + 1) % 4]}
        for middle in (True, False):
            ends = [edge for pair in segments(kind, middle) for edge in pair]
            assert sorted(ends) == sorted(crossed)


def test_nodes_that_are_not_valid_open_the_line():
    whole = paraboloid()
    valid = np.ones(whole.nll.shape, bool)
    (line,) = whole.lines(0.6827)
    valid[np.argmin(np.abs(whole.x - line[0, 0])), np.argmin(np.abs(whole.y - line[0, 1]))] = False
    broken = grid(whole.x, whole.y, whole.delta, valid)
    assert sum(map(len, broken.lines(0.6827))) < len(line)
    assert "1 NOT VALID" in str(broken)


def test_nodes_of_a_contour_are_minima_over_the_others(likelihood, mu_sigma):
    i, j = 4, 22
    fixed = {"mu": mu_sigma.x[i], "sigma": mu_sigma.y[j]}
    expected = mf.fit(likelihood, fixed=fixed, tolerance=1e-3)
    assert mu_sigma.valid.all()
    assert mu_sigma.nll[i, j] == pytest.approx(expected.nll, abs=LOWER)


def test_the_extent_of_a_line_is_the_interval_of_the_profile(likelihood, best, mu_sigma):
    height = -np.log(1 - 0.6827)
    level = stats.chi2.cdf(2 * height, 1)
    (line,) = mu_sigma.lines(0.6827)
    extent = (line[:, 0].min(), line[:, 0].max())
    expected = profile(likelihood, "mu", best=best).interval(level)
    assert extent == pytest.approx(expected, abs=POLYGON * best.errors["mu"])


def test_levels_are_on_the_grid(mu_sigma):
    for level in mu_sigma.levels:
        (line,) = mu_sigma.lines(level)
        np.testing.assert_array_equal(line[0], line[-1])
    assert "95.45 %: 1 line" in str(mu_sigma)


def test_a_contour_can_be_pickled(mu_sigma):
    again = pickle.loads(pickle.dumps(mu_sigma))
    np.testing.assert_array_equal(again.nll, mu_sigma.nll)
    assert not again.nll.flags.writeable


@pytest.mark.parametrize(
    ("levels", "message"), [((), "needs at least one level"), ((0.68, 95), "level must lie .* got 95")]
)
def test_levels_are_probabilities(likelihood, best, levels, message):
    with pytest.raises(OptionError, match=f"contour: {message}"):
        contour(likelihood, "mu", "sigma", levels=levels, best=best)


# ------------------------------------------------------------------------- bootstrap


@pytest.fixture(scope="module")
def small():
    model, data, _ = zoo.mass(500)
    return mf.Likelihood(model, data)


@pytest.fixture(scope="module")
def replicas(small):
    return bootstrap(small, replicas=200, seed=5, progress=False)


def test_weights_are_poisson_counts():
    counts = np.bincount(poisson_weights(1, np.array([0]), 100_000)[0].astype(int), minlength=8)[:8]
    expected = 100_000 * stats.poisson.pmf(np.arange(8), 1)
    assert np.all(np.abs(counts - expected) < PULL_SIGMAS * np.sqrt(expected) + 1)


def test_weights_never_change():
    assert poisson_weights(5, np.array([3]), 12).tolist() == [[2, 1, 0, 2, 3, 2, 0, 1, 0, 0, 1, 1]]


def test_replicas_have_weights_of_their_own():
    one, other = poisson_weights(5, np.array([3, 4]), 1000)
    assert abs(np.corrcoef(one, other)[0, 1]) < PULL_SIGMAS / np.sqrt(1000)


def test_a_replica_is_the_fit_of_its_weighted_data(small, replicas):
    best = mf.fit(small)
    for k in (0, 57):
        weighted = mf.Likelihood(
            small.model,
            small.data,
            weights=poisson_weights(stream_key(5, "bootstrap"), np.array([k]), 500)[0],
        )
        found = mf.fit(weighted, start=dict(best.values), tolerance=1e-4)
        errors = np.array([best.errors[n] for n in replicas.names])
        away = (replicas.values[k] - [found.values[n] for n in replicas.names]) / errors
        np.testing.assert_allclose(away, 0, atol=10 * MINOS)


def test_blocks_do_not_change_the_replicas(small, replicas, monkeypatch):
    monkeypatch.setattr("morefit.minimise.replicas.BLOCK_BYTES", 8 * 500 * 37)
    np.testing.assert_array_equal(bootstrap(small, replicas=200, seed=5).values, replicas.values)


def test_more_replicas_begin_with_the_same_ones(small, replicas):
    np.testing.assert_array_equal(bootstrap(small, replicas=20, seed=5).values, replicas.values[:20])


def test_errors_are_the_spread_of_the_valid_replicas(replicas):
    valid = replicas.valid.copy()
    valid[:50] = False
    some = replace(replicas, valid=valid)
    assert some.errors == pytest.approx(replicas.values[50:].std(axis=0, ddof=1), rel=NUMPY_SUM)
    assert np.sqrt(np.diag(some.covariance)) == pytest.approx(some.errors, rel=NUMPY_SUM)
    assert "200 replicas, 50 NOT VALID" in str(some)


def test_without_valid_replicas_nothing_is_known(replicas):
    none = replace(replicas, valid=np.zeros(200, bool))
    assert np.isnan(none.errors).all()
    assert np.isnan(none.bias).all()
    assert np.isnan(none.interval("mu")).all()
    assert "200 NOT VALID" in str(none)


def test_the_interval_holds_the_central_replicas(replicas):
    low, high = replicas.interval("mu", 0.9)
    values = replicas.values[:, replicas.names.index("mu")]
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=2 / 200)
    with pytest.raises(FitError, match="parameter 'sigm': was not fitted; did you mean 'sigma'"):
        replicas.interval("sigm")


def test_weights_of_the_data_are_kept(small):
    weighted = mf.Likelihood(small.model, small.data, weights=np.full(500, 2.0))
    found = bootstrap(weighted, replicas=5, seed=5, best=mf.fit(small))
    plain = bootstrap(small, replicas=5, seed=5, best=mf.fit(small))
    errors = np.array([mf.fit(small).errors[n] for n in plain.names])
    np.testing.assert_allclose((found.values - plain.values) / errors, 0, atol=10 * MINOS)


def test_a_sum_of_likelihoods_has_replicas_of_all_its_events(small, replicas):
    halves = [
        mf.Likelihood(small.model, {"m": small.data["m"][part]}) for part in (slice(200), slice(200, None))
    ]
    found = bootstrap(halves[0] + halves[1], replicas=20, seed=5)
    np.testing.assert_allclose((found.values - replicas.values[:20]) / replicas.errors, 0, atol=REPEATED)


def test_parameters_fixed_in_the_best_fit_are_not_in_the_replicas(small):
    best = mf.fit(small, fixed=["alpha"])
    found = bootstrap(small, replicas=3, best=best)
    assert found.names == best.floating
    assert found.values.shape == (3, 3)


def test_replicas_that_fail_are_tried_again_from_the_start_values(small, replicas, monkeypatch):
    pretend = reporting(batched.minimise, lambda call, n: (np.arange(n) < 4) & (call == 2))
    monkeypatch.setattr(batched, "minimise", pretend)
    found = bootstrap(small, replicas=20, seed=5)
    assert found.valid.all()
    np.testing.assert_allclose((found.values - replicas.values[:20]) / replicas.errors, 0, atol=10 * MINOS)


def test_replicas_that_never_converge_go_to_minuit(small, replicas, monkeypatch):
    pretend = reporting(batched.minimise, lambda _, n: (np.arange(n) < 4) & (n > 1))
    monkeypatch.setattr(batched, "minimise", pretend)
    found = bootstrap(small, replicas=20, seed=5)
    assert found.valid.all()
    np.testing.assert_allclose((found.values - replicas.values[:20]) / replicas.errors, 0, atol=10 * MINOS)


def test_replicas_that_nobody_minimises_are_flagged(small, monkeypatch):
    pretend = reporting(batched.minimise, lambda _, n: (np.arange(n) < 4) & (n > 1))
    monkeypatch.setattr(batched, "minimise", pretend)
    monkeypatch.setattr(batched.Batch, "try_minuit", lambda *_: None)
    found = bootstrap(small, replicas=20, seed=5)
    assert len(found) == 20
    assert found.valid.tolist() == [False] * 4 + [True] * 16


def test_an_extended_model_varies_the_number_of_events():
    model, data, _ = zoo.extended(500)
    found = bootstrap(mf.Likelihood(model, data), replicas=200, seed=1)
    total = found.values[:, [found.names.index(n) for n in ("signal", "background")]].sum(axis=1)
    stream = stream_key(1, "bootstrap")
    expected = poisson_weights(stream, np.arange(200), 500).sum(axis=1)
    np.testing.assert_allclose(total / expected, 1, atol=TOTAL_YIELD)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"replicas": 0}, "bootstrap: replicas must be at least 1"), ({"seed": -1}, "seed: must be")],
)
def test_replicas_and_seed_are_checked(small, change, message):
    with pytest.raises(OptionError, match=message):
        bootstrap(small, **change)


def stop_after(monkeypatch, count):
    """Press Ctrl-C when so many blocks of replicas are done."""
    minimise, done = Replicas.fit_block, []

    def stopping(self, first, stop):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append((first, stop))
        return minimise(self, first, stop)

    monkeypatch.setattr(Replicas, "fit_block", stopping)
    monkeypatch.setattr("morefit.minimise.replicas.BLOCK_BYTES", 8 * 500 * 10)
    return done


def test_an_interrupt_returns_the_replicas_that_are_finished(small, replicas, monkeypatch, capsys):
    """It used to lose all of them."""
    stop_after(monkeypatch, 3)
    some = bootstrap(small, replicas=200, seed=5)
    np.testing.assert_array_equal(some.values, replicas.values[:30])
    assert "bootstrap: interrupted; 30 of 200 replicas are finished; use save=" in capsys.readouterr().err


def test_a_bootstrap_that_was_stopped_is_resumed_and_extended(small, replicas, monkeypatch, tmp_path):
    file = tmp_path / "replicas.npz"
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        bootstrap(small, replicas=200, seed=5, save=file)
    assert len(Bootstrap.load(file)) == 20
    done = stop_after(monkeypatch, 100)
    for count in (35, 50):
        found = bootstrap(small, replicas=count, seed=5, save=file)
        np.testing.assert_array_equal(found.values, replicas.values[:count])
    assert done == [(20, 30), (30, 35), (35, 45), (45, 50)]
    with pytest.raises(
        DataError, match="different bootstrap: seed is 5 in the file, 6 requested; name another"
    ):
        bootstrap(small, replicas=50, seed=6, save=file)


def test_a_bootstrap_of_other_data_is_not_resumed(small, tmp_path):
    best = mf.fit(small)
    bootstrap(small, replicas=2, best=best, save=tmp_path / "replicas.npz")
    fewer = mf.Likelihood(small.model, {"m": small.data["m"][:-1]})
    with pytest.raises(
        DataError, match="different bootstrap: data looks like that of the file but is not the same"
    ):
        bootstrap(fewer, replicas=2, best=best, save=tmp_path / "replicas.npz")
    close = mf.Likelihood(
        small.model, small.data, constraints=mf.constraint(best_parameter(small), 5.28, 1.0)
    )
    with pytest.raises(DataError, match="model constraints is None in the file"):
        bootstrap(close, replicas=2, best=best, save=tmp_path / "replicas.npz")


def best_parameter(likelihood):
    return next(p for p in likelihood.parameters if p.name == "mu")


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_workers_do_not_change_the_replicas(small, replicas, make):
    with make(2) as executor:
        found = bootstrap(small, replicas=200, seed=5, executor=executor)
    np.testing.assert_array_equal(found.values, replicas.values)
    np.testing.assert_array_equal(found.nll, replicas.nll)


def test_a_bootstrap_is_saved_to_the_last_bit(replicas, tmp_path):
    replicas.save(tmp_path / "replicas.npz")
    again = Bootstrap.load(tmp_path / "replicas.npz")
    assert str(again) == str(replicas)
    for name in ("best", "values", "nll", "valid"):
        np.testing.assert_array_equal(getattr(again, name), getattr(replicas, name))


def test_a_bootstrap_can_be_pickled(replicas):
    again = pickle.loads(pickle.dumps(replicas))
    np.testing.assert_array_equal(again.values, replicas.values)
    assert not again.values.flags.writeable


# ------------------------------------------------------------------------- one type of interval


def test_every_interval_unpacks_and_knows_its_level(mu_profile, replicas):
    for interval in (
        mu_profile.interval(0.9), replicas.interval("mu", 0.9), feldman_cousins_poisson(3, 1.0, 0.9),
        feldman_cousins_gaussian(1.0, 0.9),
    ):  # fmt: skip
        assert isinstance(interval, Interval)
        low, high = interval
        assert (low, high) == (interval.low, interval.high) == (interval[0], interval[-1])
        assert (interval.level, interval.pieces) == (0.9, (interval,))


def test_an_interval_shows_errors_limits_and_open_ends():
    assert str(Interval(1.25, 2.5, 0.9)) == "[1.25, 2.5]"
    assert str(Interval(1.25, 2.5, 0.9, low_error=0.123, high_error=0.04)) == "[1.25 +- 0.1, 2.5 +- 0.04]"
    assert str(Interval(0.0, np.nan, 0.9, low_end="limit", high_end="open")) == "[0 (limit), NOT REACHED]"
    assert feldman_cousins_poisson(0, 3.0).low_end == "limit"


def test_an_interval_is_frozen_and_survives_pickling():
    interval = Interval.spanning([Interval(0.0, 1.0, 0.9), Interval(2.0, 3.0, 0.9)], 0.9)
    assert pickle.loads(pickle.dumps(interval)) == interval
    with pytest.raises(FrozenInstanceError):
        interval.low = 1.0


# ------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show_on_terminal(monkeypatch):
    """Let a terminal stand in for standard error; not as a fixture, since pytest puts its own there for a test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "SECONDS_UNSHOWN", 0.0)
    return screen


def test_a_long_job_shows_a_bar_on_a_terminal(likelihood, best, monkeypatch):
    terminal = show_on_terminal(monkeypatch)
    profile(likelihood, "mu", best=best)
    assert "profile of mu" in terminal.getvalue()


def test_no_bar_is_shown_unless_wanted(likelihood, best, monkeypatch):
    terminal = show_on_terminal(monkeypatch)
    profile(likelihood, "mu", best=best, progress=False)
    assert terminal.getvalue() == ""


def test_a_short_job_shows_no_bar(likelihood, best, monkeypatch):
    terminal = show_on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "SECONDS_UNSHOWN", 60.0)
    profile(likelihood, "mu", best=best)
    assert terminal.getvalue() == ""


def test_nothing_is_written_where_there_is_no_terminal(likelihood, best, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_UNSHOWN", 0.0)
    profile(likelihood, "mu", best=best)
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_ends_a_job_and_its_bar(likelihood, best, monkeypatch):
    show_on_terminal(monkeypatch)
    bars = []

    class Watched(progress.Bar):
        def done(self, count):
            super().done(count)
            if self.progress is not None:
                bars.append(self.progress)
                raise KeyboardInterrupt

    monkeypatch.setattr(import_module("morefit.intervals.profile"), "Bar", Watched)
    with pytest.raises(KeyboardInterrupt):
        profile(likelihood, "mu", best=best)
    assert bars
    assert not bars[0].live.is_started


def test_issue_a_profile_of_a_mixture_does_not_jump_to_higher_minima():
    # this used to be higher by one in a stretch of points, where other widths fit better
    x = mf.Observable("x", -5.0, 5.0)
    mu, widths = (
        mf.Parameter("mu", 0.0, -2.0, 2.0),
        (mf.Parameter("s1", 0.5, 0.1, 1.0), mf.Parameter("s2", 1.5, 1.0, 4.0)),
    )
    fractions = [mf.Parameter("f1", 0.7, 0.0, 1.0), mf.Parameter("f2", 0.05, 0.0, 1.0)]
    parts = [*(mf.Gaussian(x, mu, s) for s in widths), mf.Uniform(x)]
    data = mf.generate(mf.Sum(parts, fractions=fractions), 1000, truth={"f2": 0.0}, seed=3)
    term = mf.Likelihood(mf.Sum(parts, fractions=fractions), data)
    found = profile(term, "f2", np.linspace(0.0, 0.2, 21), progress=False)
    assert found.valid.all()
    index = {p.name: k for k, p in enumerate(term.parameters)}
    for k, value in enumerate(found.values):
        for near in {max(k - 1, 0), min(k + 1, 20)}:
            point = np.empty(len(index))
            point[[index[n] for n in found.names]] = found.others[near]
            point[index["f2"]] = value
            assert found.nll[k] <= term.value(point) + LOWER
