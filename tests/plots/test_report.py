"""Reports of fits: one page that needs nothing else, escapes what users name, and shows nothing that is blinded."""

import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest

import morefit as mf
from morefit.cli import main

M = mf.Observable("m", 5.0, 7.0, label="$m$ [GeV]")
HOSTILE = "<script>alert(1)</script>"


def mass(**options):
    mu = mf.Parameter("mu", 5.28, 5.0, 6.0, label=r"$\mu$", **options)
    parts = [mf.Gaussian(M, mu, 0.06), mf.Exponential(M, -1.0)]
    return mf.Sum(parts, fractions=[mf.Parameter("fsig", 0.3, 0.0, 1.0)], labels=["signal", "background"])


@pytest.fixture(scope="module")
def data():
    return mf.generate(mass(), 500, seed=1)


@pytest.fixture
def plain_pictures(monkeypatch):
    """Write pictures without what is in them, for tests of the text around them: that takes longest."""
    monkeypatch.setattr("morefit.plots.report.svg", lambda figure, **options: b"<svg/>")


class Page(HTMLParser):
    """The titles, images and text of a page, if every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.titles, self.images, self.words, self.open = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))
        elif tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1:] == ["h2"]:
            self.titles.append(text)
        self.words.append(text)

    @property
    def plots(self):
        return [image["alt"] for image in self.images if image["class"] == "plot"]

    @property
    def text(self):
        return " ".join(self.words)


def written(result, tmp_path, likelihood=None):
    before = plt.get_fignums()
    result.report(tmp_path / "fit.html", likelihood)
    assert plt.get_fignums() == before  # the figures of a report are closed
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:)", text)  # nothing comes from elsewhere
    assert "<script" not in text
    return Page(text)


def test_a_report_has_everything_in_one_page(data, tmp_path):
    result = mf.fit(mass(), data, minos=["mu"])
    page = written(result, tmp_path)
    assert page.titles == ["Model", "Data", "Result", "Correlations", "Plots", "Goodness of fit", "Versions"]
    assert page.plots == ["correlations", "m"]
    assert any("Gaussian" in image["alt"] for image in page.images)  # the formula
    for words in (
        "signal, fsig = 0.3: Gaussian in m",
        "500 events, all of them numbers",
        "minos -",
        "numpy ",
        "fit valid",
    ):
        assert words in page.text


def test_names_and_labels_of_users_are_text(tmp_path):
    x = mf.Observable("x", 0.0, 1.0, label=f"{HOSTILE} $\\foo{{$")
    bad = mf.Parameter(HOSTILE, 0.3, -0.9, 0.9, label=f"</td>{HOSTILE}$\\mu$")
    model = mf.Sum([mf.Polynomial(x, [bad]), mf.Uniform(x)], fractions=[0.5], labels=[HOSTILE, "_hidden $x"])
    result = mf.fit(model, mf.generate(model, 100, seed=1))
    page = written(result, tmp_path)
    assert HOSTILE in page.text


def test_a_blinded_parameter_cannot_be_read_from_a_report(data, tmp_path):
    result = mf.fit(mass(blind="a phrase"), data)
    page = written(result, tmp_path)
    assert page.plots == ["correlations"]
    assert "could be read from its curve: no plot is drawn" in page.text
    assert "a phrase" not in page.text
    true = result.unblind("a phrase").value
    assert f"{true:.3f}" not in page.text
    assert f"{result.values['mu']:.3f}" in page.text


@pytest.mark.usefixtures("plain_pictures")
def test_a_result_without_its_data_says_so_and_takes_a_likelihood(data, tmp_path):
    result = mf.fit(mass(), data)
    assert result.likelihood is not None
    read = mf.FitResult.from_json(result.to_json())
    for other in (read, pickle.loads(pickle.dumps(result)), replace(result, notes=("a copy",))):
        assert other.likelihood is None
    page = written(read, tmp_path)
    assert "This result does not have the model and the data" in page.text
    assert page.plots == ["correlations"]
    assert "m" in written(read, tmp_path, mf.Likelihood(mass(), data)).plots


def test_a_result_holds_the_data_but_no_kernels(data):
    light = mf.fit(mass(), data).likelihood
    assert light.data is data
    assert not light.bound
    assert not light.columns.buffers


@pytest.mark.usefixtures("plain_pictures")
def test_weights_cuts_and_constraints_are_in_the_report(tmp_path):
    column = np.append(mf.generate(mass(), 300, seed=1)["m"], [4.0, np.nan])
    cut = mf.Dataset.cut({"m": column, "w": np.full(302, 0.5)}, M, weights="w")
    mu = next(p for p in mass().parameters if p.name == "mu")
    page = written(mf.fit(mass(), cut, constraints=[mf.constraint(mu, 5.28, 0.01)]), tmp_path)
    assert "kept 300 of 302 events: 2 outside the range of 'm'" in page.text
    assert (
        "weights from 0.5 to 0.5, 0 of them negative; their sum is 150, worth 300 events without weights"
        in page.text
    )
    assert "constraint(mu = 5.28 +- 0.01)" in page.text


@pytest.mark.usefixtures("plain_pictures")
def test_categories_have_their_names_and_a_fit_that_failed_says_why(tmp_path):
    models = mf.Simultaneous({"up": mass(), "<b>down</b>": mass()}, "magnet")
    data = mf.generate(models, {"up": 100, "<b>down</b>": 200}, seed=1)
    result = mf.fit(models, data)
    page = written(replace(result, valid=False, reasons=("made up & bad",)), tmp_path, result.likelihood)
    assert page.plots == ["correlations", "m", "m"]
    assert page.words.count("<b>down</b>") == 3  # model, data, plots
    assert "<b>down</b>: m" in page.text
    assert "fit NOT VALID" in page.text
    assert "made up & bad" in page.text


def test_bins_and_points_have_reports(data, tmp_path):
    binned = mf.BinnedLikelihood(mass(), np.histogram(data["m"], 40, (5, 7)))
    page = written(mf.fit(binned), tmp_path)
    assert "500 counts in 40 bins" in page.text
    assert re.search(r"chi-square of the fit \d+.* with \d+ degrees of freedom", page.text)
    slope = mf.Parameter("slope", 1.0, -10.0, 10.0)
    points = mf.fit(mf.LeastSquares(lambda x: slope * x, [1.0, 2.0, 3.0], [1.1, 1.9, 3.2], 0.1))
    page = written(points, tmp_path)
    assert page.plots == ["x"]
    assert "3 points with errors" in page.text
    points.report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "fit.html").read_bytes()


@pytest.mark.parametrize(
    "method", ["barlow-beeston", pytest.param("dembinski-abdelmotteleb", marks=pytest.mark.exhaustive)]
)
def test_templates_and_workspaces_are_plotted_in_their_reports(method, tmp_path):
    """Reports of templates used to stop with an error of NumPy, and those of workspaces had no plot."""
    templates = {"signal": [1, 8, 2], "background": [30, 20, 10]}
    page = written(mf.fit(mf.TemplateLikelihood([12, 19, 8], templates, method=method)), tmp_path)
    assert "39 counts in 3 bins, 0 of them empty" in page.text and page.plots == ["correlations", "counts"]


@pytest.mark.usefixtures("plain_pictures")
def test_no_events_are_a_sentence_in_the_place_of_a_plot(tmp_path):
    model = mf.Sum([mf.Exponential(M, -1.0)], yields=[mf.Parameter("n", 1.0, 0.0, 10.0)])
    page = written(mf.fit(model, {"m": np.empty(0)}), tmp_path)
    assert "'m' cannot be drawn: plot: the dataset has no events" in page.text
    assert "no events" in page.words


def test_a_report_that_cannot_be_written_is_refused(data, tmp_path):
    result = mf.fit(mass(), data)
    with pytest.raises(mf.DataError, match=r"report '.*fit\.html': there is no folder"):
        result.report(tmp_path / "no" / "fit.html")
    with pytest.raises(
        mf.OptionError, match=r"report: takes the likelihood of the fit, got Sum; pass mf\.Likelihood"
    ):
        result.report(tmp_path / "fit.html", mass())
    other = mf.Likelihood(mass(), {"m": [5.5]})
    with pytest.raises(
        mf.OptionError, match=r"the result is that of 500 events .* got a likelihood of 1 and mu, fsig"
    ):
        result.report(tmp_path / "fit.html", other)
    assert not (tmp_path / "fit.html").exists()


def test_the_command_line_writes_a_report(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data.write("data.npz")
    (tmp_path / "model.py").write_text(
        "import morefit as mf\n"
        "m = mf.Observable('m', 5.0, 7.0)\n"
        "model = mf.Exponential(m, mf.Parameter('slope', -1.0, -5.0, 5.0))\n",
        encoding="utf-8",
    )
    assert main(["fit", "model.py", "data.npz", "--report", "fit.html"]) == 0
    assert "wrote fit.html" in capsys.readouterr().out
    assert "Exponential in m" in Page((tmp_path / "fit.html").read_text(encoding="utf-8")).text
    assert main(["fit", "model.py", "data.npz", "--report", "no/fit.html"]) == 2
    assert "--report: file 'no/fit.html': there is no folder" in capsys.readouterr().err
