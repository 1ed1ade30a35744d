"""What makes a study this one: whatever its numbers depend on, changed alone, is noticed when it is resumed."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from morefit.errors import DataError, ModelError
from morefit.intervals import feldman_cousins, neyman_belt
from morefit.jobs import digest
from morefit.jobs.checkpoint import differences
from morefit.jobs.digest import fingerprint
from morefit.toys.study import toy_study

SCALE = 2.0


def model(*, low=-5.0, high=5.0, mu=(0.1, -1.0, 1.0), sigma=1.0, fixed=False, factor=1.0):
    """Return a Gaussian with a Gaussian background; every argument changes results."""
    x = mf.Observable("x", low, high)
    width = mf.Parameter("sigma", sigma, 0.1, 5.0, fixed=fixed)
    parts = [mf.Gaussian(x, mf.Parameter("mu", *mu), width), mf.Gaussian(x, 0.0, 3.0 * factor)]
    return mf.Sum(parts, fractions=[mf.Parameter("f", 0.7, 0.0, 1.0)])


# ------------------------------------------------------------------------------------ models

# what is changed, and what the message says of it
CHANGES = {
    "limits": (
        {"mu": (0.1, -1.0, 2.0)},
        r"limits mu is '\[-1.0, 1.0\]' in the file, '\[-1.0, 2.0\]' requested",
    ),
    "an open limit": ({"mu": (0.1,)}, r"limits mu is '\[-1.0, 1.0\]' in the file, '\[-inf, inf\]' requested"),
    "what is fixed": ({"fixed": True}, "fixed sigma is False in the file, True requested"),
    "the range": ({"high": 6.0}, r"ranges x is '\[-5.0, 5.0\]' in the file, '\[-5.0, 6.0\]' requested"),
    "a number": ({"factor": 1 - 1e-15}, "looks like that of the file but is not the same: numbers in it"),
}


@pytest.mark.parametrize("which", ["model", "fitted model"])
@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_study_of_another_model_is_not_resumed(tmp_path, which, change, message):
    # with limits left out of the fingerprint, no test used to fail
    options = {"toys": 2, "events": 60, "seed": 7, "save": tmp_path / "study.npz", "progress": False}
    other, truth = model(**change), {"mu": 0.1}
    toy_study(model(), fit_model=model(), truth=truth, **options)
    generated, fitted = (other, model()) if which == "model" else (model(), other)
    if "high" in change:  # a fitted model must span the range that is drawn
        generated = fitted = other
        which = "(fitted )?model"
    with pytest.raises(DataError, match=f"different study: {which} {message}"):
        toy_study(generated, fit_model=fitted, truth=truth, **options)


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_constructions_for_another_model_are_not_resumed(tmp_path, change, message):
    scan = {"toys": 2, "seed": 1, "save": tmp_path / "scan.npz", "progress": False}
    belt = scan | {"save": tmp_path / "belt.npz", "events": 60}
    data = mf.generate(model(), 60, seed=1)
    feldman_cousins(mf.Likelihood(model(), data), "f", [0.5], **scan)
    neyman_belt(model(), "f", [0.5], **belt)
    with pytest.raises(DataError, match=f"the file belongs to a different scan: model {message}"):
        feldman_cousins(mf.Likelihood(model(**change), data), "f", [0.5], **scan)
    with pytest.raises(DataError, match=f"the file belongs to a different scan: model {message}"):
        neyman_belt(model(**change), "f", [0.5], **belt)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": [0.4]}, r"values is \[0.5\] in the file, \[0.4\] requested"),
        ({"events": 61}, r"events is \[60\] in the file, \[61\] requested"),
        ({"truth": {"mu": 0.2}}, "data looks like that of the file but is not the same"),
        ({"toys": 3}, "toys is 2 in the file, 3 requested"),
        ({"seed": 2}, "seed is 1 in the file, 2 requested"),
        ({"estimator": lambda d: d["x"].mean()}, "estimator is None in the file, '.*<lambda>' requested"),
        ({"parameter": "mu"}, "parameter is 'f' in the file, 'mu' requested"),
    ],
    ids=lambda change: next(iter(change)) if isinstance(change, dict) else "",
)
def test_another_belt_is_not_resumed(tmp_path, change, message):
    options = {"parameter": "f", "points": [0.5], "events": 60, "toys": 2, "seed": 1, "progress": False}
    make = partial(neyman_belt, model(), save=tmp_path / "belt.npz")
    make(**options)
    with pytest.raises(DataError, match=message):
        make(**(options | change))


def test_another_estimator_is_not_resumed(tmp_path):
    # only its name used to be compared, and all lambdas have the same
    make = partial(neyman_belt, model(), "f", [0.5], events=60, toys=2, seed=1, save=tmp_path / "belt.npz")
    make(estimator=lambda d: d["x"].mean(), progress=False)
    with pytest.raises(DataError, match="estimator looks like that of the file but is not the same"):
        make(estimator=lambda d: d["x"].max(), progress=False)


def test_a_model_that_is_drawn_otherwise_is_another():
    x = mf.Observable("x", 0.0, 1.0)

    @dataclass(frozen=True)
    class Slope(mf.Pdf):
        x: mf.Observable

        def density(self):
            return 2 * self.x.expr

        def integral(self):
            return mf.Parameter("one", 1.0, fixed=True).expr

    class Inverted(Slope):
        def quantile(self, probability):
            return np.sqrt(probability)

    assert fingerprint(Slope(x)) == fingerprint(Slope(x))
    assert fingerprint(Slope(x))["digest"] != fingerprint(Inverted(x))["digest"]


def test_differences_are_told_whatever_an_old_file_holds():
    new = {"model": fingerprint(model()), "statistic": {"name": "f", "digest": "1"}}
    old = {"model": "text", "statistic": "module.f", "more": 1}
    assert list(differences(new, new)) == []
    assert [line.partition(" is ")[0] for line in differences(old, new)] == ["model", "statistic", "more"]


# ------------------------------------------------------------------------------------ functions


def closing(value):
    return lambda data, values: value


def default(value):
    def function(data, values, more=value):
        return more

    return function


def keyword(value):
    def function(data, values, *, more=value):
        return more

    return function


def nested(value):
    def function(data, values):
        return [k * value for k in range(3)]

    return function


def calling(value):
    return lambda data, values: value(data)


class Method:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, data, values):
        return self.factor

    def method(self, data, values):
        return self.factor


def two(value):
    return 2 * value


# functions of which each must have a digest of its own
FUNCTIONS = {
    "a constant": lambda d, v: 1.0,
    "another constant": lambda d, v: 2.0,
    "the constant as a whole number": lambda d, v: 1,
    "code": lambda d, v: d["x"].mean(),
    "another attribute": lambda d, v: d["x"].max(),
    "a global number": lambda d, v: SCALE * v["mu"],
    "a closure": closing(1.0),
    "another closure": closing(1.0 + 2**-52),
    "a closure of text": closing("1.0"),
    "a closure of an array": closing(np.array([1.0, 2.0])),
    "a closure of another array": closing(np.array([1.0, 2.5])),
    "a closure of an array in single precision": closing(np.array([1.0, 2.0], np.float32)),
    "a masked array": closing(np.ma.array([1.0, 2.0], mask=[True, False])),
    "a closure of a list": closing([1.0, 2.0]),
    "a closure of a mapping": closing({"a": 1.0}),
    "a closure of a model": closing(model()),
    "a closure of a model with other limits": closing(model(mu=(0.1, -1.0, 2.0))),
    "a closure of a model with another start": closing(model(mu=(0.2, -1.0, 1.0))),
    "a closure of a dataset": closing(mf.Dataset({"x": [1.0]})),
    "a closure of another dataset": closing(mf.Dataset({"x": [2.0]})),
    "a default": default(1.0),
    "another default": default(2.0),
    "a keyword": keyword(1.0),
    "another keyword": keyword(2.0),
    "an inner loop": nested(1.0),
    "another inner loop": nested(2.0),
    "a function that is called": calling(two),
    "another function that is called": calling(lambda value: 3 * value),
    "an installed function": calling(np.mean),
    "another installed function": calling(np.median),
    "an object": Method(1.0),
    "another object": Method(2.0),
    "a method": Method(1.0).method,
    "a partial function": partial(default(1.0), more=3.0),
    "another partial function": partial(default(1.0), more=4.0),
}


def test_functions_that_differ_have_different_digests():
    found = {name: digest.function_digest("statistic", f) for name, f in FUNCTIONS.items()}
    same = [(a, b) for a, b in combinations(found, 2) if found[a] == found[b]]
    assert same == []


def test_a_global_value_is_part_of_a_function(monkeypatch):
    scaled = FUNCTIONS["a global number"]
    before = digest.function_digest("statistic", scaled)
    assert digest.function_digest("statistic", scaled) == before
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert digest.function_digest("statistic", scaled) != before


def test_a_function_that_calls_itself_has_a_digest():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert digest.function_digest("statistic", factorial) == digest.function_digest("statistic", factorial)


def test_a_fit_counts_without_the_time_it_took():
    data = mf.generate(model(), 200, seed=1)
    one, other = mf.fit(model(), data), mf.fit(model(), data)
    assert one.seconds != other.seconds
    first, again = (digest.function_digest("statistic", closing(fit)) for fit in (one, other))
    assert first == again


CODE = """
import json, test_study_facts as t
print(json.dumps({n: t.digest.function_digest("statistic", f) for n, f in t.FUNCTIONS.items()}))
"""


def test_digests_are_the_same_in_every_process():
    paths = os.pathsep.join(
        map(str, [Path(__file__).parent, Path(__file__).parents[1], Path(mf.__file__).parent.parent])
    )
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "3"}
    run = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, check=True)
    here = {name: digest.function_digest("statistic", f) for name, f in FUNCTIONS.items()}
    assert json.loads(run.stdout) == here


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.random.default_rng(1),
            "uses an object of type Generator, .*random numbers are different in every run",
        ),
        (
            (x for x in [1]),
            "uses an object of type generator, which cannot be compared with that of another run",
        ),
        (sys.stdout.__class__, ""),
    ],
    ids=["random numbers", "a generator", "an installed class"],
)
def test_what_cannot_be_compared_is_refused_where_it_is_kept(tmp_path, value, message):
    options = {
        "toys": 2,
        "events": 50,
        "seed": 1,
        "statistic": lambda d, v: 1.0 if value else 0.0,
        "progress": False,
    }
    assert len(toy_study(model(), **options)) == 2
    if not message:
        toy_study(model(), save=tmp_path / "study.npz", **options)
        return
    with pytest.raises(
        ModelError, match=f"toy study: statistic: {message}.*; let it use numbers, .*leave out save="
    ):
        toy_study(model(), save=tmp_path / "study.npz", **options)


def test_a_class_without_a_text_is_refused(tmp_path):
    space = {"__name__": "nowhere"}
    exec("class Own:\n    value = 1.0\n", space)
    own = space["Own"]
    with pytest.raises(ModelError, match=r"class 'Own': its text is in no file.*; define it in a module"):
        digest.function_digest("statistic", lambda d, v: own.value)


@pytest.mark.parametrize("one", ["a constant", "a closure", "a default", "an object"])
def test_another_function_of_the_same_name_is_not_resumed(tmp_path, one):
    # only the name used to be compared, and all lambdas have the same
    other = FUNCTIONS[{"an object": "another object"}.get(one, one.replace("a ", "another ", 1))]
    options = {"toys": 2, "events": 50, "seed": 1, "save": tmp_path / "study.npz", "progress": False}
    toy_study(model(), statistic=FUNCTIONS[one], **options)
    toy_study(model(), statistic=FUNCTIONS[one], **(options | {"toys": 3}))
    with pytest.raises(
        DataError, match="different study: statistic looks like that of the file but is not the same"
    ):
        toy_study(model(), statistic=other, **(options | {"toys": 4}))
