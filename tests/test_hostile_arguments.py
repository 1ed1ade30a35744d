"""Arguments that make no sense are refused where they are given, with an error that names them."""

import inspect

import numpy as np
import pytest

import morefit as mf
from morefit.errors import MorefitError
from morefit.intervals import (
    bootstrap,
    contour,
    feldman_cousins,
    feldman_cousins_gaussian,
    feldman_cousins_poisson,
    neyman_belt,
    profile,
)

X = mf.Observable("x", -5.0, 5.0)
MODEL = mf.Gaussian(X, mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.0, 0.5, 2.0))
DATA = mf.Dataset({"x": np.random.default_rng(1).normal(0.1, 1.0, 50)})
BEST = mf.fit(MODEL, DATA)
NAN, INF = float("nan"), float("inf")

NO_WHOLE_NUMBERS = [2.5, True, "3", None, NAN, INF, [3], 1j]
NO_SEEDS = [-1, 1.5, 2.0, "a", 2**64, [1], NAN]
NO_LEVELS = [68, 0, 1, -0.5, NAN, "0.9", True, [0.9]]
NO_NAMES = ["nu", "", "MU", 0, None, ["mu"]]
NO_LISTS = [
    [],
    "a",
    ["a"],
    None,
    [NAN],
    [INF],
    [5.0],
    (x for x in [0.1]),
    {"mu": 0.1},
    [1j],
    [[0.1], [0.1, 0.2]],
]
NO_VALUES = [{"mu": x} for x in ("a", "0.1", None, NAN, INF, [1.0, 2.0], 1j)] + [
    {"nu": 1.0},
    {MODEL.parameters[0]: 0.1, "mu": 0.2},
    {0: 1.0},
    [("mu", 0.1)],
    0.1,
    "mu",
]
NO_BACKENDS = ["gpu", 1, None]
NO_MODELS = [1, None, "gauss", DATA]
NO_BOUNDS = [(1, 0), (0,), 0.5, (0, "a"), (NAN, 1), (0.0, 0.5, 1.0), (None, 1), (-INF, 1), "ab", {0: 1, 1: 2}]


def some(function, **options):
    """Return a function with all arguments given by name, and those that it has if nothing is changed."""
    return lambda **changes: function(**(options | changes))


def likelihood():
    return mf.Likelihood(MODEL, DATA)


def belt():
    return neyman_belt(MODEL, "mu", [0.0, 0.1], events=5, toys=5, seed=1, progress=False)


