"""What somebody writes at first: works where its meaning is clear, and is refused with what to write instead elsewhere."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import morefit as mf
from morefit.records.fields import MinosErrors

X = mf.Observable("x", -5.0, 5.0)
MU, SIGMA = mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.0, 0.1, 3.0)
MODEL = mf.Gaussian(X, MU, SIGMA)
NLL = mf.Likelihood(MODEL, {"x": np.linspace(-2.0, 2.5, 20)})
POINT = {"mu": 0.2, "sigma": 1.1}


def test_derivatives_are_indexed_by_name():
    # by position only, unlike all other results
    gradient, hessian, fisher = NLL.gradient(POINT), NLL.hessian(POINT), NLL.fisher(POINT)
    assert gradient["sigma"] == gradient[SIGMA] == gradient[1]
    assert hessian["mu", "sigma"] == hessian[MU, SIGMA] == hessian[0, 1]
    assert fisher["sigma", "sigma"] == fisher[1, 1]
    many = NLL.gradient(POINT | {"mu": np.array([0.2, 0.3])})
    assert many.shape == (2, 2)
    assert many["sigma"].tolist() == many[:, 1].tolist()
    assert type(np.linalg.inv(hessian)) is type(hessian @ gradient) is np.ndarray
    with pytest.raises(mf.ModelError, match=r"parameter 'sgma': not fitted; did you mean 'sigma'?"):
        gradient["sgma"]


@pytest.mark.parametrize("call", [NLL.value, NLL.gradient, NLL.hessian, NLL.fisher, NLL.log_probability, NLL])
def test_a_likelihood_without_values_says_how_they_are_passed(call):
    with pytest.raises(mf.OptionError, match=r"write nll.value\(\{'mu': 0.1, 'sigma': 1\}\)"):
        call()


def test_a_parameter_is_formatted_as_its_start_value_and_a_formula_is_not():
    assert f"{MU:.3f} {MU:8.1e} {MU:%}" == "0.100  1.0e-01 10.000000%"
    assert f"{MU:>40}" == f"{MU!s:>40}"
    for formula in (2 * MU, X):
        with pytest.raises(mf.ModelError, match=r"has no value to format; write result.derived"):
            f"{formula:.3f}"
    assert f"{2 * MU:>8}" == "    2*mu"


def test_minos_errors_that_were_not_found_are_missed_in_a_sentence():
    for result in (mf.fit(NLL), pickle.loads(pickle.dumps(mf.fit(NLL))), copy.deepcopy(mf.fit(NLL))):
        with pytest.raises(KeyError, match=r"no 'mu'; there are none; pass minos=True to mf.fit"):
            result.minos["mu"]
    scanned = mf.fit(NLL, minos=["mu"])
    again = mf.FitResult.from_json(scanned.to_json())
    assert isinstance(again.minos, MinosErrors)
    assert again.minos["mu"] == scanned.minos[MU]
    with pytest.raises(KeyError, match=r"no 'sigma'; there are 'mu'; pass minos=True"):
        again.minos["sigma"]


def test_backends_name_the_argument_that_is_meant():
    # errors of Python
    for name in ("nthreads", "n_jobs", "cores"):
        with pytest.raises(mf.OptionError, match=rf"Cpu: has no argument '{name}'; did you mean 'threads'?"):
            mf.Cpu(**{name: 4})
    with pytest.raises(mf.OptionError, match=r"OpenCL: has no argument 'index'; did you mean 'device'?"):
        mf.OpenCL(index=1)
    assert pickle.loads(pickle.dumps(mf.Cpu(2))) == mf.Cpu(threads=2)


def test_a_density_is_not_called():
    with pytest.raises(mf.ModelError, match=r"density 'Gaussian': is not called; write model.pdf\(x\)"):
        MODEL(0.3)


@pytest.mark.parametrize(
    "bins", ["abc", ["a", "b"], {}, object(), [0.0, None], pytest.param(10**400, id="too many")]
)
def test_bins_of_plots_are_numbers(bins):
    with pytest.raises(mf.MorefitError, match=r"bin"):
        mf.plot(MODEL, NLL.data, bins=bins)


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"a": 1}, "style has 'a', which is no setting of matplotlib; write style="),
        (
            {"font.sise": 3},
            "style has 'font.sise', which is no setting of matplotlib; did you mean 'font.size'?",
        ),
        ({"font.size": "huge!"}, "style has 'huge!' for 'font.size': "),
        (3, "style must be the name of one of mplhep, or settings of matplotlib by name, got 3"),
    ],
)
def test_styles_of_plots_are_settings_of_matplotlib(style, message):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = dict(plt.rcParams)
    with pytest.raises(mf.OptionError, match=message.replace("?", r"\?")):
        mf.plot(MODEL, NLL.data, style=style)
    assert dict(plt.rcParams) == before


def test_a_value_outside_of_limits_is_not_fixed_in_silence():
    # fixed= used to take any value
    with pytest.raises(
        mf.FitError,
        match=r"'mu': fixed value must lie in \[-1.0, 1.0\], got 7.0; pass limits=\{'mu': \(-1, 7\)\}",
    ):
        mf.fit(NLL, fixed={"mu": 7.0})
    assert mf.fit(NLL, fixed={MU: 1.5}, limits={"mu": (-1, 2)}).values["mu"] == 1.5
    assert mf.fit(NLL, fixed={MU: 1.0}).values["mu"] == 1.0


def test_a_truth_that_fits_cannot_reach_is_warned_of():
    with pytest.warns(
        UserWarning,
        match=r"toy study: parameter 'mu': the truth must lie in \[-1.0, 1.0\] for fits to find it, got 2.0",
    ):
        mf.toy_study(MODEL, toys=2, events=20, truth={"mu": 2.0}, seed=1, progress=False)
    other = mf.Gaussian(X, mf.Parameter("mu", 2.0, 1.0, 3.0), SIGMA)
    mf.toy_study(MODEL, toys=2, events=20, truth={"mu": 2.0}, fit_model=other, seed=1, progress=False)


def test_a_series_goes_by_its_labels():
    # by position in values of a likelihood, and refused elsewhere
    pandas = pytest.importorskip("pandas")
    series = pandas.Series({"sigma": 1.1, "mu": 0.2})
    assert NLL.value(series) == NLL.value(POINT)
    assert NLL.value(pandas.Series([0.2, 1.1])) == NLL.value(POINT)
    assert MODEL.pdf(0.3, values=series) == MODEL.pdf(0.3, values=POINT)
    assert mf.fit(NLL, start=series, fixed=series[["sigma"]]).values["sigma"] == 1.1
    best = mf.fit(NLL)
    same = [mf.generate(MODEL, 3, truth=truth, seed=1)["x"] for truth in (best, best.to_pandas()["value"])]
    np.testing.assert_array_equal(*same)


def test_a_likelihood_is_called_by_name():
    assert NLL(mu=0.2, sigma=1.1) == NLL(0.2, 1.1) == NLL(POINT)
    with pytest.raises(mf.OptionError, match="numbers one by one or by name, not both"):
        NLL(0.2, sigma=1.1)


def test_numbers_by_name_are_arrays_and_rows_of_matrices_too():
    result = mf.fit(NLL)
    assert np.array(result.values).tolist() == list(result.values.values())  # it was an array of the names
    assert result.covariance["mu"]["sigma"] == result.covariance["mu", "sigma"]
    with pytest.raises(TypeError, match=r"numbers by name are no function, got \(\); write \[name\]"):
        result.values()


def test_columns_may_be_named_by_observables():
    assert len(mf.Dataset({X: [0.1, 0.2]}, [X])) == 2


def test_whole_numbers_of_events_and_bins_may_be_written_as_others():
    assert len(mf.generate(MODEL, 1e1, seed=1)) == 10
    assert len(mf.plots.project(MODEL, NLL.data, "x", bins=1e1).counts) == 10


def test_fractions_that_add_up_to_more_than_one_at_their_start_are_refused():
    parts = [MODEL, mf.Uniform(X), mf.Exponential(X, -1.0)]
    high = [mf.Parameter("f", 0.8, 0.0, 1.0), mf.Parameter("g", 0.7, 0.0, 1.0)]
    with pytest.raises(
        mf.ModelError, match=r"total of the fractions must be 1 at most .*, which is 1.5 at the start of"
    ):
        mf.Sum(parts, fractions=high)
    mf.Sum(parts, fractions=high, recursive=True)
    mf.Sum(parts, fractions=[mf.Parameter("f", 0.9, 0.0, 1.0), mf.Parameter("g", 0.1, 0.0, 1.0)])


def test_a_dataclass_of_a_density_needs_no_options():
    # "unhashable type" of Python, or a comparison of parameters, which has no truth value
    for options in ({}, {"frozen": True}):

        @dataclass(**options)
        class Peak(mf.Pdf):
            x: mf.Observable
            mu: mf.Parameter

            def density(self):
                return np.exp(-0.5 * (self.x - self.mu) ** 2)

        one, other = Peak(X, MU), Peak(X, MU)
        assert one == one
        assert one != other
        assert mf.fit(one, NLL.data).values["mu"] == pytest.approx(0.25, abs=1e-3)


def test_classes_of_densities_without_a_formula_are_refused():
    class Nothing(mf.Pdf):
        pass

    class Arguments(mf.Pdf):
        def __init__(self, x, mu):
            self.x, self.mu = x, mu

        def density(self, x, mu):
            return np.exp(-0.5 * (x - mu) ** 2)

    with pytest.raises(
        mf.ModelError, match=r"density 'Nothing': needs a method density\(self\) that returns"
    ):
        Nothing()
    with pytest.raises(
        mf.ModelError, match=r"density\(self\) has no other arguments, got x, mu; keep .* write self.x"
    ):
        Arguments(X, MU)
