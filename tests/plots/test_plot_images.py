"""Figures look as they did when somebody last looked at them: ``python tests/plots/test_plot_images.py`` draws them anew."""

import importlib.util
from functools import cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.testing.compare import compare_images
from PIL import Image

import morefit as mf
from tolerances import IMAGE

ROOT = Path(__file__).parents[2]
BASELINES = Path(__file__).parents[1] / "baseline_images"
DPI = 60


@cache
def example(name):
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def fitted(name, events):
    """Return the model of an example, data drawn from it, and the fit."""
    model = example(name).make_model()
    data = mf.generate(model, events, truth=example(name).TRUTH, seed=1)
    return model, data, mf.fit(model, data)


def mass_fit(**options):
    """The paper's figure: 100 000 events of the mass model."""
    model, data, result = fitted("mass_fit", 100_000)
    return mf.plot(model, data, "m", values=result, labels=["signal", "background"], **options)


def angles(name, **options):
    model, data, result = fitted("kstarmumu_fit", 20_000)
    return mf.plot(model, data, name, values=result, bins=50, **options)


def few_events():
    """Bins without events, on a logarithmic axis, and too many in the first bins."""
    x = mf.Observable("x", 0.0, 10.0, label="$x$ [mm]")
    data = {"x": np.concatenate([np.linspace(0.1, 3, 40), [6.1, 6.12, 6.13, 6.14, 9.0]])}
    return mf.plot(mf.Exponential(x, -1.0), data, x, bins=20, log=True, empty_bins=True)


def weights():
    """Weights of both signs, bins of different widths."""
    x = mf.Observable("x", 0.0, 1.0, label="$x$")
    grid = (np.arange(300) + 0.5) / 300
    signs = np.where(np.arange(300) % 7 == 0, -0.5, 1.2)
    return mf.plot(mf.Polynomial(x, [0.2]), {"x": grid}, x, bins=[0, 0.1, 0.3, 0.35, 0.7, 1], weights=signs)


def small_model():
    m = mf.Observable("m", 5.0, 7.0)
    parts = [mf.Gaussian(m, 5.28, 0.06), mf.Exponential(m, mf.Parameter("alpha", -1.0, -10.0, 10.0))]
    return mf.Sum(parts, fractions=[mf.Parameter("fsig", 0.1, 0.0, 1.0)])


def scanned(draw):
    """Draw what is made of a likelihood and its best fit."""
    likelihood = mf.Likelihood(small_model(), mf.generate(small_model(), 1_000, seed=2))
    return draw(likelihood, mf.fit(likelihood))


def profile(likelihood, best):
    return mf.plots.profile(mf.intervals.profile(likelihood, "fsig", best=best, size=21, progress=False))


def contour(likelihood, best):
    return mf.plots.contour(
        mf.intervals.contour(likelihood, "fsig", "alpha", best=best, size=15, progress=False)
    )


def pulls():
    return mf.plots.pulls(mf.toy_study(small_model(), toys=1_000, events=300, seed=3, progress=False), "fsig")


def belt():
    values = np.linspace(0, 0.2, 6)
    found = mf.intervals.neyman_belt(
        small_model(), "fsig", values, events=200, toys=200, seed=4, progress=False
    )
    return mf.plots.belt(found, 0.08, levels=(0.6827, 0.9545))


def p_values():
    data = mf.generate(small_model(), 200, seed=5)
    values = np.linspace(0, 0.3, 7)
    return mf.plots.p_values(
        mf.intervals.feldman_cousins(
            mf.Likelihood(small_model(), data), "fsig", values, toys=100, seed=6, progress=False
        )
    )


def two_dimensions():
    model, data, result = fitted("kstarmumu_fit", 20_000)
    return mf.plots.plane(model, data, "ctl", "phi", values=result, bins=10)


def points():
    start, slope = (
        mf.Parameter("start", 1.0, -10.0, 10.0, label="$a_0$"),
        mf.Parameter("slope", 1.0, -10.0, 10.0),
    )
    x = np.arange(1.0, 9.0)
    y = 1 + 0.5 * x + 0.2 * np.cos(5 * x)
    nll = mf.LeastSquares(lambda x: start + slope * x, x, y, 0.2, 0.1)
    return mf.plot(nll, values=mf.fit(nll), band=True, box=True)


def goodness(likelihood, best):
    test = mf.intervals.goodness_of_fit(
        likelihood, "chi2", best=best, bins=20, toys=300, seed=1, progress=False
    )
    return mf.plots.goodness_of_fit(test)


def small_fit(**options):
    data = mf.generate(small_model(), 1_000, seed=2)
    return mf.plot(
        small_model(), data, values=mf.fit(small_model(), data), band=True, box=True, bins=20, **options
    )


def impacts():
    """Parameters with and without constraints."""
    x = mf.Observable("x", 0.0, 10.0)
    mean, width = mf.Parameter("mean", 5.0, 4.0, 6.0), mf.Parameter("width", 0.5, 0.2, 1.0)
    yields = [mf.Parameter("signals", 200.0, 0.0, 1000.0), mf.Parameter("backgrounds", 300.0, 0.0, 2000.0)]
    slope = mf.Parameter("slope", -0.2, -1.0, 1.0)
    model = mf.Sum([mf.Gaussian(x, mean, width), mf.Exponential(x, slope)], yields=yields)
    constraints = [
        mf.constraint(mean, 5.05, 0.05),
        mf.constraint(width, 0.5, 0.05),
        mf.constraint(slope, -0.2, 0.02),
    ]
    nll = mf.Likelihood(model, mf.generate(model, seed=4), constraints=constraints)
    return mf.plots.impacts(
        mf.intervals.impacts(nll, "signals"), labels={"mean": r"$\mu$", "width": r"$\sigma$"}
    )


