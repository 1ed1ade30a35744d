"""A fit result cannot be changed, survives any journey, and prints as a table to read at a glance."""

import copy
import json
import pickle
import re
import sys
import time
from dataclasses import FrozenInstanceError, fields, replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import morefit as mf
import zoo
from fit_results import BAD, CORRELATION, GOOD
from morefit.errors import DataError, ModelError
from morefit.minimise.result import FitResult

GOLDEN = Path(__file__).parents[1] / "golden"


def same(one, other):
    """Assert that two results agree in every field to the last bit."""
    for field in fields(FitResult):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "covariance":
            np.testing.assert_array_equal(a, b)
            assert a.shape == b.shape and not b.flags.writeable
        else:
            assert type(a) is type(b) and repr(a) == repr(b), field.name


def without_parameters():
    """Return the result of a fit of nothing."""
    nothing = {"names": (), "values": {}, "errors": {}, "floating": (), "minos": {}, "limits": {}}
    return replace(GOOD, **nothing, covariance=np.empty((0, 0)))


# ---------------------------------------------------------------------------------------------- holding


def test_mappings_agree_with_dictionaries():
    assert GOOD.values["mu"] == 5.28012
    assert dict(GOOD.errors)["tau"] == 0.0
    assert GOOD.limits == {
        "mu": (5, 6),
        "sigma": (0.005, 0.13),
        "fsig": (0, 1),
        "alpha": (-inf, inf),
        "tau": (0, inf),
    }
    assert repr(GOOD.calls) == "{'value': 23, 'gradient': 21, 'hessian': 1}"


def test_a_fit_makes_fields_of_the_types_of_results():
    """Results of fits are not converted, which takes longer than a small fit; what a fit writes must need none."""
    x = mf.Observable("x", 0, 10)
    mu, sigma = mf.Parameter("mu", 5, 0, 10, label="$m$"), mf.Parameter("sigma", 1, 1, 3, blind="phrase")
    model = mf.Sum([mf.Gaussian(x, mu, sigma), mf.Uniform(x)], fractions=[mf.Parameter("f", 1, 0, 1)])
    result = mf.fit(model, np.linspace(4, 6, 50), ranges={"x": (2, 9)}, fixed={"f": 1}, limits={"mu": (4, 6)})
    assert result.labels and result.blinded and result.ranges and result.at_limit
    same(replace(result), result)
    flat = mf.fit(mf.Gaussian(x, mu + mf.Parameter("shift", 0, -1, 1), 2), np.linspace(4, 6, 50))
    assert flat.flat_directions
    same(replace(flat), flat)


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(KeyError, match=r"no 'sigm'; did you mean 'sigma'[?]"):
        GOOD.values["sigm"]
    with pytest.raises(KeyError, match="no 'q'; there are 'value', 'gradient', 'hessian'"):
        GOOD.calls["q"]
    assert "sigm" not in GOOD.values and GOOD.values.get("sigm") is None


def test_a_result_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        GOOD.valid = False
    with pytest.raises(TypeError, match="does not support item assignment"):
        GOOD.values["mu"] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        GOOD.covariance[0, 0] = 1.0


def test_a_result_keeps_its_own_copies():
    values, covariance = dict(GOOD.values), np.array(GOOD.covariance)
    result = replace(GOOD, values=values, covariance=covariance)
    values["mu"], covariance[:] = 0.0, 0.0
    same(GOOD, result)


def test_numpy_numbers_become_plain_ones():
    result = replace(
        GOOD, nll=np.float64(1.5), valid=np.bool_(True), values={n: np.float64(1) for n in GOOD.names}
    )
    assert type(result.nll) is float and type(result.valid) is bool and type(result.values["mu"]) is float


def test_the_covariance_has_one_row_per_floating_parameter():
    with pytest.raises(DataError, match=r"fit result: covariance must have shape \(4, 4\), got \(2, 2\)"):
        replace(GOOD, covariance=np.eye(2))


def test_every_field_names_the_same_parameters():
    with pytest.raises(
        DataError, match="fit result: names, floating, values and errors must name the same parameters"
    ):
        replace(GOOD, errors={"mu": 1.0})


def test_correlation_is_the_scaled_covariance():
    np.testing.assert_allclose(GOOD.correlation, CORRELATION, rtol=1e-14)
    assert GOOD.correlation.diagonal().tolist() == [1.0] * 4


@pytest.mark.parametrize("variance", [0.0, -1.0, nan])
def test_correlation_is_nan_where_a_variance_is_not_positive(variance):
    covariance = np.diag([variance, 1.0, 1.0, 1.0])
    matrix = replace(GOOD, covariance=covariance).correlation
    assert np.isnan(matrix[0]).all() and np.isnan(matrix[:, 0]).all()
    np.testing.assert_array_equal(matrix[1:, 1:], np.eye(3))


