"""Simultaneous models: against sums of likelihoods written by hand, on all backends, and what is refused."""

import pickle

import numpy as np
import pytest

import morefit as mf
from tolerances import REORDERED

M = mf.Observable("m", 5.0, 6.0)
MU = mf.Parameter("mu", 5.28, 5.2, 5.4)
LABELS = ("2016", "2017", "2018")


def density(k, *, extended=True):
    sigma, slope = mf.Parameter(f"sigma{k}", 0.03, 0.01, 0.1), mf.Parameter(f"slope{k}", -1, -9, 3)
    shapes = [mf.Gaussian(M, MU, sigma), mf.Exponential(M, slope)]
    if not extended:
        return mf.Sum(shapes, fractions=[mf.Parameter(f"f{k}", 0.4, 0, 1)])
    start = 100.0 * (k + 1)
    yields = [mf.Parameter(f"s{k}", start, 0, 5e3), mf.Parameter(f"b{k}", 2 * start, 0, 5e3)]
    return mf.Sum(shapes, yields=yields)


MODELS = mf.Simultaneous({label: density(k) for k, label in enumerate(LABELS)}, "year")
SHAPES = mf.Simultaneous({label: density(k, extended=False) for k, label in enumerate(LABELS)}, "year")
DATA = mf.generate(MODELS, seed=1)
PARTS = DATA.by_label("year")


def by_hand(**options):
    return sum(mf.Likelihood(MODELS[label], PARTS[label], **options) for label in LABELS)


def start(term):
    return np.array([p.start for p in term.parameters])


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_it_is_the_sum_of_likelihoods(backend):
    own, hand = mf.Likelihood(MODELS, DATA, backend=backend), by_hand(backend="cpu")
    assert [p.name for p in own.parameters] == [p.name for p in hand.parameters]
    x = start(own) * 1.01
    for name in ("value", "gradient", "hessian"):
        expected = getattr(hand, name)(x)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(own, name)(x), expected, rtol=REORDERED, atol=REORDERED * scale)
    result, expected = mf.fit(MODELS, DATA, backend=backend), mf.fit(hand)
    assert result.valid
    assert result.nll == pytest.approx(expected.nll, abs=1e-6)
    assert result.errors["mu"] == pytest.approx(expected.errors["mu"], rel=1e-6)


