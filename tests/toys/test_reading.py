"""Datasets have the same fits and the same errors in whatever form they are passed."""

import re

import numpy as np
import pytest

import morefit as mf
from ensembles import ensemble_of
from morefit.cli import mass_model
from morefit.likelihood import Likelihood
from morefit.model.physics import KstarMuMu
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl import device as opencl_device
from morefit.targets.opencl import run as opencl_run
from morefit.targets.opencl import staging
from morefit.toys import reading

ONE = Cpu(threads=1)
MASSES = np.stack([d["m"] for d in mf.generate(mass_model(), [400] * 6, seed=3)])
WEIGHTS = np.random.default_rng(1).uniform(0.2, 1.8, MASSES.shape)


def bits(fits):
    return [getattr(fits, name).tobytes() for name in ("values", "errors", "nll", "edm", "events")]


def one_by_one(model, datasets, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_plain", lambda *_: None)
        return mf.fit_many(model, datasets, backend=ONE, **options)


FORMS = {
    "columns": ([{"m": row} for row in MASSES], {}),
    "arrays": (list(MASSES), {}),
    "a table of datasets": (MASSES, {}),
    "single numbers of a table": (MASSES[:, :, None], {}),
    "datasets": ([mf.Dataset({"m": row, "x": row}) for row in MASSES], {}),
    "one column": ({"m": MASSES.ravel()}, {"sizes": 400}),
    "one array": (MASSES.ravel(), {"sizes": np.full(6, 400)}),
    "one table of single precision": ({"m": MASSES.ravel().astype(np.float32)}, {"sizes": [400] * 6}),
    "other columns": ([{"m": row.tolist()} for row in MASSES], {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_datasets_makes_no_difference(form, monkeypatch):
    data, options = FORMS[form]
    rows = MASSES.astype(np.float32) if "single precision" in form else MASSES
    expected = one_by_one(mass_model(), [mf.Dataset({"m": row}) for row in rows], monkeypatch)
    if form != "other columns":
        monkeypatch.setattr(reading, "read_each", None)
    assert bits(mf.fit_many(mass_model(), data, backend=ONE, **options)) == bits(expected)


@pytest.mark.parametrize("some", [range(6), [1, 4]], ids=["all", "some"])
def test_weights_of_all_or_some_datasets_are_those_of_each(some, monkeypatch):
    data = [
        mf.Dataset({"m": row}, weights=weights if k in some else None)
        for k, (row, weights) in enumerate(zip(MASSES, WEIGHTS, strict=True))
    ]
    expected = one_by_one(mass_model(), data, monkeypatch)
    monkeypatch.setattr(reading, "read_each", None)
    assert bits(mf.fit_many(mass_model(), data, backend=ONE)) == bits(expected)


TABLE = {"m": MASSES.ravel(), "w": WEIGHTS.ravel()}
WEIGHTED = {
    "names": ([{"m": m, "w": w} for m, w in zip(MASSES, WEIGHTS, strict=True)], {"weights": "w"}),
    "names in datasets": ([mf.Dataset({"m": m, "w": w}) for m, w in zip(MASSES, WEIGHTS, strict=True)], {"weights": "w"}),
    "arrays": (list(MASSES), {"weights": list(WEIGHTS)}),
    "arrays for datasets": ([mf.Dataset({"m": m}) for m in MASSES], {"weights": WEIGHTS}),
    "a table": (MASSES, {"weights": WEIGHTS}),
    "a dataset": (mf.Dataset(TABLE, weights="w"), {"sizes": 400}),
    "a column": (TABLE, {"sizes": 400, "weights": "w"}),
    "an array": (TABLE, {"sizes": 400, "weights": WEIGHTS.ravel()}),
    "lists": ([{"m": m.tolist()} for m in MASSES], {"weights": WEIGHTS.tolist()}),
    "a formula": ([{"m": m, "w": w} for m, w in zip(MASSES, WEIGHTS, strict=True)], {"weights": mf.Observable("w", 0, 2)}),
    "a formula of a table": (TABLE, {"sizes": 400, "weights": mf.Observable("w", 0, 2)}),
}  # fmt: skip


@pytest.mark.parametrize("form", WEIGHTED)
def test_the_form_of_weights_makes_no_difference(form, monkeypatch):
    data, options = WEIGHTED[form]
    pairs = zip(MASSES, WEIGHTS, strict=True)
    expected = one_by_one(mass_model(), [mf.Dataset({"m": m}, weights=w) for m, w in pairs], monkeypatch)
    if "formula" not in form and form != "lists":
        monkeypatch.setattr(reading, "read_each", None)
    assert bits(mf.fit_many(mass_model(), data, backend=ONE, **options)) == bits(expected)


def test_data_frames_and_their_groups_are_read_where_they_are(monkeypatch):
    pandas = pytest.importorskip("pandas")
    runs = np.repeat([3, 1, 7, 2, 9, 5], 400)
    frame = pandas.DataFrame({"m": MASSES.ravel(), "w": WEIGHTS.ravel(), "run": runs}).sample(
        frac=1, random_state=1
    )
    frame.loc[frame.index[5], "run"] = np.nan  # in no group
    groups = [group for _, group in frame.groupby("run")]
    expected = one_by_one(
        mass_model(), [mf.Dataset({"m": g["m"]}, weights=g["w"]) for g in groups], monkeypatch
    )
    monkeypatch.setattr(reading, "read_each", None)
    columns = [{"m": group["m"], "w": group["w"]} for group in groups]
    for data in (groups, columns, frame.groupby("run")):
        assert bits(mf.fit_many(mass_model(), data, weights="w", backend=ONE)) == bits(expected)
    with pytest.raises(mf.DataError, match="weights of groups must be the name of a column, or a formula"):
        mf.fit_many(mass_model(), frame.groupby("run"), weights=WEIGHTS.ravel())


def test_lists_of_awkward_are_one_table(monkeypatch):
    awkward = pytest.importorskip("awkward")
    sizes = np.array([400, 300, 500, 400, 200, 600])
    cuts = list(
        zip(
            np.split(MASSES.ravel(), sizes.cumsum()[:-1]),
            np.split(WEIGHTS.ravel(), sizes.cumsum()[:-1]),
            strict=True,
        )
    )
    expected = one_by_one(mass_model(), [mf.Dataset({"m": m}, weights=w) for m, w in cuts], monkeypatch)
    masses, weights = (awkward.unflatten(awkward.Array(own.ravel()), sizes) for own in (MASSES, WEIGHTS))
    monkeypatch.setattr(reading, "read_each", None)
    records = awkward.zip({"m": masses, "w": weights})
    for data, own in ((masses, weights), (records, "w"), (records[["m"]], weights)):
        assert bits(mf.fit_many(mass_model(), data, weights=own, backend=ONE)) == bits(expected)
    with pytest.raises(
        mf.DataError, match="weights must be lists as long as those of the events, got others"
    ):
        mf.fit_many(mass_model(), masses, weights=awkward.unflatten(awkward.Array(WEIGHTS.ravel()), 400))


def test_several_observables_are_a_table_or_columns_of_each(monkeypatch):
    angles = [mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1), mf.Observable("phi", -np.pi, np.pi)]
    names = ["FL", "S3", "S4", "S5", "AFB", "S7", "S8", "S9"]
    model = KstarMuMu(*angles, *(mf.Parameter(n, 0.6 if n == "FL" else 0.0, -1, 1) for n in names))
    drawn = mf.generate(model, [200, 200, 200], seed=1)
    table = np.stack([[d[o.name] for o in angles] for d in drawn]).swapaxes(1, 2)
    expected = bits(one_by_one(model, drawn, monkeypatch))
    for data in (table, [d.columns for d in drawn], list(table)):
        assert bits(mf.fit_many(model, data, backend=ONE)) == expected


def test_parts_and_ranges_are_those_of_each(monkeypatch):
    both = Likelihood(mass_model(), {"m": []}) + Likelihood(mass_model(), {"m": []})
    pairs = [[{"m": MASSES[k]}, {"m": MASSES[k + 1][:300]}] for k in range(3)]
    assert bits(mf.fit_many(both, pairs, backend=ONE)) == bits(one_by_one(both, pairs, monkeypatch))
    cut = {"ranges": {"m": (5.0, 6.0)}, "backend": ONE}
    inside = mf.fit_many(mass_model(), list(MASSES), **cut)
    assert inside.events.tolist() == (MASSES <= 6).sum(axis=1).tolist()
    assert bits(mf.fit_many(mass_model(), {"m": MASSES.ravel()}, sizes=400, **cut)) == bits(inside)


def wrong(number, row=3):
    other = MASSES.copy()
    other[row, 7] = number
    return other


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (wrong(np.nan), {}, r"observable 'm': 1 of 400 events are not finite"),
        (list(wrong(7.5)), {}, r"observable 'm': 1 of 400 events lie outside \[5.0, 7.0\]"),
        ([*wrong(7.5), {"x": [1.0]}], {}, r"observable 'm': 1 of 400 events lie outside"),  # the first
        ([{"m": MASSES[0]}, {"x": MASSES[0]}], {}, "observable 'm': missing"),
        ({"m": wrong(7.5).ravel()}, {"sizes": 400}, "observable 'm': 1 of 2400 events lie outside"),
        ({"m": MASSES.ravel()}, {}, "needs a list of datasets, got one of type dict; to fit parts of one, give their"),
        ({"m": MASSES.ravel()}, {"sizes": 7}, "datasets of 7 events must make up the table, got 2400 events"),
        ({"m": MASSES.ravel()}, {"sizes": [400, 7]}, "sizes must add up to the 2400 events of the table, got 407"),
        ({"m": MASSES.ravel()}, {"sizes": [2401, -1]}, "sizes must be at least 0, got -1"),
        ({"m": MASSES.ravel()}, {"sizes": [2400, 0]}, "dataset: has no events; there is nothing to fit"),
        ({"m": []}, {"sizes": []}, "needs at least one dataset, got none"),
        (MASSES, {"weights": WEIGHTS[:2]}, "or an array for each of the 6 datasets, got 2"),
        (MASSES, {"weights": 2.0}, "or an array for each of the 6 datasets, got one of type float"),
        (MASSES, {"weights": np.full((6, 400), np.nan)}, "weights: 400 of 400 weights are not finite"),
        (TABLE, {"sizes": 400, "weights": np.full(2400, np.inf)}, "weights: 2400 of 2400 weights are not finite"),
        (TABLE, {"sizes": 400, "weights": "v"}, "weights: no column 'v'"),
        (list(MASSES), {"weights": list(WEIGHTS[:, :9])}, "weights: length must be 400 as for 'm', got 9"),
        (mf.Dataset({"m": MASSES[0]}, weights=np.r_[-np.ones(200), np.ones(200)]), {"sizes": 200}, "their sum must be positive, got -200"),
    ],
)  # fmt: skip
def test_errors_are_those_of_the_first_dataset_that_is_wrong(data, options, message):
    with pytest.raises(mf.MorefitError, match=message):
        mf.fit_many(mass_model(), data, backend=ONE, **options)


def test_sizes_and_weights_are_refused_for_bins_and_several_parts():
    both = Likelihood(mass_model(), {"m": []}) + Likelihood(mass_model(), {"m": []})
    with pytest.raises(
        mf.DataError, match="sizes cut the events of one model; for bins, and for several parts, give a list"
    ):
        mf.fit_many(both, {"m": MASSES[0]}, sizes=100)
    with pytest.raises(mf.DataError, match="weights are those of events of one model"):
        mf.fit_many(both, [[MASSES[0], MASSES[1]]], weights=[WEIGHTS[0]])
    formula = Likelihood(mass_model(), {"m": [5.1], "w": [1.0]}, weights=mf.Observable("w", 0, 2))
    with pytest.raises(mf.OptionError, match="a likelihood has its weights already; leave weights out"):
        mf.fit_many(formula, MASSES, weights=WEIGHTS)


def test_arrays_of_users_stay_theirs():
    rows = [row.copy() for row in MASSES]
    mf.fit_many(mass_model(), rows, backend=ONE)
    assert all(row.flags.writeable for row in rows)
    np.testing.assert_array_equal(rows, MASSES)


def test_stored_toys_that_are_fitted_again_have_their_own_constraints():
    # this used to give them what constraints measured in the first toy
    model = mass_model()
    likelihood = Likelihood(model, {"m": []}, constraints=[mf.constraint(model.parameters[0], 5.28, 0.01)])
    toys = ensemble_of(likelihood, seed=5, backend=ONE).draw(0, np.full(6, 50)).stored()
    again = toys.gathered(np.array([2, 4]))
    np.testing.assert_array_equal(again.data[0].measured, toys.data[0].measured[[2, 4]])
    assert again.one(1).numbers.tolist() == [4]


def test_a_device_fits_some_datasets_while_the_next_are_sent(monkeypatch):
    """Only devices with memory of their own do this, so that it is made to happen here."""
    data = [mf.Dataset({"m": row}, weights=weights) for row, weights in zip(MASSES, WEIGHTS, strict=True)]
    together = mf.fit_many(mass_model(), data, backend="opencl")
    sent = []
    monkeypatch.setattr(opencl_run.OpenCL, "sent_together", 16 * 900)
    monkeypatch.setattr(staging, "PIECE", 1 << 12)
    monkeypatch.setattr(opencl_device.Device, "is_staged", lambda self, size: size > 0)
    write = staging.Staging.write_pieces
    monkeypatch.setattr(
        staging.Staging, "write_pieces", lambda *own: (sent.append(own[2].count), write(*own))
    )
    monkeypatch.setattr(opencl_device, "_devices", {})  # its slots are as small
    assert bits(mf.fit_many(mass_model(), data, backend="opencl")) == bits(together)
    assert sent == [800] * 6


GOOD = np.array([5.2, 5.3, 5.4])
PAIR = {"a": GOOD, "b": GOOD}
WRONG = {
    "outside": (None, [GOOD, np.array([5.1, 9.5])], {}, "datasets[1]: dataset: observable 'm': 1 of 2"),
    "in a table": (None, np.array([[5.1, 5.2], [5.3, 9.0]]), {}, "datasets[1]: dataset: observable 'm': 1 of 2"),
    "no events": (None, [GOOD, GOOD, np.array([])], {}, "datasets[2]: dataset: has no events"),
    "a cut of a table": (None, GOOD, {"sizes": [3, 0]}, "datasets[1]: dataset: has no events"),
    "weights": (None, [GOOD, GOOD], {"weights": [np.ones(3), np.ones(2)]}, "datasets[1]: dataset: weights: length"),
    "a label": ("by label", [PAIR, {"a": GOOD}], {}, "datasets[1]: simultaneous: data must have every label"),
    "of a label": ("by label", [PAIR, PAIR | {"b": [9.0]}], {}, "datasets[1]: category 'b': dataset: observable 'm'"),
    "of a part": ("sum", [[GOOD, GOOD], [GOOD, [9.0]]], {}, "datasets[1]: part 1: dataset: observable 'm'"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_which_of_many_datasets_is_wrong(name):
    kind, datasets, options, message = WRONG[name]
    m, mu = mf.Observable("m", 5.0, 7.0), mf.Parameter("mu", 5.3, 5.0, 6.0)
    peak = mf.Gaussian(m, mu, 0.1)
    both = mf.Likelihood(peak, GOOD) + mf.Likelihood(peak, GOOD)
    model = {None: peak, "by label": mf.Simultaneous({"a": peak, "b": peak}, "year"), "sum": both}[kind]
    with pytest.raises(mf.DataError, match=re.escape(f"fit_many: {message}")):
        mf.fit_many(model, datasets, **options)
