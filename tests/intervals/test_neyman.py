"""Constructions with toys: every toy counts, the same seed gives the same bits, and what was stopped is resumed."""

import io
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from functools import cache, partial
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

import morefit as mf
import zoo
from ensembles import ensemble_of
from morefit.errors import BackendError, DataError, FitError, ModelError, OptionError
from morefit.intervals import FeldmanCousins, NeymanBelt, feldman_cousins, neyman_belt
from morefit.intervals import toys_at_points as tested
from morefit.intervals.feldman_cousins import FORMAT as FELDMAN
from morefit.intervals.feldman_cousins import LAYOUT
from morefit.intervals.free_fits import TIE
from morefit.intervals.interval import Scan, crossing
from morefit.random.host import stream_key
from morefit.records.results import concatenate
from morefit.targets.cpu.run import Cpu
from morefit.text import progress
from morefit.toys.batch import GOAL
from morefit.toys.ensemble import Ensemble
from tolerances import FEW_ROUNDINGS, PULL_SIGMAS

VALUES = (0.25, 0.3, 0.35)
TOYS = 60
Z90 = NormalDist().inv_cdf(0.95)
STRAIGHT = (
    2e-4  # of a fraction: how far from a straight line tail probabilities are between values 0.01 apart
)


@pytest.fixture(scope="module")
def mass():
    model, data, _ = zoo.mass(300)
    return model, data


@pytest.fixture(scope="module")
def found(mass):
    return feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5)


def bounded(sigma=1.0):
    """Return a Gaussian whose mean is not negative; with one event the estimate is the event."""
    x = mf.Observable("x", -20.0, 30.0)
    return mf.Gaussian(x, mf.Parameter("mu", 1.0, 0.0, 15.0), mf.Parameter("sigma", sigma, fixed=True))


def made(t_data, t, **changes):
    """Return a construction with given t."""
    count = len(t_data)
    record = FeldmanCousins(
        "mu", np.arange(count, dtype=float), np.array(t_data, float), np.array(t, np.float32), ("mu",),
        np.arange(count, dtype=float)[:, None], np.zeros(count, np.int64), 0.0, (0.0, 10.0), 0.9, 1,
    )  # fmt: skip
    return replace(record, **changes)


def chi2_toys(count, toys=1000):
    """Return as t of all toys the quantiles of a squared Gaussian."""
    quantiles = [NormalDist().inv_cdf(0.5 + 0.5 * (k + 0.5) / toys) ** 2 for k in range(toys)]
    return np.tile(quantiles, (count, 1))


# ------------------------------------------------------------------------- toys


def test_t_of_a_toy_is_that_of_two_fits_by_minuit(mass, found):
    model, _ = mass
    truth = dict(zip(found.names, found.truths[1], strict=True))
    ensemble = ensemble_of(model, truth, truth, stream_key(5, FELDMAN), mf.Cpu())
    toys = ensemble.draw(TOYS, np.full(TOYS, 300))
    for toy in range(5):
        (data,) = toys.datasets(toy)
        free, held = mf.fit(model, data), mf.fit(model, data, fixed={"fsig": VALUES[1]})
        assert found.t[1, toy] == pytest.approx(2 * (held.nll - free.nll), abs=2 * TIE)


def test_t_of_the_data_is_that_of_two_fits_by_minuit(mass, found):
    free = mf.fit(*mass)
    held = [mf.fit(*mass, fixed={"fsig": x}).nll for x in VALUES]
    assert found.t_data == pytest.approx(2 * (np.array(held) - free.nll), abs=TIE)
    assert found.best == pytest.approx(free.values["fsig"], abs=0.05 * free.errors["fsig"])


def test_toys_are_drawn_where_the_data_have_their_conditional_minimum(mass, found):
    held = mf.fit(*mass, fixed={"fsig": VALUES[0]})
    expected = [held.values[n] for n in found.names]
    assert found.truths[0] == pytest.approx(expected, abs=1e-3)
    assert found.truths[:, found.names.index("fsig")].tolist() == list(VALUES)


