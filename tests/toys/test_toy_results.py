"""Results of toys count every toy, say what is off, and survive any journey."""

import pickle
import zipfile
from dataclasses import FrozenInstanceError, fields, replace
from math import nan, sqrt

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.errors import DataError, ModelError
from morefit.toys.results import ARRAYS, HOW, ToyResults
from morefit.toys.text import clopper_pearson
from tolerances import FEW_ROUNDINGS, NUMPY_SUM

TOYS = 400


def results(toys=TOYS, shift=0.0, scale=1.0, seed=1, **changes):
    """Return toys with pulls of the mean and width asked for, all valid and generated but for 'extra'."""
    rng = np.random.default_rng(seed)
    errors = np.tile([0.01, 2.0, 1.0], (toys, 1)) * rng.uniform(0.9, 1.1, (toys, 1))
    pulls = shift + scale * rng.normal(size=(toys, 3))
    content = {
        "names": ("mu", "yield", "extra"),
        "truth": {"mu": 5.28, "yield": 300.0, "extra": nan},
        "values": [5.28, 300.0, 1.0] + pulls * errors,
        "errors": errors,
        "nll": rng.normal(size=toys),
        "edm": rng.exponential(1e-6, toys),
        "valid": np.ones(toys, bool),
        "how": np.zeros(toys, np.uint8),
        "events": rng.poisson(1000, toys),
        "seed": 7,
        "statistics": {"q": rng.exponential(size=toys), "hits": rng.integers(0, 9, (toys, 2))},
        "seconds": {"draw": 0.1, "fit": 2.0},
    }
    return ToyResults(**(content | changes))


def some_failed():
    """Return toys of which three are not valid and one came from Minuit."""
    valid, how = np.ones(TOYS, bool), np.zeros(TOYS, np.uint8)
    valid[[3, 50, 51]], how[[3, 50, 51]], how[9], how[10] = False, 3, 2, 1
    return results(valid=valid, how=how)


def same(one, other):
    """Assert that two results agree in every field to the last bit."""
    for field in fields(ToyResults):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in ARRAYS:
            same_array(a, b)
        elif field.name == "statistics":
            assert list(a) == list(b)
            for name in a:
                same_array(a[name], b[name])
        else:
            assert (type(a), repr(a)) == (type(b), repr(b)), field.name


def same_array(a, b):
    np.testing.assert_array_equal(a, b)
    assert a.dtype == b.dtype
    assert not b.flags.writeable


# ------------------------------------------------------------------------- numbers


def test_pulls_are_the_deviations_in_units_of_the_errors():
    toys = results()
    expected = (toys.values[:, 1] - 300) / toys.errors[:, 1]
    np.testing.assert_array_equal(toys.pulls("yield"), expected)


def test_pulls_are_those_of_the_valid_toys_unless_all_are_asked_for():
    toys = some_failed()
    assert len(toys) == TOYS
    assert len(toys.pulls("mu")) == TOYS - 3
    assert len(toys.pulls("mu", valid_only=False)) == TOYS


def test_a_pull_that_is_no_number_is_not_dropped():
    errors = results().errors.copy()
    errors[0] = 0.0
    toys = results(errors=errors)
    assert len(toys.pulls("mu")) == TOYS
    assert np.isnan(toys.pull_summary("mu").width)
    assert "PULL WIDTH UNKNOWN" in str(toys)


def test_pull_summary_is_mean_and_width_with_their_errors():
    toys = results()
    pulls = toys.pulls("mu")
    width = pulls.std(ddof=1)
    expected = (pulls.mean(), width / sqrt(TOYS), width, width / sqrt(2 * (TOYS - 1)))
    assert toys.pull_summary("mu") == pytest.approx(expected, rel=FEW_ROUNDINGS)


def test_bias_is_the_mean_deviation():
    toys = results()
    away = toys.values[:, 0] - 5.28
    assert toys.bias("mu") == pytest.approx((away.mean(), away.std(ddof=1) / sqrt(TOYS)), rel=NUMPY_SUM)


def test_coverage_counts_toys_whose_interval_holds_the_truth():
    toys = results()
    inside = int(np.sum(np.abs(toys.pulls("mu")) <= stats.norm.ppf(0.95)))
    fraction, low, high = toys.coverage("mu", 0.9)
    assert fraction == inside / TOYS
    assert low < fraction < high


