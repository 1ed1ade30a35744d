"""Components that seem to be absent are looked for elsewhere, one evaluation for each place."""

import numpy as np
import pytest

from driven_fits import EVERYWHERE, evaluate, minimise, new_fit, quadratic
from morefit.kernel.fit_layout import PLACES
from morefit.minimise.components import (
    FINE,
    SCALES,
    WIDTHS,
    best_place,
    is_fresh,
    keep_summits,
    leave,
    leave_out,
    little,
    place_of,
    places,
    scan,
)
from morefit.minimise.newton_program import advance, begin_fit, end_attempt, returns
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.starts import (
    MIDDLE,
    OPPOSITE,
    PEAK,
    SOMEWHERE,
    STARTS,
    is_another,
    next_start,
    other_start,
)
from morefit.minimise.trust_region import CONVERGED

AMOUNT, PLACE, WIDTH, OTHER = (0.0, 20.0), (-1.0, 8.0), (0.1, 2.0), (-5.0, 5.0)


def a_peak(*bumps):
    """Return a likelihood that an amount at a place lowers by its score there: bumps of (place, width, height)."""

    def function(x):
        amount, place, other = x
        score = slope = bend = 0.0
        for at, width, height in bumps:
            z = (place - at) / width
            bump = height * np.exp(-0.5 * z * z)
            score, slope, bend = score + bump, slope - z / width * bump, bend + (z * z - 1) / width**2 * bump
        rest = other - 0.1 * amount
        value = 0.5 * amount**2 - amount * score + 2 * rest**2
        gradient = [amount - score - 0.4 * rest, -amount * slope, 4 * rest]
        hessian = [[1.04, -slope, -0.4], [-slope, -amount * bend, 0.0], [-0.4, 0.0, 4.0]]
        return value, gradient, hessian

    return function


def test_a_component_is_found_where_it_promises_most():
    """From its start it ends with a third of an error of it at the nearer place."""
    function, limits = a_peak((3.0, 0.5, 0.3), (7.0, 0.5, 3.0)), [AMOUNT, PLACE, OTHER]
    one, _ = minimise(function, [1.0, 3.2, 0.0], limits)
    assert (one.status, one.value) == (CONVERGED, pytest.approx(-0.045, abs=1e-3))
    fit, points = minimise(function, [1.0, 3.2, 0.0], limits, starts=STARTS)
    assert (fit.status, fit.shapes) == (CONVERGED, 1)
    np.testing.assert_allclose(fit.x, [3.0, 7.0, 0.3], atol=1e-2)
    assert fit.value == pytest.approx(-4.5)
    scanned = [x for x in points if x[0] == 0.0]
    assert len(scanned) == 1 + FINE
    np.testing.assert_allclose([x[1] for x in scanned[1:]], np.linspace(-0.55, 7.55, FINE))


def test_a_component_that_is_there_is_not_looked_for():
    fit, points = minimise(a_peak((3.0, 0.5, 3.0)), [2.0, 3.1, 0.0], [AMOUNT, PLACE, OTHER], starts=STARTS)
    assert (fit.status, fit.shapes, fit.starts) == (CONVERGED, 0, 0)
    assert all(x[0] > 0 for x in points)


@pytest.mark.parametrize(("rough", "start", "wandered"), [(1.0, 7.0, 1), (0.0, 7.0, 0), (1.0, 3.5, 0)])
def test_a_component_that_a_rough_way_led_far_away_is_looked_for_with_more_errors(rough, start, wandered):
    """This used to be the end: a peak of four errors at the wrong place, 19 of the nll too high."""
    fit = new_fit([4.0, start, 0.4], [AMOUNT, PLACE, OTHER], starts=STARTS)
    value, gradient, hessian = a_peak((3.0, 0.5, 4.0), (7.0, 0.5, 6.0))(np.array([4.0, 3.0, 0.4]))
    fit.x[:], fit.value, fit.rough, fit.steps = [4.0, 3.0, 0.4], value, rough, 20.0
    fit.gradient[:], fit.hessian[:] = gradient, np.ravel(hessian)
    fit.first_bend[:] = np.diagonal(hessian)
    fit.status = CONVERGED
    end_attempt(fit)
    assert 2 < fit.end[0] / fit.end_error[0] < 6
    assert (fit.wandered, fit.scan) == (wandered, wandered)