def test_no_toy_is_drawn_at_two_values(mass, monkeypatch):
    drawn = []
    draw = Ensemble.draw

    def watched(self, first, sizes):
        drawn.extend(range(first, first + len(sizes)))
        return draw(self, first, sizes)

    monkeypatch.setattr(Ensemble, "draw", watched)
    monkeypatch.setattr(tested, "MAX_EVENTS", 300 * 7)
    feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES[:2], toys=10, seed=5)
    assert drawn == list(range(20))


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_change_a_bit(mass, found, threads):
    again = feldman_cousins(
        mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5, backend=mf.Cpu(threads=threads)
    )
    np.testing.assert_array_equal(again.t, found.t)
    np.testing.assert_array_equal(again.truths, found.truths)


def test_blocks_do_not_change_a_bit(mass, found, monkeypatch):
    monkeypatch.setattr(tested, "MAX_EVENTS", 300 * 7)
    again = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5)
    np.testing.assert_array_equal(again.t, found.t)


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_workers_do_not_change_a_bit(mass, found, make):
    with make(2) as executor:
        again = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5, executor=executor)
    np.testing.assert_array_equal(again.t, found.t)


def test_values_are_tested_in_order_and_once(mass, found):
    again = feldman_cousins(mf.Likelihood(*mass), "fsig", [0.35, 0.25, 0.3, 0.25], toys=TOYS, seed=5)
    np.testing.assert_array_equal(again.t, found.t)


@pytest.mark.parametrize("name", ["mass", "extended"])
def test_toys_of_several_points_have_the_same_bits_together(name, monkeypatch):
    model, data, _ = getattr(zoo, name)(120)
    parameter = model.parameters[0]
    measured = mf.constraint(model.parameters[-1], model.parameters[-1].start, 0.1)
    likelihood = mf.Likelihood(model, data, constraints=[measured])
    options = {"toys": 12, "seed": 3, "backend": "cpu", "progress": False}
    points = parameter.start * np.array([0.98, 0.99, 1.0, 1.005, 1.01])

    def computed():
        scan = feldman_cousins(likelihood, parameter, points, **options)
        belt = neyman_belt(model, parameter, points, events=None if name == "extended" else 100, **options)
        return np.concatenate([scan.t.ravel(), belt.estimates.ravel()])

    apart, steps = computed(), []
    monkeypatch.setattr(Cpu, "toys_together", 30)  # two points
    plain = tested.Tested.begin
    monkeypatch.setattr(tested.Tested, "begin", lambda *a: steps.append(len(a[1])) or plain(*a))
    np.testing.assert_array_equal(computed(), apart)
    assert steps == [2, 2] * 2  # the last point is alone


def test_an_extended_model_draws_poisson_numbers_of_events():
    model, data, _ = zoo.extended(200)
    found = feldman_cousins(mf.Likelihood(model, data), "signal", [50.0], toys=20, seed=1)
    assert not found.invalid.any()
    assert "draw sizes" in found.seconds


def test_a_lone_parameter_has_nothing_to_profile():
    found = feldman_cousins(mf.Likelihood(bounded(), {"x": [2.0]}), "mu", [0.0, 1.0, 2.0], toys=200, seed=1)
    assert found.t_data == pytest.approx([4.0, 1.0, 0.0], abs=1e-5)
    assert not found.invalid.any()


def test_toys_without_events_have_a_minimum_although_no_error():
    x = mf.Observable("x", 0.0, 1.0)
    signal, background = mf.Parameter("s", 1.0, 0.0, 50.0), mf.Parameter("b", 0.5, fixed=True)
    model = mf.Sum([mf.Uniform(x), mf.Uniform(x)], yields=[signal, background])
    found = feldman_cousins(mf.Likelihood(model, {"x": [0.5]}), "s", [0.0, 0.5], toys=100, seed=1)
    assert not found.invalid.any()
    assert found.t[1].max() > 0


def test_parameters_of_a_signal_that_is_not_there_are_held():
    model, data, _ = zoo.mass(200)
    found = feldman_cousins(mf.Likelihood(model, data), "fsig", [0.0, 0.3], toys=20, seed=1)
    best = mf.fit(model, data)
    assert found.truths[0, found.names.index("mu")] == pytest.approx(best.values["mu"], abs=1e-3)
    assert found.invalid.sum() < 10


def test_a_fit_that_is_worse_than_with_the_parameter_held_is_made_again(mass, found, monkeypatch):
    fit = tested.Point.fit

    def pretend(self, toys, ensemble):
        result = fit(self, toys, ensemble)
        if not ensemble.fitted.fixed_names:
            result.nll[:3] += 10.0
        return result

    monkeypatch.setattr(tested.Point, "fit", pretend)
    again = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5)
    np.testing.assert_allclose(again.t, found.t, atol=2 * TIE)