@pytest.mark.parametrize(("hits", "total"), [(0, 10), (10, 10), (3, 10), (6827, 10_000)])
def test_clopper_pearson_holds_the_tails_it_should(hits, total):
    _, low, high = clopper_pearson(hits, total)
    tail = (1 - 0.6827) / 2
    assert low == 0 if hits == 0 else stats.binom.sf(hits - 1, total, low) == pytest.approx(tail)
    assert high == 1 if hits == total else stats.binom.cdf(hits, total, high) == pytest.approx(tail)


def test_coverage_without_toys_is_unknown():
    fraction, low, high = clopper_pearson(0, 0)
    assert np.isnan(fraction)
    assert (low, high) == (0, 1)


def test_fractions_by_the_way_count_all_toys():
    toys = some_failed()
    assert toys.fraction_by("failed") == 3 / TOYS
    assert sum(toys.fraction_by(way) for way in HOW) == pytest.approx(1, rel=FEW_ROUNDINGS)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda t: t.pulls("yields"), ModelError, "parameter 'yields': not fitted; did you mean 'yield'"),
        (lambda t: t.pulls("extra"), ModelError, "parameter 'extra': was not generated"),
        (lambda t: t.coverage("mu", 68), mf.OptionError, "level must lie between 0 and 1, got 68"),
        (lambda t: t.fraction_by("newtn"), mf.OptionError, "no way 'newtn'; did you mean 'newton'"),
    ],
)
def test_a_wrong_question_is_answered_with_the_right_one(ask, error, message):
    with pytest.raises(error, match=message):
        ask(results())


# ------------------------------------------------------------------------- holding


def test_results_cannot_be_changed():
    toys = results()
    with pytest.raises(FrozenInstanceError):
        toys.seed = 3
    with pytest.raises(ValueError, match="read-only"):
        toys.values[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        toys.statistics["q"][0] = 1.0
    with pytest.raises(TypeError):
        toys.truth["mu"] = 1.0


def test_results_do_not_share_memory_with_what_made_them():
    nll = np.zeros(TOYS)
    toys = results(nll=nll)
    nll[0] = 1.0
    assert toys.nll[0] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"errors": np.ones((TOYS, 2))}, r"errors must have shape \(400, 3\), got \(400, 2\)"),
        ({"nll": np.ones(3), "edm": np.ones(2)}, r"nll must .* got \(3,\); edm must .* got \(2,\)"),
        ({"how": np.full(TOYS, 6)}, "how must be below 6, got 6"),
        ({"names": ("mu", "mu", "extra")}, "names must differ"),
        ({"statistics": {"q": np.ones(3)}}, r"statistic 'q' must have 400 rows, got shape \(3,\)"),
        (
            {"statistics": {"q": np.full(TOYS, None)}},
            "statistic 'q' must be numbers or text, got dtype object",
        ),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(DataError, match=f"toy results: {message}"):
        results(**changes)


def test_pickled_results_come_back_to_the_last_bit():
    toys = some_failed()
    same(toys, pickle.loads(pickle.dumps(toys)))


# ------------------------------------------------------------------------- files


def test_saved_results_come_back_to_the_last_bit(tmp_path):
    toys = replace(some_failed(), first=30, truth={"mu": 0.1 + 0.2, "yield": np.inf})
    toys.save(tmp_path / "toys.npz")
    same(toys, ToyResults.load(tmp_path / "toys.npz"))


def test_no_toys_at_all_can_be_saved_and_printed(tmp_path):
    toys = results(toys=0)
    toys.save(tmp_path / "none.npz")
    same(toys, ToyResults.load(tmp_path / "none.npz"))
    assert str(toys).startswith("toy study: no toys")


def test_the_file_says_what_it_is(tmp_path):
    results().save(tmp_path / "toys.npz")
    with np.load(tmp_path / "toys.npz") as file:
        header = str(file["header"])
    for word in (
        '"format": "morefit toy results"',
        '"version": 2',
        '"names": ["mu",',
        '"seed": 7',
        '"morefit"',
    ):
        assert word in header