def test_covariance_of_takes_any_order():
    np.testing.assert_array_equal(GOOD.covariance_of("alpha", "mu"), GOOD.covariance[np.ix_([3, 0], [3, 0])])


def test_covariance_of_names_every_offender():
    expected = (
        "parameter 'tau': was fixed and has no covariance; "
        "parameter 'sigm': not in the model; did you mean 'sigma'?"
    )
    with pytest.raises(ModelError, match=re.escape(expected)):
        GOOD.covariance_of("mu", "tau", "sigm")


def test_a_parameter_stands_for_its_name():
    mu, sigma = mf.Parameter("mu", 5.28), mf.Parameter("sigma", 0.06, 0.0, 1.0)
    assert GOOD.values[mu] == GOOD.values["mu"] and GOOD.errors[sigma] == GOOD.errors["sigma"]
    assert GOOD.limits[mu] == (5, 6) and GOOD.minos[mu] == (-0.000345, 0.000347)
    assert mu in GOOD.minos and sigma not in GOOD.minos and GOOD.values.get(mf.Parameter("q", 1.0)) is None
    np.testing.assert_array_equal(GOOD.covariance_of(mu, "sigma"), GOOD.covariance[:2, :2])
    with pytest.raises(KeyError, match=r"no 'sigm'; did you mean 'sigma'[?]"):
        GOOD.values[mf.Parameter("sigm", 1.0)]


def test_the_correlation_of_two_parameters_is_a_number():
    mu, sigma = mf.Parameter("mu", 5.28), mf.Parameter("sigma", 0.06, 0.0, 1.0)
    assert GOOD.correlation_of(mu, sigma) == GOOD.correlation_of("sigma", "mu") == pytest.approx(0.012)
    assert GOOD.correlation_of("mu", mu) == 1.0
    with pytest.raises(ModelError, match="parameter 'tau': was fixed and has no covariance"):
        GOOD.correlation_of(mu, "tau")
    with pytest.raises(ModelError, match=r"parameter sigma \+ mu: not in the model; did you mean 'sigma'\?"):
        GOOD.correlation_of(mu, mu + sigma)
    with pytest.raises(ModelError, match=r"parameter \['mu'\]: not in the model; did you mean 'mu'\?"):
        GOOD.covariance_of(["mu"])


# ---------------------------------------------------------------------------------------------- travelling


@pytest.mark.parametrize("result", [GOOD, BAD, without_parameters()], ids=["good", "bad", "empty"])
@pytest.mark.parametrize(
    "journey",
    [
        lambda r: pickle.loads(pickle.dumps(r)),
        copy.deepcopy,
        copy.copy,
        lambda r: FitResult.from_json(r.to_json()),
    ],
    ids=["pickle", "deepcopy", "copy", "json"],
)
def test_a_result_survives_a_journey(result, journey):
    same(result, journey(result))


def test_a_result_survives_a_file(tmp_path):
    path = tmp_path / "result.json"
    text = BAD.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    same(BAD, FitResult.from_json(path))
    same(BAD, FitResult.from_json(str(path)))


NUMBERS = st.floats()
NAMES = st.lists(st.text(min_size=1), unique=True, max_size=4)


@st.composite
def results(draw):
    """Draw a result with any names and any numbers."""
    names = draw(NAMES)
    mapping = st.fixed_dictionaries(dict.fromkeys(names, NUMBERS))
    pairs = st.fixed_dictionaries(dict.fromkeys(names, st.tuples(NUMBERS, NUMBERS)))
    size = draw(st.integers(0, len(names)))
    return FitResult(
        names=tuple(names), values=draw(mapping), errors=draw(mapping), floating=tuple(names[:size]),
        covariance=np.array(draw(st.lists(NUMBERS, min_size=size**2, max_size=size**2))).reshape(size, size),
        nll=draw(NUMBERS), edm=draw(NUMBERS), valid=draw(st.booleans()), reasons=tuple(draw(NAMES)),
        at_limit=tuple(names[:1]), limits=draw(pairs), calls={"value": draw(st.integers(0))},
        seconds={"minimise": draw(NUMBERS)}, minos=draw(pairs), events=draw(st.integers(0)),
        backend=draw(st.text()), minimiser=draw(st.text()),
    )  # fmt: skip


@given(results())
def test_json_keeps_every_bit(result):
    text = result.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    same(result, FitResult.from_json(text))


@given(results())
def test_any_result_prints(result):
    assert str(result).startswith("fit ") and result._repr_html_().startswith("<p")