def test_the_only_evaluation_of_a_parameter_that_is_no_amount_tells_so():
    matrix = np.array([[1.0, 0.2], [0.2, 1.0]])
    function = lambda x: (0.5 * (x - 0.5) @ matrix @ (x - 0.5), matrix @ (x - 0.5), matrix)  # noqa: E731
    one, there = minimise(function, [0.4, 0.4], [AMOUNT, OTHER])
    fit, points = minimise(function, [0.4, 0.4], [AMOUNT, OTHER], starts=STARTS)
    assert len(points) == len(there) + 1
    np.testing.assert_array_equal(fit.x, one.x)
    assert (fit.shapes, fit.error[0], fit.value) == (0, one.error[0], one.value)


def test_a_mean_whose_limits_begin_at_zero_is_no_amount():
    """This used to be scanned, since nothing depends on it at the end, and the amount itself was not: 33 of the nll too high."""
    peak = a_peak((7.0, 0.5, 3.0))

    def function(x):
        place, width, amount = x
        value, gradient, hessian = peak([amount, place, 0.1 * amount])
        off = width - 1.0
        slope, bend = gradient[0] + 0.1 * off * off, hessian[0][0] - 0.04
        by_place = hessian[1][0]
        return (
            value + 0.1 * amount * off * off,
            [gradient[1], 0.2 * amount * off, slope],
            [[hessian[1][1], 0.0, by_place], [0.0, 0.2 * amount, 0.2 * off], [by_place, 0.2 * off, bend]],
        )

    fit, points = minimise(function, [2.0, 0.5, 1.0], [(0.0, 10.0), WIDTH, AMOUNT], starts=STARTS)
    assert (fit.status, fit.absent, fit.shapes) == (CONVERGED, 2, 2)
    np.testing.assert_allclose(fit.x, [7.0, 1.0, 3.0], atol=1e-2)
    assert sum(x[2] == 0.0 for x in points) >= PLACES


def test_a_component_whose_error_others_make_is_not_looked_for():
    """Only an amount times an efficiency is measured; this used to be scanned, as the amount is within two errors of none."""

    def function(x):
        amount, efficiency, place = x
        off, pull, away = amount * efficiency - 10.0, (efficiency - 1.0) / 0.6, place - 3.0
        return (
            0.5 * off * off + 0.5 * pull * pull + 0.5 * amount * away * away,
            [off * efficiency + 0.5 * away * away, off * amount + pull / 0.6, amount * away],
            [
                [efficiency * efficiency, off + amount * efficiency, away],
                [off + amount * efficiency, amount * amount + 1 / 0.36, 0.0],
                [away, 0.0, amount],
            ],
        )

    fit, points = minimise(function, [9.0, 1.1, 3.1], [(0.0, 1e3), (0.1, 3.0), PLACE], starts=STARTS)
    assert (fit.status, fit.shapes) == (CONVERGED, 0)
    assert fit.x[0] < 2 * fit.error[0]
    assert sum(x[0] == 0.0 for x in points) == 1


def test_what_is_left_without_a_component_takes_its_place():
    """Where only the sum of two amounts is measured, one of them is nothing, and the other has all."""
    matrix, at = [[1.0, 1.0], [1.0, 1.0]], [4.0, 6.0]
    fit, points = minimise(quadratic(matrix, at), [2.0, 3.0], [AMOUNT, AMOUNT], starts=STARTS)
    without = [x for x in points if x.min() == 0.0]
    np.testing.assert_allclose(without[:2], [[0.0, 10.0], [10.0, 0.0]])
    assert fit.value == pytest.approx(0.0, abs=1e-9)


def test_a_mean_between_positive_limits_is_a_place_and_no_width():
    """This used to be taken for a second width, and all places were one: bins with few counts, 3.5 % above Minuit's best."""
    fit = new_fit([1.0, 5.0, 0.5], [AMOUNT, (2.0, 9.0), WIDTH])
    fit.shape[:] = 0.0, 1.0, 1.0
    np.testing.assert_allclose([place_of(fit, 1, k) for k in range(FINE)], np.linspace(2.35, 8.65, FINE))
    assert len({place_of(fit, 2, k) for k in range(PLACES)}) == 2


