"""Blinded parameters: fits are those of the true value, which stands in no text, file or figure."""

import base64
import pickle
import struct

import matplotlib.pyplot as plt
import numpy as np
import pytest

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.jobs.digest import fingerprint

X = mf.Observable("x", 0, 10)
OPEN, BLIND = mf.Parameter("mass", 5.0, 3, 7), mf.Parameter("mass", 5.0, 3, 7, blind="a phrase")
SCALED = mf.Parameter("mass", 5.0, 3, 7, blind="a phrase", blind_by="scale")
RATIO = mf.Parameter("ratio", 0.1, 0.01, 1)
by_both_ways = pytest.mark.parametrize("blind", [BLIND, SCALED], ids=["offset", "scale"])


def model_of(mass):
    peak = mf.Gaussian(X, mass, mf.Derived("width", mass * RATIO))
    return mf.Sum([peak, mf.Exponential(X, -0.3)], yields=[mf.Parameter("n", 1000, 0, 5000), 1000])


MODEL = model_of(BLIND)
DATA = mf.generate(model_of(OPEN), 2000, seed=1)
TRUE = mf.fit(model_of(OPEN), DATA, tolerance=1e-6)
OFFSET = BLIND.unblind("a phrase", 0.0)


@pytest.mark.parametrize(
    "backend", [COMPILED["cpu"], COMPILED["opencl"], JUDGE["reference"]], ids=["cpu", "opencl", "reference"]
)
def test_the_fit_is_that_of_the_true_value(backend):
    result = mf.fit(MODEL, DATA, backend=there(backend), tolerance=1e-6)
    assert result.nll == pytest.approx(TRUE.nll, abs=1e-5)
    assert abs(OFFSET) > 1e-3
    assert result.values["mass"] + OFFSET == pytest.approx(TRUE.values["mass"], rel=1e-6)
    np.testing.assert_allclose(result.covariance, TRUE.covariance, rtol=1e-4)


def test_a_phrase_unblinds_results_files_and_numbers():
    result = mf.fit(MODEL, DATA, tolerance=1e-6)
    for one in (result, mf.FitResult.from_json(result.to_json()), pickle.loads(pickle.dumps(result))):
        true = one.unblind("a phrase")
        assert true.value == pytest.approx(TRUE.values["mass"], rel=1e-6)
        assert true.error == pytest.approx(TRUE.errors["mass"], rel=1e-4)
    assert BLIND.unblind("a phrase", result.values[BLIND]) == true.value
    width = result.derived(BLIND * RATIO, unblind="a phrase")
    assert (width.value, width.error) == pytest.approx(TRUE.quantities["width"], rel=1e-4)


@pytest.mark.parametrize(
    "backend", [COMPILED["cpu"], COMPILED["opencl"], JUDGE["reference"]], ids=["cpu", "opencl", "reference"]
)
def test_a_hidden_scale_changes_value_and_error_alike(backend):
    result = mf.fit(model_of(SCALED), DATA, backend=there(backend), tolerance=1e-6)
    scale = SCALED.unblind("a phrase", 1.0)
    assert result.nll == pytest.approx(TRUE.nll, abs=1e-5)
    assert 1e-3 < abs(scale - 1) <= 0.1 * (7 - 3) / 5.0
    assert result.values["mass"] * scale == pytest.approx(TRUE.values["mass"], rel=1e-6)
    assert result.errors["mass"] * scale == pytest.approx(TRUE.errors["mass"], rel=1e-4)
    for one in (result, mf.FitResult.from_json(result.to_json())):
        true = one.unblind("a phrase")
        assert true.value == pytest.approx(TRUE.values["mass"], rel=1e-6)
        assert true.error == pytest.approx(TRUE.errors["mass"], rel=1e-4)
    width = result.derived(SCALED * RATIO, unblind="a phrase")
    assert (width.value, width.error) == pytest.approx(TRUE.quantities["width"], rel=1e-4)


def test_scales_and_offsets_of_one_phrase_are_independent_and_seen_by_fingerprints():
    size = 0.1 * (7 - 3) / 5.0
    assert abs(SCALED.unblind("a phrase", 1.0) - 1 - size * OFFSET / 0.4) > 1e-3
    assert len({fingerprint(model_of(p))["digest"] for p in (OPEN, BLIND, SCALED)}) == 3
    assert repr(SCALED) == "Parameter('mass', 5.0, 3.0, 7.0, blind=..., blind_by='scale')"