def test_json_says_its_format_and_version():
    content = json.loads(BAD.to_json())
    assert (content["format"], content["version"]) == ("morefit fit result", 1)
    assert content["nll"] == "nan" and content["limits"]["background_yield"] == [0.0, "inf"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 2}, "fit result: format version must be 1, got 2; use the morefit that wrote it"),
        ({"format": "other"}, r"fit result: the JSON text was not written by FitResult.to_json\(\)"),
        ({"values": 3}, "fit result: the JSON text is damaged, 'int' object has no attribute 'items'"),
        ({"nll": "much"}, "fit result: the JSON text is damaged, could not convert string to float: 'much'"),
        (
            {"valid": "false"},
            "fit result: the JSON text is damaged, true or false must be a boolean, got 'false'",
        ),
    ],
)
def test_json_of_something_else_is_refused(changes, problem):
    with pytest.raises(DataError, match=problem):
        FitResult.from_json(json.dumps(json.loads(GOOD.to_json()) | changes))


def test_json_that_lacks_fields_is_refused():
    content = json.loads(GOOD.to_json())
    del content["nll"], content["edm"]
    with pytest.raises(DataError, match="fit result: the JSON text lacks 'nll', 'edm'"):
        FitResult.from_json(json.dumps(content))


def test_json_without_fields_that_came_later_is_read():
    content = json.loads(GOOD.to_json())
    for name in ("errors_from", "flat_directions", "integral_errors", "labels", "ndf"):
        del content[name]
    same(GOOD, FitResult.from_json(json.dumps(content)))


def test_text_that_is_not_json_is_refused():
    with pytest.raises(DataError, match="fit result: not JSON text, Expecting property name"):
        FitResult.from_json("{oops")


# ---------------------------------------------------------------------------------------------- printing


@pytest.mark.parametrize(("result", "name"), [(GOOD, "fit_result.txt"), (BAD, "fit_result_bad.txt")])
def test_a_result_prints_as_recorded(result, name):
    assert f"{result}\n" == (GOLDEN / name).read_text(encoding="utf-8")


def test_capitals_appear_only_when_something_is_wrong():
    assert not re.search("[A-Z]{2}", str(GOOD))
    assert "NOT VALID" in str(BAD) and "AT LIMIT" in str(BAD)


def test_columns_without_content_are_left_out():
    text = str(replace(GOOD, minos={}, limits={}))
    assert "minos" not in text and "limits" not in text


def test_no_line_ends_in_spaces_and_all_is_ascii():
    for result in (GOOD, BAD):
        assert str(result).isascii()
        assert all(line == line.rstrip() for line in str(result).splitlines())


def correlated(*names):
    """Return a result with these parameters and unit covariance."""
    ones = dict.fromkeys(names, 1.0)
    unit = np.eye(len(names))
    return replace(
        GOOD, names=names, values=ones, errors=ones, floating=names, covariance=unit, limits={}, minos={}
    )


@pytest.mark.parametrize(("count", "shown"), [(1, False), (2, True), (8, True), (9, False)])
def test_correlations_are_shown_for_two_to_eight_parameters(count, shown):
    assert ("correlation" in str(correlated(*(f"p{i}" for i in range(count))))) is shown


def test_correlations_are_not_shown_without_a_covariance():
    assert "correlation" not in str(replace(GOOD, covariance=np.full((4, 4), nan)))


def test_points_come_below_each_other_and_nan_stands_to_the_right():
    lines = str(replace(GOOD, errors=dict(GOOD.errors) | {"alpha": nan})).splitlines()[2:7]
    assert lines[1].index(".") == lines[4].index(".")
    assert lines[4].rstrip().endswith("nan") and len(lines[4]) == lines[0].index("error") + len("error")


def test_long_names_are_numbered_in_the_headings_of_the_correlations():
    text = str(correlated("signal_yield", "mu"))
    assert text.splitlines()[6:9] == [
        "correlation         1      2",
        "1 signal_yield  1.000",
        "2 mu            0.000  1.000",
    ]


def test_a_huge_nll_is_still_readable():
    assert "nll 1e+300," in str(replace(GOOD, nll=1e300))


@pytest.mark.parametrize(("result", "colour"), [(GOOD, "#d9f2d9"), (BAD, "#f8c9c9")])
def test_notebooks_colour_the_verdict(result, colour):
    shown = result._repr_html_()
    assert shown.startswith(f'<p style="background:{colour}')
    assert all(f">{name}</td>" in shown for name in result.names)
    assert all(reason in shown for reason in result.reasons)


def test_notebooks_show_names_as_text():
    assert "<b>bold</b>" not in correlated("<b>bold</b>")._repr_html_()