SOURCES = {
    "a frame": lambda: DATA.to_pandas(),
    "columns": lambda: DATA.columns,
    "whole numbers": lambda: {"m": DATA["m"], "year": DATA["year"].astype(int)},
    "datasets by label": lambda: PARTS,
    "arrays by number": lambda: {int(label): own["m"] for label, own in PARTS.items()},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_data_come_in_one_table_or_by_label(source):
    assert mf.Likelihood(MODELS, source()).value(start(by_hand())) == mf.Likelihood(MODELS, DATA).value(
        start(by_hand())
    )


def test_alike_categories_share_one_program():
    likelihood = mf.Likelihood(MODELS, DATA)
    assert len({id(part.sums(2)) for part in likelihood.parts}) == 1
    assert len({id(part.sums(2)) for part in mf.Likelihood(SHAPES, DATA).parts}) == 1
    copy = pickle.loads(pickle.dumps(likelihood))
    assert copy.value(start(copy)) == likelihood.value(start(likelihood))
    one = mf.Simultaneous({**MODELS.models, "2018": mf.Gaussian(M, MU, 0.03)}, "year")
    assert len({id(part.sums(2)) for part in mf.Likelihood(one, DATA).parts}) == 2


def test_programs_that_are_shared_read_the_parameters_of_their_own_category():
    """One program, the same floating parameters in the same order, but another of them in the second category."""
    a, b, width = mf.Parameter("a", 5.2, 5, 6), mf.Parameter("b", 5.6, 5, 6), mf.Parameter("w", 0.1, 0.01, 1)
    data = {"x": {"m": np.full(9, 5.3) + np.linspace(-0.1, 0.1, 9)}, "y": {"m": np.linspace(5.5, 5.9, 9)}}
    both = mf.constraint(b - 0.001 * a, 5.65, 0.01)
    for second in (a, b, a):
        models = {"x": mf.Gaussian(M, a, width), "y": mf.Gaussian(M, second, width)}
        hand = sum(mf.Likelihood(model, data[label]) for label, model in models.items()) + both
        result = mf.fit(mf.Simultaneous(models, "c"), data, constraints=both)
        expected = mf.fit(hand)
        assert result.values["a"] == pytest.approx(expected.values["a"], abs=1e-6)
        assert result.values["b"] == pytest.approx(expected.values["b"], abs=1e-6)


def test_a_constraint_that_names_parameters_of_two_categories_counts_once():
    first, last = (next(p for p in MODELS.parameters if p.name == name) for name in ("sigma0", "sigma2"))
    tie = mf.constraint(last - first, 0.0, 1e-4)
    result, expected = mf.fit(MODELS, DATA, constraints=tie), mf.fit(by_hand() + tie)
    assert result.nll == pytest.approx(expected.nll, abs=1e-6)
    assert result.errors["sigma2"] == pytest.approx(expected.errors["sigma2"], rel=1e-5)


def test_derived_parameters_are_shared_by_name():
    ratio = mf.Parameter("ratio", 2.0, 0.1, 10)
    width = mf.Parameter("width", 0.02, 0.005, 0.1)
    models = {
        "narrow": mf.Gaussian(M, MU, width),
        "wide": mf.Gaussian(M, MU, mf.Derived("wider", ratio * width)),
    }
    both = mf.Simultaneous(models, "kind")
    data = mf.generate(both, {"narrow": 500, "wide": 500}, seed=2)
    result = mf.fit(both, data)
    assert list(result.values) == ["mu", "width", "ratio"]
    hand = sum(mf.Likelihood(models[label], own) for label, own in data.by_label("kind").items())
    assert result.nll == pytest.approx(mf.fit(hand).nll, abs=1e-6)


def test_ranges_are_those_of_all_categories_or_of_each():
    sides = {"m": [(5.0, 5.2), (5.4, 6.0)]}
    x = start(by_hand())
    assert mf.Likelihood(MODELS, DATA, ranges=sides).value(x) == pytest.approx(by_hand(ranges=sides).value(x))
    one = mf.Likelihood(MODELS, DATA, ranges={"2017": sides})
    assert [part.events < len(PARTS[label]) for part, label in zip(one.parts, LABELS, strict=True)] == [
        False, True, False,
    ]  # fmt: skip
    for wrong in ({"2017": sides, "m": (5, 6)}, {"2019": sides}):
        with pytest.raises(mf.OptionError, match=r"category 'year': has no label '(m|2019)'"):
            mf.Likelihood(MODELS, DATA, ranges=wrong)


def test_weights_are_split_as_the_events_are():
    weights = np.linspace(0.5, 1.5, len(DATA))
    frame = DATA.to_pandas().assign(w=weights)
    expected = mf.fit(MODELS, DATA.with_weights(weights))
    for data, own in ((DATA, weights), (frame, "w")):
        assert mf.fit(MODELS, data, weights=own).errors["mu"] == expected.errors["mu"]
    each = {label: weights[DATA["year"] == label] for label in LABELS}
    assert mf.fit(MODELS, PARTS, weights=each).errors["mu"] == expected.errors["mu"]
    with pytest.raises(mf.DataError, match="simultaneous: data by label need their weights by label as well"):
        mf.fit(MODELS, PARTS, weights=weights)


def test_histograms_by_label_are_binned_parts():
    bins = {label: np.histogram(own["m"], bins=20, range=(5, 6)) for label, own in PARTS.items()}
    hand = sum(mf.BinnedLikelihood(MODELS[label], bins[label]) for label in LABELS)
    assert mf.fit(MODELS, bins).nll == pytest.approx(mf.fit(hand).nll, abs=1e-6)
    with pytest.raises(
        mf.DataError, match="category '2016': dataset: a histogram has its variances and its bins"
    ):
        mf.fit(MODELS, bins, ranges={"m": (5.1, 5.9)})
    with pytest.raises(mf.DataError, match="simultaneous: a histogram has no labels; give a mapping"):
        mf.fit(MODELS, bins["2016"])


# --------------------------------------------------------------------------------------- events


def test_generation_draws_each_category_into_one_table():
    data = mf.generate(SHAPES, {"2016": 3, "2017": 0, 2018: 2}, seed=1)
    assert data["year"].tolist() == ["2016"] * 3 + ["2018"] * 2
    assert data.labels == {"year": LABELS}
    again = mf.generate(SHAPES, {"2016": 3, "2017": 0, 2018: 2}, seed=1)
    np.testing.assert_array_equal(data["m"], again["m"])
    assert mf.generate(MODELS, ranges={"m": (5.1, 5.2)}, seed=1)["m"].max() <= 5.2


@pytest.mark.parametrize(
    "draw", [mf.generate, lambda m, e: mf.toy_study(m, toys=2, events=e, progress=False)]
)
@pytest.mark.parametrize(
    ("events", "error", "says"),
    [
        (None, mf.ModelError, "events is missing for '2016', '2017', '2018'; the model predicts no number"),
        ({"2016": 5}, mf.ModelError, "events is missing for '2017', '2018'"),
        (100, mf.ModelError, r"events must be numbers by label, as in \{'2016': 1000\}, got 100"),
        ({"2015": 5}, mf.OptionError, "category 'year': has no label '2015'"),
        ({"2016": -5}, mf.ModelError, "events is missing"),
        (dict.fromkeys(LABELS, 1.5), mf.OptionError, "events of '2016' must be a whole number, got 1.5"),
    ],
)
def test_numbers_of_events_are_checked(draw, events, error, says):
    with pytest.raises(error, match=says):
        draw(SHAPES, events)


def test_generation_says_what_is_missing():
    two = mf.Simultaneous({"a": density(0), "b": mf.Gaussian(mf.Observable("t", 0, 1), 0.5, 0.1)}, "kind")
    with pytest.raises(mf.ModelError, match="needs the same observables in all categories; draw each"):
        mf.generate(two, {"b": 3})
    with pytest.raises(mf.ModelError, match="generate: no category has a parameter 'nu'"):
        mf.generate(MODELS, truth={"nu": 1})
    with pytest.raises(mf.ModelError, match="generate: no category is given anything; leave given out"):
        mf.generate(MODELS, given=DATA)
    with pytest.raises(mf.ModelError, match="a model has one number of events, got numbers by name"):
        mf.generate(MODELS["2016"], {"2016": 3})


def test_categories_may_be_conditional():
    error = mf.Observable("error", 0.01, 0.1)
    scales = {label: mf.Parameter(f"scale_{label}", 1, 0.5, 2) for label in ("a", "b")}
    models = mf.Simultaneous(
        {label: mf.Gaussian(M, MU, error * scale, given=[error]) for label, scale in scales.items()}, "kind"
    )
    given = {"error": np.linspace(0.02, 0.05, 300), "kind": np.where(np.arange(300) % 3, "a", "b")}
    data = mf.generate(models, given=given, seed=1)
    assert data["kind"].tolist() == ["a"] * 200 + ["b"] * 100
    assert mf.fit(models, data).valid
    assert mf.toy_study(models, toys=2, given=given, seed=1, progress=False).events.tolist() == [300, 300]


def test_numerical_integrals_share_programs_too():
    widths = [mf.Parameter(f"w{k}", 0.2 + 0.05 * k, 0.05, 1) for k in range(2)]
    peak = mf.Parameter("peak", 5.5, 5.2, 5.8)
    models = mf.Simultaneous(
        {k: mf.Density(np.exp(-(((M - peak) / w) ** 4)) + 0.1 * M, M) for k, w in enumerate(widths)}, "kind"
    )
    data = mf.generate(models, {0: 300, 1: 400}, seed=1)
    own = mf.Likelihood(models, data)
    hand = sum(mf.Likelihood(models[label], part) for label, part in data.by_label("kind").items())
    assert len({id(part.sums(2)) for part in own.parts}) == 1
    x = [5.45, 0.25, 0.3]
    np.testing.assert_allclose(own.hessian(x), hand.hessian(x), rtol=1e-9)
    assert mf.fit(own).nll == pytest.approx(mf.fit(hand).nll, abs=1e-6)


def test_toys_are_those_of_the_sum_of_likelihoods():
    own = mf.toy_study(MODELS, toys=5, seed=3, progress=False)
    hand = mf.toy_study(by_hand(), toys=5, seed=3, progress=False)
    np.testing.assert_allclose(own.values, hand.values, rtol=1e-6)
    assert own.valid.all()
    back = mf.Simultaneous({label: MODELS[label] for label in LABELS[::-1]}, "year")
    other = mf.toy_study(MODELS, toys=5, seed=3, fit_model=back, progress=False)
    np.testing.assert_allclose(other.values, own.values, rtol=1e-6)
    with pytest.raises(
        mf.ModelError, match="simultaneous: both models must have the labels '2016', got Simul"
    ):
        mf.toy_study(MODELS, toys=5, fit_model=mf.Simultaneous({"2016": density(0)}, "year"), progress=False)


def test_toys_with_fixed_numbers_and_many_datasets():
    numbers = {"2016": 200, "2017": 300, "2018": 400}
    study = mf.toy_study(SHAPES, toys=3, events=numbers, seed=3, progress=False)
    assert study.events.tolist() == [900] * 3
    datasets = [mf.generate(SHAPES, numbers, seed=k) for k in range(2)]
    fits = mf.fit_many(SHAPES, [datasets[0], datasets[1].by_label("year")])
    assert fits.nll.tolist() == pytest.approx([mf.fit(SHAPES, data).nll for data in datasets], abs=1e-6)


def test_a_study_resumes_only_with_the_same_categories(tmp_path):
    path = tmp_path / "toys.npz"
    study = mf.toy_study(MODELS, toys=2, seed=3, save=path, progress=False)
    more = mf.toy_study(MODELS, toys=3, seed=3, save=path, progress=False)
    np.testing.assert_array_equal(more.values[:2], study.values)
    swapped = mf.Simultaneous({"2016": density(1), "2017": density(0), "2018": density(2)}, "year")
    with pytest.raises(mf.MorefitError, match="part 0"):
        mf.toy_study(swapped, toys=3, seed=3, save=path, progress=False)


# --------------------------------------------------------------------------------------- what is refused


def test_a_category_without_events_is_a_measurement_of_its_yields():
    rest = DATA[DATA["year"] != "2017"]
    result = mf.fit(MODELS, rest, fixed={"sigma1": 0.03, "slope1": -1})
    assert result.values["s1"] == pytest.approx(0, abs=1e-3)
    assert not mf.fit(SHAPES, rest).valid  # nothing measures its parameters
    with pytest.raises(mf.DataError, match="dataset: has no events; there is nothing to fit"):
        mf.fit(SHAPES, DATA[:0])


DATA_REFUSED = {
    "a label without data": (lambda: {k: PARTS[k] for k in LABELS[:2]}, mf.DataError, "simultaneous: data must have every label, got none for '2018'"),
    "a label without model": (lambda: {**PARTS, "2019": DATA}, mf.OptionError, "category 'year': has no label '2019'"),
    "no labels in a mapping": (lambda: {"m": DATA["m"]}, mf.DataError, "simultaneous: data must have the column 'year' of labels, or a dataset for each of '2016', '2017', '2018', got 'm'"),
    "no labels in a dataset": (lambda: mf.Dataset({"m": DATA["m"]}), mf.DataError, "category 'year': missing; there are 'm'"),
    "an unknown label": (lambda: {"m": [5.5], "year": [2015]}, mf.DataError, "category 'year': 1 of 1 events have labels that are not known, '2015'"),
    "no label": (lambda: {"m": [5.5], "year": [np.nan]}, mf.DataError, "category 'year': 1 of 1 events have no label"),
    "out of range": (lambda: {"m": [7.5], "year": [2016]}, mf.DataError, "category '2016': dataset: observable 'm': 1 of 1 events lie outside"),
    "nothing": (lambda: None, mf.FitError, "fit: a model needs data"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "error", "says"), DATA_REFUSED.values(), ids=DATA_REFUSED)
def test_data_that_do_not_match_the_labels_are_refused(data, error, says):
    with pytest.raises(error, match=says):
        mf.fit(MODELS, data())


def test_other_labels_are_dropped_if_the_category_says_so():
    models = {label: MODELS[label] for label in LABELS[:2]}
    some = mf.Simultaneous(models, mf.Category("year", LABELS[:2], other="drop"))
    assert mf.Likelihood(some, DATA).events == len(PARTS["2016"]) + len(PARTS["2017"])


MODELS_REFUSED = {
    "arguments swapped": (("year", {"a": density(0)}), "simultaneous: needs models by label, as in .*, got 'year'"),
    "a list": (([density(0)], "year"), "simultaneous: needs models by label"),
    "no models": (({}, "year"), "simultaneous: needs models by label, as in .*, got {}"),
    "no density": (({"a": 3}, "year"), "model: must be a density"),
    "one label twice": (({"1": density(0), 1: density(1)}, "year"), "category 'year': labels must differ, got '1' twice"),
    "no label": (({None: density(0)}, "year"), "category 'year': labels must be text or whole numbers, got None"),
    "the name of an observable": (({"a": density(0)}, "m"), "simultaneous: 'm' names an observable and the category; rename one"),
    "a label named as a column": (({"m": density(0)}, "year"), "simultaneous: 'm' names a column and a label; rename one"),
    "another category": (({"a": density(0)}, mf.Category("year", ["a", "b"])), "the category 'year' must have the labels of the models, 'a', got 'a', 'b'"),
    "two parameters of a name": (({"a": density(0), "b": mf.Gaussian(M, mf.Parameter("mu", 5.5, 5, 6), 0.1)}, "year"), "parameter 'mu': two different ones share this name"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), MODELS_REFUSED.values(), ids=MODELS_REFUSED)
def test_models_that_make_no_sense_are_refused(arguments, says):
    with pytest.raises(mf.ModelError, match=says):
        mf.Simultaneous(*arguments)


def test_it_prints_its_models_and_explains_its_kernels():
    assert repr(MODELS) == "Simultaneous('year': 2016, 2017, 2018)"
    lines = str(MODELS).splitlines()
    assert lines[:3] == ["Simultaneous in 3 categories of 'year'", "2016:", "  Sum in m from 5 to 6"]
    assert len(mf.explain(MODELS, DATA).parts) == 3
    assert MODELS[2017] is MODELS["2017"]
    with pytest.raises(mf.OptionError, match=r"category 'year': has no label '2019'; did you mean '2018'"):
        MODELS["2019"]


# --------------------------------------------------------------------------------------- choices

SLOPED = mf.Exponential(M, mf.Parameter("slope", -1, -9, 3))
SHAPE = mf.Choice("shape", {"falling": SLOPED, "flat": mf.Uniform(M)})
EITHER = mf.Simultaneous(
    {
        label: mf.Sum([mf.Gaussian(M, MU, 0.03), SHAPE], fractions=[mf.Parameter(f"f{k}", 0.4, 0, 1)])
        for k, label in enumerate(LABELS[:2])
    },
    "year",
)


def test_a_choice_that_categories_share_is_decided_once_for_all():
    falling = EITHER.choose({"shape": "falling"})
    data = mf.generate(falling, events={"2016": 500, "2017": 700}, truth={"slope": -3.0}, seed=1)
    result = mf.fit(EITHER, data)
    assert result.choices == {"shape": "falling"} and set(result.alternatives) == {"falling", "flat"}
    expected = mf.fit(falling, data)
    assert dict(result.values) == dict(expected.values)
    assert result.alternatives["falling"] == pytest.approx(expected.nll + 0.5)
    scan = mf.intervals.profile(EITHER, "mu", [5.27, 5.28], data=data, progress=False)
    assert scan.choices == ("falling", "falling")


def test_what_cannot_be_decided_is_refused():
    with pytest.raises(mf.ModelError, match="choice 'shape': is not decided"):
        mf.generate(EITHER, events={"2016": 500, "2017": 700})
    with pytest.raises(mf.ModelError, match="choice 'shapes': in no category; did you mean 'shape'"):
        EITHER.choose({"shapes": "flat"})
    other = mf.Choice("shape", {"flat": mf.Uniform(M), "falling": SLOPED})
    with pytest.raises(mf.ModelError, match="choice 'shape': two different ones share this name"):
        mf.fit(mf.Simultaneous({"a": SHAPE, "b": other}, "year"), {"a": [5.1, 5.2], "b": [5.3, 5.4]})


def test_methods_of_densities_are_those_of_its_models():
    with pytest.raises(AttributeError, match=r"has no 'pdf', which its models have; .* models\['2016'\].pdf"):
        MODELS.pdf(DATA)
    with pytest.raises(AttributeError, match="object has no attribute 'pfd'"):
        MODELS.pfd(DATA)


def test_parts_are_replaced_in_all_models_that_have_them():
    changed = MODELS.replace({"mu": 5.3, "sigma1": mf.Parameter("width", 0.04, 0.01, 0.1)})
    names = [p.name for p in changed.parameters]
    assert "mu" not in names
    assert [label for label in LABELS if "width" in {p.name for p in changed[label].parameters}] == ["2017"]
    assert [p.name for p in changed["2016"].parameters] == ["sigma0", "slope0", "s0", "b0"]
    with pytest.raises(mf.ModelError, match="replace: 'sigma7' is not one part of the model; did you mean"):
        MODELS.replace({"sigma7": 1.0})