def test_two_parameters_that_are_hidden_in_two_ways_are_unblinded_together():
    x = mf.Observable("x", 0, 10)
    mu, sigma = mf.Parameter("mu", 5, 4, 6), mf.Parameter("sigma", 1, 0.5, 2)
    model = mf.Gaussian(x, mu, sigma)
    data = mf.generate(model, 500, seed=3)
    hidden = model.replace({
        "mu": mf.Parameter("mu", 5, 4, 6, blind="p"),
        "sigma": mf.Parameter("sigma", 1, 0.5, 2, blind="p", blind_by="scale"),
    })  # fmt: skip
    true, shown = mf.fit(model, data, tolerance=1e-6), mf.fit(hidden, data, tolerance=1e-6).unblind("p")
    np.testing.assert_allclose(shown.values, [true.values["mu"], true.values["sigma"]], rtol=1e-6)
    np.testing.assert_allclose(shown.covariance, true.covariance, rtol=1e-3, atol=1e-7)


def test_derived_quantities_of_blinded_parameters_are_left_out():
    result = mf.fit(MODEL, DATA)
    assert not result.quantities
    with pytest.raises(
        mf.ModelError, match=r"depends on the blinded 'mass'; give unblind= its phrase, or fit without"
    ):
        result.derived(BLIND)
    with pytest.raises(mf.ModelError, match=r"depends on the blinded 'mass'; give unblind="):
        result.derived(BLIND, unblind="another")


def test_other_phrases_do_not_unblind():
    result = mf.fit(MODEL, DATA)
    with pytest.raises(
        mf.ModelError, match=r"unblind: no parameter of this fit is blinded with this phrase; blinded are"
    ):
        result.unblind("another")
    with pytest.raises(
        mf.ModelError, match=r"parameter 'mass': cannot be unblinded, the phrase is another one"
    ):
        BLIND.unblind("another", 5.0)
    with pytest.raises(mf.ModelError, match=r"parameter 'mass': cannot be unblinded, it is not blinded"):
        OPEN.unblind("", 5.0)
    with pytest.raises(mf.ModelError, match=r"parameter 'a': blind must be a phrase, got True"):
        mf.Parameter("a", 1.0, blind=True)
    for options in ({"blind": "p", "blind_by": "factor"}, {"blind_by": "scale"}):
        with pytest.raises(
            mf.ModelError,
            match=r"parameter 'a': blind_by must be 'offset' or 'scale', with blind= a phrase, got",
        ):
            mf.Parameter("a", 1.0, **options)


def test_constraints_of_blinded_parameters_are_refused():
    with pytest.raises(
        mf.ModelError, match=r"constraint: would show the true value of the blinded 'mass'; leave it out"
    ):
        mf.fit(MODEL, DATA, constraints=[mf.constraint(BLIND, 5.0, 0.1)])


def test_a_blinded_result_is_no_measurement_of_the_true_value():
    # this used to be a constraint of the true value to the shown one
    with pytest.raises(mf.ModelError, match="'mass': is not blinded here, but blinded in the fit"):
        mf.constraint([OPEN], mf.fit(MODEL, DATA))


@pytest.mark.parametrize(
    "numbers",
    [
        (0.5, 0, 1),
        (0.0, 0, 1),
        (1.0, 0, 1),
        (0.0, 0, None),
        (100, None, None),
        (0.0, None, None),
        (-3e-7, None, 0),
    ],
)
def test_offsets_are_of_a_useful_size_and_leave_the_start_in_the_limits(numbers):
    start, low, high = numbers
    found = [
        mf.Parameter("a", *numbers, blind=f"phrase {k}").unblind(f"phrase {k}", start) for k in range(50)
    ]
    assert all((low is None or one >= low) and (high is None or one <= high) for one in found)
    size = 0.1 if high == 1 else 1.0 if start == 0 else 0.1 * abs(start)
    assert 0.3 * size < np.max(np.abs(np.subtract(found, start))) <= 1.01 * size
    assert len(set(found)) == 50


