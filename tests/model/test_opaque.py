"""Functions of Python in formulas: fitted, drawn, plotted and integrated as formulas are, by NumPy."""

import pickle
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import morefit as mf
from derivatives import hessian
from morefit.expr import evaluate
from morefit.jobs.digest import fingerprint
from morefit.rewrite.derive import gradient

X = mf.Observable("x", 0, 10)
MU, SIGMA, F = mf.Parameter("mu", 5.0, 3, 7), mf.Parameter("sigma", 0.5, 0.1, 2), mf.Parameter("f", 0.4, 0, 1)


def bump(x, mu, sigma):
    return np.exp(-0.5 * ((x - mu) / sigma) ** 2)


def wider_bump(x, mu, sigma):
    return np.exp(-0.25 * ((x - mu) / sigma) ** 2)


def quiet(function, observables=(), parameters=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mf.opaque(function, observables, parameters)


PEAK = mf.Density(quiet(bump, X, [MU, SIGMA]), X)
MODEL = mf.Sum([PEAK, mf.Exponential(X, -0.3)], fractions=[F])
TRUE = mf.Sum([mf.Gaussian(X, MU, SIGMA), mf.Exponential(X, -0.3)], fractions=[F])
DATA = mf.generate(TRUE, 1000, seed=1)


def test_it_is_said_to_be_slow():
    with pytest.warns(
        UserWarning, match=r"opaque 'bump': is called by NumPy for every evaluation.* run on the CPU only"
    ):
        mf.opaque(bump, X, [MU, SIGMA])


def test_values_and_derivatives_are_those_of_the_function():
    expr = quiet(bump, X, [MU, SIGMA])
    plain = np.exp(-0.5 * ((X - MU) / SIGMA) ** 2)
    at = {"x": np.array([4.5, 5.2]), "mu": 5.0, "sigma": 0.5}
    leaves = [MU.expr, SIGMA.expr]
    np.testing.assert_allclose(evaluate(expr, at), evaluate(plain, at), rtol=1e-14)
    for one, other in zip(gradient(expr, leaves), gradient(plain, leaves), strict=True):
        np.testing.assert_allclose(evaluate(one, at), evaluate(other, at), rtol=1e-7)
    for one, other in zip(hessian(expr, leaves), hessian(plain, leaves), strict=True):
        for second, exact in zip(one, other, strict=True):
            np.testing.assert_allclose(evaluate(second, at), evaluate(exact, at), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["auto", "cpu", "reference"])
def test_a_fit_is_that_of_the_formula(backend):
    result, plain = mf.fit(MODEL, DATA, backend=backend), mf.fit(TRUE, DATA)
    assert result.valid and result.backend == "reference"
    for name in plain.floating:
        assert result.values[name] == pytest.approx(plain.values[name], abs=1e-2 * plain.errors[name])
        assert result.errors[name] == pytest.approx(plain.errors[name], rel=1e-2)


def test_bins_take_it_as_events_do():
    # bins and points used to take the compiled backend, and then to refuse it
    counts = np.histogram(DATA["x"], 12, (0, 10))
    nll = mf.BinnedLikelihood(MODEL, counts)
    expected = mf.BinnedLikelihood(TRUE, counts)
    values = {"mu": 4.9, "sigma": 0.9, "f": 0.4}
    point = {p.name: values.get(p.name, p.start) for p in nll.parameters}
    assert nll.value(point) == pytest.approx(expected.value(point), rel=1e-8)
    assert mf.toy_study(nll, toys=1, seed=1, progress=False).valid.all()
    line = mf.LeastSquares(quiet(bump, X, [MU, SIGMA]), [3.0, 5.0, 6.0], [0.1, 1.0, 0.6], 0.1)
    assert mf.fit(line).valid


def test_it_is_drawn_from_and_integrated():
    drawn = mf.generate(MODEL, 2000, seed=2)
    assert np.mean(np.abs(drawn["x"] - 5) < 1) == pytest.approx(TRUE.integrate({"x": (4, 6)}), abs=0.05)
    np.testing.assert_allclose(MODEL.pdf(DATA), TRUE.pdf(DATA), rtol=1e-6)
    assert MODEL.integrate({"x": (4, 6)}) == pytest.approx(TRUE.integrate({"x": (4, 6)}), rel=1e-6)
    assert MODEL.cdf(5.0) == pytest.approx(TRUE.cdf(5.0), rel=1e-6)


def test_plots_toys_profiles_and_explanations_take_it():
    mf.plot(MODEL, DATA)
    plt.close("all")
    toys = mf.toy_study(MODEL, toys=2, events=200, seed=1, progress=False)
    assert toys.valid.all()
    scan = mf.intervals.profile(PEAK, "mu", [4.9, 5.1], data={"x": DATA["x"][:100]}, progress=False)
    assert np.isfinite(scan.nll).all()
    assert "opaque_bump(" in str(mf.explain(MODEL, DATA))


def test_functions_of_parameters_alone_are_called_once_per_call():
    calls = []

    def width(ratio):
        calls.append(np.shape(ratio))
        return ratio * 5.0

    ratio = mf.Parameter("ratio", 0.1, 0.05, 0.3)
    model = mf.Gaussian(X, MU, mf.Derived("width", quiet(width, (), ratio)))
    result = mf.fit(model, {"x": DATA["x"]})
    assert result.quantities["width"][0] == pytest.approx(5 * result.values["ratio"])
    assert set(calls) == {()}


def test_functions_of_events_alone_are_called_once_per_dataset():
    calls = []

    def correction(x):
        calls.append(np.size(x))
        return 1 + 0.1 * np.sin(x)

    factor = quiet(correction, X)
    model = mf.Density(factor * np.exp(mf.Parameter("slope", -0.3, -2, 0) * X), X)
    nll = mf.Likelihood(model, DATA)
    first = nll.value([-0.3])
    seen = calls.count(len(DATA))
    assert nll.value([-0.2]) != first and calls.count(len(DATA)) == seen


def test_fingerprints_see_the_function():
    def model(function):
        return mf.Density(quiet(function, X, [MU, SIGMA]), X)

    digests = [fingerprint(model(f))["digest"] for f in (bump, bump, wider_bump)]
    assert digests[0] == digests[1] != digests[2]


def test_models_with_functions_travel():
    again = pickle.loads(pickle.dumps(PEAK))
    np.testing.assert_allclose(again.pdf([4.0]), PEAK.pdf([4.0]))
    assert again.density() is PEAK.density()


def test_other_backends_refuse_it():
    for use in (
        lambda: mf.fit(MODEL, DATA, backend="opencl"),
        lambda: mf.generate(MODEL, 10, seed=1, backend="opencl"),
    ):
        with pytest.raises(
            mf.BackendError,
            match=r"backend 'opencl': cannot call functions of Python, got opaque_bump; use backend='cpu'",
        ):
            use()


def test_constraints_by_functions_need_the_reference():
    limit = mf.constraint(quiet(lambda mu: 2 * mu, (), MU), 10.0, 0.1)
    with pytest.raises(
        mf.BackendError,
        match=r"backend 'cpu': cannot call functions of Python, got opaque_<lambda>; use backend='reference'",
    ):
        mf.fit(TRUE, DATA, constraints=[limit])
    plain = mf.fit(TRUE, DATA, constraints=[mf.constraint(2 * MU, 10.0, 0.1)])
    result = mf.fit(TRUE, DATA, constraints=[limit], backend="reference")
    assert result.values["mu"] == pytest.approx(plain.values["mu"], abs=1e-2 * plain.errors["mu"])


def test_wrong_functions_are_refused():
    with pytest.raises(mf.ModelError, match="opaque: takes a function, got 3"):
        mf.opaque(3, X)
    with pytest.raises(mf.ModelError, match="opaque 'bump': needs observables or parameters, got none"):
        mf.opaque(bump)
    with pytest.raises(mf.ModelError, match=r"opaque 'bump': parameters\[0\] must be a number, a parameter"):
        mf.opaque(bump, X, ["mu"])
    model = mf.Density(quiet(lambda x: np.ones(3), X), X)
    with pytest.raises(
        mf.ModelError, match=r"opaque '<lambda>': must return a number for each event, of shape"
    ):
        model.pdf([1.0, 2.0])
    for wrong in (
        lambda x: None,
        lambda x: 1j * x,
    ):  # these used to be no numbers, or to lose their imaginary part
        with pytest.raises(mf.ModelError, match=r"a number for each event.* \(it returned values of type"):
            mf.Density(quiet(wrong, X), X).pdf([1.0, 2.0])


def test_a_column_is_computed_once():
    data = mf.Dataset({"px": [3.0, 5.0], "py": [4.0, 12.0]}, weights=[1.0, 2.0])
    more = data.with_column("pt", lambda px, py: np.hypot(px, py))
    assert more["pt"].tolist() == [5.0, 13.0] and more.names == ("px", "py", "pt")
    assert more.weights.tolist() == [1.0, 2.0] and data.names == ("px", "py")
    assert more.with_column("pt", lambda pt: 2 * pt)["pt"].tolist() == [10.0, 26.0]
    with pytest.raises(mf.DataError, match=r"no column 'pz'"):
        data.with_column("pt", lambda pz: pz)
    with pytest.raises(
        mf.DataError,
        match=r"column '<lambda>': the arguments of a function must be named as columns, got none",
    ):
        data.with_column("pt", lambda: 1)
    with pytest.raises(mf.DataError):
        data.with_column("pt", lambda px: px[:1])
    with pytest.raises(mf.DataError, match="not finite"):
        data.with_column("pt", lambda px: px / 0 if False else px * np.nan)


def test_a_column_is_also_an_array_or_one_value_for_all_events():
    data = mf.Dataset({"px": [3.0, 5.0]})
    assert data.with_column("pz", [1, 2])["pz"].tolist() == [1.0, 2.0]
    assert data.with_column("pz", 7)["pz"].tolist() == [7.0, 7.0]
    assert data.with_column("year", "2016").by_label("year").keys() == {"2016"}
    factors = [data.with_column("p", lambda px, factor=k: factor * px)["p"][0] for k in (1, 2)]
    assert factors == [3.0, 6.0]  # an argument with a default is no column
    with pytest.raises(mf.DataError, match=r"length must be 2 as for .px., got 3"):
        data.with_column("pz", [1, 2, 3])
    with pytest.raises(mf.DataError, match="not finite"):
        data.with_column("pz", np.nan)


def test_joint_fits_mix_functions_and_formulas():
    nll = mf.Likelihood(MODEL, DATA) + mf.Likelihood(TRUE, DATA)
    turned = mf.Likelihood(TRUE, DATA) + mf.Likelihood(MODEL, DATA)
    one, other = mf.fit(nll), mf.fit(turned)
    plain = mf.fit(mf.Likelihood(TRUE, DATA) + mf.Likelihood(TRUE, DATA))
    for name in plain.floating:
        assert one.values[name] == pytest.approx(plain.values[name], abs=1e-2 * plain.errors[name])
        assert other.values[name] == pytest.approx(plain.values[name], abs=1e-2 * plain.errors[name])
    assert mf.toy_study(turned, toys=2, truth=plain, seed=1, progress=False).valid.all()


def test_shapes_take_functions_as_arguments():
    width = quiet(lambda ratio: 5.0 * ratio, (), mf.Parameter("ratio", 0.1, 0.05, 0.3))
    model = mf.Gaussian(X, MU, width)
    assert model.integrate({"x": (4, 6)}) == pytest.approx(mf.Gaussian(X, MU, 0.5).integrate({"x": (4, 6)}))
    assert mf.fisher_information(model, 100).errors["mu"] == pytest.approx(0.05, rel=1e-3)
