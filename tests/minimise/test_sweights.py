"""sWeights are those of an independent implementation, add up as they must, and errors of fits to them are complete."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import morefit as mf
from backend_rows import there
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference
from tolerances import PULL_SIGMAS, SWEIGHT, SWEIGHT_EFFECT, SWEIGHT_INTEGRAL, SWEIGHT_SUM, TOTAL_YIELD

M, T = mf.Observable("m", 5.0, 6.0), mf.Observable("t", 0.0, 10.0)
MU, SIGMA = mf.Parameter("mu", 5.5, 5.2, 5.8), mf.Parameter("sigma", 0.1, 0.02, 0.5)
ALPHA, TAU = mf.Parameter("alpha", -1.0, -10.0, 10.0), mf.Parameter("tau", 1.5, 0.1, 10.0)
NS, NB = mf.Parameter("ns", 300.0, -1e5, 1e5), mf.Parameter("nb", 500.0, -1e5, 1e5)
SIGNAL, BACKGROUND = mf.Gaussian(M, MU, SIGMA), mf.Exponential(M, ALPHA)
LABELS = ["signal", "background"]
MODEL = mf.Sum([SIGNAL, BACKGROUND], yields=[NS, NB], labels=LABELS)
DECAY = mf.Exponential(T, -1 / TAU)
BACKENDS = {"cpu": Cpu(threads=1), "reference": Reference(), "opencl": OpenCL()}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    peak, far = rng.normal(5.5, 0.1, 300), 5 - np.log(1 - rng.random(500) * (1 - np.exp(-1)))
    times = np.concatenate([rng.exponential(1.5, 300), rng.exponential(0.4, 500)])
    return mf.Dataset({"m": np.concatenate([peak, far]), "t": np.minimum(times, 9.9)})


@pytest.fixture(scope="module")
def result(data):
    return mf.fit(MODEL, data)


@pytest.fixture(scope="module")
def weights(data, result):
    return mf.sweights(MODEL, data, result)


def shapes_at(m, values):
    """Return the two densities, by scipy."""
    mu, sigma, slope = (values[n] for n in ("mu", "sigma", "alpha"))
    inside = np.diff(stats.norm.cdf([5, 6], mu, sigma))[0]
    return np.array(
        [
            stats.norm.pdf(m, mu, sigma) / inside,
            np.exp(slope * (m - 5)) * slope / np.expm1(slope),
        ]
    )


def splot(densities, counts, yields):
    """Return the weights of the sPlot paper, nucl-ex/0402083, at yields that are improved by its own equations."""
    for _ in range(2000):  # expectation and maximisation
        yields = yields * (densities / (yields @ densities) @ counts)
    total = yields @ densities
    inverse_covariance = np.einsum("e,ie,je->ij", counts / total**2, densities, densities)
    return np.linalg.inv(inverse_covariance) @ densities / total


def variances(name, values, yields):
    total = yields / yields.sum()
    return {
        "total": lambda m: total @ shapes_at(m, values),
        "uniform": lambda m: np.ones_like(m),
        "formula": lambda m: 1 + (m - 5) ** 2,
    }[name]


VARIANCES = {"total": "total", "uniform": mf.Uniform(M), "formula": 1 + (M - 5) ** 2}


def test_weights_are_those_of_an_independent_implementation(data, result, weights):
    expected = splot(shapes_at(data["m"], result.values), np.ones(len(data)), np.array([300.0, 500.0]))
    for row, name in zip(expected, LABELS, strict=True):
        np.testing.assert_allclose(weights.weights[name], row, rtol=0, atol=SWEIGHT)


def test_weights_of_weighted_data_are_those_of_an_independent_implementation(data):
    counts = np.random.default_rng(2).uniform(0.5, 1.5, len(data))
    heavy = data.with_weights(counts)
    result = mf.fit(MODEL, heavy)
    weights = mf.sweights(MODEL, heavy, result)
    expected = splot(shapes_at(data["m"], result.values), counts, np.array([300.0, 500.0])) * counts
    np.testing.assert_allclose(weights.weights["signal"], expected[0], rtol=0, atol=SWEIGHT)
    np.testing.assert_allclose(sum(weights.weights.values()), counts, rtol=SWEIGHT_SUM)


@pytest.mark.parametrize("name", VARIANCES)
def test_orthogonal_functions_are_those_of_an_independent_implementation(data, result, name):
    weights = mf.sweights(MODEL, data, result, variance=VARIANCES[name])
    yields = np.array([result.values["ns"], result.values["nb"]])
    variance = variances(name, result.values, yields)

    def product(i, j):
        def body(m):
            return np.prod(shapes_at(m, result.values)[[i, j]]) / variance(m)

        return quad(body, 5, 6, epsabs=1e-12, epsrel=1e-12)[0]

    matrix = np.array([[product(i, j) for j in range(2)] for i in range(2)])
    np.testing.assert_allclose(weights.matrix, matrix, rtol=SWEIGHT_INTEGRAL)
    expected = np.linalg.inv(matrix) @ shapes_at(data["m"], result.values) / variance(data["m"])
    np.testing.assert_allclose(weights.weights["signal"], expected[0], rtol=0, atol=SWEIGHT)


@pytest.mark.parametrize("variance", [None, "total"], ids=["classic", "orthogonal"])
def test_weights_of_an_event_add_up_to_one(data, result, variance):
    weights = mf.sweights(MODEL, data, result, variance=variance)
    np.testing.assert_allclose(sum(weights.weights.values()), 1, rtol=SWEIGHT_SUM)


def test_weights_of_a_component_add_up_to_its_yield(data):
    exact = mf.fit(MODEL, data, tolerance=1e-4)
    weights = mf.sweights(MODEL, data, exact)
    for name, parameter in zip(LABELS, (NS, NB), strict=True):
        assert weights.yields[name] == pytest.approx(exact.values[parameter], rel=TOTAL_YIELD)


def test_covariance_of_yields_is_the_inverse_of_the_matrix(data, weights):
    np.testing.assert_allclose(weights.covariance, np.linalg.inv(weights.matrix), rtol=SWEIGHT)
    for_known_shapes = mf.fit(MODEL, data, start=weights.result, fixed=["mu", "sigma", "alpha"])
    np.testing.assert_allclose(weights.covariance, for_known_shapes.covariance_of(NS, NB), rtol=1e-3)


def test_fractions_have_the_weights_of_yields(data, weights):
    model = mf.Sum([SIGNAL, BACKGROUND], fractions=[mf.Parameter("f", 0.4, 0, 1)], labels=LABELS)
    shapes = {n: weights.result.values[n] for n in ("mu", "sigma", "alpha")}
    other = mf.sweights(model, data, mf.fit(model, data, fixed=shapes))
    np.testing.assert_allclose(other.weights["signal"], weights.weights["signal"], atol=SWEIGHT)


def test_yields_that_were_fixed_are_found_anew(data):
    fixed = {"mu": 5.5, "sigma": 0.1, "ns": 350.0, "nb": 450.0}
    other = mf.sweights(MODEL, data, mf.fit(MODEL, data, fixed=fixed))
    np.testing.assert_allclose(sum(other.weights.values()), 1, rtol=SWEIGHT_SUM)


# the reference takes seconds for the boxes of orthogonal functions
@pytest.mark.parametrize(("name", "variance"), [
    *((name, None) for name in BACKENDS), ("cpu", "total"), ("opencl", "total"),
    pytest.param("reference", "total", marks=pytest.mark.exhaustive),
])  # fmt: skip
def test_weights_and_errors_are_the_same_on_every_backend(data, result, weights, name, variance):
    there(BACKENDS[name])
    one = mf.sweights(MODEL, data, result, variance=variance, backend=BACKENDS[name])
    other = mf.sweights(MODEL, data, result, variance=variance)
    np.testing.assert_allclose(one.weights["signal"], other.weights["signal"], atol=SWEIGHT)
    fitted = mf.fit(DECAY, other.data_for("signal"))
    same = replace(one, weights=other.weights).corrected("signal", DECAY, fitted)
    assert same.errors[TAU] == pytest.approx(other.corrected("signal", DECAY, fitted).errors[TAU], rel=1e-6)


def test_a_component_that_is_not_there_has_weights_too(data):
    only = data[np.arange(300, 800)]
    result = mf.fit(MODEL, only, fixed={"mu": 5.5, "sigma": 0.1})
    weights = mf.sweights(MODEL, only, result)
    assert abs(weights.yields["signal"]) < 60  # of either sign
    np.testing.assert_allclose(sum(weights.weights.values()), 1, rtol=SWEIGHT_SUM)


def test_negative_yields_are_no_obstacle():
    rng = np.random.default_rng(4)
    m = rng.uniform(5, 6, 2000)
    hole = mf.Dataset({"m": m[(np.abs(m - 5.5) > 0.1) | (rng.random(2000) < 0.8)]})
    result = mf.fit(MODEL, hole, fixed={"mu": 5.5, "sigma": 0.05}, tolerance=1e-4)
    assert result.values["ns"] < 0
    weights = mf.sweights(MODEL, hole, result)
    assert weights.yields["signal"] == pytest.approx(result.values["ns"], rel=TOTAL_YIELD)


def test_three_components_and_several_observables(data):
    z = mf.Observable("z", 0.0, 1.0)
    rng = np.random.default_rng(6)
    wide = mf.Dataset({**data.columns, "z": rng.random(len(data)) ** np.repeat([0.5, 1.0], [300, 500])})
    peaks = [mf.Product([SIGNAL, mf.Density(z, z)]), mf.Product([BACKGROUND, mf.Uniform(z)])]
    line = mf.Product([mf.Uniform(M), mf.Density(1 - z, z)])
    model = mf.Sum([*peaks, line], yields=[NS, NB, mf.Parameter("n3", 10, -1e4, 1e4)])
    result = mf.fit(model, wide)
    for variance in (None, "total"):
        weights = mf.sweights(model, wide, result, variance=variance)
        assert len(weights.components) == 3
        np.testing.assert_allclose(sum(weights.weights.values()), 1, rtol=1e-8)


# ------------------------------------------------------------------------------- ranges and given columns


@pytest.mark.parametrize("yields_in", ["full", "range"])
def test_events_outside_of_the_fitted_ranges_have_no_weight(data, yields_in):
    ranges = {"m": [(5.1, 5.65), (5.7, 6.0)]}
    result = mf.fit(MODEL, data, ranges=ranges, yields_in=yields_in)
    weights = mf.sweights(MODEL, data, result)
    inside = ((data["m"] >= 5.1) & (data["m"] <= 5.65)) | (data["m"] >= 5.7)
    np.testing.assert_array_equal(weights.fitted, inside)
    np.testing.assert_allclose(sum(weights.weights.values()), inside, atol=SWEIGHT_SUM)
    again = mf.sweights(mf.Restricted(MODEL, ranges, yields_in=yields_in), data, result)
    np.testing.assert_allclose(again.weights["signal"], weights.weights["signal"], atol=SWEIGHT)
    orthogonal = mf.sweights(MODEL, data, result, variance="total")
    np.testing.assert_allclose(sum(orthogonal.weights.values()), inside, atol=1e-8)


WIDTH = mf.Observable("width", 0.05, 0.2)
SCALE = mf.Parameter("scale", 1.0, 0.5, 2.0)
CONDITIONAL = mf.Sum(
    [mf.Gaussian(M, MU, SCALE * WIDTH, given=[WIDTH]), mf.Exponential(M, ALPHA, given=[WIDTH])],
    yields=[NS, NB],
    labels=LABELS,
)


@pytest.fixture(scope="module")
def conditional():
    rows = np.random.default_rng(7).uniform(0.05, 0.2, 800)
    data = mf.generate(CONDITIONAL, given={"width": rows}, seed=8)
    return data, mf.fit(CONDITIONAL, data)


def test_weights_of_a_conditional_model_add_up(conditional):
    weights = mf.sweights(CONDITIONAL, *conditional)
    assert weights.matrix.shape == (len(conditional[0]), 2, 2)
    np.testing.assert_allclose(sum(weights.weights.values()), 1, rtol=SWEIGHT_SUM)
    assert abs(weights.yields["signal"] - conditional[1].values["ns"]) < 2 * conditional[1].errors["ns"]


def test_what_follows_may_depend_on_given_columns():
    """Classic weights, orthogonal for the average of the given column only, would be off by 14 errors here."""
    rng = np.random.default_rng(11)
    rows = [{"width": rng.uniform(0.05, 0.2, count)} for count in (3000, 5000)]
    parts = [
        mf.generate(pdf, given=given, seed=12) for pdf, given in zip(CONDITIONAL.pdfs, rows, strict=True)
    ]
    data = mf.Dataset.concatenate(parts)
    follows = np.concatenate([10 * rows[0]["width"], 3 - 10 * rows[1]["width"]])
    signal = mf.sweights(CONDITIONAL, data, mf.fit(CONDITIONAL, data)).weights["signal"]
    truth = follows[:3000].mean()
    error = np.sqrt(np.sum((signal * (follows - truth)) ** 2)) / signal.sum()
    assert abs(signal @ follows / signal.sum() - truth) < PULL_SIGMAS * error


def test_orthogonal_functions_of_a_conditional_model_are_orthogonal_for_each_event(conditional):
    data, result = conditional
    weights = mf.sweights(CONDITIONAL, data, result, variance=1)
    mu, scale, slope = (result.values[n] for n in ("mu", "scale", "alpha"))

    def product(m, values, inverse, j):
        return (inverse @ shapes_at(m, values))[0] * shapes_at(m, values)[j]

    for event in (0, 11, 500):
        values = {"mu": mu, "sigma": scale * data["width"][event], "alpha": slope}
        inverse = np.linalg.inv(weights.matrix[event])
        for j, expected in enumerate((1, 0)):
            overlap, _ = quad(product, 5, 6, args=(values, inverse, j), points=[mu], epsabs=1e-11)
            assert overlap == pytest.approx(expected, abs=1e-7)
        expected = (inverse @ shapes_at(data["m"][event], values))[0]
        assert weights.weights["signal"][event] == pytest.approx(expected, abs=1e-9)


def test_shares_that_depend_on_the_event_are_refused(conditional):
    data, _ = conditional
    pdfs = CONDITIONAL.pdfs
    model = mf.Sum(pdfs, fractions=[mf.Parameter("f", 0.4, 0, 1)])
    result = mf.fit(model, data, ranges={"m": (5.1, 6.0)})
    with pytest.raises(mf.ModelError, match="same for all events, but depend on 'width'; fit without ranges"):
        mf.sweights(model, data, result)


# ------------------------------------------------------------------------------- errors of the fit that follows


def lifetime(data, model=MODEL, variance=None, **options):
    """Fit twice, as exactly as can be."""
    likelihood = mf.Likelihood(model, data, **options)
    first = mf.fit(likelihood, tolerance=1e-4)
    weights = mf.sweights(likelihood, data, first, variance=variance)
    return weights, mf.fit(DECAY, weights.data_for("signal"), tolerance=1e-4)


def assert_effects_are_those_of_multiplicities(data, **options):
    """What an event adds to the gradient, over the Hessian, is how the result changes if the event counts a bit more."""
    from morefit.minimise.sweights_errors import effects, event_scores

    weights, fitted = lifetime(data.with_weights(np.ones(len(data))), **options)
    likelihood = mf.Likelihood(DECAY, weights.data_for("signal"))
    scores = event_scores(likelihood, np.array([[fitted.values["tau"]]]), ["tau"])
    each = np.zeros(len(data))
    each[weights.fitted] = effects(weights, "signal", scores[:, weights.fitted])[0][0]
    curvature = likelihood.hessian([fitted.values["tau"]])[0, 0]
    error = weights.corrected("signal", DECAY, fitted).errors["tau"]
    step = 0.05
    for event in (0, 50, 400, 700):
        ends = []
        for sign in (-1, 1):
            counts = np.ones(len(data))
            counts[event] += sign * step
            ends.append(lifetime(data.with_weights(counts), **options)[1].values["tau"])
        slope = (ends[1] - ends[0]) / (2 * step)
        assert each[event] / curvature == pytest.approx(slope, abs=SWEIGHT_EFFECT * error)


@pytest.mark.parametrize(
    ("variance", "options"),
    [
        (None, {}),
        pytest.param("total", {}, marks=pytest.mark.exhaustive),  # the same with a constraint is below
        (1, {"ranges": {"m": (5.15, 5.95)}}),
        pytest.param(None, {"ranges": {"m": (5.15, 5.95)}}, marks=pytest.mark.exhaustive),
        ("total", {"constraints": [mf.constraint(SIGMA, 0.1, 0.005)]}),
    ],
    ids=["classic", "total", "uniform in a range", "classic in a range", "total, constrained"],
)
def test_effects_of_events_are_those_of_their_multiplicities(data, variance, options):
    assert_effects_are_those_of_multiplicities(data, variance=variance, **options)


def test_effects_of_events_with_given_columns_are_those_of_their_multiplicities(conditional):
    rng = np.random.default_rng(10)
    data = conditional[0].with_column("t", lambda m: np.minimum(rng.exponential(1.5, len(m)), 9.9))
    assert_effects_are_those_of_multiplicities(data, model=CONDITIONAL)


def test_corrected_errors_are_those_of_replicas_with_weights_of_their_own(data):
    weights, fitted = lifetime(data)
    corrected = weights.corrected("signal", DECAY, fitted)
    rng = np.random.default_rng(9)
    spread = [lifetime(data.with_weights(rng.poisson(1.0, len(data)).astype(float)))[1] for _ in range(150)]
    ratio = np.std([one.values["tau"] for one in spread]) / corrected.errors["tau"]
    assert ratio == pytest.approx(1, abs=4 / np.sqrt(2 * len(spread)))
    assert corrected.errors_from == "sweights" and "errors: sweights" in str(corrected)
    assert mf.FitResult.from_json(corrected.to_json()).errors_from == "sweights"
    assert corrected.values == fitted.values


def test_an_extended_fit_gets_the_error_of_the_yield(data, result, weights):
    n = mf.Parameter("n", 300, 0, 1e5)
    model = mf.Sum([DECAY], yields=[n])
    fitted = mf.fit(model, weights.data_for("signal"))
    corrected = weights.corrected("signal", model, fitted)
    assert fitted.errors[n] == pytest.approx(np.sqrt(weights.covariance[0, 0]), rel=1e-3)  # for known shapes
    sandwich = mf.fit(MODEL, data, errors="sandwich")
    assert corrected.errors[n] == pytest.approx(sandwich.errors[NS], rel=1e-3)


def test_a_second_fit_in_ranges_with_constraints_and_derived_quantities(data, weights):
    rate = mf.Derived("rate", 1 / TAU)
    decay = mf.Exponential(T, -rate)
    plain = mf.fit(decay, weights.data_for("signal"), ranges={"t": (0.2, 8.0)})
    corrected = weights.corrected("signal", decay, plain)
    value, error = corrected.quantities[rate]
    assert error == pytest.approx(value**2 * corrected.errors["tau"], rel=1e-9)
    both = mf.Likelihood(DECAY, weights.data_for("signal"), constraints=mf.constraint(TAU, 1.5, 0.01))
    tight = mf.fit(both)
    assert weights.corrected("signal", both, tight).errors["tau"] < 0.011


# ------------------------------------------------------------------------------- the record


def test_data_for_a_component_have_all_columns(data, weights):
    signal = weights.data_for("signal")
    np.testing.assert_array_equal(signal["t"], data["t"])
    np.testing.assert_array_equal(signal.weights, weights.weights["signal"])
    np.testing.assert_array_equal(weights.data_for(-1).weights, weights.weights["background"])
    other = weights.data_for(0, {"u": np.arange(len(data))})
    assert other.names == ("u",) and other.sum_of_weights == pytest.approx(weights.yields["signal"])


def test_columns_of_a_mapping_stay(data, result):
    assert mf.sweights(MODEL, data.columns, result).data_for(0).names == ("m", "t")
    assert mf.sweights(MODEL, data["m"], result).data_for(0).names == ("m",)


def test_weights_print_themselves(weights):
    assert repr(weights) == "SWeights(800 events, components: signal, background)"
    assert str(weights).splitlines()[0] == "sWeights of 800 events, classic"


def test_weights_are_read_only_and_survive_pickling(weights):
    again = pickle.loads(pickle.dumps(weights))
    np.testing.assert_array_equal(again.weights["signal"], weights.weights["signal"])
    assert not again.weights["signal"].flags.writeable


def test_an_expansion_takes_what_looks_like_it_out(data, result):
    weights = mf.sweights(MODEL, data, result, variance=1, expansion=[mf.Uniform(M)])
    assert weights.components == ("signal", "background")
    grid = np.linspace(5, 6, 20_001)[:-1] + 0.5 / 20_000
    densities = np.vstack([shapes_at(grid, result.values), np.ones_like(grid)])
    signal = (np.linalg.inv(weights.matrix) @ densities)[0]
    np.testing.assert_allclose((densities * signal).mean(axis=1), [1, 0, 0], atol=1e-6)


# ------------------------------------------------------------------------------- what is refused


def test_one_component_is_refused(data):
    for model in (BACKGROUND, mf.Sum([BACKGROUND], yields=[NB])):
        result = mf.fit(model, data)
        with pytest.raises(mf.ModelError, match="sweights: the model must be a sum of at least 2 densities"):
            mf.sweights(model, data, result)


def test_a_result_of_something_else_is_refused(data, result):
    narrow = mf.Sum([mf.Gaussian(M, MU, 0.1), BACKGROUND], yields=[NS, NB])
    with pytest.raises(mf.FitError, match=r"fit of this model to these data, got nll of the fit"):
        mf.sweights(narrow, data, result)
    with pytest.raises(mf.ModelError, match="sweights: parameter 'sigma': not in the fit result"):
        mf.sweights(MODEL, data, mf.fit(narrow, data))
    with pytest.raises(mf.FitError, match="got events of the fit 800, of the data 400"):
        mf.sweights(MODEL, data[:400], result)
    with pytest.raises(mf.FitError, match="weights belong into the dataset"):
        mf.sweights(MODEL, data, mf.fit(MODEL, data, weights=np.full(800, 2.0)))
    with pytest.raises(mf.FitError, match=r"a fit with constraints needs its mf\.Likelihood"):
        mf.sweights(MODEL, data, mf.fit(MODEL, data, constraints=mf.constraint(SIGMA, 0.2, 0.01)))


def test_arguments_that_are_no_fits_are_refused(data, result):
    with pytest.raises(mf.OptionError, match=r"sweights: result must be that of mf\.fit, got dict"):
        mf.sweights(MODEL, data, {"ns": 1.0})
    with pytest.raises(mf.OptionError, match="got NoneType; call sweights"):
        mf.sweights(MODEL, data)
    with pytest.raises(mf.DataError, match="sweights: a model needs data"):
        mf.sweights(MODEL, None, result)
    with pytest.raises(mf.FitError, match="sweights: the result must be valid, got one where it failed"):
        mf.sweights(MODEL, data, replace(result, valid=False, reasons=("it failed",)))
    joint = mf.Likelihood(MODEL, data) + mf.Likelihood(MODEL, data)
    with pytest.raises(mf.ModelError, match="takes the likelihood of one sample of events"):
        mf.sweights(joint, None, result)
    counts, edges = np.histogram(data["m"], 50, (5, 6))
    binned = mf.BinnedLikelihood(MODEL, (counts, edges))
    with pytest.raises(mf.ModelError, match="takes the likelihood of one sample of events"):
        mf.sweights(binned, None, result)
    with pytest.raises(mf.DataError, match="data must be the 800 events of the likelihood"):
        mf.sweights(mf.Likelihood(MODEL, data), data[:10], result)


def test_events_outside_of_the_range_are_refused(data, result):
    with pytest.raises(mf.DataError, match="observable 'm': 1 of 801 events lie outside"):
        mf.sweights(MODEL, {"m": np.append(data["m"], 7.0)}, result)


def test_no_events_are_refused():
    likelihood = mf.Likelihood(MODEL, {"m": []})
    result = mf.fit(MODEL, mf.generate(MODEL, seed=1))
    with pytest.raises(mf.DataError, match="sweights: needs events, got none"):
        mf.sweights(likelihood, None, result)


def test_densities_that_are_alike_are_refused(data):
    model = mf.Sum([mf.Exponential(M, -1.0), mf.Exponential(M, -1.0 - 1e-9)], yields=[NS, NB])
    result = mf.fit(model, data, fixed=["ns"])
    with pytest.raises(mf.ModelError, match="too similar to distinguish"):
        mf.sweights(model, data, result)


def test_variances_that_make_no_sense_are_refused(data, result):
    for variance in ("all", [1, 2]):
        with pytest.raises(
            mf.OptionError, match="variance must be 'total', a density, a formula or a number"
        ):
            mf.sweights(MODEL, data, result, variance=variance)
    with pytest.raises(mf.ModelError, match="sweights: variance must be positive at all events, got -1"):
        mf.sweights(MODEL, data, result, variance=-1)
    with pytest.raises(mf.ModelError, match="sweights: 't', 'tau': not in the model"):
        mf.sweights(MODEL, data, result, variance=DECAY)
    with pytest.raises(mf.OptionError, match="an expansion is for custom orthogonal functions"):
        mf.sweights(MODEL, data, result, expansion=[mf.Uniform(M)])
    with pytest.raises(mf.ModelError, match="expansion must be densities, got 1"):
        mf.sweights(MODEL, data, result, variance=1, expansion=[1])


def test_weights_are_taken_by_label_or_index(weights):
    for component in ("signal", 0, -2):
        np.testing.assert_array_equal(weights[component], weights.weights["signal"])
    with pytest.raises(mf.ModelError, match="sweights: no component 'sgnal'; did you mean 'signal'"):
        _ = weights["sgnal"]


def test_components_that_are_not_there_are_refused(data, weights):
    for component in ("sgnal", 2, -3, True, None):
        with pytest.raises(mf.ModelError, match="sweights: no component"):
            weights.data_for(component)
    with pytest.raises(mf.DataError, match="data must have the 800 events that were weighted, got 3"):
        weights.data_for("signal", {"t": [1.0, 2.0, 3.0]})


def test_a_fit_to_other_weights_is_not_corrected(data, weights):
    background = mf.fit(DECAY, weights.data_for("background"))
    with pytest.raises(mf.FitError, match="fit of this model to these data"):
        weights.corrected("signal", DECAY, background)
    likelihood = mf.Likelihood(DECAY, weights.data_for("background"))
    with pytest.raises(
        mf.DataError, match=r"the fit must be one of data_for\('signal'\), got events with other"
    ):
        weights.corrected("signal", likelihood, background)
    with pytest.raises(mf.OptionError, match=r"sweights: result must be that of mf\.fit, got float"):
        weights.corrected("signal", DECAY, 1.0)


def test_errors_of_weights_are_no_option_of_a_fit(weights):
    with pytest.raises(mf.OptionError, match=r"fit: errors must be one of .* got 'sweights'"):
        mf.fit(DECAY, weights.data_for("signal"), errors="sweights")


def test_blinded_yields_are_refused_and_blinded_shapes_are_not(data, weights):
    hidden = mf.Parameter("ns", 300.0, 0.0, 1e3, blind="no peeking")
    model = MODEL.replace({NS: hidden})
    with pytest.raises(mf.ModelError, match="weights would show the yields, of which 'ns' is blinded"):
        mf.sweights(model, data, mf.fit(model, data))
    shifted = MODEL.replace({ALPHA: mf.Parameter("alpha", -1.0, -10.0, 10.0, blind="no peeking")})
    result = mf.fit(shifted, data)
    assert abs(result.values["alpha"] - weights.result.values["alpha"]) > 1e-3  # it is shifted
    other = mf.sweights(shifted, data, result)
    np.testing.assert_allclose(other.weights["signal"], weights.weights["signal"], atol=1e-2)
    fitted = mf.fit(DECAY, other.data_for("signal"))
    assert other.corrected("signal", DECAY, fitted).errors["tau"] > 0