def test_toys_whose_fits_fail_are_counted_and_kept(mass, monkeypatch):
    monkeypatch.setattr(tested, "reached", lambda result: np.arange(len(result.nll)) != 4)
    found = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES[:1], toys=10, seed=5)
    assert found.invalid.tolist() == [1]
    assert np.isnan(found.t[0, 4])


# ------------------------------------------------------------------------- p-values and intervals


def test_p_values_and_critical_values_agree_about_what_is_accepted():
    rng = np.random.default_rng(1)
    record = made(rng.chisquare(1, 200) * 2, rng.chisquare(1, (200, 50)), level=0.9)
    for level in (0.5, 0.68, 0.9, 0.98):
        critical, _ = record.critical_at(level)
        np.testing.assert_array_equal(record.accepted(level), record.t_data - TIE <= critical)


def test_equal_t_counts_as_at_least_that_of_the_data():
    record = made([1.0], [[0.0, 1.0 - 0.5 * TIE, 1.0, 2.0]])
    assert record.p_values.tolist() == [0.75]


def test_critical_values_of_many_toys_are_quantiles():
    record = made([1.0], chi2_toys(1))
    density = 2 * NormalDist().pdf(Z90) / (2 * Z90)
    assert record.critical[0] == pytest.approx(Z90**2, abs=1 / (1000 * density))  # one toy
    assert record.critical_errors[0] == pytest.approx(np.sqrt(0.09 / 1000) / density, rel=0.05)


def test_an_end_lies_where_a_parabola_reaches_the_quantile():
    values = np.linspace(0, 6, 13)
    record = made((values - 3) ** 2, chi2_toys(13, 4000), values=values, best=3.0)
    interval = record.interval()
    low, high = interval
    low_error, high_error = interval.low_error, interval.high_error
    ends = [interval.low_end, interval.high_end]
    assert (low, high) == pytest.approx((3 - Z90, 3 + Z90), abs=0.01)
    assert 0 < low_error < 0.1
    assert 0 < high_error < 0.1
    assert ends == ["crossing", "crossing"]


def test_an_end_is_found_where_no_toy_is_above_the_data():
    record = made([0.0, 36.0], chi2_toys(2), values=np.array([3.0, 9.0]), best=3.0)
    assert record.interval().high == pytest.approx(3 + Z90, abs=0.01)


def test_other_levels_are_read_from_the_same_toys():
    values = np.linspace(0, 6, 13)
    record = made((values - 3) ** 2, chi2_toys(13, 4000), values=values, best=3.0)
    low, high = record.interval(0.6827)
    assert (low, high) == pytest.approx((2, 4), abs=0.02)


def test_an_end_at_the_limit_is_the_limit_and_one_beyond_the_scan_is_not_known():
    record = made([0.0, 0.5, 1.0], chi2_toys(3))
    interval = record.interval()
    assert (interval.low, interval.low_end) == (0.0, "limit")
    assert np.isnan(interval.high)
    assert interval.high_end == "open"
    assert str(interval) == "[0 (limit), NOT REACHED]"


def test_the_best_fit_is_accepted_between_values_that_are_not():
    record = made([9.0, 9.0], chi2_toys(2), values=np.array([1.0, 7.0]), best=4.0)
    assert record.accepted().tolist() == [False, False]
    low, high = record.interval()
    assert (low, high) == pytest.approx((4 - Z90, 4 + Z90), abs=0.05)


def test_gaps_make_several_pieces_of_one_interval():
    interval = made([0.0, 9.0, 1.0, 9.0], chi2_toys(4)).interval()
    one, other = interval.pieces
    assert one.high < other.low
    assert tuple(interval) == (one.low, other.high)
    assert (interval.low_end, interval.level) == ("limit", 0.9)
    assert str(interval) == f"{one} and {other}"