# what is called, and arguments of it that make no sense
CALLS = {
    "generate": (some(mf.generate, model=MODEL, events=5, seed=1), {
        "model": NO_MODELS, "events": [2.5, True, "3", None, NAN, INF, -1, [3, -1], [[3]], [1.5]], "seed": NO_SEEDS, "truth": NO_VALUES,
        "backend": NO_BACKENDS, "generator": ["mt", None, 1, np.random.default_rng(1)],
    }),
    "toy study": (some(mf.toy_study, model=MODEL, toys=2, events=20, seed=1, progress=False), {
        "model": NO_MODELS, "fit_model": [1, "gauss", DATA], "toys": [*NO_WHOLE_NUMBERS, 0, -1],
        "events": [*NO_WHOLE_NUMBERS, -1, [1], [], [20, 2.5], [[20, 20]]], "seed": NO_SEEDS,
        "truth": NO_VALUES, "start": [*NO_VALUES, {"mu": 5.0}], "block": [0, -1, 2.5, "a"], "backend": NO_BACKENDS,
        "executor": [1, "pool"], "statistic": [
            1, "mean", lambda d, v: "much", lambda d, v: None, lambda d, v: [1.0, 2.0], lambda d, v: {}, lambda d, v: {"a": None}
        ],
    }),
    "fit_many": (some(mf.fit_many, model=MODEL, datasets=[DATA]), {
        "model": NO_MODELS, "datasets": [[], None, 1, "ab", DATA, {"a": DATA}, [None], [DATA, 1.0]],
        "start": [*NO_VALUES, {"mu": 5.0}], "backend": NO_BACKENDS,
    }),
    "feldman_cousins": (some(feldman_cousins, likelihood=MODEL, data=DATA, parameter="mu", points=[0.1], toys=2, seed=1, progress=False), {
        "likelihood": NO_MODELS, "data": [None, [], {"x": [99.0]}, {"y": [1.0]}], "parameter": NO_NAMES, "points": NO_LISTS,
        "toys": [*NO_WHOLE_NUMBERS, 0, -1], "level": [*NO_LEVELS, None], "seed": NO_SEEDS,
        "best": [1, "best"], "backend": NO_BACKENDS,
    }),
    "neyman_belt": (some(neyman_belt, likelihood=MODEL, parameter="mu", points=[0.1], events=5, toys=2, seed=1, progress=False), {
        "likelihood": NO_MODELS, "parameter": NO_NAMES, "points": NO_LISTS, "events": [*NO_WHOLE_NUMBERS, -1], "truth": [*NO_VALUES, {"mu": 0.2}],
        "estimator": [1, "mean"], "toys": [*NO_WHOLE_NUMBERS, 0], "level": [*NO_LEVELS, None], "seed": NO_SEEDS,
    }),
    "interval of a belt": (lambda **options: belt().interval(**({"observed": 0.1} | options)), {
        "observed": ["a", None, NAN, INF, [0.1], 1j], "level": NO_LEVELS,
    }),
    "bootstrap": (some(bootstrap, likelihood=likelihood(), replicas=2, seed=1, best=BEST, progress=False), {
        "likelihood": [MODEL, DATA, None], "replicas": [*NO_WHOLE_NUMBERS, 0, -1], "seed": [*NO_SEEDS, None], "best": [1, "best"],
    }),
    "interval of a bootstrap": (
        lambda **options: bootstrap(likelihood(), replicas=2, best=BEST, progress=False).interval(**({"parameter": "mu"} | options)),
        {"parameter": NO_NAMES, "level": [*NO_LEVELS, None]},
    ),
    "profile": (some(profile, likelihood=likelihood(), parameter="mu", best=BEST, progress=False), {
        "likelihood": [MODEL, DATA, None], "parameter": NO_NAMES, "points": [x for x in NO_LISTS if x is not None],
        "bounds": [*NO_BOUNDS, (-9, 9)], "size": [*NO_WHOLE_NUMBERS, 0, 1, -1], "best": [1, "best"],
    }),
    "interval of a profile": (
        lambda level: profile(likelihood(), "mu", size=5, best=BEST, progress=False).interval(level), {"level": [*NO_LEVELS, None]},
    ),
    "contour": (some(contour, likelihood=likelihood(), x="mu", y="sigma", size=3, best=BEST, progress=False), {
        "likelihood": [MODEL, None], "x": [*NO_NAMES, "sigma"], "y": [*NO_NAMES, "mu"], "size": [*NO_WHOLE_NUMBERS, 1],
        "bounds": [(0, 1), 0.5, ((0, 1),), *((b, (0.5, 2.0)) for b in NO_BOUNDS)], "levels": [(), *((x,) for x in NO_LEVELS)],
        "best": [1],
    }),
    "fisher_information": (some(mf.fisher_information, model=MODEL, events=10), {
        "model": NO_MODELS, "events": [0, -1, NAN, INF, "3", None, [3]], "truth": NO_VALUES, "tolerance": [0, -1, "a", None, NAN],
    }),
    "counts of Feldman and Cousins": (some(feldman_cousins_poisson, n=1, background=1.0), {
        "n": [*NO_WHOLE_NUMBERS, -1], "background": [-1.0, "a", None, NAN, INF, [1.0]], "level": [*NO_LEVELS, None],
    }),
    "the mean of Feldman and Cousins": (some(feldman_cousins_gaussian, x=1.0), {
        "x": ["a", None, NAN, [1.0]], "low": ["a", None, NAN], "level": [*NO_LEVELS, None],
    }),
    "coverage": (
        lambda **options: mf.toy_study(MODEL, toys=2, events=20, seed=1, progress=False).coverage(**({"name": "mu"} | options)),
        {"name": NO_NAMES, "level": [*NO_LEVELS, None]},
    ),
    "a dataset": (some(mf.Dataset, source={"x": [0.1]}), {
        "observables": [1, "x", [], ["x"], [X, X], MODEL], "weights": ["w", 1.0, [1.0, 2.0], ["a"], [NAN], [[1.0]], {"w": 1}],
    }),
    "cut": (some(mf.Dataset.cut, source={"x": [0.1]}, observables=X), {"observables": [1, None, "x", []]}),
    "files": (some(mf.read, path="nowhere.npz", observables=X), {"path": [3, None, [], [3], b"a.npz", {"a": 1}], "observables": [1, None], "weights": [3, ["w"]]}),
}  # fmt: skip

