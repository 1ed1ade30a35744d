"""HistFactory likelihoods: the numbers of pyhf for workspaces of growing size, derivatives, and every tool that takes them."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import morefit as mf

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from histfactory import SIZES, workspace

PYHF = json.loads((Path(__file__).parents[1] / "reference" / "histfactory.json").read_text())
PYHF_NUMBER = 1e-6  # what pyhf computes, relative, and of errors where values are meant
KINKS = {"small with kinks": {"normsys": "code1", "histosys": "code0"}}
SMALL_SIZES = ["tiny", "small", "medium"]


def read(name):
    return mf.histfactory.read(workspace(name.split()[0]), **KINKS.get(name, {}))


@pytest.fixture(scope="module")
def small():
    return read("small")


@pytest.fixture(scope="module")
def best(small):
    return mf.fit(small)


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


@pytest.mark.parametrize("name", SIZES)
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
