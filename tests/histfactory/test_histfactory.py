"""HistFactory likelihoods: the numbers of pyhf for workspaces of growing size, derivatives, and every tool that takes them."""

import json
import pickle
import sys
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import morefit as mf
from backend_rows import there
from morefit.targets.reference.run import Reference

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from histfactory import SIZES, workspace

REFERENCE = Path(__file__).parents[1] / "reference"
PYHF = json.loads((REFERENCE / "histfactory.json").read_text())
CORNERS = json.loads((REFERENCE / "histfactory_corners.json").read_text())
PYHF_NUMBER = 1e-6  # what pyhf computes, relative, and of errors where values are meant
KINKS = {"small with kinks": {"normsys": "code1", "histosys": "code0"}}
SMALL_SIZES = ["tiny", "small", "medium", "shared"]


@cache
def read(name):
    space = PYHF[name].get("workspace") or workspace(name.split()[0])
    return mf.histfactory.read(space, **KINKS.get(name, {}))


@pytest.fixture(scope="module")
def small():
    return read("small")


@pytest.fixture(scope="module")
def best(small):
    return mf.fit(small)


@pytest.mark.parametrize("name", CORNERS)
def test_unusual_workspaces_have_the_numbers_of_pyhf(name):
    known = CORNERS[name]
    nll = mf.histfactory.read(known["workspace"])
    assert {p.name for p in nll.all_parameters} == set(known["best"])
    np.testing.assert_allclose(nll.expected(known["away"]), known["expected"], rtol=1e-12)
    rise = 2 * (nll.value(known["away"]) - nll.value(known["best"]))
    rounding = np.finfo(float).eps * np.sum(nll.counts * np.log(nll.counts))  # of the terms that pyhf adds
    assert rise == pytest.approx(known["rise"], rel=1e-9, abs=rounding)
    result = mf.fit(nll, tolerance=1e-9)
    assert result.valid
    for parameter in result.floating:
        away = abs(result.values[parameter] - known["best"][parameter])
        assert away <= 10 * PYHF_NUMBER * result.errors[parameter], parameter
    limit = mf.intervals.upper_limit(nll, "mu", [1.0], best=result, progress=False)
    assert limit.p_values[1] == pytest.approx(known["cls"][0], rel=PYHF_NUMBER)
    np.testing.assert_allclose(limit.expected_p_values[:, 1], known["cls"][1], rtol=PYHF_NUMBER)


@pytest.mark.parametrize("name", PYHF)
def test_parameters_have_the_names_of_pyhf(name):
    nll = read(name)
    assert {p.name for p in nll.all_parameters} == set(PYHF[name]["best"])
    assert nll.poi == "mu"


@pytest.mark.parametrize("name", PYHF)
def test_expected_counts_are_those_of_pyhf(name):
    expected = read(name).expected(PYHF[name]["away"])
    np.testing.assert_allclose(expected, PYHF[name]["expected"], rtol=1e-12)


@pytest.mark.parametrize("name", PYHF)
def test_differences_of_the_nll_are_those_of_pyhf(name):
    nll, known = read(name), PYHF[name]
    rise = 2 * (nll.value(known["away"]) - nll.value(known["best"]))
    assert rise == pytest.approx(known["rise"], rel=1e-9)


@pytest.mark.parametrize("name", [*SIZES, "shared"])
def test_the_best_fit_is_that_of_pyhf(name):
    result = mf.fit(read(name), tolerance=1e-9)
    assert result.valid
    for parameter, value in PYHF[name]["best"].items():
        away = abs(result.values[parameter] - value)
        assert away <= PYHF_NUMBER * max(result.errors[parameter], abs(value)), parameter


def test_a_fit_with_kinks_is_as_low_as_that_of_pyhf():
    nll = read("small with kinks")
    result = mf.fit(nll)
    assert result.valid
    assert result.nll <= nll.value(PYHF["small with kinks"]["best"]) + 1e-4


@pytest.mark.parametrize("name", SMALL_SIZES)
def test_profiles_are_those_of_pyhf(name):
    points, rises = np.array(PYHF[name]["profile"]).T
    profile = mf.intervals.profile(read(name), "mu", points, progress=False)
    np.testing.assert_allclose(2 * profile.delta, rises, rtol=PYHF_NUMBER, atol=PYHF_NUMBER)