def test_failed_toys_count_both_ways():
    t = chi2_toys(2, 100)
    t[:, :10] = np.nan
    record = made([0.0, 4.0], t)
    assert record.invalid.tolist() == [10, 10]
    assert record.p_values[1] - record.least_p_values[1] == pytest.approx(0.1)
    longest, shortest = record.interval(failed="above"), record.interval(failed="below")
    assert longest.high_end == "open"
    assert shortest.high < 2
    assert "FITS OF 20 TOYS FAILED" in str(record)
    assert "if t of failed toys is small" in str(record)


def test_p_values_have_errors_even_at_zero_and_one():
    record = made([0.0, 1e3], chi2_toys(2))
    assert record.p_values.tolist() == [1.0, 0.0]
    assert np.all(record.p_errors > 0)


def test_issue_heights_that_are_equal_but_for_rounding_are_crossed_at_the_outer_value():
    # the error used to be 1e17 times the distance
    assert crossing((320.0, -1e-16, 0.7), (400.0, 1e-16, 0.7))[:2] == (400.0, 80.0)


def test_a_crossing_has_the_error_of_a_line():
    end = crossing((0.0, -1.0, 0.1), (2.0, 1.0, 0.2))
    assert end.value == 1.0
    assert end.error == pytest.approx(0.5 * np.hypot(0.1, 0.2))


def test_no_accepted_value_gives_no_interval():
    scan = Scan(np.arange(3.0), np.ones((1, 3)), np.zeros((1, 3)), (0.0, 2.0))
    interval = scan.interval(np.zeros(3, bool), 0.9)
    assert interval.pieces == ()
    assert interval.low_end == "open"
    assert str(interval) == "NOTHING ACCEPTED"


# ------------------------------------------------------------------------- the record


def test_results_are_frozen_and_survive_pickling(found):
    with pytest.raises(FrozenInstanceError):
        found.level = 0.5
    with pytest.raises(ValueError, match="read-only"):
        found.t[0, 0] = 1
    copy = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(copy.t, found.t)
    assert not copy.t.flags.writeable


def test_results_are_saved_and_loaded_to_the_last_bit(found, tmp_path):
    found.save(tmp_path / "scan.npz")
    copy = FeldmanCousins.load(tmp_path / "scan.npz")
    assert str(copy) == str(found)
    for name in ("values", "t_data", "t", "truths", "clipped"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(found, name))
    assert [*tmp_path.iterdir()] == [tmp_path / "scan.npz"]


def test_infinite_limits_are_saved(tmp_path):
    made([0.0], [[1.0]], limits=(-np.inf, np.inf)).save(tmp_path / "scan.npz")
    assert FeldmanCousins.load(tmp_path / "scan.npz").limits == (-np.inf, np.inf)


def test_other_files_are_not_loaded(tmp_path):
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(DataError, match="not a file of morefit or damaged, got KeyError: 'header'"):
        FeldmanCousins.load(tmp_path / "other.npz")


def test_a_belt_is_not_loaded_as_something_else(tmp_path):
    made([0.0], [[1.0]]).save(tmp_path / "scan.npz")
    with pytest.raises(DataError, match="must have the format 'morefit neyman belt', got 'morefit feldman"):
        NeymanBelt.load(tmp_path / "scan.npz")


def test_the_table_says_what_is_excluded():
    text = str(made([0.0, 9.0], chi2_toys(2)))
    assert text.splitlines()[0] == "feldman-cousins of mu: 2 values of 1000 toys, all fits valid"
    assert "90 %: [0 (limit), " in text
    rows = [line for line in text.splitlines() if line.endswith("excluded")]
    assert len(rows) == 1
    assert rows[0].split()[0] == "1"


# ------------------------------------------------------------------------- stopping and resuming


def stop_after(monkeypatch, count):
    """Press Ctrl-C when so many points are done."""
    ratios = tested.Tested.ratios
    done = []

    def stopping(self, point, tell):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(point)
        return ratios(self, point, tell)

    monkeypatch.setattr(tested.Tested, "ratios", stopping)
    return done


def test_an_interrupt_returns_what_is_finished(mass, found, monkeypatch, capsys):
    stop_after(monkeypatch, 2)
    part = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5)
    np.testing.assert_array_equal(part.t, found.t[:2])
    assert part.values.tolist() == list(VALUES[:2])
    assert "interrupted; 2 of 3 points are finished; use save=" in capsys.readouterr().err


def test_an_interrupt_before_the_first_point_is_an_interrupt(mass, monkeypatch):
    stop_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5)