def limits():
    """Limits of a peak at several places."""
    m, place = mf.Observable("m", 5.0, 7.0), mf.Parameter("place", 5.28, 5.1, 6.5)
    signals, rest = mf.Parameter("signals", 1.0, -50.0, 200.0), mf.Parameter("rest", 900.0, 0.0, 2000.0)
    model = mf.Sum([mf.Gaussian(m, place, 0.06), mf.Exponential(m, -1.0)], yields=[signals, rest])
    counts = np.histogram(mf.generate(small_model(), 1_000, seed=2)["m"], 50, (5.0, 7.0))
    nll = mf.BinnedLikelihood(model, counts)
    by_place = {
        at: mf.intervals.upper_limit(nll, signals, best=mf.fit(nll, fixed={"place": at}))
        for at in np.linspace(5.2, 6.2, 11)
    }
    return mf.plots.limits(by_place, xlabel="mass [GeV]", labels={"signals": "$N$"})


FIGURES = {
    "mass_fit": mass_fit,
    "mass_fit_log": lambda: mass_fit(log=True),
    "kstarmumu_ctl": lambda: angles("ctl"),
    "kstarmumu_ctk": lambda: angles("ctk"),
    "kstarmumu_phi": lambda: angles("phi"),
    "kstarmumu_phi_part": lambda: angles("phi", ranges={"ctl": (0, 1), "ctk": (-1, 0)}),
    "few_events": few_events,
    "weights": weights,
    "pulls": pulls,
    "profile": lambda: scanned(profile),
    "contour": lambda: scanned(contour),
    "correlation": lambda: scanned(lambda _, best: mf.plots.correlation(best)),
    "stacked": lambda: small_fit(components="stacked", lower="residuals"),
    "ratio": lambda: small_fit(lower="ratio", blind=(5.2, 5.4)),
    "points": points,
    "plane": two_dimensions,
    "goodness_of_fit": lambda: scanned(goodness),
    "belt": belt,
    "p_values": p_values,
    "impacts": impacts,
    "limits": limits,
}


def save(name, folder):
    """Draw one figure with the settings that matplotlib comes with."""
    path = folder / f"{name}.png"
    with mpl.rc_context():
        mpl.rcdefaults()
        drawn = FIGURES[name]()
        drawn.figure.savefig(path, dpi=DPI)
    plt.close("all")
    return path


def differ(name, folder):
    """Return in what way a figure differs from its baseline, or None; skip if another matplotlib drew that."""
    baseline = BASELINES / f"{name}.png"
    with Image.open(baseline) as image:
        drawn_by = image.info["Software"].split(",")[0].removeprefix("Matplotlib version")
    minor = ".".join(drawn_by.split(".")[:2])
    if ".".join(mpl.__version__.split(".")[:2]) != minor:
        pytest.skip(f"the baseline was drawn by matplotlib {minor}, this is {mpl.__version__}")
    (folder / "expected").mkdir()
    expected = folder / "expected" / baseline.name  # comparing writes next to it
    expected.write_bytes(baseline.read_bytes())
    return compare_images(str(expected), str(save(name, folder)), tol=IMAGE)


# the other angles are drawn by the same lines, as one of them
ALIKE = {"kstarmumu_ctk", "kstarmumu_phi"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in ALIKE)) for n in FIGURES]
)
def test_figure_looks_as_before(name, tmp_path):
    assert differ(name, tmp_path) is None


@pytest.mark.parametrize(
    "options", [{"oversampling": 1}, pytest.param({"bins": 99}, marks=pytest.mark.exhaustive)]
)
def test_figure_that_is_a_little_different_is_seen(options, tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, "mass_fit", lambda: mass_fit(**options))
    assert differ("mass_fit", tmp_path) is not None


def test_example_of_the_mass_fit_saves_its_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mass_fit", "--events", "2000", "--plot", str(tmp_path / "mass.png")])
    example("mass_fit").main()
    plt.close("all")
    assert (tmp_path / "mass.png").exists()
    assert "saved" in capsys.readouterr().out


def test_example_of_the_angles_saves_its_projections(tmp_path):
    example("kstarmumu_fit").save_projections(*fitted("kstarmumu_fit", 20_000), tmp_path / "new")
    plt.close("all")
    assert sorted(path.stem for path in (tmp_path / "new").iterdir()) == [
        "kstarmumu_ctk", "kstarmumu_ctl", "kstarmumu_phi",
    ]  # fmt: skip


def test_every_baseline_belongs_to_a_figure():
    assert sorted(path.stem for path in BASELINES.glob("*.png")) == sorted(FIGURES)


if __name__ == "__main__":
    mpl.use("Agg")
    BASELINES.mkdir(exist_ok=True)
    for figure in FIGURES:
        print(save(figure, BASELINES))
