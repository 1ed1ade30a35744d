"""Wrong arguments and missing attributes are answered in a sentence, with the name that is meant."""

import copy
import inspect
import pickle

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
        (GOOD, "correlations", "'FitResult' object has no attribute 'correlations'; did you mean 'correlation'?"),
    ],
)  # fmt: skip
def test_a_missing_attribute_is_answered_with_what_does_the_same(thing, name, message):
    with pytest.raises(AttributeError) as error:
        getattr(thing, name)
    assert str(error.value) == message
    assert repr(copy.copy(thing)) == repr(thing)


def test_a_property_that_fails_raises_its_own_error():
    class Own(mf.Pdf):
        def density(self):
            return 1 + X

        @property
        def broken(self):
            return (1).missing

    with pytest.raises(AttributeError, match="'int' object has no attribute 'missing'"):
        _ = Own().broken