def test_what_was_stopped_is_resumed_with_the_same_bits(mass, found, monkeypatch, tmp_path):
    file = tmp_path / "scan.npz"
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, seed=5, save=file)
    assert FeldmanCousins.load(file).values.tolist() == list(VALUES[:2])
    done = stop_after(monkeypatch, 3)
    whole = feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=TOYS, save=file)
    assert done == [2]
    assert whole.seed == 5
    np.testing.assert_array_equal(whole.t, found.t)
    np.testing.assert_array_equal(FeldmanCousins.load(file).t, found.t)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"toys": 10},
            "the file belongs to a different scan: toys is 5 in the file, 10 requested; name another file",
        ),
        ({"seed": 2}, "different scan: seed is 1 in the file, 2 requested"),
    ],
)
def test_a_file_of_another_scan_is_refused(mass, tmp_path, changes, message):
    options = {"toys": 5, "seed": 1, "save": tmp_path / "scan.npz"}
    feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES[:1], **options)
    with pytest.raises(DataError, match=message):
        feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES[:1], **options | changes)


def test_a_file_of_other_data_is_refused(mass, tmp_path):
    model, data = mass
    options = {"toys": 5, "seed": 1, "save": tmp_path / "scan.npz"}
    feldman_cousins(mf.Likelihood(model, data), "fsig", VALUES[:1], **options)
    with pytest.raises(DataError, match="data looks like that of the file but is not the same"):
        feldman_cousins(mf.Likelihood(model, {"m": data["m"][:-1]}), "fsig", VALUES[:1], **options)


def test_a_long_scan_shows_points_and_toys_on_a_terminal(mass, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")  # room for any number of toys per second
    monkeypatch.setattr(progress, "SECONDS_UNSHOWN", 0.0)
    feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES[:2], toys=20, seed=5)
    text = screen.getvalue()
    assert "2 of 2 points" in text
    assert "40/40" in text


def test_finished_points_are_kept_if_a_worker_fails(mass, monkeypatch, tmp_path):
    ratios = tested.Tested.ratios

    def failing(self, point, tell):
        if point == 1:
            raise RuntimeError("out of order")
        return ratios(self, point, tell)

    monkeypatch.setattr(tested.Tested, "ratios", failing)
    file = tmp_path / "scan.npz"
    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError, match="out of order"):
        feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, toys=5, seed=5, save=file, executor=executor)
    assert FeldmanCousins.load(file).values.tolist()[0] == VALUES[0]


# ------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("fisg", VALUES), {}, FitError, "did you mean 'fsig'"),
        (("fsig", [1.5]), {}, FitError, r"must be a list of numbers in \[0.0, 1.0\], got 1.5"),
        (("fsig", []), {}, FitError, "got none"),
        (("fsig", VALUES), {"toys": 0}, OptionError, "toys must be at least 1, got 0"),
        (("fsig", VALUES), {"level": 90}, OptionError, "level must lie between 0 and 1, got 90"),
        (("fsig", VALUES), {"seed": -1}, OptionError, "seed: must be a whole number"),
        (("fsig", VALUES), {"executor": "dask"}, BackendError, "executor must be a concurrent"),
        (("fsig", VALUES), {"save": "no/such/folder.npz"}, DataError, "there is no folder"),
    ],
)
def test_bad_input_is_refused(mass, arguments, options, error, message):
    with pytest.raises(error, match=message):
        feldman_cousins(mf.Likelihood(*mass), *arguments, **options)


def test_weighted_data_are_refused(mass):
    model, data = mass
    weighted = mf.Dataset(data, model.observables, weights=np.ones(300))
    with pytest.raises(DataError, match=r"must not have any; use mf\.intervals\.bootstrap"):
        feldman_cousins(mf.Likelihood(model, weighted), "fsig", VALUES)


def test_a_fit_with_fewer_floating_parameters_is_refused(mass):
    best = mf.fit(*mass, fixed={"alpha": -1.0})
    with pytest.raises(FitError, match="needs floating parameters, got 'alpha'"):
        feldman_cousins(mf.Likelihood(*mass), "fsig", VALUES, best=best)


# ------------------------------------------------------------------------- the belt

BELT_VALUES = (4.0, 5.0, 6.0, 7.0, 8.0)


