"""Named formulas of parameters: they stand wherever parameters do, and in the results of fits with their errors."""

import pickle

import numpy as np
import pytest

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.expr import Op, evaluate, symbols
from morefit.jobs.digest import fingerprint
from shape_rows import all_rows

X = mf.Observable("x", 0, 10)
MASS, RATIO, Q = (
    mf.Parameter("mass", 5.0, 3, 7),
    mf.Parameter("ratio", 0.1, 0.01, 1),
    mf.Parameter("q", 1.0, 0.1, 1.9),
)
WIDTH, SHARE = mf.Derived("width", MASS * RATIO, label=r"$\sigma$"), mf.Derived("share", Q / 2)
MODEL = mf.Sum([mf.Gaussian(X, MASS, WIDTH), mf.Exponential(X, -0.3)], fractions=[SHARE])
PLAIN = mf.Sum([mf.Gaussian(X, MASS, MASS * RATIO), mf.Exponential(X, -0.3)], fractions=[Q / 2])
DATA = mf.generate(PLAIN, 2000, seed=1)


@pytest.fixture(scope="module")
def result():
    return mf.fit(MODEL, DATA)


@pytest.mark.parametrize(
    "backend", [COMPILED["cpu"], COMPILED["opencl"], JUDGE["reference"]], ids=["cpu", "opencl", "reference"]
)
def test_a_name_changes_no_number(result, backend):
    plain = mf.fit(PLAIN, DATA, backend=there(backend))
    assert dict(mf.fit(MODEL, DATA, backend=backend).values) == pytest.approx(dict(plain.values), rel=1e-9)
    assert result.nll == pytest.approx(plain.nll, rel=1e-12)


def test_results_have_values_and_propagated_errors(result):
    width = result.derived(MASS * RATIO)
    assert result.quantities["width"] == (pytest.approx(width.value), pytest.approx(width.error))
    assert result.quantities[WIDTH] == result.quantities["width"]
    assert result.derived(WIDTH).error == pytest.approx(width.error)
    assert list(result.names) == ["mass", "ratio", "q"]


def test_tables_list_them_after_the_parameters(result):
    lines = str(result).splitlines()
    assert next(line for line in lines if line.startswith("width")).split()[-1] == "derived"
    assert r"$\sigma$ &" in result.to_latex()
    assert "derived" in result._repr_html_()


def test_results_keep_them_in_json_and_pickles(result):
    for again in (mf.FitResult.from_json(result.to_json()), pickle.loads(pickle.dumps(result))):
        assert dict(again.quantities) == dict(result.quantities)


def test_weighted_errors_are_propagated():
    weights = np.full(len(DATA), 0.5)
    weighted = mf.fit(MODEL, DATA, weights=weights)
    assert weighted.errors_from == "sandwich"
    assert weighted.quantities["share"][1] == pytest.approx(weighted.errors["q"] / 2)


def test_models_print_their_names():
    assert "sigma = width = 0.5" in str(MODEL)
    assert "fractions=[share]" in repr(MODEL)
    assert repr(WIDTH) == r"Derived('width', mass*ratio, label='$\\sigma$')"
    assert "width" in MODEL._repr_latex_()


def test_models_with_names_travel_and_have_a_fingerprint():
    again = pickle.loads(pickle.dumps(MODEL))
    assert again.pdf([5.0]) == pytest.approx(PLAIN.pdf([5.0]), rel=1e-12)
    other = mf.Sum([mf.Gaussian(X, MASS, mf.Derived("width", 2 * RATIO)), MODEL.pdfs[1]], fractions=[SHARE])
    assert fingerprint(MODEL)["digest"] == fingerprint(again)["digest"] != fingerprint(other)["digest"]


def test_toys_and_plots_take_them():
    toys = mf.toy_study(MODEL, toys=4, events=500, seed=1, progress=False)
    assert toys.valid.all()
    np.testing.assert_allclose(toys.derived(WIDTH), toys.values[:, 0] * toys.values[:, 1])
    with pytest.raises(mf.ModelError, match="parameter 'other' is not in the fit"):
        toys.derived(mf.Parameter("other", 1.0))
    assert len(mf.intervals.profile(MODEL, "mass", data=DATA, size=3, progress=False).nll) == 3
    assert "per call" in str(mf.explain(MODEL, DATA))


def test_they_stand_in_formulas():
    model = mf.Density(np.exp(-X / WIDTH), X)
    assert set(mf.fit(model, DATA, fixed=["mass"]).quantities) == {"width"}


@pytest.mark.parametrize("name", [name for name, row in all_rows().items() if row.fit])
def test_every_shape_takes_one_as_an_argument(name):
    row = all_rows()[name]
    point = row.points[0]
    x = mf.Observable("x", point.low, point.high)
    values = [mf.Parameter(n, v) for n, v in point.values.items()]
    derived = [mf.Derived(f"{p.name}_", 1.0 * p) if k == 0 else p for k, p in enumerate(values)]
    plain, named = row.make(x, *values), row.make(x, *derived)
    at = {"x": point.at, **point.values}
    assert evaluate(named.density(), at) == pytest.approx(evaluate(plain.density(), at), rel=1e-14)
    used = [{s.name for s in symbols(Op.SCALAR, pdf.integral())} for pdf in (named, plain)]
    assert used[0] == used[1]


def test_names_that_clash_are_refused():
    clash = mf.Gaussian(X, MASS, mf.Derived("mass", MASS * RATIO))
    with pytest.raises(
        mf.ModelError, match=r"derived 'mass': something else has this name in the model; rename"
    ):
        mf.fit(clash, DATA)
    twice = mf.Gaussian(X, mf.Derived("a", 50 * RATIO), mf.Derived("a", MASS * RATIO))
    with pytest.raises(mf.ModelError, match=r"derived 'a': something else has this name"):
        mf.fit(twice, DATA)


def test_formulas_without_parameters_or_with_observables_are_refused():
    with pytest.raises(mf.ModelError, match=r"derived 'a': must not depend on observables, got 'x'"):
        mf.Derived("a", MASS * X)
    with pytest.raises(mf.ModelError, match=r"derived 'a': must depend on a parameter, got 2"):
        mf.Derived("a", 2)
