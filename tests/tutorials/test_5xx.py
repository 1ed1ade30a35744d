"""RooFit's tutorials 501 to 515: models by category, and what workspaces and their language are for.

The workspace of morefit is Python: a function that builds a model is its definition, `model.replace` edits it, a
dictionary holds results, `pickle` stores models with their data, and JSON stores results for other programs.
"""

import json
import pickle
import subprocess
import sys
import tomllib

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import optimize, stats

import morefit as mf
from tolerances import NUMERICAL, SAME_MINIMUM
from tutorial_models import near_truth, signal_and_background

X = mf.Observable("x", -10, 10)
FRACTION = mf.Parameter("fraction", 0.5, 0, 1)


def peak_over_line():
    """Return a Gaussian over a line, which most tutorials of this series have."""
    m, s = mf.Parameter("m", 0, -10, 10), mf.Parameter("s", 1, 0.1, 10)
    line = mf.Polynomial(X, [mf.Parameter("p0", 0.01, 0, 0.1)])
    return mf.Sum([mf.Gaussian(X, m, s), line], fractions=[mf.Parameter("f", 0.5, 0, 1)])


def test_rf501_simultaneouspdf_a_control_sample_determines_the_width():
    x, sigma = mf.Observable("x", -8, 8), mf.Parameter("sigma", 0.3, 0.1, 10)

    def sample(name, mean, slopes, fraction):
        a = [mf.Parameter(f"a{k}_{name}", slope, -1, 1) for k, slope in enumerate(slopes)]
        peak = mf.Gaussian(x, mf.Parameter(f"mean_{name}", mean, -8, 8), sigma)
        return mf.Sum(
            [peak, mf.shapes.Chebyshev(x, a)], fractions=[mf.Parameter(f"f_{name}", fraction, 0, 1)]
        )

    models = {
        "physics": sample("physics", 0, [-0.1, 0.004], 0.2),
        "control": sample("control", -3, [-0.1, 0.5], 0.5),
    }
    both = mf.Simultaneous(models, "sample")
    data = mf.generate(both, {"physics": 1_000, "control": 2_000}, seed=1)
    result = mf.fit(both, data)
    alone = mf.fit(models["physics"], data.by_label("sample")["physics"])
    assert near_truth(result, mean_physics=0, mean_control=-3, sigma=0.3, f_physics=0.2, f_control=0.5)
    assert result.errors["sigma"] < 0.7 * alone.errors["sigma"]
    assert mf.plot(both, data, "x", values=result, summed=True).numbers.counts.sum() == 3_000
    physics = mf.plot(both, data, "x", values=result, category="physics")
    assert physics.numbers.counts.sum() == 1_000
    plt.close("all")