def test_a_file_that_cannot_be_written_leaves_the_old_one_alone(tmp_path, monkeypatch):
    path = tmp_path / "toys.npz"
    results().save(path)

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        results(seed=2).save(path)
    same(results(), ToyResults.load(path))
    assert [p.name for p in tmp_path.iterdir()] == ["toys.npz"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, header=np.array('{"format": "something else"}'))
    with pytest.raises(
        DataError,
        match=r"must have the format 'morefit toy results', got 'something else'; name another file",
    ):
        ToyResults.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(
        DataError, match=r"not a file of morefit or damaged, got BadZipFile.*; name another file"
    ):
        ToyResults.load(path)


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "new.npz"
    np.savez(path, header=np.array('{"format": "morefit toy results", "version": 99}'))
    with pytest.raises(DataError, match="format version must be 2, got 99; use the morefit that wrote it"):
        ToyResults.load(path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "toys.npz"
    results().save(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "less.npz", "w") as new:
        for name in old.namelist():
            if name != "nll.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(DataError, match="the file is damaged, 'nll"):
        ToyResults.load(tmp_path / "less.npz")


# ------------------------------------------------------------------------- joining


def pieces(toys, *sizes):
    """Cut a study into pieces."""
    starts = np.cumsum([0, *sizes[:-1]])
    return [
        replace(
            toys, **{name: getattr(toys, name)[a : a + n] for name in ARRAYS}, first=toys.first + a,
            statistics={name: column[a : a + n] for name, column in toys.statistics.items()},
            seconds={"fit": 1.0},
        )
        for a, n in zip(starts, sizes, strict=True)
    ]  # fmt: skip


def test_pieces_in_any_order_join_to_the_whole():
    whole = replace(some_failed(), first=5, seconds={"fit": 3.0})
    one, two, three = pieces(whole, 100, 0, 300)
    same(whole, ToyResults.join([three, one, two]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 120}, "toys 100 to 119 are missing"),
        ({"first": 90}, "toys from 90 to 99 come twice"),
        ({"seed": 8}, "seeds differ, 7 and 8"),
        ({"truth": {"mu": 1.0}}, "truths differ"),
        ({"names": ("a", "b", "c")}, "parameters differ, mu, yield, extra and a, b, c"),
        ({"statistics": {}}, "statistics differ"),
    ],
)
def test_pieces_that_do_not_belong_together_are_refused(change, message):
    one, two = pieces(results(), 100, 300)
    with pytest.raises(DataError, match=f"cannot be joined: .*{message}"):
        ToyResults.join([one, replace(two, **change)])


def test_nothing_cannot_be_joined():
    with pytest.raises(DataError, match="nothing to join"):
        ToyResults.join([])


# ------------------------------------------------------------------------- print


def test_the_head_says_how_many_toys_there_are_and_how_they_were_obtained():
    events = np.arange(TOYS) + 800
    head = str(replace(some_failed(), events=events)).split("\n\n")[0]
    assert head.splitlines() == [
        "toy study: 400 toys, 3 NOT VALID (0.75 %)",
        "  obtained by newton: 395; newton, another start: 1; minuit: 1; failed: 3",
        "  800 to 1199 events, 999.5 on average",
        "  seed 7, toys 0 to 399",
    ]


def test_equal_numbers_of_events_are_said_once():
    assert "  1000 events each\n" in str(results(events=np.full(TOYS, 1000)))


def test_a_table_of_valid_toys_says_so():
    assert "the table is of the 397 valid toys" in str(some_failed())


def test_the_table_has_a_row_for_each_parameter():
    table = str(results()).split("\n\n")[1].splitlines()
    headings = ("truth", "mean value", "bias", "pull mean", "pull width", "coverage 68.27 %", "95.45 %")
    assert all(heading in table[0] for heading in headings)
    assert [row.split()[0] for row in table[1:]] == ["mu", "yield", "extra"]
    assert table[3].endswith("not generated")


def test_honest_toys_have_no_remark():
    toys = results()
    assert str(toys).startswith("toy study: 400 toys, all valid")
    assert "OFF" not in str(toys)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"shift": 0.5}, "PULL MEAN OFF BY"), ({"scale": 1.5}, "PULL WIDTH OFF BY")],
)
def test_pulls_that_are_off_are_marked_in_words(changes, words):
    assert words in str(results(**changes))


def test_numbers_of_the_user_are_summarised():
    assert "statistic" in str(results())
    assert "hits" not in str(results())  # more than one number for each toy