@pytest.mark.parametrize(
    ("numbers", "size"),
    [
        ((0.5, 0, 1), 0.2),
        ((1.0, 0, 1), 0.1),
        ((5.28, 5.2, 5.4), 0.02 / 5.28),
        ((-3.0, None, 0), 0.5),
        ((0.0, -1, 1), 0.5),
    ],
)
def test_scales_are_of_a_useful_size_and_leave_the_start_in_the_limits(numbers, size):
    start, low, high = numbers
    each = [mf.Parameter("a", *numbers, blind=f"p{k}", blind_by="scale") for k in range(50)]
    scales = np.array([p.unblind(p.blind, 1.0) for p in each])
    assert all((low is None or start * s >= low) and (high is None or start * s <= high) for s in scales)
    assert 0.8 * size < np.abs(scales - 1).max() <= size * (1 + 1e-12)
    assert len(set(scales)) == 50


def test_one_phrase_gives_one_offset_for_the_same_limits():
    other = mf.Parameter("other", 4.0, 3, 7, blind="a phrase")
    assert other.unblind("a phrase", 0.0) == BLIND.unblind("a phrase", 0.0)
    wider = mf.Parameter("other", 4.0, 2, 7, blind="a phrase")
    assert abs(wider.unblind("a phrase", 0.0) - 1.25 * BLIND.unblind("a phrase", 0.0)) > 1e-3


def test_fingerprints_see_the_phrase():
    other = model_of(mf.Parameter("mass", 5.0, 3, 7, blind="another phrase"))
    assert len({fingerprint(m)["digest"] for m in (MODEL, other, model_of(OPEN))}) == 3


# --------------------------------------------------------------------------------------- leaks


def secrets(blind):
    """Return the true value, and the offset or scale alone and at numbers that are shown."""
    offset, scale, start = (blind.unblind("a phrase", shown) for shown in (0.0, 1.0, 5.0))
    return [n for n in (TRUE.values["mass"], offset, -offset, scale, scale - 1, start) if n]


def assert_hidden(text, blind=BLIND):
    """Refuse text with the true value, the offset or scale, or what the phrase is, to three digits or more."""
    for number in (*secrets(blind), *TRUE.quantities["width"][:1]):
        for digits in (5, 6, 8):
            assert f"{abs(number):.{digits}g}" not in text
    assert "a phrase" not in text


def assert_bytes_hidden(content, blind=BLIND):
    """Refuse bytes of a file with the true value, the offset or the scale, as numbers or as text."""
    assert_hidden(content.decode("latin-1"), blind)
    for number in secrets(blind):
        packed = struct.pack("<d", number)
        assert packed not in content and packed[2:] not in content
        assert base64.b64encode(packed)[:-2] not in content


@by_both_ways
def test_models_and_results_show_nothing(blind, capfd):
    model = model_of(blind)
    result = mf.fit(model, DATA, minimiser="minuit", print_level=3, minos=True)
    texts = [str(model), repr(model), model._repr_latex_(), repr(blind), repr(blind.expr), repr(blind * 2)]
    texts += [str(result), repr(result), result._repr_html_(), result.to_latex(), result.to_json()]
    texts += [
        result.to_pandas().to_string(),
        str(mf.explain(model, DATA)),
        str(fingerprint(model)),
        *capfd.readouterr(),
    ]
    stages = [{"stage": "before"}, {"stage": "after"}, {"derivative": "mass"}, {"generation": True}]
    texts += [str(mf.draw(model, limit=2000, **options)) for options in stages]
    assert all("blinded" in text for text in (str(model), str(result), result.to_latex()))
    for text in texts:
        assert_hidden(text, blind)


@by_both_ways
def test_scans_and_toys_show_nothing(blind, tmp_path):
    model = model_of(blind)
    result = mf.fit(model, DATA)
    scan = mf.intervals.profile(model, blind, data=DATA, size=5, best=result, progress=False)
    contour = mf.intervals.contour(model, blind, "n", data=DATA, size=5, best=result, progress=False)
    toys = mf.toy_study(model, toys=20, truth=result, seed=1, save=tmp_path / "study", progress=False)
    toys.save(tmp_path / "toys.npz")
    assert toys.truth["mass"] == result.values["mass"]
    assert abs(toys.pull_summary("mass").mean) < 1.5
    with pytest.raises(mf.ModelError, match="depends on the blinded 'mass'"):
        toys.derived(blind)
    for text in (str(scan), str(contour), str(toys), repr(toys), toys._repr_html_()):
        assert_hidden(text, blind)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert_bytes_hidden(path.read_bytes(), blind)


