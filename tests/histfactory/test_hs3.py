"""Files of the HS3 standard: the likelihoods are those of the same workspaces as pyhf writes them."""

import copy

import numpy as np
import pytest

import morefit as mf

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
    "constraints elsewhere": (("likelihoods", 0, "aux_distributions"), ["c"], r"'aux_distributions' are not read"),
    "a constraint by name": (
        ("distributions", 0, "samples", 0, "modifiers", 1, "constraint_name"), "c", r"distributions of their own are not read"
    ),
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
