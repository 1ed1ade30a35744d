"""Wrong arguments and missing attributes are answered in a sentence, with the name that is meant."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import morefit as mf
from fit_results import GOOD
from morefit.text.arguments import in_sentences

X = mf.Observable("x", 0.0, 1.0)
SLOPE = mf.Parameter("slope", -1.0, -5.0, 5.0)
MODEL = mf.Exponential(X, SLOPE)


@in_sentences
def draw(model, events=10, *, seed, level=0.9):
    return len(model) + events + seed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw("a", seeed=1), "draw: has no argument 'seeed'; did you mean 'seed'?"),
        (lambda: draw("a", seed=1, cl=0.9), "draw: has no argument 'cl'; did you mean 'level'?"),
        (lambda: draw("a", seed=1, extended=True), "draw: has no argument 'extended'; a sum with yields is extended"),
        (lambda: draw("a", 1, 2), "draw: takes model, events by position, got 3 arguments; write seed=..."),
        (lambda: draw("a"), "draw: argument 'seed' is missing; write seed=..."),
        (lambda: draw(seed=1), "draw: argument 'model' is missing; the order is draw(model, events)"),
        (lambda: mf.Parameter("a", value=1), "Parameter: has no argument 'value'; did you mean 'start'?"),
        (lambda: mf.Observable("a", (0, 1)), "Observable: argument 'high' is missing; the order is Observable(name, low, high, label)"),
        (lambda: mf.constraint(SLOPE, 1.0, covariance=2), "constraint: has no argument 'covariance'; did you mean 'error'?"),
        (lambda: mf.fit(MODEL, [0.5], minimizer="minuit"), "fit: has no argument 'minimizer'; did you mean 'minimiser'?"),
        # these used to propose 'minimiser', 'errors' and nothing
        (lambda: mf.fit(MODEL, [0.5], initial={}), "fit: has no argument 'initial'; did you mean 'start'?"),
        (lambda: mf.fit(MODEL, [0.5], verbose=1), "fit: has no argument 'verbose'; did you mean 'print_level'?"),
        (lambda: mf.Parameter("a", 1, lower=0), "Parameter: has no argument 'lower'; did you mean 'low'?"),
        (lambda: mf.plot(MODEL, [0.5], nbins=10), "plot: has no argument 'nbins'; did you mean 'bins'?"),
        (lambda: mf.plot(MODEL, [0.5], figsize=(4, 4)), "plot: has no argument 'figsize'; pass axes of your own figure as ax=, such as plt.subplots(2, 1, figsize=(6, 5))[1]"),
        (lambda: mf.plot(MODEL), "plot: a model needs data; write mf.plot(model, data, values=result), and for the curve alone plt.plot(x, model.pdf(x, values))"),
        (lambda: mf.plot(MODEL, [0.5], band=2), "plot: band must be True or False, got 2"),  # which drew one standard deviation
        (lambda: MODEL.pdf(0.5, slope=1), "pdf: has no argument 'slope'; there are 'data', 'values', 'backend'"),
        (lambda: mf.Dataset([0.5], X).cut("x > 1"), "cut: argument 'observables' is missing; the order is cut(source, observables)"),
        (lambda: mf.plot(mf.Dataset({"x": [0.5]}, [X])), "plot: takes a model and its data, or a likelihood, got Dataset; write mf.plot(model, data, values=result)"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_answered_in_a_sentence(call, message):
    with pytest.raises(mf.OptionError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.Gaussian(X, 0.5), "density 'Gaussian': argument 'sigma' is missing; the order is Gaussian(x, mu, sigma)"),
        (lambda: mf.Gaussian(obs=X, mu=1, sigma=2), "density 'Gaussian': has no argument 'obs'; did you mean 'x'?"),
        # this used to be the coefficient of x
        (lambda: mf.Polynomial(X, 2), "density 'Polynomial': argument 'coefficients' must be a list with one parameter or number for each term, got 2; the order is that of the last term"),
        (lambda: mf.Density("exp(x)", X), "expression: takes numbers, observables, parameters and expressions, got str; write the formula itself, as in np.exp(-a * x)"),
        (lambda: mf.Parameter("mu", "mean", 1, 0, 2), "parameter 'mu': start must be a number, got 'mean'; the order is name, start, low, high"),
        (lambda: mf.Product(MODEL, MODEL), "density 'Product': takes pdfs by position, got 2 arguments; write a list, as in Product([a, b])"),
    ],
)  # fmt: skip
def test_a_wrong_density_is_answered_in_a_sentence(call, message):
    with pytest.raises(mf.ModelError) as error:
        call()
    assert str(error.value) == message


def test_errors_inside_a_function_and_its_signature_stay_as_they_are():
    with pytest.raises(TypeError, match="has no len"):
        draw(3, seed=1)
    assert draw("ab", seed=1) == 13
    assert list(inspect.signature(mf.fit).parameters)[:2] == ["model", "data"]
    assert pickle.loads(pickle.dumps(mf.fit)) is mf.fit


@pytest.mark.parametrize(
    ("thing", "name", "message"),
    [
        (MODEL, "generate", "'Exponential' object has no attribute 'generate'; write mf.generate(model, events, seed=1)"),
        (MODEL, "parameter", "'Exponential' object has no attribute 'parameter'; did you mean 'parameters'?"),
        (MODEL, "_repr_json_", "'Exponential' object has no attribute '_repr_json_'"),
        (GOOD, "error_s", "'FitResult' object has no attribute 'error_s'; did you mean 'errors'?"),
        (GOOD, "fval", "'FitResult' object has no attribute 'fval'; the minimum is nll, minus the logarithm of the likelihood"),
        (GOOD, "cov", "'FitResult' object has no attribute 'cov'; did you mean 'covariance'?"),  # used to be 'converted'
        (GOOD, "mu", "'FitResult' object has no attribute 'mu'; values['mu'] is its value"),
        (mf.Dataset([0.5], X), "x", "'Dataset' object has no attribute 'x'; data['x'] is its column"),
        (mf.Dataset([0.5], X), "numEntries", "'Dataset' object has no attribute 'numEntries'; len(data) is the number of events"),
        (SLOPE, "setVal", "parameter 'slope': has no 'setVal': pass fixed=, start= or limits= to mf.fit, or model.replace({'slope': mf.Parameter(...)})"),
        (GOOD, "correlations", "'FitResult' object has no attribute 'correlations'; did you mean 'correlation'?"),
    ],
)  # fmt: skip
def test_a_missing_attribute_is_answered_with_what_does_the_same(thing, name, message):
    with pytest.raises(AttributeError) as error:
        getattr(thing, name)
    assert str(error.value) == message
    assert repr(copy.copy(thing)) == repr(thing)


def test_items_and_arrays_are_answered_with_what_does_the_same():
    with pytest.raises(TypeError, match=r"has no items, got 'mu'; values\[name\] and errors\[name\]"):
        GOOD["mu"]
    with pytest.raises(TypeError, match=r"is no array; data\[name\] is a column"):
        np.asarray(mf.Dataset([0.5], X))


def test_data_of_another_kind_are_answered_in_a_sentence():
    tables, edges = [mf.Dataset([0.5], X)] * 2, np.linspace(0, 1, 4)
    with pytest.raises(mf.DataError, match=r"got 2 tables; join them, .*, or fit each with mf.fit_many"):
        mf.fit(MODEL, tables)
    with pytest.raises(mf.DataError, match=r"a histogram is .counts, edges., got the edges first"):
        mf.fit(MODEL, (edges, np.ones(3)))
    with pytest.raises(mf.DataError, match="bin contents are negative, such as -1,"):
        mf.fit(MODEL, (np.array([1, -1, 2]), edges))
    with pytest.raises(mf.DataError, match=r"got 'mass'; write mf.Observable\('mass', low, high\)$"):
        mf.Dataset([0.5], "mass")
    with pytest.raises(mf.FitError, match=r"fit: takes .*, got Dataset; the model comes before the data"):
        mf.fit(tables[0], MODEL)


def test_a_likelihood_is_not_added_to_itself():
    # this used to count its events twice, with errors that are too small
    nll = mf.Likelihood(MODEL, [0.5, 0.6])
    with pytest.raises(mf.ModelError, match="is in the sum already; its events would count twice"):
        _ = nll + mf.Likelihood(MODEL, [0.1]) + nll
    x = MODEL.observables[0]
    one, other = (
        mf.Likelihood(mf.Exponential(x, mf.Parameter(name, -1.0, -5.0, 5.0)), [0.5]) for name in "ab"
    )
    with pytest.raises(mf.ModelError, match="is in the sum already"):  # also if the sum shares their kernels
        _ = one + other + one


def test_the_number_of_points_is_not_their_values():
    with pytest.raises(mf.OptionError, match="points must be a list of values, got 20; size= is how many"):
        mf.intervals.profile(mf.Likelihood(MODEL, [0.5, 0.6]), SLOPE, points=20)


def test_one_event_of_several_observables_has_one_density():
    y = mf.Observable("y", 0.0, 2.0)
    both = mf.Product([MODEL, mf.Uniform(y)])
    assert both.pdf({"x": 0.5, "y": 1}) == both.pdf({"x": [0.5], "y": [1.0]})[0] == MODEL.pdf(0.5) / 2
    assert np.ndim(both.pdf({"x": 0.5, "y": 1})) == 0
    grid = both.pdf(
        {"x": np.array([[0.5], [0.2]]), "y": np.array([1.0, 1.5, 0.5])}
    )  # was refused, as were numbers
    assert grid.shape == (2, 3) and grid[1, 2] == both.pdf({"x": 0.2, "y": 0.5})
    with pytest.raises(mf.DataError, match=r"one shape, .*, got \(2, 2\) of 'x', \(3, 1\) of 'y'"):
        both.pdf({"x": np.zeros((2, 2)), "y": np.zeros((3, 1))})


def test_a_property_that_fails_raises_its_own_error():
    class Own(mf.Pdf):
        def density(self):
            return 1 + X

        @property
        def broken(self):
            return (1).missing

    with pytest.raises(AttributeError, match="'int' object has no attribute 'missing'"):
        _ = Own().broken


def test_labels_are_a_list():
    with pytest.raises(mf.ModelError, match=r"numbers in a column are labels themselves, as in \[-1, 1\]"):
        mf.Category("tag", {"mixed": -1, "unmixed": 1})  # which left the numbers out
    with pytest.raises(mf.ModelError, match=r"labels must be a list, got \{"):
        mf.Category("tag", {"a", "b"})
    assert mf.Category("tag", {"a": 1, "b": 2}.keys()).labels == ("a", "b")