@by_both_ways
def test_figures_show_nothing(blind, tmp_path):
    model = model_of(blind)
    result = mf.fit(model, DATA)
    scan = mf.intervals.profile(model, blind, data=DATA, size=5, best=result, progress=False)
    for draw in (lambda: mf.plot(model, DATA, values=result), lambda: mf.plots.profile(scan)):
        plt.close("all")
        draw()
        figure = plt.gcf()
        figure.canvas.draw()
        figure.savefig(tmp_path / "figure.svg")
        assert_hidden(" ".join(text.get_text() for text in figure.findobj(plt.Text)), blind)
    plt.close("all")


@by_both_ways
def test_compiled_code_and_its_cache_show_nothing(blind, tmp_path, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    x = mf.Observable("x", 0, 10.5)
    model = mf.Gaussian(x, blind, 0.5)
    data = {"x": DATA["x"]}
    likelihood = mf.Likelihood(model, data)
    mf.fit(likelihood)
    sources = [likelihood.sums(order).program.source for order in (0, 1, 2)]
    sources.append(mf.Likelihood(model, data, backend="opencl").sums(2).program.source)
    for text in sources:
        assert_hidden(text, blind)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        if path.suffix not in (".o", ".so"):
            assert_bytes_hidden(path.read_bytes(), blind)


def test_messages_show_nothing():
    with pytest.raises(
        mf.ModelError, match=r"must be positive, which it is not at the start of the blinded 'mass'"
    ) as error:
        mf.Gaussian(X, 5.0, BLIND - 7.0)
    assert_hidden(str(error.value))
    far = mf.Parameter("mass", 5.0, 3, 7, blind="a phrase")
    with pytest.raises(mf.FitError) as failure:
        mf.fit(mf.Density(mf.where(abs(X - far) < 0.1, 1.0, 0.0), X, integral=0.2), DATA)
    assert_hidden(str(failure.value))
    share = mf.Parameter("share", 0.5, blind="a phrase")
    model = mf.Sum([mf.Uniform(X), mf.Gaussian(X, 5, 1)], fractions=[share])
    with pytest.raises(mf.ModelError, match="sum: cannot draw with the weights of blinded parameters, as"):
        mf.generate(model, 10, seed=1, truth={"share": -5.0})


@pytest.mark.parametrize("test", ["discovery", "upper_limit"])
def test_a_blinded_signal_is_not_tested_against_none(test):
    """Its 0 used to be that of the shown value."""
    signal = mf.Parameter("signal", 500.0, 0.0, 1000.0, blind="a phrase")
    x = mf.Observable("x", 0.0, 1.0)
    nll = mf.BinnedLikelihood(mf.Sum([mf.Uniform(x)], yields=[signal]), ([500], [0.0, 1.0]))
    with pytest.raises(
        mf.DataError, match=f"{test}: parameter 'signal': is blinded, so that it is not known where it is 0"
    ):
        getattr(mf.intervals, test)(nll, signal)


T, WIDTH = mf.Observable("t", 0, 8), mf.Observable("width", 0.5, 1.5)


def test_issue_errors_of_simulations_are_those_of_the_true_value():
    # this used to leave out the slopes of integrals by blinded parameters: errors were half as large again
    times = np.random.default_rng(1).exponential(1.5, 900)
    sample = mf.acceptance.simulation({"t": np.linspace(0.01, 7.99, 300)}, [T])
    lifetimes = [mf.Parameter("tau", 1.5, 0.5, 4, blind=phrase) for phrase in ("", "a phrase")]
    shown, hidden = (
        mf.fit(mf.Efficiency(mf.Exponential(T, -1 / tau), sample), {"t": times[times < 8]}, tolerance=1e-6)
        for tau in lifetimes
    )
    assert shown.values["tau"] != pytest.approx(hidden.values["tau"], rel=1e-3)
    assert hidden.simulation_errors["tau"] == pytest.approx(shown.simulation_errors["tau"], rel=1e-4)


def test_issue_conditional_densities_are_drawn_and_have_probabilities():
    # this used to compare integrals at the shown and the true value, and compilations failed
    hidden = mf.Parameter("tau", 1.5, 0.5, 4, blind="a phrase")
    true = mf.Parameter("tau", hidden.unblind("a phrase", 1.5), 0.5, 4)
    one, other = (mf.Exponential(T, -1 / (tau * WIDTH), given=[WIDTH]) for tau in (hidden, true))
    rows = {"width": np.linspace(0.6, 1.4, 50)}
    drawn = mf.generate(one, given=rows, seed=1)
    np.testing.assert_allclose(drawn["t"], mf.generate(other, given=rows, seed=1)["t"], rtol=1e-12)
    np.testing.assert_allclose(
        one.cdf(drawn["t"], given=drawn), other.cdf(drawn["t"], given=drawn), rtol=1e-12
    )
    curves = [mf.plot(density, drawn, "t", bins=5).numbers.curve for density in (one, other)]
    np.testing.assert_allclose(*curves, rtol=1e-10)


def test_issue_integrals_for_each_event_are_those_of_the_true_value():
    # this used to be refused: the integral was compared with that at the shown value
    hidden = mf.Parameter("tau", 1.5, 0.5, 4, blind="a phrase")
    true = mf.Parameter("tau", hidden.unblind("a phrase", 1.5), 0.5, 4)
    one, other = (
        mf.Efficiency(mf.Exponential(T, -1 / (tau * WIDTH), given=[WIDTH]), 1 / (1 + T**2)).pdf(
            {"t": [0.5, 3.0], "width": [0.6, 1.4]}
        )
        for tau in (hidden, true)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)


OTHERWISE = {
    "density": lambda model, data, result: model.pdf([5.0], result),
    "likelihood": lambda model, data, result: mf.Likelihood(model, data).value(result),
    "events": lambda model, data, result: mf.generate(model, 10, truth=result, seed=1),
    "toys": lambda model, data, result: mf.toy_study(
        model, toys=2, events=10, truth=result, seed=1, progress=False
    ),
    "asimov data": lambda model, data, result: mf.intervals.asimov(mf.Likelihood(model, data), result),
    "derived": lambda model, data, result: result.derived(2 * model.parameters[0]),
}


@pytest.mark.parametrize("use", OTHERWISE.values(), ids=OTHERWISE)
def test_results_are_not_taken_for_models_that_are_blinded_otherwise(use):
    # this used to take shown values for true ones, or the other way round, in silence
    x = mf.Observable("x", 0.0, 10.0)
    plain = mf.Gaussian(x, mf.Parameter("mu", 5.0, 4.0, 6.0), 1.0)
    hidden, other = (plain.replace({"mu": mf.Parameter("mu", 5.0, 4.0, 6.0, blind=b)}) for b in ("a", "b"))
    data = mf.generate(plain, 100, seed=1)
    of_plain, of_hidden = mf.fit(plain, data), mf.fit(hidden, data)
    with pytest.raises(mf.ModelError, match="'mu': is not blinded here, but blinded in the fit"):
        use(plain, data, of_hidden)
    if use is not OTHERWISE["derived"]:  # which needs the phrase anyway
        use(hidden, data, mf.FitResult.from_json(of_hidden.to_json()))
        with pytest.raises(mf.ModelError, match="'mu': is blinded here, but not blinded in the fit"):
            use(hidden, data, of_plain)
        with pytest.raises(mf.ModelError, match="'mu': is blinded otherwise in the fit"):
            use(other, data, of_hidden)


def test_toys_of_a_blinded_model_are_not_fitted_without_blinding():
    x = mf.Observable("x", 0.0, 10.0)
    plain = mf.Gaussian(x, mf.Parameter("mu", 5.0, 4.0, 6.0), 1.0)
    hidden = plain.replace({"mu": mf.Parameter("mu", 5.0, 4.0, 6.0, blind="a phrase")})
    with pytest.raises(
        mf.FitError, match="'mu': must be blinded in the fitted model as in the generating one"
    ):
        mf.toy_study(hidden, toys=2, events=10, fit_model=plain, progress=False)


def test_another_start_with_the_same_offset_is_the_same_blinding():
    x = mf.Observable("x", 0.0, 10.0)
    first, second = (
        mf.Gaussian(x, mf.Parameter("mu", start, 0.0, 10.0, blind="a phrase"), 1.0) for start in (5.0, 5.1)
    )
    result = mf.fit(first, mf.generate(first, 100, seed=1))
    assert second.pdf([5.0], result) == first.pdf([5.0], result)