LIKELIHOOD = mf.Likelihood(MODEL, DATA)
TOYS = mf.ToyResults(
    ("mu",),
    {"mu": 0.1},
    *np.ones((2, 2, 1)),
    *np.ones((2, 2)),
    np.ones(2, bool),
    np.zeros(2, int),
    np.full(2, 9),
    1,
)
# of every kind that somebody may confuse with another
THINGS = [
    None, [], "abc", {}, 3.5, -1, NAN, True, 1j, [None], {"a": 1}, DATA, MODEL, LIKELIHOOD, MODEL.parameters[0], X, BEST,
    np.zeros((2, 3)), b"x", (1, 2, 3), 10**400, int,
]  # fmt: skip
# calls of which every argument is replaced by every thing, which must be taken or refused in a sentence
ANYTHING = {
    "observable": (mf.Observable, {"name": "q", "low": 0, "high": 1}),
    "parameter": (mf.Parameter, {"name": "q", "start": 1}),
    "density": (mf.Density, {"formula": np.exp(-X), "observables": X}),
    "category": (mf.Category, {"name": "c", "labels": ["a", "b"]}),
    "dataset": (mf.Dataset, {"source": {"x": [0.1]}}),
    "constraint": (mf.constraint, {"quantity": MODEL.parameters[0], "value": 0.1, "error": 0.1}),
    "formula": (mf.constraint, {"quantity": MODEL.parameters[0] ** 2}),
    "combine": (mf.combine, {"results": [BEST, BEST]}),
    "draw": (mf.draw, {"model": MODEL}),
    "explain": (mf.explain, {"model": MODEL}),
    "least squares": (mf.LeastSquares, {"function": MODEL.parameters[0] * X, "x": [0.1], "y": [0.2], "y_errors": [0.1]}),
    "binned": (mf.BinnedLikelihood, {"model": MODEL, "histogram": (np.ones(2), np.array([-5.0, 0.0, 5.0]))}),
    "cut": (mf.Dataset.cut, {"source": {"x": [0.1]}, "observables": X}),
    "inside": (DATA.inside, {"region": {"x": (0, 1)}}),
    "weights": (DATA.with_weights, {"weights": np.ones(50)}),
    "marginal": (MODEL.marginal, {"observables": "x"}),
    "replace": (MODEL.replace, {"replacements": {"mu": 0.2}}),
    "choose": (MODEL.choose, {"labels": {}}),
    "probability": (MODEL.probability_in, {"ranges": {"x": (0, 1)}}),
    "value": (LIKELIHOOD.value, {"x": [0.1, 1.0]}),
    "likelihoods": (LIKELIHOOD.__add__, {"other": mf.Likelihood(MODEL, DATA)}),
    "correlation": (BEST.correlation_of, {"one": "mu", "other": "sigma"}),
    "budget": (BEST.error_budget, {"parameter": "mu", "groups": {"s": "sigma"}}),
    "derived of toys": (TOYS.derived, {"formula": MODEL.parameters[0]}),
    "pulls": (TOYS.pulls, {"name": "mu"}),
    "ways": (TOYS.fraction_by, {"how": "newton"}),
    "join": (mf.ToyResults.join, {"parts": [TOYS]}),
    "kernel": (mf.explain(MODEL).kernel, {"order": 2}),
    "from_json": (mf.FitResult.from_json, {"source": BEST.to_json()}),
}  # fmt: skip

CASES = [
    pytest.param(call, {argument: value}, id=f"{name}-{argument}-{k}")
    for name, (call, arguments) in CALLS.items()
    for argument, values in arguments.items()
    for k, value in enumerate(values)
]


@pytest.mark.parametrize(("call", "change"), CASES)
def test_what_makes_no_sense_is_refused(call, change):
    with pytest.raises(MorefitError) as caught:
        call(**change)
    assert str(caught.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ANYTHING)
def test_any_thing_in_the_place_of_any_argument_is_taken_or_refused_in_a_sentence(name):
    # many used to be errors of Python: "object of type 'int' has no len()", "unhashable type: 'list'"
    call, usual = ANYTHING[name]
    call(**usual)
    failures = []
    for argument in inspect.signature(call).parameters:
        for thing in THINGS:
            try:
                call(**(usual | {argument: thing}))
            except Exception as error:
                if isinstance(error, MorefitError) and str(error):
                    continue
                failures.append(f"{argument}={thing!r:.40}: {type(error).__name__}: {error!s:.60}")
    assert not failures, "\n".join(failures)


def test_a_wrong_type_is_named_with_what_is_declared():
    with pytest.raises(mf.OptionError, match="draw: argument 'limit' must be a whole number, got None"):
        mf.draw(MODEL, limit=None)
    with pytest.raises(
        mf.OptionError, match="argument 'precompute' must be one of 'auto', 'all', 'none', got \\[\\]"
    ):
        mf.explain(MODEL, precompute=[])
    with pytest.raises(
        mf.OptionError, match="argument 'measured' must be a Parameter or a list of Parameter, got 3"
    ):
        mf.constraint(MODEL.parameters[0], 0.1, 0.1, measured=3)
    with pytest.raises(
        mf.ModelError, match="likelihood: is added to other likelihoods and to constraints alone, got 3"
    ):
        LIKELIHOOD + 3
    with pytest.raises(AttributeError, match=r"no attribute 'x'; data\['x'\] is its column"):
        DATA.x  # noqa: B018
    with pytest.raises(
        mf.OptionError, match=r"report: argument 'path' is missing; the order is report\(path, likelihood\)"
    ):
        BEST.report()