@pytest.mark.parametrize(("limits", "rough", "amount"), [
    ((-20.0, 1e3), 1.0, True), ((-20.0, 1e3), 0.0, False), ((-1.0, 1.0), 1.0, False), ((0.0, 1e3), 0.0, True),
    ((0.1, 1e3), 1.0, False),
])  # fmt: skip
def test_a_yield_that_may_be_negative_is_an_amount_after_a_rough_way(limits, rough, amount):
    """It used to be none, and its peak stayed at the nearest gap: 8 % above Minuit's best."""
    fit = new_fit([0.5, 5.0], [limits, PLACE])
    fit.end[:], fit.end_error[:], fit.rough = [0.5, 5.0], [2.0, 1.0], rough
    assert little(fit, 0) == (0.25 if amount else UNKNOWN)


def test_a_yield_that_may_be_negative_is_looked_for_where_it_promises_most():
    function, limits = a_peak((3.0, 0.5, -1.0), (7.0, 0.5, 3.0)), [(-3.0, 20.0), PLACE, OTHER]
    one, _ = minimise(function, [1.0, 3.2, 0.0], limits)
    np.testing.assert_allclose(one.x[:2], [-1.0, 3.0], atol=1e-2)
    assert one.rough
    fit, _ = minimise(function, [1.0, 3.2, 0.0], limits, starts=STARTS)
    np.testing.assert_allclose(fit.x[:2], [3.0, 7.0], atol=1e-2)


@pytest.mark.parametrize(("limits", "doubt", "scanned"), [
    ((0.05, 20.0), 1.0, True), ((0.05, 20.0), 0.5, False), ((0.1, 2.0), 2.0, False),
])  # fmt: skip
def test_a_little_of_a_lifetime_is_looked_for_elsewhere_where_the_end_is_doubtful(limits, doubt, scanned):
    """It used to be left where it was if there was more of it than half an error: 3.5 % of three lifetimes above Minuit's best."""
    fit = new_fit([1.0, 1.0], [AMOUNT, limits], starts=STARTS)
    fit.absent, fit.doubtful_end = 0.0, doubt
    fit.end[:], fit.end_error[:] = [1.0, 1.0], [1.0, 0.1]
    fit.best_hessian[:] = np.eye(2).ravel() * 100.0
    leave_out(fit)
    assert (fit.scan, fit.shapes) == ((2, 1) if scanned else (0, 0.5))


def test_lifetimes_and_rates_are_scanned_by_factors():
    fit = new_fit([1.0, 2.0, -1.0], [AMOUNT, (0.05, 20.0), (-16.0, 0.0)])
    fit.shape[1] = 1.0
    assert places(fit) == SCALES
    np.testing.assert_allclose([place_of(fit, 1, k) for k in range(SCALES)], np.geomspace(20.0, 0.05, SCALES))
    fit.shape[:] = 0.0, 0.0, 1.0
    assert places(fit) == SCALES
    np.testing.assert_allclose([place_of(fit, 2, k) for k in range(SCALES)], -16.0 * 0.5 ** np.arange(SCALES))


def test_widths_are_scanned_between_the_logarithms_of_their_limits():
    fit = new_fit([1.0, 3.0, 0.5, 0.0], [AMOUNT, PLACE, WIDTH, EVERYWHERE])
    fit.shape[1:3] = 1.0
    fine, wide = [place_of(fit, 2, k) for k in (0, PLACES - 1)]
    np.testing.assert_allclose([fine, wide], [0.1 * 20**0.375, 0.1 * 20**0.75])
    assert {place_of(fit, 2, k) for k in range(PLACES)} == {fine, wide}
    fit.shape[1] = 0.0
    np.testing.assert_allclose(
        [place_of(fit, 2, k) for k in range(WIDTHS)], 0.1 * 20 ** np.array([0, 0.5, 0.75, 1])
    )
    fit.end[3] = 7.0
    fit.shape[:] = 0.0, 1.0, 0.0, 1.0
    assert place_of(fit, 3, 5) == 7.0, "without limits there are no places"