@pytest.fixture(scope="module")
def belt():
    return neyman_belt(bounded(), "mu", BELT_VALUES, events=1, toys=2000, seed=3)


def test_a_belt_of_a_gaussian_has_straight_edges(belt):
    low, high, low_error, high_error = belt.edges(0.9)
    assert np.all(np.abs(low - (belt.values - Z90)) < PULL_SIGMAS * low_error)
    assert np.all(np.abs(high - (belt.values + Z90)) < PULL_SIGMAS * high_error)
    assert low_error == pytest.approx(np.sqrt(0.05 * 0.95 / 2000) / NormalDist().pdf(Z90), rel=0.5)


def test_a_belt_is_inverted_for_an_estimate(belt):
    interval = belt.interval(6.2)
    assert abs(interval.low - (6.2 - Z90)) < PULL_SIGMAS * interval.low_error
    assert abs(interval.high - (6.2 + Z90)) < PULL_SIGMAS * interval.high_error


def test_an_estimate_far_off_gives_an_empty_interval(belt):
    assert belt.interval(-5.0).pieces == ()
    assert np.isnan(belt.interval(-5.0).low)


def belt_of_counts(draw, values, count, seed=1, noise=0.0):
    """Return a belt whose estimates are drawn as told at each value, each a little off as fits are."""
    rng = np.random.default_rng(seed)
    estimates = np.array([draw(rng, value) for value in values], float)
    off = noise * np.std(estimates, axis=1, keepdims=True) * rng.uniform(-1, 1, estimates.shape)
    return NeymanBelt("p", values, estimates / count + off / count, (values[0], values[-1]), 0.9, seed)


@cache
def belt_of_fractions(noise):
    return belt_of_counts(
        lambda rng, p: rng.binomial(20, p, 20_000), np.linspace(0.0, 1.0, 101), 20, noise=noise
    )


@cache
def belt_of_means():
    return belt_of_counts(
        lambda rng, mean: rng.poisson(mean, 20_000), np.linspace(0.0, 25.0, 126), 1, noise=0.01
    )


@pytest.mark.parametrize("noise", [0.0, 0.01])  # a fit stops up to 0.014 errors from its minimum
@pytest.mark.parametrize("successes", [0, 1, 7, 19, 20])
@pytest.mark.parametrize("level", [0.6827, 0.9])
def test_intervals_of_a_fraction_are_those_of_clopper_and_pearson(successes, level, noise):
    # ties used to be broken by rounding: 7 of 20 gave [0.270, 0.480] at 68.27 %
    interval = belt_of_fractions(noise).interval(successes / 20, level)
    low, high = interval
    low_error, high_error = interval.low_error, interval.high_error
    tail = 0.5 * (1 - level)
    exact = (
        stats.beta.ppf(tail, successes, 21 - successes) if successes else 0.0,
        stats.beta.ppf(1 - tail, successes + 1, 20 - successes) if successes < 20 else 1.0,
    )
    assert abs(low - exact[0]) < PULL_SIGMAS * low_error + STRAIGHT
    assert abs(high - exact[1]) < PULL_SIGMAS * high_error + STRAIGHT


@pytest.mark.parametrize("count", [0, 1, 3, 10])
def test_intervals_of_a_count_are_those_of_garwood(count):
    interval = belt_of_means().interval(float(count), 0.9)
    low, high = interval
    low_error, high_error = interval.low_error, interval.high_error
    exact = 0.5 * stats.chi2.ppf(0.05, 2 * count) if count else 0.0, 0.5 * stats.chi2.ppf(0.95, 2 * count + 2)
    assert abs(low - exact[0]) < PULL_SIGMAS * low_error + 10 * STRAIGHT
    assert abs(high - exact[1]) < PULL_SIGMAS * high_error + 10 * STRAIGHT


def test_fits_of_a_fraction_give_the_interval_of_clopper_and_pearson():
    class Halves(mf.Pdf):
        def __init__(self, x, p):
            self.x, self.p = x, p

        def density(self):
            return mf.where(self.x < 1.0, self.p, 1 - self.p)

        def integral(self):
            return 1.0 + 0.0 * self.p

    model = Halves(mf.Observable("x", 0.0, 2.0), mf.Parameter("p", 0.35, 0.0, 1.0))
    belt = neyman_belt(model, "p", np.linspace(0.1, 0.6, 26), events=20, toys=4000, level=0.6827, seed=1)
    interval = belt.interval(0.35)
    low, high = interval
    low_error, high_error = interval.low_error, interval.high_error
    assert abs(low - 0.2311) < PULL_SIGMAS * low_error
    assert abs(high - 0.4872) < PULL_SIGMAS * high_error
    assert low_error < 0.005