def test_errors_of_functions_of_users_are_not_taken_for_those_of_arguments():
    def fails(data, values):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        mf.toy_study(MODEL, toys=1, events=20, statistic=fails, progress=False)


@pytest.mark.parametrize("name", [n for n in CALLS if "interval" not in n and n not in ("coverage", "files")])
def test_what_makes_sense_is_accepted(name):
    call, _ = CALLS[name]
    call()


def test_a_level_in_per_cent_is_told_how_to_write():
    with pytest.raises(mf.OptionError, match=r"level must lie between 0 and 1, got 68; write 0.68 for 68 %"):
        feldman_cousins_poisson(1, 1.0, 68)


def test_what_a_statistic_must_return_is_said():
    with pytest.raises(mf.ModelError, match="statistic must return a number, or numbers by name, got 'much'"):
        mf.toy_study(MODEL, toys=2, events=20, seed=1, statistic=lambda d, v: "much", progress=False)
    with pytest.raises(
        mf.OptionError, match="statistic must be a function of a dataset and fitted values, got 1"
    ):
        mf.toy_study(MODEL, toys=2, events=20, seed=1, statistic=1, progress=False)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mu": "0.1"}, "parameter 'mu': truth must be a finite number, got '0.1'"),
        ([("mu", 0.1)], r"truth must be numbers by name, as in \{'mu': 1.0\}, got \[\('mu', 0.1\)\]"),
        ({0: 1.0}, r"truth must be numbers by name, as in \{'mu': 1.0\}, got the name 0"),
    ],
)
def test_values_go_by_name(values, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.generate(MODEL, 5, truth=values)
    with pytest.raises(mf.ModelError, match=message):
        mf.toy_study(MODEL, toys=1, events=5, truth=values, progress=False)


def test_whole_numbers_may_be_written_as_others():
    assert len(bootstrap(likelihood(), replicas=2.0, best=BEST, progress=False)) == 2
    assert feldman_cousins_poisson(1.0, np.float32(1.0)) == feldman_cousins_poisson(1, 1.0)


def test_a_seed_of_a_bootstrap_is_a_whole_number():
    # 1.5 used to be taken
    with pytest.raises(mf.OptionError, match=r"seed: must be a whole number from 0 to 2\*\*64 - 1, got 1.5"):
        bootstrap(likelihood(), replicas=2, seed=1.5, best=BEST, progress=False)


def test_a_model_and_a_likelihood_are_told_apart():
    with pytest.raises(
        mf.ModelError, match=r"model: must be a density, such as mf.Gaussian\(x, mu, sigma\), got 1"
    ):
        mf.generate(1, 5)
    with pytest.raises(
        mf.FitError, match=r"profile: a model needs data; pass mf.Likelihood\(model, data\), or data="
    ):
        profile(MODEL, "mu")
    with pytest.raises(mf.OptionError, match=r"profile: best must be what mf.fit returns, got 1"):
        profile(likelihood(), "mu", best=1)
    with pytest.raises(mf.BackendError, match="backend 1: not known; use one of 'auto', 'cpu'"):
        mf.generate(MODEL, 5, backend=1)
    with pytest.raises(mf.DataError, match="fit_many: needs a list of datasets, got one of type Dataset"):
        mf.fit_many(MODEL, DATA)
    with pytest.raises(mf.DataError, match="files: must be named by paths or patterns, got 3"):
        mf.read(3, X)


def test_a_belt_is_not_told_twice_where_it_is():
    with pytest.raises(
        mf.ModelError, match="truth must be of other parameters than 'mu', whose values are tested"
    ):
        neyman_belt(MODEL, "mu", [0.1], events=5, truth={"mu": 0.2})


def test_weights_of_files_are_a_column():
    with pytest.raises(
        mf.DataError, match=r"weights: must be the name of a column, or a formula of observables, got \['w'\]"
    ):
        mf.read("nowhere.npz", X, weights=["w"])


def test_habits_of_other_libraries_are_refused_with_the_way_out():
    with pytest.raises(mf.ModelError, match=r"start must lie in .*; the order is name, start, low, high"):
        mf.Parameter("mean", -10, 10)
    for values in (BEST, BEST.values, {"mu": 0.1}):
        with pytest.raises(
            mf.ModelError,
            match=r"observable: must be one of the model or its name, got \w+; pass that as values=",
        ):
            mf.plot(MODEL, DATA, values)
    with pytest.raises(mf.OptionError, match="likelihood: is called with numbers one by one"):
        mf.Likelihood(MODEL, DATA)([0.1, 1.0])