@pytest.mark.parametrize("name", SMALL_SIZES)
def test_asymptotic_cls_is_that_of_pyhf(name):
    tested = [mu for mu, *_ in PYHF[name]["cls"]]
    limit = mf.intervals.upper_limit(read(name), "mu", tested, progress=False)
    for k, (_, observed, expected) in enumerate(PYHF[name]["cls"], 1):
        assert limit.p_values[k] == pytest.approx(observed, rel=PYHF_NUMBER)
        np.testing.assert_allclose(limit.expected_p_values[:, k], expected, rtol=PYHF_NUMBER)


@pytest.mark.parametrize("name", SMALL_SIZES)
def test_the_discovery_p_value_is_that_of_pyhf(name):
    discovery = mf.intervals.discovery(read(name), "mu", progress=False)
    assert discovery.p_value == pytest.approx(PYHF[name]["discovery"], rel=PYHF_NUMBER)


@pytest.mark.parametrize("name", SMALL_SIZES)
def test_derivatives_are_those_of_differences(name):
    nll, rng = read(name), np.random.default_rng(1)
    wide = np.array([p.low < 0 for p in nll.parameters])  # beyond the ends of the polynomials as well
    x = np.array([p.start for p in nll.parameters]) + rng.standard_normal(len(wide)) * np.where(
        wide, 1.2, 0.05
    )
    steps = 1e-5 * np.eye(len(x))
    slopes = (nll.value(x + steps) - nll.value(x - steps)) / 2e-5
    curvatures = (nll.gradient(x + steps) - nll.gradient(x - steps)) / 2e-5
    np.testing.assert_allclose(nll.gradient(x), slopes, atol=1e-8 * np.abs(slopes).max())
    np.testing.assert_allclose(nll.hessian(x), curvatures, atol=1e-8 * np.abs(curvatures).max())