def test_places_without_a_value_promise_nothing():
    for bad, score in ((0.0, 2.0), (1.0, 0.0)):
        fit = new_fit([1.0, 3.0], [AMOUNT, PLACE])
        fit.scan, fit.absent, fit.shape[1], fit.bad = 3.0, 0.0, 1.0, bad
        fit.new_gradient[:], fit.new_hessian[:] = [-2.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        scan(fit)
        assert (fit.scan, fit.score[1], fit.trial[0]) == (4, score, 0)
        assert best_place(fit) == (1 if score else -1)


def test_the_best_places_are_starts_one_after_the_other():
    fit = new_fit([0.5, 3.0], [(0.0, 1.0), PLACE], starts=STARTS)
    fit.end[:], fit.end_error[:] = [0.9, 3.0], [0.1, 1.0]
    fit.absent, fit.shapes, fit.shape[1], fit.starts = 0.0, 1.0, 1.0, PEAK
    fit.score[[2, 5]], fit.amount[[2, 5]] = [3.0, 1.0], [0.2, 0.9]
    for place, amount in ((2, 0.8), (5, 0.5)):  # what the fraction leaves to others, at most a half
        assert next_start(fit) == PEAK
        other_start(fit, PEAK)
        np.testing.assert_allclose(fit.x, [amount, place_of(fit, 1, place)])
        assert fit.scan == 0
    assert next_start(fit) == STARTS
    fit.shapes, fit.doubtful_end = 0.0, 1.0
    assert next_start(fit) == SOMEWHERE


def test_parameters_at_one_limit_start_at_the_other_and_those_hardly_determined_in_the_middle():
    fit = new_fit([1.0] * 4, [AMOUNT, PLACE, WIDTH, EVERYWHERE])
    fit.end[:], fit.end_error[:] = [0.0, 8.0, 0.5, 1.0], [1.0, 0.5, 1.0, 9.0]
    other_start(fit, OPPOSITE)
    np.testing.assert_array_equal(fit.x, [0.0, -1.0, 0.5, 1.0])
    other_start(fit, MIDDLE)
    np.testing.assert_array_equal(fit.x, [0.0, 8.0, 1.05, 1.0])
    fit.end[1], fit.end_error[2] = 7.0, 0.1
    assert not is_another(fit, OPPOSITE)
    assert not is_another(fit, MIDDLE)


def test_a_start_whose_next_step_leads_to_the_best_end_is_given_up():
    """But not where it promises another value, leads elsewhere, is far away, or is lower already."""
    for x, higher, trial, back in (
        (0.05, 0.00125, 0.001, True),
        (0.05, 0.01, 0.001, False),
        (0.05, 0.00125, 0.1, False),
        (0.5, 0.125, 0.001, False),
        (0.05, -0.00125, 0.001, False),
    ):
        fit = new_fit([0.0], starts=STARTS)
        fit.best_hessian[0], fit.best_value = 1.0, 7.0
        fit.value, fit.edm, fit.trial[0] = 7.0 + higher, 0.5 * x * x, trial
        assert returns(fit) == back, (x, higher, trial)


def test_such_a_start_counts_as_one_that_led_back():
    fit = new_fit([0.0], [(-9.0, 9.0)], starts=STARTS)
    begin_fit(fit)
    fit.best_hessian[0], fit.best_value, fit.best_rank, fit.best_status = 1.0, 0.0, 2.0, CONVERGED
    fit.doubtful_end, fit.starts, fit.trial[0] = 1.0, SOMEWHERE + 1.0, 0.05
    evaluate(fit, quadratic([[1.0]], [0.0]))
    advance(fit)
    assert (fit.returns, fit.running, fit.tries) == (1, 1, 0)


def test_a_peak_that_took_the_place_of_a_background_is_looked_for_without_it():
    """From the shape of the background at that end nothing led back: few counts in bins, 3 % above Minuit's best."""
    fit = new_fit([5.0, 1.0, 0.1], [AMOUNT, (0.1, 5.0), OTHER], starts=STARTS)
    fit.end[:], fit.end_error[:], fit.absent = [20.0, 3.0, -3.0], [5.0, 1.0, 1.0], 0.0
    fit.best[:] = fit.end
    fit.best_hessian[:] = np.diag([0.04, 1.0, 1.0]).ravel()
    for rough, width, error, fresh in (
        (1.0, 3.0, 5.0, 1),
        (0.0, 3.0, 5.0, 0),
        (1.0, 1.5, 5.0, 0),
        (1.0, 3.0, 15.0, 0),
    ):
        fit.rough, fit.end[1], fit.end_error[0] = rough, width, error
        assert is_fresh(fit) == fresh
        leave(fit, 0)
        assert fit.trial[0] == 0.0
        assert fit.trial[2] == (0.1 if fresh else -3.0)


def test_places_beside_one_that_promises_more_are_no_starts():
    fit = new_fit([1.0, 1.0], [AMOUNT, WIDTH], starts=STARTS)
    fit.score[:5] = [1.0, 3.0, 2.0, 0.5, 0.7]
    keep_summits(fit)
    np.testing.assert_array_equal(np.flatnonzero(fit.score), [1, 4])