def test_the_repr_is_one_line():
    assert (
        repr(GOOD) == "FitResult(valid, nll -123456.789, edm 1.2e-07, 4 floating parameters, 100000 events)"
    )
    assert repr(BAD) == "FitResult(NOT VALID, nll nan, edm 0.31, 4 floating parameters, 2000000 events)"


LABELLED = replace(GOOD, labels={"mu": r"$\mu$ [GeV]", "fsig": "$f_s$"})


def test_labels_stand_in_notebooks_and_names_in_text():
    shown = LABELLED._repr_html_()
    assert r">$\mu$ [GeV]</td>" in shown and ">mu</td>" not in shown and ">sigma</td>" in shown
    assert str(LABELLED) == str(GOOD)


def test_latex_has_labels_and_the_digits_of_the_printed_table():
    assert LABELLED.to_latex() == "\n".join([
        r"\begin{tabular}{ll}",
        r"\hline",
        r"parameter & value \\",
        r"\hline",
        r"$\mu$ [GeV] & $5.28012^{+0.00035}_{-0.00035}$ \\",
        r"sigma & $0.06002 \pm 0.00030$ \\",
        r"$f_s$ & $0.2999^{+0.0020}_{-0.0020}$ \\",
        r"alpha & $-1.03 \pm 0.04$ \\",
        r"tau & $1.519$ (fixed) \\",
        r"\hline",
        r"\end{tabular}",
    ])  # fmt: skip


def test_latex_says_what_is_wrong_and_escapes_names():
    lines = replace(BAD, flat_directions=({"slope": 1.0},)).to_latex().splitlines()
    assert lines[:3] == [
        "% fit NOT VALID: nll nan, edm 0.31, 2000000 events, calls: 1000 value",
        "% call limit of 1000 reached",
        "% covariance is not positive definite",
    ]
    assert lines[7:11] == [
        r"signal\_yield & $1234600 \pm 1500$ \\",
        r"background\_yield & $0 \pm 12$ (at limit) \\",
        r"slope & $3.1 \times 10^{-9}$ (undetermined) \\",
        r"mean & $5.2 \pm \mathrm{nan}$ \\",
    ]


def test_a_result_becomes_a_frame_of_pandas():
    frame = GOOD.to_pandas()
    assert list(frame) == ["value", "error", "lower", "upper", "low", "high", "fixed", "at_limit"]
    assert list(frame.index) == list(GOOD.names)
    assert frame.loc["mu"].tolist() == [5.28012, 0.000346, -0.000345, 0.000347, 5.0, 6.0, False, False]
    assert frame.loc["tau", "fixed"] and np.isnan(frame.loc["tau", "lower"])
    assert BAD.to_pandas().loc["background_yield", "at_limit"] and BAD.to_pandas().loc["mean", "low"] == -inf


def test_pandas_is_needed_for_frames_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mf.BackendError, match="to_pandas: pandas is not installed; pip install pandas"):
        GOOD.to_pandas()


def test_a_fit_takes_the_labels_of_its_parameters():
    model, data, _ = zoo.gaussian(50)
    x, (mu, sigma) = model.observables[0], model.parameters
    labelled = mf.Parameter(mu.name, mu.start, mu.low, mu.high, label=r"$\mu$")
    result = mf.fit(mf.Gaussian(x, labelled, sigma), data)
    assert result.labels == {mu.name: r"$\mu$"} and r"$\mu$ &" in result.to_latex()
    assert mf.fit(model, data).labels == {}


def test_values_are_taken_from_a_result_or_by_parameters():
    model, data, _ = zoo.gaussian(50)
    result = mf.fit(model, data)
    expected = mf.generate(model, 20, seed=1, truth=dict(result.values))
    by_parameter = {p: result.values[p] for p in model.parameters}
    for values in (result, result.values, by_parameter):
        drawn = mf.generate(model, 20, seed=1, truth=values)
        assert drawn["x"].tobytes() == expected["x"].tobytes()
    with pytest.raises(ModelError, match=r"truth must be numbers by name, .* got the name 3"):
        mf.generate(model, 20, truth={3: 1.0})


@pytest.mark.parametrize("events", [100, 20_001])
def test_waiting_for_machine_code_counts_as_compiling(events, monkeypatch):
    """The first fit of a session used to have a minimisation of half a second."""
    x = mf.Observable("x", 0.0, 5.0)
    data = mf.generate(mf.Exponential(x, -1.0), events, seed=1)
    for name in ("morefit.targets.cpu.run.Cpu.prepare_fits", "morefit.minimise.path.prepare_steps"):
        monkeypatch.setattr(name, lambda *_: time.sleep(0.05))
    assert mf.fit(mf.Exponential(x, mf.Parameter("slope", -0.9, -5.0, 0.0)), data).seconds["compile"] >= 0.05