def test_ties_change_nothing_for_estimates_that_are_continuous():
    values = np.linspace(0.0, 5.0, 26)
    rng = np.random.default_rng(1)
    belt = NeymanBelt("p", values, rng.normal(values[:, None], 1.0, (26, 20_000)), (0.0, 5.0), 0.6827, 1)
    below, above = belt.beyond(2.5)
    assert np.all(below + above == 20_000)
    interval = belt.interval(2.5)
    low, high = interval
    low_error, high_error = interval.low_error, interval.high_error
    assert abs(low - 1.5) < PULL_SIGMAS * low_error
    assert abs(high - 3.5) < PULL_SIGMAS * high_error


def test_a_value_where_all_fits_failed_is_accepted(belt):
    failed = replace(belt, estimates=np.full_like(belt.estimates, np.nan))
    assert failed.beyond(6.0).tolist() == [[2000] * 5] * 2
    assert failed.interval(6.0).low_end == "open"


@pytest.mark.parametrize("answer", [None, "much", [1.0, 2.0], np.inf])
def test_an_estimator_must_return_a_number(answer):
    with pytest.raises(
        ModelError, match=r"neyman_belt: the estimator must return a finite number, or nan .*, got"
    ):
        neyman_belt(bounded(), "mu", [4.0], events=1, toys=2, seed=1, estimator=lambda data: answer)


def test_an_estimator_takes_the_place_of_the_fit(belt):
    mean = neyman_belt(bounded(), "mu", BELT_VALUES[:2], events=1, toys=50, seed=3, estimator=mean_of_x)
    fitted = neyman_belt(bounded(), "mu", BELT_VALUES[:2], events=1, toys=50, seed=3)
    away = np.abs(mean.estimates - fitted.estimates)  # in units of the error of mu, which is 1
    assert np.median(away) < 1e-4
    assert np.max(away) < np.sqrt(2 * GOAL)  # where a fit may stop


def mean_of_x(data):
    return float(np.mean(data["x"]))


def test_failed_fits_make_a_belt_wide(belt):
    estimates = belt.estimates.copy()
    estimates[:, :40] = np.nan
    wide = replace(belt, estimates=estimates)
    assert np.all(wide.low < belt.low)
    assert np.all(wide.high > belt.high)
    assert "200 FITS FAILED" in str(wide)


def test_a_belt_is_saved_loaded_and_resumed(belt, tmp_path):
    file = tmp_path / "belt.npz"
    make = partial(neyman_belt, bounded(), "mu", BELT_VALUES, events=1, toys=2000, save=file)
    make(seed=3)
    copy = NeymanBelt.load(file)
    np.testing.assert_array_equal(copy.estimates, belt.estimates)
    np.testing.assert_array_equal(make().estimates, belt.estimates)
    assert str(copy) == str(belt)
    assert str(belt).startswith("neyman belt of mu: 5 values of 2000 toys, all fits valid, seed 3")


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("sigma", [1.0]), {"events": 1}, FitError, "needs a floating parameter, got 'sigma'"),
        (("mu", [-1.0]), {"events": 1}, FitError, r"must be numbers in \[0.0, 15.0\]"),
        (("mu", [1.0]), {}, ModelError, "events is missing"),
        (
            ("mu", [1.0]),
            {"events": 1, "truth": {"sgima": 1.0}},
            ModelError,
            "'sgima': not in the model, but in truth",
        ),
    ],
)
def test_a_belt_refuses_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        neyman_belt(bounded(), *arguments, **options)


def test_a_belt_refuses_an_estimate_that_is_no_number(belt):
    with pytest.raises(OptionError, match="the estimate observed must be a finite number, got nan"):
        belt.interval(float("nan"))


def test_seconds_of_all_points_are_added_up():
    pieces = [made([0.0], [[1.0]], seconds={"fit": 0.5}) for _ in range(4)]
    assert concatenate(LAYOUT, pieces).seconds["fit"] == pytest.approx(2.0, rel=FEW_ROUNDINGS)