def test_rf502_rf503_wspacewrite_and_wspaceread_in_another_process(tmp_path):
    """A likelihood pickles with its model, its data and its constraints."""
    model = signal_and_background(fractions=[FRACTION])
    nll = mf.Likelihood(model, mf.generate(model, 1_000, seed=2))
    (tmp_path / "workspace.pickle").write_bytes(pickle.dumps({"model": model, "nll": nll}))
    script = (
        "import pickle, sys, morefit as mf\n"
        "w = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(w['model'], file=sys.stderr)\n"
        "print(mf.fit(w['nll'], fixed=['share']).to_json())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "workspace.pickle")]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert there.stderr.strip() == str(model)
    assert mf.FitResult.from_json(there.stdout).values == mf.fit(nll, fixed=["share"]).values


def test_rf504_simwstool_parameters_split_by_one_and_by_two_categories():
    model = peak_over_line()
    by_run = mf.Simultaneous(
        {run: model.replace({"m": mf.Parameter(f"m_{run}", 0, -10, 10)}) for run in ("run1", "run2")}, "c"
    )
    truth = {"m_run1": -3, "m_run2": 3}
    data = mf.generate(by_run, {"run1": 1_000, "run2": 1_000}, truth=truth, seed=3)
    assert near_truth(mf.fit(by_run, data, start=truth), **truth)
    by_both = {
        f"{c};{d}": model.replace({"p0": mf.Parameter(f"p0_{c}_{d}", 0.01, 0, 0.1)})
        for c in ("run1", "run2")
        for d in ("foo", "bar")
    }
    names = {p.name for pdf in by_both.values() for p in pdf.parameters}
    assert len(names) == 3 + 4


def test_rf505_asciicfg_values_in_files(tmp_path):
    model = peak_over_line()
    data = mf.generate(model, 1_000, seed=4)
    result = mf.fit(model, data)
    result.to_json(tmp_path / "fit.json")
    again = mf.fit(model, data, start=mf.FitResult.from_json(tmp_path / "fit.json"))
    assert again.nll == pytest.approx(result.nll)
    settings = tomllib.loads("[section3.fixed]\nf = 0.372\nm = 0.195\n")["section3"]
    fixed = mf.fit(model, data, **settings)
    assert (fixed.values["f"], fixed.values["m"]) == (0.372, 0.195)
    assert fixed.floating == ("s", "p0")


def test_rf506_msgservice_what_a_fit_does_is_printed_when_it_is_wanted(capfd):
    """There are no streams of messages: a fit is silent, `print_level` and `explain` show its inside."""
    model = peak_over_line()
    data = mf.generate(model, 100, seed=5)
    mf.fit(model, data)
    assert capfd.readouterr() == ("", "")
    mf.fit(model, data, minimiser="minuit", print_level=2)
    assert "VariableMetric" in "".join(capfd.readouterr())
    wave = mf.Density(2 + np.sin(X * mf.Parameter("k", 1, 0, 2)) ** 3, X)
    assert "integral" in str(mf.explain(wave))
    assert "per event" in mf.explain(model).cut()


def test_rf508_listsetmanip_lists_and_sets_are_those_of_python():
    a, b, c = (mf.Parameter(name, k, -10, 10, fixed=name != "c") for k, name in enumerate("abc", 1))
    gauss = mf.Gaussian(X, a, b + c)
    parameters = {p.name: p for p in gauss.parameters}
    assert parameters["a"] is a
    assert [p.name for p in gauss.parameters if p.fixed] == ["a", "b"]
    assert set(gauss.parameters) & {c, mf.Parameter("d", 4)} == {c}


def test_rf510_wsnamedsets_results_are_snapshots():
    model = signal_and_background(mean=mf.Parameter("mean", 5, 0, 10), fractions=[FRACTION])
    reference = mf.generate(model, 2_000, seed=6)
    snapshots = {
        "reference": mf.fit(model, reference, fixed=["share"]),
        "background only": mf.fit(model, reference, fixed={"share": 0.8, "fraction": 0, "mean": 5}),
    }
    data = mf.generate(model, 500, truth=snapshots["reference"], seed=7)
    curves = {name: mf.plot(model, data, values=v).numbers.curve for name, v in snapshots.items()}
    middle = len(curves["reference"]) // 2
    assert curves["background only"][middle] < 0.5 * curves["reference"][middle]
    plt.close("all")


def test_rf511_wsfactory_basic_a_model_in_one_expression():
    x, mean = mf.Observable("x", -10, 10), mf.Parameter("mean", 5, 0, 10)
    model = mf.Sum(
        [
            mf.shapes.Chebyshev(x, [mf.Parameter("a0", 0.5, 0, 1), mf.Parameter("a1", -0.2, -1, 1)]),
            mf.Sum(
                [mf.Gaussian(x, mean, 0.5), mf.Gaussian(x, mean, 1.0)],
                fractions=[mf.Parameter("share", 0.8, 0, 1)],
            ),
        ],
        fractions=[mf.Parameter("bkgfrac", 0.5, 0, 1)],
    )
    data = mf.generate(model, 1_000, seed=8)
    assert near_truth(mf.fit(model, data, fixed=["share"]), mean=5, bkgfrac=0.5)
    smooth = mf.KernelDensity(x, data)
    assert smooth.cdf(5.0) == pytest.approx(model.cdf(5.0), abs=0.05)


@pytest.mark.slow
def test_rf512_wsfactory_oper_every_operator_of_the_language():
    x, y, z = (mf.Observable(name, -10, 10) for name in "xyz")
    m, f, u, v = mf.Parameter("m", 0, -10, 10), mf.Parameter("f", 0.5, 0, 1), 10.0, 12.0
    gx, ch = mf.Gaussian(x, m, 1.0), mf.shapes.Chebyshev(x, [0.1, 0.2, -0.3])
    yields = [mf.Parameter("nsig", 100, 0, 1_000), mf.Parameter("nbkg", 200, 0, 1_000)]
    total, extended = mf.Sum([gx, ch], fractions=[f]), mf.Sum([gx, ch], yields=yields)
    product = mf.Product([gx, mf.Gaussian(z, 0.0, 1.0)])
    conditional = mf.Product([mf.Gaussian(y, x, 1.0, given=[x]), gx])
    smeared = mf.Convolution(mf.shapes.Landau(x, 0.0, 1.0), mf.Gaussian(mf.Observable("d", -6, 6), 0.0, 1.0))
    by_label = mf.Simultaneous({"A": mf.Gaussian(x, m, mf.Parameter("s", 1, 0.01, 10)), "B": smeared}, "c")
    formula = mf.Density(x * x + mf.Parameter("a", u * v / (u + v), 0, 10), x)
    point = {"x": [0.5], "y": [1.0], "z": [0.2]}
    assert total.pdf(0.5) == pytest.approx(0.5 * gx.pdf(0.5) + 0.5 * ch.pdf(0.5), rel=NUMERICAL)
    assert product.pdf(point) == pytest.approx(stats.norm.pdf(0.5) * stats.norm.pdf(0.2), rel=NUMERICAL)
    assert conditional.pdf(point) == pytest.approx(
        stats.norm.pdf(0.5) * stats.norm.pdf(1.0, 0.5), rel=NUMERICAL
    )
    assert abs(len(mf.generate(extended, seed=9)) - 300) < 4 * 300**0.5
    assert len(mf.generate(by_label, {"A": 10, "B": 20}, seed=9)) == 30
    area = 2 * 1_000 / 3 + 20 * u * v / (u + v)
    assert formula.pdf(0.0) == pytest.approx(u * v / (u + v) / area, rel=NUMERICAL)
    # RooFit's taylorexpand: derivatives are exact ones
    line = mf.Polynomial(x, [0.01])
    assert line.pdf(3.0) == pytest.approx(line.pdf(0.0) + 3.0 * line.derivative(0.0, x), rel=NUMERICAL)


@pytest.mark.slow
@pytest.mark.exhaustive  # seconds to compile: test_rf708 fits such decays, and test_rf504 replaces parameters
def test_rf513_wsfactory_tools_mixing_by_tag_with_edited_dilutions():
    """SIMCLONE is a dictionary of `replace`, and so is EDIT."""
    dt, mes = mf.Observable("dt", -5, 20), mf.Observable("mes", 5.20, 5.29)
    tau, dm, w = (
        mf.Parameter("tau", 1.54, 1, 2),
        mf.Parameter("dm", 0.472, 0.2, 0.8),
        mf.Parameter("w", 0.05, 0, 0.5),
    )
    resolution = {"sigma": [0.4, 1.0], "fractions": [0.8], "mean": [mf.Parameter("bias", 0.0, -1, 1)]}
    mass, tail = mf.Gaussian(mes, 5.28, 0.003), mf.shapes.Argus(mes, 5.291, -30.0)
    background = mf.Product([mf.shapes.Decay(dt, tau, **resolution), tail])

    def model(mix):
        signal = mf.Product(
            [mf.shapes.BDecay(dt, tau, delta_m=dm, cos=mix * (1 - 2 * w), **resolution), mass]
        )
        return mf.Sum([signal, background], fractions=[0.9])

    tags = {"Lep": 0.05, "Kao": 0.2}
    split = {
        f"{tag} {'mixed' if mix < 0 else 'unmixed'}": model(mix).replace(
            {"w": 0.5 - mf.Parameter(f"D_{tag}", 0.5, 0, 1) / 2}
        )
        for tag in tags
        for mix in (-1, 1)
    }
    both = mf.Simultaneous(split, "tagCat")
    truth = {f"D_{tag}": 1 - 2 * mistag for tag, mistag in tags.items()}
    data = mf.generate(both, dict.fromkeys(split, 1_000), truth=truth, seed=10)
    assert near_truth(mf.fit(both, data), dm=0.472, tau=1.54, **truth)


def test_rf514_roocustomizer_formulas_in_the_place_of_yields():
    energy, mass = mf.Observable("energy", 0, 500), mf.Parameter("M", 3_000, 0, 12_000)
    mean, count = mf.Parameter("mean", 100, 0, 500), mf.Parameter("n", 800, 0, 1e4)
    model = mf.Sum(
        [mf.Gaussian(energy, mean, 3.0), mf.Uniform(energy)], yields=[count, mf.Parameter("b", 500, 0, 1e4)]
    )
    changes = {"1": mass / 3.360779, "2": mass / 2, "3": mf.Parameter("n_3", 800, 0, 1e4)}
    samples = {
        label: model.replace({"n": change, "mean": mf.Parameter(f"mean_{label}", 100.0 * int(label), 0, 500)})
        for label, change in changes.items()
    }
    all_three = mf.Simultaneous(samples, "sample")
    result = mf.fit(all_three, mf.generate(all_three, seed=11))
    assert near_truth(result, M=3_000, n_3=800, mean_1=100, mean_2=200, mean_3=300)
    assert "n" not in result.values


def test_rf515_hfjson_a_file_of_the_standard_is_read(tmp_path):
    """The numbers of the tutorial's file, whose bins have factors with Poisson constraints."""

    def sample(name, contents, systematic, *others, **errors):
        norm = {"name": systematic, "type": "normsys", "data": {"hi": 1.05, "lo": 0.95}}
        return {"name": name, "data": {"contents": contents, **errors}, "modifiers": [norm, *others]}

    staterror = {"name": "mcstat", "type": "staterror"}
    observed, sizes = [122, 112], [400, 100]
    content = {
        "analyses": [{"name": "main", "likelihoods": ["channel1"], "pois": ["mu"]}],
        "likelihoods": [{"name": "channel1", "dist": "model_channel1", "obs": "observed_channel1"}],
        "distributions": {"model_channel1": {
            "type": "histfactory_dist",
            "statError": {"constraint": "Poisson", "relThreshold": 0.01},
            "samples": [
                sample("signal", [20, 10], "syst1", {"name": "mu", "type": "normfactor"}),
                sample("background1", [100, 0], "syst2", staterror, errors=[5, 0]),
                sample("background2", [0, 100], "syst3", staterror, errors=[0, 10]),
            ],
        }},
        "domains": [{"name": "default_domain", "variables": [{"name": "mu", "min": -3, "max": 5}]}],
        "parameter_points": [{"name": "default_values", "mu": {"value": 1}}],
        "data": [{"name": "observed_channel1", "contents": observed}],
    }  # fmt: skip
    (tmp_path / "rf515.json").write_text(json.dumps(content))
    nll = mf.histfactory.read(tmp_path / "rf515.json", normsys="code1")
    result = mf.fit(nll)

    def by_scipy(p):
        s1, s2, s3 = (1.05**a if a > 0 else 0.95**-a for a in p[1:4])
        expected = np.array([20 * p[0] * s1 + 100 * s2 * p[4], 10 * p[0] * s1 + 100 * s3 * p[5]])
        nll = -stats.poisson.logpmf(observed, expected).sum() + np.sum(p[1:4] ** 2) / 2
        return nll - stats.poisson.logpmf(sizes, sizes * p[4:]).sum()

    best = optimize.minimize(
        by_scipy, [1, 0, 0, 0, 1, 1], method="Nelder-Mead", options={"maxfev": 6_000, "xatol": 1e-6}
    )
    assert result.valid
    assert nll.poi == "mu"
    assert result.values["mu"] == pytest.approx(best.x[0], abs=SAME_MINIMUM * result.errors["mu"])
