"""Files of the HS3 standard: the likelihoods are those of RooFit, and of the same workspaces as pyhf writes them."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import morefit as mf

OF_ROOFIT = json.loads((Path(__file__).parents[1] / "reference" / "hs3.json").read_text())
HIGH, LOW = [52.0, 38.0], [47.0, 43.0]
STANDARD = {
    "analyses": [{"name": "main", "likelihood": "all", "parameters_of_interest": ["mu"]}],
    "likelihoods": [{"name": "all", "distributions": ["model_SR"], "data": ["seen"]}],
    "distributions": [{"name": "model_SR", "type": "histfactory_dist", "samples": [
        {"name": "signal", "data": {"contents": [5.0, 10.0]}, "modifiers": [
            {"name": "mu", "parameter": "mu", "type": "normfactor"},
            {"name": "size", "parameter": "alpha", "type": "normsys", "constraint": "Gauss", "data": {"hi": 1.1, "lo": 0.9}},
        ]},
        {"name": "background", "data": {"contents": [50.0, 40.0], "errors": [3.0, 0.01]}, "modifiers": [
            {"name": "tilt", "type": "histosys", "data": {"hi": {"contents": HIGH}, "lo": {"contents": LOW}}},
            {"name": "stat", "type": "staterror", "constraint": "Gauss"},
            {"name": "extra", "type": "shapesys", "data": {"vals": [0.1, 0.2]}},
        ]},
    ]}],
    "domains": [{"name": "default_domain", "type": "product_domain", "axes": [{"name": "mu", "min": -1.0, "max": 4.0}]}],
    "parameter_points": [{"name": "default_values", "parameters": [
        {"name": "mu", "value": 1.5}, {"name": "tilt", "value": 0.5, "const": True}, {"name": "unused", "value": 1.0},
    ]}],
    "data": [{"name": "seen", "type": "binned", "contents": [60.0, 47.0]}],
}  # fmt: skip
OF_PYHF = {
    "channels": [{"name": "SR", "samples": [
        {"name": "signal", "data": [5.0, 10.0], "modifiers": [
            {"name": "mu", "type": "normfactor", "data": None},
            {"name": "alpha", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}},
        ]},
        {"name": "background", "data": [50.0, 40.0], "modifiers": [
            {"name": "tilt", "type": "histosys", "data": {"hi_data": HIGH, "lo_data": LOW}},
            {"name": "stat", "type": "staterror", "data": [3.0, 0.0]},
            {"name": "extra", "type": "shapesys", "data": [5.0, 8.0]},
        ]},
    ]}],
    "observations": [{"name": "SR", "data": [60.0, 47.0]}],
    "measurements": [{"name": "main", "config": {"poi": "mu", "parameters": [
        {"name": "mu", "bounds": [[-1.0, 4.0]], "inits": [1.5]}, {"name": "tilt", "inits": [0.5], "fixed": True},
    ]}}],
}  # fmt: skip


def test_the_likelihood_is_that_of_the_workspace_of_pyhf():
    one, other = mf.histfactory.read(STANDARD), mf.histfactory.read(OF_PYHF)
    assert one.poi == "mu"
    assert one.parameters == other.parameters
    start = np.array([p.start for p in one.parameters])
    for shift in (0.0, 0.05, -0.1):
        assert one.value(start + shift) == pytest.approx(other.value(start + shift), rel=1e-14)


def test_issue_a_file_of_roofit_has_the_likelihood_of_roofit():
    # these files used to be refused: constraints are distributions, and parameters of bins have names there
    nll, points = mf.histfactory.read(OF_ROOFIT["workspace"]), OF_ROOFIT["points"]
    assert {p.name for p in nll.parameters} == set(points[0]["values"])
    np.testing.assert_array_equal(
        nll.counts, [56, 61, 41, 57, 61, 41]
    )  # not those of the Asimov data, which come first
    values = [nll.value(point["values"]) - point["nll"] for point in points]
    np.testing.assert_allclose(values, values[0], atol=1e-10)
    assert mf.fit(nll).valid


def test_the_measurements_of_constraints_are_those_of_the_file():
    changed = copy.deepcopy(OF_ROOFIT["workspace"])
    for one in changed["parameter_points"][0]["parameters"]:
        if one["name"] in ("nom_alpha_scale", "nominalLumi"):
            one["value"] += 0.01
    nll, other = mf.histfactory.read(OF_ROOFIT["workspace"]), mf.histfactory.read(changed)
    at = OF_ROOFIT["points"][1]["values"]
    moved = sum(
        ((at[name] - mean - 0.01) / error) ** 2 - ((at[name] - mean) / error) ** 2
        for name, mean, error in (("alpha_scale", 0, 1), ("Lumi", 1, 0.02))
    )
    assert other.value(at) - nll.value(at) == pytest.approx(0.5 * moved, rel=1e-9)


def test_constraints_may_be_listed_by_the_likelihood():
    listed = copy.deepcopy(STANDARD)
    listed["likelihoods"][0]["aux_distributions"] = ["of mu", "of alpha"]
    listed["distributions"] += [
        {"name": "of mu", "type": "gaussian_dist", "x": 1.2, "mean": "mu", "sigma": 0.1},
        {"name": "of alpha", "type": "gaussian_dist", "x": "alpha", "mean": 0.3, "sigma": 1.0},
    ]
    one, other = mf.histfactory.read(STANDARD), mf.histfactory.read(listed)
    at = {p.name: p.start for p in one.parameters}
    penalties = 0.5 * ((1.5 - 1.2) / 0.1) ** 2 + 0.5 * 0.3**2
    assert other.value(at) - one.value(at) == pytest.approx(penalties, rel=1e-12)


def test_the_interpolation_is_that_of_the_file():
    kinked = copy.deepcopy(STANDARD)
    kinked["distributions"][0]["samples"][0]["modifiers"][1]["interpolation"] = 1
    nll, other = mf.histfactory.read(kinked), mf.histfactory.read(OF_PYHF, normsys="code1")
    at = {p.name: p.start for p in nll.parameters} | {"alpha": 0.4}
    assert nll.value(at) == pytest.approx(other.value(at), rel=1e-14)
    assert mf.histfactory.read(kinked, normsys="code4").value(at) != pytest.approx(other.value(at), rel=1e-6)


def test_errors_of_simulations_are_counts_unless_a_file_says_gauss():
    changed = copy.deepcopy(STANDARD)
    del changed["distributions"][0]["samples"][1]["modifiers"][1]["constraint"]
    nll = mf.histfactory.read(changed)
    count = (50.0 / 3.0) ** 2

    def penalty(gamma):
        return count * (gamma - 1 - np.log(gamma))

    at = {p.name: p.start for p in nll.parameters}
    expected = {g: nll.expected(at | {"stat[0]": g}) for g in (1.0, 1.1)}
    counts = np.array([60.0, 47.0])
    poisson = {g: np.sum(e - counts * np.log(e)) for g, e in expected.items()}
    difference = nll.value(at | {"stat[0]": 1.1}) - nll.value(at | {"stat[0]": 1.0})
    assert difference == pytest.approx(poisson[1.1] - poisson[1.0] + penalty(1.1), rel=1e-10)


def change(content, *path, to):
    *way, last = path
    for key in way:
        content = content[key]
    content[last] = to


REFUSED = {
    "another distribution": (("distributions", 0, "type"), "gaussian_dist", r"'histfactory_dist' are read, got 'gaussian_dist'"),
    "an unknown likelihood": (("analyses", 0, "likelihood"), "al", r"likelihood 'al': not in the workspace; did you mean 'all'"),
    "data that are not there": (("likelihoods", 0, "data"), ["sen"], r"data 'sen': not in the workspace; did you mean 'seen'"),
    "too few data": (("likelihoods", 0, "data"), [], r"must have data for each distribution, got 0 of 1"),
    "no such constraint": (("likelihoods", 0, "aux_distributions"), ["c"], r"distribution 'c': not in the workspace"),
    "a constraint of nothing": (("likelihoods", 0, "aux_distributions"), ["model_SR"], r"'model_SR' must constrain one parameter"),
    "a constraint that is no Gaussian": (
        ("distributions", 0, "samples", 0, "modifiers", 1, "constraint_name"), "model_SR", r"'gaussian_dist', got 'histfactory_dist'"
    ),
    "a constraint of bins by name": (
        ("distributions", 0, "samples", 1, "modifiers", 1, "constraint_name"), "c", r"constraints of bins .* are not read"
    ),
    "an unknown interpolation": (
        ("distributions", 0, "samples", 0, "modifiers", 1, "interpolation"), 2, r"interpolation 2 is not read; only \[4, 5, 1\]"
    ),
    "another interpolation": (
        ("distributions", 0, "samples", 1, "modifiers", 0, "interpolation"), 0, r"interpolation 0 is not read; only \[4\]"
    ),
    "too few names of bins": (
        ("distributions", 0, "samples", 1, "modifiers", 2, "parameters"), ["g"], r"'parameters' must have 2 names, one for each bin, got 1"
    ),
    "no analysis": (("analyses",), [], r"'analyses' must not be empty"),
    "an unknown constraint": (
        ("distributions", 0, "samples", 1, "modifiers", 1, "constraint"), "LogNormal", r"constraint 'LogNormal' is not known"
    ),
    "a bin that is constant": (
        ("parameter_points", 0, "parameters"), [{"name": "gamma_stat_0", "value": 1, "const": True}], r"is not read of parameters of bins"
    ),
    "no names": (("likelihoods", 0, "distributions"), 3, r"'distributions' must be names, got 3"),
    "no list": (("data",), 3, r"'data' must be a list, got 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_not_read_is_refused(case):
    path, to, says = REFUSED[case]
    content = copy.deepcopy(STANDARD)
    change(content, *path, to=to)
    with pytest.raises(mf.DataError, match=says):
        mf.histfactory.read(content)