def test_derivatives_have_no_gap_where_a_factor_is_zero(small):
    near, zero = ({p.name: p.start for p in small.parameters} | {"mu": mu} for mu in (1e-7, 0.0))
    np.testing.assert_allclose(small.hessian(zero), small.hessian(near), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(small.gradient(zero), small.gradient(near), rtol=1e-5, atol=1e-4)


def test_many_points_give_what_each_gives(small, monkeypatch):
    x = np.array([p.start for p in small.parameters]) + 0.01 * np.arange(7)[:, None]
    alone = [small.hessian(point) for point in x]
    monkeypatch.setattr("morefit.likelihood.expected_counts.MAX_NUMBERS", 1)  # one set at a time
    np.testing.assert_allclose(small.hessian(x), alone, rtol=1e-12, atol=1e-9)


def test_toys_draw_counts_and_auxiliary_data(small, best):
    toys = mf.toy_study(small, toys=100, truth=best, seed=1, progress=False)
    assert toys.valid.all()
    alpha = toys.values[:, toys.names.index("norm_0")]
    assert np.std(alpha) == pytest.approx(1.0, abs=0.25)  # as the constraint is measured anew
    still = mf.toy_study(small, toys=100, truth=best, seed=1, fluctuate=False, progress=False)
    assert np.std(still.values[:, still.names.index("norm_0")]) < 0.2


def test_toys_have_pulls_of_a_normal_distribution(small, best):
    truth = dict(best.values) | {"mu": 4.0}  # far from its limit
    toys = mf.toy_study(small, toys=1000, truth=truth, seed=5, progress=False)
    assert toys.valid.all()
    for name in ("mu", "norm_0", "norm_1", "lumi", "shapesys_0[1]", "staterror_0[3]"):
        pulls = toys.pulls(name)
        assert abs(pulls.mean()) < 0.15, name
        assert pulls.std() == pytest.approx(1.0, abs=0.1), name


def test_asimov_data_give_back_their_values(small, best):
    again = mf.fit(mf.intervals.asimov(small, best), tolerance=1e-6)
    assert again.nll == pytest.approx(0.0, abs=1e-9)
    assert again.values["mu"] == pytest.approx(best.values["mu"], rel=1e-4)


def test_goodness_of_fit_takes_channels(small, best):
    saturated = mf.intervals.goodness_of_fit(small, "saturated", best=best)
    assert saturated.statistic == pytest.approx(2 * best.nll)
    assert saturated.ndf == small.events + len(small.measured) - len(best.floating)
    assert mf.intervals.goodness_of_fit(small, "chi2", best=best).ndf == saturated.ndf


def test_it_adds_up_with_other_likelihoods(small, best):
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Gaussian(x, mf.Parameter("mean", 5.0, 4.0, 6.0), 1.0)
    events = mf.Likelihood(peak, mf.generate(peak, 200, seed=1))
    together = mf.fit(small + events)
    assert together.valid
    assert together.nll == pytest.approx(best.nll + mf.fit(events).nll, abs=1e-3)
    assert mf.toy_study(small + events, toys=3, seed=1, progress=False).valid.all()


def test_more_constraints_are_part_of_it(small):
    mu, norm = (next(p for p in small.parameters if p.name == name) for name in ("mu", "norm_0"))
    x = {p.name: p.start for p in small.parameters} | {"norm_0": 0.3}
    both = small + mf.constraint(mu, 0.5, 0.1) + mf.constraint(mu * (1 + norm), 1.0, 0.2)
    away = 0.5 * (0.5 / 0.1) ** 2 + 0.5 * (0.3 / 0.2) ** 2
    assert both.value(x) == pytest.approx(small.value(x) + away)
    steps = [{**x, "mu": 1.0 + d} for d in (1e-5, -1e-5)]
    slope = (both.gradient(steps[0]) - both.gradient(steps[1])) / 2e-5
    column = [p.name for p in both.parameters].index("mu")
    np.testing.assert_allclose(both.hessian(x)[column], slope, rtol=1e-6, atol=1e-4)
    assert mf.fit(both).errors["mu"] < 0.1


def test_it_can_be_pickled_and_drawn_anew(small, best):
    assert pickle.loads(pickle.dumps(small)).value(best) == small.value(best)
    drawn = mf.generate(small, truth=best, seed=3)
    assert not np.array_equal(drawn.counts, small.counts)
    assert not np.array_equal(drawn.measured, small.measured)


def test_a_channel_is_plotted_with_its_samples(small, best):
    plot = mf.plot(small, "channel_0", values=best)
    np.testing.assert_allclose(plot.numbers.expected, small.expected(best))
    assert list(plot.numbers.components) == ["sample_0", "sample_1", "sample_2"]
    plt.close(plot.figure)


def test_several_channels_are_plotted_in_a_grid():
    nll = read("medium")
    plots = mf.plot(nll, values={})
    assert list(plots) == ["channel_0", "channel_1", "channel_2"]
    assert len({id(plot.figure) for plot in plots.values()}) == 1
    start = {p.name: p.start for p in nll.parameters}
    np.testing.assert_allclose(
        plots["channel_1"].numbers.expected, sum(nll.channel("channel_1", start)[1].values())
    )
    with pytest.raises(mf.OptionError, match="ax is for one plot; choose one of 'channel_0', 'channel_1'"):
        mf.plot(nll, values={}, ax=plots["channel_0"].axes[0])
    plt.close(plots["channel_0"].figure)


def test_it_prints_its_channels():
    nll = read("medium")
    assert (
        repr(nll)
        == "HistFactoryLikelihood(3 channels, 24 bins, 4108 counts, 65 floating parameters, poi: mu)"
    )
    assert "channel channel_1, 8 bins: sample_0, sample_1" in str(nll.model)


def test_a_file_is_read_as_its_content_is(tmp_path):
    path = tmp_path / "workspace.json"
    path.write_text(json.dumps(workspace("tiny")))
    assert mf.histfactory.read(path, "measurement").value([1.0] * 4) == read("tiny").value([1.0] * 4)


def test_jobs_tell_workspaces_apart(small, tmp_path):
    mf.toy_study(small, toys=2, seed=1, save=tmp_path / "toys.npz", progress=False)
    other = workspace("small")
    other["channels"][0]["samples"][0]["data"][0] += 1e-9
    with pytest.raises(mf.DataError, match=r"toys\.npz"):
        mf.toy_study(mf.histfactory.read(other), toys=4, seed=1, save=tmp_path / "toys.npz", progress=False)


@pytest.mark.parametrize("name", ["small", "small with kinks"])
@pytest.mark.parametrize("backend", [mf.OpenCL(), Reference()], ids=lambda one: one.name)
def test_every_backend_sums_the_same(name, backend):
    nll, backend = read(name), there(backend)
    x = np.array([p.start for p in nll.parameters]) + 0.3 * np.arange(5)[:, None]  # beyond 1 as well
    other = nll.replaced(backend=backend)
    np.testing.assert_allclose(other.value(x), nll.value(x), rtol=1e-12)
    np.testing.assert_allclose(other.gradient(x), nll.gradient(x), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(other.hessian(x), nll.hessian(x), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("backend", [mf.OpenCL(), Reference()], ids=lambda one: one.name)
def test_every_backend_eliminates_the_same(backend, monkeypatch):
    monkeypatch.setattr("morefit.likelihood.eliminate.MIN_PARAMETERS", 1)
    profiles = []
    for place in ("cpu", there(backend)):
        nll = mf.histfactory.read(workspace("small"), backend=place)
        names, limits = zip(*((p.name, (p.low, p.high)) for p in nll.parameters), strict=True)
        full = np.array([[p.start for p in nll.all_parameters]]) + 0.3 * np.arange(3)[:, None]
        elimination = nll.elimination(names, np.array(limits))
        profiles.append(elimination.profile(nll.own_data(), np.zeros(3, np.int64), full))
    (one, at), (other, at_other) = profiles
    np.testing.assert_allclose(at_other, at, rtol=1e-9)
    np.testing.assert_allclose(other.gradient, one.gradient, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.hessian, one.hessian, rtol=1e-8, atol=1e-8)


def test_toys_on_a_device_are_those_of_the_cpu(small, best):
    device = there(mf.OpenCL())
    one, other = (
        mf.toy_study(small, toys=5, truth=best, seed=1, backend=backend, progress=False)
        for backend in ("cpu", device)
    )
    np.testing.assert_allclose(other.values, one.values, atol=1e-9)
    np.testing.assert_allclose(other.errors, one.errors, rtol=1e-6)


def test_full_barlow_beeston_runs_on_a_device():
    device = there(mf.OpenCL())
    templates = {"signal": [3, 8, 4], "background": [20, 12, 7]}
    one, other = (
        mf.fit(mf.TemplateLikelihood([30, 33, 16], templates, method="barlow-beeston", backend=backend))
        for backend in ("cpu", device)
    )
    assert other.values["signal"] == pytest.approx(one.values["signal"], rel=1e-9)


def test_kernels_cannot_be_shown(small):
    with pytest.raises(mf.ModelError, match="products of arrays, not a formula"):
        mf.explain(small)


def test_a_bin_that_expects_nothing_is_named(small):
    assert "the bin 0 of channel 'channel_0' has" in str(
        small.bad_events({p.name: 0.0 if p.low >= 0 else p.start for p in small.parameters})
    )


def changed(path, content):
    """Return the small workspace with something else in one place, or without it."""
    space = workspace("small")
    *way, last = path
    place = space
    for key in way:
        place = place[key]
    if content is None:
        del place[last]
    else:
        place[last] = content
    return space


SAMPLE = ("channels", 0, "samples", 1)
MODIFIERS = (*SAMPLE, "modifiers")
CONFIG = ("measurements", 0, "config", "parameters")


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        (("channels",), None, "workspace: needs 'channels'"),
        (("channels",), [], "workspace: 'channels' must be a list that is not empty"),
        (("channels", 0, "name"), 3, "channel: 'name' must be text, got 3"),
        (("observations", 0, "name"), "other", "channel 'channel_0': has no observation"),
        (
            ("observations", 0, "data"),
            [1.0],
            "observation 'channel_0': must have 5 counts, none negative, got 1 numbers",
        ),
        (("observations", 0, "data", 0), -1.0, "must have 5 counts, none negative, got -1"),
        (
            (*SAMPLE, "data"),
            [1.0, 2.0],
            "'hi_data' must have 2 numbers, one for each bin|same number of bins",
        ),
        (
            (*SAMPLE, "data", 0),
            "import os",
            "channel 'channel_0': sample 'sample_1': 'data' must be finite numbers",
        ),
        ((*SAMPLE, "data", 0), float("nan"), "'data' must be finite numbers, got nan"),
        ((*SAMPLE, "data", 0), True, "'data' must be finite numbers, got True"),
        ((*SAMPLE, "name"), "sample_0", "samples must have different names, got 'sample_0' more than once"),
        ((*MODIFIERS, 0, "type"), "normsis", "normsis 'norm_0': type is not known; did you mean 'normsys'"),
        ((*MODIFIERS, 0, "data"), {"hi": 1.0}, "normsys 'norm_0': needs 'lo'"),
        ((*MODIFIERS, 0, "data"), {"hi": 1.0, "lo": -0.5}, "'hi' and 'lo' must be positive"),
        ((*MODIFIERS, 1, "name"), "norm_0", "modifiers of a kind must have different names"),
        (
            (*MODIFIERS, 0, "name"),
            "mu",
            "parameter 'mu': modifiers that share it must be normsys or histosys",
        ),
        (("measurements", 0, "config", "poi"), "nu", "measurement: poi 'nu' is no parameter"),
        ((*CONFIG, 1), None, "parameter 'lumi': the measurement must configure auxdata and sigmas"),
        ((*CONFIG, 0, "inits"), [1.0, 2.0], "parameter 'mu': 'inits' must have 1 numbers, got 2"),
        ((*CONFIG, 0, "inits"), [20.0], r"parameter 'mu': start must lie in \[0.0, 10.0\], got 20.0"),
        ((*CONFIG, 0, "bounds"), [[3.0, 1.0]], "'bounds' must be pairs of low and high"),
        ((*CONFIG, 0, "sigmas"), [1.0], "normfactor has no 'sigmas'; leave it out"),
        ((*CONFIG, 0, "start"), [1.0], "'start' is not known"),
        ((*CONFIG, 0, "fixed"), "yes", "'fixed' must be true or false, got 'yes'"),
        ((*CONFIG, 1, "name"), "mu", "parameter 'mu': is configured more than once"),
        ((*CONFIG, 1, "sigmas"), [0.0], "'sigmas' must be positive, got 0"),
        ((*CONFIG, 1, "sigmas"), None, "parameter 'lumi': the measurement must configure auxdata and sigmas"),
        (("measurements", 0, "config"), [1.0], "measurement 'measurement': 'config' must be an object"),
        ((*SAMPLE, "data", 0), 1e308, "'data' must be numbers up to 1e\\+75, got 1e\\+308"),
        ((*SAMPLE, "data", 0), [[1.0], 2.0], "'data' must be finite numbers"),
        ((*SAMPLE, "data", 0), 1e-320, "'data' must be errors of the size of the contents"),
        (("channels", 0, "name"), "x" * 10**5, "channel 'x{60}': has no observation"),
    ],
)
def test_a_malformed_workspace_says_where(path, content, message):
    with pytest.raises(mf.DataError, match=message):
        mf.histfactory.read(changed(path, content))


def test_files_that_are_no_workspaces_are_refused(tmp_path):
    with pytest.raises(mf.DataError, match="cannot be read"):
        mf.histfactory.read(tmp_path / "none.json")
    with pytest.raises(mf.DataError, match="cannot be read"):
        mf.histfactory.read("\0")
    path = tmp_path / "text.json"
    path.write_text("__import__('os')")
    with pytest.raises(mf.DataError, match="is no JSON"):
        mf.histfactory.read(path)
    path.write_text('{"channels": [], "channels": []}')
    with pytest.raises(mf.DataError, match="keys of an object must have different names, got 'channels'"):
        mf.histfactory.read(path)
    path.write_text("\ufeff" + json.dumps(workspace("tiny")))  # as some editors begin a file
    assert mf.histfactory.read(path).poi == "mu"
    with pytest.raises(mf.DataError, match="is a set of patches; apply one"):
        mf.histfactory.read({"patches": [], "metadata": {}})
    with pytest.raises(mf.DataError, match="must be an object with channels, got list"):
        mf.histfactory.read([1])
    with pytest.raises(mf.DataError, match="measurement 'mine': not in the workspace"):
        mf.histfactory.read(workspace("tiny"), "mine")
    with pytest.raises(mf.OptionError, match="normsys must be one of 'code4', 'code1', got 'code2'"):
        mf.histfactory.read(workspace("tiny"), normsys="code2")


def test_a_measurement_configures_parameters():
    space = workspace("small")
    space["measurements"][0]["config"]["parameters"] += [
        {"name": "norm_0", "auxdata": [0.5], "bounds": [[-3, 3]], "inits": [0.5]},
        {"name": "norm_1", "fixed": True},
        {"name": "unused", "inits": [1.0]},
    ]
    nll = mf.histfactory.read(space)
    named = {p.name: p for p in nll.all_parameters}
    assert (named["norm_0"].start, named["norm_0"].low, named["norm_0"].high) == (0.5, -3.0, 3.0)
    assert named["norm_1"].fixed
    assert mf.fit(nll).values["norm_0"] == pytest.approx(0.5, abs=0.2)


def test_bins_without_content_have_fixed_parameters():
    space = workspace("small")
    sample = space["channels"][0]["samples"][1]
    sample["data"][2] = 0.0
    for m in sample["modifiers"]:
        if m["type"] == "histosys":
            m["data"] = {"hi_data": sample["data"], "lo_data": sample["data"]}
    nll = mf.histfactory.read(space)
    assert [p.name for p in nll.all_parameters if p.fixed] == ["shapesys_0[2]"]
    assert mf.fit(nll).valid


def test_shapefactors_and_names_with_spaces():
    space = workspace("medium")
    for channel in space["channels"][:2]:
        channel["samples"][3]["modifiers"] = [{"name": "free shape", "type": "shapefactor", "data": None}]
    nll = mf.histfactory.read(space)
    assert sum(p.name.startswith("free_shape[") for p in nll.parameters) == 8
    x = np.array([p.start for p in nll.parameters])
    steps = 1e-5 * np.eye(len(x))
    curvatures = (nll.gradient(x + steps) - nll.gradient(x - steps)) / 2e-5
    np.testing.assert_allclose(nll.hessian(x), curvatures, atol=1e-8 * np.abs(curvatures).max())


@pytest.mark.parametrize("name", ["tiny", "medium"])
def test_eliminated_parameters_end_where_newtons_method_leads_all(name, monkeypatch):
    monkeypatch.setattr("morefit.likelihood.eliminate.MIN_PARAMETERS", 1)
    nll = read(name)
    toys = mf.toy_study(nll, toys=5, seed=3, progress=False)
    monkeypatch.setattr("morefit.likelihood.HistFactoryLikelihood.elimination", lambda *_: None)
    plain = mf.toy_study(nll, toys=5, seed=3, progress=False)
    np.testing.assert_allclose(toys.nll, plain.nll, atol=1e-4)  # both end within an EDM of that
    np.testing.assert_allclose((toys.values - plain.values) / plain.errors, 0.0, atol=0.03)
    inside = (
        np.abs(plain.values[:, plain.names.index("mu")]) > 0.1
    )  # at a limit, errors may be those of either side
    np.testing.assert_allclose(toys.errors[inside], plain.errors[inside], rtol=0.02)


def test_the_profile_of_an_elimination_has_its_derivatives():
    nll = read("medium")
    limits = np.array([(p.low, p.high) for p in nll.parameters])
    elimination = nll.elimination([p.name for p in nll.parameters], limits)
    assert len(elimination.inner) == 2 * 24  # a shapesys and a staterror for each bin
    best = mf.fit(nll).values  # near it, derivatives are the exact ones
    full = np.array([[best[p.name] for p in nll.all_parameters]]) + 0.002
    data, sets = nll.own_data(), np.zeros(1, np.int64)
    here = elimination.evaluate(data, sets, full)
    for row, column in enumerate(elimination.rest):
        up, down = (
            elimination.evaluate(data, sets, full + s * np.eye(full.shape[1])[[column]])
            for s in (1e-4, -1e-4)
        )
        assert (up.value - down.value)[0] / 2e-4 == pytest.approx(here.gradient[0, row], rel=1e-6, abs=1e-5)
        np.testing.assert_allclose(
            (up.gradient - down.gradient)[0] / 2e-4, here.hessian[0, row], rtol=1e-6, atol=1e-4
        )


def test_no_counts_at_all_are_a_measurement():
    space = workspace("medium")
    for one in space["observations"]:
        one["data"] = [0.0] * len(one["data"])
    nll = mf.histfactory.read(space)
    result = mf.fit(nll)
    assert result.valid
    assert result.values["mu"] == 0.0


def test_names_that_differ_in_a_space_are_not_one_parameter():
    # this used to share one parameter, in silence
    space = workspace("tiny")
    space["channels"][0]["samples"][0]["modifiers"] = [
        {"name": name, "type": "normfactor", "data": None} for name in ("a b", "a_b")
    ]
    space["measurements"][0]["config"]["poi"] = "a b"
    with pytest.raises(mf.DataError, match="parameters must have different names, got 'a_b' more than once"):
        mf.histfactory.read(space)


def test_a_workspace_is_also_read_from_its_text():
    content = json.dumps(workspace("tiny"))
    assert repr(mf.histfactory.read(content)) == repr(read("tiny"))
    with pytest.raises(mf.DataError, match=r"workspace '\{\"channels.{0,60}': is no JSON"):
        mf.histfactory.read(content[:-1])


def test_a_channel_takes_values_as_other_methods_do():
    nll = read("tiny")
    result = mf.fit(nll)
    name = nll.channels[0]
    for mine, other in zip(
        nll.channel(name, result)[1].values(), nll.channel(name, result.values)[1].values(), strict=True
    ):
        np.testing.assert_array_equal(mine, other)
    with pytest.raises(mf.ModelError, match="x has no value for"):
        nll.channel(name, {"nope": 1.0})  # this used to be a KeyError