def test_html_shows_the_same_in_the_colour_of_the_verdict():
    good, bad = replace(results(), names=("mu", "yield", "rest")), some_failed()
    assert "all valid" in good._repr_html_()
    assert "3 NOT VALID" in bad._repr_html_()
    assert "#f8c9c9" in bad._repr_html_()


def test_a_parameter_stands_for_its_name():
    toys, mu = results(), mf.Parameter("mu", 5.0)
    np.testing.assert_array_equal(toys.pulls(mu), toys.pulls("mu"))
    assert (
        toys.truth[mu] == 5.28
        and toys.bias(mu) == toys.bias("mu")
        and toys.coverage(mu) == toys.coverage("mu")
    )
    with pytest.raises(ModelError, match=r"parameter 'm': not fitted; did you mean 'mu'\?"):
        toys.pulls(mf.Parameter("m", 5.0))


def test_toys_become_a_frame_of_pandas():
    toys = replace(some_failed(), first=100)
    frame = toys.to_pandas()
    assert list(frame) == [
        "mu", "mu_error", "yield", "yield_error", "extra", "extra_error", "nll", "edm", "valid", "events", "how", "q",
    ]  # fmt: skip
    assert frame.index[0] == 100 and len(frame) == len(toys)
    np.testing.assert_array_equal(frame["yield"], toys.values[:, 1])
    assert frame.loc[103, "how"] == "failed" and not frame.loc[103, "valid"]
    with pytest.raises(
        DataError, match="toy results: two columns are called 'nll'; rename parameter or stat"
    ):
        results(statistics={"nll": np.zeros(TOYS)}).to_pandas()


def test_the_repr_is_one_line():
    assert repr(results()).startswith(f"ToyResults({len(results())} toys, ")
    assert len(repr(results())) < 120 and "\n" not in repr(results())


def test_arrays_are_copied_unless_they_were_given_away():
    values = np.ones((3, 1))
    arguments = {
        "errors": np.ones((3, 1)), "nll": np.ones(3), "edm": np.ones(3), "valid": np.ones(3, bool),
        "how": np.zeros(3, np.uint8), "events": np.full(3, 10), "seed": 1,
    }  # fmt: skip
    copied = ToyResults(("mu",), {"mu": 1.0}, values, **arguments)
    values[0] = 7.0
    assert copied.values[0, 0] == 1.0
    view = values[:]
    view.flags.writeable = False  # of numbers that others can change
    assert ToyResults(("mu",), {"mu": 1.0}, view, **arguments).values.base is not values
    values.flags.writeable = False
    assert ToyResults(("mu",), {"mu": 1.0}, values, **arguments).values.base is values
    assert not ToyResults(
        ("mu",), {"mu": 1.0}, np.ones((3, 1), np.float32), **arguments
    ).values.flags.writeable


def test_toys_of_bins_are_counted_in_bins(tmp_path):
    # this used to print the number of bins as "40 events each"
    x, n = mf.Observable("x", 0.0, 10.0), mf.Parameter("n", 100.0, 0.0, 500.0)
    model = mf.Sum([mf.Uniform(x)], yields=[n])
    bins = mf.BinnedLikelihood(model, (np.full(40, 2.0), np.linspace(0, 10, 41)))
    points = mf.LeastSquares(lambda t: n * t, [1.0, 1.1], [99.0, 101.0], [1.0, 1.0])
    for nll, text in (
        (bins, "40 bins each"),
        (points, "2 points each"),
        (bins + mf.Likelihood(model, [1.0]), " rows"),
    ):
        toys = mf.toy_study(nll, toys=3, seed=1, progress=False)
        toys.save(tmp_path / "toys.npz")
        assert text in str(ToyResults.load(tmp_path / "toys.npz"))


def test_fits_of_datasets_do_not_print_a_toy_study():
    # they were called "toy study" with "seed 0", and their parameters "not generated"
    x, mu = mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.0, -1.0, 1.0)
    model = mf.Gaussian(x, mu, 1.0)
    many = mf.fit_many(model, mf.generate(model, [50, 50], seed=1))
    assert str(many).startswith("fit_many: 2 datasets, all valid\n")
    assert repr(many) == "ToyResults(2 datasets, all valid, 1 parameters)"
    for word in ("toy", "seed", "truth", "pull", "not generated"):
        assert word not in str(many)
